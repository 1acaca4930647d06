//! The hook's side of an owner: hands checks over, passes on what is found, and takes over from an
//! owner that was lost.

use std::sync::mpsc::Sender;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{CheckRetryability, GateOrManualOrigin, InconclusiveCause};
use checkrein_core::ids::UnixMillis;
use checkrein_core::policy::VerifierSpec;
use checkrein_verifiers::VerifierReport;

use super::link::{
    HookToWorkerMessage, HookWorkerLinkEnd, WorkerLinkReceiveOutcome, WorkerToHookMessage,
};
use super::owner_records::{
    FoundWorkerRecord, WorkerRecord, read_worker_records, start_time_of_check_in_worker,
};
use super::{WorkerCheck, WorkerCheckBatch};
use crate::error::RuntimeError;
use crate::event_delivery::VerificationProgress;
use crate::verification::{
    EvidenceOrDisturbedCheck, EvidenceOrDisturbedCheckResult, ReturnedEvidence,
    VerificationBatchContext, VerifierRunRequest,
};
use crate::{evidence_codec, output_files};

/// A session that lost this many owners gets no more: here no process may outlive its hook.
const MAX_LOST_OWNERS: usize = 2;

/// An owner at work.
pub(crate) struct RunningWorker {
    link: HookWorkerLinkEnd,
    /// The verifications that it runs.
    pub(crate) wanted: Vec<VerifierRunRequest>,
    since: UnixMillis,
}

impl<'a> VerificationBatchContext<'a> {
    /// Hands checks that may outlast the answer to an owner. Returns `None` where none may, or
    /// where no owner is possible: then this process runs what it can in its time, and waits for
    /// what another owner is finding out already.
    pub(crate) fn hand_checks_to_worker(
        &self,
        wanted: &[VerifierRunRequest],
    ) -> Option<RunningWorker> {
        // Only a stop behind a hook has a launcher, a session and a time at which its answer is
        // due.
        let start = self.runtime.start_owner.as_ref()?;
        let session = self.session?;
        let left = self.patience.due_at?;
        let left = left.saturating_duration_since(self.system_interface().monotonic_now());
        if self.origin != GateOrManualOrigin::Gate
            || output_files::stdout_may_be_tree_file(&self.runtime.place.root)
        {
            return None;
        }
        let outlasts = |checks: &[(&VerifierSpec, &VerifierRunRequest)]| {
            let mut checks = checks.iter();
            checks.any(|(spec, _)| may_check_outlast_hook_reply(spec, left))
        };
        let mut unknown: Vec<(&VerifierSpec, &VerifierRunRequest)> = wanted
            .iter()
            .filter_map(|want| Some((self.policy.verifier_spec(&want.verifier)?, want)))
            .filter(|(spec, _)| spec.is_hard_tree_check())
            .collect();
        // As a rule the agent waits long enough, and nothing more is asked.
        if !outlasts(&unknown) {
            return None;
        }
        // Asked only now, since it reads the store: a known verdict needs no run.
        unknown.retain(|(spec, want)| !self.has_reusable_verdict(spec, want));
        if !outlasts(&unknown) {
            return None;
        }
        let place = &self.runtime.place;
        let policy = Digest::hash_bytes(&self.policy.to_policy_blob());
        let found = read_worker_records(&place.state);
        let of_session = |owner: &&FoundWorkerRecord| owner.record.batch.session == *session;
        let lost = found.iter().filter(of_session);
        if lost.filter(|owner| !owner.is_worker_alive()).count() >= MAX_LOST_OWNERS {
            return None;
        }
        // Owners of other sessions count as well: checks of one tree share their runs.
        let here = |owner: &&FoundWorkerRecord| {
            owner.record.batch.root == place.root && owner.is_worker_alive()
        };
        let mut checks = Vec::new();
        for (_, want) in unknown {
            let check = WorkerCheck {
                verifier: want.verifier.clone(),
                content: want.content,
                acts: want.acts,
                again: want.again,
            };
            let mut joined = false;
            for owner in found.iter().filter(here) {
                match check.how_worker_record_covers_check(&owner.record, policy) {
                    WorkerCheckMatch::Joined => joined = true,
                    // Its run is about files that are not there any more.
                    WorkerCheckMatch::Outdated => {
                        owner.cancel_worker_and_wait(self.system_interface())
                    }
                    WorkerCheckMatch::Stale if of_session(&owner) => {
                        owner.cancel_worker_and_wait(self.system_interface())
                    }
                    WorkerCheckMatch::Stale | WorkerCheckMatch::Apart => {}
                }
            }
            if !joined {
                checks.push(check);
            }
        }
        if checks.is_empty() {
            return None;
        }
        let batch = WorkerCheckBatch {
            id: self.system_interface().unguessable_unique_name(),
            root: place.root.clone(),
            state: place.state.clone(),
            addresses: place.trusts_addresses,
            session: session.clone(),
            policy,
            since: self.since,
            // An owner watches the agent's process. Without one to watch, no check is handed over.
            agent: self.system_interface().find_agent_process_above_hook()?,
            checks,
            longest_wait_ms: u64::try_from(self.looks.longest_wait.as_millis()).unwrap_or(u64::MAX),
        };
        // Where an owner cannot be started, or does not take the batch, this process runs the
        // checks.
        let link = start(&batch.id).ok()?;
        link.send_message(&batch).ok()?;
        let is_owned = |want: &&VerifierRunRequest| {
            let mut checks = batch.checks.iter();
            checks.any(|check| check.verifier == want.verifier)
        };
        Some(RunningWorker {
            link,
            wanted: wanted.iter().filter(is_owned).cloned().collect(),
            since: self.now_millis(),
        })
    }

