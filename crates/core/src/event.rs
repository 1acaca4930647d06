//! Events: facts in the past tense, appended to the log. State is their fold, so nothing that
//! decisions depend on may be kept anywhere else.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::digest::{Digest, EightByteDigest};
use crate::effect::Effect;
use crate::explain::DecisionExplanation;
use crate::ids::{DetectorName, EventSeq, ScopeId, SourceName, TaskId, VerifierName};
use crate::input::{Input, NewestInvalidatingActNumbers, StampedInput, TreeDigests};
use crate::transition::Transition;

/// Version of the event vocabulary this build writes.
pub const EVENT_VERSION: u16 = 1;

/// A fact in a session's log.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are inputs, taken one at a time: a box would be one more allocation each"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The session's first event: the policy it is judged by from now on.
    PolicySealed {
        /// Digest of the policy blob.
        policy: Digest,
        /// Version of this vocabulary.
        v: u16,
        /// Digest of the blob that says how the guarded files were then, if any were looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guarded: Option<Digest>,
        /// Verifiers whose programs were all there then; older logs do not say.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        equipped: Vec<VerifierName>,
    },
    /// A person sealed another policy during the session.
    PolicyRenewed {
        /// Digest of the policy blob.
        policy: Digest,
        /// As of [`Event::PolicySealed`].
        guarded: Option<Digest>,
        /// How it was told that a person asked.
        by: String,
    },
    /// An input came in.
    Input(StampedInput),
    /// Another installed entry delivered the same input, which is counted once.
    Repeated {
        /// The input it repeats.
        of: EventSeq,
        /// The entry that delivered it this time.
        source: SourceName,
        /// What kind of input.
        what: InputWithoutNativeId,
        /// Its scope.
        scope: ScopeId,
    },
    /// A task began.
    TaskOpened {
        /// Its ordinal.
        task: TaskId,
        /// What opened it.
        by: TaskOrigin,
        /// The tree at its start, if known.
        tree: Option<TreeDigests>,
        /// The newest acts at its start, if only they are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        acts: Option<NewestInvalidatingActNumbers>,
    },
    /// Work went on after the task's transition, without a new prompt.
    TaskReopened {
        /// Its ordinal.
        task: TaskId,
    },
    /// A detector found a pattern.
    Detected(LoopPatternDetected),
    /// A cap was reached.
    CapReached {
        /// Which cap.
        cap: CapKind,
        /// The scope that reached it.
        scope: ScopeId,
    },
    /// Verification for a stop was asked for.
    Requested {
        /// The stop's input.
        stop: EventSeq,
        /// Its scope.
        scope: ScopeId,
        /// The requested effects.
        effects: Vec<Effect>,
    },
    /// A stop met this set of failures, or was held up by the same as others.
    FailureSetMet {
        /// Identity of the set, as the cascade computes it.
        set: EightByteDigest,
        /// Identity of the subjects it was met on.
        subjects: EightByteDigest,
    },
    /// An input was answered.
    DecisionMade(DecisionOnInput),
    /// A task ended, or ended better than before.
    TaskEnded {
        /// Its ordinal.
        task: TaskId,
        /// How.
        transition: Transition,
    },
}

/// Every kind this version knows; a row of another kind is kept unread.
pub const EVENT_KINDS: &[&str] = &[
    "policy_sealed",
    "policy_renewed",
    "session_started",
    "prompt_submitted",
    "tool_requested",
    "tool_returned",
    "round_ended",
    "stop_requested",
    "stop_failed",
    "session_ended",
    "evidence_arrived",
    "tree_read",
    "process_failed",
    "interrupted",
    "time_passed",
    "stance_used",
    "config_edited",
    "person_answered",
    "repeated",
    "task_opened",
    "task_reopened",
    "detected",
    "cap_reached",
    "requested",
    "failure_set_met",
    "decision_made",
    "task_ended",
];

