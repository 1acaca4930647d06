//! Provides [`Session`], one conversation with an agent: prompts, tool calls and stops. Each method
//! turns its arguments into one event for the runtime and returns what the runtime decided.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    AgentAnswerFacts, Input, PromptSubmitted, RoundEnded, SessionEnded, StopRequested, TokenUsage,
    ToolKind, ToolRequestFacts, ToolRequested, ToolReturned, TreeReadError,
};
use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::tool_action::{ToolAction, classify_call};
use checkrein_core::tool_outcome::tool_outcome_facts;
use checkrein_core::transition::Transition;
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, RewrittenToolResult, RuntimeError, ToolFactsBuilder,
    ToolResponse, tool_result_text,
};
use serde_json::Value;

use crate::Engine;

/// A session of an [`Engine`].
pub struct Session<'a> {
    engine: &'a Engine,
    id: SessionId,
    /// When this process opened the session. It distinguishes stops from those of an earlier
    /// process in the same session.
    started_ms: u64,
    claims: AtomicU64,
}

/// A tool call that an agent wants to make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The agent's id of the call, unique in the session.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// What kind of tool it is.
    pub kind: ToolKind,
    /// Its arguments.
    pub args: Value,
    /// The script, if the tool is a shell; the exec policy judges it.
    pub script: Option<String>,
    /// The patch, if the tool applies one; it is judged by what it would write.
    pub patch: Option<String>,
}

/// Text given in place of a result that was delivered before: what middleware made of it then is
/// not stored.
const WITHHELD: &str = "withheld: it came back before, and what middleware made of it then is not known; \
    if you need it, ask for it again";

/// A result as middleware rewrote it, as text; `None` for what it left unchanged.
pub(crate) struct RewrittenToolResultTexts {
    pub(crate) for_agent: Option<String>,
    pub(crate) for_history: Option<String>,
}

/// Tokens and cost of a model's answer, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerUsage {
    /// Output tokens, thinking included.
    pub output_tokens: Option<u64>,
    /// The cost of the whole answer, in millionths of a dollar.
    pub cost: Option<u64>,
}

/// Facts about the answer in which an agent claims to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FinalAnswerFacts {
    /// Its tokens and cost.
    pub usage: AnswerUsage,
    /// Whether its output limit cut it.
    pub truncated: bool,
    /// Whether tool calls of the same answer did not run.
    pub calls_pending: bool,
}

impl ToolCall {
    /// A call of the built-in shell tool.
    pub fn shell_call(id: &str, command: &str) -> Self {
        Self {
            id: id.to_owned(),
            tool: "shell".to_owned(),
            kind: ToolKind::Shell,
            args: serde_json::json!({ "command": command }),
            script: Some(command.to_owned()),
            patch: None,
        }
    }

    /// Classifies the call: by the host's declaration, or else by the tool's name, as for any
    /// agent.
    fn classify_tool_action(&self) -> ToolAction {
        match (&self.script, &self.patch) {
            // The host's declaration counts more than the tool's name, which the host is free to
            // choose.
            (Some(script), _) => ToolAction::shell_action_from_script(script),
            (None, Some(patch)) => ToolAction::action_from_patch_text(patch),
            (None, None) => classify_call(&self.tool, &self.args),
        }
    }

    fn call_digest(&self) -> checkrein_core::digest::EightByteDigest {
        let args = Digest::hash_json(&self.args);
        Digest::hash_parts([self.tool.as_bytes(), &args.as_bytes()[..]]).to_eight_byte_digest()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(engine: &'a Engine, id: SessionId) -> Self {
        Self {
            engine,
            id,
            // See `next_stop_key`: the counter below starts at 0 in each process.
            started_ms: checkrein_runtime::now_millis().0,
            claims: AtomicU64::new(0),
        }
    }

    /// Its id in the store.
    pub fn session_id(&self) -> &SessionId {
        &self.id
    }

    /// Submits a person's request, which opens a task.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn prompt(&self, text: &str) -> Result<(), RuntimeError> {
        let prompt = PromptSubmitted {
            text: text.to_owned(),
            tree: None,
            tokens: None,
            tells_calls: false,
            acts: None,
        };
        self.submit_agent_event(Input::PromptSubmitted(prompt))
            .map(drop)
    }