    /// Passes on what an owner finds until the answer is due; from then on the owner goes on alone.
    /// What a lost owner leaves is found out here.
    pub(crate) fn relay_worker_results_until_due(
        &self,
        owned: RunningWorker,
        sender: &Sender<EvidenceOrDisturbedCheckResult<'a>>,
    ) {
        let RunningWorker {
            mut link,
            mut wanted,
            since,
        } = owned;
        let send = |answer| {
            // A receiver that is gone has failed already and reports why.
            let _ = sender.send(answer);
        };
        while !wanted.is_empty() {
            if let Err(cancelled) = self.ensure_not_cancelled() {
                return send(Err(cancelled));
            }
            if self.patience.is_past_deadline(self.system_interface()) {
                // An owner that does not hear this ends with the link.
                if link.send_message(&HookToWorkerMessage::Keep).is_err() {
                    break;
                }
                self.looks.note_foreign_check_still_running();
                for want in &wanted {
                    send(self.still_running_outcome(want, since));
                }
                return;
            }
            match link.receive_link_message() {
                WorkerLinkReceiveOutcome::Message(WorkerToHookMessage::Started {
                    verifier,
                    command,
                }) => {
                    (self.progress)(VerificationProgress::Started { verifier, command });
                }
                WorkerLinkReceiveOutcome::Message(WorkerToHookMessage::Done { run }) => {
                    match self.read_evidence_of_worker_run(&wanted, run) {
                        Ok(Some(done)) => {
                            wanted.retain(|want| want.verifier != done.evidence.verifier);
                            self.looks.record_evidence_time();
                            self.looks.note_evidence_from_other_process();
                            send(Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(done))));
                        }
                        Ok(None) => {}
                        Err(error) => return send(Err(error)),
                    }
                }
                WorkerLinkReceiveOutcome::Nothing => {}
                WorkerLinkReceiveOutcome::End => break,
            }
        }
        // Closed before the checks run here: an owner that still lives ends with the link and frees
        // its claims.
        drop(link);
        for want in &wanted {
            if let Some(spec) = self.policy.verifier_spec(&want.verifier) {
                self.obtain_and_send_evidence(spec, want, self.looks.running_check_guard(), sender);
            }
        }
    }

    fn read_evidence_of_worker_run(
        &self,
        wanted: &[VerifierRunRequest],
        run: Digest,
    ) -> Result<Option<ReturnedEvidence>, RuntimeError> {
        let kept = self.runtime.store.read_evidence(&run)?;
        let found = kept.and_then(|kept| evidence_codec::decode_check_run(run, &kept.bytes));
        let is_wanted = |run: &evidence_codec::StoredCheckRun| {
            let mut wanted = wanted.iter();
            wanted.any(|want| want.verifier == run.evidence.verifier)
        };
        Ok(found.filter(is_wanted).map(|run| ReturnedEvidence {
            key: run.id,
            began: run.began,
            evidence: run.evidence,
            cached: false,
            parked: None,
            run_here: false,
        }))
    }

    fn still_running_outcome(
        &self,
        want: &VerifierRunRequest,
        since: UnixMillis,
    ) -> EvidenceOrDisturbedCheckResult<'a> {
        let Some(spec) = self.policy.verifier_spec(&want.verifier) else {
            return Err(RuntimeError::Deadline);
        };
        let done = self.still_running_evidence(spec, want.content, since)?;
        Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(done)))
    }

    /// Returns evidence that an owner goes on with this check. It is kept apart from the check's
    /// runs.
    pub(crate) fn still_running_evidence(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        since: UnixMillis,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let now = self.now_millis();
        let report = VerifierReport {
            note: Some(still_running_note(now.millis_since(since))),
            ..VerifierReport::inconclusive_report(
                InconclusiveCause::ClaimedElsewhere,
                CheckRetryability::Yes,
                "",
            )
        };
        let none = Digest::hash_bytes(b"");
        let evidence = self.build_evidence(spec, report, subject, subject, none, none);
        let key = self.evidence_cache_key(spec, subject);
        // Kept under an id alone: it must not become the newest run of the check.
        let key = evidence_codec::put_unindexed_evidence(
            &*self.runtime.store,
            &key,
            evidence_codec::EvidenceTimestamps::evidence_timing_without_run(now),
            &evidence,
        )?;
        Ok(ReturnedEvidence {
            key,
            evidence,
            cached: false,
            began: now,
            parked: None,
            run_here: false,
        })
    }

    /// Since when an owner has been running the check that this process waits for.
    pub(crate) fn worker_check_start_time(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
    ) -> Option<UnixMillis> {
        let place = &self.runtime.place;
        start_time_of_check_in_worker(&place.state, &place.root, spec, subject)
    }
}

