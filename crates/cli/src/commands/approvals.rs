//! `checkrein approvals`: what waits for a person, and what became of what did.

use std::process::ExitCode;

use checkrein_core::ids::UnixMillis;
use checkrein_store::{
    ApprovalStatus, ApprovalSubject, SqliteStore, Store as _, StoreError, StoredApprovalRequest,
};
use serde_json::json;

use crate::args::Approvals;
use crate::locate::Located;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::style::{Paint, clock, duration};
use crate::{exit_code, locate, ui};

/// Of what does not wait any more, a person is shown so many.
const SHOWN: usize = 10;
/// Where nobody's terminal says how wide it is.
const LONGEST: usize = 200;
/// Less room than this is none.
const LEAST: usize = 24;

pub(crate) fn run(args: &Approvals) -> Result<ExitCode, CommandError> {
    let located = locate::locate(&std::env::current_dir()?, None);
    let rows = all(&located)?;
    let now = checkrein_runtime::now_millis();
    if args.json {
        let rows: Vec<serde_json::Value> = rows.iter().map(|row| document(row, now)).collect();
        ui::json(&json!({ "schema": "checkrein/approvals/1", "approvals": rows }));
        return Ok(exit_code::exit(exit_code::YES));
    }
    let (open, past): (Vec<&StoredApprovalRequest>, Vec<&StoredApprovalRequest>) = rows
        .iter()
        .partition(|row| row.approval_status_at(now) == ApprovalStatus::Asked);
    if open.is_empty() {
        ui::say("Nothing waits for a person here.");
    }
    let more = past.len().saturating_sub(SHOWN);
    let shown: Vec<&StoredApprovalRequest> = open
        .iter()
        .copied()
        .chain(past.into_iter().take(SHOWN))
        .collect();
    for line in table(&shown, now) {
        ui::answer(line);
    }
    let answerable = open.iter().find(|row| row.unapprovable_reason().is_none());
    if let Some(first) = answerable.or(open.first()) {
        ui::say(&format!(
            "To answer, in a terminal: checkrein approve {id}, or: checkrein deny {id}",
            id = first.id
        ));
    }
    if more > 0 {
        ui::say(&format!(
            "{more} older ones are not shown; all of them: checkrein approvals --json"
        ));
    }
    Ok(exit_code::exit(exit_code::YES))
}

/// Everything that was asked here, newest first.
pub(super) fn all(located: &Located) -> Result<Vec<StoredApprovalRequest>, CommandError> {
    match SqliteStore::open_store_read_only(&located.place.state) {
        Ok(store) => Ok(store.list_approvals()?),
        Err(StoreError::Missing { .. }) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// What is asked about, in a few words. An agent's text must not write over its surroundings.
pub(crate) fn what(row: &StoredApprovalRequest) -> String {
    match &row.about {
        ApprovalSubject::Call { tool, text, .. } => {
            format!("{}: {}", printable(tool), printable(text))
        }
        ApprovalSubject::Work {
            verifier, message, ..
        } => {
            let said = message.as_ref().map(|said| format!(" {}", said.text));
            let asked = format!("{}{}", row.why, said.unwrap_or_default());
            format!("{}: {}", printable(verifier), printable(&asked))
        }
    }
}

fn table(rows: &[&StoredApprovalRequest], now: UnixMillis) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut cells = vec![["ID", "STATE", "ASKED", "EXPIRES", "AGENT"].map(Line::from)];
    cells.extend(rows.iter().map(|row| {
        let stands = row.approval_status_at(now);
        let left = row.until.millis_since(now);
        [
            Line::from(&row.id),
            Line::from(stands.as_str()),
            Line::from(&format!("{} ago", duration(now.millis_since(row.at)))),
            Line::from(&match stands {
                ApprovalStatus::Used => String::new(),
                ApprovalStatus::Expired => clock(row.until, now),
                _ => format!("in {}", duration(left)),
            }),
            Line::from(row.agent.as_str()),
        ]
    }));
    let mut widths = [0; 5];
    for row in &cells {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.columns());
        }
    }
    let terminal = ui::width();
    let left: usize = widths.iter().map(|width| width + 2).sum();
    // Too little room beside the rest: what is asked stands below it.
    let room = terminal.unwrap_or(LONGEST + left).checked_sub(left);
    let room = room.filter(|room| *room >= LEAST);
    let mut lines = Vec::new();
    for (at, row) in cells.into_iter().enumerate() {
        let one = at.checked_sub(1).and_then(|at| rows.get(at));
        let mut line = Line::default();
        for (cell, width) in row.into_iter().zip(widths) {
            line = line.then(cell.padded(width)).with("  ");
        }
        let Some(one) = one else {
            let what = if room.is_some() { "WHAT" } else { "" };
            let head = line.with(what).trimmed().plain();
            lines.extend(wrapped(Line::painted(Paint::Dim, &head), terminal));
            continue;
        };
        let text = Line::from(&what(one));
        match room {
            Some(room) => lines.push(line.then(text.cut(room))),
            None => {
                lines.extend(wrapped(line.trimmed(), terminal));
                let below = Line::from("    ").then(text);
                lines.push(below.cut(terminal.unwrap_or(LONGEST)));
            }
        }
        let below = [
            one.answer.as_ref().map(|said| {
                let why = said.answer.reason.as_deref().unwrap_or("no reason given");
                format!("{}: {}", said.answer.by, printable(why))
            }),
            one.notification_error
                .as_ref()
                .map(|why| format!("! nobody was told of it: {}", printable(why))),
            one.approval_needs_notification(now)
                .then(|| "! nobody was told of it yet".to_owned()),
            (one.approval_status_at(now) == ApprovalStatus::Asked)
                .then(|| one.unapprovable_reason())
                .flatten()
                .map(|why| format!("! it can only be denied: {why}")),
        ];
        for text in below.into_iter().flatten() {
            let text = Line::painted(Paint::Dim, &format!("    {text}"));
            lines.push(text.cut(terminal.unwrap_or(LONGEST)));
        }
    }
    lines
}

fn wrapped(line: Line, terminal: Option<usize>) -> Vec<Line> {
    match terminal {
        Some(width) => line.wrapped(width, 4),
        None => vec![line],
    }
}

/// As a document.
pub(super) fn document(row: &StoredApprovalRequest, now: UnixMillis) -> serde_json::Value {
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
