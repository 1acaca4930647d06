//! Decides a stop request: middleware, then hard checks, the soft tier, judges and persons, and
//! last the lazy tier.
//!
//! The stop waits as a `PendingStop` in the state. Every piece of evidence that comes back advances
//! the cascade, and the order of arrival does not matter (law 4). A stop is accepted as verified
//! only on gate verdicts for exactly the subjects being accepted, and the tree is read once more
//! before the answer (law 1).

mod evaluation;
mod soft_tier;

use self::evaluation::{
    PendingStopFacts, VerifierOutcome, VerifiersAskedAtStop, evaluate_verifiers_at_stop,
    explain_advisory_judge_verdicts, explain_stop, failed_check_feedback_facts, failure_set_digest,
    has_evidence_for_other_subject, verifier_subjects_digest,
};
use crate::accept::TruthValue;
use crate::decision::{
    Decision, FailedCheckFeedback, MiddlewareStopObjection, StopDecision, StopFeedback,
    TokenBudgetUsage,
};
use crate::digest::{Digest, EightByteDigest};
use crate::effect::Effect;
use crate::event::{Event, TaskOrigin};
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::feedback;
use crate::ids::{EventSeq, ScopeId, UnixMillis, VerifierName};
use crate::input::{StanceUsed, StopRequested};
use crate::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use crate::policy::{
    Policy, Stance, SubagentStopVerification, VerdictSubjectKind, VerifierSpec, VerifierTier,
    VerifyOnChangeOrAlways,
};
use crate::state::{ExecPolicyRefusalSource, PendingApproval, PendingStop, Task};
use crate::step::StateMachineStepBuilder;
use crate::transition::{PARKED_DETAIL, Reason, Transition};

/// How many stops the same moving paths may hold up, with nothing else against the work, before the
/// task ends unverified.
const MAX_HELD_UP_STOPS: u32 = 3;

/// Handles a stop request. Answers it at once where nothing needs to be verified.
pub(crate) fn begin_stop_evaluation(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    stop: &StopRequested,
    layers: &[MiddlewareAnswerFact],
) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let scope = &stop.scope;
    // The order of these cases matters: a halted task or sub-agent never runs a check.
    if task.halted {
        return decide_stop_of_halted_task(draft, seq, scope, layers);
    }
    if task
        .conversation_scope_by_id(scope)
        .is_some_and(|scope| scope.halted)
    {
        // A halted sub-agent may always stop. Refusing would send it back to calls that are all
        // denied.
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.record_decision_on_input(seq, scope, accept, vec![DecisionFactor::Halted]);
    }
    let against: Vec<&MiddlewareAnswerFact> = layers
        .iter()
        .filter(|fact| fact.is_middleware_refusal())
        .collect();
    match &task.pending_approval {
        _ if against.is_empty() => request_verifications_or_conclude(draft, scope),
        None => refuse_stop_by_middleware(draft, scope, &against, layers),
        // An agent that waits for a person is not sent back. No check is run either: the person may
        // answer meanwhile, and the stop would then be accepted past the layer that refused it (law
        // 11).
        Some(asked) => {
            let mut why: DecisionExplanation =
                layers.iter().cloned().map(DecisionFactor::Layer).collect();
            let transition = awaiting_human_transition(asked, draft.state.now, &mut why);
            accept_stop_and_end_task(draft, seq, scope, transition, why);
        }
    }
}

