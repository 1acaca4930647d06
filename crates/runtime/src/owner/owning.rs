//! The owner's side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::EvidenceOrigin;
use checkrein_core::policy::Policy;

use super::link::{Heard, HookSays, OwnerLink, OwnerSays, say};
use super::records::{Registered, register};
use super::{OwnedBatch, OwnedCheck};
use crate::delivery::{Patience, Progress};
use crate::driver::Runtime;
use crate::error::RuntimeError;
use crate::looks::Looks;
use crate::perform::{Done, Wanted};
use crate::system::{System, Threads};

/// How often an owner that goes on alone looks whether it still should.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl OwnerLink {
    /// What the hook wants to have found out; `None` if it says nothing that can be read.
    pub fn batch(&mut self) -> Option<OwnedBatch> {
        loop {
            match self.hear() {
                Heard::Said(batch) => return Some(batch),
                Heard::Nothing => {}
                Heard::End => return None,
            }
        }
    }
}

impl Runtime {
    /// Finds out what a hook wants to know, while it waits and after. What is found is kept as evidence
    /// as it comes. `is_off` says whether a person has switched Checkrein off here.
    ///
    /// # Errors
    /// If the store cannot be read or written, if the session is not judged by that policy any more, and
    /// if nobody wants to know any more.
    pub fn own(
        &self,
        batch: &OwnedBatch,
        mut link: OwnerLink,
        is_off: &dyn Fn() -> bool,
    ) -> Result<(), RuntimeError> {
        let registered = register(batch, &*self.place.system)
            .map_err(|source| RuntimeError::Owner { source })?;
        // Whoever switches off has all owners end that are entered by then; one that is entered later sees it.
        if is_off() {
            return Err(RuntimeError::Cancelled);
        }
        let writer = link.writer();
        let writer = writer.map_err(|source| RuntimeError::Owner { source })?;
        let policy = self.peek(&batch.session)?.map(|(_, policy)| policy);
        let is_same =
            |policy: &Policy| Digest::hash_bytes(&policy.to_policy_blob()) == batch.policy;
        let Some(policy) = policy.filter(is_same) else {
            return Err(RuntimeError::Policy {
                session: batch.session.clone(),
                what: "is another one by now".to_owned(),
            });
        };
        let wanted: Vec<Wanted> = batch.checks.iter().map(OwnedCheck::wanted).collect();
        let (cancelled, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        // Nobody may listen any more; what was found is kept all the same.
        let tell = |said: OwnerSays| {
            let _ = say(&*writer, &said);
        };
        let system = &*self.place.system;
        std::thread::scope(|scope| {
            let threads = Threads::new(system, scope);
            threads.spawn(|| {
                if !is_wanted_to_the_end(system, &mut link, batch, &registered, &ended) {
                    cancelled.store(true, Ordering::Relaxed);
                }
            });
            let patience = Patience {
                deadline: None,
                cancelled: &cancelled,
            };
            let progress = |news: Progress| {
                if let Progress::Started { verifier, command } = news {
                    tell(OwnerSays::Started { verifier, command });
                }
            };
            let found = self.perform(
                &batch.session,
                &policy,
                &wanted,
                EvidenceOrigin::Gate,
                true,
                batch.since,
                None,
                None,
                patience,
                &Looks::new(
                    Arc::clone(&self.place.system),
                    None,
                    Duration::from_millis(batch.longest_wait_ms),
                ),
                &progress,
                &mut |done: Done| {
                    tell(OwnerSays::Done { run: done.key });
                    Ok(())
                },
            );
            ended.store(true, Ordering::Relaxed);
            found
        })
    }
}

impl OwnedCheck {
    fn wanted(&self) -> Wanted {
        Wanted {
            verifier: self.verifier.clone(),
            subject: self.content,
            content: self.content,
            acts: self.acts,
            again: self.again,
        }
    }
}

/// Waits for the end of the batch; false if nobody wants to know any more.
fn is_wanted_to_the_end(
    system: &dyn System,
    link: &mut OwnerLink,
    batch: &OwnedBatch,
    registered: &Registered,
    ended: &AtomicBool,
) -> bool {
    let mut is_alone = false;
    let mut looked = system.monotonic_now();
    while !ended.load(Ordering::Relaxed) {
        if !is_alone {
            match link.hear() {
                Heard::Said(HookSays::Keep) => is_alone = true,
                Heard::Nothing => {}
                Heard::End => return false,
            }
        } else {
            system.sleep(LOOK_AGAIN / 10);
        }
        let now = system.monotonic_now();
        if now.saturating_duration_since(looked) >= LOOK_AGAIN {
            looked = now;
            let is_there = batch.root.is_dir() && batch.state.is_dir();
            if registered.is_cancelled() || !is_there || !system.lives(batch.agent) {
                return false;
            }
        }
    }
    true
}
