//! Judges the calls of one connection in a session of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use checkrein_adapters::mcp::{self, InputFromMcpMessage};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::digest::EightByteDigest;
use checkrein_core::ids::{AgentName, ScopeId, SessionId, SourceName};
use checkrein_core::input::{
    Input, SessionEnded, SessionStartKind, SessionStarted, StancePoint, StanceUsed,
};
use checkrein_core::middleware::MiddlewareStage;
use checkrein_core::policy::{Stance, StancePolicy};
use checkrein_runtime::{
    Deadline, DeliveryOutcome, EventDelivery, Runtime, RuntimeError, ToolFactsBuilder, ToolResponse,
};
use checkrein_store::SqliteStore;
use serde_json::Value;

use crate::commands::engine;
use crate::locate::ProjectLocation;
use crate::{notify, off, signals, ui};

/// How long a call waits for its judgement at most.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The decision on a call.
pub(super) enum ProxiedCallDecision {
    /// The server gets the call, and the answer gets this advice.
    Forward(ForwardedCall),
    /// The server does not get it, and the model is told why.
    Refused(String),
}

/// A call that was forwarded.
pub(super) struct ForwardedCall {
    pub(super) call: mcp::McpToolCall,
    /// Digest of its tool and arguments.
    pub(super) digest: EightByteDigest,
    pub(super) advice: Option<String>,
}

impl ForwardedCall {
    fn new(call: mcp::McpToolCall, advice: Option<String>) -> Self {
        Self {
            digest: call.call_digest(),
            call,
            advice,
        }
    }
}

/// The session of one connection.
pub(super) struct McpProxySessionGate {
    runtime: Runtime,
    located: ProjectLocation,
    session: SessionId,
    calls: AtomicU64,
    /// Whether middleware looks at results.
    has_result_middleware: bool,
}

