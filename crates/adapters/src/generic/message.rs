//! Reads one message of `checkrein hook generic`: a line of the trace format plus `session`.

use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::AgentAnswerFacts;
use serde_json::Value;

use super::trace;
use crate::agent_event::{AgentEvent, AgentEventKind, AgentMessageParseError};
use crate::fields::HookPayloadFields;
use crate::tool_call::AgentToolCall;

pub(super) fn event_kind_of_native_name(native: &str) -> AgentEventKind {
    match native {
        "session" => AgentEventKind::SessionStart,
        "user" => AgentEventKind::Prompt,
        "assistant" => AgentEventKind::Round,
        "tool_call" => AgentEventKind::ToolRequest,
        "tool_result" => AgentEventKind::ToolResult,
        "stop" => AgentEventKind::Stop,
        "end" => AgentEventKind::SessionEnd,
        _ => AgentEventKind::Other,
    }
}

pub(super) fn parse_generic_agent_event(
    bytes: &[u8],
) -> Result<AgentEvent, AgentMessageParseError> {
    let fields = HookPayloadFields::parse_hook_message(
        super::NAME,
        "type",
        event_kind_of_native_name,
        bytes,
    )?;
    // A line that opens a session may name it by its own `id`.
    let session = match (fields.nonempty_payload_text_field("session"), fields.event) {
        (None, AgentEventKind::SessionStart) => fields.required_id_field("id")?,
        (None, _) => fields.required_id_field("session")?,
        (Some(session), _) => session,
    };
    let mut knock = AgentEvent::new(SessionId::new(session), fields.event, &fields.native_event);
    // The protocol has no field for it, and the adapter's capabilities say that a person can be
    // asked.
    knock.can_ask = true;
    match fields.native_event.as_str() {
        "session" => {
            knock.input = Some(trace::session_start_input_from_trace(
                fields.text_field("agent"),
            ))
        }
        "user" => {
            knock.input = Some(trace::prompt_submitted_input(
                fields.text_field("text").unwrap_or_default(),
            ))
        }
        "assistant" => {
            let tokens =
                trace::parse_token_usage(fields.json_field("tokens"), fields.json_field("usage"));
            knock.input = Some(trace::round_end_input(tokens));
        }
        "tool_call" => read_tool_call(&fields, &mut knock)?,
        "tool_result" => read_tool_result(&fields, &mut knock)?,
        "stop" => {
            // These flags are optional facts about the answer, by which judges decide whether to
            // look at it.
            let said = |key: &str| fields.json_field(key).as_bool().unwrap_or(false);
            let answer = AgentAnswerFacts {
                calls_pending: said("pending_tool_calls"),
                delivered: said("delivered"),
                streamed: said("streamed"),
                heartbeat: said("heartbeat"),
            };
            let text = fields.text_field("text").unwrap_or_default();
            knock.input = Some(trace::stop_input_from_trace(text, answer));
        }
        "end" => {
            let outcome = fields.json_field("success").as_bool();
            knock.input = Some(trace::session_end_input_from_trace(
                outcome,
                fields.text_field("label"),
            ));
        }
        _ => {}
    }
    Ok(knock)
}

fn read_tool_call(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let tool = fields.required_id_field("tool")?;
    let args = fields.json_field("args");
    // Each conversion consumes the call, and a call with its result is needed twice.
    let make = || AgentToolCall {
        scope: ScopeId::main_scope(),
        id: call_id(fields),
        tool,
        args,
    };
    let call = make();
    // Without an id the call has no key, and a repeated delivery counts as another call.
    knock.key = call.id.as_ref().map(|id| format!("tool_call:{id}"));
    knock.action = call.classify_tool_call_action();
    knock.input = Some(call.into_tool_request_input(&knock.action));
    let (result, error) = (fields.json_field("result"), fields.json_field("error"));
    // The result may stand in the call's own line, as in traces.
    if !result.is_null() || !error.is_null() {
        let call = make();
        let outcome = trace::reported_call_outcome(call.tool, result, error);
        knock.result_key = call.id.as_ref().map(|id| format!("tool_result:{id}"));
        knock.keep_tool_response(tool, args, said_or_error(result, error));
        knock.result_input = Some(call.into_tool_returned_input(outcome));
    }
    Ok(())
}

/// Reads a result by id. This process did not see the call. The message may repeat the call's
/// `tool` and `args`; if it does not, the id alone identifies the call.
fn read_tool_result(
    fields: &HookPayloadFields,
    knock: &mut AgentEvent,
) -> Result<(), AgentMessageParseError> {
    let id = call_id(fields);
    if id.is_none() {
        // Called for its error only: it says which field is missing and in which event.
        fields.required_id_field("id")?;
    }
    let tool = fields.text_field("tool").unwrap_or_default();
    let args = fields.json_field("args");
    let outcome = trace::reported_call_outcome(
        tool,
        fields.json_field("result"),
        fields.json_field("error"),
    );
    let call = AgentToolCall {
        scope: ScopeId::main_scope(),
        id,
        tool,
        args,
    };
    knock.key = call.id.as_ref().map(|id| format!("tool_result:{id}"));
    let said = said_or_error(fields.json_field("result"), fields.json_field("error"));
    knock.keep_tool_response(tool, args, said);
    knock.input = Some(call.into_tool_returned_input(outcome));
    Ok(())
}

/// Returns the error's own text, if the call failed with one.
fn said_or_error<'a>(result: &'a Value, error: &'a Value) -> &'a Value {
    match error {
        Value::Null | Value::Bool(_) => result,
        error => error,
    }
}

/// Returns a call's id, which some callers write as a number.
fn call_id(fields: &HookPayloadFields) -> Option<String> {
    match fields.json_field("id") {
        Value::String(id) if !id.is_empty() => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}
