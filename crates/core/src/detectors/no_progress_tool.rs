//! Detects a tool that answers the same under any arguments.
//!
//! Detected: `search x` "no results", `search y` "no results", …: a warning at five, never more.
//!
//! Not detected: tools that write or wait, empty answers, and failures (`same_failure` counts
//! those).

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::state::RecentCall;

pub(super) struct NoProgressToolDetector;

impl LoopDetector for NoProgressToolDetector {
    fn detector_name(&self) -> &'static str {
        "no_progress_tool"
    }

    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds {
            warning: Some(5),
            critical: None,
        }
    }

    fn can_finding_end_task(&self) -> bool {
        false
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        // "Saved" five times is what a tool that writes should say.
        if call.write || call.poll || call.waits {
            return None;
        }
        let mut answer = None;
        let (mut count, mut differs) = (0, false);
        let of_tool =
            |earlier: &&RecentCall| earlier.tool == call.tool && earlier.outcome.is_some();
        for earlier in before.calls_newest_first().filter(of_tool) {
            let speaks = !earlier.failed && !earlier.empty && !earlier.write && !earlier.waits;
            if !speaks || *answer.get_or_insert(earlier.answer_kind) != earlier.answer_kind {
                break;
            }
            count += 1;
            differs |= earlier.call != call.call;
        }
        // The very same call again is what `generic_repeat` counts.
        let level = context
            .thresholds_of_detector(self)
            .severity_of_count(count)?;
        let key = u64::from(call.tool) << 32 | u64::from(answer.unwrap_or_default());
        differs.then_some(LoopPatternMatch {
            level,
            count,
            key: EightByteDigest(key),
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        format!(
            "{call}: this tool has given the same answer {} times, whatever it was asked; use another source, or question what you are looking for",
            found.count
        )
    }
}
