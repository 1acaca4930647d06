//! Checkrein's store keeps each session's log, the effects that are still to be performed and the
//! claims on them, evidence, policy blobs, the state cache, approvals, and one summary row per
//! task. It decides nothing and never reads a payload.
//!
//! Start at [`Store`]. [`SqliteStore`] keeps a folder that many processes share. [`MemoryStore`] is
//! the reference implementation. Both pass `conformance`.

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
pub use census::{PruneSelection, StoreInventory};
pub use chain::HashChainStatus;
pub use claim::EffectClaimGuard;
pub use error::StoreError;
pub use memory::MemoryStore;
pub use record::{
    ActNumbersForRoot, AppendBatch, AppendedEventRange, CachedSessionState,
    EvidenceBytesWithFinality, EvidenceFinality, EvidencePutOutcome, NewEvent, ScopeRow,
    StoredCheckRequest, TaskRow, ToolAct, UndecodedEvent,
};
pub use sqlite::{SqliteStore, SqliteStoreOptions};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId};

/// The callback of [`Store::transact_on_session`], which runs inside the transaction.
pub type TransactFn<'a> =
    dyn FnMut(&dyn SessionTransactionView) -> Result<Option<AppendBatch>, StoreError> + 'a;

/// The callback of [`Store::with_session_read_transaction`], which runs inside the read transaction.
pub type SessionReadFn<'a> = dyn FnMut(&dyn SessionTransactionView) -> Result<(), StoreError> + 'a;

/// A store of sessions, shared by threads and (SQLite) by processes.
///
/// **Log.** Each session has its own log. It is numbered from 1 without gaps, only ever appended to
/// (or removed as a whole by [`Store::delete_sessions_if_unchanged`]), and chained by hash
/// ([`Store::verify_chain`]). Kinds and payloads are opaque: what a newer version wrote is kept and
/// returned unread. Sessions do not see each other's events, keys, effects or caches. Evidence,
/// blobs and claims are shared, because their keys identify them completely.
///
/// **Durability.** When a writing method returns, what it wrote survives the death of every
/// process. A batch marked [`AppendBatch::durable`], evidence, and blobs put by [`Store::put_blob`]
/// also survive a power cut, and so does everything that was written before them.
///
/// **Waiting.** A writer waits for other writers up to a bound and then returns
/// [`StoreError::Locked`]. No method waits without a bound.
pub trait Store: Send + Sync {
    /// Runs one short write transaction: reads the tail, decides and appends.
    ///
    /// `work` sees the session while nobody else can write, and returns what to append, or `None`
    /// to leave everything as it was. Either the whole batch is written or none of it. `work` is
    /// called again only if nothing was written and the log may have grown since the call; the last
    /// call counts. It must be quick, and must read through the [`SessionTransactionView`] only: a call to the
    /// store from inside it would wait for itself.
    ///
    /// # Errors
    /// Returns what `work` returned, [`StoreError::DuplicateKey`] if one of the batch's keys is in
    /// the log already (nothing is written), or the store's own error.
    fn transact_on_session(
        &self,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError>;

    /// Runs one read transaction: everything that `work` reads through the [`SessionTransactionView`] is of
    /// one moment, whatever others commit meanwhile. It takes no write lock, so it waits for no
    /// writer and no writer waits for it, and it is allowed on a read-only store. Others may have
    /// written by the time it returns: what is to be appended because of what was read must be
    /// decided again inside [`Store::transact_on_session`].
    ///
    /// `work` is called once. As in [`Store::transact_on_session`], it must be quick, and a call to
    /// the store from inside it would wait for itself.
    ///
    /// # Errors
    /// Returns what `work` returned, or an error if the store cannot be read.
    fn with_session_read_transaction(
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
    ) -> Result<Vec<UndecodedEvent>, StoreError>;

    /// Verifies the session's whole hash chain. Finds changed, missing, moved and inserted rows. A
    /// log that lost its end is still a valid chain: to notice that, keep
    /// [`AppendedEventRange::head`] elsewhere and compare.
    ///
    /// # Errors
    /// If the store cannot be read. A broken chain is an answer, not an error.
    fn verify_chain(&self, session: &SessionId) -> Result<HashChainStatus, StoreError>;

    /// Returns the act numbers in this root as they concern this session. Acts of other sessions
    /// count only if they are known to reach further than the files that count.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn act_numbers_in_root_for_session(
        &self,
        root: &str,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError>;

    /// Counts an act for which no event is recorded.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn count_act_without_event(&self, session: &SessionId, act: &ToolAct)
    -> Result<(), StoreError>;

    /// Returns at most `limit` summary rows, newest task first, of one session if it is named.
    /// Damaged rows are left out.
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

    /// Stores a blob under the digest of its content, synced to disk. Storing it twice changes
    /// nothing.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError>;

    /// The evidence under this content key.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError>;

    /// Stores evidence under its content key, synced to disk. The first [`EvidenceFinality::Final`]
    /// evidence of a key stays for ever. Inconclusive evidence is replaced by whatever comes next.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_evidence_under_key(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: EvidenceFinality,
    ) -> Result<EvidencePutOutcome, StoreError>;

