//! Performs verification: claims a check, runs it, and reads the tree before and after.
//!
//! An effect is performed only by the process that holds its claim; a process that finds it claimed
//! waits for the evidence. If a check's inputs are written while it runs, even if they hold the
//! same content afterwards, the check runs once more, alone, and runs alone from then on. A
//! fixpoint is valid unless files were taken away meanwhile (`check_restores`); anything else is
//! inconclusive (`tree_moving`).

use std::borrow::Cow;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::evidence::{
    self, CheckRetryability, Evidence, Finding, GateOrManualOrigin, InconclusiveCause, Verdict,
};
use checkrein_core::ids::{SessionId, UnixMillis, VerifierName};
use checkrein_core::policy::{Policy, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_store::{EffectClaimGuard, EvidenceFinality, StoredApprovalRequest};
use checkrein_verifiers::judge::JudgeInput;
use checkrein_verifiers::tree::TreeReadResult;
use checkrein_verifiers::{VerifierJob, VerifierReport};

use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, VerificationProgress};
use crate::runtime::Runtime;
use crate::system::{ScopedThreads, System};
use crate::tree_snapshots::{RunningCheckGuard, StopTreeSnapshots, TreeSnapshot};
use crate::workspace::TrackedFiles;
use crate::{approvals, check_logs, evidence_codec, exit_statuses, writing_checks};

mod disturbed;

use self::disturbed::{
    CheckRunInterference, DisturbedCheck, DisturbedCheckRun, mark_evidence_inconclusive,
};

/// The pause between two looks for evidence that another process is finding.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A verification that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct VerifierRunRequest {
    pub(crate) verifier: VerifierName,
    /// The digest that the core asks about.
    pub(crate) subject: Digest,
    /// The same without acts: the digest that runs are stored under.
    pub(crate) content: Digest,
    /// A run that began before this act was counted is out of date.
    pub(crate) acts: u64,
    /// If set, stored evidence counts only if its run began at this time or later.
    pub(crate) again: Option<UnixMillis>,
}

/// The evidence of one verification.
pub(crate) struct ReturnedEvidence {
    pub(crate) key: Digest,
    pub(crate) evidence: Evidence,
    pub(crate) cached: bool,
    /// When the run began that found it.
    pub(crate) began: UnixMillis,
    /// The parked request that a person has to be told of.
    pub(crate) parked: Option<StoredApprovalRequest>,
    /// Whether a run of this process found it, after which the process read the tree.
    pub(crate) run_here: bool,
}

impl Runtime {
    /// Returns the key of evidence and claim. It covers everything that could change the verdict,
    /// but not the session.
    pub(crate) fn evidence_key_from_check_inputs(
        &self,
        policy: &Policy,
        spec: &VerifierSpec,
        subject: Digest,
        origin: GateOrManualOrigin,
    ) -> Digest {
        // Neither acts nor sessions are part of the key: sessions that did different things share
        // their runs, and a later failure takes the place of an earlier pass.
        let origin = match origin {
            GateOrManualOrigin::Gate => &b"gate"[..],
            GateOrManualOrigin::Manual => b"manual",
        };
        Digest::hash_parts([
            &spec.verifier_definition_digest().as_bytes()[..],
            spec.name.as_str().as_bytes(),
            &subject.as_bytes()[..],
            &Digest::hash_bytes(&policy.to_policy_blob()).as_bytes()[..],
            &self.place.environment_variables_digest().as_bytes()[..],
            origin,
            // Under this key is the newest of many runs, and not the first.
            b"newest",
        ])
    }

