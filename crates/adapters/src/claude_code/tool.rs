//! Reads and answers tool calls. A refusal is JSON with exit status 0, so that the text reaches the
//! model clean. "May run" is no output at all, since `allow` would lift the person's own permission
//! prompt (law 11).

use checkrein_core::decision::{RoundDecision, ToolDecision};
use checkrein_core::input::{Input, RoundEnded};
use serde_json::{Value, json};

use crate::Adapter as _;
use crate::agent_event::{AgentEvent, AgentMessageParseError};
use crate::fields::HookPayloadFields;
use crate::reply::HookReply;
use crate::tool_call::{AgentToolCall, ReportedToolOutcome};
use crate::wording::{refusal_until_call_approved, refusal_with_rewritten_call};

fn parse_hook_tool_call(
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

pub(super) fn read_claude_tool_request(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let call = parse_hook_tool_call(fields)?;
    knock.key = tool_event_dedup_key(fields, call.id.as_deref());
    knock.action = call.classify_tool_call_action();
    let mut input = call.into_tool_request_input(&knock.action);
    if let Input::ToolRequested(request) = &mut input {
        request.can_ask = knock.can_ask;
        request.reports_outcome = super::ClaudeCodeAdapter.agent_capabilities().tool_outcomes;
    }
    knock.input = Some(input);
    Ok(())
}

pub(super) fn read_tool_result_event(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let call = parse_hook_tool_call(fields)?;
    knock.key = tool_event_dedup_key(fields, call.id.as_deref());
    let response = fields.json_field("tool_response");
    let interrupted = response
        .get("interrupted")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let outcome = ReportedToolOutcome::outcome_from_tool_result(call.tool, response, interrupted);
    knock.keep_tool_response(call.tool, call.args, response);
    knock.input = Some(call.into_tool_returned_input(outcome));
    Ok(())
}

pub(super) fn read_tool_failure(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let call = parse_hook_tool_call(fields)?;
    knock.key = tool_event_dedup_key(fields, call.id.as_deref());
    // This event has no `tool_response`; the error's text identifies the outcome, so that the same
    // failure again is seen as the same.
    let outcome =
        ReportedToolOutcome::outcome_from_tool_result(call.tool, fields.json_field("error"), true);
    knock.keep_tool_response(call.tool, call.args, fields.json_field("error"));
    knock.input = Some(call.into_tool_returned_input(outcome));
    Ok(())
}

/// Reads the end of a round. The event has no id of its own; the id of its first call belongs to no
/// other round.
pub(super) fn parse_round_end_hook(fields: &HookPayloadFields, knock: &mut AgentEvent) {
    let first = fields
        .json_list_field("tool_calls")
        .first()
        .and_then(|call| call.get("tool_use_id"));
    knock.key = tool_event_dedup_key(fields, first.and_then(Value::as_str));
    knock.input = Some(Input::RoundEnded(RoundEnded {
        scope: super::main_or_subagent_scope(fields),
        tokens: None,
    }));
}

fn tool_event_dedup_key(fields: &HookPayloadFields, id: Option<&str>) -> Option<String> {
    // The event's name is part of the key because request and result of a call share the id.
    id.map(|id| format!("{}:{id}", fields.native_event))
}

pub(super) fn render_tool_decision_reply(
    decision: &ToolDecision,
    can_ask: bool,
    notice: Option<&str>,
) -> HookReply {
    match decision {
        ToolDecision::Allow => HookReply::no_opinion_hook_reply(),
        // Without a permission decision the words go beside the call and lift nothing.
        ToolDecision::Nudge { text } => HookReply::json_stdout_reply(&json!({
            "hookSpecificOutput": { "hookEventName": "PreToolUse", "additionalContext": text }
        })),
        ToolDecision::Rewrite { args, reason } => {
            // `updatedInput` is honoured only beside `allow`, which would lift the person's prompt
            // (law 11).
            deny_reply(&refusal_with_rewritten_call(reason, args))
        }
        // Headless, `ask` is a refusal anyway; then the text has to name the approval to wait for.
        ToolDecision::Ask { reason, .. } if can_ask => hook_reply_asking_person(reason),
        ToolDecision::Ask {
            reason, approval, ..
        } => deny_reply(&refusal_until_call_approved(reason, approval)),
        ToolDecision::Deny { reason } => deny_reply(reason),
        // `continue: false` alone lets the call run before the loop ends; both together are
        // the hard stop. In a sub-agent they end the sub-agent only.
        ToolDecision::Halt { reason } => HookReply::json_stdout_reply(&json!({
            "continue": false,
            "stopReason": reason,
            "systemMessage": notice.unwrap_or(reason),
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": reason,
            }
        })),
    }
}

/// Answers the end of a round. Words go beside the results; `continue: false` ends the loop here.
pub(super) fn render_round_decision_reply(
    decision: &RoundDecision,
    notice: Option<&str>,
) -> HookReply {
    HookReply::json_stdout_reply(&match decision {
        RoundDecision::Nudge { text } => json!({
            "hookSpecificOutput": { "hookEventName": "PostToolBatch", "additionalContext": text }
        }),
        RoundDecision::Halt { reason } => json!({
            "continue": false,
            "stopReason": reason,
            "systemMessage": notice.unwrap_or(reason),
        }),
    })
}

pub(super) fn deny_reply(reason: &str) -> HookReply {
    permission_decision_reply("deny", reason)
}

pub(super) fn hook_reply_asking_person(reason: &str) -> HookReply {
    permission_decision_reply("ask", reason)
}

fn permission_decision_reply(decision: &str, reason: &str) -> HookReply {
    HookReply::json_stdout_reply(&json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }))
}
