//! The reference implementation of [`Store`], in one process and without a disk. The SQLite store
//! must behave like it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, TaskId, VerifierName};
use checkrein_core::input::ActReach;

use crate::chain::{self, HashChainRowContent, HashChainStatus, HashChainWalk};
use crate::{
    ActNumbersForRoot, AppendedEventRange, CachedSessionState, EffectClaimGuard,
    EvidenceBytesWithFinality, EvidenceFinality, EvidencePutOutcome, NewEvent, PruneSelection,
    ScopeRow, SessionReadFn, SessionTransactionView, Store, StoreError, StoreInventory,
    StoredApprovalRequest, StoredCheckRequest, TaskRow, ToolAct, TransactFn, UndecodedEvent,
};

/// A store that lives as long as its last clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    tables: Arc<Mutex<MemoryTables>>,
    // Kept outside of `tables`, so that a claim can be dropped while a transaction holds that lock.
    claims: Arc<Mutex<BTreeSet<Digest>>>,
}

#[derive(Debug, Default)]
struct MemoryTables {
    logs: BTreeMap<SessionId, MemorySessionLog>,
    tasks: BTreeMap<(SessionId, TaskId), TaskRow>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    evidence: BTreeMap<Digest, EvidenceBytesWithFinality>,
    approvals: BTreeMap<(Digest, u32), StoredApprovalRequest>,
    messages: BTreeMap<SessionId, Vec<Vec<u8>>>,
    acts: Vec<(Option<SessionId>, ToolAct)>,
}

#[derive(Debug, Default)]
struct MemorySessionLog {
    events: Vec<ChainedEvent>,
    keys: BTreeMap<String, EventSeq>,
    pending: BTreeMap<(EventSeq, Digest), VerifierName>,
    cache: Option<(EventSeq, CachedSessionState)>,
    scopes: BTreeMap<ScopeId, ScopeRow>,
}

#[derive(Debug)]
struct ChainedEvent {
    event: UndecodedEvent,
    key: Option<String>,
    link: Digest,
}

impl MemorySessionLog {
    fn last_event_seq(&self) -> EventSeq {
        self.events
            .last()
            .map_or(EventSeq(0), |stored| stored.event.seq)
    }

