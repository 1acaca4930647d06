//! Loop detectors: bad patterns in the stream of tool calls. A verdict on call N is
//! taken before N runs, from the at most 30 calls of the task and scope before it.
//!
//! To add one: a file with a unit struct, and one line in [`ALL`]. The four here are
//! those of OpenClaw's `tool-loop-detection`, as seed and specification describe them.

mod generic_repeat;
mod global_circuit_breaker;
mod known_poll_no_progress;
mod ping_pong;

use crate::digest::Short;
use crate::event::Level;
use crate::policy::Loops;
use crate::state::{Call, WINDOW};

/// Every detector, in the order in which they are asked.
pub const ALL: &[&dyn Detector] = &[
    &global_circuit_breaker::GlobalCircuitBreaker,
    &known_poll_no_progress::KnownPollNoProgress,
    &ping_pong::PingPong,
    &generic_repeat::GenericRepeat,
];

/// So many of the calls looked at are worth a word.
pub const WARNING: u32 = 10;
/// So many must not go on.
pub const CRITICAL: u32 = 20;

/// The calls before the one being judged.
#[derive(Debug, Clone, Copy)]
pub struct Window<'a> {
    calls: &'a std::collections::VecDeque<Call>,
    len: usize,
}

impl<'a> Window<'a> {
    /// All calls of a scope's window but the newest, which is the one being judged.
    pub fn before_newest(calls: &'a std::collections::VecDeque<Call>) -> Self {
        Self {
            calls,
            len: calls.len().saturating_sub(1),
        }
    }

    /// Newest first, at most [`WINDOW`].
    pub fn newest_first(&self) -> impl Iterator<Item = &'a Call> + use<'a> {
        self.calls.iter().take(self.len).rev().take(WINDOW)
    }
}

/// A pattern found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// How bad.
    pub level: Level,
    /// How many calls show it.
    pub count: u32,
    /// What it is about: one nudge per key and multiple of ten.
    pub key: Short,
    /// Calls are among them that have not come back.
    pub in_flight: bool,
}

/// What else a detector may need to know.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The settings in force.
    pub loops: &'a Loops,
    /// Tool requests of the task before this one.
    pub calls_before: u64,
    /// The agent is known to tell what came of each call.
    pub reports_outcome: bool,
}

/// A loop smell.
pub trait Detector: Sync {
    /// Its name in config, findings and transitions.
    fn name(&self) -> &'static str;
    /// Looks at a call and what came before it.
    fn look(&self, call: &Call, before: Window<'_>, context: Context<'_>) -> Option<Sighting>;
    /// What to tell the agent.
    fn advice(&self, sighting: Sighting) -> String;
}

/// How often, newest first, the same call came back with one and the same outcome.
/// Calls in between are skipped; a call without an outcome proves nothing.
fn unchanged(call: &Call, before: Window<'_>) -> u32 {
    let mut head = None;
    let mut count = 0;
    for earlier in before
        .newest_first()
        .filter(|earlier| earlier.call == call.call)
    {
        let Some(outcome) = earlier.outcome else {
            continue;
        };
        if *head.get_or_insert(outcome) != outcome {
            break;
        }
        count += 1;
    }
    count
}

/// How many calls like this one have not come back.
fn in_flight(call: &Call, before: Window<'_>) -> u32 {
    let open = |earlier: &&Call| earlier.call == call.call && earlier.outcome.is_none();
    before.newest_first().filter(open).count() as u32
}

#[cfg(test)]
mod tests;
