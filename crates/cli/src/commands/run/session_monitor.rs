//! Watches a task while an agent's process works on it: whether a hook halted it, its time is up,
//! or the task has long ended and the process has not.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use checkrein::{DeliveryOutcome, Session};
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_verifiers::process::ProcessExit;

use crate::signals;
use crate::ui::errors::CommandError;

/// How often signals and the end of the process are looked at.
const TICK: Duration = Duration::from_millis(50);
/// The session's log is read at every so many ticks.
const LOOK_EVERY: u32 = 4;
/// Grace for an agent whose stop was accepted to exit.
const LINGER: Duration = Duration::from_secs(30);

/// How the watch over a process ended.
pub(super) enum ProcessWatchResult {
    Ended(ProcessExit),
    /// A person pressed Ctrl-C.
    Interrupted,
    /// A hook or a cap ended the task while the process worked.
    TaskEnded(Box<DeliveryOutcome>),
    /// The task had ended, and the process was killed because it stayed.
    Lingered,
}

/// What to do about a process.
pub(super) enum KeepOrKillAgentProcess {
    KeepRunning,
    TaskEnded(Box<DeliveryOutcome>),
    EndLingering,
}

/// Waits for the end of a process; kills it if `look` says so.
pub(super) fn watch_process_and_kill_if_told(
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
        // Signals are looked at in each tick. A look at the session reads the store and is rarer.
        let over = if signals::is_process_cancelled() {
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
        // The waiting thread reports once the whole tree is gone.
        let _ = ended.recv();
        return Ok(over);
    }
}

/// Watches one session, and remembers since when its task is over.
#[derive(Default)]
pub(super) struct WrappedAgentSessionMonitor {
    ended: Option<Instant>,
}

impl WrappedAgentSessionMonitor {
    /// Looks once. Returns the session's state as well, for callers that show it.
    pub(super) fn check_whether_to_kill_agent(
        &mut self,
        session: &Session<'_>,
    ) -> Result<(KeepOrKillAgentProcess, Option<(SessionState, Policy)>), CommandError> {
        // An agent that cannot be recorded must not work on: its calls could not be counted.
        session.check_writable()?;
        let Some((state, policy)) = session.current_session_state()? else {
            return Ok((KeepOrKillAgentProcess::KeepRunning, None));
        };
        let ended = state.task.as_ref().is_some_and(|task| task.ended.is_some());
        // An accepted stop lets the agent leave by itself. A halted task must not go on.
        let halted = ended && state.task.as_ref().is_some_and(|task| task.halted);
        if halted || is_time_cap_reached(&state, &policy) {
            let decided = session.submit_agent_event(Input::TimePassed)?;
            return Ok((
                KeepOrKillAgentProcess::TaskEnded(Box::new(decided)),
                Some((state, policy)),
            ));
        }
        if !ended && state.is_clock_turned_back(checkrein_runtime::now_millis()) {
            // Without this an agent that says nothing for long would have no time cap until the
            // clock has caught up.
            session.submit_agent_event(Input::TimePassed)?;
            return Ok((KeepOrKillAgentProcess::KeepRunning, Some((state, policy))));
        }
        let since = ended.then(|| *self.ended.get_or_insert_with(Instant::now));
        // Work after the transition reopens a task. The grace begins anew with its next end.
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
        // The current stretch of work is not in the totals before it ends.
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
