//! Why each check of a judged stop was run, or was not. Worked out from what the log has anyway:
//! nothing is recorded for it, and nothing is decided by it.

use std::collections::BTreeMap;

use crate::decision::{Decision, ToolDecision};
use crate::digest::{Digest, Short};
use crate::effect::Effect;
use crate::event::{DecisionMade, Event};
use crate::evidence::{Cause, FRESH_MS, Origin, Verdict};
use crate::explain::Because;
use crate::ids::{Millis, ScopeId, Seq, TaskId, VerifierName};
use crate::input::{EvidenceArrived, Input, NewestRun, Reach, StopRequested, TreeFact};
use crate::policy::{Policy, SubjectKind, Tier, VerifierSpec};

/// What became of the checks at one stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRuns {
    /// Its input.
    pub stop: Seq,
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// Its task.
    pub task: TaskId,
    /// Which stop of its scope in the task, from 1.
    pub number: u32,
    /// In the order of the policy; one that was run more than once is there for each time.
    pub checks: Vec<CheckRun>,
}

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// Which.
    pub verifier: VerifierName,
    /// The evidence that came back for this stop.
    pub evidence: Option<Digest>,
    /// Whether it was run.
    pub outcome: RunOutcome,
}

/// Whether a check was run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// It was run, for all of these reasons.
    Ran(Vec<RunReason>),
    /// What it found at this stop still holds.
    Held {
        /// The stop's task.
        task: TaskId,
        /// Which stop of its scope there.
        number: u32,
    },
    /// What another session or another process found holds here as well.
    FoundElsewhere,
    /// Another process was still running it.
    RunsElsewhere,
    /// The files that it judges could not be read.
    Unreadable,
}

/// Why a check was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunReason {
    /// No run of it is in this session's log.
    First,
    /// It came back about other files, or beside another tool call, than this stop is about: it
    /// was run once more at the same stop.
    OnceMore,
    /// A person sealed another policy.
    Sealed,
    /// Files that it depends on changed.
    Files,
    /// What checks run with changed: programs, variables, packages.
    Environment,
    /// A tool call came that may have changed what it finds.
    Act {
        /// The newest such request of this session; `None` if it was another session's.
        request: Option<Seq>,
    },
    /// It is about the answer, and the answer is another.
    Message,
    /// It is asked at every stop.
    EachStop,
    /// Its newest run is older than fifteen minutes, and no `inputs` say what it depends on.
    Old,
    /// Its newest run did not pass, and was an earlier task's.
    FailedBefore,
    /// The task would have been given up for what it found before.
    LastAttempt,
    /// A newer run of it was kept, which this session had not heard of.
    NewerRun,
    /// Its newest run was cut, since the answer was due.
    Cut,
    /// The process that had it left no result.
    Lost,
    /// Files moved while it ran the last time.
    Moved,
    /// Its program was missing the last time.
    ProgramMissing,
    /// The log does not say.
    Unknown,
}

/// What keeps a stop from being judged on a tree that holds still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldUpBy {
    /// Files changed meanwhile.
    Files,
    /// No file did, but tool calls came that may have changed what checks find.
    Acts,
}

/// What kept the newest stop of this scope from being judged; `None` if nothing did. Takes the
/// events of a log in order, from that stop's input on or from before it.
pub fn held_up_by<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    scope: &ScopeId,
) -> Option<HeldUpBy> {
    let mut moves = Moves::default();
    for event in events {
        let Event::Input(stamped) = event else {
            continue;
        };
        match &stamped.input {
            Input::StopRequested(stop) if stop.scope == *scope => {
                moves = Moves::default();
                moves.see(stop.tree.as_ref().ok());
            }
            Input::TreeRead(read) if read.scope == *scope => moves.see(read.tree.as_ref().ok()),
            Input::EvidenceArrived(arrived) if arrived.scope == *scope => {
                let cut = arrived.evidence.cause.is_some_and(Cause::is_cut);
                moves.files |= arrived.held_up.is_some() && !cut;
            }
            _ => {}
        }
    }
    match moves {
        Moves { files: true, .. } => Some(HeldUpBy::Files),
        Moves { acts: true, .. } => Some(HeldUpBy::Acts),
        Moves { .. } => None,
    }
}

/// What differed between the readings of one stop.
#[derive(Default)]
struct Moves<'e> {
    newest: Option<&'e TreeFact>,
    files: bool,
    acts: bool,
}

