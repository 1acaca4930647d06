//! Handles one event in one transaction: read the tail, fold, step, append. Facts and the tree are
//! found before it, because that takes a while and nobody else can write during a transaction.

use std::sync::Arc;

use checkrein_core::decision::Decision;
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::event::{self, EVENT_VERSION, Event};
use checkrein_core::evidence::GateOrManualOrigin;
use checkrein_core::explain::DecisionExplanation;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, UnixMillis, VerifierName};
use checkrein_core::input::{
    ActReach, Input, OpenClawCallFacts, OpenClawOutcomeFacts, SessionStartKind, StampedInput,
    TokenUsage, ToolRequested, ToolReturned, TreeDigests, TreeReadError,
};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use checkrein_core::policy::{PinnedLoopRules, Policy, VerdictSubjectKind, VerifierSpec};
use checkrein_core::state::{PendingStop, SessionState};
use checkrein_core::step::{StateMachineStep, apply_input_and_decide};
use checkrein_core::tool_outcome::openclaw::{
    OpenClawResult, OpenClawTool, is_openclaw_result, openclaw_outcome_facts,
};
use checkrein_store::{
    AppendBatch, NewEvent, SessionTransactionView, StoreError, StoredApprovalRequest,
    StoredCheckRequest,
};
use checkrein_verifiers::tree::{TreeReadTimeoutAndCancel, TreeReaderError};
use serde_json::Value;

use crate::approvals::{ApprovalAnswerOrToolCall, reread_approval_if_still_open};
use crate::error::RuntimeError;
use crate::event_delivery::{Deadline, EventDelivery, RewrittenToolResult, ToolResponse};
use crate::guarded_files::PolicyToSeal;
use crate::idempotency::{
    IdempotencyKeyAndFirstSeq, build_repeated_input_event, idempotency_key_and_first_delivery,
    recorded_decision_on_input, scope_id_of_input,
};
use crate::known_scope::ScopeBeforeEvent;
use crate::middleware::UnredactedEventTexts;
use crate::runtime::Runtime;
use crate::tool_facts::{ToolCallChangeExtent, ToolCallFoldersAndPatch};
use crate::tree_snapshots::TreeSnapshot;
use crate::workspace::PROMPT_LIMIT;
use crate::{
    acts, bound, external_writes, judge_case, log_reader, patch_gate, task_list, task_summary,
};

/// Every how many events the state is cached, in addition to each stop decision.
const CACHE_EVERY: u64 = 16;

/// The result of one transaction.
pub(crate) struct EventProcessingResult {
    pub(crate) seq: EventSeq,
    pub(crate) scope: ScopeId,
    pub(crate) answer: Option<(Decision, DecisionExplanation)>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) state: SessionState,
    pub(crate) policy: Policy,
    pub(crate) warnings: Vec<String>,
    /// Whether the event was known already because another entry delivered it.
    pub(crate) repeated: bool,
    /// A tool's result as layers of middleware rewrote it.
    pub(crate) rewritten: RewrittenToolResult,
    /// The approval request that a person has to be told of.
    pub(crate) parked: Option<StoredApprovalRequest>,
    /// Files of the tree that are too large to be read.
    pub(crate) large_files: Vec<String>,
    /// The tree as it was judged on.
    pub(crate) snapshot: Option<Arc<TreeSnapshot>>,
}

/// The session before the event is folded in.
pub(crate) struct StateBeforeInput {
    pub(crate) state: SessionState,
    pub(crate) policy: Policy,
    /// The conversation that the event comes from.
    pub(crate) scope: ScopeBeforeEvent,
}

/// The result of one look at the log.
enum NextStepToHandleEvent {
    /// The session is new, and no policy is at hand.
    CompilePolicy,
    /// Layers or second models have to be asked first, with the session as it stands.
    Consult(Box<StateBeforeInput>),
    /// The event is handled; the batch holds what is to be written, if anything.
    Finish(Box<(EventProcessingResult, Option<AppendBatch>)>),
}

impl Runtime {
    /// One transaction: tail, fold, step, append.
    pub(crate) fn transact_event(
        &self,
        delivery: EventDelivery<'_>,
        patience: Deadline<'_>,
    ) -> Result<EventProcessingResult, RuntimeError> {
        self.transact_event_under_policy(None, delivery, patience)
    }

