//! Provides a scripted model that judges: one request, one text. It speaks OpenAI's chat format and
//! answers with what a function of the request returns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{HttpRequest, HttpResponse, LoopbackHttpServer};

/// A running reviewer.
#[derive(Debug)]
pub struct ScriptedReviewer {
    server: LoopbackHttpServer,
    asked: ScriptedReviewExchangeLog,
}

/// The requests and replies so far.
type ScriptedReviewExchangeLog = Arc<Mutex<Vec<RecordedReviewExchange>>>;

/// A request and its reply.
#[derive(Debug, Clone, Default)]
pub struct RecordedReviewExchange {
    /// The request's body, parsed.
    pub body: Value,
    /// The same, byte for byte.
    pub bytes: Vec<u8>,
    /// The answer's text; empty for a refusal.
    pub reply_text: String,
}

/// The usage that every answer reports: input and output tokens.
pub const REVIEW_TOKENS: (u64, u64) = (900, 60);

impl ScriptedReviewer {
    /// Starts a server. `says` is called with the body of each request and the number of requests
    /// before it; it returns the answer's text or the HTTP status of a refusal.
    pub fn start_scripted_reviewer_server(
        says: impl Fn(&Value, usize) -> Result<String, u16> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let asked = ScriptedReviewExchangeLog::default();
        let kept = Arc::clone(&asked);
        let server = LoopbackHttpServer::start_http_server(move |request| {
            answer_as_scripted_reviewer(&request, &kept, &says)
        })?;
        Ok(Self { server, asked })
    }

    /// Returns `http://127.0.0.1:PORT`; the chat API is at its `/v1`.
    pub fn base_url(&self) -> String {
        self.server.scripted_server_url()
    }

    /// Returns the bodies of all requests so far, in order.
    pub fn received_request_bodies(&self) -> Vec<Value> {
        let asked = lock_unpoisoned(&self.asked);
        asked.iter().map(|one| one.body.clone()).collect()
    }

    /// Returns all requests so far with their bytes and replies.
    pub fn recorded_exchanges(&self) -> Vec<RecordedReviewExchange> {
        lock_unpoisoned(&self.asked).clone()
    }
}

/// Returns the text of a request's last message.
pub fn last_message_text(body: &Value) -> &str {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    let content = last.and_then(|message| message.get("content"));
    content.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the number at the beginning of a request, alone or in a delimiter, which a verdict must
/// repeat.
pub fn request_number_in_prompt(body: &Value) -> u64 {
    let first = last_message_text(body).lines().next().unwrap_or_default();
    // Only the first line: data quoted further down may contain numbers as well.
    let mut numbers = first.split(|c: char| !c.is_ascii_digit());
    let number = numbers.find(|number| !number.is_empty());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Renders a judge's verdict on a request, in the requested format.
pub fn render_judge_verdict_reply(
    body: &Value,
    verdict: &str,
    score: f64,
    category: &str,
    feedback: &str,
) -> String {
    json!({
        "ref": request_number_in_prompt(body), "goal": "x", "completeness": "x", "rules": "x", "score": score,
        "verdict": verdict, "category": category, "feedback": feedback,
    })
    .to_string()
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer_as_scripted_reviewer(
    request: &HttpRequest,
    asked: &Mutex<Vec<RecordedReviewExchange>>,
    says: &dyn Fn(&Value, usize) -> Result<String, u16>,
) -> HttpResponse {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    // Recorded before it is answered, so that a script which blocks or panics leaves a trace. The
    // lock is released meanwhile, since several judges ask at the same time.
    let before = {
        let mut asked = lock_unpoisoned(asked);
        asked.push(RecordedReviewExchange {
            body: body.clone(),
            bytes: request.body.clone(),
            reply_text: String::new(),
        });
        asked.len() - 1
    };
    let text = match says(&body, before) {
        Ok(text) => text,
        Err(status) => {
            let error = json!({ "error": { "message": "so it is written", "type": "scripted" } });
            return HttpResponse::json_response(status, &error);
        }
    };
    // By index: other requests may have been recorded meanwhile.
    if let Some(one) = lock_unpoisoned(asked).get_mut(before) {
        one.reply_text.clone_from(&text);
    }
    let (input, output) = REVIEW_TOKENS;
    let chunks = [
        json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": text } }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }),
        json!({ "choices": [], "usage": { "prompt_tokens": input, "completion_tokens": output } }),
    ];
    let lines = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
    HttpResponse::event_stream_response(lines + "data: [DONE]\n\n")
}
