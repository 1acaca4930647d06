//! When the agent asks to stop: hard → soft → judges and people → lazy.
//!
//! The stop waits as `Pending` in the state; every piece of evidence that comes back
//! brings the cascade forward, in whatever order it comes (law 4). Nothing is accepted
//! but on gate verdicts for exactly the subjects being accepted, and the tree is read
//! once more before the answer (law 1).

use crate::accept::Truth;
use crate::budget;
use crate::decision::{CheckFeedback, Decision, Feedback, StopDecision};
use crate::digest::{Digest, Short};
use crate::effect::Effect;
use crate::event::{Event, OpenedBy};
use crate::evidence::{Cause, Verdict};
use crate::explain::{Because, Why};
use crate::ids::{ScopeId, Seq, VerifierName};
use crate::input::StopRequested;
use crate::policy::{Policy, Stance, SubagentVerify, SubjectKind, Tier, VerifierSpec, VerifyOn};
use crate::state::{Held, Pending, Task};
use crate::step::Draft;
use crate::transition::{Reason, Transition};

/// A stop was asked for.
pub(crate) fn begin(draft: &mut Draft<'_>, seq: Seq, stop: &StopRequested) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let scope = &stop.scope;
    if task.halted {
        return stop_halted(draft, seq, scope);
    }
    if !scope.is_main() && !is_verified(draft.policy, task, scope) {
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.answer(seq, scope, accept, vec![Because::Subagent]);
    }
    if scope.is_main() && nothing_changed(draft.policy, task, stop) {
        return accept_unchanged(draft, seq, stop);
    }
    ask(draft, scope);
}

/// Evidence came back, or the tree was read once more.
pub(crate) fn go_on(draft: &mut Draft<'_>, scope: &ScopeId) {
    match draft.state.pending(scope) {
        // Evidence that nobody waits for is recorded and decides nothing.
        None => draft.note(),
        Some(pending) if !pending.waiting.is_empty() || pending.reading => {}
        Some(_) => ask(draft, scope),
    }
}

fn is_verified(policy: &Policy, task: &Task, scope: &ScopeId) -> bool {
    match policy.subagents.verify {
        SubagentVerify::Never => false,
        SubagentVerify::Writers => task.scope(scope).is_some_and(|scope| scope.wrote),
    }
}

/// Step 0: a question must not run the test suite.
fn nothing_changed(policy: &Policy, task: &Task, stop: &StopRequested) -> bool {
    let judges_tree_only = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required(&spec.name))
        .all(|spec| spec.subject == SubjectKind::Tree);
    let unchanged = match (&task.start, &stop.tree) {
        (Some(start), Ok(now)) => start.tree == now.tree && start.subjects == now.subjects,
        _ => false,
    };
    task.stops == 1
        && task.opened_by == OpenedBy::Prompt
        && unchanged
        && judges_tree_only
        && policy.verify_on == VerifyOn::Change
        && !policy.single_task
        && !policy.verifiers.is_empty()
}

fn accept_unchanged(draft: &mut Draft<'_>, seq: Seq, stop: &StopRequested) {
    let mut why = vec![Because::NoChange];
    let tree = stop.tree.as_ref().map(|tree| tree.tree).ok();
    if draft
        .state
        .last_judged
        .is_some_and(|(judged, failed)| failed && Some(judged) == tree)
    {
        why.push(Because::KnownFailing);
    }
    finish(
        draft,
        seq,
        &stop.scope,
        Transition::new(Reason::Unverified, "no_change"),
        why,
    );
}

/// A stop of a halted task runs nothing; evidence that is already there may still save it.
fn stop_halted(draft: &mut Draft<'_>, seq: Seq, scope: &ScopeId) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let saved = scope.is_main()
        && draft.state.pending(scope).is_some_and(|pending| {
            let judged = judge(draft.policy, task, pending);
            let missing = judged
                .stale
                .iter()
                .any(|(name, _)| draft.policy.is_required(name));
            !missing && judged.is_complete()
        });
    let capped = task.ended.as_ref().and_then(|ended| ended.detail.clone());
    let transition = if saved {
        Transition {
            reason: Reason::TaskComplete,
            detail: capped,
            native_reason: None,
        }
    } else {
        let ended = task.ended.clone();
        ended.unwrap_or_else(|| Transition::plain(Reason::Error))
    };
    finish(draft, seq, scope, transition, vec![Because::Halted]);
}

