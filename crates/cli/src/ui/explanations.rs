//! Turns explanations, which are data, into sentences for a person.

use checkrein_core::event::CapKind;
use checkrein_core::evidence::{Finding, InconclusiveCause, JudgeUsage, Verdict};
use checkrein_core::explain::{ChangeKindHoldingUpStop, DecisionFactor};
use checkrein_core::ids::VerifierName;
use checkrein_core::input::{JudgeTriggerOrSkipReason, ModelToolCallVerdict, StancePoint};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact, MiddlewareStage};
use checkrein_core::policy::{Stance, VerifiedNoticeMode};
use checkrein_core::transition::{Reason, Transition};

use crate::locate::CONFIG;
use crate::off;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::{count_with_noun, format_duration};

/// Returns a finding in one line: where, which test, what.
pub(crate) fn check_finding_line(finding: &Finding) -> String {
    let place = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        (None, _) => String::new(),
    };
    // A test is identified by its name. The name of a lint rule is usually in its tool's message
    // already.
    let test = finding.rule.as_ref().filter(|rule| {
        !finding.message.contains(rule.as_str()) && !finding.id.starts_with(&format!("{rule}: "))
    });
    let test = test.map_or(String::new(), |test| format!("{test}: "));
    format!("{place}{test}{}", finding.message)
}

/// Returns why a verdict is inconclusive.
pub(crate) fn inconclusive_cause_text(cause: InconclusiveCause) -> &'static str {
    match cause {
        InconclusiveCause::Timeout => "ran out of time",
        InconclusiveCause::Crash => "crashed",
        InconclusiveCause::MissingProgram => "its program is not installed, or misspelt in run",
        InconclusiveCause::MissingFile => "a file that it judges by is not there",
        InconclusiveCause::VacuousPass => "passed without checking anything",
        InconclusiveCause::TreeMoving => "files kept changing while it ran",
        InconclusiveCause::CheckRestores => "takes files away while it runs and brings them back",
        InconclusiveCause::ReplyDeadline => "cut: the agent's answer was due",
        InconclusiveCause::ClaimedElsewhere => "another process was still running it",
        InconclusiveCause::TreeUnreadable => "the tree could not be read",
        InconclusiveCause::Internal => "could not be run",
        InconclusiveCause::Unanswered => "nobody has answered yet",
        InconclusiveCause::Expired => "nobody answered in time",
        InconclusiveCause::NotAsked => "was not asked",
        InconclusiveCause::ModelUnavailable => "its model did not answer",
        InconclusiveCause::Unreadable => "its model's answer cannot be read",
        InconclusiveCause::InconsistentJudge => "asked twice, it said yes once and no once",
        InconclusiveCause::Masked => "its command hides the exit status of what it runs",
    }
}

/// Returns the note that a config further up does not count, because there is no repo.
pub(crate) fn ignored_parent_config_text(above: &std::path::Path) -> String {
    format!(
        "checkrein: there is no git repository here, so only this folder counts; {} has a {CONFIG}: run it there, or git init",
        above.display()
    )
}

/// Returns a verdict as a verb, with a check as its subject.
pub(crate) fn verdict_text(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "passes",
        Verdict::Fail => "fails",
        Verdict::Inconclusive => "cannot tell",
    }
}

/// Returns a transition in one or two words, as listings show it.
pub(crate) fn transition_reason_text(transition: &Transition) -> String {
    match &transition.detail {
        Some(detail) => format!("{} ({detail})", transition.reason.as_str()),
        None => transition.reason.as_str().to_owned(),
    }
}

/// Returns whether the sentence of an ending says this fact already.
pub(crate) fn is_factor_stated_by_ending(
    because: &DecisionFactor,
    transition: &Transition,
) -> bool {
    fact_explaining_ending_text(std::slice::from_ref(because), transition).is_some()
}

