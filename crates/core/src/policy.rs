//! The sealed policy: validated values only. `runtime::config` compiles it once from TOML and
//! rules, and the session keeps it as a blob by digest (law 10).
//!
//! The blob is hashed, so fields that were added later are left out when they have their default:
//! policies sealed before keep their digests.

use serde::{Deserialize, Serialize};

use crate::accept::AcceptExpr;
use crate::digest::Digest;
use crate::ids::{DetectorName, LayerName, VerifierName};
use crate::middleware::MiddlewareStage;

/// Everything that `step` judges by. Two sessions with equal policies and equal inputs decide
/// alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What the task is for, if the config says.
    pub goal: Option<String>,
    /// The expression over required verifiers.
    pub accept: AcceptExpr,
    /// Whether a stop without any change runs the checks.
    pub verify_on: VerifyOnChangeOrAlways,
    /// Bounds of one task.
    pub caps: TaskCaps,
    /// Bounds of the whole session, which a new prompt does not reset.
    pub session_caps: SessionCaps,
    /// Sub-agents.
    pub subagents: SubagentPolicy,
    /// The soft token budget.
    pub token_budget: TokenBudgetSettings,
    /// Loop detectors in force.
    pub loops: LoopPolicy,
    /// What to answer when Checkrein itself cannot judge.
    pub stance: StancePolicy,
    /// Compiled exec policy; only `execpolicy` reads it.
    pub rules: String,
    /// When a person is asked about a tool request.
    #[serde(default, skip_serializing_if = "ApprovalMode::is_default")]
    pub approval: ApprovalMode,
    /// How approvals that wait for a person are handled.
    #[serde(
        default,
        skip_serializing_if = "ApprovalSettings::is_default_approval_settings"
    )]
    pub approvals: ApprovalSettings,
    /// A required person is asked at a stop without any change, too: their opinion of a tree can
    /// change while the tree does not. Policies that were sealed earlier do not have this field.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "views")]
    pub ask_person_without_change: bool,
    /// Whether a model is asked about calls before they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub veto: Option<VetoModelPolicy>,
    /// Whether a model is asked to rate the agent's progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressRatingPolicy>,
    /// Layers of middleware, in the order in which they are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middleware: Vec<MiddlewareSpec>,
    /// Verifiers in config order.
    pub verifiers: Vec<VerifierSpec>,
    /// Whether one process drives exactly one task (`run`, library).
    pub single_task: bool,
    /// What an accepted stop shows on the agent's screen. It decides nothing.
    #[serde(
        default,
        skip_serializing_if = "VerifiedNoticeMode::is_default_notice_mode"
    )]
    pub verified_notice: VerifiedNoticeMode,
    /// The config error found when the session began, where this policy is used in place of that
    /// config. It decides nothing; endings and listings report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_error: Option<String>,
}

impl Policy {
    /// The verifier of this name.
    pub fn verifier_spec(&self, name: &VerifierName) -> Option<&VerifierSpec> {
        self.verifiers.iter().find(|spec| spec.name == *name)
    }

    /// Returns whether `accept` names it.
    pub fn is_required_verifier(&self, name: &VerifierName) -> bool {
        // `advisory` is not consulted: naming a verifier in `accept` is what makes it required.
        self.accept.verifiers_in_accept_expression().contains(name)
    }

    /// Bytes of the sealed blob.
    pub fn to_policy_blob(&self) -> Vec<u8> {
        // The policy is a plain tree of strings and integers, which always serialises.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a sealed blob.
    ///
    /// # Errors
    /// If the bytes are not a policy this version understands.
    pub fn from_sealed_policy_blob(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}

/// `verify_on`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyOnChangeOrAlways {
    /// A first stop on an unchanged tree runs nothing.
    Change,
    /// Every stop is verified.
    Always,
}

/// `[caps]`. `None` = off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCaps {
    /// Output tokens, thinking included, main and sub-agents.
    pub token_budget: Option<u64>,
    /// Milliseconds of agent time: prompt to stop, without our own checks.
    pub wall_clock_ms: Option<u64>,
    /// Tool requests, denied ones included.
    pub tool_calls: Option<u64>,
    /// Rounds; not applied where the agent shows none.
    pub max_iterations: Option<u64>,
    /// Stops at which one failure set may be met.
    pub attempts: u32,
    /// Continuations in all.
    pub continues: u32,
    /// Millionths of a dollar; not applied where it is not known what the agent costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// `[session_caps]`: the same keys over the whole session, all off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCaps {
    /// Output tokens.
    pub token_budget: Option<u64>,
    /// Milliseconds of agent time.
    pub wall_clock_ms: Option<u64>,
    /// Tool requests.
    pub tool_calls: Option<u64>,
    /// Rounds.
    pub max_iterations: Option<u64>,
    /// Continuations.
    pub continues: Option<u32>,
    /// Millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
}

