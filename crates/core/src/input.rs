//! Inputs: what the core learns from outside, stamped by the runtime. An input is appended to the
//! log as an event of its own before anything that `step` derives from it.

use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::digest::{Digest, EightByteDigest};
use crate::evidence::EvidenceSummary;
use crate::ids::{AgentName, EventSeq, ScopeId, SessionId, SourceName, UnixMillis, VerifierName};
use crate::middleware::MiddlewareAnswerFact;
use crate::policy::{Stance, VerifierSpec, VerifierTier};
use crate::transition::Transition;

/// An input with its time, its source and the facts found for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedInput {
    /// When the runtime took it in.
    pub at: UnixMillis,
    /// Which installed entry delivered it.
    pub source: SourceName,
    /// What happened.
    pub input: Input,
    /// The answers of middleware layers, in the order in which they were asked.
    #[serde(default, skip_serializing_if = "<[MiddlewareAnswerFact]>::is_empty")]
    pub layers: Box<[MiddlewareAnswerFact]>,
    /// The project's list of standing tasks, at prompts and stops where a judge may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_list: Option<Box<StandingTaskListSnapshot>>,
    /// The input's sub-agent was halted in this task, and the state has since dropped that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halted: bool,
    /// The newest run of each required check on its present subject, at a stop and at a repeated
    /// tree reading. `None` in older logs, which are decided as they were: there an earlier result
    /// stands, and a failure is not rerun before the task is given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "runs")]
    pub newest_runs: Option<Box<[NewestCheckRun]>>,
    /// The clock is so far behind the latest stamp that it was wrong then or is wrong now. In logs
    /// without this field, time stands still until the clock has caught up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turned_back: bool,
    /// A tool call was open during more than a day without any input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_call: bool,
}

impl StampedInput {
    /// An input of which nothing is known beside itself, its time and its source.
    pub fn new_without_facts(at: UnixMillis, source: SourceName, input: Input) -> Self {
        Self {
            at,
            source,
            input,
            layers: Box::default(),
            task_list: None,
            halted: false,
            newest_runs: None,
            turned_back: false,
            in_call: false,
        }
    }
}

/// The newest run of a check that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestCheckRun {
    /// Which check.
    pub verifier: VerifierName,
    /// Which run; `None` if there is none.
    pub run: Option<EightByteDigest>,
}

/// A list of standing tasks, as it was when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingTaskListSnapshot {
    /// Digest of the whole file.
    pub digest: Digest,
    /// Its text, bounded, secrets hidden.
    pub text: String,
}

/// Every input that the core takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// The agent began, resumed, cleared or forked a conversation.
    SessionStarted(SessionStarted),
    /// A person asked for something.
    PromptSubmitted(PromptSubmitted),
    /// The agent wants to use a tool.
    ToolRequested(ToolRequested),
    /// A tool came back.
    ToolReturned(ToolReturned),
    /// One model response and all its tool calls are over.
    RoundEnded(RoundEnded),
    /// The agent wants to stop.
    StopRequested(StopRequested),
    /// The agent's turn ended by an error of its API.
    StopFailed(TurnEndedByApiError),
    /// The conversation is over.
    SessionEnded(SessionEnded),
    /// A verifier came back, for the pending stop of this scope.
    EvidenceArrived(EvidenceArrived),
    /// The tree was read once more, for the pending stop of this scope.
    TreeRead(TreeReadingArrived),
    /// Under `run`: the agent's process ended without claiming to be done.
    ProcessFailed(AgentProcessFailureReport),
    /// Under `run`: a person pressed Ctrl-C.
    Interrupted,
    /// Under `run` and in the library: time went by.
    TimePassed,
    /// Checkrein itself could not judge and answered by its own stance.
    StanceUsed(StanceUsed),
    /// Guarded files, whose edits could loosen something, have changed.
    ConfigEdited(ConfigEdited),
    /// A person answered a question of this session. It decides nothing by itself: the next request
    /// about the same thing brings the answer with it.
    PersonAnswered(PersonAnswered),
}

