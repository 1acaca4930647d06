//! The fold: the only code that writes [`State`]. It uses recorded decisions and never
//! re-decides, so an upgrade cannot change the past (law 3).
//!
//! INVARIANT: bounded. Windows, sets and lists have fixed capacities, so that the state
//! cache stays small however long a session runs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, StopDecision, ToolDecision};
use crate::digest::{Digest, Short};
use crate::effect::Effect;
use crate::event::{Action, Cap, DecisionMade, Detected, Event, Level, OpenedBy, Repeatable};
use crate::evidence::{Cause, EvidenceFact, Origin, Retryable, Verdict};
use crate::explain::Because;
use crate::ids::{AgentName, Millis, ScopeId, Seq, SourceName, TaskId, VerifierName};
use crate::input::{
    Input, Stamped, StopRequested, TokenUse, ToolKind, ToolRequested, ToolReturned, TreeFact,
    TreeRead, TreeUnknown,
};
use crate::transition::Transition;

/// Calls a detector looks back at.
pub const WINDOW: usize = 30;
/// Scopes kept at once; the longest untouched one goes first.
const MAX_SCOPES: usize = 9;
/// (call, outcome) pairs remembered per task; older ones count as new again, which
/// errs towards seeing progress.
const MAX_SEEN: usize = 512;
/// Failure sets, nudge keys and told findings remembered per task.
const MAX_KEPT: usize = 64;

/// Everything that is known about a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Position of the last event.
    pub last: Seq,
    /// The latest time stamped so far.
    pub now: Millis,
    /// Digest of the sealed policy.
    pub policy: Option<Digest>,
    /// The agent, as its adapter names it.
    pub agent: Option<AgentName>,
    /// Counters of the whole session, which a new prompt does not reset.
    pub totals: Totals,
    /// Prompts delivered, per installed entry.
    pub prompts: Vec<(SourceName, u32)>,
    /// Where the token reader stands, per scope.
    pub cursors: Vec<(ScopeId, String)>,
    /// The tree on which the newest stop was judged, and whether it failed there.
    pub last_judged: Option<(Digest, bool)>,
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
    /// The tree at its start.
    pub start: Option<TreeFact>,
    /// Since when the agent has been at work; `None` while we judge or it rests.
    pub working_since: Option<Millis>,
    /// How it ended; `None` while it is open.
    pub ended: Option<Transition>,
    /// It once ended otherwise than well: never answered `continue` again.
    pub spent: Option<Transition>,
    /// It was halted: nothing of it runs any more.
    pub halted: bool,
    /// Counters.
    pub totals: Totals,
    /// Main stops asked for.
    pub stops: u32,
    /// Stops delivered, per scope and installed entry.
    pub deliveries: Vec<(ScopeId, SourceName, u32)>,
    /// Output tokens at the last stop.
    pub tokens_at_stop: u64,
    /// Output tokens between the last stops, newest first.
    pub deltas: [Option<u64>; 2],
    /// Failure sets and how often each was met.
    pub failure_sets: Vec<(Short, u32)>,
    /// Subjects and failure set of the last failed stop.
    pub last_failure: Option<(Short, Short)>,
    /// Gate verdicts, one per verifier.
    pub verdicts: Vec<Held>,
    /// The one call over a cap was answered.
    pub grace: Option<Cap>,
    /// Calls a detector denied.
    pub criticals: u32,
    /// Multiples of ten already spoken about, per pattern.
    pub nudged: Vec<(Short, u32)>,
    /// (call, outcome) pairs seen, folded to 32 bits.
    pub seen: VecDeque<u32>,
    /// The last request was refused by policy, and none was allowed since.
    pub refused: bool,
    /// The last request was put to a person, and none was allowed since.
    pub asked: bool,
    /// Main conversation and sub-agents at work.
    pub scopes: Vec<Scope>,
}

