//! The owner's side: runs the batch of a hook, reports to it, and goes on alone when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::GateOrManualOrigin;
use checkrein_core::policy::Policy;

use super::link::{
    HookToWorkerMessage, HookWorkerLinkEnd, WorkerLinkReceiveOutcome, WorkerToHookMessage,
    write_worker_link_message,
};
use super::owner_records::{WorkerRecordGuard, register_worker};
use super::{WorkerCheck, WorkerCheckBatch};
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, VerificationProgress};
use crate::runtime::Runtime;
use crate::system::{ScopedThreads, System};
use crate::tree_snapshots::StopTreeSnapshots;
use crate::verification::{ReturnedEvidence, VerifierRunRequest};

/// How often an owner looks whether its work is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl HookWorkerLinkEnd {
    /// Receives the batch from the hook; `None` if nothing readable comes.
    pub fn receive_check_batch_from_hook(&mut self) -> Option<WorkerCheckBatch> {
        loop {
            match self.receive_link_message() {
                WorkerLinkReceiveOutcome::Message(batch) => return Some(batch),
                WorkerLinkReceiveOutcome::Nothing => {}
                WorkerLinkReceiveOutcome::End => return None,
            }
        }
    }
}

impl Runtime {
    /// Runs the checks that a hook wants, while it waits and after. Evidence is stored as it comes.
    /// `is_off` tells whether a person has switched Checkrein off here.
    ///
    /// # Errors
    /// If the store cannot be read or written, if the session is not judged by that policy any more, and
    /// if nobody wants to know any more.
    pub fn run_worker_batch(
        &self,
        batch: &WorkerCheckBatch,
        mut link: HookWorkerLinkEnd,
        is_off: &dyn Fn() -> bool,
    ) -> Result<(), RuntimeError> {
        let registered = register_worker(batch, &*self.place.system)
            .map_err(|source| RuntimeError::Owner { source })?;
        // Registered first, then asked: `off` ends all owners that are registered by then, and one
        // that registers later finds it switched off here.
        if is_off() {
            return Err(RuntimeError::Cancelled);
        }
        let writer = link.worker_transport_writer();
        let writer = writer.map_err(|source| RuntimeError::Owner { source })?;
        let policy = self
            .load_session_state_and_policy(&batch.session)?
            .map(|(_, policy)| policy);
        // A person may have sealed anew since the hook asked.
        let is_same =
            |policy: &Policy| Digest::hash_bytes(&policy.to_policy_blob()) == batch.policy;
        let Some(policy) = policy.filter(is_same) else {
            return Err(RuntimeError::Policy {
                session: batch.session.clone(),
                what: "is another one by now".to_owned(),
            });
        };
        let wanted: Vec<VerifierRunRequest> = batch
            .checks
            .iter()
            .map(WorkerCheck::check_to_verification_request)
            .collect();
        let (cancelled, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        // Perhaps nobody listens any more; the evidence is stored all the same.
        let tell = |said: WorkerToHookMessage| {
            let _ = write_worker_link_message(&*writer, &said);
        };
        let system = &*self.place.system;
        std::thread::scope(|scope| {
            let threads = ScopedThreads::new(system, scope);
            threads.spawn_scoped_thread(|| {
                if !wait_for_batch_end_while_wanted(system, &mut link, batch, &registered, &ended) {
                    cancelled.store(true, Ordering::Relaxed);
                }
            });
            let patience = Deadline {
                // No answer is due here: the check's own timeout bounds it.
                due_at: None,
                cancelled: &cancelled,
            };
            let progress = |news: VerificationProgress| {
                if let VerificationProgress::Started { verifier, command } = news {
                    tell(WorkerToHookMessage::Started { verifier, command });
                }
            };
            let found = self.run_verifications(
                &batch.session,
                &policy,
                &wanted,
                GateOrManualOrigin::Gate,
                true,
                batch.since,
                None,
                None,
                patience,
                &StopTreeSnapshots::new(
                    Arc::clone(&self.place.system),
                    None,
                    Duration::from_millis(batch.longest_wait_ms),
                ),
                &progress,
                &mut |done: ReturnedEvidence| {
                    tell(WorkerToHookMessage::Done { run: done.key });
                    Ok(())
                },
            );
            ended.store(true, Ordering::Relaxed);
            found
        })
    }
}

impl WorkerCheck {
    fn check_to_verification_request(&self) -> VerifierRunRequest {
        VerifierRunRequest {
            verifier: self.verifier.clone(),
            subject: self.content,
            content: self.content,
            acts: self.acts,
            again: self.again,
        }
    }
}

/// Waits for the end of the batch; returns false if nobody wants it any more.
fn wait_for_batch_end_while_wanted(
    system: &dyn System,
    link: &mut HookWorkerLinkEnd,
    batch: &WorkerCheckBatch,
    registered: &WorkerRecordGuard,
    ended: &AtomicBool,
) -> bool {
    let mut is_alone = false;
    let mut looked = system.monotonic_now();
    while !ended.load(Ordering::Relaxed) {
        if !is_alone {
            match link.receive_link_message() {
                WorkerLinkReceiveOutcome::Message(HookToWorkerMessage::Keep) => is_alone = true,
                WorkerLinkReceiveOutcome::Nothing => {}
                // Without `keep` the hook was killed, or the person interrupted it: the checks end
                // too.
                WorkerLinkReceiveOutcome::End => return false,
            }
        } else {
            system.sleep(POLL_INTERVAL / 10);
        }
        let now = system.monotonic_now();
        if now.saturating_duration_since(looked) >= POLL_INTERVAL {
            looked = now;
            // Without the agent, or the folders, nobody will read what is found.
            let is_there = batch.root.is_dir() && batch.state.is_dir();
            if registered.is_cancel_requested()
                || !is_there
                || !system.is_process_alive(batch.agent)
            {
                return false;
            }
        }
    }
    true
}
