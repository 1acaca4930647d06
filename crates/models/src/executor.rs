//! Runs requests on the caller's Tokio runtime, or else on a shared one that is started when the
//! first model is asked. A process that asks none starts none.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::ModelError;

/// How often to check whether an answer is still wanted.
const CANCEL_POLL: Duration = Duration::from_millis(50);

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// Returns the shared runtime. Its one thread drives the connections, even while nobody waits.
fn shared_tokio_runtime() -> Result<&'static Runtime, ModelError> {
    // Never shut down: a connection that is reused keeps its task on this runtime until the process
    // ends.
    let started = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("models")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    started
        .as_ref()
        .map_err(|what| ModelError::NoExecutor { what: what.clone() })
}

/// Returns whether the caller runs on a Tokio runtime, which can drive the connections.
pub(crate) fn is_in_tokio_runtime() -> bool {
    Handle::try_current().is_ok()
}

/// Blocks until the answer is there. Works from any number of threads, including a runtime's own
/// thread, which is then blocked for as long.
pub fn block_on<T, E>(future: impl Future<Output = Result<T, E>> + Send) -> Result<T, E>
where
    T: Send,
    E: From<ModelError> + Send,
{
    let runtime = shared_tokio_runtime()?;
    if !is_in_tokio_runtime() {
        return runtime.block_on(future);
    }
    // Tokio panics if a runtime is blocked on from within another, so a helper thread waits.
    let waited = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .spawn_scoped(scope, || runtime.block_on(future))
            .map(std::thread::ScopedJoinHandle::join)
    });
    match waited {
        Ok(Ok(answer)) => answer,
        // A panic of the caller's future is the caller's, as if it had run on this thread.
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => Err(no_executor_model_error(&error).into()),
    }
}

/// Like [`block_on`], but gives up and returns `None` once the flag is set.
pub fn block_on_unless_cancelled<T>(
    cancelled: &AtomicBool,
    future: impl Future<Output = Result<T, ModelError>> + Send,
) -> Option<Result<T, ModelError>>
where
    T: Send,
{
    let watched = async {
        let mut future = std::pin::pin!(future);
        loop {
            match tokio::time::timeout(CANCEL_POLL, &mut future).await {
                Ok(answer) => return answer.map(Some),
                // An answer that is ready wins over a flag that was set meanwhile.
                Err(_) if cancelled.load(Ordering::Relaxed) => return Ok(None),
                Err(_) => {}
            }
        }
    };
    block_on(watched).transpose()
}

/// Runs a request on the shared runtime. Dropping the future cancels the request.
pub(crate) async fn spawn_on_shared_runtime<T: Send + 'static>(
    future: impl Future<Output = Result<T, ModelError>> + Send + 'static,
) -> Result<T, ModelError> {
    AbortOnDrop(shared_tokio_runtime()?.spawn(future))
        .await
        .unwrap_or_else(|error| Err(no_executor_model_error(&error)))
}

fn no_executor_model_error(error: &dyn std::error::Error) -> ModelError {
    ModelError::NoExecutor {
        what: error.to_string(),
    }
}

/// Aborts the task when the handle is dropped. A plain `JoinHandle` would let it run on.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, tokio::task::JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_threads_wait_at_once() {
        let waited: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|number| {
                    scope.spawn(move || {
                        block_on(async move {
                            tokio::task::yield_now().await;
                            Ok::<_, ModelError>(number)
                        })
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().unwrap());
            joined.collect::<Result<_, _>>().unwrap()
        });
        assert_eq!(waited, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn inside_of_an_executor_nothing_panics() {
        let outer = Builder::new_current_thread().build().unwrap();
        let answer = outer.block_on(async { block_on(async { Ok::<_, ModelError>(7) }) });
        assert_eq!(answer, Ok(7));
    }
}
