//! What is known about a pending stop: verdicts that settle their subjects, `accept` in
//! three values, and what follows for failure set, feedback and explanation.

use crate::accept::Truth;
use crate::decision::CheckFeedback;
use crate::digest::{Digest, Short};
use crate::evidence::{Cause, EvidenceFact, Verdict};
use crate::explain::{Because, Why};
use crate::ids::VerifierName;
use crate::policy::{Policy, Stance, SubjectKind, Tier, VerifierSpec};
use crate::state::{Held, Pending};

/// What is known about a pending stop.
pub(super) struct Judged {
    /// Required hard verifiers without a fresh verdict, with the subject each should be about.
    pub(super) stale: Vec<(VerifierName, Digest)>,
    /// Required persons that were not asked at this stop, with what they would be asked about.
    pub(super) unasked: Vec<(VerifierName, Digest)>,
    /// `accept`, stances used.
    pub(super) value: Truth,
    /// `accept` without any stance.
    unaided: Truth,
    /// `accept` had all hard verifiers failed.
    had_hard_failed: Truth,
    /// One line per required hard verifier and per person that was asked, in policy order.
    pub(super) lines: Vec<Line>,
    /// Identity of the subjects that required verifiers are about.
    pub(super) subjects: Short,
}

/// One required hard verifier or person at a pending stop.
pub(super) struct Line {
    pub(super) verifier: VerifierName,
    tier: Tier,
    verdict: Verdict,
    cause: Option<Cause>,
    /// Its stance stood in for a verdict.
    pub(super) by_stance: bool,
    /// It can never succeed.
    pub(super) hopeless: bool,
    /// The verdict that settles it, if the tree held still.
    fact: Option<EvidenceFact>,
    /// Evidence worth showing: also about another tree, as it says which paths moved.
    shown: Option<Digest>,
    pub(super) truth: Truth,
}

impl Line {
    /// Does not count as passed.
    pub(super) fn is_open(&self) -> bool {
        self.truth != Truth::True
    }

    /// It says no, or its stance does: what there is to mend.
    pub(super) fn is_refused(&self) -> bool {
        self.is_open() && !self.waits()
    }

    /// A person has been asked and can still answer.
    pub(super) fn waits(&self) -> bool {
        self.cause == Some(Cause::Unanswered)
    }

    /// A person said no.
    pub(super) fn is_denied(&self) -> bool {
        self.tier == Tier::Person && self.verdict == Verdict::Fail
    }

    /// Cut, or run by another process: a continuation, not an attempt.
    pub(super) fn is_cut(&self) -> bool {
        matches!(
            self.cause,
            Some(Cause::ReplyDeadline | Cause::ClaimedElsewhere)
        )
    }
}

impl Judged {
    /// Hard evidence was necessary, and it is there.
    pub(super) fn is_complete(&self) -> bool {
        self.unaided == Truth::True && self.had_hard_failed == Truth::False
    }
}

/// What is known about `pending`. A person is asked at each stop anew: what they said at an
/// earlier one may have run out. Advisory verifiers are not asked at a stop: they could
/// neither accept nor refuse it, only delay the answer.
pub(super) fn judge(policy: &Policy, pending: &Pending) -> Judged {
    let mut stale = Vec::new();
    let mut unasked = Vec::new();
    let mut lines = Vec::new();
    for spec in policy
        .verifiers
        .iter()
        .filter(|spec| spec.tier != Tier::Judge && policy.is_required(&spec.name))
    {
        let about = subject(spec, pending);
        let person = spec.tier == Tier::Person;
        let settled = about
            .and_then(|of| pending.settling(&spec.name, of))
            .filter(|held| !person || held.stop == pending.stop);
        let unsteady = pending.moving && spec.subject == SubjectKind::Tree;
        let (verdict, cause) = match (about, settled) {
            (None, _) => (Verdict::Inconclusive, Some(Cause::TreeUnreadable)),
            _ if unsteady => (Verdict::Inconclusive, Some(Cause::TreeMoving)),
            (Some(_), Some(held)) => held.verdict(),
            (Some(about), None) if person && !went_astray(pending, &spec.name, about) => {
                unasked.push((spec.name.clone(), about));
                continue;
            }
            (Some(about), None) => {
                let looked_again = pending.rejudged || pending.looked;
                if (looked_again || person) && went_astray(pending, &spec.name, about) {
                    (Verdict::Inconclusive, Some(Cause::TreeMoving))
                } else {
                    stale.push((spec.name.clone(), about));
                    (Verdict::Inconclusive, None)
                }
            }
        };
        let waits = cause == Some(Cause::Unanswered);
        let truth = match (verdict, spec.stance) {
            (Verdict::Pass, _) => Truth::True,
            (Verdict::Inconclusive, _) if waits => Truth::Open,
            (Verdict::Fail, _) | (Verdict::Inconclusive, Stance::Block) => Truth::False,
            (Verdict::Inconclusive, Stance::Allow) => Truth::True,
            (Verdict::Inconclusive, Stance::Ask) => Truth::Open,
        };
        lines.push(Line {
            verifier: spec.name.clone(),
            tier: spec.tier,
            verdict,
            cause,
            by_stance: verdict == Verdict::Inconclusive && !waits,
            hopeless: verdict != Verdict::Pass && settled.is_some_and(Held::is_hopeless),
            fact: settled.filter(|_| !unsteady).map(|held| held.fact.clone()),
            shown: settled
                .or_else(|| {
                    let last = pending.held(&spec.name);
                    last.filter(|_| cause == Some(Cause::TreeMoving))
                })
                .map(|held| held.fact.key),
            truth,
        });
    }
    let of = |name: &VerifierName| lines.iter().find(|line| line.verifier == *name);
    // Who has not been asked: open.
    let value = policy
        .accept
        .evaluate(&|name| of(name).map_or(Truth::Open, |line| line.truth));
    let unaided = policy.accept.evaluate(&|name| match of(name) {
        Some(line) if line.by_stance => Truth::Open,
        Some(line) => line.truth,
        None => Truth::Open,
    });
    // What a person says is evidence from outside the model, as what a command says is.
    let is_judge = |name: &VerifierName| {
        let spec = policy.verifier(name);
        spec.is_none_or(|spec| spec.tier == Tier::Judge)
    };
    let had_hard_failed = policy.accept.evaluate(&|name| match is_judge(name) {
        true => Truth::Open,
        false => Truth::False,
    });
    // A stance that made no difference was not used.
    if unaided == Truth::True {
        lines.iter_mut().for_each(|line| line.by_stance = false);
    }
    Judged {
        stale,
        unasked,
        value,
        unaided,
        had_hard_failed,
        lines,
        subjects: subjects(policy, pending),
    }
}

