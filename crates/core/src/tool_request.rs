//! At a tool request: halted → caps → detectors → exec policy → patch → middleware → veto. The
//! severest answer wins, but every counter sees every call.

use crate::approval::{self, ApprovalHandling};
use crate::decision::ToolDecision;
use crate::detectors::{self, CallWindow, DetectorContext, LoopPatternMatch};
use crate::event::{CapKind, DetectorOrCapResponse, Event, LoopPatternDetected, LoopSeverity};
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::{DetectorName, EventSeq, ScopeId, UnixMillis};
use crate::input::{
    ApprovalStatusFact, ModelVetoVerdict, PersonAnswer, RuleDecision, ToolRequested,
};
use crate::middleware::{self, MiddlewareAnswer, MiddlewareAnswerFact};
use crate::policy::Policy;
use crate::step::StepBuilder;
use crate::transition::{Reason, Transition};
use crate::{budget, state::Task};

/// The one line that every call of a halted task gets.
pub const HALTED_MESSAGE: &str = "checkrein has ended this task; no further tool call runs. Say what is done and what is not, then stop";

/// The same where only a sub-agent's scope is halted. It is told so where the decision is rendered:
/// recorded decisions keep the one fixed line.
pub const SUBAGENT_HALTED_MESSAGE: &str = "checkrein has ended the work of this sub-agent; no further tool call of it runs. Report what is done and what is not, then stop";

/// What is said where the policy asks nobody.
const NOBODY_ASKED_MESSAGE: &str = "checkrein: a person would have to be asked, and the policy asks nobody (approval = \"never\"): it is refused. Do not try another way to the same end";

/// What the one call over a cap gets.
pub const GRACE_MESSAGE: &str = "budget used up: say what is done and what is not, then stop";

pub(crate) fn evaluate_tool_request(
    draft: &mut StepBuilder<'_>,
    seq: EventSeq,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
) {
    let mut why = DecisionExplanation::new();
    let over = draft.state.task.as_ref().is_some_and(|task| {
        task.halted
            || task
                .scope_by_id(&request.scope)
                .is_some_and(|scope| scope.halted)
    });
    if over {
        // Detectors look on, but nothing makes the one fixed line worse or better.
        why.push(DecisionFactor::Halted);
        decide_call_by_detectors(draft, request, over, &mut DecisionExplanation::new());
        let reason = HALTED_MESSAGE.to_owned();
        return draft.answer_tool_request(seq, &request.scope, ToolDecision::Deny { reason }, why);
    }
    let mut answers: Vec<ToolDecisionAndTransition> = Vec::new();
    answers.extend(evaluate_caps_on_tool_call(draft, request, &mut why));
    answers.extend(decide_call_by_detectors(draft, request, over, &mut why));
    answers.extend(evaluate_exec_policy(
        draft.policy,
        request,
        layers,
        &mut why,
    ));
    answers.extend(deny_inapplicable_patch(request, &mut why));
    answers.extend(evaluate_middleware_answers(layers, &mut why));
    answers.extend(evaluate_model_veto(draft.policy, request, &mut why));
    answers.extend(decide_by_progress_ratings(draft, request, &mut why));

    // Ties go to the first: the order above is the order of the rules.
    let mut severest = (ToolDecision::Allow, None);
    for answer in answers {
        if tool_decision_severity(&answer.0) > tool_decision_severity(&severest.0) {
            severest = answer;
        }
    }
    let (decision, transition) = severest;
    draft.answer_tool_request(seq, &request.scope, decision, why);
    if let Some(transition) = transition {
        let transition = draft.prevailing_transition(transition);
        draft.end_task(transition);
    }
}

fn tool_decision_severity(decision: &ToolDecision) -> u8 {
    match decision {
        ToolDecision::Allow => 0,
        ToolDecision::Nudge { .. } => 1,
        ToolDecision::Rewrite { .. } => 2,
        ToolDecision::Ask { .. } => 3,
        ToolDecision::Deny { .. } => 4,
        ToolDecision::Halt { .. } => 5,
    }
}

type ToolDecisionAndTransition = (ToolDecision, Option<Transition>);

