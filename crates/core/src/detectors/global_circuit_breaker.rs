//! Detects thirty calls in a row, of any tools, none of which made progress. Progress is a (call,
//! outcome) pair that is new in the task, or a successful write.
//!
//! Detected: thirty calls that all came back as they had come back before.
//!
//! Not detected: thirty calls of which one brought something new.
//!
//! With the preset `balanced` a failure is never progress and waiting does not count, and with
//! `seed` any thirty calls of a task are detected.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::state::{CALL_WINDOW_LEN, RecentCall};

pub(super) struct CallsWithoutProgressDetector;

impl LoopDetector for CallsWithoutProgressDetector {
    fn detector_name(&self) -> &'static str {
        "global_circuit_breaker"
    }

    /// The length of the window. It has no warning.
    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds {
            warning: None,
            critical: Some(CALL_WINDOW_LEN as u32),
        }
    }

    fn detect_loop(
        &self,
        _: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let by_news = context.repeats_need_unchanged_outcome();
        let is_progress = |call: &RecentCall| match by_news {
            // An error that was never seen before leads nowhere, and thirty of them lead nowhere.
            true => call.news,
            false => call.progress,
        };
        let count = if context.loops.literal_breaker {
            u32::try_from(context.calls_before).unwrap_or(u32::MAX)
        } else {
            before
                .calls_newest_first()
                // Who waits for a slow build makes no progress either; `known_poll_no_progress` counts
                // that.
                .filter(|call| !(by_news && (call.poll || call.waits)))
                // A call that has not come back may still bring progress, so it ends the run.
                .take_while(|call| call.outcome.is_some() && !is_progress(call))
                .count() as u32
        };
        Some(LoopPatternMatch {
            level: context
                .thresholds_of_detector(self)
                .severity_of_count(count)?,
            count,
            // The pattern is about the task and not about one call, so it needs one key only.
            key: EightByteDigest(0),
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, _: &str) -> String {
        format!(
            "{} calls in a row brought nothing new; stop, say what is done and what is in the way",
            found.count
        )
    }
}
