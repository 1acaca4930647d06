//! What is known about a pending stop: verdicts that settle their subjects, `accept` in
//! three values, and what follows for failure set, feedback and explanation.

use crate::accept::Truth;
use crate::decision::CheckFeedback;
use crate::digest::{Digest, Short};
use crate::evidence;
use crate::evidence::{Cause, EvidenceFact, Verdict, verdict_digest_text};
use crate::explain::{Because, Why};
use crate::ids::{Millis, VerifierName};
use crate::input::Calling;
use crate::policy::{Policy, Stance, SubjectKind, Tier, VerifierSpec};
use crate::state::{Held, Pending, Task, TreeRecheck};

/// What is known about a pending stop.
pub(super) struct Judged {
    /// Required hard verifiers without a fresh verdict, with the subject each should be about.
    pub(super) stale: Vec<(VerifierName, Digest)>,
    /// Required persons that were not asked at this stop, and judges that were not asked about
    /// this answer, with what they would be asked about.
    pub(super) unasked: Vec<(VerifierName, Digest)>,
    /// Judges that `accept` does not name, that something calls for, and that were not asked
    /// about this answer.
    pub(super) called: Vec<(VerifierName, Digest)>,
    /// `accept`, stances used.
    pub(super) value: Truth,
    /// `accept` without any stance.
    unaided: Truth,
    /// `accept` had all hard verifiers failed.
    had_hard_failed: Truth,
    /// One line per required hard verifier, and per person and judge that was asked, in policy
    /// order.
    pub(super) lines: Vec<Line>,
    /// One line per judge that was called and came back, in policy order.
    pub(super) witnesses: Vec<Line>,
    /// Identity of the subjects that required verifiers are about.
    pub(super) subjects: Short,
}

/// One verifier at a pending stop.
pub(super) struct Line {
    pub(super) verifier: VerifierName,
    pub(super) tier: Tier,
    verdict: Verdict,
    cause: Option<Cause>,
    /// Its stance stood in for a verdict.
    pub(super) by_stance: bool,
    /// Its verdict came back for this very stop.
    pub(super) fresh: bool,
    /// It can never succeed.
    pub(super) hopeless: bool,
    /// The verdict that settles it, if the tree held still.
    fact: Option<EvidenceFact>,
    /// When the run began that found that.
    pub(super) began: Option<Millis>,
    /// What kept it from a verdict that says anything about the work.
    held_up: Option<Short>,
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

    /// The program that it needs is not there.
    pub(super) fn misses_its_program(&self) -> bool {
        self.cause == Some(Cause::MissingProgram)
    }

    fn because(&self, required: bool) -> Because {
        let fact = self.fact.as_ref();
        Because::Verdict {
            verifier: self.verifier.clone(),
            verdict: self.verdict,
            cause: self.cause,
            findings: fact.map_or(0, |fact| fact.findings_total),
            cached: fact.is_some_and(|fact| fact.cached),
            required,
            by_stance: self.by_stance,
        }
    }

    /// Nothing is known against the work: a continuation, not an attempt.
    pub(super) fn is_held_up(&self) -> bool {
        self.is_refused() && self.held_up.is_some()
    }

    /// Found at an earlier stop, or by a run that was kept.
    pub(super) fn is_known_from_before(&self) -> bool {
        let fact = self.fact.as_ref();
        fact.is_some_and(|fact| !self.fresh || fact.cached)
    }

    /// Cut, or run by another process: a continuation, not an attempt.
    pub(super) fn is_cut(&self) -> bool {
        self.cause.is_some_and(Cause::is_cut)
    }
}

/// Why a stop cannot be judged, though nothing is known against the work.
pub(super) struct HeldUp {
    /// As the ending says it.
    pub(super) detail: &'static str,
    /// Identity of what holds it up.
    pub(super) by: Short,
}

