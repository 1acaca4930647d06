//! Folds events into [`SessionState`]. This is the only code that writes it. It applies recorded
//! decisions and never decides anew, so an upgrade cannot change the past (law 3).

use std::collections::VecDeque;

use super::{
    CALL_WINDOW_LEN, LastChanceRerun, MAX_CURSORS, PendingStop, RecentCall, ScopeState,
    SessionState, Task, TaskOrSessionTotals, TreeRecheckState,
};
use crate::decision::{Decision, FailedCheckFeedback, RoundDecision, StopDecision};
use crate::detectors::openclaw::COMPACTION_LOOP_PERSISTED;
use crate::digest::{Digest, EightByteDigest};
use crate::effect::Effect;
use crate::event::{
    CapKind, DecisionOnInput, DetectorOrCapResponse, Event, LadderRung, LoopPatternDetected,
    LoopSeverity, TaskOrigin,
};
use crate::evidence::{GateOrManualOrigin, InconclusiveCause, Verdict};
use crate::explain::DecisionFactor;
use crate::ids::{EventSeq, ScopeId, TaskId, UnixMillis};
use crate::input::{
    EvidenceArrived, Input, NewestInvalidatingActNumbers, SessionStartKind, StampedInput,
    StopRequested, TokenUsage, ToolRequested, ToolReturned, TreeDigests, TreeReadingArrived,
};
use crate::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use crate::transition::{Reason, Transition};

impl SessionState {
    /// Folds one event in.
    pub fn apply_event(&mut self, event: &Event) {
        self.last = self.last.successor_seq();
        match event {
            Event::PolicySealed {
                policy,
                guarded,
                equipped,
                ..
            } => {
                self.fold_policy_seal(*policy, *guarded);
                self.equipped.clone_from(equipped);
            }
            Event::PolicyRenewed {
                policy, guarded, ..
            } => {
                self.fold_policy_seal(*policy, *guarded);
                // The new policy may define a verifier differently, so its old verdict says
                // nothing.
                if let Some(task) = &mut self.task {
                    task.verdicts.clear();
                    // The same holds for verdicts that are still on their way. Forgetting the
                    // requests makes late answers unmatched.
                    for pending in task.scopes.iter_mut().flat_map(|scope| &mut scope.pending) {
                        pending.awaited_verifiers.clear();
                        pending.requested_subjects.clear();
                        pending.recheck.reset_recheck_for_new_policy();
                        pending.verdicts.clear();
                    }
                }
            }
            Event::Input(stamped) => self.fold_input_into_state(stamped),
            Event::Repeated { of, source, .. } => self.deliveries.record_redelivery(*of, source),
            Event::TaskOpened {
                task,
                by,
                tree,
                acts,
            } => self.start_task(*task, *by, tree.clone(), *acts),
            Event::TaskReopened { .. } => {
                let now = self.now;
                if let Some(task) = &mut self.task {
                    task.ended = None;
                    // If a stop reopened the task, the agent waits for its answer and is not at
                    // work.
                    if task
                        .conversation_scope_by_id(&ScopeId::main_scope())
                        .is_none_or(|scope| scope.pending.is_none())
                    {
                        task.working_since.get_or_insert(now);
                    }
                }
            }
            Event::Detected(detected) => self.fold_loop_detection(detected),
            Event::CapReached { cap, scope } => self.fold_cap_reached(*cap, scope),
            Event::Requested {
                stop,
                scope,
                effects,
            } => self.record_checks_requested_at_stop(*stop, scope, effects),
            Event::FailureSetMet { set, subjects } => {
                if let Some(task) = &mut self.task {
                    task.record_failure_set(*set, *subjects);
                    task.drop_judged_last_chance_reruns();
                }
            }
            Event::DecisionMade(made) => self.apply_decision_to_state(made),
            Event::TaskEnded { transition, .. } => self.end_task(transition),
        }
    }

    fn fold_policy_seal(&mut self, policy: Digest, guarded: Option<Digest>) {
        self.policy = Some(policy);
        self.guarded = guarded.map(|blob| (self.last, blob));
    }

