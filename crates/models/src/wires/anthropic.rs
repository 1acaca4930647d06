//! Anthropic's Messages format.

use serde_json::{Map, Value, json};

use super::partial_reply::{PartialReply, usage_token_count};
use super::thought_blocks::{ReplyBlock, ResentReplyPart, reply_parts_to_resend};
use super::{
    JsonObjectBuilder, ModelAnswerDecodeError, call_arguments_for_provider,
    find_provider_error_text,
};
use crate::{ChatMessage, FinishReason, ModelRequest};

/// The default output limit, because the format requires one. Every model that is still served can
/// write this much.
pub(super) const MAX_TOKENS: u32 = 16_384;

pub(super) fn anthropic_request_body(model: &str, request: &ModelRequest) -> Value {
    let mut messages = messages_to_anthropic_json(&request.messages);
    // A conversation with tools is sent again with every result, so what has been read is cached.
    let again = !request.tools.is_empty();
    if again && let Some(block) = last_content_block(&mut messages) {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
    let mut body = JsonObjectBuilder::default();
    body.set_json_field("model", model);
    body.set_json_field("max_tokens", request.max_tokens.unwrap_or(MAX_TOKENS));
    body.set_json_field("stream", true);
    body.set_json_field("messages", messages);
    if !request.system.is_empty() {
        let mut block = JsonObjectBuilder::default();
        block.set_json_field("type", "text");
        block.set_json_field("text", &*request.system);
        if again {
            block.set_json_field("cache_control", json!({ "type": "ephemeral" }));
        }
        body.set_json_field("system", vec![Value::from(block)]);
    }
    if again {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description, "input_schema": *tool.schema,
            })
        });
        body.set_json_field("tools", tools.collect::<Value>());
    }
    if let Some(shape) = &request.output_schema {
        body.set_json_field(
            "output_config",
            json!({ "format": { "type": "json_schema", "schema": *shape.schema } }),
        );
    }
    body.into()
}

/// Converts the conversation. The format requires alternating roles and no empty texts, and tool
/// results come first in their message.
fn messages_to_anthropic_json(messages: &[ChatMessage]) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let mut blocks = Vec::new();
        let role = match message {
            ChatMessage::User(text) => {
                push_text_block(&mut blocks, text);
                "user"
            }
            ChatMessage::Assistant { text, calls } => {
                blocks.extend(
                    reply_parts_to_resend(text, calls)
                        .into_iter()
                        .map(to_anthropic_content_block),
                );
                "assistant"
            }
            ChatMessage::ToolResult {
                call, text, failed, ..
            } => {
                blocks.push(json!({
                    "type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed,
                }));
                "user"
            }
        };
        match out.last_mut() {
            // Several results in a row become one user message, since roles must alternate.
            Some((last, before)) if *last == role => before.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => out.push((role, blocks)),
        }
    }
    out.into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn to_anthropic_content_block(part: ResentReplyPart<'_>) -> Value {
    match part {
        ResentReplyPart::Thought(thought) => thought,
        ResentReplyPart::Text(text) => json!({ "type": "text", "text": text }),
        ResentReplyPart::Call(call) => {
            json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": call_arguments_for_provider(call) })
        }
    }
}

fn push_text_block(blocks: &mut Vec<Value>, text: &str) {
    if !text.trim().is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
}

fn last_content_block(messages: &mut [Value]) -> Option<&mut Map<String, Value>> {
    let content = messages.last_mut()?.get_mut("content")?.as_array_mut()?;
    content.last_mut()?.as_object_mut()
}