    /// Runs all requested verifications in parallel and passes on each result as it arrives.
    #[expect(
        clippy::too_many_arguments,
        reason = "two call sites; a struct would only rename them"
    )]
    pub(crate) fn run_verifications<'s>(
        &self,
        session: impl Into<Option<&'s SessionId>>,
        policy: &Policy,
        wanted: &[VerifierRunRequest],
        origin: GateOrManualOrigin,
        use_cache: bool,
        since: Option<UnixMillis>,
        message: Option<&str>,
        case: Option<&JudgeInput>,
        patience: Deadline<'_>,
        looks: &StopTreeSnapshots,
        progress: &(dyn Fn(VerificationProgress) + Sync),
        on_done: &mut dyn FnMut(ReturnedEvidence) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let batch = VerificationBatchContext {
            runtime: self,
            session: session.into(),
            tracked: OnceLock::new(),
            policy,
            origin,
            use_cache,
            since,
            message,
            case,
            patience,
            progress,
            looks,
            kept: Mutex::new(Vec::new()),
        };
        // First round: everything runs in parallel. Checks whose inputs were written meanwhile are
        // collected for the second round.
        let mut moved: Vec<Box<DisturbedCheck<'_>>> = Vec::new();
        let owned = batch.hand_checks_to_worker(wanted);
        let system = batch.system_interface();
        std::thread::scope(|scope| {
            let threads = ScopedThreads::new(system, scope);
            let (sender, receiver) = channel();
            let is_owned = |want: &VerifierRunRequest| {
                let mut owned = owned.iter().flat_map(|owned| &owned.wanted);
                owned.any(|owned| owned.verifier == want.verifier)
            };
            let ours: Vec<&VerifierRunRequest> =
                wanted.iter().filter(|want| !is_owned(want)).collect();
            // The worker is waited for beside our own checks, so that a slow one delays none of
            // them.
            if let Some(owned) = owned {
                let (batch, sender) = (&batch, sender.clone());
                threads.spawn_scoped_thread(move || {
                    batch.relay_worker_results_until_due(owned, &sender)
                });
            }
            for want in ours {
                let Some(spec) = policy.verifier_spec(&want.verifier) else {
                    continue;
                };
                let (batch, sender) = (&batch, sender.clone());
                // Marked before the thread starts: a check that ends early must see that others are
                // still at work, to share one reading of the tree with them.
                let busy = batch.looks.running_check_guard();
                threads.spawn_scoped_thread(move || {
                    batch.obtain_and_send_evidence(spec, want, busy, &sender)
                });
            }
            // The loop below ends when every sender is gone. This one would keep it waiting
            // forever.
            drop(sender);
            while let Some(found) = system.wait_for_channel_message(&receiver) {
                match found? {
                    EvidenceOrDisturbedCheck::Evidence(done) => {
                        batch.report_check_finished(&done);
                        on_done(*done)?;
                    }
                    EvidenceOrDisturbedCheck::Disturbed(again) => moved.push(again),
                }
            }
            Ok::<(), RuntimeError>(())
        })?;
        // Second round: disturbed checks run one after another, with nothing of ours beside them.
        let wait = batch.wait_time_if_others_write_checked_files(&moved)?;
        let wait_until = wait.map(|wait| system.monotonic_now() + wait);
        for again in moved {
            let done = batch.rerun_disturbed_check(*again, wait_until)?;
            if !done.run_here {
                looks.record_evidence_time();
            }
            batch.report_check_finished(&done);
            on_done(done)?;
        }
        Ok(())
    }
}

/// The data that the threads of one batch share.
pub(crate) struct VerificationBatchContext<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) session: Option<&'a SessionId>,
    /// Files that count whatever ignore files say; asked for once, if anything has to run.
    tracked: OnceLock<TrackedFiles>,
    pub(crate) policy: &'a Policy,
    pub(crate) origin: GateOrManualOrigin,
    use_cache: bool,
    /// When the task began, if this is for one.
    pub(crate) since: Option<UnixMillis>,
    /// The final message, whole, where this process has it.
    message: Option<&'a str>,
    /// The judges' input, if they judge the answer of this process.
    case: Option<&'a JudgeInput>,
    pub(crate) patience: Deadline<'a>,
    pub(crate) progress: &'a (dyn Fn(VerificationProgress) + Sync),
    pub(crate) looks: &'a StopTreeSnapshots,
    /// Claims on checks that run once more, alone. A thread that waits for another process gives
    /// them back, since that process may wait for them.
    kept: Mutex<Vec<(VerifierName, EffectClaimGuard)>>,
}

pub(crate) enum EvidenceOrDisturbedCheck<'a> {
    Evidence(Box<ReturnedEvidence>),
    Disturbed(Box<DisturbedCheck<'a>>),
}

/// The result of running a check.
pub(crate) struct CheckExecutionResult {
    report: VerifierReport,
    /// How many attempts it took.
    tries: u32,
    began: UnixMillis,
}

/// Known evidence, or the right to run the check.
enum KnownEvidenceOrRunClaim {
    Known(Box<ReturnedEvidence>),
    Claimed(EffectClaimGuard),
    Unavailable(Box<ReturnedEvidence>),
}

pub(crate) type EvidenceOrDisturbedCheckResult<'a> =
    Result<EvidenceOrDisturbedCheck<'a>, RuntimeError>;

