//! `SessionState`: everything known about a session, as the fold of its log. Only `fold` writes it.
//!
//! INVARIANT: bounded. Windows, sets and lists have fixed capacities, so that the state cache stays
//! small (16 KiB) however long a session runs. Evidence for the stops of many sub-agents that are
//! judged at once may take half as much again; such a state is not cached.

pub(crate) mod clock;
mod deliveries;
mod fold;
mod task;
mod tree_recheck;
mod verdicts;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::detectors::openclaw::OpenClawCallHistory;
use crate::digest::{Digest, EightByteDigest};
use crate::event::{CapKind, LadderRung, TaskOrigin};
use crate::evidence::{CheckRetryability, EvidenceSummary, InconclusiveCause, Verdict};
use crate::ids::{AgentName, EventSeq, ScopeId, TaskId, UnixMillis, VerifierName};
use crate::input::{
    ActReach, JudgeTriggerFact, JudgeTriggerOrSkipReason, NewestCheckRun,
    NewestInvalidatingActNumbers, StampedInput, ToolKind, ToolRequested, ToolReturned, TreeDigests,
    TreeReadError,
};
use crate::transition::Transition;

pub use self::deliveries::DeliveredPromptOrStop;
use self::deliveries::NewestPromptAndStop;
pub use self::tree_recheck::TreeRecheckState;

/// Calls a detector looks back at.
pub const CALL_WINDOW_LEN: usize = 30;
/// Scopes whose counters are kept at once. The least recently used sub-agent is dropped first.
const MAX_SCOPES: usize = 64;
/// Scopes whose call windows are kept at once. Fewer than [`MAX_SCOPES`], because windows take most
/// of the space.
const MAX_WINDOWS: usize = 9;
/// Scopes in which OpenClaw's rules have a memory at once, and calls in the window beside it. Both
/// together take no more space than our detectors' windows.
const MAX_OPENCLAW_HISTORIES: usize = 4;
const MAX_CALLS_BESIDE_OPENCLAW: usize = 12;
/// Scopes whose transcript cursors are kept here. The store has one row for each scope.
const MAX_CURSORS: usize = 24;
/// (call, outcome) pairs remembered per task; older ones count as new again, which
/// errs towards seeing progress.
const MAX_SEEN: usize = 172;
/// Failure sets and nudge keys remembered per task.
const MAX_KEPT: usize = 32;
/// Bytes of names of edited files remembered per task. The log holds all of them.
const MAX_EDITED: usize = 112;
/// Patterns of one scope that are remembered on the ladder. One that is forgotten begins with a word
/// again.
const MAX_PATTERNS: usize = 7;
/// Told findings remembered per verifier.
const MAX_TOLD: usize = 56;

/// Everything known about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    /// Position of the last event.
    pub last: EventSeq,
    /// The latest time stamped so far, or since the clock was last turned back.
    pub now: UnixMillis,
    /// The latest time stamped before the clock was turned back.
    turned_back_from: Option<UnixMillis>,
    /// Digest of the sealed policy.
    pub policy: Option<Digest>,
    /// The event since which the guarded files are known to match this blob.
    pub guarded: Option<(EventSeq, Digest)>,
    /// Verifiers whose programs were all there when the policy was sealed.
    pub equipped: Vec<VerifierName>,
    /// The agent, as its adapter names it.
    pub agent: Option<AgentName>,
    /// Counters of the whole session, which a new prompt does not reset.
    pub totals: TaskOrSessionTotals,
    /// The agent shows where its rounds end. If it does not, caps on rounds do not apply:
    /// what is counted then are its stops only.
    pub shows_rounds: bool,
    /// Who delivered the newest prompt and stops.
    deliveries: NewestPromptAndStop,
    /// Transcript cursors of the token reader per scope, least recently read first. No decision
    /// depends on them, and a cursor that is dropped here is still in the store.
    pub cursors: Vec<(ScopeId, String)>,
    /// The tree on which the newest main stop was judged, and whether it failed there.
    pub last_judged: Option<(Digest, bool)>,
    /// Identity of the newest prompt's text.
    pub prompt: EightByteDigest,
    /// The newest task, open or ended.
    pub task: Option<Task>,
    /// An input that found no task, until the task it opens is recorded.
    orphan: Option<Box<(EventSeq, StampedInput)>>,
}

