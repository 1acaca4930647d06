//! When the agent asks to stop: middleware → hard → soft → judges and people → lazy.
//!
//! The stop waits as `Pending` in the state; every piece of evidence that comes back
//! brings the cascade forward, in whatever order it comes (law 4). Nothing is accepted
//! but on gate verdicts for exactly the subjects being accepted, and the tree is read
//! once more before the answer (law 1).

mod judged;
mod soft;

use self::judged::{
    Asks, Judged, Line, check_feedback, explain, failure_set, judge, subjects, testimony,
    went_astray,
};
use crate::accept::Truth;
use crate::decision::{
    CheckFeedback, Decision, Feedback, LayerFeedback, StopDecision, TokenTarget,
};
use crate::digest::{Digest, Short};
use crate::effect::Effect;
use crate::event::{Event, OpenedBy};
use crate::explain::{Because, Why};
use crate::feedback;
use crate::ids::{Millis, ScopeId, Seq, VerifierName};
use crate::input::{StanceUsed, StopRequested};
use crate::layers::{LayerFact, LayerSays};
use crate::policy::{Policy, Stance, SubagentVerify, SubjectKind, Tier, VerifierSpec, VerifyOn};
use crate::state::{Asked, Pending, Refusal, Task};
use crate::step::Draft;
use crate::transition::{PARKED, Reason, Transition};

/// Stops that the same moving paths hold up, and nothing else, before the task ends unverified.
const MOST_HELD_UP: u32 = 3;

/// A stop was asked for.
pub(crate) fn begin(draft: &mut Draft<'_>, seq: Seq, stop: &StopRequested, layers: &[LayerFact]) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let scope = &stop.scope;
    if task.halted {
        return stop_halted(draft, seq, scope, layers);
    }
    if task.scope(scope).is_some_and(|scope| scope.halted) {
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.answer(seq, scope, accept, vec![Because::Halted]);
    }
    let against: Vec<&LayerFact> = layers.iter().filter(|fact| fact.is_against()).collect();
    match &task.asked {
        _ if against.is_empty() => ask(draft, scope),
        None => turn_back(draft, scope, &against, layers),
        // Who waits for a person is not sent back. Nor is anything run: the person may answer
        // meanwhile, and the stop would be accepted past who is against it (law 11).
        Some(asked) => {
            let mut why: Why = layers.iter().cloned().map(Because::Layer).collect();
            let transition = asked_of_a_person(asked, draft.state.now, &mut why);
            finish(draft, seq, scope, transition, why);
        }
    }
}