/// A conversation inside a task: the main one or a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Which.
    pub id: ScopeId,
    /// Last calls, oldest first; the newest may be the one being judged.
    pub window: VecDeque<Call>,
    /// Rounds of this scope.
    pub rounds: u64,
    /// A write of this scope succeeded.
    pub wrote: bool,
    /// Its rounds are used up: every further call of it is denied.
    pub halted: bool,
    /// The one call over its cap was answered.
    pub grace: bool,
    /// The stop being judged.
    pub pending: Option<Pending>,
}

/// One tool call as detectors see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Tool and canonical arguments.
    pub call: Short,
    /// The agent's id of the call, hashed.
    pub id: Option<Short>,
    /// Digest of what came back; `None` if nothing has.
    pub outcome: Option<Short>,
    /// Repeating it is legitimate while the answer changes.
    pub poll: bool,
    /// Its (call, outcome) pair was new in the task, or it wrote.
    pub progress: bool,
}

/// A stop being judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Its input.
    pub stop: Seq,
    /// The tree it is judged on.
    pub tree: Result<TreeFact, TreeUnknown>,
    /// Digest of the final message.
    pub message: Digest,
    /// The agent's own cap on blocks in a row.
    pub block_cap: Option<u32>,
    /// The last answer was cut.
    pub truncated: bool,
    /// Background tasks still running.
    pub background: u32,
    /// Verifiers that have not come back.
    pub waiting: Vec<VerifierName>,
    /// What was asked for this stop: verifier and subject.
    pub asked: Vec<(VerifierName, Short)>,
    /// The tree is being read once more.
    pub reading: bool,
    /// The tree was read once more and is the same.
    pub confirmed: bool,
    /// The tree had moved and the stop is judged anew.
    pub rejudged: bool,
    /// It moved again.
    pub moving: bool,
}

/// A verdict held for a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What decides.
    pub fact: EvidenceFact,
    /// The stop it came back for.
    pub stop: Seq,
    /// Findings already told to the agent in this task.
    pub told: Vec<Short>,
    /// Findings at the last judged stop.
    pub before: Vec<Short>,
}

