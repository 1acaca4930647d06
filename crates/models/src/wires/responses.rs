//! OpenAI's Responses.

use serde_json::{Value, json};

use super::draft::{Draft, apart, tokens};
use super::kept::{Block, Part, parts};
use super::{Fault, Object, arguments, outcome, words};
use crate::{Ended, Message, Request};

/// Thoughts that only the provider can read: it keeps none, as nothing of the conversation.
const THOUGHTS: &str = "reasoning.encrypted_content";

/// Those that do not, refuse to be asked for thoughts.
fn thinks(model: &str) -> bool {
    !["gpt-4", "gpt-3", "chatgpt-4"]
        .iter()
        .any(|begin| model.starts_with(begin))
}

pub(super) fn body(model: &str, request: &Request) -> Value {
    let mut body = Object::default();
    body.set("model", model);
    body.set("stream", true);
    // The conversation is ours; the provider need not keep it.
    body.set("store", false);
    let items: Value = request.messages.iter().flat_map(items).collect();
    body.set("input", items);
    if !request.system.is_empty() {
        body.set("instructions", &*request.system);
    }
    if let Some(most) = request.max_tokens {
        body.set("max_output_tokens", most);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            // Strict would refuse schemas with optional fields.
            json!({
                "type": "function", "name": tool.name, "description": tool.description,
                "parameters": *tool.schema, "strict": false,
            })
        });
        body.set("tools", tools.collect::<Value>());
        if thinks(model) {
            body.set("include", json!([THOUGHTS]));
        }
    }
    if let Some(shape) = &request.shape {
        body.set(
            "text",
            json!({ "format": {
            "type": "json_schema", "name": shape.name, "schema": *shape.schema, "strict": true,
        } }),
        );
    }
    body.into()
}

fn items(message: &Message) -> Vec<Value> {
    let said = |role: &str, kind: &str, text: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    match message {
        Message::User(text) => vec![said("user", "input_text", text)],
        Message::Assistant { text, calls } => {
            let part = |part: Part<'_>| match part {
                Part::Thought(thought) => thought,
                Part::Text(text) => said("assistant", "output_text", &text),
                Part::Call(call) => json!({
                    "type": "function_call", "call_id": call.id, "name": call.tool,
                    "arguments": arguments(call).to_string(),
                }),
            };
            parts(text, calls).into_iter().map(part).collect()
        }
        Message::Result {
            call, text, failed, ..
        } => vec![json!({
            "type": "function_call_output", "call_id": call, "output": outcome(text, *failed),
        })],
    }
}

pub(super) fn take(draft: &mut Draft, event: &Value) -> Result<(), Fault> {
    let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
    match text("/type").unwrap_or_default() {
        // Only what is whole is taken, but for the text of an answer that is cut.
        "response.output_text.delta" | "response.refusal.delta" => {
            draft.pieces.push_str(text("/delta").unwrap_or_default())
        }
        "response.output_item.done" => {
            let at = event
                .get("output_index")
                .unwrap_or(&Value::Null)
                .to_string();
            item(draft, event.get("item").unwrap_or(&Value::Null), &at)?;
        }
        "response.completed" | "response.incomplete" => {
            // Some gateways send the items at the end only.
            if draft.is_empty() {
                let items = event.pointer("/response/output").and_then(Value::as_array);
                for (at, one) in items.into_iter().flatten().enumerate() {
                    item(draft, one, &at.to_string())?;
                }
            }
            if draft.text.is_empty() {
                draft.text = std::mem::take(&mut draft.pieces);
            }
            if let Some(usage) = event.pointer("/response/usage") {
                draft.usage = apart(
                    tokens(usage, "/input_tokens"),
                    tokens(usage, "/input_tokens_details/cached_tokens"),
                    tokens(usage, "/input_tokens_details/cache_write_tokens"),
                    tokens(usage, "/output_tokens"),
                );
            }
            let cut = text("/response/incomplete_details/reason");
            draft.ended = Some(match (text("/type"), cut) {
                (Some("response.completed"), _) => Ended::Turn,
                (_, Some("max_output_tokens")) => Ended::Cut,
                (_, Some("content_filter")) => Ended::Refused,
                (_, other) => Ended::Other(other.unwrap_or("incomplete").to_owned()),
            });
            draft.closed = true;
        }
        "response.failed" => return Err(fault(event.pointer("/response/error"))),
        // With the error as a field of it, or as the event itself.
        "error" => return Err(fault(event.get("error").or(Some(event)))),
        _ => {}
    }
    Ok(())
}

fn item(draft: &mut Draft, item: &Value, at: &str) -> Result<(), Fault> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "reasoning" => {
            // Its id would be looked for in what the provider keeps.
            if !draft.has(at)
                && let Some(sealed) = item.get("encrypted_content").filter(|it| it.is_string())
            {
                let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
                let thought = json!({
                    "type": "reasoning", "summary": summary, "encrypted_content": sealed,
                });
                draft.begin(at, Block::Thought(thought))?;
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
            draft.begin(at, Block::Text(said))?;
        }
        "function_call" => {
            draft.begin(at, Block::Call(text("call_id").to_owned()))?;
            let call = draft.call(at)?;
            text("call_id").clone_into(&mut call.id);
            text("name").clone_into(&mut call.tool);
            text("arguments").clone_into(&mut call.arguments);
        }
        _ => {}
    }
    Ok(())
}

fn fault(error: Option<&Value>) -> Fault {
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
    Fault::Said {
        status,
        what: words(error).unwrap_or("the response failed").to_owned(),
    }
}
