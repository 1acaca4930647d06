//! Reads the beginning, the prompts and the end of a conversation. None of these events is ever
//! answered.

use checkrein_core::ids::AgentName;
use checkrein_core::input::{
    Input, PromptSubmitted, SessionEnded, SessionStartKind, SessionStarted,
};

use crate::Adapter as _;
use crate::agent_event::AgentEvent;
use crate::fields::HookPayloadFields;

pub(super) fn parse_session_start_hook(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let how = match fields.text_field("source") {
        Some("startup") => SessionStartKind::Startup,
        Some("resume") => SessionStartKind::Resume,
        Some("clear") => SessionStartKind::Clear,
        Some("compact") => SessionStartKind::Compact,
        Some("fork") => SessionStartKind::Fork,
        _ => SessionStartKind::Other,
    };
    let agent = AgentName::from(super::NAME);
    knock.input = Some(Input::SessionStarted(SessionStarted {
        agent,
        how,
        // Codex does not say what a fork was forked from.
        parent: None,
        tokens: None,
    }));
}

pub(super) fn read_session_end(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let native_reason = fields.text_field("reason").unwrap_or("unknown").to_owned();
    knock.input = Some(Input::SessionEnded(SessionEnded { native_reason }));
}

/// Reads a prompt. After a refused stop and in goal turns Codex submits texts of its own, which
/// open no task; a person's prompt never begins with their tags.
pub(super) fn read_prompt_hook_event(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let text = fields.text_field("prompt").unwrap_or_default();
    let own = ["<hook_prompt", "<codex_internal_context"];
    if own.iter().any(|tag| text.trim_start().starts_with(tag)) {
        return;
    }
    let text = text.to_owned();
    knock.input = Some(Input::PromptSubmitted(PromptSubmitted {
        text,
        tree: None,
        tokens: None,
        tells_calls: super::CodexAdapter.agent_capabilities().tool_requests,
        acts: None,
    }));
}
