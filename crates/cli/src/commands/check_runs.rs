//! Says why each check was run, or not, at each judged stop of a task, and which files do not count
//! for the tree.

use std::time::Duration;

use checkrein_core::event::{self, Event};
use checkrein_core::evidence::Evidence;
use checkrein_core::explain::{
    self, CheckOutcomeAtStop, CheckResultNotReusedReason, CheckRunOrSkipReason, StopCheckRuns,
};
use checkrein_core::ids::EventSeq;
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_runtime::TreeAndStateFolder;
use checkrein_store::{SqliteStore, Store as _, TaskRow};

use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::printable::escape_to_one_line;
use crate::ui::style::count_with_noun;
use crate::ui::timeline;

/// How long reading the tree may take to count the files left out of it.
const COUNT_LIMIT: Duration = Duration::from_secs(2);

/// Returns a line for each stop at which checks were judged.
pub(super) fn stop_check_summary_lines(
    store: &SqliteStore,
    row: &TaskRow,
) -> Result<Vec<String>, CommandError> {
    let events = session_events(store, row)?;
    // Each stop is explained by the policy it was judged with, which a seal may have changed.
    let policy = |digest: &_| Policy::from_sealed_policy_blob(&store.read_blob(digest).ok()??).ok();
    let placed = events.iter().map(|(seq, event)| (*seq, event));
    let stops = explain::list_check_runs_of_each_stop(placed, &policy);
    let judged = stops
        .iter()
        .filter(|stop| stop.task == row.task && !stop.checks.is_empty());
    let mut lines: Vec<String> = judged
        .map(|stop| {
            let checks = stop.checks.iter();
            let checks: Vec<String> = checks
                .map(|check| check_run_or_skip_reason_text(store, &events, stop, check))
                .collect();
            escape_to_one_line(&format!(
                "  {}: {}",
                stop_number_label(stop),
                checks.join("; ")
            ))
        })
        .collect();
    if !lines.is_empty() {
        lines.insert(0, "checks:".to_owned());
    }
    Ok(lines)
}

/// Returns all events of the session that this build can read.
fn session_events(
    store: &SqliteStore,
    row: &TaskRow,
) -> Result<Vec<(EventSeq, Event)>, CommandError> {
    // From the beginning: a check may have been run for an earlier task of the session.
    let rows = store.events_after(&row.session, EventSeq(0))?;
    let events = rows
        .iter()
        .filter_map(|raw| Some((raw.seq, event::decode_event(&raw.payload).ok()?)));
    Ok(events.collect())
}

/// Returns the line on files that do not count for the tree as it is now, under the policy of this
/// task.
pub(super) fn excluded_files_line(
    place: &TreeAndStateFolder,
    store: &SqliteStore,
    row: &TaskRow,
) -> Option<String> {
    // A task of another checkout would be explained with the files of this one.
    if place.root.to_string_lossy() != row.root.as_str() {
        return None;
    }
    let blob = store.read_blob(&row.policy).ok().flatten()?;
    let policy = Policy::from_sealed_policy_blob(&blob).ok()?;
    let Some(left_out) = place.excluded_file_counts(&row.session, &policy, COUNT_LIMIT) else {
        return Some("left out of the tree: it could not be counted in 2 s".to_owned());
    };
    let parts = [
        (
            left_out.ignored,
            "ignored file or folder",
            "ignored files and folders",
        ),
        (left_out.caches, "cache folder", "cache folders"),
        (
            left_out.outputs,
            "file that outputs name",
            "files that outputs name",
        ),
    ];
    let parts = parts.iter().filter(|(count, ..)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, one, many)| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        })
        .collect();
    let said = match parts.is_empty() {
        true => "nothing".to_owned(),
        false => parts.join(", "),
    };
    Some(format!("left out of the tree, as it is now: {said}"))
}

fn stop_number_label(stop: &StopCheckRuns) -> String {
    match stop.scope.is_main_scope() {
        true => format!("stop {}", stop.number),
        false => format!("stop {} of sub-agent {}", stop.number, stop.scope),
    }
}

