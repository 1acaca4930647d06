//! The session that the calls of one connection are judged in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use checkrein_adapters::mcp::{self, McpInputAndAction};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::EightByteDigest;
use checkrein_core::ids::{AgentName, ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    Input, SessionEnded, SessionStartKind, SessionStarted, StancePoint, StanceUsed,
};
use checkrein_core::layers::MiddlewareStage;
use checkrein_core::policy::{Stance, StancePolicy};
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, Runtime, RuntimeError, ToolFactsBuilder, ToolResponse,
};
use checkrein_store::SqliteStore;
use serde_json::Value;

use crate::commands::engine;
use crate::locate::Located;
use crate::{notify, off, signals, ui};

/// A call waits so long for its judgement at most.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was decided of a call.
pub(super) enum Judged {
    /// The server gets it; the answer with this advice behind it.
    Runs(Passed),
    /// It does not, and the model is told why.
    Refused(String),
}

/// A call that the server got.
pub(super) struct Passed {
    pub(super) call: mcp::McpToolCall,
    /// Its tool and arguments.
    pub(super) digest: EightByteDigest,
    pub(super) advice: Option<String>,
}

impl Passed {
    fn new(call: mcp::McpToolCall, advice: Option<String>) -> Self {
        Self {
            digest: call.call_digest(),
            call,
            advice,
        }
    }
}

/// Judges.
pub(super) struct Gate {
    runtime: Runtime,
    located: Located,
    session: SessionId,
    calls: AtomicU64,
    /// Middleware looks at results.
    rewrites: bool,
}

impl Gate {
    /// Begins a session, sealed with the config of this folder.
    pub(super) fn open(
        located: Located,
        store: Arc<SqliteStore>,
        session: SessionId,
    ) -> Result<Self, RuntimeError> {
        let mut gate = Self {
            runtime: engine::proxy(&located, store),
            located,
            session,
            calls: AtomicU64::new(0),
            rewrites: true,
        };
        let started = gate.take(Input::SessionStarted(SessionStarted {
            agent: AgentName::new(mcp::AGENT),
            how: SessionStartKind::Startup,
            parent: None,
            tokens: None,
        }))?;
        for warning in &started.warnings {
            ui::say(&format!("checkrein: {warning}"));
        }
        gate.rewrites = gate
            .runtime
            .has_layers_at_stages(&gate.session, &[MiddlewareStage::AfterTool])?;
        Ok(gate)
    }

    /// The next call of this connection.
    pub(super) fn next_call(&self, server: &str, tool: &str, args: Value) -> mcp::McpToolCall {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        mcp::McpToolCall::new(server, tool, args, nth)
    }

    /// May it run? `against`: why it is not sent, whatever the policy says.
    pub(super) fn judge(&self, call: mcp::McpToolCall, against: Option<String>) -> Judged {
        if let Some(off) = off::in_force(&self.located.place.state) {
            ui::say(&off.words());
            if let Err(error) = self.runtime.record_call_while_switched_off(&self.session) {
                ui::say(&format!(
                    "checkrein: a call while switched off could not be recorded: {error}"
                ));
            }
            return Judged::Runs(Passed::new(call, None));
        }
        // Also what cannot be right is counted, and looked at by the detectors.
        let decided = match self.deliver(call.mcp_call_request_event(), None) {
            Ok(decided) => decided,
            Err(error) => return self.by_stance(call, &error),
        };
        notify::parked(&self.located.place.state, &decided);
        let decision = match decided.decision {
            Decision::Tool(decision) => decision,
            // A request is always answered by a decision on it.
            Decision::Stop(_) | Decision::Noted => ToolDecision::Allow,
        };
        if let Some(refusal) = mcp::refused_call_message(&decision) {
            return Judged::Refused(refusal);
        }
        let advice = match decision {
            ToolDecision::Nudge { text } => Some(text),
            _ => None,
        };
        match against {
            None => Judged::Runs(Passed::new(call, advice)),
            Some(against) => {
                let said = format!("checkrein: {against}");
                self.failed(&call, &said);
                let advice = advice.map(|advice| format!("\n{advice}"));
                Judged::Refused(said + &advice.unwrap_or_default())
            }
        }
    }

