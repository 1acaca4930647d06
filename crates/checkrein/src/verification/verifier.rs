//! Runs a host's verifier: an immediate, blocking or asynchronous function. A panic becomes an
//! inconclusive result.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use checkrein_models::BoxFuture;

use super::AgentRun;

/// What a verifier found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationResult {
    /// The work is as it should be.
    Passed,
    /// It is not, with what the agent has to know to mend it.
    Failed(String),
    /// The verifier itself failed, with the reason. This never counts as passed, and an agent
    /// cannot mend it.
    Inconclusive(String),
}

impl VerificationResult {
    /// Whether it passed.
    pub fn is_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Returns whether it is inconclusive.
    pub fn is_inconclusive(&self) -> bool {
        matches!(self, Self::Inconclusive(_))
    }
}

/// A named check that runs after each run of an agent.
pub struct Verifier<M> {
    name: String,
    check: HostCheckFunction<M>,
}

type ImmediateCheckFn<M> = dyn Fn(&AgentRun<M>) -> VerificationResult + Send + Sync;
type BlockingCheckFn = dyn Fn() -> VerificationResult + Send + Sync;
type AsyncCheckFn<M> =
    dyn for<'a> Fn(&'a AgentRun<M>) -> BoxFuture<'a, VerificationResult> + Send + Sync;

enum HostCheckFunction<M> {
    Quick(Box<ImmediateCheckFn<M>>),
    Blocking(Arc<BlockingCheckFn>),
    Asynchronous(Box<AsyncCheckFn<M>>),
}

impl<M> Verifier<M> {
    /// Creates a verifier that answers at once. It runs on the thread that polls the loop.
    pub fn new(
        name: &str,
        check: impl Fn(&AgentRun<M>) -> VerificationResult + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: HostCheckFunction::Quick(Box::new(check)),
        }
    }

    /// Creates a verifier that blocks, such as a command. It runs on a thread of its own, to its
    /// end even if the loop is dropped.
    pub fn new_blocking_verifier(
        name: &str,
        check: impl Fn() -> VerificationResult + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: HostCheckFunction::Blocking(Arc::new(check)),
        }
    }

    /// Creates an asynchronous verifier.
    pub fn new_async_verifier(
        name: &str,
        check: impl for<'a> Fn(&'a AgentRun<M>) -> BoxFuture<'a, VerificationResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: HostCheckFunction::Asynchronous(Box::new(check)),
        }
    }

    /// Its name, which the agent's feedback mentions.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it.
    pub(super) fn start_verifier<'a>(&'a self, run: &'a AgentRun<M>) -> StartedVerifier<'a> {
        StartedVerifier(match &self.check {
            HostCheckFunction::Quick(check) => {
                VerifierResultOrPendingRun::Done(Some(catch_panic(|| check(run))))
            }
            HostCheckFunction::Blocking(check) => VerifierResultOrPendingRun::OnThread(
                VerifierThreadFuture::start_check_on_thread(check.clone()),
            ),
            HostCheckFunction::Asynchronous(check) => {
                // The function may panic before it returns its future.
                match catch_unwind(AssertUnwindSafe(|| check(run))) {
                    Ok(pending) => VerifierResultOrPendingRun::Waiting(pending),
                    Err(panic) => {
                        VerifierResultOrPendingRun::Done(Some(verifier_panic_result(&*panic)))
                    }
                }
            }
        })
    }
}

/// A verifier that has been started.
pub(super) struct StartedVerifier<'a>(VerifierResultOrPendingRun<'a>);

enum VerifierResultOrPendingRun<'a> {
    /// `None` once its result was taken.
    Done(Option<VerificationResult>),
    Waiting(BoxFuture<'a, VerificationResult>),
    OnThread(VerifierThreadFuture),
}

impl Future for StartedVerifier<'_> {
    type Output = VerificationResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<VerificationResult> {
        match &mut self.0 {
            VerifierResultOrPendingRun::Done(result) => {
                Poll::Ready(result.take().unwrap_or_else(|| {
                    VerificationResult::Inconclusive("its result was taken before".to_owned())
                }))
            }
            VerifierResultOrPendingRun::Waiting(pending) => {
                let polled = AssertUnwindSafe(|| pending.as_mut().poll(context));
                catch_unwind(polled)
                    .unwrap_or_else(|panic| Poll::Ready(verifier_panic_result(&*panic)))
            }
            VerifierResultOrPendingRun::OnThread(elsewhere) => {
                elsewhere.poll_verification_result(context)
            }
        }
    }
}

/// A verifier on a thread of its own.
struct VerifierThreadFuture(Arc<Mutex<(Option<VerificationResult>, Option<Waker>)>>);

impl VerifierThreadFuture {
    fn start_check_on_thread(check: Arc<BlockingCheckFn>) -> Self {
        let shared = Arc::new(Mutex::new((None, None::<Waker>)));
        let there = shared.clone();
        let tell = move |result| {
            // The result is stored before the waker is called, under one lock with the poll below:
            // a poll in between either sees the result or leaves its waker first.
            let mut shared = there.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0 = Some(result);
            if let Some(waker) = shared.1.take() {
                waker.wake();
            }
        };
        let started = std::thread::Builder::new()
            .name("verifier".to_owned())
            .spawn(move || tell(catch_panic(|| check())));
        // Inconclusive and not failed: the agent cannot mend a system without threads.
        if let Err(error) = started {
            let why = format!("no thread could be started for it: {error}");
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0 = Some(VerificationResult::Inconclusive(why));
        }
        Self(shared)
    }

    fn poll_verification_result(&self, context: &Context<'_>) -> Poll<VerificationResult> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.0.take() {
            Some(result) => Poll::Ready(result),
            None => {
                // Replaced on every poll: the future may have moved to another task since.
                shared.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn catch_panic(check: impl FnOnce() -> VerificationResult) -> VerificationResult {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| verifier_panic_result(&*panic))
}

fn verifier_panic_result(panic: &(dyn Any + Send)) -> VerificationResult {
    // `panic!` with a literal carries a `&str`, with a format a `String`; other payloads have no
    // text.
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    VerificationResult::Inconclusive(match said {
        Some(said) => format!("it panicked: {said}"),
        None => "it panicked".to_owned(),
    })
}
