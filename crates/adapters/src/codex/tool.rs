//! Reads and answers tool calls. `ask`, `allow` alone, `continue: false` and `suppressOutput` count
//! as failed hooks here, after which the tool runs: none of them is ever rendered.

use checkrein_core::decision::ToolDecision;
use serde_json::{Value, json};

use crate::agent_event::{AgentEvent, AgentMessageParseError};
use crate::fields::HookPayloadFields;
use crate::reply::HookReply;
use crate::tool_call::{AgentToolCall, ReportedToolOutcome};
use crate::wording::{refusal_until_call_approved, refusal_with_rewritten_call};

/// Follows the reason of a halt, once, since Codex cannot be halted. The core answers every later
/// call until the next prompt with a deny and one fixed line of its own.
const HALT_NOTE: &str = "checkrein: this task is over and no further tool call will run. Stop now and say what is left to do.";

fn parse_codex_hook_tool_call(
    fields: &HookPayloadFields,
) -> Result<AgentToolCall<'_>, AgentMessageParseError> {
    let tool = fields.required_id_field("tool_name")?;
    let args = fields.json_field("tool_input");
    Ok(AgentToolCall {
        scope: super::main_or_subagent_scope(fields),
        id: fields.owned_id_field("tool_use_id"),
        tool,
        args,
    })
}

pub(super) fn read_codex_tool_request(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let call = parse_codex_hook_tool_call(fields)?;
    knock.key = call
        .id
        .as_ref()
        .map(|id| format!("{}:{id}", fields.native_event));
    knock.action = call.classify_tool_call_action();
    knock.input = Some(call.into_tool_request_input(&knock.action));
    Ok(())
}

pub(super) fn read_tool_result(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let call = parse_codex_hook_tool_call(fields)?;
    knock.key = call
        .id
        .as_ref()
        .map(|id| format!("{}:{id}", fields.native_event));
    let response = fields.json_field("tool_response");
    let outcome = match response {
        Value::String(text) => match split_exit_code_from_output(text) {
            Some((code, output)) => ReportedToolOutcome::outcome_from_tool_result(
                call.tool,
                &json!([code, output]),
                code != "0",
            ),
            // A shell's result is its output alone: whether it failed is not told.
            None => ReportedToolOutcome::outcome_from_tool_result(call.tool, response, false),
        },
        _ => {
            let flag = |name: &str| response.get(name).and_then(Value::as_bool).unwrap_or(false);
            ReportedToolOutcome::outcome_from_tool_result(
                call.tool,
                response,
                flag("isError") || flag("is_error"),
            )
        }
    };
    knock.keep_tool_response(call.tool, call.args, response);
    knock.input = Some(call.into_tool_returned_input(outcome));
    Ok(())
}

/// Splits a result with a header into exit code and output. The header's wall time differs from run
/// to run and says nothing.
pub(super) fn split_exit_code_from_output(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.strip_prefix("Exit code: ")?.split_once('\n')?;
    let (_, output) = rest.strip_prefix("Wall time: ")?.split_once('\n')?;
    Some((code.trim(), output))
}

pub(super) fn codex_tool_decision_reply(decision: &ToolDecision) -> HookReply {
    match decision {
        ToolDecision::Allow => HookReply::no_opinion_hook_reply(),
        ToolDecision::Nudge { text } => HookReply::json_stdout_reply(&json!({
            "hookSpecificOutput": { "hookEventName": "PreToolUse", "additionalContext": text }
        })),
        ToolDecision::Rewrite { args, reason } => {
            deny_reply(&refusal_with_rewritten_call(reason, args))
        }
        ToolDecision::Ask {
            reason, approval, ..
        } => deny_reply(&refusal_until_call_approved(reason, approval)),
        ToolDecision::Deny { reason } => deny_reply(reason),
        // The denial with its note is the strongest answer that Codex obeys at this event.
        ToolDecision::Halt { reason } => deny_reply(&format!("{reason}\n{HALT_NOTE}")),
    }
}

pub(super) fn deny_reply(reason: &str) -> HookReply {
    HookReply::json_stdout_reply(&json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::split_exit_code_from_output;

    #[test]
    fn reads_the_header_of_a_result() {
        let check = |text: &str, expected: Option<(&str, &str)>| {
            assert_eq!(split_exit_code_from_output(text), expected)
        };
        check(
            "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nSuccess.\n",
            Some(("0", "Output:\nSuccess.\n")),
        );
        check("Exit code: 1\nWall time: 2 seconds\n", Some(("1", "")));
        check("one\n", None);
        check("Exit code: 1\nsaid a program", None);
        check("", None);
    }
}
