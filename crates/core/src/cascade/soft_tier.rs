//! The soft tier: decides whether sending the agent back is still worth it, from caps, attempts,
//! continuations and token use. Law 2 (a task ends after a bounded number of refusals) rests on it.

use super::evaluation::{PendingStopFacts, VerifierOutcome};
use super::stopped_after_denial_transition;
use crate::accept::TruthValue;
use crate::budget::{self, TokenBudgetEnding};
use crate::decision::TokenBudgetUsage;
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::ScopeId;
use crate::policy::{Policy, TokenLimitOrTarget};
use crate::state::{PendingStop, Task};
use crate::step::StateMachineStepBuilder;
use crate::transition::{Reason, Transition};

/// Returns the ending if going on is not worth it, or `None` if it is. The checks run in a fixed
/// order, and the first that applies names the ending.
pub(super) fn task_transition_if_giving_up(
    draft: &StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    judged: &PendingStopFacts,
    pending: &PendingStop,
    met: u32,
    why: &mut DecisionExplanation,
) -> Option<Transition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    // An ending that the main stop recorded after this sub-agent asked to stop does not concern the
    // sub-agent (law 4).
    let counts = scope.is_main_scope() || pending.had_bad_ending || task.halted;
    // Reasons that no further round can change: a person denied the work, or a verifier that
    // `accept` needs can never pass.
    let blocked = || {
        let denied = first_verifier_blocking_accept(
            policy,
            judged,
            VerifierOutcome::is_work_denied_by_person,
        );
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
        // The outcome of the approval that the task waited for is news to the main conversation,
        // and may replace the earlier ending.
        let news =
            blocked().filter(|came| scope.is_main_scope() && came.can_replace_bad_ending(spent));
        if let Some(came) = news {
            return Some(came);
        }
        why.push(DecisionFactor::AlreadyEnded);
        return Some(spent.clone());
    }
    if let Some(blocked) = blocked() {
        return Some(blocked);
    }
    // The agent stopped right after a refusal. Sending it back would not lift that refusal.
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
        return Some(Transition::transition_without_detail(Reason::Truncated));
    }
    if let Some(over) = budget::reached_cap_at_stop(policy, draft.state) {
        why.push(over.reached_cap_decision_factor());
        return Some(Transition::new(Reason::HardCap, over.cap.as_str()));
    }
    if let Some(cap) = task.grace {
        return Some(Transition::new(Reason::HardCap, cap.as_str()));
    }
    // Attempts come before continuations: the same failures again and again are the more specific
    // reason.
    if met >= policy.caps.attempts {
        why.push(DecisionFactor::SameFailures {
            met,
            attempts: policy.caps.attempts,
        });
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    if let Some(spent) = spent_judge_decision_factor(draft, scope, judged) {
        why.push(spent);
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    // If nothing is known against the work, reaching the limit is not `gave_up`: nobody could tell
    // whether it was right.
    let ended = || match judged.unfinished_checks_hold_up_reason(policy) {
        Some(held) => Transition::new(Reason::Unverified, held.detail),
        None => Transition::new(Reason::GaveUp, "continues"),
    };
    let below = pending.all_subagent_continuations_plus_pending_stops();
    if !scope.is_main_scope() && below >= total_continuations_for_all_subagents(policy) {
        let (given, limit) = (below, total_continuations_for_all_subagents(policy));
        why.push(DecisionFactor::Continues { given, limit });
        return Some(ended());
    }
    if let Some(spent) = continuation_limit_factor(draft, scope, pending) {
        why.push(spent);
        return Some(ended());
    }
    task_end_by_token_budget(policy, task, pending, why)
}

/// Returns the continuation limit that is reached, of the task or of the session.
pub(super) fn continuation_limit_factor(
    draft: &StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
) -> Option<DecisionFactor> {
    let (policy, state) = (draft.policy, &*draft.state);
    let task = state.task.as_ref()?;
    let given = continuations_plus_pending_stops(policy, scope, pending);
    let of_task = (given, continuation_limit(policy, pending));
    // Both totals have grown by the same amount since the stop was requested, so their difference
    // is the session's count before this task.
    let before_task = state.totals.continues.saturating_sub(task.totals.continues);
    let in_session = |limit| (before_task + given, limit);
    let of_session = policy.session_caps.continues.map(in_session);
    let mut limits = [Some(of_task), of_session].into_iter().flatten();
    let (given, limit) = limits.find(|(given, limit)| given >= limit)?;
    Some(DecisionFactor::Continues { given, limit })
}

/// Returns whether a missing program may come back: it was there when the policy was sealed, and
/// the agent has not been told yet. The agent may have moved it away itself (`mv .venv away`) and
/// can undo that.
fn is_missing_program_recoverable(
    draft: &StateMachineStepBuilder<'_>,
    line: &VerifierOutcome,
) -> bool {
    let task = draft.state.task.as_ref();
    let told = task.is_some_and(|task| task.missing_told.contains(&line.verifier));
    line.is_verifier_program_missing() && !told && draft.state.equipped.contains(&line.verifier)
}

/// Returns how many answers of this conversation judges have seen, this one included.
pub(super) fn count_judged_answers_in_conversation(
    draft: &StateMachineStepBuilder<'_>,
    scope: &ScopeId,
) -> u32 {
    let scope = draft.state.conversation_scope_by_id(scope);
    scope.map_or(1, |scope| scope.judge_refusals + 1)
}

/// Returns the factor that ends the task if a judge that `accept` cannot hold without has seen as
/// many answers as it may.
fn spent_judge_decision_factor(
    draft: &StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    judged: &PendingStopFacts,
) -> Option<DecisionFactor> {
    let seen = count_judged_answers_in_conversation(draft, scope);
    let attempts = |line: &VerifierOutcome| {
        let terms = draft.policy.verifier_spec(&line.verifier)?.judge?;
        Some(terms.max_attempts)
            .filter(|attempts| line.verifier_refuses_stop() && seen >= *attempts)
    };
    let line =
        first_verifier_blocking_accept(draft.policy, judged, |line| attempts(line).is_some())?;
    let attempts = attempts(line)?;
    Some(DecisionFactor::JudgesSpent { seen, attempts })
}

/// Returns the continuations of the task before this stop, counting one for each stop that was
/// being judged when this one was requested. The answer therefore does not depend on which of them
/// is answered first (law 4).
pub(super) fn continuations_plus_pending_stops(
    policy: &Policy,
    scope: &ScopeId,
    pending: &PendingStop,
) -> u32 {
    let below = pending.all_subagent_continuations_plus_pending_stops();
    let below = match scope.is_main_scope() {
        true => below.min(total_continuations_for_all_subagents(policy)),
        false => below,
    };
    pending.main_continuations + below
}

/// Returns how many continuations all sub-agents together may use. The other half stays with the
/// main conversation, even if stops of sub-agents are never answered.
fn total_continuations_for_all_subagents(policy: &Policy) -> u32 {
    policy.caps.continues / 2
}

/// Returns the first verifier that is `lost` (it can never pass, or a person denied it), unless
/// `accept` can hold without it.
fn first_verifier_blocking_accept<'a>(
    policy: &Policy,
    judged: &'a PendingStopFacts,
    lost: impl Fn(&VerifierOutcome) -> bool,
) -> Option<&'a VerifierOutcome> {
    let first = judged.outcomes.iter().find(|line| lost(line))?;
    // Every other verifier is assumed to pass: the question is whether `accept` can still become
    // true at all.
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

