//! A model whose answers are written down, and a tool that counts its runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use checkrein::models::{Ended, Message, Model, ModelError, Pending, Reply, Request, Usage, wait};
use checkrein::{Tool, ToolOutput, ToolUse};
use serde_json::{Value, json};

/// Waits for a future.
pub(crate) fn now<T: Send>(future: impl Future<Output = T> + Send) -> T {
    wait(async { Ok::<_, ModelError>(future.await) }).unwrap()
}

type Script = dyn Fn(&Request) -> Result<String, ModelError> + Send + Sync;

/// Answers by a script, and keeps what it was asked.
pub(crate) struct Scripted {
    script: Box<Script>,
    asked: Mutex<Vec<Request>>,
}

impl Scripted {
    /// Where the script says `REF`, the answer has the number of its question.
    pub(crate) fn by(
        script: impl Fn(&Request) -> Result<String, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            asked: Mutex::default(),
        })
    }

    /// Always the same.
    pub(crate) fn says(text: &str) -> Arc<Self> {
        let text = text.to_owned();
        Self::by(move |_| Ok(text.clone()))
    }

    /// One after the other; then it has no more.
    pub(crate) fn one_by_one<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Arc<Self> {
        let texts: VecDeque<String> = texts.into_iter().map(Into::into).collect();
        let texts = Mutex::new(texts);
        Self::by(move |_| texts.lock().unwrap().pop_front().ok_or_else(down))
    }

    pub(crate) fn asked(&self) -> Vec<Request> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// What the last question showed, between its delimiters.
    pub(crate) fn shown(&self) -> Value {
        let text = prompt(self.asked().last().unwrap());
        let inner = text.splitn(3, '\n').nth(2).unwrap();
        let inner = inner.rsplit_once("\n</quoted ").unwrap().0;
        serde_json::from_str(inner).unwrap()
    }
}

/// A connection that is not there.
pub(crate) fn down() -> ModelError {
    ModelError::Connection {
        provider: "scripted".to_owned(),
        what: "nobody listens".to_owned(),
    }
}

pub(crate) fn prompt(request: &Request) -> String {
    match request.messages.as_slice() {
        [Message::User(text)] => text.clone(),
        other => panic!("not one message: {other:?}"),
    }
}

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted/model"
    }

    fn ask<'a>(&'a self, request: &'a Request) -> Pending<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(request.clone());
            let number = prompt(request).lines().next().unwrap().to_owned();
            (self.script)(request).map(|text| Reply {
                text: text.replace("REF", &number),
                calls: Vec::new(),
                ended: Ended::Turn,
                usage: Usage {
                    input: Some(200),
                    output: Some(30),
                    ..Usage::default()
                },
            })
        })
    }
}

pub(crate) fn allow() -> String {
    r#"{"ref":REF,"verdict":"allow","confidence":0.95,"reason":"","new_args":null}"#.to_owned()
}

pub(crate) fn veto(confidence: &str, reason: &str) -> String {
    format!(
        r#"{{"ref":REF,"verdict":"veto","confidence":{confidence},"reason":"{reason}","new_args":null}}"#
    )
}

pub(crate) fn rewrite(confidence: &str, arguments: &Value) -> String {
    json!({"ref": "REF", "verdict": "rewrite", "confidence": 0.9, "reason": "a typo", "new_args": arguments.to_string()})
        .to_string()
        .replace("0.9", confidence)
}

pub(crate) fn score(score: &str, suggestion: Option<&str>) -> String {
    let suggestion = suggestion.map_or_else(|| "null".to_owned(), |text| format!("\"{text}\""));
    format!(
        r#"{{"ref":REF,"score":{score},"summary":"read a file","suggested_action":{suggestion}}}"#
    )
}

/// Sends messages, and keeps what it sent.
pub(crate) struct Sender {
    pub(crate) name: &'static str,
    pub(crate) looks: bool,
    pub(crate) sent: Mutex<Vec<Value>>,
    /// Something only this kind of tool has.
    pub(crate) opened: AtomicUsize,
}

impl Sender {
    pub(crate) fn named(name: &'static str) -> Self {
        Self {
            name,
            looks: name.contains("search"),
            sent: Mutex::default(),
            opened: AtomicUsize::new(0),
        }
    }

    pub(crate) fn open(&self) -> usize {
        self.opened.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn sent(&self) -> Vec<Value> {
        self.sent.lock().unwrap().clone()
    }
}

impl Tool for Sender {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Sends a message to a channel."
    }

    fn schema(&self) -> Arc<Value> {
        Arc::new(json!({
            "type": "object",
            "properties": {
                "channel": { "type": "string" },
                "text": { "type": "string" },
                "query": { "type": "string" },
            },
            "additionalProperties": false,
        }))
    }

    fn read_only(&self) -> bool {
        self.looks
    }

    fn run<'a>(&'a self, call: ToolUse<'a>) -> Pending<'a, ToolOutput> {
        Box::pin(async move {
            self.sent.lock().unwrap().push(call.arguments.clone());
            ToolOutput::ran("sent")
        })
    }
}

/// A tool's use without a conversation.
pub(crate) fn with(arguments: &Value) -> ToolUse<'_> {
    ToolUse {
        arguments,
        history: &[],
    }
}
