//! The soft tier: is going on worth it?

use super::evaluation::{StopEvaluation, VerifierOutcome};
use super::stopped_after_denial_transition;
use crate::accept::TruthValue;
use crate::budget;
use crate::decision::TokenBudgetUsage;
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::ScopeId;
use crate::policy::{Policy, TokenLimitOrTarget};
use crate::state::{PendingStop, Task};
use crate::step::StepBuilder;
use crate::transition::{Reason, Transition};

/// The soft tier, in the order of the contract. `None`: going on is worth it.
pub(super) fn transition_if_not_worth_continuing(
    draft: &StepBuilder<'_>,
    scope: &ScopeId,
    judged: &StopEvaluation,
    pending: &PendingStop,
    met: u32,
    why: &mut DecisionExplanation,
) -> Option<Transition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    // That the main stop ended the task meanwhile says nothing about a sub-agent's.
    let counts = scope.is_main_scope() || pending.had_bad_ending || task.halted;
    let blocked = || {
        let denied =
            first_verifier_blocking_accept(policy, judged, VerifierOutcome::is_denied_by_person);
        let denied = denied.map(|line| (Reason::PermissionDenied, line));
        let hopeless = |line: &VerifierOutcome| {
            line.unrecoverable && !is_missing_program_recoverable(draft, line)
        };
        let hopeless = || first_verifier_blocking_accept(policy, judged, hopeless);
        let hopeless = || hopeless().map(|line| (Reason::VerifierFailedUnrecoverable, line));
        let (reason, line) = denied.or_else(hopeless)?;
        Some(Transition::new(reason, line.verifier.as_str()))
    };
    if let Some(spent) = task.bad_ending.as_ref().filter(|_| counts) {
        // What came of the person that it waited for is news to the main conversation.
        let news = blocked().filter(|came| scope.is_main_scope() && came.can_replace(spent));
        if let Some(came) = news {
            return Some(came);
        }
        why.push(DecisionFactor::AlreadyEnded);
        return Some(spent.clone());
    }
    if let Some(blocked) = blocked() {
        return Some(blocked);
    }
    if let Some(refusal) = pending.refused {
        why.push(DecisionFactor::AfterRefusal);
        return Some(stopped_after_denial_transition(refusal));
    }
    if let Some(over) = &pending.agent_ending {
        why.push(DecisionFactor::AgentExited);
        return Some(over.clone());
    }
    if pending.truncated {
        why.push(DecisionFactor::Truncated);
        return Some(Transition::from_reason(Reason::Truncated));
    }
    if let Some(over) = budget::reached_cap_at_stop(policy, draft.state) {
        why.push(over.reached_cap_decision_factor());
        return Some(Transition::new(Reason::HardCap, over.cap.as_str()));
    }
    if let Some(cap) = task.grace {
        return Some(Transition::new(Reason::HardCap, cap.as_str()));
    }
    if met >= policy.caps.attempts {
        why.push(DecisionFactor::SameFailures {
            met,
            attempts: policy.caps.attempts,
        });
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    if let Some(spent) = judge_attempts_spent(draft, scope, judged) {
        why.push(spent);
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    // Over the limit without anything against the work is not given up: nobody could tell.
    let ended = || match judged.stop_held_up_by_unfinished_checks(policy) {
        Some(held) => Transition::new(Reason::Unverified, held.detail),
        None => Transition::new(Reason::GaveUp, "continues"),
    };
    let below = pending.subagent_continuations_with_pending();
    if !scope.is_main_scope() && below >= subagent_continuation_limit(policy) {
        let (given, limit) = (below, subagent_continuation_limit(policy));
        why.push(DecisionFactor::Continues { given, limit });
        return Some(ended());
    }
    if let Some(spent) = reached_continuation_limit(draft, scope, pending) {
        why.push(spent);
        return Some(ended());
    }
    token_budget_transition(policy, task, pending, why)
}

/// Which limit of the times that the agent is sent back is reached, that of the task or that of the session.
pub(super) fn reached_continuation_limit(
    draft: &StepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
) -> Option<DecisionFactor> {
    let (policy, state) = (draft.policy, &*draft.state);
    let task = state.task.as_ref()?;
    let given = max_continuations_so_far(policy, scope, pending);
    let of_task = (given, continuation_limit(policy, pending));
    // Since the stop was asked for, both totals grew by the same.
    let before_task = state.totals.continues.saturating_sub(task.totals.continues);
    let in_session = |limit| (before_task + given, limit);
    let of_session = policy.session_caps.continues.map(in_session);
    let mut limits = [Some(of_task), of_session].into_iter().flatten();
    let (given, limit) = limits.find(|(given, limit)| given >= limit)?;
    Some(DecisionFactor::Continues { given, limit })
}

/// A program that was there when the policy was sealed is gone, and the agent has not been told:
/// it may be the agent's own doing (`mv .venv away`), and can be undone.
fn is_missing_program_recoverable(draft: &StepBuilder<'_>, line: &VerifierOutcome) -> bool {
    let task = draft.state.task.as_ref();
    let told = task.is_some_and(|task| task.missing_told.contains(&line.verifier));
    line.is_verifier_program_missing() && !told && draft.state.equipped.contains(&line.verifier)
}

/// Answers of this conversation that judges have seen, this one included.
pub(super) fn count_answers_seen_by_judges(draft: &StepBuilder<'_>, scope: &ScopeId) -> u32 {
    let scope = draft.state.scope_by_id(scope);
    scope.map_or(1, |scope| scope.judge_refusals + 1)
}

/// A judge that `accept` cannot hold without has seen as many answers as it may.
fn judge_attempts_spent(
    draft: &StepBuilder<'_>,
    scope: &ScopeId,
    judged: &StopEvaluation,
) -> Option<DecisionFactor> {
    let seen = count_answers_seen_by_judges(draft, scope);
    let attempts = |line: &VerifierOutcome| {
        let terms = draft.policy.verifier_spec(&line.verifier)?.judge?;
        Some(terms.max_attempts).filter(|attempts| line.is_verifier_refusing() && seen >= *attempts)
    };
    let line =
        first_verifier_blocking_accept(draft.policy, judged, |line| attempts(line).is_some())?;
    let attempts = attempts(line)?;
    Some(DecisionFactor::JudgesSpent { seen, attempts })
}

/// Continuations of the task before this stop could be given one, as if each stop that was being
/// judged when it was asked for had one (law 4).
pub(super) fn max_continuations_so_far(
    policy: &Policy,
    scope: &ScopeId,
    pending: &PendingStop,
) -> u32 {
    let below = pending.subagent_continuations_with_pending();
    let below = match scope.is_main_scope() {
        true => below.min(subagent_continuation_limit(policy)),
        false => below,
    };
    pending.main_continuations + below
}

/// What sub-agents together may have of the continuations: stops of theirs that nobody answers
/// any more leave the main conversation the other half.
fn subagent_continuation_limit(policy: &Policy) -> u32 {
    policy.caps.continues / 2
}

/// The first verifier that is `lost` (can never succeed, was denied by a person), unless
/// `accept` can hold without it.
fn first_verifier_blocking_accept<'a>(
    policy: &Policy,
    judged: &'a StopEvaluation,
    lost: impl Fn(&VerifierOutcome) -> bool,
) -> Option<&'a VerifierOutcome> {
    let first = judged.outcomes.iter().find(|line| lost(line))?;
    let at_best = policy.accept.evaluate(&|name| {
        let never = judged
            .outcomes
            .iter()
            .any(|line| line.verifier == *name && lost(line) && line.truth == TruthValue::False);
        if never {
            TruthValue::False
        } else {
            TruthValue::True
        }
    });
    (at_best == TruthValue::False).then_some(first)
}

