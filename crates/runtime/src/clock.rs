//! Reads the wall clock of this machine, not that of a [`crate::System`].

use std::time::{SystemTime, UNIX_EPOCH};

use checkrein_core::ids::UnixMillis;

/// Milliseconds since the Unix epoch; 0 if the clock stands before it.
pub fn now_millis() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
