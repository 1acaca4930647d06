//! A model that works with the tools it is offered, whatever they are: it answers in the format in
//! which it is asked, and says what a function of the conversation says. So it goes on where it was
//! when the process that asked it dies and another one asks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{Request, Response, Server};
use crate::script::texts;

/// What it does.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// Says something and wants nothing done.
    Say(String),
    /// Says something that its output limit cuts.
    Cut(String),
    /// Wants a tool used.
    Call {
        /// Which.
        tool: String,
        /// How.
        input: Value,
    },
    /// Is not there: an HTTP status.
    Gone(u16),
}

impl Turn {
    /// See [`Turn::Say`].
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }

    /// A call of the shell tool.
    pub fn shell(command: &str) -> Self {
        Self::call("shell", json!({ "command": command }))
    }

    /// A call of the patch tool.
    pub fn patch(patch: &str) -> Self {
        Self::call("apply_patch", json!({ "patch": patch }))
    }

    /// Any call.
    pub fn call(tool: &str, input: Value) -> Self {
        Self::Call {
            tool: tool.to_owned(),
            input,
        }
    }
}

/// A conversation, as far as it was had when the model is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Heard {
    /// The model's own turns in it.
    pub turns: usize,
    /// What came since the last of them.
    pub fresh: String,
    /// All of it.
    pub whole: String,
}

/// What an answer is said to have cost: tokens read, and written.
pub const USED: (u64, u64) = (1000, 700);

