//! Detects the same tool with the same canonical arguments, again and again.
//!
//! Detected: `read a` `read a` `read a` …: a warning at ten times, critical at twenty times with
//! one and the same outcome. With the preset `balanced` only unchanged outcomes count, and two
//! and three are enough.
//!
//! Not critical: `cargo test` twenty times with twenty different outcomes (a warning at ten).
//!
//! Polls are left to `known_poll_no_progress`. Twenty calls that are all still running are
//! critical, even polls, where the agent is known to report what comes back.

use super::{
    CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds,
    identical_calls_in_flight, repeat_count_since_unseen_change, unchanged_outcome_count,
};
use crate::event::LoopSeverity;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

pub(super) struct GenericRepeatDetector;

impl LoopDetector for GenericRepeatDetector {
    fn detector_name(&self) -> &'static str {
        "generic_repeat"
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
        let thresholds = context.thresholds_of_detector(self);
        let found = |level, count, in_flight| LoopPatternMatch {
            level,
            count,
            key: call.call,
            in_flight,
        };
        if context.repeats_need_unchanged_outcome() {
            // A wait is meant to be repeated.
            if call.poll || call.waits {
                return None;
            }
            let count = repeat_count_since_unseen_change(call, before);
            let level = thresholds.severity_of_count(count)?;
            return Some(found(level.at_most_warning_if(call.acts), count, false));
        }
        let is_critical = |count: u32| thresholds.critical.is_some_and(|least| count >= least);
        // For an agent that does not report outcomes, a call without one may have ended long ago.
        let open = match context.reports_outcome {
            true => identical_calls_in_flight(call, before),
            false => 0,
        };
        if is_critical(open) {
            return Some(found(LoopSeverity::Critical, open, true));
        }
        // A poll is meant to be repeated. Only polls in flight, above, are this detector's
        // business.
        if call.poll {
            return None;
        }
        let same = |earlier: &&RecentCall| earlier.call == call.call;
        let repeats = before.calls_newest_first().filter(same).count() as u32;
        // A changed outcome is news, so only an unbroken run of equal outcomes is critical.
        let still = unchanged_outcome_count(call, before);
        if is_critical(still) {
            return Some(found(LoopSeverity::Critical, still, false));
        }
        // The whole window is this call, and nothing that came back was new.
        if thresholds.critical.is_some() && still + open >= CALL_WINDOW_LEN as u32 {
            return Some(found(LoopSeverity::Critical, still + open, true));
        }
        let warns = thresholds.warning.is_some_and(|least| repeats >= least);
        warns.then(|| found(LoopSeverity::Warning, repeats, false))
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        let count = found.count;
        match found.level {
            LoopSeverity::Warning => format!(
                "{call} was called {count} times with these very arguments; use what it told you, change the arguments, or try another way"
            ),
            LoopSeverity::Critical if found.in_flight => format!(
                "{call}: {count} calls like this one are running or came back the same, so it is not run again; wait for what is running, or try another way"
            ),
            LoopSeverity::Critical => format!(
                "{call} came back with the same result {count} times, so it is not run again; try another way, or say what is in the way"
            ),
        }
    }
}