/// Returns the fact that says more about an ending than its reason does.
fn fact_explaining_ending_text(why: &[DecisionFactor], transition: &Transition) -> Option<String> {
    why.iter().find_map(|because| match because {
        // The process's own message may end with a question to the person, which needs no full
        // stop.
        DecisionFactor::Process { what } if transition.reason == Reason::Error => {
            let end = if what.ends_with('?') { "" } else { "." };
            Some(format!("Not done: {what}{end}"))
        }
        DecisionFactor::StanceUsed { why, .. } if transition.reason == Reason::Unverified => {
            Some(format!(
                "Let through unchecked: checkrein {}.",
                off::off_reason_in_recorded_stance(why)?
            ))
        }
        _ => None,
    })
}

/// The prefix of the reason when a program is not there.
pub(crate) const CANNOT_START: &str = "cannot start ";

/// Returns whether the agent's program could not be started.
pub(crate) fn is_agent_start_failure(because: &DecisionFactor) -> bool {
    matches!(because, DecisionFactor::Process { what } if what.starts_with(CANNOT_START))
}

/// Returns whether it was let through because Checkrein was switched off.
pub(crate) fn was_let_through_because_off(because: &DecisionFactor) -> bool {
    matches!(because, DecisionFactor::StanceUsed { why, .. } if off::off_reason_in_recorded_stance(why).is_some())
}

/// Returns what an ending means, in a sentence. `held_up_by` is what kept its stop from being
/// judged, if anything.
pub(crate) fn task_ending_meaning(
    transition: &Transition,
    why: &[DecisionFactor],
    held_up_by: Option<ChangeKindHoldingUpStop>,
) -> String {
    // A specific fact first: "claude: not found" helps more than "the agent's process failed".
    if let Some(told) = fact_explaining_ending_text(why, transition) {
        return told;
    }
    let detail = transition.detail.as_deref().unwrap_or_default();
    match transition.reason {
        Reason::TaskComplete if detail.is_empty() => "Done: the required checks pass on exactly this tree.".to_owned(),
        Reason::TaskComplete => format!("Done, though a limit ({detail}) had ended the work: the required checks pass."),
        Reason::Error => "Not done: the agent's process or API failed.".to_owned(),
        Reason::Unverified => match detail {
            // The detail is the same word in the log, although nothing was written: acts kept
            // coming.
            "tree_moving" if held_up_by == Some(ChangeKindHoldingUpStop::Acts) => {
                "Not judged: tool calls kept coming while the checks ran, and may have changed what they find.".to_owned()
            }
            "tree_moving" => "Not judged: files kept changing while the checks ran.".to_owned(),
            "still_running" => "Not judged: a required check had no result yet.".to_owned(),
            "no_checks" => "Let through unchecked: no verifier is configured.".to_owned(),
            // A tree that is known to fail must not be told like a harmless question.
            "no_change" if why.contains(&DecisionFactor::KnownFailing) => {
                "Let through unchecked: nothing changed since the prompt, and a required check fails on this tree.".to_owned()
            }
            "no_change" => "Let through unchecked: nothing changed since the prompt.".to_owned(),
            // Required verdicts with this detail can only be those of judges, which alone do not
            // make a task complete.
            "advisory_only" if why.iter().any(is_required_verdict) => {
                "Let through without hard evidence: accept is satisfied by judges alone, and their word is not enough.".to_owned()
            }
            "advisory_only" => "Let through unchecked: no verifier is required.".to_owned(),
            _ => "Let through without full evidence: a check, or checkrein itself, could not tell, and the stance allows that.".to_owned(),
        },
        Reason::GaveUp => match detail {
            "continues" => "Not done: the agent was sent back as often as allowed.".to_owned(),
            _ => given_up_reason_text(why),
        },
        Reason::HardCap => format!("Not done: the cap on {} was reached.", detail.replace('_', " ")),
        Reason::DiminishingReturns => match detail {
            "token_budget" => "Not done: nearly all of the token budget is used.".to_owned(),
            _ => "Not done: the last attempts produced hardly anything.".to_owned(),
        },
        Reason::LoopDetected => format!("Not done: the agent was going in circles ({detail})."),
        // A person who did not answer is no broken verifier, so this case is first.
        Reason::VerifierFailedUnrecoverable if why.iter().any(is_approval_timeout) => {
            format!("Not done: nobody answered '{detail}' in time.")
        }
        Reason::VerifierFailedUnrecoverable => format!("Not checkable: verifier '{detail}' can never succeed here."),
        Reason::PermissionDenied => match detail {
            "" => "Not done: the agent stopped after it was refused something.".to_owned(),
            "denied" => "Not done: a person said no to what the agent asked for.".to_owned(),
            "nobody_asked" => "Not done: a person would have to be asked, and the policy asks nobody.".to_owned(),
            verifier => format!("Not done: a person looked at it and said no ({verifier})."),
        },
        Reason::AwaitingHuman => match detail {
            "" => "Waits for a person: the agent asked them about a call, and it did not run.".to_owned(),
            "stance" => "Parked: a person has to decide.".to_owned(),
            "parked" => "Parked: a call waits for a person. checkrein approvals lists it.".to_owned(),
            "expired" => "Parked: nobody answered in time; the agent has to ask again.".to_owned(),
            verifier => format!("Parked: '{verifier}' waits for a person. checkrein approvals lists it."),
        },
        Reason::Truncated => "Not done: the last answer was cut by its output limit.".to_owned(),
        Reason::UserInterrupt => "Interrupted by a person.".to_owned(),
        Reason::Abandoned => match detail {
            "superseded" => "Left behind: a new prompt came first.".to_owned(),
            "day_passed" => "Left behind: nothing happened for a day.".to_owned(),
            _ => "Left behind: the session ended.".to_owned(),
        },
    }
}

