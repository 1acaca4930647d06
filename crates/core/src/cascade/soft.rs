//! The soft tier: is going on worth it?

use super::judged::{Judged, Line};
use super::refused_by;
use crate::accept::Truth;
use crate::budget;
use crate::decision::TokenTarget;
use crate::explain::{Because, Why};
use crate::ids::ScopeId;
use crate::policy::{BudgetMode, Policy};
use crate::state::{Pending, Task};
use crate::step::Draft;
use crate::transition::{Reason, Transition};

/// The soft tier, in the order of the contract. `None`: going on is worth it.
pub(super) fn not_worth_it(
    draft: &Draft<'_>,
    scope: &ScopeId,
    judged: &Judged,
    pending: &Pending,
    met: u32,
    why: &mut Why,
) -> Option<Transition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    // That the main stop ended the task meanwhile says nothing about a sub-agent's.
    let counts = scope.is_main() || pending.spent || task.halted;
    let blocked = || {
        let denied = in_the_way(policy, judged, Line::is_denied);
        let denied = denied.map(|line| (Reason::PermissionDenied, line));
        let hopeless = |line: &Line| line.hopeless && !can_come_back(draft, line);
        let hopeless = || in_the_way(policy, judged, hopeless);
        let hopeless = || hopeless().map(|line| (Reason::VerifierFailedUnrecoverable, line));
        let (reason, line) = denied.or_else(hopeless)?;
        Some(Transition::new(reason, line.verifier.as_str()))
    };
    if let Some(spent) = task.spent.as_ref().filter(|_| counts) {
        // What came of the person that it waited for is news to the main conversation.
        let news = blocked().filter(|came| scope.is_main() && came.replaces(spent));
        if let Some(came) = news {
            return Some(came);
        }
        why.push(Because::AlreadyEnded);
        return Some(spent.clone());
    }
    if let Some(blocked) = blocked() {
        return Some(blocked);
    }
    if let Some(refusal) = pending.refused {
        why.push(Because::AfterRefusal);
        return Some(refused_by(refusal));
    }
    if let Some(over) = &pending.over {
        why.push(Because::Left);
        return Some(over.clone());
    }
    if pending.truncated {
        why.push(Because::Truncated);
        return Some(Transition::plain(Reason::Truncated));
    }
    if let Some(over) = budget::at_stop(policy, draft.state) {
        why.push(over.because());
        return Some(Transition::new(Reason::HardCap, over.cap.as_str()));
    }
    if let Some(cap) = task.grace {
        return Some(Transition::new(Reason::HardCap, cap.as_str()));
    }
    if met >= policy.caps.attempts {
        why.push(Because::SameFailures {
            met,
            attempts: policy.caps.attempts,
        });
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    if let Some(spent) = judges_spent(draft, scope, judged) {
        why.push(spent);
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    // Over the limit without anything against the work is not given up: nobody could tell.
    let ended = || match judged.held_up(policy) {
        Some(held) => Transition::new(Reason::Unverified, held.detail),
        None => Transition::new(Reason::GaveUp, "continues"),
    };
    let below = pending.continues_below();
    if !scope.is_main() && below >= half(policy) {
        let (given, limit) = (below, half(policy));
        why.push(Because::Continues { given, limit });
        return Some(ended());
    }
    if let Some(spent) = spent_continues(draft, scope, pending) {
        why.push(spent);
        return Some(ended());
    }
    token_budget(policy, task, pending, why)
}

/// Which limit of the times that the agent is sent back is reached, that of the task or that of the session.
pub(super) fn spent_continues(
    draft: &Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
) -> Option<Because> {
    let (policy, state) = (draft.policy, &*draft.state);
    let task = state.task.as_ref()?;
    let given = continues(policy, scope, pending);
    let of_task = (given, continues_limit(policy, pending));
    // Since the stop was asked for, both totals grew by the same.
    let before_task = state.totals.continues.saturating_sub(task.totals.continues);
    let in_session = |limit| (before_task + given, limit);
    let of_session = policy.session_caps.continues.map(in_session);
    let mut limits = [Some(of_task), of_session].into_iter().flatten();
    let (given, limit) = limits.find(|(given, limit)| given >= limit)?;
    Some(Because::Continues { given, limit })
}

/// A program that was there when the policy was sealed is gone, and the agent has not been told:
/// it may be the agent's own doing (`mv .venv away`), and can be undone.
fn can_come_back(draft: &Draft<'_>, line: &Line) -> bool {
    let task = draft.state.task.as_ref();
    let told = task.is_some_and(|task| task.missing_told.contains(&line.verifier));
    line.misses_its_program() && !told && draft.state.equipped.contains(&line.verifier)
}

/// Answers of this conversation that judges have seen, this one included.
pub(super) fn seen(draft: &Draft<'_>, scope: &ScopeId) -> u32 {
    let scope = draft.state.scope(scope);
    scope.map_or(1, |scope| scope.sent_back + 1)
}

/// A judge that `accept` cannot hold without has seen as many answers as it may.
fn judges_spent(draft: &Draft<'_>, scope: &ScopeId, judged: &Judged) -> Option<Because> {
    let seen = seen(draft, scope);
    let attempts = |line: &Line| {
        let terms = draft.policy.verifier(&line.verifier)?.judge?;
        Some(terms.max_attempts).filter(|attempts| line.is_refused() && seen >= *attempts)
    };
    let line = in_the_way(draft.policy, judged, |line| attempts(line).is_some())?;
    let attempts = attempts(line)?;
    Some(Because::JudgesSpent { seen, attempts })
}

/// Continuations of the task before this stop could be given one, as if each stop that was being
/// judged when it was asked for had one (law 4).
pub(super) fn continues(policy: &Policy, scope: &ScopeId, pending: &Pending) -> u32 {
    let below = pending.continues_below();
    let below = match scope.is_main() {
        true => below.min(half(policy)),
        false => below,
    };
    pending.given + below
}

/// What sub-agents together may have of the continuations: stops of theirs that nobody answers
/// any more leave the main conversation the other half.
fn half(policy: &Policy) -> u32 {
    policy.caps.continues / 2
}

/// The first verifier that is `lost` (can never succeed, was denied by a person), unless
/// `accept` can hold without it.
fn in_the_way<'a>(
    policy: &Policy,
    judged: &'a Judged,
    lost: impl Fn(&Line) -> bool,
) -> Option<&'a Line> {
    let first = judged.lines.iter().find(|line| lost(line))?;
    let at_best = policy.accept.evaluate(&|name| {
        let never = judged
            .lines
            .iter()
            .any(|line| line.verifier == *name && lost(line) && line.truth == Truth::False);
        if never { Truth::False } else { Truth::True }
    });
    (at_best == Truth::False).then_some(first)
}