    fn events_after(&self, after: EventSeq) -> Vec<UndecodedEvent> {
        let newer = self.events.iter().filter(|stored| stored.event.seq > after);
        newer.map(|stored| stored.event.clone()).collect()
    }
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the bytes of an event without updating the chain, as damage would.
    #[cfg(test)]
    pub(crate) fn tamper_with_stored_event(&self, session: &SessionId, seq: EventSeq) {
        let mut world = lock_unpoisoned(&self.tables);
        let events = world
            .logs
            .get_mut(session)
            .into_iter()
            .flat_map(|log| &mut log.events);
        for stored in events.filter(|stored| stored.event.seq == seq) {
            stored.event.payload.push(b'!');
        }
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is made at once, after everything that can fail. A panic elsewhere therefore
    // leaves a consistent state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    fn transact_on_session(
        &self,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError> {
        let mut world = lock_unpoisoned(&self.tables);
        let MemoryTables {
            logs,
            tasks,
            blobs,
            evidence,
            approvals,
            acts,
            ..
        } = &mut *world;
        let none = MemorySessionLog::default();
        let log = logs.get(session).unwrap_or(&none);
        let Some(batch) = work(&MemorySessionView {
            log,
            blobs,
            evidence,
            approvals,
        })?
        else {
            return Ok(None);
        };

        // Everything that can fail comes first, so that a failed batch leaves no trace.
        let after = log.last_event_seq();
        let mut head = log
            .events
            .last()
            .map_or_else(|| chain::hash_chain_origin(session), |s| s.link);
        let mut seq = after;
        let mut rows = Vec::with_capacity(batch.events.len());
        let mut keys = BTreeMap::new();
        for NewEvent { kind, payload, key } in batch.events {
            seq = seq.successor_seq();
            if let Some(key) = &key {
                let earlier = log
                    .keys
                    .get(key)
                    .copied()
                    // A key may also be repeated within the batch itself. `insert` then returns the
                    // earlier one.
                    .or_else(|| keys.insert(key.clone(), seq));
                if let Some(seq) = earlier {
                    let (session, key) = (session.clone(), key.clone());
                    return Err(StoreError::DuplicateKey { session, key, seq });
                }
            }
            let row = HashChainRowContent {
                seq,
                kind,
                payload: &payload,
                key: key.as_deref(),
            };
            head = chain::next_hash_chain_link(&head, &row);
            let event = UndecodedEvent {
                seq,
                kind: kind.to_owned(),
                payload,
            };
            rows.push(ChainedEvent {
                event,
                key,
                link: head,
            });
        }

        // From here on nothing fails.
        let log = logs.entry(session.clone()).or_default();
        log.events.append(&mut rows);
        log.keys.append(&mut keys);
        // Settled effects are removed before new ones are added, so an effect that is in both lists
        // is requested again.
        log.pending
            .retain(|(_, key), _| !batch.settled.contains(key));
        for effect in batch.effects {
            log.pending
                .entry((effect.stop, effect.key))
                .or_insert(effect.verifier);
        }
        if let Some(cache) = batch.cache {
            log.cache = Some((seq, cache));
        }
        log.scopes
            .extend(batch.scopes.into_iter().map(|row| (row.scope.clone(), row)));
        blobs.extend(
            batch
                .blobs
                .into_iter()
                .map(|bytes| (Digest::hash_bytes(&bytes), bytes)),
        );
        for row in batch.tasks {
            tasks.insert(
                (session.clone(), row.task),
                TaskRow {
                    session: session.clone(),
                    ..row
                },
            );
        }
        for row in batch.approvals {
            let place = (row.key, row.nth);
            // An answer that was given is never overwritten by an older copy of the row.
            if approvals
                .get(&place)
                .is_none_or(|known| row.can_replace_approval(known))
            {
                approvals.insert(place, row);
            }
        }
        acts.extend(batch.act.map(|act| (Some(session.clone()), act)));
        Ok(Some(AppendedEventRange {
            after,
            last: seq,
            head,
        }))
    }

    fn with_session_read_transaction(
        &self,
        session: &SessionId,
        work: &mut SessionReadFn<'_>,
    ) -> Result<(), StoreError> {
        let world = lock_unpoisoned(&self.tables);
        let none = MemorySessionLog::default();
        work(&MemorySessionView {
            log: world.logs.get(session).unwrap_or(&none),
            blobs: &world.blobs,
            evidence: &world.evidence,
            approvals: &world.approvals,
        })
    }

    fn events_after(
        &self,
        session: &SessionId,
        after: EventSeq,
    ) -> Result<Vec<UndecodedEvent>, StoreError> {
        let world = lock_unpoisoned(&self.tables);
        Ok(world
            .logs
            .get(session)
            .map(|log| log.events_after(after))
            .unwrap_or_default())
    }

    fn verify_chain(&self, session: &SessionId) -> Result<HashChainStatus, StoreError> {
        let world = lock_unpoisoned(&self.tables);
        let mut walk = HashChainWalk::new(session);
        for stored in world
            .logs
            .get(session)
            .into_iter()
            .flat_map(|log| &log.events)
        {
            let row = HashChainRowContent {
                seq: stored.event.seq,
                kind: &stored.event.kind,
                payload: &stored.event.payload,
                key: stored.key.as_deref(),
            };
            if !walk.verify_next_hash_chain_row(&row, stored.link.as_bytes()) {
                break;
            }
        }
        Ok(walk.into_hash_chain_status())
    }

    fn act_numbers_in_root_for_session(
        &self,
        root: &str,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError> {
        let world = lock_unpoisoned(&self.tables);
        let mut count = ActNumbersForRoot::default();
        for (number, (of, act)) in (1..).zip(&world.acts) {
            // Numbers run over all roots. Only those of this root concern the caller.
            count.total = number;
            if act.root != root {
                continue;
            }
            let own = session.is_some() && session == of.as_ref();
            if own || act.reach != ActReach::Unknown {
                count.newest.any = number;
            }
            if act.reach == ActReach::Outside {
                count.newest.declared = number;
            }
        }
        Ok(count)
    }

    fn count_act_without_event(
        &self,
        session: &SessionId,
        act: &ToolAct,
    ) -> Result<(), StoreError> {
        let mut world = lock_unpoisoned(&self.tables);
        world.acts.push((Some(session.clone()), act.clone()));
        Ok(())
    }

    fn newest_task_summaries(
        &self,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<TaskRow>, StoreError> {
        let world = lock_unpoisoned(&self.tables);
        let wanted = |row: &&TaskRow| session.is_none_or(|session| row.session == *session);
        let mut rows: Vec<_> = world.tasks.values().filter(wanted).cloned().collect();
        // The session breaks ties, so that the order is the same as that of the SQLite store.
        rows.sort_by(|a, b| {
            (b.opened_at, b.task, &a.session).cmp(&(a.opened_at, a.task, &b.session))
        });
        rows.truncate(limit);
        Ok(rows)
    }

    fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, StoreError> {
        let mut rows: Vec<_> = lock_unpoisoned(&self.tables)
            .approvals
            .values()
            .cloned()
            .collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.at), row.key, row.nth));
        Ok(rows)
    }