impl Input {
    /// Returns the scope that the input belongs to, if it belongs to one only.
    pub fn conversation_scope_id(&self) -> Option<&ScopeId> {
        match self {
            Self::ToolRequested(request) => Some(&request.scope),
            Self::ToolReturned(returned) => Some(&returned.scope),
            Self::RoundEnded(round) => Some(&round.scope),
            Self::StopRequested(stop) => Some(&stop.scope),
            Self::EvidenceArrived(arrived) => Some(&arrived.scope),
            Self::TreeRead(read) => Some(&read.scope),
            Self::StopFailed(failed) => Some(&failed.scope),
            Self::StanceUsed(used) => Some(&used.scope),
            _ => None,
        }
    }
}

/// The scope of an input that says nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundEnded {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// Token use since the last reading, if known.
    pub tokens: Option<TokenUsage>,
}

/// See [`Input::SessionStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// The agent's name.
    pub agent: AgentName,
    /// How it began.
    pub how: SessionStartKind,
    /// The session it was forked from.
    pub parent: Option<SessionId>,
    /// Where the token reader starts. A resumed conversation is not charged for its history.
    pub tokens: Option<TokenUsage>,
}

/// How a session began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStartKind {
    /// New.
    Startup,
    /// Taken up again.
    Resume,
    /// Emptied: the open task is abandoned.
    Clear,
    /// The context was compacted; nothing else changes.
    Compact,
    /// Branched off another.
    Fork,
    /// A word we do not know.
    Other,
}

/// See [`Input::PromptSubmitted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptSubmitted {
    /// The prompt, bounded.
    pub text: String,
    /// The tree at that moment; `None` if it could not be read in time.
    pub tree: Option<TreeDigests>,
    /// Token use since the last reading, if known.
    pub tokens: Option<TokenUsage>,
    /// The agent is known to announce every call of every tool before it runs. Used by the runtime
    /// only, and not recorded.
    #[serde(skip)]
    pub tells_calls: bool,
    /// The newest act numbers at that moment, where the tree could not be read and calls are
    /// announced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts: Option<NewestInvalidatingActNumbers>,
}

/// What a tool does, as far as its adapter knows by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Runs a shell command.
    Shell,
    /// Writes files.
    Write,
    /// Asks for the state of something that runs: repeating it is legitimate while the answer changes.
    Poll,
    /// Anything else.
    Other,
}

/// See [`Input::ToolRequested`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequested {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// The agent's own id of the call.
    pub call_id: Option<String>,
    /// The tool's name as the agent says it.
    pub tool: String,
    /// What kind of tool that is.
    pub kind: ToolKind,
    /// Raw arguments, bounded.
    pub args: String,
    /// Digest of tool name and canonical arguments, taken before they were bounded.
    pub call: EightByteDigest,
    /// What the runtime found out about it.
    pub facts: ToolRequestFacts,
    /// A person can answer a question of the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub can_ask: bool,
    /// Neither shell nor write, nor known to its adapter as a tool that only looks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_act: bool,
    /// A command that waits, or asks for the state of something that runs: repeating it is legitimate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// The agent is known to tell what came of each call: one without an outcome is in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reports_outcome: bool,
    /// What OpenClaw's rules read of it, under the preset that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openclaw: Option<OpenClawCallFacts>,
    /// Token use since the last reading, if known.
    pub tokens: Option<TokenUsage>,
}

/// A model's answer about a call before it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelToolCallOpinionFact {
    /// Its verdict.
    pub says: ModelToolCallVerdict,
    /// Why; or why it says nothing.
    pub reason: String,
    /// How sure it is, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u32>,
    /// The arguments it would have instead, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// It was asked for this call. Otherwise its remembered answer about the same call is used.
    pub asked: bool,
    /// Output tokens of its answer.
    pub tokens: u64,
}

/// A model's verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelToolCallVerdict {
    /// It should run.
    Allow,
    /// It should not.
    Veto,
    /// It should run with other arguments.
    Rewrite,
    /// Nothing that counts.
    #[serde(rename = "silent")]
    NoAnswer,
    /// It was not asked, because its limit of calls per task is reached.
    #[serde(rename = "spent")]
    LimitReached,
}

/// A model's rating of the steps since it was last asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelProgressRating {
    /// How much they brought, in thousandths; `None` if it says nothing that counts, or was not
    /// asked.
    pub score: Option<u32>,
    /// The score is below the sealed policy's threshold.
    pub low: bool,
    /// What it was, or why there is no score.
    pub reason: String,
    /// What to try instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Whether it was asked.
    pub asked: bool,
    /// Output tokens of its answer.
    pub tokens: u64,
}