/// What is counted for a task and for its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskOrSessionTotals {
    /// Tool requests, denied ones included.
    pub tool_calls: u64,
    /// Rounds.
    pub rounds: u64,
    /// Output tokens; `None` until a reading succeeded.
    pub output_tokens: Option<u64>,
    /// Milliseconds of agent time in finished spans.
    pub busy_ms: u64,
    /// Continuations given.
    pub continues: u32,
    /// Output tokens of models that were asked to judge. They count with the agent's.
    #[serde(rename = "witnesses")]
    pub judge_tokens: u64,
    /// Millionths of a dollar that the agent's answers cost; `None` until it is known of one.
    pub cost: Option<u64>,
    /// The cost of models that were asked to judge.
    #[serde(rename = "witness_cost")]
    pub judge_cost: u64,
}

impl TaskOrSessionTotals {
    /// Output tokens that count for budgets; `None` until a reading of the agent's succeeded.
    pub fn spent_tokens(&self) -> Option<u64> {
        Some(self.output_tokens?.saturating_add(self.judge_tokens))
    }

    /// Millionths of a dollar spent; `None` until it is known of one of the agent's answers.
    pub fn spent_cost(&self) -> Option<u64> {
        Some(self.cost?.saturating_add(self.judge_cost))
    }
}

/// The work between a prompt and its transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its ordinal.
    pub id: TaskId,
    /// What opened it.
    pub opened_by: TaskOrigin,
    /// When it was opened.
    pub opened_at: UnixMillis,
    /// Identity of the prompt that opened it.
    pub prompt: EightByteDigest,
    /// The tree at its start.
    pub start: Option<TreeDigests>,
    /// The newest act numbers at its start, where the tree is not known. Cleared by the first call
    /// that may have changed a file.
    pub acts_at_start: Option<NewestInvalidatingActNumbers>,
    /// When the current span of agent work began; `None` while Checkrein judges or the agent rests.
    pub working_since: Option<UnixMillis>,
    /// How it ended; `None` while it is open.
    pub ended: Option<Transition>,
    /// The first ending other than success. A task with one is never answered `continue` again, and
    /// only a better reason replaces it.
    #[serde(rename = "spent")]
    pub bad_ending: Option<Transition>,
    /// It was halted: none of its calls run any more.
    pub halted: bool,
    /// Counters.
    pub totals: TaskOrSessionTotals,
    /// Main stops asked for.
    pub stops: u32,
    /// Output tokens at the last stop.
    pub tokens_at_stop: u64,
    /// A reading of the token use succeeded since the last stop.
    pub metered: bool,
    /// Output tokens between the last stops, newest first.
    pub deltas: [Option<u64>; 2],
    /// Failure sets and how often each was met.
    pub failure_sets: Vec<(EightByteDigest, u32)>,
    /// Subjects and failure set of the last failed stop.
    pub last_failure: Option<(EightByteDigest, EightByteDigest)>,
    /// Gate verdicts of the main conversation, one per verifier. While one of its stops is being
    /// judged, they are held by that stop.
    pub verdicts: Vec<VerifierVerdictInTask>,
    /// Continuations given to sub-agents, of those in `totals`.
    #[serde(rename = "continues_below")]
    pub subagent_continuations: u32,
    /// Findings already told to the agent, by verifier.
    #[serde(rename = "told")]
    pub reported_findings: Vec<FindingsToldToAgent>,
    /// The one call over a cap was answered.
    pub grace: Option<CapKind>,
    /// Calls of the main conversation that a detector denied.
    pub criticals: u32,
    /// Multiples of ten that the agent was already told about, per pattern.
    pub nudged: Vec<(EightByteDigest, u32)>,
    /// (call, outcome) pairs seen, folded to 32 bits. Stored as bytes, so that each takes four in
    /// the state cache.
    pub seen: VecDeque<[u8; 4]>,
    /// How the last request was refused by policy, if none was allowed since.
    pub refused: Option<ExecPolicyRefusalSource>,
    /// The last request put to a person, if none was allowed since.
    #[serde(rename = "asked")]
    pub pending_approval: Option<PendingApproval>,
    /// The last request that changes what checks depend on outside the tree. A failure from before
    /// it is checked again, even on the same tree.
    pub outside: Option<(EventSeq, UnixMillis)>,
    /// Guarded files that were edited while it was open.
    pub edited: Vec<String>,
    /// The agent was told of them.
    pub edited_told: bool,
    /// Verifiers for which the agent was sent back because their program was missing.
    pub missing_told: Vec<VerifierName>,
    /// Checks to be rerun before the task would be given up.
    #[serde(rename = "ran_once_more")]
    pub final_reruns: Vec<LastChanceRerun>,
    /// Calls that the veto model was asked about.
    pub vetoes: u32,
    /// How often a model was asked about the agent's progress.
    #[serde(rename = "ratings")]
    pub progress_checks: u32,
    /// How many of these ratings in a row were too low.
    #[serde(rename = "low")]
    pub low_progress_streak: u32,
    /// A middleware layer could not answer, and its stance let the input pass.
    pub passed_over: bool,
    /// Main conversation and sub-agents at work.
    pub scopes: Vec<ScopeState>,
}