impl<'a> VerificationBatchContext<'a> {
    pub(crate) fn system_interface(&self) -> &'a dyn System {
        &*self.runtime.place.system
    }

    pub(crate) fn now_millis(&self) -> UnixMillis {
        self.system_interface().now_millis()
    }

    pub(crate) fn obtain_and_send_evidence(
        &self,
        spec: &'a VerifierSpec,
        wanted: &VerifierRunRequest,
        busy: RunningCheckGuard<'_>,
        sender: &Sender<EvidenceOrDisturbedCheckResult<'a>>,
    ) {
        let found = self.obtain_evidence(spec, wanted, busy);
        // A run records its time itself, before it reads the tree.
        let by_run = |found: &EvidenceOrDisturbedCheck<'_>| match found {
            EvidenceOrDisturbedCheck::Evidence(done) => done.run_here,
            EvidenceOrDisturbedCheck::Disturbed(_) => true,
        };
        if !found.as_ref().is_ok_and(by_run) {
            self.looks.record_evidence_time();
        }
        // A receiver that is gone has failed already and reports why.
        let _ = sender.send(found);
    }

    fn obtain_evidence(
        &self,
        spec: &'a VerifierSpec,
        wanted: &VerifierRunRequest,
        busy: RunningCheckGuard<'_>,
    ) -> EvidenceOrDisturbedCheckResult<'a> {
        let (subject, acts) = (wanted.content, wanted.acts);
        // Only a command is asked about files that were not all seen: that it fails is true
        // whatever else there is.
        if spec.subject != VerdictSubjectKind::Message
            && !spec.is_hard_tree_check()
            && let Some(why) = &self.tracked_files_at_task_start().unknown
        {
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::TreeUnreadable,
                CheckRetryability::Yes,
                "",
            );
            let none = Digest::hash_bytes(b"");
            let evidence = self.build_evidence(spec, report, subject, subject, none, none);
            let evidence = self.evidence_inconclusive_for_unseen_files(evidence, why);
            let found = evidence_codec::EvidenceTimestamps {
                acts,
                ..evidence_codec::EvidenceTimestamps::evidence_timing_without_run(self.now_millis())
            };
            let done =
                self.put_newest_check_run(self.evidence_cache_key(spec, subject), evidence, found)?;
            return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(done)));
        }
        // Neither a person's answer nor a host's function has a run that could be claimed.
        if spec.tier == VerifierTier::Person {
            return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(
                self.find_or_request_person_evidence(spec, subject)?,
            )));
        }
        if spec.subject == VerdictSubjectKind::Stop {
            return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(
                self.run_host_verifier(spec, subject)?,
            )));
        }
        // Known evidence comes first. Only a claim entitles this process to run the check.
        let key = self.evidence_cache_key(spec, subject);
        let claim =
            match self.known_evidence_or_run_claim(spec, subject, key, acts, wanted.again)? {
                KnownEvidenceOrRunClaim::Known(done)
                | KnownEvidenceOrRunClaim::Unavailable(done) => {
                    return Ok(EvidenceOrDisturbedCheck::Evidence(done));
                }
                KnownEvidenceOrRunClaim::Claimed(claim) => claim,
            };
        match spec.subject {
            VerdictSubjectKind::Message => {
                // A stop with another message is judged by the process that delivered it.
                let ours = |message: &str| Digest::hash_bytes(message.as_bytes()) == subject;
                let theirs = self.message.is_some_and(|message| !ours(message));
                return self.run_final_message_check(spec, subject, key, &claim, theirs);
            }
            VerdictSubjectKind::Answer => {
                let theirs = self.origin == GateOrManualOrigin::Gate && self.case.is_none();
                return self.run_final_message_check(spec, subject, key, &claim, theirs);
            }
            VerdictSubjectKind::Tree | VerdictSubjectKind::Stop => {}
        }
        // Read under the claim: no other run of this check overlaps it.
        let before = match self
            .looks
            .reuse_any_snapshot_or_read(|| self.read_current_tree_snapshot())
        {
            Ok(before) => before,
            Err(why) => {
                self.ensure_not_cancelled()?;
                return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(
                    self.unreadable_tree_evidence(spec, subject, key, &why),
                )));
            }
        };
        // A check that is known to write its inputs would be disturbed for certain beside others.
        // It goes straight to the run alone.
        let written = writing_checks::recorded_check_writes(&self.runtime.place, spec).paths;
        if !written.is_empty() {
            self.keep_rerun_claim(spec, claim);
            return Ok(EvidenceOrDisturbedCheck::Disturbed(Box::new(
                DisturbedCheck {
                    spec,
                    written,
                    disturbed: None,
                    again: wanted.again,
                },
            )));
        }
        let run = self.run_check(spec, &claim);
        self.ensure_not_cancelled()?;
        // Recorded before the tree is read: only a reading that begins later can serve as the last
        // look of this stop.
        self.looks.record_evidence_time();
        let after = match self
            .looks
            .snapshot_after_check(busy, || self.read_current_tree_snapshot())
        {
            Ok(after) => after,
            Err(why) => {
                self.ensure_not_cancelled()?;
                return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(
                    self.unreadable_tree_evidence(spec, subject, key, &why),
                )));
            }
        };
        // A check that was cut is not run again: there is no time left for it.
        let (was, is) = (&before.reading, &after.reading);
        let written = was.paths_touched_between_readings(is, &spec.name);
        let is_cut = run.report.cause == Some(InconclusiveCause::ReplyDeadline);
        if is_cut || written.is_empty() && is_verifier_subject_unchanged(spec, was, is) {
            let done =
                self.record_check_run(spec, run, &before, is, CheckRunInterference::Undisturbed)?;
            return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(done)));
        }
        // The claim is kept for the second run. Released here, another process could start the same
        // check in between.
        self.keep_rerun_claim(spec, claim);
        Ok(EvidenceOrDisturbedCheck::Disturbed(Box::new(
            DisturbedCheck {
                spec,
                written,
                disturbed: Some(DisturbedCheckRun { run, before, after }),
                again: wanted.again,
            },
        )))
    }

    /// Judges the message alone: the tree is not read, so nothing can move.
    fn run_final_message_check(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        key: Digest,
        claim: &EffectClaimGuard,
        theirs: bool,
    ) -> EvidenceOrDisturbedCheckResult<'a> {
        let none = Digest::hash_bytes(b"");
        if theirs {
            let why = "another process was judging another message of this agent";
            let report = VerifierReport::inconclusive_report(
                InconclusiveCause::ClaimedElsewhere,
                CheckRetryability::Yes,
                why,
            );
            let evidence = self.build_evidence(spec, report, subject, subject, none, none);
            let done = ReturnedEvidence {
                key,
                evidence,
                cached: false,
                began: self.now_millis(),
                parked: None,
                run_here: false,
            };
            return Ok(EvidenceOrDisturbedCheck::Evidence(Box::new(done)));
        }
        let run = self.run_check(spec, claim);
        self.ensure_not_cancelled()?;
        let mut evidence = self.build_evidence(spec, run.report, subject, subject, none, none);
        evidence.tries = run.tries;
        let found = evidence_codec::EvidenceTimestamps {
            began: run.began,
            ..evidence_codec::EvidenceTimestamps::evidence_timing_without_run(self.now_millis())
        };
        self.put_newest_check_run(key, evidence, found)
            .map(|done| EvidenceOrDisturbedCheck::Evidence(Box::new(done)))
    }

    /// Looks up a person's answer about exactly this. A manual check asks nobody.
    fn find_or_request_person_evidence(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let asks = self
            .session
            .filter(|_| self.origin == GateOrManualOrigin::Gate);
        let ours = |message: &&str| Digest::hash_bytes(message.as_bytes()) == subject;
        let message = self.message.filter(ours);
        let word = self.runtime.find_or_request_work_approval(
            asks,
            self.policy,
            spec,
            subject,
            message,
        )?;
        let none = Digest::hash_bytes(b"");
        let report = approvals::report_from_approval_answer(&word);
        let evidence = self.build_evidence(spec, report, subject, subject, none, none);
        // Each answer has a key of its own: a later one must not replace the evidence that an
        // earlier stop was decided on.
        let key = approvals::approval_evidence_key(
            self.evidence_cache_key(spec, subject),
            &word,
            &evidence,
        );
        let bytes = evidence_codec::encode_evidence(
            evidence_codec::EvidenceTimestamps::evidence_timing_without_run(self.now_millis()),
            &evidence,
        );
        self.runtime
            .store
            .put_evidence_under_key(&key, &bytes, EvidenceFinality::Final)?;
        Ok(ReturnedEvidence {
            key,
            evidence,
            cached: false,
            began: self.now_millis(),
            parked: word.into_approval_to_notify(),
            run_here: false,
        })
    }

    /// Asks a function of the host about this stop. Only this process can ask it, so there is
    /// nothing to claim.
    fn run_host_verifier(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        (self.progress)(VerificationProgress::Started {
            verifier: spec.name.clone(),
            command: String::new(),
        });
        let report = self.runtime.hosts.call_host_verifier(&spec.name);
        self.ensure_not_cancelled()?;
        let none = Digest::hash_bytes(b"");
        let key = self.evidence_cache_key(spec, subject);
        // The key includes what the function said, since two stops may get different answers.
        let key = Digest::hash_parts([
            &key.as_bytes()[..],
            report.excerpt.as_bytes(),
            report.verdict.verdict_name_in_digests().as_bytes(),
        ]);
        self.put_newest_check_run(
            key,
            self.build_evidence(spec, report, subject, subject, none, none),
            evidence_codec::EvidenceTimestamps::evidence_timing_without_run(self.now_millis()),
        )
    }

    /// Returns known evidence or a claim. While another process holds the claim, waits for its
    /// evidence.
    fn known_evidence_or_run_claim(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        key: Digest,
        acts: u64,
        again: Option<UnixMillis>,
    ) -> Result<KnownEvidenceOrRunClaim, RuntimeError> {
        // A forced rerun ignores every verdict from before it was asked for.
        let use_cache = self.use_cache && again.is_none();
        // Age is measured from here: a run of more than fifteen minutes would be too old at its own
        // end.
        let asked = self.now_millis();
        let store = &*self.runtime.store;
        let slot = self.check_run_claim_key(spec, key);
        // Remembered, so that a run that ends while this process waits is told from an older one.
        let before = evidence_codec::newest_stored_check_run(store, &key)?;
        let is_new = |run: &evidence_codec::StoredCheckRun| {
            before.as_ref().is_none_or(|before| before.id != run.id)
        };
        // A process that waited takes the result of the run that it waited for, and nothing older;
        // but not that the run was held up, which may have been for want of time.
        let serves = |run: &evidence_codec::StoredCheckRun, came: bool| match again {
            // A run that began earlier says nothing of what was mended since.
            Some(since) => run.began >= since,
            None => came && is_new(run) && run.evidence.paths_changed_during_run_digest().is_none(),
        };
        let mut waited = false;
        loop {
            let now = if waited {
                evidence_codec::newest_stored_check_run(store, &key)?
            } else {
                before.clone()
            };
            let usable = now.filter(|run| {
                let is_known = use_cache && self.is_verdict_reusable(run);
                self.can_reuse_check_run(spec, run, acts, asked)
                    && (is_known || serves(run, waited))
            });
            if let Some(run) = usable {
                if waited {
                    self.looks.note_evidence_from_other_process();
                }
                return Ok(KnownEvidenceOrRunClaim::Known(evidence_marked_cached(run)));
            }
            // No usable evidence: whoever gets the claim runs the check, everybody else waits.
            if let Some(claim) = store.try_claim_effect(&slot)? {
                if waited {
                    self.looks.note_evidence_from_other_process();
                }
                // It may have been found between the look and the claim.
                let newest = evidence_codec::newest_stored_check_run(store, &key)?.filter(|run| {
                    is_check_run_fresh(spec, run, acts, asked) && serves(run, use_cache || waited)
                });
                return Ok(match newest {
                    Some(run) => KnownEvidenceOrRunClaim::Known(evidence_marked_cached(run)),
                    None => KnownEvidenceOrRunClaim::Claimed(claim),
                });
            }
            if !waited {
                (self.progress)(VerificationProgress::Waiting {
                    verifier: spec.name.clone(),
                });
            }
            waited = true;
            // Claims kept for reruns are given back before waiting. The process that is waited for
            // may itself wait for one of them, and both would wait forever.
            lock_unpoisoned(&self.kept).clear();
            self.ensure_not_cancelled()?;
            if self.patience.is_past_deadline(self.system_interface()) {
                self.looks.note_foreign_check_still_running();
                // A worker's check survives this answer. The agent is told to stop again later
                // instead of starting it anew.
                if let Some(since) = self.worker_check_start_time(spec, subject) {
                    let done = self.still_running_evidence(spec, subject, since)?;
                    return Ok(KnownEvidenceOrRunClaim::Unavailable(Box::new(done)));
                }
                let why = "another process was still running it when the answer was due";
                let report = VerifierReport::inconclusive_report(
                    InconclusiveCause::ClaimedElsewhere,
                    CheckRetryability::Yes,
                    why,
                );
                let none = Digest::hash_bytes(b"");
                let evidence = self.build_evidence(spec, report, subject, subject, none, none);
                return Ok(KnownEvidenceOrRunClaim::Unavailable(Box::new(
                    ReturnedEvidence {
                        key,
                        evidence,
                        cached: false,
                        began: self.now_millis(),
                        parked: None,
                        run_here: false,
                    },
                )));
            }
            self.system_interface().sleep(POLL_INTERVAL);
        }
    }

    /// Whether this stop can use a known verdict without a run.
    pub(crate) fn has_reusable_verdict(
        &self,
        spec: &VerifierSpec,
        want: &VerifierRunRequest,
    ) -> bool {
        let run = evidence_codec::newest_stored_check_run(
            &*self.runtime.store,
            &self.evidence_cache_key(spec, want.content),
        );
        let run = run.ok().flatten();
        run.is_some_and(|run| {
            let use_cache = self.use_cache && want.again.is_none();
            self.can_reuse_check_run(spec, &run, want.acts, self.now_millis())
                && use_cache
                && self.is_verdict_reusable(&run)
        })
    }

    /// Whether a run under the check's key applies here.
    fn can_reuse_check_run(
        &self,
        spec: &VerifierSpec,
        run: &evidence_codec::StoredCheckRun,
        acts: u64,
        asked: UnixMillis,
    ) -> bool {
        // A judge also reads the conversation, which is no part of its subject.
        let here = spec.tier != VerifierTier::Judge || self.is_check_run_of_task(run);
        here && is_check_run_fresh(spec, run, acts, asked)
    }

    /// Whether it was found since the task began.
    fn is_check_run_of_task(&self, run: &evidence_codec::StoredCheckRun) -> bool {
        self.since.is_some_and(|since| run.at >= since)
    }

    /// Only the newest run is asked. A pass holds wherever its key does. A fail holds in the task
    /// that saw it: what mended it may lie outside everything that the key can name. An
    /// inconclusive verdict that was neither cut short nor about a moving tree is not tried again
    /// in its task either: a stop of another scope would come to the same (law 7).
    fn is_verdict_reusable(&self, run: &evidence_codec::StoredCheckRun) -> bool {
        let evidence = &run.evidence;
        let in_task = self.is_check_run_of_task(run);
        match evidence.verdict {
            Verdict::Pass => true,
            Verdict::Fail => in_task || self.since.is_none(),
            Verdict::Inconclusive => {
                in_task
                    && evidence.paths_changed_during_run_digest().is_none()
                    && matches!(
                        evidence.cause,
                        Some(
                            InconclusiveCause::Timeout
                                | InconclusiveCause::Crash
                                | InconclusiveCause::MissingFile
                                | InconclusiveCause::VacuousPass
                                | InconclusiveCause::Masked
                                | InconclusiveCause::ModelUnavailable
                                | InconclusiveCause::Unreadable
                                | InconclusiveCause::InconsistentJudge
                        )
                    )
            }
        }
    }

    fn run_check(&self, spec: &VerifierSpec, claim: &EffectClaimGuard) -> CheckExecutionResult {
        let began = self.now_millis();
        let Some(verifier) = checkrein_verifiers::find_verifier_kind(&spec.kind) else {
            let why = format!("this build has no verifiers of kind '{}'", spec.kind);
            return CheckExecutionResult {
                report: VerifierReport::inconclusive_report(
                    InconclusiveCause::Internal,
                    CheckRetryability::No,
                    why,
                ),
                tries: 0,
                began,
            };
        };
        (self.progress)(VerificationProgress::Started {
            verifier: spec.name.clone(),
            command: spec.definition.clone(),
        });
        let place = &self.runtime.place;
        let logs = check_logs::prepare_log_folder(place);
        let tools = place.state.join("tools.json");
        let statuses = exit_statuses::analyse_verifier_exit_statuses(&place.root, &place.env, spec);
        let job = VerifierJob {
            exit_statuses: statuses.as_ref(),
            tool_versions_file: &tools,
            spec,
            root: &place.root,
            message: self.message,
            case: self.case,
            deadline: self.patience.due_at,
            log_dir: &logs,
            cancelled: self.patience.cancelled,
            env: &place.env,
            model_env: &place.env_vars_for_model_requests(),
            lock: claim.lock_file_for_child_process(),
            redact: &|text| self.runtime.redactor.redact_bytes(text),
        };
        let mut report = self.system_interface().run_verifier(verifier, &job);
        let mut tries = 1;
        // Retries stay within this stop and under the same claim.
        while tries <= spec.retries
            && is_check_run_retryable(&report)
            && self.ensure_not_cancelled().is_ok()
        {
            tries += 1;
            let before_ms = report.duration_ms;
            report = self.system_interface().run_verifier(verifier, &job);
            report.duration_ms = report.duration_ms.saturating_add(before_ms);
        }
        CheckExecutionResult {
            report,
            tries,
            began,
        }
    }

    fn tracked_files_at_task_start(&self) -> &TrackedFiles {
        let place = &self.runtime.place;
        self.tracked
            .get_or_init(|| place.git_tracked_files_at_task_start(self.session, self.patience))
    }

    fn read_current_tree_snapshot(&self) -> Result<TreeSnapshot, String> {
        let began = self.system_interface().monotonic_now();
        // Acts are counted before the reading: one that comes during it voids the evidence instead
        // of being missed.
        let acts = self.runtime.act_numbers_in_root(self.session);
        let acts = acts.map_err(|error| error.to_string())?;
        let place = &self.runtime.place;
        let reading = place.read_tree(
            self.tracked_files_at_task_start(),
            self.policy,
            self.patience
                .tree_read_timeout_and_cancel(self.system_interface()),
        );
        let mut reading = reading.map_err(|error| error.to_string())?;
        reading.fact.acts = Some(acts.newest);
        Ok(TreeSnapshot {
            began,
            took: self.system_interface().elapsed_since(began),
            reading,
            acts: acts.total,
        })
    }

    fn record_check_run(
        &self,
        spec: &VerifierSpec,
        run: CheckExecutionResult,
        look: &TreeSnapshot,
        after: &TreeReadResult,
        ran: CheckRunInterference,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let before = &look.reading;
        let (subject, subject_after) = (
            before.fact.verifier_input_digest(spec),
            after.fact.verifier_input_digest(spec),
        );
        let still = subject == subject_after;
        let mut evidence = self.build_evidence(
            spec,
            run.report,
            subject,
            subject_after,
            before.fact.tree,
            after.fact.tree,
        );
        evidence.tries = run.tries;
        // Only a pass is voided. That a check fails is true whatever else is there.
        if let Some(why) = &self.tracked_files_at_task_start().unknown
            && evidence.verdict == Verdict::Pass
        {
            evidence = self.evidence_inconclusive_for_unseen_files(evidence, why);
        }
        evidence.alone = matches!(ran, CheckRunInterference::Alone(_));
        let says_nothing = matches!(ran, CheckRunInterference::WithExternalWrites(_));
        match ran {
            // The check's own cause is dropped: what it made of files that neighbours wrote says
            // nothing.
            CheckRunInterference::WithExternalWrites(wrote) => {
                evidence.cause = None;
                evidence.retryable = CheckRetryability::Yes;
                mark_evidence_inconclusive(&mut evidence, InconclusiveCause::TreeMoving, wrote);
            }
            // The inputs differ before and after, so the verdict is about neither tree, even of a
            // check that ran alone.
            _ if !still => {
                let mut moved = before.changed_paths_between_readings(after, Some(&spec.name));
                moved.extend(before.changed_installed_package_markers(after));
                mark_evidence_inconclusive(&mut evidence, InconclusiveCause::TreeMoving, moved);
            }
            CheckRunInterference::Alone(lone) => {
                self.note_check_writing_own_inputs(spec, &mut evidence, lone)
            }
            CheckRunInterference::Undisturbed => {}
        }
        let found = evidence_codec::EvidenceTimestamps {
            at: self.now_millis(),
            began: run.began,
            acts: look.acts,
        };
        let key = self.evidence_cache_key(spec, subject);
        let done = if says_nothing {
            // It must not replace a run that says something.
            let key = evidence_codec::put_unindexed_evidence(
                &*self.runtime.store,
                &key,
                found,
                &evidence,
            )?;
            new_uncached_returned_evidence(key, evidence, found)
        } else {
            self.put_newest_check_run(key, evidence, found)?
        };
        Ok(ReturnedEvidence {
            run_here: true,
            ..done
        })
    }

    /// Stores evidence as the newest run of its key.
    fn put_newest_check_run(
        &self,
        key: Digest,
        evidence: Evidence,
        found: evidence_codec::EvidenceTimestamps,
    ) -> Result<ReturnedEvidence, RuntimeError> {
        let key = evidence_codec::put_check_run(&*self.runtime.store, &key, found, &evidence)?;
        Ok(new_uncached_returned_evidence(key, evidence, found))
    }

    fn unreadable_tree_evidence(
        &self,
        spec: &VerifierSpec,
        subject: Digest,
        key: Digest,
        why: &str,
    ) -> ReturnedEvidence {
        // A reading that ran out of time is cut short like a check, and mended in the same way.
        let cause = if self.patience.is_past_deadline(self.system_interface()) {
            InconclusiveCause::ReplyDeadline
        } else {
            InconclusiveCause::TreeUnreadable
        };
        let report = VerifierReport::inconclusive_report(cause, CheckRetryability::Yes, why);
        let none = Digest::hash_bytes(b"");
        ReturnedEvidence {
            key,
            evidence: self.build_evidence(spec, report, subject, subject, none, none),
            cached: false,
            began: self.now_millis(),
            parked: None,
            run_here: false,
        }
    }

    pub(crate) fn build_evidence(
        &self,
        spec: &VerifierSpec,
        report: VerifierReport,
        subject: Digest,
        subject_after: Digest,
        tree: Digest,
        tree_after: Digest,
    ) -> Evidence {
        let redactor = &self.runtime.redactor;
        let hide = |text: String| match redactor.redact_text(&text) {
            Cow::Owned(hidden) => hidden,
            Cow::Borrowed(_) => text,
        };
        // An id may contain a part of a message. It is redacted before anything is derived from it,
        // so that all later readers mean the same finding.
        let findings = report.findings.into_iter().map(|finding| Finding {
            id: hide(finding.id),
            message: hide(finding.message),
            rule: finding.rule.map(hide),
            ..finding
        });
        Evidence {
            verifier: spec.name.clone(),
            verdict: report.verdict,
            cause: report.cause,
            findings: findings.collect(),
            findings_total: report.findings_total,
            subject,
            subject_after,
            tree,
            tree_after,
            moved: Vec::new(),
            check_writes: false,
            alone: false,
            command: report.command.map(hide),
            exit_code: report.exit_code,
            duration_ms: report.duration_ms,
            retryable: report.retryable,
            origin: self.origin,
            counts: report.counts,
            note: report.note.map(hide),
            excerpt: hide(report.excerpt),
            log: report.log,
            output_bytes: report.output_bytes,
            tries: 1,
            stripped: report.stripped,
            tools: report.tools,
            judge_usage: report.testimony,
        }
    }

    /// Makes evidence inconclusive where not all files were seen.
    fn evidence_inconclusive_for_unseen_files(&self, evidence: Evidence, why: &str) -> Evidence {
        let why = self.runtime.redactor.redact_text(why);
        Evidence {
            verdict: Verdict::Inconclusive,
            cause: Some(InconclusiveCause::TreeUnreadable),
            retryable: CheckRetryability::Yes,
            excerpt: format!("[checkrein: {why}]\n"),
            note: Some(why.into_owned()),
            ..evidence
        }
    }

    pub(crate) fn evidence_cache_key(&self, spec: &VerifierSpec, subject: Digest) -> Digest {
        self.runtime
            .evidence_key_from_check_inputs(self.policy, spec, subject, self.origin)
    }

    /// Returns what has to be claimed for a run under this key. No two runs of one check of the
    /// tree overlap, whatever they are about: they work in the same files.
    fn check_run_claim_key(&self, spec: &VerifierSpec, key: Digest) -> Digest {
        match spec.is_hard_tree_check() {
            true => Digest::hash_parts([
                &b"slot"[..],
                self.runtime.place.workspace_root_path_text().as_bytes(),
                spec.name.as_str().as_bytes(),
            ]),
            false => key,
        }
    }

    fn keep_rerun_claim(&self, spec: &VerifierSpec, claim: EffectClaimGuard) {
        lock_unpoisoned(&self.kept).push((spec.name.clone(), claim));
    }

    fn holds_claim_for_rerun(&self, spec: &VerifierSpec) -> bool {
        lock_unpoisoned(&self.kept)
            .iter()
            .any(|(name, _)| *name == spec.name)
    }

    fn remove_kept_rerun_claim(&self, spec: &VerifierSpec) -> Option<EffectClaimGuard> {
        let mut kept = lock_unpoisoned(&self.kept);
        let at = kept.iter().position(|(name, _)| *name == spec.name)?;
        Some(kept.swap_remove(at).1)
    }

    fn report_check_finished(&self, done: &ReturnedEvidence) {
        (self.progress)(VerificationProgress::Finished {
            verifier: done.evidence.verifier.clone(),
            verdict: done.evidence.verdict,
            cause: done.evidence.cause,
            duration_ms: done.evidence.duration_ms,
            cached: done.cached,
        });
    }

    pub(crate) fn ensure_not_cancelled(&self) -> Result<(), RuntimeError> {
        if self
            .patience
            .cancelled
            .load(std::sync::atomic::Ordering::Relaxed)
        {
            return Err(RuntimeError::Cancelled);
        }
        Ok(())
    }
}

