//! OpenAI's chat completions format, and the variants that most other providers speak.

use serde_json::{Value, json};

use super::partial_reply::{PartialReply, usage_from_inclusive_totals, usage_token_count};
use super::thought_blocks::{self, ReplyBlock};
use super::{
    JsonObjectBuilder, ModelAnswerDecodeError, ProviderWireQuirks, call_arguments_for_provider,
    find_provider_error_text, system_prompt_with_schema, tool_result_text_marking_failure,
};
use crate::{ChatMessage, FinishReason, ModelRequest};

/// The key of the block that holds the thoughts.
const THOUGHTS_KEY: &str = "thoughts";

pub(super) fn chat_completions_request_body(
    model: &str,
    request: &ModelRequest,
    dialect: ProviderWireQuirks,
) -> Value {
    let system = match &request.output_schema {
        Some(shape) if !dialect.enforces_schemas => {
            system_prompt_with_schema(&request.system, shape)
        }
        _ => request.system.to_string(),
    };
    let system = (!system.is_empty()).then(|| json!({ "role": "system", "content": system }));
    let said = request
        .messages
        .iter()
        .map(|one| chat_api_message_json(one, dialect));
    let mut body = JsonObjectBuilder::default();
    body.set_json_field("model", model);
    body.set_json_field("stream", true);
    if dialect.requests_usage {
        body.set_json_field("stream_options", json!({ "include_usage": true }));
    }
    body.set_json_field(
        "messages",
        system.into_iter().chain(said).collect::<Value>(),
    );
    if let Some(most) = request.max_tokens {
        body.set_json_field(dialect.max_tokens, most);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": *tool.schema,
            } })
        });
        body.set_json_field("tools", tools.collect::<Value>());
    }
    if let Some(shape) = request
        .output_schema
        .as_ref()
        .filter(|_| dialect.enforces_schemas)
    {
        body.set_json_field(
            "response_format",
            json!({ "type": "json_schema", "json_schema": {
            "name": shape.name, "schema": *shape.schema, "strict": true,
        } }),
        );
    }
    body.into()
}

fn chat_api_message_json(message: &ChatMessage, dialect: ProviderWireQuirks) -> Value {
    match message {
        ChatMessage::User(text) => json!({ "role": "user", "content": text }),
        ChatMessage::Assistant { text, calls } => {
            let mut own = JsonObjectBuilder::default();
            own.set_json_field("role", "assistant");
            if dialect.returns_thoughts {
                own.set_json_field(
                    "reasoning_content",
                    thought_blocks::thoughts_kept_with_tool_calls(calls),
                );
            }
            if calls.is_empty() {
                own.set_json_field("content", text.as_str());
                return own.into();
            }
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    // Several servers parse this text and fail if it is no JSON.
                    json!({ "id": call.id, "type": "function", "function": {
                        "name": call.tool, "arguments": call_arguments_for_provider(call).to_string(),
                    } })
                })
                .collect();
            own.set_json_field("content", (!text.is_empty()).then_some(text.as_str()));
            own.set_json_field("tool_calls", calls);
            own.into()
        }
        ChatMessage::ToolResult {
            call, text, failed, ..
        } => {
            json!({ "role": "tool", "tool_call_id": call, "content": tool_result_text_marking_failure(text, *failed) })
        }
    }
}