/// Ends the task at budget x threshold, or at diminishing returns. Unknown token use never ends it.
/// The numbers (0.9 / 500 / 3) are those of Claude Code's `checkTokenBudget`, which are applied at
/// stops only.
fn task_end_by_token_budget(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    why: &mut DecisionExplanation,
) -> Option<Transition> {
    let ending = budget::token_budget_ending(
        &policy.token_budget,
        policy.caps.token_budget,
        task.totals.spent_tokens(),
        task.deltas,
        pending.main_continuations + pending.subagent_continuations,
    )?;
    let (factor, detail) = match ending {
        TokenBudgetEnding::Threshold { used, threshold } => (
            DecisionFactor::TokenBudget { used, threshold },
            "token_budget",
        ),
        TokenBudgetEnding::Diminishing { delta, previous } => (
            DecisionFactor::Diminishing { delta, previous },
            "diminishing",
        ),
    };
    why.push(factor);
    Some(Transition::new(Reason::DiminishingReturns, detail))
}

/// Returns the token use and the threshold, or `None` if either is unknown.
fn token_budget_progress(policy: &Policy, task: &Task) -> Option<TokenBudgetUsage> {
    let (used, budget) = (task.totals.spent_tokens()?, policy.caps.token_budget?);
    Some(TokenBudgetUsage {
        used,
        threshold: budget::token_budget_threshold(&policy.token_budget, budget),
    })
}

/// Returns the token target if it is not reached yet. Under `run` and in the library, a budget may
/// be a target: work that could be accepted goes on until the target or until going on brings
/// little. Nothing that would end failing work is overruled by it, and unknown use is no reason to
/// go on.
pub(super) fn unmet_token_target(
    draft: &StateMachineStepBuilder<'_>,
    judged: &PendingStopFacts,
    pending: &PendingStop,
) -> Option<TokenBudgetUsage> {
    let policy = draft.policy;
    let is_target = policy.token_budget.mode == TokenLimitOrTarget::Target && policy.single_task;
    let target = token_budget_progress(policy, draft.state.task.as_ref()?).filter(|_| is_target)?;
    let mut why = DecisionExplanation::new();
    match task_transition_if_giving_up(draft, &ScopeId::main_scope(), judged, pending, 0, &mut why)
    {
        Some(_) => None,
        None => Some(target),
    }
}

/// Returns how often this stop may be refused. It stays below the agent's own cap on blocks: if the
/// agent overrides a block, the ending looks like success.
pub(super) fn continuation_limit(policy: &Policy, pending: &PendingStop) -> u32 {
    let own = policy.caps.continues;
    match pending.block_cap {
        None | Some(0) => own,
        Some(cap) => own.min(cap.saturating_sub(1)).max(1),
    }
}
