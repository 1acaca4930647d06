//! State machine of the tree readings that happen while a stop is judged.

use serde::{Deserialize, Serialize};

/// How the tree that a stop is judged on compares with later readings. It is read again where
/// evidence is about another tree, and before every accepting answer.
///
/// A stop is judged on at most two trees: the one of its input and, if that has moved, the one of
/// the next reading. So it requests at most two runs of a check, one more before the task is given
/// up, and at most three readings. Where a newer run of a check is reported, it requests one more
/// run and one more reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TreeRecheckState {
    /// It was not read again.
    NotRead,
    /// It is being read.
    Reading {
        /// The tree had moved before, so the stop is already judged a second time.
        moved: bool,
    },
    /// It was read and had not changed, and no evidence came since: the stop may be accepted.
    Confirmed {
        /// The tree had moved before, so the stop is judged a second time.
        moved: bool,
    },
    /// It was read and had not changed, but evidence came since.
    Unmoved,
    /// It had moved. The stop is judged a second time, on the tree that was read.
    Moved,
    /// It moved again: nothing that depends on it can be judged at this stop.
    MovedAgain,
}

impl TreeRecheckState {
    /// It is being read.
    pub fn is_tree_being_reread(self) -> bool {
        matches!(self, Self::Reading { .. })
    }

    /// Returns whether the stop may be answered without another reading: the last one came after
    /// all evidence, or another would change nothing.
    pub fn needs_no_further_tree_reading(self) -> bool {
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

    /// Returns whether it was read at least once. Evidence about another tree then does not cause
    /// another reading.
    pub fn was_tree_reread(self) -> bool {
        match self {
            Self::NotRead | Self::Reading { moved: false } => false,
            // A second reading is only requested after a first one came back.
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

    /// Records whether the requested reading found the same tree. A reading that was not requested
    /// is ignored.
    pub(super) fn record_tree_reread_result(&mut self, same: bool) {
        if let Self::Reading { moved } = *self {
            *self = match (same, moved) {
                (true, moved) => Self::Confirmed { moved },
                (false, false) => Self::Moved,
                // The second move ends the rechecks. Without this state, a tree that keeps moving
                // would be read for ever.
                (false, true) => Self::MovedAgain,
            };
        }
    }

    /// Takes a confirmation back because new evidence came.
    pub(super) fn invalidate_tree_confirmation(&mut self) {
        if let Self::Confirmed { moved } = *self {
            *self = match moved {
                true => Self::Moved,
                false => Self::Unmoved,
            };
        }
    }

    /// Resets the recheck after another policy was sealed, since everything is requested again.
    /// That the tree moved is kept, because it bounds the readings.
    pub(super) fn reset_recheck_for_new_policy(&mut self) {
        *self = match *self {
            Self::MovedAgain => Self::MovedAgain,
            state if state.has_tree_moved() => Self::Moved,
            _ => Self::NotRead,
        };
    }
}