/// How far the effects of a call may reach beyond the files that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActReach {
    /// Files, possibly ones that do not count.
    Elsewhere,
    /// Beyond the tree: it installs packages, starts services.
    Outside,
    /// Nobody can say.
    Unknown,
}

/// What is known about a tool request before the core judges it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolRequestFacts {
    /// Every command that can run, at most 64.
    pub commands: Vec<CommandWithRuleDecision>,
    /// The strictest rule answer over all of them.
    pub rule: Option<RuleDecision>,
    /// The reason that goes with `rule`.
    pub reason: Option<String>,
    /// Pieces of the script that no reading can settle, at most 16.
    pub unresolved: Vec<String>,
    /// It changes what checks find outside the tree: installs packages, starts services.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// How far it may reach, if it is an act at all. Older logs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<ActReach>,
    /// It is no act but is not known to only read, so it may change files that count. Set only
    /// where the tree at the task's start is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// What a model said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub veto: Option<Box<ModelToolCallOpinionFact>>,
    /// What a model said of the steps before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Box<ModelProgressRating>>,
    /// The approval status of this very call; `None` if nobody is to be asked, or the agent asks
    /// itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Box<ApprovalStatusFact>>,
    /// The patch that it applies, if it applies one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchCheckedAgainstTree>,
}

/// The status of an approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalStatusFact {
    /// Its name, as a person types it.
    pub id: String,
    /// When it expires.
    pub until: UnixMillis,
    /// The person's answer; `None` until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<PersonAnswer>,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonAnswer {
    /// Whether they approve.
    pub approved: bool,
    /// Who answered, and how it was established that they are a person.
    pub by: String,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A patch, against the tree as it was when the request came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchCheckedAgainstTree {
    /// The files that it writes, moves or removes, from the root on; at most 64.
    pub paths: Vec<String>,
    /// Why it must not be applied: it would not fit, would lead out of the root or would lose
    /// data. With what the files have instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// A command that can run, and what the rules say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandWithRuleDecision {
    /// Its words, as far as they are fixed; bounded.
    pub argv: Vec<String>,
    /// The strictest matching rule.
    pub rule: Option<RuleDecision>,
}

/// What an exec-policy rule says, by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDecision {
    /// May run.
    Allow,
    /// A person decides.
    Prompt,
    /// Must not run.
    Forbidden,
}

/// See [`Input::ToolReturned`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolReturned {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// The agent's own id of the call.
    pub call_id: Option<String>,
    /// Digest of tool name and canonical arguments.
    pub call: EightByteDigest,
    /// Digest of what came back.
    pub outcome: EightByteDigest,
    /// It failed.
    pub error: bool,
    /// The tool writes files, and this call succeeded.
    pub wrote: bool,
    /// The beginning and the end of what came back, bounded and without secrets, where a second model
    /// is shown it. Nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Box<str>>,
    /// What detectors of loops need to know of the outcome beside its digest. Older logs say nothing.
    #[serde(default, skip_serializing_if = "ToolOutcomeFacts::is_default")]
    pub facts: ToolOutcomeFacts,
    /// Token use since the last reading, if known.
    pub tokens: Option<TokenUsage>,
}

/// What detectors of loops need to know of an outcome beside its digest. What is not known is left
/// at its default, and then no detector fires because of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolOutcomeFacts {
    /// Digest of the outcome without what differs by time alone (times of day, durations, attempt
    /// numbers, process ids, addresses). `None`: nothing of that kind is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<EightByteDigest>,
    /// Of a failure: digest of the outcome without the names and paths in it, either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<EightByteDigest>,
    /// What was asked about is still running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub running: bool,
    /// There is no tool of that name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_tool: bool,
    /// There is no text in it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty: bool,
    /// What OpenClaw's rules read of it, under the preset that asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub openclaw: Option<OpenClawOutcomeFacts>,
}

