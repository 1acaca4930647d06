//! What is known about a session: the fold of its log. `fold` writes it, nothing else does.
//!
//! INVARIANT: bounded. Windows, sets and lists have fixed capacities, so that the state
//! cache stays small (16 KiB) however long a session runs. What came back for stops of many
//! sub-agents that are judged at once may take half as much again; such a state is not cached.

mod delivered;
mod fold;
mod recheck;
mod task;
pub(crate) mod time;
mod verdicts;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, Short};
use crate::event::{Cap, OpenedBy};
use crate::evidence::{Cause, EvidenceFact, Retryable, Verdict};
use crate::ids::{AgentName, Millis, ScopeId, Seq, TaskId, VerifierName};
use crate::input::{
    Acts, Calling, JudgeFact, NewestRun, Reach, Stamped, ToolReturned, TreeFact, TreeUnknown,
};
use crate::transition::Transition;

pub use self::delivered::Delivered;
use self::delivered::Deliveries;
pub use self::recheck::TreeRecheck;

/// Calls a detector looks back at.
pub const WINDOW: usize = 30;
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
pub struct State {
    /// Position of the last event.
    pub last: Seq,
    /// The latest time stamped so far, since the clock was turned back if it was.
    pub now: Millis,
    /// The latest time stamped before that.
    turned_back_from: Option<Millis>,
    /// Digest of the sealed policy.
    pub policy: Option<Digest>,
    /// Since which event the guarded files are known to be as this blob says.
    pub guarded: Option<(Seq, Digest)>,
    /// Verifiers whose programs were all there when the policy was sealed.
    pub equipped: Vec<VerifierName>,
    /// The agent, as its adapter names it.
    pub agent: Option<AgentName>,
    /// Counters of the whole session, which a new prompt does not reset.
    pub totals: Totals,
    /// The agent shows where its rounds end. If it does not, caps on rounds do not apply:
    /// what is counted then are its stops only.
    pub shows_rounds: bool,
    /// Who delivered the newest prompt and stops.
    deliveries: Deliveries,
    /// Where the token reader stands, per scope, longest unread first. Nothing is decided by it, and
    /// what is forgotten here is found in the store.
    pub cursors: Vec<(ScopeId, String)>,
    /// The tree on which the newest main stop was judged, and whether it failed there.
    pub last_judged: Option<(Digest, bool)>,
    /// Identity of the newest prompt's text.
    pub prompt: Short,
    /// The newest task, open or ended.
    pub task: Option<Task>,
    /// An input that found no task, until the task it opens is recorded.
    orphan: Option<Box<(Seq, Stamped)>>,
}

/// What is counted for a task and for its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
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
    pub witnesses: u64,
    /// Millionths of a dollar that the agent's answers cost; `None` until it is known of one.
    pub cost: Option<u64>,
    /// The same for models that were asked to judge.
    #[serde(rename = "witness_cost")]
    pub witness_cost: u64,
}

impl Totals {
    /// Output tokens that count for budgets; `None` until a reading of the agent's succeeded.
    pub fn spent_tokens(&self) -> Option<u64> {
        Some(self.output_tokens?.saturating_add(self.witnesses))
    }

    /// Millionths of a dollar spent; `None` until it is known of one of the agent's answers.
    pub fn spent_cost(&self) -> Option<u64> {
        Some(self.cost?.saturating_add(self.witness_cost))
    }
}

