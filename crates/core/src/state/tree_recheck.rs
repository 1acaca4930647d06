//! What reading the tree again has shown while a stop is judged.

use serde::{Deserialize, Serialize};

/// How the tree that a stop is judged on compares with what was read since. It is read again where
/// evidence is about another tree, and before every accepting answer.
///
/// A stop is judged on at most two trees: the one of its input and, if that was seen to have moved,
/// the one that was read then. So it asks for at most two runs of a check, and one more before the
/// task is given up; and for at most three readings. Where a newer run of a check is told of, it
/// asks for one more, and for a reading after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeRecheckState {
    /// It was not read again.
    NotRead,
    /// It is being read.
    Reading {
        /// The stop is judged anew already.
        moved: bool,
    },
    /// It was read, was the same, and nothing that counts came since: the stop may be accepted.
    Confirmed {
        /// The stop is judged anew.
        moved: bool,
    },
    /// It was read and was the same. Evidence came since.
    Unmoved,
    /// It had moved. The stop is judged anew, on the tree as it was read.
    Moved,
    /// It moved once more: nothing that depends on it can be judged at this stop.
    MovedAgain,
}

impl TreeRecheckState {
    /// It is being read.
    pub fn is_tree_being_reread(self) -> bool {
        matches!(self, Self::Reading { .. })
    }

    /// The stop may be answered without another reading: the last one came after all that is known,
    /// or another would change nothing.
    pub fn is_tree_recheck_complete(self) -> bool {
        matches!(self, Self::Confirmed { .. } | Self::MovedAgain)
    }

    /// It had moved, so the stop is judged anew.
    pub fn has_tree_moved(self) -> bool {
        match self {
            Self::Reading { moved } | Self::Confirmed { moved } => moved,
            Self::Moved | Self::MovedAgain => true,
            Self::NotRead | Self::Unmoved => false,
        }
    }

    /// It was read at least once: evidence about another tree is not looked into a second time.
    pub fn was_tree_reread(self) -> bool {
        match self {
            Self::NotRead | Self::Reading { moved: false } => false,
            Self::Reading { moved: true } | Self::Confirmed { .. } => true,
            Self::Unmoved | Self::Moved | Self::MovedAgain => true,
        }
    }

    /// A reading was asked for.
    pub(super) fn note_tree_reread_request(&mut self) {
        *self = Self::Reading {
            moved: self.has_tree_moved(),
        };
    }

    /// A reading that was asked for came back; whether the tree was the same. Any other decides
    /// nothing.
    pub(super) fn record_tree_reread_result(&mut self, same: bool) {
        if let Self::Reading { moved } = *self {
            *self = match (same, moved) {
                (true, moved) => Self::Confirmed { moved },
                (false, false) => Self::Moved,
                (false, true) => Self::MovedAgain,
            };
        }
    }

    /// Evidence that counts came.
    pub(super) fn invalidate_tree_confirmation(&mut self) {
        if let Self::Confirmed { moved } = *self {
            *self = match moved {
                true => Self::Moved,
                false => Self::Unmoved,
            };
        }
    }

    /// Another policy was sealed: all is asked for anew. That the tree moved stays known.
    pub(super) fn reset_recheck_for_new_policy(&mut self) {
        *self = match *self {
            Self::MovedAgain => Self::MovedAgain,
            state if state.has_tree_moved() => Self::Moved,
            _ => Self::NotRead,
        };
    }
}
