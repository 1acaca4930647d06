//! A model whose answers are written down, and a tool that counts its runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use checkrein::models::{
    BoxFuture, LanguageModel, ModelError, ModelReply, ModelRequest, ModelRequestLimits,
    RemoteModel, block_on,
};
use checkrein::{Tool, ToolInvocation, ToolOutput};
use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::RecordedReviewExchange;
pub(crate) use checkrein_scripted::reviewer::{last_message_text, request_number_in_prompt};
use serde_json::{Value, json};

/// Waits for a future.
pub(crate) fn now<T: Send>(future: impl Future<Output = T> + Send) -> T {
    block_on(async { Ok::<_, ModelError>(future.await) }).unwrap()
}

/// A model on loopback that answers by a script, asked as any other provider's.
pub(crate) struct Scripted {
    witness: ScriptedReviewer,
    remote: RemoteModel,
}

impl Scripted {
    /// Where the script says `REF`, the answer has the number of its question. A number instead of an
    /// answer is the status of a refusal.
    pub(crate) fn by(
        script: impl Fn(&Value) -> Result<String, u16> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let witness = ScriptedReviewer::start_scripted_reviewer_server(move |body, _| {
            script(body)
                .map(|text| text.replace("REF", &request_number_in_prompt(body).to_string()))
        })
        .unwrap();
        let remote = remote(&format!("{}/v1", witness.base_url()));
        Arc::new(Self { witness, remote })
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
        Self::by(move |_| texts.lock().unwrap().pop_front().ok_or(404))
    }

    /// Allows every call, and thinks well of every step.
    pub(crate) fn content() -> Arc<Self> {
        Self::by(|body| {
            Ok(if system(body).contains("Rate another agent's last step") {
                score("0.9", None)
            } else {
                allow()
            })
        })
    }

    /// Bodies of the requests that it got.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.witness.received_request_bodies()
    }

    /// The same with their bytes and its answers.
    pub(crate) fn exchanges(&self) -> Vec<RecordedReviewExchange> {
        self.witness.recorded_exchanges()
    }

    pub(crate) fn times(&self) -> usize {
        self.asked().len()
    }

    /// What the last question showed, between its delimiters, each line by its name.
    pub(crate) fn shown(&self) -> Value {
        let asked = self.asked();
        let (_, inner) = last_message_text(asked.last().unwrap())
            .split_once('\n')
            .unwrap();
        let inner = inner.rsplit_once("\n</quoted ").unwrap().0;
        let (mut shown, mut history) = (serde_json::Map::new(), Vec::new());
        for line in inner.lines() {
            let (name, text) = line.split_once(": ").unwrap();
            match name {
                "user" | "assistant" | "result" | "failed" => history.push(json!({ name: text })),
                "goal" | "tool" | "takes" | "step" => {
                    assert_eq!(shown.insert(name.to_owned(), json!(text)), None, "{inner}");
                }
                "tools" => {
                    let names: Vec<&str> = text.split(", ").collect();
                    shown.insert(name.to_owned(), json!(names));
                }
                "arguments" => {
                    let arguments = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
                    assert_eq!(shown.insert(name.to_owned(), arguments), None, "{inner}");
                }
                other => panic!("nobody knows '{other}': {inner}"),
            }
        }
        if !history.is_empty() {
            shown.insert("history".to_owned(), Value::Array(history));
        }
        Value::Object(shown)
    }
}

impl LanguageModel for Scripted {
    fn model_name(&self) -> &str {
        self.remote.model_name()
    }

    fn ask_model<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.remote.ask_model(request)
    }
}

/// A model of OpenAI's chat format at an address; it is asked once.
pub(crate) fn remote(base: &str) -> RemoteModel {
    let environment = [("OPENAI_BASE_URL", base), ("OPENAI_API_KEY", "none")];
    let environment = environment
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    let limits = ModelRequestLimits {
        tries: 1,
        ..ModelRequestLimits::default()
    };
    RemoteModel::new("openai-chat/cheap", &environment, limits).unwrap()
}

/// Its instructions.
pub(crate) fn system(body: &Value) -> &str {
    let content = body.pointer("/messages/0/content");
    content.and_then(Value::as_str).unwrap_or_default()
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

    fn tool_description(&self) -> &str {
        "Sends a message to a channel."
    }

    fn input_schema(&self) -> Arc<Value> {
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

    fn is_read_only_tool(&self) -> bool {
        self.looks
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            self.sent.lock().unwrap().push(call.arguments.clone());
            ToolOutput::from_success("sent")
        })
    }
}

/// A tool's use without a conversation.
pub(crate) fn with(arguments: &Value) -> ToolInvocation<'_> {
    ToolInvocation {
        arguments,
        history: &[],
    }
}
