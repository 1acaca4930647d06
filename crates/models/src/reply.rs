//! What a model answers.

use crate::request::Call;

/// A whole answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// What it said, thinking left out.
    pub text: String,
    /// What it wants done.
    pub calls: Vec<Call>,
    /// Why it ended.
    pub ended: Ended,
    /// What it used, as far as the provider says.
    pub usage: Usage,
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The model was done.
    Turn,
    /// It waits for its calls.
    Calls,
    /// Its output limit cut it.
    Cut,
    /// It, or the provider for it, refused.
    Refused,
    /// The provider's own word.
    Other(String),
}

/// Tokens of one answer; `None` where the provider does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Read anew.
    pub input: Option<u64>,
    /// Read from the provider's cache.
    pub cached: Option<u64>,
    /// Written to the provider's cache.
    pub written: Option<u64>,
    /// Written, thinking included.
    pub output: Option<u64>,
}
