//! The reference implementation: says what right means, in one process and without a disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, TaskId, VerifierName};
use checkrein_core::input::ActReach;

use crate::chain::{self, Chain, Row, Walk};
use crate::{
    Act, ActCount, Appended, Approval, Census, Claim, EffectRow, Evidence, Forget, Kept, NewEvent,
    RawEvent, ReadWork, ScopeRow, Standing, StateCache, Store, StoreError, Tail, TaskRow, Work,
};

/// A store that lives as long as its last clone; clones share it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    world: Arc<Mutex<World>>,
    // Apart from the world, so that a claim can be dropped while a transaction runs.
    claims: Arc<Mutex<BTreeSet<Digest>>>,
}

#[derive(Debug, Default)]
struct World {
    logs: BTreeMap<SessionId, Log>,
    tasks: BTreeMap<(SessionId, TaskId), TaskRow>,
    blobs: BTreeMap<Digest, Vec<u8>>,
    evidence: BTreeMap<Digest, Evidence>,
    approvals: BTreeMap<(Digest, u32), Approval>,
    messages: BTreeMap<SessionId, Vec<Vec<u8>>>,
    acts: Vec<(Option<SessionId>, Act)>,
}

#[derive(Debug, Default)]
struct Log {
    events: Vec<Stored>,
    keys: BTreeMap<String, EventSeq>,
    pending: BTreeMap<(EventSeq, Digest), VerifierName>,
    cache: Option<(EventSeq, StateCache)>,
    scopes: BTreeMap<ScopeId, ScopeRow>,
}

#[derive(Debug)]
struct Stored {
    event: RawEvent,
    key: Option<String>,
    link: Digest,
}

impl Log {
    fn last(&self) -> EventSeq {
        self.events
            .last()
            .map_or(EventSeq(0), |stored| stored.event.seq)
    }

    fn after(&self, after: EventSeq) -> Vec<RawEvent> {
        let newer = self.events.iter().filter(|stored| stored.event.seq > after);
        newer.map(|stored| stored.event.clone()).collect()
    }
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Changes the bytes of an event behind the chain's back, as damage would.
    #[cfg(test)]
    pub(crate) fn damage(&self, session: &SessionId, seq: EventSeq) {
        let mut world = lock(&self.world);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is made in one go after everything that can fail, so a panic
    // elsewhere leaves a state that is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for MemoryStore {
    fn transact(
        &self,
        session: &SessionId,
        work: &mut Work<'_>,
    ) -> Result<Option<Appended>, StoreError> {
        let mut world = lock(&self.world);
        let World {
            logs,
            tasks,
            blobs,
            evidence,
            approvals,
            acts,
            ..
        } = &mut *world;
        let none = Log::default();
        let log = logs.get(session).unwrap_or(&none);
        let Some(batch) = work(&MemoryTail {
            log,
            blobs,
            evidence,
            approvals,
        })?
        else {
            return Ok(None);
        };

        // All that can fail comes first.
        let after = log.last();
        let mut head = log
            .events
            .last()
            .map_or_else(|| chain::origin(session), |s| s.link);
        let mut seq = after;
        let mut rows = Vec::with_capacity(batch.events.len());
        let mut keys = BTreeMap::new();
        for NewEvent { kind, payload, key } in batch.events {
            seq = seq.next_seq();
            if let Some(key) = &key {
                let earlier = log
                    .keys
                    .get(key)
                    .copied()
                    .or_else(|| keys.insert(key.clone(), seq));
                if let Some(seq) = earlier {
                    let (session, key) = (session.clone(), key.clone());
                    return Err(StoreError::DuplicateKey { session, key, seq });
                }
            }
            let row = Row {
                seq,
                kind,
                payload: &payload,
                key: key.as_deref(),
            };
            head = chain::link(&head, &row);
            let event = RawEvent {
                seq,
                kind: kind.to_owned(),
                payload,
            };
            rows.push(Stored {
                event,
                key,
                link: head,
            });
        }

        let log = logs.entry(session.clone()).or_default();
        log.events.append(&mut rows);
        log.keys.append(&mut keys);
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
            if approvals
                .get(&place)
                .is_none_or(|known| row.may_follow(known))
            {
                approvals.insert(place, row);
            }
        }
        acts.extend(batch.act.map(|act| (Some(session.clone()), act)));
        Ok(Some(Appended {
            after,
            last: seq,
            head,
        }))
    }

