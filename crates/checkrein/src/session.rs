//! One conversation with an agent: prompts, tool calls, stops.

use std::sync::atomic::{AtomicU64, Ordering};

use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    AnswerFact, Input, PromptSubmitted, SessionEnded, StopRequested, TokenUse, ToolFacts, ToolKind,
    ToolRequested, ToolReturned, TreeUnknown,
};
use checkrein_core::layers::Stage;
use checkrein_core::policy::Policy;
use checkrein_core::state::State;
use checkrein_core::transition::Transition;
use checkrein_runtime::{Decided, Delivery, Patience, Returned, Rewritten, RuntimeError};
use serde_json::Value;

use crate::Engine;

/// A session of an [`Engine`].
pub struct Session<'a> {
    engine: &'a Engine,
    id: SessionId,
    /// Since when: claims of an earlier process in the same session are others.
    since: u64,
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

/// What is known of an answer in which an agent says it is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastAnswer {
    /// Its output tokens, thinking included, if known.
    pub output: Option<u64>,
    /// Its output limit cut it.
    pub truncated: bool,
    /// Tool calls of the same answer did not run.
    pub calls_pending: bool,
}

impl ToolCall {
    /// A call of the built-in shell tool.
    pub fn shell(id: &str, command: &str) -> Self {
        Self {
            id: id.to_owned(),
            tool: "shell".to_owned(),
            kind: ToolKind::Shell,
            args: serde_json::json!({ "command": command }),
            script: Some(command.to_owned()),
            patch: None,
        }
    }

    fn digest(&self) -> checkrein_core::digest::Short {
        let args = Digest::of_json(&self.args);
        Digest::of_parts([self.tool.as_bytes(), &args.as_bytes()[..]]).short()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(engine: &'a Engine, id: SessionId) -> Self {
        Self {
            engine,
            id,
            since: checkrein_runtime::now().0,
            claims: AtomicU64::new(0),
        }
    }

    /// Its id in the store.
    pub fn id(&self) -> &SessionId {
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
        };
        self.take(Input::PromptSubmitted(prompt)).map(drop)
    }

    /// The agent wants to use a tool. With the answer: every [`ToolDecision`] but `Allow`
    /// and `Nudge` means that it must not run as it is.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge; do not run the tool then.
    pub fn tool(&self, call: &ToolCall) -> Result<(ToolDecision, Decided), RuntimeError> {
        let input = Input::ToolRequested(ToolRequested {
            scope: ScopeId::main(),
            call_id: Some(call.id.clone()),
            tool: call.tool.clone(),
            kind: call.kind,
            args: call.args.to_string(),
            call: call.digest(),
            facts: ToolFacts::default(),
            can_ask: false,
            may_act: call.kind == ToolKind::Other,
            tokens: None,
        });
        let key = Some(format!("tool:{}", call.id));
        let decided = self.deliver(input, key, Some(call), None)?;
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
    /// looked at by all of it.
    pub fn returned(
        &self,
        call: &ToolCall,
        result: &Value,
        error: bool,
    ) -> Result<Rewritten, RuntimeError> {
        let input = Input::ToolReturned(ToolReturned {
            scope: ScopeId::main(),
            call_id: Some(call.id.clone()),
            call: call.digest(),
            outcome: Digest::of_json(result).short(),
            error,
            wrote: call.kind == ToolKind::Write && !error,
            tokens: None,
        });
        let key = Some(format!("returned:{}", call.id));
        let returned = Returned {
            tool: &call.tool,
            args: &call.args,
            result,
        };
        let decided = self.deliver(input, key, None, Some(returned))?;
        Ok(decided.rewritten)
    }

    /// A model response and its calls are over. `output` are its output tokens, if known.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn round(&self, output: Option<u64>) -> Result<(), RuntimeError> {
        let tokens = tokens(output);
        let scope = ScopeId::main();
        self.take(Input::RoundEnded(checkrein_core::input::Scoped {
            scope,
            tokens,
        }))
        .map(drop)
    }

