//! `checkrein sessions`: tasks, newest first.

use std::collections::BTreeSet;
use std::process::ExitCode;

use checkrein_store::{SqliteStore, Store as _, StoreError, TaskRow};
use serde_json::json;

use crate::args::Sessions;
use crate::commands::lookup;
use crate::ui::errors::CommandError;
use crate::ui::style::{On, Paint, duration, of_reason};
use crate::ui::words;
use crate::{exit_code, locate, off, ui};

/// How many tasks a person is shown.
const SHOWN: usize = 40;

pub(crate) fn run(args: &Sessions) -> Result<ExitCode, CommandError> {
    let located = locate::locate(&std::env::current_dir()?, None);
    let limit = if args.json { usize::MAX } else { SHOWN };
    let rows = match SqliteStore::open_read_only(&located.place.state) {
        Ok(store) => {
            let rows = store.tasks(None, limit)?;
            say_what_was_changed(&store, &rows)?;
            rows
        }
        Err(StoreError::Missing { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    if let Some(off) = off::in_force(&located.place.state) {
        ui::say(&off.words());
    }
    if args.json {
        for row in &rows {
            ui::json(&document(row));
        }
        return Ok(exit_code::exit(exit_code::YES));
    }
    if rows.is_empty() {
        ui::say("No task is recorded for this repo yet. See the main job at work: checkrein demo");
        return Ok(exit_code::exit(exit_code::YES));
    }
    let head = format!(
        "{:<16} {:<12} {:<34} {:>5} {:>6} {:>9} {:>8}",
        "TASK", "AGENT", "ENDING", "STOPS", "CALLS", "TOKENS", "TOOK"
    );
    ui::answer(&On::Stdout.paint(Paint::Dim, &head));
    for row in &rows {
        ui::answer(&line(row));
    }
    Ok(exit_code::exit(exit_code::YES))
}

/// Logs of the newest sessions that are not what was appended.
fn say_what_was_changed(store: &SqliteStore, rows: &[TaskRow]) -> Result<(), CommandError> {
    let newest = rows.iter().take(SHOWN).map(|row| &row.session);
    for session in newest.collect::<BTreeSet<_>>() {
        if let Err(changed) = lookup::chain(store, session)? {
            ui::say(&format!("checkrein: {changed}"));
        }
    }
    Ok(())
}

fn line(row: &TaskRow) -> String {
    let ending = lookup::transition(row);
    let (text, paint) = match &ending {
        Some(ending) => (words::transition(ending), of_reason(ending.reason)),
        None => ("open".to_owned(), Paint::Dim),
    };
    let tokens = row
        .output_tokens
        .map_or("unknown".to_owned(), |tokens| tokens.to_string());
    let took = row
        .ended_at
        .map_or_else(String::new, |ended| duration(ended.since(row.opened_at)));
    format!(
        "{:<16} {:<12} {} {:>5} {:>6} {:>9} {:>8}",
        lookup::short(&row.session, row.task),
        row.agent.as_str(),
        On::Stdout.paint(paint, &format!("{text:<34}")),
        row.stops,
        row.tool_calls,
        tokens,
        took,
    )
}

/// One task as JSON.
pub(crate) fn document(row: &TaskRow) -> serde_json::Value {
    let transition = lookup::transition(row).map(|ended| {
        json!({ "reason": ended.reason, "detail": ended.detail, "native_reason": ended.native_reason })
    });
    json!({
        "schema": "checkrein/task/1",
        "session": row.session,
        "task": row.task,
        "agent": row.agent,
        "level": row.level,
        "root": row.root,
        "goal": row.goal,
        "opened_at": row.opened_at,
        "ended_at": row.ended_at,
        "stops": row.stops,
        "continues": row.continues,
        "tool_calls": row.tool_calls,
        "rounds": row.rounds,
        "output_tokens": row.output_tokens,
        "policy": row.policy,
        "transition": transition,
    })
}
