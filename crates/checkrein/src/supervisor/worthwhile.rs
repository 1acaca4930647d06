//! Decides whether a run is worth supervising. If it is not, the supervisor stays off and reports
//! why.

use std::time::Duration;

/// Least time that an answer of the supervisor takes.
const ANSWER: Duration = Duration::from_millis(200);
/// A run that costs less than this, in millionths of a dollar, is not worth supervising.
const SMALL: u64 = 10_000;

/// What a host knows of a run before it begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SupervisedRunExpectations {
    /// Longest delay of a tool call that is acceptable for a judgement.
    pub delay: Option<Duration>,
    /// Expected cost of the whole run, in millionths of a dollar.
    pub cost: Option<u64>,
}

/// Why it is not worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SupervisionNotWorthReason {
    /// An agent with one tool has nothing to mistake it for.
    #[error("the agent has one tool")]
    OneTool,
    /// The acceptable delay is shorter than an answer takes.
    #[error("a call may be delayed by {} ms, and an answer takes at least {}", .delay.as_millis(), ANSWER.as_millis())]
    Delay {
        /// What a call may take longer.
        delay: Duration,
    },
    /// The run costs too little.
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

impl SupervisedRunExpectations {
    pub(super) fn why_run_is_not_worth_supervising(self) -> Option<SupervisionNotWorthReason> {
        if let Some(delay) = self.delay.filter(|delay| *delay < ANSWER) {
            return Some(SupervisionNotWorthReason::Delay { delay });
        }
        // An expectation that the host did not state never keeps the supervisor off.
        let cost = self.cost.filter(|cost| *cost < SMALL)?;
        Some(SupervisionNotWorthReason::Cost { cost })
    }
}
