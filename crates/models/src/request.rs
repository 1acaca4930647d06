//! The request to a model.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

/// One request, independent of any wire format.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    /// Instructions that no message can overrule.
    pub system: Cow<'static, str>,
    /// The conversation, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Tools that the model may call.
    pub tools: Vec<ToolDefinition>,
    /// The schema of the answer, where the provider can enforce it.
    pub output_schema: Option<StructuredAnswerSchema>,
    /// Most output tokens; `None` leaves it to the provider.
    pub max_tokens: Option<u32>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatMessage {
    /// From the person, or from us in their place.
    User(String),
    /// From the model.
    Assistant {
        /// What it said.
        text: String,
        /// What it wants done.
        calls: Vec<RequestedToolCall>,
    },
    /// The result of a call.
    ToolResult {
        /// [`RequestedToolCall::id`].
        call: String,
        /// [`RequestedToolCall::tool`].
        tool: String,
        /// What the tool said.
        text: String,
        /// Whether it failed.
        failed: bool,
    },
}

/// A tool call that the model wants.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedToolCall {
    /// The provider's id of it, or one made here where it gives none.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// Its arguments. A text that is no JSON is kept as received, so that the agent can be told.
    pub arguments: Result<Value, String>,
    /// Opaque state that the provider wants back with the call.
    pub provider_state: Option<String>,
}

/// A tool as described to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Arc<Value>,
}

/// The shape of a structured answer.
#[derive(Debug, Clone, PartialEq)]
pub struct StructuredAnswerSchema {
    /// A name of letters, digits, `_` and `-`, which some providers ask for.
    pub name: &'static str,
    /// JSON Schema of an object; of a strict kind: every property required, none else allowed.
    pub schema: Arc<Value>,
}
