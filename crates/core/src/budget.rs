//! Caps: integers that run out. Unknown use never reaches one.

use crate::event::Cap;
use crate::explain::Because;
use crate::policy::Policy;
use crate::state::{State, Totals};

/// A cap that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    /// Which.
    pub cap: Cap,
    /// Used so far.
    pub used: u64,
    /// Allowed.
    pub limit: u64,
}

impl Over {
    /// As a fact behind a decision.
    pub fn because(self) -> Because {
        Because::Cap {
            cap: self.cap,
            used: self.used,
            limit: self.limit,
        }
    }
}

/// When a cap counts as reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The request being judged, already counted, is the one too many.
    Beyond,
    /// What was allowed is used.
    Used,
}

/// The first cap that a tool request, already counted, goes over.
pub fn at_tool(policy: &Policy, state: &State) -> Option<Over> {
    first_over(policy, state, When::Beyond)
}

/// The first cap that is reached at a stop.
pub fn at_stop(policy: &Policy, state: &State) -> Option<Over> {
    first_over(policy, state, When::Used)
}

/// The wall-clock cap, for whoever wakes up without news.
pub fn wall_clock(policy: &Policy, state: &State) -> Option<Over> {
    let task = state.task.as_ref()?;
    let busy = state.busy_ms();
    let unfinished = busy.saturating_sub(task.totals.busy_ms);
    let session_busy = state.totals.busy_ms.saturating_add(unfinished);
    over(
        Cap::WallClock,
        Some(busy),
        policy.caps.wall_clock_ms,
        When::Used,
    )
    .or_else(|| {
        over(
            Cap::WallClock,
            Some(session_busy),
            policy.session_caps.wall_clock_ms,
            When::Used,
        )
    })
}

fn first_over(policy: &Policy, state: &State, when: When) -> Option<Over> {
    let task = state.task.as_ref()?;
    let (caps, session) = (&policy.caps, &policy.session_caps);
    let of = |totals: &Totals, calls, rounds, tokens, cost| {
        let shown = state.shows_rounds.then_some(totals.rounds);
        over(Cap::ToolCalls, Some(totals.tool_calls), calls, when)
            .or_else(|| over(Cap::Iterations, shown, rounds, When::Used))
            .or_else(|| over(Cap::Tokens, totals.spent_tokens(), tokens, When::Used))
            .or_else(|| over(Cap::Cost, totals.spent_cost(), cost, When::Used))
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
            &state.totals,
            session.tool_calls,
            session.max_iterations,
            session.token_budget,
            session.cost,
        )
    })
    .or_else(|| wall_clock(policy, state))
}

fn over(cap: Cap, used: Option<u64>, limit: Option<u64>, when: When) -> Option<Over> {
    let (used, limit) = (used?, limit?);
    let reached = match when {
        When::Beyond => used > limit,
        When::Used => used >= limit,
    };
    reached.then_some(Over { cap, used, limit })
}