/// What OpenClaw's rules for loops read of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClawCallFacts {
    /// Digest of the tool's name, as OpenClaw folds it, and the arguments.
    pub call: EightByteDigest,
    /// Digest of the tool's folded name.
    pub tool: u32,
    /// Which of the tools that the rules know by name.
    #[serde(default, skip_serializing_if = "OpenClawToolKind::is_other")]
    pub kind: OpenClawToolKind,
    /// It asks for the state of something that runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polls: bool,
    /// Digest of the agent's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<u32>,
    /// Digest of the agent's name of its run. Calls of other runs do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// It was recorded and ran, whatever is answered now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runs_regardless: bool,
    /// No detector of ours is asked beside these rules.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// The tools that OpenClaw's rules know by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenClawToolKind {
    /// Any other tool.
    #[default]
    Other,
    /// Runs a command.
    Exec,
    /// Writes a file.
    Write,
    /// Looks after running commands.
    Process,
    /// Tells the state of a running command.
    CommandStatus,
    /// Sends messages, among other things.
    Message,
    /// Sends messages and does nothing else.
    Send,
}

impl OpenClawToolKind {
    fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// What OpenClaw's rules for loops read of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClawOutcomeFacts {
    /// The call that it is the outcome of.
    pub call: OpenClawCallFacts,
    /// Digest of what came back; `None` for a call that a detector of loops blocked.
    pub result: Option<EightByteDigest>,
    /// Of a command that failed: digest without what differs from one run to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<EightByteDigest>,
    /// A detector of loops blocked it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vetoed: bool,
    /// It failed, or wrote what was there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_progress: bool,
    /// Digest of the name of the tool that does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_tool: Option<u32>,
}

impl ToolOutcomeFacts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// See [`Input::StopRequested`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequested {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// The last message, bounded.
    pub message: String,
    /// Digest of the whole last message.
    pub message_digest: Digest,
    /// The tree at that moment.
    pub tree: Result<TreeDigests, TreeReadError>,
    /// The agent's own cap on blocks in a row: `None` = it has none.
    pub block_cap: Option<u32>,
    /// The last answer was cut by its output limit.
    pub truncated: bool,
    /// Background tasks the agent says are still running.
    pub background: u32,
    /// Under `run`: how the agent's own process ended for good, if it cannot be sent back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "over")]
    pub agent_ending: Option<Transition>,
    /// What is known of the answer beside its text.
    #[serde(default, skip_serializing_if = "AgentAnswerFacts::is_default")]
    pub answer: AgentAnswerFacts,
    /// For each judge of the policy, whether something calls for it.
    #[serde(default, skip_serializing_if = "<[JudgeTriggerFact]>::is_empty")]
    pub judges: Box<[JudgeTriggerFact]>,
    /// Token use since the last reading, if known.
    pub tokens: Option<TokenUsage>,
}

/// What is known about an answer beside its text. The default is a final, ordinary answer that
/// nobody has seen yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentAnswerFacts {
    /// Tool calls of the same response have not come back: it is no last answer.
    pub calls_pending: bool,
    /// It was handed over by a tool that sends messages.
    pub delivered: bool,
    /// It was streamed to the person already.
    pub streamed: bool,
    /// It answers a heartbeat: nobody asked for anything.
    pub heartbeat: bool,
}

impl AgentAnswerFacts {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether something calls for a judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeTriggerFact {
    /// Which.
    pub verifier: VerifierName,
    /// What calls for it, or why it is not asked.
    #[serde(rename = "calling")]
    pub trigger: JudgeTriggerOrSkipReason,
}

/// What calls for a judge, or why it is not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JudgeTriggerOrSkipReason {
    /// The answer holds one of its keywords.
    Keyword,
    /// It judges every answer.
    Always,
    /// It judges every answer to a heartbeat, and this is one.
    Heartbeat,
    /// Nothing does. If `accept` names it, it is asked all the same.
    Nothing,
    /// It does not judge this kind of conversation.
    OtherSurface,
    /// Tool calls are pending.
    CallsPending,
    /// The answer was delivered by a messaging tool.
    Delivered,
    /// The answer was streamed already.
    Streamed,
    /// The answer is empty.
    Empty,
    /// It answers a heartbeat, and this judge leaves those alone.
    HeartbeatOff,
}