/// The work between a prompt and its transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its ordinal.
    pub id: TaskId,
    /// What opened it.
    pub opened_by: OpenedBy,
    /// When.
    pub opened_at: Millis,
    /// Identity of the prompt that opened it.
    pub prompt: Short,
    /// The tree at its start.
    pub start: Option<TreeFact>,
    /// The newest acts at its start, where the tree is not known, as long as no call of the task may have changed a file.
    pub acts_at_start: Option<Acts>,
    /// Since when the agent has been at work; `None` while we judge or it rests.
    pub working_since: Option<Millis>,
    /// How it ended; `None` while it is open.
    pub ended: Option<Transition>,
    /// How it first ended otherwise than well: never answered `continue` again, and only
    /// a better reason replaces this one.
    #[serde(rename = "spent")]
    pub spent: Option<Transition>,
    /// It was halted: nothing of it runs any more.
    pub halted: bool,
    /// Counters.
    pub totals: Totals,
    /// Main stops asked for.
    pub stops: u32,
    /// Output tokens at the last stop.
    pub tokens_at_stop: u64,
    /// A reading of the token use succeeded since the last stop.
    pub metered: bool,
    /// Output tokens between the last stops, newest first.
    pub deltas: [Option<u64>; 2],
    /// Failure sets and how often each was met.
    pub failure_sets: Vec<(Short, u32)>,
    /// Subjects and failure set of the last failed stop.
    pub last_failure: Option<(Short, Short)>,
    /// Gate verdicts of the main conversation, one by verifier. While one of its stops is
    /// being judged they are with that stop.
    pub verdicts: Vec<Held>,
    /// Continuations given to sub-agents, of those in `totals`.
    #[serde(rename = "continues_below")]
    pub continues_below: u32,
    /// Findings already told to the agent, by verifier.
    #[serde(rename = "told")]
    pub told: Vec<Told>,
    /// The one call over a cap was answered.
    pub grace: Option<Cap>,
    /// Calls of the main conversation that a detector denied.
    pub criticals: u32,
    /// Multiples of ten already spoken about, per pattern.
    pub nudged: Vec<(Short, u32)>,
    /// (call, outcome) pairs seen, folded to 32 bits; bytes, so that each takes four.
    pub seen: VecDeque<[u8; 4]>,
    /// How the last request was refused by policy, if none was allowed since.
    pub refused: Option<Refusal>,
    /// The last request put to a person, if none was allowed since.
    #[serde(rename = "asked")]
    pub asked: Option<Asked>,
    /// The last request that changes what checks find outside the tree: what failed before
    /// it is asked again, on the same tree as well.
    pub outside: Option<(Seq, Millis)>,
    /// Guarded files that were edited while it was open.
    pub edited: Vec<String>,
    /// The agent was told of them.
    pub edited_told: bool,
    /// Verifiers that the agent was sent back for because their program was gone.
    pub missing_told: Vec<VerifierName>,
    /// What was to run once more before the task would be given up.
    #[serde(rename = "ran_once_more")]
    pub ran_once_more: Vec<OnceMore>,
    /// Calls that a model was asked about.
    pub vetoes: u32,
    /// Times that a model was asked whether the agent gets anywhere.
    #[serde(rename = "ratings")]
    pub ratings: u32,
    /// Times in a row that it was too little.
    #[serde(rename = "low")]
    pub low: u32,
    /// A layer of middleware could not say, and its stance let that pass.
    pub passed_over: bool,
    /// Main conversation and sub-agents at work.
    pub scopes: Vec<Scope>,
}

/// Who refused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// A rule.
    Rule,
    /// A rule that would have had a person asked, where nobody is.
    Nobody,
    /// A person.
    Person,
}

/// A request that was put to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The call.
    pub call: Short,
    /// Parked: its name.
    pub approval: String,
    /// Parked: when it runs out.
    pub until: Option<Millis>,
}

/// A conversation inside a task: the main one or a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Which.
    pub id: ScopeId,
    /// Last calls, oldest first; the newest may be the one being judged.
    pub window: VecDeque<Call>,
    /// The newest request was denied by a detector, and so is not in the window.
    #[serde(rename = "struck")]
    pub struck: bool,
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
    pub sent_back: u32,
    /// The stop being judged.
    pub pending: Option<Pending>,
}

/// One tool call as detectors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PackedCall", into = "PackedCall")]
pub struct Call {
    /// Tool and canonical arguments.
    pub call: Short,
    /// The agent's id of the call, hashed; dropped with its outcome.
    pub id: Option<Short>,
    /// Digest of what came back; `None` if nothing has.
    pub outcome: Option<Short>,
    /// Repeating it is legitimate while the answer changes.
    pub poll: bool,
    /// It writes files, unless it fails.
    pub write: bool,
    /// How far it may reach, if it is an act.
    pub reach: Option<Reach>,
    /// Its (call, outcome) pair was new in the task, or it wrote.
    pub progress: bool,
}

