//! The rounds of one run: ask, call, ask again, until a stop is accepted or something ends it.

use checkrein_core::decision::{StopDecision, ToolDecision};
use checkrein_core::input::{Input, ProcessFailed, SessionEnded, ToolKind};
use checkrein_core::transition::{Reason, Transition};
use checkrein_models::{Call, Ended, Message, ModelError, Reply, Request, Usage};
use checkrein_runtime::{Decided, text_of};
use serde_json::Value;

use super::desk::{Desk, Opened};
use super::fading::Fading;
use super::interrupt::{Over, Stop};
use super::verifier::View;
use super::{AgentLoop, LoopResult, LoopState};
use crate::tool::{Does, ToolEnded, ToolUse};
use crate::{LastAnswer, Tool, ToolCall, ToolOutput};

/// What a call gets that never ran since the task was over before.
const OVER: &str = "not run: the task is over";
/// What the calls of an answer get that may not be whole.
const CUT: &str = "not run: the output limit cut this answer";

pub(super) struct Run<'a> {
    of: &'a AgentLoop,
    desk: Desk,
    stop: Stop,
    view: View,
    request: Request,
    output: String,
    rounds: u32,
    usage: Usage,
    cost: Option<u64>,
    fading: Fading,
}

/// Checkrein itself cannot go on.
type Broken = String;

impl<'a> Run<'a> {
    pub(super) fn new(
        of: &'a AgentLoop,
        desk: Desk,
        stop: Stop,
        view: View,
        request: Request,
    ) -> Self {
        let none = Some(0);
        Self {
            of,
            desk,
            stop,
            view,
            request,
            output: String::new(),
            rounds: 0,
            usage: Usage {
                input: none,
                cached: none,
                written: none,
                output: none,
            },
            cost: none,
            fading: Fading::default(),
        }
    }