/// Stop at budget x threshold, or at diminishing returns. Unknown use never fires it.
/// Source: Claude Code's `checkTokenBudget` (0.9 / 500 / 3), judged at stops only.
fn token_budget(
    policy: &Policy,
    task: &Task,
    pending: &Pending,
    why: &mut Why,
) -> Option<Transition> {
    let settings = &policy.token_budget;
    if let Some(TokenTarget { used, line }) = line(policy, task)
        && used >= line
    {
        why.push(Because::TokenBudget { used, line });
        return Some(Transition::new(Reason::DiminishingReturns, "token_budget"));
    }
    if let [Some(delta), Some(previous)] = task.deltas {
        let little = settings.diminishing_tokens;
        if pending.given + pending.below >= settings.diminishing_rounds
            && delta < little
            && previous < little
        {
            why.push(Because::Diminishing { delta, previous });
            return Some(Transition::new(Reason::DiminishingReturns, "diminishing"));
        }
    }
    None
}

/// Where the task stands on the way to budget x threshold; `None` if nobody knows.
fn line(policy: &Policy, task: &Task) -> Option<TokenTarget> {
    let (used, budget) = (task.totals.spent_tokens()?, policy.caps.token_budget?);
    let permille = policy.token_budget.threshold_permille;
    let line = (u128::from(budget) * u128::from(permille) / 1000) as u64;
    Some(TokenTarget { used, line })
}

/// Under `run` and in the library a budget may be a target: work that could be accepted
/// goes on until the line is reached, or going on brings little. Nothing that would stop
/// work that fails is overruled by it, and unknown use is no reason to go on.
pub(super) fn target(draft: &Draft<'_>, judged: &Judged, pending: &Pending) -> Option<TokenTarget> {
    let policy = draft.policy;
    let is_target = policy.token_budget.mode == BudgetMode::Target && policy.single_task;
    let target = line(policy, draft.state.task.as_ref()?).filter(|_| is_target)?;
    let mut why = Why::new();
    match not_worth_it(draft, &ScopeId::main(), judged, pending, 0, &mut why) {
        Some(_) => None,
        None => Some(target),
    }
}

/// The agent's own cap on blocks must not be reached: its override would look like success.
pub(super) fn continues_limit(policy: &Policy, pending: &Pending) -> u32 {
    let own = policy.caps.continues;
    match pending.block_cap {
        None | Some(0) => own,
        Some(cap) => own.min(cap.saturating_sub(1)).max(1),
    }
}
