//! What a fold does to one task: scopes, calls, failure sets.

use super::{
    MAX_EDITED, MAX_SCOPES, MAX_SEEN, MAX_WINDOWS, PendingApproval, PendingStop, RefusalSource,
    ScopeState, Task, push_keeping_newest,
};
use crate::decision::ToolDecision;
use crate::digest::{Digest, EightByteDigest};
use crate::event::DecisionOnInput;
use crate::explain::DecisionFactor;
use crate::ids::{ScopeId, UnixMillis};
use crate::input::PersonAnswered;
use crate::middleware::MiddlewareAnswer;
use crate::transition::{PARKED_DETAIL, Reason};

impl Task {
    /// Ends the span of agent time that is running and says how long it was.
    pub(super) fn stop_agent_work_timer(&mut self, now: UnixMillis) -> u64 {
        let span = self
            .working_since
            .take()
            .map_or(0, |since| now.millis_since(since));
        self.totals.busy_ms = self.totals.busy_ms.saturating_add(span);
        span
    }

    /// The scope of this id, moved to the end: the first is the longest untouched one.
    pub(super) fn get_or_insert_scope(&mut self, id: &ScopeId) -> &mut ScopeState {
        let scope = match self.scopes.iter().position(|scope| scope.id == *id) {
            Some(at) => self.scopes.remove(at),
            None => {
                if self.scopes.len() >= MAX_SCOPES
                    && let Some(oldest) = self
                        .scopes
                        .iter()
                        .position(|scope| !scope.id.is_main_scope() && scope.pending.is_none())
                {
                    self.scopes.remove(oldest);
                }
                ScopeState::new(id.clone())
            }
        };
        self.scopes.push(scope);
        let last = self.scopes.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the last was just pushed")]
        &mut self.scopes[last]
    }

    pub(super) fn remember_new_call_outcome(
        &mut self,
        call: EightByteDigest,
        outcome: EightByteDigest,
    ) -> bool {
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
    pub(super) fn pending_stop_mut(&mut self, id: &ScopeId) -> Option<&mut PendingStop> {
        let scope = self.scopes.iter_mut().find(|scope| scope.id == *id)?;
        scope.pending.as_mut()
    }

    /// A sub-agent is done for now. Its counters stay: it may be taken up again.
    pub(super) fn finish_subagent(&mut self, id: &ScopeId) {
        if let Some(scope) = self.scopes.iter_mut().find(|scope| scope.id == *id) {
            scope.window.clear();
            scope.pending = None;
        }
    }

    /// Forgets the calls of the longest untouched sub-agent if another begins to call.
    pub(super) fn forget_idle_subagent_calls(&mut self, id: &ScopeId) {
        let others = |scope: &&mut ScopeState| scope.id != *id && !scope.window.is_empty();
        if self.scopes.iter_mut().filter(others).count() < MAX_WINDOWS {
            return;
        }
        let mut others = self.scopes.iter_mut().filter(others);
        if let Some(oldest) = others.find(|scope| !scope.id.is_main_scope()) {
            oldest.window.clear();
        }
    }

    pub(super) fn record_edited_paths(&mut self, paths: &[String]) {
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

    pub(super) fn record_failure_set(&mut self, set: EightByteDigest, subjects: EightByteDigest) {
        match self
            .failure_sets
            .iter_mut()
            .find(|(known, _)| *known == set)
        {
            Some((_, met)) => *met += 1,
            None => push_keeping_newest(&mut self.failure_sets, (set, 1)),
        }
        self.last_failure = Some((subjects, set));
    }

    pub(super) fn fold_tool_decision(&mut self, made: &DecisionOnInput, decision: &ToolDecision) {
        let stalled = |because: &DecisionFactor| matches!(because, DecisionFactor::Stalled { .. });
        if made.why.iter().any(stalled) {
            self.low_progress_streak = 0;
        }
        match decision {
            ToolDecision::Allow | ToolDecision::Nudge { .. } => {
                self.refused = None;
                self.pending_approval = None;
            }
            // As it is, it does not run; no rule and no person refused it.
            ToolDecision::Rewrite { reason, .. } => self.record_denied_call(&made.scope, reason),
            ToolDecision::Ask {
                approval, until, ..
            } => {
                let window = self.scope_by_id(&made.scope).map(|scope| &scope.window);
                let newest = window.and_then(|window| window.back());
                self.pending_approval = newest.map(|call| PendingApproval {
                    call: call.call,
                    approval: approval.clone(),
                    until: *until,
                });
            }
            ToolDecision::Deny { reason } => {
                // Only the rule or person that decided is a refusal: a cap or a detector is not.
                let by = made.why.iter().find_map(|why| match why {
                    DecisionFactor::Rule { reason: said } if said == reason => {
                        Some(RefusalSource::Rule)
                    }
                    DecisionFactor::Denied { reason: said, .. } if said == reason => {
                        Some(RefusalSource::Person)
                    }
                    // A layer that says no is a rule of a person's, too.
                    DecisionFactor::Layer(fact) if fact.says == MiddlewareAnswer::Deny => {
                        (fact.middleware_message_for_agent("this call") == *reason)
                            .then_some(RefusalSource::Rule)
                    }
                    _ => None,
                });
                let nobody = made.why.contains(&DecisionFactor::NobodyAsked);
                self.refused = match by {
                    Some(RefusalSource::Rule) if nobody => Some(RefusalSource::Nobody),
                    by => by.or(self.refused),
                };
                self.record_denied_call(&made.scope, reason);
            }
            ToolDecision::Halt { .. } => self.halted = true,
        }
    }

    /// What was asked about came back: so a person let it run.
    pub(super) fn clear_approval_of_returned_call(&mut self, call: EightByteDigest) {
        if self
            .pending_approval
            .as_ref()
            .is_some_and(|asked| asked.call == call)
        {
            self.pending_approval = None;
        }
    }

    /// A person answered: what was asked last waits no longer, whatever comes of it. Nor is a
    /// task spent any more that ended by waiting for this very answer.
    pub(super) fn apply_person_answer(&mut self, answered: &PersonAnswered) {
        let asked = self.pending_approval.as_ref();
        let was_asked = asked.is_some_and(|asked| asked.approval == answered.approval);
        if was_asked {
            self.pending_approval = None;
            if !answered.answer.approved {
                self.refused = Some(RefusalSource::Person);
            }
        }
        let waited_for = self.bad_ending.as_ref().is_some_and(|spent| {
            let ends = answered.ends.as_deref();
            spent.reason == Reason::AwaitingHuman
                && ends.is_some()
                && spent.detail.as_deref() == ends
                && (was_asked || ends != Some(PARKED_DETAIL))
        });
        if waited_for {
            self.bad_ending = None;
        }
    }

    /// A call denied by policy stays in the window, with the denial as its outcome.
    fn record_denied_call(&mut self, scope: &ScopeId, reason: &str) {
        let denial = Digest::hash_bytes(reason.as_bytes()).to_short_digest();
        let newest = self
            .scope_by_id(scope)
            .filter(|scope| !scope.newest_denied_by_detector)
            .and_then(|scope| scope.window.back())
            .map(|call| call.call);
        let Some(newest) = newest else { return };
        let fresh = self.remember_new_call_outcome(newest, denial);
        if let Some(call) = self.get_or_insert_scope(scope).window.back_mut() {
            call.set_call_outcome(denial, fresh);
        }
    }
}