/// Returns how often the same failures were met before the task was given up.
fn given_up_reason_text(why: &[DecisionFactor]) -> String {
    let spent = why.iter().find_map(|because| match because {
        DecisionFactor::SameFailures { met, .. } => Some(match met {
            0 | 1 => {
                "Not done: the checks fail, and one attempt is all that is allowed.".to_owned()
            }
            2 => "Not done: the same failures came back.".to_owned(),
            _ => "Not done: the same failures came back again and again.".to_owned(),
        }),
        DecisionFactor::JudgesSpent { seen, .. } => Some(format!(
            "Not done: a judge turned down {}, and may see no more.",
            count_with_noun(*seen, "answer")
        )),
        _ => None,
    });
    spent.unwrap_or_else(|| "Not done: the same failures came back again and again.".to_owned())
}

/// Returns whether it is the verdict of a verifier that `accept` names.
pub(crate) fn is_required_verdict(because: &DecisionFactor) -> bool {
    matches!(because, DecisionFactor::Verdict { required: true, .. })
}

/// Returns whether a person was asked and did not answer in time.
pub(crate) fn is_approval_timeout(because: &DecisionFactor) -> bool {
    matches!(
        because,
        DecisionFactor::ApprovalExpired { .. }
            | DecisionFactor::Verdict {
                cause: Some(InconclusiveCause::Expired),
                ..
            }
    )
}

/// Returns one fact behind a decision about a stop. `held_up_by` is what kept the stop from being
/// judged, if anything.
pub(crate) fn stop_decision_factor_text(
    because: &DecisionFactor,
    held_up_by: Option<ChangeKindHoldingUpStop>,
) -> String {
    match because {
        DecisionFactor::TreeMoved if held_up_by == Some(ChangeKindHoldingUpStop::Acts) => {
            "a tool call came while it was judged, so it was judged anew".to_owned()
        }
        // The verdict's cause says that the tree moved; the log says that a tool call did it.
        DecisionFactor::Verdict {
            verifier,
            verdict,
            cause: Some(InconclusiveCause::TreeMoving),
            ..
        } if held_up_by == Some(ChangeKindHoldingUpStop::Acts) => {
            let verdict = self::verdict_text(*verdict);
            format!("{verifier} {verdict} (a tool call came while it was judged)")
        }
        other => self::decision_factor_text(other),
    }
}

