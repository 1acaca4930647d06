//! Detects polling of something that does not change. Polls are meant to be repeated, so only an
//! unchanged answer counts.
//!
//! Detected: `process poll 7` → "running": a warning at ten equal answers, critical at twenty.
//!
//! Not detected: `process poll 7` → "10 %", "20 %", "30 %" …

use super::{
    CRITICAL_COUNT, CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, WARNING_COUNT,
    repeats_with_same_outcome_count,
};
use crate::event::LoopSeverity;
use crate::state::RecentCall;

pub(super) struct KnownPollNoProgressDetector;

impl LoopDetector for KnownPollNoProgressDetector {
    fn detector_name(&self) -> &'static str {
        "known_poll_no_progress"
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        _: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        if !call.poll {
            return None;
        }
        // Other calls in between do not reset the count: an agent may well do something else while
        // it waits.
        let count = repeats_with_same_outcome_count(call, before);
        let level = match count {
            CRITICAL_COUNT.. => LoopSeverity::Critical,
            WARNING_COUNT.. => LoopSeverity::Warning,
            _ => return None,
        };
        Some(LoopPatternMatch {
            level,
            count,
            key: call.call,
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, sighting: LoopPatternMatch) -> String {
        let count = sighting.count;
        match sighting.level {
            LoopSeverity::Warning => format!(
                "this poll gave the same answer {count} times; wait longer between polls, or look whether what you wait for is alive"
            ),
            LoopSeverity::Critical => format!(
                "this poll gave the same answer {count} times and is not run again; treat what you wait for as stuck"
            ),
        }
    }
}
