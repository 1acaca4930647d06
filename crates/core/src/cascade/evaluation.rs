//! Evaluates a pending stop: the verdicts that settle its subjects, the three-valued `accept`
//! expression, and the failure set, feedback and explanation that follow from them. Decides nothing
//! itself.

use crate::accept::TruthValue;
use crate::decision::FailedCheckFeedback;
use crate::digest::{Digest, EightByteDigest};
use crate::evidence;
use crate::evidence::{
    EvidenceSummary, InconclusiveCause, Verdict, digest_tag_of_verdict_and_cause,
};
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::{UnixMillis, VerifierName};
use crate::input::JudgeTriggerOrSkipReason;
use crate::policy::{Policy, Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use crate::state::{PendingStop, Task, TreeRecheckState, VerifierVerdictInTask};

/// What is known about a pending stop.
pub(super) struct PendingStopFacts {
    /// Required hard verifiers without a fresh verdict, with the subject each should be about.
    pub(super) stale_verifiers: Vec<(VerifierName, Digest)>,
    /// Required persons that were not asked at this stop, and judges that were not asked about
    /// this answer, with what they would be asked about.
    pub(super) unasked_verifiers: Vec<(VerifierName, Digest)>,
    /// Judges that `accept` does not name, that something calls for, and that were not asked
    /// about this answer.
    pub(super) unasked_judges: Vec<(VerifierName, Digest)>,
    /// The value of `accept` with stances applied.
    pub(super) accept_value: TruthValue,
    /// The value of `accept` with no stance applied.
    value_without_stances: TruthValue,
    /// The value that `accept` would have if all verifiers except judges had failed.
    value_if_hard_failed: TruthValue,
    /// One line per required hard verifier, and per person and judge that was asked, in policy
    /// order.
    pub(super) outcomes: Vec<VerifierOutcome>,
    /// One line per judge that was called and came back, in policy order.
    pub(super) judge_outcomes: Vec<VerifierOutcome>,
    /// Identity of the subjects that required verifiers are about.
    pub(super) subjects: EightByteDigest,
}

/// One verifier at a pending stop.
pub(super) struct VerifierOutcome {
    pub(super) verifier: VerifierName,
    pub(super) tier: VerifierTier,
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
    /// Its stance replaced a verdict.
    pub(super) by_stance: bool,
    /// Its verdict came back for this very stop.
    pub(super) is_from_this_stop: bool,
    /// It can never succeed.
    pub(super) unrecoverable: bool,
    /// The evidence that settles it, if the tree did not move.
    fact: Option<EvidenceSummary>,
    /// When the run that produced this evidence began.
    pub(super) began: Option<UnixMillis>,
    /// Identity of what kept it from a verdict about the work.
    held_up: Option<EightByteDigest>,
    /// The evidence to show. May be about another tree, because it says which paths moved.
    shown_evidence: Option<Digest>,
    pub(super) truth: TruthValue,
}

impl VerifierOutcome {
    /// Does not count as passed.
    pub(super) fn has_not_passed(&self) -> bool {
        self.truth != TruthValue::True
    }

    /// It refuses the stop, itself or by its stance, so there is something to mend.
    pub(super) fn verifier_refuses_stop(&self) -> bool {
        self.has_not_passed() && !self.is_verifier_awaiting_person()
    }

    /// A person has been asked and can still answer.
    pub(super) fn is_verifier_awaiting_person(&self) -> bool {
        self.cause == Some(InconclusiveCause::Unanswered)
    }

    /// A person said no.
    pub(super) fn is_work_denied_by_person(&self) -> bool {
        self.tier == VerifierTier::Person && self.verdict == Verdict::Fail
    }

    /// The program that it needs is not there.
    pub(super) fn is_verifier_program_missing(&self) -> bool {
        self.cause == Some(InconclusiveCause::MissingProgram)
    }

    fn verifier_decision_factor(&self, required: bool) -> DecisionFactor {
        let fact = self.fact.as_ref();
        DecisionFactor::Verdict {
            verifier: self.verifier.clone(),
            verdict: self.verdict,
            cause: self.cause,
            findings: fact.map_or(0, |fact| fact.findings_total),
            cached: fact.is_some_and(|fact| fact.cached),
            required,
            by_stance: self.by_stance,
        }
    }

    /// It is held up and nothing is known against the work. Costs a continuation, not an attempt.
    pub(super) fn is_stop_only_held_up(&self) -> bool {
        self.verifier_refuses_stop() && self.held_up.is_some()
    }

    /// Its verdict comes from an earlier stop or from a kept (cached) run.
    pub(super) fn is_verdict_from_earlier_run(&self) -> bool {
        let fact = self.fact.as_ref();
        fact.is_some_and(|fact| !self.is_from_this_stop || fact.cached)
    }

    /// Its run was cut off or is held by another process. Costs a continuation, not an attempt.
    pub(super) fn is_cut_off_or_claimed_elsewhere(&self) -> bool {
        self.cause
            .is_some_and(InconclusiveCause::is_cut_off_or_claimed_elsewhere)
    }
}

/// Why a stop cannot be judged, though nothing is known against the work.
pub(super) struct StopHoldUpReason {
    /// The detail of the ending.
    pub(super) detail: &'static str,
    /// Identity of what holds it up.
    pub(super) by: EightByteDigest,
}

impl PendingStopFacts {
    /// Returns why the stop is held up, if `accept` would hold or be open once the checks passed
    /// that were cut, that run elsewhere, or during which files moved.
    pub(super) fn unfinished_checks_hold_up_reason(
        &self,
        policy: &Policy,
    ) -> Option<StopHoldUpReason> {
        let held: Vec<&VerifierOutcome> = self
            .outcomes
            .iter()
            .filter(|line| line.is_stop_only_held_up())
            .collect();
        let passed = |name: &VerifierName| held.iter().any(|line| line.verifier == *name);
        let of = |name: &VerifierName| self.outcomes.iter().find(|line| line.verifier == *name);
        let at_best = policy.accept.evaluate(&|name| match of(name) {
            _ if passed(name) => TruthValue::True,
            Some(line) => line.truth,
            None => TruthValue::Open,
        });
        if held.is_empty() || at_best == TruthValue::False {
            return None;
        }
        // An unfinished check is the more useful news for a person than a moving tree, so it names
        // the ending if both occur.
        let detail = match held
            .iter()
            .any(|line| line.is_cut_off_or_claimed_elsewhere())
        {
            true => "still_running",
            false => "tree_moving",
        };
        let parts = held.iter().flat_map(|line| {
            let by = line.held_up.map_or(0, |by| by.0).to_le_bytes().to_vec();
            [line.verifier.as_str().as_bytes().to_vec(), by]
        });
        let parts: Vec<Vec<u8>> = std::iter::once(detail.as_bytes().to_vec())
            .chain(parts)
            .collect();
        let by = Digest::hash_parts(parts.iter().map(Vec::as_slice)).to_eight_byte_digest();
        Some(StopHoldUpReason { detail, by })
    }

    /// Returns whether hard evidence is present and `accept` could not hold without it (law 1).
    pub(super) fn has_necessary_hard_evidence(&self) -> bool {
        self.value_without_stances == TruthValue::True
            && self.value_if_hard_failed == TruthValue::False
    }
}

/// Evaluates `pending`. A person is asked anew at each stop, because an earlier answer may have
/// expired. Advisory verifiers are not asked: they could neither accept nor refuse the stop, only
/// delay it. Triggered judges are the exception, because their verdict is worth having.
pub(super) fn evaluate_verifiers_at_stop(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    asks: VerifiersAskedAtStop,
) -> PendingStopFacts {
    let mut stale = Vec::new();
    let mut unasked = Vec::new();
    let mut lines = Vec::new();
    let required = |spec: &&VerifierSpec| policy.is_required_verifier(&spec.name);
    let required = policy.verifiers.iter().filter(required);
    for spec in required.filter(|_| asks != VerifiersAskedAtStop::JudgesOnly) {
        match evaluate_verifier_at_stop(spec, task, pending) {
            VerifierStatusAtStop::Settled(line) => lines.push(*line),
            // A sub-agent's stop asks no person. Without a line, the person counts as open.
            VerifierStatusAtStop::Unasked(_)
                if spec.tier == VerifierTier::Person && asks != VerifiersAskedAtStop::All => {}
            VerifierStatusAtStop::Unasked(about) => unasked.push((spec.name.clone(), about)),
            VerifierStatusAtStop::Stale(about, line) => {
                stale.push((spec.name.clone(), about));
                lines.push(*line);
            }
            VerifierStatusAtStop::NotApplicable => {}
        }
    }
    let mut called = Vec::new();
    let mut witnesses = Vec::new();
    let judges = policy.verifiers.iter().filter(|spec| {
        let calls = pending
            .recorded_judge_trigger(&spec.name)
            .is_judge_triggered();
        spec.tier == VerifierTier::Judge && calls && !policy.is_required_verifier(&spec.name)
    });
    for spec in judges {
        match evaluate_verifier_at_stop(spec, task, pending) {
            VerifierStatusAtStop::Settled(mut line) => {
                // An advisory judge that is passed over anyway did not need its stance.
                line.by_stance &= line.truth != TruthValue::True;
                witnesses.push(*line);
            }
            VerifierStatusAtStop::Unasked(about) => called.push((spec.name.clone(), about)),
            VerifierStatusAtStop::Stale(..) | VerifierStatusAtStop::NotApplicable => {}
        }
    }
    let of = |name: &VerifierName| lines.iter().find(|line| line.verifier == *name);
    // A verifier that was not asked counts as open.
    let value = policy
        .accept
        .evaluate(&|name| of(name).map_or(TruthValue::Open, |line| line.truth));
    // The same value without stances, because a stance that lets work pass is no evidence (law 1).
    let unaided = policy.accept.evaluate(&|name| match of(name) {
        Some(line) if line.by_stance => TruthValue::Open,
        Some(line) => line.truth,
        None => TruthValue::Open,
    });
    // A person's answer is evidence from outside the model, as a command's result is. Only judges
    // are left open here. A name that has no spec counts as a judge, so that it is never hard
    // evidence.
    let is_judge = |name: &VerifierName| {
        let spec = policy.verifier_spec(name);
        spec.is_none_or(|spec| spec.tier == VerifierTier::Judge)
    };
    let had_hard_failed = policy.accept.evaluate(&|name| match is_judge(name) {
        true => TruthValue::Open,
        false => TruthValue::False,
    });
    // If `accept` holds without any stance, the stances made no difference and the ending must not
    // be reported as passed over.
    if unaided == TruthValue::True {
        lines.iter_mut().for_each(|line| line.by_stance = false);
    }
    PendingStopFacts {
        stale_verifiers: stale,
        unasked_verifiers: unasked,
        unasked_judges: called,
        accept_value: match asks {
            // No required verifier is asked at such a stop, so nothing can be refused for lack of a
            // verdict.
            VerifiersAskedAtStop::JudgesOnly => TruthValue::True,
            VerifiersAskedAtStop::All | VerifiersAskedAtStop::NoPersons => value,
        },
        value_without_stances: unaided,
        value_if_hard_failed: had_hard_failed,
        outcomes: lines,
        judge_outcomes: witnesses,
        subjects: verifier_subjects_digest(policy, task, pending, |spec| {
            policy.is_required_verifier(&spec.name)
        }),
    }
}

/// Who is asked at a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerifiersAskedAtStop {
    /// All that are required, and judges that are called.
    All,
    /// The same without persons: a sub-agent's stop.
    NoPersons,
    /// Judges that are called, and nobody else.
    JudgesOnly,
}