/// `[subagents]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubagentPolicy {
    /// Rounds of one sub-agent.
    pub max_iterations: Option<u64>,
    /// Whether a sub-agent's stop is verified.
    pub verify: SubagentStopVerification,
}

/// `[subagents] verify`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentStopVerification {
    /// Hard verifiers run at the main stop only.
    Never,
    /// Also at the stop of a sub-agent that wrote something.
    Writers,
}

/// `[token_budget]`: the algorithm of Claude Code's `checkTokenBudget` (0.9 / 500 / 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenBudgetSettings {
    /// Share of `caps.token_budget`, in thousandths, at which going on is not worth it.
    pub threshold_permille: u32,
    /// Fewer output tokens than this between two stops count as little.
    pub diminishing_tokens: u64,
    /// Continuations to have given before little counts.
    pub diminishing_rounds: u32,
    /// Whether the budget is a limit, or a target to be used up.
    pub mode: TokenLimitOrTarget,
}

/// `[token_budget] mode`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenLimitOrTarget {
    /// Stop at the line.
    Limit,
    /// Under `run` and the library: go on until it is used.
    Target,
}

/// `[loops]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopPolicy {
    /// Detectors that are asked, in the order of `detectors::ALL`.
    pub detectors: Vec<DetectorName>,
    /// The literal circuit breaker of the seed: any 30 calls of a task, with progress or not.
    pub literal_breaker: bool,
    /// What follows from findings. Older seals have the first.
    #[serde(default, skip_serializing_if = "LoopEscalationMode::is_default")]
    pub ladder: LoopEscalationMode,
    /// Thresholds that differ from the detectors' own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<DetectorThresholds>,
    /// Calls that detectors look back at, at most `CALL_WINDOW_LEN`, which is also what holds if it
    /// is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<u32>,
    /// The rules of another agent that are asked in place of our detectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PinnedLoopRules>,
}

/// Another agent's rules for loops, as they were at one version of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PinnedLoopRules {
    /// OpenClaw 2026.9.6.
    #[serde(rename = "openclaw")]
    OpenClaw,
}

/// What follows from what detectors find.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEscalationMode {
    /// A warning is said once per multiple of ten. A critical denies the call, and the second
    /// critical of the task ends it, whatever the two were about.
    #[default]
    TwoCriticals,
    /// Each pattern has a ladder of its own: a word, a denial, the end. News takes all patterns back to
    /// the beginning. Only unchanged outcomes count as repeats.
    PerPattern,
}

impl LoopEscalationMode {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The thresholds of one detector, in its own unit: calls, or laps of a cycle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetectorThresholds {
    /// Which detector.
    pub detector: DetectorName,
    /// From which count on it warns; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<u32>,
    /// From which count on the call must not run; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical: Option<u32>,
}

/// What to answer when nobody can judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// Answers as if it had failed.
    Block,
    /// Answers as if it had passed. The ending is then at best `unverified`.
    Allow,
    /// Leaves it to a person.
    Ask,
}

impl Stance {
    /// Returns the stricter of the two.
    #[must_use]
    pub fn stricter_of_two(self, other: Self) -> Self {
        if self.stance_strictness() < other.stance_strictness() {
            other
        } else {
            self
        }
    }

    fn stance_strictness(self) -> u8 {
        match self {
            Self::Allow => 0,
            // `ask` may still end in a yes, so it is looser than `block`.
            Self::Ask => 1,
            Self::Block => 2,
        }
    }
}

/// `[stance]`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StancePolicy {
    /// At a tool request.
    pub tool: Stance,
    /// At a stop.
    pub stop: Stance,
}

impl Default for StancePolicy {
    fn default() -> Self {
        Self {
            // A tool call that nobody judged could do harm. A stop that nobody judged only ends a
            // task, as `unverified`.
            tool: Stance::Block,
            stop: Stance::Allow,
        }
    }
}

/// `[ui] verified`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifiedNoticeMode {
    /// Nothing.
    #[default]
    Silent,
    /// One line.
    Line,
}

impl VerifiedNoticeMode {
    fn is_default_notice_mode(&self) -> bool {
        *self == Self::default()
    }
}

/// `[policy] approval`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Asks where the rules say `prompt`.
    #[default]
    OnRequest,
    /// Never asks: `prompt` is a refusal.
    Never,
    /// Asks about everything that is not known to only read.
    Always,
    /// Refuses where the rules say `prompt`, and asks about everything else that acts. Results from
    /// combining `never` and `always`, one from the repo's config and one from the person's own.
    Both,
}

