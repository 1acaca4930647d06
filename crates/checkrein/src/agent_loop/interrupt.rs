//! What ends a run from outside, whatever it waits for: a person, or the clock.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use checkrein_core::transition::Transition;

/// Ends the runs of a loop, from any thread. What it ended ends `user_interrupt`; a run that begins
/// later ends at once.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Mutex<Runs>>);

#[derive(Default)]
struct Runs {
    interrupted: bool,
    of: Vec<Weak<Shared>>,
}

impl Interrupt {
    /// Ends them.
    pub fn now(&self) {
        let mut runs = held(&self.0);
        runs.interrupted = true;
        for run in runs.of.drain(..).filter_map(|run| run.upgrade()) {
            run.end(Over::Interrupted);
        }
    }
}

/// Why a run is over before its model says so.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Over {
    Interrupted,
    Ended(Transition),
}

/// The end of one run.
#[derive(Clone)]
pub(super) struct Stop(Arc<Shared>);

struct Shared {
    /// For checks, which end when it is set.
    interrupted: Arc<AtomicBool>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    over: Option<Over>,
    waker: Option<Waker>,
}

impl Shared {
    fn end(&self, over: Over) {
        if over == Over::Interrupted {
            self.interrupted.store(true, Ordering::Relaxed);
        }
        let mut waiting = held(&self.waiting);
        waiting.over.get_or_insert(over);
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }
}

impl Stop {
    /// Of a run that begins.
    pub(super) fn of(interrupt: &Interrupt) -> Self {
        let shared = Arc::new(Shared {
            interrupted: Arc::default(),
            waiting: Mutex::default(),
        });
        let mut runs = held(&interrupt.0);
        runs.of.retain(|run| run.strong_count() > 0);
        match runs.interrupted {
            true => shared.end(Over::Interrupted),
            false => runs.of.push(Arc::downgrade(&shared)),
        }
        drop(runs);
        Self(shared)
    }

    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        self.0.interrupted.clone()
    }

    pub(super) fn end(&self, over: Over) {
        self.0.end(over);
    }

    pub(super) fn over(&self) -> Option<Over> {
        held(&self.0.waiting).over.clone()
    }

    /// Waits for a future, unless the run is over before; what is given up is dropped.
    pub(super) async fn unless<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut future = pin!(future);
        poll_fn(|context| {
            if self.is_over(context) {
                return Poll::Ready(None);
            }
            future.as_mut().poll(context).map(Some)
        })
        .await
    }

    fn is_over(&self, context: &Context<'_>) -> bool {
        let mut waiting = held(&self.0.waiting);
        waiting.waker = Some(context.waker().clone());
        waiting.over.is_some()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
