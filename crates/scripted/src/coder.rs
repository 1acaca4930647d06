//! Provides a scripted model for the built-in agent loop. It answers in the format of the request,
//! with what a function of the conversation returns. It keeps no state between requests, so it
//! continues where it was when the asking process dies and another one asks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{HttpRequest, HttpResponse, LoopbackHttpServer};
use crate::script::join_strings_in_json_value;

/// A turn of the model.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptedCoderTurn {
    /// A text without a tool call.
    Say(String),
    /// A text that the output limit truncates.
    Truncated(String),
    /// A tool call.
    Call {
        /// Which.
        tool: String,
        /// How.
        input: Value,
    },
    /// A refusal with this HTTP status.
    Unavailable(u16),
}

impl ScriptedCoderTurn {
    /// See [`ScriptedCoderTurn::Say`].
    pub fn scripted_text_turn(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    /// A call of the shell tool.
    pub fn scripted_shell_call_turn(command: &str) -> Self {
        Self::scripted_tool_call_turn("shell", json!({ "command": command }))
    }

    /// A call of the patch tool.
    pub fn patch_turn(patch: &str) -> Self {
        Self::scripted_tool_call_turn("apply_patch", json!({ "patch": patch }))
    }

    /// Any call.
    pub fn scripted_tool_call_turn(tool: &str, input: Value) -> Self {
        Self::Call {
            tool: tool.to_owned(),
            input,
        }
    }
}

/// The conversation of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptedCoderConversation {
    /// Number of the model's own turns.
    pub turns: usize,
    /// The text since the last of them.
    pub new_text: String,
    /// All of it.
    pub full_text: String,
}

/// The usage that an answer reports: input and output tokens.
pub const TURN_TOKENS: (u64, u64) = (1000, 700);