fn check_run_or_skip_reason_text(
    store: &SqliteStore,
    events: &[(EventSeq, Event)],
    stop: &StopCheckRuns,
    check: &CheckOutcomeAtStop,
) -> String {
    let name = &check.verifier;
    match &check.outcome {
        CheckRunOrSkipReason::Ran(reasons) => {
            let again = match reasons.first() {
                Some(CheckResultNotReusedReason::First | CheckResultNotReusedReason::EachStop) => {
                    ""
                }
                Some(CheckResultNotReusedReason::RerunAtSameStop) => " once more",
                _ => " again",
            };
            // The word `again` says this reason already.
            let said = reasons
                .iter()
                .filter(|reason| **reason != CheckResultNotReusedReason::RerunAtSameStop);
            let mut said: Vec<String> = said
                .map(|reason| describe_why_check_ran(events, reason))
                .collect();
            said.extend(check_run_remarks(store, check));
            format!("{name} was run{again}: {}", said.join(", "))
        }
        CheckRunOrSkipReason::StillValid { task, number } => {
            let since = match *task == stop.task {
                true => format!("stop {number}"),
                false => format!("stop {number} of task {task}"),
            };
            format!("{name} was not run again: nothing that it judges changed since {since}")
        }
        CheckRunOrSkipReason::FoundElsewhere => format!(
            "{name} was not run: another session or process had run it on the same files, and no tool call came since"
        ),
        CheckRunOrSkipReason::RunningElsewhere => {
            format!("{name} was not run: another process was still running it")
        }
        CheckRunOrSkipReason::TreeUnreadable => {
            format!("{name} was not run: the files that it judges could not be read")
        }
    }
}

fn describe_why_check_ran(
    events: &[(EventSeq, Event)],
    reason: &CheckResultNotReusedReason,
) -> String {
    let words = match reason {
        CheckResultNotReusedReason::First => "first run in this session",
        CheckResultNotReusedReason::RerunAtSameStop => "once more at this stop",
        CheckResultNotReusedReason::PolicySealed => "another policy was sealed",
        CheckResultNotReusedReason::FilesChanged => "files changed",
        CheckResultNotReusedReason::EnvironmentChanged => {
            "what it runs with changed (programs, variables or packages)"
        }
        CheckResultNotReusedReason::Act { request } => {
            let call = request.and_then(|request| tool_call_text(events, request));
            return match call {
                Some(call) => format!("a tool call came since ({call})"),
                None => "a tool call of another session came since".to_owned(),
            };
        }
        CheckResultNotReusedReason::AnswerChanged => "the answer is another",
        CheckResultNotReusedReason::EachStop => "it is asked at each stop",
        CheckResultNotReusedReason::TooOld => "its newest run was older than 15 minutes",
        CheckResultNotReusedReason::FailedBefore => {
            "its newest run did not pass, in an earlier task"
        }
        CheckResultNotReusedReason::LastAttempt => {
            "the task would have been given up for what it found before"
        }
        CheckResultNotReusedReason::NewerRun => {
            "a newer run of it had been kept by another session"
        }
        CheckResultNotReusedReason::CutShort => "its newest run was cut, since the answer was due",
        CheckResultNotReusedReason::ResultLost => "the process that ran it ended without a result",
        CheckResultNotReusedReason::FilesMoved => "files changed while it ran the last time",
        CheckResultNotReusedReason::ProgramMissing => "its program was missing the last time",
        CheckResultNotReusedReason::Unknown => "the log does not say why",
    };
    words.to_owned()
}

/// Returns the tool call that was asked for here, as a person would say it.
fn tool_call_text(events: &[(EventSeq, Event)], request: EventSeq) -> Option<String> {
    let (_, event) = events.iter().find(|(seq, _)| *seq == request)?;
    match event {
        Event::Input(stamped) => match &stamped.input {
            Input::ToolRequested(request) => {
                let args = timeline::truncate_to_one_line(&timeline::main_argument(&request.args));
                Some(format!("{} {args}", request.tool))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns how a check was run, if that is worth mentioning.
fn check_run_remarks(store: &SqliteStore, check: &CheckOutcomeAtStop) -> Vec<String> {
    let evidence = check.evidence.and_then(|key| {
        let kept = store.read_evidence(&key).ok()??;
        checkrein_runtime::decode_evidence(&kept.bytes)
    });
    let Some(evidence) = evidence else {
        return Vec::new();
    };
    let Evidence {
        tries,
        alone,
        check_writes,
        moved,
        ..
    } = &evidence;
    let mut how = Vec::new();
    if *tries > 1 {
        how.push(format!("tried {}", count_with_noun(*tries, "time")));
    }
    if !moved.is_empty() {
        how.push(format!(
            "files changed while it ran: {}",
            explanations::first_three_names(moved)
        ));
    }
    // Both run alone. That the check writes into its own inputs is the cause, so it is said first.
    if *check_writes {
        how.push("it writes into what it judges, so it ran alone".to_owned());
    } else if *alone {
        how.push("files had changed while it ran beside others, so it ran alone".to_owned());
    }
    how
}