impl McpProxySessionGate {
    /// Begins a session that is sealed with this folder's config.
    pub(super) fn open_mcp_proxy_session(
        located: ProjectLocation,
        store: Arc<SqliteStore>,
        session: SessionId,
    ) -> Result<Self, RuntimeError> {
        let mut gate = Self {
            runtime: engine::build_proxy_runtime(&located, store),
            located,
            session,
            calls: AtomicU64::new(0),
            // Until the policy is sealed, assume that middleware looks at results: none may pass
            // unseen.
            has_result_middleware: true,
        };
        let started = gate.deliver_input_to_runtime(Input::SessionStarted(SessionStarted {
            agent: AgentName::new(mcp::AGENT),
            how: SessionStartKind::Startup,
            parent: None,
            tokens: None,
        }))?;
        for warning in &started.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
        }
        // The first event has sealed the policy, so its layers are known only here.
        gate.has_result_middleware = gate
            .runtime
            .has_middleware_at_stages(&gate.session, &[MiddlewareStage::AfterTool])?;
        Ok(gate)
    }

    /// Returns the next call of this connection.
    pub(super) fn new_mcp_tool_call(
        &self,
        server: &str,
        tool: &str,
        args: Value,
    ) -> mcp::McpToolCall {
        let nth = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        mcp::McpToolCall::new(server, tool, args, nth)
    }

    /// Judges a call. `against` says why it is not sent, whatever the policy says.
    pub(super) fn evaluate_mcp_tool_call(
        &self,
        call: mcp::McpToolCall,
        against: Option<String>,
    ) -> ProxiedCallDecision {
        // Switched off: the call goes ahead, but counts as an act, so that checks which passed
        // before it are not believed afterwards.
        if let Some(off) = off::active_off_period(&self.located.place.state) {
            ui::print_wrapped_to_stderr(&off.off_summary_line());
            if let Err(error) = self.runtime.record_call_while_switched_off(&self.session) {
                ui::print_wrapped_to_stderr(&format!(
                    "checkrein: a call while switched off could not be recorded: {error}"
                ));
            }
            return ProxiedCallDecision::Forward(ForwardedCall::new(call, None));
        }
        // A call that cannot be right is counted too, and the detectors see it.
        let decided = match self.deliver_proxy_event(call.mcp_call_request_event(), None) {
            Ok(decided) => decided,
            Err(error) => return self.decide_unjudged_call_by_stance(call, &error),
        };
        notify::notify_person_of_parked_approval(&self.located.place.state, &decided);
        let decision = match decided.decision {
            Decision::Tool(decision) => decision,
            // A tool request is always answered by a decision on the tool, so this does not occur.
            Decision::Stop(_) | Decision::Noted | Decision::Round(_) => ToolDecision::Allow,
        };
        if let Some(refusal) = mcp::refused_call_message(&decision) {
            return ProxiedCallDecision::Refused(refusal);
        }
        let advice = match decision {
            ToolDecision::Nudge { text } => Some(text),
            _ => None,
        };
        // The call was counted as asked for, so one that is not sent gets its outcome here.
        match against {
            None => ProxiedCallDecision::Forward(ForwardedCall::new(call, advice)),
            Some(against) => {
                let said = format!("checkrein: {against}");
                self.record_mcp_call_failure(&call, &said);
                let advice = advice.map(|advice| format!("\n{advice}"));
                ProxiedCallDecision::Refused(said + &advice.unwrap_or_default())
            }
        }
    }

    /// Records the server's answer, a result or an error. Returns what middleware makes of it,
    /// which the client gets instead.
    pub(super) fn record_mcp_call_result(
        &self,
        call: &mcp::McpToolCall,
        answer: Result<&Value, &Value>,
    ) -> Option<Value> {
        let (Ok(result) | Err(result)) = answer;
        let returned = ToolResponse {
            tool: call.qualified_mcp_tool_name(),
            args: call.tool_call_arguments(),
            result,
        };
        match self.deliver_proxy_event(call.mcp_call_result_event(answer), Some(returned)) {
            Ok(decided) => decided.rewritten.for_agent,
            Err(error) => {
                ui::print_wrapped_to_stderr(&format!(
                    "checkrein: a result could not be recorded: {error}"
                ));
                // Middleware has not looked at this result, so the client must not get it.
                self.has_result_middleware
                    .then(|| Value::String(format!("checkrein: this result is withheld: {error}")))
            }
        }
    }

    /// Whether middleware looks at results: the client gets none that it has not seen.
    pub(super) fn middleware_rewrites_results(&self) -> bool {
        self.has_result_middleware
    }

    /// Records that a call came to nothing.
    pub(super) fn record_mcp_call_failure(&self, call: &mcp::McpToolCall, why: &str) {
        self.record_proxy_event_or_warn(call.failed_mcp_call_event(why));
    }

    /// Ends the session with the connection.
    pub(super) fn end_proxied_session(&self, why: &str) {
        let ended = self.deliver_input_to_runtime(Input::SessionEnded(SessionEnded {
            native_reason: why.to_owned(),
        }));
        if let Err(error) = ended {
            ui::print_wrapped_to_stderr(&format!("checkrein: {error}"));
        }
    }

    fn record_proxy_event_or_warn(&self, news: InputFromMcpMessage) {
        if let Err(error) = self.deliver_proxy_event(news, None) {
            // The call has run, so there is nothing left to refuse.
            ui::print_wrapped_to_stderr(&format!(
                "checkrein: a result could not be recorded: {error}"
            ));
        }
    }

    /// Answers by the sealed stance, because Checkrein itself cannot judge.
    fn decide_unjudged_call_by_stance(
        &self,
        call: mcp::McpToolCall,
        error: &RuntimeError,
    ) -> ProxiedCallDecision {
        let why = error.to_string();
        ui::print_wrapped_to_stderr(&format!("checkrein: {why}"));
        // A store that has just failed is not asked again while the client waits.
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
        // Nobody waits for a cancelled call, and a failed store cannot record the stance.
        if !matches!(error, RuntimeError::Cancelled | RuntimeError::Store(_)) {
            // If it cannot be recorded, the line above says why.
            let _ = self.deliver_input_to_runtime(Input::StanceUsed(StanceUsed {
                scope: ScopeId::main_scope(),
                at: StancePoint::Tool,
                stance,
                why: why.clone(),
            }));
        }
        match stance {
            Stance::Allow => ProxiedCallDecision::Forward(ForwardedCall::new(call, None)),
            // The proxy has no person to ask.
            Stance::Block | Stance::Ask => {
                ProxiedCallDecision::Refused(format!("checkrein could not judge: {why}"))
            }
        }
    }

    fn deliver_input_to_runtime(&self, input: Input) -> Result<DeliveryOutcome, RuntimeError> {
        self.deliver_proxy_event(
            InputFromMcpMessage::wrap_input_without_tool_action(input),
            None,
        )
    }

    fn deliver_proxy_event(
        &self,
        news: InputFromMcpMessage,
        returned: Option<ToolResponse<'_>>,
    ) -> Result<DeliveryOutcome, RuntimeError> {
        let delivery = EventDelivery {
            session: self.session.clone(),
            source: SourceName::new(mcp::AGENT),
            key: news.key,
            input: news.input,
            facts: ToolFactsBuilder::new(&news.action),
            working_folder: Some(&self.located.start_folder),
            usage: None,
            tool_response: returned,
            seen_tool_response: None,
            layers: Vec::new(),
            task_list: None,
            required_runs: None,
        };
        let patience = Deadline {
            due_at: Instant::now().checked_add(CALL_TIMEOUT),
            cancelled: &signals::CANCELLED,
        };
        self.runtime.deliver_event(delivery, patience, &|_| {})
    }
}
