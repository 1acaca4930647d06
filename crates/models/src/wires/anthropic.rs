//! Anthropic's Messages.

use serde_json::{Map, Value, json};

use super::draft::{Draft, tokens};
use super::kept::{Block, Part, parts};
use super::{Fault, Object, arguments, words};
use crate::{Ended, Message, Request};

/// The format insists on a limit; every model that it still serves can write this much.
const MAX_TOKENS: u32 = 16_384;

pub(super) fn body(model: &str, request: &Request) -> Value {
    let mut messages = messages(&request.messages);
    // A conversation with tools is sent again with every result: what has been read is kept.
    let again = !request.tools.is_empty();
    if again && let Some(block) = last_block(&mut messages) {
        block.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
    let mut body = Object::default();
    body.set("model", model);
    body.set("max_tokens", request.max_tokens.unwrap_or(MAX_TOKENS));
    body.set("stream", true);
    body.set("messages", messages);
    if !request.system.is_empty() {
        let mut block = Object::default();
        block.set("type", "text");
        block.set("text", &*request.system);
        if again {
            block.set("cache_control", json!({ "type": "ephemeral" }));
        }
        body.set("system", vec![Value::from(block)]);
    }
    if again {
        let tools = request.tools.iter().map(|tool| {
            json!({
                "name": tool.name, "description": tool.description, "input_schema": *tool.schema,
            })
        });
        body.set("tools", tools.collect::<Value>());
    }
    if let Some(shape) = &request.shape {
        body.set(
            "output_config",
            json!({ "format": { "type": "json_schema", "schema": *shape.schema } }),
        );
    }
    body.into()
}

/// Roles alternate and no text is empty, as the format wants it; results come first.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let mut blocks = Vec::new();
        let role = match message {
            Message::User(text) => {
                said(&mut blocks, text);
                "user"
            }
            Message::Assistant { text, calls } => {
                blocks.extend(parts(text, calls).into_iter().map(part));
                "assistant"
            }
            Message::Result {
                call, text, failed, ..
            } => {
                blocks.push(json!({
                    "type": "tool_result", "tool_use_id": call, "content": text, "is_error": failed,
                }));
                "user"
            }
        };
        match out.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => out.push((role, blocks)),
        }
    }
    out.into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn part(part: Part<'_>) -> Value {
    match part {
        Part::Thought(thought) => thought,
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Call(call) => {
            json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": arguments(call) })
        }
    }
}

fn said(blocks: &mut Vec<Value>, text: &str) {
    if !text.trim().is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
}

fn last_block(messages: &mut [Value]) -> Option<&mut Map<String, Value>> {
    let content = messages.last_mut()?.get_mut("content")?.as_array_mut()?;
    content.last_mut()?.as_object_mut()
}

pub(super) fn take(draft: &mut Draft, event: &Value) -> Result<(), Fault> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    let key = || event.get("index").unwrap_or(&Value::Null).to_string();
    match text("/type").unwrap_or_default() {
        "message_start" => {
            if let Some(usage) = event.pointer("/message/usage") {
                count(draft, usage);
            }
        }
        "content_block_start" => match text("/content_block/type") {
            Some("text") => {
                let begun = text("/content_block/text").unwrap_or_default();
                draft.text.push_str(begun);
                draft.begin(&key(), Block::Text(begun.to_owned()))?;
            }
            Some("thinking") => {
                let begun = text("/content_block/thinking").unwrap_or_default();
                let signature = text("/content_block/signature").unwrap_or_default();
                let block =
                    json!({ "type": "thinking", "thinking": begun, "signature": signature });
                draft.begin(&key(), Block::Thought(block))?;
            }
            Some("redacted_thinking") => {
                draft.begin(
                    &key(),
                    Block::Thought(event.get("content_block").cloned().unwrap_or_default()),
                )?;
            }
            Some("tool_use") => {
                let id = text("/content_block/id").unwrap_or_default();
                draft.begin(&key(), Block::Call(id.to_owned()))?;
                let call = draft.call(&key())?;
                text("/content_block/id")
                    .unwrap_or_default()
                    .clone_into(&mut call.id);
                text("/content_block/name")
                    .unwrap_or_default()
                    .clone_into(&mut call.tool);
                // Some gateways send the arguments whole, here.
                if let Some(Value::Object(input)) = event.pointer("/content_block/input")
                    && !input.is_empty()
                {
                    call.arguments = Value::Object(input.clone()).to_string();
                }
            }
            // What runs at the provider.
            _ => {}
        },
        "content_block_delta" => match text("/delta/type") {
            Some("text_delta") => {
                let piece = text("/delta/text").unwrap_or_default();
                draft.text.push_str(piece);
                draft.add(&key(), "text", piece);
            }
            Some(kind @ ("thinking_delta" | "signature_delta")) => {
                let field = kind.trim_end_matches("_delta");
                let piece = event.pointer("/delta").and_then(|delta| delta.get(field));
                draft.add(
                    &key(),
                    field,
                    piece.and_then(Value::as_str).unwrap_or_default(),
                );
            }
            Some("input_json_delta") => {
                let piece = text("/delta/partial_json").unwrap_or_default();
                // Also of tools that run at the provider, whose blocks are no calls here.
                if let Some(call) = draft.known(&key()) {
                    call.arguments.push_str(piece);
                }
            }
            _ => {}
        },
        "message_delta" => {
            if let Some(usage) = event.get("usage") {
                count(draft, usage);
            }
            if let Some(reason) = text("/delta/stop_reason") {
                draft.ended = Some(match reason {
                    "end_turn" | "stop_sequence" => Ended::Turn,
                    "tool_use" => Ended::Calls,
                    "max_tokens" | "model_context_window_exceeded" => Ended::Cut,
                    "refusal" => Ended::Refused,
                    other => Ended::Other(other.to_owned()),
                });
            }
        }
        "message_stop" => draft.closed = true,
        "error" => {
            let status = match text("/error/type").unwrap_or_default() {
                "overloaded_error" => 529,
                "rate_limit_error" => 429,
                "api_error" | "timeout_error" => 500,
                _ => 400,
            };
            return Err(Fault::Said {
                status,
                what: words(event).unwrap_or("an error").to_owned(),
            });
        }
        _ => {}
    }
    Ok(())
}

/// The beginning tells what was read, the end what was written; some gateways tell all at the end.
fn count(draft: &mut Draft, usage: &Value) {
    let count = |field: &mut Option<u64>, pointer: &str| {
        if let Some(tokens) = tokens(usage, pointer) {
            *field = Some(tokens);
        }
    };
    count(&mut draft.usage.input, "/input_tokens");
    count(&mut draft.usage.cached, "/cache_read_input_tokens");
    count(&mut draft.usage.written, "/cache_creation_input_tokens");
    count(&mut draft.usage.output, "/output_tokens");
}
