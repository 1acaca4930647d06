//! The formats that providers speak: a request as its JSON body, and an answer from the bytes of
//! its stream. Pure; the connection is in `remote`.

mod anthropic;
mod chat;
mod draft;
mod events;
mod gemini;
mod kept;
mod object;
mod responses;

use serde_json::Value;

use crate::{Call, Reply, Request, Shape};
use draft::Draft;
use events::Events;
use object::Object;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Anthropic's Messages.
    Anthropic,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's chat completions, which most others speak as well.
    Chat,
    /// Google's `generateContent`.
    Gemini,
}

/// What differs between providers of one wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The provider holds an answer to a schema. Else it is told the schema in words.
    pub(crate) holds_shapes: bool,
    /// It tells the tokens used only if asked to; who is not so refuses the question.
    pub(crate) asks_usage: bool,
    /// It refuses a conversation with calls from which its own thoughts are missing.
    pub(crate) wants_thoughts: bool,
    /// What the most output tokens are called, on the chat wire.
    pub(crate) max_tokens: &'static str,
}

/// Why an answer cannot be had from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not what the format says.
    Unreadable(String),
    /// The stream ended before the answer did.
    Broken,
    /// The provider said, inside the stream, that something went wrong.
    Said {
        /// The HTTP status that it means.
        status: u16,
        /// Its words.
        what: String,
    },
}

impl Wire {
    /// Below the base URL.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Responses => "/responses".to_owned(),
            Self::Chat => "/chat/completions".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// The header that carries the key, and what stands before it there.
    pub(crate) fn key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("x-api-key", ""),
            Self::Responses | Self::Chat => ("authorization", "Bearer "),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Which version of the format is meant, where the provider asks.
    pub(crate) fn version_header(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Anthropic).then_some(("anthropic-version", "2023-06-01"))
    }

    /// The body of a request.
    pub(crate) fn body(self, model: &str, request: &Request, dialect: Dialect) -> Value {
        match self {
            Self::Anthropic => anthropic::body(model, request),
            Self::Responses => responses::body(model, request),
            Self::Chat => chat::body(model, request, dialect),
            Self::Gemini => gemini::body(request),
        }
    }

    fn take(self, draft: &mut Draft, data: &str) -> Result<(), Fault> {
        if self == Self::Chat && data.trim() == "[DONE]" {
            chat::done(draft);
            return Ok(());
        }
        let event: Value = serde_json::from_str(data)
            .map_err(|error| Fault::Unreadable(format!("an event is no JSON: {error}")))?;
        if !event.is_object() {
            return Err(Fault::Unreadable("an event is no JSON object".to_owned()));
        }
        match self {
            Self::Anthropic => anthropic::take(draft, &event),
            Self::Responses => responses::take(draft, &event),
            Self::Chat => chat::take(draft, &event),
            Self::Gemini => gemini::take(draft, &event),
        }
    }
}

/// Reads one answer from pieces of its stream.
#[derive(Debug)]
pub(crate) struct Reader {
    wire: Wire,
    events: Events,
    draft: Draft,
    /// Whether anything of the answer has come.
    pub(crate) begun: bool,
}

impl Reader {
    pub(crate) fn new(wire: Wire, dialect: Dialect) -> Self {
        Self {
            wire,
            events: Events::default(),
            draft: Draft::new(dialect.wants_thoughts),
            begun: false,
        }
    }

    /// True: the answer is whole, and nothing further is to come.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<bool, Fault> {
        let (wire, draft, begun) = (self.wire, &mut self.draft, &mut self.begun);
        self.events.feed(bytes, |data| {
            wire.take(draft, data)?;
            *begun = true;
            Ok(draft.closed)
        })?;
        Ok(self.draft.closed)
    }

    /// Whether nothing that matters is still to come.
    pub(crate) fn is_whole(&self) -> bool {
        self.draft.ended.is_some()
    }

    /// The answer, when the stream has ended.
    pub(crate) fn finish(self) -> Result<Reply, Fault> {
        self.draft.finish()
    }
}

/// Reads a recorded answer from the pieces of its stream, without a connection. `None`: it is
/// none of this format, or not whole.
pub fn read<'a>(wire: Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<Reply> {
    let mut reader = Reader::new(wire, crate::providers::STRICT);
    for piece in pieces {
        if reader.feed(piece).ok()? {
            break;
        }
    }
    reader.finish().ok()
}

/// Arguments as every provider takes them back: an object. What was none is shown as it came.
fn arguments(call: &Call) -> Value {
    match &call.arguments {
        Ok(Value::Object(fields)) => Value::Object(fields.clone()),
        Ok(other) => serde_json::json!({ "not_an_object": other }),
        Err(text) => serde_json::json!({ "not_json": text }),
    }
}

/// What came of a call, where the wire has no place for whether it failed.
fn outcome(text: &str, failed: bool) -> String {
    if failed {
        format!("[the call failed]\n{text}")
    } else {
        text.to_owned()
    }
}

/// The instructions of a request whose shape nobody but the model can see to.
fn in_words(system: &str, shape: &Shape) -> String {
    let gap = if system.is_empty() { "" } else { "\n\n" };
    format!(
        "{system}{gap}Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        shape.schema
    )
}

/// The text of a provider's error, wherever it keeps it.
pub(crate) fn words(body: &Value) -> Option<&str> {
    [
        "/error/message",
        "/message",
        "/error",
        "/detail",
        "/0/error/message",
    ]
    .iter()
    .find_map(|place| body.pointer(place)?.as_str())
}
