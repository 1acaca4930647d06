//! Detects a tool that fails in the same way, whatever its arguments.
//!
//! Detected: `edit a` "old_str not found", `edit b` "old_str not found", …: a warning at four,
//! critical at six. A shell is critical only for a command that is among the failed ones, since it
//! is not one tool.
//!
//! Not detected: a success in between, failures with another exit status or other counts in a
//! test summary. It never ends the task: a build may fail twenty times before it is mended.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::state::RecentCall;

pub(super) struct SameFailureDetector;

impl LoopDetector for SameFailureDetector {
    fn detector_name(&self) -> &'static str {
        "same_failure"
    }

    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds::new(4, 6)
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
        let mut family = None;
        let (mut count, mut recurs) = (0, false);
        let of_tool =
            |earlier: &&RecentCall| earlier.tool == call.tool && earlier.outcome.is_some();
        for earlier in before.calls_newest_first().filter(of_tool) {
            if !earlier.failed || *family.get_or_insert(earlier.answer_kind) != earlier.answer_kind
            {
                break;
            }
            count += 1;
            recurs |= earlier.call == call.call;
        }
        let level = match context
            .thresholds_of_detector(self)
            .severity_of_count(count)?
        {
            LoopSeverity::Critical if call.shell && !recurs => LoopSeverity::Warning,
            level => level,
        };
        let key = u64::from(call.tool) << 32 | u64::from(family.unwrap_or_default());
        Some(LoopPatternMatch {
            level,
            count,
            key: EightByteDigest(key),
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        let count = found.count;
        match found.level {
            LoopSeverity::Warning => format!(
                "{call}: this tool has failed {count} times in a row in the same way; read the error, and change the approach rather than the arguments"
            ),
            LoopSeverity::Critical => format!(
                "{call}: this tool has failed {count} times in a row in the same way, so this call is not run; look at what the error names before you try again, or say what is in the way"
            ),
        }
    }
}
