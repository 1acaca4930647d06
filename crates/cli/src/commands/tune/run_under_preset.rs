//! Steps a recorded run under a policy and counts what its detectors would have done. Nothing is held
//! back: the run goes on as it was recorded, so what a word would have changed is not seen.

use std::collections::BTreeMap;

use checkrein_core::event::{DetectorOrCapResponse, Event};
use checkrein_core::ids::{SourceName, UnixMillis};
use checkrein_core::input::{Input, StampedInput};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;

/// What a preset would have done to one run.
#[derive(Debug, Clone, Default)]
pub(super) struct PresetOutcomeForRun {
    /// The call, from 0, at which the task would have been halted, and by which detector.
    pub(super) halted: Option<(u64, String)>,
    /// Words before that.
    pub(super) words: u64,
    /// Output tokens from that call on.
    pub(super) tokens_after: u64,
    /// What each detector did before that, and the halt.
    pub(super) detectors: BTreeMap<String, DetectorActionCounts>,
}

/// What one detector did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DetectorActionCounts {
    pub(super) words: u64,
    pub(super) denied: u64,
    pub(super) halted: u64,
}

/// A recorded run that is stepped under a preset, input by input.
pub(super) struct RunUnderPreset<'a> {
    policy: &'a Policy,
    state: SessionState,
    calls: u64,
    clock: u64,
    pub(super) outcome: PresetOutcomeForRun,
}

impl<'a> RunUnderPreset<'a> {
    pub(super) fn new(policy: &'a Policy) -> Self {
        Self {
            policy,
            state: SessionState::default(),
            calls: 0,
            clock: 0,
            outcome: PresetOutcomeForRun::default(),
        }
    }

    pub(super) fn step_input(&mut self, input: &Input) {
        let found = &mut self.outcome;
        // The halted task has nothing more to say, but its tokens are counted.
        if found.halted.is_some() {
            if let Input::RoundEnded(round) = input {
                let tokens = round.tokens.as_ref().map_or(0, |tokens| tokens.output);
                found.tokens_after = found.tokens_after.saturating_add(tokens);
            }
            return;
        }
        self.clock += 1;
        // A trace has no clock: a millisecond per event keeps the order and reaches no cap.
        let (at, source) = (UnixMillis(self.clock), SourceName::new("trace"));
        let stamped = StampedInput::new_without_facts(at, source, input.clone());
        let step = apply_input_and_decide(self.policy, &mut self.state, stamped);
        for event in &step.events {
            if let Event::Detected(detected) = event {
                found.count_detection(self.calls, detected.detector.as_str(), detected.action);
            }
        }
        self.calls += u64::from(matches!(input, Input::ToolRequested(_)));
    }
}

impl PresetOutcomeForRun {
    fn count_detection(&mut self, call: u64, detector: &str, action: DetectorOrCapResponse) {
        let did = self.detectors.entry(detector.to_owned()).or_default();
        match action {
            DetectorOrCapResponse::Nudge => {
                did.words += 1;
                self.words += 1;
            }
            DetectorOrCapResponse::Deny => did.denied += 1,
            DetectorOrCapResponse::Halt => {
                did.halted += 1;
                self.halted
                    .get_or_insert_with(|| (call, detector.to_owned()));
            }
            DetectorOrCapResponse::Observe | DetectorOrCapResponse::Grace => {}
        }
    }
}