/// The first call over a cap is the grace call: denied, with the request to sum up.
/// The second ends the task; in a sub-agent it ends that scope only.
fn evaluate_caps_on_tool_call(
    draft: &mut StepBuilder<'_>,
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let main_over = budget::reached_cap_at_tool_request(draft.policy, draft.state);
    if let Some(over) = main_over {
        why.push(over.reached_cap_decision_factor());
        let graced = draft
            .state
            .task
            .as_ref()
            .is_some_and(|task| task.grace.is_some());
        draft.apply_and_record_event(Event::CapReached {
            cap: over.cap,
            scope: ScopeId::main_scope(),
        });
        let reason = GRACE_MESSAGE.to_owned();
        return Some(if graced {
            let transition = Transition::new(Reason::HardCap, over.cap.as_str());
            (ToolDecision::Halt { reason }, Some(transition))
        } else {
            (ToolDecision::Deny { reason }, None)
        });
    }
    let limit = draft.policy.subagents.max_iterations?;
    let scope = draft
        .state
        .scope_by_id(&request.scope)
        .filter(|scope| !scope.id.is_main_scope() && draft.state.shows_rounds)?;
    let used = scope.rounds;
    if used < limit {
        return None;
    }
    why.push(DecisionFactor::Cap {
        cap: CapKind::Iterations,
        used,
        limit,
    });
    let reason = if scope.grace {
        HALTED_MESSAGE
    } else {
        GRACE_MESSAGE
    };
    draft.apply_and_record_event(Event::CapReached {
        cap: CapKind::Iterations,
        scope: request.scope.clone(),
    });
    Some((
        ToolDecision::Deny {
            reason: reason.to_owned(),
        },
        None,
    ))
}

/// Every detector in force looks. A warning is spoken of once per multiple of ten; a
/// critical denies; the second critical of a task ends it. A sub-agent's second halts that
/// sub-agent: the fold does, and its further calls are denied.
fn decide_call_by_detectors(
    draft: &mut StepBuilder<'_>,
    request: &ToolRequested,
    over: bool,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    let window = &task.scope_by_id(&request.scope)?.window;
    let call = *window.back()?;
    let context = DetectorContext {
        loops: &policy.loops,
        calls_before: task.totals.tool_calls.saturating_sub(1),
        reports_outcome: request.reports_outcome,
    };
    let mut found: Vec<(&dyn detectors::LoopDetector, LoopPatternMatch)> = Vec::new();
    for detector in detectors::ALL {
        let on = policy
            .loops
            .detectors
            .iter()
            .any(|name| name.as_str() == detector.detector_name());
        // One critical is enough: two names for one call would count it twice.
        let critical = found
            .iter()
            .any(|(_, seen)| seen.level == LoopSeverity::Critical);
        if on
            && let Some(seen) =
                detector.detect_loop(&call, CallWindow::calls_before_newest(window), context)
            && !(critical && seen.level == LoopSeverity::Critical)
        {
            found.push((*detector, seen));
        }
    }
    let actions: Vec<DetectorOrCapResponse> = found
        .iter()
        .map(|(_, seen)| match over {
            true => DetectorOrCapResponse::Observe,
            false => action_for_detected_loop(task, &request.scope, *seen),
        })
        .collect();

    let mut answer: Option<ToolDecisionAndTransition> = None;
    for ((detector, seen), action) in found.into_iter().zip(actions) {
        let name = DetectorName::new(detector.detector_name());
        let advice = detector.loop_advice_for_agent(seen);
        let this = match action {
            DetectorOrCapResponse::Observe | DetectorOrCapResponse::Grace => None,
            DetectorOrCapResponse::Nudge => Some((ToolDecision::Nudge { text: advice }, None)),
            DetectorOrCapResponse::Deny => Some((ToolDecision::Deny { reason: advice }, None)),
            DetectorOrCapResponse::Halt => Some((
                ToolDecision::Halt { reason: advice },
                Some(Transition::new(
                    Reason::LoopDetected,
                    detector.detector_name(),
                )),
            )),
        };
        if let Some(this) = this {
            why.push(DecisionFactor::Detector {
                detector: name.clone(),
                count: seen.count,
            });
            if answer.as_ref().is_none_or(|known| {
                tool_decision_severity(&this.0) > tool_decision_severity(&known.0)
            }) {
                answer = Some(this);
            }
        }
        draft.apply_and_record_event(Event::Detected(LoopPatternDetected {
            scope: request.scope.clone(),
            detector: name,
            level: seen.level,
            count: seen.count,
            key: seen.key,
            action,
        }));
    }
    answer
}