/// Asks for what is missing; concludes when nothing is.
fn ask(draft: &mut Draft<'_>, scope: &ScopeId) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let Some(pending) = draft.state.pending(scope) else {
        return;
    };
    let stop = pending.stop;
    let judged = judge(draft.policy, task, pending);

    if !judged.stale.is_empty() {
        // Evidence about another tree than the stop's came back: the tree moved meanwhile.
        let moved = judged
            .stale
            .iter()
            .any(|(name, about)| went_astray(pending, name, *about));
        let effects = if moved {
            vec![Effect::ReadTree {
                scope: scope.clone(),
            }]
        } else {
            let run = |(verifier, subject): &(VerifierName, Digest)| Effect::RunVerifier {
                scope: scope.clone(),
                verifier: verifier.clone(),
                subject: *subject,
            };
            judged.stale.iter().map(run).collect()
        };
        return draft.request(stop, scope, effects);
    }
    // The last look before an accepting answer.
    let may_accept = judged.value != Truth::False;
    let has_subject = pending.tree.is_ok() && !draft.policy.verifiers.is_empty();
    if may_accept && has_subject && !pending.confirmed && !pending.moving {
        return draft.request(
            stop,
            scope,
            vec![Effect::ReadTree {
                scope: scope.clone(),
            }],
        );
    }
    conclude(draft, scope, judged);
}

/// Whether this verifier was asked about this very subject and came back about another.
fn went_astray(pending: &Pending, name: &VerifierName, subject: Digest) -> bool {
    pending
        .asked
        .iter()
        .any(|(asked, about)| asked == name && *about == subject.short())
}

/// What is known about a pending stop.
struct Judged {
    /// Hard verifiers without a fresh verdict, with the subject each should be about.
    stale: Vec<(VerifierName, Digest)>,
    /// `accept`, stances used.
    value: Truth,
    /// `accept` without any stance.
    unaided: Truth,
    /// `accept` had all hard verifiers failed.
    had_hard_failed: Truth,
    /// One line per verifier.
    lines: Vec<Line>,
    moved: bool,
}

struct Line {
    verifier: VerifierName,
    verdict: Verdict,
    cause: Option<Cause>,
    required: bool,
    by_stance: bool,
    hopeless: bool,
    truth: Truth,
}

impl Judged {
    /// Hard evidence was necessary, and it is there.
    fn is_complete(&self) -> bool {
        self.unaided == Truth::True && self.had_hard_failed == Truth::False
    }
}

fn judge(policy: &Policy, task: &Task, pending: &Pending) -> Judged {
    let mut stale = Vec::new();
    let mut lines = Vec::new();
    for spec in policy
        .verifiers
        .iter()
        .filter(|spec| spec.tier == Tier::Hard)
    {
        let held = task.held(&spec.name);
        let (verdict, cause) = match (subject(spec, pending), held) {
            (Some(_), _) if pending.moving => (Verdict::Inconclusive, Some(Cause::TreeMoving)),
            (Some(subject), Some(held)) if held.settles(subject, pending.stop) => held.verdict(),
            (Some(subject), _) => {
                let looked_again = pending.rejudged || pending.confirmed;
                if looked_again && went_astray(pending, &spec.name, subject) {
                    (Verdict::Inconclusive, Some(Cause::TreeMoving))
                } else {
                    stale.push((spec.name.clone(), subject));
                    (Verdict::Inconclusive, None)
                }
            }
            (None, _) => (Verdict::Inconclusive, Some(Cause::TreeUnreadable)),
        };
        let (truth, by_stance) = match (verdict, spec.stance) {
            (Verdict::Pass, _) => (Truth::True, false),
            (Verdict::Fail, _) => (Truth::False, false),
            (Verdict::Inconclusive, Stance::Block) => (Truth::False, false),
            (Verdict::Inconclusive, Stance::Allow) => (Truth::True, true),
            (Verdict::Inconclusive, Stance::Ask) => (Truth::Open, true),
        };
        lines.push(Line {
            verifier: spec.name.clone(),
            verdict,
            cause,
            required: policy.is_required(&spec.name),
            by_stance,
            hopeless: verdict != Verdict::Pass && held.is_some_and(Held::is_hopeless),
            truth,
        });
    }
    let of = |name: &VerifierName| lines.iter().find(|line| line.verifier == *name);
    // A verifier of another tier than hard has not been asked: open.
    let value = policy
        .accept
        .evaluate(&|name| of(name).map_or(Truth::Open, |line| line.truth));
    let unaided = policy.accept.evaluate(&|name| match of(name) {
        Some(line) if line.by_stance => Truth::Open,
        Some(line) => line.truth,
        None => Truth::Open,
    });
    let had_hard_failed = policy
        .accept
        .evaluate(&|name| of(name).map_or(Truth::Open, |_| Truth::False));
    let moved = pending.rejudged;
    Judged {
        stale,
        value,
        unaided,
        had_hard_failed,
        lines,
        moved,
    }
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

fn conclude(draft: &mut Draft<'_>, scope: &ScopeId, judged: Judged) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let Some(pending) = draft.state.pending(scope).cloned() else {
        return;
    };
    let why = explain(task, &pending, &judged);
    if task.asked {
        return finish(
            draft,
            pending.stop,
            scope,
            Transition::plain(Reason::AwaitingHuman),
            why,
        );
    }
    match judged.value {
        Truth::True => {
            let transition = accepted(draft.policy, &judged);
            finish(draft, pending.stop, scope, transition, why);
        }
        Truth::Open => {
            let transition = Transition::new(Reason::AwaitingHuman, "stance");
            finish(draft, pending.stop, scope, transition, why);
        }
        Truth::False => refuse(draft, scope, &pending, &judged, why),
    }
}