pub(super) fn apply_chat_stream_event(
    draft: &mut PartialReply,
    event: &Value,
) -> Result<(), ModelAnswerDecodeError> {
    let choice = event.pointer("/choices/0").unwrap_or(&Value::Null);
    if let Some(error) = [event, choice]
        .iter()
        .find_map(|place| place.get("error"))
        .filter(|error| !error.is_null())
    {
        // The response began with status 200, so the error in the stream has to carry its own.
        let code = error.get("code").and_then(Value::as_u64);
        return Err(ModelAnswerDecodeError::Reported {
            status: code
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or(400),
            what: find_provider_error_text(error)
                .or(error.as_str())
                .unwrap_or("an error")
                .to_owned(),
        });
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        read_chat_token_usage(draft, usage);
    }
    let delta = choice.get("delta").unwrap_or(&Value::Null);
    match delta.get("content") {
        Some(Value::String(text)) => draft.text.push_str(text),
        // A list of parts, some of which are thoughts without a `text`.
        Some(Value::Array(parts)) => {
            for part in parts {
                draft
                    .text
                    .push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
            }
        }
        _ => {}
    }
    if draft.keeps_thoughts
        && let Some(text) = delta.get("reasoning_content").and_then(Value::as_str)
    {
        if !draft.has_begun_reply_block(THOUGHTS_KEY) {
            draft.begin_model_reply_block(
                THOUGHTS_KEY,
                ReplyBlock::Thought(Value::String(String::new())),
            )?;
        }
        draft.append_to_model_reply_block(THOUGHTS_KEY, "", text);
    }
    if let Some(text) = delta.get("refusal").and_then(Value::as_str) {
        draft.text.push_str(text);
        draft.refused = true;
    }
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    for piece in calls.into_iter().flatten() {
        apply_call_delta(draft, piece)?;
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        draft.ended = Some(match reason {
            "stop" | "eos" => FinishReason::EndOfTurn,
            "tool_calls" | "function_call" => FinishReason::Calls,
            "length" | "model_length" => FinishReason::Truncated,
            "content_filter" => FinishReason::Refused,
            other => FinishReason::Other(other.to_owned()),
        });
    }
    Ok(())
}

/// Handles the last event of the stream.
pub(super) fn close_streamed_chat_reply(draft: &mut PartialReply) {
    draft.closed = true;
    draft
        .ended
        // Some servers end the stream without a reason. The answer is complete all the same.
        .get_or_insert_with(|| FinishReason::Other("no reason given".to_owned()));
}

/// Applies a piece of a call. Pieces of one call share an index. Without one, a new id begins a new
/// call.
fn apply_call_delta(draft: &mut PartialReply, piece: &Value) -> Result<(), ModelAnswerDecodeError> {
    let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
    let key = match (piece.get("index"), draft.last_streamed_call_key()) {
        (Some(Value::Number(index)), _) => index.to_string(),
        (_, Some(last)) if id.is_empty() && piece.pointer("/function/name").is_none() => last,
        _ if id.is_empty() => draft.generate_call_key(),
        _ => id.to_owned(),
    };
    let call = draft.get_or_add_tool_call(&key)?;
    if call.id.is_empty() {
        id.clone_into(&mut call.id);
    }
    if call.tool.is_empty() {
        let name = piece.pointer("/function/name").and_then(Value::as_str);
        name.unwrap_or_default().clone_into(&mut call.tool);
    }
    match piece.pointer("/function/arguments") {
        Some(Value::String(text)) => call.arguments.push_str(text),
        Some(Value::Object(whole)) => call.arguments = Value::Object(whole.clone()).to_string(),
        _ => {}
    }
    Ok(())
}

fn read_chat_token_usage(draft: &mut PartialReply, usage: &Value) {
    let (input, output) = (
        usage_token_count(usage, "/prompt_tokens"),
        usage_token_count(usage, "/completion_tokens"),
    );
    // xAI excludes thoughts from the completion tokens but includes them in the total.
    let thought =
        usage_token_count(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    let output = match (input, output, usage_token_count(usage, "/total_tokens")) {
        (Some(input), Some(output), Some(all))
            if thought > 0
                && Some(all)
                    == input
                        .checked_add(output)
                        .and_then(|n| n.checked_add(thought)) =>
        {
            output.checked_add(thought)
        }
        (_, output, _) => output,
    };
    draft.usage = usage_from_inclusive_totals(
        input,
        usage_token_count(usage, "/prompt_tokens_details/cached_tokens"),
        usage_token_count(usage, "/prompt_tokens_details/cache_write_tokens"),
        output,
    );
}