    /// Adds a message to this session's conversation with one of Checkrein's own agents. Its
    /// content is opaque, and it is removed with its session.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn put_conversation_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError>;

    /// Returns at most `limit` messages of this session's conversation, oldest first; empty if it
    /// has none.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_stored_conversation_messages(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Claims the right to perform the effect with this key; `None` while somebody else holds it.
    /// The claim ends when the [`EffectClaimGuard`] is dropped, or when its holder dies, however that
    /// happens. A new holder must look for evidence once more before performing anything.
    ///
    /// # Errors
    /// If claims cannot be made here, for instance in a store opened read-only.
    fn try_claim_effect(&self, key: &Digest) -> Result<Option<EffectClaimGuard>, StoreError>;

    /// Lists what the store holds, by name and size.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn store_census(&self) -> Result<StoreInventory, StoreError>;

    /// Removes sessions, evidence and blobs, synced to disk. This is the one exception to
    /// append-only logs, and it applies to whole sessions only. Changes nothing and returns `false`
    /// if any session began, was removed or moved on since the census. Names that do not exist are
    /// ignored.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn delete_sessions_if_unchanged(
        &self,
        census: &StoreInventory,
        gone: &PruneSelection,
    ) -> Result<bool, StoreError>;

    /// Returns the space of removed rows to the disk.
    ///
    /// # Errors
    /// If the store cannot be written, or others use it.
    fn vacuum_database(&self) -> Result<(), StoreError>;
}

/// A session as seen inside [`Store::transact_on_session`] or
/// [`Store::with_session_read_transaction`].
pub trait SessionTransactionView {
    /// Place of the newest event; `EventSeq(0)` if there is none.
    fn last_seq(&self) -> EventSeq;

    /// Returns the newest state cache and the position of the last event folded into it. It is only
    /// a shortcut: the log decides.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_state_cache(&self) -> Result<Option<(EventSeq, CachedSessionState)>, StoreError>;

    /// As [`Store::events_after`].
    ///
    /// # Errors
    /// If the store cannot be read.
    fn events_after(&self, after: EventSeq) -> Result<Vec<UndecodedEvent>, StoreError>;

    /// Where the event with this idempotency key is.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn find_seq_by_idempotency_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError>;

    /// Returns the effects that were requested and are not yet settled, in the order of the stops
    /// that requested them.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn pending_effects(&self) -> Result<Vec<StoredCheckRequest>, StoreError>;

    /// What was kept of this conversation of the session.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_scope_row(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError>;

    /// The newest question about this, whichever session asked it.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn newest_approval_request_for_key(
        &self,
        key: &Digest,
    ) -> Result<Option<StoredApprovalRequest>, StoreError>;

    /// As [`Store::read_blob`].
    ///
    /// # Errors
    /// As [`Store::read_blob`].
    fn read_stored_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError>;

    /// As [`Store::read_evidence`].
    ///
    /// # Errors
    /// If the store cannot be read.
    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError>;
}
