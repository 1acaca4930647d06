//! OpenAI's Responses format.

use serde_json::{Value, json};

use super::partial_reply::{PartialReply, usage_from_inclusive_totals, usage_token_count};
use super::thought_blocks::{ReplyBlock, ResentReplyPart, reply_parts_to_resend};
use super::{
    JsonObjectBuilder, ModelAnswerDecodeError, call_arguments_for_provider,
    find_provider_error_text, tool_result_text_marking_failure,
};
use crate::{ChatMessage, FinishReason, ModelRequest};

/// Encrypted thoughts that only the provider can read. It stores neither them nor the conversation.
const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Returns whether the model reasons. Other models refuse a request for thoughts.
fn is_reasoning_model(model: &str) -> bool {
    !["gpt-4", "gpt-3", "chatgpt-4"]
        .iter()
        .any(|begin| model.starts_with(begin))
}

pub(super) fn request_body(model: &str, request: &ModelRequest) -> Value {
    let mut body = JsonObjectBuilder::default();
    body.set_json_field("model", model);
    body.set_json_field("stream", true);
    // The conversation is kept here, so the provider need not store it.
    body.set_json_field("store", false);
    let items: Value = request
        .messages
        .iter()
        .flat_map(responses_api_items)
        .collect();
    body.set_json_field("input", items);
    if !request.system.is_empty() {
        body.set_json_field("instructions", &*request.system);
    }
    if let Some(most) = request.max_tokens {
        body.set_json_field("max_output_tokens", most);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            // Strict mode refuses schemas with optional fields.
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": *tool.schema, "strict": false,
            })
        });
        body.set_json_field("tools", tools.collect::<Value>());
        if is_reasoning_model(model) {
            body.set_json_field("include", json!([ENCRYPTED_REASONING]));
        }
    }
    if let Some(shape) = &request.output_schema {
        body.set_json_field(
            "text",
            json!({ "format": {
            "type": "json_schema", "name": shape.name, "schema": *shape.schema, "strict": true,
        } }),
        );
    }
    body.into()
}

fn responses_api_items(message: &ChatMessage) -> Vec<Value> {
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    match message {
        ChatMessage::User(text) => vec![said("user", "input_text", text)],
        ChatMessage::Assistant { text, calls } => {
            let part = |part: ResentReplyPart<'_>| match part {
                ResentReplyPart::Thought(thought) => thought,
                ResentReplyPart::Text(text) => said("assistant", "output_text", &text),
                ResentReplyPart::Call(call) => json!({
                    "type": "function_call", "call_id": call.id, "name": call.tool,
                    "arguments": call_arguments_for_provider(call).to_string(),
                }),
            };
            reply_parts_to_resend(text, calls)
                .into_iter()
                .map(part)
                .collect()
        }
        ChatMessage::ToolResult {
            call, text, failed, ..
        } => vec![json!({
            "type": "function_call_output", "call_id": call, "output": tool_result_text_marking_failure(text, *failed),
        })],
    }
}

pub(super) fn apply_stream_event(
    draft: &mut PartialReply,
    event: &Value,
) -> Result<(), ModelAnswerDecodeError> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    match text("/type").unwrap_or_default() {
        // Only complete items are used, except for the text of an answer that was cut.
        "response.output_text.delta" | "response.refusal.delta" => draft
            .text_deltas
            .push_str(text("/delta").unwrap_or_default()),
        "response.output_item.done" => {
            let at = event
                .get("output_index")
                .unwrap_or(&Value::Null)
                .to_string();
            apply_responses_api_output_item(draft, event.get("item").unwrap_or(&Value::Null), &at)?;
        }
        "response.completed" | "response.incomplete" => {
            // Some gateways send the items only at the end.
            if draft.is_empty() {
                let items = event.pointer("/response/output").and_then(Value::as_array);
                for (at, one) in items.into_iter().flatten().enumerate() {
                    apply_responses_api_output_item(draft, one, &at.to_string())?;
                }
            }
            // No complete message came, so the answer was cut. Its deltas are all there is.
            if draft.text.is_empty() {
                draft.text = std::mem::take(&mut draft.text_deltas);
            }
            if let Some(usage) = event.pointer("/response/usage") {
                draft.usage = usage_from_inclusive_totals(
                    usage_token_count(usage, "/input_tokens"),
                    usage_token_count(usage, "/input_tokens_details/cached_tokens"),
                    usage_token_count(usage, "/input_tokens_details/cache_write_tokens"),
                    usage_token_count(usage, "/output_tokens"),
                );
            }
            let cut = text("/response/incomplete_details/reason");
            draft.ended = Some(match (text("/type"), cut) {
                (Some("response.completed"), _) => FinishReason::EndOfTurn,
                (_, Some("max_output_tokens")) => FinishReason::Truncated,
                (_, Some("content_filter")) => FinishReason::Refused,
                (_, other) => FinishReason::Other(other.unwrap_or("incomplete").to_owned()),
            });
            draft.closed = true;
        }
        "response.failed" => {
            return Err(parse_responses_api_error(event.pointer("/response/error")));
        }
        // The error is a field of the event, or the event itself.
        "error" => {
            return Err(parse_responses_api_error(
                event.get("error").or(Some(event)),
            ));
        }
        _ => {}
    }
    Ok(())
}

fn apply_responses_api_output_item(
    draft: &mut PartialReply,
    item: &Value,
    at: &str,
) -> Result<(), ModelAnswerDecodeError> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "reasoning" => {
            // The id is left out: the provider would look for it among stored items, and none are
            // stored.
            if !draft.has_begun_reply_block(at)
                && let Some(sealed) = item.get("encrypted_content").filter(|it| it.is_string())
            {
                let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
                let thought = json!({
                    "type": "reasoning", "summary": summary, "encrypted_content": sealed,
                });
                draft.begin_model_reply_block(at, ReplyBlock::Thought(thought))?;
            }
        }
        "message" => {
            let before = draft.text.len();
            let parts = item.get("content").and_then(Value::as_array);
            for part in parts.into_iter().flatten() {
                let said = |name: &str| part.get(name).and_then(Value::as_str);
                match said("type") {
                    Some("output_text") => draft.text.push_str(said("text").unwrap_or_default()),
                    Some("refusal") => {
                        draft.text.push_str(said("refusal").unwrap_or_default());
                        draft.refused = true;
                    }
                    _ => {}
                }
            }
            let said = draft.text.get(before..).unwrap_or_default().to_owned();
            draft.begin_model_reply_block(at, ReplyBlock::Text(said))?;
        }
        "function_call" => {
            draft.begin_model_reply_block(at, ReplyBlock::Call(text("call_id").to_owned()))?;
            let call = draft.get_or_add_tool_call(at)?;
            text("call_id").clone_into(&mut call.id);
            text("name").clone_into(&mut call.tool);
            text("arguments").clone_into(&mut call.arguments);
        }
        _ => {}
    }
    Ok(())
}

fn parse_responses_api_error(error: Option<&Value>) -> ModelAnswerDecodeError {
    let error = error.unwrap_or(&Value::Null);
    let status = match error
        .get("code")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "rate_limit_exceeded" => 429,
        "server_error" | "internal_error" => 500,
        "server_is_overloaded" | "slow_down" => 503,
        _ => 400,
    };
    ModelAnswerDecodeError::Reported {
        status,
        what: find_provider_error_text(error)
            .unwrap_or("the response failed")
            .to_owned(),
    }
}
