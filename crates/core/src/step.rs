//! The state machine: one function from policy, state and input to events, effects and a decision.
//! It cannot fail and keeps no queue. Unexpected input gets an answer, not an error.

use crate::cascade;
use crate::decision::{Decision, StopDecision, ToolDecision};
use crate::effect::Effect;
use crate::event::{CapKind, DecisionOnInput, Event, TaskOrigin};
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::{EventSeq, ScopeId, TaskId};
use crate::input::{
    Input, NewestInvalidatingActNumbers, PromptSubmitted, SessionStartKind, StampedInput,
    StancePoint, TreeDigests,
};
use crate::policy::{Policy, Stance};
use crate::state::{SessionState, clock};
use crate::transition::{Reason, Transition};
use crate::{budget, round_end, tool_request};

/// The result of one input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateMachineStep {
    /// Events to append, in this order. The first is the input itself.
    pub events: Vec<Event>,
    /// Effects to perform after the events are appended. Each one is also in a `Requested` event.
    pub effects: Vec<Effect>,
    /// The answer; `None` while effects are outstanding.
    pub decision: Option<Decision>,
}

/// Applies `input` and decides. Afterwards `state` equals its former value with the returned events
/// folded in; it changes in no other way.
pub fn apply_input_and_decide(
    policy: &Policy,
    state: &mut SessionState,
    input: StampedInput,
) -> StateMachineStep {
    let mut draft = StateMachineStepBuilder {
        policy,
        state,
        events: Vec::new(),
        effects: Vec::new(),
        decision: None,
    };
    // Read before the input is folded in, which moves the clock.
    let is_left = draft.state.session_idle_ms(input.at) > clock::idle_task_limit_ms(input.in_call);
    let (news, layers) = (input.input.clone(), input.layers.clone());
    draft.apply_and_record_event(Event::Input(input));
    let seq = draft.state.last;
    // A task without any input for a day is over, whatever this input is. With an open tool call
    // the limit is a week.
    if is_left && !policy.single_task {
        draft.end_task_as_abandoned("day_passed");
    }
    match news {
        Input::SessionStarted(started) => {
            // `/clear` starts over in the same session, so the open task will not be finished.
            if started.how == SessionStartKind::Clear {
                draft.end_task_as_abandoned("session_ended");
            }
            draft.set_noted_decision();
        }
        Input::PromptSubmitted(prompt) => draft.open_prompt_task(prompt),
        Input::ToolRequested(request) => {
            draft.ensure_open_task();
            tool_request::evaluate_tool_request(&mut draft, seq, &request, &layers);
        }
        Input::StopRequested(stop) => {
            draft.ensure_open_task();
            cascade::begin_stop_evaluation(&mut draft, seq, &stop, &layers);
        }
        Input::EvidenceArrived(arrived) => {
            cascade::advance_stop_evaluation(&mut draft, &arrived.scope)
        }
        Input::TreeRead(read) => cascade::advance_stop_evaluation(&mut draft, &read.scope),
        // A failed turn of a sub-agent does not end the task.
        Input::StopFailed(failed) if !failed.scope.is_main_scope() => draft.set_noted_decision(),
        // `run` sees how the agent's process ends and may resume it, so a failed turn alone does
        // not end its task.
        Input::StopFailed(failed) if policy.single_task && !failed.truncated => {
            draft.set_noted_decision()
        }
        Input::StopFailed(failed) => {
            let mut transition = if failed.truncated {
                Transition::transition_without_detail(Reason::Truncated)
            } else {
                Transition::new(Reason::Error, "agent")
            };
            transition.native_reason = Some(failed.native_reason);
            draft.end_open_task(transition);
            draft.set_noted_decision();
        }
        Input::SessionEnded(ended) => {
            // Under `run` and in the library the front door ends the task. The end of an agent
            // session may be a restart.
            if !policy.single_task {
                let mut transition = Transition::new(Reason::Abandoned, "session_ended");
                transition.native_reason = Some(ended.native_reason);
                draft.end_open_task(transition);
            }
            draft.set_noted_decision();
        }
        Input::ProcessFailed(failed) => {
            let transition = Transition {
                native_reason: failed.native_reason,
                ..Transition::new(Reason::Error, "agent")
            };
            draft.halt_task(
                seq,
                transition,
                DecisionFactor::Process { what: failed.what },
            );
        }
        Input::Interrupted => {
            draft.halt_task(
                seq,
                Transition::transition_without_detail(Reason::UserInterrupt),
                DecisionFactor::Interrupted,
            );
        }
        Input::TimePassed => match budget::reached_wall_clock_cap(policy, draft.state) {
            Some(over) => draft.halt_task(
                seq,
                Transition::new(Reason::HardCap, CapKind::WallClock.as_str()),
                over.reached_cap_decision_factor(),
            ),
            None => draft.set_noted_decision(),
        },
        Input::StanceUsed(used) => {
            // Under `block` the stop was already refused by the front door, and the task goes on.
            let stands_in = used.at == StancePoint::Stop && used.stance != Stance::Block;
            if stands_in {
                draft.ensure_open_task();
                cascade::accept_unjudgeable_stop(&mut draft, seq, used);
            } else {
                draft.set_noted_decision();
            }
        }
        Input::ToolReturned(returned) => {
            tool_request::end_loop_after_compaction(&mut draft, seq, &returned.scope);
        }
        Input::RoundEnded(round) => {
            round_end::evaluate_round_end(&mut draft, seq, &round.scope, &layers);
        }
        Input::ConfigEdited(_) | Input::PersonAnswered(_) => draft.set_noted_decision(),
    }
    StateMachineStep {
        events: draft.events,
        effects: draft.effects,
        decision: draft.decision,
    }
}