/// What is known of one verifier at a pending stop.
enum VerifierStatusAtStop {
    /// It has a verdict about this subject, or cannot get one.
    Settled(Box<VerifierOutcome>),
    /// A hard verifier that has to run, with its outcome until then.
    Stale(Digest, Box<VerifierOutcome>),
    /// A person or judge that was not asked about this subject.
    Unasked(Digest),
    /// A judge that is not for this kind of conversation.
    NotApplicable,
}

fn evaluate_verifier_at_stop(
    spec: &VerifierSpec,
    task: &Task,
    pending: &PendingStop,
) -> VerifierStatusAtStop {
    let about = stop_verifier_subject_digest(spec, task, pending);
    let person = spec.tier == VerifierTier::Person;
    let soft = spec.tier != VerifierTier::Hard;
    let calling = match spec.tier {
        VerifierTier::Judge => pending.recorded_judge_trigger(&spec.name),
        VerifierTier::Hard | VerifierTier::Person => JudgeTriggerOrSkipReason::Nothing,
    };
    if calling == JudgeTriggerOrSkipReason::OtherSurface {
        return VerifierStatusAtStop::NotApplicable;
    }
    let settled = about
        .and_then(|of| pending.find_verdict_on_subject(&spec.name, of))
        // These filters define a fresh verdict: for a person from this very stop, and for checks
        // neither too old nor superseded by a newer run.
        .filter(|held| !person || held.stop == pending.stop)
        .filter(|held| !is_verdict_too_old(spec, held, pending))
        .filter(|held| !has_newer_check_run(spec, held, pending));
    let is_cut = pending.tree.as_ref().is_err_and(|unknown| unknown.cut);
    let unsteady = pending.recheck == TreeRecheckState::MovedAgain
        && spec.subject != VerdictSubjectKind::Message;
    let mut wanted = None;
    // The order of the arms is the order of precedence. A judge that is ruled out must not become a
    // failure of the tree reading, and a tree that moved twice voids even a verdict that would
    // settle.
    let (verdict, cause) = match (about, settled) {
        _ if calling.is_final_answer_unjudgeable() => {
            (Verdict::Inconclusive, Some(InconclusiveCause::NotAsked))
        }
        (None, _) if is_cut => (
            Verdict::Inconclusive,
            Some(InconclusiveCause::ReplyDeadline),
        ),
        (None, _) => (
            Verdict::Inconclusive,
            Some(InconclusiveCause::TreeUnreadable),
        ),
        _ if unsteady => (Verdict::Inconclusive, Some(InconclusiveCause::TreeMoving)),
        (Some(_), Some(held)) => held.verdict_if_tree_unchanged(),
        (Some(about), None)
            // Judges and persons are asked once per subject and stop. Hard verifiers are requested
            // as stale below.
            if soft && !has_evidence_for_other_subject(pending, &spec.name, about) =>
        {
            return VerifierStatusAtStop::Unasked(about);
        }
        (Some(about), None) => {
            // The check ran on another tree than it was asked about, and the tree has been read
            // again since. Requesting it again could go on for ever while something writes to the
            // tree.
            if (pending.recheck.was_tree_reread() || soft)
                && has_evidence_for_other_subject(pending, &spec.name, about)
            {
                (Verdict::Inconclusive, Some(InconclusiveCause::TreeMoving))
            } else {
                wanted = Some(about);
                (Verdict::Inconclusive, None)
            }
        }
    };
    let waits = cause == Some(InconclusiveCause::Unanswered);
    let truth = match (verdict, spec.stance) {
        (Verdict::Pass, _) => TruthValue::True,
        (Verdict::Inconclusive, _) if waits => TruthValue::Open,
        // A stance never overrides a `fail`. It applies to inconclusive verdicts only.
        (Verdict::Fail, _) | (Verdict::Inconclusive, Stance::Block) => TruthValue::False,
        (Verdict::Inconclusive, Stance::Allow) => TruthValue::True,
        (Verdict::Inconclusive, Stance::Ask) => TruthValue::Open,
    };
    let line = Box::new(VerifierOutcome {
        verifier: spec.name.clone(),
        tier: spec.tier,
        verdict,
        cause,
        by_stance: verdict == Verdict::Inconclusive && !waits,
        is_from_this_stop: settled.is_some_and(|held| held.stop == pending.stop),
        unrecoverable: verdict != Verdict::Pass
            && settled.is_some_and(VerifierVerdictInTask::can_verifier_never_pass),
        // What holds a check up is part of the failure set of the stop, so each case needs an
        // identity that stays the same from stop to stop.
        held_up: match settled {
            Some(held) if !unsteady => held.held_up,
            _ if about.is_none() && is_cut => Some(EightByteDigest(0)),
            // The moving paths that the last run reported, even if that run was about another tree.
            _ if pending.no_attempt && cause == Some(InconclusiveCause::TreeMoving) => {
                let last = pending.newest_verdict_of_verifier(&spec.name);
                Some(
                    last.and_then(|held| held.held_up)
                        .unwrap_or(EightByteDigest(0)),
                )
            }
            _ => None,
        },
        fact: settled.filter(|_| !unsteady).map(|held| held.fact.clone()),
        began: settled.and_then(|held| held.began),
        shown_evidence: settled
            .or_else(|| {
                let last = pending.newest_verdict_of_verifier(&spec.name);
                last.filter(|_| cause == Some(InconclusiveCause::TreeMoving))
            })
            .map(|held| held.fact.key),
        truth,
    });
    match wanted {
        Some(about) => VerifierStatusAtStop::Stale(about, line),
        None => VerifierStatusAtStop::Settled(line),
    }
}

