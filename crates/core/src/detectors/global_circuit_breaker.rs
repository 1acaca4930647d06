//! Thirty calls in a row, of any tools, none of which made progress. Progress is a
//! (call, outcome) pair that is new in the task, or a write that succeeded.
//!
//! Smells:    thirty calls that all came back as they had come back before.
//! Is fine:   thirty calls of which one brought something new.
//!
//! Preset `seed` takes the seed at its word instead: any thirty calls of a task.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch};
use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

pub(super) struct CallsWithoutProgressDetector;

/// As many as the window holds.
const BREAKER: u32 = CALL_WINDOW_LEN as u32;

impl LoopDetector for CallsWithoutProgressDetector {
    fn detector_name(&self) -> &'static str {
        "global_circuit_breaker"
    }

    fn detect_loop(
        &self,
        _: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let count = if context.loops.literal_breaker {
            u32::try_from(context.calls_before).unwrap_or(u32::MAX)
        } else {
            before
                .calls_newest_first()
                .take_while(|call| call.outcome.is_some() && !call.progress)
                .count() as u32
        };
        let sighting = LoopPatternMatch {
            level: LoopSeverity::Critical,
            count,
            key: EightByteDigest(0),
            in_flight: false,
        };
        (count >= BREAKER).then_some(sighting)
    }

    fn loop_advice_for_agent(&self, sighting: LoopPatternMatch) -> String {
        format!(
            "{} calls in a row brought nothing new; stop and say what is done and what is in the way",
            sighting.count
        )
    }
}