/// Returns one fact behind a decision.
pub(crate) fn decision_factor_text(because: &DecisionFactor) -> String {
    match because {
        DecisionFactor::Halted => "the task had already ended".to_owned(),
        DecisionFactor::Cap {
            cap: CapKind::Cost,
            used,
            limit,
        } => format!("{} of {} spent", format_dollars(*used), format_dollars(*limit)),
        DecisionFactor::Cap { cap, used, limit } => format!(
            "{} of {limit} {} used",
            used,
            cap.as_str().replace('_', " ")
        ),
        DecisionFactor::Detector { detector, count } => {
            format!("{detector} saw the pattern {}", count_with_noun(*count, "time"))
        }
        DecisionFactor::Layer(fact) => middleware_answer_text(fact),
        DecisionFactor::LayerPassedOver => {
            "a layer of middleware could not judge something in this task, and its stance allowed that"
                .to_owned()
        }
        DecisionFactor::Patch { reason } => {
            format!("the patch: {}", reason.lines().next().unwrap_or_default())
        }
        DecisionFactor::Rule { reason } => format!("exec policy: {reason}"),
        DecisionFactor::NobodyAsked => "the policy asks nobody (approval = \"never\")".to_owned(),
        DecisionFactor::Approved {
            approval,
            by,
            reason,
        } => {
            let why = reason.as_deref().map(|why| format!(": {why}"));
            format!("{approval} was approved by {by}{}", why.unwrap_or_default())
        }
        DecisionFactor::Denied { approval, .. } => format!("a person said no to {approval}"),
        DecisionFactor::Parked { approval, .. } => format!("{approval} waits for a person"),
        DecisionFactor::ApprovalExpired { approval } => format!("nobody answered {approval} in time"),
        DecisionFactor::Unresolved { what } => format!("could not be read for sure: {}", what.join("; ")),
        DecisionFactor::NoChange => "the tree is as it was at the prompt".to_owned(),
        DecisionFactor::OnlyRead => {
            "the tree at the prompt is not known, and no call since could change a file".to_owned()
        }
        DecisionFactor::KnownFailing => "the newest verdict on this tree is a fail".to_owned(),
        DecisionFactor::NoChecks => "no verifier is configured".to_owned(),
        DecisionFactor::Verdict {
            verifier,
            verdict,
            cause: why,
            findings,
            cached,
            required,
            by_stance,
        } => {
            let mut words = format!("{verifier} {}", self::verdict_text(*verdict));
            if let Some(why) = why {
                words = format!("{words} ({})", inconclusive_cause_text(*why));
            }
            if *findings > 0 {
                words = format!("{words}, {}", count_with_noun(*findings, "finding"));
            }
            if *cached {
                words.push_str(", as found before on this tree");
            }
            if !*required {
                words.push_str(", advisory");
            }
            if *by_stance {
                words.push_str(", counted by its stance");
            }
            words
        }
        DecisionFactor::Veto {
            says,
            reason,
            confidence,
            unsure,
        } => {
            let mut words = format!("the second model {}", describe_veto_model_answer(*says));
            if !reason.is_empty() {
                words = format!("{words}: {reason}");
            }
            if let Some(share) = confidence {
                words = format!(
                    "{words} (confidence {}.{:02})",
                    share / 1000,
                    share % 1000 / 10
                );
            }
            if *unsure {
                words.push_str(", which is too little to count");
            }
            words
        }
        DecisionFactor::Progress { score, reason } => match score {
            Some(score) => format!(
                "the steps before it brought {}.{:02}: {reason}",
                score / 1000,
                score % 1000 / 10
            ),
            None => format!("how the steps before it went is not known: {reason}"),
        },
        DecisionFactor::Stalled { window } => {
            format!(
                "{} in a row brought little, and the agent was told",
                count_with_noun(*window, "step")
            )
        }
        DecisionFactor::NotAsked { verifier, trigger: calling } => {
            format!("{verifier} was not asked: {}", judge_not_asked_text(*calling))
        }
        DecisionFactor::Shadow {
            verifier,
            sends_back: true,
        } => format!("{verifier} is in shadow; it would have sent the agent back"),
        DecisionFactor::Shadow { verifier, .. } => {
            format!("{verifier} is in shadow; it would have let the answer stand")
        }
        DecisionFactor::JudgesSpent { seen, attempts } => format!(
            "judges have seen {}; {attempts} are allowed",
            count_with_noun(*seen, "answer")
        ),
        DecisionFactor::TreeUnknown { why } => format!("the tree could not be read: {why}"),
        DecisionFactor::TreeMoved => {
            "the tree moved while it was judged, so it was judged anew".to_owned()
        }
        DecisionFactor::SameFailures { met, attempts } => {
            format!(
                "the same failures were met {}; {attempts} are allowed",
                count_with_noun(*met, "time")
            )
        }
        DecisionFactor::Continues { given, limit } => {
            format!("sent back {}; {limit} are allowed", count_with_noun(*given, "time"))
        }
        DecisionFactor::TokenBudget { used, threshold: line } => {
            format!("{used} output tokens used; the line is at {line}")
        }
        DecisionFactor::Diminishing { delta, previous } => {
            format!("the last two stops brought {delta} and {previous} tokens")
        }
        DecisionFactor::AlreadyEnded => "the task had ended before; it is not sent back again".to_owned(),
        DecisionFactor::AgentExited => "the agent's own program had ended for good".to_owned(),
        DecisionFactor::Subagent => "a sub-agent's stop: the main stop is verified".to_owned(),
        DecisionFactor::ConfigEdited { paths } => {
            format!("edited while the task was open: {}", paths.join(", "))
        }
        DecisionFactor::Background { count } => match count {
            1 => "1 background task was still running".to_owned(),
            count => format!("{count} background tasks were still running"),
        },
        DecisionFactor::AfterRefusal => "the agent stopped right after a refusal".to_owned(),
        // The text was made for people where the process failed.
        DecisionFactor::Process { what } => what.clone(),
        DecisionFactor::Truncated => "the answer was cut by its output limit".to_owned(),
        DecisionFactor::Interrupted => "a person pressed Ctrl-C".to_owned(),
        DecisionFactor::StanceUsed { stance, why } => stance_action_text(StancePoint::Stop, *stance, why),
    }
}