    fn fold_input_into_state(&mut self, stamped: &StampedInput) {
        let before = self.now;
        // The clock comes first: everything below is recorded at the new time.
        self.set_session_clock_to_input_time(stamped.at, stamped.turned_back);
        self.record_passed_over_middleware(stamped);
        // The store remembers halted sub-agents that the bounded state has dropped.
        if stamped.halted {
            self.rehalt_forgotten_subagent(stamped.input.conversation_scope_id());
        }
        match &stamped.input {
            Input::SessionStarted(started) => {
                match started.how {
                    SessionStartKind::Resume => self.restart_agent_work_timer(before),
                    SessionStartKind::Compact => self.arm_compaction_guard(),
                    _ => {}
                }
                self.agent.get_or_insert_with(|| started.agent.clone());
                // A session start tells where to read tokens from, and nothing about the work since
                // the last stop, so the task is not marked as metered.
                self.add_tokens_to_totals(&ScopeId::main_scope(), started.tokens.as_ref());
            }
            Input::PromptSubmitted(prompt) => {
                let (at, source) = (stamped.at, &stamped.source);
                self.deliveries
                    .record_prompt_delivery(self.last, at, source);
                self.prompt = Digest::hash_bytes(prompt.text.as_bytes()).to_eight_byte_digest();
                self.charge_tokens_and_mark_metered(&ScopeId::main_scope(), prompt.tokens.as_ref());
            }
            Input::ToolRequested(request) => {
                // The session total counts calls that find no task yet as well.
                add_saturating(&mut self.totals.tool_calls, 1);
                self.deliveries
                    .forget_prompt_and_stop_deliveries(&request.scope);
                self.charge_tokens_and_mark_metered(&request.scope, request.tokens.as_ref());
                self.record_tool_or_stop_for_task(self.last, stamped);
            }
            Input::ToolReturned(returned) => {
                self.charge_tokens_and_mark_metered(&returned.scope, returned.tokens.as_ref());
                self.fold_tool_call_result(returned);
            }
            Input::RoundEnded(round) => {
                self.shows_rounds = true;
                self.charge_tokens_and_mark_metered(&round.scope, round.tokens.as_ref());
                self.count_model_round(&round.scope);
            }
            Input::StopRequested(stop) => {
                let (at, source) = (stamped.at, &stamped.source);
                self.deliveries
                    .record_stop_received_from_hook(&stop.scope, self.last, at, source);
                self.charge_tokens_and_mark_metered(&stop.scope, stop.tokens.as_ref());
                self.record_tool_or_stop_for_task(self.last, stamped);
            }
            Input::EvidenceArrived(arrived) => self.fold_evidence_into_state(arrived),
            Input::TreeRead(read) => {
                // Newest runs that were found with a rejected reading belong to another stop.
                if self.apply_tree_reading(read) {
                    self.record_newest_check_runs(&read.scope, stamped);
                }
            }
            Input::StopFailed(failed) => {
                if let Some(task) = &mut self.task
                    && !failed.scope.is_main_scope()
                {
                    task.finish_subagent(&failed.scope);
                }
            }
            Input::ConfigEdited(edited) => {
                self.guarded = Some((self.last, edited.guarded));
                // An edit made while no task is open is not a finding of any task.
                if let Some(task) = self.task.as_mut().filter(|task| task.ended.is_none()) {
                    task.record_edited_paths(&edited.paths);
                }
            }
            Input::SessionEnded(_)
            | Input::ProcessFailed(_)
            | Input::Interrupted
            | Input::TimePassed
            | Input::StanceUsed(_) => {}
            Input::PersonAnswered(answered) => {
                if let Some(task) = &mut self.task {
                    task.apply_person_answer(answered);
                }
            }
        }
    }

    /// Halts a sub-agent again that was halted in this task and dropped from the bounded state
    /// since.
    fn rehalt_forgotten_subagent(&mut self, scope: Option<&ScopeId>) {
        if let (Some(task), Some(scope)) = (&mut self.task, scope) {
            task.get_or_insert_scope_state(scope).halted = true;
        }
    }

