//! Detects two calls in turn (A B A B), each undoing what the other showed.
//!
//! Detected: `read a` `edit a` `read a` `edit a` …: a warning at ten in strict turn, critical at
//! twenty with nothing changed on either side.
//!
//! Not critical: `edit a` `test` `edit a` `test` … while the tests say something new.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::state::RecentCall;

pub(super) struct PingPongDetector;

impl LoopDetector for PingPongDetector {
    fn detector_name(&self) -> &'static str {
        "ping_pong"
    }

    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds::new(10, 20)
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let mut calls = before.calls_newest_first();
        let newest = calls.next()?;
        // Two equal calls in a row are no turn. `generic_repeat` counts those.
        if newest.call == call.call {
            return None;
        }
        // The one outcome that each side has had so far. A second one on either side is a change.
        let (mut same, mut other) = (newest.outcome, None);
        let mut still = newest.outcome.is_some();
        let mut tail = 1;
        // Going backwards, the sides take turns. The first call out of turn ends the pattern.
        for (at, earlier) in calls.enumerate() {
            let (expected, side) = if at % 2 == 0 {
                (call.call, &mut other)
            } else {
                (newest.call, &mut same)
            };
            if earlier.call != expected {
                break;
            }
            tail += 1;
            still &= earlier
                .outcome
                .is_some_and(|outcome| *side.get_or_insert(outcome) == outcome);
        }
        // The call being judged is part of the pattern.
        let count = tail + 1;
        let level = match context
            .thresholds_of_detector(self)
            .severity_of_count(count)?
        {
            LoopSeverity::Critical if !still => LoopSeverity::Warning,
            level => level,
        };
        // XOR gives one key for both directions, so that A B and B A are one pattern for the
        // warnings.
        let key = EightByteDigest(call.call.0 ^ newest.call.0);
        (tail >= 2).then_some(LoopPatternMatch {
            level,
            count,
            key,
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        let count = found.count;
        match found.level {
            LoopSeverity::Warning => format!(
                "{call} and one other call have taken turns {count} times; decide on one of them, or look for what both miss"
            ),
            LoopSeverity::Critical => format!(
                "{call} and one other call took turns {count} times and neither changed anything, so it is not run again; try another way, or say what is in the way"
            ),
        }
    }
}
