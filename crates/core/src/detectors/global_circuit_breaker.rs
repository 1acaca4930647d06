//! Detects thirty calls in a row, of any tools, none of which made progress. Progress is a (call,
//! outcome) pair that is new in the task, or a successful write.
//!
//! Detected: thirty calls that all came back as they had come back before.
//!
//! Not detected: thirty calls of which one brought something new.
//!
//! With the preset `seed`, any thirty calls of a task are detected.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch};
use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

pub(super) struct CallsWithoutProgressDetector;

/// The threshold is the length of the window.
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
                // A call that has not come back may still bring progress, so it ends the run.
                .take_while(|call| call.outcome.is_some() && !call.progress)
                .count() as u32
        };
        let sighting = LoopPatternMatch {
            level: LoopSeverity::Critical,
            count,
            // The pattern is about the task and not about one call, so it needs one key only.
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