fn action_for_detected_loop(
    task: &Task,
    scope: &ScopeId,
    seen: LoopPatternMatch,
) -> DetectorOrCapResponse {
    match seen.level {
        LoopSeverity::Critical if scope.is_main_scope() && task.criticals > 0 => {
            DetectorOrCapResponse::Halt
        }
        LoopSeverity::Critical => DetectorOrCapResponse::Deny,
        LoopSeverity::Warning if seen.count / 10 > task.last_nudged_repeat_count(seen.key) => {
            DetectorOrCapResponse::Nudge
        }
        LoopSeverity::Warning => DetectorOrCapResponse::Observe,
    }
}

/// What the rules say, and whoever is to be asked. A person's answer counts for what would be
/// asked about and for nothing else: it is not even looked at where the rules forbid.
fn evaluate_exec_policy(
    policy: &Policy,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let facts = &request.facts;
    let reason = facts.reason.clone();
    let reason = reason.or_else(|| middleware::approval_question(layers));
    let reason = reason.unwrap_or_else(|| {
        match facts.rule {
            Some(RuleDecision::Prompt | RuleDecision::Forbidden) => {
                "the exec policy does not allow this command"
            }
            Some(RuleDecision::Allow) | None => "a person is asked about everything that acts here",
        }
        .to_owned()
    });
    let ask = |approval: String, until: Option<UnixMillis>| ToolDecision::Ask {
        reason: reason.clone(),
        approval,
        until,
    };
    let decision = match approval::approval_handling(policy.approval, request, layers) {
        ApprovalHandling::NotRequired => return None,
        ApprovalHandling::Forbid => {
            why.push(DecisionFactor::Rule {
                reason: reason.clone(),
            });
            ToolDecision::Deny { reason }
        }
        ApprovalHandling::RefuseUnasked => {
            let reason = format!("{reason}\n{NOBODY_ASKED_MESSAGE}");
            why.push(DecisionFactor::Rule {
                reason: reason.clone(),
            });
            why.push(DecisionFactor::NobodyAsked);
            ToolDecision::Deny { reason }
        }
        ApprovalHandling::AskInAgent => {
            why.push(DecisionFactor::Rule {
                reason: reason.clone(),
            });
            ask(fallback_approval_id(request), None)
        }
        ApprovalHandling::Park => {
            why.push(DecisionFactor::Rule {
                reason: reason.clone(),
            });
            match facts.approval.as_deref() {
                None => ask(fallback_approval_id(request), None),
                Some(ApprovalStatusFact { id, until, answer }) => match answer {
                    None => {
                        why.push(DecisionFactor::Parked {
                            approval: id.clone(),
                            until: *until,
                        });
                        ask(id.clone(), Some(*until))
                    }
                    Some(answer) if answer.approved => {
                        why.push(DecisionFactor::Approved {
                            approval: id.clone(),
                            by: answer.by.clone(),
                            reason: answer.reason.clone(),
                        });
                        return None;
                    }
                    Some(answer) => {
                        let reason = person_denial_message(id, answer);
                        why.push(DecisionFactor::Denied {
                            approval: id.clone(),
                            reason: reason.clone(),
                        });
                        ToolDecision::Deny { reason }
                    }
                },
            }
        }
    };
    if !facts.unresolved.is_empty() {
        why.push(DecisionFactor::Unresolved {
            what: facts.unresolved.clone(),
        });
    }
    Some((decision, None))
}

/// A name for what nobody looked up.
fn fallback_approval_id(request: &ToolRequested) -> String {
    format!("ap-{:08x}", request.call.0 >> 32)
}

