//! Google's `generateContent`.

use serde_json::{Value, json};

use super::draft::{Draft, apart, tokens};
use super::{Fault, Object, arguments, in_words, words};
use crate::{Ended, Message, Request};

/// What Google documents for a call whose signature is not known, such as one of another model.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn body(request: &Request) -> Value {
    let mut body = Object::default();
    body.set("contents", contents(&request.messages));
    let mut config = Object::default();
    if let Some(most) = request.max_tokens {
        config.set("maxOutputTokens", most);
    }
    let mut system = request.system.to_string();
    match &request.shape {
        // Not every model can do both at once.
        Some(shape) if !request.tools.is_empty() => system = in_words(&system, shape),
        Some(shape) => {
            config.set("responseMimeType", "application/json");
            config.set("responseJsonSchema", (*shape.schema).clone());
        }
        None => {}
    }
    if !system.is_empty() {
        body.set(
            "systemInstruction",
            json!({ "parts": [{ "text": system }] }),
        );
    }
    if !config.is_empty() {
        body.set("generationConfig", config);
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name, "description": tool.description,
                    "parametersJsonSchema": *tool.schema,
                })
            })
            .collect();
        body.set("tools", json!([{ "functionDeclarations": tools }]));
    }
    body.into()
}

/// Results of calls that were made together stand together.
fn contents(messages: &[Message]) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let mut parts = Vec::new();
        let role = match message {
            Message::User(text) => {
                parts.push(json!({ "text": text }));
                "user"
            }
            Message::Assistant { text, calls } => {
                if !text.is_empty() {
                    parts.push(json!({ "text": text }));
                }
                for (at, call) in calls.iter().enumerate() {
                    let mut part = Object::default();
                    part.set(
                        "functionCall",
                        json!({ "id": call.id, "name": call.tool, "args": arguments(call) }),
                    );
                    // Only the first of several is signed.
                    if let Some(kept) = &call.kept {
                        part.set("thoughtSignature", kept.as_str());
                    } else if at == 0 {
                        part.set("thoughtSignature", UNSIGNED);
                    }
                    parts.push(part.into());
                }
                "model"
            }
            Message::Result {
                call,
                tool,
                text,
                failed,
            } => {
                let field = if *failed { "error" } else { "output" };
                parts.push(json!({ "functionResponse": {
                    "id": call, "name": tool, "response": { field: text },
                } }));
                "user"
            }
        };
        match out.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ if parts.is_empty() => {}
            _ => out.push((role, parts)),
        }
    }
    out.into_iter()
        .map(|(role, parts)| json!({ "role": role, "parts": parts }))
        .collect()
}

pub(super) fn take(draft: &mut Draft, event: &Value) -> Result<(), Fault> {
    if let Some(error) = event.get("error") {
        let code = error.get("code").and_then(Value::as_u64);
        return Err(Fault::Said {
            status: code
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or(400),
            what: words(error).unwrap_or("an error").to_owned(),
        });
    }
    if let Some(usage) = event.get("usageMetadata") {
        count(draft, usage);
    }
    // Every event has the same one.
    if event.pointer("/promptFeedback/blockReason").is_some() {
        draft.ended = Some(Ended::Refused);
    }
    let candidate = event.pointer("/candidates/0").unwrap_or(&Value::Null);
    let parts = candidate
        .pointer("/content/parts")
        .and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        if let Some(wanted) = part.get("functionCall") {
            let text = |name: &str| wanted.get(name).and_then(Value::as_str).unwrap_or_default();
            let key = draft.next_key();
            let call = draft.call(&key)?;
            text("id").clone_into(&mut call.id);
            text("name").clone_into(&mut call.tool);
            call.arguments = match wanted.get("args") {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(no_object)) => no_object.clone(),
                Some(arguments) => arguments.to_string(),
            };
            call.kept = signature.map(str::to_owned);
        } else if part.get("thought").and_then(Value::as_bool) != Some(true) {
            draft
                .text
                .push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
        }
    }
    if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
        draft.ended = Some(match reason {
            "STOP" => Ended::Turn,
            "MAX_TOKENS" => Ended::Cut,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                Ended::Refused
            }
            other => Ended::Other(other.to_owned()),
        });
    }
    Ok(())
}

fn count(draft: &mut Draft, usage: &Value) {
    let answered = tokens(usage, "/candidatesTokenCount");
    let thought = tokens(usage, "/thoughtsTokenCount");
    let output = match (answered, thought) {
        (None, None) => None,
        (answered, thought) => Some(answered.unwrap_or(0).saturating_add(thought.unwrap_or(0))),
    };
    draft.usage = apart(
        tokens(usage, "/promptTokenCount"),
        tokens(usage, "/cachedContentTokenCount"),
        None,
        output,
    );
}
