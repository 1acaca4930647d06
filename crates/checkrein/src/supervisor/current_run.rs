//! What is kept of a run, and when the next begins. Whoever is in the middle of a question when that
//! happens counts for the run in which it was asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::VerifierStats;
use super::decision_cache::PreToolDecisionCache;

/// The state of one run.
#[derive(Debug, Default)]
pub(super) struct SupervisorRunState {
    pub(super) stats: VerifierStats,
    pub(super) cache: PreToolDecisionCache,
    /// Steps in a row below the threshold.
    pub(super) streak: u32,
}

/// The runs of a verifier, one after the other; shared by all that share its caps.
#[derive(Debug, Default)]
pub(super) struct SharedSupervisorRunState(Mutex<Arc<Mutex<SupervisorRunState>>>);

impl SharedSupervisorRunState {
    /// The run that is going on.
    pub(super) fn current_supervisor_run(&self) -> Arc<Mutex<SupervisorRunState>> {
        lock_unpoisoned(&self.0).clone()
    }

    /// Begins the next.
    pub(super) fn begin_next_supervised_run(&self) {
        *lock_unpoisoned(&self.0) = Arc::default();
    }

    pub(super) fn current_run_verifier_stats(&self) -> VerifierStats {
        lock_unpoisoned(&self.current_supervisor_run())
            .stats
            .clone()
    }
}

/// What a panicking thread held are counters, good as they are.
pub(super) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
