//! The session clock: the latest time stamped so far, unless the clock turns out to have been far
//! ahead. Also computes how long a session has been idle.

use super::{SessionState, Task, VerifierVerdictInTask};
use crate::ids::UnixMillis;

/// How far behind the latest stamp a clock must be to count as turned back. Smaller steps are
/// waited out: caps on time then count on after that delay.
const TURNED_BACK_MS: u64 = 5 * 60 * 1000;
/// A task without any input for this long is over.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// The same limit while a tool call has not come back.
const MAX_CALL_MS: u64 = 7 * DAY_MS;

impl SessionState {
    /// Returns whether this reading of the clock is far behind the newest event.
    pub fn is_clock_turned_back(&self, clock: UnixMillis) -> bool {
        self.now.millis_since(clock) > TURNED_BACK_MS
    }

    /// Returns the milliseconds from the last input until `until`.
    pub fn session_idle_ms(&self, until: UnixMillis) -> u64 {
        // Once the clock has passed the time it was turned back from, the earlier time is taken to
        // be the right one. Otherwise a clock that was wrong for a day would abandon the task.
        let right_again = self.turned_back_from.filter(|from| *from <= until);
        until.millis_since(right_again.unwrap_or(self.now))
    }

    /// Returns whether the session was idle for so long until `until` that its task is over.
    pub fn is_session_idle_too_long(&self, until: UnixMillis) -> bool {
        self.session_idle_ms(until) > idle_task_limit_ms(self.has_open_tool_call())
    }

    /// Returns whether an open tool call alone has kept the task open, for at least part of the
    /// idle time.
    pub fn is_task_kept_open_by_call(&self, until: UnixMillis) -> bool {
        self.has_open_tool_call() && self.session_idle_ms(until) > DAY_MS
    }

    /// Returns whether the newest call of some conversation of the open task has not come back, and
    /// that conversation has not asked to stop since.
    pub fn has_open_tool_call(&self) -> bool {
        let is_open = |scope: &super::ScopeState| {
            let newest = scope.window.back();
            let waits = newest.is_some_and(|call| call.outcome.is_none());
            waits && self.newest_stop_if_nothing_followed(&scope.id).is_none()
        };
        self.current_open_task()
            .is_some_and(|task| task.scopes.iter().any(is_open))
    }

    /// Advances the clock to the time of an input.
    pub(super) fn set_session_clock_to_input_time(&mut self, at: UnixMillis, turned_back: bool) {
        let before = self.now;
        if turned_back {
            // Several steps back keep the farthest time.
            self.turned_back_from = Some(self.turned_back_from.unwrap_or_default().max(before));
            self.now = at;
            let since = self.task.as_ref().and_then(|task| task.working_since);
            // A span that began at or before `at` is still measured correctly by the new clock. A
            // later start would give a negative span, so that span is closed.
            if since.is_some_and(|since| since > at) {
                self.restart_agent_work_timer(before);
            }
            if let Some(task) = &mut self.task {
                task.clamp_future_times(at);
            }
        } else if self.turned_back_from.is_some_and(|from| from <= at) {
            // The earlier time was right after all. How long the clock was wrong is unknown, so the
            // span restarts.
            self.turned_back_from = None;
            self.now = at;
            self.restart_agent_work_timer(before);
        } else {
            // Time never runs backwards within one setting of the clock: several processes stamp
            // inputs, each from its own reading.
            self.now = before.max(at);
        }
    }
}

/// For how long a task stays open without news.
pub(crate) fn idle_task_limit_ms(in_call: bool) -> u64 {
    match in_call {
        true => MAX_CALL_MS,
        false => DAY_MS,
    }
}

impl Task {
    /// Moves times in the future back to `at`. The age of verdicts is then unknown, so they count
    /// as old.
    fn clamp_future_times(&mut self, at: UnixMillis) {
        self.opened_at = self.opened_at.min(at);
        if let Some((_, outside)) = &mut self.outside {
            *outside = (*outside).min(at);
        }
        let pending = self.scopes.iter_mut().flat_map(|scope| &mut scope.pending);
        let mut verdicts: Vec<&mut VerifierVerdictInTask> = self.verdicts.iter_mut().collect();
        for pending in pending {
            pending.at = pending.at.min(at);
            verdicts.extend(&mut pending.verdicts);
        }
        for held in verdicts {
            held.began = held.began.map(|_| UnixMillis(0));
        }
    }
}