    /// The agent says it is done. With a `Continue` comes, as [`Decided::text`], what to send back.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn stop(&self, message: &str) -> Result<(StopDecision, Decided), RuntimeError> {
        self.claim(message, LastAnswer::default(), None)
    }

    /// The same, with what is known of the answer in which it says so.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn answered(
        &self,
        message: &str,
        answer: LastAnswer,
    ) -> Result<(StopDecision, Decided), RuntimeError> {
        self.claim(message, answer, None)
    }

    /// The agent's program is gone without a word that counts: its work is judged as at a
    /// stop. With `over` nobody is there any more to send back, and if the work is not
    /// accepted the task ends so.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn left(
        &self,
        message: &str,
        over: Option<Transition>,
    ) -> Result<(StopDecision, Decided), RuntimeError> {
        self.claim(message, LastAnswer::default(), over)
    }

    fn claim(
        &self,
        message: &str,
        answer: LastAnswer,
        over: Option<Transition>,
    ) -> Result<(StopDecision, Decided), RuntimeError> {
        // A claim of its own: never the same event as a hook's stop in this session.
        let nth = self.claims.fetch_add(1, Ordering::Relaxed);
        let input = Input::StopRequested(StopRequested {
            scope: ScopeId::main(),
            message: message.to_owned(),
            message_digest: Digest::of(message.as_bytes()),
            tree: Err(TreeUnknown {
                why: "not read".to_owned(),
            }),
            block_cap: None,
            truncated: answer.truncated,
            background: 0,
            over,
            answer: AnswerFact {
                calls_pending: answer.calls_pending,
                ..AnswerFact::default()
            },
            judges: Box::default(),
            tokens: tokens(answer.output),
        });
        let key = Some(format!("claim:{}:{nth}", self.since));
        let decided = self.deliver(input, key, None, None)?;
        match &decided.decision {
            Decision::Stop(decision) => Ok((decision.clone(), decided)),
            // A stop is always answered by a stop decision.
            Decision::Tool(_) | Decision::Noted => Err(RuntimeError::Deadline),
        }
    }

    /// The conversation is over, if a layer of middleware wants to know.
    pub(crate) fn leave(&self, ended: SessionEnded) -> Result<(), RuntimeError> {
        let runtime = self.engine.runtime();
        match runtime.listens(&self.id, Stage::SessionEnd)? {
            true => self.take(Input::SessionEnded(ended)).map(drop),
            false => Ok(()),
        }
    }

    /// Takes any other news in.
    ///
    /// # Errors
    /// If Checkrein itself cannot judge.
    pub fn take(&self, input: Input) -> Result<Decided, RuntimeError> {
        self.deliver(input, None, None, None)
    }

    /// The session as it is now, with its sealed policy.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn peek(&self) -> Result<Option<(State, Policy)>, RuntimeError> {
        self.engine.runtime().peek(&self.id)
    }

    fn deliver(
        &self,
        input: Input,
        key: Option<String>,
        call: Option<&ToolCall>,
        returned: Option<Returned<'_>>,
    ) -> Result<Decided, RuntimeError> {
        let delivery = Delivery {
            session: self.id.clone(),
            source: SourceName::new("library"),
            key,
            input,
            shell: call.and_then(|call| call.script.as_deref()),
            argv: None,
            writes: &[],
            patch: call.and_then(|call| call.patch.as_deref()),
            works_in: None,
            usage: None,
            returned,
            layers: Vec::new(),
        };
        let patience = Patience {
            deadline: None,
            cancelled: self.engine.cancelled(),
        };
        let watch = self.engine.watch();
        self.engine
            .runtime()
            .take(delivery, patience, &|progress| watch(progress))
    }
}

fn tokens(output: Option<u64>) -> Option<TokenUse> {
    output.map(|output| TokenUse {
        output,
        input: 0,
        cursor: String::new(),
    })
}
