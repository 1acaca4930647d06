//! What is known about a session: the fold of its log. `fold` writes it, nothing else does.
//!
//! INVARIANT: bounded. Windows, sets and lists have fixed capacities, so that the state
//! cache stays small (16 KiB) however long a session runs. What came back for stops of many
//! sub-agents that are judged at once may take half as much again; such a state is not cached.

pub(crate) mod clock;
mod deliveries;
mod fold;
mod task;
mod tree_recheck;
mod verdicts;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, EightByteDigest};
use crate::event::{CapKind, TaskOrigin};
use crate::evidence::{EvidenceSummary, InconclusiveCause, Retryability, Verdict};
use crate::ids::{AgentName, EventSeq, ScopeId, TaskId, UnixMillis, VerifierName};
use crate::input::{
    ActReach, JudgeTrigger, JudgeTriggerFact, NewestActNumbers, NewestCheckRun, StampedInput,
    ToolReturned, TreeDigests, TreeReadError,
};
use crate::transition::Transition;

use self::deliveries::NewestPromptAndStop;
pub use self::deliveries::PromptOrStopDelivery;
pub use self::tree_recheck::TreeRecheckState;

/// Calls a detector looks back at.
pub const CALL_WINDOW_LEN: usize = 30;
/// Scopes whose counters are kept at once; the longest untouched sub-agent's go first.
const MAX_SCOPES: usize = 64;
/// Scopes whose last calls are kept at once; they take the room, counters do not.
const MAX_WINDOWS: usize = 9;
/// Scopes whose place in their transcripts is kept here; the store has a row of each.
const MAX_CURSORS: usize = 24;
/// (call, outcome) pairs remembered per task; older ones count as new again, which
/// errs towards seeing progress.
const MAX_SEEN: usize = 172;
/// Failure sets and nudge keys remembered per task.
const MAX_KEPT: usize = 32;
/// Bytes of the names of edited files remembered per task; the log has them all.
const MAX_EDITED: usize = 112;
/// Told findings remembered per verifier.
const MAX_TOLD: usize = 56;

/// Everything that is known about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionState {
    /// Position of the last event.
    pub last: EventSeq,
    /// The latest time stamped so far, since the clock was turned back if it was.
    pub now: UnixMillis,
    /// The latest time stamped before that.
    turned_back_from: Option<UnixMillis>,
    /// Digest of the sealed policy.
    pub policy: Option<Digest>,
    /// Since which event the guarded files are known to be as this blob says.
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
    /// Where the token reader stands, per scope, longest unread first. Nothing is decided by it, and
    /// what is forgotten here is found in the store.
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
    /// The same for models that were asked to judge.
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
    /// When.
    pub opened_at: UnixMillis,
    /// Identity of the prompt that opened it.
    pub prompt: EightByteDigest,
    /// The tree at its start.
    pub start: Option<TreeDigests>,
    /// The newest acts at its start, where the tree is not known, as long as no call of the task may have changed a file.
    pub acts_at_start: Option<NewestActNumbers>,
    /// Since when the agent has been at work; `None` while we judge or it rests.
    pub working_since: Option<UnixMillis>,
    /// How it ended; `None` while it is open.
    pub ended: Option<Transition>,
    /// How it first ended otherwise than well: never answered `continue` again, and only
    /// a better reason replaces this one.
    #[serde(rename = "spent")]
    pub bad_ending: Option<Transition>,
    /// It was halted: nothing of it runs any more.
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
    /// Gate verdicts of the main conversation, one by verifier. While one of its stops is
    /// being judged they are with that stop.
    pub verdicts: Vec<KeptVerifierVerdict>,
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
    /// Multiples of ten already spoken about, per pattern.
    pub nudged: Vec<(EightByteDigest, u32)>,
    /// (call, outcome) pairs seen, folded to 32 bits; bytes, so that each takes four.
    pub seen: VecDeque<[u8; 4]>,
    /// How the last request was refused by policy, if none was allowed since.
    pub refused: Option<RefusalSource>,
    /// The last request put to a person, if none was allowed since.
    #[serde(rename = "asked")]
    pub pending_approval: Option<PendingApproval>,
    /// The last request that changes what checks find outside the tree: what failed before
    /// it is asked again, on the same tree as well.
    pub outside: Option<(EventSeq, UnixMillis)>,
    /// Guarded files that were edited while it was open.
    pub edited: Vec<String>,
    /// The agent was told of them.
    pub edited_told: bool,
    /// Verifiers that the agent was sent back for because their program was gone.
    pub missing_told: Vec<VerifierName>,
    /// What was to run once more before the task would be given up.
    #[serde(rename = "ran_once_more")]
    pub final_reruns: Vec<LastChanceRerun>,
    /// Calls that a model was asked about.
    pub vetoes: u32,
    /// Times that a model was asked whether the agent gets anywhere.
    #[serde(rename = "ratings")]
    pub progress_checks: u32,
    /// Times in a row that it was too little.
    #[serde(rename = "low")]
    pub low_progress_streak: u32,
    /// A layer of middleware could not say, and its stance let that pass.
    pub passed_over: bool,
    /// Main conversation and sub-agents at work.
    pub scopes: Vec<ScopeState>,
}