    /// Restarts the work span of a resumed conversation: nobody was at work since its last input.
    pub(super) fn restart_agent_work_timer(&mut self, before: UnixMillis) {
        let now = self.now;
        if let Some(task) = &mut self.task
            && task.working_since.is_some()
        {
            add_saturating(&mut self.totals.busy_ms, task.stop_agent_work_timer(before));
            task.working_since = Some(now);
        }
    }

    fn record_passed_over_middleware(&mut self, stamped: &StampedInput) {
        let over = |fact: &MiddlewareAnswerFact| {
            fact.says == MiddlewareAnswer::PassedOver && fact.stage.can_stage_affect_decision()
        };
        if let Some(task) = &mut self.task {
            task.passed_over |= stamped.layers.iter().any(over);
        }
    }

    /// Counts a tool request or stop for the task. Without a task it is kept until the task it
    /// opens is recorded.
    fn record_tool_or_stop_for_task(&mut self, seq: EventSeq, stamped: &StampedInput) {
        if self.task.is_none() {
            self.orphan = Some(Box::new((seq, stamped.clone())));
            return;
        }
        match &stamped.input {
            Input::ToolRequested(request) => self.record_tool_call_start(seq, request),
            Input::StopRequested(stop) => {
                self.record_stop_as_pending(seq, stop);
                self.record_newest_check_runs(&stop.scope, stamped);
            }
            _ => {}
        }
    }

    fn charge_tokens_and_mark_metered(&mut self, scope: &ScopeId, tokens: Option<&TokenUsage>) {
        self.add_tokens_to_totals(scope, tokens);
        if let Some(task) = &mut self.task {
            task.metered |= tokens.is_some();
        }
    }

    fn add_tokens_to_totals(&mut self, scope: &ScopeId, tokens: Option<&TokenUsage>) {
        let Some(tokens) = tokens else { return };
        self.totals.add_tokens(tokens);
        if let Some(task) = &mut self.task {
            task.totals.add_tokens(tokens);
        }
        // Moving the scope to the end keeps the list in order of last reading, so the first
        // sub-agent is the one to drop. The main conversation's cursor is never dropped.
        self.cursors.retain(|(known, _)| known != scope);
        if self.cursors.len() >= MAX_CURSORS
            && let Some(oldest) = self.cursors.iter().position(|(id, _)| !id.is_main_scope())
        {
            self.cursors.remove(oldest);
        }
        self.cursors.push((scope.clone(), tokens.cursor.clone()));
    }

