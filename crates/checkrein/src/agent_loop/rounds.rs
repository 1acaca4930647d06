//! The rounds of one run: ask, call, ask again, until a stop is accepted or something ends it.

use std::ops::ControlFlow;

use checkrein_core::budget;
use checkrein_core::decision::{StopDecision, ToolDecision};
use checkrein_core::ids::TaskId;
use checkrein_core::input::{AgentProcessFailed, Input, SessionEnded, ToolKind};
use checkrein_core::transition::{Reason, Transition};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    AnswerTokenUsage, FinishReason, ModelError, ModelReply, ModelRequest, RequestedToolCall,
};
use checkrein_runtime::DeliveryOutcome;
use serde_json::Value;

use super::conversation::Conversation;
use super::desk::{Desk, Next, Opened};
use super::interrupt::{Over, Stop};
use super::journal::{Answer, Entry, Outcome, Passed, Reflected};
use super::reflect::{self, Reflect};
use super::verifier::View;
use super::{AgentLoop, Happening, LoopResult, LoopState};
use crate::session::Looked;
use crate::tool::{Does, ToolEnded, ToolUse};
use crate::{LastAnswer, Tool, ToolCall, ToolOutput};

/// What a call gets that never ran since the task was over before.
const OVER: &str = "not run: the task is over";
/// What the calls of an answer get that may not be whole.
const CUT: &str = "not run: the output limit cut this answer";
/// What a model is told whose answer was cut.
const GO_ON: &str = "Your answer was cut by its output limit. Go on, in smaller pieces.";
/// What a call gets that waited while a person said something new.
const LEFT: &str = "not known: the run was interrupted, and a person says something new";
/// Why a run ends whose cost cannot be known.
const NO_COST: &str = "caps.cost_usd cannot be held: the model's answer does not say what it used";
/// What a call of an interrupted run gets whose arguments were not kept as they were.
const NOT_KEPT: &str = "not known: the run was interrupted, and the arguments held a secret, which is not kept; look whether it took effect before you send the call again";
/// What a call gets during which the process died.
const UNDER_WAY: &str = "it was under way when the run was interrupted; whether it took effect is not known: look before you repeat it";

pub(super) struct Run<'a> {
    of: &'a AgentLoop,
    desk: Desk,
    stop: Stop,
    view: View,
    talk: Conversation,
    /// What it costs is bounded.
    capped: bool,
}

/// Checkrein itself cannot go on.
type Broken = String;

impl<'a> Run<'a> {
    pub(super) fn new(
        of: &'a AgentLoop,
        desk: Desk,
        stop: Stop,
        view: View,
        request: ModelRequest,
    ) -> Self {
        Self {
            of,
            desk,
            stop,
            view,
            talk: Conversation::new(request),
            capped: false,
        }
    }

    pub(super) async fn finish(mut self, mut opened: Opened) -> LoopResult {
        let last = self.talk.recall(std::mem::take(&mut opened.said));
        self.capped = opened.capped;
        let going_on = match std::mem::replace(&mut opened.next, Next::On) {
            Next::Over(transition) => Ok(transition),
            Next::On => self.rounds(last).await,
            Next::Told { text, prompt } => match self.more(last, text, prompt).await {
                Ok(()) => self.rounds(None).await,
                Err(broken) => Err(broken),
            },
        };
        let ended = match going_on {
            // What was under way when it was ended may have failed for that alone.
            Err(_) if self.stop.over().is_some() => self.stopped().await,
            ended => ended,
        };
        let transition = match ended {
            Ok(transition) => transition,
            Err(broken) => Transition {
                native_reason: Some(broken),
                ..Transition::new(Reason::Error, "checkrein")
            },
        };
        // What cannot be read now was said by the ending already.
        let state = self.desk.ask(|session| session.peek()).await.ok().flatten();
        let task = state.and_then(|(state, _)| state.task);
        self.talk.fading.fade(&mut self.talk.request.messages);
        self.leave(&transition).await;
        self.desk.close().await;
        LoopResult {
            task: task.as_ref().map_or(TaskId(1), |task| task.id),
            attempts: task.map_or(0, |task| task.stops),
            transition,
            output: self.talk.output,
            messages: self.talk.request.messages,
            rounds: self.talk.rounds,
            usage: self.talk.usage,
            cost: self.talk.cost,
            session: opened.session,
            reflections: self.talk.reflections,
            warnings: opened.warnings,
        }
    }