pub(super) fn apply_stream_event(
    draft: &mut PartialReply,
    event: &Value,
) -> Result<(), ModelAnswerDecodeError> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    let key = || event.get("index").unwrap_or(&Value::Null).to_string();
    match text("/type").unwrap_or_default() {
        "message_start" => {
            if let Some(usage) = event.pointer("/message/usage") {
                fill_anthropic_token_usage(draft, usage);
            }
        }
        "content_block_start" => match text("/content_block/type") {
            Some("text") => {
                let begun = text("/content_block/text").unwrap_or_default();
                draft.text.push_str(begun);
                draft.begin_model_reply_block(&key(), ReplyBlock::Text(begun.to_owned()))?;
            }
            Some("thinking") => {
                let begun = text("/content_block/thinking").unwrap_or_default();
                let signature = text("/content_block/signature").unwrap_or_default();
                let block =
                    json!({ "type": "thinking", "thinking": begun, "signature": signature });
                draft.begin_model_reply_block(&key(), ReplyBlock::Thought(block))?;
            }
            Some("redacted_thinking") => {
                draft.begin_model_reply_block(
                    &key(),
                    ReplyBlock::Thought(event.get("content_block").cloned().unwrap_or_default()),
                )?;
            }
            Some("tool_use") => {
                let id = text("/content_block/id").unwrap_or_default();
                draft.begin_model_reply_block(&key(), ReplyBlock::Call(id.to_owned()))?;
                let call = draft.get_or_add_tool_call(&key())?;
                text("/content_block/id")
                    .unwrap_or_default()
                    .clone_into(&mut call.id);
                text("/content_block/name")
                    .unwrap_or_default()
                    .clone_into(&mut call.tool);
                // Some gateways send the complete arguments here instead of in deltas.
                if let Some(Value::Object(input)) = event.pointer("/content_block/input")
                    && !input.is_empty()
                {
                    call.arguments = Value::Object(input.clone()).to_string();
                }
            }
            // Blocks of tools that run at the provider.
            _ => {}
        },
        "content_block_delta" => match text("/delta/type") {
            Some("text_delta") => {
                let piece = text("/delta/text").unwrap_or_default();
                draft.text.push_str(piece);
                draft.append_to_model_reply_block(&key(), "text", piece);
            }
            Some(kind @ ("thinking_delta" | "signature_delta")) => {
                let field = kind.trim_end_matches("_delta");
                let piece = event.pointer("/delta").and_then(|delta| delta.get(field));
                draft.append_to_model_reply_block(
                    &key(),
                    field,
                    piece.and_then(Value::as_str).unwrap_or_default(),
                );
            }
            Some("input_json_delta") => {
                let piece = text("/delta/partial_json").unwrap_or_default();
                // These deltas also come for tools that run at the provider, whose blocks are no
                // calls here.
                if let Some(call) = draft.find_streamed_call_mut(&key()) {
                    call.arguments.push_str(piece);
                }
            }
            _ => {}
        },
        "message_delta" => {
            if let Some(usage) = event.get("usage") {
                fill_anthropic_token_usage(draft, usage);
            }
            if let Some(reason) = text("/delta/stop_reason") {
                draft.ended = Some(match reason {
                    "end_turn" | "stop_sequence" => FinishReason::EndOfTurn,
                    "tool_use" => FinishReason::Calls,
                    "max_tokens" | "model_context_window_exceeded" => FinishReason::Truncated,
                    "refusal" => FinishReason::Refused,
                    other => FinishReason::Other(other.to_owned()),
                });
            }
        }
        "message_stop" => draft.closed = true,
        "error" => {
            // The stream began with status 200, so the status is derived from the type of the
            // error. 529 is Anthropic's own status for overload.
            let status = match text("/error/type").unwrap_or_default() {
                "overloaded_error" => 529,
                "rate_limit_error" => 429,
                "api_error" | "timeout_error" => 500,
                _ => 400,
            };
            return Err(ModelAnswerDecodeError::Reported {
                status,
                what: find_provider_error_text(event)
                    .unwrap_or("an error")
                    .to_owned(),
            });
        }
        _ => {}
    }
    Ok(())
}

/// Records token use. The start event reports input and the last one output; some gateways report
/// everything at the end.
fn fill_anthropic_token_usage(draft: &mut PartialReply, usage: &Value) {
    let count = |field: &mut Option<u64>, pointer: &str| {
        if let Some(tokens) = usage_token_count(usage, pointer) {
            *field = Some(tokens);
        }
    };
    count(&mut draft.usage.input, "/input_tokens");
    count(&mut draft.usage.cache_read, "/cache_read_input_tokens");
    count(&mut draft.usage.cache_write, "/cache_creation_input_tokens");
    count(&mut draft.usage.output, "/output_tokens");
}
