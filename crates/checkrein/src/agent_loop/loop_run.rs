//! Runs the rounds of one agent loop: ask the model, run its tool calls, ask again, until a stop is
//! accepted or a cap, a person or a failure ends the run. Every entry is journaled before anything
//! follows from it, so a run whose process died resumes at the entry that was saved last.

use std::ops::ControlFlow;

use checkrein_core::budget;
use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::ids::TaskId;
use checkrein_core::input::{AgentProcessFailureReport, Input, SessionEnded, ToolKind};
use checkrein_core::transition::{Reason, Transition};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    AnswerTokenUsage, FinishReason, ModelError, ModelReply, ModelRequest, RequestedToolCall,
};
use checkrein_runtime::DeliveryOutcome;
use serde_json::Value;

use super::conversation::AgentLoopConversation;
use super::interrupt::{AgentLoopEarlyEnd, LoopRunEarlyEndSignal};
use super::journal::{
    AgentLoopJournalEntry, AnswerRatingJournalEntry, ModelAnswer, ResultRewriteEntry,
    ToolCallOutcome,
};
use super::reflection::{self, SelfReflectionConfig};
use super::session_thread::{ConversationNextStep, SessionThreadHandle, StartedAgentLoopSession};
use super::verifier::RunStateForVerifiers;
use super::{AgentLoop, AgentLoopEvent, DoneClaimContext, LoopResult};
use crate::session::RewrittenToolResultTexts;
use crate::tool::{CallActionDeclaredByTool, ToolInvocation, ToolOutcome};
use crate::{FinalAnswerFacts, Tool, ToolCall, ToolOutput};

/// Result of a call that never ran because the task had ended before it.
const OVER: &str = "not run: the task is over";
/// Result of the calls of a truncated answer, whose arguments may be incomplete.
const CUT: &str = "not run: the output limit cut this answer";
/// Message to a model whose answer its output limit cut.
const GO_ON: &str = "Your answer was cut by its output limit. Go on, in smaller pieces.";
/// Result of a call that was still open when a person sent a new message on resume.
const LEFT: &str = "not known: the run was interrupted, and a person says something new";
/// Reason for ending a run with a cost cap if an answer does not report its usage.
const NO_COST: &str = "caps.cost_usd cannot be held: the model's answer does not say what it used";
/// Result of a call of an interrupted run whose journaled arguments were redacted.
const NOT_KEPT: &str = "not known: the run was interrupted, and the arguments held a secret, which is not kept; look whether it took effect before you send the call again";
/// Result of a call that was running when the process died.
const UNDER_WAY: &str = "it was under way when the run was interrupted; whether it took effect is not known: look before you repeat it";

pub(super) struct AgentLoopRun<'a> {
    agent_loop: &'a AgentLoop,
    session_thread: SessionThreadHandle,
    end_signal: LoopRunEarlyEndSignal,
    shared_state: RunStateForVerifiers,
    conversation: AgentLoopConversation,
    /// Whether a cost cap applies to the run.
    cost_capped: bool,
    /// How a layer ended the run at the end of a round.
    ended_at_round: Option<Transition>,
}

/// Why Checkrein itself cannot go on.
type AgentLoopError = String;

impl<'a> AgentLoopRun<'a> {
    pub(super) fn new(
        of: &'a AgentLoop,
        desk: SessionThreadHandle,
        stop: LoopRunEarlyEndSignal,
        view: RunStateForVerifiers,
        request: ModelRequest,
    ) -> Self {
        Self {
            agent_loop: of,
            session_thread: desk,
            end_signal: stop,
            shared_state: view,
            conversation: AgentLoopConversation::new(request),
            cost_capped: false,
            ended_at_round: None,
        }
    }

