//! Explanations as data: the chain of facts behind a decision. This module writes no sentences;
//! `show --why` does.

mod check_runs;

use serde::{Deserialize, Serialize};

use crate::event::CapKind;
use crate::evidence::{InconclusiveCause, Verdict};
use crate::ids::{DetectorName, UnixMillis, VerifierName};
use crate::input::{JudgeTriggerOrSkipReason, ModelToolCallVerdict};
use crate::middleware::MiddlewareAnswerFact;
use crate::policy::Stance;

pub use self::check_runs::{
    ChangeKindHoldingUpStop, CheckOutcomeAtStop, CheckResultNotReusedReason, CheckRunOrSkipReason,
    StopCheckRuns, list_check_runs_of_each_stop, newest_stop_held_up_cause,
};

/// Why a decision is what it is: facts in the order in which they were asked.
pub type DecisionExplanation = Vec<DecisionFactor>;

/// One fact behind a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionFactor {
    /// The task was already halted.
    Halted,
    /// A cap was reached.
    Cap {
        /// Which.
        cap: CapKind,
        /// Used so far.
        used: u64,
        /// Allowed.
        limit: u64,
    },
    /// A detector found a pattern.
    Detector {
        /// Which.
        detector: DetectorName,
        /// How often the pattern was seen.
        count: u32,
    },
    /// An exec-policy rule matched.
    Rule {
        /// The rule's own words, or its prefix.
        reason: String,
    },
    /// A person was to be asked, and the policy asks nobody.
    NobodyAsked,
    /// A person approved exactly this.
    Approved {
        /// The approval's id, as a person types it.
        approval: String,
        /// Who, and how it was told.
        by: String,
        /// Why.
        reason: Option<String>,
    },
    /// A person said no to exactly this.
    Denied {
        /// The approval's id, as a person types it.
        approval: String,
        /// What the agent is told.
        reason: String,
    },
    /// It waits for a person.
    Parked {
        /// The approval's id, as a person types it.
        approval: String,
        /// When it expires.
        until: UnixMillis,
    },
    /// Nobody answered in time.
    #[serde(rename = "ran_out")]
    ApprovalExpired {
        /// The approval's id, as a person types it.
        approval: String,
    },
    /// A model was asked about the call.
    Veto {
        /// What it says.
        says: ModelToolCallVerdict,
        /// Why; or why it says nothing.
        reason: String,
        /// How sure it is, in thousandths.
        confidence: Option<u32>,
        /// It is too little for it to count.
        unsure: bool,
    },
    /// A model was asked whether the agent gets anywhere.
    Progress {
        /// How much the last steps brought, in thousandths.
        score: Option<u32>,
        /// The reason for the score, or why there is none.
        reason: String,
    },
    /// The rating was too low this many times in a row.
    Stalled {
        /// Times.
        window: u32,
    },
    /// A layer of middleware was asked.
    Layer(MiddlewareAnswerFact),
    /// At some point in the task a layer could not answer, and its stance let that pass.
    LayerPassedOver,
    /// The patch would not apply, or must not.
    Patch {
        /// Why.
        reason: String,
    },
    /// Something in the command could not be read.
    Unresolved {
        /// The parts that could not be read.
        what: Vec<String>,
    },
    /// Nothing changed since the prompt.
    NoChange,
    /// The tree at the prompt is not known, and every call since only reads.
    OnlyRead,
    /// The newest verdict on this very tree is a fail.
    KnownFailing,
    /// No verifier is configured.
    NoChecks,
    /// A verifier's verdict counted.
    Verdict {
        /// Which verifier.
        verifier: VerifierName,
        /// Its verdict.
        verdict: Verdict,
        /// Why it is inconclusive.
        cause: Option<InconclusiveCause>,
        /// How many findings.
        findings: u32,
        /// Whether it was reused.
        cached: bool,
        /// Whether `accept` names it.
        required: bool,
        /// Its stance was used.
        by_stance: bool,
    },
    /// A judge was not asked.
    NotAsked {
        /// Which.
        verifier: VerifierName,
        /// Why.
        #[serde(rename = "calling")]
        trigger: JudgeTriggerOrSkipReason,
    },
    /// A judge in shadow mode was asked. This is the consequence it would have had.
    Shadow {
        /// Which.
        verifier: VerifierName,
        /// The agent would have been sent back.
        sends_back: bool,
    },
    /// Judges have used up their attempts in this conversation, so the answer stands.
    JudgesSpent {
        /// Answers they saw.
        seen: u32,
        /// Answers they may see.
        attempts: u32,
    },
    /// The tree could not be read.
    TreeUnknown {
        /// Why.
        why: String,
    },
    /// The tree was read again before the answer and had moved.
    TreeMoved,
    /// The same failure set was met too often.
    SameFailures {
        /// Times met.
        met: u32,
        /// Times allowed.
        attempts: u32,
    },
    /// The limit of continuations was reached.
    Continues {
        /// Given.
        given: u32,
        /// Allowed.
        limit: u32,
    },
    /// The threshold of the token budget was reached.
    TokenBudget {
        /// Output tokens used.
        used: u64,
        /// The threshold.
        #[serde(rename = "line")]
        threshold: u64,
    },
    /// The last stops brought little.
    Diminishing {
        /// Output tokens between the last two stops.
        delta: u64,
        /// Between the two before.
        previous: u64,
    },
    /// The task already had a bad ending.
    AlreadyEnded,
    /// The agent's own process had ended for good, so nobody can be sent back.
    #[serde(rename = "left")]
    AgentExited,
    /// It was a sub-agent's stop: the main stop is verified.
    Subagent,
    /// Guarded files were edited while the task was open.
    ConfigEdited {
        /// Which.
        paths: Vec<String>,
    },
    /// Background tasks were still running; judged as any other stop.
    Background {
        /// How many.
        count: u32,
    },
    /// A refusal came right before the stop.
    AfterRefusal,
    /// The agent's process failed.
    Process {
        /// What happened.
        what: String,
    },
    /// The answer was cut by its output limit.
    Truncated,
    /// A person interrupted.
    Interrupted,
    /// Checkrein itself could not judge, and its stance was applied.
    StanceUsed {
        /// What was answered.
        stance: Stance,
        /// Why it could not judge.
        why: String,
    },
}
