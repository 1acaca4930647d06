//! Beginning, prompts and end of a conversation. None of them is ever answered.

use checkrein_core::ids::AgentName;
use checkrein_core::input::{
    Input, PromptSubmitted, SessionEnded, SessionStartKind, SessionStarted,
};

use crate::Adapter as _;
use crate::fields::Fields;
use crate::knock::Knock;

pub(super) fn started(fields: &Fields, knock: &mut Knock) {
    let how = match fields.text("source") {
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
        parent: None,
        tokens: None,
    }));
}

pub(super) fn ended(fields: &Fields, knock: &mut Knock) {
    let native_reason = fields.text("reason").unwrap_or("unknown").to_owned();
    knock.input = Some(Input::SessionEnded(SessionEnded { native_reason }));
}

/// Refused stops and goal turns go on with texts of the program's own; a person's prompt
/// never begins with their tags.
pub(super) fn prompt(fields: &Fields, knock: &mut Knock) {
    let text = fields.text("prompt").unwrap_or_default();
    let own = ["<hook_prompt", "<codex_internal_context"];
    if own.iter().any(|tag| text.trim_start().starts_with(tag)) {
        return;
    }
    let text = text.to_owned();
    knock.input = Some(Input::PromptSubmitted(PromptSubmitted {
        text,
        tree: None,
        tokens: None,
        tells_calls: super::Codex.capabilities().tool_requests,
        acts: None,
    }));
}