/// Returns whether the verdict is so old that something the check reads beside its inputs may have
/// changed unseen. Declared `inputs` are taken to be complete, so such verdicts do not age.
fn is_verdict_too_old(
    spec: &VerifierSpec,
    held: &VerifierVerdictInTask,
    pending: &PendingStop,
) -> bool {
    let is_old = |began: UnixMillis| {
        evidence::is_evidence_too_old(pending.at.millis_since(began), held.fact.duration_ms)
    };
    spec.is_hard_tree_check() && spec.inputs.is_empty() && held.began.is_some_and(is_old)
}

/// Returns whether a newer run of the check is known than the one that produced this verdict. Its
/// result then supersedes the verdict.
fn has_newer_check_run(
    spec: &VerifierSpec,
    held: &VerifierVerdictInTask,
    pending: &PendingStop,
) -> bool {
    // Only a finding can be superseded. An inconclusive verdict found nothing.
    let is_found = held.fact.verdict != Verdict::Inconclusive;
    let runs = pending.newest_runs.iter().flatten();
    let mut newest = runs.filter(|newest| newest.verifier == spec.name);
    let newest = newest.next().and_then(|newest| newest.run);
    spec.is_hard_tree_check()
        && is_found
        && newest.is_some_and(|run| run != held.fact.key.to_eight_byte_digest())
}