    fn read_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock_unpoisoned(&self.tables).blobs.get(digest).cloned())
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::hash_bytes(bytes);
        lock_unpoisoned(&self.tables)
            .blobs
            .insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError> {
        Ok(lock_unpoisoned(&self.tables).evidence.get(key).cloned())
    }

    fn put_evidence_under_key(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: EvidenceFinality,
    ) -> Result<EvidencePutOutcome, StoreError> {
        let mut world = lock_unpoisoned(&self.tables);
        match world.evidence.get(key).map(|evidence| evidence.finality) {
            // The first verdict about a subject stands, so that two processes cannot disagree about
            // it.
            Some(EvidenceFinality::Final) => Ok(EvidencePutOutcome::KeptEarlier),
            Some(EvidenceFinality::Inconclusive) | None => {
                world.evidence.insert(
                    *key,
                    EvidenceBytesWithFinality {
                        finality: standing,
                        bytes: bytes.to_vec(),
                    },
                );
                Ok(EvidencePutOutcome::Stored)
            }
        }
    }

    fn put_conversation_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        let mut world = lock_unpoisoned(&self.tables);
        let messages = world.messages.entry(session.clone()).or_default();
        messages.push(body.to_vec());
        Ok(())
    }

    fn read_stored_conversation_messages(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let world = lock_unpoisoned(&self.tables);
        let messages = world.messages.get(session).into_iter().flatten();
        Ok(messages.take(limit).cloned().collect())
    }

    fn try_claim_effect(&self, key: &Digest) -> Result<Option<EffectClaimGuard>, StoreError> {
        // `insert` tests and takes the claim in one step under the lock.
        let free = lock_unpoisoned(&self.claims).insert(*key);
        let claims = Arc::clone(&self.claims);
        Ok(free.then(|| EffectClaimGuard::new(InMemoryEffectClaim { claims, key: *key })))
    }

    fn store_census(&self) -> Result<StoreInventory, StoreError> {
        Ok(lock_unpoisoned(&self.tables).take_store_census())
    }

    fn delete_sessions_if_unchanged(
        &self,
        census: &StoreInventory,
        gone: &PruneSelection,
    ) -> Result<bool, StoreError> {
        let mut world = lock_unpoisoned(&self.tables);
        if !world
            .take_store_census()
            .last_seq_of_each_session()
            .eq(census.last_seq_of_each_session())
        {
            // A session that moved on may name objects that this selection removes.
            return Ok(false);
        }
        for session in &gone.sessions {
            world.logs.remove(session);
            world.messages.remove(session);
            world.tasks.retain(|(of, _), _| of != session);
            world.approvals.retain(|_, row| row.session != *session);
            // Acts outlive their session without its name: their numbers are part of recorded
            // subjects and must not be given again.
            let theirs = |of: &&mut (Option<SessionId>, ToolAct)| of.0.as_ref() == Some(session);
            let acts = world.acts.iter_mut().filter(theirs);
            acts.for_each(|(of, _)| *of = None);
        }
        for key in &gone.objects {
            world.blobs.remove(key);
            world.evidence.remove(key);
        }
        Ok(true)
    }

    fn vacuum_database(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl MemoryTables {
    fn take_store_census(&self) -> StoreInventory {
        let sessions = self.logs.iter().map(|(session, log)| {
            let bytes = log
                .events
                .iter()
                .map(|stored| stored.event.payload.len() as u64);
            let said = self.messages.get(session).into_iter().flatten();
            let said: u64 = said.map(|body| body.len() as u64).sum();
            (
                session.clone(),
                log.last_event_seq(),
                bytes.sum::<u64>() + said,
            )
        });
        let sessions: Vec<_> = sessions.collect();
        let blobs = self
            .blobs
            .iter()
            .map(|(key, bytes)| (*key, bytes.len() as u64));
        let evidence = self
            .evidence
            .iter()
            .map(|(key, found)| (*key, found.bytes.len() as u64));
        let mut kept: Vec<_> = blobs.chain(evidence).collect();
        kept.sort();
        let bytes = sessions.iter().map(|(_, _, bytes)| bytes).sum::<u64>()
            + kept.iter().map(|(_, bytes)| bytes).sum::<u64>();
        StoreInventory {
            sessions,
            objects: kept,
            bytes,
        }
    }
}

struct InMemoryEffectClaim {
    claims: Arc<Mutex<BTreeSet<Digest>>>,
    key: Digest,
}

impl Drop for InMemoryEffectClaim {
    fn drop(&mut self) {
        lock_unpoisoned(&self.claims).remove(&self.key);
    }
}

struct MemorySessionView<'a> {
    log: &'a MemorySessionLog,
    blobs: &'a BTreeMap<Digest, Vec<u8>>,
    evidence: &'a BTreeMap<Digest, EvidenceBytesWithFinality>,
    approvals: &'a BTreeMap<(Digest, u32), StoredApprovalRequest>,
}