/// What an agent is told of a person's no.
fn person_denial_message(approval: &str, answer: &PersonAnswer) -> String {
    let why = answer.reason.as_deref().map(|why| format!(": {why}"));
    format!(
        "checkrein: a person was asked about exactly this ({approval}) and said no{}. Do not try another way to the same end",
        why.unwrap_or_default()
    )
}

/// A patch that would not do what it says. No refusal of a person's rules: an agent that then
/// stops has not been denied anything.
fn deny_inapplicable_patch(
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let reason = request.facts.patch.as_ref()?.refused.clone()?;
    why.push(DecisionFactor::Patch {
        reason: reason.clone(),
    });
    Some((ToolDecision::Deny { reason }, None))
}

/// What layers of middleware said. One that would have a person asked is heard with the rules.
fn evaluate_middleware_answers(
    layers: &[MiddlewareAnswerFact],
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    why.extend(layers.iter().cloned().map(DecisionFactor::Layer));
    let answers = layers.iter().filter_map(|fact| {
        let said = fact.middleware_message_for_agent("this call");
        Some(match (fact.says, &fact.arguments) {
            (MiddlewareAnswer::Nudge, _) => ToolDecision::Nudge { text: said },
            (MiddlewareAnswer::Rewrite, Some(args)) => ToolDecision::Rewrite {
                args: args.clone(),
                reason: said,
            },
            // It would have it otherwise, and how is not known any more.
            (MiddlewareAnswer::Rewrite, None)
            | (MiddlewareAnswer::Deny | MiddlewareAnswer::BlockedByStance, _) => {
                ToolDecision::Deny { reason: said }
            }
            (MiddlewareAnswer::Pass | MiddlewareAnswer::PassedOver | MiddlewareAnswer::Ask, _) => {
                return None;
            }
        })
    });
    // Ties go to the layer that was asked first.
    let severest = answers.reduce(|one, other| {
        match tool_decision_severity(&other) > tool_decision_severity(&one) {
            true => other,
            false => one,
        }
    });
    severest.map(|decision| (decision, None))
}

/// What a model said of the call. It counts if it is sure enough; that it says nothing stops no
/// call, and is told.
fn evaluate_model_veto(
    policy: &Policy,
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let fact = request.facts.veto.as_ref()?;
    let least = policy.veto.as_ref().map_or(0, |terms| terms.min_confidence);
    let unsure = fact.confidence.is_none_or(|confidence| confidence < least);
    let acts = matches!(
        fact.says,
        ModelVetoVerdict::Veto | ModelVetoVerdict::Rewrite
    );
    why.push(DecisionFactor::Veto {
        says: fact.says,
        reason: fact.reason.clone(),
        confidence: fact.confidence,
        unsure: acts && unsure,
    });
    if !acts || unsure {
        return None;
    }
    let share = fact.confidence.unwrap_or(0);
    let said = format!(
        "[verifier-veto] {}: {} (confidence {}.{:02})",
        request.tool,
        fact.reason,
        share / 1000,
        share % 1000 / 10
    );
    Some(match (fact.says, &fact.arguments) {
        (ModelVetoVerdict::Rewrite, Some(args)) => {
            let (reason, args) = (said, args.clone());
            (ToolDecision::Rewrite { args, reason }, None)
        }
        _ => {
            let reason = format!("{said}. The call did not run: make another plan");
            (ToolDecision::Deny { reason }, None)
        }
    })
}

/// What a model said of the steps before this call. Once too little has come of them so many times
/// in a row, the agent is told, and the row begins anew.
fn decide_by_progress_ratings(
    draft: &StepBuilder<'_>,
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let fact = request.facts.progress.as_ref()?;
    why.push(DecisionFactor::Progress {
        score: fact.score,
        reason: fact.reason.clone(),
    });
    let window = draft.policy.progress.as_ref()?.window;
    let low = draft.state.task.as_ref()?.low_progress_streak;
    if low < window {
        return None;
    }
    why.push(DecisionFactor::Stalled { window });
    let advice = fact
        .suggestion
        .as_deref()
        .unwrap_or("step back, say in a sentence what stands in the way, and take one new way");
    let text = format!(
        "[progress-check] the last {window} steps brought little ({}): {advice}",
        fact.reason
    );
    Some((ToolDecision::Nudge { text }, None))
}
