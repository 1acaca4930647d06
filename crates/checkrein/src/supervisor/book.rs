//! What is kept of a run, and when the next begins. Whoever is in the middle of a question when that
//! happens counts for the run in which it was asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::VerifierStats;
use super::shapes::Shapes;

/// The state of one run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) stats: VerifierStats,
    pub(super) shapes: Shapes,
    /// Steps in a row below the threshold.
    pub(super) streak: u32,
}

/// The runs of a verifier, one after the other; shared by all that share its caps.
#[derive(Debug, Default)]
pub(super) struct Book(Mutex<Arc<Mutex<Run>>>);

impl Book {
    /// The run that is going on.
    pub(super) fn run(&self) -> Arc<Mutex<Run>> {
        lock(&self.0).clone()
    }

    /// Begins the next.
    pub(super) fn begin(&self) {
        *lock(&self.0) = Arc::default();
    }

    pub(super) fn stats(&self) -> VerifierStats {
        lock(&self.run()).stats.clone()
    }
}

/// What a panicking thread held are counters, good as they are.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