    /// Like [`Self::prompt`], keyed by the number of answers before it: a repeated prompt has no
    /// effect.
    pub(crate) fn submit_prompt_keyed(
        &self,
        answers: usize,
        text: &str,
    ) -> Result<(), RuntimeError> {
        let prompt = Input::PromptSubmitted(PromptSubmitted {
            text: text.to_owned(),
            tree: None,
            tokens: None,
            tells_calls: false,
            acts: None,
        });
        let key = format!("prompt:{answers}");
        self.deliver_input_to_runtime(prompt, Some(key), None, None)
            .map(drop)
    }

    /// Asks whether a tool call may run. Every [`ToolDecision`] but `Allow` and `Nudge` means that
    /// it must not run as it is.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge; do not run the tool then.
    pub fn tool(&self, call: &ToolCall) -> Result<(ToolDecision, DeliveryOutcome), RuntimeError> {
        let input = Input::ToolRequested(ToolRequested {
            scope: ScopeId::main_scope(),
            call_id: Some(call.id.clone()),
            tool: call.tool.clone(),
            kind: call.kind,
            args: call.args.to_string(),
            call: call.call_digest(),
            facts: ToolRequestFacts::default(),
            can_ask: false,
            // The effects of an unknown tool are unknown, so its calls count as acts that may void
            // evidence.
            may_act: call.kind == ToolKind::Other,
            reports_outcome: false,
            openclaw: None,
            waits: classify_call(&call.tool, &call.args).runs_waiting_command(),
            tokens: None,
        });
        let key = Some(format!("tool:{}", call.id));
        // Keyed by the call's id: a repeated request, such as that of a resumed run, gets the
        // recorded decision and counts once.
        let decided = self.deliver_input_to_runtime(input, key, Some(call), None)?;
        let decision = match &decided.decision {
            Decision::Tool(decision) => decision.clone(),
            Decision::Stop(_) | Decision::Noted | Decision::Round(_) => ToolDecision::Allow,
        };
        Ok((decision, decided))
    }

    /// Reports the result of a call that ran. Returns the result as layers of middleware rewrote
    /// it, which the agent is given in its place.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge; where there is middleware, the result has then not been
    /// looked at by all of it. A result that comes again is withheld there: what was made of it the
    /// first time is not kept.
    pub fn returned(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<RewrittenToolResult, RuntimeError> {
        let looked = self.has_result_middleware()?;
        let decided = self.submit_tool_result(call, result, error)?;
        Ok(match looked && decided.repeated {
            // Without the text that middleware made of it, the original must not be given out: a
            // layer may have removed a secret from it.
            true => RewrittenToolResult {
                for_agent: Some(Value::String(WITHHELD.to_owned())),
                for_history: None,
            },
            false => decided.rewritten,
        })
    }

    /// Returns whether any middleware looks at results.
    fn has_result_middleware(&self) -> Result<bool, RuntimeError> {
        let stages = [MiddlewareStage::AfterTool, MiddlewareStage::PersistResult];
        self.engine
            .inner_runtime()
            .has_middleware_at_stages(&self.id, &stages)
    }

    fn submit_tool_result(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let input = Input::ToolReturned(ToolReturned {
            excerpt: None,
            scope: ScopeId::main_scope(),
            call_id: Some(call.id.clone()),
            call: call.call_digest(),
            // The digest is of the result as it was: redaction and middleware must not hide a
            // repeated result from the loop detectors.
            outcome: Digest::hash_json(result).to_eight_byte_digest(),
            error,
            wrote: call.kind == ToolKind::Write && !error,
            facts: tool_outcome_facts(&call.tool, result, error),
            tokens: None,
        });
        // A request and its result are different events of the same call id, so their keys have
        // prefixes.
        let key = Some(format!("returned:{}", call.id));
        let returned = ToolResponse {
            tool: &call.tool,
            args: &call.args,
            result,
        };
        self.deliver_input_to_runtime(input, key, None, Some(returned))
    }

    /// Like [`Self::returned`], as text for the built-in loop; `None` if no middleware looks at
    /// results.
    pub(crate) fn submit_result_and_get_rewritten_text(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<Option<RewrittenToolResultTexts>, RuntimeError> {
        let looked = self.has_result_middleware()?;
        let RewrittenToolResult {
            for_agent: given,
            for_history: kept,
        } = self.returned(call, result, error)?;
        Ok(looked.then(|| RewrittenToolResultTexts {
            for_agent: given.as_ref().map(tool_result_text),
            for_history: kept.as_ref().map(tool_result_text),
        }))
    }

    /// Reports the end of a round: a model response and its calls.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn end_round(&self, spent: AnswerUsage) -> Result<(), RuntimeError> {
        self.end_round_keyed(spent, None).map(drop)
    }

    /// Like [`Self::end_round`]. Returns what layers have to say of the round: a word for the next one,
    /// or the end of the loop.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn end_round_with_answer(
        &self,
        spent: AnswerUsage,
    ) -> Result<(Option<RoundDecision>, DeliveryOutcome), RuntimeError> {
        let decided = self.end_round_keyed(spent, None)?;
        let decision = match &decided.decision {
            Decision::Round(decision) => Some(decision.clone()),
            Decision::Tool(_) | Decision::Stop(_) | Decision::Noted => None,
        };
        Ok((decision, decided))
    }