/// Whether this verifier was asked about this very subject and came back about another.
pub(super) fn went_astray(pending: &Pending, name: &VerifierName, subject: Digest) -> bool {
    pending
        .asked
        .iter()
        .any(|(asked, about)| asked == name && *about == subject.short())
}

fn subject(spec: &VerifierSpec, pending: &Pending) -> Option<Digest> {
    match spec.subject {
        SubjectKind::Tree => pending
            .tree
            .as_ref()
            .ok()
            .map(|tree| tree.subject(&spec.name)),
        SubjectKind::Message => Some(pending.message),
    }
}

/// The identity of what did not pass: (verifier, finding id, file), or for a verifier
/// without findings (verifier, verdict, cause, exit code).
pub(super) fn failure_set(judged: &Judged) -> Short {
    let mut members: Vec<Digest> = Vec::new();
    for line in judged.lines.iter().filter(|line| line.is_refused()) {
        let name = line.verifier.as_str().as_bytes();
        let fact = line.fact.as_ref();
        let findings = fact.map_or(&[][..], |fact| &fact.findings);
        if findings.is_empty() || line.cause.is_some() {
            let exit = fact.and_then(|fact| fact.exit_code);
            let text = format!("{:?} {:?} {exit:?}", line.verdict, line.cause);
            members.push(Digest::of_parts([name, text.as_bytes()]));
        }
        for finding in findings {
            members.push(Digest::of_parts([name, &finding.0.to_le_bytes()]));
        }
    }
    members.sort_unstable();
    Digest::of_parts(members.iter().map(|member| &member.as_bytes()[..])).short()
}

/// The identity of what the required verifiers are about.
fn subjects(policy: &Policy, pending: &Pending) -> Short {
    let of = |spec: &VerifierSpec| subject(spec, pending);
    let required: Vec<Option<Digest>> = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required(&spec.name))
        .map(of)
        .collect();
    let bytes = |digest: &Option<Digest>| digest.map_or(Vec::new(), |of| of.as_bytes().to_vec());
    let parts: Vec<Vec<u8>> = required.iter().map(bytes).collect();
    Digest::of_parts(parts.iter().map(Vec::as_slice)).short()
}

/// What to say about this check to an agent that was told these findings before.
pub(super) fn check_feedback(told: &[(Short, bool)], line: &Line) -> CheckFeedback {
    let now = line.fact.as_ref().map_or(&[][..], |fact| &fact.findings);
    let (still, new) = now
        .iter()
        .partition(|finding| told.iter().any(|(known, _)| known == *finding));
    let gone = |(finding, there): &&(Short, bool)| *there && !now.contains(finding);
    CheckFeedback {
        verifier: line.verifier.clone(),
        key: line.shown.unwrap_or(Digest::of(b"")),
        verdict: line.verdict,
        cause: line.cause,
        new,
        still,
        fixed: match line.verdict {
            Verdict::Inconclusive => 0,
            Verdict::Pass | Verdict::Fail => told.iter().filter(gone).count() as u32,
        },
    }
}

pub(super) fn explain(policy: &Policy, pending: &Pending, judged: &Judged) -> Why {
    let mut why = Why::new();
    if let Err(unknown) = &pending.tree {
        why.push(Because::TreeUnknown {
            why: unknown.why.clone(),
        });
    }
    if policy.verifiers.is_empty() {
        why.push(Because::NoChecks);
    }
    if pending.rejudged {
        why.push(Because::TreeMoved);
    }
    for line in &judged.lines {
        let fact = line.fact.as_ref();
        why.push(Because::Verdict {
            verifier: line.verifier.clone(),
            verdict: line.verdict,
            cause: line.cause,
            findings: fact.map_or(0, |fact| fact.findings_total),
            cached: fact.is_some_and(|fact| fact.cached),
            required: true,
            by_stance: line.by_stance,
        });
    }
    if pending.background > 0 {
        why.push(Because::Background {
            count: pending.background,
        });
    }
    why
}
