//! Makes SIGTERM and Ctrl-C set a flag. Code that waits checks the flag, kills what it started,
//! records that, and returns.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set when this process must give up what it does: a signal came, its agent is gone, or Checkrein
/// was switched off.
pub(crate) static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Makes the signals set the flag instead of killing this process.
pub(crate) fn install_signal_handlers() {
    // Only a second call can fail, and then the first one listens.
    let _ = ctrlc::set_handler(|| CANCELLED.store(true, Ordering::Relaxed));
}

/// Returns whether this process must give up.
pub(crate) fn is_process_cancelled() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}