impl<'e> Moves<'e> {
    fn see(&mut self, tree: Option<&'e TreeFact>) {
        match (self.newest, tree) {
            (Some(before), Some(now)) if !before.is_alike(now) => {
                let mut without_acts = before.clone();
                without_acts.acts = now.acts;
                match without_acts.is_alike(now) {
                    true => self.acts = true,
                    false => self.files = true,
                }
            }
            (_, None) => self.files = true,
            _ => {}
        }
        self.newest = tree.or(self.newest);
    }
}

/// What became of the checks at each stop of a session, in order. `events` are those of the whole
/// log, each with its place; `policy` finds a sealed policy by its digest.
pub fn runs<'e>(
    events: impl IntoIterator<Item = (Seq, &'e Event)>,
    policy: &dyn Fn(&Digest) -> Option<Policy>,
) -> Vec<StopRuns> {
    let mut reader = Reader::default();
    for (seq, event) in events {
        reader.read(seq, event, policy);
    }
    for open in std::mem::take(&mut reader.open) {
        reader.close(open);
    }
    reader.done.sort_by_key(|runs| runs.stop);
    reader.done
}

/// What a verdict is about, in parts.
#[derive(Clone, Copy)]
struct About {
    files: Digest,
    environment: Option<Short>,
    act: u64,
}

/// The newest run of a verifier.
#[derive(Clone)]
struct Newest {
    key: Digest,
    verdict: Verdict,
    cause: Option<Cause>,
    held_up: bool,
    about: Short,
    began: Option<Millis>,
    task: TaskId,
    stop: Seq,
    number: u32,
}

/// A tool call that may have changed what checks find.
struct ActCall {
    request: Seq,
    call: Short,
    id: Option<String>,
    /// Its request or, if it came back, its outcome.
    last: Seq,
    reach: Reach,
}

/// A stop that is not answered yet.
struct Open {
    runs: StopRuns,
    at: Millis,
    asked: Vec<(VerifierName, Short)>,
    /// What runs whatever is known of it.
    again: Vec<VerifierName>,
    /// The newest runs that were kept, as they were told with the newest reading.
    kept: Vec<NewestRun>,
}

#[derive(Default)]
struct Reader {
    now: Millis,
    task: TaskId,
    policy: Option<Policy>,
    /// Where it was sealed.
    sealed: Seq,
    /// The newest input, which may open a task.
    input: Seq,
    stops: BTreeMap<ScopeId, u32>,
    abouts: BTreeMap<(VerifierName, Short), About>,
    newest: BTreeMap<VerifierName, Newest>,
    acts: Vec<ActCall>,
    open: Vec<Open>,
    done: Vec<StopRuns>,
}