/// How many times one check is requested for one subject at one stop. The second request answers a
/// newer run. A bound is needed because other processes can produce newer runs without end.
const MAX_REQUESTS_PER_STOP: usize = 2;

/// Returns whether this verifier was asked about this subject and came back about another. If it
/// came back about this subject and a newer run is known since, it may be asked once more.
pub(super) fn has_evidence_for_other_subject(
    pending: &PendingStop,
    name: &VerifierName,
    subject: Digest,
) -> bool {
    let asked = || {
        pending
            .requested_subjects
            .iter()
            .filter(|(asked, _)| asked == name)
    };
    let about_this = asked().any(|(_, about)| *about == subject.to_eight_byte_digest());
    let settling = pending.find_verdict_on_subject(name, subject);
    let came_back = settling.is_some_and(|held| held.stop == pending.stop);
    about_this && !(came_back && asked().count() < MAX_REQUESTS_PER_STOP)
}

fn stop_verifier_subject_digest(
    spec: &VerifierSpec,
    task: &Task,
    pending: &PendingStop,
) -> Option<Digest> {
    match spec.subject {
        VerdictSubjectKind::Tree => pending
            .tree
            .as_ref()
            .ok()
            .map(|tree| tree.verdict_subject_digest(spec)),
        VerdictSubjectKind::Message => Some(pending.message),
        VerdictSubjectKind::Answer => Some(pending.judge_subject_digest(&spec.name, task.prompt)),
        // The host program may have looked at the tree. If the tree cannot be read, it cannot be
        // read again before the answer either (law 1), so there is no subject.
        VerdictSubjectKind::Stop => pending
            .tree
            .as_ref()
            .ok()
            .map(|_| pending.digest_unique_to_stop()),
    }
}