/// A call as the state cache has it: there are hundreds of them.
#[derive(Serialize, Deserialize)]
struct PackedCall(Short, Option<Short>, Option<Short>, u8);

impl From<Call> for PackedCall {
    fn from(call: Call) -> Self {
        let marks = [call.poll, call.write, call.progress];
        let marks = marks
            .iter()
            .rev()
            .fold(0, |marks, mark| marks << 1 | u8::from(*mark));
        let reach = match call.reach {
            None => 0,
            Some(Reach::Elsewhere) => 1,
            Some(Reach::Outside) => 2,
            Some(Reach::Unknown) => 3,
        };
        let marks = marks | reach << 3;
        Self(call.call, call.id, call.outcome, marks)
    }
}

impl From<PackedCall> for Call {
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
                1 => Some(Reach::Elsewhere),
                2 => Some(Reach::Outside),
                _ => Some(Reach::Unknown),
            },
        }
    }
}

/// A stop being judged: what was known when it was asked for, and what came back for it.
/// Stops of several scopes may be judged at once. None of them looks at what another's
/// verdicts or answer changed meanwhile, so that the order in which they come decides
/// nothing (law 4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Its input.
    pub stop: Seq,
    /// When it was asked for.
    pub at: Millis,
    /// The tree it is judged on.
    pub tree: Result<TreeFact, TreeUnknown>,
    /// Digest of the final message.
    pub message: Digest,
    /// What calls for judges.
    pub judges: Vec<JudgeFact>,
    /// The agent's own cap on blocks in a row.
    pub block_cap: Option<u32>,
    /// The last answer was cut.
    pub truncated: bool,
    /// Background tasks still running.
    pub background: u32,
    /// How the agent's own program ended, if it cannot be sent back.
    #[serde(rename = "over")]
    pub over: Option<Transition>,
    /// Verifiers that have not come back.
    #[serde(rename = "waiting")]
    pub waiting: Vec<VerifierName>,
    /// What was asked for this stop: verifier and subject.
    #[serde(rename = "asked")]
    pub asked: Vec<(VerifierName, Short)>,
    /// The event that made the newest request for it. What comes back is known by it, so that several
    /// processes may answer one request, and no answer is taken for one to a later request.
    #[serde(rename = "requested")]
    pub requested: Seq,
    /// What reading the tree again has shown.
    pub recheck: TreeRecheck,
    /// That the tree moved is no attempt: not in older logs.
    pub no_attempt: bool,
    /// The newest runs of checks, where the runtime tells them.
    #[serde(rename = "runs")]
    pub runs: Option<Vec<NewestRun>>,
    /// What failed at earlier stops and runs once more, before the task is given up.
    #[serde(rename = "again")]
    pub again: Vec<VerifierName>,
    /// What decides, by verifier and stop. A sub-agent's stop begins with none.
    pub verdicts: Vec<Held>,
    /// The task had ended otherwise than well when it was asked for.
    #[serde(rename = "spent")]
    pub spent: bool,
    /// How the last request before it was refused by policy.
    pub refused: Option<Refusal>,
    /// Continuations of the main conversation when it was asked for; in a sub-agent's stop
    /// the one more, too, that a main stop that was being judged then may be given.
    #[serde(rename = "given")]
    pub given: u32,
    /// Continuations of sub-agents when it was asked for.
    #[serde(rename = "below")]
    pub below: u32,
    /// Stops of other sub-agents that were being judged then: each may be given one more.
    #[serde(rename = "ahead")]
    pub ahead: u32,
}

/// A verdict of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What decides.
    pub fact: EvidenceFact,
    /// What kept it from a verdict.
    pub held_up: Option<Short>,
    /// When the run began that found it.
    pub began: Option<Millis>,
    /// The newest stop it came back for.
    pub stop: Seq,
}