impl Held {
    /// Whether it settles this subject at this stop. A check that was cut, or that
    /// another process held, settles the stop it was cut for and no later one.
    pub fn settles(&self, subject: Digest, stop: Seq) -> bool {
        let cut = matches!(
            self.fact.cause,
            Some(Cause::ReplyDeadline | Cause::ClaimedElsewhere)
        );
        self.fact.subject == subject && (!cut || self.stop == stop)
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

impl State {
    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.last = self.last.next();
        match event {
            Event::PolicySealed { policy, .. } => self.policy = Some(*policy),
            Event::Input(stamped) => self.take_in(stamped),
            Event::Repeated {
                source,
                what,
                scope,
                ..
            } => self.repeat(source, *what, scope),
            Event::TaskOpened { task, by, tree } => self.open(*task, *by, tree.clone()),
            Event::TaskReopened { .. } => {
                let now = self.now;
                if let Some(task) = &mut self.task {
                    task.ended = None;
                    task.working_since.get_or_insert(now);
                }
            }
            Event::Detected(detected) => self.detect(detected),
            Event::CapReached { cap, scope } => self.reach(*cap, scope),
            Event::Requested {
                stop,
                scope,
                effects,
            } => self.request(*stop, scope, effects),
            Event::FailureSetMet { set, subjects } => {
                if let Some(task) = &mut self.task {
                    task.meet(*set, *subjects);
                }
            }
            Event::DecisionMade(made) => self.decide(made),
            Event::TaskEnded { transition, .. } => self.end(transition),
        }
    }

    /// The scope's calls, pending stop and counters.
    pub fn scope(&self, id: &ScopeId) -> Option<&Scope> {
        self.task.as_ref()?.scope(id)
    }

    /// The stop of this scope that is being judged.
    pub fn pending(&self, id: &ScopeId) -> Option<&Pending> {
        self.scope(id)?.pending.as_ref()
    }

    /// The task, if it is open.
    pub fn open_task(&self) -> Option<&Task> {
        self.task.as_ref().filter(|task| task.ended.is_none())
    }

    /// Where the token reader stands in this scope's transcript.
    pub fn cursor(&self, id: &ScopeId) -> &str {
        self.cursors
            .iter()
            .find(|(scope, _)| scope == id)
            .map_or("", |(_, cursor)| cursor)
    }

    /// How many prompts this entry has delivered.
    pub fn prompts_from(&self, source: &SourceName) -> u32 {
        self.prompts
            .iter()
            .find(|(known, _)| known == source)
            .map_or(0, |(_, count)| *count)
    }

    /// How many stops of this scope this entry has delivered in the task.
    pub fn stops_from(&self, scope: &ScopeId, source: &SourceName) -> u32 {
        self.task.as_ref().map_or(0, |task| {
            task.deliveries
                .iter()
                .find(|(id, known, _)| id == scope && known == source)
                .map_or(0, |(_, _, count)| *count)
        })
    }

    /// Milliseconds of agent time of the task until now.
    pub fn busy_ms(&self) -> u64 {
        self.task.as_ref().map_or(0, |task| {
            task.totals.busy_ms + task.working_since.map_or(0, |since| self.now.since(since))
        })
    }

    fn take_in(&mut self, stamped: &Stamped) {
        self.now = self.now.max(stamped.at);
        match &stamped.input {
            Input::SessionStarted(started) => {
                self.agent.get_or_insert_with(|| started.agent.clone());
            }
            Input::PromptSubmitted(prompt) => {
                count(&mut self.prompts, &stamped.source);
                self.spend(&ScopeId::main(), prompt.tokens.as_ref());
            }
            Input::ToolRequested(request) => {
                self.totals.tool_calls += 1;
                self.spend(&request.scope, request.tokens.as_ref());
                self.work(self.last, stamped);
            }
            Input::ToolReturned(returned) => {
                self.spend(&returned.scope, returned.tokens.as_ref());
                self.end_call(returned);
            }
            Input::RoundEnded(round) => {
                self.spend(&round.scope, round.tokens.as_ref());
                self.count_round(&round.scope);
            }
            Input::StopRequested(stop) => {
                self.spend(&stop.scope, stop.tokens.as_ref());
                self.work(self.last, stamped);
            }
            Input::EvidenceArrived(arrived) => self.hold(&arrived.scope, &arrived.evidence),
            Input::TreeRead(read) => self.read_tree(read),
            Input::StopFailed(_)
            | Input::SessionEnded(_)
            | Input::ProcessFailed(_)
            | Input::Interrupted
            | Input::TimePassed => {}
        }
    }

    /// A tool request or stop, counted for the task; kept until there is one.
    fn work(&mut self, seq: Seq, stamped: &Stamped) {
        if self.task.is_none() {
            self.orphan = Some(Box::new((seq, stamped.clone())));
            return;
        }
        match &stamped.input {
            Input::ToolRequested(request) => self.start_call(request),
            Input::StopRequested(stop) => self.start_stop(seq, stop, &stamped.source),
            _ => {}
        }
    }

    fn spend(&mut self, scope: &ScopeId, tokens: Option<&TokenUse>) {
        let Some(tokens) = tokens else { return };
        add(&mut self.totals.output_tokens, tokens.output);
        if let Some(task) = &mut self.task {
            add(&mut task.totals.output_tokens, tokens.output);
        }
        match self.cursors.iter_mut().find(|(known, _)| known == scope) {
            Some((_, cursor)) => cursor.clone_from(&tokens.cursor),
            None => {
                if self.cursors.len() >= MAX_SCOPES {
                    self.cursors.remove(1.min(self.cursors.len() - 1));
                }
                self.cursors.push((scope.clone(), tokens.cursor.clone()));
            }
        }
    }

    fn start_call(&mut self, request: &ToolRequested) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        task.totals.tool_calls += 1;
        task.working_since.get_or_insert(now);
        let window = &mut task.scope_mut(&request.scope).window;
        if window.len() > WINDOW {
            window.pop_front();
        }
        window.push_back(Call {
            call: request.call,
            id: request
                .call_id
                .as_ref()
                .map(|id| Digest::of(id.as_bytes()).short()),
            outcome: None,
            poll: request.kind == ToolKind::Poll,
            progress: false,
        });
    }