/// Layers of middleware refuse the stop: the agent hears that first, and no check is run for it.
/// As often as any other refusal, and no oftener (law 2).
fn turn_back(draft: &mut Draft<'_>, scope: &ScopeId, against: &[&LayerFact], layers: &[LayerFact]) {
    let (Some(task), Some(pending)) = (&draft.state.task, draft.state.pending(scope).cloned())
    else {
        return;
    };
    let mut why: Why = layers.iter().cloned().map(Because::Layer).collect();
    let members = against.iter().flat_map(|fact| {
        let says = fact.says.digest_tag().to_owned();
        [fact.layer.to_string(), says, fact.reason.clone()]
    });
    let members: Vec<String> = std::iter::once("middleware".to_owned())
        .chain(members)
        .collect();
    let set = Digest::of_parts(members.iter().map(String::as_bytes)).short();
    let subjects = pending.said().short();
    let main = scope.is_main();
    let repeat = main && task.last_failure == Some((subjects, set));
    if main {
        draft.emit(Event::FailureSetMet { set, subjects });
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    let met = if main { task.met(set) } else { 0 };
    let asks = asks(draft.policy, task, scope, &pending);
    let judged = judge(draft.policy, task, &pending, asks);
    if let Some(transition) = soft::not_worth_it(draft, scope, &judged, &pending, met, &mut why) {
        return finish(draft, pending.stop, scope, transition, why);
    }
    let told = Told {
        met: met.max(1),
        attempts: draft.policy.caps.attempts,
        repeat,
    };
    let layers = against.iter().map(|fact| LayerFeedback {
        layer: fact.layer.clone(),
        reason: fact.reason.clone(),
        by_stance: fact.says == LayerSays::Blocked,
    });
    send_back(
        draft,
        scope,
        &pending,
        Against::Layers(layers.collect()),
        told,
        why,
    );
}

/// Evidence came back, or the tree was read once more.
pub(crate) fn go_on(draft: &mut Draft<'_>, scope: &ScopeId) {
    match draft.state.pending(scope) {
        // Evidence that nobody waits for is recorded and decides nothing.
        None => draft.note(),
        Some(pending) if !pending.waiting.is_empty() || pending.recheck.is_reading() => {}
        Some(_) => ask(draft, scope),
    }
}

/// Checkrein itself could not judge the stop, and its stance was not to refuse it. What
/// was being judged is given up; that it was let through says nothing about the work.
pub(crate) fn stand_in(draft: &mut Draft<'_>, seq: Seq, used: StanceUsed) {
    let transition = match used.stance {
        Stance::Ask => Transition::new(Reason::AwaitingHuman, "stance"),
        Stance::Allow | Stance::Block => Transition::new(Reason::Unverified, "passed_over"),
    };
    // Nothing was found out, so it is no better than what the task was spent by.
    let task = draft.state.task.as_ref();
    let spent = task.and_then(|task| task.spent.clone());
    let transition = spent.unwrap_or(transition);
    let why = vec![Because::StanceUsed {
        stance: used.stance,
        why: used.why,
    }];
    finish(draft, seq, &used.scope, transition, why);
}

/// Who is asked at this stop. Judges that something calls for are, also where nothing else is.
fn asks(policy: &Policy, task: &Task, scope: &ScopeId, pending: &Pending) -> Asks {
    match scope.is_main() {
        true if nothing_changed(policy, task, pending) => Asks::JudgesOnly,
        true => Asks::All,
        false if is_verified(policy, task, scope) => Asks::NoPersons,
        false => Asks::JudgesOnly,
    }
}

fn is_verified(policy: &Policy, task: &Task, scope: &ScopeId) -> bool {
    match policy.subagents.verify {
        SubagentVerify::Never => false,
        SubagentVerify::Writers => task.scope(scope).is_some_and(|scope| scope.wrote),
    }
}

/// Step 0: a question must not run the test suite. What a person thinks of a tree is not told by
/// the tree: they may have said yes to it since, and the prompt is how the agent hears of that.
fn nothing_changed(policy: &Policy, task: &Task, pending: &Pending) -> bool {
    let is_view = |spec: &VerifierSpec| policy.views && spec.tier == Tier::Person;
    let judges_tree_only = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required(&spec.name))
        .all(|spec| spec.subject == SubjectKind::Tree && !is_view(spec));
    let unchanged = match (&task.start, &pending.tree) {
        (Some(start), Ok(now)) => start.tree == now.tree && start.subjects == now.subjects,
        // The start tree was too large to be read in time.
        (None, Ok(now)) => task.acts_at_start.is_some() && task.acts_at_start == now.acts,
        (_, Err(_)) => false,
    };
    // Judges may have sent it back since: that is no reason to run anything else.
    let sent_back = task
        .scope(&ScopeId::main())
        .map_or(0, |main| main.sent_back);
    task.stops == 1 + sent_back
        && task.opened_by == OpenedBy::Prompt
        && unchanged
        && judges_tree_only
        && policy.verify_on == VerifyOn::Change
        && !policy.single_task
        && !policy.verifiers.is_empty()
}

/// Nothing but judges was asked, and they let it stand.
fn accept_unverified(
    draft: &mut Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    judged: &Judged,
    said: Why,
) {
    if !scope.is_main() {
        let mut why = vec![Because::Subagent];
        why.extend(said);
        let Some(task) = &draft.state.task else {
            return;
        };
        let transition = accepted(draft.policy, task, judged);
        return finish(draft, pending.stop, scope, transition, why);
    }
    let task = draft.state.task.as_ref();
    let mut why = vec![match task.is_some_and(|task| task.start.is_some()) {
        true => Because::NoChange,
        false => Because::OnlyRead,
    }];
    let tree = pending.tree.as_ref().map(|tree| tree.tree).ok();
    if draft
        .state
        .last_judged
        .is_some_and(|(judged, failed)| failed && Some(judged) == tree)
    {
        why.push(Because::KnownFailing);
    }
    if pending.background > 0 {
        why.push(Because::Background {
            count: pending.background,
        });
    }
    why.extend(said);
    let task = draft.state.task.as_ref();
    let asked = task.and_then(|task| task.asked.as_ref());
    let refused = task.and_then(|task| task.refused);
    let transition = if let Some(asked) = asked {
        asked_of_a_person(asked, draft.state.now, &mut why)
    } else if let Some(refused) = refused {
        why.push(Because::AfterRefusal);
        refused_by(refused)
    } else {
        Transition::new(Reason::Unverified, "no_change")
    };
    finish(draft, pending.stop, scope, transition, why);
}