/// Who refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecPolicyRefusalSource {
    /// A rule.
    Rule,
    /// A rule that requires a person's approval, where the policy asks nobody.
    Nobody,
    /// A person.
    Person,
}

/// A request that was put to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingApproval {
    /// The call.
    pub call: EightByteDigest,
    /// Parked: its name.
    pub approval: String,
    /// Parked: when it runs out.
    pub until: Option<UnixMillis>,
}

/// A conversation inside a task: the main one or a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScopeState {
    /// Which.
    pub id: ScopeId,
    /// Last calls, oldest first; the newest may be the one being judged.
    pub window: VecDeque<RecentCall>,
    /// The newest request was denied by a detector and therefore is not in the window.
    #[serde(rename = "struck")]
    pub newest_denied_by_detector: bool,
    /// Rounds of this scope.
    pub rounds: u64,
    /// A write of this scope succeeded.
    pub wrote: bool,
    /// Its rounds are used up, or it was caught in a loop. Every further call is denied.
    pub halted: bool,
    /// Calls of this sub-agent that a detector denied.
    pub criticals: u32,
    /// The one call over its cap was answered.
    pub grace: bool,
    /// Calls since the newest that brought something new, that one included; of another conversation
    /// only what changed something counts. Calls that a detector denied are not counted.
    pub calls_since_news: u8,
    /// What was done about the patterns that detectors found, the newest last.
    pub ladder: Vec<LoopPatternEscalation>,
    /// What OpenClaw's rules remember, under the preset that asks for them.
    pub openclaw: Option<Box<OpenClawCallHistory>>,
    /// Stops at which a judge sent it back.
    #[serde(rename = "sent_back")]
    pub judge_refusals: u32,
    /// The stop being judged.
    pub pending: Option<PendingStop>,
}

/// What was done about one pattern that a detector found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopPatternEscalation {
    /// Four bytes of the digest of detector and pattern.
    pub key: [u8; 4],
    /// What was done since the last news of the scope.
    pub rung: LadderRung,
    /// How often the pattern had been seen when the agent was last told of it, before or after the
    /// last news; 0 if it never was.
    pub told_count: u8,
}

/// One tool call as detectors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedRecentCall", into = "PackedRecentCall")]
pub struct RecentCall {
    /// Tool and canonical arguments.
    pub call: EightByteDigest,
    /// The agent's id of the call, as four bytes of its digest; dropped with its outcome.
    pub id: Option<u32>,
    /// Four bytes of the digest of what came back; `None` if nothing has.
    pub outcome: Option<u32>,
    /// Two bytes of the digest of the tool's name.
    pub tool: u16,
    /// Three bytes of the digest of what came back without what differs by time alone, and without
    /// names if it failed; 0 if nothing has come back.
    pub answer_kind: u32,
    /// It is a poll: repeating it is legitimate while the answer changes.
    pub poll: bool,
    /// It is a command that sleeps or waits.
    pub waits: bool,
    /// It runs a command.
    pub shell: bool,
    /// It writes files, unless it fails.
    pub write: bool,
    /// It is neither a shell nor known to only look: what it does is not known.
    pub acts: bool,
    /// How far it may reach, if it is an act.
    pub reach: Option<ActReach>,
    /// Its (call, outcome) pair was new in the task, or it wrote.
    pub progress: bool,
    /// It succeeded, and its (call, outcome) pair was new in the task.
    pub news: bool,
    /// It failed.
    pub failed: bool,
    /// What it asked about is still running.
    pub running: bool,
    /// There is no tool of that name.
    pub unknown_tool: bool,
    /// Nothing was said.
    pub empty: bool,
}