/// A check that was to run once more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnceMore {
    /// Which.
    pub verifier: VerifierName,
    /// About what.
    pub subject: Short,
    /// When the stop came that asked for it first.
    pub at: Millis,
}

/// What the agent was told about a verifier in this task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Which verifier.
    pub verifier: VerifierName,
    /// Findings, and whether each was still there at the last judged stop.
    pub findings: Vec<(Short, bool)>,
}

impl Held {
    /// A check that was cut, that another process held, or during which files moved settles the
    /// stop it was asked for and no later one.
    fn is_cut(&self) -> bool {
        let cut = self.fact.cause.is_some_and(Cause::is_cut);
        cut || self.held_up.is_some()
    }

    /// The verdict, given that the tree held still; inconclusive otherwise.
    pub fn verdict(&self) -> (Verdict, Option<Cause>) {
        if self.fact.subject == self.fact.subject_after {
            (self.fact.verdict, self.fact.cause)
        } else {
            (Verdict::Inconclusive, Some(Cause::TreeMoving))
        }
    }

    /// Whether it can never succeed.
    pub fn is_hopeless(&self) -> bool {
        self.fact.retryable == Retryable::No
    }
}

impl Scope {
    /// Where the call is in the window that this came back of, if it is.
    fn open_call(&self, returned: &ToolReturned) -> Option<usize> {
        let id = returned
            .call_id
            .as_ref()
            .map(|id| Digest::of(id.as_bytes()).short());
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
            struck: false,
            rounds: 0,
            wrote: false,
            halted: false,
            criticals: 0,
            grace: false,
            sent_back: 0,
            pending: None,
        }
    }
}

impl Call {
    /// What came back, and whether it was progress.
    fn close(&mut self, outcome: Short, progress: bool) {
        self.id = None;
        self.outcome = Some(outcome);
        self.progress = progress;
    }
}

impl State {
    /// The scope's calls, pending stop and counters.
    pub fn scope(&self, id: &ScopeId) -> Option<&Scope> {
        self.task.as_ref()?.scope(id)
    }

    /// The stop of this scope that is being judged.
    pub fn pending(&self, id: &ScopeId) -> Option<&Pending> {
        self.scope(id)?.pending.as_ref()
    }

    /// How far the call may have reached that this came back of, if it was an act.
    pub fn reach_of(&self, returned: &ToolReturned) -> Option<Reach> {
        let scope = self.scope(&returned.scope)?;
        scope.window.get(scope.open_call(returned)?)?.reach
    }

    /// How far the newest call of this conversation may have reached, if it was an act, nobody has said what came of
    /// it, and the conversation has neither been prompted nor asked to stop since.
    pub fn unreported_act(&self, scope: &ScopeId) -> Option<Reach> {
        let known = self.scope(scope)?;
        let newest = known.window.back()?;
        // A call that was halted or struck did not run.
        let ran = !known.halted && !known.struck && self.task.as_ref().is_some_and(|t| !t.halted);
        let is_newest = newest.outcome.is_none()
            && self.newest_stop(scope).is_none()
            && self.newest_prompt().is_none();
        newest.reach.filter(|_| is_newest && ran)
    }

    /// Whether this came back of a call that is known and had not come back before.
    pub fn knows_call(&self, returned: &ToolReturned) -> bool {
        let scope = self.scope(&returned.scope);
        scope.is_some_and(|scope| scope.open_call(returned).is_some())
    }

    /// The task, if it is open.
    pub fn open_task(&self) -> Option<&Task> {
        self.task.as_ref().filter(|task| task.ended.is_none())
    }

    /// Where the token reader stands in this scope's transcript; empty if it was never read or is
    /// forgotten.
    pub fn cursor(&self, id: &ScopeId) -> &str {
        self.cursors
            .iter()
            .find(|(scope, _)| scope == id)
            .map_or("", |(_, cursor)| cursor)
    }

    /// The newest prompt, as long as neither a tool request nor a stop came after it: the
    /// same news from another installed entry can only be this one.
    pub fn newest_prompt(&self) -> Option<&Delivered> {
        self.deliveries.prompt.as_ref()
    }

