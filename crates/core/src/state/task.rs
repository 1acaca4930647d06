//! What a fold does to one task: scopes, calls, failure sets.

use super::{
    Asked, MAX_EDITED, MAX_SCOPES, MAX_SEEN, MAX_WINDOWS, Pending, Refusal, Scope, Task,
    push_bounded,
};
use crate::decision::ToolDecision;
use crate::digest::{Digest, Short};
use crate::event::DecisionMade;
use crate::explain::Because;
use crate::ids::{Millis, ScopeId};
use crate::input::PersonAnswered;
use crate::layers::LayerSays;
use crate::transition::{PARKED, Reason};

impl Task {
    /// Ends the span of agent time that is running and says how long it was.
    pub(super) fn rest(&mut self, now: Millis) -> u64 {
        let span = self
            .working_since
            .take()
            .map_or(0, |since| now.since(since));
        self.totals.busy_ms = self.totals.busy_ms.saturating_add(span);
        span
    }

    /// The scope of this id, moved to the end: the first is the longest untouched one.
    pub(super) fn scope_mut(&mut self, id: &ScopeId) -> &mut Scope {
        let scope = match self.scopes.iter().position(|scope| scope.id == *id) {
            Some(at) => self.scopes.remove(at),
            None => {
                if self.scopes.len() >= MAX_SCOPES
                    && let Some(oldest) = self
                        .scopes
                        .iter()
                        .position(|scope| !scope.id.is_main() && scope.pending.is_none())
                {
                    self.scopes.remove(oldest);
                }
                Scope::new(id.clone())
            }
        };
        self.scopes.push(scope);
        let last = self.scopes.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the last was just pushed")]
        &mut self.scopes[last]
    }

    pub(super) fn see(&mut self, call: Short, outcome: Short) -> bool {
        let mixed = call.0.rotate_left(17) ^ outcome.0;
        let pair = ((mixed ^ (mixed >> 32)) as u32).to_le_bytes();
        if self.seen.contains(&pair) {
            return false;
        }
        if self.seen.len() >= MAX_SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(pair);
        true
    }

    /// The stop of this scope that is being judged. News of checks is none of the scope's
    /// own: it leaves the order of scopes alone.
    pub(super) fn pending_mut(&mut self, id: &ScopeId) -> Option<&mut Pending> {
        let scope = self.scopes.iter_mut().find(|scope| scope.id == *id)?;
        scope.pending.as_mut()
    }

    /// A sub-agent is done for now. Its counters stay: it may be taken up again.
    pub(super) fn leave(&mut self, id: &ScopeId) {
        if let Some(scope) = self.scopes.iter_mut().find(|scope| scope.id == *id) {
            scope.window.clear();
            scope.pending = None;
        }
    }

    /// Forgets the calls of the longest untouched sub-agent if another begins to call.
    pub(super) fn make_room(&mut self, id: &ScopeId) {
        let others = |scope: &&mut Scope| scope.id != *id && !scope.window.is_empty();
        if self.scopes.iter_mut().filter(others).count() < MAX_WINDOWS {
            return;
        }
        let mut others = self.scopes.iter_mut().filter(others);
        if let Some(oldest) = others.find(|scope| !scope.id.is_main()) {
            oldest.window.clear();
        }
    }

    pub(super) fn edit(&mut self, paths: &[String]) {
        for path in paths {
            let left = MAX_EDITED.saturating_sub(self.edited.iter().map(String::len).sum());
            let end = path.floor_char_boundary(left.min(path.len()));
            let path = path.get(..end).unwrap_or_default();
            if !path.is_empty() && !self.edited.iter().any(|known| known == path) {
                self.edited.push(path.to_owned());
                self.edited_told = false;
            }
        }
    }

    pub(super) fn meet(&mut self, set: Short, subjects: Short) {
        match self
            .failure_sets
            .iter_mut()
            .find(|(known, _)| *known == set)
        {
            Some((_, met)) => *met += 1,
            None => push_bounded(&mut self.failure_sets, (set, 1)),
        }
        self.last_failure = Some((subjects, set));
    }

    pub(super) fn answer_call(&mut self, made: &DecisionMade, decision: &ToolDecision) {
        let stalled = |because: &Because| matches!(because, Because::Stalled { .. });
        if made.why.iter().any(stalled) {
            self.low = 0;
        }
        match decision {
            ToolDecision::Allow | ToolDecision::Nudge { .. } => {
                self.refused = None;
                self.asked = None;
            }
            // As it is, it does not run; no rule and no person refused it.
            ToolDecision::Rewrite { reason, .. } => self.close_denied(&made.scope, reason),
            ToolDecision::Ask {
                approval, until, ..
            } => {
                let window = self.scope(&made.scope).map(|scope| &scope.window);
                let newest = window.and_then(|window| window.back());
                self.asked = newest.map(|call| Asked {
                    call: call.call,
                    approval: approval.clone(),
                    until: *until,
                });
            }
            ToolDecision::Deny { reason } => {
                // Only the rule or person that decided is a refusal: a cap or a detector is not.
                let by = made.why.iter().find_map(|why| match why {
                    Because::Rule { reason: said } if said == reason => Some(Refusal::Rule),
                    Because::Denied { reason: said, .. } if said == reason => Some(Refusal::Person),
                    // A layer that says no is a rule of a person's, too.
                    Because::Layer(fact) if fact.says == LayerSays::Deny => {
                        (fact.told("this call") == *reason).then_some(Refusal::Rule)
                    }
                    _ => None,
                });
                let nobody = made.why.contains(&Because::NobodyAsked);
                self.refused = match by {
                    Some(Refusal::Rule) if nobody => Some(Refusal::Nobody),
                    by => by.or(self.refused),
                };
                self.close_denied(&made.scope, reason);
            }
            ToolDecision::Halt { .. } => self.halted = true,
        }
    }

    /// What was asked about came back: so a person let it run.
    pub(super) fn came_back(&mut self, call: Short) {
        if self.asked.as_ref().is_some_and(|asked| asked.call == call) {
            self.asked = None;
        }
    }

    /// A person answered: what was asked last waits no longer, whatever comes of it. Nor is a
    /// task spent any more that ended by waiting for this very answer.
    pub(super) fn answered(&mut self, answered: &PersonAnswered) {
        let asked = self.asked.as_ref();
        let was_asked = asked.is_some_and(|asked| asked.approval == answered.approval);
        if was_asked {
            self.asked = None;
            if !answered.answer.approved {
                self.refused = Some(Refusal::Person);
            }
        }
        let waited_for = self.spent.as_ref().is_some_and(|spent| {
            let ends = answered.ends.as_deref();
            spent.reason == Reason::AwaitingHuman
                && ends.is_some()
                && spent.detail.as_deref() == ends
                && (was_asked || ends != Some(PARKED))
        });
        if waited_for {
            self.spent = None;
        }
    }

    /// A call denied by policy stays in the window, with the denial as its outcome.
    fn close_denied(&mut self, scope: &ScopeId, reason: &str) {
        let denial = Digest::of(reason.as_bytes()).short();
        let newest = self
            .scope(scope)
            .filter(|scope| !scope.struck)
            .and_then(|scope| scope.window.back())
            .map(|call| call.call);
        let Some(newest) = newest else { return };
        let fresh = self.see(newest, denial);
        if let Some(call) = self.scope_mut(scope).window.back_mut() {
            call.close(denial, fresh);
        }
    }
}