/// Whether no act that concerns the check came after the run began, and the run is recent enough to
/// be believed.
fn is_check_run_fresh(
    spec: &VerifierSpec,
    run: &evidence_codec::StoredCheckRun,
    acts: u64,
    now: UnixMillis,
) -> bool {
    // A run that lies in the future, by a clock that was ahead, has no known age.
    let is_old =
        || evidence::is_evidence_too_old(now.0.abs_diff(run.began.0), run.evidence.duration_ms);
    // Only a check without declared inputs grows old: what it depends on beside the tree is not
    // known.
    run.acts >= acts && !(spec.is_hard_tree_check() && spec.inputs.is_empty() && is_old())
}

fn new_uncached_returned_evidence(
    key: Digest,
    evidence: Evidence,
    found: evidence_codec::EvidenceTimestamps,
) -> ReturnedEvidence {
    ReturnedEvidence {
        key,
        began: found.began,
        evidence,
        cached: false,
        parked: None,
        run_here: false,
    }
}

fn evidence_marked_cached(run: evidence_codec::StoredCheckRun) -> Box<ReturnedEvidence> {
    Box::new(ReturnedEvidence {
        key: run.id,
        began: run.began,
        evidence: run.evidence,
        cached: true,
        parked: None,
        run_here: false,
    })
}

/// A poisoned lock guards nothing that could be half done.
fn lock_unpoisoned<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_verifier_subject_unchanged(
    spec: &VerifierSpec,
    before: &TreeReadResult,
    after: &TreeReadResult,
) -> bool {
    before.fact.verifier_input_digest(spec) == after.fact.verifier_input_digest(spec)
}

fn is_check_run_retryable(report: &VerifierReport) -> bool {
    report.verdict == Verdict::Inconclusive
        && report.retryable == CheckRetryability::Yes
        && report.cause != Some(InconclusiveCause::ReplyDeadline)
}
