//! Errors of models. Neither a variant nor its text contains a key.

use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The name says no provider that this build knows, or no model.
    #[error("no model '{name}': {why}")]
    InvalidName {
        /// As it was given.
        name: String,
        /// What is wrong, and what would be right.
        why: String,
    },
    /// No key for the provider.
    #[error("no key for {provider}: {how}")]
    NoKey {
        /// The provider.
        provider: String,
        /// Where one is looked for.
        how: String,
    },
    /// The provider refused for good.
    #[error("{provider} answered {status}: {what}")]
    Refused {
        /// The provider.
        provider: String,
        /// HTTP status.
        status: u16,
        /// What it said, bounded.
        what: String,
    },
    /// The provider was busy until all attempts were used up.
    #[error("{provider} is busy ({status}){}{what}", if .what.is_empty() { "" } else { ": " })]
    Busy {
        /// The provider.
        provider: String,
        /// HTTP status of the last try.
        status: u16,
        /// How long it asked us to wait.
        after: Option<Duration>,
        /// What it said, bounded; empty if nothing.
        what: String,
    },
    /// There was no connection, or it broke.
    #[error("{provider} cannot be reached: {what}")]
    Connection {
        /// The provider.
        provider: String,
        /// What broke.
        what: String,
    },
    /// It took longer than the limit.
    #[error("{provider} did not answer within {limit:?}")]
    Timeout {
        /// The provider.
        provider: String,
        /// The limit.
        limit: Duration,
    },
    /// The answer is larger than the limit.
    #[error("the answer of {provider} is larger than {limit} bytes")]
    TooLarge {
        /// The provider.
        provider: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not what the provider's format says.
    #[error("the answer of {provider} cannot be read: {what}")]
    Unreadable {
        /// The provider.
        provider: String,
        /// What is wrong with it.
        what: String,
    },
    /// The system cannot provide a thread or runtime to wait on.
    #[error("no answer can be waited for: {what}")]
    NoExecutor {
        /// What the system said.
        what: String,
    },
}
