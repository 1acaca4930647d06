//! Validation on a thread of its own: with a stack deep enough for whatever a bounded schema and a
//! bounded document can nest, and left behind when its time is over. It is told so, and ends at
//! its next question.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use super::budget::ValidationBudget;
use crate::VerifierJob;

/// Only what is used of it is taken from the machine.
const STACK: usize = 256 << 20;
/// How long to wait before looking whether we were told to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What became of it.
pub(super) enum BoundedValidationOutcome<T> {
    Done(T),
    /// Its own time was over.
    Timeout,
    /// The answer was due.
    ReplyDeadline,
    /// We were told to stop.
    Cancelled,
    /// It panicked, or could not be started.
    Lost(&'static str),
}

/// Runs `work` until the job's time is over.
pub(super) fn run_closure_until_deadline<T: Send + 'static>(
    job: &VerifierJob<'_>,
    budget: &ValidationBudget,
    work: impl FnOnce() -> T + Send + 'static,
) -> BoundedValidationOutcome<T> {
    let timeout = Instant::now().checked_add(Duration::from_millis(job.spec.timeout_ms));
    let (sender, receiver) = channel();
    let started = Builder::new().stack_size(STACK).spawn(move || {
        // Nobody may be waiting any more.
        let _ = sender.send(work());
    });
    if started.is_err() {
        return BoundedValidationOutcome::Lost("no thread could be started for it");
    }
    loop {
        match receiver.recv_timeout(LOOK_AGAIN) {
            Ok(done) => return BoundedValidationOutcome::Done(done),
            Err(RecvTimeoutError::Disconnected) => {
                return BoundedValidationOutcome::Lost("it panicked");
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        let over = if job.cancelled.load(Ordering::Relaxed) {
            BoundedValidationOutcome::Cancelled
        } else if job.deadline.is_some_and(|deadline| now >= deadline) {
            BoundedValidationOutcome::ReplyDeadline
        } else if timeout.is_some_and(|timeout| now >= timeout) {
            BoundedValidationOutcome::Timeout
        } else {
            continue;
        };
        budget.cancel_schema_validation();
        return over;
    }
}

/// Runs `work` to its end.
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