    /// The same for results that were found under this sealed policy.
    pub(crate) fn transact_event_under_policy(
        &self,
        sealed: Option<Digest>,
        delivery: EventDelivery<'_>,
        patience: Deadline<'_>,
    ) -> Result<EventProcessingResult, RuntimeError> {
        // The arguments as they came, since less of them may be kept.
        let args = match &delivery.input {
            Input::ToolRequested(request) => request.args.clone(),
            _ => String::new(),
        };
        let beside = ApprovalAnswerOrToolCall::unredacted_call_from_delivery(&delivery, &args);
        self.transact_event_with_approvals(sealed, beside, delivery, patience)
    }

    /// The same, together with what approvals need to know.
    pub(crate) fn transact_event_with_approvals(
        &self,
        sealed: Option<Digest>,
        beside: ApprovalAnswerOrToolCall<'_>,
        mut delivery: EventDelivery<'_>,
        patience: Deadline<'_>,
    ) -> Result<EventProcessingResult, RuntimeError> {
        let session = delivery.session.clone();
        // Keywords are searched in the whole message, of which less may be kept.
        let message = match &delivery.input {
            Input::StopRequested(stop) => stop.message.clone(),
            _ => String::new(),
        };
        bound::redact_and_limit_input(&self.redactor, &mut delivery.input);
        if let Some(short) = delivery.key.as_deref().and_then(bound::hash_overlong_id) {
            delivery.key = Some(short);
        }
        // Everything slow comes before the transaction: looking for edits, reading the tree, trying
        // the patch. Nobody else can write while it is open.
        let mut compiled: Option<PolicyToSeal> = None;
        let stands = self.record_config_edits_on_delivery(&delivery, patience)?;
        let (unread, look) =
            self.read_tree_for_input(&mut delivery, &message, stands, &mut compiled, patience)?;
        self.fill_patch_fact_by_dry_run(&mut delivery, patience);
        // Layers and second models are asked once the call is known to be new and some of them are
        // due.
        let mut watched = false;
        let mut rewritten = RewrittenToolResult::default();
        // Each round is a new transaction. One that lacks the policy, or the word of those who
        // watch, writes nothing; what it lacked is fetched outside and the next round begins.
        loop {
            let mut unwatched = None;
            let mut outcome: Option<Result<EventProcessingResult, RuntimeError>> = None;
            let written = self
                .store
                .transact_on_session(&session, &mut |tail| match self.decide_in_transaction(
                    tail,
                    &delivery,
                    compiled.as_ref(),
                    sealed,
                    beside,
                    watched,
                ) {
                    Ok(NextStepToHandleEvent::Consult(stands)) => {
                        unwatched = Some(stands);
                        Ok(None)
                    }
                    Ok(NextStepToHandleEvent::CompilePolicy) => {
                        outcome = None;
                        Ok(None)
                    }
                    Ok(NextStepToHandleEvent::Finish(made)) => {
                        let (handled, batch) = *made;
                        outcome = Some(Ok(handled));
                        Ok(batch)
                    }
                    // An error of the store aborts its transaction. With any other error there is
                    // nothing to write.
                    Err(RuntimeError::Store(error)) => Err(error),
                    Err(error) => {
                        outcome = Some(Err(error));
                        Ok(None)
                    }
                });
            match written {
                // Another process recorded the same event between the look and the write: look
                // again.
                Err(StoreError::DuplicateKey { .. }) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if let Some(stands) = unwatched {
                watched = true;
                if self.has_middleware_for_event(&stands.policy, &delivery) {
                    let args = match beside {
                        ApprovalAnswerOrToolCall::ToolCall(asked) => asked.args,
                        ApprovalAnswerOrToolCall::Nothing
                        | ApprovalAnswerOrToolCall::PersonAnswer(_) => "",
                    };
                    let came = UnredactedEventTexts {
                        args,
                        message: &message,
                    };
                    rewritten =
                        self.consult_middleware_layers(&mut delivery, &came, &stands, patience)?;
                }
                self.add_veto_and_progress_model_answers(&mut delivery, beside, &stands, patience)?;
                continue;
            }
            match outcome {
                Some(outcome) => {
                    return outcome.map(|handled| EventProcessingResult {
                        rewritten,
                        large_files: unread,
                        snapshot: look,
                        ..handled
                    });
                }
                // A new session: compile outside the transaction, then try again.
                None => compiled = Some(self.compile_session_policy()?),
            }
        }
    }

    /// Reads the tree for inputs that are judged on it. Outside the transaction, because it takes a
    /// while. For a stop, also returns the files that are too large to be read.
    fn read_tree_for_input(
        &self,
        delivery: &mut EventDelivery<'_>,
        message: &str,
        known: Option<(SessionState, Policy)>,
        compiled: &mut Option<PolicyToSeal>,
        patience: Deadline<'_>,
    ) -> Result<(Vec<String>, Option<Arc<TreeSnapshot>>), RuntimeError> {
        if !matches!(
            delivery.input,
            Input::PromptSubmitted(_) | Input::StopRequested(_)
        ) {
            return Ok((Vec::new(), None));
        }
        let known = match known {
            Some(stands) => Some(stands),
            None => self.load_session_state_and_policy(&delivery.session)?,
        };
        if let (Some((state, _)), Input::StopRequested(stop)) = (&known, &delivery.input) {
            // Before acts are read, so that the act does not void what this stop finds out.
            if let Some(reach) = state.reach_of_unreported_newest_call(&stop.scope) {
                self.count_unlogged_act(&delivery.session, reach)?;
            }
        }
        let policy = match known {
            Some((_, policy)) => policy,
            None => {
                let sealing = self.compile_session_policy()?;
                compiled.insert(sealing).compiled.policy.clone()
            }
        };
        delivery.task_list =
            task_list::read_standing_task_list(&self.place.root, &policy, &self.redactor);
        match &mut delivery.input {
            Input::PromptSubmitted(prompt) => {
                let limit =
                    PROMPT_LIMIT.min(patience.auxiliary_program_timeout(&*self.place.system));
                let tracked = self
                    .place
                    .record_tracked_file_list(&delivery.session, limit);
                let limits = TreeReadTimeoutAndCancel {
                    time: Some(PROMPT_LIMIT),
                    ..patience.tree_read_timeout_and_cancel(&*self.place.system)
                };
                // Before the tree is read, as at a stop: an act that comes meanwhile belongs to the
                // task.
                let acts = match prompt.tells_calls {
                    true => Some(self.act_numbers_in_root(Some(&delivery.session))?.newest),
                    false => None,
                };
                let reading = self.place.read_tree(&tracked, &policy, limits);
                // Where the reading was cut, the acts stand for the start of the task, if the agent
                // tells every call. Claude Code does; Codex shows no hook what is typed at a
                // running program.
                prompt.acts =
                    acts.filter(|_| matches!(reading, Err(TreeReaderError::TooSlow { .. })));
                prompt.tree = reading.ok().map(|reading| reading.fact);
            }
            Input::StopRequested(stop) => {
                // Neighbours' files should hold still before the tree is read: a check that they
                // disturb says nothing.
                let longest = external_writes::max_external_write_wait(&self.place, patience);
                let until = self.place.system.monotonic_now() + longest;
                let known = external_writes::files_written_by_others(&self.place);
                external_writes::wait_until_files_unchanged(&self.place, &known, until, patience);
                let tracked = self
                    .place
                    .git_tracked_files_at_task_start(Some(&delivery.session), patience);
                let limits = patience.tree_read_timeout_and_cancel(&*self.place.system);
                let look =
                    self.read_tree_and_newest_acts(&delivery.session, &tracked, &policy, limits)?;
                let known = look.map(Arc::new);
                let look = known.as_ref().ok().map(Arc::clone);
                let unread = look.as_ref().map(|look| look.reading.unread.clone());
                // The keys are worked out here, where the tree is at hand. The runs under them are
                // looked up inside the transaction.
                delivery.required_runs = look
                    .as_ref()
                    .map(|look| self.required_check_content_keys(&policy, look));
                stop.tree = core_tree_fact_from_reading(
                    known.map(|look| tree_digests_of_snapshot(&stop.scope, &look)),
                )?;
                stop.judges = judge_case::judge_trigger_facts(&policy, stop, message);
                return Ok((unread.unwrap_or_default(), look));
            }
            _ => {}
        }
        Ok((Vec::new(), None))
    }

    /// Checks the patch that a request applies against the tree as it is now. Outside the
    /// transaction, like reading the tree, and for the same reason.
    fn fill_patch_fact_by_dry_run(&self, delivery: &mut EventDelivery<'_>, patience: Deadline<'_>) {
        let fact = patch_gate::dry_run_requested_patch(delivery, &self.place.root, patience);
        if let Input::ToolRequested(request) = &mut delivery.input {
            request.facts.patch = fact;
        }
    }

    /// Decides on the event, inside the transaction.
    fn decide_in_transaction(
        &self,
        tail: &dyn SessionTransactionView,
        delivery: &EventDelivery<'_>,
        compiled: Option<&PolicyToSeal>,
        found_under: Option<Digest>,
        beside: ApprovalAnswerOrToolCall<'_>,
        watched: bool,
    ) -> Result<NextStepToHandleEvent, RuntimeError> {
        let session = &delivery.session;
        // The session as it stands, and its policy. The first event of a session seals one.
        let loaded = log_reader::load_session_state(session, tail)?;
        let mut state = loaded.state;
        let mut batch = AppendBatch::default();
        let mut warnings = Vec::new();
        let policy = if state.policy.is_some() {
            log_reader::load_recorded_policy(session, &state, |digest| {
                tail.read_stored_blob(digest)
            })?
        } else {
            let Some(PolicyToSeal {
                compiled,
                guard,
                equipped,
            }) = compiled
            else {
                return Ok(NextStepToHandleEvent::CompilePolicy);
            };
            let blob = compiled.policy.to_policy_blob();
            let sealed = Event::PolicySealed {
                policy: Digest::hash_bytes(&blob),
                v: EVENT_VERSION,
                guarded: guard.as_deref().map(Digest::hash_bytes),
                equipped: equipped.clone(),
            };
            state.apply_event(&sealed);
            batch.events.push(to_new_event(&sealed, None));
            batch.blobs.push(blob);
            batch.blobs.extend(guard.clone());
            warnings.clone_from(&compiled.warnings);
            warnings.extend(self.stages.unsupported_stage_warnings(&compiled.policy));
            compiled.policy.clone()
        };
        let scope = scope_id_of_input(&delivery.input);
        let waits = |pending: &PendingStop| !pending.awaited_verifiers.is_empty();
        if found_under.is_some_and(|sealed| state.policy != Some(sealed))
            && state.pending_stop(&scope).is_some_and(waits)
        {
            // A person has sealed anew since this was asked for, so it is asked for once more.
            let handled = EventProcessingResult {
                seq: tail.last_seq(),
                effects: effects_awaited_by_stop(&policy, &state, &scope),
                scope,
                answer: None,
                state,
                policy,
                warnings,
                repeated: true,
                rewritten: RewrittenToolResult::default(),
                parked: None,
                large_files: Vec::new(),
                snapshot: None,
            };
            return Ok(NextStepToHandleEvent::Finish(Box::new((handled, None))));
        }
        // Before anything else: an answer that comes second is none, however much it is like the
        // first.
        if let ApprovalAnswerOrToolCall::PersonAnswer(answered) = beside {
            let open = reread_approval_if_still_open(tail, answered)?;
            batch.approvals.push(StoredApprovalRequest {
                until: answered.until,
                answer: answered.answer.clone(),
                ..open
            });
        }
        let now = self.place.system.now_millis();
        let asked = match beside {
            ApprovalAnswerOrToolCall::ToolCall(asked) => Some(asked.key),
            _ => None,
        };
        // Another entry may have delivered the same event: then the recorded answer counts.
        let IdempotencyKeyAndFirstSeq { key, first: known } = idempotency_key_and_first_delivery(
            session,
            tail,
            delivery,
            (&state, &scope, now),
            asked,
        )?;
        if let Some(known) = known {
            let answer = recorded_decision_on_input(session, tail, known, &delivery.input)?;
            if let Some(repeated) =
                build_repeated_input_event(&delivery.input, known, &delivery.source, &scope)
            {
                state.apply_event(&repeated);
                batch.events.push(to_new_event(&repeated, None));
            }
            let effects = effects_awaited_by_stop(&policy, &state, &scope);
            let handled = EventProcessingResult {
                seq: known,
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
            };
            return Ok(NextStepToHandleEvent::Finish(Box::new((
                handled,
                Some(batch),
            ))));
        }

        // The event is new. Those who watch are asked outside the transaction, before the step.
        let known_scope = ScopeBeforeEvent::find_scope_state_or_row(
            tail,
            &state,
            &scope,
            delivery.usage.is_some(),
        )?;
        let is_call = matches!(delivery.input, Input::ToolRequested(_));
        let watches = is_call && (policy.veto.is_some() || policy.progress.is_some());
        if !watched && (watches || self.has_middleware_for_event(&policy, delivery)) {
            let scope = known_scope;
            return Ok(NextStepToHandleEvent::Consult(Box::new(StateBeforeInput {
                state,
                policy,
                scope,
            })));
        }
        // Facts are stamped before the step and recorded with the input, so that replay needs
        // neither the tree nor a shell parser (law 3).
        let mut stamped = self.stamp_input_with_facts(now, &policy, &state, &known_scope, delivery);
        if let Some(required) = &delivery.required_runs {
            stamped.newest_runs = Some(acts::newest_check_runs(tail, required)?);
        }
        let question = match (&mut stamped.input, beside) {
            (Input::ToolRequested(request), ApprovalAnswerOrToolCall::ToolCall(asked)) => self
                .stamp_approval_status_into_request(
                    tail, &policy, &state, delivery, request, asked,
                )?,
            _ => None,
        };
        let reach = match &stamped.input {
            Input::ToolReturned(returned) if !state.answers_open_tool_call(returned) => {
                self.unrecorded_call_act_reach(&policy, delivery)
            }
            input => acts::act_reach_of_call_in_input(&state, input),
        };
        // Asked before the step, which folds the input into the state.
        let unreported = acts::reach_of_call_with_unreported_result(&state, &stamped.input);
        let made = apply_input_and_decide(&policy, &mut state, stamped);
        // A call that is denied does nothing, so it counts as no act.
        let reach = reach.filter(|_| acts::is_call_not_denied(made.decision.as_ref()));
        batch.act = acts::wider_of_two_act_reaches([reach, unreported])
            .map(|reach| self.tool_act_with_reach(reach));
        let parked = question
            .and_then(|question| question.add_approval_outcome_to_batch(&made, &state, &mut batch));
        let StateMachineStep {
            events,
            effects,
            decision,
        } = made;
        // Events, effects and rows of this step are committed together, before any effect runs (law
        // 9).
        let mut seq = EventSeq(0);
        let first = tail.last_seq().0 + batch.events.len() as u64;
        let mut why = DecisionExplanation::new();
        let mut stop_decided = false;
        for (at, event) in events.iter().enumerate() {
            let is_input = matches!(event, Event::Input(_));
            if is_input {
                seq = EventSeq(first + at as u64 + 1);
            }
            if let Event::DecisionMade(made) = event {
                why.clone_from(&made.why);
                stop_decided |= matches!(made.decision, Decision::Stop(_));
            }
            // Only the input carries the key by which a second delivery is recognised.
            batch
                .events
                .push(to_new_event(event, key.clone().filter(|_| is_input)));
        }
        batch
            .scopes
            .extend(known_scope.scope_row_if_changed(&state, &scope));
        batch.effects = self.build_check_request_rows(&policy, &state, &effects, seq);
        if stop_decided {
            // Everything that was asked for is found, or no longer needed.
            batch.settled = tail
                .pending_effects()?
                .into_iter()
                .map(|effect| effect.key)
                .collect();
        }
        batch.durable = stop_decided
            || !batch.approvals.is_empty()
            || matches!(delivery.input, Input::EvidenceArrived(_));
        if stop_decided || state.last.0.saturating_sub(loaded.cached_at.0) >= CACHE_EVERY {
            batch.cache = log_reader::encode_cached_session_state(&state);
        }
        if events.iter().any(event_changes_task_listing) {
            let root = self.place.workspace_root_path_text();
            if let Some(left) = superseded_task_state(session, tail, &events, &state)? {
                batch
                    .tasks
                    .extend(task_summary::task_row_from_session_state(
                        session, &policy, &left, &root, self,
                    ));
            }
            batch
                .tasks
                .extend(task_summary::task_row_from_session_state(
                    session, &policy, &state, &root, self,
                ));
        }
        let answer = decision.map(|decision| (decision, why));
        let handled = EventProcessingResult {
            seq,
            scope,
            answer,
            effects,
            state,
            policy,
            warnings,
            repeated: false,
            rewritten: RewrittenToolResult::default(),
            parked,
            large_files: Vec::new(),
            snapshot: None,
        };
        Ok(NextStepToHandleEvent::Finish(Box::new((
            handled,
            Some(batch),
        ))))
    }

    /// Builds the input as it is recorded: with facts, token use, and what the state has forgotten.
    pub(crate) fn stamp_input_with_facts(
        &self,
        at: UnixMillis,
        policy: &Policy,
        state: &SessionState,
        known: &ScopeBeforeEvent,
        delivery: &EventDelivery<'_>,
    ) -> StampedInput {
        StampedInput {
            at,
            source: delivery.source.clone(),
            input: self.delivered_input_with_tool_facts(policy, state, &known.cursor, delivery),
            layers: delivery.layers.clone().into(),
            task_list: delivery.task_list.clone(),
            // A halt decides, so one that the state has forgotten is recorded with the input:
            // replay must not depend on a row.
            halted: known.forgotten_halt,
            newest_runs: None,
            // Only the runtime sees both the clock and the latest time in the log.
            turned_back: state.is_clock_turned_back(at),
            in_call: state.is_task_kept_open_by_call(at),
        }
    }

    fn delivered_input_with_tool_facts(
        &self,
        policy: &Policy,
        state: &SessionState,
        cursor: &str,
        delivery: &EventDelivery<'_>,
    ) -> Input {
        let mut input = delivery.input.clone();
        let tokens = delivery.usage.and_then(|usage| usage(cursor));
        // Tokens that were used before Checkrein watched are not charged.
        let baseline = |tokens: Option<TokenUsage>| match cursor {
            "" => tokens.map(|tokens| TokenUsage {
                output: 0,
                input: 0,
                cost: None,
                ..tokens
            }),
            _ => tokens,
        };
        match &mut input {
            // A new conversation has no past.
            Input::SessionStarted(started) if started.how == SessionStartKind::Startup => {
                started.tokens = tokens;
            }
            Input::SessionStarted(started) => started.tokens = baseline(tokens),
            Input::PromptSubmitted(prompt) => prompt.tokens = baseline(tokens),
            Input::ToolRequested(request) => {
                request.tokens = tokens.or(request.tokens.take());
                let patch = request.facts.patch.take();
                // The models were asked before the transaction. Gathering the facts anew must not
                // drop their words.
                let (veto, progress) = (request.facts.veto.take(), request.facts.progress.take());
                let place = ToolCallFoldersAndPatch {
                    root: &self.place.root,
                    here: delivery.working_folder.unwrap_or(&self.place.root),
                    patch: patch.as_ref(),
                };
                let under = (state.policy, policy);
                request.facts = delivery.facts.tool_request_facts_under_policy(
                    under,
                    &request.tool,
                    place,
                    &self.redactor,
                );
                (request.facts.veto, request.facts.progress) = (veto, progress);
                let outside = request.facts.outside;
                let extent =
                    delivery
                        .facts
                        .tool_call_change_extent(place, outside, request.may_act);
                request.facts.reach = extent.act_reach();
                // Where the start's tree is known, the tree itself shows what changed.
                let is_asked = state
                    .current_open_task()
                    .is_some_and(|t| t.acts_at_start.is_some());
                request.facts.counted = is_asked && extent == ToolCallChangeExtent::Counted;
                if policy.loops.pinned == Some(PinnedLoopRules::OpenClaw) {
                    let alone = policy.loops.detectors.is_empty();
                    request.openclaw = Some(OpenClawCallFacts {
                        alone,
                        ..openclaw_facts_of_request(request)
                    });
                }
                // Last, so that every fact is bounded.
                bound::redact_and_limit_tool_facts(&self.redactor, &mut request.facts);
            }
            Input::ToolReturned(returned) => {
                returned.tokens = tokens.or(returned.tokens.take());
                let response = delivery.seen_tool_response.or(delivery.tool_response);
                // The veto is told only what became of the calls.
                let is_shown = policy.progress.is_some();
                // What a layer took out of a result must not be kept, nor be shown to a model.
                let is_original = |fact: &MiddlewareAnswerFact| fact.says == MiddlewareAnswer::Pass;
                if is_shown && !returned.facts.empty && delivery.layers.iter().all(is_original) {
                    returned.excerpt = response
                        .map(|response| bound::excerpt_of_result(&self.redactor, response.result));
                }
                if policy.loops.pinned == Some(PinnedLoopRules::OpenClaw) {
                    returned.facts.openclaw =
                        response.and_then(|response| openclaw_facts_of_result(returned, response));
                }
            }
            Input::RoundEnded(round) => round.tokens = tokens.or(round.tokens.take()),
            Input::StopRequested(stop) => stop.tokens = tokens.or(stop.tokens.take()),
            _ => {}
        }
        input
    }

    /// Returns how far a call may have reached if only its outcome is known: it was requested while
    /// Checkrein was switched off, or is forgotten.
    fn unrecorded_call_act_reach(
        &self,
        policy: &Policy,
        delivery: &EventDelivery<'_>,
    ) -> Option<ActReach> {
        let place = ToolCallFoldersAndPatch {
            root: &self.place.root,
            here: delivery.working_folder.unwrap_or(&self.place.root),
            patch: None,
        };
        let facts = &delivery.facts;
        let known =
            facts.tool_request_facts_under_policy((None, policy), "", place, &self.redactor);
        facts
            .tool_call_change_extent(place, known.outside, true)
            .act_reach()
    }

    fn build_check_request_rows(
        &self,
        policy: &Policy,
        state: &SessionState,
        effects: &[Effect],
        stop: EventSeq,
    ) -> Vec<StoredCheckRequest> {
        effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::RunVerifier {
                    verifier,
                    subject,
                    scope,
                    ..
                } => {
                    let spec = policy.verifier_spec(verifier)?;
                    let (content, _) =
                        verifier_content_and_voiding_act(state, scope, spec, *subject);
                    Some(StoredCheckRequest {
                        key: self.evidence_key_from_check_inputs(
                            policy,
                            spec,
                            content,
                            GateOrManualOrigin::Gate,
                        ),
                        verifier: verifier.clone(),
                        stop,
                    })
                }
                Effect::ReadTree { .. } => None,
            })
            .collect()
    }
}