/// Stop at budget x threshold, or at diminishing returns. Unknown use never fires it.
/// Source: Claude Code's `checkTokenBudget` (0.9 / 500 / 3), judged at stops only.
fn token_budget_transition(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    why: &mut DecisionExplanation,
) -> Option<Transition> {
    let settings = &policy.token_budget;
    if let Some(TokenBudgetUsage {
        used,
        threshold: line,
    }) = token_budget_progress(policy, task)
        && used >= line
    {
        why.push(DecisionFactor::TokenBudget {
            used,
            threshold: line,
        });
        return Some(Transition::new(Reason::DiminishingReturns, "token_budget"));
    }
    if let [Some(delta), Some(previous)] = task.deltas {
        let little = settings.diminishing_tokens;
        if pending.main_continuations + pending.subagent_continuations
            >= settings.diminishing_rounds
            && delta < little
            && previous < little
        {
            why.push(DecisionFactor::Diminishing { delta, previous });
            return Some(Transition::new(Reason::DiminishingReturns, "diminishing"));
        }
    }
    None
}

/// Where the task stands on the way to budget x threshold; `None` if nobody knows.
fn token_budget_progress(policy: &Policy, task: &Task) -> Option<TokenBudgetUsage> {
    let (used, budget) = (task.totals.spent_tokens()?, policy.caps.token_budget?);
    let permille = policy.token_budget.threshold_permille;
    let line = (u128::from(budget) * u128::from(permille) / 1000) as u64;
    Some(TokenBudgetUsage {
        used,
        threshold: line,
    })
}

/// Under `run` and in the library a budget may be a target: work that could be accepted
/// goes on until the line is reached, or going on brings little. Nothing that would stop
/// work that fails is overruled by it, and unknown use is no reason to go on.
pub(super) fn unmet_token_target(
    draft: &StepBuilder<'_>,
    judged: &StopEvaluation,
    pending: &PendingStop,
) -> Option<TokenBudgetUsage> {
    let policy = draft.policy;
    let is_target = policy.token_budget.mode == TokenLimitOrTarget::Target && policy.single_task;
    let target = token_budget_progress(policy, draft.state.task.as_ref()?).filter(|_| is_target)?;
    let mut why = DecisionExplanation::new();
    match transition_if_not_worth_continuing(
        draft,
        &ScopeId::main_scope(),
        judged,
        pending,
        0,
        &mut why,
    ) {
        Some(_) => None,
        None => Some(target),
    }
}

/// The agent's own cap on blocks must not be reached: its override would look like success.
pub(super) fn continuation_limit(policy: &Policy, pending: &PendingStop) -> u32 {
    let own = policy.caps.continues;
    match pending.block_cap {
        None | Some(0) => own,
        Some(cap) => own.min(cap.saturating_sub(1)).max(1),
    }
}