/// The compact form of a call in the state cache, which holds hundreds of them: 19 bytes. Digests are
/// cut to what tells the entries of one window apart.
#[derive(Serialize, Deserialize)]
struct PackedRecentCall {
    call: EightByteDigest,
    /// Its outcome or, as long as there is none, its id.
    answer: [u8; 4],
    tool: [u8; 2],
    answer_kind: [u8; 3],
    marks: [u8; 2],
}

impl From<RecentCall> for PackedRecentCall {
    fn from(call: RecentCall) -> Self {
        let reach = match call.reach {
            None => 0,
            Some(ActReach::Elsewhere) => 1,
            Some(ActReach::Outside) => 2,
            Some(ActReach::Unknown) => 3,
        };
        // A call's id is needed only until it has an outcome.
        let (answer, is_open, has_id) = match (call.outcome, call.id) {
            (Some(outcome), _) => (outcome, false, false),
            (None, id) => (id.unwrap_or_default(), true, id.is_some()),
        };
        // Above the two bits of the reach, in an order that state caches are read back with.
        let marks = call
            .flags()
            .into_iter()
            .chain([is_open, has_id])
            .rev()
            .fold(0_u16, |marks, mark| marks << 1 | u16::from(mark));
        Self {
            call: call.call,
            answer: answer.to_le_bytes(),
            tool: call.tool.to_le_bytes(),
            answer_kind: {
                let [one, two, three, _] = call.answer_kind.to_le_bytes();
                [one, two, three]
            },
            marks: (marks << 2 | reach).to_le_bytes(),
        }
    }
}

impl From<PackedRecentCall> for RecentCall {
    fn from(packed: PackedRecentCall) -> Self {
        let marks = u16::from_le_bytes(packed.marks);
        let flag = |at: u16| marks >> (at + 2) & 1 != 0;
        let answer = u32::from_le_bytes(packed.answer);
        let (is_open, has_id) = (flag(11), flag(12));
        Self {
            call: packed.call,
            id: has_id.then_some(answer),
            outcome: (!is_open).then_some(answer),
            tool: u16::from_le_bytes(packed.tool),
            answer_kind: three_byte_number(packed.answer_kind),
            poll: flag(0),
            waits: flag(1),
            shell: flag(2),
            write: flag(3),
            progress: flag(4),
            news: flag(5),
            failed: flag(6),
            running: flag(7),
            unknown_tool: flag(8),
            empty: flag(9),
            acts: flag(10),
            reach: match marks & 3 {
                0 => None,
                1 => Some(ActReach::Elsewhere),
                2 => Some(ActReach::Outside),
                _ => Some(ActReach::Unknown),
            },
        }
    }
}

/// A stop being judged: what was known when it was requested, and what has come back for it.
///
/// Stops of several scopes may be judged at once. None of them sees what another's verdicts or
/// answer changed meanwhile, so the order of arrival does not matter (law 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStop {
    /// Its input.
    pub stop: EventSeq,
    /// When it was requested.
    pub at: UnixMillis,
    /// The tree it is judged on.
    pub tree: Result<TreeDigests, TreeReadError>,
    /// Digest of the final message.
    pub message: Digest,
    /// The triggers of the judges.
    pub judges: Vec<JudgeTriggerFact>,
    /// The agent's own cap on blocks in a row.
    pub block_cap: Option<u32>,
    /// The last answer was cut.
    pub truncated: bool,
    /// Background tasks still running.
    pub background: u32,
    /// How the agent's own process ended, if the agent cannot be sent back.
    #[serde(rename = "over")]
    pub agent_ending: Option<Transition>,
    /// Verifiers that have not come back.
    #[serde(rename = "waiting")]
    pub awaited_verifiers: Vec<VerifierName>,
    /// The verifiers and subjects that were requested for this stop.
    #[serde(rename = "asked")]
    pub requested_subjects: Vec<(VerifierName, EightByteDigest)>,
    /// The event of the newest request for it. Answers are matched by it, so that several processes
    /// may answer one request and no answer is taken for one to a later request.
    #[serde(rename = "requested")]
    pub newest_request: EventSeq,
    /// The state of reading the tree again.
    pub recheck: TreeRecheckState,
    /// A moving tree does not count as an attempt. Not set in older logs.
    pub no_attempt: bool,
    /// The newest runs of checks, where the runtime reports them.
    #[serde(rename = "runs")]
    pub newest_runs: Option<Vec<NewestCheckRun>>,
    /// Checks that failed at earlier stops and are rerun before the task is given up.
    #[serde(rename = "again")]
    pub final_reruns: Vec<VerifierName>,
    /// The verdicts that decide, sorted by verifier and stop. A sub-agent's stop begins with none.
    pub verdicts: Vec<VerifierVerdictInTask>,
    /// The task had a bad ending when the stop was requested.
    #[serde(rename = "spent")]
    pub had_bad_ending: bool,
    /// How the last request before it was refused by policy.
    pub refused: Option<ExecPolicyRefusalSource>,
    /// Continuations of the main conversation when it was requested. For a sub-agent's stop this
    /// includes one for a main stop that was being judged at that time.
    #[serde(rename = "given")]
    pub main_continuations: u32,
    /// Continuations of sub-agents when it was asked for.
    #[serde(rename = "below")]
    pub subagent_continuations: u32,
    /// Stops of sub-agents that were being judged at that time. Each may be given one more
    /// continuation.
    #[serde(rename = "ahead")]
    pub pending_subagent_stops: u32,
}