    fn record_tool_call_start(&mut self, seq: EventSeq, request: &ToolRequested) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        if request.facts.outside {
            task.outside = Some((seq, now));
        }
        if let Some(veto) = &request.facts.veto {
            task.vetoes += u32::from(veto.asked);
            add_saturating(&mut task.totals.judge_tokens, veto.tokens);
            add_saturating(&mut self.totals.judge_tokens, veto.tokens);
        }
        if let Some(progress) = &request.facts.progress {
            task.progress_checks += u32::from(progress.asked);
            add_saturating(&mut task.totals.judge_tokens, progress.tokens);
            add_saturating(&mut self.totals.judge_tokens, progress.tokens);
            // A rating without a score neither counts nor resets the streak.
            if progress.score.is_some() {
                task.low_progress_streak = if progress.low {
                    task.low_progress_streak + 1
                } else {
                    0
                };
            }
        }
        add_saturating(&mut task.totals.tool_calls, 1);
        // From here on the act numbers of the start no longer stand for an unchanged tree.
        if request.facts.counted || request.facts.reach.is_some() {
            task.acts_at_start = None;
        }
        task.working_since.get_or_insert(now);
        task.evict_least_recent_subagent_calls(&request.scope);
        let scope = task.get_or_insert_scope_state(&request.scope);
        scope.newest_denied_by_detector = false;
        let window = &mut scope.window;
        // The window holds one call more than detectors look back at: the newest is the one being
        // judged.
        let kept = match request.openclaw {
            // Other rules count, in a memory of their own; the window only finds the calls that
            // results belong to.
            Some(call) if call.alone => super::MAX_CALLS_BESIDE_OPENCLAW,
            _ => CALL_WINDOW_LEN,
        };
        while window.len() > kept {
            window.pop_front();
        }
        window.push_back(RecentCall::pending_call_from_request(request));
        if let Some(call) = request.openclaw {
            scope.openclaw.get_or_insert_default().record_call(call);
        }
        scope.calls_since_news = scope.calls_since_news.saturating_add(1);
    }

    /// Records the result of a tool call. A result belongs to the task of its request: one whose
    /// request is not in the window says nothing about this task's progress. A result may lack the
    /// tool's name and arguments, and then the request supplies them.
    fn fold_tool_call_result(&mut self, returned: &ToolReturned) {
        let Some(task) = &mut self.task else { return };
        if returned.wrote {
            task.acts_at_start = None;
        }
        task.clear_approval_of_returned_call(returned.call);
        let scope = task.get_or_insert_scope_state(&returned.scope);
        // Recorded even if the request is unknown: whether a sub-agent wrote decides whether its
        // stop is verified.
        scope.wrote |= returned.wrote;
        if let (Some(outcome), Some(history)) = (&returned.facts.openclaw, &mut scope.openclaw) {
            history.record_outcome(outcome);
        }
        let Some(open) = scope.find_open_call(returned) else {
            return;
        };
        let Some(request) = scope.window.get(open).copied() else {
            return;
        };
        let wrote = returned.wrote || (request.write && !returned.error);
        scope.wrote |= wrote;
        task.clear_approval_of_returned_call(request.call);
        // A (call, outcome) pair that is new in the task is progress, and so is a successful write.
        // The circuit breaker counts calls without progress.
        // The same answer at another time is not new.
        let outcome = returned.facts.steady.unwrap_or(returned.outcome);
        let fresh = task.remember_new_call_outcome_pair(&returned.scope, request.call, outcome);
        let scope = task.get_or_insert_scope_state(&returned.scope);
        let Some(call) = scope.window.get_mut(open) else {
            return;
        };
        call.record_tool_outcome(returned, fresh, wrote);
        let (news, changes) = (call.news, wrote || request.acts);
        // Whatever went round before, something new has come of it.
        if news {
            scope.reset_ladder();
        }
        // What one conversation changes, another may find changed.
        if news && changes {
            task.scopes.iter_mut().for_each(ScopeState::reset_ladder);
        }
    }

    /// The context of the main conversation was compacted.
    fn arm_compaction_guard(&mut self) {
        if let Some(task) = &mut self.task {
            let main = task.get_or_insert_scope_state(&ScopeId::main_scope());
            main.openclaw.get_or_insert_default().arm_compaction_guard();
        }
    }

    fn count_model_round(&mut self, scope: &ScopeId) {
        add_saturating(&mut self.totals.rounds, 1);
        if let Some(task) = &mut self.task {
            add_saturating(&mut task.totals.rounds, 1);
            add_saturating(&mut task.get_or_insert_scope_state(scope).rounds, 1);
        }
    }

    fn record_stop_as_pending(&mut self, seq: EventSeq, stop: &StopRequested) {
        // A stop counts as a round, because agents that do not show where rounds end have only
        // their stops.
        self.count_model_round(&stop.scope);
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        // A sub-agent's stop does not end the work span of the main conversation.
        if stop.scope.is_main_scope() {
            let span = task.stop_agent_work_timer(now);
            add_saturating(&mut self.totals.busy_ms, span);
            task.stops += 1;
            let used = task.totals.output_tokens.unwrap_or(0);
            // Without a reading, the tokens used since the last stop are unknown, which is not the
            // same as zero.
            let metered = std::mem::take(&mut task.metered);
            let delta = metered.then(|| used.saturating_sub(task.tokens_at_stop));
            task.tokens_at_stop = used;
            // Newest first: the soft tier looks at the last two.
            task.deltas = [delta, task.deltas[0]];
        }
        // A stop that this one replaces leaves its verdicts to the task.
        let older = task.get_or_insert_scope_state(&stop.scope).pending.take();
        let mut verdicts = Vec::new();
        if stop.scope.is_main_scope() {
            if let Some(older) = older {
                task.keep_newest_verdict_per_verifier(older.verdicts);
            }
            verdicts = task.take_verdicts_valid_at_stop(&self.equipped);
        }
        let judged = |main: bool| {
            let of =
                |scope: &&ScopeState| scope.id.is_main_scope() == main && scope.pending.is_some();
            task.scopes.iter().filter(of).count() as u32
        };
        // Stops that are still being judged may each use a continuation. They are counted now, so
        // that the limit does not depend on who is answered first (law 4). The replaced stop was
        // taken out above and is not counted.
        let (ahead, of_main) = (judged(false), judged(true));
        let below = task.subagent_continuations;
        let (spent, refused) = (task.bad_ending.is_some(), task.refused);
        let given = task.totals.continues - below + of_main;
        task.get_or_insert_scope_state(&stop.scope).pending = Some(PendingStop {
            stop: seq,
            at: now,
            tree: stop.tree.clone(),
            message: stop.message_digest,
            judges: stop.judges.to_vec(),
            block_cap: stop.block_cap,
            truncated: stop.truncated,
            background: stop.background,
            agent_ending: stop.agent_ending.clone(),
            awaited_verifiers: Vec::new(),
            requested_subjects: Vec::new(),
            newest_request: seq,
            recheck: TreeRecheckState::NotRead,
            no_attempt: false,
            newest_runs: None,
            final_reruns: Vec::new(),
            verdicts,
            had_bad_ending: spent,
            refused,
            main_continuations: given,
            subagent_continuations: below,
            pending_subagent_stops: ahead,
        });
    }

    /// Records the newest runs of checks that were found together with the tree.
    fn record_newest_check_runs(&mut self, scope: &ScopeId, stamped: &StampedInput) {
        let Some(runs) = &stamped.newest_runs else {
            return;
        };
        let task = self.task.as_mut();
        if let Some(pending) = task.and_then(|task| task.pending_stop_mut(scope)) {
            pending.newest_runs = Some(runs.to_vec());
        }
    }

    fn fold_evidence_into_state(&mut self, arrived: &EvidenceArrived) {
        let fact = &arrived.evidence;
        self.totals.add_judge_usage(arrived);
        if let Some(task) = &mut self.task {
            task.totals.add_judge_usage(arrived);
        }
        // Evidence from a manual run only informs and never settles a stop (law 1).
        if fact.origin != GateOrManualOrigin::Gate {
            return;
        }
        let (now, task) = (self.now, self.task.as_mut());
        let Some(pending) = task.and_then(|task| task.pending_stop_mut(&arrived.scope)) else {
            return;
        };
        if !pending.did_stop_request_evidence(arrived) {
            return;
        }
        // Evidence for a verifier that is not awaited is a second answer to the same request, and
        // changes nothing.
        let waited = pending.awaited_verifiers.len();
        pending
            .awaited_verifiers
            .retain(|name| *name != fact.verifier);
        if pending.awaited_verifiers.len() == waited {
            return;
        }
        // New evidence came after the last tree reading, so the tree has to be read again before an
        // accepting answer.
        pending.recheck.invalidate_tree_confirmation();
        // The run that just came back is the newest known one, or its own verdict would count as
        // superseded.
        let mut runs = pending.newest_runs.iter_mut().flatten();
        if let Some(newest) = runs.find(|newest| newest.verifier == fact.verifier) {
            newest.run = Some(fact.key.to_eight_byte_digest());
        }
        match arrived.scope.is_main_scope() {
            true => pending.insert_stop_evidence(fact.clone(), arrived, now),
            false => pending.keep_subagent_stop_evidence(fact.clone(), arrived, now),
        }
    }

    /// Applies a tree reading. Returns whether it was for the stop that is being judged.
    fn apply_tree_reading(&mut self, read: &TreeReadingArrived) -> bool {
        let task = self.task.as_mut();
        let Some(pending) = task.and_then(|task| task.pending_stop_mut(&read.scope)) else {
            return false;
        };
        // A reading for a replaced stop may be older than the checks of the newer stop.
        if !pending.recheck.is_tree_being_reread() || pending.stop != read.stop {
            return false;
        }
        let same = match (&pending.tree, &read.tree) {
            (Ok(before), Ok(now)) => before.is_equivalent_tree(now),
            _ => false,
        };
        pending.no_attempt = read.no_attempt;
        pending.recheck.record_tree_reread_result(same);
        // The stop is judged once more on the tree as it is now. After a second move it is not, or
        // a busy tree would never be answered.
        if pending.recheck == TreeRecheckState::Moved {
            pending.tree.clone_from(&read.tree);
        }
        true
    }

    fn start_task(
        &mut self,
        id: TaskId,
        opened_by: TaskOrigin,
        start: Option<TreeDigests>,
        acts_at_start: Option<NewestInvalidatingActNumbers>,
    ) {
        // Tokens that a session used before its first prompt were spent on that prompt.
        let is_first = id.0 == 1 && opened_by == TaskOrigin::Prompt;
        let used = self.totals.output_tokens;
        let before = used.filter(|used| is_first && *used > 0);
        self.task = Some(Task {
            id,
            opened_by,
            opened_at: self.now,
            prompt: match opened_by {
                TaskOrigin::Prompt => self.prompt,
                TaskOrigin::Work => EightByteDigest::default(),
            },
            start,
            acts_at_start,
            working_since: Some(self.now),
            ended: None,
            bad_ending: None,
            halted: false,
            totals: TaskOrSessionTotals {
                output_tokens: before,
                ..TaskOrSessionTotals::default()
            },
            stops: 0,
            tokens_at_stop: 0,
            metered: false,
            deltas: [None, None],
            failure_sets: Vec::new(),
            last_failure: None,
            verdicts: Vec::new(),
            subagent_continuations: 0,
            reported_findings: Vec::new(),
            grace: None,
            criticals: 0,
            nudged: Vec::new(),
            seen: VecDeque::new(),
            refused: None,
            pending_approval: None,
            outside: None,
            edited: Vec::new(),
            edited_told: false,
            missing_told: Vec::new(),
            final_reruns: Vec::new(),
            vetoes: 0,
            progress_checks: 0,
            low_progress_streak: 0,
            passed_over: false,
            scopes: Vec::new(),
        });
        // The input that opened this task came before it. Its effects on the task are applied now.
        if let Some(orphan) = self.orphan.take() {
            // Its tokens were counted for the session only, because there was no task yet.
            if let (Some(task), Some(tokens)) = (
                &mut self.task,
                token_usage_reported_by_input(&orphan.1.input),
            ) {
                task.totals.add_tokens(tokens);
                task.metered = true;
            }
            self.record_passed_over_middleware(&orphan.1);
            self.record_tool_or_stop_for_task(orphan.0, &orphan.1);
        }
    }

    fn fold_loop_detection(&mut self, detected: &LoopPatternDetected) {
        let Some(task) = &mut self.task else { return };
        if detected.detector.as_str() == COMPACTION_LOOP_PERSISTED.detector_name() {
            // Found at an outcome: there is no call to take back.
            let scope = task.get_or_insert_scope_state(&detected.scope);
            if let Some(history) = &mut scope.openclaw {
                history.disarm_compaction_guard();
            }
            return;
        }
        if let Some(rung) = detected.rung {
            let scope = task.get_or_insert_scope_state(&detected.scope);
            if detected.action != DetectorOrCapResponse::Observe || rung != LadderRung::Unsaid {
                scope.record_pattern_ladder_rung(detected.key, rung, detected.count);
            }
            if matches!(
                detected.action,
                DetectorOrCapResponse::Deny | DetectorOrCapResponse::Halt
            ) {
                scope.take_back_denied_call();
            }
            // The decision ends the task of the main conversation.
            if detected.action == DetectorOrCapResponse::Halt && !detected.scope.is_main_scope() {
                scope.halted = true;
            }
            return;
        }
        match detected.action {
            DetectorOrCapResponse::Nudge => {
                let bucket = detected.count / 10;
                match task.nudged.iter_mut().find(|(key, _)| *key == detected.key) {
                    Some((_, told)) => *told = bucket,
                    None => super::push_keeping_newest(&mut task.nudged, (detected.key, bucket)),
                }
            }
            DetectorOrCapResponse::Deny | DetectorOrCapResponse::Halt
                if detected.level == LoopSeverity::Critical =>
            {
                if detected.scope.is_main_scope() {
                    task.criticals += 1;
                }
                let scope = task.get_or_insert_scope_state(&detected.scope);
                scope.take_back_denied_call();
                if let Some(history) = &mut scope.openclaw {
                    history.veto_newest_call();
                }
                // A sub-agent is halted at its second critical. The main conversation's second
                // critical ends the task instead.
                if !detected.scope.is_main_scope() {
                    scope.halted |= scope.criticals > 0;
                    scope.criticals += 1;
                }
            }
            DetectorOrCapResponse::Deny
            | DetectorOrCapResponse::Halt
            | DetectorOrCapResponse::Observe
            | DetectorOrCapResponse::Grace => {}
        }
    }

    fn fold_cap_reached(&mut self, cap: CapKind, scope: &ScopeId) {
        let Some(task) = &mut self.task else { return };
        if scope.is_main_scope() {
            task.grace.get_or_insert(cap);
        } else {
            let scope = task.get_or_insert_scope_state(scope);
            // The first call over a sub-agent's cap was its grace call. The second halts it.
            if scope.grace {
                scope.halted = true;
            }
            scope.grace = true;
        }
    }

    fn record_checks_requested_at_stop(
        &mut self,
        stop: EventSeq,
        scope: &ScopeId,
        effects: &[Effect],
    ) {
        let task = self.task.as_mut();
        let Some(pending) = task.and_then(|task| task.pending_stop_mut(scope)) else {
            return;
        };
        // The request belongs to a stop that was replaced.
        if pending.stop != stop {
            return;
        }
        pending.newest_request = self.last;
        let mut run_once_more = Vec::new();
        for effect in effects {
            match effect {
                Effect::RunVerifier {
                    verifier,
                    subject,
                    force_run: again,
                    ..
                } => {
                    if *again {
                        pending.final_reruns.push(verifier.clone());
                        run_once_more.push(LastChanceRerun {
                            verifier: verifier.clone(),
                            subject: subject.to_eight_byte_digest(),
                            at: pending.at,
                        });
                    }
                    pending.awaited_verifiers.push(verifier.clone());
                    pending
                        .requested_subjects
                        .push((verifier.clone(), subject.to_eight_byte_digest()));
                }
                Effect::ReadTree { .. } => pending.recheck.note_tree_reread_request(),
            }
        }
        if let Some(task) = self.task.as_mut() {
            task.record_last_chance_reruns(run_once_more);
        }
    }

    fn apply_decision_to_state(&mut self, made: &DecisionOnInput) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        match &made.decision {
            Decision::Tool(decision) => task.record_tool_decision_in_task(made, decision),
            // Any decision on a stop ends its evaluation.
            Decision::Stop(decision) => {
                let pending = task
                    .scopes
                    .iter_mut()
                    .find(|scope| scope.id == made.scope)
                    .and_then(|scope| scope.pending.take());
                if let Some(pending) = pending.filter(|_| made.scope.is_main_scope()) {
                    if let (Ok(tree), Some(failed)) =
                        // Read from the recorded explanation and not judged again, so that replay
                        // under a newer version gives the same state (law 3).
                        (&pending.tree, has_required_check_failed(&made.why))
                    {
                        self.last_judged = Some((tree.tree, failed));
                    }
                    task.compare_told_findings_at_stop(pending);
                }
                match decision {
                    StopDecision::Continue { feedback } => {
                        self.totals.continues += 1;
                        task.totals.continues += 1;
                        task.subagent_continuations += u32::from(!made.scope.is_main_scope());
                        task.refused = None;
                        let mut scopes = task.scopes.iter_mut();
                        let scope = scopes.find(|scope| scope.id == made.scope);
                        if let Some(scope) = scope.filter(|_| feedback.judges > 0) {
                            scope.judge_refusals += 1;
                        }
                        let missing = |check: &&FailedCheckFeedback| {
                            check.cause == Some(InconclusiveCause::MissingProgram)
                        };
                        for check in feedback.checks.iter().filter(missing) {
                            if !task.missing_told.contains(&check.verifier) {
                                task.missing_told.push(check.verifier.clone());
                            }
                        }
                        // The main conversation does not see what a sub-agent is told.
                        if made.scope.is_main_scope() {
                            task.working_since = Some(now);
                            for check in &feedback.checks {
                                task.record_findings_told_to_agent(&check.verifier, &check.new);
                            }
                            task.edited_told |= !feedback.edited.is_empty();
                        }
                    }
                    StopDecision::Halt { .. } => task.halted = true,
                    StopDecision::Accept { .. } => {
                        if !made.scope.is_main_scope() {
                            task.finish_subagent(&made.scope);
                        }
                    }
                }
            }
            // A sub-agent's rounds end with the sub-agent alone.
            Decision::Round(RoundDecision::Halt { .. }) => match made.scope.is_main_scope() {
                true => task.halted = true,
                false => task.get_or_insert_scope_state(&made.scope).halted = true,
            },
            Decision::Noted | Decision::Round(RoundDecision::Nudge { .. }) => {}
        }
    }

    fn end_task(&mut self, transition: &Transition) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        if transition.reason == Reason::Abandoned {
            // How long the agent worked before it was abandoned is unknown, so the open span is not
            // counted.
            task.working_since = None;
        }
        let span = task.stop_agent_work_timer(now);
        add_saturating(&mut self.totals.busy_ms, span);
        let spends = match &task.bad_ending {
            None => true,
            Some(spent) => transition.can_replace_bad_ending(spent),
        };
        if spends && !transition.reason.allows_continue_after_reopen() {
            task.bad_ending = Some(transition.clone());
        }
        task.ended = Some(transition.clone());
    }
}