fn to_new_event(event: &Event, key: Option<String>) -> NewEvent {
    NewEvent {
        kind: event.log_event_kind(),
        payload: event::encode_event(event),
        key,
    }
}

/// Turns a reading into a fact for the core. A cancelled reading is an error, not a fact about the
/// tree.
pub(crate) fn core_tree_fact_from_reading(
    fact: Result<TreeDigests, TreeReaderError>,
) -> Result<Result<TreeDigests, TreeReadError>, RuntimeError> {
    match fact {
        Ok(fact) => Ok(Ok(fact)),
        Err(TreeReaderError::Cancelled) => Err(RuntimeError::Cancelled),
        Err(error) => Ok(Err(TreeReadError {
            cut: matches!(error, TreeReaderError::TooSlow { .. }),
            why: error.to_string(),
        })),
    }
}

/// What a reading says to a stop of this conversation.
pub(crate) fn tree_digests_of_snapshot(scope: &ScopeId, look: &TreeSnapshot) -> TreeDigests {
    let fact = look.reading.fact.clone();
    TreeDigests {
        // While a sub-agent stops, others of its session are at work.
        acts: fact.acts.filter(|_| scope.is_main_scope()),
        ..fact
    }
}

/// Returns the content that a verifier is asked about if this is its subject, and the number of the
/// act that voids what was found before it.
pub(crate) fn verifier_content_and_voiding_act(
    state: &SessionState,
    scope: &ScopeId,
    spec: &VerifierSpec,
    subject: Digest,
) -> (Digest, u64) {
    let pending = state.pending_stop(scope);
    let tree = pending.and_then(|pending| pending.tree.as_ref().ok());
    let about = |tree: &&TreeDigests| {
        spec.subject == VerdictSubjectKind::Tree && tree.verdict_subject_digest(spec) == subject
    };
    tree.filter(about).map_or((subject, 0), |tree| {
        let voiding = tree.acts.map_or(0, |acts| acts.newest_voiding_act(spec));
        (tree.verifier_input_digest(spec), voiding)
    })
}