/// A verdict of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifierVerdictInTask {
    /// What decides.
    pub fact: EvidenceSummary,
    /// Identity of what kept it from a verdict.
    pub held_up: Option<EightByteDigest>,
    /// When the run that produced it began.
    pub began: Option<UnixMillis>,
    /// The newest stop it came back for.
    pub stop: EventSeq,
}

/// A check that was to run once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastChanceRerun {
    /// Which.
    pub verifier: VerifierName,
    /// About what.
    pub subject: EightByteDigest,
    /// When the first stop that requested it came.
    pub at: UnixMillis,
}

/// What the agent was told about a verifier in this task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingsToldToAgent {
    /// Which verifier.
    pub verifier: VerifierName,
    /// Findings, and whether each was still there at the last judged stop.
    pub findings: Vec<(EightByteDigest, bool)>,
}

impl VerifierVerdictInTask {
    /// Returns whether the verdict settles only the stop it was requested for: the check was cut,
    /// was held by another process, or files moved during it.
    fn is_verdict_for_one_stop_only(&self) -> bool {
        let cut = self
            .fact
            .cause
            .is_some_and(InconclusiveCause::is_cut_off_or_claimed_elsewhere);
        cut || self.held_up.is_some()
    }

    /// The verdict, given that the tree held still; inconclusive otherwise.
    pub fn verdict_if_tree_unchanged(&self) -> (Verdict, Option<InconclusiveCause>) {
        // A verdict about a tree that changed during the run is about neither of the two trees.
        if self.fact.subject == self.fact.subject_after {
            (self.fact.verdict, self.fact.cause)
        } else {
            (Verdict::Inconclusive, Some(InconclusiveCause::TreeMoving))
        }
    }

    /// Returns whether the verifier can never pass.
    pub fn can_verifier_never_pass(&self) -> bool {
        self.fact.retryable == CheckRetryability::No
    }
}

impl ScopeState {
    /// What was done about this pattern.
    pub(crate) fn pattern_on_ladder(&self, key: EightByteDigest) -> LoopPatternEscalation {
        let key = digest_as_u32(key).to_le_bytes();
        let known = self.ladder.iter().find(|pattern| pattern.key == key);
        known.copied().unwrap_or(LoopPatternEscalation {
            key,
            rung: LadderRung::Unsaid,
            told_count: 0,
        })
    }

    /// Records what was done about a pattern that was seen `count` times.
    fn record_pattern_ladder_rung(&mut self, key: EightByteDigest, rung: LadderRung, count: u32) {
        let mut pattern = self.pattern_on_ladder(key);
        if rung == LadderRung::Told && pattern.rung == LadderRung::Unsaid {
            pattern.told_count = u8::try_from(count).unwrap_or(u8::MAX);
        }
        pattern.rung = rung;
        // The pattern found last is the last to be forgotten.
        self.ladder.retain(|known| known.key != pattern.key);
        if self.ladder.len() >= MAX_PATTERNS {
            let mut known = self.ladder.iter();
            // One that news has taken back is the first to go: it has the least to lose.
            let unsaid = known.position(|pattern| pattern.rung == LadderRung::Unsaid);
            self.ladder.remove(unsaid.unwrap_or(0));
        }
        self.ladder.push(pattern);
    }