/// Who refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalSource {
    /// A rule.
    Rule,
    /// A rule that would have had a person asked, where nobody is.
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
    /// The newest request was denied by a detector, and so is not in the window.
    #[serde(rename = "struck")]
    pub newest_denied_by_detector: bool,
    /// Rounds of this scope.
    pub rounds: u64,
    /// A write of this scope succeeded.
    pub wrote: bool,
    /// Its rounds are used up, or it went in circles: every further call is denied.
    pub halted: bool,
    /// Calls of this sub-agent that a detector denied.
    pub criticals: u32,
    /// The one call over its cap was answered.
    pub grace: bool,
    /// Stops at which a judge sent it back.
    #[serde(rename = "sent_back")]
    pub judge_refusals: u32,
    /// The stop being judged.
    pub pending: Option<PendingStop>,
}

/// One tool call as detectors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedCall", into = "PackedCall")]
pub struct RecentCall {
    /// Tool and canonical arguments.
    pub call: EightByteDigest,
    /// The agent's id of the call, hashed; dropped with its outcome.
    pub id: Option<EightByteDigest>,
    /// Digest of what came back; `None` if nothing has.
    pub outcome: Option<EightByteDigest>,
    /// Repeating it is legitimate while the answer changes.
    pub poll: bool,
    /// It writes files, unless it fails.
    pub write: bool,
    /// How far it may reach, if it is an act.
    pub reach: Option<ActReach>,
    /// Its (call, outcome) pair was new in the task, or it wrote.
    pub progress: bool,
}

/// A call as the state cache has it: there are hundreds of them.
#[derive(Serialize, Deserialize)]
struct PackedCall(
    EightByteDigest,
    Option<EightByteDigest>,
    Option<EightByteDigest>,
    u8,
);

impl From<RecentCall> for PackedCall {
    fn from(call: RecentCall) -> Self {
        let marks = [call.poll, call.write, call.progress];
        let marks = marks
            .iter()
            .rev()
            .fold(0, |marks, mark| marks << 1 | u8::from(*mark));
        let reach = match call.reach {
            None => 0,
            Some(ActReach::Elsewhere) => 1,
            Some(ActReach::Outside) => 2,
            Some(ActReach::Unknown) => 3,
        };
        let marks = marks | reach << 3;
        Self(call.call, call.id, call.outcome, marks)
    }
}

impl From<PackedCall> for RecentCall {
    fn from(PackedCall(call, id, outcome, marks): PackedCall) -> Self {
        Self {
            call,
            id,
            outcome,
            poll: marks & 1 != 0,
            write: marks & 2 != 0,
            progress: marks & 4 != 0,
            reach: match marks >> 3 & 3 {
                0 => None,
                1 => Some(ActReach::Elsewhere),
                2 => Some(ActReach::Outside),
                _ => Some(ActReach::Unknown),
            },
        }
    }
}

/// A stop being judged: what was known when it was asked for, and what came back for it.
/// Stops of several scopes may be judged at once. None of them looks at what another's
/// verdicts or answer changed meanwhile, so that the order in which they come decides
/// nothing (law 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingStop {
    /// Its input.
    pub stop: EventSeq,
    /// When it was asked for.
    pub at: UnixMillis,
    /// The tree it is judged on.
    pub tree: Result<TreeDigests, TreeReadError>,
    /// Digest of the final message.
    pub message: Digest,
    /// What calls for judges.
    pub judges: Vec<JudgeTriggerFact>,
    /// The agent's own cap on blocks in a row.
    pub block_cap: Option<u32>,
    /// The last answer was cut.
    pub truncated: bool,
    /// Background tasks still running.
    pub background: u32,
    /// How the agent's own program ended, if it cannot be sent back.
    #[serde(rename = "over")]
    pub agent_ending: Option<Transition>,
    /// Verifiers that have not come back.
    #[serde(rename = "waiting")]
    pub awaited_verifiers: Vec<VerifierName>,
    /// What was asked for this stop: verifier and subject.
    #[serde(rename = "asked")]
    pub requested_subjects: Vec<(VerifierName, EightByteDigest)>,
    /// The event that made the newest request for it. What comes back is known by it, so that several
    /// processes may answer one request, and no answer is taken for one to a later request.
    #[serde(rename = "requested")]
    pub newest_request: EventSeq,
    /// What reading the tree again has shown.
    pub recheck: TreeRecheckState,
    /// That the tree moved is no attempt: not in older logs.
    pub no_attempt: bool,
    /// The newest runs of checks, where the runtime tells them.
    #[serde(rename = "runs")]
    pub newest_runs: Option<Vec<NewestCheckRun>>,
    /// What failed at earlier stops and runs once more, before the task is given up.
    #[serde(rename = "again")]
    pub final_reruns: Vec<VerifierName>,
    /// What decides, by verifier and stop. A sub-agent's stop begins with none.
    pub verdicts: Vec<KeptVerifierVerdict>,
    /// The task had ended otherwise than well when it was asked for.
    #[serde(rename = "spent")]
    pub had_bad_ending: bool,
    /// How the last request before it was refused by policy.
    pub refused: Option<RefusalSource>,
    /// Continuations of the main conversation when it was asked for; in a sub-agent's stop
    /// the one more, too, that a main stop that was being judged then may be given.
    #[serde(rename = "given")]
    pub main_continuations: u32,
    /// Continuations of sub-agents when it was asked for.
    #[serde(rename = "below")]
    pub subagent_continuations: u32,
    /// Stops of other sub-agents that were being judged then: each may be given one more.
    #[serde(rename = "ahead")]
    pub pending_subagent_stops: u32,
}

