//! How the time so far moves on: it is the latest that was stamped, unless the clock turned out to have been
//! far ahead. And since when nothing happened.

use super::{KeptVerifierVerdict, SessionState, Task};
use crate::ids::UnixMillis;

/// A clock that says so much less than was stamped before was wrong then, or is now. Steps of less are
/// waited out: caps on time count on after as long.
const TURNED_BACK_MS: u64 = 5 * 60 * 1000;
/// Without news for so long, a task is over.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// The same while a tool call has not come back.
const MAX_CALL_MS: u64 = 7 * DAY_MS;

impl SessionState {
    /// Whether a clock that says this was turned back since the newest event.
    pub fn is_clock_turned_back(&self, clock: UnixMillis) -> bool {
        self.now.millis_since(clock) > TURNED_BACK_MS
    }

    /// Milliseconds without news until then.
    pub fn session_idle_ms(&self, until: UnixMillis) -> u64 {
        let right_again = self.turned_back_from.filter(|from| *from <= until);
        until.millis_since(right_again.unwrap_or(self.now))
    }

    /// Whether nothing happened for so long until then that the task is over.
    pub fn is_idle_too_long(&self, until: UnixMillis) -> bool {
        self.session_idle_ms(until) > idle_task_limit_ms(self.has_open_tool_call())
    }

    /// Whether a tool call is all that kept the task open until then, or part of the way.
    pub fn is_task_kept_open_by_call(&self, until: UnixMillis) -> bool {
        self.has_open_tool_call() && self.session_idle_ms(until) > DAY_MS
    }

    /// Whether a tool call of the open task has not come back: the newest of its conversation, which
    /// has not asked to stop since.
    pub fn has_open_tool_call(&self) -> bool {
        let is_open = |scope: &super::ScopeState| {
            let newest = scope.window.back();
            let waits = newest.is_some_and(|call| call.outcome.is_none());
            waits && self.newest_stop_if_nothing_followed(&scope.id).is_none()
        };
        self.task_if_open()
            .is_some_and(|task| task.scopes.iter().any(is_open))
    }

    /// Takes the time of an input in.
    pub(super) fn advance_session_clock(&mut self, at: UnixMillis, turned_back: bool) {
        let before = self.now;
        if turned_back {
            self.turned_back_from = Some(self.turned_back_from.unwrap_or_default().max(before));
            self.now = at;
            let since = self.task.as_ref().and_then(|task| task.working_since);
            // What began after it was counted by one and the same clock.
            if since.is_some_and(|since| since > at) {
                self.restart_work_span(before);
            }
            if let Some(task) = &mut self.task {
                task.clamp_future_times(at);
            }
        } else if self.turned_back_from.is_some_and(|from| from <= at) {
            // It was right before it was turned back. How long it was wrong nobody knows.
            self.turned_back_from = None;
            self.now = at;
            self.restart_work_span(before);
        } else {
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
    /// What was noted with a time that is yet to come was noted by now. Of verdicts nobody knows the age any
    /// more, so they are old ones.
    fn clamp_future_times(&mut self, at: UnixMillis) {
        self.opened_at = self.opened_at.min(at);
        if let Some((_, outside)) = &mut self.outside {
            *outside = (*outside).min(at);
        }
        let pending = self.scopes.iter_mut().flat_map(|scope| &mut scope.pending);
        let mut verdicts: Vec<&mut KeptVerifierVerdict> = self.verdicts.iter_mut().collect();
        for pending in pending {
            pending.at = pending.at.min(at);
            verdicts.extend(&mut pending.verdicts);
        }
        for held in verdicts {
            held.began = held.began.map(|_| UnixMillis(0));
        }
    }
}