    /// Takes the newest call out of the window because a detector denied it: it did not run, and its
    /// repeats would push out the calls that form the pattern. Two detectors may deny one call.
    fn take_back_denied_call(&mut self) {
        if !self.newest_denied_by_detector {
            self.window.pop_back();
            self.calls_since_news = self.calls_since_news.saturating_sub(1);
            self.newest_denied_by_detector = true;
        }
    }

    /// Takes all patterns back to the beginning: something new has come of the work.
    fn reset_ladder(&mut self) {
        self.calls_since_news = 1;
        for pattern in &mut self.ladder {
            pattern.rung = LadderRung::Unsaid;
        }
    }

    /// Returns the window index of the open call that this result belongs to.
    fn find_open_call(&self, returned: &ToolReturned) -> Option<usize> {
        let id = returned.call_id.as_deref().map(call_id_digest);
        self.window.iter().rposition(|call| {
            let same = match (call.id, id) {
                (Some(asked), Some(came)) => asked == came,
                // Not every agent sends call ids. Without one, the same tool with the same
                // arguments is the best match, newest first.
                (None, _) | (_, None) => call.call == returned.call,
            };
            // A call that came back is closed. The same result again must not close another call.
            call.outcome.is_none() && same
        })
    }

    fn new(id: ScopeId) -> Self {
        Self {
            id,
            window: VecDeque::new(),
            newest_denied_by_detector: false,
            rounds: 0,
            wrote: false,
            halted: false,
            criticals: 0,
            grace: false,
            calls_since_news: 0,
            ladder: Vec::new(),
            openclaw: None,
            judge_refusals: 0,
            pending: None,
        }
    }
}

impl RecentCall {
    /// Returns whether the call may change what another one finds.
    pub(crate) fn may_change_files(&self) -> bool {
        self.write || self.shell || self.acts
    }

    /// A request that has not come back.
    pub(crate) fn pending_call_from_request(request: &ToolRequested) -> Self {
        Self {
            call: request.call,
            id: request.call_id.as_deref().map(call_id_digest),
            outcome: None,
            tool: tool_name_digest(&request.tool),
            answer_kind: 0,
            poll: request.kind == ToolKind::Poll,
            waits: request.waits,
            shell: request.kind == ToolKind::Shell,
            write: request.kind == ToolKind::Write,
            acts: request.may_act,
            reach: request.facts.reach,
            progress: false,
            news: false,
            failed: false,
            running: false,
            unknown_tool: false,
            empty: false,
        }
    }

    /// Records what came back and whether that pair of call and outcome is new in the task.
    fn record_tool_outcome(&mut self, returned: &ToolReturned, is_new: bool, wrote: bool) {
        let facts = returned.facts;
        self.record_outcome_of_unrun_call(returned.outcome, is_new || wrote);
        let kind = match returned.error {
            true => facts.family,
            false => facts.steady,
        };
        self.answer_kind = digest_first_three_bytes(kind.unwrap_or(returned.outcome));
        // An error that was never seen before is no news: it leads nowhere by itself.
        self.news = is_new && !returned.error;
        self.failed = returned.error;
        self.running = facts.running;
        // A shell is there: what it says of a tool is about another one.
        self.unknown_tool = facts.unknown_tool && !self.shell;
        self.empty = facts.empty;
    }

    /// Records the outcome of a call that did not run.
    fn record_outcome_of_unrun_call(&mut self, outcome: EightByteDigest, progress: bool) {
        self.id = None;
        self.outcome = Some(digest_as_u32(outcome));
        self.answer_kind = digest_first_three_bytes(outcome);
        self.progress = progress;
    }

    /// Its flags, in the order of the state cache.
    fn flags(self) -> [bool; 11] {
        [
            self.poll,
            self.waits,
            self.shell,
            self.write,
            self.progress,
            self.news,
            self.failed,
            self.running,
            self.unknown_tool,
            self.empty,
            self.acts,
        ]
    }
}