    fn end_call(&mut self, returned: &ToolReturned) {
        let Some(task) = &mut self.task else { return };
        let fresh = task.see(returned.call, returned.outcome);
        task.asked = false;
        let id = returned
            .call_id
            .as_ref()
            .map(|id| Digest::of(id.as_bytes()).short());
        let scope = task.scope_mut(&returned.scope);
        scope.wrote |= returned.wrote;
        let open = scope.window.iter_mut().rev().find(|call| {
            call.outcome.is_none() && call.call == returned.call && (id.is_none() || call.id == id)
        });
        if let Some(call) = open {
            call.outcome = Some(returned.outcome);
            call.progress = fresh || returned.wrote;
        }
    }

    fn count_round(&mut self, scope: &ScopeId) {
        self.totals.rounds += 1;
        if let Some(task) = &mut self.task {
            task.totals.rounds += 1;
            task.scope_mut(scope).rounds += 1;
        }
    }

    fn start_stop(&mut self, seq: Seq, stop: &StopRequested, source: &SourceName) {
        self.count_round(&stop.scope);
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        let span = task
            .working_since
            .take()
            .map_or(0, |since| now.since(since));
        if stop.scope.is_main() {
            task.totals.busy_ms += span;
            self.totals.busy_ms += span;
            task.stops += 1;
            let delta = task
                .totals
                .output_tokens
                .map(|used| used - task.tokens_at_stop);
            task.tokens_at_stop = task.totals.output_tokens.unwrap_or(0);
            task.deltas = [delta, task.deltas[0]];
        } else {
            // A sub-agent's stop does not end the span of the main conversation.
            task.working_since = Some(Millis(now.0.saturating_sub(span)));
        }
        task.deliver(&stop.scope, source);
        task.scope_mut(&stop.scope).pending = Some(Pending {
            stop: seq,
            tree: stop.tree.clone(),
            message: stop.message_digest,
            block_cap: stop.block_cap,
            truncated: stop.truncated,
            background: stop.background,
            waiting: Vec::new(),
            asked: Vec::new(),
            reading: false,
            confirmed: false,
            rejudged: false,
            moving: false,
        });
    }

    fn hold(&mut self, scope: &ScopeId, fact: &EvidenceFact) {
        // Evidence that was made by hand only informs (law 1).
        if fact.origin != Origin::Gate {
            return;
        }
        let Some(task) = &mut self.task else { return };
        let Some(pending) = &mut task.scope_mut(scope).pending else {
            return;
        };
        let waited = pending.waiting.len();
        pending.waiting.retain(|name| *name != fact.verifier);
        if pending.waiting.len() == waited {
            return;
        }
        let stop = pending.stop;
        match task
            .verdicts
            .iter_mut()
            .find(|held| held.fact.verifier == fact.verifier)
        {
            Some(held) => {
                held.fact = fact.clone();
                held.stop = stop;
            }
            None => task.verdicts.push(Held {
                fact: fact.clone(),
                stop,
                told: Vec::new(),
                before: Vec::new(),
            }),
        }
    }

    fn read_tree(&mut self, read: &TreeRead) {
        let Some(task) = &mut self.task else { return };
        let Some(pending) = &mut task.scope_mut(&read.scope).pending else {
            return;
        };
        pending.reading = false;
        let same = match (&pending.tree, &read.tree) {
            (Ok(before), Ok(now)) => before.subjects == now.subjects,
            _ => false,
        };
        if same {
            pending.confirmed = true;
        } else if pending.rejudged {
            pending.moving = true;
        } else {
            pending.rejudged = true;
            pending.tree.clone_from(&read.tree);
        }
    }

    fn repeat(&mut self, source: &SourceName, what: Repeatable, scope: &ScopeId) {
        match what {
            Repeatable::Prompt => count(&mut self.prompts, source),
            Repeatable::Stop => {
                if let Some(task) = &mut self.task {
                    task.deliver(scope, source);
                }
            }
        }
    }