/// A provider of each format: the name of a model, the variable of the address, the suffix of the
/// address, and the variable of the key.
pub const PROVIDER_ENTRIES: [(&str, &str, &str, &str); 5] = [
    (
        "anthropic/claude-sonnet-4-5",
        "ANTHROPIC_BASE_URL",
        "",
        "ANTHROPIC_API_KEY",
    ),
    ("openai/gpt-5", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    (
        "openai-chat/gpt-5",
        "OPENAI_BASE_URL",
        "/v1",
        "OPENAI_API_KEY",
    ),
    (
        "gemini/gemini-2.5-pro",
        "GEMINI_BASE_URL",
        "",
        "GEMINI_API_KEY",
    ),
    ("ollama/qwen3", "OLLAMA_HOST", "", "OLLAMA_API_KEY"),
];

/// Renders the n-th turn with this number of output tokens as events.
type ScriptedTurnToEventsFn = fn(&ScriptedCoderTurn, usize, u64) -> Vec<Value>;
type ScriptedCoderFn = dyn Fn(&ScriptedCoderConversation) -> (ScriptedCoderTurn, u64) + Send + Sync;

/// A running coder.
#[derive(Debug)]
pub struct ScriptedCoderServer {
    server: LoopbackHttpServer,
    heard: Arc<Mutex<Vec<ScriptedCoderConversation>>>,
}

impl ScriptedCoderServer {
    /// Starts a server whose answers report [`TURN_TOKENS`].
    pub fn start_coder_model_server(
        script: impl Fn(&ScriptedCoderConversation) -> ScriptedCoderTurn + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        Self::start_server_with_token_counts(move |heard| (script(heard), TURN_TOKENS.1))
    }

    /// Starts a server whose script also returns the output tokens of each answer.
    pub fn start_server_with_token_counts(
        script: impl Fn(&ScriptedCoderConversation) -> (ScriptedCoderTurn, u64) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let heard = Arc::<Mutex<Vec<ScriptedCoderConversation>>>::default();
        let kept = Arc::clone(&heard);
        let server = LoopbackHttpServer::start_http_server(move |request| {
            answer_as_scripted_coder(&request, &kept, &script)
        })?;
        Ok(Self { server, heard })
    }

    /// Starts a server that answers with these turns in order; the last one is repeated for ever.
    pub fn start_with_scripted_turns(turns: Vec<ScriptedCoderTurn>) -> std::io::Result<Self> {
        Self::start_coder_model_server(move |heard| nth_or_last_scripted_turn(&turns, heard.turns))
    }

    /// `http://127.0.0.1:PORT`.
    pub fn scripted_server_base_url(&self) -> String {
        self.server.scripted_server_url()
    }

    /// Returns the environment variables with which a process reaches this model under the name of
    /// one of [`PROVIDER_ENTRIES`].
    pub fn scripted_model_environment(&self, name: &str) -> Vec<(&'static str, String)> {
        let wire = PROVIDER_ENTRIES.iter().find(|(known, ..)| *known == name);
        wire.map_or_else(Vec::new, |(_, address, below, key)| {
            vec![
                (
                    *address,
                    format!("{}{below}", self.scripted_server_base_url()),
                ),
                (*key, "sk-scripted-0123456789".to_owned()),
            ]
        })
    }

    /// Returns all requests so far, in order.
    pub fn requests_to_scripted_coder(&self) -> Vec<ScriptedCoderConversation> {
        lock_unpoisoned(&self.heard).clone()
    }
}

/// Returns the n-th turn, or the last one.
pub fn nth_or_last_scripted_turn(turns: &[ScriptedCoderTurn], n: usize) -> ScriptedCoderTurn {
    let last = turns.len().saturating_sub(1);
    turns
        .get(n.min(last))
        .cloned()
        .unwrap_or(ScriptedCoderTurn::Unavailable(500))
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer_as_scripted_coder(
    request: &HttpRequest,
    kept: &Mutex<Vec<ScriptedCoderConversation>>,
    script: &ScriptedCoderFn,
) -> HttpResponse {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let path = request.target.split('?').next().unwrap_or_default();
    // The path names the format. Compared from the end, since each provider has a prefix of its
    // own.
    let (list, name, say): (&str, &str, ScriptedTurnToEventsFn) = if path.ends_with("/v1/messages")
    {
        ("messages", "assistant", build_anthropic_events)
    } else if path.ends_with("/responses") {
        ("input", "assistant", build_responses_events)
    } else if path.ends_with("/chat/completions") {
        ("messages", "assistant", build_chat_completions_events)
    } else if path.ends_with(":streamGenerateContent") {
        ("contents", "model", scripted_gemini_events)
    } else {
        return HttpResponse::json_response(
            404,
            &json!({ "error": { "message": "not scripted" } }),
        );
    };
    let heard = read_conversation_from_request(&body, list, name);
    // Recorded before the script runs, so that a refusal is in the log as well.
    lock_unpoisoned(kept).push(heard.clone());
    let (turn, output) = script(&heard);
    if let ScriptedCoderTurn::Unavailable(status) = turn {
        let error = json!({ "error": { "message": "so it is written", "type": "scripted" } });
        return HttpResponse::json_response(status, &error);
    }
    let events = say(&turn, heard.turns, output);
    let lines: String = events
        .iter()
        // Anthropic and Responses name their events; chat completions and Gemini send data only.
        .map(|event| match event.get("type").and_then(Value::as_str) {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    HttpResponse::event_stream_response(match path.ends_with("/chat/completions") {
        true => lines + "data: [DONE]\n\n",
        false => lines,
    })
}

fn read_conversation_from_request(
    body: &Value,
    list: &str,
    name: &str,
) -> ScriptedCoderConversation {
    let items = body.get(list).and_then(Value::as_array);
    let items = items.map_or(&[][..], Vec::as_slice);
    // The Responses API lists a model's calls as items of their own, without a role.
    let own = |item: &Value| {
        item.get("role").and_then(Value::as_str) == Some(name)
            || item.get("type").and_then(Value::as_str) == Some("function_call")
    };
    let last = items.iter().rposition(own).map_or(0, |at| at + 1);
    let text = |items: &[Value]| {
        items
            .iter()
            .map(join_strings_in_json_value)
            .collect::<Vec<_>>()
            .join("\n")
    };
    ScriptedCoderConversation {
        // Counted in the request, not in the server: another process may continue the conversation.
        turns: items.iter().filter(|item| own(item)).count(),
        new_text: text(items.get(last..).unwrap_or_default()),
        full_text: text(items),
    }
}

fn build_anthropic_events(turn: &ScriptedCoderTurn, n: usize, output: u64) -> Vec<Value> {
    let (empty, delta, stop) = match turn {
        ScriptedCoderTurn::Call { tool, input } => (
            json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        ScriptedCoderTurn::Say(text) | ScriptedCoderTurn::Truncated(text) => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            if matches!(turn, ScriptedCoderTurn::Truncated(_)) {
                "max_tokens"
            } else {
                "end_turn"
            },
        ),
        ScriptedCoderTurn::Unavailable(_) => return Vec::new(),
    };
    vec![
        json!({ "type": "message_start", "message": {
            "id": format!("msg_{n}"), "type": "message", "role": "assistant", "content": [],
            "stop_reason": null, "usage": { "input_tokens": TURN_TOKENS.0, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop },
                "usage": { "output_tokens": output } }),
        json!({ "type": "message_stop" }),
    ]
}

fn build_responses_events(turn: &ScriptedCoderTurn, n: usize, output: u64) -> Vec<Value> {
    let item = match turn {
        ScriptedCoderTurn::Call { tool, input } => json!({
            "type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"),
            "status": "completed", "name": tool, "arguments": input.to_string() }),
        ScriptedCoderTurn::Say(text) | ScriptedCoderTurn::Truncated(text) => json!({
            "type": "message", "id": format!("msg_{n}"), "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
        ScriptedCoderTurn::Unavailable(_) => return Vec::new(),
    };
    // Responses report a truncated answer as an event of its own kind, not as a finish reason.
    let cut = matches!(turn, ScriptedCoderTurn::Truncated(_));
    let (status, kind) = match cut {
        true => ("incomplete", "response.incomplete"),
        false => ("completed", "response.completed"),
    };
    let why = if cut {
        json!({ "reason": "max_output_tokens" })
    } else {
        Value::Null
    };
    let usage = json!({ "input_tokens": TURN_TOKENS.0, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": output, "total_tokens": TURN_TOKENS.0 + output });
    vec![
        json!({ "type": "response.created", "response": { "id": format!("resp_{n}"), "status": "in_progress" } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": kind, "response": { "id": format!("resp_{n}"), "status": status,
            "incomplete_details": why, "output": [item], "usage": usage } }),
    ]
}

fn build_chat_completions_events(turn: &ScriptedCoderTurn, n: usize, output: u64) -> Vec<Value> {
    let (delta, finish) = match turn {
        ScriptedCoderTurn::Call { tool, input } => (
            json!({ "role": "assistant", "content": null, "tool_calls": [{
                "index": 0, "id": format!("call_{n}"), "type": "function",
                "function": { "name": tool, "arguments": input.to_string() } }] }),
            "tool_calls",
        ),
        ScriptedCoderTurn::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        ScriptedCoderTurn::Truncated(text) => {
            (json!({ "role": "assistant", "content": text }), "length")
        }
        ScriptedCoderTurn::Unavailable(_) => return Vec::new(),
    };
    vec![
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
        // Usage comes last and without choices, as OpenAI sends it with `include_usage`.
        json!({ "choices": [], "usage": { "prompt_tokens": TURN_TOKENS.0, "completion_tokens": output } }),
    ]
}

fn scripted_gemini_events(turn: &ScriptedCoderTurn, n: usize, output: u64) -> Vec<Value> {
    let (part, finish) = match turn {
        ScriptedCoderTurn::Call { tool, input } => (
            json!({ "functionCall": { "id": format!("fn_{n}"), "name": tool, "args": input } }),
            "STOP",
        ),
        ScriptedCoderTurn::Say(text) => (json!({ "text": text }), "STOP"),
        ScriptedCoderTurn::Truncated(text) => (json!({ "text": text }), "MAX_TOKENS"),
        ScriptedCoderTurn::Unavailable(_) => return Vec::new(),
    };
    vec![json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": finish }],
        "usageMetadata": { "promptTokenCount": TURN_TOKENS.0, "candidatesTokenCount": output,
            "totalTokenCount": TURN_TOKENS.0 + output },
    })]
}