impl Event {
    /// The event's kind, as in logs and in the store's `kind` column.
    pub fn log_event_kind(&self) -> &'static str {
        match self {
            Event::PolicySealed { .. } => "policy_sealed",
            Event::PolicyRenewed { .. } => "policy_renewed",
            Event::Input(stamped) => match stamped.input {
                Input::SessionStarted(_) => "session_started",
                Input::PromptSubmitted(_) => "prompt_submitted",
                Input::ToolRequested(_) => "tool_requested",
                Input::ToolReturned(_) => "tool_returned",
                Input::RoundEnded(_) => "round_ended",
                Input::StopRequested(_) => "stop_requested",
                Input::StopFailed(_) => "stop_failed",
                Input::SessionEnded(_) => "session_ended",
                Input::EvidenceArrived(_) => "evidence_arrived",
                Input::TreeRead(_) => "tree_read",
                Input::ProcessFailed(_) => "process_failed",
                Input::Interrupted => "interrupted",
                Input::TimePassed => "time_passed",
                Input::StanceUsed(_) => "stance_used",
                Input::ConfigEdited(_) => "config_edited",
                Input::PersonAnswered(_) => "person_answered",
            },
            Event::Repeated { .. } => "repeated",
            Event::TaskOpened { .. } => "task_opened",
            Event::TaskReopened { .. } => "task_reopened",
            Event::Detected(_) => "detected",
            Event::CapReached { .. } => "cap_reached",
            Event::Requested { .. } => "requested",
            Event::FailureSetMet { .. } => "failure_set_met",
            Event::DecisionMade(_) => "decision_made",
            Event::TaskEnded { .. } => "task_ended",
        }
    }
}

/// Inputs without a native id, which several installed entries may deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputWithoutNativeId {
    /// A prompt.
    Prompt,
    /// A stop.
    Stop,
}

/// What opened a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOrigin {
    /// A prompt that we saw.
    Prompt,
    /// The first tool request or stop that found no task.
    Work,
}

/// A cap of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapKind {
    /// Rounds.
    Iterations,
    /// Output tokens.
    Tokens,
    /// Agent time.
    WallClock,
    /// Dollars.
    Cost,
    /// Tool requests.
    ToolCalls,
    /// Continuations of the session.
    Continues,
}

impl CapKind {
    /// The detail of `hard_cap`.
    pub fn as_str(self) -> &'static str {
        match self {
            CapKind::Iterations => "iterations",
            CapKind::Tokens => "tokens",
            CapKind::WallClock => "wall_clock",
            CapKind::Cost => "cost",
            CapKind::ToolCalls => "tool_calls",
            CapKind::Continues => "continues",
        }
    }
}

/// How bad a detector's pattern is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopSeverity {
    /// The agent is told.
    Warning,
    /// The call must not run.
    Critical,
}

impl LoopSeverity {
    /// Returns a warning in place of a critical if `spares` is set.
    #[must_use]
    pub(crate) fn at_most_warning_if(self, spares: bool) -> Self {
        match spares {
            true => Self::Warning,
            false => self,
        }
    }
}

/// What was done about a finding of a detector or a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetectorOrCapResponse {
    /// Recorded only: the agent was already told at this multiple of ten.
    Observe,
    /// The agent was told.
    Nudge,
    /// The call was denied.
    Deny,
    /// The one call over a cap was denied with the request to sum up.
    Grace,
    /// The task was ended.
    Halt,
}

/// See [`Event::Detected`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopPatternDetected {
    /// Where.
    pub scope: ScopeId,
    /// By which detector.
    pub detector: DetectorName,
    /// How bad.
    pub level: LoopSeverity,
    /// How often the pattern was seen in the window.
    pub count: u32,
    /// Identity of the pattern. The agent is told once per key and multiple of ten.
    pub key: EightByteDigest,
    /// The response.
    pub action: DetectorOrCapResponse,
    /// Where the pattern stands on its ladder after this, if each pattern has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<LadderRung>,
}

/// What was done about a pattern so far, since the last news in its scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LadderRung {
    /// Nothing.
    #[default]
    Unsaid,
    /// The agent was told.
    Told,
    /// A call was denied.
    Denied,
}

/// See [`Event::DecisionMade`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOnInput {
    /// The input it answers.
    pub answers: EventSeq,
    /// Its scope.
    pub scope: ScopeId,
    /// The answer.
    pub decision: Decision,
    /// The chain of facts behind it.
    pub why: DecisionExplanation,
}

/// An event at its place in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its place.
    pub seq: EventSeq,
    /// The fact.
    pub event: Event,
}

/// One event as one line of JSON.
pub fn encode_event(event: &Event) -> Vec<u8> {
    // Events hold strings, integers and enums only, so serialising cannot fail.
    serde_json::to_vec(event).unwrap_or_default()
}

/// Reads what [`encode_event`] wrote.
///
/// # Errors
/// If the bytes are not an event this version knows.
pub fn decode_event(bytes: &[u8]) -> Result<Event, serde_json::Error> {
    serde_json::from_slice(bytes)
}