impl JudgeTriggerOrSkipReason {
    /// Something calls for it.
    pub fn is_judge_triggered(self) -> bool {
        matches!(self, Self::Keyword | Self::Always | Self::Heartbeat)
    }

    /// Returns whether there is nothing to judge or the answer cannot be taken back. Then not even
    /// a judge that `accept` names is asked.
    pub fn is_final_answer_unjudgeable(self) -> bool {
        match self {
            Self::Keyword | Self::Always | Self::Heartbeat => false,
            Self::Nothing | Self::OtherSurface => false,
            Self::CallsPending | Self::Delivered | Self::Streamed => true,
            Self::Empty | Self::HeartbeatOff => true,
        }
    }
}

/// Digests of the tree: the whole, and the part that each verifier depends on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TreeDigests {
    /// The whole tree.
    pub tree: Digest,
    /// The inputs of each verifier, in policy order.
    pub subjects: Vec<(VerifierName, Digest)>,
    /// What checks run with: programs, variables, installed packages. Older logs do not say.
    #[serde(default)]
    pub environment: Option<EightByteDigest>,
    /// The newest acts. Older logs do not say, nor do sub-agents' stops and prompts.
    #[serde(default)]
    pub acts: Option<NewestInvalidatingActNumbers>,
}

/// The newest act numbers. Acts are tool calls that may have changed what a check finds beside the
/// files that count. The store numbers them, at their requests and at their outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestInvalidatingActNumbers {
    /// The newest act that voids earlier results.
    pub any: u64,
    /// The newest act that voids them even where a verifier declares its `inputs`.
    pub declared: u64,
}

impl NewestInvalidatingActNumbers {
    /// Returns the newest act that voids this verifier's earlier results; 0 if there is none.
    pub fn newest_voiding_act(self, spec: &VerifierSpec) -> u64 {
        match (spec.tier, spec.inputs.is_empty()) {
            (VerifierTier::Person | VerifierTier::Judge, _) => 0,
            (VerifierTier::Hard, true) => self.any,
            (VerifierTier::Hard, false) => self.declared,
        }
    }
}

/// Leaves absent members out of logs, so that older logs are written back as they were. The state
/// cache has no member names and leaves out nothing.
impl Serialize for TreeDigests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_log = serializer.is_human_readable();
        let (no_environment, no_acts) = (
            is_log && self.environment.is_none(),
            is_log && self.acts.is_none(),
        );
        let left_out = usize::from(no_environment) + usize::from(no_acts);
        // The name stays that of the first version of this type.
        let mut members = serializer.serialize_struct("TreeFact", 4 - left_out)?;
        members.serialize_field("tree", &self.tree)?;
        members.serialize_field("subjects", &self.subjects)?;
        match no_environment {
            true => members.skip_field("environment")?,
            false => members.serialize_field("environment", &self.environment)?,
        }
        match no_acts {
            true => members.skip_field("acts")?,
            false => members.serialize_field("acts", &self.acts)?,
        }
        members.end()
    }
}

impl TreeDigests {
    /// The digest of the files that this verifier depends on.
    pub fn verifier_subject_digest(&self, name: &VerifierName) -> Digest {
        // A verifier without a subject of its own depends on the whole tree.
        self.subjects
            .iter()
            .find(|(known, _)| known == name)
            .map_or(self.tree, |(_, digest)| *digest)
    }

    /// Returns the subject of this verifier's verdict: its content, and that no act came since
    /// which could have changed its result.
    pub fn verdict_subject_digest(&self, spec: &VerifierSpec) -> Digest {
        let content = self.verifier_input_digest(spec);
        match self.acts.map_or(0, |acts| acts.newest_voiding_act(spec)) {
            // Without an act the digest is the content alone, which is what older logs hold.
            0 => content,
            act => Digest::hash_parts([&content.as_bytes()[..], b"act", &act.to_le_bytes()]),
        }
    }

    /// Returns the digest of the files that this verifier depends on, and for a verifier that runs
    /// something, of its environment.
    pub fn verifier_input_digest(&self, spec: &VerifierSpec) -> Digest {
        let files = self.verifier_subject_digest(&spec.name);
        match self.environment.filter(|_| spec.tier == VerifierTier::Hard) {
            Some(environment) => {
                Digest::hash_parts([&files.as_bytes()[..], &environment.0.to_le_bytes()])
            }
            None => files,
        }
    }