    /// Something is said to the model before its answer was dealt with, if it was not: that is counted
    /// and judged first, and what it still wanted done is not.
    async fn more(
        &mut self,
        last: Option<(Answer, Vec<Outcome>)>,
        text: String,
        prompt: bool,
    ) -> Result<(), Broken> {
        if let Some((answer, told)) = last {
            let calls = answer.calls();
            if answer.cut && !self.talk.cut_before {
                self.cut(&answer, &calls, told.len()).await?;
            } else if answer.cut || calls.is_empty() {
                self.claim(&answer, &calls, told.len()).await?;
            } else {
                self.settle(&calls, &told).await?;
                for call in calls.iter().skip(told.len()) {
                    self.refuse(call, LEFT.to_owned()).await?;
                }
                self.round(&answer).await?;
            }
        }
        if prompt {
            self.talk.cut_before = false;
            self.talk.revised = 0;
        }
        let said = text.clone();
        self.keep(Entry::User { text, prompt }).await?;
        if prompt {
            let nth = self.talk.rounds as usize;
            self.desk
                .ask(move |session| session.prompt_as(nth, &said))
                .await?;
        }
        Ok(())
    }

    async fn rounds(
        &mut self,
        mut last: Option<(Answer, Vec<Outcome>)>,
    ) -> Result<Transition, Broken> {
        loop {
            let (answer, told) = match last.take() {
                Some(last) => last,
                None => {
                    self.of.tell(Happening::Asked {
                        round: self.talk.rounds + 1,
                    });
                    let asked = self.of.model.ask_model(&self.talk.request);
                    let reply = match self.stop.unless(asked).await {
                        None => return self.stopped().await,
                        Some(Err(error)) => return self.failed(&error).await,
                        Some(Ok(reply)) => reply,
                    };
                    (self.take(reply).await?, Vec::new())
                }
            };
            if self.capped && answer.spent().cost.is_none() {
                return self.ended_by(NO_COST.to_owned(), None).await;
            }
            let calls = answer.calls();
            let ended = if answer.cut && !self.talk.cut_before {
                self.cut(&answer, &calls, told.len()).await?;
                None
            } else if answer.cut || calls.is_empty() {
                match self.reflects(&answer).await? {
                    ControlFlow::Break(over) => over,
                    ControlFlow::Continue(()) => self.claim(&answer, &calls, told.len()).await?,
                }
            } else {
                self.calls(&answer, &calls, &told).await?
            };
            self.talk.cut_before = answer.cut;
            if let Some(transition) = ended {
                return Ok(transition);
            }
        }
    }

    /// Takes an answer in, before anything follows from it.
    async fn take(&mut self, reply: ModelReply) -> Result<Answer, Broken> {
        let cost = self
            .of
            .prices
            .usage_cost(self.of.model.model_name(), &reply.usage);
        let cut = reply.finish_reason == FinishReason::Truncated;
        let answer = Answer::new(reply.text, reply.calls, cut, &reply.usage, cost);
        self.talk.count(&answer);
        if !answer.text.trim().is_empty() {
            self.of.tell(Happening::Said { text: &answer.text });
        }
        self.keep(Entry::Answer(answer.clone())).await?;
        Ok(answer)
    }

    /// Adds to the conversation, and to what is kept of it.
    async fn keep(&mut self, entry: Entry) -> Result<(), Broken> {
        self.talk.hear(&entry);
        self.desk.ask(move |session| entry.write(session)).await
    }

    /// One answer that was cut is no word on whether the work is done.
    async fn cut(
        &mut self,
        answer: &Answer,
        calls: &[RequestedToolCall],
        told: usize,
    ) -> Result<(), Broken> {
        for call in calls.iter().skip(told) {
            self.refuse(call, CUT.to_owned()).await?;
        }
        self.round(answer).await?;
        let text = GO_ON.to_owned();
        self.keep(ours(text)).await
    }

    async fn round(&self, answer: &Answer) -> Result<(), Broken> {
        self.round_of(self.talk.rounds, answer).await
    }

    async fn round_of(&self, nth: u32, answer: &Answer) -> Result<(), Broken> {
        let (spent, key) = (answer.spent(), format!("round:{nth}"));
        self.desk
            .ask(move |session| session.round_of(spent, Some(key)))
            .await
    }

