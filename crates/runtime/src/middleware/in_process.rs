//! Asks a function of this process, on a thread of its own. A function that hangs cannot be ended,
//! only abandoned; one that was abandoned too often is not asked any more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::Middleware;
use super::question::{AnyMiddlewareAnswer, MiddlewareQuestion};

/// How often `cancelled` is looked at.
const TICK: Duration = Duration::from_millis(25);
/// How many abandoned questions a layer may have at a time.
const MAX_ABANDONED: usize = 8;

const RUNNING: u8 = 0;
const RETURNED: u8 = 1;
const ABANDONED: u8 = 2;

pub(super) fn ask_middleware_in_process(
    middleware: &Arc<dyn Middleware>,
    hanging: &Arc<AtomicUsize>,
    question: MiddlewareQuestion,
    limit: Duration,
    cancelled: &AtomicBool,
) -> Result<AnyMiddlewareAnswer, String> {
    if hanging.load(Ordering::Relaxed) >= MAX_ABANDONED {
        return Err(format!(
            "it was not asked: it still hangs over {MAX_ABANDONED} earlier questions"
        ));
    }
    let until = Instant::now() + limit;
    let stands = Arc::new(AtomicU8::new(RUNNING));
    let (sender, receiver) = channel();
    let (asked, there, count) = (middleware.clone(), stands.clone(), hanging.clone());
    std::thread::Builder::new()
        .name("middleware".to_owned())
        .spawn(move || {
            // A panic counts as no answer, so the stance decides.
            let said = catch_unwind(AssertUnwindSafe(|| call_middleware(&*asked, &question)));
            // Nobody listens any more once it was abandoned.
            let _ = sender.send(said.map_err(|panic| panic_message(&*panic)));
            // Thread and asker both swap the state: whoever comes second sees what the other did,
            // so the count is right in either order.
            if there.swap(RETURNED, Ordering::AcqRel) == ABANDONED {
                count.fetch_sub(1, Ordering::Relaxed);
            }
        })
        .map_err(|error| format!("no thread could be started for it: {error}"))?;
    let leave = |why: String| {
        hanging.fetch_add(1, Ordering::Relaxed);
        if stands.swap(ABANDONED, Ordering::AcqRel) == RETURNED {
            hanging.fetch_sub(1, Ordering::Relaxed);
        }
        Err(why)
    };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // Waits in short steps, to notice a cancellation.
        match receiver.recv_timeout(left.min(TICK)) {
            Ok(said) => return said,
            Err(RecvTimeoutError::Disconnected) => {
                return Err("it was lost on the way".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if cancelled.load(Ordering::Relaxed) => {
                return leave("it was given up: somebody wanted the run to end".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                return leave(format!("it took longer than {} ms", limit.as_millis()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn call_middleware(
    middleware: &dyn Middleware,
    question: &MiddlewareQuestion,
) -> AnyMiddlewareAnswer {
    match question {
        MiddlewareQuestion::BeforeTool(call) => {
            AnyMiddlewareAnswer::Call(middleware.before_tool(call))
        }
        MiddlewareQuestion::AfterTool(result) => {
            AnyMiddlewareAnswer::Result(middleware.after_tool(result))
        }
        MiddlewareQuestion::PersistResult(result) => {
            AnyMiddlewareAnswer::Result(middleware.rewrite_result_for_later_rounds(result))
        }
        MiddlewareQuestion::BeforeStop(stop) => {
            AnyMiddlewareAnswer::Stop(middleware.before_stop(stop))
        }
        MiddlewareQuestion::RoundEnd(round) => {
            AnyMiddlewareAnswer::Round(middleware.judge_round_end(round))
        }
        MiddlewareQuestion::SessionStart(session) => {
            middleware.on_session_start(session);
            AnyMiddlewareAnswer::Acknowledged
        }
        MiddlewareQuestion::SessionEnd(session) => {
            middleware.on_session_end(session);
            AnyMiddlewareAnswer::Acknowledged
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", said.unwrap_or("without a word"))
}
