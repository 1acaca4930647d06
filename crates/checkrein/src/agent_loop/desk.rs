//! The thread where a run is judged: stores and checks block, and the caller's executor must not. It
//! looks at the clock as well.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use checkrein_core::ids::SessionId;
use checkrein_core::input::Input;
use checkrein_runtime::RuntimeError;
use futures_channel::oneshot;

use super::LoopError;
use super::interrupt::{Over, Stop};
use crate::{Engine, Session};

/// How early the clock is looked at again, once its time was up and checks had taken some of it.
const SOON: Duration = Duration::from_millis(20);

type Job = Box<dyn FnOnce(&Session<'_>) + Send>;

/// What is known once a session has begun.
pub(super) struct Opened {
    pub(super) session: SessionId,
    pub(super) warnings: Vec<String>,
}

pub(super) struct Desk {
    jobs: Sender<Job>,
    stop: Stop,
}

impl Desk {
    /// Begins the session and its task.
    pub(super) async fn open(
        engine: Engine,
        prompt: String,
        stop: Stop,
    ) -> Result<(Self, Opened), LoopError> {
        let (jobs, come_in) = channel();
        let (tell, opened) = oneshot::channel();
        let of_thread = stop.clone();
        std::thread::Builder::new()
            .name("agent-loop".to_owned())
            .spawn(move || {
                let begun = engine
                    .session("agent-loop")
                    .and_then(|(session, warnings)| {
                        session.prompt(&prompt)?;
                        Ok((session, warnings))
                    });
                match begun {
                    Err(error) => {
                        let _ = tell.send(Err(error));
                    }
                    Ok((session, warnings)) => {
                        let opened = Opened {
                            session: session.id().clone(),
                            warnings,
                        };
                        // Nobody waits for it any more if the run was dropped.
                        if tell.send(Ok(opened)).is_ok() {
                            work(&session, &come_in, &of_thread);
                        }
                    }
                }
            })
            .map_err(LoopError::Thread)?;
        let desk = Self { jobs, stop };
        let opened = opened.await.unwrap_or(Err(RuntimeError::Cancelled))?;
        Ok((desk, opened))
    }

    /// Has the session do something.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Session<'_>) -> Result<T, RuntimeError> + Send + 'static,
    ) -> Result<T, String> {
        const GONE: &str = "the thread that judges is gone";
        let (tell, told) = oneshot::channel();
        let job = move |session: &Session<'_>| {
            // Nobody waits for it any more if the run was dropped.
            let _ = tell.send(what(session));
        };
        self.jobs.send(Box::new(job)).map_err(|_| GONE.to_owned())?;
        let answer = told.await.map_err(|_| GONE.to_owned())?;
        answer.map_err(|error| error.to_string())
    }
}

impl Drop for Desk {
    /// Checks of a run that was dropped are for nobody.
    fn drop(&mut self) {
        self.stop.flag().store(true, Ordering::Relaxed);
    }
}

fn work(session: &Session<'_>, jobs: &Receiver<Job>, stop: &Stop) {
    let mut alarm = left(session).and_then(|left| Instant::now().checked_add(left));
    loop {
        let job = match alarm {
            Some(at) => jobs.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match job {
            Ok(job) => job(session),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                let ended = session.take(Input::TimePassed).map(|said| said.ending());
                if let Ok(Some(transition)) = ended {
                    stop.end(Over::Ended(transition));
                    alarm = None;
                } else {
                    let left = left(session).map(|left| left.max(SOON));
                    alarm = left.and_then(|left| Instant::now().checked_add(left));
                }
            }
        }
    }
}

/// How much is left of the time that the policy gives.
fn left(session: &Session<'_>) -> Option<Duration> {
    let (state, policy) = session.peek().ok().flatten()?;
    let limit = policy.caps.wall_clock_ms?;
    Some(Duration::from_millis(limit.saturating_sub(state.busy_ms())))
}
