//! How the time so far moves on: it is the latest that was stamped, unless the clock turned out to have been
//! far ahead. And since when nothing happened.

use super::{Held, State, Task};
use crate::ids::Millis;

/// A clock that says so much less than was stamped before was wrong then, or is now. Steps of less are
/// waited out: caps on time count on after as long.
const TURNED_BACK_MS: u64 = 5 * 60 * 1000;
/// Without news for so long, a task is over.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// The same while a tool call has not come back.
const LONGEST_CALL_MS: u64 = 7 * DAY_MS;

impl State {
    /// Whether a clock that says this was turned back since the newest event.
    pub fn is_turned_back(&self, clock: Millis) -> bool {
        self.now.since(clock) > TURNED_BACK_MS
    }

    /// Milliseconds without news until then.
    pub fn quiet_ms(&self, until: Millis) -> u64 {
        let right_again = self.turned_back_from.filter(|from| *from <= until);
        until.since(right_again.unwrap_or(self.now))
    }

    /// Whether nothing happened for so long until then that the task is over.
    pub fn is_left(&self, until: Millis) -> bool {
        self.quiet_ms(until) > limit_ms(self.is_in_call())
    }

    /// Whether a tool call is all that kept the task open until then, or part of the way.
    pub fn is_kept_by_call(&self, until: Millis) -> bool {
        self.is_in_call() && self.quiet_ms(until) > DAY_MS
    }

    /// Whether a tool call of the open task has not come back: the newest of its conversation, which
    /// has not asked to stop since.
    pub fn is_in_call(&self) -> bool {
        let is_open = |scope: &super::Scope| {
            let newest = scope.window.back();
            let waits = newest.is_some_and(|call| call.outcome.is_none());
            waits && self.newest_stop(&scope.id).is_none()
        };
        self.open_task()
            .is_some_and(|task| task.scopes.iter().any(is_open))
    }

    /// Takes the time of an input in.
    pub(super) fn pass_time(&mut self, at: Millis, turned_back: bool) {
        let before = self.now;
        if turned_back {
            self.turned_back_from = Some(self.turned_back_from.unwrap_or_default().max(before));
            self.now = at;
            let since = self.task.as_ref().and_then(|task| task.working_since);
            // What began after it was counted by one and the same clock.
            if since.is_some_and(|since| since > at) {
                self.take_up(before);
            }
            if let Some(task) = &mut self.task {
                task.turn_back(at);
            }
        } else if self.turned_back_from.is_some_and(|from| from <= at) {
            // It was right before it was turned back. How long it was wrong nobody knows.
            self.turned_back_from = None;
            self.now = at;
            self.take_up(before);
        } else {
            self.now = before.max(at);
        }
    }
}

/// For how long a task stays open without news.
pub(crate) fn limit_ms(in_call: bool) -> u64 {
    match in_call {
        true => LONGEST_CALL_MS,
        false => DAY_MS,
    }
}

impl Task {
    /// What was noted with a time that is yet to come was noted by now. Of verdicts nobody knows the age any
    /// more, so they are old ones.
    fn turn_back(&mut self, at: Millis) {
        self.opened_at = self.opened_at.min(at);
        if let Some((_, outside)) = &mut self.outside {
            *outside = (*outside).min(at);
        }
        let pending = self.scopes.iter_mut().flat_map(|scope| &mut scope.pending);
        let mut verdicts: Vec<&mut Held> = self.verdicts.iter_mut().collect();
        for pending in pending {
            pending.at = pending.at.min(at);
            verdicts.extend(&mut pending.verdicts);
        }
        for held in verdicts {
            held.began = held.began.map(|_| Millis(0));
        }
    }
}
