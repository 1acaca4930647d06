//! Detects two to six calls that go round in the same order with the same outcomes.
//!
//! Detected: `read a` `test` `read a` `test` and then `read a` again, if nothing that came back was
//! new: a warning after two laps, critical after three.
//!
//! Not detected: `edit a` `test` … while the tests say something new, one call on its own
//! (`generic_repeat` counts that), and a cycle in which something is waited for.

use super::{CallWindow, DetectorContext, LoopDetector, LoopPatternMatch, LoopThresholds};
use crate::digest::EightByteDigest;
use crate::state::RecentCall;

/// Calls in one lap of a cycle.
const PERIODS: std::ops::RangeInclusive<usize> = 2..=6;

pub(super) struct CycleDetector;

impl LoopDetector for CycleDetector {
    fn detector_name(&self) -> &'static str {
        "cycle"
    }

    /// In laps.
    fn default_thresholds(&self) -> LoopThresholds {
        LoopThresholds::new(2, 3)
    }

    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch> {
        let calls: Vec<&RecentCall> = before.calls_newest_first().collect();
        // Most laps first; of equally many, the shortest period.
        let (laps, lap) = PERIODS
            .filter_map(|period| {
                let lap = calls.get(..period)?;
                Some((complete_lap_count(&calls, lap, call)?, lap))
            })
            .rev()
            .max_by_key(|(laps, _)| *laps)?;
        let level = context
            .thresholds_of_detector(self)
            .severity_of_count(laps)?;
        // A click that answers the same may do something each time.
        let level = level.at_most_warning_if(lap.iter().any(|earlier| earlier.acts));
        // Any order of the same calls gives the same key: a cycle has no first call.
        let key = lap.iter().fold(0, |key, earlier| {
            key ^ earlier
                .call
                .0
                .rotate_left(earlier.outcome.unwrap_or_default() % 64)
        });
        Some(LoopPatternMatch {
            level,
            count: laps,
            key: EightByteDigest(key),
            in_flight: false,
        })
    }

    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String {
        format!(
            "{call} would begin the same round of calls once more, after {} rounds that all came back the same; leave this round, look for what all of these calls miss, or say what is in the way",
            found.count
        )
    }
}

/// Returns how many laps equal to `lap`, newest first, lie behind the call that would go on with
/// them. `None` if it would not, or if the lap is no cycle.
fn complete_lap_count(
    calls: &[&RecentCall],
    lap: &[&RecentCall],
    call: &RecentCall,
) -> Option<u32> {
    // The oldest call of a lap is the one that begins it.
    let first = lap.last()?;
    let is_settled =
        |earlier: &&RecentCall| earlier.outcome.is_some() && !earlier.poll && !earlier.waits;
    let is_cycle = first.call == call.call
        && lap.iter().all(is_settled)
        && lap.iter().any(|earlier| earlier.call != first.call);
    if !is_cycle {
        return None;
    }
    let same = |(one, other): (&&RecentCall, &&RecentCall)| {
        one.call == other.call && one.answer_kind == other.answer_kind
    };
    let laps = calls
        .chunks_exact(lap.len())
        .take_while(|earlier| earlier.iter().zip(lap).all(same))
        .count();
    Some(laps as u32)
}
