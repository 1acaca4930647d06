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

use super::conversation::AgentLoopConversation;
use super::interrupt::{AgentLoopEarlyEnd, LoopRunEndSignal};
use super::journal::{
    AgentLoopJournalEntry, ModelAnswer, ReflectionEntry, ResultRewriteEntry, ToolCallOutcome,
};
use super::reflection::{self, SelfReflectionConfig};
use super::session_thread::{ConversationNextStep, OpenedSession, SessionThreadHandle};
use super::verifier::SharedLoopState;
use super::{AgentLoop, AgentLoopEvent, DoneClaimContext, LoopResult};
use crate::session::RewrittenResultTexts;
use crate::tool::{DeclaredToolAction, ToolInvocation, ToolOutcome};
use crate::{FinalAnswer, Tool, ToolCall, ToolOutput};

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

pub(super) struct AgentLoopRun<'a> {
    agent_loop: &'a AgentLoop,
    session_thread: SessionThreadHandle,
    end_signal: LoopRunEndSignal,
    shared_state: SharedLoopState,
    conversation: AgentLoopConversation,
    /// What it costs is bounded.
    cost_capped: bool,
}

/// Checkrein itself cannot go on.
type AgentLoopError = String;

impl<'a> AgentLoopRun<'a> {
    pub(super) fn new(
        of: &'a AgentLoop,
        desk: SessionThreadHandle,
        stop: LoopRunEndSignal,
        view: SharedLoopState,
        request: ModelRequest,
    ) -> Self {
        Self {
            agent_loop: of,
            session_thread: desk,
            end_signal: stop,
            shared_state: view,
            conversation: AgentLoopConversation::new(request),
            cost_capped: false,
        }
    }