/// How an accepted stop is called.
fn accepted(policy: &Policy, judged: &Judged) -> Transition {
    if judged.is_complete() {
        return Transition::plain(Reason::TaskComplete);
    }
    let detail = if policy.verifiers.is_empty() {
        "no_checks"
    } else if judged
        .lines
        .iter()
        .any(|line| line.required && line.by_stance)
    {
        "passed_over"
    } else {
        "advisory_only"
    };
    Transition::new(Reason::Unverified, detail)
}

/// `accept` is false whatever anybody says: is going on worth it?
fn refuse(
    draft: &mut Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    judged: &Judged,
    mut why: Why,
) {
    let policy = draft.policy;
    // A check that was cut, or that another process holds, is a continuation, not an attempt.
    let cut = judged.lines.iter().any(|line| {
        line.required
            && matches!(
                line.cause,
                Some(Cause::ReplyDeadline | Cause::ClaimedElsewhere)
            )
    });
    let Some(task) = &draft.state.task else {
        return;
    };
    let set = failure_set(task, judged);
    let subjects = subjects(pending);
    let repeat = task.last_failure == Some((subjects, set));
    if !cut {
        draft.emit(Event::FailureSetMet { set, subjects });
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    let met = task.met(set);
    let limit = continues_limit(policy, pending);
    let given = task.totals.continues;

    let verdict = not_worth_it(draft, judged, pending, met, &mut why);
    if let Some(transition) = verdict {
        return finish(draft, pending.stop, scope, transition, why);
    }
    let feedback = Feedback {
        stop: task.stops,
        met: met.max(1),
        attempts: policy.caps.attempts,
        continues_left: limit.saturating_sub(given + 1),
        repeat,
        checks: judged
            .lines
            .iter()
            .filter(|line| line.required && line.truth != Truth::True)
            .map(|line| check_feedback(task, line))
            .collect(),
        background: pending.background,
    };
    let decision = StopDecision::Continue {
        feedback: Box::new(feedback),
    };
    draft.answer(pending.stop, scope, Decision::Stop(decision), why);
}

/// The soft tier, in the order of the contract. `None`: going on is worth it.
fn not_worth_it(
    draft: &Draft<'_>,
    judged: &Judged,
    pending: &Pending,
    met: u32,
    why: &mut Why,
) -> Option<Transition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    if let Some(spent) = &task.spent {
        why.push(Because::AlreadyEnded);
        return Some(spent.clone());
    }
    if let Some(line) = judged
        .lines
        .iter()
        .find(|line| line.required && line.hopeless)
    {
        return Some(Transition::new(
            Reason::VerifierFailedUnrecoverable,
            line.verifier.as_str(),
        ));
    }
    if task.refused {
        why.push(Because::AfterRefusal);
        return Some(Transition::plain(Reason::PermissionDenied));
    }
    if pending.truncated {
        why.push(Because::Truncated);
        return Some(Transition::plain(Reason::Truncated));
    }
    if let Some(over) = budget::at_stop(policy, draft.state) {
        why.push(over.because());
        return Some(Transition::new(Reason::HardCap, over.cap.as_str()));
    }
    if let Some(cap) = task.grace {
        return Some(Transition::new(Reason::HardCap, cap.as_str()));
    }
    if met >= policy.caps.attempts {
        why.push(Because::SameFailures {
            met,
            attempts: policy.caps.attempts,
        });
        return Some(Transition::new(Reason::GaveUp, "same_failures"));
    }
    let (given, limit) = (task.totals.continues, continues_limit(policy, pending));
    if given >= limit {
        why.push(Because::Continues { given, limit });
        return Some(Transition::new(Reason::GaveUp, "continues"));
    }
    if let Some(limit) = policy.session_caps.continues
        && draft.state.totals.continues >= limit
    {
        why.push(Because::Continues {
            given: draft.state.totals.continues,
            limit,
        });
        return Some(Transition::new(Reason::GaveUp, "continues"));
    }
    token_budget(policy, task, why)
}

