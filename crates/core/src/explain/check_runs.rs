//! Explains why each check of a judged stop was run or was not. It is derived from the log: nothing
//! is recorded for it, and no decision depends on it.

use std::collections::BTreeMap;

use crate::decision::{Decision, ToolDecision};
use crate::digest::{Digest, EightByteDigest};
use crate::effect::Effect;
use crate::event::{DecisionOnInput, Event};
use crate::evidence::{GateOrManualOrigin, InconclusiveCause, MAX_RUN_AGE_MS, Verdict};
use crate::explain::DecisionFactor;
use crate::ids::{EventSeq, ScopeId, TaskId, UnixMillis, VerifierName};
use crate::input::{ActReach, EvidenceArrived, Input, NewestCheckRun, StopRequested, TreeDigests};
use crate::policy::{Policy, VerdictSubjectKind, VerifierSpec, VerifierTier};

/// What became of the checks at one stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopCheckRuns {
    /// Its input.
    pub stop: EventSeq,
    /// Main conversation or sub-agent.
    pub scope: ScopeId,
    /// Its task.
    pub task: TaskId,
    /// Which stop of its scope in the task, from 1.
    pub number: u32,
    /// In policy order. A check that was run more than once is listed once per run.
    pub checks: Vec<CheckOutcomeAtStop>,
}

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutcomeAtStop {
    /// Which.
    pub verifier: VerifierName,
    /// The evidence that came back for this stop.
    pub evidence: Option<Digest>,
    /// Whether it was run.
    pub outcome: CheckRunOrSkipReason,
}

/// Whether a check was run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckRunOrSkipReason {
    /// It was run, for all of these reasons.
    Ran(Vec<CheckResultNotReusedReason>),
    /// Its result from this stop still holds.
    StillValid {
        /// The stop's task.
        task: TaskId,
        /// Which stop of its scope there.
        number: u32,
    },
    /// Its result from another session or process holds here as well.
    FoundElsewhere,
    /// Another process was still running it.
    RunningElsewhere,
    /// The files that it judges could not be read.
    TreeUnreadable,
}

/// Why a check was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckResultNotReusedReason {
    /// No run of it is in this session's log.
    First,
    /// It came back about other files, or a tool call came during it, so it was run again at the
    /// same stop.
    RerunAtSameStop,
    /// A person sealed another policy.
    PolicySealed,
    /// Files that it depends on changed.
    FilesChanged,
    /// The environment of checks changed: programs, variables, packages.
    EnvironmentChanged,
    /// A tool call came that may have changed what it finds.
    Act {
        /// The newest such request of this session; `None` if it was another session's.
        request: Option<EventSeq>,
    },
    /// It is about the answer, and the answer is another.
    AnswerChanged,
    /// It is asked at every stop.
    EachStop,
    /// Its newest run is older than fifteen minutes, and no `inputs` say what it depends on.
    TooOld,
    /// Its newest run did not pass, and was an earlier task's.
    FailedBefore,
    /// The task would otherwise have been given up for its earlier result.
    LastAttempt,
    /// A newer run of it was kept that this session did not know.
    NewerRun,
    /// Its newest run was cut off because the answer was due.
    CutShort,
    /// The process that ran it left no result.
    ResultLost,
    /// Files moved while it ran the last time.
    FilesMoved,
    /// Its program was missing the last time.
    ProgramMissing,
    /// The log does not say.
    Unknown,
}

/// Why a stop could not be judged on an unchanging tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKindHoldingUpStop {
    /// Files changed meanwhile.
    Files,
    /// No file did, but tool calls came that may have changed what checks find.
    Acts,
}