/// The agent stopped while a person was to be asked. That they did not answer in time is no
/// denial, and not the same as that they still can.
fn asked_of_a_person(asked: &Asked, now: Millis, why: &mut Why) -> Transition {
    let approval = asked.approval.clone();
    match asked.until {
        None => Transition::plain(Reason::AwaitingHuman),
        Some(until) if now < until => {
            why.push(Because::Parked { approval, until });
            Transition::new(Reason::AwaitingHuman, PARKED)
        }
        Some(_) => {
            why.push(Because::RanOut { approval });
            Transition::new(Reason::AwaitingHuman, "expired")
        }
    }
}

/// The agent stopped right after a refusal.
fn refused_by(refusal: Refusal) -> Transition {
    match refusal {
        Refusal::Rule => Transition::plain(Reason::PermissionDenied),
        Refusal::Nobody => Transition::new(Reason::PermissionDenied, "nobody_asked"),
        Refusal::Person => Transition::new(Reason::PermissionDenied, "denied"),
    }
}

/// A stop of a halted task runs nothing; evidence that is already there may still save it.
fn stop_halted(draft: &mut Draft<'_>, seq: Seq, scope: &ScopeId, layers: &[LayerFact]) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let mut why = vec![Because::Halted];
    why.extend(layers.iter().cloned().map(Because::Layer));
    let refused = task.passed_over || layers.iter().any(LayerFact::is_against);
    // What ended it, and not how it stands now: that a fresh pass saved an earlier stop
    // says nothing about the tree of this one.
    let halt = task
        .spent
        .clone()
        .unwrap_or_else(|| Transition::plain(Reason::Error));
    let mut transition = halt;
    if let Some(pending) = draft.state.pending(scope).filter(|_| scope.is_main()) {
        let judged = judge(draft.policy, task, pending, Asks::All);
        if judged.stale.is_empty() && judged.is_complete() && !refused {
            why.extend(explain(draft.policy, pending, &judged));
            transition = Transition {
                reason: Reason::TaskComplete,
                detail: transition.detail,
                native_reason: None,
            };
        }
    }
    finish(draft, seq, scope, transition, why);
}

/// Asks for what is missing; concludes when nothing is.
fn ask(draft: &mut Draft<'_>, scope: &ScopeId) {
    let (Some(task), Some(pending)) = (&draft.state.task, draft.state.pending(scope)) else {
        return;
    };
    let stop = pending.stop;
    let asks = asks(draft.policy, task, scope, pending);
    let judged = judge(draft.policy, task, pending, asks);

    if !judged.stale.is_empty() {
        // Evidence about another tree than the stop's came back: the tree moved meanwhile.
        let moved = judged
            .stale
            .iter()
            .any(|(name, about)| went_astray(pending, name, *about));
        let effects = if moved {
            read_tree(scope, stop)
        } else {
            run(scope, &judged.stale)
        };
        return draft.request(stop, scope, effects);
    }
    // Persons and judges are asked only if the rest does not say no already.
    if judged.value == Truth::Open && !judged.unasked.is_empty() {
        let effects = run(scope, &judged.unasked);
        return draft.request(stop, scope, effects);
    }
    if judged.value != Truth::False && !judged.called.is_empty() && task.asked.is_none() {
        let effects = run(scope, &judged.called);
        return draft.request(stop, scope, effects);
    }
    // The last look before an accepting answer.
    let sends_back = matches!(
        weigh(draft, scope, pending, &judged),
        Testimony::Against(..)
    );
    let may_accept = judged.value != Truth::False && !sends_back;
    let nobody = judged.lines.is_empty() && judged.witnesses.is_empty();
    let has_subject = pending.tree.is_ok() && !nobody;
    if may_accept && has_subject && !pending.recheck.is_final() {
        return draft.request(stop, scope, read_tree(scope, stop));
    }
    conclude(draft, scope, judged, asks);
}

fn read_tree(scope: &ScopeId, stop: Seq) -> Vec<Effect> {
    vec![Effect::ReadTree {
        scope: scope.clone(),
        stop,
    }]
}

