//! The adapter for agents without a protocol that Checkrein knows. It speaks our own: one line of
//! the trace format plus `session` on stdin, one JSON object on stdout. [`trace`] reads whole files
//! of it.

mod message;
mod render;
pub mod trace;

use checkrein_core::input::TokenUsage;
use checkrein_core::policy::Stance;

use crate::agent_event::{AgentEvent, AgentMessageParseError, AwaitedHookReplyForm};
use crate::capabilities::{AgentCapabilities, DefaultReplyDeadlinesByEvent};
use crate::reply::{HookDecisionWithTexts, HookReply};
use crate::wording::text_or_fallback_refusal;
use crate::{Adapter, EnvLookup};

const NAME: &str = "generic";

/// Translates the generic protocol.
#[derive(Debug)]
pub(crate) struct GenericAdapter;

impl Adapter for GenericAdapter {
    fn agent_name(&self) -> &'static str {
        NAME
    }

    fn agent_capabilities(&self) -> AgentCapabilities {
        // A caller that speaks this protocol obeys it; whether a person can be asked is not known.
        AgentCapabilities {
            block_stop: true,
            deny_tool: true,
            ask_person: true,
            add_context: true,
            halt: true,
            system_message: true,
            block_cap: None,
            own_session_ids: false,
            rounds: true,
            subagents: false,
            // Some callers ask about calls without telling of each one, or without telling how they
            // ended.
            tool_requests: false,
            tool_outcomes: false,
            tool_errors: true,
            transcript_usage: false,
            deadlines: DefaultReplyDeadlinesByEvent {
                stop: 600,
                tool: 60,
                prompt: 60,
                session_end: 60,
                other: 60,
            },
        }
    }

    fn hook_events(&self) -> &'static [&'static str] {
        &[
            "assistant",
            "end",
            "session",
            "stop",
            "tool_call",
            "tool_result",
            "user",
        ]
    }

    fn parse_agent_hook_message(
        &self,
        bytes: &[u8],
        _env: EnvLookup<'_>,
    ) -> Result<AgentEvent, AgentMessageParseError> {
        message::parse_generic_agent_event(bytes)
    }

    fn render_decision_reply(
        &self,
        form: AwaitedHookReplyForm,
        answer: &HookDecisionWithTexts,
    ) -> HookReply {
        render::render_generic_hook_reply(form, answer)
    }

    fn stance_as_hook_reply(
        &self,
        form: AwaitedHookReplyForm,
        stance: Stance,
        text: &str,
    ) -> HookReply {
        render::render_cannot_judge_reply(form, stance, text_or_fallback_refusal(text))
    }

    /// Always `None`: token use comes with the messages themselves.
    fn transcript_token_usage(&self, _bytes: &[u8], _cursor: &str) -> Option<TokenUsage> {
        None
    }
}