    pub(super) async fn run_agent_loop_to_end(mut self, mut opened: OpenedSession) -> LoopResult {
        let last = self
            .conversation
            .replay_conversation_entries(std::mem::take(&mut opened.entries));
        self.cost_capped = opened.cost_capped;
        let going_on = match std::mem::replace(&mut opened.next, ConversationNextStep::Proceed) {
            ConversationNextStep::Ended(transition) => Ok(transition),
            ConversationNextStep::Proceed => self.run_agent_loop_rounds(last).await,
            ConversationNextStep::SendMessage { text, prompt } => {
                match self.add_message_for_model(last, text, prompt).await {
                    Ok(()) => self.run_agent_loop_rounds(None).await,
                    Err(broken) => Err(broken),
                }
            }
        };
        let ended = match going_on {
            // What was under way when it was ended may have failed for that alone.
            Err(_) if self.end_signal.agent_loop_end_reason().is_some() => {
                self.end_run_early().await
            }
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
        let state = self
            .session_thread
            .run_on_session_thread(|session| session.current_session_state())
            .await
            .ok()
            .flatten();
        let task = state.and_then(|(state, _)| state.task);
        self.conversation
            .replacements
            .replace_seen_tool_results(&mut self.conversation.request.messages);
        self.notify_session_end(&transition).await;
        self.session_thread.close_session_thread().await;
        LoopResult {
            task: task.as_ref().map_or(TaskId(1), |task| task.id),
            stops: task.map_or(0, |task| task.stops),
            transition,
            output: self.conversation.output,
            messages: self.conversation.request.messages,
            rounds: self.conversation.rounds,
            usage: self.conversation.usage,
            cost: self.conversation.cost,
            session: opened.session,
            reflections: self.conversation.reflections,
            warnings: opened.warnings,
        }
    }

    /// Something is said to the model before its answer was dealt with, if it was not: that is counted
    /// and judged first, and what it still wanted done is not.
    async fn add_message_for_model(
        &mut self,
        last: Option<(ModelAnswer, Vec<ToolCallOutcome>)>,
        text: String,
        prompt: bool,
    ) -> Result<(), AgentLoopError> {
        if let Some((answer, told)) = last {
            let calls = answer.requested_calls();
            if answer.cut && !self.conversation.cut_before {
                self.continue_cut_answer(&answer, &calls, told.len())
                    .await?;
            } else if answer.cut || calls.is_empty() {
                self.evaluate_model_done_claim(&answer, &calls, told.len())
                    .await?;
            } else {
                self.process_last_result_on_resume(&calls, &told).await?;
                for call in calls.iter().skip(told.len()) {
                    self.answer_call_with_refusal(call, LEFT.to_owned()).await?;
                }
                self.record_round_end(&answer).await?;
            }
        }
        if prompt {
            self.conversation.cut_before = false;
            self.conversation.revisions = 0;
        }
        let said = text.clone();
        self.append_conversation_entry(AgentLoopJournalEntry::User { text, prompt })
            .await?;
        if prompt {
            let nth = self.conversation.rounds as usize;
            self.session_thread
                .run_on_session_thread(move |session| session.submit_prompt_keyed(nth, &said))
                .await?;
        }
        Ok(())
    }

    async fn run_agent_loop_rounds(
        &mut self,
        mut last: Option<(ModelAnswer, Vec<ToolCallOutcome>)>,
    ) -> Result<Transition, AgentLoopError> {
        loop {
            let (answer, told) = match last.take() {
                Some(last) => last,
                None => {
                    self.agent_loop.emit_event(AgentLoopEvent::RoundStarted {
                        round: self.conversation.rounds + 1,
                    });
                    let asked = self.agent_loop.model.ask_model(&self.conversation.request);
                    let reply = match self.end_signal.await_unless_run_over(asked).await {
                        None => return self.end_run_early().await,
                        Some(Err(error)) => return self.end_with_model_error(&error).await,
                        Some(Ok(reply)) => reply,
                    };
                    (self.record_model_reply(reply).await?, Vec::new())
                }
            };
            if self.cost_capped && answer.model_answer_usage().cost.is_none() {
                return self.end_run_with_failure(NO_COST.to_owned(), None).await;
            }
            let calls = answer.requested_calls();
            let ended = if answer.cut && !self.conversation.cut_before {
                self.continue_cut_answer(&answer, &calls, told.len())
                    .await?;
                None
            } else if answer.cut || calls.is_empty() {
                match self.reflect_on_answer(&answer).await? {
                    ControlFlow::Break(over) => over,
                    ControlFlow::Continue(()) => {
                        self.evaluate_model_done_claim(&answer, &calls, told.len())
                            .await?
                    }
                }
            } else {
                self.run_calls(&answer, &calls, &told).await?
            };
            self.conversation.cut_before = answer.cut;
            if let Some(transition) = ended {
                return Ok(transition);
            }
        }
    }

    /// Takes an answer in, before anything follows from it.
    async fn record_model_reply(
        &mut self,
        reply: ModelReply,
    ) -> Result<ModelAnswer, AgentLoopError> {
        let cost = self
            .agent_loop
            .prices
            .usage_cost(self.agent_loop.model.model_name(), &reply.usage);
        let cut = reply.finish_reason == FinishReason::Truncated;
        let answer = ModelAnswer::new(reply.text, reply.calls, cut, &reply.usage, cost);
        self.conversation.count_round_and_usage(&answer);
        if !answer.text.trim().is_empty() {
            self.agent_loop
                .emit_event(AgentLoopEvent::AssistantText { text: &answer.text });
        }
        self.append_conversation_entry(AgentLoopJournalEntry::Answer(answer.clone()))
            .await?;
        Ok(answer)
    }

    /// Adds to the conversation, and to what is kept of it.
    async fn append_conversation_entry(
        &mut self,
        entry: AgentLoopJournalEntry,
    ) -> Result<(), AgentLoopError> {
        self.conversation.add_conversation_entry(&entry);
        self.session_thread
            .run_on_session_thread(move |session| entry.save_conversation_entry(session))
            .await
    }

    /// One answer that was cut is no word on whether the work is done.
    async fn continue_cut_answer(
        &mut self,
        answer: &ModelAnswer,
        calls: &[RequestedToolCall],
        told: usize,
    ) -> Result<(), AgentLoopError> {
        for call in calls.iter().skip(told) {
            self.answer_call_with_refusal(call, CUT.to_owned()).await?;
        }
        self.record_round_end(answer).await?;
        let text = GO_ON.to_owned();
        self.append_conversation_entry(automatic_message(text))
            .await
    }

    async fn record_round_end(&self, answer: &ModelAnswer) -> Result<(), AgentLoopError> {
        self.record_model_round_in_session(self.conversation.rounds, answer)
            .await
    }

    async fn record_model_round_in_session(
        &self,
        nth: u32,
        answer: &ModelAnswer,
    ) -> Result<(), AgentLoopError> {
        let (spent, key) = (answer.model_answer_usage(), format!("round:{nth}"));
        self.session_thread
            .run_on_session_thread(move |session| session.end_round_keyed(spent, Some(key)))
            .await
    }

    /// Whether others may judge the answer, by the model's own word on it. It goes on if the model is to
    /// revise it; with a transition the run is over.
    async fn reflect_on_answer(
        &mut self,
        answer: &ModelAnswer,
    ) -> Result<ControlFlow<Option<Transition>>, AgentLoopError> {
        let Some(reflect) = self.agent_loop.settings.reflection.filter(|_| !answer.cut) else {
            return Ok(ControlFlow::Continue(()));
        };
        let reflected = match self.conversation.reflected.take() {
            // The process died after it.
            Some(reflected) => reflected,
            None => {
                if self.conversation.revisions >= reflect.revisions || self.is_cap_reached().await?
                {
                    return Ok(ControlFlow::Continue(()));
                }
                let quotes = QuotedPromptBlocks::with_random_quote_number();
                let question = reflection::reflection_request(&self.conversation.request, quotes);
                self.agent_loop.emit_event(AgentLoopEvent::RoundStarted {
                    round: self.conversation.rounds + 1,
                });
                let asked = self.agent_loop.model.ask_model(&question);
                let heard = match self.end_signal.await_unless_run_over(asked).await {
                    None => return self.end_run_early().await.map(Some).map(ControlFlow::Break),
                    Some(heard) => heard,
                };
                let reflected = self.reflection_from_model_reply(heard, quotes, reflect);
                self.conversation.record_reflection(&reflected);
                self.append_conversation_entry(AgentLoopJournalEntry::Reflected(reflected.clone()))
                    .await?;
                reflected
            }
        };
        let Some(text) = reflected.feedback else {
            self.record_round_end(&reflected.answer).await?;
            return Ok(ControlFlow::Continue(()));
        };
        self.record_model_round_in_session(self.conversation.rounds - 1, answer)
            .await?;
        self.record_round_end(&reflected.answer).await?;
        self.agent_loop
            .emit_event(AgentLoopEvent::SentBack { feedback: &text });
        self.append_conversation_entry(automatic_message(text))
            .await?;
        Ok(ControlFlow::Break(None))
    }

    /// What the model thinks of its answer. That it says nothing is no bad score.
    fn reflection_from_model_reply(
        &self,
        heard: Result<ModelReply, ModelError>,
        quotes: QuotedPromptBlocks,
        reflect: SelfReflectionConfig,
    ) -> ReflectionEntry {
        let nothing = Some(0);
        let none = AnswerTokenUsage {
            input: nothing,
            cache_read: nothing,
            cache_write: nothing,
            output: nothing,
        };
        match heard {
            Err(error) => ReflectionEntry {
                answer: ModelAnswer::new(String::new(), Vec::new(), false, &none, nothing),
                score: Err(format!("the model gave no answer: {error}")),
                feedback: None,
            },
            Ok(reply) => {
                let said = reflection::parse_reflection_reply(&reply, quotes);
                let cost = self
                    .agent_loop
                    .prices
                    .usage_cost(self.agent_loop.model.model_name(), &reply.usage);
                let cut = reply.finish_reason == FinishReason::Truncated;
                ReflectionEntry {
                    answer: ModelAnswer::new(reply.text, Vec::new(), cut, &reply.usage, cost),
                    feedback: said.revision_feedback(reflect),
                    score: said.score,
                }
            }
        }
    }

    /// Whether a cap is reached: the answer is judged then as it is.
    async fn is_cap_reached(&self) -> Result<bool, AgentLoopError> {
        let stands = self
            .session_thread
            .run_on_session_thread(|session| session.current_session_state())
            .await?;
        Ok(stands
            .is_some_and(|(state, policy)| budget::reached_cap_at_stop(&policy, &state).is_some()))
    }

    /// The model wants nothing done any more: it says that it is done, or was cut.
    async fn evaluate_model_done_claim(
        &mut self,
        answer: &ModelAnswer,
        calls: &[RequestedToolCall],
        told: usize,
    ) -> Result<Option<Transition>, AgentLoopError> {
        for call in calls.iter().skip(told) {
            self.answer_call_with_refusal(call, CUT.to_owned()).await?;
        }
        self.shared_state
            .publish_loop_state_to_verifiers(DoneClaimContext {
                messages: self.conversation.request.messages.clone(),
                output: answer.text.clone(),
                rounds: self.conversation.rounds,
            });
        let last = FinalAnswer {
            usage: answer.model_answer_usage(),
            truncated: answer.cut,
            calls_pending: !calls.is_empty(),
        };
        let (message, key) = (answer.text.clone(), self.conversation.rounds.to_string());
        let judged = self
            .session_thread
            .run_on_session_thread(move |session| session.request_stop_keyed(key, &message, last));
        let (decision, decided) = judged.await?;
        self.tell_host_of_parked_approval(&decided);
        match decision {
            StopDecision::Continue { .. } => {
                let text = decided.feedback_text.unwrap_or_default();
                self.agent_loop
                    .emit_event(AgentLoopEvent::SentBack { feedback: &text });
                self.append_conversation_entry(automatic_message(text))
                    .await?;
                Ok(None)
            }
            StopDecision::Accept { .. } | StopDecision::Halt { .. } => {
                Ok(Some(ending_transition(&decided)))
            }
        }
    }

    /// The calls of one answer, one after the other; `told` are those that were before the process
    /// died in which it was given.
    async fn run_calls(
        &mut self,
        answer: &ModelAnswer,
        calls: &[RequestedToolCall],
        told: &[ToolCallOutcome],
    ) -> Result<Option<Transition>, AgentLoopError> {
        self.process_last_result_on_resume(calls, told).await?;
        let mut calls = calls.iter().enumerate().skip(told.len());
        while let Some((nth, call)) = calls.next() {
            if answer.are_call_arguments_redacted(nth) {
                self.answer_call_with_refusal(call, NOT_KEPT.to_owned())
                    .await?;
                continue;
            }
            let ended = self.run_tool_call(nth, call).await;
            if !matches!(ended, Ok(None)) {
                // A conversation in which a call has no result is none.
                for (_, call) in calls {
                    self.answer_call_with_refusal(call, OVER.to_owned()).await?;
                }
                return ended;
            }
        }
        self.record_round_end(answer).await?;
        Ok(None)
    }

    /// What came back last before the process died may not have been counted, and looked at.
    async fn process_last_result_on_resume(
        &mut self,
        calls: &[RequestedToolCall],
        told: &[ToolCallOutcome],
    ) -> Result<(), AgentLoopError> {
        match told.iter().enumerate().next_back() {
            Some((nth, last)) => match calls.get(nth) {
                Some(call) => self.pass_result_through_middleware(nth, call, last).await,
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    fn find_tool(&self, call: &RequestedToolCall) -> Option<&'a std::sync::Arc<dyn Tool>> {
        let of: &'a AgentLoop = self.agent_loop;
        of.tools.iter().find(|tool| tool.name() == call.tool)
    }

    /// Ids of providers may come twice, and what comes twice is judged once.
    fn tool_call_for_gates(&self, nth: usize, call: &RequestedToolCall) -> ToolCall {
        model_call_for_gates(
            format!("{}.{nth}", self.conversation.rounds),
            call,
            self.find_tool(call),
        )
    }

    /// A result is known: it is counted, and middleware says what is told of it.
    async fn pass_result_through_middleware(
        &mut self,
        nth: usize,
        call: &RequestedToolCall,
        outcome: &ToolCallOutcome,
    ) -> Result<(), AgentLoopError> {
        let Some(ran) = outcome.ran.clone() else {
            return Ok(());
        };
        let (gated, failed) = (self.tool_call_for_gates(nth, call), outcome.failed);
        let passed = self
            .session_thread
            .run_on_session_thread(move |session| {
                session.tool_result_text_after_middleware(&gated, &Value::String(ran), failed)
            })
            .await;
        let passed = match passed {
            Ok(passed) => passed,
            Err(broken) => {
                // Whoever had to look at it has not.
                let given = "withheld: the task is over".to_owned();
                self.conversation
                    .add_conversation_entry(&AgentLoopJournalEntry::ResultRewritten(
                        ResultRewriteEntry { given, kept: None },
                    ));
                return Err(broken);
            }
        };
        let Some(RewrittenResultTexts {
            for_agent: given,
            for_history: kept,
        }) = passed
        else {
            return Ok(());
        };
        let given = given.unwrap_or_else(|| outcome.ran.clone().unwrap_or_default());
        let given = outcome.text_with_advice(given);
        let kept = kept.map(|text| outcome.text_with_advice(text));
        self.append_conversation_entry(AgentLoopJournalEntry::ResultRewritten(ResultRewriteEntry {
            given,
            kept,
        }))
        .await
    }

    async fn run_tool_call(
        &mut self,
        nth: usize,
        call: &RequestedToolCall,
    ) -> Result<Option<Transition>, AgentLoopError> {
        let tool = self.find_tool(call);
        self.agent_loop.emit_event(AgentLoopEvent::ToolCalled {
            tool: &call.tool,
            arguments: call.arguments.as_ref().ok(),
        });
        let asked = self.tool_call_for_gates(nth, call);
        let judged = self
            .session_thread
            .run_on_session_thread(move |session| session.tool(&asked))
            .await;
        let (decision, decided) = match judged {
            Ok(judged) => judged,
            Err(broken) => {
                // What it is told of does not matter any more if it cannot be kept.
                let _ = self.answer_call_with_refusal(call, OVER.to_owned()).await;
                return Err(broken);
            }
        };
        self.tell_host_of_parked_approval(&decided);
        let advice = match decision {
            ToolDecision::Allow => None,
            ToolDecision::Nudge { text } => Some(text),
            ToolDecision::Halt { reason } => {
                self.answer_call_with_refusal(call, reason).await?;
                return Ok(Some(ending_transition(&decided)));
            }
            refused => {
                self.answer_call_with_refusal(call, refused_call_message(refused))
                    .await?;
                return Ok(None);
            }
        };
        let output = match (tool, &call.arguments) {
            _ if decided.repeated => ToolOutput::failed(UNDER_WAY),
            (None, _) => ToolOutput::failed(self.unknown_tool_text(&call.tool)),
            (Some(_), Err(text)) => ToolOutput::failed(format!(
                "not run: the arguments are no JSON; send the call again. They were: {}",
                text.chars().take(500).collect::<String>()
            )),
            (Some(tool), Ok(arguments)) => {
                let running = tool.run(ToolInvocation {
                    arguments,
                    history: &self.conversation.request.messages,
                });
                match self.end_signal.await_unless_run_over(running).await {
                    Some(output) => output,
                    None => {
                        self.answer_call_with_refusal(call, "ended before it came back".to_owned())
                            .await?;
                        return self.end_run_early().await.map(Some);
                    }
                }
            }
        };
        let failed = output.outcome != ToolOutcome::Ran;
        let outcome = ToolCallOutcome {
            call: call.id.clone(),
            tool: call.tool.clone(),
            text: String::new(),
            failed,
            advice,
            ran: Some(output.text.clone()),
        };
        let outcome = ToolCallOutcome {
            text: outcome.text_with_advice(output.text),
            ..outcome
        };
        // Kept before it is counted: of what was counted, and not kept, nobody could say what it was.
        self.append_conversation_entry(AgentLoopJournalEntry::Result(outcome.clone()))
            .await?;
        self.pass_result_through_middleware(nth, call, &outcome)
            .await?;
        Ok(None)
    }

    fn unknown_tool_text(&self, name: &str) -> String {
        let known: Vec<&str> = self
            .agent_loop
            .tools
            .iter()
            .map(|tool| tool.name())
            .collect();
        match known.as_slice() {
            [] => format!("there is no tool '{name}'; there are none"),
            known => format!("there is no tool '{name}'; there are: {}", known.join(", ")),
        }
    }

    fn tell_host_of_parked_approval(&self, decided: &DeliveryOutcome) {
        if !decided.parked.is_empty() {
            self.agent_loop.emit_event(AgentLoopEvent::Parked(decided));
        }
    }

    /// Says of a call why it did not run.
    async fn answer_call_with_refusal(
        &mut self,
        call: &RequestedToolCall,
        text: String,
    ) -> Result<(), AgentLoopError> {
        self.agent_loop.emit_event(AgentLoopEvent::ToolRefused {
            tool: &call.tool,
            reason: &text,
        });
        self.append_conversation_entry(AgentLoopJournalEntry::Result(ToolCallOutcome {
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
    async fn notify_session_end(&self, transition: &Transition) {
        let ended = SessionEnded {
            native_reason: transition.reason.as_str().to_owned(),
        };
        // The run is over, and how it ended is known: a store that cannot take this changes nothing.
        let _ = self
            .session_thread
            .run_on_session_thread(move |session| session.deliver_session_end(ended).map(drop))
            .await;
    }

    /// Something else than the model ended it.
    async fn end_run_early(&self) -> Result<Transition, AgentLoopError> {
        match self.end_signal.agent_loop_end_reason() {
            Some(AgentLoopEarlyEnd::Ended(transition)) => Ok(transition),
            Some(AgentLoopEarlyEnd::Interrupted) | None => {
                let said = self.session_thread.run_on_session_thread(|session| {
                    session.submit_agent_event(Input::Interrupted)
                });
                Ok(ending_transition(&said.await?))
            }
        }
    }

    /// The model retries by itself what can be retried.
    async fn end_with_model_error(&self, error: &ModelError) -> Result<Transition, AgentLoopError> {
        let what = format!("the model did not answer: {error}");
        self.end_run_with_failure(what, Some(error.to_string()))
            .await
    }

    async fn end_run_with_failure(
        &self,
        what: String,
        native: Option<String>,
    ) -> Result<Transition, AgentLoopError> {
        let failed = AgentProcessFailed {
            exit_code: None,
            native_reason: native.or_else(|| Some(what.clone())),
            what,
        };
        let said = self.session_thread.run_on_session_thread(|session| {
            session.submit_agent_event(Input::ProcessFailed(failed))
        });
        Ok(ending_transition(&said.await?))
    }
}

/// What we say in a person's place.
fn automatic_message(text: String) -> AgentLoopJournalEntry {
    AgentLoopJournalEntry::User {
        text,
        prompt: false,
    }
}

fn ending_transition(decided: &DeliveryOutcome) -> Transition {
    let without = || Transition::new(Reason::Error, "checkrein");
    decided.task_transition().unwrap_or_else(without)
}

/// A call as the gates see it. What is no JSON, and what no tool is there for, is judged, too: every
/// counter sees every call.
fn model_call_for_gates(
    id: String,
    call: &RequestedToolCall,
    tool: Option<&impl Tool>,
) -> ToolCall {
    let (args, does) = match (&call.arguments, tool) {
        (Ok(arguments), Some(tool)) => (arguments.clone(), tool.classify_tool_call(arguments)),
        (Ok(arguments), None) => (arguments.clone(), DeclaredToolAction::Other),
        (Err(text), _) => (Value::String(text.clone()), DeclaredToolAction::Other),
    };
    let (kind, script, patch) = match does {
        DeclaredToolAction::Script(script) => (ToolKind::Shell, Some(script.to_owned()), None),
        DeclaredToolAction::Patch(patch) => (ToolKind::Write, None, Some(patch.to_owned())),
        DeclaredToolAction::Poll => (ToolKind::Poll, None, None),
        DeclaredToolAction::Other => (ToolKind::Other, None, None),
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
fn refused_call_message(decision: ToolDecision) -> String {
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
