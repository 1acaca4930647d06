//! At a tool request: halted → caps → detectors → exec policy → patch → middleware → veto. The
//! severest answer wins, but every counter sees every call.

use crate::approval::{self, Way};
use crate::decision::ToolDecision;
use crate::detectors::{self, Context, Sighting, Window};
use crate::event::{Action, Cap, Detected, Event, Level};
use crate::explain::{Because, Why};
use crate::ids::{DetectorName, Millis, ScopeId, Seq};
use crate::input::{ApprovalFact, PersonAnswer, RuleDecision, ToolRequested, VetoSays};
use crate::layers::{self, LayerFact, LayerSays};
use crate::policy::Policy;
use crate::step::Draft;
use crate::transition::{Reason, Transition};
use crate::{budget, state::Task};

/// The one line that every call of a halted task gets.
pub const HALTED: &str = "checkrein has ended this task; no further tool call runs. Say what is done and what is not, then stop";

/// The same where only a sub-agent's scope is halted. It is told so where the decision is rendered:
/// recorded decisions keep the one fixed line.
pub const SUBAGENT_HALTED: &str = "checkrein has ended the work of this sub-agent; no further tool call of it runs. Report what is done and what is not, then stop";

/// What is said where the policy asks nobody.
const NOBODY: &str = "checkrein: a person would have to be asked, and the policy asks nobody (approval = \"never\"): it is refused. Do not try another way to the same end";

/// What the one call over a cap gets.
pub const GRACE: &str = "budget used up: say what is done and what is not, then stop";

pub(crate) fn judge(
    draft: &mut Draft<'_>,
    seq: Seq,
    request: &ToolRequested,
    layers: &[LayerFact],
) {
    let mut why = Why::new();
    let over = draft.state.task.as_ref().is_some_and(|task| {
        task.halted || task.scope(&request.scope).is_some_and(|scope| scope.halted)
    });
    if over {
        // Detectors look on, but nothing makes the one fixed line worse or better.
        why.push(Because::Halted);
        detect(draft, request, over, &mut Why::new());
        let reason = HALTED.to_owned();
        return draft.answer_tool(seq, &request.scope, ToolDecision::Deny { reason }, why);
    }
    let mut answers: Vec<Answer> = Vec::new();
    answers.extend(caps(draft, request, &mut why));
    answers.extend(detect(draft, request, over, &mut why));
    answers.extend(exec_policy(draft.policy, request, layers, &mut why));
    answers.extend(patch(request, &mut why));
    answers.extend(middleware(layers, &mut why));
    answers.extend(veto(draft.policy, request, &mut why));
    answers.extend(progress(draft, request, &mut why));

    // Ties go to the first: the order above is the order of the rules.
    let mut severest = (ToolDecision::Allow, None);
    for answer in answers {
        if severity(&answer.0) > severity(&severest.0) {
            severest = answer;
        }
    }
    let (decision, transition) = severest;
    draft.answer_tool(seq, &request.scope, decision, why);
    if let Some(transition) = transition {
        let transition = draft.settled(transition);
        draft.end(transition);
    }
}

fn severity(decision: &ToolDecision) -> u8 {
    match decision {
        ToolDecision::Allow => 0,
        ToolDecision::Nudge { .. } => 1,
        ToolDecision::Rewrite { .. } => 2,
        ToolDecision::Ask { .. } => 3,
        ToolDecision::Deny { .. } => 4,
        ToolDecision::Halt { .. } => 5,
    }
}

type Answer = (ToolDecision, Option<Transition>);

