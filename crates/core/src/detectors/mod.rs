//! Loop detectors: bad patterns in the stream of tool calls. Call N is judged before it runs, from
//! the at most 30 earlier calls of the same task and scope.
//!
//! A detector is a pure function of the call, the window and the policy, and has no memory. What
//! follows from a finding is decided by the ladder in `tool_request`.
//!
//! To add a detector, add a file with a unit struct and one line in [`ALL`].
//! docs/design/008-loops.md says where each rule comes from and what was measured.

mod cycle;
mod generic_repeat;
mod global_circuit_breaker;
mod in_flight;
mod known_poll_no_progress;
mod no_progress_tool;
pub mod openclaw;
mod ping_pong;
mod recorded_advice;
mod same_failure;
mod unknown_tool;

use self::openclaw::OpenClawRule;
pub(crate) use self::recorded_advice::loop_advice_under_old_policy;

use crate::digest::EightByteDigest;
use crate::event::LoopSeverity;
use crate::policy::{DetectorThresholds, LoopEscalationMode, LoopPolicy};
use crate::state::{CALL_WINDOW_LEN, RecentCall};

/// Every detector, in the order in which they are asked.
pub const ALL: &[&dyn LoopDetector] = &[
    // The breaker comes first, because only the first critical of a call counts.
    &global_circuit_breaker::CallsWithoutProgressDetector,
    &unknown_tool::UnknownToolDetector,
    &known_poll_no_progress::KnownPollNoProgressDetector,
    &in_flight::IdenticalCallsInFlightDetector,
    &cycle::CycleDetector,
    &ping_pong::PingPongDetector,
    &generic_repeat::GenericRepeatDetector,
    &same_failure::SameFailureDetector,
    &no_progress_tool::NoProgressToolDetector,
];

/// The detectors of the preset `seed`, as the seed document describes them.
pub const SEED: &[&str] = &[
    "global_circuit_breaker",
    "known_poll_no_progress",
    "ping_pong",
    "generic_repeat",
];

/// The detectors of the preset `balanced`.
pub const BALANCED: &[&str] = &[
    "global_circuit_breaker",
    "unknown_tool",
    "known_poll_no_progress",
    "in_flight",
    "cycle",
    "generic_repeat",
    "same_failure",
    "no_progress_tool",
];

/// Returns the detector of this name.
pub fn detector_by_name(name: &str) -> Option<&'static dyn LoopDetector> {
    ALL.iter()
        .copied()
        .find(|detector| detector.detector_name() == name)
}

/// From which count on a detector speaks, in its own unit: calls, or laps of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopThresholds {
    /// A warning; `None`: never.
    pub warning: Option<u32>,
    /// The call must not run; `None`: never.
    pub critical: Option<u32>,
}

impl LoopThresholds {
    pub(crate) const fn new(warning: u32, critical: u32) -> Self {
        Self {
            warning: Some(warning),
            critical: Some(critical),
        }
    }

    /// Returns how bad this count is, if it is bad at all.
    fn severity_of_count(self, count: u32) -> Option<LoopSeverity> {
        let reached = |threshold: Option<u32>| threshold.is_some_and(|least| count >= least);
        match (reached(self.critical), reached(self.warning)) {
            (true, _) => Some(LoopSeverity::Critical),
            (false, true) => Some(LoopSeverity::Warning),
            (false, false) => None,
        }
    }
}

/// The calls before the one being judged.
#[derive(Debug, Clone, Copy)]
pub struct CallWindow<'a> {
    calls: &'a std::collections::VecDeque<RecentCall>,
    len: usize,
    history: usize,
}

impl<'a> CallWindow<'a> {
    /// Returns all calls of a scope's window except the newest, which is the one being judged.
    pub fn calls_before_newest(
        calls: &'a std::collections::VecDeque<RecentCall>,
        loops: &LoopPolicy,
    ) -> Self {
        let history = loops
            .history
            .map_or(CALL_WINDOW_LEN, |calls| calls as usize);
        Self {
            calls,
            len: calls.len().saturating_sub(1),
            history: history.min(CALL_WINDOW_LEN),
        }
    }

    /// Iterates newest first, over at most [`CALL_WINDOW_LEN`] calls.
    pub fn calls_newest_first(&self) -> impl Iterator<Item = &'a RecentCall> + use<'a> {
        self.calls.iter().take(self.len).rev().take(self.history)
    }
}

/// A pattern found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPatternMatch {
    /// How bad.
    pub level: LoopSeverity,
    /// How many calls show it, or how many laps.
    pub count: u32,
    /// What it is about. The ladder climbs for each key on its own.
    pub key: EightByteDigest,
    /// Calls are among them that have not come back.
    pub in_flight: bool,
}

