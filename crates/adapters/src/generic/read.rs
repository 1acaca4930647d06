//! One message of `checkrein hook generic`: a line of the trace format plus `session`.

use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::AgentAnswerFlags;
use serde_json::Value;

use super::trace;
use crate::call::Call;
use crate::fields::Fields;
use crate::knock::{EventKind, Knock, Unreadable};

pub(super) fn kind(native: &str) -> EventKind {
    match native {
        "session" => EventKind::SessionStart,
        "user" => EventKind::Prompt,
        "assistant" => EventKind::Round,
        "tool_call" => EventKind::ToolRequest,
        "tool_result" => EventKind::ToolResult,
        "stop" => EventKind::Stop,
        "end" => EventKind::SessionEnd,
        _ => EventKind::Other,
    }
}

pub(super) fn read(bytes: &[u8]) -> Result<Knock, Unreadable> {
    let fields = Fields::read(super::NAME, "type", kind, bytes)?;
    // A line that opens a session may name it by its own `id`.
    let session = match (fields.id("session"), fields.event) {
        (None, EventKind::SessionStart) => fields.required("id")?,
        (None, _) => fields.required("session")?,
        (Some(session), _) => session,
    };
    let mut knock = Knock::new(SessionId::new(session), fields.event, &fields.native);
    knock.can_ask = true;
    match fields.native.as_str() {
        "session" => knock.input = Some(trace::session_input(fields.text("agent"))),
        "user" => knock.input = Some(trace::prompt_input(fields.text("text").unwrap_or_default())),
        "assistant" => {
            let tokens = trace::tokens(fields.value("tokens"), fields.value("usage"));
            knock.input = Some(trace::round_input(tokens));
        }
        "tool_call" => call(&fields, &mut knock)?,
        "tool_result" => result(&fields, &mut knock)?,
        "stop" => {
            let said = |key: &str| fields.value(key).as_bool().unwrap_or(false);
            let answer = AgentAnswerFlags {
                calls_pending: said("pending_tool_calls"),
                delivered: said("delivered"),
                streamed: said("streamed"),
                heartbeat: said("heartbeat"),
            };
            let text = fields.text("text").unwrap_or_default();
            knock.input = Some(trace::stop_input(text, answer));
        }
        "end" => {
            let outcome = fields.value("success").as_bool();
            knock.input = Some(trace::end_input(outcome, fields.text("label")));
        }
        _ => {}
    }
    Ok(knock)
}

fn call(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let tool = fields.required("tool")?;
    let args = fields.value("args");
    let make = || Call {
        scope: ScopeId::main_scope(),
        id: id(fields),
        tool,
        args,
    };
    let call = make();
    knock.key = call.id.as_ref().map(|id| format!("tool_call:{id}"));
    knock.action = call.action();
    knock.input = Some(call.requested(&knock.action));
    let (result, error) = (fields.value("result"), fields.value("error"));
    if !result.is_null() || !error.is_null() {
        let (outcome, failed) = trace::outcome(result, error);
        let call = make();
        knock.then_key = call.id.as_ref().map(|id| format!("tool_result:{id}"));
        knock.then = Some(call.returned(outcome, failed));
    }
    Ok(())
}

/// A result by id. This process did not see the call; what it says about the call it may
/// repeat (`tool`, `args`), else the id is all that names it.
fn result(fields: &Fields, knock: &mut Knock) -> Result<(), Unreadable> {
    let id = id(fields);
    if id.is_none() {
        fields.required("id")?;
    }
    let (outcome, failed) = trace::outcome(fields.value("result"), fields.value("error"));
    let tool = fields.text("tool").unwrap_or_default();
    let args = fields.value("args");
    let call = Call {
        scope: ScopeId::main_scope(),
        id,
        tool,
        args,
    };
    knock.key = call.id.as_ref().map(|id| format!("tool_result:{id}"));
    knock.input = Some(call.returned(outcome, failed));
    Ok(())
}

/// A call's id, which some write as a number.
fn id(fields: &Fields) -> Option<String> {
    match fields.value("id") {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
