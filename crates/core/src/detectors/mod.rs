//! Loop detectors: bad patterns in the stream of tool calls. Call N is judged before it runs, from
//! the at most 30 earlier calls of the same task and scope.
//!
//! To add a detector, add a file with a unit struct and one line in [`ALL`]. The four here are
//! those of OpenClaw's `tool-loop-detection`, as seed and specification describe them.

mod generic_repeat;
mod global_circuit_breaker;
mod known_poll_no_progress;
mod ping_pong;

use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::policy::LoopPolicy;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

/// Every detector, in the order in which they are asked.
pub const ALL: &[&dyn LoopDetector] = &[
    // The breaker comes first, because only the first critical of a call counts.
    &global_circuit_breaker::CallsWithoutProgressDetector,
    &known_poll_no_progress::KnownPollNoProgressDetector,
    &ping_pong::PingPongDetector,
    &generic_repeat::GenericRepeatDetector,
];

/// The number of calls that is worth a warning.
pub const WARNING_COUNT: u32 = 10;
/// The number of calls at which the next one is denied.
pub const CRITICAL_COUNT: u32 = 20;

/// The calls before the one being judged.
#[derive(Debug, Clone, Copy)]
pub struct CallWindow<'a> {
    calls: &'a std::collections::VecDeque<RecentCall>,
    len: usize,
}

impl<'a> CallWindow<'a> {
    /// Returns all calls of a scope's window except the newest, which is the one being judged.
    pub fn calls_before_newest(calls: &'a std::collections::VecDeque<RecentCall>) -> Self {
        Self {
            calls,
            len: calls.len().saturating_sub(1),
        }
    }

    /// Iterates newest first, over at most [`CALL_WINDOW_LEN`] calls.
    pub fn calls_newest_first(&self) -> impl Iterator<Item = &'a RecentCall> + use<'a> {
        self.calls.iter().take(self.len).rev().take(CALL_WINDOW_LEN)
    }
}

/// A pattern found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPatternMatch {
    /// How bad.
    pub level: LoopSeverity,
    /// How many calls show it.
    pub count: u32,
    /// What it is about: one nudge per key and multiple of ten.
    pub key: EightByteDigest,
    /// Calls are among them that have not come back.
    pub in_flight: bool,
}

/// What else a detector may need to know.
#[derive(Debug, Clone, Copy)]
pub struct DetectorContext<'a> {
    /// The settings in force.
    pub loops: &'a LoopPolicy,
    /// Tool requests of the task before this one.
    pub calls_before: u64,
    /// The agent is known to report what came of each call.
    pub reports_outcome: bool,
}

/// A detector of one kind of loop.
pub trait LoopDetector: Sync {
    /// Its name in config, findings and transitions.
    fn detector_name(&self) -> &'static str;
    /// Judges a call by the calls before it.
    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch>;
    /// What to tell the agent.
    fn loop_advice_for_agent(&self, sighting: LoopPatternMatch) -> String;
}

/// Returns how often, newest first, the same call came back with one and the same outcome. Other
/// calls in between are skipped. A call without an outcome proves nothing.
fn repeats_with_same_outcome_count(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    let mut head = None;
    let mut count = 0;
    for earlier in before
        .calls_newest_first()
        .filter(|earlier| earlier.call == call.call)
    {
        let Some(outcome) = earlier.outcome else {
            continue;
        };
        // The run of equal outcomes must include the newest: an older run has been broken since.
        if *head.get_or_insert(outcome) != outcome {
            break;
        }
        count += 1;
    }
    count
}

/// Returns how many identical calls have not come back.
fn identical_calls_in_flight(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    let open = |earlier: &&RecentCall| earlier.call == call.call && earlier.outcome.is_none();
    before.calls_newest_first().filter(open).count() as u32
}

#[cfg(test)]
mod tests;