    fn open(&mut self, id: TaskId, opened_by: OpenedBy, start: Option<TreeFact>) {
        self.task = Some(Task {
            id,
            opened_by,
            opened_at: self.now,
            start,
            working_since: Some(self.now),
            ended: None,
            spent: None,
            halted: false,
            totals: Totals::default(),
            stops: 0,
            deliveries: Vec::new(),
            tokens_at_stop: 0,
            deltas: [None, None],
            failure_sets: Vec::new(),
            last_failure: None,
            verdicts: Vec::new(),
            grace: None,
            criticals: 0,
            nudged: Vec::new(),
            seen: VecDeque::new(),
            refused: false,
            asked: false,
            scopes: Vec::new(),
        });
        if let Some(orphan) = self.orphan.take() {
            self.work(orphan.0, &orphan.1);
        }
    }

    fn detect(&mut self, detected: &Detected) {
        let Some(task) = &mut self.task else { return };
        match detected.action {
            Action::Nudge => {
                let bucket = detected.count / 10;
                match task.nudged.iter_mut().find(|(key, _)| *key == detected.key) {
                    Some((_, told)) => *told = bucket,
                    None => push_bounded(&mut task.nudged, (detected.key, bucket)),
                }
            }
            Action::Deny | Action::Halt if detected.level == Level::Critical => {
                task.criticals += 1;
                // A call that a detector denied is not in the window.
                task.scope_mut(&detected.scope).window.pop_back();
            }
            Action::Deny | Action::Halt | Action::Observe | Action::Grace => {}
        }
    }

    fn reach(&mut self, cap: Cap, scope: &ScopeId) {
        let Some(task) = &mut self.task else { return };
        if scope.is_main() {
            task.grace.get_or_insert(cap);
        } else {
            let scope = task.scope_mut(scope);
            if scope.grace {
                scope.halted = true;
            }
            scope.grace = true;
        }
    }

    fn request(&mut self, stop: Seq, scope: &ScopeId, effects: &[Effect]) {
        let Some(task) = &mut self.task else { return };
        let Some(pending) = &mut task.scope_mut(scope).pending else {
            return;
        };
        if pending.stop != stop {
            return;
        }
        for effect in effects {
            match effect {
                Effect::RunVerifier {
                    verifier, subject, ..
                } => {
                    pending.waiting.push(verifier.clone());
                    pending.asked.push((verifier.clone(), subject.short()));
                }
                Effect::ReadTree { .. } => pending.reading = true,
            }
        }
    }

    fn decide(&mut self, made: &DecisionMade) {
        let now = self.now;
        let Some(task) = &mut self.task else { return };
        match &made.decision {
            Decision::Tool(decision) => task.answer_call(made, decision),
            Decision::Stop(decision) => {
                let judged = task
                    .scope_mut(&made.scope)
                    .pending
                    .take()
                    .and_then(|pending| pending.tree.ok())
                    .map(|tree| tree.tree);
                for held in &mut task.verdicts {
                    held.before.clone_from(&held.fact.findings);
                }
                match decision {
                    StopDecision::Continue { feedback } => {
                        self.totals.continues += 1;
                        task.totals.continues += 1;
                        task.working_since = Some(now);
                        task.refused = false;
                        for check in &feedback.checks {
                            task.tell(&check.verifier, &check.new);
                        }
                        self.last_judged = judged.map(|tree| (tree, true));
                    }
                    StopDecision::Halt { .. } => task.halted = true,
                    StopDecision::Accept { .. } => {
                        if !made.scope.is_main() {
                            task.scopes.retain(|scope| scope.id != made.scope);
                        }
                    }
                }
            }
            Decision::Noted => {}
        }
    }

    fn end(&mut self, transition: &Transition) {
        let Some(task) = &mut self.task else { return };
        task.working_since = None;
        task.spent = (!transition.reason.reopens_fully()).then(|| transition.clone());
        task.ended = Some(transition.clone());
    }
}

impl Task {
    /// The scope of this id.
    pub fn scope(&self, id: &ScopeId) -> Option<&Scope> {
        self.scopes.iter().find(|scope| scope.id == *id)
    }

