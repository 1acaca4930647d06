//! What there is, for whoever says what may go; and what is to go.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};

/// All that a store holds, by name and size. See [`crate::Store::store_census`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCensus {
    /// Every session, its newest event and the bytes of its log, by name.
    pub sessions: Vec<(SessionId, EventSeq, u64)>,
    /// Every key of evidence and every digest of a blob, with its bytes, sorted.
    pub objects: Vec<(Digest, u64)>,
    /// What all that takes, with what a store needs for itself.
    pub bytes: u64,
}

impl StoreCensus {
    /// What must not have changed until something goes: a session that has moved on may name
    /// what nobody named before.
    pub(crate) fn last_seq_of_each_session(&self) -> impl Iterator<Item = (&SessionId, EventSeq)> {
        self.sessions
            .iter()
            .map(|(session, last, _)| (session, *last))
    }
}

/// What is to go, chosen from a census. See [`crate::Store::prune_sessions`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneSelection {
    /// Whole sessions: log, effects, cache, summary rows.
    pub sessions: Vec<SessionId>,
    /// Evidence and blobs.
    pub objects: Vec<Digest>,
}
