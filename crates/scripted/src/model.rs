//! The scripted model behind both wire formats. It keeps what it was asked and what it did,
//! which is what the checks of a scenario look at.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{Request, Response, Server};
use crate::script::{Asked, Script, output_tokens};
use crate::{anthropic, responses};

/// Which API it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Messages: Claude Code.
    Anthropic,
    /// Responses: Codex.
    OpenAi,
}

/// Requests that a script answers; an agent that asks more often is going in circles.
const MAX_ASKED: usize = 1000;

/// What happened so far.
#[derive(Debug, Default)]
pub struct Seen {
    /// Requests that the script answered, in order.
    pub asked: Vec<Asked>,
    /// Output tokens of those answers together.
    pub tokens: u64,
    /// Hosts outside loopback that the agent tried to reach through its proxy.
    pub outside: Vec<String>,
}

/// A running model.
#[derive(Debug)]
pub struct Model {
    server: Server,
    seen: Arc<Mutex<Seen>>,
}

impl Model {
    /// Paths of a script's acts are below `repo`. `log` gets the body of every request, one a line.
    pub fn start(
        wire: Wire,
        repo: PathBuf,
        log: Option<&Path>,
        script: Script,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        let log = log.map(File::create).transpose()?.map(Mutex::new);
        let script = Mutex::new(script);
        let server = Server::start(move |request| {
            if let Some(log) = log.as_ref().filter(|_| !request.body.is_empty()) {
                let mut line = request.body.clone();
                line.push(b'\n');
                // For a person who looks into a kept run; no check reads it.
                let _ = held(log).write_all(&line);
            }
            answer(wire, &repo, request, &kept, &script)
        })?;
        Ok(Self { server, seen })
    }

    /// `http://127.0.0.1:PORT`, which is also the proxy that lets nothing out.
    pub fn base(&self) -> String {
        self.server.base()
    }

    /// Everything so far; a request meanwhile waits until it is let go.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
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
            return refused(404, "not_found_error", "not scripted");
        }
    };
    let (number, acts, tokens) = match read {
        None => (usize::MAX, crate::script::Act::say("ok"), 1),
        Some(mut asked) => {
            // Held throughout: sub-agents ask at the same time, and numbers must be in order.
            let mut seen = held(seen);
            if seen.asked.len() >= MAX_ASKED {
                return refused(400, "invalid_request_error", "the script is long over");
            }
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

/// An error in the form that both agents read.
fn refused(status: u16, kind: &str, message: &str) -> Response {
    Response::json(
        status,
        &json!({ "type": "error", "error": { "type": kind, "message": message } }),
    )
}
