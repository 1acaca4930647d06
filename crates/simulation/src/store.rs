//! Wraps a store for simulated processes: every call takes virtual time and may give the turn to
//! another process, and claims end with the process tree of their holder.

use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{
    ActNumbersForRoot, AppendedEventRange, EffectClaimGuard, EvidenceBytesWithFinality,
    EvidenceFinality, EvidencePutOutcome, HashChainStatus, PruneSelection, SessionReadFn, Store,
    StoreError, StoreInventory, StoredApprovalRequest, TaskRow, ToolAct, TransactFn,
    UndecodedEvent,
};

use crate::scheduler::SimulatedProcessId;
use crate::simulated_machine::SimulatedOperatingSystem;

/// Longest time of a call, in microseconds.
const SLOWEST_CALL: u32 = 400;

/// See [`Store`].
pub(crate) struct SimulatedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) machine: Arc<SimulatedOperatingSystem>,
    pub(crate) process: SimulatedProcessId,
}

impl SimulatedStore {
    fn spend_random_store_call_time(&self) {
        let took = self.machine.scheduler.random_below(SLOWEST_CALL);
        let took = Duration::from_micros(u64::from(took));
        self.machine.scheduler.spend_virtual_time(took);
    }
}

impl Store for SimulatedStore {
    fn transact_on_session(
        &self,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError> {
        // Time is spent before the call: another process may act between the decision to call and
        // the call.
        self.spend_random_store_call_time();
        self.inner.transact_on_session(session, work)
    }

    fn with_session_read_transaction(
        &self,
        session: &SessionId,
        work: &mut SessionReadFn<'_>,
    ) -> Result<(), StoreError> {
        self.spend_random_store_call_time();
        self.inner.with_session_read_transaction(session, work)
    }

    fn events_after(
        &self,
        session: &SessionId,
        after: EventSeq,
    ) -> Result<Vec<UndecodedEvent>, StoreError> {
        self.spend_random_store_call_time();
        self.inner.events_after(session, after)
    }

    // Called by the audit after the simulation, so it takes no turn.
    fn verify_chain(&self, session: &SessionId) -> Result<HashChainStatus, StoreError> {
        self.inner.verify_chain(session)
    }

    fn act_numbers_in_root_for_session(
        &self,
        root: &str,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError> {
        self.spend_random_store_call_time();
        self.inner.act_numbers_in_root_for_session(root, session)
    }

    fn count_act_without_event(
        &self,
        session: &SessionId,
        act: &ToolAct,
    ) -> Result<(), StoreError> {
        self.spend_random_store_call_time();
        self.inner.count_act_without_event(session, act)
    }

    fn newest_task_summaries(
        &self,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<TaskRow>, StoreError> {
        self.inner.newest_task_summaries(session, limit)
    }

    fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, StoreError> {
        self.inner.list_approvals()
    }

    fn read_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.spend_random_store_call_time();
        self.inner.read_blob(digest)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.spend_random_store_call_time();
        self.inner.put_blob(bytes)
    }

    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError> {
        self.spend_random_store_call_time();
        self.inner.read_evidence(key)
    }

    fn put_evidence_under_key(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: EvidenceFinality,
    ) -> Result<EvidencePutOutcome, StoreError> {
        self.spend_random_store_call_time();
        self.inner.put_evidence_under_key(key, bytes, standing)
    }

    fn put_conversation_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        self.inner.put_conversation_message(session, body)
    }

    fn read_stored_conversation_messages(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.read_stored_conversation_messages(session, limit)
    }

    fn try_claim_effect(&self, key: &Digest) -> Result<Option<EffectClaimGuard>, StoreError> {
        self.spend_random_store_call_time();
        // Claims are held by the machine, so that they end with the simulated process.
        let is_mine = self.machine.try_claim_check_for_process(key, self.process);
        Ok(is_mine.then(|| {
            EffectClaimGuard::new(SimulatedCheckClaimGuard {
                world: Arc::clone(&self.machine),
                key: *key,
                process: self.process,
            })
        }))
    }

    fn store_census(&self) -> Result<StoreInventory, StoreError> {
        self.inner.store_census()
    }

    fn delete_sessions_if_unchanged(
        &self,
        census: &StoreInventory,
        gone: &PruneSelection,
    ) -> Result<bool, StoreError> {
        self.inner.delete_sessions_if_unchanged(census, gone)
    }

    fn vacuum_database(&self) -> Result<(), StoreError> {
        self.inner.vacuum_database()
    }
}

struct SimulatedCheckClaimGuard {
    world: Arc<SimulatedOperatingSystem>,
    key: Digest,
    process: SimulatedProcessId,
}

impl Drop for SimulatedCheckClaimGuard {
    fn drop(&mut self) {
        self.world.release_check_claim(&self.key, self.process);
    }
}