    pub(super) async fn run_agent_loop_to_end(
        mut self,
        mut opened: StartedAgentLoopSession,
    ) -> LoopResult {
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
            // An error after an interrupt or a timeout may be its consequence, so the early end
            // takes precedence over it.
            Err(_) if self.end_signal.requested_early_end().is_some() => {
                self.transition_of_run_ended_early().await
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
        // A store that cannot be read has already produced the ending above. The state only fills
        // in the task's id and its count of stops.
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
        self.tell_middleware_of_session_end(&transition).await;
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

    /// Appends a message for the model. If the last answer has not been processed yet, it is
    /// counted and judged first; its remaining calls are refused.
    async fn add_message_for_model(
        &mut self,
        last: Option<(ModelAnswer, Vec<ToolCallOutcome>)>,
        text: String,
        prompt: bool,
    ) -> Result<(), AgentLoopError> {
        // A round is counted by its answer. If the pending one were skipped, a resumed run would
        // have spent fewer rounds and tokens than an uninterrupted run.
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
        // The counters below belong to a task, and a prompt opens the next task.
        if prompt {
            self.conversation.cut_before = false;
            self.conversation.revisions = 0;
            // What ended at a round before this prompt is another task.
            self.ended_at_round = None;
        }
        let said = text.clone();
        self.append_conversation_entry(AgentLoopJournalEntry::User { text, prompt })
            .await?;
        if prompt {
            // The number of answers is the key: a resume that replays this prompt opens no second
            // task.
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
            if let Some(ended) = self.ended_at_round.take() {
                return Ok(ended);
            }
            // A resumed run starts with the answer that its predecessor had not finished.
            let (answer, told) = match last.take() {
                Some(last) => last,
                None => {
                    self.agent_loop.emit_event(AgentLoopEvent::RoundStarted {
                        round: self.conversation.rounds + 1,
                    });
                    let raised = self.request_with_raised_limit();
                    let request = raised.as_ref().unwrap_or(&self.conversation.request);
                    let asked = self.agent_loop.model.ask_model(request);
                    let mut heard = self.end_signal.await_unless_run_over(asked).await;
                    // The model does not have as much: what it has is enough to go on with.
                    if raised.is_some() && matches!(heard, Some(Err(ModelError::Refused { .. }))) {
                        let asked = self.agent_loop.model.ask_model(&self.conversation.request);
                        heard = self.end_signal.await_unless_run_over(asked).await;
                    }
                    let reply = match heard {
                        None => return self.transition_of_run_ended_early().await,
                        Some(Err(error)) => return self.end_with_model_error(&error).await,
                        Some(Ok(reply)) => reply,
                    };
                    (self.record_model_reply(reply).await?, Vec::new())
                }
            };
            // A cap that cannot be measured is treated as reached: otherwise a provider that
            // reports no usage would disable it.
            if self.cost_capped && answer.model_answer_usage().cost.is_none() {
                return self.end_run_with_failure(NO_COST.to_owned(), None).await;
            }
            let calls = answer.requested_calls();
            // Only the first of consecutive cut answers is continued. The second one counts as a
            // claim of done, so a model that always hits its limit cannot loop.
            let ended = if answer.cut && !self.conversation.cut_before {
                self.continue_cut_answer(&answer, &calls, told.len())
                    .await?;
                None
            } else if answer.cut || calls.is_empty() {
                match self.request_revision_on_low_self_rating(&answer).await? {
                    ControlFlow::Break(over) => over,
                    ControlFlow::Continue(()) => {
                        self.evaluate_model_done_claim(&answer, &calls, told.len())
                            .await?
                    }
                }
            } else {
                self.run_tool_calls(&answer, &calls, &told).await?
            };
            self.conversation.cut_before = answer.cut;
            if let Some(transition) = ended {
                return Ok(transition);
            }
        }
    }

    /// Returns the request with twice the output limit, if the answer before was cut by one.
    fn request_with_raised_limit(&self) -> Option<ModelRequest> {
        if !self.conversation.cut_before {
            return None;
        }
        let request = &self.conversation.request;
        let limit = request
            .max_tokens
            .or_else(|| self.agent_loop.model.default_max_tokens())?;
        Some(ModelRequest {
            max_tokens: Some(limit.saturating_mul(2)),
            ..request.clone()
        })
    }

    /// Counts and journals an answer before anything follows from it.
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

    /// Adds an entry to the conversation and to the journal in the store.
    async fn append_conversation_entry(
        &mut self,
        entry: AgentLoopJournalEntry,
    ) -> Result<(), AgentLoopError> {
        self.conversation.add_conversation_entry(&entry);
        self.session_thread
            .run_on_session_thread(move |session| entry.save_conversation_entry(session))
            .await
    }

    /// Asks the model to continue a cut answer, which is no claim that the work is done. Calls
    /// without a result are refused, since their arguments may be incomplete.
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
        self.append_conversation_entry(build_automatic_user_message(text))
            .await
    }

    async fn record_round_end(&mut self, answer: &ModelAnswer) -> Result<(), AgentLoopError> {
        self.record_model_round_in_session(self.conversation.rounds, answer)
            .await
    }

    /// Records a round, and what layers say of it: a word goes to the model with its next request, and
    /// an end is the end of the run, wherever in it the round was.
    async fn record_model_round_in_session(
        &mut self,
        nth: u32,
        answer: &ModelAnswer,
    ) -> Result<(), AgentLoopError> {
        let (spent, key) = (answer.model_answer_usage(), format!("round:{nth}"));
        let decided = self
            .session_thread
            .run_on_session_thread(move |session| session.end_round_keyed(spent, Some(key)))
            .await?;
        match &decided.decision {
            Decision::Round(RoundDecision::Halt { .. }) => {
                self.ended_at_round = Some(ending_transition_or_error(&decided));
                Ok(())
            }
            // Said again by a run that was resumed before the conversation had it.
            Decision::Round(RoundDecision::Nudge { text }) => {
                let text = text.clone();
                self.append_conversation_entry(build_automatic_user_message(text))
                    .await
            }
            Decision::Tool(_) | Decision::Stop(_) | Decision::Noted => Ok(()),
        }
    }

    /// Lets the model rate its own answer. Continues if the answer is to be judged as it is; breaks
    /// with `None` if the model has to revise it, and with a transition if the run is over.
    async fn request_revision_on_low_self_rating(
        &mut self,
        answer: &ModelAnswer,
    ) -> Result<ControlFlow<Option<Transition>>, AgentLoopError> {
        let Some(reflect) = self.agent_loop.settings.reflection.filter(|_| !answer.cut) else {
            return Ok(ControlFlow::Continue(()));
        };
        let reflected = match self.conversation.reflected.take() {
            // The process died after the rating had been saved: it was counted on replay.
            Some(reflected) => reflected,
            None => {
                // A reflection is a model call of its own, so it must not exceed a cap that is
                // reached.
                if self.conversation.revisions >= reflect.revisions || self.is_cap_reached().await?
                {
                    return Ok(ControlFlow::Continue(()));
                }
                let quotes = QuotedPromptBlocks::new_with_random_quote_number();
                let question =
                    reflection::build_self_critique_request(&self.conversation.request, quotes);
                self.agent_loop.emit_event(AgentLoopEvent::RoundStarted {
                    round: self.conversation.rounds + 1,
                });
                let asked = self.agent_loop.model.ask_model(&question);
                let heard = match self.end_signal.await_unless_run_over(asked).await {
                    None => {
                        return self
                            .transition_of_run_ended_early()
                            .await
                            .map(Some)
                            .map(ControlFlow::Break);
                    }
                    Some(heard) => heard,
                };
                let reflected = self.reflection_from_model_reply(heard, quotes, reflect);
                self.conversation.record_answer_self_rating(&reflected);
                self.append_conversation_entry(AgentLoopJournalEntry::Reflected(reflected.clone()))
                    .await?;
                reflected
            }
        };
        let Some(text) = reflected.feedback else {
            self.record_round_end(&reflected.answer).await?;
            return Ok(ControlFlow::Continue(()));
        };
        // Two answers to record: the rated one has the round before, the rating has the current
        // one. An answer that goes on to the gates is recorded by its stop instead.
        self.record_model_round_in_session(self.conversation.rounds - 1, answer)
            .await?;
        self.record_round_end(&reflected.answer).await?;
        self.agent_loop
            .emit_event(AgentLoopEvent::SentBack { feedback: &text });
        self.append_conversation_entry(build_automatic_user_message(text))
            .await?;
        Ok(ControlFlow::Break(None))
    }

    /// Builds the journal entry of a reflection. A model that gives no answer leaves the score
    /// unknown, which is not a low score.
    fn reflection_from_model_reply(
        &self,
        heard: Result<ModelReply, ModelError>,
        quotes: QuotedPromptBlocks,
        reflect: SelfReflectionConfig,
    ) -> AnswerRatingJournalEntry {
        let nothing = Some(0);
        let none = AnswerTokenUsage {
            input: nothing,
            cache_read: nothing,
            cache_write: nothing,
            output: nothing,
        };
        match heard {
            Err(error) => AnswerRatingJournalEntry {
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
                AnswerRatingJournalEntry {
                    answer: ModelAnswer::new(reply.text, Vec::new(), cut, &reply.usage, cost),
                    feedback: said.self_reflection_feedback(reflect),
                    score: said.score,
                }
            }
        }
    }

    /// Returns whether a cap is reached. The answer is then judged without a reflection.
    async fn is_cap_reached(&self) -> Result<bool, AgentLoopError> {
        let stands = self
            .session_thread
            .run_on_session_thread(|session| session.current_session_state())
            .await?;
        Ok(stands
            .is_some_and(|(state, policy)| budget::reached_cap_at_stop(&policy, &state).is_some()))
    }

    /// Judges an answer without runnable calls: a claim of done, or a second cut answer.
    async fn evaluate_model_done_claim(
        &mut self,
        answer: &ModelAnswer,
        calls: &[RequestedToolCall],
        told: usize,
    ) -> Result<Option<Transition>, AgentLoopError> {
        for call in calls.iter().skip(told) {
            self.answer_call_with_refusal(call, CUT.to_owned()).await?;
        }
        // Host verifiers run inside of the stop below and read this state.
        self.shared_state
            .publish_run_state_to_verifiers(DoneClaimContext {
                messages: self.conversation.request.messages.clone(),
                output: answer.text.clone(),
                rounds: self.conversation.rounds,
            });
        let last = FinalAnswerFacts {
            usage: answer.model_answer_usage(),
            truncated: answer.cut,
            calls_pending: !calls.is_empty(),
        };
        // The round is the key: a resumed run that repeats the claim gets the recorded decision.
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
                self.append_conversation_entry(build_automatic_user_message(text))
                    .await?;
                Ok(None)
            }
            StopDecision::Accept { .. } | StopDecision::Halt { .. } => {
                Ok(Some(ending_transition_or_error(&decided)))
            }
        }
    }

    /// Runs the calls of one answer in order. `told` holds the results that were journaled before
    /// the process of an earlier run died.
    async fn run_tool_calls(
        &mut self,
        answer: &ModelAnswer,
        calls: &[RequestedToolCall],
        told: &[ToolCallOutcome],
    ) -> Result<Option<Transition>, AgentLoopError> {
        self.process_last_result_on_resume(calls, told).await?;
        let mut calls = calls.iter().enumerate().skip(told.len());
        while let Some((nth, call)) = calls.next() {
            // The journal holds placeholders in place of the secrets: running the call would pass
            // them to the tool.
            if answer.are_call_arguments_redacted(nth) {
                self.answer_call_with_refusal(call, NOT_KEPT.to_owned())
                    .await?;
                continue;
            }
            let ended = self.run_tool_call(nth, call).await;
            if !matches!(ended, Ok(None)) {
                // Providers reject a conversation in which a call has no result.
                for (_, call) in calls {
                    self.answer_call_with_refusal(call, OVER.to_owned()).await?;
                }
                return ended;
            }
        }
        self.record_round_end(answer).await?;
        Ok(None)
    }

    /// Passes the last journaled result through the session and its middleware again. The process
    /// may have died between saving the result and counting it.
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

    /// Builds the gates' view of a call under an id of our own. A provider may use one id twice,
    /// and the runtime judges two calls with the same id only once.
    fn tool_call_for_gates(&self, nth: usize, call: &RequestedToolCall) -> ToolCall {
        build_tool_call_for_gates(
            format!("{}.{nth}", self.conversation.rounds),
            call,
            self.find_tool(call),
        )
    }

    /// Counts a result and lets middleware decide what the model sees of it.
    async fn pass_result_through_middleware(
        &mut self,
        nth: usize,
        call: &RequestedToolCall,
        outcome: &ToolCallOutcome,
    ) -> Result<(), AgentLoopError> {
        // A refused call has no output; its text is ours and needs no middleware.
        let Some(ran) = outcome.ran.clone() else {
            return Ok(());
        };
        let (gated, failed) = (self.tool_call_for_gates(nth, call), outcome.failed);
        let passed = self
            .session_thread
            .run_on_session_thread(move |session| {
                session.submit_result_and_get_rewritten_text(&gated, &Value::String(ran), failed)
            })
            .await;
        let passed = match passed {
            Ok(passed) => passed,
            Err(broken) => {
                // Not all middleware has seen the result. It must not reach the caller of this run
                // with the conversation, which may hold a secret that a layer would have removed.
                let given = "withheld: the task is over".to_owned();
                self.conversation
                    .add_conversation_entry(&AgentLoopJournalEntry::ResultRewritten(
                        ResultRewriteEntry { given, kept: None },
                    ));
                return Err(broken);
            }
        };
        let Some(RewrittenToolResultTexts {
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
                // The run ends with `broken`. The refusal only completes the conversation, so an
                // error in saving it is ignored.
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
                return Ok(Some(ending_transition_or_error(&decided)));
            }
            refused => {
                self.answer_call_with_refusal(call, refused_call_message(refused))
                    .await?;
                return Ok(None);
            }
        };
        // A repeated decision means that an earlier process got this far. Whether its call took
        // effect is not known, so it does not run a second time.
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
                        return self.transition_of_run_ended_early().await.map(Some);
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
        // Saved before it is counted: a resumed run counts a saved result, but could not
        // reconstruct a result that was counted and never saved.
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

    /// Answers a call with the reason why it did not run.
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

    /// Tells the middleware that listens for the end of sessions.
    async fn tell_middleware_of_session_end(&self, transition: &Transition) {
        let ended = SessionEnded {
            native_reason: transition.reason.as_str().to_owned(),
        };
        // The run is over and its ending is known: an error of the store here cannot change it.
        let _ = self
            .session_thread
            .run_on_session_thread(move |session| session.deliver_session_end(ended).map(drop))
            .await;
    }

    /// Returns the transition of a run that an interrupt or the clock ended.
    async fn transition_of_run_ended_early(&self) -> Result<Transition, AgentLoopError> {
        match self.end_signal.requested_early_end() {
            Some(AgentLoopEarlyEnd::Ended(transition)) => Ok(transition),
            Some(AgentLoopEarlyEnd::Interrupted) | None => {
                let said = self.session_thread.run_on_session_thread(|session| {
                    session.submit_agent_event(Input::Interrupted)
                });
                Ok(ending_transition_or_error(&said.await?))
            }
        }
    }

    /// Ends the run because the model did not answer. The model has already retried what can be
    /// retried.
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
        let failed = AgentProcessFailureReport {
            exit_code: None,
            native_reason: native.or_else(|| Some(what.clone())),
            what,
        };
        let said = self.session_thread.run_on_session_thread(|session| {
            session.submit_agent_event(Input::ProcessFailed(failed))
        });
        Ok(ending_transition_or_error(&said.await?))
    }
}