    /// The newest stop of this scope, as long as neither a tool request of the scope nor
    /// a prompt came after it, whether or not it ended the task.
    pub fn newest_stop(&self, scope: &ScopeId) -> Option<&Delivered> {
        self.deliveries.stop(scope)
    }

    /// Milliseconds of agent time of the task until now.
    pub fn busy_ms(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| {
            let span = task.working_since.map_or(0, |since| self.now.since(since));
            task.totals.busy_ms.saturating_add(span)
        })
    }
}

impl Task {
    /// The scope of this id.
    pub fn scope(&self, id: &ScopeId) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.id == *id)
    }

    /// Since when a fail holds: what is older may have been mended outside the tree.
    pub fn fails_hold_since(&self) -> Millis {
        let outside = self.outside.map_or(Millis(0), |(_, at)| at);
        self.opened_at.max(outside)
    }

    /// What the agent was told about this verifier.
    pub fn told(&self, name: &VerifierName) -> &[(Short, bool)] {
        self.told
            .iter()
            .find(|told| told.verifier == *name)
            .map_or(&[], |told| &told.findings)
    }

    /// How often this failure set was met so far.
    pub fn met(&self, set: Short) -> u32 {
        self.failure_sets
            .iter()
            .find(|(known, _)| *known == set)
            .map_or(0, |(_, met)| *met)
    }

    /// The multiple of ten already spoken about for this pattern.
    pub fn nudged(&self, key: Short) -> u32 {
        self.nudged
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(0, |(_, bucket)| *bucket)
    }
}

impl Pending {
    /// The newest verdict of this verifier.
    pub fn held(&self, name: &VerifierName) -> Option<&Held> {
        let mut newest_first = self.verdicts.iter().rev();
        newest_first.find(|held| held.fact.verifier == *name)
    }

    /// The verdict of this verifier about `subject`.
    pub fn settling(&self, name: &VerifierName, subject: Digest) -> Option<&Held> {
        let about = |held: &&Held| held.fact.verifier == *name && held.fact.subject == subject;
        self.verdicts.iter().rev().find(about)
    }

    /// What a judge of this name is about: the final message, the tree as far as it can be read,
    /// and the prompt of the task.
    pub fn answer(&self, name: &VerifierName, prompt: Short) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.subject(name));
        let tree = tree.unwrap_or(Digest::of(b""));
        // Each heartbeat asks anew whether there is something to do.
        let beat = match self.calling(name) {
            Calling::Heartbeat => self.stop.0.to_le_bytes(),
            _ => [0; 8],
        };
        Digest::of_parts([
            &self.message.as_bytes()[..],
            &tree.as_bytes()[..],
            &prompt.0.to_le_bytes(),
            &beat,
        ])
    }

    /// What was said, and on which tree.
    pub fn said(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        let tree = tree.unwrap_or(Digest::of(b""));
        Digest::of_parts([&self.message.as_bytes()[..], &tree.as_bytes()[..]])
    }

    /// What is about this stop and no other, with the tree as it is.
    pub fn itself(&self) -> Digest {
        let tree = self.tree.as_ref().map(|tree| tree.tree);
        Digest::of_parts([
            &self.message.as_bytes()[..],
            &tree.unwrap_or(Digest::of(b"")).as_bytes()[..],
            &self.stop.0.to_le_bytes(),
        ])
    }

    /// What calls for this judge. A log that was written before there were any does not say.
    pub fn calling(&self, name: &VerifierName) -> Calling {
        let of = |fact: &&JudgeFact| fact.verifier == *name;
        let fact = self.judges.iter().find(of);
        fact.map_or(Calling::Nothing, |fact| fact.calling)
    }

    /// Continuations of sub-agents, as if each stop that was being judged had one.
    pub fn continues_below(&self) -> u32 {
        self.below + self.ahead
    }
}

/// Keeps the newest [`MAX_KEPT`].
fn push_bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MAX_KEPT {
        list.remove(0);
    }
    list.push(item);
}
