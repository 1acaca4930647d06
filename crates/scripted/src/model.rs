//! Implements the scripted model behind both wire formats. It records its requests and answers,
//! which the checks of a scenario inspect.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

use crate::http::{HttpRequest, HttpResponse, LoopbackHttpServer};
use crate::script::{ScriptedModelFn, ScriptedModelRequest, output_tokens_of_nth_response};
use crate::{anthropic, responses};

/// Which API it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptedModelApiKind {
    /// Messages: Claude Code.
    Anthropic,
    /// Responses: Codex.
    OpenAi,
}

/// Most requests that a script answers; an agent that asks more often is in a loop.
const MAX_REQUESTS: usize = 1000;

/// The requests and answers so far.
#[derive(Debug, Default)]
pub struct ScriptedModelRequestLog {
    /// Requests that the script answered, in order.
    pub requests: Vec<ScriptedModelRequest>,
    /// Output tokens of those answers together.
    pub tokens: u64,
    /// Hosts outside loopback that the agent tried to reach through its proxy.
    pub refused_hosts: Vec<String>,
}

/// A running model.
#[derive(Debug)]
pub struct ScriptedModel {
    server: LoopbackHttpServer,
    seen: Arc<Mutex<ScriptedModelRequestLog>>,
}

impl ScriptedModel {
    /// Starts a server. Paths in a script are below `repo`. The body of every request is written to
    /// `log`, one per line.
    pub fn start_model_script_server(
        wire: ScriptedModelApiKind,
        repo: PathBuf,
        log: Option<&Path>,
        script: ScriptedModelFn,
    ) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(ScriptedModelRequestLog::default()));
        let kept = Arc::clone(&seen);
        let log = log.map(File::create).transpose()?.map(Mutex::new);
        let script = Mutex::new(script);
        let server = LoopbackHttpServer::start_http_server(move |request| {
            if let Some(log) = log.as_ref().filter(|_| !request.body.is_empty()) {
                let mut line = request.body.clone();
                line.push(b'\n');
                // The log is for people who inspect a kept run. No check reads it, so errors are
                // ignored.
                let _ = lock_unpoisoned(log).write_all(&line);
            }
            answer_scripted_model_request(wire, &repo, request, &kept, &script)
        })?;
        Ok(Self { server, seen })
    }

    /// Returns `http://127.0.0.1:PORT`. The same address serves as a proxy that refuses every host.
    pub fn base_url(&self) -> String {
        self.server.scripted_server_url()
    }

    /// Returns the log so far. Requests wait while the guard is held.
    pub fn model_request_log(&self) -> MutexGuard<'_, ScriptedModelRequestLog> {
        lock_unpoisoned(&self.seen)
    }
}

/// Locks a mutex, poisoned or not: the panic of a scenario must not hide what was recorded.
fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer_scripted_model_request(
    wire: ScriptedModelApiKind,
    repo: &Path,
    request: HttpRequest,
    seen: &Mutex<ScriptedModelRequestLog>,
    script: &Mutex<ScriptedModelFn>,
) -> HttpResponse {
    // The agent asks its proxy for another host, such as telemetry or an update server.
    if request.method == "CONNECT" {
        lock_unpoisoned(seen).refused_hosts.push(request.target);
        return HttpResponse::json_response(502, &json!({ "error": "loopback only" }));
    }
    let path = request.target.split('?').next().unwrap_or_default();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let read = match (wire, request.method.as_str(), path) {
        (ScriptedModelApiKind::Anthropic, "POST", "/v1/messages/count_tokens") => {
            return HttpResponse::json_response(
                200,
                &json!({ "input_tokens": request.body.len() / 4 }),
            );
        }
        (ScriptedModelApiKind::Anthropic, "POST", "/v1/messages") => {
            anthropic::parse_anthropic_request(&body)
        }
        (ScriptedModelApiKind::OpenAi, "POST", "/v1/responses") => {
            responses::parse_responses_api_request(&body)
        }
        (ScriptedModelApiKind::OpenAi, "GET", "/v1/models") => {
            return HttpResponse::json_response(200, &json!({ "models": [], "data": [] }));
        }
        (_, "HEAD", _) | (_, _, "/") => return HttpResponse::json_response(200, &json!({})),
        _ => {
            return scripted_error_response(404, "not_found_error", "not scripted");
        }
    };
    let (number, acts, tokens) = match read {
        None => (
            // A side request is answered, but neither numbered nor counted: a script describes the
            // main conversation only.
            usize::MAX,
            crate::script::ScriptedModelAction::scripted_text_response("ok"),
            1,
        ),
        Some(mut asked) => {
            // Held throughout: sub-agents ask concurrently, and requests must be numbered in the
            // order of their answers.
            let mut seen = lock_unpoisoned(seen);
            if seen.requests.len() >= MAX_REQUESTS {
                return scripted_error_response(
                    400,
                    "invalid_request_error",
                    "the script is long over",
                );
            }
            asked.number = seen.requests.len();
            let acts = lock_unpoisoned(script)(&asked);
            let (number, tokens) = (asked.number, output_tokens_of_nth_response(asked.number));
            seen.tokens += tokens;
            seen.requests.push(asked);
            (number, acts, tokens)
        }
    };
    let (streamed, text) = match wire {
        ScriptedModelApiKind::Anthropic => {
            anthropic::render_scripted_anthropic_reply(&body, number, &acts, tokens, repo)
        }
        ScriptedModelApiKind::OpenAi => {
            responses::scripted_responses_api_reply(&body, number, &acts, tokens)
        }
    };
    if streamed {
        HttpResponse::event_stream_response(text)
    } else {
        HttpResponse {
            status: 200,
            kind: "application/json",
            body: text.into_bytes(),
        }
    }
}

/// An error in the form that both agents read.
fn scripted_error_response(status: u16, kind: &str, message: &str) -> HttpResponse {
    HttpResponse::json_response(
        status,
        &json!({ "type": "error", "error": { "type": kind, "message": message } }),
    )
}