/// Returns the effects that the pending stop of this scope still waits for.
pub(crate) fn effects_awaited_by_stop(
    policy: &Policy,
    state: &SessionState,
    scope: &ScopeId,
) -> Vec<Effect> {
    let Some(pending) = state.pending_stop(scope) else {
        return Vec::new();
    };
    let prompt = state
        .task
        .as_ref()
        .map_or_else(Default::default, |task| task.prompt);
    let kind = |name: &VerifierName| policy.verifier_spec(name).map(|spec| spec.subject);
    // The subjects are worked out anew, as the core asks about them: a repeated delivery brings no
    // effects of its own.
    let subject = |name: &VerifierName| match (kind(name), &pending.tree) {
        (Some(VerdictSubjectKind::Stop), _) => pending.digest_unique_to_stop(),
        (Some(VerdictSubjectKind::Answer), _) => pending.judge_subject_digest(name, prompt),
        (Some(VerdictSubjectKind::Message), _) | (_, Err(_)) => pending.message,
        (_, Ok(tree)) => policy
            .verifier_spec(name)
            .map_or(tree.tree, |spec| tree.verdict_subject_digest(spec)),
    };
    let mut effects: Vec<Effect> = pending
        .awaited_verifiers
        .iter()
        .map(|name| Effect::RunVerifier {
            scope: scope.clone(),
            verifier: name.clone(),
            subject: subject(name),
            force_run: pending.final_reruns.contains(name),
        })
        .collect();
    if pending.recheck.is_tree_being_reread() {
        effects.push(Effect::ReadTree {
            scope: scope.clone(),
            stop: pending.stop,
        });
    }
    effects
}