/// Returns what kept the newest stop of this scope from being judged; `None` if nothing did. Takes
/// the events of a log in order, from that stop's input or from before it.
pub fn newest_stop_held_up_cause<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    scope: &ScopeId,
) -> Option<ChangeKindHoldingUpStop> {
    let mut moves = TreeChangesDuringStop::default();
    for event in events {
        let Event::Input(stamped) = event else {
            continue;
        };
        match &stamped.input {
            Input::StopRequested(stop) if stop.scope == *scope => {
                moves = TreeChangesDuringStop::default();
                moves.record_tree_change_since_last_reading(stop.tree.as_ref().ok());
            }
            Input::TreeRead(read) if read.scope == *scope => {
                moves.record_tree_change_since_last_reading(read.tree.as_ref().ok())
            }
            Input::EvidenceArrived(arrived) if arrived.scope == *scope => {
                let cut = arrived
                    .evidence
                    .cause
                    .is_some_and(InconclusiveCause::is_cut_off_or_claimed_elsewhere);
                // A run that was cut off is held up as well, but not by files.
                moves.files |= arrived.held_up.is_some() && !cut;
            }
            _ => {}
        }
    }
    match moves {
        // Files outweigh acts: they are what a person can see and mend.
        TreeChangesDuringStop { files: true, .. } => Some(ChangeKindHoldingUpStop::Files),
        TreeChangesDuringStop { acts: true, .. } => Some(ChangeKindHoldingUpStop::Acts),
        TreeChangesDuringStop { .. } => None,
    }
}

/// What differed between the readings of one stop.
#[derive(Default)]
struct TreeChangesDuringStop<'e> {
    newest: Option<&'e TreeDigests>,
    files: bool,
    acts: bool,
}

impl<'e> TreeChangesDuringStop<'e> {
    fn record_tree_change_since_last_reading(&mut self, tree: Option<&'e TreeDigests>) {
        match (self.newest, tree) {
            (Some(before), Some(now)) if !before.is_equivalent_tree(now) => {
                // Equal apart from the act numbers means that only acts came in between.
                let mut without_acts = before.clone();
                without_acts.acts = now.acts;
                match without_acts.is_equivalent_tree(now) {
                    true => self.acts = true,
                    false => self.files = true,
                }
            }
            // A tree that could not be read cannot be shown to be unchanged.
            (_, None) => self.files = true,
            _ => {}
        }
        self.newest = tree.or(self.newest);
    }
}

/// Returns what became of the checks at each stop of a session, in order. `events` are those of the
/// whole log with their positions; `policy` looks up a sealed policy by digest.
pub fn list_check_runs_of_each_stop<'e>(
    events: impl IntoIterator<Item = (EventSeq, &'e Event)>,
    policy: &dyn Fn(&Digest) -> Option<Policy>,
) -> Vec<StopCheckRuns> {
    let mut reader = CheckRunEventReader::default();
    for (seq, event) in events {
        reader.apply_event_to_check_runs(seq, event, policy);
    }
    // Stops that are still unanswered at the end of the log are reported with what came so far.
    for open in std::mem::take(&mut reader.open) {
        reader.sort_and_store_checks_of_stop(open);
    }
    reader.done.sort_by_key(|runs| runs.stop);
    reader.done
}

/// The parts of a verdict's subject. The digest alone cannot say which of them changed.
#[derive(Clone, Copy)]
struct VerdictSubjectParts {
    files: Digest,
    environment: Option<EightByteDigest>,
    act: u64,
}

/// The newest run of a verifier.
#[derive(Clone)]
struct NewestVerifierRun {
    key: Digest,
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
    held_up: bool,
    about: EightByteDigest,
    began: Option<UnixMillis>,
    task: TaskId,
    stop: EventSeq,
    number: u32,
}

/// A tool call that may have changed what checks find.
struct ToolCallThatMayAffectChecks {
    request: EventSeq,
    call: EightByteDigest,
    id: Option<String>,
    /// The event of its request or, once it came back, of its outcome.
    last: EventSeq,
    reach: ActReach,
}

/// A stop that is not answered yet.
struct UnansweredStop {
    runs: StopCheckRuns,
    at: UnixMillis,
    asked: Vec<(VerifierName, EightByteDigest)>,
    /// Checks that are run regardless of earlier results.
    again: Vec<VerifierName>,
    /// The newest runs that were kept, as they were told with the newest reading.
    kept: Vec<NewestCheckRun>,
}

#[derive(Default)]
struct CheckRunEventReader {
    now: UnixMillis,
    task: TaskId,
    policy: Option<Policy>,
    /// Where it was sealed.
    sealed: EventSeq,
    /// The newest input, which may open a task.
    input: EventSeq,
    stops: BTreeMap<ScopeId, u32>,
    abouts: BTreeMap<(VerifierName, EightByteDigest), VerdictSubjectParts>,
    newest: BTreeMap<VerifierName, NewestVerifierRun>,
    acts: Vec<ToolCallThatMayAffectChecks>,
    open: Vec<UnansweredStop>,
    done: Vec<StopCheckRuns>,
}

