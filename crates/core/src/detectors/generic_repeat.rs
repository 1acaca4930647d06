//! Detects the same tool with the same canonical arguments, again and again.
//!
//! Detected: `read a` `read a` `read a` …: a warning at ten times, critical at twenty times with
//! one and the same outcome.
//!
//! Not critical: `cargo test` twenty times with twenty different outcomes (a warning at ten).
//!
//! Polls are left to `known_poll_no_progress`. Twenty calls that are all still running are
//! critical, even polls, where the agent is known to report what comes back.

use super::{
    CRITICAL_COUNT, CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, WARNING_COUNT,
    identical_calls_in_flight, repeats_with_same_outcome_count,
};
use crate::event::LoopSeverity;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

pub(super) struct GenericRepeatDetector;

impl LoopDetector for GenericRepeatDetector {
    fn detector_name(&self) -> &'static str {
        "generic_repeat"
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let sighting = |level, count, in_flight| LoopPatternMatch {
            level,
            count,
            key: call.call,
            in_flight,
        };
        // For an agent that does not report outcomes, a call without one may have ended long ago.
        let open = match context.reports_outcome {
            true => identical_calls_in_flight(call, before),
            false => 0,
        };
        if open >= CRITICAL_COUNT {
            return Some(sighting(LoopSeverity::Critical, open, true));
        }
        // A poll is meant to be repeated. Only polls in flight, above, are this detector's
        // business.
        if call.poll {
            return None;
        }
        let same = |earlier: &&RecentCall| earlier.call == call.call;
        let repeats = before.calls_newest_first().filter(same).count() as u32;
        if repeats < WARNING_COUNT {
            return None;
        }
        // A changed outcome is news, so only an unbroken run of equal outcomes is critical.
        let still = repeats_with_same_outcome_count(call, before);
        if still >= CRITICAL_COUNT {
            return Some(sighting(LoopSeverity::Critical, still, false));
        }
        // The whole window is this call, and nothing that came back was new.
        if still + open >= CALL_WINDOW_LEN as u32 {
            return Some(sighting(LoopSeverity::Critical, still + open, true));
        }
        Some(sighting(LoopSeverity::Warning, repeats, false))
    }

    fn loop_advice_for_agent(&self, sighting: LoopPatternMatch) -> String {
        let count = sighting.count;
        match sighting.level {
            LoopSeverity::Warning => format!(
                "you have made this very call {count} times of late; use what it told you, or try something else"
            ),
            LoopSeverity::Critical if sighting.in_flight => format!(
                "{count} calls like this one are running or came back the same; it is not run again. Wait for what is running, or try something else"
            ),
            LoopSeverity::Critical => format!(
                "this very call came back the same {count} times; it is not run again. Try something else, or say what is in the way"
            ),
        }
    }
}
