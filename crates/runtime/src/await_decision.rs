//! Performs what a pending stop waits for and feeds the results back until there is an answer.
//! Waits for what another process is finding out, and takes over what that one left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::evidence::{EvidenceSummary, GateOrManualOrigin};
use checkrein_core::explain::DecisionExplanation;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    EvidenceArrived, Input, NewestInvalidatingActNumbers, TreeReadingArrived,
};
use checkrein_core::policy::{Policy, VerifiedNoticeMode, VerifierTier};
use checkrein_core::state::{SessionState, Task};
use checkrein_store::StoredApprovalRequest;
use checkrein_verifiers::judge::JudgeInput;
use checkrein_verifiers::tree::TreeReaderError;

use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery, RewrittenToolResult, VerificationProgress};
use crate::external_writes;
use crate::idempotency::stop_decision_in_event;
use crate::log_reader;
use crate::runtime::Runtime;
use crate::tool_facts::ToolFactsBuilder;
use crate::transaction::{
    EventProcessingResult, core_tree_fact_from_reading, effects_awaited_by_stop,
    tree_digests_of_snapshot, verifier_content_and_voiding_act,
};
use crate::tree_snapshots::{StopTreeSnapshots, TreeSnapshot};
use crate::verification::VerifierRunRequest;

/// The pause between two looks for what another process is finding out.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// An answered event: a stop, or anything else that was answered at once.
pub(crate) struct AnsweredEvent {
    pub(crate) seq: EventSeq,
    pub(crate) answer: (Decision, DecisionExplanation),
    pub(crate) state: SessionState,
    pub(crate) warnings: Vec<String>,
    pub(crate) repeated: bool,
    pub(crate) rewritten: RewrittenToolResult,
    /// The approval requests that a person has to be told of.
    pub(crate) parked: Vec<StoredApprovalRequest>,
    /// The command that tells them.
    pub(crate) notify: Option<String>,
    pub(crate) verified_notice: VerifiedNoticeMode,
    /// How often the agent may be sent back in the whole session.
    pub(crate) session_continues: Option<u32>,
    /// See [`crate::DeliveryOutcome`].
    pub(crate) config_error: Option<String>,
    /// See [`crate::DeliveryOutcome`].
    pub(crate) large_files: Vec<String>,
}

impl Runtime {
    /// Performs outstanding effects and feeds their results back, until there is an answer.
    pub(crate) fn perform_effects_until_decision(
        &self,
        session: &SessionId,
        first: EventProcessingResult,
        message: Option<&str>,
        patience: Deadline<'_>,
        progress: &(dyn Fn(VerificationProgress) + Sync),
    ) -> Result<AnsweredEvent, RuntimeError> {
        let (stop, scope, warnings) = (first.seq, first.scope.clone(), first.warnings.clone());
        let repeated = first.repeated;
        let notify = first.policy.approvals.notify.clone();
        let verified_notice = first.policy.verified_notice;
        let session_continues = first.policy.session_caps.continues;
        let config_error = first.policy.config_error.clone();
        let unread = first.large_files.clone();
        let mut parked: Vec<StoredApprovalRequest> = first.parked.iter().cloned().collect();
        // Tool requests, and stops that need no check, are answered by the transaction itself.
        if let Some(answer) = first.answer {
            return Ok(AnsweredEvent {
                seq: stop,
                answer,
                state: first.state,
                warnings,
                repeated,
                rewritten: first.rewritten,
                parked,
                notify,
                verified_notice,
                session_continues,
                config_error,
                large_files: unread,
            });
        }
        // All rounds of this stop share their readings, beginning with the one that it was judged
        // on.
        let looks = StopTreeSnapshots::new(
            Arc::clone(&self.place.system),
            first.snapshot.clone(),
            external_writes::max_external_write_wait(&self.place, patience),
        );
        let mut handled = first;
        let (mut before, mut repeats) = (Vec::new(), 0_u32);
        loop {
            if patience.cancelled.load(Ordering::Relaxed) {
                return Err(RuntimeError::Cancelled);
            }
            // Effects that are asked for again and again, and bring nothing, must not exceed the
            // deadline.
            repeats = match handled.effects == before {
                true => repeats + 1,
                false => 0,
            };
            if repeats > 1 && patience.is_past_deadline(&*self.place.system) {
                return Err(RuntimeError::Deadline);
            }
            before.clone_from(&handled.effects);
            let effects = std::mem::take(&mut handled.effects);
            // With no answer and nothing to perform, another process is finding out what this stop
            // waits for.
            handled = if effects.is_empty() {
                self.await_other_process_stop_decision(session, stop, &scope, patience)?
            } else {
                self.run_checks_and_read_tree(
                    session,
                    stop,
                    &scope,
                    &handled.policy,
                    &handled.state,
                    effects,
                    message,
                    patience,
                    &looks,
                    progress,
                    &mut parked,
                )?
            };
            // Only the stop's own answer counts: a result that nobody waits for is merely noted.
            if let Some(answer @ (Decision::Stop(_), _)) = handled.answer {
                return Ok(AnsweredEvent {
                    seq: stop,
                    answer,
                    state: handled.state,
                    warnings,
                    repeated,
                    rewritten: RewrittenToolResult::default(),
                    parked,
                    notify,
                    verified_notice,
                    session_continues,
                    config_error,
                    large_files: unread,
                });
            }
        }
    }