/// Returns the identity of what did not pass: (verifier, finding id, file), or (verifier, verdict,
/// cause, exit code) for a verifier without findings. What was held up is not a failure, except
/// unfinished runs.
pub(super) fn failure_set_digest<'a>(
    lines: impl Iterator<Item = &'a VerifierOutcome>,
) -> EightByteDigest {
    let mut members: Vec<Digest> = Vec::new();
    let failures = lines.filter(|line| {
        line.verifier_refuses_stop()
            && (line.is_cut_off_or_claimed_elsewhere() || !line.is_stop_only_held_up())
    });
    for line in failures {
        let name = line.verifier.as_str().as_bytes();
        let fact = line.fact.as_ref();
        let findings = fact.map_or(&[][..], |fact| &fact.findings);
        if findings.is_empty() || line.cause.is_some() {
            let exit = fact.and_then(|fact| fact.exit_code);
            let exit = exit.map_or("None".to_owned(), |code| format!("Some({code})"));
            // This text is hashed into recorded events and must not change. The `Some(..)` and
            // `None` around the exit code are part of it.
            let text = format!(
                "{} {exit}",
                digest_tag_of_verdict_and_cause(line.verdict, line.cause)
            );
            members.push(Digest::hash_parts([name, text.as_bytes()]));
        }
        for finding in findings {
            members.push(Digest::hash_parts([name, &finding.0.to_le_bytes()]));
        }
    }
    // Sorted, so that the order of findings and verifiers does not make a new set.
    members.sort_unstable();
    Digest::hash_parts(members.iter().map(|member| &member.as_bytes()[..])).to_eight_byte_digest()
}

