//! The wires as the providers write them: one answer, said in each format.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde_json::{Value, json};

pub(crate) const KEY: &str = "sk-test-0123456789";

/// A provider that is asked, and how it writes.
pub(crate) struct WireFixture {
    /// `provider/model`.
    pub(crate) name: &'static str,
    base: &'static str,
    /// What stands behind the server's address in the variable.
    below: &'static str,
    key: &'static str,
    /// The header that has the key, and its whole value.
    pub(crate) header: (&'static str, String),
    pub(crate) target: &'static str,
    pub(crate) say: fn(&FixtureReply) -> Vec<String>,
    /// A mistake that the format has.
    pub(crate) malformed: &'static str,
    /// How it says inside of a stream that it is overloaded.
    pub(crate) overloaded: &'static str,
    /// It tells the tokens that went into its cache.
    pub(crate) tells_written: bool,
}

impl WireFixture {
    pub(crate) fn environment(&self, server: &str) -> BTreeMap<OsString, OsString> {
        BTreeMap::from([
            (self.base.into(), format!("{server}{}", self.below).into()),
            (self.key.into(), KEY.into()),
        ])
    }
}

/// Why the answer ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FixtureEnd {
    Turn,
    Calls,
    Cut,
    Refused,
    Odd,
}

/// An answer in nobody's format.
pub(crate) struct FixtureReply {
    pub(crate) thought: Option<&'static str>,
    pub(crate) text: Vec<&'static str>,
    /// Id, tool, and arguments in pieces.
    pub(crate) calls: Vec<(&'static str, &'static str, Vec<&'static str>)>,
    pub(crate) end: FixtureEnd,
    pub(crate) told: bool,
}

/// Tokens, as `FixtureReply::told` tells them: read anew, from the cache, into it, and written.
pub(crate) const TOKENS: (u64, u64, u64, u64) = (100, 20, 5, 30);
/// Of those written, for thoughts.
const THOUGHT: u64 = 10;

pub(crate) fn all() -> Vec<WireFixture> {
    let bearer = || ("authorization", format!("Bearer {KEY}"));
    vec![
        WireFixture {
            name: "anthropic/claude-x",
            base: "ANTHROPIC_BASE_URL",
            below: "",
            key: "ANTHROPIC_API_KEY",
            header: ("x-api-key", KEY.to_owned()),
            target: "/v1/messages",
            say: anthropic,
            malformed: "data: {\"type\": \"message_start\", \"mess\n\n",
            overloaded: r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            tells_written: true,
        },
        WireFixture {
            name: "openai/gpt-x",
            base: "OPENAI_BASE_URL",
            below: "/v1",
            key: "OPENAI_API_KEY",
            header: bearer(),
            target: "/v1/responses",
            say: responses,
            malformed: "event: response.created\ndata: {\"type\":\n\n",
            overloaded: r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_is_overloaded","message":"Overloaded"}}}"#,
            tells_written: true,
        },
        WireFixture {
            name: "openai-chat/gpt-x",
            base: "OPENAI_BASE_URL",
            below: "/v1",
            key: "OPENAI_API_KEY",
            header: bearer(),
            target: "/v1/chat/completions",
            say: chat,
            malformed: "data: {\"choices\":[}\n\n",
            overloaded: r#"{"error":{"code":529,"message":"Overloaded"}}"#,
            tells_written: true,
        },
        WireFixture {
            name: "gemini/gemini-x",
            base: "GEMINI_BASE_URL",
            below: "",
            key: "GEMINI_API_KEY",
            header: ("x-goog-api-key", KEY.to_owned()),
            target: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
            say: gemini,
            malformed: "data: [1, 2\r\n\r\n",
            overloaded: r#"{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}"#,
            tells_written: false,
        },
        WireFixture {
            name: "ollama/llama-x:8b",
            base: "OLLAMA_HOST",
            below: "",
            key: "OLLAMA_API_KEY",
            header: bearer(),
            target: "/v1/chat/completions",
            say: ollama,
            malformed: "data: null\n\n",
            overloaded: r#"{"error":{"code":503,"message":"Overloaded"}}"#,
            tells_written: false,
        },
    ]
}

fn event(data: &Value) -> String {
    match data.get("type").and_then(Value::as_str) {
        Some(kind) => format!("event: {kind}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

fn anthropic(said: &FixtureReply) -> Vec<String> {
    let (input, cached, written, output) = TOKENS;
    let usage = |output: u64| {
        if said.told {
            json!({
                "input_tokens": input, "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": written, "output_tokens": output,
            })
        } else {
            json!({})
        }
    };
    let mut out = vec![
        json!({ "type": "message_start", "message": {
            "id": "msg_1", "role": "assistant", "content": [], "usage": usage(1),
        } }),
        json!({ "type": "ping" }),
    ];
    let mut index = 0;
    let mut block = |opening: Value, deltas: Vec<Value>| {
        out.push(
            json!({ "type": "content_block_start", "index": index, "content_block": opening }),
        );
        for delta in deltas {
            out.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
        }
        out.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    if let Some(thought) = said.thought {
        let deltas = vec![
            json!({ "type": "thinking_delta", "thinking": thought }),
            json!({ "type": "signature_delta", "signature": "c2ln" }),
        ];
        block(json!({ "type": "thinking", "thinking": "" }), deltas);
        block(
            json!({ "type": "redacted_thinking", "data": "eHl6" }),
            vec![],
        );
    }
    if !said.text.is_empty() {
        let deltas = said
            .text
            .iter()
            .map(|text| json!({ "type": "text_delta", "text": text }));
        block(json!({ "type": "text", "text": "" }), deltas.collect());
    }
    for (id, tool, pieces) in &said.calls {
        let opening = json!({ "type": "tool_use", "id": id, "name": tool, "input": {} });
        let deltas = pieces
            .iter()
            .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
        block(opening, deltas.collect());
    }
    let reason = match said.end {
        FixtureEnd::Turn => "end_turn",
        FixtureEnd::Calls => "tool_use",
        FixtureEnd::Cut => "max_tokens",
        FixtureEnd::Refused => "refusal",
        FixtureEnd::Odd => "pause_turn",
    };
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    let usage = if said.told {
        json!({ "output_tokens": output })
    } else {
        json!({})
    };
    out.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    out.push(json!({ "type": "message_stop" }));
    out.iter().map(event).collect()
}

fn responses(said: &FixtureReply) -> Vec<String> {
    let mut out = vec![
        json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress", "output": [] } }),
    ];
    let mut items: Vec<Value> = Vec::new();
    let mut add = |item: Value, deltas: Vec<Value>| {
        let at = items.len();
        out.push(json!({ "type": "response.output_item.added", "output_index": at, "item": { "type": item["type"], "id": item["id"] } }));
        for mut delta in deltas {
            delta["output_index"] = json!(at);
            out.push(delta);
        }
        // What is cut is not done.
        if said.end != FixtureEnd::Cut || item["type"] != "message" {
            out.push(
                json!({ "type": "response.output_item.done", "output_index": at, "item": item }),
            );
        }
        items.push(item);
    };
    if let Some(thought) = said.thought {
        let item = json!({ "type": "reasoning", "id": "rs_1", "encrypted_content": "c2ln", "summary": [{ "type": "summary_text", "text": thought }] });
        let delta = json!({ "type": "response.reasoning_summary_text.delta", "delta": thought });
        add(item, vec![delta]);
    }
    if !said.text.is_empty() {
        let text = said.text.concat();
        let (part, kind) = if said.end == FixtureEnd::Refused {
            (
                json!({ "type": "refusal", "refusal": text }),
                "response.refusal.delta",
            )
        } else {
            (
                json!({ "type": "output_text", "text": text, "annotations": [] }),
                "response.output_text.delta",
            )
        };
        let deltas = said
            .text
            .iter()
            .map(|text| json!({ "type": kind, "delta": text }));
        let item =
            json!({ "type": "message", "id": "msg_1", "role": "assistant", "content": [part] });
        add(item, deltas.collect());
    }
    for (id, tool, pieces) in &said.calls {
        let deltas = pieces.iter().map(
            |piece| json!({ "type": "response.function_call_arguments.delta", "delta": piece }),
        );
        let item = json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": tool,
            "arguments": pieces.concat(),
        });
        add(item, deltas.collect());
    }
    let (input, cached, written, output) = TOKENS;
    let usage = json!({
        "input_tokens": input + cached + written,
        "input_tokens_details": { "cached_tokens": cached, "cache_write_tokens": written },
        "output_tokens": output, "output_tokens_details": { "reasoning_tokens": THOUGHT },
    });
    let usage = if said.told { usage } else { Value::Null };
    let (kind, details) = match said.end {
        FixtureEnd::Cut => (
            "response.incomplete",
            json!({ "reason": "max_output_tokens" }),
        ),
        FixtureEnd::Odd => ("response.incomplete", json!({ "reason": "pause_turn" })),
        _ => ("response.completed", Value::Null),
    };
    // Some gateways leave the items out here.
    let output = if said.told { json!(items) } else { json!([]) };
    out.push(json!({ "type": kind, "response": {
        "id": "resp_1", "output": if said.end == FixtureEnd::Cut { json!([]) } else { output },
        "incomplete_details": details, "usage": usage,
    } }));
    out.iter().map(event).collect()
}

fn chat_events(said: &FixtureReply, thought_field: &str, cached: bool) -> Vec<String> {
    let choice = |delta: Value, reason: Option<&str>| {
        event(
            &json!({ "id": "c", "object": "chat.completion.chunk", "choices": [{
            "index": 0, "delta": delta, "finish_reason": reason,
        }] }),
        )
    };
    let mut out = vec![
        ": PROCESSING\n\n".to_owned(),
        choice(json!({ "role": "assistant", "content": "" }), None),
    ];
    if let Some(thought) = said.thought {
        out.push(choice(json!({ thought_field: thought }), None));
    }
    for text in &said.text {
        let field = if said.end == FixtureEnd::Refused {
            "refusal"
        } else {
            "content"
        };
        out.push(choice(json!({ field: text }), None));
    }
    for (at, (id, tool, _)) in said.calls.iter().enumerate() {
        let function = json!({ "name": tool, "arguments": "" });
        let call = json!({ "index": at, "id": id, "type": "function", "function": function });
        out.push(choice(json!({ "tool_calls": [call] }), None));
    }
    // The pieces of parallel calls come in turn.
    let longest = said.calls.iter().map(|(_, _, pieces)| pieces.len()).max();
    for turn in 0..longest.unwrap_or(0) {
        for (at, (_, _, pieces)) in said.calls.iter().enumerate() {
            if let Some(piece) = pieces.get(turn) {
                let call = json!({ "index": at, "function": { "arguments": piece } });
                out.push(choice(json!({ "tool_calls": [call] }), None));
            }
        }
    }
    let reason = match said.end {
        FixtureEnd::Turn | FixtureEnd::Refused => "stop",
        FixtureEnd::Calls => "tool_calls",
        FixtureEnd::Cut => "length",
        FixtureEnd::Odd => "pause_turn",
    };
    out.push(choice(json!({}), Some(reason)));
    if said.told {
        let (input, read, written, output) = TOKENS;
        let mut usage = json!({ "prompt_tokens": input, "completion_tokens": output });
        if cached {
            usage = json!({
                "prompt_tokens": input + read + written,
                "prompt_tokens_details": { "cached_tokens": read, "cache_write_tokens": written },
                "completion_tokens": output,
                "completion_tokens_details": { "reasoning_tokens": THOUGHT },
                "total_tokens": input + read + written + output,
            });
        }
        out.push(event(&json!({ "choices": [], "usage": usage })));
    }
    out.push("data: [DONE]\n\n".to_owned());
    out
}

fn chat(said: &FixtureReply) -> Vec<String> {
    chat_events(said, "reasoning_content", true)
}

/// Calls come whole, without pieces.
fn ollama(said: &FixtureReply) -> Vec<String> {
    chat_events(said, "reasoning", false)
}

fn gemini(said: &FixtureReply) -> Vec<String> {
    let (input, cached, _, output) = TOKENS;
    let chunk = |parts: Vec<Value>, reason: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let Some(reason) = reason {
            candidate["finishReason"] = json!(reason);
        }
        let mut all = json!({ "candidates": [candidate], "responseId": "r" });
        if said.told {
            all["usageMetadata"] =
                json!({ "promptTokenCount": input + cached, "cachedContentTokenCount": cached });
            if reason.is_some() {
                all["usageMetadata"]["candidatesTokenCount"] = json!(output - THOUGHT);
                all["usageMetadata"]["thoughtsTokenCount"] = json!(THOUGHT);
            }
        }
        format!("data: {all}\r\n\r\n")
    };
    let mut out = Vec::new();
    if let Some(thought) = said.thought {
        out.push(chunk(
            vec![json!({ "text": thought, "thought": true })],
            None,
        ));
    }
    for text in &said.text {
        out.push(chunk(vec![json!({ "text": text })], None));
    }
    let calls: Vec<Value> = said
        .calls
        .iter()
        .map(|(id, tool, pieces)| {
            let text = pieces.concat();
            let arguments = match text.as_str() {
                "" => json!({}),
                // It has no way to send what is no JSON, but for a text.
                text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            };
            json!({ "functionCall": { "id": id, "name": tool, "args": arguments }, "thoughtSignature": "c2ln" })
        })
        .collect();
    if !calls.is_empty() {
        out.push(chunk(calls, None));
    }
    let reason = match said.end {
        // It has one word for both.
        FixtureEnd::Turn | FixtureEnd::Calls => "STOP",
        FixtureEnd::Cut => "MAX_TOKENS",
        FixtureEnd::Refused => "SAFETY",
        FixtureEnd::Odd => "pause_turn",
    };
    out.push(chunk(vec![json!({ "text": "" })], Some(reason)));
    out
}