/// The first call over a cap is the grace call: denied, with the request to sum up.
/// The second ends the task; in a sub-agent it ends that scope only.
fn caps(draft: &mut Draft<'_>, request: &ToolRequested, why: &mut Why) -> Option<Answer> {
    let main_over = budget::at_tool(draft.policy, draft.state);
    if let Some(over) = main_over {
        why.push(over.because());
        let graced = draft
            .state
            .task
            .as_ref()
            .is_some_and(|task| task.grace.is_some());
        draft.emit(Event::CapReached {
            cap: over.cap,
            scope: ScopeId::main(),
        });
        let reason = GRACE.to_owned();
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
        .scope(&request.scope)
        .filter(|scope| !scope.id.is_main() && draft.state.shows_rounds)?;
    let used = scope.rounds;
    if used < limit {
        return None;
    }
    why.push(Because::Cap {
        cap: Cap::Iterations,
        used,
        limit,
    });
    let reason = if scope.grace { HALTED } else { GRACE };
    draft.emit(Event::CapReached {
        cap: Cap::Iterations,
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
fn detect(
    draft: &mut Draft<'_>,
    request: &ToolRequested,
    over: bool,
    why: &mut Why,
) -> Option<Answer> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    let window = &task.scope(&request.scope)?.window;
    let call = *window.back()?;
    let context = Context {
        loops: &policy.loops,
        calls_before: task.totals.tool_calls.saturating_sub(1),
        reports_outcome: request.reports_outcome,
    };
    let mut found: Vec<(&dyn detectors::Detector, Sighting)> = Vec::new();
    for detector in detectors::ALL {
        let on = policy
            .loops
            .detectors
            .iter()
            .any(|name| name.as_str() == detector.name());
        // One critical is enough: two names for one call would count it twice.
        let critical = found.iter().any(|(_, seen)| seen.level == Level::Critical);
        if on
            && let Some(seen) = detector.look(&call, Window::before_newest(window), context)
            && !(critical && seen.level == Level::Critical)
        {
            found.push((*detector, seen));
        }
    }
    let actions: Vec<Action> = found
        .iter()
        .map(|(_, seen)| match over {
            true => Action::Observe,
            false => action(task, &request.scope, *seen),
        })
        .collect();

    let mut answer: Option<Answer> = None;
    for ((detector, seen), action) in found.into_iter().zip(actions) {
        let name = DetectorName::new(detector.name());
        let advice = detector.advice(seen);
        let this = match action {
            Action::Observe | Action::Grace => None,
            Action::Nudge => Some((ToolDecision::Nudge { text: advice }, None)),
            Action::Deny => Some((ToolDecision::Deny { reason: advice }, None)),
            Action::Halt => Some((
                ToolDecision::Halt { reason: advice },
                Some(Transition::new(Reason::LoopDetected, detector.name())),
            )),
        };
        if let Some(this) = this {
            why.push(Because::Detector {
                detector: name.clone(),
                count: seen.count,
            });
            if answer
                .as_ref()
                .is_none_or(|known| severity(&this.0) > severity(&known.0))
            {
                answer = Some(this);
            }
        }
        draft.emit(Event::Detected(Detected {
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

fn action(task: &Task, scope: &ScopeId, seen: Sighting) -> Action {
    match seen.level {
        Level::Critical if scope.is_main() && task.criticals > 0 => Action::Halt,
        Level::Critical => Action::Deny,
        Level::Warning if seen.count / 10 > task.nudged(seen.key) => Action::Nudge,
        Level::Warning => Action::Observe,
    }
}

/// What the rules say, and whoever is to be asked. A person's answer counts for what would be
/// asked about and for nothing else: it is not even looked at where the rules forbid.
fn exec_policy(
    policy: &Policy,
    request: &ToolRequested,
    layers: &[LayerFact],
    why: &mut Why,
) -> Option<Answer> {
    let facts = &request.facts;
    let reason = facts.reason.clone();
    let reason = reason.or_else(|| layers::question(layers));
    let reason = reason.unwrap_or_else(|| {
        match facts.rule {
            Some(RuleDecision::Prompt | RuleDecision::Forbidden) => {
                "the exec policy does not allow this command"
            }
            Some(RuleDecision::Allow) | None => "a person is asked about everything that acts here",
        }
        .to_owned()
    });
    let ask = |approval: String, until: Option<Millis>| ToolDecision::Ask {
        reason: reason.clone(),
        approval,
        until,
    };
    let decision = match approval::way(policy.approval, request, layers) {
        Way::Free => return None,
        Way::Forbid => {
            why.push(Because::Rule {
                reason: reason.clone(),
            });
            ToolDecision::Deny { reason }
        }
        Way::Refuse => {
            let reason = format!("{reason}\n{NOBODY}");
            why.push(Because::Rule {
                reason: reason.clone(),
            });
            why.push(Because::NobodyAsked);
            ToolDecision::Deny { reason }
        }
        Way::Question => {
            why.push(Because::Rule {
                reason: reason.clone(),
            });
            ask(unknown(request), None)
        }
        Way::Park => {
            why.push(Because::Rule {
                reason: reason.clone(),
            });
            match facts.approval.as_deref() {
                None => ask(unknown(request), None),
                Some(ApprovalFact { id, until, answer }) => match answer {
                    None => {
                        why.push(Because::Parked {
                            approval: id.clone(),
                            until: *until,
                        });
                        ask(id.clone(), Some(*until))
                    }
                    Some(answer) if answer.approved => {
                        why.push(Because::Approved {
                            approval: id.clone(),
                            by: answer.by.clone(),
                            reason: answer.reason.clone(),
                        });
                        return None;
                    }
                    Some(answer) => {
                        let reason = denied(id, answer);
                        why.push(Because::Denied {
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
        why.push(Because::Unresolved {
            what: facts.unresolved.clone(),
        });
    }
    Some((decision, None))
}

/// A name for what nobody looked up.
fn unknown(request: &ToolRequested) -> String {
    format!("ap-{:08x}", request.call.0 >> 32)
}

/// What an agent is told of a person's no.
fn denied(approval: &str, answer: &PersonAnswer) -> String {
    let why = answer.reason.as_deref().map(|why| format!(": {why}"));
    format!(
        "checkrein: a person was asked about exactly this ({approval}) and said no{}. Do not try another way to the same end",
        why.unwrap_or_default()
    )
}

/// A patch that would not do what it says. No refusal of a person's rules: an agent that then
/// stops has not been denied anything.
fn patch(request: &ToolRequested, why: &mut Why) -> Option<Answer> {
    let reason = request.facts.patch.as_ref()?.refused.clone()?;
    why.push(Because::Patch {
        reason: reason.clone(),
    });
    Some((ToolDecision::Deny { reason }, None))
}

/// What layers of middleware said. One that would have a person asked is heard with the rules.
fn middleware(layers: &[LayerFact], why: &mut Why) -> Option<Answer> {
    why.extend(layers.iter().cloned().map(Because::Layer));
    let answers = layers.iter().filter_map(|fact| {
        let said = fact.told("this call");
        Some(match (fact.says, &fact.arguments) {
            (LayerSays::Nudge, _) => ToolDecision::Nudge { text: said },
            (LayerSays::Rewrite, Some(args)) => ToolDecision::Rewrite {
                args: args.clone(),
                reason: said,
            },
            // It would have it otherwise, and how is not known any more.
            (LayerSays::Rewrite, None) | (LayerSays::Deny | LayerSays::Blocked, _) => {
                ToolDecision::Deny { reason: said }
            }
            (LayerSays::Pass | LayerSays::PassedOver | LayerSays::Ask, _) => return None,
        })
    });
    // Ties go to the layer that was asked first.
    let severest = answers.reduce(|one, other| match severity(&other) > severity(&one) {
        true => other,
        false => one,
    });
    severest.map(|decision| (decision, None))
}

/// What a model said of the call. It counts if it is sure enough; that it says nothing stops no
/// call, and is told.
fn veto(policy: &Policy, request: &ToolRequested, why: &mut Why) -> Option<Answer> {
    let fact = request.facts.veto.as_ref()?;
    let least = policy.veto.as_ref().map_or(0, |terms| terms.min_confidence);
    let unsure = fact.confidence.is_none_or(|confidence| confidence < least);
    let acts = matches!(fact.says, VetoSays::Veto | VetoSays::Rewrite);
    why.push(Because::Veto {
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
        (VetoSays::Rewrite, Some(args)) => {
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
fn progress(draft: &Draft<'_>, request: &ToolRequested, why: &mut Why) -> Option<Answer> {
    let fact = request.facts.progress.as_ref()?;
    why.push(Because::Progress {
        score: fact.score,
        reason: fact.reason.clone(),
    });
    let window = draft.policy.progress.as_ref()?.window;
    let low = draft.state.task.as_ref()?.low;
    if low < window {
        return None;
    }
    why.push(Because::Stalled { window });
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