    fn read(&self, session: &SessionId, work: &mut ReadWork<'_>) -> Result<(), StoreError> {
        let world = lock(&self.world);
        let none = Log::default();
        work(&MemoryTail {
            log: world.logs.get(session).unwrap_or(&none),
            blobs: &world.blobs,
            evidence: &world.evidence,
            approvals: &world.approvals,
        })
    }

    fn events(&self, session: &SessionId, after: EventSeq) -> Result<Vec<RawEvent>, StoreError> {
        let world = lock(&self.world);
        Ok(world
            .logs
            .get(session)
            .map(|log| log.after(after))
            .unwrap_or_default())
    }

    fn verify_chain(&self, session: &SessionId) -> Result<Chain, StoreError> {
        let world = lock(&self.world);
        let mut walk = Walk::begin(session);
        for stored in world
            .logs
            .get(session)
            .into_iter()
            .flat_map(|log| &log.events)
        {
            let row = Row {
                seq: stored.event.seq,
                kind: &stored.event.kind,
                payload: &stored.event.payload,
                key: stored.key.as_deref(),
            };
            if !walk.step(&row, stored.link.as_bytes()) {
                break;
            }
        }
        Ok(walk.end())
    }

    fn acts(&self, root: &str, session: Option<&SessionId>) -> Result<ActCount, StoreError> {
        let world = lock(&self.world);
        let mut count = ActCount::default();
        for (number, (of, act)) in (1..).zip(&world.acts) {
            count.counted = number;
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

    fn count_act(&self, session: &SessionId, act: &Act) -> Result<(), StoreError> {
        let mut world = lock(&self.world);
        world.acts.push((Some(session.clone()), act.clone()));
        Ok(())
    }

    fn tasks(&self, session: Option<&SessionId>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        let world = lock(&self.world);
        let wanted = |row: &&TaskRow| session.is_none_or(|session| row.session == *session);
        let mut rows: Vec<_> = world.tasks.values().filter(wanted).cloned().collect();
        rows.sort_by(|a, b| {
            (b.opened_at, b.task, &a.session).cmp(&(a.opened_at, a.task, &b.session))
        });
        rows.truncate(limit);
        Ok(rows)
    }

    fn approvals(&self) -> Result<Vec<Approval>, StoreError> {
        let mut rows: Vec<_> = lock(&self.world).approvals.values().cloned().collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(row.at), row.key, row.nth));
        Ok(rows)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock(&self.world).blobs.get(digest).cloned())
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::hash_bytes(bytes);
        lock(&self.world).blobs.insert(digest, bytes.to_vec());
        Ok(digest)
    }

    fn evidence(&self, key: &Digest) -> Result<Option<Evidence>, StoreError> {
        Ok(lock(&self.world).evidence.get(key).cloned())
    }

    fn put_evidence(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: Standing,
    ) -> Result<Kept, StoreError> {
        let mut world = lock(&self.world);
        match world.evidence.get(key).map(|evidence| evidence.standing) {
            Some(Standing::Final) => Ok(Kept::Earlier),
            Some(Standing::Inconclusive) | None => {
                world.evidence.insert(
                    *key,
                    Evidence {
                        standing,
                        bytes: bytes.to_vec(),
                    },
                );
                Ok(Kept::New)
            }
        }
    }

    fn put_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        let mut world = lock(&self.world);
        let messages = world.messages.entry(session.clone()).or_default();
        messages.push(body.to_vec());
        Ok(())
    }

    fn messages(&self, session: &SessionId, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let world = lock(&self.world);
        let messages = world.messages.get(session).into_iter().flatten();
        Ok(messages.take(limit).cloned().collect())
    }

    fn claim(&self, key: &Digest) -> Result<Option<Claim>, StoreError> {
        let free = lock(&self.claims).insert(*key);
        let claims = Arc::clone(&self.claims);
        Ok(free.then(|| Claim::new(Held { claims, key: *key })))
    }

    fn census(&self) -> Result<Census, StoreError> {
        Ok(lock(&self.world).census())
    }

    fn forget(&self, census: &Census, gone: &Forget) -> Result<bool, StoreError> {
        let mut world = lock(&self.world);
        if !world.census().mark().eq(census.mark()) {
            return Ok(false);
        }
        for session in &gone.sessions {
            world.logs.remove(session);
            world.messages.remove(session);
            world.tasks.retain(|(of, _), _| of != session);
            world.approvals.retain(|_, row| row.session != *session);
            let theirs = |of: &&mut (Option<SessionId>, Act)| of.0.as_ref() == Some(session);
            let acts = world.acts.iter_mut().filter(theirs);
            acts.for_each(|(of, _)| *of = None);
        }
        for key in &gone.kept {
            world.blobs.remove(key);
            world.evidence.remove(key);
        }
        Ok(true)
    }

    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl World {
    fn census(&self) -> Census {
        let sessions = self.logs.iter().map(|(session, log)| {
            let bytes = log
                .events
                .iter()
                .map(|stored| stored.event.payload.len() as u64);
            let said = self.messages.get(session).into_iter().flatten();
            let said: u64 = said.map(|body| body.len() as u64).sum();
            (session.clone(), log.last(), bytes.sum::<u64>() + said)
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
        Census {
            sessions,
            kept,
            bytes,
        }
    }
}

struct Held {
    claims: Arc<Mutex<BTreeSet<Digest>>>,
    key: Digest,
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.claims).remove(&self.key);
    }
}

