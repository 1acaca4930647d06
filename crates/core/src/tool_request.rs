//! Decides a tool request: halted, caps, detectors, exec policy, patch, middleware, veto, progress.
//! The severest answer wins, but every counter sees every call.

use crate::approval::{self, ApprovalHandling};
use crate::decision::ToolDecision;
use crate::detectors::{
    self, CallWindow, DetectorContext, FindingSource, LoopDetector, LoopPatternMatch,
};
use crate::digest::{Digest, EightByteDigest};
use crate::event::{
    CapKind, DetectorOrCapResponse, Event, LadderRung, LoopPatternDetected, LoopSeverity,
};
use crate::explain::{DecisionExplanation, DecisionFactor};
use crate::ids::{DetectorName, EventSeq, ScopeId, UnixMillis};
use crate::input::{
    ApprovalStatusFact, ModelToolCallVerdict, PersonAnswer, RuleDecision, ToolRequested,
};
use crate::middleware::{self, MiddlewareAnswer, MiddlewareAnswerFact};
use crate::policy::{LoopEscalationMode, PinnedLoopRules, Policy};
use crate::step::StateMachineStepBuilder;
use crate::transition::{Reason, Transition};
use crate::{
    budget,
    state::{ScopeState, Task},
};

/// The fixed reply to every call of a halted task.
pub const HALTED_MESSAGE: &str = "checkrein has ended this task; no further tool call runs. Say what is done and what is not, then stop";

/// The reply where only a sub-agent is halted. It is substituted where the decision is rendered,
/// because recorded decisions keep the one fixed line.
pub const SUBAGENT_HALTED_MESSAGE: &str = "checkrein has ended the work of this sub-agent; no further tool call of it runs. Report what is done and what is not, then stop";

/// The reply where a person would have to be asked and the policy asks nobody.
const NOBODY_ASKED_MESSAGE: &str = "checkrein: a person would have to be asked, and the policy asks nobody (approval = \"never\"): it is refused. Do not try another way to the same end";

/// The reply to the one call over a cap.
pub const GRACE_MESSAGE: &str = "budget used up: say what is done and what is not, then stop";

