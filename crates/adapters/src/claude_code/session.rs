//! Reads the beginning, the prompts and the end of a conversation. None of these events is ever
//! answered.

use checkrein_core::ids::AgentName;
use checkrein_core::input::{
    Input, PromptSubmitted, SessionEnded, SessionStartKind, SessionStarted,
};

use crate::Adapter as _;
use crate::agent_event::AgentEvent;
use crate::fields::HookPayloadFields;

pub(super) fn read_session_start(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let how = match fields.text_field("source") {
        Some("startup") => SessionStartKind::Startup,
        Some("resume") => SessionStartKind::Resume,
        Some("clear") => SessionStartKind::Clear,
        Some("compact") => SessionStartKind::Compact,
        Some("fork") => SessionStartKind::Fork,
        _ => SessionStartKind::Other,
    };
    // Claude Code does not say what a fork was forked from.
    let agent = AgentName::from(super::NAME);
    knock.input = Some(Input::SessionStarted(SessionStarted {
        agent,
        how,
        parent: None,
        tokens: None,
    }));
}

pub(super) fn parse_session_end_hook(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let native_reason = fields.text_field("reason").unwrap_or("unknown").to_owned();
    knock.input = Some(Input::SessionEnded(SessionEnded { native_reason }));
}

pub(super) fn read_prompt_hook_event(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let text = fields.text_field("prompt").unwrap_or_default();
    if !is_prompt_from_person(fields.text_field("source"), text) {
        return;
    }
    let text = text.to_owned();
    knock.input = Some(Input::PromptSubmitted(PromptSubmitted {
        text,
        tree: None,
        tokens: None,
        tells_calls: super::ClaudeCodeAdapter.agent_capabilities().tool_requests,
        acts: None,
    }));
}

/// Returns whether a person wrote this prompt. The event also fires for what the program says to
/// itself, such as the end of a background task. Such a text must not open a task: it would reset
/// every cap. A scheduled prompt counts as a person's, who wrote it for that time. Our own
/// feedback, handed back as a prompt, is recognised by its text elsewhere.
fn is_prompt_from_person(source: Option<&str>, text: &str) -> bool {
    !matches!(source, Some("system" | "poll_event" | "loop_wakeup"))
        && !text.trim_start().starts_with("<task-notification>")
}

#[cfg(test)]
mod tests {
    use super::is_prompt_from_person;

    #[test]
    fn only_a_persons_prompt_opens_a_task() {
        let check = |source: Option<&str>, text: &str, expected: bool| {
            assert_eq!(
                is_prompt_from_person(source, text),
                expected,
                "{source:?} {text}"
            );
        };
        check(None, "fix the tests", true);
        check(Some("user"), "fix the tests", true);
        check(Some("sdk"), "fix the tests", true);
        check(Some("schedule_wakeup"), "the nightly job", true);
        check(Some("system"), "anything", false);
        check(Some("poll_event"), "anything", false);
        check(Some("loop_wakeup"), "anything", false);
        check(None, "<task-notification>\n<task-id>b</task-id>", false);
        check(None, "what is a <task-notification>?", true);
        check(None, "Stop hook feedback: what does this mean?", true);
    }
}
