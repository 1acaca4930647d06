//! Caps on calls, rounds, tokens, cost and time of a task and a session. Unknown use never reaches
//! a cap.

use crate::event::CapKind;
use crate::explain::DecisionFactor;
use crate::policy::{Policy, TokenBudgetSettings};
use crate::state::{SessionState, TaskOrSessionTotals};

/// A cap that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedCap {
    /// Which.
    pub cap: CapKind,
    /// Used so far.
    pub used: u64,
    /// Allowed.
    pub limit: u64,
}

impl ReachedCap {
    /// Returns it as a factor of a decision.
    pub fn reached_cap_decision_factor(self) -> DecisionFactor {
        DecisionFactor::Cap {
            cap: self.cap,
            used: self.used,
            limit: self.limit,
        }
    }
}

/// How usage is compared with a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CapComparisonMode {
    /// The request being judged, which is already counted, goes over the limit.
    AboveLimit,
    /// The limit is used up.
    AtLimit,
}

/// The first cap that a tool request, already counted, goes over.
pub fn reached_cap_at_tool_request(policy: &Policy, state: &SessionState) -> Option<ReachedCap> {
    first_reached_cap(policy, state, CapComparisonMode::AboveLimit)
}

/// The first cap that is reached at a stop.
pub fn reached_cap_at_stop(policy: &Policy, state: &SessionState) -> Option<ReachedCap> {
    first_reached_cap(policy, state, CapComparisonMode::AtLimit)
}

/// Returns the wall-clock cap if it is reached. Also used when time passes without any other input.
pub fn reached_wall_clock_cap(policy: &Policy, state: &SessionState) -> Option<ReachedCap> {
    let task = state.task.as_ref()?;
    let busy = state.agent_busy_ms();
    // The session total holds finished spans only, so the running span is added to it.
    let unfinished = busy.saturating_sub(task.totals.busy_ms);
    let session_busy = state.totals.busy_ms.saturating_add(unfinished);
    reached_budget_cap(
        CapKind::WallClock,
        Some(busy),
        policy.caps.wall_clock_ms,
        CapComparisonMode::AtLimit,
    )
    .or_else(|| {
        reached_budget_cap(
            CapKind::WallClock,
            Some(session_busy),
            policy.session_caps.wall_clock_ms,
            CapComparisonMode::AtLimit,
        )
    })
}

fn first_reached_cap(
    policy: &Policy,
    state: &SessionState,
    when: CapComparisonMode,
) -> Option<ReachedCap> {
    let task = state.task.as_ref()?;
    let (caps, session) = (&policy.caps, &policy.session_caps);
    let of = |totals: &TaskOrSessionTotals, calls, rounds, tokens, cost| {
        // For an agent that does not show its rounds, only stops are counted, and a cap on rounds
        // must not apply to those.
        let shown = state.shows_rounds.then_some(totals.rounds);
        // Only tool calls depend on `when`: the request being judged is counted already, so `N`
        // calls are allowed and the next one is too many. The other totals describe finished work.
        reached_budget_cap(CapKind::ToolCalls, Some(totals.tool_calls), calls, when)
            .or_else(|| {
                reached_budget_cap(
                    CapKind::Iterations,
                    shown,
                    rounds,
                    CapComparisonMode::AtLimit,
                )
            })
            .or_else(|| {
                reached_budget_cap(
                    CapKind::Tokens,
                    totals.spent_tokens(),
                    tokens,
                    CapComparisonMode::AtLimit,
                )
            })
            .or_else(|| {
                reached_budget_cap(
                    CapKind::Cost,
                    totals.spent_cost(),
                    cost,
                    CapComparisonMode::AtLimit,
                )
            })
    };
    of(
        &task.totals,
        caps.tool_calls,
        caps.max_iterations,
        caps.token_budget,
        caps.cost,
    )
    .or_else(|| {
        of(
            // The task's caps come before the session's, and elapsed time last, so that the ending
            // names the most specific one.
            &state.totals,
            session.tool_calls,
            session.max_iterations,
            session.token_budget,
            session.cost,
        )
    })
    .or_else(|| reached_wall_clock_cap(policy, state))
}

fn reached_budget_cap(
    cap: CapKind,
    used: Option<u64>,
    limit: Option<u64>,
    when: CapComparisonMode,
) -> Option<ReachedCap> {
    let (used, limit) = (used?, limit?);
    let reached = match when {
        CapComparisonMode::AboveLimit => used > limit,
        CapComparisonMode::AtLimit => used >= limit,
    };
    reached.then_some(ReachedCap { cap, used, limit })
}

/// Why going on is not worth its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenBudgetEnding {
    /// The share of the budget that may be used is used.
    Threshold {
        /// Output tokens.
        used: u64,
        /// From which on it ends.
        threshold: u64,
    },
    /// The last two steps brought little.
    Diminishing {
        /// Output tokens between the last two stops.
        delta: u64,
        /// Between the two before.
        previous: u64,
    },
}

/// Returns why a task is not worth its tokens any more at a stop, after so many continuations. Unknown
/// use ends nothing.
pub fn token_budget_ending(
    settings: &TokenBudgetSettings,
    budget: Option<u64>,
    used: Option<u64>,
    deltas: [Option<u64>; 2],
    continuations: u32,
) -> Option<TokenBudgetEnding> {
    if let (Some(used), Some(budget)) = (used, budget) {
        let threshold = token_budget_threshold(settings, budget);
        if used >= threshold {
            return Some(TokenBudgetEnding::Threshold { used, threshold });
        }
    }
    let [Some(delta), Some(previous)] = deltas else {
        return None;
    };
    let little = settings.diminishing_tokens;
    // Two small steps in a row are required, and several continuations before them, so that one
    // short round does not end the task.
    (continuations >= settings.diminishing_rounds && delta < little && previous < little)
        .then_some(TokenBudgetEnding::Diminishing { delta, previous })
}

/// Returns the output tokens from which on a budget counts as used.
pub fn token_budget_threshold(settings: &TokenBudgetSettings, budget: u64) -> u64 {
    // Computed in 128 bits, because a budget near `u64::MAX` would overflow.
    (u128::from(budget) * u128::from(settings.threshold_permille) / 1000) as u64
}
