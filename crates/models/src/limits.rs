//! Time and size limits of one question.

use std::time::Duration;

/// What one question may cost in time and bytes. Retries share these limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRequestLimits {
    /// Time until the connection is established.
    pub connect: Duration,
    /// Time between two pieces of an answer, including the wait for the first. Some models think
    /// for minutes without sending anything.
    pub idle_timeout: Duration,
    /// Total time, including retries and the waits between them.
    pub total_timeout: Duration,
    /// Bytes of an answer as received.
    pub bytes: usize,
    /// Requests in all, the first included.
    pub tries: u32,
    /// The wait before the second try; it doubles with each further one.
    pub first_backoff: Duration,
}

impl Default for ModelRequestLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            total_timeout: Duration::from_secs(600),
            bytes: 8 * 1024 * 1024,
            tries: 4,
            first_backoff: Duration::from_millis(500),
        }
    }
}
