//! The store of simulated processes: the one in memory that says what right means, with claims that end with the
//! process tree of their holder, and turns between its calls.

use std::sync::Arc;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{
    Act, ActCount, Appended, Approval, Census, Chain, Claim, Evidence, Forget, Kept, RawEvent,
    ReadWork, Standing, Store, StoreError, TaskRow, Work,
};

use crate::scheduler::Process;
use crate::world::World;

/// A call takes so many microseconds at most.
const SLOWEST_CALL: u32 = 400;

/// See [`Store`].
pub(crate) struct SimulatedStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) world: Arc<World>,
    pub(crate) process: Process,
}

impl SimulatedStore {
    fn turn(&self) {
        let took = self.world.scheduler.random(SLOWEST_CALL);
        let took = Duration::from_micros(u64::from(took));
        self.world.scheduler.did(took);
    }
}

impl Store for SimulatedStore {
    fn transact(
        &self,
        session: &SessionId,
        work: &mut Work<'_>,
    ) -> Result<Option<Appended>, StoreError> {
        self.turn();
        self.inner.transact(session, work)
    }

    fn read(&self, session: &SessionId, work: &mut ReadWork<'_>) -> Result<(), StoreError> {
        self.turn();
        self.inner.read(session, work)
    }

    fn events(&self, session: &SessionId, after: EventSeq) -> Result<Vec<RawEvent>, StoreError> {
        self.turn();
        self.inner.events(session, after)
    }

    fn verify_chain(&self, session: &SessionId) -> Result<Chain, StoreError> {
        self.inner.verify_chain(session)
    }

    fn acts(&self, root: &str, session: Option<&SessionId>) -> Result<ActCount, StoreError> {
        self.turn();
        self.inner.acts(root, session)
    }

    fn count_act(&self, session: &SessionId, act: &Act) -> Result<(), StoreError> {
        self.turn();
        self.inner.count_act(session, act)
    }

    fn tasks(&self, session: Option<&SessionId>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.inner.tasks(session, limit)
    }

    fn approvals(&self) -> Result<Vec<Approval>, StoreError> {
        self.inner.approvals()
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        self.turn();
        self.inner.blob(digest)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.turn();
        self.inner.put_blob(bytes)
    }

    fn evidence(&self, key: &Digest) -> Result<Option<Evidence>, StoreError> {
        self.turn();
        self.inner.evidence(key)
    }

    fn put_evidence(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: Standing,
    ) -> Result<Kept, StoreError> {
        self.turn();
        self.inner.put_evidence(key, bytes, standing)
    }

    fn put_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        self.inner.put_message(session, body)
    }

    fn messages(&self, session: &SessionId, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.messages(session, limit)
    }

    fn claim(&self, key: &Digest) -> Result<Option<Claim>, StoreError> {
        self.turn();
        let is_mine = self.world.claim(key, self.process);
        Ok(is_mine.then(|| {
            Claim::new(Held {
                world: Arc::clone(&self.world),
                key: *key,
                process: self.process,
            })
        }))
    }

    fn census(&self) -> Result<Census, StoreError> {
        self.inner.census()
    }

    fn forget(&self, census: &Census, gone: &Forget) -> Result<bool, StoreError> {
        self.inner.forget(census, gone)
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.inner.compact()
    }
}

struct Held {
    world: Arc<World>,
    key: Digest,
    process: Process,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.world.give_back(&self.key, self.process);
    }
}
