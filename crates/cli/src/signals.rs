//! SIGTERM and Ctrl-C set a flag; whoever waits looks at it, kills what it started,
//! records, and goes.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set when this process is to give up what it does: a signal says so, its agent is gone, or it was switched off.
pub(crate) static CANCELLED: AtomicBool = AtomicBool::new(false);

/// From here on the signals set the flag instead of killing us.
pub(crate) fn install_signal_handlers() {
    // Only a second call can fail, and then the first one listens.
    let _ = ctrlc::set_handler(|| CANCELLED.store(true, Ordering::Relaxed));
}

/// Whether we are to go.
pub(crate) fn is_interrupted_by_signal() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}
