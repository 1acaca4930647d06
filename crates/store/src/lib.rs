//! Checkrein's store remembers: each session's log, the effects that are still to be
//! performed and who may perform them, evidence, policy blobs, the state cache, what a person
//! was asked, and one summary row per task. It decides nothing and never reads a payload.
//!
//! Start at [`Store`]. [`SqliteStore`] keeps a folder that many processes share;
//! [`MemoryStore`] is the reference that says what right means. Both pass `conformance`.

mod approval;
mod census;
mod chain;
mod claim;
#[cfg(any(test, feature = "testing"))]
pub mod conformance;
mod error;
mod memory;
mod record;
mod sqlite;

pub use approval::{
    ApprovalAnswer, ApprovalCallDetails, ApprovalStatus, ApprovalSubject, FinalMessage,
    StoredApprovalRequest,
};
pub use census::{PruneSelection, StoreCensus};
pub use chain::HashChainStatus;
pub use claim::EffectClaim;
pub use error::StoreError;
pub use memory::MemoryStore;
pub use record::{
    ActNumbersForRoot, AppendBatch, AppendedEventRange, CachedSessionState, EvidenceFinality,
    EvidencePutOutcome, NewEvent, RawEvent, ScopeRow, StoredCheckRequest, StoredEvidence, TaskRow,
    ToolAct,
};
pub use sqlite::{SqliteStore, SqliteStoreOptions};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId};

/// What a [`Store::transact_on_session`] caller does inside the transaction.
pub type TransactFn<'a> =
    dyn FnMut(&dyn SessionView) -> Result<Option<AppendBatch>, StoreError> + 'a;

/// What a [`Store::read_session_in_transaction`] caller does inside the read transaction.
pub type SessionReadFn<'a> = dyn FnMut(&dyn SessionView) -> Result<(), StoreError> + 'a;

/// A place where sessions are remembered, shared by threads and (SQLite) by processes.
///
/// **Log.** Each session has its own, numbered from 1 without gaps, only ever appended
/// to (it goes as a whole, by [`Store::prune_sessions`], or not at all), and chained by hash ([`Store::verify_chain`]). Kinds and payloads are opaque:
/// what a newer version wrote is kept and given back unread. Sessions do not see each
/// other's events, keys, effects or caches; evidence, blobs and claims are shared,
/// because their keys say everything about them.
///
/// **Durability.** When a writing method returns, what it wrote survives the death of
/// every process. A batch marked [`AppendBatch::durable`], evidence and blobs put by
/// [`Store::put_blob`] also survive a power cut, and so does everything that was
/// written before them.
///
/// **Waiting.** A writer waits for other writers up to a bound and then answers
/// [`StoreError::Locked`]; no method waits without one.
pub trait Store: Send + Sync {
    /// One short write transaction around reading the tail, deciding and appending.
    ///
    /// `work` sees the session as it is while nobody else can write, and returns what to
    /// append, or `None` to leave everything as it was. Either the whole batch is
    /// written or none of it. `work` is called again only if nothing was written and the
    /// log may have grown since it was called; the last call counts. It must be quick,
    /// and read through the [`SessionView`] only: calling the store from inside it would wait
    /// for itself.
    ///
    /// # Errors
    /// What `work` returned; [`StoreError::DuplicateKey`] if one of the batch's keys is
    /// in the log already (nothing is written); or the store's own trouble.
    fn transact_on_session(
        &self,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError>;

    /// One read transaction: everything that `work` reads through the [`SessionView`] is of one moment,
    /// whatever others commit meanwhile. It takes no write lock, so it waits for no writer and no
    /// writer waits for it, and it is allowed where the store is read-only. Others may have written by the
    /// time it returns: what is to be appended because of what was read is decided anew inside
    /// [`Store::transact_on_session`].
    ///
    /// `work` is called once. Like in [`Store::transact_on_session`], it must be quick, and calling the store from
    /// inside it would wait for itself.
    ///
    /// # Errors
    /// What `work` returned; or if the store cannot be read.
    fn read_session_in_transaction(
        &self,
        session: &SessionId,
        work: &mut SessionReadFn<'_>,
    ) -> Result<(), StoreError>;

    /// The events after `after`, in order; all of them for `EventSeq(0)`, none for an unknown session.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn events_after(
        &self,
        session: &SessionId,
        after: EventSeq,
    ) -> Result<Vec<RawEvent>, StoreError>;

