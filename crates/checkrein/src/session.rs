//! One conversation with an agent: prompts, tool calls, stops.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    AgentAnswerFlags, Input, PromptSubmitted, RoundEnded, SessionEnded, StopRequested, TokenUsage,
    ToolKind, ToolRequestFacts, ToolRequested, ToolReturned, TreeReadError,
};
use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::tool_action::{ToolAction, classify_call};
use checkrein_core::transition::Transition;
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, RewrittenResult, RuntimeError, ToolFactsBuilder,
    ToolResponse, tool_result_text,
};
use serde_json::Value;

use crate::Engine;

/// A session of an [`Engine`].
pub struct Session<'a> {
    engine: &'a Engine,
    id: SessionId,
    /// Since when: claims of an earlier process in the same session are others.
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
    /// The script, if it is a shell tool: judged by the exec policy.
    pub script: Option<String>,
    /// The patch, if it applies one: judged by what it would write.
    pub patch: Option<String>,
}

/// What is told of a result that came before, and of which nobody knows what middleware made.
const WITHHELD: &str = "withheld: it came back before, and what middleware made of it then is not known; \
    if you need it, ask for it again";

/// What middleware made of a result, as text; `None` of what it left alone.
pub(crate) struct RewrittenResultTexts {
    pub(crate) for_agent: Option<String>,
    pub(crate) for_history: Option<String>,
}

/// What an answer of a model took, as far as that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerUsage {
    /// Output tokens, thinking included.
    pub output_tokens: Option<u64>,
    /// All of it, in millionths of a dollar.
    pub cost: Option<u64>,
}