    pub(super) async fn finish(mut self, opened: Opened) -> LoopResult {
        let ended = match self.rounds().await {
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
        self.fading.fade(&mut self.request.messages);
        self.leave(&transition).await;
        LoopResult {
            transition,
            output: self.output,
            messages: self.request.messages,
            rounds: self.rounds,
            usage: self.usage,
            cost: self.cost,
            session: opened.session,
            warnings: opened.warnings,
        }
    }

    async fn rounds(&mut self) -> Result<Transition, Broken> {
        loop {
            let asked = self.of.model.ask(&self.request);
            let reply = match self.stop.unless(asked).await {
                None => return self.stopped().await,
                Some(Err(error)) => return self.failed(&error).await,
                Some(Ok(reply)) => reply,
            };
            self.count(&reply);
            self.fading.fade(&mut self.request.messages);
            self.output.clone_from(&reply.text);
            self.request.messages.push(Message::Assistant {
                text: reply.text.clone(),
                calls: reply.calls.clone(),
            });
            let cut = reply.ended == Ended::Cut;
            let ended = match cut || reply.calls.is_empty() {
                true => self.claim(&reply, cut).await?,
                false => self.calls(&reply).await?,
            };
            if let Some(transition) = ended {
                return Ok(transition);
            }
        }
    }

    fn count(&mut self, reply: &Reply) {
        self.rounds += 1;
        let sum = |before: Option<u64>, more: Option<u64>| Some(before?.saturating_add(more?));
        let used = &reply.usage;
        self.usage = Usage {
            input: sum(self.usage.input, used.input),
            cached: sum(self.usage.cached, used.cached.or(Some(0))),
            written: sum(self.usage.written, used.written.or(Some(0))),
            output: sum(self.usage.output, used.output),
        };
        let cost = self.of.prices.cost(self.of.model.name(), used);
        self.cost = sum(self.cost, cost);
    }

    /// The model wants nothing done any more: it says that it is done, or was cut.
    async fn claim(&mut self, reply: &Reply, cut: bool) -> Result<Option<Transition>, Broken> {
        for call in &reply.calls {
            self.tell(call, CUT.to_owned(), true);
        }
        self.view.show(LoopState {
            messages: self.request.messages.clone(),
            output: reply.text.clone(),
            rounds: self.rounds,
        });
        let answer = LastAnswer {
            output: reply.usage.output,
            truncated: cut,
            calls_pending: !reply.calls.is_empty(),
        };
        let message = reply.text.clone();
        let judged = self
            .desk
            .ask(move |session| session.answered(&message, answer));
        let (decision, decided) = judged.await?;
        match decision {
            StopDecision::Continue { .. } => {
                let feedback = decided.text.unwrap_or_default();
                self.request.messages.push(Message::User(feedback));
                Ok(None)
            }
            StopDecision::Accept { .. } | StopDecision::Halt { .. } => Ok(Some(ending(&decided))),
        }
    }

    /// The calls of one answer, one after the other.
    async fn calls(&mut self, reply: &Reply) -> Result<Option<Transition>, Broken> {
        let mut calls = reply.calls.iter().enumerate();
        while let Some((nth, call)) = calls.next() {
            let ended = self.call(nth, call).await;
            if !matches!(ended, Ok(None)) {
                // A conversation in which a call has no result is none.
                for (_, call) in calls {
                    self.tell(call, OVER.to_owned(), true);
                }
                return ended;
            }
        }
        let output = reply.usage.output;
        self.desk.ask(move |session| session.round(output)).await?;
        Ok(None)
    }

    async fn call(&mut self, nth: usize, call: &Call) -> Result<Option<Transition>, Broken> {
        let tool = self.of.tools.iter().find(|tool| tool.name() == call.tool);
        // Ids of providers may come twice, and what comes twice is judged once.
        let gated = gated(format!("{}.{nth}", self.rounds), call, tool);
        let asked = gated.clone();
        let judged = self.desk.ask(move |session| session.tool(&asked)).await;
        let (decision, decided) = match judged {
            Ok(judged) => judged,
            Err(broken) => {
                self.tell(call, OVER.to_owned(), true);
                return Err(broken);
            }
        };
        let advice = match decision {
            ToolDecision::Allow => None,
            ToolDecision::Nudge { text } => Some(text),
            ToolDecision::Halt { reason } => {
                self.tell(call, reason, true);
                return Ok(Some(ending(&decided)));
            }
            refused => {
                self.tell(call, refusal(refused), true);
                return Ok(None);
            }
        };
        let output = match (tool, &call.arguments) {
            (None, _) => ToolOutput::failed(self.no_such_tool(&call.tool)),
            (Some(_), Err(text)) => ToolOutput::failed(format!(
                "not run: the arguments are no JSON; send the call again. They were: {}",
                text.chars().take(500).collect::<String>()
            )),
            (Some(tool), Ok(arguments)) => {
                let running = tool.run(ToolUse {
                    arguments,
                    history: &self.request.messages,
                });
                match self.stop.unless(running).await {
                    Some(output) => output,
                    None => {
                        self.tell(call, "ended before it came back".to_owned(), true);
                        return self.stopped().await.map(Some);
                    }
                }
            }
        };
        let failed = output.ended != ToolEnded::Ran;
        let result = Value::String(output.text.clone());
        let returned = self
            .desk
            .ask(move |session| session.returned(&gated, &result, failed));
        let rewritten = match returned.await {
            Ok(rewritten) => rewritten,
            Err(broken) => {
                // Whoever had to look at it has not.
                self.tell(call, "withheld: the task is over".to_owned(), true);
                return Err(broken);
            }
        };
        let with = |text: String| match &advice {
            Some(advice) => format!("{text}\n{advice}"),
            None => text,
        };
        self.fading
            .keep(&self.request.messages, rewritten.kept.as_ref());
        let given = rewritten.given.as_ref().map(text_of);
        self.tell(call, with(given.unwrap_or(output.text)), failed);
        Ok(None)
    }

    fn no_such_tool(&self, name: &str) -> String {
        let known: Vec<&str> = self.of.tools.iter().map(|tool| tool.name()).collect();
        match known.as_slice() {
            [] => format!("there is no tool '{name}'; there are none"),
            known => format!("there is no tool '{name}'; there are: {}", known.join(", ")),
        }
    }

    fn tell(&mut self, call: &Call, text: String, failed: bool) {
        self.request.messages.push(Message::Result {
            call: call.id.clone(),
            tool: call.tool.clone(),
            text,
            failed,
        });
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
        let failed = ProcessFailed {
            exit_code: None,
            what: format!("the model did not answer: {error}"),
            native_reason: Some(error.to_string()),
        };
        let said = self
            .desk
            .ask(|session| session.take(Input::ProcessFailed(failed)));
        Ok(ending(&said.await?))
    }
}

fn ending(decided: &Decided) -> Transition {
    let without = || Transition::new(Reason::Error, "checkrein");
    decided.ending().unwrap_or_else(without)
}

/// A call as the gates see it. What is no JSON, and what no tool is there for, is judged, too: every
/// counter sees every call.
fn gated(id: String, call: &Call, tool: Option<&impl Tool>) -> ToolCall {
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