fn run(scope: &ScopeId, wanted: &[(VerifierName, Digest)]) -> Vec<Effect> {
    let effect = |(verifier, subject): &(VerifierName, Digest)| Effect::RunVerifier {
        scope: scope.clone(),
        verifier: verifier.clone(),
        subject: *subject,
        again: false,
    };
    wanted.iter().map(effect).collect()
}

fn conclude(draft: &mut Draft<'_>, scope: &ScopeId, judged: Judged, asks: Asks) {
    let Some(pending) = draft.state.pending(scope).cloned() else {
        return;
    };
    let mut why = match asks {
        Asks::JudgesOnly => testimony(draft.policy, &pending, &judged),
        Asks::All | Asks::NoPersons => explain(draft.policy, &pending, &judged),
    };
    match weigh(draft, scope, &pending, &judged) {
        Testimony::Nothing(because) => why.extend(because),
        Testimony::Leaves(line) => {
            let transition = Transition::new(Reason::AwaitingHuman, line.verifier.as_str());
            return finish(draft, pending.stop, scope, transition, why);
        }
        Testimony::Against(against, told) => {
            // Kept so that the same words about the same answer are not said twice.
            let task = draft.state.task.as_ref().filter(|_| scope.is_main());
            let of = task.map(|task| against_what(draft.policy, task, &pending, &against));
            if let Some((subjects, set)) = of {
                draft.emit(Event::FailureSetMet { set, subjects });
            }
            return send_back(draft, scope, &pending, Against::Lines(against), told, why);
        }
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    if task.passed_over {
        why.push(Because::LayerPassedOver);
    }
    if asks == Asks::JudgesOnly {
        return accept_unverified(draft, scope, &pending, &judged, why);
    }
    if let Some(asked) = &task.asked {
        let transition = asked_of_a_person(asked, draft.state.now, &mut why);
        return finish(draft, pending.stop, scope, transition, why);
    }
    match judged.value {
        Truth::True => match soft::target(draft, &judged, &pending) {
            Some(target) => send_on(draft, scope, &pending, target, why),
            None => {
                let mut transition = accepted(draft.policy, task, &judged);
                if let Some(over) = &pending.over {
                    transition.native_reason.clone_from(&over.native_reason);
                }
                finish(draft, pending.stop, scope, transition, why);
            }
        },
        Truth::Open => {
            let waits = judged.lines.iter().find(|line| line.waits());
            let detail = waits.map_or("stance", |line| line.verifier.as_str());
            let transition = Transition::new(Reason::AwaitingHuman, detail);
            finish(draft, pending.stop, scope, transition, why);
        }
        Truth::False => refuse(draft, scope, &pending, &judged, why),
    }
}

/// What follows from judges that `accept` does not name. What they say weighs less than evidence:
/// where going on is not worth it, or they have had their say, the answer stands as evidence
/// makes it.
enum Testimony<'a> {
    /// Nothing.
    Nothing(Why),
    /// One cannot tell, and leaves it to a person.
    Leaves(&'a Line),
    /// The agent is sent back.
    Against(Vec<&'a Line>, Told),
}

fn weigh<'a>(
    draft: &Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    judged: &'a Judged,
) -> Testimony<'a> {
    let policy = draft.policy;
    let spec = |line: &&Line| policy.verifier(&line.verifier);
    let counts = |line: &&Line| spec(line).is_some_and(VerifierSpec::is_enforced);
    // Who waits for a person is not sent back.
    let waits = draft
        .state
        .task
        .as_ref()
        .is_some_and(|task| task.asked.is_some());
    let said = judged.witnesses.iter().filter(|_| !waits);
    let said: Vec<&Line> = said.filter(counts).collect();
    let says_no = |line: &&Line| line.truth == Truth::False;
    let against: Vec<&Line> = said.iter().copied().filter(says_no).collect();
    if judged.value == Truth::False || against.is_empty() {
        let leaves = said.into_iter().find(|line| line.truth == Truth::Open);
        let leaves = leaves.filter(|_| scope.is_main() && judged.value != Truth::False);
        return leaves.map_or(Testimony::Nothing(Why::new()), Testimony::Leaves);
    }
    let (seen, attempts) = (soft::seen(draft, scope), attempts(policy, &against));
    if seen >= attempts {
        return Testimony::Nothing(vec![Because::JudgesSpent { seen, attempts }]);
    }
    let mut why = Why::new();
    if soft::not_worth_it(draft, scope, judged, pending, 0, &mut why).is_some() {
        return Testimony::Nothing(why);
    }
    let task = draft.state.task.as_ref();
    let of = task.map(|task| against_what(policy, task, pending, &against));
    let told = Told {
        met: seen,
        attempts,
        repeat: scope.is_main() && task.is_some_and(|task| task.last_failure == of),
    };
    Testimony::Against(against, told)
}

