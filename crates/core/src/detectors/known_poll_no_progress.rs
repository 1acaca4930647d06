//! Detects polling of something that does not change. Polls are meant to be repeated, so only an
//! unchanged answer counts.
//!
//! Detected: `process poll 7` → "failed to attach": a warning at ten equal answers, critical at
//! twenty.
//!
//! Not detected: `process poll 7` → "10 %", "20 %", "30 %" … With the preset `balanced`, shell
//! commands that sleep or wait are polls too, times and durations in an answer are no change, and
//! an answer that says "running" is never critical: a slow build is not stuck.

use super::{
    CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds,
    repeat_count_ignoring_times, unchanged_outcome_count,
};
use crate::event::LoopSeverity;
use crate::state::RecentCall;

pub(super) struct KnownPollNoProgressDetector;

impl LoopDetector for KnownPollNoProgressDetector {
    fn detector_name(&self) -> &'static str {
        "known_poll_no_progress"
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
        let balanced = context.repeats_need_unchanged_outcome();
        if !(call.poll || balanced && call.waits) {
            return None;
        }
        // Other calls in between do not reset the count: an agent may well do something else while
        // it waits.
        let count = match balanced {
            true => repeat_count_ignoring_times(call, before),
            false => unchanged_outcome_count(call, before),
        };
        let newest = before
            .calls_newest_first()
            .find(|earlier| earlier.call == call.call && earlier.outcome.is_some());
        // A command that sleeps and says "running" may say so for ever.
        let is_alive = balanced && call.poll && newest.is_some_and(|earlier| earlier.running);
        let level = match context
            .thresholds_of_detector(self)
            .severity_of_count(count)?
        {
            LoopSeverity::Critical if is_alive => LoopSeverity::Warning,
            level => level,
        };
        Some(LoopPatternMatch {
            level,
            count,
            key: call.call,
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        let count = found.count;
        match found.level {
            LoopSeverity::Warning => format!(
                "{call} gave the same answer {count} times; wait longer between polls, or look whether what you wait for is alive"
            ),
            LoopSeverity::Critical => format!(
                "{call} gave the same answer {count} times and is not run again; treat what you wait for as stuck"
            ),
        }
    }
}
