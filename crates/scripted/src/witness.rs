//! A model that is asked to judge: one request, one text. It speaks OpenAI's chat format, and says
//! what a function of the request says.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{Request, Response, Server};

/// A running witness.
#[derive(Debug)]
pub struct Witness {
    server: Server,
    asked: Arc<Mutex<Vec<Value>>>,
}

/// What every answer is said to have cost.
pub const USED: (u64, u64) = (900, 60);

impl Witness {
    /// `says` gets the body of each request and how many came before it, and says the answer's text
    /// or the status of a refusal.
    pub fn start(
        says: impl Fn(&Value, usize) -> Result<String, u16> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let kept = Arc::clone(&asked);
        let server = Server::start(move |request| answer(&request, &kept, &says))?;
        Ok(Self { server, asked })
    }

    /// `http://127.0.0.1:PORT`; a provider of this wire is reached at its `/v1`.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Bodies of all requests so far, in order.
    pub fn asked(&self) -> Vec<Value> {
        held(&self.asked).clone()
    }
}

/// The text that a request ends with.
pub fn prompt(body: &Value) -> &str {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    let content = last.and_then(|message| message.get("content"));
    content.and_then(Value::as_str).unwrap_or_default()
}

/// The number that a request begins with, which a verdict repeats.
pub fn number(body: &Value) -> u64 {
    let first = prompt(body).lines().next().unwrap_or_default();
    first.parse().unwrap_or(0)
}

/// A judge's verdict on a request, as it is asked for.
pub fn verdict(body: &Value, verdict: &str, score: f64, category: &str, feedback: &str) -> String {
    json!({
        "ref": number(body), "goal": "x", "completeness": "x", "rules": "x", "score": score,
        "verdict": verdict, "category": category, "feedback": feedback,
    })
    .to_string()
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(
    request: &Request,
    asked: &Mutex<Vec<Value>>,
    says: &dyn Fn(&Value, usize) -> Result<String, u16>,
) -> Response {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let before = {
        let mut asked = held(asked);
        asked.push(body.clone());
        asked.len() - 1
    };
    let text = match says(&body, before) {
        Ok(text) => text,
        Err(status) => {
            let error = json!({ "error": { "message": "so it is written", "type": "scripted" } });
            return Response::json(status, &error);
        }
    };
    let (input, output) = USED;
    let chunks = [
        json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text } }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": input, "completion_tokens": output } }),
    ];
    let lines = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    Response::events(lines + "data: [DONE]\n\n")
}