pub(crate) fn evaluate_tool_request(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
) {
    let mut why = DecisionExplanation::new();
    let over = draft.state.task.as_ref().is_some_and(|task| {
        task.halted
            || task
                .conversation_scope_by_id(&request.scope)
                .is_some_and(|scope| scope.halted)
    });
    if over {
        // Detectors still observe the call, but nothing changes the fixed reply.
        why.push(DecisionFactor::Halted);
        decide_call_by_detectors(draft, request, over, 0, &mut DecisionExplanation::new());
        let reason = HALTED_MESSAGE.to_owned();
        return draft.record_tool_request_decision(
            seq,
            &request.scope,
            ToolDecision::Deny { reason },
            why,
        );
    }
    // All rules are evaluated, even after a denial: each records events and reasons that counters
    // and the explanation need.
    let mut answers: Vec<ToolDecisionAndTransition> = Vec::new();
    answers.extend(evaluate_caps_on_tool_call(draft, request, &mut why));
    let (place, place_in_why) = (answers.len(), why.len());
    answers.extend(decide_by_rules_and_approvals(
        draft.policy,
        request,
        layers,
        &mut why,
    ));
    answers.extend(deny_inapplicable_patch(request, &mut why));
    answers.extend(evaluate_middleware_answers(
        &request.scope,
        layers,
        &mut why,
    ));
    answers.extend(decision_from_model_veto(draft.policy, request, &mut why));
    answers.extend(decide_call_by_progress_ratings(draft, request, &mut why));

    // Detectors are asked last, because a word of theirs counts only if nothing severer hides it. In
    // the order of the rules, they come after the caps.
    let severest = answers
        .iter()
        .map(|(answer, _)| tool_decision_severity(answer));
    let severest = severest.max().unwrap_or(0);
    let mut seen = DecisionExplanation::new();
    let answer = decide_call_by_detectors(draft, request, over, severest, &mut seen);
    answers.splice(place..place, answer);
    why.splice(place_in_why..place_in_why, seen);

    // On a tie the first answer wins. The order above is the order of the rules.
    let mut severest = (ToolDecision::Allow, None);
    for answer in answers {
        if tool_decision_severity(&answer.0) > tool_decision_severity(&severest.0) {
            severest = answer;
        }
    }
    let (decision, transition) = severest;
    draft.record_tool_request_decision(seq, &request.scope, decision, why);
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

/// Evaluates the caps. The first call over a cap is the grace call: it is denied and the agent is
/// asked to sum up. The second ends the task, or in a sub-agent only that scope.
fn evaluate_caps_on_tool_call(
    draft: &mut StateMachineStepBuilder<'_>,
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let main_over = budget::reached_cap_at_tool_request(draft.policy, draft.state);
    if let Some(over) = main_over {
        why.push(over.reached_cap_decision_factor());
        // Read before the event below is folded in, which sets `grace`.
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
        .conversation_scope_by_id(&request.scope)
        // An agent that does not show its rounds, such as Codex, has no rounds to count (see the
        // glossary, "Round").
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

/// Runs every detector in force and climbs the ladder of the policy. `severest` is the severity of
/// what others answer to the same call; `over` says that the call is denied whatever is found.
fn decide_call_by_detectors(
    draft: &mut StateMachineStepBuilder<'_>,
    request: &ToolRequested,
    over: bool,
    severest: u8,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let policy = draft.policy;
    let task = draft.state.task.as_ref()?;
    let scope = task.conversation_scope_by_id(&request.scope)?;
    let call = *scope.window.back()?;
    let context = DetectorContext {
        loops: &policy.loops,
        calls_before: task.totals.tool_calls.saturating_sub(1),
        reports_outcome: request.reports_outcome,
    };
    let before = CallWindow::calls_before_newest(&scope.window, &policy.loops);
    let is_on = |detector: &&&dyn LoopDetector| {
        let mut named = policy.loops.detectors.iter();
        named.any(|name| name.as_str() == detector.detector_name())
    };
    let found: Vec<(&'static dyn LoopDetector, LoopPatternMatch)> = detectors::ALL
        .iter()
        .filter(is_on)
        .filter_map(|detector| Some((*detector, detector.detect_loop(&call, before, context)?)))
        .collect();
    // All responses are chosen before the first event is folded in, because each event changes the
    // counters they are chosen from.
    // Detectors that older seals cannot have climb their own ladders, whatever the policy's is: some
    // of them must not end a task.
    let (by_criticals, by_pattern): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(found_by, _)| {
            policy.loops.ladder == LoopEscalationMode::TwoCriticals
                && detectors::SEED.contains(&found_by.detector_name())
        });
    let own = by_criticals
        .into_iter()
        .map(|(detector, found)| (FindingSource::Own(detector), found));
    let pinned = match policy.loops.pinned {
        Some(PinnedLoopRules::OpenClaw) => scope
            .openclaw
            .as_ref()
            .and_then(|history| history.judge_newest_call()),
        None => None,
    };
    let pinned = pinned.map(|found| (FindingSource::OpenClaw(found.rule), found.into()));
    let by_criticals: Vec<DetectorFinding> = pinned.into_iter().chain(own).collect();
    let mut responses = responses_to_detector_findings(task, &request.scope, by_criticals, over);
    // Without the call that is being judged.
    let since_news = u32::from(scope.calls_since_news.saturating_sub(1));
    let by_pattern = by_pattern.into_iter().map(|(detector, found)| {
        let critical = context.thresholds_of_detector(detector).critical;
        let is_stale = critical.is_some_and(|least| since_news >= least);
        (detector, found, is_stale)
    });
    let said = responses.iter().map(|response| response.action).max();
    let is_word_taken = said >= Some(DetectorOrCapResponse::Nudge);
    responses.extend(responses_to_found_loop_patterns(
        scope,
        by_pattern.collect(),
        over,
        (severest, is_word_taken),
    ));

    let mut answer: Option<ToolDecisionAndTransition> = None;
    for response in responses {
        let detector = response.detector;
        let name = DetectorName::new(detector.detector_name());
        if let Some(this) = tool_decision_for_detector_response(&response, request) {
            why.push(DecisionFactor::Detector {
                detector: name.clone(),
                count: response.found.count,
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
            level: response.found.level,
            count: response.found.count,
            key: response.key,
            action: response.action,
            rung: response.rung,
        }));
    }
    answer
}

type DetectorFinding = (FindingSource, LoopPatternMatch);

/// Ends the task if the calls since a compaction were all one call with one result. OpenClaw's guard
/// looks at outcomes, not at requests.
pub(crate) fn end_loop_after_compaction(
    draft: &mut StateMachineStepBuilder<'_>,
    seq: EventSeq,
    scope: &ScopeId,
) {
    // Facts for OpenClaw's rules may be there without the rules: one reading of a history serves all presets.
    if draft.policy.loops.pinned != Some(PinnedLoopRules::OpenClaw) {
        return draft.set_noted_decision();
    }
    let task = draft.state.task.as_ref();
    let scope_state = task.and_then(|task| task.conversation_scope_by_id(scope));
    let Some(found) = scope_state.and_then(|scope| scope.openclaw.as_ref()?.compaction_finding())
    else {
        return draft.set_noted_decision();
    };
    let name = DetectorName::new(found.rule.detector_name());
    draft.apply_and_record_event(Event::Detected(LoopPatternDetected {
        scope: scope.clone(),
        detector: name.clone(),
        level: found.level,
        count: found.count,
        key: found.key,
        action: DetectorOrCapResponse::Halt,
        rung: None,
    }));
    draft.halt_task(
        seq,
        Transition::new(Reason::LoopDetected, found.rule.detector_name()),
        DecisionFactor::Detector {
            detector: name,
            count: found.count,
        },
    );
}

/// What is done about one finding.
struct LoopMatchWithResponse {
    detector: FindingSource,
    found: LoopPatternMatch,
    key: EightByteDigest,
    action: DetectorOrCapResponse,
    rung: Option<LadderRung>,
}

/// A warning reaches the agent once per multiple of ten. A critical denies the call, and the second
/// critical of a task ends it. A sub-agent's second critical halts that sub-agent: the fold does so,
/// and its further calls are denied.
fn responses_to_detector_findings(
    task: &Task,
    scope: &ScopeId,
    mut found: Vec<DetectorFinding>,
    over: bool,
) -> Vec<LoopMatchWithResponse> {
    // One critical per call is enough. Two detectors that see the same call would otherwise count
    // it twice and end the task at once.
    let mut critical = false;
    found.retain(|(_, found)| {
        let is_critical = found.level == LoopSeverity::Critical;
        let is_second = critical && is_critical;
        critical |= is_critical;
        !is_second
    });
    let respond = |(detector, found): DetectorFinding| LoopMatchWithResponse {
        detector,
        found,
        key: found.key,
        action: match over {
            true => DetectorOrCapResponse::Observe,
            false => action_for_detected_loop(task, scope, found),
        },
        rung: None,
    };
    found.into_iter().map(respond).collect()
}

/// Each pattern climbs on its own: a word, a denial, the end. Only one finding per call has a
/// consequence, the severest: what the agent is not told counts as not said. A finding comes with
/// whether there was no news for as many calls as make it critical; only then is a call denied.
/// `is_word_taken`: detectors on the other ladder have a word or more for this call.
fn responses_to_found_loop_patterns(
    scope: &ScopeState,
    found: Vec<(&'static dyn LoopDetector, LoopPatternMatch, bool)>,
    over: bool,
    (severest, is_word_taken): (u8, bool),
) -> Vec<LoopMatchWithResponse> {
    let mut responses: Vec<LoopMatchWithResponse> = found
        .into_iter()
        .map(|(detector, found, is_stale)| {
            let name = detector.detector_name().as_bytes();
            let key = Digest::hash_parts([name, &found.key.0.to_le_bytes()]).to_eight_byte_digest();
            let before = scope.pattern_on_ladder(key);
            let rung = before.rung;
            let is_critical = found.level == LoopSeverity::Critical && is_stale;
            // After news the same word is worth saying again only when the pattern has doubled, or
            // when nothing but the pattern has come since: an agent that looks at `git status`
            // between its steps is not told so each time.
            let is_worth_saying = is_critical || found.count >= 2 * u32::from(before.told_count);
            let action = match rung {
                LadderRung::Unsaid if is_worth_saying => DetectorOrCapResponse::Nudge,
                LadderRung::Told if is_critical => DetectorOrCapResponse::Deny,
                LadderRung::Denied if is_critical && detector.can_finding_end_task() => {
                    DetectorOrCapResponse::Halt
                }
                _ => DetectorOrCapResponse::Observe,
            };
            LoopMatchWithResponse {
                detector: FindingSource::Own(detector),
                found,
                key,
                action,
                rung: Some(rung),
            }
        })
        .collect();
    let nudge = tool_decision_severity(&ToolDecision::Nudge {
        text: String::new(),
    });
    let ask = tool_decision_severity(&ToolDecision::Ask {
        reason: String::new(),
        approval: String::new(),
        until: None,
    });
    // A word that others' answer would hide is kept for the next call.
    let is_hidden = |action: DetectorOrCapResponse| {
        over || action == DetectorOrCapResponse::Nudge && (severest > nudge || is_word_taken)
    };
    // A denial by others is a word, too, and so is other arguments in place of those that were asked
    // for: an agent that asks for a forbidden call again and again was told each time, and must not go
    // on for ever because of that. A question is for a person.
    let is_told_by_others = !over && severest > nudge && severest != ask;
    let chosen = responses
        .iter()
        .map(|response| response.action)
        .filter(|action| !is_hidden(*action))
        .max()
        .unwrap_or(DetectorOrCapResponse::Observe);
    let mut is_taken = false;
    for response in &mut responses {
        let is_first_word = response.action == DetectorOrCapResponse::Nudge;
        if response.action != chosen || std::mem::replace(&mut is_taken, true) {
            response.action = DetectorOrCapResponse::Observe;
        }
        response.rung = match response.action {
            DetectorOrCapResponse::Nudge => Some(LadderRung::Told),
            DetectorOrCapResponse::Deny | DetectorOrCapResponse::Halt => Some(LadderRung::Denied),
            _ if is_first_word && is_told_by_others => Some(LadderRung::Told),
            DetectorOrCapResponse::Observe | DetectorOrCapResponse::Grace => response.rung,
        };
    }
    responses
}

fn tool_decision_for_detector_response(
    response: &LoopMatchWithResponse,
    request: &ToolRequested,
) -> Option<ToolDecisionAndTransition> {
    let detector = response.detector;
    let advice = || {
        let recorded = match (response.rung, detector) {
            (None, FindingSource::Own(detector)) => {
                detectors::loop_advice_under_old_policy(detector.detector_name(), response.found)
            }
            _ => None,
        };
        recorded.unwrap_or_else(|| {
            detector.loop_advice_for_agent(response.found, &call_text_for_agent(request))
        })
    };
    match response.action {
        DetectorOrCapResponse::Observe | DetectorOrCapResponse::Grace => None,
        DetectorOrCapResponse::Nudge => Some((ToolDecision::Nudge { text: advice() }, None)),
        DetectorOrCapResponse::Deny => Some((ToolDecision::Deny { reason: advice() }, None)),
        // A sub-agent is ended by denying all its further calls; the task goes on.
        DetectorOrCapResponse::Halt if !request.scope.is_main_scope() => {
            let reason = format!("{}\n{SUBAGENT_HALTED_MESSAGE}", advice());
            Some((ToolDecision::Deny { reason }, None))
        }
        DetectorOrCapResponse::Halt => Some((
            ToolDecision::Halt { reason: advice() },
            Some(Transition::new(
                Reason::LoopDetected,
                detector.detector_name(),
            )),
        )),
    }
}

/// Characters of a call's arguments that a word quotes.
const QUOTED_ARGUMENTS: usize = 80;

/// Returns the call as the agent can recognise it: "`Bash` (cargo test)".
fn call_text_for_agent(request: &ToolRequested) -> String {
    const MAIN_ARGUMENTS: [&str; 8] = [
        "command",
        "cmd",
        "script",
        "file_path",
        "path",
        "pattern",
        "query",
        "url",
    ];
    let args = serde_json::from_str::<serde_json::Value>(&request.args).unwrap_or_default();
    let main = MAIN_ARGUMENTS
        .iter()
        .find_map(|name| args.get(*name)?.as_str());
    let text = main.unwrap_or(&request.args);
    let line: Vec<&str> = text.split_whitespace().collect();
    let mut line = line.join(" ");
    if line.chars().count() > QUOTED_ARGUMENTS {
        line = line.chars().take(QUOTED_ARGUMENTS).collect();
        line.push('…');
    }
    match line.as_str() {
        "" | "{}" | "null" => format!("`{}`", request.tool),
        line => format!("`{}` ({line})", request.tool),
    }
}

fn action_for_detected_loop(
    task: &Task,
    scope: &ScopeId,
    found: LoopPatternMatch,
) -> DetectorOrCapResponse {
    match found.level {
        // Only the main conversation's second critical ends the task. The fold halts a sub-agent at
        // its second one.
        LoopSeverity::Critical if scope.is_main_scope() && task.criticals > 0 => {
            DetectorOrCapResponse::Halt
        }
        LoopSeverity::Critical => DetectorOrCapResponse::Deny,
        LoopSeverity::Warning if found.count / 10 > task.last_nudged_repeat_count(found.key) => {
            DetectorOrCapResponse::Nudge
        }
        LoopSeverity::Warning => DetectorOrCapResponse::Observe,
    }
}

/// Evaluates the exec policy and approvals. A person's answer counts only for a call that would be
/// asked about, and is not even read where the rules forbid the call.
fn decide_by_rules_and_approvals(
    policy: &Policy,
    request: &ToolRequested,
    layers: &[MiddlewareAnswerFact],
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let facts = &request.facts;
    let reason = facts.reason.clone();
    // The rule's own reason comes first. A layer's question is used only if no rule matched with a
    // reason.
    let reason = reason.or_else(|| middleware::middleware_question_for_person(layers));
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
    let decision = match approval::approval_handling_of_request(policy.approval, request, layers) {
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
                // The runtime looked up no approval, so the question cannot be parked and gets an
                // id of its own.
                None => ask(fallback_approval_id(request), None),
                Some(ApprovalStatusFact { id, until, answer }) => match answer {
                    None => {
                        why.push(DecisionFactor::Parked {
                            approval: id.clone(),
                            until: *until,
                        });
                        ask(id.clone(), Some(*until))
                    }
                    // An approval lifts the question only. Every other answer of this request still
                    // counts (law 11).
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
    // Parts of the command that could not be read belong to the explanation of an asked or denied
    // call.
    if !facts.unresolved.is_empty() {
        why.push(DecisionFactor::Unresolved {
            what: facts.unresolved.clone(),
        });
    }
    Some((decision, None))
}

/// Returns an approval id for a call that the runtime did not look up.
fn fallback_approval_id(request: &ToolRequested) -> String {
    format!("ap-{:08x}", request.call.0 >> 32)
}

/// Returns what the agent is told after a person denied the call.
fn person_denial_message(approval: &str, answer: &PersonAnswer) -> String {
    let why = answer.reason.as_deref().map(|why| format!(": {why}"));
    format!(
        "checkrein: a person was asked about exactly this ({approval}) and said no{}. Do not try another way to the same end",
        why.unwrap_or_default()
    )
}

/// Denies a patch that cannot be applied as written. This is not a refusal by a person's rules: an
/// agent that stops afterwards was not denied permission.
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

/// Evaluates the answers of middleware layers. A layer that wants a person asked is handled with
/// the exec policy.
fn evaluate_middleware_answers(
    scope: &ScopeId,
    layers: &[MiddlewareAnswerFact],
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    why.extend(layers.iter().cloned().map(DecisionFactor::Layer));
    let answers = layers.iter().filter_map(|fact| {
        let said = fact.middleware_message_for_agent("this call");
        let decision = match (fact.says, &fact.arguments) {
            (MiddlewareAnswer::Nudge, _) => ToolDecision::Nudge { text: said },
            (MiddlewareAnswer::Rewrite, Some(args)) => ToolDecision::Rewrite {
                args: args.clone(),
                reason: said,
            },
            (MiddlewareAnswer::Halt, _) if scope.is_main_scope() => {
                let ended = Transition::new(Reason::LoopDetected, fact.layer.as_str());
                return Some((ToolDecision::Halt { reason: said }, Some(ended)));
            }
            // A sub-agent is ended by denying all its further calls; the task goes on.
            (MiddlewareAnswer::Halt, _) => ToolDecision::Deny {
                reason: format!("{said}\n{SUBAGENT_HALTED_MESSAGE}"),
            },
            // The layer wants the call rewritten but its arguments are no longer known. Running the
            // original call would ignore it, so it is denied.
            (MiddlewareAnswer::Rewrite, None)
            | (MiddlewareAnswer::Deny | MiddlewareAnswer::BlockedByStance, _) => {
                ToolDecision::Deny { reason: said }
            }
            (MiddlewareAnswer::Pass | MiddlewareAnswer::PassedOver | MiddlewareAnswer::Ask, _) => {
                return None;
            }
        };
        Some((decision, None))
    });
    // On a tie, the layer that was asked first wins.
    answers.reduce(|one, other| {
        match tool_decision_severity(&other.0) > tool_decision_severity(&one.0) {
            true => other,
            false => one,
        }
    })
}

/// Evaluates the veto model's answer. It counts only with enough confidence. A model that does not
/// answer stops no call, and the explanation says so.
fn decision_from_model_veto(
    policy: &Policy,
    request: &ToolRequested,
    why: &mut DecisionExplanation,
) -> Option<ToolDecisionAndTransition> {
    let fact = request.facts.veto.as_ref()?;
    let least = policy.veto.as_ref().map_or(0, |terms| terms.min_confidence);
    // A veto without a confidence is unsure. A model only tightens (law 11), so ignoring it is
    // always permitted.
    let unsure = fact.confidence.is_none_or(|confidence| confidence < least);
    let acts = matches!(
        fact.says,
        ModelToolCallVerdict::Veto | ModelToolCallVerdict::Rewrite
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
        // Thousandths are shown with two decimals. The core uses no floating point.
        share % 1000 / 10
    );
    Some(match (fact.says, &fact.arguments) {
        (ModelToolCallVerdict::Rewrite, Some(args)) => {
            let (reason, args) = (said, args.clone());
            (ToolDecision::Rewrite { args, reason }, None)
        }
        _ => {
            let reason = format!("{said}. The call did not run: make another plan");
            (ToolDecision::Deny { reason }, None)
        }
    })
}

/// Evaluates the progress ratings. After enough low ratings in a row the agent is told, and the
/// streak begins anew.
fn decide_call_by_progress_ratings(
    draft: &StateMachineStepBuilder<'_>,
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
    // The streak includes this rating: the fold counted it before this function runs.
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
