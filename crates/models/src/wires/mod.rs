//! The wire formats of providers: a request as a JSON body, and an answer from the bytes of its
//! stream. Pure; the connection is in `remote`.

mod anthropic;
mod chat;
mod gemini;
mod json_object;
mod partial_reply;
mod responses;
mod sse;
mod thought_blocks;

use serde_json::Value;

use crate::{ModelReply, ModelRequest, RequestedToolCall, StructuredAnswerSchema};
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
pub(crate) struct ProviderWireQuirks {
    /// The provider enforces a schema on the answer. If not, the schema is put into the
    /// instructions.
    pub(crate) enforces_schemas: bool,
    /// It must be asked to report token use. Providers without this refuse the question.
    pub(crate) requests_usage: bool,
    /// It refuses a conversation with calls that lacks its own thoughts.
    pub(crate) returns_thoughts: bool,
    /// The name of the output token limit on the chat wire.
    pub(crate) max_tokens: &'static str,
}

/// Why the bytes give no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelAnswerDecodeError {
    /// It is not what the format says.
    Unreadable(String),
    /// The stream ended before the answer did.
    CutOff,
    /// The provider reported an error inside the stream.
    Reported {
        /// The HTTP status that it means.
        status: u16,
        /// Its words.
        what: String,
    },
}

impl WireFormat {
    /// The output limit of a request that sets none; `None` if the format has none.
    pub(crate) fn default_max_tokens(self) -> Option<u32> {
        match self {
            Self::Anthropic => Some(anthropic::MAX_TOKENS),
            _ => None,
        }
    }

    /// Returns the path below the base URL.
    pub(crate) fn endpoint_path(self, model: &str) -> String {
        match self {
            Self::Anthropic => "/v1/messages".to_owned(),
            Self::Responses => "/responses".to_owned(),
            Self::Chat => "/chat/completions".to_owned(),
            Self::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    /// Returns the header for the key, and the prefix of its value.
    pub(crate) fn api_key_header_name_and_prefix(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("x-api-key", ""),
            Self::Responses | Self::Chat => ("authorization", "Bearer "),
            Self::Gemini => ("x-goog-api-key", ""),
        }
    }

    /// Returns the header for the format's version, where the provider requires one.
    pub(crate) fn api_version_header(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Anthropic).then_some(("anthropic-version", "2023-06-01"))
    }

    /// The body of a request.
    pub(crate) fn request_body(
        self,
        model: &str,
        request: &ModelRequest,
        dialect: ProviderWireQuirks,
    ) -> Value {
        match self {
            Self::Anthropic => anthropic::anthropic_request_body(model, request),
            Self::Responses => responses::request_body(model, request),
            Self::Chat => chat::chat_completions_request_body(model, request, dialect),
            Self::Gemini => gemini::request_body(request),
        }
    }

    fn apply_model_stream_event(
        self,
        draft: &mut PartialReply,
        data: &str,
    ) -> Result<(), ModelAnswerDecodeError> {
        // The one event of any wire that is not JSON.
        if self == Self::Chat && data.trim() == "[DONE]" {
            chat::close_streamed_chat_reply(draft);
            return Ok(());
        }
        let event: Value = serde_json::from_str(data).map_err(|error| {
            ModelAnswerDecodeError::Unreadable(format!("an event is no JSON: {error}"))
        })?;
        // Events of all wires are objects. In anything else, every lookup below would silently find
        // nothing.
        if !event.is_object() {
            return Err(ModelAnswerDecodeError::Unreadable(
                "an event is no JSON object".to_owned(),
            ));
        }
        match self {
            Self::Anthropic => anthropic::apply_stream_event(draft, &event),
            Self::Responses => responses::apply_stream_event(draft, &event),
            Self::Chat => chat::apply_chat_stream_event(draft, &event),
            Self::Gemini => gemini::apply_gemini_api_event(draft, &event),
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
    pub(crate) fn new(wire: WireFormat, dialect: ProviderWireQuirks) -> Self {
        Self {
            wire,
            events: SseParser::default(),
            draft: PartialReply::new(dialect.returns_thoughts),
            begun: false,
        }
    }

    /// Reads a piece of the stream. Returns true once the answer is complete and nothing further is
    /// expected.
    pub(crate) fn feed_reply_chunk(
        &mut self,
        bytes: &[u8],
    ) -> Result<bool, ModelAnswerDecodeError> {
        let (wire, draft, begun) = (self.wire, &mut self.draft, &mut self.begun);
        self.events.feed_sse_bytes(bytes, |data| {
            wire.apply_model_stream_event(draft, data)?;
            // Set only after an event was understood: an unreadable first event may be retried.
            *begun = true;
            Ok(draft.closed)
        })?;
        Ok(self.draft.closed)
    }

    /// Returns whether everything essential has arrived.
    pub(crate) fn has_reply_stream_ended(&self) -> bool {
        self.draft.ended.is_some()
    }

    /// The answer, when the stream has ended.
    pub(crate) fn into_model_reply(self) -> Result<ModelReply, ModelAnswerDecodeError> {
        self.draft.into_model_reply()
    }
}

/// Reads a recorded answer from the pieces of its stream, without a connection. Returns `None` if
/// it is not of this format or not complete.
pub fn decode_recorded_model_reply<'a>(
    wire: WireFormat,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Option<ModelReply> {
    // The dialect matters only for thoughts to be sent back, which a recorded answer never is.
    let mut reader = StreamedReplyReader::new(wire, crate::providers::STRICT);
    for piece in pieces {
        if reader.feed_reply_chunk(piece).ok()? {
            break;
        }
    }
    reader.into_model_reply().ok()
}

/// Returns arguments in a form that every provider accepts back, which is an object. Anything else
/// is wrapped as received.
fn call_arguments_for_provider(call: &RequestedToolCall) -> Value {
    match &call.arguments {
        Ok(Value::Object(fields)) => Value::Object(fields.clone()),
        Ok(other) => serde_json::json!({ "not_an_object": other }),
        Err(text) => serde_json::json!({ "not_json": text }),
    }
}

/// Returns the result of a call where the wire cannot say whether it failed.
fn tool_result_text_marking_failure(text: &str, failed: bool) -> String {
    if failed {
        format!("[the call failed]\n{text}")
    } else {
        text.to_owned()
    }
}

/// Returns the instructions with the schema in words, where the provider cannot enforce it.
fn system_prompt_with_schema(system: &str, shape: &StructuredAnswerSchema) -> String {
    let gap = if system.is_empty() { "" } else { "\n\n" };
    format!(
        "{system}{gap}Answer with one JSON object and nothing else. It must fit this JSON Schema:\n{}",
        shape.schema
    )
}

/// Returns the text of a provider's error, from whichever field holds it.
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
