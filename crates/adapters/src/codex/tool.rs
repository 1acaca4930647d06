//! Tool calls. `ask`, `allow` alone, `continue: false` and `suppressOutput` are failed hooks
//! here, after which the tool runs: none of them is ever rendered.

use checkrein_core::decision::ToolDecision;
use serde_json::{Value, json};

use crate::call::{Call, outcome_digest};
use crate::fields::Fields;
use crate::knock::{Knock, Unreadable};
use crate::reply::Reply;
use crate::wording::{awaits, instead};

/// Codex cannot be halted. This goes with the reason of the halt, once; the core answers every
/// later call until the next prompt with a deny and one fixed line of its own.
const HALTED: &str = "checkrein: this task is over and no further tool call will run. Stop now and say what is left to do.";

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
    knock.key = call.id.as_ref().map(|id| format!("{}:{id}", fields.native));
    knock.action = call.action();
    knock.input = Some(call.requested(&knock.action));
    Ok(())
}

pub(super) fn returned(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let call = call(fields)?;
    knock.key = call.id.as_ref().map(|id| format!("{}:{id}", fields.native));
    let response = fields.value("tool_response");
    let (outcome, error) = match response {
        Value::String(text) => match headed(text) {
            Some((code, output)) => (outcome_digest(&json!([code, output])), code != "0"),
            // A shell's result is its output alone: whether it failed is not told.
            None => (outcome_digest(response), false),
        },
        _ => {
            let flag = |name: &str| response.get(name).and_then(Value::as_bool).unwrap_or(false);
            (
                outcome_digest(response),
                flag("isError") || flag("is_error"),
            )
        }
    };
    knock.input = Some(call.returned(outcome, error));
    Ok(())
}

/// Exit code and output of a result with a header; the header's wall time differs from run to
/// run and says nothing.
fn headed(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.strip_prefix("Exit code: ")?.split_once('\n')?;
    let (_, output) = rest.strip_prefix("Wall time: ")?.split_once('\n')?;
    Some((code.trim(), output))
}

pub(super) fn reply(decision: &ToolDecision) -> Reply {
    match decision {
        ToolDecision::Allow => Reply::nothing(),
        ToolDecision::Nudge { text } => Reply::json(&json!({
            "hookSpecificOutput": { "hookEventName": "PreToolUse", "additionalContext": text }
        })),
        ToolDecision::Rewrite { args, reason } => deny(&instead(reason, args)),
        ToolDecision::Ask {
            reason, approval, ..
        } => deny(&awaits(reason, approval)),
        ToolDecision::Deny { reason } => deny(reason),
        ToolDecision::Halt { reason } => deny(&format!("{reason}\n{HALTED}")),
    }
}

pub(super) fn deny(reason: &str) -> Reply {
    Reply::json(&json!({
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::headed;

    #[test]
    fn reads_the_header_of_a_result() {
        let check = |text: &str, expected: Option<(&str, &str)>| assert_eq!(headed(text), expected);
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