    /// Like [`Self::end_round`], with a key: a repeated report has no effect.
    pub(crate) fn end_round_keyed(
        &self,
        spent: AnswerUsage,
        key: Option<String>,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let round = Input::RoundEnded(RoundEnded {
            scope: ScopeId::main_scope(),
            tokens: to_token_usage(spent),
        });
        self.deliver_input_to_runtime(round, key, None, None)
    }

    /// Judges a claim of done. With `Continue`, [`DeliveryOutcome::feedback_text`] holds what to
    /// send back.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn stop(&self, message: &str) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(
            message,
            FinalAnswerFacts::default(),
            None,
            self.next_stop_key(),
        )
    }

    /// Like [`Self::stop`], with facts about the answer that holds the claim.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn request_stop_with_answer(
        &self,
        message: &str,
        answer: FinalAnswerFacts,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, answer, None, self.next_stop_key())
    }

    /// Like [`Self::request_stop_with_answer`], with a key: a repeated claim gets the recorded
    /// decision.
    pub(crate) fn request_stop_keyed(
        &self,
        key: String,
        message: &str,
        answer: FinalAnswerFacts,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, answer, None, key)
    }

    /// Reports that the agent's program ended without a claim of done. Its work is judged as at a
    /// stop. With `over` there is no agent left to send back, and the task ends with that
    /// transition unless the work is accepted.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn report_agent_exit(
        &self,
        message: &str,
        over: Option<Transition>,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(
            message,
            FinalAnswerFacts::default(),
            over,
            self.next_stop_key(),
        )
    }

    /// Returns whether the required checks of the newest task were about the current tree.
    /// Processes that an agent left running may have changed it after the last stop;
    /// [`Self::report_agent_exit`] then judges it again.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn is_acceptance_still_valid(&self) -> Result<bool, RuntimeError> {
        let patience = Deadline {
            due_at: None,
            cancelled: self.engine.cancel_flag(),
        };
        self.engine
            .inner_runtime()
            .is_accepted_tree_current(&self.id, patience)
    }

    /// Returns a new key for each claim, so that it is never taken for a hook's stop in this
    /// session.
    fn next_stop_key(&self) -> String {
        let nth = self.claims.fetch_add(1, Ordering::Relaxed);
        format!("{}:{nth}", self.started_ms)
    }

    fn deliver_stop(
        &self,
        message: &str,
        answer: FinalAnswerFacts,
        over: Option<Transition>,
        key: String,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        let input = Input::StopRequested(StopRequested {
            scope: ScopeId::main_scope(),
            message: message.to_owned(),
            message_digest: Digest::hash_bytes(message.as_bytes()),
            // The runtime reads the tree itself before it judges the stop.
            tree: Err(TreeReadError {
                why: "not read".to_owned(),
                cut: false,
            }),
            block_cap: None,
            truncated: answer.truncated,
            background: 0,
            agent_ending: over,
            answer: AgentAnswerFacts {
                calls_pending: answer.calls_pending,
                ..AgentAnswerFacts::default()
            },
            judges: Box::default(),
            tokens: to_token_usage(answer.usage),
        });
        // The prefix separates claims from the keys of prompts, calls and rounds in the same
        // session.
        let mut decided =
            self.deliver_input_to_runtime(input, Some(format!("claim:{key}")), None, None)?;
        match decided.decision.clone() {
            Decision::Stop(decision) => {
                if let (true, StopDecision::Continue { feedback }) = (decided.repeated, &decision) {
                    // A repeated claim means that the first answer did not arrive. The decision is
                    // stored, its text is not, so the text is rendered again.
                    decided.feedback_text = Some(
                        self.engine
                            .inner_runtime()
                            .render_feedback(feedback, decided.held_up_by),
                    );
                }
                Ok((decision, decided))
            }
            // A stop is always answered by a stop decision.
            Decision::Tool(_) | Decision::Noted | Decision::Round(_) => Err(RuntimeError::Deadline),
        }
    }

    /// Returns the text without its secrets; `None` if it contains none.
    pub(crate) fn redact_secrets(&self, text: &str) -> Option<String> {
        match self.engine.inner_runtime().redact_text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        }
    }

    /// Appends an entry to the stored conversation of the built-in loop.
    pub(crate) fn append_conversation_message(&self, body: &[u8]) -> Result<(), RuntimeError> {
        self.engine
            .inner_runtime()
            .append_conversation_message(&self.id, body)
    }

    /// Returns the entries of that conversation so far.
    pub(crate) fn messages(&self) -> Result<Vec<Vec<u8>>, RuntimeError> {
        self.engine.inner_runtime().conversation_messages(&self.id)
    }

    /// Delivers the end of the conversation, if a layer of middleware listens for it.
    pub(crate) fn deliver_session_end(&self, ended: SessionEnded) -> Result<(), RuntimeError> {
        let runtime = self.engine.inner_runtime();
        match runtime.has_middleware_at_stages(&self.id, &[MiddlewareStage::SessionEnd])? {
            true => self
                .submit_agent_event(Input::SessionEnded(ended))
                .map(drop),
            // Without such a layer no event is recorded: a session of the library has no end of its
            // own.
            false => Ok(()),
        }
    }

    /// Submits any other event.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn submit_agent_event(&self, input: Input) -> Result<DeliveryOutcome, RuntimeError> {
        self.deliver_input_to_runtime(input, None, None, None)
    }

    /// Returns the current state of the session, with its sealed policy.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn current_session_state(&self) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        self.engine
            .inner_runtime()
            .load_session_state_and_policy(&self.id)
    }

    /// Checks that an event could be recorded now, so that a host can stop an agent that would
    /// otherwise go on unrecorded.
    ///
    /// # Errors
    /// If the store cannot be written, or somebody else has been writing it for too long.
    pub fn check_writable(&self) -> Result<(), RuntimeError> {
        self.engine.inner_runtime().ensure_store_writable(&self.id)
    }

    fn deliver_input_to_runtime(
        &self,
        input: Input,
        key: Option<String>,
        call: Option<&ToolCall>,
        returned: Option<ToolResponse<'_>>,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let action = call.map(ToolCall::classify_tool_action);
        let delivery = EventDelivery {
            session: self.id.clone(),
            source: SourceName::new("library"),
            key,
            input,
            facts: action
                .as_ref()
                .map_or_else(Default::default, ToolFactsBuilder::new),
            working_folder: None,
            usage: None,
            tool_response: returned,
            seen_tool_response: None,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let patience = Deadline {
            due_at: None,
            cancelled: self.engine.cancel_flag(),
        };
        let watch = self.engine.progress_handler();
        self.engine
            .inner_runtime()
            .deliver_event(delivery, patience, &|progress| watch(progress))
    }
}

fn to_token_usage(spent: AnswerUsage) -> Option<TokenUsage> {
    spent.output_tokens.map(|output| TokenUsage {
        output,
        // The library reports output tokens only.
        input: 0,
        cost: spent.cost,
        cursor: String::new(),
    })
}
