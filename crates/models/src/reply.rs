//! The answer of a model.

use crate::request::RequestedToolCall;

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelReply {
    /// What it said, thinking left out.
    pub text: String,
    /// The tool calls that it makes.
    pub calls: Vec<RequestedToolCall>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// What it used, as far as the provider says.
    pub usage: AnswerTokenUsage,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The model was done.
    EndOfTurn,
    /// It waits for the results of its calls.
    Calls,
    /// Its output limit cut it.
    Truncated,
    /// It, or the provider for it, refused.
    Refused,
    /// The provider's own word.
    Other(String),
}

/// Tokens of one answer; `None` where the provider does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerTokenUsage {
    /// Input tokens that were not cached.
    pub input: Option<u64>,
    /// Read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Written, thinking included.
    pub output: Option<u64>,
}