    /// Performs effects and delivers each result; returns the last outcome that says something.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site; a struct would only rename them"
    )]
    fn run_checks_and_read_tree(
        &self,
        session: &SessionId,
        stop: EventSeq,
        scope: &ScopeId,
        policy: &Policy,
        state: &SessionState,
        effects: Vec<Effect>,
        message: Option<&str>,
        patience: Deadline<'_>,
        looks: &StopTreeSnapshots,
        progress: &(dyn Fn(VerificationProgress) + Sync),
        parked: &mut Vec<StoredApprovalRequest>,
    ) -> Result<EventProcessingResult, RuntimeError> {
        // A person may seal anew while a stop is judged. The same is then found out once more.
        let under = Digest::hash_bytes(&policy.to_policy_blob());
        // Results answer this request and no later one.
        let pending = state.pending_stop(scope);
        let request = pending.map_or(EventSeq(0), |pending| pending.newest_request);
        let since = state.task.as_ref().map(Task::failure_validity_start);
        let mut wanted = Vec::new();
        let mut read = None;
        for effect in effects {
            match effect {
                Effect::RunVerifier {
                    verifier,
                    subject,
                    force_run: again,
                    ..
                } => {
                    let spec = policy.verifier_spec(&verifier);
                    let (content, acts) = spec.map_or((subject, 0), |spec| {
                        verifier_content_and_voiding_act(state, scope, spec, subject)
                    });
                    let task = state.task.as_ref();
                    let once_more = task.and_then(|task| {
                        task.last_chance_rerun_request_time(
                            &verifier,
                            subject.to_eight_byte_digest(),
                        )
                    });
                    wanted.push(VerifierRunRequest {
                        verifier,
                        subject,
                        content,
                        acts,
                        again: once_more.filter(|_| again),
                    });
                }
                Effect::ReadTree { stop, .. } => read = Some(stop),
            }
        }
        let mut last: Option<EventProcessingResult> = None;
        // An answer or a new effect must not be lost behind a result that changed nothing.
        let mut keep = |handled: EventProcessingResult| {
            let says_something = matches!(handled.answer, Some((Decision::Stop(_), _)))
                || !handled.effects.is_empty();
            if says_something || last.is_none() {
                last = Some(handled);
            }
        };
        if let Some(asked_by) = read {
            let look = self.read_tree_after_checks(session, policy, looks, patience)?;
            let runs = look.as_ref().ok();
            let runs = runs.map(|(look, _)| self.required_check_content_keys(policy, look));
            let tree = core_tree_fact_from_reading(look.map(|(look, acts)| {
                let mut fact = tree_digests_of_snapshot(scope, &look);
                fact.acts = fact.acts.map(|_| acts);
                fact
            }))?;
            let input = Input::TreeRead(TreeReadingArrived {
                scope: scope.clone(),
                stop: asked_by,
                no_attempt: true,
                tree,
            });
            // Two processes that read the tree for the same request record it once. A later request
            // needs a key of its own, or its reading would be dropped as a repetition.
            let key = format!("tree:{asked_by}:{request}");
            let read = EventDelivery {
                required_runs: runs,
                ..new_runtime_event_delivery(session, Some(key), input)
            };
            keep(self.transact_event(read, patience)?);
        }
        let case = self.judge_input_for_message(session, policy, scope, &wanted, message)?;
        self.run_verifications(
            session,
            policy,
            &wanted,
            GateOrManualOrigin::Gate,
            true,
            since,
            message,
            case.as_ref(),
            patience,
            looks,
            progress,
            &mut |mut done| {
                parked.extend(done.parked.take());
                let asked = wanted
                    .iter()
                    .find(|wanted| wanted.verifier == done.evidence.verifier);
                let about = asked
                    .map_or(done.evidence.subject, |wanted| wanted.subject)
                    .to_eight_byte_digest();
                let name = &done.evidence.verifier;
                // The same evidence for the same request is recorded once, whichever process
                // delivers it.
                let key = format!("evidence:{stop}:{name}:{:x}:{request}", about.0);
                let mut evidence = EvidenceSummary::deciding_part_of_evidence(
                    &done.evidence,
                    done.key,
                    done.cached,
                );
                // The run began after the newest act that is known, so it is about what was asked.
                if let Some(asked) = asked {
                    for subject in [&mut evidence.subject, &mut evidence.subject_after] {
                        if *subject == asked.content {
                            *subject = asked.subject;
                        }
                    }
                }
                let input = Input::EvidenceArrived(EvidenceArrived {
                    scope: scope.clone(),
                    asked: Some(about),
                    held_up: done.evidence.paths_changed_during_run_digest(),
                    began: Some(done.began),
                    // Cached evidence was paid for by the stop that asked the model.
                    tokens: match &done.evidence.judge_usage {
                        Some(testimony) if !done.cached => testimony.output.unwrap_or(0),
                        _ => 0,
                    },
                    cost: match &done.evidence.judge_usage {
                        Some(testimony) if !done.cached => testimony.cost.unwrap_or(0),
                        _ => 0,
                    },
                    evidence,
                });
                let arrived = new_runtime_event_delivery(session, Some(key), input);
                keep(self.transact_event_under_policy(Some(under), arrived, patience)?);
                Ok(())
            },
        )?;
        match last {
            Some(handled) => Ok(handled),
            None => self.await_other_process_stop_decision(session, stop, scope, patience),
        }
    }

    /// Reads the tree after all checks. Acts are counted anew: one may have come since the tree was
    /// read.
    fn read_tree_after_checks(
        &self,
        session: &SessionId,
        policy: &Policy,
        looks: &StopTreeSnapshots,
        patience: Deadline<'_>,
    ) -> Result<
        Result<(Arc<TreeSnapshot>, NewestInvalidatingActNumbers), TreeReaderError>,
        RuntimeError,
    > {
        if let Some(look) = looks.consume_snapshot_after_checks() {
            let acts = self.act_numbers_in_root(Some(session))?.newest;
            return Ok(Ok((look, acts)));
        }
        let tracked = self
            .place
            .git_tracked_files_at_task_start(Some(session), patience);
        let look = self.read_tree_and_newest_acts(
            session,
            &tracked,
            policy,
            patience.tree_read_timeout_and_cancel(&*self.place.system),
        )?;
        let before = looks.newest_snapshot_if_no_check_since();
        Ok(look.map(|look| {
            // Since that look no check of this stop has been running.
            if let Some(before) = before {
                let moved = before
                    .reading
                    .changed_paths_between_readings(&look.reading, None);
                external_writes::record_writes_between_checks(&self.place, &moved);
            }
            let acts = look.reading.fact.acts.unwrap_or_default();
            (looks.cache_final_tree_snapshot(look), acts)
        }))
    }

    /// Builds what the judges among these verifiers are shown, if they are asked about this
    /// message.
    fn judge_input_for_message(
        &self,
        session: &SessionId,
        policy: &Policy,
        scope: &ScopeId,
        wanted: &[VerifierRunRequest],
        message: Option<&str>,
    ) -> Result<Option<JudgeInput>, RuntimeError> {
        let is_judge = |wanted: &VerifierRunRequest| {
            let spec = policy.verifier_spec(&wanted.verifier);
            spec.is_some_and(|spec| spec.tier == VerifierTier::Judge)
        };
        let Some(message) = message.filter(|_| wanted.iter().any(is_judge)) else {
            return Ok(None);
        };
        let Some((state, _)) = self.load_session_state_and_policy(session)? else {
            return Ok(None);
        };
        let ours = Digest::hash_bytes(message.as_bytes());
        let pending = state.pending_stop(scope);
        // Another message is pending by now. Its own process shows it to the judges.
        if pending.is_none_or(|pending| pending.message != ours) {
            return Ok(None);
        }
        self.build_stop_judge_case(session, policy, &state, scope, message)
            .map(Some)
    }

    /// Waits for the decision of another process, and takes over the effects that it left.
    fn await_other_process_stop_decision(
        &self,
        session: &SessionId,
        stop: EventSeq,
        scope: &ScopeId,
        patience: Deadline<'_>,
    ) -> Result<EventProcessingResult, RuntimeError> {
        loop {
            let (state, policy) =
                self.load_session_state_and_policy(session)?
                    .ok_or_else(|| RuntimeError::Policy {
                        session: session.clone(),
                        what: "disappeared".to_owned(),
                    })?;
            let effects = effects_awaited_by_stop(&policy, &state, scope);
            // After the state: if nothing was pending then, the answer is there by now.
            let answer = self
                .store
                .events_after(session, stop)?
                .iter()
                .filter_map(|raw| log_reader::decode_event(session, raw).ok().flatten())
                .find_map(|event| stop_decision_in_event(event, stop, scope));
            // A new task began meanwhile, so nobody will judge what belongs to the old one.
            let answer = answer.or_else(|| {
                let let_go = StopDecision::Accept { transition: None };
                let gone = state.pending_stop(scope).is_none();
                gone.then(|| (Decision::Stop(let_go), Vec::new()))
            });
            if answer.is_some() || !effects.is_empty() {
                let warnings = Vec::new();
                let scope = scope.clone();
                return Ok(EventProcessingResult {
                    seq: stop,
                    scope,
                    answer,
                    effects,
                    state,
                    policy,
                    warnings,
                    repeated: true,
                    rewritten: RewrittenToolResult::default(),
                    parked: None,
                    large_files: Vec::new(),
                    snapshot: None,
                });
            }
            if patience.cancelled.load(Ordering::Relaxed) {
                return Err(RuntimeError::Cancelled);
            }
            if patience.is_past_deadline(&*self.place.system) {
                return Err(RuntimeError::Deadline);
            }
            // No process is told what another one writes to the store, so it is polled.
            self.place.system.sleep(POLL_INTERVAL);
        }
    }
}

/// Builds an event that the runtime itself delivers.
pub(crate) fn new_runtime_event_delivery<'a>(
    session: &SessionId,
    key: Option<String>,
    input: Input,
) -> EventDelivery<'a> {
    EventDelivery {
        session: session.clone(),
        source: SourceName::new("runtime"),
        key,
        input,
        facts: ToolFactsBuilder::default(),
        working_folder: None,
        usage: None,
        tool_response: None,
        seen_tool_response: None,
        layers: Vec::new(),
        task_list: None,
        required_runs: None,
    }
}