/// Returns the identity of the subjects of these verifiers.
pub(super) fn verifier_subjects_digest(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    meant: impl Fn(&VerifierSpec) -> bool,
) -> EightByteDigest {
    let of = |spec: &VerifierSpec| stop_verifier_subject_digest(spec, task, pending);
    let specs = policy.verifiers.iter().filter(|spec| meant(spec));
    let meant: Vec<Option<Digest>> = specs.map(of).collect();
    let bytes = |digest: &Option<Digest>| digest.map_or(Vec::new(), |of| of.as_bytes().to_vec());
    let parts: Vec<Vec<u8>> = meant.iter().map(bytes).collect();
    Digest::hash_parts(parts.iter().map(Vec::as_slice)).to_eight_byte_digest()
}

/// Builds the feedback on this check for an agent that was told the findings in `told` before.
pub(super) fn failed_check_feedback_facts(
    told: &[(EightByteDigest, bool)],
    line: &VerifierOutcome,
) -> FailedCheckFeedback {
    let now = line.fact.as_ref().map_or(&[][..], |fact| &fact.findings);
    // Findings already told are only named again. Only new ones are described (law 7).
    let (still, new) = now
        .iter()
        .partition(|finding| told.iter().any(|(known, _)| known == *finding));
    let gone = |(finding, there): &&(EightByteDigest, bool)| *there && !now.contains(finding);
    FailedCheckFeedback {
        verifier: line.verifier.clone(),
        key: line.shown_evidence.unwrap_or(Digest::hash_bytes(b"")),
        verdict: line.verdict,
        cause: line.cause,
        new,
        still,
        fixed: match line.verdict {
            // A check that could not run did not show that anything was mended.
            Verdict::Inconclusive => 0,
            Verdict::Pass | Verdict::Fail => told.iter().filter(gone).count() as u32,
        },
    }
}

pub(super) fn explain_stop(
    policy: &Policy,
    pending: &PendingStop,
    judged: &PendingStopFacts,
) -> DecisionExplanation {
    let mut why = DecisionExplanation::new();
    if let Err(unknown) = &pending.tree {
        why.push(DecisionFactor::TreeUnknown {
            why: unknown.why.clone(),
        });
    }
    if policy.verifiers.is_empty() {
        why.push(DecisionFactor::NoChecks);
    }
    if pending.recheck.has_tree_moved() {
        why.push(DecisionFactor::TreeMoved);
    }
    for line in &judged.outcomes {
        why.push(line.verifier_decision_factor(true));
    }
    why.extend(explain_advisory_judge_verdicts(policy, pending, judged));
    if pending.background > 0 {
        why.push(DecisionFactor::Background {
            count: pending.background,
        });
    }
    why
}

/// Explains the verdicts of advisory judges and names the judges that were not asked.
pub(super) fn explain_advisory_judge_verdicts(
    policy: &Policy,
    pending: &PendingStop,
    judged: &PendingStopFacts,
) -> DecisionExplanation {
    let mut why = DecisionExplanation::new();
    for line in &judged.judge_outcomes {
        why.push(line.verifier_decision_factor(false));
        let spec = policy.verifier_spec(&line.verifier);
        if spec.is_some_and(|spec| spec.judge.is_some_and(|terms| terms.shadow)) {
            why.push(DecisionFactor::Shadow {
                verifier: line.verifier.clone(),
                sends_back: line.verifier_refuses_stop(),
            });
        }
    }
    for fact in pending
        .judges
        .iter()
        .filter(|fact| !fact.trigger.is_judge_triggered())
    {
        let asked = judged
            .outcomes
            .iter()
            .any(|line| line.verifier == fact.verifier);
        // A required judge has a line of its own among the outcomes and is not repeated here.
        if fact.trigger.is_final_answer_unjudgeable() || !asked {
            why.push(DecisionFactor::NotAsked {
                verifier: fact.verifier.clone(),
                trigger: fact.trigger,
            });
        }
    }
    why
}