impl Reader {
    fn read(&mut self, seq: Seq, event: &Event, policy: &dyn Fn(&Digest) -> Option<Policy>) {
        match event {
            Event::PolicySealed { policy: sealed, .. }
            | Event::PolicyRenewed { policy: sealed, .. } => {
                self.policy = policy(sealed);
                self.sealed = seq;
            }
            Event::TaskOpened { task, .. } => {
                self.task = *task;
                self.stops.clear();
                // A stop that found no task opens one, and is its first.
                for open in &mut self.open {
                    if open.runs.stop == self.input {
                        (open.runs.task, open.runs.number) = (*task, 1);
                        self.stops.insert(open.runs.scope.clone(), 1);
                    }
                }
            }
            Event::Requested { stop, effects, .. } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.runs.stop == *stop) {
                    for effect in effects {
                        let Effect::RunVerifier {
                            verifier,
                            subject,
                            again,
                            ..
                        } = effect
                        else {
                            continue;
                        };
                        open.asked.push((verifier.clone(), subject.short()));
                        if *again {
                            open.again.push(verifier.clone());
                        }
                    }
                }
            }
            Event::DecisionMade(made) => self.decided(made),
            Event::Input(stamped) => {
                self.input = seq;
                self.now = self.now.max(stamped.at);
                self.take_in(seq, &stamped.input);
                if let (Some(kept), Some(scope)) = (&stamped.runs, stamped.input.scope()) {
                    let mut open = self.open.iter_mut();
                    if let Some(open) = open.find(|open| open.runs.scope == *scope) {
                        open.kept = kept.to_vec();
                    }
                }
            }
            _ => {}
        }
    }

    fn take_in(&mut self, seq: Seq, input: &Input) {
        match input {
            Input::ToolRequested(request) => {
                let reach = request.facts.reach;
                // Older logs say no more than this.
                let reach = reach.or(request.facts.outside.then_some(Reach::Outside));
                if let Some(reach) = reach {
                    self.acts.push(ActCall {
                        request: seq,
                        call: request.call,
                        id: request.call_id.clone(),
                        last: seq,
                        reach,
                    });
                }
            }
            Input::ToolReturned(returned) => {
                let mut acts = self.acts.iter_mut().rev();
                let act = acts.find(|act| match (&act.id, &returned.call_id) {
                    (Some(asked), Some(came)) => asked == came,
                    (None, _) | (_, None) => act.call == returned.call && act.last == act.request,
                });
                if let Some(act) = act {
                    act.last = seq;
                }
            }
            Input::StopRequested(stop) => self.begin(seq, stop),
            Input::TreeRead(read) => {
                if let Ok(tree) = &read.tree {
                    self.know(tree);
                }
            }
            Input::EvidenceArrived(arrived) => self.arrived(arrived),
            _ => {}
        }
    }

    fn begin(&mut self, seq: Seq, stop: &StopRequested) {
        if let Ok(tree) = &stop.tree {
            self.know(tree);
        }
        let of_scope = |open: &mut Open| open.runs.scope == stop.scope;
        let replaced: Vec<Open> = self.open.extract_if(.., of_scope).collect();
        replaced.into_iter().for_each(|open| self.close(open));
        let number = self.stops.entry(stop.scope.clone()).or_default();
        *number += 1;
        self.open.push(Open {
            runs: StopRuns {
                stop: seq,
                scope: stop.scope.clone(),
                task: self.task,
                number: *number,
                checks: Vec::new(),
            },
            at: self.now,
            asked: Vec::new(),
            again: Vec::new(),
            kept: Vec::new(),
        });
    }

    /// Remembers what each check is about on this tree.
    fn know(&mut self, tree: &TreeFact) {
        let Some(policy) = &self.policy else {
            return;
        };
        for spec in policy.verifiers.iter().filter(|spec| spec.is_tree_check()) {
            let about = About {
                files: tree.subject(&spec.name),
                environment: tree.environment,
                act: tree.acts.map_or(0, |acts| acts.voiding(spec)),
            };
            let place = (spec.name.clone(), tree.about(spec).short());
            self.abouts.insert(place, about);
        }
    }

    fn arrived(&mut self, arrived: &EvidenceArrived) {
        let fact = &arrived.evidence;
        let name = &fact.verifier;
        let Some(spec) = self
            .policy
            .as_ref()
            .and_then(|policy| policy.verifier(name))
            .filter(|spec| spec.tier == Tier::Hard && fact.origin == Origin::Gate)
            .cloned()
        else {
            return;
        };
        let about = fact.subject.short();
        let asked = arrived.asked.unwrap_or(about);
        let answers = |open: &Open| {
            let is_asked = |about: Short| open.asked.contains(&(name.clone(), about));
            open.runs.scope == arrived.scope && (is_asked(asked) || is_asked(about))
        };
        let Some(open) = self.open.iter().position(answers) else {
            return;
        };
        let newest = self.newest.get(name).cloned();
        let same_run = newest
            .as_ref()
            .filter(|newest| newest.key == fact.key && fact.cached);
        // It was asked for once more, about what it had come back about at this very stop.
        let stop = self.open.get(open).map(|open| open.runs.stop);
        if same_run.is_some_and(|newest| Some(newest.stop) == stop) {
            return;
        }
        let outcome = match (fact.cause, same_run) {
            (Some(Cause::ClaimedElsewhere), _) => RunOutcome::RunsElsewhere,
            (Some(Cause::TreeUnreadable), _) => RunOutcome::Unreadable,
            (_, Some(newest)) => RunOutcome::Held {
                task: newest.task,
                number: newest.number,
            },
            _ if fact.cached => RunOutcome::FoundElsewhere,
            _ => RunOutcome::Ran(self.reasons(&spec, asked, newest.as_ref(), open)),
        };
        let Some(open) = self.open.get_mut(open) else {
            return;
        };
        open.runs.checks.push(CheckRun {
            verifier: name.clone(),
            evidence: Some(fact.key),
            outcome,
        });
        let found = Newest {
            key: fact.key,
            verdict: fact.verdict,
            cause: fact.cause,
            held_up: arrived.held_up.is_some() || fact.subject != fact.subject_after,
            about,
            began: arrived.began,
            task: open.runs.task,
            stop: open.runs.stop,
            number: open.runs.number,
        };
        self.newest.insert(name.clone(), found);
    }

    /// Why it was run, about what it was asked at this place, where this was its newest run.
    fn reasons(
        &self,
        spec: &VerifierSpec,
        asked: Short,
        newest: Option<&Newest>,
        open: usize,
    ) -> Vec<RunReason> {
        let (Some(newest), Some(open)) = (newest, self.open.get(open)) else {
            return vec![RunReason::First];
        };
        if open.again.contains(&spec.name) {
            return vec![RunReason::LastAttempt];
        }
        let mut reasons = Vec::new();
        if newest.stop == open.runs.stop {
            reasons.push(RunReason::OnceMore);
        }
        if newest.stop < self.sealed {
            reasons.push(RunReason::Sealed);
        }
        let about = |about| self.abouts.get(&(spec.name.clone(), about));
        if let (Some(before), Some(now)) = (about(newest.about), about(asked)) {
            if before.files != now.files {
                reasons.push(RunReason::Files);
            }
            if before.environment != now.environment {
                reasons.push(RunReason::Environment);
            }
            if before.act != now.act {
                let request = self.newest_act(spec, newest.stop);
                reasons.push(RunReason::Act { request });
            }
        }
        if reasons.is_empty() {
            reasons.push(self.reason_beside(spec, newest, open));
        }
        reasons
    }

    /// Why it was run, where nothing that it is about changed.
    fn reason_beside(&self, spec: &VerifierSpec, newest: &Newest, open: &Open) -> RunReason {
        let failed = newest.verdict != Verdict::Pass;
        let installed = || {
            let mut acts = self.acts.iter().rev();
            acts.find(|act| act.reach == Reach::Outside && act.last > newest.stop)
        };
        let age = |began: Millis| open.at.since(began);
        let has_newer = || {
            let mut kept = open.kept.iter();
            let kept = kept.find(|kept| kept.verifier == spec.name);
            let run = kept.and_then(|kept| kept.run);
            run.is_some_and(|run| run != newest.key.short())
        };
        match newest.cause {
            _ if spec.subject == SubjectKind::Stop => RunReason::EachStop,
            _ if spec.subject == SubjectKind::Message => RunReason::Message,
            Some(Cause::ReplyDeadline) => RunReason::Cut,
            Some(Cause::ClaimedElsewhere) => RunReason::Lost,
            Some(Cause::TreeMoving) => RunReason::Moved,
            _ if newest.held_up => RunReason::Moved,
            Some(Cause::MissingProgram) => RunReason::ProgramMissing,
            _ if failed && newest.task != open.runs.task => RunReason::FailedBefore,
            _ if has_newer() => RunReason::NewerRun,
            _ if failed && installed().is_some() => RunReason::Act {
                request: installed().map(|act| act.request),
            },
            _ if spec.inputs.is_empty()
                && newest.began.is_some_and(|began| age(began) >= FRESH_MS) =>
            {
                RunReason::Old
            }
            _ => RunReason::Unknown,
        }
    }

    /// The newest tool call of this session since this stop that voids what the verifier found.
    fn newest_act(&self, spec: &VerifierSpec, since: Seq) -> Option<Seq> {
        let voids = |act: &&ActCall| spec.inputs.is_empty() || act.reach == Reach::Outside;
        let acts = self.acts.iter().filter(|act| act.last > since);
        let newest = acts.filter(voids).max_by_key(|act| act.last);
        newest.map(|act| act.request)
    }

    fn decided(&mut self, made: &DecisionMade) {
        match &made.decision {
            // What does not run is no act.
            Decision::Tool(ToolDecision::Deny { .. } | ToolDecision::Halt { .. }) => {
                self.acts.retain(|act| act.request != made.answers);
            }
            Decision::Tool(_) | Decision::Noted => {}
            Decision::Stop(_) => {
                let answered = |open: &mut Open| open.runs.stop == made.answers;
                let answered: Vec<Open> = self.open.extract_if(.., answered).collect();
                for mut open in answered {
                    self.add_held(&mut open.runs, &made.why);
                    self.close(open);
                }
            }
        }
    }

    /// No more comes of it. Checks come back in any order.
    fn close(&mut self, mut open: Open) {
        let specs = self.policy.iter().flat_map(|policy| &policy.verifiers);
        let order: Vec<&VerifierName> = specs.map(|spec| &spec.name).collect();
        let place = |check: &CheckRun| order.iter().position(|name| **name == check.verifier);
        open.runs.checks.sort_by_key(place);
        self.done.push(open.runs);
    }

    /// Adds the checks that were not asked about, since what they found before holds.
    fn add_held(&self, runs: &mut StopRuns, why: &[Because]) {
        for because in why {
            let Because::Verdict { verifier, .. } = because else {
                continue;
            };
            let Some(newest) = self.newest.get(verifier) else {
                continue;
            };
            if newest.stop != runs.stop {
                runs.checks.push(CheckRun {
                    verifier: verifier.clone(),
                    evidence: None,
                    outcome: RunOutcome::Held {
                        task: newest.task,
                        number: newest.number,
                    },
                });
            }
        }
    }
}