/// How a requested check relates to what an owner runs.
enum WorkerCheckMatch {
    /// The owner runs the same check.
    Joined,
    /// The owner runs the same check, but about other files or under another policy.
    Outdated,
    /// The owner runs the same check, but an act was counted since.
    Stale,
    /// The owner runs another check, or the same one from before this one was asked to run again.
    Apart,
}

impl WorkerCheck {
    fn how_worker_record_covers_check(
        &self,
        owner: &WorkerRecord,
        policy: Digest,
    ) -> WorkerCheckMatch {
        let batch = &owner.batch;
        let mut checks = batch.checks.iter();
        match checks.find(|check| check.verifier == self.verifier) {
            None => WorkerCheckMatch::Apart,
            Some(check) if check.content != self.content || batch.policy != policy => {
                WorkerCheckMatch::Outdated
            }
            Some(check) if check.acts < self.acts => WorkerCheckMatch::Stale,
            // Its run says nothing of what was mended since; ours begins when that one ends.
            Some(_) if self.again.is_some_and(|since| owner.since < since) => {
                WorkerCheckMatch::Apart
            }
            Some(_) => WorkerCheckMatch::Joined,
        }
    }
}

fn may_check_outlast_hook_reply(spec: &VerifierSpec, left: Duration) -> bool {
    let longest = spec.timeout_ms.saturating_mul(u64::from(spec.retries) + 1);
    Duration::from_millis(longest) > left
}

fn still_running_note(ms: u64) -> String {
    let seconds = ms / 1000;
    let span = match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    };
    format!(
        "still running for {span}; stop again when you have nothing else to do; changing files starts it again"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_check_is_joined_outdated_stale_or_apart() {
        let check = |verifier: &str, content: &[u8], acts, again: Option<u64>| WorkerCheck {
            verifier: verifier.into(),
            content: Digest::hash_bytes(content),
            acts,
            again: again.map(UnixMillis),
        };
        let policy = Digest::hash_bytes(b"a policy");
        let owner = WorkerRecord {
            since: UnixMillis(100),
            batch: WorkerCheckBatch {
                id: "one".to_owned(),
                root: "/project".into(),
                state: "/state".into(),
                addresses: true,
                session: checkrein_core::ids::SessionId::new("a session"),
                policy,
                since: None,
                checks: vec![check("tests", b"files", 5, None)],
                longest_wait_ms: 0,
                agent: crate::owner::UniqueProcessId::new(1, 1),
            },
        };
        let beside = |wanted: WorkerCheck, policy| match wanted
            .how_worker_record_covers_check(&owner, policy)
        {
            WorkerCheckMatch::Joined => "joined",
            WorkerCheckMatch::Outdated => "outdated",
            WorkerCheckMatch::Stale => "stale",
            WorkerCheckMatch::Apart => "apart",
        };
        assert_eq!(beside(check("lint", b"files", 5, None), policy), "apart");
        assert_eq!(
            beside(check("tests", b"others", 5, None), policy),
            "outdated"
        );
        let other = Digest::hash_bytes(b"another");
        assert_eq!(beside(check("tests", b"files", 5, None), other), "outdated");
        assert_eq!(beside(check("tests", b"files", 6, None), policy), "stale");
        assert_eq!(beside(check("tests", b"files", 5, None), policy), "joined");
        assert_eq!(beside(check("tests", b"files", 4, None), policy), "joined");
        // It began before what it is to find was asked for.
        assert_eq!(
            beside(check("tests", b"files", 5, Some(101)), policy),
            "apart"
        );
        assert_eq!(
            beside(check("tests", b"files", 5, Some(100)), policy),
            "joined"
        );
    }

    #[test]
    fn a_check_may_outlast_what_its_timeout_and_retries_exceed() {
        let mut spec = crate::owner::owner_records::tests::sample_verifier_spec("tests");
        spec.timeout_ms = 10_000;
        spec.retries = 2;
        assert!(may_check_outlast_hook_reply(
            &spec,
            Duration::from_millis(29_999)
        ));
        assert!(!may_check_outlast_hook_reply(
            &spec,
            Duration::from_secs(30)
        ));
    }

    #[test]
    fn words_say_how_long_it_has_been_running() {
        let of = |ms| still_running_note(ms).split(';').next().map(str::to_owned);
        assert_eq!(of(999).as_deref(), Some("still running for 0 s"));
        assert_eq!(of(59_999).as_deref(), Some("still running for 59 s"));
        assert_eq!(of(60_000).as_deref(), Some("still running for 1 min"));
        assert_eq!(of(250_000).as_deref(), Some("still running for 4 min 10 s"));
    }
}