/// Returns the digest by which calls of one tool are told from those of another in one window.
fn tool_name_digest(tool: &str) -> u16 {
    let [one, two, ..] = *Digest::hash_bytes(tool.as_bytes()).as_bytes();
    u16::from_le_bytes([one, two])
}

fn call_id_digest(id: &str) -> u32 {
    digest_as_u32(Digest::hash_bytes(id.as_bytes()).to_eight_byte_digest())
}

fn digest_first_three_bytes(digest: EightByteDigest) -> u32 {
    let [one, two, three, ..] = digest.0.to_le_bytes();
    three_byte_number([one, two, three])
}

fn three_byte_number([one, two, three]: [u8; 3]) -> u32 {
    u32::from_le_bytes([one, two, three, 0])
}

fn digest_as_u32(digest: EightByteDigest) -> u32 {
    let [one, two, three, four, ..] = digest.0.to_le_bytes();
    u32::from_le_bytes([one, two, three, four])
}

impl SessionState {
    /// The scope's calls, pending stop and counters.
    pub fn conversation_scope_by_id(&self, id: &ScopeId) -> Option<&ScopeState> {
        self.task.as_ref()?.conversation_scope_by_id(id)
    }

    /// The stop of this scope that is being judged.
    pub fn pending_stop(&self, id: &ScopeId) -> Option<&PendingStop> {
        self.conversation_scope_by_id(id)?.pending.as_ref()
    }

    /// Returns the reach of the call that this result belongs to, if that call was an act.
    pub fn act_reach_of_returned_call(&self, returned: &ToolReturned) -> Option<ActReach> {
        let scope = self.conversation_scope_by_id(&returned.scope)?;
        scope.window.get(scope.find_open_call(returned)?)?.reach
    }

    /// Returns the reach of the newest call of this conversation, if it was an act, its outcome was
    /// never reported, and no prompt or stop has come since.
    pub fn reach_of_unreported_newest_call(&self, scope: &ScopeId) -> Option<ActReach> {
        let known = self.conversation_scope_by_id(scope)?;
        let newest = known.window.back()?;
        // A call that was halted or struck did not run.
        let ran = !known.halted
            && !known.newest_denied_by_detector
            && self.task.as_ref().is_some_and(|t| !t.halted);
        // A prompt or a stop after the call means that it is over, whatever came of it.
        let is_newest = newest.outcome.is_none()
            && self.newest_stop_if_nothing_followed(scope).is_none()
            && self.newest_prompt_if_nothing_followed().is_none();
        newest.reach.filter(|_| is_newest && ran)
    }

    /// Returns whether this is the first result of a known call.
    pub fn answers_open_tool_call(&self, returned: &ToolReturned) -> bool {
        let scope = self.conversation_scope_by_id(&returned.scope);
        scope.is_some_and(|scope| scope.find_open_call(returned).is_some())
    }

    /// The task, if it is open.
    pub fn current_open_task(&self) -> Option<&Task> {
        self.task.as_ref().filter(|task| task.ended.is_none())
    }

    /// Returns the cursor of the token reader in this scope's transcript; empty if it was never
    /// read or was dropped.
    pub fn transcript_cursor(&self, id: &ScopeId) -> &str {
        self.cursors
            .iter()
            .find(|(scope, _)| scope == id)
            .map_or("", |(_, cursor)| cursor)
    }

    /// Returns the newest prompt, as long as neither a tool request nor a stop came after it. The
    /// same prompt from another installed hook entry can then only be a repeat.
    pub fn newest_prompt_if_nothing_followed(&self) -> Option<&DeliveredPromptOrStop> {
        self.deliveries.prompt.as_ref()
    }

    /// The newest stop of this scope, as long as neither a tool request of the scope nor
    /// a prompt came after it, whether or not it ended the task.
    pub fn newest_stop_if_nothing_followed(
        &self,
        scope: &ScopeId,
    ) -> Option<&DeliveredPromptOrStop> {
        self.deliveries.newest_delivered_stop(scope)
    }

    /// Milliseconds of agent time of the task until now.
    pub fn agent_busy_ms(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| {
            // The running span is not in the totals yet.
            let span = task
                .working_since
                .map_or(0, |since| self.now.millis_since(since));
            task.totals.busy_ms.saturating_add(span)
        })
    }
}

impl Task {
    /// The scope of this id.
    pub fn conversation_scope_by_id(&self, id: &ScopeId) -> Option<&ScopeState> {
        self.scopes.iter().find(|scope| scope.id == *id)
    }

