//! Tool calls. A refusal is JSON with status 0: the text reaches the model clean. "May run"
//! is no output at all, since `allow` would lift the person's own permission prompt (law 11).

use checkrein_core::decision::ToolDecision;
use checkrein_core::input::{Input, RoundEnded};
use serde_json::{Value, json};

use crate::Adapter as _;
use crate::call::{Call, outcome_digest};
use crate::fields::Fields;
use crate::knock::{Knock, Unreadable};
use crate::reply::Reply;
use crate::wording::{awaits, instead};

fn call(fields: &Fields) -> Result<Call<'_>, Unreadable> {
    let tool = fields.required("tool_name")?;
    let args = fields.value("tool_input");
    Ok(Call {
        scope: super::scope(fields),
        id: fields.owned("tool_use_id"),
        tool,
        args,
    })
}

pub(super) fn requested(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let call = call(fields)?;
    knock.key = key(fields, call.id.as_deref());
    knock.action = call.action();
    let mut input = call.requested(&knock.action);
    if let Input::ToolRequested(request) = &mut input {
        request.can_ask = knock.can_ask;
        request.reports_outcome = super::ClaudeCode.capabilities().tool_outcomes;
    }
    knock.input = Some(input);
    Ok(())
}

pub(super) fn returned(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let call = call(fields)?;
    knock.key = key(fields, call.id.as_deref());
    let response = fields.value("tool_response");
    let interrupted = response
        .get("interrupted")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    knock.input = Some(call.returned(outcome_digest(response), interrupted));
    Ok(())
}

pub(super) fn failed(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let call = call(fields)?;
    knock.key = key(fields, call.id.as_deref());
    knock.input = Some(call.returned(outcome_digest(fields.value("error")), true));
    Ok(())
}

/// The end of a round. It has no id of its own; its first call belongs to no other round.
pub(super) fn round(fields: &Fields, knock: &mut Knock) {
    let first = fields
        .list("tool_calls")
        .first()
        .and_then(|call| call.get("tool_use_id"));
    knock.key = key(fields, first.and_then(Value::as_str));
    knock.input = Some(Input::RoundEnded(RoundEnded {
        scope: super::scope(fields),
        tokens: None,
    }));
}

fn key(fields: &Fields, id: Option<&str>) -> Option<String> {
    id.map(|id| format!("{}:{id}", fields.native))
}

pub(super) fn reply(decision: &ToolDecision, can_ask: bool, notice: Option<&str>) -> Reply {
    match decision {
        ToolDecision::Allow => Reply::nothing(),
        // Without a permission decision the words go beside the call and lift nothing.
        ToolDecision::Nudge { text } => Reply::json(&json!({
            "hookSpecificOutput": { "hookEventName": "PreToolUse", "additionalContext": text }
        })),
        ToolDecision::Rewrite { args, reason } => deny(&instead(reason, args)),
        ToolDecision::Ask { reason, .. } if can_ask => ask(reason),
        ToolDecision::Ask {
            reason, approval, ..
        } => deny(&awaits(reason, approval)),
        ToolDecision::Deny { reason } => deny(reason),
        // `continue: false` alone lets the call run before the loop ends; both together are
        // the hard stop. In a sub-agent they end the sub-agent only.
        ToolDecision::Halt { reason } => Reply::json(&json!({
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

pub(super) fn deny(reason: &str) -> Reply {
    permission("deny", reason)
}

pub(super) fn ask(reason: &str) -> Reply {
    permission("ask", reason)
}

fn permission(decision: &str, reason: &str) -> Reply {
    Reply::json(&json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }))
}
