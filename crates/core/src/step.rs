//! The heart: one function from policy, state and an input to what follows. It cannot
//! fail and keeps no queue: strange input is an answer, not an error.

use crate::cascade;
use crate::decision::{Decision, StopDecision, ToolDecision};
use crate::effect::Effect;
use crate::event::{Cap, DecisionMade, Event, OpenedBy};
use crate::explain::{Because, Why};
use crate::ids::{ScopeId, Seq, TaskId};
use crate::input::{Acts, Input, PromptSubmitted, SessionSource, Stamped, StanceAt, TreeFact};
use crate::policy::{Policy, Stance};
use crate::state::{State, time};
use crate::transition::{Reason, Transition};
use crate::{budget, tools};

/// What follows from an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// To be appended in this order; the first is the input itself.
    pub events: Vec<Event>,
    /// To be performed after the events are appended. Each is also in a `Requested` event.
    pub effects: Vec<Effect>,
    /// The answer; `None` while effects are outstanding.
    pub decision: Option<Decision>,
}

/// Takes `input` in and decides. Afterwards `state` is the fold of itself and the
/// returned events, which is the only way in which it changes.
pub fn step(policy: &Policy, state: &mut State, input: Stamped) -> Step {
    let mut draft = Draft {
        policy,
        state,
        events: Vec::new(),
        effects: Vec::new(),
        decision: None,
    };
    let is_left = draft.state.quiet_ms(input.at) > time::limit_ms(input.in_call);
    let (news, layers) = (input.input.clone(), input.layers.clone());
    draft.emit(Event::Input(input));
    let seq = draft.state.last;
    // A task that nobody came back to for a day is over, whatever the news is; where a tool call is open,
    // for a week.
    if is_left && !policy.single_task {
        draft.abandon("day_passed");
    }
    match news {
        Input::SessionStarted(started) => {
            if started.how == SessionSource::Clear {
                draft.abandon("session_ended");
            }
            draft.note();
        }
        Input::PromptSubmitted(prompt) => draft.prompt(prompt),
        Input::ToolRequested(request) => {
            draft.ensure_task();
            tools::judge(&mut draft, seq, &request, &layers);
        }
        Input::StopRequested(stop) => {
            draft.ensure_task();
            cascade::begin(&mut draft, seq, &stop, &layers);
        }
        Input::EvidenceArrived(arrived) => cascade::go_on(&mut draft, &arrived.scope),
        Input::TreeRead(read) => cascade::go_on(&mut draft, &read.scope),
        // A sub-agent's turn is not the task's.
        Input::StopFailed(failed) if !failed.scope.is_main() => draft.note(),
        // `run` sees how the agent's process ends, and may take it up again.
        Input::StopFailed(failed) if policy.single_task && !failed.truncated => draft.note(),
        Input::StopFailed(failed) => {
            let mut transition = if failed.truncated {
                Transition::plain(Reason::Truncated)
            } else {
                Transition::new(Reason::Error, "agent")
            };
            transition.native_reason = Some(failed.native_reason);
            draft.end_open(transition);
            draft.note();
        }
        Input::SessionEnded(ended) => {
            if !policy.single_task {
                let mut transition = Transition::new(Reason::Abandoned, "session_ended");
                transition.native_reason = Some(ended.native_reason);
                draft.end_open(transition);
            }
            draft.note();
        }
        Input::ProcessFailed(failed) => {
            let transition = Transition {
                native_reason: failed.native_reason,
                ..Transition::new(Reason::Error, "agent")
            };
            draft.halt_now(seq, transition, Because::Process { what: failed.what });
        }
        Input::Interrupted => {
            draft.halt_now(
                seq,
                Transition::plain(Reason::UserInterrupt),
                Because::Interrupted,
            );
        }
        Input::TimePassed => match budget::wall_clock(policy, draft.state) {
            Some(over) => draft.halt_now(
                seq,
                Transition::new(Reason::HardCap, Cap::WallClock.as_str()),
                over.because(),
            ),
            None => draft.note(),
        },
        Input::StanceUsed(used) => {
            let stands_in = used.at == StanceAt::Stop && used.stance != Stance::Block;
            if stands_in {
                draft.ensure_task();
                cascade::stand_in(&mut draft, seq, used);
            } else {
                draft.note();
            }
        }
        Input::ToolReturned(_)
        | Input::RoundEnded(_)
        | Input::ConfigEdited(_)
        | Input::PersonAnswered(_) => draft.note(),
    }
    Step {
        events: draft.events,
        effects: draft.effects,
        decision: draft.decision,
    }
}

