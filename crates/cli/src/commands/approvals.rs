//! `checkrein approvals`: lists the questions that wait for a person, and those that were answered.

use std::process::ExitCode;

use checkrein_core::ids::UnixMillis;
use checkrein_store::{
    ApprovalStatus, ApprovalSubject, SqliteStore, Store as _, StoreError, StoredApprovalRequest,
};
use serde_json::json;

use crate::args::ApprovalsArgs;
use crate::locate::ProjectLocation;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::{TextStyle, format_duration, format_local_time_of_day};
use crate::{exit_code, locate, ui};

/// Questions that do not wait any more and are shown to a person.
const MAX_PAST_SHOWN: usize = 10;
/// Width if the output is no terminal.
const DEFAULT_WIDTH: usize = 200;
/// Less room than this is treated as none.
const MIN_TEXT_COLUMNS: usize = 24;

pub(crate) fn run_approvals_command(args: &ApprovalsArgs) -> Result<ExitCode, CommandError> {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let rows = load_approvals(&located)?;
    let now = checkrein_runtime::now_millis();
    if args.json {
        let rows: Vec<serde_json::Value> = rows.iter().map(|row| approval_json(row, now)).collect();
        ui::print_json(&json!({ "schema": "checkrein/approvals/1", "approvals": rows }));
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let (open, past): (Vec<&StoredApprovalRequest>, Vec<&StoredApprovalRequest>) = rows
        .iter()
        .partition(|row| row.approval_status_at(now) == ApprovalStatus::Asked);
    if open.is_empty() {
        ui::print_wrapped_to_stderr("Nothing waits for a person here.");
    }
    let more = past.len().saturating_sub(MAX_PAST_SHOWN);
    let shown: Vec<&StoredApprovalRequest> = open
        .iter()
        .copied()
        .chain(past.into_iter().take(MAX_PAST_SHOWN))
        .collect();
    for line in approval_table(&shown, now) {
        ui::print_line_to_stdout(line);
    }
    // The hint names a question that can be approved, if there is one.
    let answerable = open.iter().find(|row| row.unapprovable_reason().is_none());
    if let Some(first) = answerable.or(open.first()) {
        ui::print_wrapped_to_stderr(&format!(
            "To answer, in a terminal: checkrein approve {id}, or: checkrein deny {id}",
            id = first.id
        ));
    }
    if more > 0 {
        ui::print_wrapped_to_stderr(&format!(
            "{more} older ones are not shown; all of them: checkrein approvals --json"
        ));
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Returns everything that was asked here, newest first.
pub(super) fn load_approvals(
    located: &ProjectLocation,
) -> Result<Vec<StoredApprovalRequest>, CommandError> {
    match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => Ok(store.list_approvals()?),
        // Without a store nothing was asked. None is made for looking.
        Err(StoreError::Missing { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Returns what is asked about in a few words, escaped: an agent's text must not write over its
/// surroundings.
pub(crate) fn approval_summary(row: &StoredApprovalRequest) -> String {
    match &row.about {
        ApprovalSubject::Call { tool, text, .. } => {
            format!(
                "{}: {}",
                escape_hidden_chars(tool),
                escape_hidden_chars(text)
            )
        }
        ApprovalSubject::Work {
            verifier, message, ..
        } => {
            let said = message.as_ref().map(|said| format!(" {}", said.text));
            let asked = format!("{}{}", row.why, said.unwrap_or_default());
            format!(
                "{}: {}",
                escape_hidden_chars(verifier),
                escape_hidden_chars(&asked)
            )
        }
    }
}

fn approval_table(rows: &[&StoredApprovalRequest], now: UnixMillis) -> Vec<StyledLine> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut cells = vec![["ID", "STATE", "ASKED", "EXPIRES", "AGENT"].map(StyledLine::from)];
    cells.extend(rows.iter().map(|row| {
        let stands = row.approval_status_at(now);
        let left = row.until.millis_since(now);
        [
            StyledLine::from(&row.id),
            StyledLine::from(stands.as_str()),
            StyledLine::from(&format!(
                "{} ago",
                format_duration(now.millis_since(row.at))
            )),
            StyledLine::from(&match stands {
                ApprovalStatus::Used => String::new(),
                ApprovalStatus::Expired => format_local_time_of_day(row.until, now),
                _ => format!("in {}", format_duration(left)),
            }),
            StyledLine::from(row.agent.as_str()),
        ]
    }));
    // Columns are as wide as their widest cell; what is asked about gets the rest.
    let mut widths = [0; 5];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.line_display_width());
        }
    }
    let terminal = ui::stdout_width();
    let left: usize = widths.iter().map(|width| width + 2).sum();
    // With too little room beside the other columns, what is asked about stands on a line below.
    let room = terminal.unwrap_or(DEFAULT_WIDTH + left).checked_sub(left);
    let room = room.filter(|room| *room >= MIN_TEXT_COLUMNS);
    let mut lines = Vec::new();
    for (at, row) in cells.into_iter().enumerate() {
        // The first row is the head and has no question.
        let one = at.checked_sub(1).and_then(|at| rows.get(at));
        let mut line = StyledLine::default();
        for (cell, width) in row.into_iter().zip(widths) {
            line = line
                .append_styled_line(cell.pad_or_cut_to_width(width))
                .with_plain_suffix("  ");
        }
        let Some(one) = one else {
            let what = if room.is_some() { "WHAT" } else { "" };
            let head = line
                .with_plain_suffix(what)
                .without_trailing_blanks()
                .text_without_styling();
            lines.extend(wrap_for_terminal(
                StyledLine::line_from_styled_text(TextStyle::Dim, &head),
                terminal,
            ));
            continue;
        };
        let text = StyledLine::from(&approval_summary(one));
        match room {
            Some(room) => lines.push(line.append_styled_line(text.truncated_to_width(room))),
            None => {
                lines.extend(wrap_for_terminal(line.without_trailing_blanks(), terminal));
                let below = StyledLine::from("    ").append_styled_line(text);
                lines.push(below.truncated_to_width(terminal.unwrap_or(DEFAULT_WIDTH)));
            }
        }
        let below = [
            one.answer.as_ref().map(|said| {
                let why = said.answer.reason.as_deref().unwrap_or("no reason given");
                format!("{}: {}", said.answer.by, escape_hidden_chars(why))
            }),
            one.notification_error
                .as_ref()
                .map(|why| format!("! nobody was told of it: {}", escape_hidden_chars(why))),
            one.approval_needs_notification(now)
                .then(|| "! nobody was told of it yet".to_owned()),
            (one.approval_status_at(now) == ApprovalStatus::Asked)
                .then(|| one.unapprovable_reason())
                .flatten()
                .map(|why| format!("! it can only be denied: {why}")),
        ];
        for text in below.into_iter().flatten() {
            let text = StyledLine::line_from_styled_text(TextStyle::Dim, &format!("    {text}"));
            lines.push(text.truncated_to_width(terminal.unwrap_or(DEFAULT_WIDTH)));
        }
    }
    lines
}

fn wrap_for_terminal(line: StyledLine, terminal: Option<usize>) -> Vec<StyledLine> {
    match terminal {
        Some(width) => line.wrapped_to_width(width, 4),
        None => vec![line],
    }
}

/// Returns a question as JSON.
pub(super) fn approval_json(row: &StoredApprovalRequest, now: UnixMillis) -> serde_json::Value {
    json!({
        "id": row.id,
        "state": row.approval_status_at(now).as_str(),
        "session": row.session,
        "task": row.task,
        "agent": row.agent,
        "root": row.root,
        "about": row.about,
        "why": row.why,
        "asked_at": row.at,
        "expires_at": row.until,
        "answer": row.answer,
        "used_at": row.used_at,
        "told_at": row.notified_at,
        "not_told": row.notification_error,
    })
}
