//! Ends a run from outside, whatever it waits for: on an interrupt by a person, or when its time is
//! up.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use checkrein_core::transition::Transition;

/// Ends the runs of a loop, from any thread. Such runs end with `user_interrupt`. A run that begins
/// later ends at once.
#[derive(Clone, Default)]
pub struct AgentLoopInterruptHandle(Arc<Mutex<InterruptibleAgentRuns>>);

#[derive(Default)]
struct InterruptibleAgentRuns {
    interrupted: bool,
    runs: Vec<Weak<SharedRunEndState>>,
}

impl AgentLoopInterruptHandle {
    /// Ends all runs of the loop, those that begin later included.
    pub fn interrupt_agent_loops(&self) {
        let mut runs = lock_unpoisoned(&self.0);
        runs.interrupted = true;
        for run in runs.runs.drain(..).filter_map(|run| run.upgrade()) {
            run.signal_early_run_end(AgentLoopEarlyEnd::Interrupted);
        }
    }
}

/// Why a run is over before its model says so.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AgentLoopEarlyEnd {
    Interrupted,
    Ended(Transition),
}

/// The end of one run.
#[derive(Clone)]
pub(super) struct LoopRunEarlyEndSignal(Arc<SharedRunEndState>);

struct SharedRunEndState {
    /// Cancels running checks when it is set.
    interrupted: Arc<AtomicBool>,
    waiting: Mutex<RunEarlyEndAndWaker>,
}

#[derive(Default)]
struct RunEarlyEndAndWaker {
    early_end: Option<AgentLoopEarlyEnd>,
    waker: Option<Waker>,
}

impl SharedRunEndState {
    fn signal_early_run_end(&self, over: AgentLoopEarlyEnd) {
        if over == AgentLoopEarlyEnd::Interrupted {
            // An interrupt also cancels running checks. The wall-clock cap does not: it does not
            // count the time of checks.
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let mut waiting = lock_unpoisoned(&self.waiting);
        // The first reason counts; a later one must not overwrite the transition.
        waiting.early_end.get_or_insert(over);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }
}

impl LoopRunEarlyEndSignal {
    /// Creates the signal of a run that begins, and registers it with the handle.
    pub(super) fn register_run_end_signal(interrupt: &AgentLoopInterruptHandle) -> Self {
        let shared = Arc::new(SharedRunEndState {
            interrupted: Arc::default(),
            waiting: Mutex::default(),
        });
        let mut runs = lock_unpoisoned(&interrupt.0);
        // Ended runs are removed here, so that a long-lived loop does not collect them.
        runs.runs.retain(|run| run.strong_count() > 0);
        // Decided under the lock: an interrupt between the check and the push would be lost.
        match runs.interrupted {
            true => shared.signal_early_run_end(AgentLoopEarlyEnd::Interrupted),
            false => runs.runs.push(Arc::downgrade(&shared)),
        }
        drop(runs);
        Self(shared)
    }

    pub(super) fn checks_cancel_flag(&self) -> Arc<AtomicBool> {
        self.0.interrupted.clone()
    }

    pub(super) fn transition_of_run_ended_early(&self, over: AgentLoopEarlyEnd) {
        self.0.signal_early_run_end(over);
    }

    pub(super) fn requested_early_end(&self) -> Option<AgentLoopEarlyEnd> {
        lock_unpoisoned(&self.0.waiting).early_end.clone()
    }

    /// Waits for a future. Returns `None` and drops the future if the run ends first.
    pub(super) async fn await_unless_run_over<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            // The waker is stored before the future can return `Pending`, or an end between the two
            // would wake nobody.
            if self.poll_early_end(context) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    fn poll_early_end(&self, context: &Context<'_>) -> bool {
        let mut waiting = lock_unpoisoned(&self.0.waiting);
        waiting.waker = Some(context.waker().clone());
        waiting.early_end.is_some()
    }
}

fn lock_unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
