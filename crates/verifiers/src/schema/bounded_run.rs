//! Runs validation on a thread of its own, with a stack deep enough for whatever a bounded schema
//! and a bounded document can nest. When its time is over the thread is left behind: it is told to
//! stop, and ends at its next validation step.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::budget::ValidationBudget;
use crate::VerifierJob;

/// Stack size of the thread. The operating system commits only the pages that are used.
const STACK: usize = 256 << 20;
/// Interval at which the deadline and `cancelled` are checked.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The outcome of a bounded run.
pub(super) enum BoundedClosureOutcome<T> {
    Done(T),
    /// Its own timeout passed.
    Timeout,
    /// The agent had to be answered.
    ReplyDeadline,
    /// The check was cancelled.
    Cancelled,
    /// It panicked, or could not be started.
    Lost(&'static str),
}

/// Runs `work` until the job's time is over.
pub(super) fn run_closure_until_deadline<T: Send + 'static>(
    job: &VerifierJob<'_>,
    budget: &ValidationBudget,
    work: impl FnOnce() -> T + Send + 'static,
) -> BoundedClosureOutcome<T> {
    let timeout = Instant::now().checked_add(Duration::from_millis(job.spec.timeout_ms));
    let (sender, receiver) = channel();
    let started = Builder::new().stack_size(STACK).spawn(move || {
        // The receiver may be gone if the time is over.
        let _ = sender.send(work());
    });
    if started.is_err() {
        return BoundedClosureOutcome::Lost("no thread could be started for it");
    }
    loop {
        match receiver.recv_timeout(LOOK_AGAIN) {
            Ok(done) => return BoundedClosureOutcome::Done(done),
            // The sender was dropped without a result: the closure unwound.
            Err(RecvTimeoutError::Disconnected) => {
                return BoundedClosureOutcome::Lost("it panicked");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        let over = if job.cancelled.load(Ordering::Relaxed) {
            BoundedClosureOutcome::Cancelled
        } else if job.deadline.is_some_and(|deadline| now >= deadline) {
            BoundedClosureOutcome::ReplyDeadline
        } else if timeout.is_some_and(|timeout| now >= timeout) {
            BoundedClosureOutcome::Timeout
        } else {
            continue;
        };
        // A thread cannot be killed, so it is asked to end.
        budget.cancel_schema_validation();
        return over;
    }
}

/// Runs `work` to its end on a thread with a deep stack.
pub(super) fn run_on_deep_stack<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let started = Builder::new().stack_size(STACK).spawn(work);
    match started.map(std::thread::JoinHandle::join) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) => Err("reading it panicked"),
        Err(_) => Err("no thread could be started to read it"),
    }
}