/// A verdict of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVerifierVerdict {
    /// What decides.
    pub fact: EvidenceSummary,
    /// What kept it from a verdict.
    pub held_up: Option<EightByteDigest>,
    /// When the run began that found it.
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
    /// When the stop came that asked for it first.
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

impl KeptVerifierVerdict {
    /// A check that was cut, that another process held, or during which files moved settles the
    /// stop it was asked for and no later one.
    fn is_transient_verdict(&self) -> bool {
        let cut = self
            .fact
            .cause
            .is_some_and(InconclusiveCause::is_unfinished_run);
        cut || self.held_up.is_some()
    }

    /// The verdict, given that the tree held still; inconclusive otherwise.
    pub fn verdict_if_tree_unchanged(&self) -> (Verdict, Option<InconclusiveCause>) {
        if self.fact.subject == self.fact.subject_after {
            (self.fact.verdict, self.fact.cause)
        } else {
            (Verdict::Inconclusive, Some(InconclusiveCause::TreeMoving))
        }
    }

    /// Whether it can never succeed.
    pub fn can_verifier_never_pass(&self) -> bool {
        self.fact.retryable == Retryability::No
    }
}

impl ScopeState {
    /// Where the call is in the window that this came back of, if it is.
    fn find_open_call(&self, returned: &ToolReturned) -> Option<usize> {
        let id = returned
            .call_id
            .as_ref()
            .map(|id| Digest::hash_bytes(id.as_bytes()).to_short_digest());
        self.window.iter().rposition(|call| {
            let same = match (call.id, id) {
                (Some(asked), Some(came)) => asked == came,
                (None, _) | (_, None) => call.call == returned.call,
            };
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
            judge_refusals: 0,
            pending: None,
        }
    }
}

impl RecentCall {
    /// What came back, and whether it was progress.
    fn set_call_outcome(&mut self, outcome: EightByteDigest, progress: bool) {
        self.id = None;
        self.outcome = Some(outcome);
        self.progress = progress;
    }
}

impl SessionState {
    /// The scope's calls, pending stop and counters.
    pub fn scope_by_id(&self, id: &ScopeId) -> Option<&ScopeState> {
        self.task.as_ref()?.scope_by_id(id)
    }

    /// The stop of this scope that is being judged.
    pub fn pending_stop(&self, id: &ScopeId) -> Option<&PendingStop> {
        self.scope_by_id(id)?.pending.as_ref()
    }

    /// How far the call may have reached that this came back of, if it was an act.
    pub fn act_reach(&self, returned: &ToolReturned) -> Option<ActReach> {
        let scope = self.scope_by_id(&returned.scope)?;
        scope.window.get(scope.find_open_call(returned)?)?.reach
    }

    /// How far the newest call of this conversation may have reached, if it was an act, nobody has said what came of
    /// it, and the conversation has neither been prompted nor asked to stop since.
    pub fn unreported_act_reach(&self, scope: &ScopeId) -> Option<ActReach> {
        let known = self.scope_by_id(scope)?;
        let newest = known.window.back()?;
        // A call that was halted or struck did not run.
        let ran = !known.halted
            && !known.newest_denied_by_detector
            && self.task.as_ref().is_some_and(|t| !t.halted);
        let is_newest = newest.outcome.is_none()
            && self.newest_stop_if_nothing_followed(scope).is_none()
            && self.newest_prompt_delivery().is_none();
        newest.reach.filter(|_| is_newest && ran)
    }