impl CheckRunEventReader {
    fn apply_event_to_check_runs(
        &mut self,
        seq: EventSeq,
        event: &Event,
        policy: &dyn Fn(&Digest) -> Option<Policy>,
    ) {
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
                            force_run: again,
                            ..
                        } = effect
                        else {
                            continue;
                        };
                        open.asked
                            .push((verifier.clone(), subject.to_eight_byte_digest()));
                        if *again {
                            open.again.push(verifier.clone());
                        }
                    }
                }
            }
            Event::DecisionMade(made) => self.apply_decision_to_check_runs(made),
            Event::Input(stamped) => {
                self.input = seq;
                self.now = self.now.max(stamped.at);
                self.note_logged_input(seq, &stamped.input);
                if let (Some(kept), Some(scope)) =
                    (&stamped.newest_runs, stamped.input.conversation_scope_id())
                {
                    let mut open = self.open.iter_mut();
                    if let Some(open) = open.find(|open| open.runs.scope == *scope) {
                        open.kept = kept.to_vec();
                    }
                }
            }
            _ => {}
        }
    }

    fn note_logged_input(&mut self, seq: EventSeq, input: &Input) {
        match input {
            Input::ToolRequested(request) => {
                let reach = request.facts.reach;
                // Older logs record only whether the call reached outside.
                let reach = reach.or(request.facts.outside.then_some(ActReach::Outside));
                if let Some(reach) = reach {
                    self.acts.push(ToolCallThatMayAffectChecks {
                        request: seq,
                        call: request.call,
                        id: request.call_id.clone(),
                        last: seq,
                        reach,
                    });
                }
            }
            Input::ToolReturned(returned) => {
                // Matched as the state matches results: by call id where there is one, else the
                // newest open call of the same kind.
                let mut acts = self.acts.iter_mut().rev();
                let act = acts.find(|act| match (&act.id, &returned.call_id) {
                    (Some(asked), Some(came)) => asked == came,
                    // Without ids, only an act that has not come back can be the one that this
                    // result belongs to.
                    (None, _) | (_, None) => act.call == returned.call && act.last == act.request,
                });
                if let Some(act) = act {
                    act.last = seq;
                }
            }
            Input::StopRequested(stop) => self.add_requested_stop(seq, stop),
            Input::TreeRead(read) => {
                if let Ok(tree) = &read.tree {
                    self.record_check_subjects_on_tree(tree);
                }
            }
            Input::EvidenceArrived(arrived) => self.note_arrived_evidence(arrived),
            _ => {}
        }
    }

    fn add_requested_stop(&mut self, seq: EventSeq, stop: &StopRequested) {
        if let Ok(tree) = &stop.tree {
            self.record_check_subjects_on_tree(tree);
        }
        let of_scope = |open: &mut UnansweredStop| open.runs.scope == stop.scope;
        // A newer stop of the scope replaces one that was never answered.
        let replaced: Vec<UnansweredStop> = self.open.extract_if(.., of_scope).collect();
        replaced
            .into_iter()
            .for_each(|open| self.sort_and_store_checks_of_stop(open));
        // Numbers restart with each task: `TaskOpened` clears them.
        let number = self.stops.entry(stop.scope.clone()).or_default();
        *number += 1;
        self.open.push(UnansweredStop {
            runs: StopCheckRuns {
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

    /// Records the subject of each check on this tree.
    fn record_check_subjects_on_tree(&mut self, tree: &TreeDigests) {
        let Some(policy) = &self.policy else {
            return;
        };
        for spec in policy
            .verifiers
            .iter()
            .filter(|spec| spec.is_hard_tree_check())
        {
            let about = VerdictSubjectParts {
                files: tree.verifier_subject_digest(&spec.name),
                environment: tree.environment,
                act: tree.acts.map_or(0, |acts| acts.newest_voiding_act(spec)),
            };
            let place = (
                spec.name.clone(),
                tree.verdict_subject_digest(spec).to_eight_byte_digest(),
            );
            self.abouts.insert(place, about);
        }
    }

    fn note_arrived_evidence(&mut self, arrived: &EvidenceArrived) {
        let fact = &arrived.evidence;
        let name = &fact.verifier;
        let Some(spec) = self
            .policy
            .as_ref()
            .and_then(|policy| policy.verifier_spec(name))
            // Judges and persons are not run, and manual evidence answers no stop.
            .filter(|spec| {
                spec.tier == VerifierTier::Hard && fact.origin == GateOrManualOrigin::Gate
            })
            .cloned()
        else {
            return;
        };
        let about = fact.subject.to_eight_byte_digest();
        let asked = arrived.asked.unwrap_or(about);
        let answers = |open: &UnansweredStop| {
            let is_asked = |about: EightByteDigest| open.asked.contains(&(name.clone(), about));
            open.runs.scope == arrived.scope && (is_asked(asked) || is_asked(about))
        };
        let Some(open) = self.open.iter().position(answers) else {
            return;
        };
        let newest = self.newest.get(name).cloned();
        let same_run = newest
            .as_ref()
            .filter(|newest| newest.key == fact.key && fact.cached);
        // The check was requested again and returned the run that this stop already lists.
        let stop = self.open.get(open).map(|open| open.runs.stop);
        if same_run.is_some_and(|newest| Some(newest.stop) == stop) {
            return;
        }
        // The causes come first: evidence of a run elsewhere or of an unreadable tree is no run of
        // the check.
        let outcome = match (fact.cause, same_run) {
            (Some(InconclusiveCause::ClaimedElsewhere), _) => {
                CheckRunOrSkipReason::RunningElsewhere
            }
            (Some(InconclusiveCause::TreeUnreadable), _) => CheckRunOrSkipReason::TreeUnreadable,
            (_, Some(newest)) => CheckRunOrSkipReason::StillValid {
                task: newest.task,
                number: newest.number,
            },
            _ if fact.cached => CheckRunOrSkipReason::FoundElsewhere,
            _ => CheckRunOrSkipReason::Ran(self.reasons_check_was_run(
                &spec,
                asked,
                newest.as_ref(),
                open,
            )),
        };
        let Some(open) = self.open.get_mut(open) else {
            return;
        };
        open.runs.checks.push(CheckOutcomeAtStop {
            verifier: name.clone(),
            evidence: Some(fact.key),
            outcome,
        });
        let found = NewestVerifierRun {
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

    /// Returns why the check was run about `asked`, given its newest earlier run.
    fn reasons_check_was_run(
        &self,
        spec: &VerifierSpec,
        asked: EightByteDigest,
        newest: Option<&NewestVerifierRun>,
        open: usize,
    ) -> Vec<CheckResultNotReusedReason> {
        let (Some(newest), Some(open)) = (newest, self.open.get(open)) else {
            return vec![CheckResultNotReusedReason::First];
        };
        // A forced rerun has this one reason, even if something changed as well.
        if open.again.contains(&spec.name) {
            return vec![CheckResultNotReusedReason::LastAttempt];
        }
        let mut reasons = Vec::new();
        if newest.stop == open.runs.stop {
            reasons.push(CheckResultNotReusedReason::RerunAtSameStop);
        }
        if newest.stop < self.sealed {
            reasons.push(CheckResultNotReusedReason::PolicySealed);
        }
        let about = |about| self.abouts.get(&(spec.name.clone(), about));
        // If either subject is not in the log, for example with a policy that cannot be read, no
        // change can be named.
        if let (Some(before), Some(now)) = (about(newest.about), about(asked)) {
            if before.files != now.files {
                reasons.push(CheckResultNotReusedReason::FilesChanged);
            }
            if before.environment != now.environment {
                reasons.push(CheckResultNotReusedReason::EnvironmentChanged);
            }
            if before.act != now.act {
                let request = self.newest_call_voiding_check(spec, newest.stop);
                reasons.push(CheckResultNotReusedReason::Act { request });
            }
        }
        if reasons.is_empty() {
            reasons.push(self.rerun_reason_for_unchanged_subject(spec, newest, open));
        }
        reasons
    }

    /// Returns why the check was run although its subject did not change.
    fn rerun_reason_for_unchanged_subject(
        &self,
        spec: &VerifierSpec,
        newest: &NewestVerifierRun,
        open: &UnansweredStop,
    ) -> CheckResultNotReusedReason {
        let failed = newest.verdict != Verdict::Pass;
        let installed = || {
            let mut acts = self.acts.iter().rev();
            acts.find(|act| act.reach == ActReach::Outside && act.last > newest.stop)
        };
        let age = |began: UnixMillis| open.at.millis_since(began);
        let has_newer = || {
            let mut kept = open.kept.iter();
            let kept = kept.find(|kept| kept.verifier == spec.name);
            let run = kept.and_then(|kept| kept.run);
            run.is_some_and(|run| run != newest.key.to_eight_byte_digest())
        };
        // The order mirrors the rules that make a verdict stale. The first that applies is
        // reported.
        match newest.cause {
            _ if spec.subject == VerdictSubjectKind::Stop => CheckResultNotReusedReason::EachStop,
            _ if spec.subject == VerdictSubjectKind::Message => {
                CheckResultNotReusedReason::AnswerChanged
            }
            Some(InconclusiveCause::ReplyDeadline) => CheckResultNotReusedReason::CutShort,
            Some(InconclusiveCause::ClaimedElsewhere) => CheckResultNotReusedReason::ResultLost,
            Some(InconclusiveCause::TreeMoving) => CheckResultNotReusedReason::FilesMoved,
            _ if newest.held_up => CheckResultNotReusedReason::FilesMoved,
            Some(InconclusiveCause::MissingProgram) => CheckResultNotReusedReason::ProgramMissing,
            _ if failed && newest.task != open.runs.task => {
                CheckResultNotReusedReason::FailedBefore
            }
            _ if has_newer() => CheckResultNotReusedReason::NewerRun,
            _ if failed && installed().is_some() => CheckResultNotReusedReason::Act {
                request: installed().map(|act| act.request),
            },
            _ if spec.inputs.is_empty()
                && newest
                    .began
                    .is_some_and(|began| age(began) >= MAX_RUN_AGE_MS) =>
            {
                CheckResultNotReusedReason::TooOld
            }
            _ => CheckResultNotReusedReason::Unknown,
        }
    }

    /// Returns the newest tool call of this session after `since` that voids the verifier's result.
    fn newest_call_voiding_check(&self, spec: &VerifierSpec, since: EventSeq) -> Option<EventSeq> {
        let voids = |act: &&ToolCallThatMayAffectChecks| {
            spec.inputs.is_empty() || act.reach == ActReach::Outside
        };
        let acts = self.acts.iter().filter(|act| act.last > since);
        let newest = acts.filter(voids).max_by_key(|act| act.last);
        newest.map(|act| act.request)
    }

    fn apply_decision_to_check_runs(&mut self, made: &DecisionOnInput) {
        match &made.decision {
            // A denied call does not run and therefore is no act.
            Decision::Tool(ToolDecision::Deny { .. } | ToolDecision::Halt { .. }) => {
                self.acts.retain(|act| act.request != made.answers);
            }
            Decision::Tool(_) | Decision::Noted | Decision::Round(_) => {}
            Decision::Stop(_) => {
                let answered = |open: &mut UnansweredStop| open.runs.stop == made.answers;
                let answered: Vec<UnansweredStop> = self.open.extract_if(.., answered).collect();
                for mut open in answered {
                    self.add_reused_checks(&mut open.runs, &made.why);
                    self.sort_and_store_checks_of_stop(open);
                }
            }
        }
    }

    /// Closes the stop. Checks come back in any order, so they are sorted by policy order here.
    fn sort_and_store_checks_of_stop(&mut self, mut open: UnansweredStop) {
        let specs = self.policy.iter().flat_map(|policy| &policy.verifiers);
        let order: Vec<&VerifierName> = specs.map(|spec| &spec.name).collect();
        let place =
            |check: &CheckOutcomeAtStop| order.iter().position(|name| **name == check.verifier);
        open.runs.checks.sort_by_key(place);
        self.done.push(open.runs);
    }

    /// Adds the checks that were not requested because their earlier result still holds.
    fn add_reused_checks(&self, runs: &mut StopCheckRuns, why: &[DecisionFactor]) {
        for because in why {
            let DecisionFactor::Verdict { verifier, .. } = because else {
                continue;
            };
            let Some(newest) = self.newest.get(verifier) else {
                continue;
            };
            // A check whose newest result came at this stop was run here and is listed already.
            if newest.stop != runs.stop {
                runs.checks.push(CheckOutcomeAtStop {
                    verifier: verifier.clone(),
                    evidence: None,
                    outcome: CheckRunOrSkipReason::StillValid {
                        task: newest.task,
                        number: newest.number,
                    },
                });
            }
        }
    }
}
