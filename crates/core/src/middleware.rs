//! Answers of middleware layers. The runtime asks them before an input is stamped, so each answer
//! is a fact of the input: it is in the log and replayed from there (law 3). A layer only tightens
//! (law 11): its "pass" is no opinion and lifts nothing that others say.

use serde::{Deserialize, Serialize};

use crate::ids::LayerName;

/// Where a layer can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MiddlewareStage {
    /// A session began, or was taken up again. It can only look.
    SessionStart,
    /// The agent wants to use a tool, and nothing else refuses the call.
    BeforeTool,
    /// A tool came back: the agent has not seen the result yet.
    AfterTool,
    /// The same result, in the form that later rounds of the conversation see.
    PersistResult,
    /// One model response and all its calls are over. A word, or the end, is all that can follow.
    RoundEnd,
    /// The agent says that it is done; no check has run yet.
    BeforeStop,
    /// The session is over. It can only look.
    SessionEnd,
}

impl MiddlewareStage {
    /// All, in the order in which a session meets them.
    pub const ALL: &'static [Self] = &[
        Self::SessionStart,
        Self::BeforeTool,
        Self::AfterTool,
        Self::PersistResult,
        Self::RoundEnd,
        Self::BeforeStop,
        Self::SessionEnd,
    ];

    /// Its name, as configs and plug-ins have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::PersistResult => "persist_result",
            Self::RoundEnd => "round_end",
            Self::BeforeStop => "before_stop",
            Self::SessionEnd => "session_end",
        }
    }

    /// The stage of this name.
    pub fn middleware_stage_from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|stage| stage.as_str() == name)
    }

    /// Returns whether there is something at this stage that a layer has to let pass, so that one which
    /// cannot answer leaves it unjudged.
    pub fn can_stage_affect_decision(self) -> bool {
        match self {
            Self::BeforeTool | Self::AfterTool | Self::PersistResult | Self::BeforeStop => true,
            // At these stages nothing waits for a layer.
            Self::SessionStart | Self::RoundEnd | Self::SessionEnd => false,
        }
    }
}

/// What a layer said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiddlewareAnswerFact {
    /// Which.
    pub layer: LayerName,
    /// Where it was asked.
    pub stage: MiddlewareStage,
    /// What it says.
    pub says: MiddlewareAnswer,
    /// Why; if it could not answer, what happened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The arguments it would have instead for a call, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Milliseconds that it took.
    pub ms: u64,
}

/// A layer's answer, by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MiddlewareAnswer {
    /// No opinion.
    Pass,
    /// It could not answer, and its stance lets the input pass.
    PassedOver,
    /// A word of advice to the agent.
    Nudge,
    /// The call should run with other arguments. For a result: it was rewritten.
    Rewrite,
    /// A person decides.
    Ask,
    /// No.
    Deny,
    /// It could not answer, and its stance is to block.
    #[serde(rename = "blocked")]
    BlockedByStance,
    /// No, and the loop is over.
    Halt,
}

impl MiddlewareAnswer {
    /// Its word in digests. It never changes: recorded digests are made of it.
    pub(crate) fn stable_name_of_middleware_answer(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::PassedOver => "PassedOver",
            Self::Nudge => "Nudge",
            Self::Rewrite => "Rewrite",
            Self::Ask => "Ask",
            Self::Deny => "Deny",
            Self::BlockedByStance => "Blocked",
            Self::Halt => "Halt",
        }
    }
}

impl MiddlewareAnswerFact {
    /// Returns whether it refuses what it was asked about.
    pub fn is_middleware_refusal(&self) -> bool {
        matches!(
            self.says,
            MiddlewareAnswer::Deny | MiddlewareAnswer::BlockedByStance | MiddlewareAnswer::Halt
        )
    }

    /// Returns what the agent is told. `what` names what the layer was asked about, as in "this
    /// call".
    pub fn middleware_message_for_agent(&self, what: &str) -> String {
        let Self { layer, reason, .. } = self;
        match self.says {
            // A failed layer is named as such. The agent would otherwise take its crash for an
            // objection and try to satisfy it.
            MiddlewareAnswer::BlockedByStance => format!(
                "checkrein: '{layer}' could not judge {what} ({reason}), and nothing goes past it unjudged"
            ),
            MiddlewareAnswer::Deny => format!("checkrein: '{layer}' refuses {what}: {reason}"),
            MiddlewareAnswer::Halt => format!("checkrein: '{layer}' ends the work: {reason}"),
            MiddlewareAnswer::Pass
            | MiddlewareAnswer::PassedOver
            | MiddlewareAnswer::Nudge
            | MiddlewareAnswer::Rewrite
            | MiddlewareAnswer::Ask => format!("checkrein: '{layer}' on {what}: {reason}"),
        }
    }
}

/// Returns the question for a person about a call, if a layer wants one asked.
pub fn middleware_question_for_person(layers: &[MiddlewareAnswerFact]) -> Option<String> {
    let asks = layers
        .iter()
        // Layers answer in the order in which they were asked. One question is enough for a person.
        .find(|fact| fact.says == MiddlewareAnswer::Ask)?;
    Some(asks.middleware_message_for_agent("this call"))
}

/// Returns the notice that replaces a result that a layer had to look at and could not.
pub fn withheld_result_notice(
    layers: &[MiddlewareAnswerFact],
    stage: MiddlewareStage,
) -> Option<String> {
    let of = |fact: &&MiddlewareAnswerFact| {
        fact.stage == stage && fact.says == MiddlewareAnswer::BlockedByStance
    };
    Some(
        layers
            .iter()
            .find(of)?
            .middleware_message_for_agent("this result"),
    )
}