    /// What the server answered, a result or an error; with what middleware makes of it, which is
    /// what the client gets instead.
    pub(super) fn returned(
        &self,
        call: &mcp::McpToolCall,
        answer: Result<&Value, &Value>,
    ) -> Option<Value> {
        let (Ok(result) | Err(result)) = answer;
        let returned = ToolResponse {
            tool: call.mcp_tool_name(),
            args: call.tool_call_arguments(),
            result,
        };
        match self.deliver(call.mcp_call_result_event(answer), Some(returned)) {
            Ok(decided) => decided.rewritten.for_agent,
            Err(error) => {
                ui::say(&format!(
                    "checkrein: a result could not be recorded: {error}"
                ));
                // Whoever had to look at it has not.
                self.rewrites
                    .then(|| Value::String(format!("checkrein: this result is withheld: {error}")))
            }
        }
    }

    /// Whether middleware looks at results: none goes to the client that it has not seen.
    pub(super) fn rewrites(&self) -> bool {
        self.rewrites
    }

    /// A call came to nothing.
    pub(super) fn failed(&self, call: &mcp::McpToolCall, why: &str) {
        self.note(call.failed_tool_call_event(why));
    }

    /// The connection is over.
    pub(super) fn close(&self, why: &str) {
        let ended = self.take(Input::SessionEnded(SessionEnded {
            native_reason: why.to_owned(),
        }));
        if let Err(error) = ended {
            ui::say(&format!("checkrein: {error}"));
        }
    }

    fn note(&self, news: McpInputAndAction) {
        if let Err(error) = self.deliver(news, None) {
            // The call has run: nothing is left to refuse.
            ui::say(&format!(
                "checkrein: a result could not be recorded: {error}"
            ));
        }
    }

    /// Checkrein itself cannot judge.
    fn by_stance(&self, call: mcp::McpToolCall, error: &RuntimeError) -> Judged {
        let why = error.to_string();
        ui::say(&format!("checkrein: {why}"));
        let sealed = match error {
            RuntimeError::Store(_) => None,
            _ => self
                .runtime
                .load_session_state_and_policy(&self.session)
                .ok()
                .flatten(),
        };
        let stance = sealed
            .map_or_else(StancePolicy::default, |(_, policy)| policy.stance)
            .tool;
        if !matches!(error, RuntimeError::Cancelled | RuntimeError::Store(_)) {
            // What cannot be written is said above.
            let _ = self.take(Input::StanceUsed(StanceUsed {
                scope: ScopeId::main_scope(),
                at: StancePoint::Tool,
                stance,
                why: why.clone(),
            }));
        }
        match stance {
            Stance::Allow => Judged::Runs(Passed::new(call, None)),
            // There is nobody here to ask.
            Stance::Block | Stance::Ask => {
                Judged::Refused(format!("checkrein could not judge: {why}"))
            }
        }
    }

    fn take(&self, input: Input) -> Result<DeliveryOutcome, RuntimeError> {
        self.deliver(McpInputAndAction::mcp_event_from_input(input), None)
    }

    fn deliver(
        &self,
        news: McpInputAndAction,
        returned: Option<ToolResponse<'_>>,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let delivery = EventDelivery {
            session: self.session.clone(),
            source: SourceName::new(mcp::AGENT),
            key: news.key,
            input: news.input,
            facts: ToolFactsBuilder::new(&news.action),
            working_folder: Some(&self.located.from),
            usage: None,
            tool_response: returned,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let patience = Deadline {
            due_at: Instant::now().checked_add(PATIENCE),
            cancelled: &signals::CANCELLED,
        };
        self.runtime.deliver_event(delivery, patience, &|_| {})
    }
}