impl SessionTransactionView for MemorySessionView<'_> {
    fn last_seq(&self) -> EventSeq {
        self.log.last_event_seq()
    }

    fn newest_state_cache(&self) -> Result<Option<(EventSeq, CachedSessionState)>, StoreError> {
        Ok(self.log.cache.clone())
    }

    fn events_after(&self, after: EventSeq) -> Result<Vec<UndecodedEvent>, StoreError> {
        Ok(self.log.events_after(after))
    }

    fn find_seq_by_idempotency_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError> {
        Ok(self.log.keys.get(key).copied())
    }

    fn pending_effects(&self) -> Result<Vec<StoredCheckRequest>, StoreError> {
        let rows = self.log.pending.iter();
        let rows = rows.map(|((stop, key), verifier)| StoredCheckRequest {
            key: *key,
            verifier: verifier.clone(),
            stop: *stop,
        });
        Ok(rows.collect())
    }

    fn read_scope_row(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError> {
        Ok(self.log.scopes.get(scope).cloned())
    }

    fn newest_approval_request_for_key(
        &self,
        key: &Digest,
    ) -> Result<Option<StoredApprovalRequest>, StoreError> {
        let mut of_key = self.approvals.range((*key, 0)..=(*key, u32::MAX));
        Ok(of_key.next_back().map(|(_, row)| row.clone()))
    }

    fn read_stored_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.blobs.get(digest).cloned())
    }

    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError> {
        Ok(self.evidence.get(key).cloned())
    }
}
