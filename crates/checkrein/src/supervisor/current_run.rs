//! Holds the counters and the cache of the current run, and replaces them when the next run begins.
//! A question that is pending at that moment counts for the run in which it was asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::VerifierStats;
use super::decision_cache::PreToolDecisionCache;

/// The state of one run.
#[derive(Debug, Default)]
pub(super) struct ModelSupervisorRunState {
    pub(super) stats: VerifierStats,
    pub(super) cache: PreToolDecisionCache,
    /// Steps in a row below the threshold.
    pub(super) streak: u32,
}

/// The current run of a verifier, shared by all clones that share its caps.
#[derive(Debug, Default)]
pub(super) struct SharedSupervisorRunState(Mutex<Arc<Mutex<ModelSupervisorRunState>>>);

impl SharedSupervisorRunState {
    /// Returns the current run.
    pub(super) fn current_run_state(&self) -> Arc<Mutex<ModelSupervisorRunState>> {
        lock_unpoisoned(&self.0).clone()
    }

    /// Begins the next.
    pub(super) fn reset_state_for_next_run(&self) {
        // Replaced, not cleared: a pending question keeps its `Arc` of the old run and counts
        // there.
        *lock_unpoisoned(&self.0) = Arc::default();
    }

    pub(super) fn current_run_verifier_stats(&self) -> VerifierStats {
        lock_unpoisoned(&self.current_run_state()).stats.clone()
    }
}

/// Locks a mutex, poisoned or not. It guards counters, which stay valid if a thread panics.
pub(super) fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
