//! A verifier of a host: a function, quick, blocking or asynchronous. Its panic is a result like any other.

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
    /// It is as it should be.
    Passed,
    /// It is not; what the agent has to know to mend it.
    Failed(String),
    /// Nobody knows: what went wrong with the verifier itself. Never as good as passed, and nothing that an
    /// agent can mend.
    Inconclusive(String),
}

impl VerificationResult {
    /// Whether it passed.
    pub fn is_passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// Whether nobody knows.
    pub fn is_inconclusive(&self) -> bool {
        matches!(self, Self::Inconclusive(_))
    }
}

/// Something that is looked at after each run of an agent.
pub struct Verifier<M> {
    name: String,
    check: Check<M>,
}

type Quick<M> = dyn Fn(&AgentRun<M>) -> VerificationResult + Send + Sync;
type Blocking = dyn Fn() -> VerificationResult + Send + Sync;
type Asynchronous<M> =
    dyn for<'a> Fn(&'a AgentRun<M>) -> BoxFuture<'a, VerificationResult> + Send + Sync;

enum Check<M> {
    Quick(Box<Quick<M>>),
    Blocking(Arc<Blocking>),
    Asynchronous(Box<Asynchronous<M>>),
}

impl<M> Verifier<M> {
    /// One that answers at once: it runs where the loop is waited for.
    pub fn new(
        name: &str,
        check: impl Fn(&AgentRun<M>) -> VerificationResult + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: Check::Quick(Box::new(check)),
        }
    }

    /// One that takes its time, such as a command: it has a thread of its own, which goes on to its end even if
    /// nobody waits any more.
    pub fn blocking(
        name: &str,
        check: impl Fn() -> VerificationResult + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: Check::Blocking(Arc::new(check)),
        }
    }

    /// One that waits for something itself.
    pub fn asynchronous(
        name: &str,
        check: impl for<'a> Fn(&'a AgentRun<M>) -> BoxFuture<'a, VerificationResult>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            name: name.to_owned(),
            check: Check::Asynchronous(Box::new(check)),
        }
    }

    /// Its name, by which the agent is told of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts it.
    pub(super) fn start<'a>(&'a self, run: &'a AgentRun<M>) -> Started<'a> {
        Started(match &self.check {
            Check::Quick(check) => State::Done(Some(caught(|| check(run)))),
            Check::Blocking(check) => State::Elsewhere(Elsewhere::start(check.clone())),
            Check::Asynchronous(check) => match catch_unwind(AssertUnwindSafe(|| check(run))) {
                Ok(pending) => State::Waiting(pending),
                Err(panic) => State::Done(Some(crashed(&*panic))),
            },
        })
    }
}

/// A verifier that has been started.
pub(super) struct Started<'a>(State<'a>);

enum State<'a> {
    /// `None` once its result was taken.
    Done(Option<VerificationResult>),
    Waiting(BoxFuture<'a, VerificationResult>),
    Elsewhere(Elsewhere),
}

impl Future for Started<'_> {
    type Output = VerificationResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<VerificationResult> {
        match &mut self.0 {
            State::Done(result) => Poll::Ready(result.take().unwrap_or_else(|| {
                VerificationResult::Inconclusive("its result was taken before".to_owned())
            })),
            State::Waiting(pending) => {
                let polled = AssertUnwindSafe(|| pending.as_mut().poll(context));
                catch_unwind(polled).unwrap_or_else(|panic| Poll::Ready(crashed(&*panic)))
            }
            State::Elsewhere(elsewhere) => elsewhere.poll(context),
        }
    }
}

/// A verifier on a thread of its own.
struct Elsewhere(Arc<Mutex<(Option<VerificationResult>, Option<Waker>)>>);

impl Elsewhere {
    fn start(check: Arc<Blocking>) -> Self {
        let shared = Arc::new(Mutex::new((None, None::<Waker>)));
        let there = shared.clone();
        let tell = move |result| {
            let mut shared = there.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0 = Some(result);
            if let Some(waker) = shared.1.take() {
                waker.wake();
            }
        };
        let started = std::thread::Builder::new()
            .name("verifier".to_owned())
            .spawn(move || tell(caught(|| check())));
        if let Err(error) = started {
            let why = format!("no thread could be started for it: {error}");
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            shared.0 = Some(VerificationResult::Inconclusive(why));
        }
        Self(shared)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<VerificationResult> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match shared.0.take() {
            Some(result) => Poll::Ready(result),
            None => {
                shared.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn caught(check: impl FnOnce() -> VerificationResult) -> VerificationResult {
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|panic| crashed(&*panic))
}

fn crashed(panic: &(dyn Any + Send)) -> VerificationResult {
    let said = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    VerificationResult::Inconclusive(match said {
        Some(said) => format!("it panicked: {said}"),
        None => "it panicked".to_owned(),
    })
}