    /// The verdict held for this verifier.
    pub fn held(&self, name: &VerifierName) -> Option<&Held> {
        self.verdicts
            .iter()
            .find(|held| held.fact.verifier == *name)
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

    fn scope_mut(&mut self, id: &ScopeId) -> &mut Scope {
        let at = match self.scopes.iter().position(|scope| scope.id == *id) {
            Some(at) => at,
            None => {
                if self.scopes.len() >= MAX_SCOPES
                    && let Some(oldest) = self
                        .scopes
                        .iter()
                        .position(|scope| !scope.id.is_main() && scope.pending.is_none())
                {
                    self.scopes.remove(oldest);
                }
                self.scopes.push(Scope {
                    id: id.clone(),
                    window: VecDeque::new(),
                    rounds: 0,
                    wrote: false,
                    halted: false,
                    grace: false,
                    pending: None,
                });
                self.scopes.len() - 1
            }
        };
        #[expect(
            clippy::indexing_slicing,
            reason = "the position was just found or pushed"
        )]
        &mut self.scopes[at]
    }

    fn see(&mut self, call: Short, outcome: Short) -> bool {
        let mixed = call.0.rotate_left(17) ^ outcome.0;
        let pair = (mixed ^ (mixed >> 32)) as u32;
        if self.seen.contains(&pair) {
            return false;
        }
        if self.seen.len() >= MAX_SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back(pair);
        true
    }

    fn deliver(&mut self, scope: &ScopeId, source: &SourceName) {
        match self
            .deliveries
            .iter_mut()
            .find(|(id, known, _)| id == scope && known == source)
        {
            Some((_, _, count)) => *count += 1,
            None => push_bounded(&mut self.deliveries, (scope.clone(), source.clone(), 1)),
        }
    }

    fn meet(&mut self, set: Short, subjects: Short) {
        match self
            .failure_sets
            .iter_mut()
            .find(|(known, _)| *known == set)
        {
            Some((_, met)) => *met += 1,
            None => push_bounded(&mut self.failure_sets, (set, 1)),
        }
        self.last_failure = Some((subjects, set));
    }

    fn tell(&mut self, verifier: &VerifierName, findings: &[Short]) {
        let held = self
            .verdicts
            .iter_mut()
            .find(|held| held.fact.verifier == *verifier);
        if let Some(held) = held {
            for finding in findings {
                push_bounded(&mut held.told, *finding);
            }
        }
    }

    fn answer_call(&mut self, made: &DecisionMade, decision: &ToolDecision) {
        let by_rule = made
            .why
            .iter()
            .any(|why| matches!(why, Because::Rule { .. } | Because::Unresolved { .. }));
        match decision {
            ToolDecision::Allow | ToolDecision::Nudge { .. } | ToolDecision::Rewrite { .. } => {
                self.refused = false;
                self.asked = false;
            }
            ToolDecision::Ask { .. } => self.asked = true,
            ToolDecision::Deny { reason } => {
                self.refused |= by_rule;
                if !made
                    .why
                    .iter()
                    .any(|why| matches!(why, Because::Detector { .. }))
                {
                    self.close_denied(&made.scope, reason);
                }
            }
            ToolDecision::Halt { .. } => self.halted = true,
        }
    }

    /// A call denied by policy stays in the window, with the denial as its outcome.
    fn close_denied(&mut self, scope: &ScopeId, reason: &str) {
        let denial = Digest::of(reason.as_bytes()).short();
        let last = self.scope_mut(scope).window.back().map(|call| call.call);
        let fresh = last.is_some_and(|call| self.see(call, denial));
        if let Some(call) = self.scope_mut(scope).window.back_mut() {
            call.outcome = Some(denial);
            call.progress = fresh;
        }
    }
}

fn add(total: &mut Option<u64>, more: u64) {
    *total = Some(total.unwrap_or(0).saturating_add(more));
}

fn count(counters: &mut Vec<(SourceName, u32)>, source: &SourceName) {
    match counters.iter_mut().find(|(known, _)| known == source) {
        Some((_, count)) => *count += 1,
        None => counters.push((source.clone(), 1)),
    }
}

fn push_bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MAX_KEPT {
        list.remove(0);
    }
    list.push(item);
}