struct MemoryTail<'a> {
    log: &'a Log,
    blobs: &'a BTreeMap<Digest, Vec<u8>>,
    evidence: &'a BTreeMap<Digest, Evidence>,
    approvals: &'a BTreeMap<(Digest, u32), Approval>,
}

impl Tail for MemoryTail<'_> {
    fn last(&self) -> EventSeq {
        self.log.last()
    }

    fn cache(&self) -> Result<Option<(EventSeq, StateCache)>, StoreError> {
        Ok(self.log.cache.clone())
    }

    fn events_after(&self, after: EventSeq) -> Result<Vec<RawEvent>, StoreError> {
        Ok(self.log.after(after))
    }

    fn find_key(&self, key: &str) -> Result<Option<EventSeq>, StoreError> {
        Ok(self.log.keys.get(key).copied())
    }

    fn pending(&self) -> Result<Vec<EffectRow>, StoreError> {
        let rows = self.log.pending.iter();
        let rows = rows.map(|((stop, key), verifier)| EffectRow {
            key: *key,
            verifier: verifier.clone(),
            stop: *stop,
        });
        Ok(rows.collect())
    }

    fn scope(&self, scope: &ScopeId) -> Result<Option<ScopeRow>, StoreError> {
        Ok(self.log.scopes.get(scope).cloned())
    }

    fn approval(&self, key: &Digest) -> Result<Option<Approval>, StoreError> {
        let mut of_key = self.approvals.range((*key, 0)..=(*key, u32::MAX));
        Ok(of_key.next_back().map(|(_, row)| row.clone()))
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.blobs.get(digest).cloned())
    }

    fn evidence(&self, key: &Digest) -> Result<Option<Evidence>, StoreError> {
        Ok(self.evidence.get(key).cloned())
    }
}
