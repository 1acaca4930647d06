//! Defines the supervisor's decisions and what they rest on. A call that nobody judged is
//! `Unjudged`, never `Allow`.

use checkrein_models::ChatMessage;
use checkrein_runtime::reviewer::{UnitFraction, UnusableModelAnswer};
use checkrein_runtime::veto::InvalidToolCallError;
use serde_json::{Map, Value};

use super::SupervisionNotWorthReason;

/// What should become of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolCallVerdict {
    /// It runs as it is.
    Allow,
    /// It does not run.
    Veto,
    /// It runs with other arguments.
    Rewrite,
    /// Nobody judged it. It runs, as it would without a supervisor.
    Unjudged,
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq)]
pub struct PreToolDecision {
    /// What should become of it.
    pub verdict: ToolCallVerdict,
    /// Why, for people and for the agent.
    pub reason: String,
    /// What it runs with, if rewritten.
    pub new_args: Option<Map<String, Value>>,
    /// How sure the model is; `None` if it did not say, or was not asked.
    pub confidence: Option<UnitFraction>,
    /// What the verdict rests on.
    pub basis: ToolCallVerdictBasis,
    /// Whether it is the answer to an earlier call like this one.
    pub cached: bool,
}

/// What a verdict rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCallVerdictBasis {
    /// The model's word.
    Model,
    /// The model gave this verdict with too little confidence: the call is allowed.
    TooUnsure(ToolCallVerdict),
    /// The call does not fit the tools or their schemas; no model was asked.
    Misfit(InvalidToolCallError),
    /// The host's policy refuses it.
    Policy,
    /// Nobody judged it.
    Unjudged(UnjudgedReason),
}

/// Why nobody judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnjudgedReason {
    /// It is switched off.
    #[error("switched off")]
    Disabled,
    /// It stays off in this run because it would cost more than it saves.
    #[error("not worth it: {0}")]
    NotWorth(SupervisionNotWorthReason),
    /// The tool only looks, and such calls are not asked about.
    #[error("not asked: the tool only reads")]
    OutOfScope,
    /// The model has been asked as often as the cap of this run allows.
    #[error("the cap of {cap} questions a run is spent")]
    CapSpent {
        /// The cap.
        cap: u32,
    },
    /// The model gave no usable answer.
    #[error("{0}")]
    NoAnswer(UnusableModelAnswer),
}

impl PreToolDecision {
    /// Returns whether the call runs, possibly with other arguments.
    pub fn allows_tool_call(&self) -> bool {
        self.verdict != ToolCallVerdict::Veto
    }

    /// Renders the result of a call that did not run.
    pub(super) fn blocked_call_message(&self, tool: &str) -> String {
        // The model may give no reason; the agent must still see who refused the call.
        let reason = match self.reason.as_str() {
            "" => "the supervisor is against it",
            reason => reason,
        };
        let sure = match self.confidence {
            Some(confidence) => format!(" (confidence {confidence})"),
            None => String::new(),
        };
        format!(
            "[verifier-veto] {tool} was not run: {reason}{sure}. Do not repeat this call; find another way to the goal."
        )
    }

    pub(super) fn unjudged_tool_call_decision(why: UnjudgedReason) -> Self {
        Self {
            verdict: ToolCallVerdict::Unjudged,
            reason: why.to_string(),
            new_args: None,
            confidence: None,
            basis: ToolCallVerdictBasis::Unjudged(why),
            cached: false,
        }
    }

    pub(super) fn refused_decision(reason: String, basis: ToolCallVerdictBasis) -> Self {
        Self {
            verdict: ToolCallVerdict::Veto,
            reason,
            new_args: None,
            confidence: None,
            basis,
            cached: false,
        }
    }
}

/// The rating of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgressRating {
    /// From 0 to 1; `None` if nobody rated it.
    pub score: Option<UnitFraction>,
    /// What the step was, or why nobody rated it.
    pub summary: String,
    /// What to try instead.
    pub suggested_action: Option<String>,
    /// Why nobody rated it.
    pub unjudged: Option<UnjudgedReason>,
}

/// Builds the message to a stalling agent, as a user's message.
pub(super) fn stall_nudge_message(window: u32, suggestion: Option<&str>) -> ChatMessage {
    let steps = if window == 1 {
        "Your last step".to_owned()
    } else {
        format!("Your last {window} steps")
    };
    let action = suggestion.unwrap_or(
        "say what you know by now and what stands in the way, then take one step of another kind",
    );
    ChatMessage::User(format!(
        "[progress-check] {steps} brought you no nearer to the goal. Try something else: {action}"
    ))
}