/// The formats, with a provider of each: its name for a model, the variable of its address, what
/// stands behind the address there, and the variable of its key.
pub const WIRES: [(&str, &str, &str, &str); 5] = [
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

/// Writes the n-th turn, which took so many tokens, as events.
type Say = fn(&Turn, usize, u64) -> Vec<Value>;
type Script = dyn Fn(&Heard) -> (Turn, u64) + Send + Sync;

/// A running coder.
#[derive(Debug)]
pub struct Coder {
    server: Server,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Coder {
    /// Every answer costs [`USED`].
    pub fn start(script: impl Fn(&Heard) -> Turn + Send + Sync + 'static) -> std::io::Result<Self> {
        Self::costing(move |heard| (script(heard), USED.1))
    }

    /// The script says as well how many tokens each answer takes.
    pub fn costing(
        script: impl Fn(&Heard) -> (Turn, u64) + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let kept = Arc::clone(&heard);
        let server = Server::start(move |request| answer(&request, &kept, &script))?;
        Ok(Self { server, heard })
    }

    /// The n-th turn is the n-th of these; the last one is repeated for ever.
    pub fn by_turns(turns: Vec<Turn>) -> std::io::Result<Self> {
        Self::start(move |heard| nth(&turns, heard.turns))
    }

    /// `http://127.0.0.1:PORT`.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// What a process needs in its environment to ask this model by the name of one of [`WIRES`].
    pub fn environment(&self, name: &str) -> Vec<(&'static str, String)> {
        let wire = WIRES.iter().find(|(known, ..)| *known == name);
        wire.map_or_else(Vec::new, |(_, address, below, key)| {
            vec![
                (*address, format!("{}{below}", self.base())),
                (*key, "sk-scripted-0123456789".to_owned()),
            ]
        })
    }

    /// Every question so far, in order.
    pub fn heard(&self) -> Vec<Heard> {
        held(&self.heard).clone()
    }
}

/// The n-th, or the last.
pub fn nth(turns: &[Turn], n: usize) -> Turn {
    let last = turns.len().saturating_sub(1);
    turns.get(n.min(last)).cloned().unwrap_or(Turn::Gone(500))
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(request: &Request, kept: &Mutex<Vec<Heard>>, script: &Script) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let path = request.target.split('?').next().unwrap_or_default();
    let (list, name, say): (&str, &str, Say) = if path.ends_with("/v1/messages") {
        ("messages", "assistant", anthropic)
    } else if path.ends_with("/responses") {
        ("input", "assistant", responses)
    } else if path.ends_with("/chat/completions") {
        ("messages", "assistant", chat)
    } else if path.ends_with(":streamGenerateContent") {
        ("contents", "model", gemini)
    } else {
        return Response::json(404, &json!({ "error": { "message": "not scripted" } }));
    };
    let heard = heard(&body, list, name);
    held(kept).push(heard.clone());
    let (turn, output) = script(&heard);
    if let Turn::Gone(status) = turn {
        let error = json!({ "error": { "message": "so it is written", "type": "scripted" } });
        return Response::json(status, &error);
    }
    let events = say(&turn, heard.turns, output);
    let lines: String = events
        .iter()
        .map(|event| match event.get("type").and_then(Value::as_str) {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    Response::events(match path.ends_with("/chat/completions") {
        true => lines + "data: [DONE]\n\n",
        false => lines,
    })
}

fn heard(body: &Value, list: &str, name: &str) -> Heard {
    let items = body.get(list).and_then(Value::as_array);
    let items = items.map_or(&[][..], Vec::as_slice);
    let own = |item: &Value| {
        item.get("role").and_then(Value::as_str) == Some(name)
            || item.get("type").and_then(Value::as_str) == Some("function_call")
    };
    let last = items.iter().rposition(own).map_or(0, |at| at + 1);
    let text = |items: &[Value]| items.iter().map(texts).collect::<Vec<_>>().join("\n");
    Heard {
        turns: items.iter().filter(|item| own(item)).count(),
        fresh: text(items.get(last..).unwrap_or_default()),
        whole: text(items),
    }
}

fn anthropic(turn: &Turn, n: usize, output: u64) -> Vec<Value> {
    let (empty, delta, stop) = match turn {
        Turn::Call { tool, input } => (
            json!({ "type": "tool_use", "id": format!("toolu_{n}"), "name": tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        Turn::Say(text) | Turn::Cut(text) => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            if matches!(turn, Turn::Cut(_)) {
                "max_tokens"
            } else {
                "end_turn"
            },
        ),
        Turn::Gone(_) => return Vec::new(),
    };
    vec![
        json!({ "type": "message_start", "message": {
            "id": format!("msg_{n}"), "type": "message", "role": "assistant", "content": [],
            "stop_reason": null, "usage": { "input_tokens": USED.0, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop },
                "usage": { "output_tokens": output } }),
        json!({ "type": "message_stop" }),
    ]
}

fn responses(turn: &Turn, n: usize, output: u64) -> Vec<Value> {
    let item = match turn {
        Turn::Call { tool, input } => json!({
            "type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"),
            "status": "completed", "name": tool, "arguments": input.to_string() }),
        Turn::Say(text) | Turn::Cut(text) => json!({
            "type": "message", "id": format!("msg_{n}"), "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }] }),
        Turn::Gone(_) => return Vec::new(),
    };
    let cut = matches!(turn, Turn::Cut(_));
    let (status, kind) = match cut {
        true => ("incomplete", "response.incomplete"),
        false => ("completed", "response.completed"),
    };
    let why = if cut {
        json!({ "reason": "max_output_tokens" })
    } else {
        Value::Null
    };
    let usage = json!({ "input_tokens": USED.0, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": output, "total_tokens": USED.0 + output });
    vec![
        json!({ "type": "response.created", "response": { "id": format!("resp_{n}"), "status": "in_progress" } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": kind, "response": { "id": format!("resp_{n}"), "status": status,
            "incomplete_details": why, "output": [item], "usage": usage } }),
    ]
}

fn chat(turn: &Turn, n: usize, output: u64) -> Vec<Value> {
    let (delta, finish) = match turn {
        Turn::Call { tool, input } => (
            json!({ "role": "assistant", "content": null, "tool_calls": [{
                "index": 0, "id": format!("call_{n}"), "type": "function",
                "function": { "name": tool, "arguments": input.to_string() } }] }),
            "tool_calls",
        ),
        Turn::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        Turn::Cut(text) => (json!({ "role": "assistant", "content": text }), "length"),
        Turn::Gone(_) => return Vec::new(),
    };
    vec![
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": USED.0, "completion_tokens": output } }),
    ]
}

fn gemini(turn: &Turn, n: usize, output: u64) -> Vec<Value> {
    let (part, finish) = match turn {
        Turn::Call { tool, input } => (
            json!({ "functionCall": { "id": format!("fn_{n}"), "name": tool, "args": input } }),
            "STOP",
        ),
        Turn::Say(text) => (json!({ "text": text }), "STOP"),
        Turn::Cut(text) => (json!({ "text": text }), "MAX_TOKENS"),
        Turn::Gone(_) => return Vec::new(),
    };
    vec![json!({
        "candidates": [{ "content": { "role": "model", "parts": [part] }, "finishReason": finish }],
        "usageMetadata": { "promptTokenCount": USED.0, "candidatesTokenCount": output,
            "totalTokenCount": USED.0 + output },
    })]
}
