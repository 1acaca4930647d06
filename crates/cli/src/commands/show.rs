//! `checkrein show`: one task as a story, or the reasons for its ending in a few lines.

use std::process::ExitCode;

use checkrein_core::event::Event;
use checkrein_core::evidence::Verdict;
use checkrein_core::explain::{ChangeKindHoldingUpStop, DecisionFactor};
use checkrein_core::ids::EventSeq;
use checkrein_core::input::Input;
use checkrein_core::transition::{Reason, Transition};
use checkrein_store::{SqliteStore, Store as _, TaskRow};
use serde_json::json;

use crate::args::ShowArgs;
use crate::commands::{check, check_runs, hook, lookup, middleware_layers, sessions};
use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::listing::ListedTask;
use crate::ui::style::{count_with_noun, format_duration, format_local_time_of_day, reason_paint};
use crate::ui::timeline::{self, EventTimelineRenderer};
use crate::{exit_code, locate, off, ui};

/// Findings of a check that are shown.
const SHOWN_FINDINGS: usize = 5;

pub(crate) fn run_show_command(args: &ShowArgs) -> Result<ExitCode, CommandError> {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let store = SqliteStore::open_store_read_only(&located.place.state)?;
    let row = lookup::find_task(&store, args.id.as_deref())?;
    let Some(one) = sessions::fill_task_rows_from_session_logs(&store, vec![row])?.pop() else {
        return Ok(exit_code::to_exit_code(exit_code::YES));
    };
    let row = &one.row;
    let events = lookup::task_events(&store, &row.session, row.task)?;
    let ending = lookup::ending_of_task_row(row);
    // Everything that puts the story in doubt is said before it.
    if let Some(off) = off::active_off_period(&located.place.state) {
        ui::print_wrapped_to_stderr(&off.off_summary_line());
    }
    if located.place.are_tracked_files_unknown(&row.session) {
        ui::print_wrapped_to_stderr(
            "the git index could not be read when this session's newest task began: nothing passes until it can be, because changes to tracked files that match an ignore rule are not seen",
        );
    }
    if let Some(at) = one.broken_at {
        ui::print_wrapped_to_stderr(&format!(
            "The log of this session is damaged at event {at}: what is told of it may be wrong."
        ));
    }
    if let Some(mistake) = &one.config_error {
        ui::print_wrapped_to_stderr(&explanations::unusable_session_config_notice(mistake));
    }
    if args.json {
        let mut document = task_detail_json(&one, &events);
        if let Some(object) = document.as_object_mut() {
            let rows = events
                .iter()
                .map(|(seq, event)| json!({ "seq": seq, "kind": event.log_event_kind(), "event": event }));
            let rows: Vec<serde_json::Value> = rows.collect();
            object.insert("events".to_owned(), json!(rows));
            object.insert(
                "layers".to_owned(),
                middleware_layers::middleware_answers_json(&events),
            );
        }
        ui::print_json(&document);
    } else if args.why {
        for line in ending_explanation_lines(row, ending.as_ref(), &events) {
            ui::print_output_wrapped(line.into_single_line(), 2);
        }
        for line in check_runs::stop_check_summary_lines(&store, row)? {
            ui::print_output_wrapped(&line, 4);
        }
        if let Some(line) = check_runs::excluded_files_line(&located.place, &store, row) {
            ui::print_output_wrapped(&line, 2);
        }
        for line in middleware_layers::middleware_answer_lines(&events) {
            ui::print_output_wrapped(&line, 6);
        }
    } else {
        print_task_timeline(&store, &one, ending.as_ref(), &events);
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Returns a task as one document, without its events.
pub(super) fn task_detail_json(
    one: &ListedTask,
    events: &[(EventSeq, Event)],
) -> serde_json::Value {
    let mut document = sessions::task_json(one);
    if let Some(object) = document.as_object_mut() {
        object.insert("schema".to_owned(), json!("checkrein/show/1"));
        object.insert(
            "why".to_owned(),
            json!(lookup::find_task_ending_decision(events).map(|made| &made.why)),
        );
    }
    document
}

fn print_task_timeline(
    store: &SqliteStore,
    one: &ListedTask,
    ending: Option<&Transition>,
    events: &[(EventSeq, Event)],
) {
    let row = &one.row;
    // The id in the title is one that `show` takes again.
    let title = format!(
        "task {} · {} · {} · {}",
        lookup::short_task_id(&row.session, row.task),
        row.agent,
        format_local_time_of_day(row.opened_at, checkrein_runtime::now_millis()),
        row.root
    );
    timeline::format_timeline_title(&title)
        .into_iter()
        .for_each(ui::print_line_to_stdout);
    let mut timeline = EventTimelineRenderer::new(false);
    for (_, event) in events {
        timeline
            .timeline_lines_of_event(event)
            .into_iter()
            .for_each(ui::print_line_to_stdout);
        for line in failed_evidence_lines(store, event) {
            timeline::wrap_event_detail_text(&line)
                .into_iter()
                .for_each(ui::print_line_to_stdout);
        }
    }
    if let Some(words) = unaccepted_last_agent_message(ending, events) {
        ui::print_output_wrapped(&format!("last words: {words}"), 2);
    }
    for line in ending_explanation_lines(row, ending, events) {
        ui::print_output_wrapped(line.into_single_line(), 2);
    }
}

/// Returns the complaints of a check that did not pass.
fn failed_evidence_lines(store: &SqliteStore, event: &Event) -> Vec<String> {
    let Event::Input(stamped) = event else {
        return Vec::new();
    };
    let Input::EvidenceArrived(arrived) = &stamped.input else {
        return Vec::new();
    };
    let kept = store.read_evidence(&arrived.evidence.key).ok().flatten();
    let Some(found) = kept.and_then(|kept| checkrein_runtime::decode_evidence(&kept.bytes)) else {
        return Vec::new();
    };
    let asked = found
        .judge_usage
        .as_ref()
        .map(explanations::judge_usage_text);
    // Of a check that passed only the judge's usage is worth a line.
    if arrived.evidence.verdict == Verdict::Pass {
        return asked.into_iter().collect();
    }
    let mut lines: Vec<String> = found
        .findings
        .iter()
        .take(SHOWN_FINDINGS)
        .map(|finding| {
            // A judge's finding without a file is known by its category.
            let category = match found.judge_usage {
                Some(_) if finding.file.is_none() => format!("{}: ", finding.id),
                _ => String::new(),
            };
            timeline::truncate_to_one_line(&format!(
                "{category}{}",
                explanations::check_finding_line(finding)
            ))
        })
        .collect();
    lines.extend(check::changing_files_hint_lines(&found));
    let more = (found.findings_total as usize).saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    // Without findings the end of the output is the best there is.
    let last = last_nonblank_line(&found.excerpt).or(found.note.as_deref());
    if let (true, Some(last)) = (lines.is_empty(), last) {
        lines.push(timeline::truncate_to_one_line(last));
    }
    lines.extend(found.log.map(|log| format!("full output: {log}")));
    lines.extend(asked);
    lines
}

fn last_nonblank_line(text: &str) -> Option<&str> {
    text.lines().rev().find(|line| !line.trim().is_empty())
}

/// Returns the agent's last message if it was not accepted as done.
fn unaccepted_last_agent_message(
    ending: Option<&Transition>,
    events: &[(EventSeq, Event)],
) -> Option<String> {
    if ending?.reason == Reason::TaskComplete {
        return None;
    }
    events.iter().rev().find_map(|(_, event)| match event {
        Event::Input(stamped) => match &stamped.input {
            Input::StopRequested(stop) if !stop.message.trim().is_empty() => {
                Some(timeline::truncate_to_one_line(&stop.message))
            }
            _ => None,
        },
        _ => None,
    })
}

/// Returns at most five lines: the ending, the facts behind it, what it took, what to do.
pub(super) fn ending_explanation_lines(
    row: &TaskRow,
    ending: Option<&Transition>,
    events: &[(EventSeq, Event)],
) -> Vec<StyledLine> {
    let Some(ending) = ending else {
        return vec![StyledLine::from(
            "still open: no stop has been answered for good",
        )];
    };
    let behind = lookup::task_end_reasons(events);
    let held_up_by = lookup::change_holding_up_stop(events);
    let head = StyledLine::line_from_styled_text(
        reason_paint(ending.reason),
        &explanations::transition_reason_text(ending),
    );
    let mut lines =
        vec![
            head.with_plain_suffix(": ")
                .with_plain_suffix(&explanations::task_ending_meaning(
                    ending, behind, held_up_by,
                )),
        ];
    // Facts that the ending states itself are not repeated.
    let facts: Vec<String> = behind
        .iter()
        .filter(|because| !explanations::is_factor_stated_by_ending(because, ending))
        .map(|because| explanations::stop_decision_factor_text(because, held_up_by))
        .collect();
    if !facts.is_empty() {
        lines.push(StyledLine::from(&format!("because: {}", facts.join("; "))));
    }
    let took = row.ended_at.map_or_else(String::new, |ended| {
        format!(" in {}", format_duration(ended.millis_since(row.opened_at)))
    });
    lines.push(StyledLine::from(&format!(
        "after: {}, sent back {}, {}{took}",
        count_with_noun(row.stops, "stop"),
        count_with_noun(row.continues, "time"),
        count_with_noun(row.tool_calls, "tool call"),
    )));
    if let Some(native) = &ending.native_reason {
        lines.push(StyledLine::from(&format!("the agent calls it: {native}")));
    }
    let by_run = was_task_begun_by_run_command(row, events);
    if let Some(next) = next_step_advice(ending, behind, held_up_by, by_run) {
        lines.push(StyledLine::from(&format!("next: {next}")));
    }
    lines
}

/// Returns whether `run` began the task: there is no prompt then, and going on means running it
/// again.
fn was_task_begun_by_run_command(row: &TaskRow, events: &[(EventSeq, Event)]) -> bool {
    row.agent.as_str() == "run"
        || events.iter().any(
            |(_, event)| matches!(event, Event::Input(stamped) if stamped.source.as_str() == hook::RUN_SOURCE),
        )
}

fn next_step_advice(
    ending: &Transition,
    why: &[DecisionFactor],
    held_up_by: Option<ChangeKindHoldingUpStop>,
    by_run: bool,
) -> Option<String> {
    let detail = ending.detail.as_deref().unwrap_or_default();
    Some(match ending.reason {
        Reason::TaskComplete | Reason::Abandoned | Reason::UserInterrupt => return None,
        Reason::Error if why.iter().any(explanations::is_agent_start_failure) => {
            "put it on PATH, or write its path; run it again".to_owned()
        }
        Reason::Error => "look at the agent's own output; run it again".to_owned(),
        Reason::Unverified => match detail {
            // Tool calls held this stop up and no files, so there is nothing to name under outputs.
            "tree_moving" if held_up_by == Some(ChangeKindHoldingUpStop::Acts) => {
                "wait for the sub-agents that are still at work; then checkrein check".to_owned()
            }
            "tree_moving" => {
                "end what writes there, or name its files under outputs of the verifier; then checkrein check"
                    .to_owned()
            }
            "no_checks" => "write a [[verifier]] into checkrein.toml".to_owned(),
            "no_change" => return None,
            "advisory_only" if why.iter().any(explanations::is_required_verdict) => {
                "let accept name a check beside the judges".to_owned()
            }
            "advisory_only" => {
                "let accept name a check, or take its advisory = true out".to_owned()
            }
            _ if why.iter().any(explanations::was_let_through_because_off) => "checkrein on".to_owned(),
            _ => "checkrein check runs the checks now".to_owned(),
        },
        Reason::GaveUp if by_run => {
            "checkrein check shows what still fails; run it again".to_owned()
        }
        Reason::GaveUp => {
            "checkrein check shows what still fails; a new prompt starts a new task".to_owned()
        }
        Reason::HardCap => {
            // The detail names the cap in the log's words; the config has other keys for some.
            let key = match detail {
                "iterations" => "max_iterations",
                "tokens" => "token_budget",
                "cost" => "cost_usd",
                other => other,
            };
            format!(
                "if the work was worth it, raise caps.{key} in checkrein.toml, or the goal's budget"
            )
        }
        Reason::DiminishingReturns => "split the task, or raise caps.token_budget".to_owned(),
        Reason::LoopDetected => format!(
            "checkrein show tells which call was repeated; say in the next {} what to do instead",
            if by_run { "task" } else { "prompt" }
        ),
        Reason::VerifierFailedUnrecoverable if why.iter().any(explanations::is_approval_timeout) => {
            "go on with it, and a person is asked anew".to_owned()
        }
        Reason::VerifierFailedUnrecoverable => {
            format!("install what verifier '{detail}' needs, or mark it advisory")
        }
        Reason::PermissionDenied if detail.is_empty() || detail == "nobody_asked" => {
            "allow the command in the rules, or tell the agent another way".to_owned()
        }
        Reason::PermissionDenied => "tell the agent what to do instead".to_owned(),
        Reason::AwaitingHuman if by_run => {
            "checkrein approvals; answer what waits, then run it again".to_owned()
        }
        Reason::AwaitingHuman => {
            "checkrein approvals; answer what waits, then prompt again".to_owned()
        }
        Reason::Truncated => "ask for smaller steps, or raise the model's output limit".to_owned(),
    })
}