/// Stop at budget x threshold, or at diminishing returns. Unknown use never fires it.
/// Source: Claude Code's `checkTokenBudget` (0.9 / 500 / 3), judged at stops only.
fn token_budget(policy: &Policy, task: &Task, why: &mut Why) -> Option<Transition> {
    let settings = &policy.token_budget;
    if let (Some(used), Some(budget)) = (task.totals.output_tokens, policy.caps.token_budget) {
        let line = (u128::from(budget) * u128::from(settings.threshold_permille) / 1000) as u64;
        if used >= line {
            why.push(Because::TokenBudget { used, line });
            return Some(Transition::new(Reason::DiminishingReturns, "token_budget"));
        }
    }
    if let [Some(delta), Some(previous)] = task.deltas {
        let little = settings.diminishing_tokens;
        if task.totals.continues >= settings.diminishing_rounds
            && delta < little
            && previous < little
        {
            why.push(Because::Diminishing { delta, previous });
            return Some(Transition::new(Reason::DiminishingReturns, "diminishing"));
        }
    }
    None
}

/// The agent's own cap on blocks must not be reached: its override would look like success.
fn continues_limit(policy: &Policy, pending: &Pending) -> u32 {
    let own = policy.caps.continues;
    match pending.block_cap {
        None | Some(0) => own,
        Some(cap) => own.min(cap.saturating_sub(1)).max(1),
    }
}

fn finish(draft: &mut Draft<'_>, stop: Seq, scope: &ScopeId, transition: Transition, why: Why) {
    if !scope.is_main() {
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.answer(stop, scope, accept, why);
    }
    let accept = StopDecision::Accept {
        transition: Some(transition.clone()),
    };
    draft.answer(stop, scope, Decision::Stop(accept), why);
    draft.end(transition);
}

/// The identity of what did not pass: (verifier, finding id, file), or for a verifier
/// without findings (verifier, verdict, cause, exit code).
fn failure_set(task: &Task, judged: &Judged) -> Short {
    let mut members: Vec<Digest> = Vec::new();
    for line in judged
        .lines
        .iter()
        .filter(|line| line.required && line.truth != Truth::True)
    {
        let fact = task.held(&line.verifier).map(|held| &held.fact);
        let findings = fact.map_or(&[][..], |fact| &fact.findings);
        if findings.is_empty() || line.cause.is_some() {
            let exit = fact.and_then(|fact| fact.exit_code);
            let text = format!("{:?} {:?} {exit:?}", line.verdict, line.cause);
            members.push(Digest::of_parts([
                line.verifier.as_str().as_bytes(),
                text.as_bytes(),
            ]));
        }
        for finding in findings {
            let name = line.verifier.as_str().as_bytes();
            members.push(Digest::of_parts([name, &finding.0.to_le_bytes()]));
        }
    }
    members.sort_unstable();
    Digest::of_parts(members.iter().map(|member| &member.as_bytes()[..])).short()
}

fn subjects(pending: &Pending) -> Short {
    let mut parts: Vec<&[u8]> = vec![pending.message.as_bytes()];
    if let Ok(tree) = &pending.tree {
        parts = tree
            .subjects
            .iter()
            .map(|(_, digest)| &digest.as_bytes()[..])
            .collect();
    }
    Digest::of_parts(parts).short()
}

fn check_feedback(task: &Task, line: &Line) -> CheckFeedback {
    let held = task.held(&line.verifier);
    let now = held.map_or(&[][..], |held| &held.fact.findings);
    let told = held.map_or(&[][..], |held| &held.told);
    let before = held.map_or(&[][..], |held| &held.before);
    let (still, new) = now.iter().partition(|finding| told.contains(finding));
    CheckFeedback {
        verifier: line.verifier.clone(),
        key: held.map_or(Digest::of(b""), |held| held.fact.key),
        verdict: line.verdict,
        cause: line.cause,
        new,
        still,
        fixed: before
            .iter()
            .filter(|finding| !now.contains(finding))
            .count() as u32,
    }
}

fn explain(task: &Task, pending: &Pending, judged: &Judged) -> Why {
    let mut why = Why::new();
    if let Err(unknown) = &pending.tree {
        why.push(Because::TreeUnknown {
            why: unknown.why.clone(),
        });
    }
    if judged.lines.is_empty() {
        why.push(Because::NoChecks);
    }
    if judged.moved {
        why.push(Because::TreeMoved);
    }
    for line in &judged.lines {
        let fact = task.held(&line.verifier).map(|held| &held.fact);
        why.push(Because::Verdict {
            verifier: line.verifier.clone(),
            verdict: line.verdict,
            cause: line.cause,
            findings: fact.map_or(0, |fact| fact.findings_total),
            cached: fact.is_some_and(|fact| fact.cached),
            required: line.required,
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