/// A step under construction. Every event is folded in as it is emitted, so that later rules see
/// what earlier ones decided.
pub(crate) struct StateMachineStepBuilder<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) state: &'a mut SessionState,
    events: Vec<Event>,
    effects: Vec<Effect>,
    decision: Option<Decision>,
}

impl StateMachineStepBuilder<'_> {
    pub(crate) fn apply_and_record_event(&mut self, event: Event) {
        self.state.apply_event(&event);
        self.events.push(event);
    }

    /// Records `decision` as the answer to the input at `answers`.
    pub(crate) fn record_decision_on_input(
        &mut self,
        answers: EventSeq,
        scope: &ScopeId,
        decision: Decision,
        why: DecisionExplanation,
    ) {
        self.apply_and_record_event(Event::DecisionMade(DecisionOnInput {
            answers,
            scope: scope.clone(),
            decision: decision.clone(),
            why,
        }));
        self.decision = Some(decision);
    }

    /// Asks for effects on behalf of the stop at `stop`.
    pub(crate) fn emit_and_record_stop_effects(
        &mut self,
        stop: EventSeq,
        scope: &ScopeId,
        effects: Vec<Effect>,
    ) {
        // The effects are in the event as well, so that a process that dies before performing them
        // leaves them in the log.
        self.effects.extend(effects.iter().cloned());
        self.apply_and_record_event(Event::Requested {
            stop,
            scope: scope.clone(),
            effects,
        });
    }

    /// Decides that there is nothing to answer. This is not recorded as an event, because the input
    /// says everything.
    pub(crate) fn set_noted_decision(&mut self) {
        self.decision = Some(Decision::Noted);
    }

    /// Returns the ending that counts. A task that ended badly keeps its reason, unless
    /// `transition` is better or is the outcome of the person it waited for.
    pub(crate) fn prevailing_transition(&self, transition: Transition) -> Transition {
        let task = self.state.task.as_ref();
        match task.and_then(|task| task.bad_ending.as_ref()) {
            Some(spent) if !transition.can_replace_bad_ending(spent) => spent.clone(),
            _ => transition,
        }
    }

    /// Ends the task, unless it already ended with this transition.
    pub(crate) fn end_task(&mut self, transition: Transition) {
        let Some(task) = &self.state.task else { return };
        if task.ended.as_ref() != Some(&transition) {
            let task = task.id;
            self.apply_and_record_event(Event::TaskEnded { task, transition });
        }
    }

    fn end_open_task(&mut self, transition: Transition) {
        if self.state.current_open_task().is_some() {
            let transition = self.prevailing_transition(transition);
            self.end_task(transition);
        }
    }

    fn end_task_as_abandoned(&mut self, detail: &str) {
        self.end_open_task(Transition::new(Reason::Abandoned, detail));
    }

    fn open_new_task(
        &mut self,
        by: TaskOrigin,
        tree: Option<TreeDigests>,
        acts: Option<NewestInvalidatingActNumbers>,
    ) {
        let last = self.state.task.as_ref().map_or(0, |task| task.id.0);
        self.apply_and_record_event(Event::TaskOpened {
            task: TaskId(last + 1),
            by,
            tree,
            acts,
        });
    }

    fn open_prompt_task(&mut self, prompt: PromptSubmitted) {
        // Under `run`, feedback reaches the agent as a prompt. Only a prompt after the end of the
        // task opens a new one.
        if !(self.policy.single_task && self.state.current_open_task().is_some()) {
            self.end_task_as_abandoned("superseded");
            self.open_new_task(TaskOrigin::Prompt, prompt.tree, prompt.acts);
        }
        self.set_noted_decision();
    }

    /// Opens the first task of a session without prompts, or reopens an ended task in which work
    /// goes on.
    fn ensure_open_task(&mut self) {
        let reopen = match &self.state.task {
            None => {
                self.open_new_task(TaskOrigin::Work, None, None);
                return;
            }
            // A halted task stays ended. Its calls get the fixed denial instead.
            Some(task) => task.ended.is_some() && !task.halted,
        };
        if reopen && let Some(task) = self.state.task.as_ref().map(|task| task.id) {
            self.apply_and_record_event(Event::TaskReopened { task });
        }
    }

    /// Ends the open task from outside a stop.
    pub(crate) fn halt_task(
        &mut self,
        seq: EventSeq,
        transition: Transition,
        because: DecisionFactor,
    ) {
        if self.policy.single_task && self.state.task.is_none() {
            // `run` has exactly one task, even if its process failed before any work.
            self.open_new_task(TaskOrigin::Work, None, None);
        }
        if self.state.current_open_task().is_none() {
            self.set_noted_decision();
            return;
        }
        let transition = self.prevailing_transition(transition);
        let decision = Decision::Stop(StopDecision::Halt {
            transition: transition.clone(),
        });
        self.record_decision_on_input(seq, &ScopeId::main_scope(), decision, vec![because]);
        self.end_task(transition);
    }

    /// Answers a tool request.
    pub(crate) fn record_tool_request_decision(
        &mut self,
        seq: EventSeq,
        scope: &ScopeId,
        decision: ToolDecision,
        why: DecisionExplanation,
    ) {
        self.record_decision_on_input(seq, scope, Decision::Tool(decision), why);
    }
}