/// Returns which model was asked, and what that took.
pub(crate) fn judge_usage_text(testimony: &JudgeUsage) -> String {
    let mut words = format!("asked {}", escape_hidden_chars(&testimony.model));
    if testimony.asked > 1 {
        words = format!("{words} {}", count_with_noun(testimony.asked, "time"));
    }
    if let Some(score) = testimony.score {
        words = format!("{words}, score {}.{:03}", score / 1_000, score % 1_000);
        // 0.500 is shown as 0.5, and 1.000 as 1.
        words.truncate(words.trim_end_matches('0').trim_end_matches('.').len());
    }
    let tokens = [(testimony.input, "read"), (testimony.output, "written")];
    for (count, what) in tokens {
        if let Some(count) = count {
            words = format!("{words}, {count} tokens {what}");
        }
    }
    if let Some(cost) = testimony.cost {
        words = format!("{words}, ${}.{:06}", cost / 1_000_000, cost % 1_000_000);
    }
    words
}

/// Returns what a layer of middleware said, and how long that took.
pub(crate) fn middleware_answer_text(fact: &MiddlewareAnswerFact) -> String {
    let MiddlewareAnswerFact { layer, .. } = fact;
    // Before a tool runs, a rewrite is a proposal; after it, the result was replaced.
    let says = match fact.says {
        MiddlewareAnswer::Pass => "passes",
        MiddlewareAnswer::PassedOver => "could not judge it, and its stance allowed that",
        MiddlewareAnswer::Nudge => "advises",
        MiddlewareAnswer::Rewrite if fact.stage == MiddlewareStage::BeforeTool => {
            "would have it otherwise"
        }
        MiddlewareAnswer::Rewrite => "rewrote it",
        MiddlewareAnswer::Ask => "wants a person to be asked",
        MiddlewareAnswer::Deny => "refuses",
        MiddlewareAnswer::Halt => "ends the work",
        MiddlewareAnswer::BlockedByStance => "could not judge it, and its stance blocks",
    };
    let why = match fact.reason.is_empty() {
        true => String::new(),
        false => format!(": {}", fact.reason),
    };
    format!("'{layer}' {says}{why} ({})", format_duration(fact.ms))
}