/// What is known of an answer in which an agent says it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FinalAnswer {
    /// What it took.
    pub usage: AnswerUsage,
    /// Its output limit cut it.
    pub truncated: bool,
    /// Tool calls of the same answer did not run.
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

    /// What it does: as its host says, else as for any agent's tool of this name.
    fn classify_tool_action(&self) -> ToolAction {
        match (&self.script, &self.patch) {
            (Some(script), _) => ToolAction::shell_action_from_script(script),
            (None, Some(patch)) => ToolAction::action_from_patch_text(patch),
            (None, None) => classify_call(&self.tool, &self.args),
        }
    }

    fn call_digest(&self) -> checkrein_core::digest::EightByteDigest {
        let args = Digest::hash_json(&self.args);
        Digest::hash_parts([self.tool.as_bytes(), &args.as_bytes()[..]]).to_short_digest()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(engine: &'a Engine, id: SessionId) -> Self {
        Self {
            engine,
            id,
            started_ms: checkrein_runtime::now_millis().0,
            claims: AtomicU64::new(0),
        }
    }

    /// Its id in the store.
    pub fn session_id(&self) -> &SessionId {
        &self.id
    }

    /// A person's request: opens the task.
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

    /// The same; what comes again after so many answers is known already.
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

    /// The agent wants to use a tool. With the answer: every [`ToolDecision`] but `Allow`
    /// and `Nudge` means that it must not run as it is.
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
            may_act: call.kind == ToolKind::Other,
            reports_outcome: false,
            tokens: None,
        });
        let key = Some(format!("tool:{}", call.id));
        let decided = self.deliver_input_to_runtime(input, key, Some(call), None)?;
        let decision = match &decided.decision {
            Decision::Tool(decision) => decision.clone(),
            Decision::Stop(_) | Decision::Noted => ToolDecision::Allow,
        };
        Ok((decision, decided))
    }

    /// What came of a call that ran. With the answer: what layers of middleware made of the result,
    /// which the agent is given in its place.
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
    ) -> Result<RewrittenResult, RuntimeError> {
        let looked = self.has_result_middleware()?;
        let decided = self.submit_tool_result(call, result, error)?;
        Ok(match looked && decided.repeated {
            true => RewrittenResult {
                for_agent: Some(Value::String(WITHHELD.to_owned())),
                for_history: None,
            },
            false => decided.rewritten,
        })
    }

    /// Whether any middleware looks at results.
    fn has_result_middleware(&self) -> Result<bool, RuntimeError> {
        let stages = [MiddlewareStage::AfterTool, MiddlewareStage::PersistResult];
        self.engine
            .inner_runtime()
            .has_layers_at_stages(&self.id, &stages)
    }

    fn submit_tool_result(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let input = Input::ToolReturned(ToolReturned {
            scope: ScopeId::main_scope(),
            call_id: Some(call.id.clone()),
            call: call.call_digest(),
            outcome: Digest::hash_json(result).to_short_digest(),
            error,
            wrote: call.kind == ToolKind::Write && !error,
            tokens: None,
        });
        let key = Some(format!("returned:{}", call.id));
        let returned = ToolResponse {
            tool: &call.tool,
            args: &call.args,
            result,
        };
        self.deliver_input_to_runtime(input, key, None, Some(returned))
    }

    /// The same as text, for our own loop; `None` if no middleware looks at results.
    pub(crate) fn tool_result_text_after_middleware(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<Option<RewrittenResultTexts>, RuntimeError> {
        let looked = self.has_result_middleware()?;
        let RewrittenResult {
            for_agent: given,
            for_history: kept,
        } = self.returned(call, result, error)?;
        Ok(looked.then(|| RewrittenResultTexts {
            for_agent: given.as_ref().map(tool_result_text),
            for_history: kept.as_ref().map(tool_result_text),
        }))
    }

    /// A model response and its calls are over.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn end_round(&self, spent: AnswerUsage) -> Result<(), RuntimeError> {
        self.end_round_keyed(spent, None)
    }

    /// The same; what comes again with this key is known already.
    pub(crate) fn end_round_keyed(
        &self,
        spent: AnswerUsage,
        key: Option<String>,
    ) -> Result<(), RuntimeError> {
        let round = Input::RoundEnded(RoundEnded {
            scope: ScopeId::main_scope(),
            tokens: to_token_usage(spent),
        });
        self.deliver_input_to_runtime(round, key, None, None)
            .map(drop)
    }

    /// The agent says it is done. With a `Continue` comes, as [`DeliveryOutcome::feedback_text`], what to send back.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn stop(&self, message: &str) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, FinalAnswer::default(), None, self.next_stop_key())
    }

    /// The same, with what is known of the answer in which it says so.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn request_stop_with_answer(
        &self,
        message: &str,
        answer: FinalAnswer,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, answer, None, self.next_stop_key())
    }

    /// The same; what comes again with this key is answered as it was.
    pub(crate) fn request_stop_keyed(
        &self,
        key: String,
        message: &str,
        answer: FinalAnswer,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, answer, None, key)
    }

    /// The agent's program is gone without a word that counts: its work is judged as at a
    /// stop. With `over` nobody is there any more to send back, and if the work is not
    /// accepted the task ends so.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn report_agent_exit(
        &self,
        message: &str,
        over: Option<Transition>,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        self.deliver_stop(message, FinalAnswer::default(), over, self.next_stop_key())
    }

    /// Whether the required checks of the newest task were about the tree as it is now. What an agent
    /// left running may have changed it after its last stop: then it is judged anew by [`Self::report_agent_exit`].
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

    /// A claim of its own: never the same event as a hook's stop in this session.
    fn next_stop_key(&self) -> String {
        let nth = self.claims.fetch_add(1, Ordering::Relaxed);
        format!("{}:{nth}", self.started_ms)
    }

    fn deliver_stop(
        &self,
        message: &str,
        answer: FinalAnswer,
        over: Option<Transition>,
        key: String,
    ) -> Result<(StopDecision, DeliveryOutcome), RuntimeError> {
        let input = Input::StopRequested(StopRequested {
            scope: ScopeId::main_scope(),
            message: message.to_owned(),
            message_digest: Digest::hash_bytes(message.as_bytes()),
            tree: Err(TreeReadError {
                why: "not read".to_owned(),
                cut: false,
            }),
            block_cap: None,
            truncated: answer.truncated,
            background: 0,
            agent_ending: over,
            answer: AgentAnswerFlags {
                calls_pending: answer.calls_pending,
                ..AgentAnswerFlags::default()
            },
            judges: Box::default(),
            tokens: to_token_usage(answer.usage),
        });
        let mut decided =
            self.deliver_input_to_runtime(input, Some(format!("claim:{key}")), None, None)?;
        match decided.decision.clone() {
            Decision::Stop(decision) => {
                if let (true, StopDecision::Continue { feedback }) = (decided.repeated, &decision) {
                    // Whoever asks again was not told.
                    decided.feedback_text = Some(
                        self.engine
                            .inner_runtime()
                            .render_feedback(feedback, decided.held_up_by),
                    );
                }
                Ok((decision, decided))
            }
            // A stop is always answered by a stop decision.
            Decision::Tool(_) | Decision::Noted => Err(RuntimeError::Deadline),
        }
    }

    /// The text without secrets; `None` if it has none.
    pub(crate) fn redact_secrets(&self, text: &str) -> Option<String> {
        match self.engine.inner_runtime().redact_text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        }
    }

    /// Adds to the conversation that is kept for an agent of our own.
    pub(crate) fn append_conversation_message(&self, body: &[u8]) -> Result<(), RuntimeError> {
        self.engine
            .inner_runtime()
            .append_conversation_message(&self.id, body)
    }

    /// That conversation so far.
    pub(crate) fn messages(&self) -> Result<Vec<Vec<u8>>, RuntimeError> {
        self.engine.inner_runtime().conversation_messages(&self.id)
    }

    /// The conversation is over, if a layer of middleware wants to know.
    pub(crate) fn deliver_session_end(&self, ended: SessionEnded) -> Result<(), RuntimeError> {
        let runtime = self.engine.inner_runtime();
        match runtime.has_layers_at_stages(&self.id, &[MiddlewareStage::SessionEnd])? {
            true => self
                .submit_agent_event(Input::SessionEnded(ended))
                .map(drop),
            false => Ok(()),
        }
    }

    /// Takes any other news in.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn submit_agent_event(&self, input: Input) -> Result<DeliveryOutcome, RuntimeError> {
        self.deliver_input_to_runtime(input, None, None, None)
    }

    /// The session as it is now, with its sealed policy.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn current_session_state(&self) -> Result<Option<(SessionState, Policy)>, RuntimeError> {
        self.engine
            .inner_runtime()
            .load_session_state_and_policy(&self.id)
    }

    /// Whether something could be recorded now: for who watches an agent that would work on unrecorded.
    ///
    /// # Errors
    /// If the store cannot be written, or somebody else has been writing it for too long.
    pub fn check_writable(&self) -> Result<(), RuntimeError> {
        self.engine.inner_runtime().check_store_writable(&self.id)
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
        input: 0,
        cost: spent.cost,
        cursor: String::new(),
    })
}
