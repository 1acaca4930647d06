//! The formats that providers speak: a request as its JSON body, and an answer from the bytes of
//! its stream. Pure; the connection is in `remote`.

mod anthropic;
mod chat;
mod gemini;
mod json_object;
mod partial_reply;
mod responses;
mod sse;
mod thought_blocks;

use serde_json::Value;

use crate::{ModelReply, ModelRequest, OutputSchema, RequestedToolCall};
use json_object::JsonObjectBuilder;
use partial_reply::PartialReply;
use sse::SseParser;

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
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
pub(crate) struct WireDialect {
    /// The provider holds an answer to a schema. Else it is told the schema in words.
    pub(crate) enforces_schemas: bool,
    /// It tells the tokens used only if asked to; who is not so refuses the question.
    pub(crate) requests_usage: bool,
    /// It refuses a conversation with calls from which its own thoughts are missing.
    pub(crate) returns_thoughts: bool,
    /// What the most output tokens are called, on the chat wire.
    pub(crate) max_tokens: &'static str,
}

/// Why an answer cannot be had from its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelAnswerDecodeError {
    /// It is not what the format says.
    Unreadable(String),
    /// The stream ended before the answer did.
    CutOff,
    /// The provider said, inside the stream, that something went wrong.
    Reported {
        /// The HTTP status that it means.
        status: u16,
        /// Its words.
        what: String,
    },
}

impl WireFormat {
    /// Below the base URL.
    pub(crate) fn endpoint_path(self, model: &str) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Responses => "/responses".to_owned(),
            Self::Chat => "/chat/completions".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// The header that carries the key, and what stands before it there.
    pub(crate) fn api_key_header(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("x-api-key", ""),
            Self::Responses | Self::Chat => ("authorization", "Bearer "),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Which version of the format is meant, where the provider asks.
    pub(crate) fn api_version_header(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Anthropic).then_some(("anthropic-version", "2023-06-01"))
    }

    /// The body of a request.
    pub(crate) fn request_body(
        self,
        model: &str,
        request: &ModelRequest,
        dialect: WireDialect,
    ) -> Value {
        match self {
            Self::Anthropic => anthropic::anthropic_request_body(model, request),
            Self::Responses => responses::request_body(model, request),
            Self::Chat => chat::chat_completions_request_body(model, request, dialect),
            Self::Gemini => gemini::request_body(request),
        }
    }

    fn apply_stream_event(
        self,
        draft: &mut PartialReply,
        data: &str,
    ) -> Result<(), ModelAnswerDecodeError> {
        if self == Self::Chat && data.trim() == "[DONE]" {
            chat::finish_streamed_chat_reply(draft);
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|error| {
            ModelAnswerDecodeError::Unreadable(format!("an event is no JSON: {error}"))
        })?;
        if !event.is_object() {
            return Err(ModelAnswerDecodeError::Unreadable(
                "an event is no JSON object".to_owned(),
            ));
        }
        match self {
            Self::Anthropic => anthropic::apply_stream_event(draft, &event),
            Self::Responses => responses::apply_stream_event(draft, &event),
            Self::Chat => chat::apply_stream_event(draft, &event),
            Self::Gemini => gemini::apply_stream_event(draft, &event),
        }
    }
}

/// Reads one answer from pieces of its stream.
#[derive(Debug)]
pub(crate) struct StreamedReplyReader {
    wire: WireFormat,
    events: SseParser,
    draft: PartialReply,
    /// Whether anything of the answer has come.
    pub(crate) begun: bool,
}

impl StreamedReplyReader {
    pub(crate) fn new(wire: WireFormat, dialect: WireDialect) -> Self {
        Self {
            wire,
            events: SseParser::default(),
            draft: PartialReply::new(dialect.returns_thoughts),
            begun: false,
        }
    }

    /// True: the answer is whole, and nothing further is to come.
    pub(crate) fn parse_reply_chunk(
        &mut self,
        bytes: &[u8],
    ) -> Result<bool, ModelAnswerDecodeError> {
        let (wire, draft, begun) = (self.wire, &mut self.draft, &mut self.begun);
        self.events.feed_sse_bytes(bytes, |data| {
            wire.apply_stream_event(draft, data)?;
            *begun = true;
            Ok(draft.closed)
        })?;
        Ok(self.draft.closed)
    }

    /// Whether nothing that matters is still to come.
    pub(crate) fn is_model_reply_complete(&self) -> bool {
        self.draft.ended.is_some()
    }

    /// The answer, when the stream has ended.
    pub(crate) fn into_model_reply(self) -> Result<ModelReply, ModelAnswerDecodeError> {
        self.draft.into_model_reply()
    }
}

/// Reads a recorded answer from the pieces of its stream, without a connection. `None`: it is
/// none of this format, or not whole.
pub fn read_recorded_reply<'a>(
    wire: WireFormat,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Option<ModelReply> {
    let mut reader = StreamedReplyReader::new(wire, crate::providers::STRICT);
    for piece in pieces {
        if reader.parse_reply_chunk(piece).ok()? {
            break;
        }
    }
    reader.into_model_reply().ok()
}

/// Arguments as every provider takes them back: an object. What was none is shown as it came.
fn call_arguments_for_provider(call: &RequestedToolCall) -> Value {
    match &call.arguments {
        Ok(Value::Object(fields)) => Value::Object(fields.clone()),
        Ok(other) => serde_json::json!({ "not_an_object": other }),
        Err(text) => serde_json::json!({ "not_json": text }),
    }
}

/// What came of a call, where the wire has no place for whether it failed.
fn tool_result_text(text: &str, failed: bool) -> String {
    if failed {
        format!("[the call failed]\n{text}")
    } else {
        text.to_owned()
    }
}

/// The instructions of a request whose shape nobody but the model can see to.
fn system_prompt_with_schema(system: &str, shape: &OutputSchema) -> String {
    let gap = if system.is_empty() { "" } else { "\n\n" };
    format!(
        "{system}{gap}Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        shape.schema
    )
}

/// The text of a provider's error, wherever it keeps it.
pub(crate) fn find_provider_error_text(body: &Value) -> Option<&str> {
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
