//! OpenAI's chat completions, and the many that speak them nearly so.

use serde_json::{Value, json};

use super::draft::{Draft, apart, tokens};
use super::kept::{self, Block};
use super::{Dialect, Fault, Object, arguments, in_words, outcome, words};
use crate::{Ended, Message, Request};

/// The key of the part that they are.
const THOUGHTS: &str = "thoughts";

pub(super) fn body(model: &str, request: &Request, dialect: Dialect) -> Value {
    let system = match &request.shape {
        Some(shape) if !dialect.holds_shapes => in_words(&request.system, shape),
        _ => request.system.to_string(),
    };
    let system = (!system.is_empty()).then(|| json!({ "role": "system", "content": system }));
    let said = request.messages.iter().map(|one| message(one, dialect));
    let mut body = Object::default();
    body.set("model", model);
    body.set("stream", true);
    if dialect.asks_usage {
        body.set("stream_options", json!({ "include_usage": true }));
    }
    body.set(
        "messages",
        system.into_iter().chain(said).collect::<Value>(),
    );
    if let Some(most) = request.max_tokens {
        body.set(dialect.max_tokens, most);
    }
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": *tool.schema,
            } })
        });
        body.set("tools", tools.collect::<Value>());
    }
    if let Some(shape) = request.shape.as_ref().filter(|_| dialect.holds_shapes) {
        body.set(
            "response_format",
            json!({ "type": "json_schema", "json_schema": {
            "name": shape.name, "schema": *shape.schema, "strict": true,
        } }),
        );
    }
    body.into()
}

fn message(message: &Message, dialect: Dialect) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } => {
            let mut own = Object::default();
            own.set("role", "assistant");
            if dialect.wants_thoughts {
                own.set("reasoning_content", kept::thoughts(calls));
            }
            if calls.is_empty() {
                own.set("content", text.as_str());
                return own.into();
            }
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    // Several servers read the text again, and fail on what is no JSON.
                    json!({ "id": call.id, "type": "function", "function": {
                        "name": call.tool, "arguments": arguments(call).to_string(),
                    } })
                })
                .collect();
            own.set("content", (!text.is_empty()).then_some(text.as_str()));
            own.set("tool_calls", calls);
            own.into()
        }
        Message::Result {
            call, text, failed, ..
        } => json!({ "role": "tool", "tool_call_id": call, "content": outcome(text, *failed) }),
    }
}

pub(super) fn take(draft: &mut Draft, event: &Value) -> Result<(), Fault> {
    let choice = event.pointer("/choices/0").unwrap_or(&Value::Null);
    if let Some(error) = [event, choice]
        .iter()
        .find_map(|place| place.get("error"))
        .filter(|error| !error.is_null())
    {
        let code = error.get("code").and_then(Value::as_u64);
        return Err(Fault::Said {
            status: code
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or(400),
            what: words(error)
                .or(error.as_str())
                .unwrap_or("an error")
                .to_owned(),
        });
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        count(draft, usage);
    }
    let delta = choice.get("delta").unwrap_or(&Value::Null);
    match delta.get("content") {
        Some(Value::String(text)) => draft.text.push_str(text),
        // Parts, of which thoughts are some.
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
        if !draft.has(THOUGHTS) {
            draft.begin(THOUGHTS, Block::Thought(Value::String(String::new())))?;
        }
        draft.add(THOUGHTS, "", text);
    }
    if let Some(text) = delta.get("refusal").and_then(Value::as_str) {
        draft.text.push_str(text);
        draft.refused = true;
    }
    let calls = delta.get("tool_calls").and_then(Value::as_array);
    for piece in calls.into_iter().flatten() {
        call(draft, piece)?;
    }
    if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
        draft.ended = Some(match reason {
            "stop" | "eos" => Ended::Turn,
            "tool_calls" | "function_call" => Ended::Calls,
            "length" | "model_length" => Ended::Cut,
            "content_filter" => Ended::Refused,
            other => Ended::Other(other.to_owned()),
        });
    }
    Ok(())
}

/// The last event.
pub(super) fn done(draft: &mut Draft) {
    draft.closed = true;
    draft
        .ended
        .get_or_insert_with(|| Ended::Other("no reason given".to_owned()));
}

/// Pieces of one call share an index. Where there is none, a new id begins a new call.
fn call(draft: &mut Draft, piece: &Value) -> Result<(), Fault> {
    let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
    let key = match (piece.get("index"), draft.last_key()) {
        (Some(Value::Number(index)), _) => index.to_string(),
        (_, Some(last)) if id.is_empty() && piece.pointer("/function/name").is_none() => last,
        _ if id.is_empty() => draft.next_key(),
        _ => id.to_owned(),
    };
    let call = draft.call(&key)?;
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

fn count(draft: &mut Draft, usage: &Value) {
    let (input, output) = (
        tokens(usage, "/prompt_tokens"),
        tokens(usage, "/completion_tokens"),
    );
    // xAI leaves thoughts out of what was written, but not out of the sum.
    let thought = tokens(usage, "/completion_tokens_details/reasoning_tokens").unwrap_or(0);
    let output = match (input, output, tokens(usage, "/total_tokens")) {
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
    draft.usage = apart(
        input,
        tokens(usage, "/prompt_tokens_details/cached_tokens"),
        tokens(usage, "/prompt_tokens_details/cache_write_tokens"),
        output,
    );
}