    /// Whether others may judge the answer, by the model's own word on it. It goes on if the model is to
    /// revise it; with a transition the run is over.
    async fn reflects(
        &mut self,
        answer: &Answer,
    ) -> Result<ControlFlow<Option<Transition>>, Broken> {
        let Some(reflect) = self.of.settings.reflect.filter(|_| !answer.cut) else {
            return Ok(ControlFlow::Continue(()));
        };
        let reflected = match self.talk.reflected.take() {
            // The process died after it.
            Some(reflected) => reflected,
            None => {
                if self.talk.revised >= reflect.revisions || self.is_spent().await? {
                    return Ok(ControlFlow::Continue(()));
                }
                let quotes = QuotedPromptBlocks::with_random_quote_number();
                let question = reflect::question(&self.talk.request, quotes);
                self.of.tell(Happening::Asked {
                    round: self.talk.rounds + 1,
                });
                let asked = self.of.model.ask_model(&question);
                let heard = match self.stop.unless(asked).await {
                    None => return self.stopped().await.map(Some).map(ControlFlow::Break),
                    Some(heard) => heard,
                };
                let reflected = self.thought(heard, quotes, reflect);
                self.talk.think(&reflected);
                self.keep(Entry::Reflected(reflected.clone())).await?;
                reflected
            }
        };
        let Some(text) = reflected.feedback else {
            self.round(&reflected.answer).await?;
            return Ok(ControlFlow::Continue(()));
        };
        self.round_of(self.talk.rounds - 1, answer).await?;
        self.round(&reflected.answer).await?;
        self.of.tell(Happening::SentBack { feedback: &text });
        self.keep(ours(text)).await?;
        Ok(ControlFlow::Break(None))
    }

    /// What the model thinks of its answer. That it says nothing is no bad score.
    fn thought(
        &self,
        heard: Result<ModelReply, ModelError>,
        quotes: QuotedPromptBlocks,
        reflect: Reflect,
    ) -> Reflected {
        let nothing = Some(0);
        let none = AnswerTokenUsage {
            input: nothing,
            cache_read: nothing,
            cache_write: nothing,
            output: nothing,
        };
        match heard {
            Err(error) => Reflected {
                answer: Answer::new(String::new(), Vec::new(), false, &none, nothing),
                score: Err(format!("the model gave no answer: {error}")),
                feedback: None,
            },
            Ok(reply) => {
                let said = reflect::heard(&reply, quotes);
                let cost = self
                    .of
                    .prices
                    .usage_cost(self.of.model.model_name(), &reply.usage);
                let cut = reply.finish_reason == FinishReason::Truncated;
                Reflected {
                    answer: Answer::new(reply.text, Vec::new(), cut, &reply.usage, cost),
                    feedback: said.feedback(reflect),
                    score: said.score,
                }
            }
        }
    }

    /// Whether a cap is reached: the answer is judged then as it is.
    async fn is_spent(&self) -> Result<bool, Broken> {
        let stands = self.desk.ask(|session| session.peek()).await?;
        Ok(stands
            .is_some_and(|(state, policy)| budget::reached_cap_at_stop(&policy, &state).is_some()))
    }

    /// The model wants nothing done any more: it says that it is done, or was cut.
    async fn claim(
        &mut self,
        answer: &Answer,
        calls: &[RequestedToolCall],
        told: usize,
    ) -> Result<Option<Transition>, Broken> {
        for call in calls.iter().skip(told) {
            self.refuse(call, CUT.to_owned()).await?;
        }
        self.view.show(LoopState {
            messages: self.talk.request.messages.clone(),
            output: answer.text.clone(),
            rounds: self.talk.rounds,
        });
        let last = LastAnswer {
            spent: answer.spent(),
            truncated: answer.cut,
            calls_pending: !calls.is_empty(),
        };
        let (message, key) = (answer.text.clone(), self.talk.rounds.to_string());
        let judged = self
            .desk
            .ask(move |session| session.answered_as(key, &message, last));
        let (decision, decided) = judged.await?;
        self.parked(&decided);
        match decision {
            StopDecision::Continue { .. } => {
                let text = decided.feedback_text.unwrap_or_default();
                self.of.tell(Happening::SentBack { feedback: &text });
                self.keep(ours(text)).await?;
                Ok(None)
            }
            StopDecision::Accept { .. } | StopDecision::Halt { .. } => Ok(Some(ending(&decided))),
        }
    }

    /// The calls of one answer, one after the other; `told` are those that were before the process
    /// died in which it was given.
    async fn calls(
        &mut self,
        answer: &Answer,
        calls: &[RequestedToolCall],
        told: &[Outcome],
    ) -> Result<Option<Transition>, Broken> {
        self.settle(calls, told).await?;
        let mut calls = calls.iter().enumerate().skip(told.len());
        while let Some((nth, call)) = calls.next() {
            if answer.is_redacted(nth) {
                self.refuse(call, NOT_KEPT.to_owned()).await?;
                continue;
            }
            let ended = self.call(nth, call).await;
            if !matches!(ended, Ok(None)) {
                // A conversation in which a call has no result is none.
                for (_, call) in calls {
                    self.refuse(call, OVER.to_owned()).await?;
                }
                return ended;
            }
        }
        self.round(answer).await?;
        Ok(None)
    }

