//! Detects an agent that keeps asking for a tool that does not exist.
//!
//! Detected: `web_find` → "unknown tool", again and again, with any arguments: a warning at two,
//! critical at four.
//!
//! Not detected: two unknown names in turn, or a call of another tool in between.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::state::RecentCall;

pub(super) struct UnknownToolDetector;

impl LoopDetector for UnknownToolDetector {
    fn detector_name(&self) -> &'static str {
        "unknown_tool"
    }

    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds::new(2, 4)
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let is_unknown = |earlier: &&RecentCall| earlier.tool == call.tool && earlier.unknown_tool;
        let count = before.calls_newest_first().take_while(is_unknown).count() as u32;
        let level = context
            .thresholds_of_detector(self)
            .severity_of_count(count)?;
        Some(LoopPatternMatch {
            level,
            count,
            key: EightByteDigest(u64::from(call.tool)),
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        format!(
            "{call}: there is no such tool, and it was asked for {} times in a row; use a tool from your list, or answer without it",
            found.count
        )
    }
}