    /// Walks the session's whole hash chain. Finds changed, missing, moved and inserted
    /// rows; a log that lost its end is still a chain, so whoever must notice that keeps
    /// [`AppendedEventRange::head`] elsewhere and compares.
    ///
    /// # Errors
    /// If the store cannot be read; a broken chain is an answer, not an error.
    fn verify_chain(&self, session: &SessionId) -> Result<HashChainStatus, StoreError>;

    /// The acts in this root, as they concern this session: of what other sessions did, only what is
    /// known to reach further than the files that count.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn count_acts_concerning_session(
        &self,
        root: &str,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError>;

    /// Counts an act of which nothing else is recorded.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn increment_act_count(&self, session: &SessionId, act: &ToolAct) -> Result<(), StoreError>;

    /// At most `limit` summary rows, newest task first; of one session if it is named. A row that is
    /// damaged is left out.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_task_summaries(
        &self,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<TaskRow>, StoreError>;

    /// Everything that a person was asked, newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, StoreError>;

    /// The blob with this digest. Its content is checked against the digest.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the content does not have this digest.
    fn read_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// Keeps a blob under the digest of its content, synced to disk. Keeping it twice is keeping it once.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError>;

    /// The evidence under this content key.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_evidence(&self, key: &Digest) -> Result<Option<StoredEvidence>, StoreError>;

    /// Keeps evidence under its content key, synced to disk. The first
    /// [`EvidenceFinality::Final`] evidence of a key stays for ever; an inconclusive one is
    /// replaced by whatever comes next.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_evidence(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: EvidenceFinality,
    ) -> Result<EvidencePutOutcome, StoreError>;

    /// Adds a message to the conversation of this session, which an agent of our own has. What it
    /// holds is nobody's but that agent's; it goes with its session.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_conversation_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError>;

    /// The conversation of this session, oldest message first, and at most so many of them; empty if
    /// it has none.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_conversation_messages(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError>;

    /// The right to perform the effect with this key, or `None` while somebody else
    /// holds it. It ends when the [`EffectClaim`] is dropped, or when its holder dies, however
    /// that dies. Who gets it looks for evidence once more before performing anything.
    ///
    /// # Errors
    /// If claims cannot be made here, for instance in a store opened read-only.
    fn try_claim_effect(&self, key: &Digest) -> Result<Option<EffectClaim>, StoreError>;

    /// What there is, by name and size.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn store_census(&self) -> Result<StoreCensus, StoreError>;

    /// Lets sessions, evidence and blobs go, synced to disk: the one exception to a log that
    /// is only ever appended to, and only by whole sessions. Changes nothing and answers
    /// `false` if any session has begun, gone or moved on since the census that this was
    /// chosen from. What is not there is gone already.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn prune_sessions(
        &self,
        census: &StoreCensus,
        gone: &PruneSelection,
    ) -> Result<bool, StoreError>;

    /// Gives the room of what went back to the disk.
    ///
    /// # Errors
    /// If the store cannot be written, or others use it.
    fn compact(&self) -> Result<(), StoreError>;
}

/// One session as it is inside a [`Store::transact_on_session`] or a [`Store::read_session_in_transaction`].
pub trait SessionView {
    /// Place of the newest event; `EventSeq(0)` if there is none.
    fn last_seq(&self) -> EventSeq;

    /// The newest state cache and the place of the last event folded into it. Never a truth.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_state_cache(&self) -> Result<Option<(EventSeq, CachedSessionState)>, StoreError>;

    /// As [`Store::events_after`].
    ///
    /// # Errors
    /// If the store cannot be read.
    fn events_after(&self, after: EventSeq) -> Result<Vec<RawEvent>, StoreError>;

    /// Where the event with this idempotency key is.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn find_seq_by_idempotency_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError>;

    /// Effects asked for and not yet settled, in the order of the stops that asked.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn pending_effects(&self) -> Result<Vec<StoredCheckRequest>, StoreError>;

    /// What was kept of this conversation of the session.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn stored_scope_row(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError>;

    /// The newest question about this, whichever session asked it.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_approval(&self, key: &Digest) -> Result<Option<StoredApprovalRequest>, StoreError>;

    /// As [`Store::read_blob`].
    ///
    /// # Errors
    /// As [`Store::read_blob`].
    fn read_stored_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// As [`Store::read_evidence`].
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_evidence(&self, key: &Digest) -> Result<Option<StoredEvidence>, StoreError>;
}