fn describe_veto_model_answer(says: ModelToolCallVerdict) -> &'static str {
    match says {
        ModelToolCallVerdict::Allow => "allows it",
        ModelToolCallVerdict::Veto => "vetoes it",
        ModelToolCallVerdict::Rewrite => "would have it otherwise",
        ModelToolCallVerdict::NoAnswer => "said nothing that counts",
        ModelToolCallVerdict::LimitReached => "was not asked",
    }
}

fn judge_not_asked_text(calling: JudgeTriggerOrSkipReason) -> &'static str {
    match calling {
        JudgeTriggerOrSkipReason::Keyword
        | JudgeTriggerOrSkipReason::Always
        | JudgeTriggerOrSkipReason::Heartbeat => "it was not needed",
        JudgeTriggerOrSkipReason::Nothing => "nothing in the answer calls for it",
        JudgeTriggerOrSkipReason::OtherSurface => "it does not judge this kind of conversation",
        JudgeTriggerOrSkipReason::CallsPending => "tool calls were pending",
        JudgeTriggerOrSkipReason::Delivered => "a messaging tool had delivered the answer",
        JudgeTriggerOrSkipReason::Streamed => "the answer had been streamed",
        JudgeTriggerOrSkipReason::Empty => "the answer is empty",
        JudgeTriggerOrSkipReason::HeartbeatOff => "it leaves heartbeats alone",
    }
}

/// Returns what Checkrein did when it could not judge.
pub(crate) fn stance_action_text(at: StancePoint, stance: Stance, why: &str) -> String {
    let done = match (at, stance) {
        (StancePoint::Stop, Stance::Allow) => "the stop was let through",
        (StancePoint::Stop, Stance::Ask) => "the stop was let through, parked for a person",
        (StancePoint::Stop, Stance::Block) => "the stop was refused",
        (StancePoint::Tool, Stance::Allow) => "the call was let through",
        (StancePoint::Tool, Stance::Ask) => "a person was asked about the call",
        (StancePoint::Tool, Stance::Block) => "the call was denied",
    };
    match off::off_reason_in_recorded_stance(why) {
        Some(off) => format!("checkrein {off}; {done}"),
        None => format!("checkrein could not judge: {why}; {done}"),
    }
}

/// The line that an ending shows when guarded files were edited during its task.
pub(crate) fn edited_guarded_files_line(paths: &[String], held: bool) -> String {
    let after = if held {
        "The older policy goes on until a person runs: checkrein seal"
    } else {
        "checkrein show tells when"
    };
    format!(
        "checkrein: edited during this task: {}. {after}",
        paths.join(", ")
    )
}

/// Returns what listings and endings say of a session whose config could not be used.
pub(crate) fn unusable_session_config_notice(mistake: &str) -> String {
    format!(
        "the config could not be used when this session began, and the policy that was sealed before goes on: {mistake}"
    )
}

