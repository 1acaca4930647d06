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
    // Claude Code does not say what a fork was forked from.
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

pub(super) fn prompt(fields: &Fields, knock: &mut Knock) {
    let text = fields.text("prompt").unwrap_or_default();
    if !by_a_person(fields.text("source"), text) {
        return;
    }
    let text = text.to_owned();
    knock.input = Some(Input::PromptSubmitted(PromptSubmitted {
        text,
        tree: None,
        tokens: None,
        tells_calls: super::ClaudeCode.capabilities().tool_requests,
        acts: None,
    }));
}

/// The event also fires for what the program says to itself, such as the end of a background
/// task. That must not open a task: it would reset every cap. A scheduled prompt is one that a
/// person wrote for that time. Our own feedback, handed back as a prompt, is told by what we said.
fn by_a_person(source: Option<&str>, text: &str) -> bool {
    !matches!(source, Some("system" | "poll_event" | "loop_wakeup"))
        && !text.trim_start().starts_with("<task-notification>")
}

#[cfg(test)]
mod tests {
    use super::by_a_person;

    #[test]
    fn only_a_persons_prompt_opens_a_task() {
        let check = |source: Option<&str>, text: &str, expected: bool| {
            assert_eq!(by_a_person(source, text), expected, "{source:?} {text}");
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