impl Judged {
    /// Whether `accept` would hold, or be open, if checks that were cut, that run elsewhere, or
    /// during which files moved, had passed.
    pub(super) fn held_up(&self, policy: &Policy) -> Option<HeldUp> {
        let held: Vec<&Line> = self.lines.iter().filter(|line| line.is_held_up()).collect();
        let passed = |name: &VerifierName| held.iter().any(|line| line.verifier == *name);
        let of = |name: &VerifierName| self.lines.iter().find(|line| line.verifier == *name);
        let at_best = policy.accept.evaluate(&|name| match of(name) {
            _ if passed(name) => Truth::True,
            Some(line) => line.truth,
            None => Truth::Open,
        });
        if held.is_empty() || at_best == Truth::False {
            return None;
        }
        let detail = match held.iter().any(|line| line.is_cut()) {
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
        let by = Digest::of_parts(parts.iter().map(Vec::as_slice)).short();
        Some(HeldUp { detail, by })
    }

    /// Hard evidence was necessary, and it is there.
    pub(super) fn is_complete(&self) -> bool {
        self.unaided == Truth::True && self.had_hard_failed == Truth::False
    }
}

/// What is known about `pending`. A person is asked at each stop anew: what they said at an
/// earlier one may have run out. Advisory verifiers are not asked at a stop: they could
/// neither accept nor refuse it, only delay the answer; but a judge that something calls for is,
/// as what it would have said is worth knowing.
pub(super) fn judge(policy: &Policy, task: &Task, pending: &Pending, asks: Asks) -> Judged {
    let mut stale = Vec::new();
    let mut unasked = Vec::new();
    let mut lines = Vec::new();
    let required = |spec: &&VerifierSpec| policy.is_required(&spec.name);
    let required = policy.verifiers.iter().filter(required);
    for spec in required.filter(|_| asks != Asks::JudgesOnly) {
        match look(spec, task, pending) {
            Known::Line(line) => lines.push(*line),
            // Nobody knows yet: open.
            Known::Unasked(_) if spec.tier == Tier::Person && asks != Asks::All => {}
            Known::Unasked(about) => unasked.push((spec.name.clone(), about)),
            Known::Stale(about, line) => {
                stale.push((spec.name.clone(), about));
                lines.push(*line);
            }
            Known::NotMeant => {}
        }
    }
    let mut called = Vec::new();
    let mut witnesses = Vec::new();
    let judges = policy.verifiers.iter().filter(|spec| {
        let calls = pending.calling(&spec.name).calls();
        spec.tier == Tier::Judge && calls && !policy.is_required(&spec.name)
    });
    for spec in judges {
        match look(spec, task, pending) {
            Known::Line(mut line) => {
                // That it may be passed over anyway is no use of its stance.
                line.by_stance &= line.truth != Truth::True;
                witnesses.push(*line);
            }
            Known::Unasked(about) => called.push((spec.name.clone(), about)),
            Known::Stale(..) | Known::NotMeant => {}
        }
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
        called,
        value: match asks {
            // Nobody else is asked, and nothing is refused for want of their word.
            Asks::JudgesOnly => Truth::True,
            Asks::All | Asks::NoPersons => value,
        },
        unaided,
        had_hard_failed,
        lines,
        witnesses,
        subjects: subjects(policy, task, pending, |spec| policy.is_required(&spec.name)),
    }
}

/// Who is asked at a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// All that are required, and judges that are called.
    All,
    /// The same without persons: a sub-agent's stop.
    NoPersons,
    /// Judges that are called, and nobody else.
    JudgesOnly,
}

/// What is known of one verifier at a pending stop.
enum Known {
    /// It has a verdict about this subject, or cannot have one.
    Line(Box<Line>),
    /// A hard verifier that has to run, and how it stands until then.
    Stale(Digest, Box<Line>),
    /// A person or judge that was not asked about this subject.
    Unasked(Digest),
    /// A judge that is not for this kind of conversation.
    NotMeant,
}

