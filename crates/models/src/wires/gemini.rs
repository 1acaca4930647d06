//! Google's `generateContent` format.

use serde_json::{Value, json};

use super::partial_reply::{PartialReply, usage_from_inclusive_totals, usage_token_count};
use super::{
    JsonObjectBuilder, ModelAnswerDecodeError, call_arguments_for_provider,
    find_provider_error_text, system_prompt_with_schema,
};
use crate::{ChatMessage, FinishReason, ModelRequest};

/// The signature that Google documents for calls whose own one is not known, such as another
/// model's.
const UNSIGNED: &str = "skip_thought_signature_validator";

pub(super) fn request_body(request: &ModelRequest) -> Value {
    let mut body = JsonObjectBuilder::default();
    body.set_json_field("contents", messages_to_gemini_contents(&request.messages));
    let mut config = JsonObjectBuilder::default();
    if let Some(most) = request.max_tokens {
        config.set_json_field("maxOutputTokens", most);
    }
    let mut system = request.system.to_string();
    match &request.output_schema {
        // Not every model supports tools and a schema at once.
        Some(shape) if !request.tools.is_empty() => {
            system = system_prompt_with_schema(&system, shape)
        }
        Some(shape) => {
            config.set_json_field("responseMimeType", "application/json");
            config.set_json_field("responseJsonSchema", (*shape.schema).clone());
        }
        None => {}
    }
    if !system.is_empty() {
        body.set_json_field(
            "systemInstruction",
            json!({ "parts": [{ "text": system }] }),
        );
    }
    if !config.is_empty() {
        body.set_json_field("generationConfig", config);
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
        body.set_json_field("tools", json!([{ "functionDeclarations": tools }]));
    }
    body.into()
}

/// Converts the conversation. Results of calls that were made together go into one message.
fn messages_to_gemini_contents(messages: &[ChatMessage]) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let mut parts = Vec::new();
        let role = match message {
            ChatMessage::User(text) => {
                parts.push(json!({ "text": text }));
                "user"
            }
            ChatMessage::Assistant { text, calls } => {
                if !text.is_empty() {
                    parts.push(json!({ "text": text }));
                }
                for (at, call) in calls.iter().enumerate() {
                    let mut part = JsonObjectBuilder::default();
                    part.set_json_field(
                        "functionCall",
                        json!({ "id": call.id, "name": call.tool, "args": call_arguments_for_provider(call) }),
                    );
                    // Of several calls only the first carries a signature.
                    if let Some(kept) = &call.provider_state {
                        part.set_json_field("thoughtSignature", kept.as_str());
                    } else if at == 0 {
                        part.set_json_field("thoughtSignature", UNSIGNED);
                    }
                    parts.push(part.into());
                }
                "model"
            }
            ChatMessage::ToolResult {
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

pub(super) fn apply_gemini_api_event(
    draft: &mut PartialReply,
    event: &Value,
) -> Result<(), ModelAnswerDecodeError> {
    if let Some(error) = event.get("error") {
        let code = error.get("code").and_then(Value::as_u64);
        return Err(ModelAnswerDecodeError::Reported {
            status: code
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or(400),
            what: find_provider_error_text(error)
                .unwrap_or("an error")
                .to_owned(),
        });
    }
    if let Some(usage) = event.get("usageMetadata") {
        fill_gemini_token_usage(draft, usage);
    }
    // Every event repeats the same reason.
    if event.pointer("/promptFeedback/blockReason").is_some() {
        draft.ended = Some(FinishReason::Refused);
    }
    let candidate = event.pointer("/candidates/0").unwrap_or(&Value::Null);
    let parts = candidate
        .pointer("/content/parts")
        .and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let signature = part.get("thoughtSignature").and_then(Value::as_str);
        if let Some(wanted) = part.get("functionCall") {
            let text = |name: &str| wanted.get(name).and_then(Value::as_str).unwrap_or_default();
            // Every call comes whole in one event, so it never needs to be found again.
            let key = draft.generate_call_key();
            let call = draft.get_or_add_tool_call(&key)?;
            text("id").clone_into(&mut call.id);
            text("name").clone_into(&mut call.tool);
            call.arguments = match wanted.get("args") {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(no_object)) => no_object.clone(),
                Some(arguments) => arguments.to_string(),
            };
            call.kept = signature.map(str::to_owned);
        // Parts that are marked as thoughts are not part of the answer.
        } else if part.get("thought").and_then(Value::as_bool) != Some(true) {
            draft
                .text
                .push_str(part.get("text").and_then(Value::as_str).unwrap_or_default());
        }
    }
    if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
        draft.ended = Some(match reason {
            "STOP" => FinishReason::EndOfTurn,
            "MAX_TOKENS" => FinishReason::Truncated,
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                FinishReason::Refused
            }
            other => FinishReason::Other(other.to_owned()),
        });
    }
    Ok(())
}

fn fill_gemini_token_usage(draft: &mut PartialReply, usage: &Value) {
    let answered = usage_token_count(usage, "/candidatesTokenCount");
    let thought = usage_token_count(usage, "/thoughtsTokenCount");
    let output = match (answered, thought) {
        (None, None) => None,
        (answered, thought) => Some(answered.unwrap_or(0).saturating_add(thought.unwrap_or(0))),
    };
    draft.usage = usage_from_inclusive_totals(
        usage_token_count(usage, "/promptTokenCount"),
        usage_token_count(usage, "/cachedContentTokenCount"),
        None,
        output,
    );
}
