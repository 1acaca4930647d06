//! Looks after a task while an agent's process works on it: whether a hook halted it, its time
//! is up, or it is long over.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use checkrein::{DeliveryOutcome, Session};
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_verifiers::process::ProcessExit;

use crate::signals;
use crate::ui::errors::CommandError;

/// How often signals and the session are looked at while the agent works.
const TICK: Duration = Duration::from_millis(50);
/// Every so many ticks the log is asked.
const LOOK_EVERY: u32 = 4;
/// An agent whose stop was accepted is given this long to go.
const LINGER: Duration = Duration::from_secs(30);

/// How a process came to its end.
pub(super) enum ProcessWatchResult {
    Ended(ProcessExit),
    /// A person pressed Ctrl-C.
    Interrupted,
    /// The task was ended while it worked: by a hook, or by a cap.
    TaskEnded(Box<DeliveryOutcome>),
    /// Its task had ended, and it did not.
    Lingered,
}

/// What is to be done about a process.
pub(super) enum KeepOrKillAgentProcess {
    KeepRunning,
    TaskEnded(Box<DeliveryOutcome>),
    EndLingering,
}

/// Waits for the end of a process; kills it when `look` says so.
pub(super) fn wait_or_kill_process(
    ended: &Receiver<std::io::Result<(ProcessExit, bool)>>,
    kill: &mut dyn FnMut(),
    look: &mut dyn FnMut() -> Result<KeepOrKillAgentProcess, CommandError>,
) -> Result<ProcessWatchResult, CommandError> {
    let mut ticks: u32 = 0;
    loop {
        match ended.recv_timeout(TICK) {
            Ok(end) => {
                return Ok(ProcessWatchResult::Ended(
                    end.map_or(ProcessExit::Lost, |(end, _)| end),
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Ok(ProcessWatchResult::Ended(ProcessExit::Lost));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        ticks = ticks.wrapping_add(1);
        let over = if signals::is_interrupted_by_signal() {
            ProcessWatchResult::Interrupted
        } else if ticks.is_multiple_of(LOOK_EVERY) {
            match look()? {
                KeepOrKillAgentProcess::KeepRunning => continue,
                KeepOrKillAgentProcess::TaskEnded(decided) => {
                    ProcessWatchResult::TaskEnded(decided)
                }
                KeepOrKillAgentProcess::EndLingering => ProcessWatchResult::Lingered,
            }
        } else {
            continue;
        };
        kill();
        // Comes back once the whole tree is gone.
        let _ = ended.recv();
        return Ok(over);
    }
}

/// Watches one session.
#[derive(Default)]
pub(super) struct WrappedAgentSessionMonitor {
    ended: Option<Instant>,
}

impl WrappedAgentSessionMonitor {
    /// One look. With it, for who wants to show it, the session as it is.
    pub(super) fn check_whether_session_is_over(
        &mut self,
        session: &Session<'_>,
    ) -> Result<(KeepOrKillAgentProcess, Option<(SessionState, Policy)>), CommandError> {
        // What its agent does from here on could not be counted.
        session.check_writable()?;
        let Some((state, policy)) = session.current_session_state()? else {
            return Ok((KeepOrKillAgentProcess::KeepRunning, None));
        };
        let ended = state.task.as_ref().is_some_and(|task| task.ended.is_some());
        let halted = ended && state.task.as_ref().is_some_and(|task| task.halted);
        if halted || is_time_cap_reached(&state, &policy) {
            let decided = session.submit_agent_event(Input::TimePassed)?;
            return Ok((
                KeepOrKillAgentProcess::TaskEnded(Box::new(decided)),
                Some((state, policy)),
            ));
        }
        if !ended && state.is_clock_turned_back(checkrein_runtime::now_millis()) {
            // An agent that says nothing for long would have no time cap until the clock has caught up.
            session.submit_agent_event(Input::TimePassed)?;
            return Ok((KeepOrKillAgentProcess::KeepRunning, Some((state, policy))));
        }
        let since = ended.then(|| *self.ended.get_or_insert_with(Instant::now));
        if !ended {
            self.ended = None;
        }
        let lingers = since.is_some_and(|since| since.elapsed() > LINGER);
        let look = if lingers {
            KeepOrKillAgentProcess::EndLingering
        } else {
            KeepOrKillAgentProcess::KeepRunning
        };
        Ok((look, Some((state, policy))))
    }
}

fn is_time_cap_reached(state: &SessionState, policy: &Policy) -> bool {
    let now = checkrein_runtime::now_millis();
    let busy = state.task.as_ref().map_or(0, |task| {
        let span = task
            .working_since
            .map_or(0, |since| now.millis_since(since));
        task.totals.busy_ms.saturating_add(span)
    });
    [policy.caps.wall_clock_ms, policy.session_caps.wall_clock_ms]
        .into_iter()
        .flatten()
        .any(|cap| busy >= cap)
}