/// Returns the text for when no policy can be sealed at all.
pub(crate) fn no_sealable_policy_text(mistakes: &str) -> String {
    format!(
        "{mistakes}\nThe config cannot be used, and no policy was sealed here before that could go on: until the file is fixed, only calls that read are allowed. A person fixes the file; `checkrein check` says whether it is valid. Or a person switches Checkrein off for a while: checkrein off --for 1h --reason TEXT"
    )
}

/// Returns what an accepted stop shows in the agent's screen, if anything.
pub(crate) fn accepted_stop_notice(
    transition: &Transition,
    why: &[DecisionFactor],
    held_up_by: Option<ChangeKindHoldingUpStop>,
    id: &str,
    verified: VerifiedNoticeMode,
) -> Option<String> {
    match (transition.reason, verified) {
        (Reason::TaskComplete, VerifiedNoticeMode::Silent) => None,
        (Reason::TaskComplete, VerifiedNoticeMode::Line) => Some(verified_checks_line(why, id)),
        _ if did_stop_only_answer_question(transition, why) => None,
        _ => Some(task_ending_line(transition, why, held_up_by, id)),
    }
}

/// Returns whether a stop only answered a question: nothing changed since the prompt, and nothing
/// that is known speaks against the work. A line after each such stop would teach people to
/// overlook the others.
fn did_stop_only_answer_question(transition: &Transition, why: &[DecisionFactor]) -> bool {
    // A verifier in shadow has no say, so its fail does not make a question into unfinished work.
    let in_shadow = |name: &VerifierName| {
        let mut shadows = why.iter();
        shadows
            .any(|because| matches!(because, DecisionFactor::Shadow { verifier, .. } if verifier == name))
    };
    let fails = |because: &DecisionFactor| match because {
        DecisionFactor::Verdict {
            verifier,
            verdict: Verdict::Fail,
            ..
        } => !in_shadow(verifier),
        other => matches!(
            other,
            DecisionFactor::KnownFailing | DecisionFactor::LayerPassedOver
        ),
    };
    let no_change = transition.detail.as_deref() == Some("no_change");
    transition.reason == Reason::Unverified && no_change && !why.iter().any(fails)
}

/// Returns the line that names the required checks that pass.
fn verified_checks_line(why: &[DecisionFactor], id: &str) -> String {
    let passing = why.iter().filter_map(|because| match because {
        DecisionFactor::Verdict {
            verifier,
            verdict: Verdict::Pass,
            required: true,
            ..
        } => Some(verifier.as_str()),
        _ => None,
    });
    // Advisory checks are left out: the line says what the acceptance rests on.
    let names: Vec<&str> = passing.collect();
    let pass = if names.len() == 1 { "passes" } else { "pass" };
    format!(
        "checkrein: verified: {} {pass}. Details: checkrein show {id}",
        names.join(", ")
    )
}

/// Returns the line that says how a task ended, and where its reasons are.
pub(crate) fn task_ending_line(
    transition: &Transition,
    why: &[DecisionFactor],
    held_up_by: Option<ChangeKindHoldingUpStop>,
    id: &str,
) -> String {
    format!(
        "checkrein: {}. {} Why: checkrein show {id} --why",
        self::transition_reason_text(transition),
        task_ending_meaning(transition, why, held_up_by)
    )
}

/// Formats millionths of a dollar for a person.
pub(crate) fn format_dollars(millionths: u64) -> String {
    // Rounded up: what was spent must not look smaller than it is. Less than a cent is shown
    // exactly.
    let cents = millionths.div_ceil(10_000);
    match millionths {
        0..10_000 => format!("${}.{:06}", millionths / 1_000_000, millionths % 1_000_000),
        _ => format!("${}.{:02}", cents / 100, cents % 100),
    }
}

/// Returns the note about files that are too large to be read.
pub(crate) fn large_files_text(names: &[String]) -> String {
    format!(
        "checkrein: larger than 512 MiB, so compared by size and times instead of content: {}",
        first_three_names(names)
    )
}

/// Returns the first of these names, and how many more there are.
pub(crate) fn first_three_names(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}