/// Returns the state in which a task ended that another task replaced within the same step. Without
/// it the listing would show the ended task as open forever.
fn superseded_task_state(
    session: &SessionId,
    tail: &dyn SessionTransactionView,
    events: &[Event],
    now: &SessionState,
) -> Result<Option<SessionState>, RuntimeError> {
    let newest = now.task.as_ref().map(|task| task.id);
    let ended = events
        .iter()
        .position(|event| matches!(event, Event::TaskEnded { task, .. } if Some(*task) != newest));
    let Some(ended) = ended else { return Ok(None) };
    // Rare enough to fold the log once more, so that no other step pays for a copy of the state.
    let mut state = log_reader::load_session_state(session, tail)?.state;
    for event in events.iter().take(ended + 1) {
        state.apply_event(event);
    }
    Ok(Some(state))
}

fn event_changes_task_listing(event: &Event) -> bool {
    matches!(
        event,
        Event::TaskOpened { .. }
            | Event::TaskReopened { .. }
            | Event::TaskEnded { .. }
            | Event::DecisionMade(_)
    )
}

/// Returns what OpenClaw's rules read of a request. The arguments may have been cut or redacted: the call
/// is told by its digest.
fn openclaw_facts_of_request(request: &ToolRequested) -> OpenClawCallFacts {
    let args = serde_json::from_str(&request.args).unwrap_or_default();
    let id = request.call_id.as_deref();
    OpenClawTool::from_tool_name(&request.tool).call_facts(request.call, &args, id, None)
}

fn openclaw_facts_of_result(
    returned: &ToolReturned,
    response: ToolResponse<'_>,
) -> Option<OpenClawOutcomeFacts> {
    let ToolResponse { tool, args, result } = response;
    // What is beside the texts of another agent's result counts, too.
    let wrapped = (!is_openclaw_result(result)).then(|| serde_json::json!({ "details": result }));
    let result = wrapped.as_ref().unwrap_or(result);
    let id = returned.call_id.as_deref();
    let call = OpenClawTool::from_tool_name(tool).call_facts(returned.call, args, id, None);
    let (result, error) = match returned.error {
        true => (&Value::Null, result),
        false => (result, &Value::Null),
    };
    let came_back = OpenClawResult {
        result,
        error,
        result_json: None,
    };
    openclaw_outcome_facts(args, came_back, call)
}
