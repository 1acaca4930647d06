//! The part of the fold that changes one task: its scopes, calls, failure sets and refusals.

use super::{
    ExecPolicyRefusalSource, MAX_EDITED, MAX_OPENCLAW_HISTORIES, MAX_SCOPES, MAX_SEEN, MAX_WINDOWS,
    PendingApproval, PendingStop, ScopeState, Task, push_keeping_newest,
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
    /// Ends the running span of agent time and returns its length in milliseconds.
    pub(super) fn stop_agent_work_timer(&mut self, now: UnixMillis) -> u64 {
        let span = self
            .working_since
            .take()
            .map_or(0, |since| now.millis_since(since));
        self.totals.busy_ms = self.totals.busy_ms.saturating_add(span);
        span
    }

    /// Returns the scope of this id, created if needed, and moves it to the end, so that the first
    /// one is the least recently used.
    pub(super) fn get_or_insert_scope_state(&mut self, id: &ScopeId) -> &mut ScopeState {
        let scope = match self.scopes.iter().position(|scope| scope.id == *id) {
            Some(at) => self.scopes.remove(at),
            None => {
                if self.scopes.len() >= MAX_SCOPES
                    // A sub-agent whose stop is being judged is never dropped: its answer is still
                    // outstanding.
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

    /// Returns whether this conversation has not had this outcome of this call before. What a sub-agent
    /// reads for the first time is new to it, whoever else has read it.
    pub(super) fn remember_new_call_outcome_pair(
        &mut self,
        scope: &ScopeId,
        call: EightByteDigest,
        outcome: EightByteDigest,
    ) -> bool {
        // The rotation keeps (a, b) apart from (b, a). A collision in 32 bits only hides one piece
        // of progress.
        let reader = match scope.is_main_scope() {
            true => 0,
            false => {
                Digest::hash_bytes(scope.as_str().as_bytes())
                    .to_eight_byte_digest()
                    .0
            }
        };
        let mixed = call.0.rotate_left(17) ^ outcome.0 ^ reader;
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

    /// Returns the pending stop of this scope. Evidence is no activity of the scope itself, so the
    /// order of scopes stays as it is.
    pub(super) fn pending_stop_mut(&mut self, id: &ScopeId) -> Option<&mut PendingStop> {
        let scope = self.scopes.iter_mut().find(|scope| scope.id == *id)?;
        scope.pending.as_mut()
    }

    /// Marks a sub-agent as done for now. Its counters stay, because it may be resumed.
    pub(super) fn finish_subagent(&mut self, id: &ScopeId) {
        if let Some(scope) = self.scopes.iter_mut().find(|scope| scope.id == *id) {
            scope.window.clear();
            scope.openclaw = None;
            scope.pending = None;
        }
    }

    /// Forgets the calls of the least recently used sub-agent if another one begins to call.
    pub(super) fn evict_least_recent_subagent_calls(&mut self, id: &ScopeId) {
        self.evict_from_least_recent_subagent(
            id,
            MAX_WINDOWS,
            |scope| !scope.window.is_empty(),
            |scope| {
                scope.window.clear();
            },
        );
        self.evict_from_least_recent_subagent(
            id,
            MAX_OPENCLAW_HISTORIES,
            |scope| scope.openclaw.is_some(),
            |scope| scope.openclaw = None,
        );
    }

    /// Takes something from the least recently used sub-agent if as many others than `id` have it.
    fn evict_from_least_recent_subagent(
        &mut self,
        id: &ScopeId,
        most: usize,
        has_it: impl Fn(&ScopeState) -> bool,
        take_it: impl Fn(&mut ScopeState),
    ) {
        let others = |scope: &&mut ScopeState| scope.id != *id && has_it(scope);
        while self.scopes.iter_mut().filter(others).count() >= most {
            let mut others = self.scopes.iter_mut().filter(others);
            let Some(oldest) = others.find(|scope| !scope.id.is_main_scope()) else {
                return;
            };
            take_it(oldest);
        }
    }

    pub(super) fn record_edited_paths(&mut self, paths: &[String]) {
        for path in paths {
            // A name that does not fit is cut at a character boundary. The state must stay bounded,
            // and the log has the full name.
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

    pub(super) fn record_tool_decision_in_task(
        &mut self,
        made: &DecisionOnInput,
        decision: &ToolDecision,
    ) {
        let stalled = |because: &DecisionFactor| matches!(because, DecisionFactor::Stalled { .. });
        // The agent has just been told that it is stalled, so the streak begins anew.
        if made.why.iter().any(stalled) {
            self.low_progress_streak = 0;
        }
        match decision {
            ToolDecision::Allow | ToolDecision::Nudge { .. } => {
                self.refused = None;
                self.pending_approval = None;
            }
            // The call as requested does not run, but neither a rule nor a person refused it.
            ToolDecision::Rewrite { reason, .. } => self.record_denied_call(&made.scope, reason),
            ToolDecision::Ask {
                approval, until, ..
            } => {
                // The newest call of the window is the one being decided.
                let window = self
                    .conversation_scope_by_id(&made.scope)
                    .map(|scope| &scope.window);
                let newest = window.and_then(|window| window.back());
                self.pending_approval = newest.map(|call| PendingApproval {
                    call: call.call,
                    approval: approval.clone(),
                    until: *until,
                });
            }
            ToolDecision::Deny { reason } => {
                // Only the rule or person that decided counts as a refusal. A cap or a detector
                // does not.
                let by = made.why.iter().find_map(|why| match why {
                    DecisionFactor::Rule { reason: said } if said == reason => {
                        Some(ExecPolicyRefusalSource::Rule)
                    }
                    DecisionFactor::Denied { reason: said, .. } if said == reason => {
                        Some(ExecPolicyRefusalSource::Person)
                    }
                    // A middleware layer is configured by a person, so its denial counts as a rule.
                    DecisionFactor::Layer(fact) if fact.says == MiddlewareAnswer::Deny => {
                        (fact.middleware_message_for_agent("this call") == *reason)
                            .then_some(ExecPolicyRefusalSource::Rule)
                    }
                    _ => None,
                });
                let nobody = made.why.contains(&DecisionFactor::NobodyAsked);
                self.refused = match by {
                    Some(ExecPolicyRefusalSource::Rule) if nobody => {
                        Some(ExecPolicyRefusalSource::Nobody)
                    }
                    // Neither a cap nor a detector clears an earlier refusal.
                    by => by.or(self.refused),
                };
                self.record_denied_call(&made.scope, reason);
                // A layer that ends the work of a sub-agent denies its call, and all that follow.
                let is_halt = |why: &DecisionFactor| matches!(why, DecisionFactor::Layer(fact) if fact.says == MiddlewareAnswer::Halt);
                if !made.scope.is_main_scope() && made.why.iter().any(is_halt) {
                    self.get_or_insert_scope_state(&made.scope).halted = true;
                }
            }
            ToolDecision::Halt { .. } => self.halted = true,
        }
    }

    /// Clears the pending approval of a call that came back. A result means that the call ran, so a
    /// person allowed it.
    pub(super) fn clear_approval_of_returned_call(&mut self, call: EightByteDigest) {
        if self
            .pending_approval
            .as_ref()
            .is_some_and(|asked| asked.call == call)
        {
            self.pending_approval = None;
        }
    }

    /// Applies a person's answer. The last question no longer waits, whatever the answer is. A task
    /// that ended by waiting for exactly this answer is no longer marked as badly ended.
    pub(super) fn apply_person_answer(&mut self, answered: &PersonAnswered) {
        let asked = self.pending_approval.as_ref();
        let was_asked = asked.is_some_and(|asked| asked.approval == answered.approval);
        if was_asked {
            self.pending_approval = None;
            if !answered.answer.approved {
                self.refused = Some(ExecPolicyRefusalSource::Person);
            }
        }
        let waited_for = self.bad_ending.as_ref().is_some_and(|spent| {
            let ends = answered.ends.as_deref();
            spent.reason == Reason::AwaitingHuman
                && ends.is_some()
                && spent.detail.as_deref() == ends
                // Every parked call ends with the same detail, so for those the approval itself
                // must match.
                && (was_asked || ends != Some(PARKED_DETAIL))
        });
        if waited_for {
            self.bad_ending = None;
        }
    }

    /// Records the denial as the outcome of a call denied by policy. The call stays in the window,
    /// so that detectors see an agent that keeps asking for it.
    fn record_denied_call(&mut self, scope: &ScopeId, reason: &str) {
        let denial = Digest::hash_bytes(reason.as_bytes()).to_eight_byte_digest();
        let newest = self
            .conversation_scope_by_id(scope)
            .filter(|scope| !scope.newest_denied_by_detector)
            .and_then(|scope| scope.window.back())
            .map(|call| call.call);
        let Some(newest) = newest else { return };
        let fresh = self.remember_new_call_outcome_pair(scope, newest, denial);
        let scope = self.get_or_insert_scope_state(scope);
        if let Some(call) = scope.window.back_mut() {
            call.record_outcome_of_unrun_call(denial, fresh);
        }
        if let Some(history) = &mut scope.openclaw {
            history.refuse_newest_call(reason);
        }
    }
}