    /// Returns whether no verifier could tell the two apart. Files that no verifier depends on may
    /// differ, but only where every subject is named.
    pub fn is_equivalent_tree(&self, other: &TreeDigests) -> bool {
        let same = self.subjects == other.subjects && self.environment == other.environment;
        // Without named subjects every verifier is about the whole tree.
        same && self.acts == other.acts && (self.tree == other.tree || !self.subjects.is_empty())
    }
}

/// Why the tree is not known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TreeReadError {
    /// What went wrong, for people.
    pub why: String,
    /// There was no time left to read it, which is not a failure. Not set in older logs.
    #[serde(default)]
    pub cut: bool,
}

/// Leaves absent members out, as for [`TreeDigests`].
impl Serialize for TreeReadError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left_out = serializer.is_human_readable() && !self.cut;
        let mut members = serializer.serialize_struct("TreeUnknown", 2 - usize::from(left_out))?;
        members.serialize_field("why", &self.why)?;
        match left_out {
            true => members.skip_field("cut")?,
            false => members.serialize_field("cut", &self.cut)?,
        }
        members.end()
    }
}

/// Token use since the last reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Output tokens, thinking included.
    pub output: u64,
    /// Everything else the agent was billed for, in tokens.
    pub input: u64,
    /// What all of it cost, in millionths of a dollar, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// The reader's position now. Only the adapter understands it.
    pub cursor: String,
}

/// See [`Input::StopFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEndedByApiError {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// The vendor's word for it.
    pub native_reason: String,
    /// It was the output limit.
    pub truncated: bool,
}

/// See [`Input::SessionEnded`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// The vendor's word for it.
    pub native_reason: String,
}

/// See [`Input::EvidenceArrived`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceArrived {
    /// The scope whose stop asked for it.
    pub scope: ScopeId,
    /// The subject it was requested for, which may differ from the one it is about. A newer stop of
    /// the scope may wait for the same verifier and another subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<EightByteDigest>,
    /// Output tokens of the model that was asked for it, which count like the agent's own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// What asking it cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost: u64,
    /// The part of the evidence that decides.
    pub evidence: EvidenceSummary,
    /// As [`Evidence::held_up`](crate::evidence::Evidence::paths_changed_during_run_digest). Absent in older logs, which are
    /// decided as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_up: Option<EightByteDigest>,
    /// When the run that produced it began. Absent in older logs, whose evidence never becomes too
    /// old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<UnixMillis>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// See [`Input::TreeRead`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeReadingArrived {
    /// The scope whose stop asked for it.
    pub scope: ScopeId,
    /// The stop that asked for it: a reading for an older one says nothing.
    pub stop: EventSeq,
    /// The tree now.
    pub tree: Result<TreeDigests, TreeReadError>,
    /// A stop that a moving tree holds up is no attempt. Older logs, which counted it as one, are
    /// decided as they were.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_attempt: bool,
}

/// See [`Input::ProcessFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcessFailureReport {
    /// Exit status, `None` if a signal ended it or it never started.
    pub exit_code: Option<i32>,
    /// What to tell a person.
    pub what: String,
    /// The vendor's word for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_reason: Option<String>,
}

/// See [`Input::StanceUsed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StanceUsed {
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// What could not be judged.
    pub at: StancePoint,
    /// What was answered instead.
    pub stance: Stance,
    /// Why it could not be judged, for people.
    pub why: String,
}

/// See [`Input::ConfigEdited`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigEdited {
    /// Which, as a person is told; bounded.
    pub paths: Vec<String>,
    /// Digest of the blob that says how they are now.
    pub guarded: Digest,
}

/// See [`Input::PersonAnswered`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonAnswered {
    /// Which approval.
    pub approval: String,
    /// What was asked, bounded.
    pub what: String,
    /// The detail of the `awaiting_human` that ends with it: the verifier, or that a call was
    /// parked. `None`: recorded before an answer ended one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// When the answer expires.
    pub until: UnixMillis,
    /// What they said.
    pub answer: PersonAnswer,
}

/// Where Checkrein answered by its own stance, as in `[stance]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StancePoint {
    /// A tool request.
    Tool,
    /// A stop.
    Stop,
}