/// A step in the making: every event is folded in as it is emitted, so that later
/// rules see what earlier ones decided.
pub(crate) struct Draft<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) state: &'a mut State,
    events: Vec<Event>,
    effects: Vec<Effect>,
    decision: Option<Decision>,
}

impl Draft<'_> {
    pub(crate) fn emit(&mut self, event: Event) {
        self.state.apply(&event);
        self.events.push(event);
    }

    /// Answers the input at `answers`.
    pub(crate) fn answer(&mut self, answers: Seq, scope: &ScopeId, decision: Decision, why: Why) {
        self.emit(Event::DecisionMade(DecisionMade {
            answers,
            scope: scope.clone(),
            decision: decision.clone(),
            why,
        }));
        self.decision = Some(decision);
    }

    /// Asks for effects on behalf of the stop at `stop`.
    pub(crate) fn request(&mut self, stop: Seq, scope: &ScopeId, effects: Vec<Effect>) {
        self.effects.extend(effects.iter().cloned());
        self.emit(Event::Requested {
            stop,
            scope: scope.clone(),
            effects,
        });
    }

    /// Nothing to answer. Not an event: the input says it all.
    pub(crate) fn note(&mut self) {
        self.decision = Some(Decision::Noted);
    }

    /// A task that once ended otherwise than well keeps that reason; only a better one
    /// replaces it, or what came of the person that it waited for.
    pub(crate) fn settled(&self, transition: Transition) -> Transition {
        let task = self.state.task.as_ref();
        match task.and_then(|task| task.spent.as_ref()) {
            Some(spent) if !transition.replaces(spent) => spent.clone(),
            _ => transition,
        }
    }

    /// Ends the task, unless it has already ended so.
    pub(crate) fn end(&mut self, transition: Transition) {
        let Some(task) = &self.state.task else { return };
        if task.ended.as_ref() != Some(&transition) {
            let task = task.id;
            self.emit(Event::TaskEnded { task, transition });
        }
    }

    fn end_open(&mut self, transition: Transition) {
        if self.state.open_task().is_some() {
            let transition = self.settled(transition);
            self.end(transition);
        }
    }

    fn abandon(&mut self, detail: &str) {
        self.end_open(Transition::new(Reason::Abandoned, detail));
    }

    fn open(&mut self, by: OpenedBy, tree: Option<TreeFact>, acts: Option<Acts>) {
        let last = self.state.task.as_ref().map_or(0, |task| task.id.0);
        self.emit(Event::TaskOpened {
            task: TaskId(last + 1),
            by,
            tree,
            acts,
        });
    }

    fn prompt(&mut self, prompt: PromptSubmitted) {
        // Under `run` feedback comes back as a prompt; only what comes after the end is news.
        if !(self.policy.single_task && self.state.open_task().is_some()) {
            self.abandon("superseded");
            self.open(OpenedBy::Prompt, prompt.tree, prompt.acts);
        }
        self.note();
    }

    /// Opens the first task of a session without prompts; reopens one that work goes on in.
    fn ensure_task(&mut self) {
        let reopen = match &self.state.task {
            None => {
                self.open(OpenedBy::Work, None, None);
                return;
            }
            Some(task) => task.ended.is_some() && !task.halted,
        };
        if reopen && let Some(task) = self.state.task.as_ref().map(|task| task.id) {
            self.emit(Event::TaskReopened { task });
        }
    }

    /// Ends the open task from outside a stop.
    fn halt_now(&mut self, seq: Seq, transition: Transition, because: Because) {
        if self.policy.single_task && self.state.task.is_none() {
            // `run` has exactly one task, also when its process never came to work.
            self.open(OpenedBy::Work, None, None);
        }
        if self.state.open_task().is_none() {
            self.note();
            return;
        }
        let transition = self.settled(transition);
        let decision = Decision::Stop(StopDecision::Halt {
            transition: transition.clone(),
        });
        self.answer(seq, &ScopeId::main(), decision, vec![because]);
        self.end(transition);
    }

    /// Answers a tool request.
    pub(crate) fn answer_tool(
        &mut self,
        seq: Seq,
        scope: &ScopeId,
        decision: ToolDecision,
        why: Why,
    ) {
        self.answer(seq, scope, Decision::Tool(decision), why);
    }
}
