//! Reads and answers stops. A refusal is exit status 2 with the text on stderr: the JSON form is
//! sent to the model twice.

use checkrein_core::decision::StopDecision;
use checkrein_core::digest::Digest;
use checkrein_core::input::{
    AgentAnswerFacts, Input, StopRequested, TreeReadError, TurnEndedByApiError,
};
use serde_json::{Value, json};

use crate::EnvLookup;
use crate::agent_event::{AgentEvent, TranscriptFile};
use crate::fields::HookPayloadFields;
use crate::reply::HookReply;
use crate::wording::{how_task_ended_line, unmet_checks_line};

/// Refused stops in a row after which the agent stops anyway.
pub(super) const DEFAULT_BLOCK_CAP: u32 = 8;

pub(super) fn read_stop(fields: &HookPayloadFields, env: EnvLookup<'_>, knock: &mut AgentEvent) {
    let message = fields
        .text_field("last_assistant_message")
        .unwrap_or_default();
    // The flag is false at the first stop of a turn and true at each later one of that turn.
    knock.first_stop = fields.bool_field("stop_hook_active").map(|active| !active);
    knock.input = Some(Input::StopRequested(StopRequested {
        scope: super::main_or_subagent_scope(fields),
        message: message.to_owned(),
        message_digest: Digest::hash_bytes(message.as_bytes()),
        // The tree, judges and token use are filled in by the runtime: this crate does no I/O.
        tree: Err(TreeReadError {
            why: "not read".to_owned(),
            cut: false,
        }),
        block_cap: parse_claude_stop_block_cap(env("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").as_deref()),
        truncated: false,
        background: count_running_background_tasks(
            fields.json_list_field("background_tasks"),
            fields.nonempty_payload_text_field("agent_id"),
        ),
        agent_ending: None,
        answer: AgentAnswerFacts::default(),
        judges: Box::default(),
        tokens: None,
    }));
}

pub(super) fn read_subagent_stop(
    fields: &HookPayloadFields,
    env: EnvLookup<'_>,
    knock: &mut AgentEvent,
) {
    if let Some(path) = fields.nonempty_payload_text_field("agent_transcript_path") {
        knock.transcript = Some(TranscriptFile {
            path: path.to_owned(),
            scope: super::main_or_subagent_scope(fields),
        });
    }
    // Without a type it is the summariser of `/compact`: refused, it could never compact.
    if fields.nonempty_payload_text_field("agent_type").is_some() {
        read_stop(fields, env, knock);
    }
}

pub(super) fn read_stop_failure(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let native_reason = fields.text_field("error").unwrap_or("unknown").to_owned();
    // A cut answer has a transition reason of its own; other errors keep the agent's word.
    let truncated = native_reason == "max_output_tokens";
    knock.input = Some(Input::StopFailed(TurnEndedByApiError {
        scope: super::main_or_subagent_scope(fields),
        native_reason,
        truncated,
    }));
}

pub(super) fn render_stop_reply(
    decision: &StopDecision,
    text: Option<&str>,
    notice: Option<&str>,
) -> HookReply {
    match decision {
        StopDecision::Accept { .. } => notice.map_or_else(
            HookReply::no_opinion_hook_reply,
            super::hook_reply_for_person_only,
        ),
        StopDecision::Continue { feedback } => match text {
            Some(text) if !text.trim().is_empty() => HookReply::stderr_refusal_reply(text),
            // An empty refusal reaches the model as "No stderr output".
            _ => HookReply::stderr_refusal_reply(&unmet_checks_line(feedback)),
        },
        StopDecision::Halt { transition } => {
            // `stopReason` reaches person and transcript but not the model, `systemMessage` the
            // person only.
            let line = notice.map_or_else(|| how_task_ended_line(transition), str::to_owned);
            HookReply::json_stdout_reply(
                &json!({ "continue": false, "stopReason": line, "systemMessage": line }),
            )
        }
    }
}

/// The agent's own cap: 0 = none, unreadable = the default.
fn parse_claude_stop_block_cap(variable: Option<&str>) -> Option<u32> {
    match variable.map(|text| text.trim().parse::<u32>()) {
        Some(Ok(0)) => None,
        Some(Ok(cap)) => Some(cap),
        Some(Err(_)) | None => Some(DEFAULT_BLOCK_CAP),
    }
}

/// Background tasks still at work; a sub-agent is listed among them while it stops.
fn count_running_background_tasks(tasks: &[Value], agent: Option<&str>) -> u32 {
    let text = |task: &Value, field: &str| {
        task.get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let count = tasks
        .iter()
        .filter(|task| matches!(text(task, "status").as_str(), "running" | "pending" | ""))
        .filter(|task| agent.is_none_or(|agent| text(task, "id") != agent))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_cap() {
        let check = |variable: Option<&str>, expected: Option<u32>| {
            assert_eq!(
                parse_claude_stop_block_cap(variable),
                expected,
                "{variable:?}"
            );
        };
        check(None, Some(8));
        check(Some("2"), Some(2));
        check(Some("0"), None);
        check(Some("many"), Some(8));
        check(Some("-1"), Some(8));
    }

    #[test]
    fn counts_what_still_runs_but_not_the_one_that_stops() {
        let tasks = [
            json!({"id": "a", "status": "running"}),
            json!({"id": "b", "status": "completed"}),
            json!({"id": "c"}),
            json!(7),
        ];
        assert_eq!(count_running_background_tasks(&tasks, None), 3);
        assert_eq!(count_running_background_tasks(&tasks, Some("a")), 2);
    }
}
