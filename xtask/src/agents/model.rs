//! The scripted model behind both wire formats. It keeps what it was asked and what it did,
//! which is what the checks of a scenario look at.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use super::http::{Request, Response, Server};
use super::script::{Asked, Script, output_tokens};
use super::{anthropic, responses};

/// Which API it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Anthropic,
    OpenAi,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Requests that the script answered, in order.
    pub(super) asked: Vec<Asked>,
    /// Output tokens of those answers together.
    pub(super) tokens: u64,
    /// Hosts outside loopback that the agent tried to reach through its proxy.
    pub(super) outside: Vec<String>,
}

/// A running model.
#[derive(Debug)]
pub(super) struct Model {
    server: Server,
    seen: Arc<Mutex<Seen>>,
}

impl Model {
    /// `log` gets the body of every request, one a line.
    pub(super) fn start(
        wire: Wire,
        repo: PathBuf,
        log: &Path,
        script: Script,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        let (script, log) = (Mutex::new(script), Mutex::new(File::create(log)?));
        let server = Server::start(move |request| {
            if !request.body.is_empty() {
                let mut line = request.body.clone();
                line.push(b'\n');
                // For a person who looks into a kept run; no check reads it.
                let _ = held(&log).write_all(&line);
            }
            answer(wire, &repo, request, &kept, &script)
        })?;
        Ok(Self { server, seen })
    }

    pub(super) fn base(&self) -> String {
        self.server.base()
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        held(&self.seen)
    }
}

/// A scenario's panic must not hide what was seen.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(
    wire: Wire,
    repo: &Path,
    request: Request,
    seen: &Mutex<Seen>,
    script: &Mutex<Script>,
) -> Response {
    if request.method == "CONNECT" {
        held(seen).outside.push(request.target);
        return Response::json(502, &json!({ "error": "loopback only" }));
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let read = match (wire, request.method.as_str(), path) {
        (Wire::Anthropic, "POST", "/v1/messages/count_tokens") => {
            return Response::json(200, &json!({ "input_tokens": request.body.len() / 4 }));
        }
        (Wire::Anthropic, "POST", "/v1/messages") => anthropic::read(&body),
        (Wire::OpenAi, "POST", "/v1/responses") => responses::read(&body),
        (Wire::OpenAi, "GET", "/v1/models") => {
            return Response::json(200, &json!({ "models": [], "data": [] }));
        }
        (_, "HEAD", _) | (_, _, "/") => return Response::json(200, &json!({})),
        _ => {
            return Response::json(
                404,
                &json!({ "type": "error", "error": { "type": "not_found_error", "message": "not scripted" } }),
            );
        }
    };
    let (number, acts, tokens) = match read {
        None => (usize::MAX, super::script::Act::say("ok"), 1),
        Some(mut asked) => {
            // Held throughout: sub-agents ask at the same time, and numbers must be in order.
            let mut seen = held(seen);
            asked.number = seen.asked.len();
            let acts = held(script)(&asked);
            let (number, tokens) = (asked.number, output_tokens(asked.number));
            seen.tokens += tokens;
            seen.asked.push(asked);
            (number, acts, tokens)
        }
    };
    let (streamed, text) = match wire {
        Wire::Anthropic => anthropic::reply(&body, number, &acts, tokens, repo),
        Wire::OpenAi => responses::reply(&body, number, &acts, tokens),
    };
    if streamed {
        Response::events(text)
    } else {
        Response {
            status: 200,
            kind: "application/json",
            body: text.into_bytes(),
        }
    }
}