impl ApprovalMode {
    /// Returns the stricter of the two, or `Both` if each is stricter about something.
    #[must_use]
    pub fn stricter_of_two(self, other: Self) -> Self {
        match (self, other) {
            (same, other) if same == other => same,
            (Self::OnRequest, strict) | (strict, Self::OnRequest) => strict,
            // `Never` and `Always` are each stricter about something, so neither can stand for
            // both.
            _ => Self::Both,
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// `[approvals]`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSettings {
    /// Milliseconds after which an unanswered question expires, and after which an unused approval
    /// does.
    pub expires_ms: u64,
    /// The command that tells a person; only the front door runs it.
    pub notify: Option<String>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self {
            expires_ms: 24 * 60 * 60 * 1000,
            notify: None,
        }
    }
}

impl ApprovalSettings {
    fn is_default_approval_settings(&self) -> bool {
        *self == Self::default()
    }
}

/// `[veto]`, where it is enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VetoModelPolicy {
    /// `provider/model`.
    pub model: String,
    /// Whether the model is asked about every call, not only about those that could do harm.
    pub all: bool,
    /// The least confidence, in thousandths, with which it can stop or change a call.
    pub min_confidence: u32,
    /// Calls of one task that it is asked about.
    pub max_calls: u32,
}

/// `[progress]`, where it is enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressRatingPolicy {
    /// `provider/model`.
    pub model: String,
    /// A score below this, in thousandths, is no progress.
    pub threshold: u32,
    /// How many low scores in a row make it tell the agent.
    pub window: u32,
    /// Times that it is asked in one task.
    pub max_calls: u32,
}

/// `[[middleware]]`: a program that is asked on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiddlewareSpec {
    /// Its name.
    pub name: LayerName,
    /// Its command.
    pub run: String,
    /// Where it is asked.
    pub on: Vec<MiddlewareStage>,
    /// Lower numbers are asked first. Layers with equal numbers are asked in config order.
    pub order: i32,
    /// Milliseconds it may take for one answer.
    pub timeout_ms: u64,
    /// Whether input that it cannot judge is refused.
    pub blocks: bool,
}

/// Which tier a verifier belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifierTier {
    /// Looks at the world outside the model.
    Hard,
    /// Asks a model.
    Judge,
    /// Asks a person.
    Person,
}

/// What a verdict is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictSubjectKind {
    /// The tree, or the part of it that `inputs` names.
    Tree,
    /// The final message.
    Message,
    /// The final message, with the tree and the prompt that it answers.
    Answer,
    /// This stop and no other: only the host knows what its function looks at.
    Stop,
}

/// One verifier as the policy knows it. What it runs is opaque to the core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifierSpec {
    /// Its name.
    pub name: VerifierName,
    /// Its kind: a name in `verifiers::ALL`.
    pub kind: String,
    /// Its tier.
    pub tier: VerifierTier,
    /// What it judges.
    pub subject: VerdictSubjectKind,
    /// Kind-specific definition, canonical JSON; only `verifiers` reads it.
    pub definition: String,
    /// Globs of the files it depends on; empty = the whole tree.
    pub inputs: Vec<String>,
    /// Globs of the files it writes.
    pub outputs: Vec<String>,
    /// Milliseconds it may run.
    pub timeout_ms: u64,
    /// How often an inconclusive verdict is tried again within one stop.
    pub retries: u32,
    /// Reported, never required.
    pub advisory: bool,
    /// The stance on its inconclusive verdicts.
    pub stance: Stance,
    /// Of a judge: what follows from its verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeAttemptsAndShadowMode>,
}

/// What follows from a judge's verdicts. What it is asked, and when it is called, is in its
/// definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeAttemptsAndShadowMode {
    /// How many answers of one conversation judges may see, the first included. At the last of them
    /// nobody is sent back.
    pub max_attempts: u32,
    /// Shadow mode: the judge is asked and the consequence is recorded but not applied.
    pub shadow: bool,
}

impl VerifierSpec {
    /// Returns whether it is a hard check of the tree. Only runs of such checks may disturb each
    /// other, become too old, or be superseded by another process's run.
    pub fn is_hard_tree_check(&self) -> bool {
        self.tier == VerifierTier::Hard && self.subject == VerdictSubjectKind::Tree
    }

    /// Returns whether this judge can send the agent back although `accept` does not name it.
    pub(crate) fn is_enforced_judge(&self) -> bool {
        !self.advisory && self.judge.is_some_and(|terms| !terms.shadow)
    }

    /// Returns the digest of everything that can change its verdict on the same subject.
    pub fn verifier_definition_digest(&self) -> Digest {
        Digest::hash_parts([
            self.kind.as_bytes(),
            self.definition.as_bytes(),
            // Joined by NUL, which no path contains, so that two lists of globs never give the same
            // bytes.
            self.inputs.join("\0").as_bytes(),
            self.outputs.join("\0").as_bytes(),
            &self.timeout_ms.to_le_bytes(),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_stances_the_one_that_lets_less_through_holds() {
        let by_strictness = [Stance::Allow, Stance::Ask, Stance::Block];
        for (at, looser) in by_strictness.into_iter().enumerate() {
            for stricter in &by_strictness[at..] {
                assert_eq!(looser.stricter_of_two(*stricter), *stricter);
                assert_eq!(stricter.stricter_of_two(looser), *stricter);
            }
        }
    }
}
