//! `checkrein sessions`: lists tasks, newest first.

use std::collections::BTreeMap;
use std::process::ExitCode;

use checkrein_core::ids::{EventSeq, SessionId, TaskId, UnixMillis};
use checkrein_core::policy::Policy;
use checkrein_core::transition::Reason;
use checkrein_runtime::config::ConfigDuration;
use checkrein_store::{SqliteStore, Store as _, StoreError, TaskRow};
use serde_json::json;

use crate::args::SessionsArgs;
use crate::commands::lookup;
use crate::ui::errors::CommandError;
use crate::ui::listing::{self, ListedTask};
use crate::ui::printable::escape_hidden_chars;
use crate::{exit_code, locate, off, ui};

/// Tasks that a person is shown.
const SHOWN: usize = 40;

pub(crate) fn run_sessions_command(args: &SessionsArgs) -> Result<ExitCode, CommandError> {
    let wanted = task_filter(args)?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let store = match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => Some(store),
        Err(StoreError::Missing { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let rows = match &store {
        Some(store) => store.newest_task_summaries(None, usize::MAX)?,
        None => Vec::new(),
    };
    if let Some(off) = off::active_off_period(&located.place.state) {
        ui::print_wrapped_to_stderr(&off.off_summary_line());
    }
    let none_at_all = rows.is_empty();
    // A person gets a page, a program gets everything.
    let limit = if args.json { usize::MAX } else { SHOWN };
    let mut fitting = rows.into_iter().filter(|row| wanted(row));
    let rows: Vec<TaskRow> = fitting.by_ref().take(limit).collect();
    // The filter goes on where the page ended.
    let more = fitting.count();
    let listed = match &store {
        Some(store) => fill_task_rows_from_session_logs(store, rows)?,
        None => Vec::new(),
    };
    // Their rows are missing above, and a list that is silently short would mislead.
    let damaged = match &store {
        Some(store) => store.sessions_with_unreadable_tasks()?,
        None => Vec::new(),
    };
    for session in &damaged {
        ui::print_wrapped_to_stderr(&format!(
            "The record of session {} is damaged: not all of its tasks are listed.",
            escape_hidden_chars(session.as_str())
        ));
    }
    if args.json {
        for one in &listed {
            ui::print_json(&task_json(one));
        }
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    if none_at_all {
        ui::print_wrapped_to_stderr(
            "No task is recorded for this repo yet. Start your agent here, or: checkrein run -- CMD",
        );
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    if listed.is_empty() {
        ui::print_wrapped_to_stderr("No task fits. All of them: checkrein sessions");
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let width = ui::stdout_width();
    for line in listing::format_task_table_lines(&listed, width, checkrein_runtime::now_millis()) {
        ui::print_line_to_stdout(line);
    }
    if width.is_some() {
        ui::print_wrapped_to_stderr(listing::task_ending_marks_legend());
    }
    if more > 0 {
        ui::print_wrapped_to_stderr(&format!(
            "{more} older ones are not shown; all of them: checkrein sessions --json"
        ));
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Returns a filter for the tasks that were asked for.
fn task_filter(args: &SessionsArgs) -> Result<impl Fn(&TaskRow) -> bool + use<>, CommandError> {
    let reason = args.reason.clone();
    if let Some(word) = reason.as_deref() {
        let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        if word != "open" && !known.contains(&word) {
            return Err(CommandError::usage_error(
                format!("'{word}' is no reason for an ending"),
                format!("known: open, {}", known.join(", ")),
            ));
        }
    }
    let since = match args.since.as_deref() {
        None => UnixMillis(0),
        Some(text) => match ConfigDuration::parse_time_span(text) {
            Some(span) => UnixMillis(checkrein_runtime::now_millis().0.saturating_sub(span.ms)),
            None => {
                return Err(CommandError::usage_error(
                    format!("--since takes a span of time, not '{text}'"),
                    "for instance --since 2h, --since 7d",
                ));
            }
        },
    };
    let agent = args.agent.clone();
    Ok(move |row: &TaskRow| {
        agent
            .as_deref()
            .is_none_or(|agent| row.agent.as_str() == agent)
            && reason
                .as_deref()
                .is_none_or(|reason| row.reason.as_deref().unwrap_or("open") == reason)
            // An open task has no end yet and counts as recent.
            && row.ended_at.unwrap_or(UnixMillis(u64::MAX)) >= since
    })
}

/// Adds what the rows do not hold; each session's log is read once.
pub(crate) fn fill_task_rows_from_session_logs(
    store: &SqliteStore,
    rows: Vec<TaskRow>,
) -> Result<Vec<ListedTask>, CommandError> {
    type TaskPromptsAndLogDamage = (BTreeMap<TaskId, String>, Option<EventSeq>);
    let mut seen: BTreeMap<SessionId, TaskPromptsAndLogDamage> = BTreeMap::new();
    let mut listed = Vec::with_capacity(rows.len());
    for row in rows {
        if !seen.contains_key(&row.session) {
            let log = (
                lookup::logged_task_prompts(store, &row.session)?,
                lookup::find_log_damage(store, &row.session)?,
            );
            seen.insert(row.session.clone(), log);
        }
        let (prompts, broken_at) = seen.get(&row.session).cloned().unwrap_or_default();
        let prompt = prompts
            .get(&row.task)
            .filter(|text| !text.trim().is_empty());
        listed.push(ListedTask {
            text: row.goal.clone().or_else(|| prompt.cloned()),
            broken_at,
            config_error: config_error_behind_fallback(store, &row),
            row,
        });
    }
    Ok(listed)
}

/// Returns the mistake in the config because of which this task goes on with another policy.
fn config_error_behind_fallback(store: &SqliteStore, row: &TaskRow) -> Option<String> {
    let blob = store.read_blob(&row.policy).ok().flatten()?;
    Policy::from_sealed_policy_blob(&blob).ok()?.config_error
}

/// Returns a task as JSON.
pub(crate) fn task_json(one: &ListedTask) -> serde_json::Value {
    let row = &one.row;
    // Null while the task is open, and false for every ending but `task_complete`.
    let verified = row
        .reason
        .as_deref()
        .map(|reason| reason == Reason::TaskComplete.as_str());
    let transition = lookup::ending_of_task_row(row).map(|ended| {
        json!({ "reason": ended.reason, "detail": ended.detail, "native_reason": ended.native_reason })
    });
    let mut document = json!({
        "schema": "checkrein/task/1",
        "session": row.session,
        "task": row.task,
        "agent": row.agent,
        "level": row.level,
        "root": row.root,
        "goal": row.goal,
        "text": one.text,
        "verified": verified,
        "log_broken_at": one.broken_at,
        "opened_at": row.opened_at,
        "ended_at": row.ended_at,
        "stops": row.stops,
        "continues": row.continues,
        "tool_calls": row.tool_calls,
        "rounds": row.rounds,
        "output_tokens": row.output_tokens,
        "policy": row.policy,
        "transition": transition,
    });
    if let (Some(mistake), Some(object)) = (&one.config_error, document.as_object_mut()) {
        object.insert("config_error".to_owned(), json!(mistake));
    }
    document
}