fn look(spec: &VerifierSpec, task: &Task, pending: &Pending) -> Known {
    let about = subject(spec, task, pending);
    let person = spec.tier == Tier::Person;
    let soft = spec.tier != Tier::Hard;
    let calling = match spec.tier {
        Tier::Judge => pending.calling(&spec.name),
        Tier::Hard | Tier::Person => Calling::Nothing,
    };
    if calling == Calling::OtherSurface {
        return Known::NotMeant;
    }
    let settled = about
        .and_then(|of| pending.settling(&spec.name, of))
        .filter(|held| !person || held.stop == pending.stop)
        .filter(|held| !is_old(spec, held, pending))
        .filter(|held| !is_overtaken(spec, held, pending));
    let is_cut = pending.tree.as_ref().is_err_and(|unknown| unknown.cut);
    let unsteady =
        pending.recheck == TreeRecheck::MovedAgain && spec.subject != SubjectKind::Message;
    let mut wanted = None;
    let (verdict, cause) = match (about, settled) {
        _ if calling.rules_out() => (Verdict::Inconclusive, Some(Cause::NotAsked)),
        (None, _) if is_cut => (Verdict::Inconclusive, Some(Cause::ReplyDeadline)),
        (None, _) => (Verdict::Inconclusive, Some(Cause::TreeUnreadable)),
        _ if unsteady => (Verdict::Inconclusive, Some(Cause::TreeMoving)),
        (Some(_), Some(held)) => held.verdict(),
        (Some(about), None) if soft && !went_astray(pending, &spec.name, about) => {
            return Known::Unasked(about);
        }
        (Some(about), None) => {
            if (pending.recheck.was_read() || soft) && went_astray(pending, &spec.name, about) {
                (Verdict::Inconclusive, Some(Cause::TreeMoving))
            } else {
                wanted = Some(about);
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
    let line = Box::new(Line {
        verifier: spec.name.clone(),
        tier: spec.tier,
        verdict,
        cause,
        by_stance: verdict == Verdict::Inconclusive && !waits,
        fresh: settled.is_some_and(|held| held.stop == pending.stop),
        hopeless: verdict != Verdict::Pass && settled.is_some_and(Held::is_hopeless),
        held_up: match settled {
            Some(held) if !unsteady => held.held_up,
            _ if about.is_none() && is_cut => Some(Short(0)),
            // The paths that the last run knows of, which may have been about another tree.
            _ if pending.no_attempt && cause == Some(Cause::TreeMoving) => {
                let last = pending.held(&spec.name);
                Some(last.and_then(|held| held.held_up).unwrap_or(Short(0)))
            }
            _ => None,
        },
        fact: settled.filter(|_| !unsteady).map(|held| held.fact.clone()),
        began: settled.and_then(|held| held.began),
        shown: settled
            .or_else(|| {
                let last = pending.held(&spec.name);
                last.filter(|_| cause == Some(Cause::TreeMoving))
            })
            .map(|held| held.fact.key),
        truth,
    });
    match wanted {
        Some(about) => Known::Stale(about, line),
        None => Known::Line(line),
    }
}

/// Whether it was found so long ago that what a check reads beside its inputs may be otherwise by now,
/// although nobody was seen to change it. Where `inputs` say what it depends on, they say all of it.
fn is_old(spec: &VerifierSpec, held: &Held, pending: &Pending) -> bool {
    let is_old = |began: Millis| evidence::is_old(pending.at.since(began), held.fact.duration_ms);
    spec.is_tree_check() && spec.inputs.is_empty() && held.began.is_some_and(is_old)
}

/// Whether a newer run of the check was kept than the one that was held: what it found is not the last word.
fn is_overtaken(spec: &VerifierSpec, held: &Held, pending: &Pending) -> bool {
    let is_found = held.fact.verdict != Verdict::Inconclusive;
    let runs = pending.runs.iter().flatten();
    let mut newest = runs.filter(|newest| newest.verifier == spec.name);
    let newest = newest.next().and_then(|newest| newest.run);
    spec.is_tree_check() && is_found && newest.is_some_and(|run| run != held.fact.key.short())
}

/// A check that was asked for so often at this stop is not asked for once more for a newer run of it.
const MOST_ASKED: usize = 2;

/// Whether this verifier was asked about this very subject and came back about another. One that came back about it,
/// and of which a newer run is known since, is asked once more.
pub(super) fn went_astray(pending: &Pending, name: &VerifierName, subject: Digest) -> bool {
    let asked = || pending.asked.iter().filter(|(asked, _)| asked == name);
    let about_this = asked().any(|(_, about)| *about == subject.short());
    let settling = pending.settling(name, subject);
    let came_back = settling.is_some_and(|held| held.stop == pending.stop);
    about_this && !(came_back && asked().count() < MOST_ASKED)
}

fn subject(spec: &VerifierSpec, task: &Task, pending: &Pending) -> Option<Digest> {
    match spec.subject {
        SubjectKind::Tree => pending.tree.as_ref().ok().map(|tree| tree.about(spec)),
        SubjectKind::Message => Some(pending.message),
        SubjectKind::Answer => Some(pending.answer(&spec.name, task.prompt)),
        // The host may have looked at the tree, which nobody could read once more (law 1).
        SubjectKind::Stop => pending.tree.as_ref().ok().map(|_| pending.itself()),
    }
}

/// The identity of what did not pass: (verifier, finding id, file), or for a verifier
/// without findings (verifier, verdict, cause, exit code). What was held up is nobody's failure.
pub(super) fn failure_set<'a>(lines: impl Iterator<Item = &'a Line>) -> Short {
    let mut members: Vec<Digest> = Vec::new();
    let failures = lines.filter(|line| line.is_refused() && (line.is_cut() || !line.is_held_up()));
    for line in failures {
        let name = line.verifier.as_str().as_bytes();
        let fact = line.fact.as_ref();
        let findings = fact.map_or(&[][..], |fact| &fact.findings);
        if findings.is_empty() || line.cause.is_some() {
            let exit = fact.and_then(|fact| fact.exit_code);
            let exit = exit.map_or("None".to_owned(), |code| format!("Some({code})"));
            let text = format!("{} {exit}", verdict_digest_text(line.verdict, line.cause));
            members.push(Digest::of_parts([name, text.as_bytes()]));
        }
        for finding in findings {
            members.push(Digest::of_parts([name, &finding.0.to_le_bytes()]));
        }
    }
    members.sort_unstable();
    Digest::of_parts(members.iter().map(|member| &member.as_bytes()[..])).short()
}

/// The identity of what these verifiers are about.
pub(super) fn subjects(
    policy: &Policy,
    task: &Task,
    pending: &Pending,
    meant: impl Fn(&VerifierSpec) -> bool,
) -> Short {
    let of = |spec: &VerifierSpec| subject(spec, task, pending);
    let specs = policy.verifiers.iter().filter(|spec| meant(spec));
    let meant: Vec<Option<Digest>> = specs.map(of).collect();
    let bytes = |digest: &Option<Digest>| digest.map_or(Vec::new(), |of| of.as_bytes().to_vec());
    let parts: Vec<Vec<u8>> = meant.iter().map(bytes).collect();
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
    if pending.recheck.has_moved() {
        why.push(Because::TreeMoved);
    }
    for line in &judged.lines {
        why.push(line.because(true));
    }
    why.extend(testimony(policy, pending, judged));
    if pending.background > 0 {
        why.push(Because::Background {
            count: pending.background,
        });
    }
    why
}

/// What judges said that `accept` does not name, and which were not asked.
pub(super) fn testimony(policy: &Policy, pending: &Pending, judged: &Judged) -> Why {
    let mut why = Why::new();
    for line in &judged.witnesses {
        why.push(line.because(false));
        let spec = policy.verifier(&line.verifier);
        if spec.is_some_and(|spec| spec.judge.is_some_and(|terms| terms.shadow)) {
            why.push(Because::Shadow {
                verifier: line.verifier.clone(),
                sends_back: line.is_refused(),
            });
        }
    }
    for fact in pending.judges.iter().filter(|fact| !fact.calling.calls()) {
        let asked = judged
            .lines
            .iter()
            .any(|line| line.verifier == fact.verifier);
        if fact.calling.rules_out() || !asked {
            why.push(Because::NotAsked {
                verifier: fact.verifier.clone(),
                calling: fact.calling,
            });
        }
    }
    why
}
