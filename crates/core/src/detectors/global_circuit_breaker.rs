//! Thirty calls in a row, of any tools, none of which made progress. Progress is a
//! (call, outcome) pair that is new in the task, or a write that succeeded.
//!
//! Smells:    thirty calls that all came back as they had come back before.
//! Is fine:   thirty calls of which one brought something new.
//!
//! Preset `seed` takes the seed at its word instead: any thirty calls of a task.

use super::{Context, Detector, Sighting, Window};
use crate::digest::Short;
use crate::event::Level;
use crate::state::{Call, WINDOW};

pub(super) struct GlobalCircuitBreaker;

/// As many as the window holds.
const BREAKER: u32 = WINDOW as u32;

impl Detector for GlobalCircuitBreaker {
    fn name(&self) -> &'static str {
        "global_circuit_breaker"
    }

    fn look(&self, _: &Call, before: Window<'_>, context: Context<'_>) -> Option<Sighting> {
        let count = if context.loops.literal_breaker {
            u32::try_from(context.calls_before).unwrap_or(u32::MAX)
        } else {
            before
                .newest_first()
                .take_while(|call| call.outcome.is_some() && !call.progress)
                .count() as u32
        };
        let sighting = Sighting {
            level: Level::Critical,
            count,
            key: Short(0),
            in_flight: false,
        };
        (count >= BREAKER).then_some(sighting)
    }

    fn advice(&self, sighting: Sighting) -> String {
        format!(
            "{} calls in a row brought nothing new; stop and say what is done and what is in the way",
            sighting.count
        )
    }
}