    /// Whether this came back of a call that is known and had not come back before.
    pub fn answers_open_tool_call(&self, returned: &ToolReturned) -> bool {
        let scope = self.scope_by_id(&returned.scope);
        scope.is_some_and(|scope| scope.find_open_call(returned).is_some())
    }

    /// The task, if it is open.
    pub fn task_if_open(&self) -> Option<&Task> {
        self.task.as_ref().filter(|task| task.ended.is_none())
    }

    /// Where the token reader stands in this scope's transcript; empty if it was never read or is
    /// forgotten.
    pub fn transcript_cursor(&self, id: &ScopeId) -> &str {
        self.cursors
            .iter()
            .find(|(scope, _)| scope == id)
            .map_or("", |(_, cursor)| cursor)
    }

    /// The newest prompt, as long as neither a tool request nor a stop came after it: the
    /// same news from another installed entry can only be this one.
    pub fn newest_prompt_delivery(&self) -> Option<&PromptOrStopDelivery> {
        self.deliveries.prompt.as_ref()
    }

    /// The newest stop of this scope, as long as neither a tool request of the scope nor
    /// a prompt came after it, whether or not it ended the task.
    pub fn newest_stop_if_nothing_followed(
        &self,
        scope: &ScopeId,
    ) -> Option<&PromptOrStopDelivery> {
        self.deliveries.newest_delivered_stop(scope)
    }

    /// Milliseconds of agent time of the task until now.
    pub fn agent_busy_ms(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| {
            let span = task
                .working_since
                .map_or(0, |since| self.now.millis_since(since));
            task.totals.busy_ms.saturating_add(span)
        })
    }
}

impl Task {
    /// The scope of this id.
    pub fn scope_by_id(&self, id: &ScopeId) -> Option<&ScopeState> {
        self.scopes.iter().find(|scope| scope.id == *id)
    }

    /// Since when a fail holds: what is older may have been mended outside the tree.
    pub fn failures_valid_since(&self) -> UnixMillis {
        let outside = self.outside.map_or(UnixMillis(0), |(_, at)| at);
        self.opened_at.max(outside)
    }

    /// What the agent was told about this verifier.
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
    pub fn newest_verdict_of_verifier(&self, name: &VerifierName) -> Option<&KeptVerifierVerdict> {
        let mut newest_first = self.verdicts.iter().rev();
        newest_first.find(|held| held.fact.verifier == *name)
    }

    /// The verdict of this verifier about `subject`.
    pub fn find_verdict_on_subject(
        &self,
        name: &VerifierName,
        subject: Digest,
    ) -> Option<&KeptVerifierVerdict> {
        let about = |held: &&KeptVerifierVerdict| {
            held.fact.verifier == *name && held.fact.subject == subject
        };
        self.verdicts.iter().rev().find(about)
    }

    /// What a judge of this name is about: the final message, the tree as far as it can be read,
    /// and the prompt of the task.
    pub fn judge_subject_digest(&self, name: &VerifierName, prompt: EightByteDigest) -> Digest {
        let tree = self
            .tree
            .as_ref()
            .map(|tree| tree.verifier_subject_digest(name));
        let tree = tree.unwrap_or(Digest::hash_bytes(b""));
        // Each heartbeat asks anew whether there is something to do.
        let beat = match self.judge_trigger(name) {
            JudgeTrigger::Heartbeat => self.stop.0.to_le_bytes(),
            _ => [0; 8],
        };
        Digest::hash_parts([
            &self.message.as_bytes()[..],
            &tree.as_bytes()[..],
            &prompt.0.to_le_bytes(),
            &beat,
        ])
    }

    /// What was said, and on which tree.
    pub fn message_and_tree_digest(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        let tree = tree.unwrap_or(Digest::hash_bytes(b""));
        Digest::hash_parts([&self.message.as_bytes()[..], &tree.as_bytes()[..]])
    }

    /// What is about this stop and no other, with the tree as it is.
    pub fn digest_unique_to_stop(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        Digest::hash_parts([
            &self.message.as_bytes()[..],
            &tree.unwrap_or(Digest::hash_bytes(b"")).as_bytes()[..],
            &self.stop.0.to_le_bytes(),
        ])
    }

    /// What calls for this judge. A log that was written before there were any does not say.
    pub fn judge_trigger(&self, name: &VerifierName) -> JudgeTrigger {
        let of = |fact: &&JudgeTriggerFact| fact.verifier == *name;
        let fact = self.judges.iter().find(of);
        fact.map_or(JudgeTrigger::Nothing, |fact| fact.trigger)
    }

    /// Continuations of sub-agents, as if each stop that was being judged had one.
    pub fn subagent_continuations_with_pending(&self) -> u32 {
        self.subagent_continuations + self.pending_subagent_stops
    }
}

/// Keeps the newest [`MAX_KEPT`].
fn push_keeping_newest<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MAX_KEPT {
        list.remove(0);
    }
    list.push(item);
}