/// Refuses the stop on behalf of middleware layers. The agent is told before any check runs. Such
/// refusals count against the same limits as any other refusal (law 2).
fn refuse_stop_by_middleware(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    against: &[&MiddlewareAnswerFact],
    layers: &[MiddlewareAnswerFact],
) {
    let (Some(task), Some(pending)) = (&draft.state.task, draft.state.pending_stop(scope).cloned())
    else {
        return;
    };
    let mut why: DecisionExplanation = layers.iter().cloned().map(DecisionFactor::Layer).collect();
    // The failure set of a middleware refusal is its layers, answers and reasons, so that the same
    // words again are an attempt. The leading tag keeps it apart from the sets of checks.
    let members = against.iter().flat_map(|fact| {
        let says = fact.says.stable_name_of_middleware_answer().to_owned();
        [fact.layer.to_string(), says, fact.reason.clone()]
    });
    let members: Vec<String> = std::iter::once("middleware".to_owned())
        .chain(members)
        .collect();
    let set = Digest::hash_parts(members.iter().map(String::as_bytes)).to_eight_byte_digest();
    let subjects = pending.message_and_tree_digest().to_eight_byte_digest();
    let main = scope.is_main_scope();
    // `repeat` must be read before the event below is folded in, which overwrites `last_failure`.
    let repeat = main && task.last_failure == Some((subjects, set));
    if main {
        draft.apply_and_record_event(Event::FailureSetMet { set, subjects });
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    let met = if main {
        task.failure_set_seen_count(set)
    } else {
        0
    };
    let asks = verifier_kinds_for_stop(draft.policy, task, scope, &pending);
    let judged = evaluate_verifiers_at_stop(draft.policy, task, &pending, asks);
    if let Some(transition) =
        soft_tier::task_transition_if_giving_up(draft, scope, &judged, &pending, met, &mut why)
    {
        return accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
    }
    let told = RefusedStopCounters {
        // A sub-agent's refusals are not attempts, but the feedback counts from one.
        met: met.max(1),
        attempts: draft.policy.caps.attempts,
        repeat,
    };
    let layers = against.iter().map(|fact| MiddlewareStopObjection {
        layer: fact.layer.clone(),
        reason: fact.reason.clone(),
        by_stance: fact.says == MiddlewareAnswer::BlockedByStance,
    });
    refuse_stop_with_feedback(
        draft,
        scope,
        &pending,
        StopObjections::Layers(layers.collect()),
        told,
        why,
    );
}

/// Advances the pending stop of `scope` after evidence came back or the tree was read again.
pub(crate) fn advance_stop_evaluation(draft: &mut StateMachineStepBuilder<'_>, scope: &ScopeId) {
    match draft.state.pending_stop(scope) {
        // Evidence for a stop that is no longer pending is recorded and decides nothing.
        None => draft.set_noted_decision(),
        // Something is still outstanding. No decision is made until all of it has arrived, so that
        // the order of arrival cannot change the answer (law 4).
        Some(pending)
            if !pending.awaited_verifiers.is_empty() || pending.recheck.is_tree_being_reread() => {}
        Some(_) => request_verifications_or_conclude(draft, scope),
    }
}

/// Accepts a stop that Checkrein itself could not judge, under a stance other than `block`. The
/// pending evaluation is dropped. Such an ending says nothing about the work.
pub(crate) fn accept_unjudgeable_stop(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    used: StanceUsed,
) {
    let transition = match used.stance {
        Stance::Ask => Transition::new(Reason::AwaitingHuman, "stance"),
        Stance::Allow | Stance::Block => Transition::new(Reason::Unverified, "passed_over"),
    };
    // Nothing was learned about the work, so an earlier bad ending stands.
    let task = draft.state.task.as_ref();
    let spent = task.and_then(|task| task.bad_ending.clone());
    let transition = spent.unwrap_or(transition);
    let why = vec![DecisionFactor::StanceUsed {
        stance: used.stance,
        why: used.why,
    }];
    accept_stop_and_end_task(draft, seq, &used.scope, transition, why);
}

/// Returns which kinds of verifiers are asked at this stop. Triggered judges are asked even where
/// nothing else is.
fn verifier_kinds_for_stop(
    policy: &Policy,
    task: &Task,
    scope: &ScopeId,
    pending: &PendingStop,
) -> VerifiersAskedAtStop {
    match scope.is_main_scope() {
        true if is_stop_of_task_without_changes(policy, task, pending) => {
            VerifiersAskedAtStop::JudgesOnly
        }
        true => VerifiersAskedAtStop::All,
        false if should_verify_subagent(policy, task, scope) => VerifiersAskedAtStop::NoPersons,
        false => VerifiersAskedAtStop::JudgesOnly,
    }
}

fn should_verify_subagent(policy: &Policy, task: &Task, scope: &ScopeId) -> bool {
    match policy.subagents.verify {
        SubagentStopVerification::Never => false,
        SubagentStopVerification::Writers => task
            .conversation_scope_by_id(scope)
            .is_some_and(|scope| scope.wrote),
    }
}

/// Returns whether the stop ends a task that changed nothing: a plain question must not run the
/// test suite. With `ask_person_without_change`, a required person counts as a change, because
/// their opinion of a tree can change while the tree does not.
fn is_stop_of_task_without_changes(policy: &Policy, task: &Task, pending: &PendingStop) -> bool {
    let is_view =
        |spec: &VerifierSpec| policy.ask_person_without_change && spec.tier == VerifierTier::Person;
    let judges_tree_only = policy
        .verifiers
        .iter()
        .filter(|spec| policy.is_required_verifier(&spec.name))
        // A verifier of the final message has something new to judge even on an unchanged tree.
        .all(|spec| spec.subject == VerdictSubjectKind::Tree && !is_view(spec));
    let unchanged = match (&task.start, &pending.tree) {
        (Some(start), Ok(now)) => start.tree == now.tree && start.subjects == now.subjects,
        // The start tree is unknown, for example because it was too large to be read in time. The
        // act counters then stand in for it.
        (None, Ok(now)) => task.acts_at_start.is_some() && task.acts_at_start == now.acts,
        (_, Err(_)) => false,
    };
    // Refusals by judges do not count as earlier stops: they are no reason to run other verifiers.
    let sent_back = task
        .conversation_scope_by_id(&ScopeId::main_scope())
        .map_or(0, |main| main.judge_refusals);
    // Only the first stop of a task can be a plain question. A later one may follow a refusal,
    // which must not be lifted by skipping the checks.
    task.stops == 1 + sent_back
        && task.opened_by == TaskOrigin::Prompt
        && unchanged
        && judges_tree_only
        && policy.verify_on == VerifyOnChangeOrAlways::Change
        && !policy.single_task
        && !policy.verifiers.is_empty()
}

/// Accepts a stop at which only judges were asked and none of them sent it back.
fn accept_stop_checked_by_judges_only(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
    judged: &PendingStopFacts,
    said: DecisionExplanation,
) {
    if !scope.is_main_scope() {
        let mut why = vec![DecisionFactor::Subagent];
        why.extend(said);
        let Some(task) = &draft.state.task else {
            return;
        };
        let transition = accepted_stop_transition(draft.policy, task, judged);
        return accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
    }
    let task = draft.state.task.as_ref();
    let mut why = vec![match task.is_some_and(|task| task.start.is_some()) {
        true => DecisionFactor::NoChange,
        false => DecisionFactor::OnlyRead,
    }];
    let tree = pending.tree.as_ref().map(|tree| tree.tree).ok();
    if draft
        .state
        .last_judged
        // The checks are not run for a question, but a failure that is known for this very tree is
        // reported with the ending.
        .is_some_and(|(judged, failed)| failed && Some(judged) == tree)
    {
        why.push(DecisionFactor::KnownFailing);
    }
    if pending.background > 0 {
        why.push(DecisionFactor::Background {
            count: pending.background,
        });
    }
    why.extend(said);
    let task = draft.state.task.as_ref();
    let asked = task.and_then(|task| task.pending_approval.as_ref());
    let refused = task.and_then(|task| task.refused);
    // A person who was asked comes before a refusal, and both come before `no_change`: an agent
    // that could not act has changed nothing either.
    let transition = if let Some(asked) = asked {
        awaiting_human_transition(asked, draft.state.now, &mut why)
    } else if let Some(refused) = refused {
        why.push(DecisionFactor::AfterRefusal);
        stopped_after_denial_transition(refused)
    } else {
        Transition::new(Reason::Unverified, "no_change")
    };
    accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
}

/// Returns the ending of a stop that came while a person's approval was pending. An expired
/// approval is not a denial, and differs from one that can still be given.
fn awaiting_human_transition(
    asked: &PendingApproval,
    now: UnixMillis,
    why: &mut DecisionExplanation,
) -> Transition {
    let approval = asked.approval.clone();
    match asked.until {
        None => Transition::transition_without_detail(Reason::AwaitingHuman),
        Some(until) if now < until => {
            why.push(DecisionFactor::Parked { approval, until });
            Transition::new(Reason::AwaitingHuman, PARKED_DETAIL)
        }
        Some(_) => {
            why.push(DecisionFactor::ApprovalExpired { approval });
            Transition::new(Reason::AwaitingHuman, "expired")
        }
    }
}

/// Returns the ending of a stop that came right after a refused tool call.
fn stopped_after_denial_transition(refusal: ExecPolicyRefusalSource) -> Transition {
    match refusal {
        ExecPolicyRefusalSource::Rule => {
            Transition::transition_without_detail(Reason::PermissionDenied)
        }
        ExecPolicyRefusalSource::Nobody => {
            Transition::new(Reason::PermissionDenied, "nobody_asked")
        }
        ExecPolicyRefusalSource::Person => Transition::new(Reason::PermissionDenied, "denied"),
    }
}

/// Answers a stop of a halted task. Runs no check, but gate evidence that already exists may still
/// turn the ending into `task_complete`.
fn decide_stop_of_halted_task(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    scope: &ScopeId,
    layers: &[MiddlewareAnswerFact],
) {
    let Some(task) = &draft.state.task else {
        return;
    };
    let mut why = vec![DecisionFactor::Halted];
    why.extend(layers.iter().cloned().map(DecisionFactor::Layer));
    let refused = task.passed_over
        || layers
            .iter()
            .any(MiddlewareAnswerFact::is_middleware_refusal);
    // The base is the transition that ended the task badly, not the newest one: a fresh pass that
    // saved an earlier stop says nothing about the tree of this one.
    let halt = task
        .bad_ending
        .clone()
        .unwrap_or_else(|| Transition::transition_without_detail(Reason::Error));
    let mut transition = halt;
    if let Some(pending) = draft
        .state
        .pending_stop(scope)
        .filter(|_| scope.is_main_scope())
    {
        let judged =
            evaluate_verifiers_at_stop(draft.policy, task, pending, VerifiersAskedAtStop::All);
        // Only evidence that is fresh for this stop's own tree can save it (law 1), and only where
        // no layer of middleware was against it or passed over.
        if judged.stale_verifiers.is_empty() && judged.has_necessary_hard_evidence() && !refused {
            why.extend(explain_stop(draft.policy, pending, &judged));
            transition = Transition {
                reason: Reason::TaskComplete,
                detail: transition.detail,
                native_reason: None,
            };
        }
    }
    accept_stop_and_end_task(draft, seq, scope, transition, why);
}

/// Requests the verifications that are missing, or concludes if none are. The phases are: hard
/// verifiers, then persons and judges that `accept` names, then advisory judges, then the last tree
/// reading.
fn request_verifications_or_conclude(draft: &mut StateMachineStepBuilder<'_>, scope: &ScopeId) {
    let (Some(task), Some(pending)) = (&draft.state.task, draft.state.pending_stop(scope)) else {
        return;
    };
    let stop = pending.stop;
    let asks = verifier_kinds_for_stop(draft.policy, task, scope, pending);
    let judged = evaluate_verifiers_at_stop(draft.policy, task, pending, asks);

    if !judged.stale_verifiers.is_empty() {
        // Evidence about another tree than this stop's came back, so the tree moved while the check
        // ran. Running the check again on the old subject could not settle anything.
        let moved = judged
            .stale_verifiers
            .iter()
            .any(|(name, about)| has_evidence_for_other_subject(pending, name, *about));
        let effects = if moved {
            effects_requesting_tree_read(scope, stop)
        } else {
            build_run_verifier_effects(scope, &judged.stale_verifiers)
        };
        return draft.emit_and_record_stop_effects(stop, scope, effects);
    }
    // Persons and judges are slow and cost money or attention. They are asked only if the hard
    // verdicts leave the question open.
    if judged.accept_value == TruthValue::Open && !judged.unasked_verifiers.is_empty() {
        let effects = build_run_verifier_effects(scope, &judged.unasked_verifiers);
        return draft.emit_and_record_stop_effects(stop, scope, effects);
    }
    if judged.accept_value != TruthValue::False
        && !judged.unasked_judges.is_empty()
        // An agent that waits for a person is not sent back, so a judge could change nothing here.
        && task.pending_approval.is_none()
    {
        let effects = build_run_verifier_effects(scope, &judged.unasked_judges);
        return draft.emit_and_record_stop_effects(stop, scope, effects);
    }
    // The last tree reading comes right before an accepting answer. Without it, an edit made while
    // the checks ran would be accepted unseen (law 1). A refusal needs none.
    let sends_back = matches!(
        judge_consequence(draft, scope, pending, &judged),
        JudgeConsequence::SendBack(..)
    );
    let may_accept = judged.accept_value != TruthValue::False && !sends_back;
    let nobody = judged.outcomes.is_empty() && judged.judge_outcomes.is_empty();
    let has_subject = pending.tree.is_ok() && !nobody;
    if may_accept && has_subject && !pending.recheck.needs_no_further_tree_reading() {
        return draft.emit_and_record_stop_effects(
            stop,
            scope,
            effects_requesting_tree_read(scope, stop),
        );
    }
    conclude_stop_evaluation(draft, scope, judged, asks);
}

fn effects_requesting_tree_read(scope: &ScopeId, stop: EventSeq) -> Vec<Effect> {
    vec![Effect::ReadTree {
        scope: scope.clone(),
        stop,
    }]
}

fn build_run_verifier_effects(scope: &ScopeId, wanted: &[(VerifierName, Digest)]) -> Vec<Effect> {
    let effect = |(verifier, subject): &(VerifierName, Digest)| Effect::RunVerifier {
        scope: scope.clone(),
        verifier: verifier.clone(),
        subject: *subject,
        force_run: false,
    };
    wanted.iter().map(effect).collect()
}

fn conclude_stop_evaluation(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    judged: PendingStopFacts,
    asks: VerifiersAskedAtStop,
) {
    let Some(pending) = draft.state.pending_stop(scope).cloned() else {
        return;
    };
    let mut why = match asks {
        VerifiersAskedAtStop::JudgesOnly => {
            explain_advisory_judge_verdicts(draft.policy, &pending, &judged)
        }
        VerifiersAskedAtStop::All | VerifiersAskedAtStop::NoPersons => {
            explain_stop(draft.policy, &pending, &judged)
        }
    };
    // Advisory judges come first: a judge that sends the agent back overrides an `accept` that
    // holds.
    match judge_consequence(draft, scope, &pending, &judged) {
        JudgeConsequence::NoConsequence(because) => why.extend(because),
        JudgeConsequence::AwaitPerson(line) => {
            let transition = Transition::new(Reason::AwaitingHuman, line.verifier.as_str());
            return accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
        }
        JudgeConsequence::SendBack(against, told) => {
            // Recorded so that the same words about the same answer are not repeated at the next
            // stop.
            let task = draft.state.task.as_ref().filter(|_| scope.is_main_scope());
            let of =
                task.map(|task| judge_failure_identity(draft.policy, task, &pending, &against));
            if let Some((subjects, set)) = of {
                draft.apply_and_record_event(Event::FailureSetMet { set, subjects });
            }
            return refuse_stop_with_feedback(
                draft,
                scope,
                &pending,
                StopObjections::Verifiers(against),
                told,
                why,
            );
        }
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    if task.passed_over {
        why.push(DecisionFactor::LayerPassedOver);
    }
    if asks == VerifiersAskedAtStop::JudgesOnly {
        return accept_stop_checked_by_judges_only(draft, scope, &pending, &judged, why);
    }
    if let Some(asked) = &task.pending_approval {
        let transition = awaiting_human_transition(asked, draft.state.now, &mut why);
        return accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
    }
    match judged.accept_value {
        // The work could be accepted. Only an unmet token target keeps it going.
        TruthValue::True => match soft_tier::unmet_token_target(draft, &judged, &pending) {
            Some(target) => continue_toward_token_target(draft, scope, &pending, target, why),
            None => {
                let mut transition = accepted_stop_transition(draft.policy, task, &judged);
                // The agent's process is over already. Its own name for that is kept beside our
                // reason.
                if let Some(over) = &pending.agent_ending {
                    transition.native_reason.clone_from(&over.native_reason);
                }
                accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
            }
        },
        TruthValue::Open => {
            let waits = judged
                .outcomes
                .iter()
                .find(|line| line.is_verifier_awaiting_person());
            // `accept` is open either because a person has not answered or because of an `ask`
            // stance. The detail of the ending names the verifier in the first case.
            let detail = waits.map_or("stance", |line| line.verifier.as_str());
            let transition = Transition::new(Reason::AwaitingHuman, detail);
            accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
        }
        TruthValue::False => refuse_stop_or_give_up_task(draft, scope, &pending, &judged, why),
    }
}

/// What follows from judges that `accept` does not name. Their verdicts weigh less than evidence:
/// where the soft tier ends the task, or their attempts are used up, the evidence alone decides.
enum JudgeConsequence<'a> {
    /// Nothing.
    NoConsequence(DecisionExplanation),
    /// One cannot tell, and leaves it to a person.
    AwaitPerson(&'a VerifierOutcome),
    /// The agent is sent back.
    SendBack(Vec<&'a VerifierOutcome>, RefusedStopCounters),
}

fn judge_consequence<'a>(
    draft: &StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
    judged: &'a PendingStopFacts,
) -> JudgeConsequence<'a> {
    let policy = draft.policy;
    let spec = |line: &&VerifierOutcome| policy.verifier_spec(&line.verifier);
    let counts = |line: &&VerifierOutcome| spec(line).is_some_and(VerifierSpec::is_enforced_judge);
    // An agent that waits for a person is not sent back by a judge.
    let waits = draft
        .state
        .task
        .as_ref()
        .is_some_and(|task| task.pending_approval.is_some());
    let said = judged.judge_outcomes.iter().filter(|_| !waits);
    let said: Vec<&VerifierOutcome> = said.filter(counts).collect();
    let says_no = |line: &&VerifierOutcome| line.truth == TruthValue::False;
    let against: Vec<&VerifierOutcome> = said.iter().copied().filter(says_no).collect();
    // Where `accept` is false already, the refusal comes from the verifiers that it names. A judge
    // that is inconclusive under the stance `ask` matters only if the stop would otherwise be
    // accepted.
    if judged.accept_value == TruthValue::False || against.is_empty() {
        let leaves = said.into_iter().find(|line| line.truth == TruthValue::Open);
        let leaves =
            leaves.filter(|_| scope.is_main_scope() && judged.accept_value != TruthValue::False);
        return leaves.map_or(
            JudgeConsequence::NoConsequence(DecisionExplanation::new()),
            JudgeConsequence::AwaitPerson,
        );
    }
    let (seen, attempts) = (
        soft_tier::count_judged_answers_in_conversation(draft, scope),
        max_attempts_of_most_lenient_judge(policy, &against),
    );
    // Law 2: a judge, too, may refuse only a bounded number of answers.
    if seen >= attempts {
        return JudgeConsequence::NoConsequence(vec![DecisionFactor::JudgesSpent {
            seen,
            attempts,
        }]);
    }
    let mut why = DecisionExplanation::new();
    if soft_tier::task_transition_if_giving_up(draft, scope, judged, pending, 0, &mut why).is_some()
    {
        return JudgeConsequence::NoConsequence(why);
    }
    let task = draft.state.task.as_ref();
    let of = task.map(|task| judge_failure_identity(policy, task, pending, &against));
    let told = RefusedStopCounters {
        met: seen,
        attempts,
        repeat: scope.is_main_scope() && task.is_some_and(|task| task.last_failure == of),
    };
    JudgeConsequence::SendBack(against, told)
}

/// Returns the identities of the subjects that these judges are about and of their objections.
fn judge_failure_identity(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    against: &[&VerifierOutcome],
) -> (EightByteDigest, EightByteDigest) {
    let named = |spec: &VerifierSpec| against.iter().any(|line| line.verifier == spec.name);
    let set = failure_set_digest(against.iter().copied());
    (verifier_subjects_digest(policy, task, pending, named), set)
}

/// Returns how many answers these judges may see. The most lenient of them counts.
fn max_attempts_of_most_lenient_judge(policy: &Policy, judges: &[&VerifierOutcome]) -> u32 {
    let terms = |line: &&VerifierOutcome| policy.verifier_spec(&line.verifier)?.judge;
    let attempts = judges.iter().filter_map(terms);
    attempts.map(|terms| terms.max_attempts).max().unwrap_or(1)
}

/// Returns the ending of an accepted stop. It is `task_complete` only where hard evidence was
/// necessary and is there (law 1).
fn accepted_stop_transition(policy: &Policy, task: &Task, judged: &PendingStopFacts) -> Transition {
    if judged.has_necessary_hard_evidence() && !task.passed_over {
        return Transition::transition_without_detail(Reason::TaskComplete);
    }
    let detail = if policy.verifiers.is_empty() {
        "no_checks"
    } else if task.passed_over || judged.outcomes.iter().any(|line| line.by_stance) {
        "passed_over"
    } else {
        "advisory_only"
    };
    Transition::new(Reason::Unverified, detail)
}

/// Refuses a stop for which `accept` is false, or ends the task if another round is not worth it. A
/// sub-agent's stop counts as a continuation but not as an attempt: attempts and told findings
/// belong to the main conversation, which does not see what a sub-agent is told.
fn refuse_stop_or_give_up_task(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
    judged: &PendingStopFacts,
    mut why: DecisionExplanation,
) {
    let policy = draft.policy;
    let main = scope.is_main_scope();
    let cut = judged
        .outcomes
        .iter()
        .any(VerifierOutcome::is_cut_off_or_claimed_elsewhere);
    let held_up = judged.unfinished_checks_hold_up_reason(policy);
    let Some(task) = &draft.state.task else {
        return;
    };
    // A stop that is held up is counted under what holds it up, so that a check that never finishes
    // is bounded as well.
    let failures = failure_set_digest(judged.outcomes.iter());
    let (set, subjects) = (
        held_up.as_ref().map_or(failures, |held| held.by),
        judged.subjects,
    );
    // The failure set is recorded further below, hence the `+ 1`.
    let is_last = task.failure_set_seen_count(set) + 1 >= policy.caps.attempts
        || soft_tier::continuation_limit_factor(draft, scope, pending).is_some();
    // Before the task is given up, failures that rest on earlier runs are checked once more: the
    // cause may have been mended outside the tree.
    if main && held_up.is_none() && is_last {
        let again = last_chance_rerun_effects(policy, task, pending, judged);
        if !again.is_empty() {
            return draft.emit_and_record_stop_effects(pending.stop, scope, again);
        }
    }
    let repeat = main && held_up.is_none() && task.last_failure == Some((subjects, set));
    // A check that was cut says nothing about the work, so its set is not an attempt.
    if main && (held_up.is_some() || !cut) {
        draft.apply_and_record_event(Event::FailureSetMet { set, subjects });
    }
    let Some(task) = &draft.state.task else {
        return;
    };
    let times = if main {
        task.failure_set_seen_count(set)
    } else {
        0
    };
    let met = if held_up.is_some() { 0 } else { times };

    let verdict =
        soft_tier::task_transition_if_giving_up(draft, scope, judged, pending, met, &mut why);
    // A process that keeps writing to the tree does not end while the agent waits for it. Without
    // this bound, the agent would be sent back until the continuations are used up.
    let stuck = held_up.filter(|held| held.detail == "tree_moving" && times >= MAX_HELD_UP_STOPS);
    let stuck = stuck.map(|held| Transition::new(Reason::Unverified, held.detail));
    if let Some(transition) = verdict.or(stuck) {
        return accept_stop_and_end_task(draft, pending.stop, scope, transition, why);
    }
    let refused = |line: &&VerifierOutcome| line.verifier_refuses_stop();
    let against: Vec<&VerifierOutcome> = judged.outcomes.iter().filter(refused).collect();
    // If only judges are against it, the counters shown are the answers that they have seen, not
    // the attempts.
    let testimony = against.iter().all(|line| line.tier == VerifierTier::Judge);
    let told = RefusedStopCounters {
        met: match testimony {
            true => soft_tier::count_judged_answers_in_conversation(draft, scope),
            false => met.max(1),
        },
        attempts: match testimony {
            true => max_attempts_of_most_lenient_judge(policy, &against).min(policy.caps.attempts),
            false => policy.caps.attempts,
        },
        repeat,
    };
    refuse_stop_with_feedback(
        draft,
        scope,
        pending,
        StopObjections::Verifiers(against),
        told,
        why,
    );
}

/// Returns reruns of checks that fail only by an earlier stop's result or by a kept run, where the
/// task would otherwise be given up: the failure may have been mended outside the tree. Each check
/// is rerun once for each result that was counted at earlier stops, because a check that outlives
/// its hook reports at a later stop.
fn last_chance_rerun_effects(
    policy: &Policy,
    task: &Task,
    pending: &PendingStop,
    judged: &PendingStopFacts,
) -> Vec<Effect> {
    // The reruns are requested once per stop. Inputs that carry no newest runs, as in older logs,
    // get none.
    if pending.newest_runs.is_none()
        || !pending.final_reruns.is_empty()
        || task.bad_ending.is_some()
    {
        return Vec::new();
    }
    let is_known = |line: &&VerifierOutcome| {
        line.verifier_refuses_stop() && line.is_verdict_from_earlier_run()
    };
    let lines = judged.outcomes.iter().filter(is_known);
    let effects = lines.filter_map(|line| {
        let spec = policy.verifier_spec(&line.verifier)?;
        let tree = pending.tree.as_ref().ok();
        let about = tree
            // Only a check of the tree can be mended outside the tree. Judges and persons are not
            // asked again here.
            .filter(|_| spec.is_hard_tree_check())?
            .verdict_subject_digest(spec);
        if task.was_last_chance_rerun(&spec.name, about.to_eight_byte_digest(), line.began) {
            return None;
        }
        Some(Effect::RunVerifier {
            scope: ScopeId::main_scope(),
            verifier: spec.name.clone(),
            subject: about,
            force_run: true,
        })
    });
    effects.collect()
}

/// The objections to a refused stop.
enum StopObjections<'a> {
    /// Checks, persons, judges.
    Verifiers(Vec<&'a VerifierOutcome>),
    /// Layers of middleware.
    Layers(Vec<MiddlewareStopObjection>),
}

/// The counters that feedback of a refused stop shows.
struct RefusedStopCounters {
    met: u32,
    attempts: u32,
    repeat: bool,
}

/// Answers `continue`, with feedback built from these objections.
fn refuse_stop_with_feedback(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
    against: StopObjections<'_>,
    told: RefusedStopCounters,
    why: DecisionExplanation,
) {
    let (against, layers) = match against {
        StopObjections::Verifiers(lines) => (lines, Vec::new()),
        StopObjections::Layers(layers) => (Vec::new(), layers),
    };
    let main = scope.is_main_scope();
    let limit = soft_tier::continuation_limit(draft.policy, pending);
    let given = soft_tier::continuations_plus_pending_stops(draft.policy, scope, pending);
    let Some(task) = &draft.state.task else {
        return;
    };
    let mut checks: Vec<FailedCheckFeedback> = against
        .iter()
        .map(|line| {
            // A judge's findings are categories. The same category about another answer is new to
            // the agent, so it is not compared with earlier findings.
            let news = line.tier == VerifierTier::Judge && line.is_from_this_stop;
            let known = if main && !news {
                task.findings_told_to_agent(&line.verifier)
            } else {
                &[]
            };
            failed_check_feedback_facts(known, line)
        })
        .collect();
    // Findings that do not fit into the text are not marked as told. They stay new for a later
    // stop.
    let mut room = if told.repeat {
        0
    } else {
        feedback::max_new_findings_in_feedback(checks.len())
    };
    for check in &mut checks {
        check.new.truncate(room);
        room -= check.new.len();
    }
    let feedback = StopFeedback {
        stop: if main { task.stops } else { 0 },
        met: told.met,
        attempts: told.attempts,
        // This refusal itself uses one continuation.
        continues_left: limit.saturating_sub(given + 1),
        repeat: told.repeat,
        layers,
        judges: against
            .iter()
            .filter(|line| line.tier == VerifierTier::Judge)
            .count() as u32,
        checks,
        background: pending.background,
        target: None,
        edited: match draft.state.task.as_ref() {
            // Edited guarded files are told once, and only to the main conversation.
            Some(task) if main && !task.edited_told => task.edited.clone(),
            _ => Vec::new(),
        },
    };
    let decision = StopDecision::Continue {
        feedback: Box::new(feedback),
    };
    draft.record_decision_on_input(pending.stop, scope, Decision::Stop(decision), why);
}

/// Sends the agent back although the stop could be accepted: its token budget is a target that is
/// not reached yet.
fn continue_toward_token_target(
    draft: &mut StateMachineStepBuilder<'_>,
    scope: &ScopeId,
    pending: &PendingStop,
    target: TokenBudgetUsage,
    mut why: DecisionExplanation,
) {
    let Some(task) = &draft.state.task else {
        return;
    };
    why.push(DecisionFactor::TokenBudget {
        used: target.used,
        threshold: target.threshold,
    });
    let limit = soft_tier::continuation_limit(draft.policy, pending);
    let given = soft_tier::continuations_plus_pending_stops(draft.policy, scope, pending);
    let feedback = StopFeedback {
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
    draft.record_decision_on_input(pending.stop, scope, Decision::Stop(decision), why);
}

fn accept_stop_and_end_task(
    draft: &mut StateMachineStepBuilder<'_>,
    stop: EventSeq,
    scope: &ScopeId,
    transition: Transition,
    mut why: DecisionExplanation,
) {
    if !scope.is_main_scope() {
        let accept = Decision::Stop(StopDecision::Accept { transition: None });
        return draft.record_decision_on_input(stop, scope, accept, why);
    }
    // Edits of guarded files do not stop the ending. They are part of its explanation, so that a
    // person sees them.
    let edited = draft.state.task.as_ref().map(|task| task.edited.clone());
    if let Some(paths) = edited.filter(|paths| !paths.is_empty()) {
        why.push(DecisionFactor::ConfigEdited { paths });
    }
    // A task that ended badly before keeps that ending unless the new one may replace it.
    let transition = draft.prevailing_transition(transition);
    let accept = StopDecision::Accept {
        transition: Some(transition.clone()),
    };
    draft.record_decision_on_input(stop, scope, Decision::Stop(accept), why);
    draft.end_task(transition);
}
