//! Detects identical calls that have all not come back yet.
//!
//! Detected: `download x` twenty times in parallel: a warning at ten, critical at twenty.
//!
//! Not detected: twenty different downloads, or an agent that never reports outcomes.

use super::{
    CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds,
    identical_calls_in_flight,
};
use crate::state::RecentCall;

pub(super) struct IdenticalCallsInFlightDetector;

impl LoopDetector for IdenticalCallsInFlightDetector {
    fn detector_name(&self) -> &'static str {
        "in_flight"
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
        // For an agent that does not report outcomes, a call without one may have ended long ago.
        if !context.reports_outcome {
            return None;
        }
        let count = identical_calls_in_flight(call, before);
        let level = context
            .thresholds_of_detector(self)
            .severity_of_count(count)?;
        Some(LoopPatternMatch {
            level,
            count,
            key: call.call,
            in_flight: true,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        format!(
            "{call}: {} identical calls are running and none has come back; wait for one of them before you make another",
            found.count
        )
    }
}