    /// Returns the time since which a failure counts. Whatever caused an older one may have been
    /// mended outside the tree.
    pub fn failure_validity_start(&self) -> UnixMillis {
        let outside = self.outside.map_or(UnixMillis(0), |(_, at)| at);
        // A new task asks again as well: what failed before may have been mended between tasks.
        self.opened_at.max(outside)
    }

    /// Returns the findings that the agent was told about this verifier.
    pub fn findings_told_to_agent(&self, name: &VerifierName) -> &[(EightByteDigest, bool)] {
        self.reported_findings
            .iter()
            .find(|told| told.verifier == *name)
            .map_or(&[], |told| &told.findings)
    }

    /// How often this failure set was met so far.
    pub fn failure_set_seen_count(&self, set: EightByteDigest) -> u32 {
        self.failure_sets
            .iter()
            .find(|(known, _)| *known == set)
            .map_or(0, |(_, met)| *met)
    }

    /// The multiple of ten already spoken about for this pattern.
    pub fn last_nudged_repeat_count(&self, key: EightByteDigest) -> u32 {
        self.nudged
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(0, |(_, bucket)| *bucket)
    }
}

impl PendingStop {
    /// The newest verdict of this verifier.
    pub fn newest_verdict_of_verifier(
        &self,
        name: &VerifierName,
    ) -> Option<&VerifierVerdictInTask> {
        let mut newest_first = self.verdicts.iter().rev();
        newest_first.find(|held| held.fact.verifier == *name)
    }

    /// The verdict of this verifier about `subject`.
    pub fn find_verdict_on_subject(
        &self,
        name: &VerifierName,
        subject: Digest,
    ) -> Option<&VerifierVerdictInTask> {
        let about = |held: &&VerifierVerdictInTask| {
            held.fact.verifier == *name && held.fact.subject == subject
        };
        self.verdicts.iter().rev().find(about)
    }

    /// Returns the subject of this judge: the final message, the tree as far as it can be read, and
    /// the prompt of the task.
    pub fn judge_subject_digest(&self, name: &VerifierName, prompt: EightByteDigest) -> Digest {
        let tree = self
            .tree
            .as_ref()
            .map(|tree| tree.verifier_subject_digest(name));
        let tree = tree.unwrap_or(Digest::hash_bytes(b""));
        // A heartbeat asks each time whether there is something to do, so its answers must not be
        // reused for a later stop.
        let beat = match self.recorded_judge_trigger(name) {
            JudgeTriggerOrSkipReason::Heartbeat => self.stop.0.to_le_bytes(),
            _ => [0; 8],
        };
        Digest::hash_parts([
            &self.message.as_bytes()[..],
            &tree.as_bytes()[..],
            &prompt.0.to_le_bytes(),
            &beat,
        ])
    }

    /// Returns the identity of the final message together with the tree.
    pub fn message_and_tree_digest(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        let tree = tree.unwrap_or(Digest::hash_bytes(b""));
        Digest::hash_parts([&self.message.as_bytes()[..], &tree.as_bytes()[..]])
    }

    /// Returns a digest that is unique to this stop and its tree.
    pub fn digest_unique_to_stop(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        Digest::hash_parts([
            &self.message.as_bytes()[..],
            &tree.unwrap_or(Digest::hash_bytes(b"")).as_bytes()[..],
            &self.stop.0.to_le_bytes(),
        ])
    }

    /// Returns the trigger of this judge. Logs from before triggers existed hold none.
    pub fn recorded_judge_trigger(&self, name: &VerifierName) -> JudgeTriggerOrSkipReason {
        let of = |fact: &&JudgeTriggerFact| fact.verifier == *name;
        let fact = self.judges.iter().find(of);
        fact.map_or(JudgeTriggerOrSkipReason::Nothing, |fact| fact.trigger)
    }

    /// Returns the continuations of sub-agents, counting one for each of their stops that was being
    /// judged.
    pub fn all_subagent_continuations_plus_pending_stops(&self) -> u32 {
        self.subagent_continuations + self.pending_subagent_stops
    }
}

/// Appends `item` and keeps only the newest [`MAX_KEPT`].
fn push_keeping_newest<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MAX_KEPT {
        list.remove(0);
    }
    list.push(item);
}