    /// What came back last before the process died may not have been counted, and looked at.
    async fn settle(
        &mut self,
        calls: &[RequestedToolCall],
        told: &[Outcome],
    ) -> Result<(), Broken> {
        match told.iter().enumerate().next_back() {
            Some((nth, last)) => match calls.get(nth) {
                Some(call) => self.returned(nth, call, last).await,
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn tool(&self, call: &RequestedToolCall) -> Option<&'a std::sync::Arc<dyn Tool>> {
        let of: &'a AgentLoop = self.of;
        of.tools.iter().find(|tool| tool.name() == call.tool)
    }

    /// Ids of providers may come twice, and what comes twice is judged once.
    fn gated(&self, nth: usize, call: &RequestedToolCall) -> ToolCall {
        gated(format!("{}.{nth}", self.talk.rounds), call, self.tool(call))
    }

    /// A result is known: it is counted, and middleware says what is told of it.
    async fn returned(
        &mut self,
        nth: usize,
        call: &RequestedToolCall,
        outcome: &Outcome,
    ) -> Result<(), Broken> {
        let Some(ran) = outcome.ran.clone() else {
            return Ok(());
        };
        let (gated, failed) = (self.gated(nth, call), outcome.failed);
        let passed = self
            .desk
            .ask(move |session| session.passed(&gated, &Value::String(ran), failed))
            .await;
        let passed = match passed {
            Ok(passed) => passed,
            Err(broken) => {
                // Whoever had to look at it has not.
                let given = "withheld: the task is over".to_owned();
                self.talk.hear(&Entry::Passed(Passed { given, kept: None }));
                return Err(broken);
            }
        };
        let Some(Looked { given, kept }) = passed else {
            return Ok(());
        };
        let given = given.unwrap_or_else(|| outcome.ran.clone().unwrap_or_default());
        let given = outcome.with_advice(given);
        let kept = kept.map(|text| outcome.with_advice(text));
        self.keep(Entry::Passed(Passed { given, kept })).await
    }

    async fn call(
        &mut self,
        nth: usize,
        call: &RequestedToolCall,
    ) -> Result<Option<Transition>, Broken> {
        let tool = self.tool(call);
        self.of.tell(Happening::Called {
            tool: &call.tool,
            arguments: call.arguments.as_ref().ok(),
        });
        let asked = self.gated(nth, call);
        let judged = self.desk.ask(move |session| session.tool(&asked)).await;
        let (decision, decided) = match judged {
            Ok(judged) => judged,
            Err(broken) => {
                // What it is told of does not matter any more if it cannot be kept.
                let _ = self.refuse(call, OVER.to_owned()).await;
                return Err(broken);
            }
        };
        self.parked(&decided);
        let advice = match decision {
            ToolDecision::Allow => None,
            ToolDecision::Nudge { text } => Some(text),
            ToolDecision::Halt { reason } => {
                self.refuse(call, reason).await?;
                return Ok(Some(ending(&decided)));
            }
            refused => {
                self.refuse(call, refusal(refused)).await?;
                return Ok(None);
            }
        };
        let output = match (tool, &call.arguments) {
            _ if decided.repeated => ToolOutput::failed(UNDER_WAY),
            (None, _) => ToolOutput::failed(self.no_such_tool(&call.tool)),
            (Some(_), Err(text)) => ToolOutput::failed(format!(
                "not run: the arguments are no JSON; send the call again. They were: {}",
                text.chars().take(500).collect::<String>()
            )),
            (Some(tool), Ok(arguments)) => {
                let running = tool.run(ToolUse {
                    arguments,
                    history: &self.talk.request.messages,
                });
                match self.stop.unless(running).await {
                    Some(output) => output,
                    None => {
                        self.refuse(call, "ended before it came back".to_owned())
                            .await?;
                        return self.stopped().await.map(Some);
                    }
                }
            }
        };
        let failed = output.ended != ToolEnded::Ran;
        let outcome = Outcome {
            call: call.id.clone(),
            tool: call.tool.clone(),
            text: String::new(),
            failed,
            advice,
            ran: Some(output.text.clone()),
        };
        let outcome = Outcome {
            text: outcome.with_advice(output.text),
            ..outcome
        };
        // Kept before it is counted: of what was counted, and not kept, nobody could say what it was.
        self.keep(Entry::Result(outcome.clone())).await?;
        self.returned(nth, call, &outcome).await?;
        Ok(None)
    }

    fn no_such_tool(&self, name: &str) -> String {
        let known: Vec<&str> = self.of.tools.iter().map(|tool| tool.name()).collect();
        match known.as_slice() {
            [] => format!("there is no tool '{name}'; there are none"),
            known => format!("there is no tool '{name}'; there are: {}", known.join(", ")),
        }
    }

    fn parked(&self, decided: &DeliveryOutcome) {
        if !decided.parked.is_empty() {
            self.of.tell(Happening::Parked(decided));
        }
    }

    /// Says of a call why it did not run.
    async fn refuse(&mut self, call: &RequestedToolCall, text: String) -> Result<(), Broken> {
        self.of.tell(Happening::Refused {
            tool: &call.tool,
            reason: &text,
        });
        self.keep(Entry::Result(Outcome {
            call: call.id.clone(),
            tool: call.tool.clone(),
            text,
            failed: true,
            advice: None,
            ran: None,
        }))
        .await
    }

    /// Whoever listens for the end of sessions is told of it.
    async fn leave(&self, transition: &Transition) {
        let ended = SessionEnded {
            native_reason: transition.reason.as_str().to_owned(),
        };
        // The run is over, and how it ended is known: a store that cannot take this changes nothing.
        let _ = self
            .desk
            .ask(move |session| session.leave(ended).map(drop))
            .await;
    }

    /// Something else than the model ended it.
    async fn stopped(&self) -> Result<Transition, Broken> {
        match self.stop.over() {
            Some(Over::Ended(transition)) => Ok(transition),
            Some(Over::Interrupted) | None => {
                let said = self.desk.ask(|session| session.take(Input::Interrupted));
                Ok(ending(&said.await?))
            }
        }
    }

    /// The model retries by itself what can be retried.
    async fn failed(&self, error: &ModelError) -> Result<Transition, Broken> {
        let what = format!("the model did not answer: {error}");
        self.ended_by(what, Some(error.to_string())).await
    }

    async fn ended_by(&self, what: String, native: Option<String>) -> Result<Transition, Broken> {
        let failed = AgentProcessFailed {
            exit_code: None,
            native_reason: native.or_else(|| Some(what.clone())),
            what,
        };
        let said = self
            .desk
            .ask(|session| session.take(Input::ProcessFailed(failed)));
        Ok(ending(&said.await?))
    }
}

/// What we say in a person's place.
fn ours(text: String) -> Entry {
    Entry::User {
        text,
        prompt: false,
    }
}

fn ending(decided: &DeliveryOutcome) -> Transition {
    let without = || Transition::new(Reason::Error, "checkrein");
    decided.task_transition().unwrap_or_else(without)
}

/// A call as the gates see it. What is no JSON, and what no tool is there for, is judged, too: every
/// counter sees every call.
fn gated(id: String, call: &RequestedToolCall, tool: Option<&impl Tool>) -> ToolCall {
    let (args, does) = match (&call.arguments, tool) {
        (Ok(arguments), Some(tool)) => (arguments.clone(), tool.does(arguments)),
        (Ok(arguments), None) => (arguments.clone(), Does::Other),
        (Err(text), _) => (Value::String(text.clone()), Does::Other),
    };
    let (kind, script, patch) = match does {
        Does::Script(script) => (ToolKind::Shell, Some(script.to_owned()), None),
        Does::Patch(patch) => (ToolKind::Write, None, Some(patch.to_owned())),
        Does::Poll => (ToolKind::Poll, None, None),
        Does::Other => (ToolKind::Other, None, None),
    };
    ToolCall {
        id,
        tool: call.tool.clone(),
        kind,
        args,
        script,
        patch,
    }
}

/// What the model is told of a call that must not run as it is.
fn refusal(decision: ToolDecision) -> String {
    match decision {
        ToolDecision::Rewrite { args, reason } => {
            format!("not run: {reason}\nit would run with these arguments: {args}")
        }
        ToolDecision::Ask {
            reason, approval, ..
        } => format!("not run: {reason}\na person has to approve it first: {approval}"),
        ToolDecision::Deny { reason } | ToolDecision::Halt { reason } => reason,
        ToolDecision::Nudge { text } => text,
        ToolDecision::Allow => String::new(),
    }
}