/// Builds a user message that the loop sends in a person's place; it opens no task.
fn build_automatic_user_message(text: String) -> AgentLoopJournalEntry {
    AgentLoopJournalEntry::User {
        text,
        prompt: false,
    }
}

fn ending_transition_or_error(decided: &DeliveryOutcome) -> Transition {
    let without = || Transition::new(Reason::Error, "checkrein");
    decided.task_transition().unwrap_or_else(without)
}

/// Builds a call as the gates see it. Calls of unknown tools and calls whose arguments are no JSON
/// are judged, too, so that every counter sees every call.
fn build_tool_call_for_gates(
    id: String,
    call: &RequestedToolCall,
    tool: Option<&impl Tool>,
) -> ToolCall {
    let (args, does) = match (&call.arguments, tool) {
        (Ok(arguments), Some(tool)) => (arguments.clone(), tool.classify_tool_call(arguments)),
        (Ok(arguments), None) => (arguments.clone(), CallActionDeclaredByTool::Other),
        (Err(text), _) => (Value::String(text.clone()), CallActionDeclaredByTool::Other),
    };
    let (kind, script, patch) = match does {
        CallActionDeclaredByTool::Script(script) => {
            (ToolKind::Shell, Some(script.to_owned()), None)
        }
        CallActionDeclaredByTool::Patch(patch) => (ToolKind::Write, None, Some(patch.to_owned())),
        CallActionDeclaredByTool::Poll => (ToolKind::Poll, None, None),
        CallActionDeclaredByTool::Other => (ToolKind::Other, None, None),
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

/// Renders the result of a call that must not run as it is.
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
