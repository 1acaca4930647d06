//! When a supervisor costs more than it saves: it stays off then, and says why.

use std::time::Duration;

/// What one of its answers takes, at least.
const ANSWER: Duration = Duration::from_millis(200);
/// A run that costs less than this, in millionths of a dollar, is not worth watching.
const SMALL: u64 = 10_000;

/// What a host knows of a run before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExpectedRunCostAndDelay {
    /// What a tool call may take longer for being judged.
    pub delay: Option<Duration>,
    /// What the whole run will cost, in millionths of a dollar.
    pub cost: Option<u64>,
}

/// Why it is not worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SupervisionNotWorthReason {
    /// An agent with one tool has nothing to mistake it for.
    #[error("the agent has one tool")]
    OneTool,
    /// Calls have to be quick.
    #[error("a call may be delayed by {} ms, and an answer takes at least {}", .delay.as_millis(), ANSWER.as_millis())]
    Delay {
        /// What a call may take longer.
        delay: Duration,
    },
    /// The run is small.
    #[error("the run is to cost {} of a cent", DisplayedSubCentCost(*.cost))]
    Cost {
        /// In millionths of a dollar.
        cost: u64,
    },
}

/// Millionths of a dollar, below one cent.
struct DisplayedSubCentCost(u64);

impl std::fmt::Display for DisplayedSubCentCost {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "0.{:04}", self.0)
    }
}

impl ExpectedRunCostAndDelay {
    pub(super) fn not_worth_supervising_reason(self) -> Option<SupervisionNotWorthReason> {
        if let Some(delay) = self.delay.filter(|delay| *delay < ANSWER) {
            return Some(SupervisionNotWorthReason::Delay { delay });
        }
        let cost = self.cost.filter(|cost| *cost < SMALL)?;
        Some(SupervisionNotWorthReason::Cost { cost })
    }
}