/// Returns whether a required check failed, or `None` if none was judged.
fn has_required_check_failed(why: &[DecisionFactor]) -> Option<bool> {
    why.iter()
        .filter_map(|because| match because {
            DecisionFactor::Verdict {
                verdict,
                required: true,
                ..
            } => Some(*verdict == Verdict::Fail),
            _ => None,
        })
        .reduce(|one, other| one || other)
}

fn token_usage_reported_by_input(input: &Input) -> Option<&TokenUsage> {
    match input {
        Input::ToolRequested(request) => request.tokens.as_ref(),
        Input::StopRequested(stop) => stop.tokens.as_ref(),
        _ => None,
    }
}

impl TaskOrSessionTotals {
    fn add_tokens(&mut self, tokens: &TokenUsage) {
        add_to_option(&mut self.output_tokens, tokens.output);
        if let Some(cost) = tokens.cost {
            add_to_option(&mut self.cost, cost);
        }
    }

    fn add_judge_usage(&mut self, arrived: &EvidenceArrived) {
        add_saturating(&mut self.judge_tokens, arrived.tokens);
        add_saturating(&mut self.judge_cost, arrived.cost);
    }
}

fn add_to_option(total: &mut Option<u64>, more: u64) {
    *total = Some(total.unwrap_or(0).saturating_add(more));
}

/// Adds with saturation: the numbers that agents and models report may be arbitrarily large.
fn add_saturating(total: &mut u64, more: u64) {
    *total = total.saturating_add(more);
}