/// Identity of the subjects that these judges are about, and of what they have against them.
fn against_what(
    policy: &Policy,
    task: &Task,
    pending: &Pending,
    against: &[&Line],
) -> (Short, Short) {
    let named = |spec: &VerifierSpec| against.iter().any(|line| line.verifier == spec.name);
    let set = failure_set(against.iter().copied());
    (subjects(policy, task, pending, named), set)
}

/// How many answers these judges may see.
fn attempts(policy: &Policy, judges: &[&Line]) -> u32 {
    let terms = |line: &&Line| policy.verifier(&line.verifier)?.judge;
    let attempts = judges.iter().filter_map(terms);
    attempts.map(|terms| terms.max_attempts).max().unwrap_or(1)
}

/// How an accepted stop is called.
fn accepted(policy: &Policy, task: &Task, judged: &Judged) -> Transition {
    if judged.is_complete() && !task.passed_over {
        return Transition::plain(Reason::TaskComplete);
    }
    let detail = if policy.verifiers.is_empty() {
        "no_checks"
    } else if task.passed_over || judged.lines.iter().any(|line| line.by_stance) {
        "passed_over"
    } else {
        "advisory_only"
    };
    Transition::new(Reason::Unverified, detail)
}

/// `accept` is false whatever anybody says: is going on worth it? A sub-agent's stop is a
/// continuation as any other, but no attempt of the task: attempts, and what was told, are
/// about the main conversation, which does not hear what is said to a sub-agent.
fn refuse(
    draft: &mut Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    judged: &Judged,
    mut why: Why,
) {
    let policy = draft.policy;
    let main = scope.is_main();
    let cut = judged.lines.iter().any(Line::is_cut);
    let held_up = judged.held_up(policy);
    let Some(task) = &draft.state.task else {
        return;
    };
    let failures = failure_set(judged.lines.iter());
    let (set, subjects) = (
        held_up.as_ref().map_or(failures, |held| held.by),
        judged.subjects,
    );
    let is_last = task.met(set) + 1 >= policy.caps.attempts
        || soft::spent_continues(draft, scope, pending).is_some();
    if main && held_up.is_none() && is_last {
        let again = to_run_once_more(policy, task, pending, judged);
        if !again.is_empty() {
            return draft.request(pending.stop, scope, again);
        }
    }
    let repeat = main && held_up.is_none() && task.last_failure == Some((subjects, set));
    if main && (held_up.is_some() || !cut) {
        draft.emit(Event::FailureSetMet { set, subjects });
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    let times = if main { task.met(set) } else { 0 };
    let met = if held_up.is_some() { 0 } else { times };

    let verdict = soft::not_worth_it(draft, scope, judged, pending, met, &mut why);
    // Whatever writes there does not end while the agent waits for it.
    let stuck = held_up.filter(|held| held.detail == "tree_moving" && times >= MOST_HELD_UP);
    let stuck = stuck.map(|held| Transition::new(Reason::Unverified, held.detail));
    if let Some(transition) = verdict.or(stuck) {
        return finish(draft, pending.stop, scope, transition, why);
    }
    let refused = |line: &&Line| line.is_refused();
    let against: Vec<&Line> = judged.lines.iter().filter(refused).collect();
    // What judges alone have against it is counted by the answers that they have seen.
    let testimony = against.iter().all(|line| line.tier == Tier::Judge);
    let told = Told {
        met: match testimony {
            true => soft::seen(draft, scope),
            false => met.max(1),
        },
        attempts: match testimony {
            true => attempts(policy, &against).min(policy.caps.attempts),
            false => policy.caps.attempts,
        },
        repeat,
    };
    send_back(draft, scope, pending, Against::Lines(against), told, why);
}

/// What fails by what was found at an earlier stop, or by somebody else's run, where the task would be given up
/// for it: who mended it may have done so where nobody looks. Once for what earlier stops have counted, since what
/// runs longer than its hook comes back at a later stop.
fn to_run_once_more(
    policy: &Policy,
    task: &Task,
    pending: &Pending,
    judged: &Judged,
) -> Vec<Effect> {
    if pending.runs.is_none() || !pending.again.is_empty() || task.spent.is_some() {
        return Vec::new();
    }
    let is_known = |line: &&Line| line.is_refused() && line.is_known_from_before();
    let lines = judged.lines.iter().filter(is_known);
    let effects = lines.filter_map(|line| {
        let spec = policy.verifier(&line.verifier)?;
        let tree = pending.tree.as_ref().ok();
        let about = tree.filter(|_| spec.is_tree_check())?.about(spec);
        if task.has_run_once_more(&spec.name, about.short(), line.began) {
            return None;
        }
        Some(Effect::RunVerifier {
            scope: ScopeId::main(),
            verifier: spec.name.clone(),
            subject: about,
            again: true,
        })
    });
    effects.collect()
}

/// What a refused stop has against it.
enum Against<'a> {
    /// Checks, persons, judges.
    Lines(Vec<&'a Line>),
    /// Layers of middleware.
    Layers(Vec<LayerFeedback>),
}

/// How often what a refused stop says was said.
struct Told {
    met: u32,
    attempts: u32,
    repeat: bool,
}

/// Answers that it goes on, with what these have against it.
fn send_back(
    draft: &mut Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    against: Against<'_>,
    told: Told,
    why: Why,
) {
    let (against, layers) = match against {
        Against::Lines(lines) => (lines, Vec::new()),
        Against::Layers(layers) => (Vec::new(), layers),
    };
    let main = scope.is_main();
    let limit = soft::continues_limit(draft.policy, pending);
    let given = soft::continues(draft.policy, scope, pending);
    let Some(task) = &draft.state.task else {
        return;
    };
    let mut checks: Vec<CheckFeedback> = against
        .iter()
        .map(|line| {
            // A judge's findings are categories: what it says of another answer is news.
            let news = line.tier == Tier::Judge && line.fresh;
            let known = if main && !news {
                task.told(&line.verifier)
            } else {
                &[]
            };
            check_feedback(known, line)
        })
        .collect();
    // What the text has no room to name is not told now, but at a later stop.
    let mut room = if told.repeat {
        0
    } else {
        feedback::room(checks.len())
    };
    for check in &mut checks {
        check.new.truncate(room);
        room -= check.new.len();
    }
    let feedback = Feedback {
        stop: if main { task.stops } else { 0 },
        met: told.met,
        attempts: told.attempts,
        continues_left: limit.saturating_sub(given + 1),
        repeat: told.repeat,
        layers,
        judges: against
            .iter()
            .filter(|line| line.tier == Tier::Judge)
            .count() as u32,
        checks,
        background: pending.background,
        target: None,
        edited: match draft.state.task.as_ref() {
            Some(task) if main && !task.edited_told => task.edited.clone(),
            _ => Vec::new(),
        },
    };
    let decision = StopDecision::Continue {
        feedback: Box::new(feedback),
    };
    draft.answer(pending.stop, scope, Decision::Stop(decision), why);
}

/// It could be accepted, but its budget is a target and going on is worth it.
fn send_on(
    draft: &mut Draft<'_>,
    scope: &ScopeId,
    pending: &Pending,
    target: TokenTarget,
    mut why: Why,
) {
    let Some(task) = &draft.state.task else {
        return;
    };
    why.push(Because::TokenBudget {
        used: target.used,
        line: target.line,
    });
    let limit = soft::continues_limit(draft.policy, pending);
    let given = soft::continues(draft.policy, scope, pending);
    let feedback = Feedback {
        stop: task.stops,
        met: 0,
        attempts: draft.policy.caps.attempts,
        continues_left: limit.saturating_sub(given + 1),
        repeat: false,
        checks: Vec::new(),
        layers: Vec::new(),
        judges: 0,
        background: pending.background,
        target: Some(target),
        edited: Vec::new(),
    };
    let decision = StopDecision::Continue {
        feedback: Box::new(feedback),
    };
    draft.answer(pending.stop, scope, Decision::Stop(decision), why);
}

fn finish(draft: &mut Draft<'_>, stop: Seq, scope: &ScopeId, transition: Transition, mut why: Why) {
    if !scope.is_main() {
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.answer(stop, scope, accept, why);
    }
    let edited = draft.state.task.as_ref().map(|task| task.edited.clone());
    if let Some(paths) = edited.filter(|paths| !paths.is_empty()) {
        why.push(Because::ConfigEdited { paths });
    }
    let transition = draft.settled(transition);
    let accept = StopDecision::Accept {
        transition: Some(transition.clone()),
    };
    draft.answer(stop, scope, Decision::Stop(accept), why);
    draft.end(transition);
}
