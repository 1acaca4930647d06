//! `StoreInventory` lists sessions and objects with their sizes, so that retention can choose which to
//! delete. `PruneSelection` is that choice.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};

/// Everything that a store holds, by name and size. See [`crate::Store::store_census`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreInventory {
    /// Every session, its newest event and the bytes of its log, by name.
    pub sessions: Vec<(SessionId, EventSeq, u64)>,
    /// Every key of evidence and every digest of a blob, with its bytes, sorted.
    pub objects: Vec<(Digest, u64)>,
    /// The bytes of all of it, including the store's own overhead.
    pub bytes: u64,
}

impl StoreInventory {
    /// Returns what must not have changed before anything is removed: a session that moved on may
    /// name objects that nobody named before.
    pub(crate) fn last_seq_of_each_session(&self) -> impl Iterator<Item = (&SessionId, EventSeq)> {
        self.sessions
            .iter()
            .map(|(session, last, _)| (session, *last))
    }
}

/// The sessions and objects to remove, chosen from a census. See [`crate::Store::delete_sessions_if_unchanged`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneSelection {
    /// Whole sessions: log, effects, cache, summary rows.
    pub sessions: Vec<SessionId>,
    /// Evidence and blobs.
    pub objects: Vec<Digest>,
}