/// What else a detector may need to know.
#[derive(Debug, Clone, Copy)]
pub struct DetectorContext<'a> {
    /// The settings in force.
    pub loops: &'a LoopPolicy,
    /// Tool requests of the task before this one.
    pub calls_before: u64,
    /// The agent is known to report what came of each call.
    pub reports_outcome: bool,
}

impl DetectorContext<'_> {
    /// Returns the thresholds in force of this detector.
    pub(crate) fn thresholds_of_detector(&self, detector: &dyn LoopDetector) -> LoopThresholds {
        let name = detector.detector_name();
        let set = |of: &&DetectorThresholds| of.detector.as_str() == name;
        match self.loops.thresholds.iter().find(set) {
            Some(set) => LoopThresholds {
                warning: set.warning,
                critical: set.critical,
            },
            None => detector.default_thresholds(),
        }
    }

    /// Returns whether only calls with an unchanged outcome count as repeats.
    fn repeats_need_unchanged_outcome(&self) -> bool {
        self.loops.ladder == LoopEscalationMode::PerPattern
    }
}

/// Whoever found a pattern.
#[derive(Clone, Copy)]
pub(crate) enum FindingSource {
    /// A detector of ours.
    Own(&'static dyn LoopDetector),
    /// A rule of OpenClaw's.
    OpenClaw(&'static OpenClawRule),
}

impl FindingSource {
    pub(crate) fn detector_name(self) -> &'static str {
        match self {
            Self::Own(detector) => detector.detector_name(),
            Self::OpenClaw(rule) => rule.detector_name(),
        }
    }

    pub(crate) fn loop_advice_for_agent(self, found: LoopPatternMatch, call: &str) -> String {
        match self {
            Self::Own(detector) => detector.loop_advice_for_agent(found, call),
            Self::OpenClaw(rule) => rule.loop_advice_for_agent(found.count, call),
        }
    }
}

/// A detector of one kind of loop.
pub trait LoopDetector: Sync {
    /// Its name in config, findings and transitions.
    fn detector_name(&self) -> &'static str;
    /// The thresholds where the policy sets none.
    fn default_thresholds(&self) -> LoopThresholds;
    /// Returns whether a finding of it may end the task, by the ladder of `balanced`. A detector
    /// that may not end it denies one call for each key, until there is news.
    fn can_finding_end_task(&self) -> bool {
        true
    }
    /// Judges a call by the calls before it.
    fn detect_loop(
        &self,
        call: &RecentCall,
        before: CallWindow<'_>,
        context: DetectorContext<'_>,
    ) -> Option<LoopPatternMatch>;
    /// What to tell the agent: what repeats, and what to do instead. `call` names the call as in
    /// "`Bash` (cargo test)".
    fn loop_advice_for_agent(&self, found: LoopPatternMatch, call: &str) -> String;
}

/// Returns how often, newest first, the same call came back with one and the same outcome. Other
/// calls in between are skipped. A call without an outcome proves nothing.
fn unchanged_outcome_count(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    repeat_count(call, before.calls_newest_first(), |earlier| earlier.outcome)
}

/// As [`unchanged_outcome_count`], where times, durations and process ids do not count as changes.
fn repeat_count_ignoring_times(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    repeat_count(call, before.calls_newest_first(), returned_outcome_kind)
}

/// As [`repeat_count_ignoring_times`], since the newest call of another kind whose outcome is not
/// known and that may have changed something.
fn repeat_count_since_unseen_change(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    let is_unseen_change = |earlier: &RecentCall| {
        earlier.outcome.is_none() && earlier.call != call.call && earlier.may_change_files()
    };
    let since = before
        .calls_newest_first()
        .take_while(|earlier| !is_unseen_change(earlier));
    repeat_count(call, since, returned_outcome_kind)
}

fn returned_outcome_kind(call: &RecentCall) -> Option<u32> {
    call.outcome.map(|_| call.answer_kind)
}

fn repeat_count<'a>(
    call: &RecentCall,
    newest_first: impl Iterator<Item = &'a RecentCall>,
    outcome_of: impl Fn(&RecentCall) -> Option<u32>,
) -> u32 {
    let mut outcomes = newest_first
        .filter(|earlier| earlier.call == call.call)
        .filter_map(outcome_of)
        .peekable();
    // The run of equal outcomes must include the newest: an older run has been broken since.
    let newest = outcomes.peek().copied();
    outcomes
        .take_while(|outcome| Some(*outcome) == newest)
        .count() as u32
}

/// Returns how many identical calls have not come back.
fn identical_calls_in_flight(call: &RecentCall, before: CallWindow<'_>) -> u32 {
    let open = |earlier: &&RecentCall| earlier.call == call.call && earlier.outcome.is_none();
    before.calls_newest_first().filter(open).count() as u32
}

#[cfg(test)]
mod tests;
