//! Decisions, ordered by severity. A severe decision contains its reason, so a block without one
//! cannot be expressed.

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, EightByteDigest};
use crate::evidence::{InconclusiveCause, Verdict};
use crate::ids::{LayerName, UnixMillis, VerifierName};
use crate::transition::Transition;

/// The answer to an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The answer to a tool request.
    Tool(ToolDecision),
    /// The answer to a stop.
    Stop(StopDecision),
    /// Nothing to answer: the input was recorded.
    Noted,
    /// What a layer had to say at the end of a round.
    Round(RoundDecision),
}

/// The answer to the end of a round, where there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundDecision {
    /// A word of advice for the next round.
    Nudge {
        /// The advice.
        text: String,
    },
    /// There is no next round.
    Halt {
        /// Why.
        reason: String,
    },
}

/// The answer to a tool request, by severity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    /// No opinion: the agent's own permissions still apply (law 11).
    Allow,
    /// It may run; a word of advice goes with it.
    Nudge {
        /// The advice.
        text: String,
    },
    /// It should run with other arguments.
    Rewrite {
        /// The suggested arguments, as JSON.
        args: String,
        /// Why.
        reason: String,
    },
    /// A person decides.
    Ask {
        /// What they are asked.
        reason: String,
        /// Names the approval.
        approval: String,
        /// Parked: when it runs out. `None` where the agent itself asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<UnixMillis>,
    },
    /// It must not run.
    Deny {
        /// Why, and what to do instead.
        reason: String,
    },
    /// It must not run, and the task is over.
    Halt {
        /// Why.
        reason: String,
    },
}

/// The answer to a stop, by severity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopDecision {
    /// It may stop; a sub-agent's stop ends no task.
    Accept {
        /// How the task ended.
        transition: Option<Transition>,
    },
    /// The agent continues, with this feedback.
    Continue {
        /// What to say, as data; `feedback::render_feedback` makes the text.
        feedback: Box<StopFeedback>,
    },
    /// The agent is stopped at once.
    Halt {
        /// How the task ended.
        transition: Transition,
    },
}

/// What a refused stop tells the agent, as data. The texts of findings are looked up in the
/// evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopFeedback {
    /// Which stop of the task this answers, from 1; 0 for a sub-agent's, which is none.
    pub stop: u32,
    /// How often this failure set has been met.
    pub met: u32,
    /// How often it may be met.
    pub attempts: u32,
    /// Continuations left after this one.
    pub continues_left: u32,
    /// Same subjects and same failures as at the last stop: one line is enough.
    pub repeat: bool,
    /// The checks that did not pass.
    pub checks: Vec<FailedCheckFeedback>,
    /// Background tasks that were still running.
    pub background: u32,
    /// Guarded files that were edited, and of which the agent was not told yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<String>,
    /// Layers of middleware that refuse the stop. No check has run then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<MiddlewareStopObjection>,
    /// How many of the checks are judges.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub judges: u32,
    /// The checks pass, and the agent continues only because its token target is not reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TokenBudgetUsage>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The objection of a middleware layer to a stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiddlewareStopObjection {
    /// Which.
    pub layer: LayerName,
    /// In its words, or why it could not judge.
    pub reason: String,
    /// It could not judge, and its stance is to block.
    pub by_stance: bool,
}

/// How much of a token budget that is a target is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudgetUsage {
    /// Output tokens used.
    pub used: u64,
    /// Output tokens at which the task may end.
    #[serde(rename = "line")]
    pub threshold: u64,
}

/// One check that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheckFeedback {
    /// Which verifier.
    pub verifier: VerifierName,
    /// Content key of its evidence.
    pub key: Digest,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    pub cause: Option<InconclusiveCause>,
    /// Findings not sent before in this task.
    pub new: Vec<EightByteDigest>,
    /// Findings sent before that are still there.
    pub still: Vec<EightByteDigest>,
    /// How many findings of the last attempt are gone.
    pub fixed: u32,
}
