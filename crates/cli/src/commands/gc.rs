//! `checkrein gc`: removes what `[store]` does not keep. It is safe to run from cron, beside agents
//! at work. Agents may not run it, since it removes records.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use checkrein_core::digest::Digest;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{RetentionReport, apply_retention, durable_file, held_config};
use checkrein_store::{SqliteStore, StoreError};

use crate::args::GcArgs;
use crate::ui::errors::CommandError;
use crate::ui::style::{format_local_time_of_day, format_size};
use crate::{exit_code, locate, person, session_index, ui};

pub(crate) fn run_gc_command(args: &GcArgs) -> Result<ExitCode, CommandError> {
    if !args.dry_run {
        person::forbid_agent_callers("gc")?;
    }
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let retention = located
        .compile_policy_for_new_session(TaskDriverKind::Hook)?
        .retention;
    // Opened for reading first: where nothing is recorded, nothing is made.
    match SqliteStore::open_store_read_only(&located.place.state) {
        Err(StoreError::Missing { .. }) => {
            ui::print_wrapped_to_stderr("Nothing is recorded for this repo yet.");
            return Ok(exit_code::to_exit_code(exit_code::YES));
        }
        opened => drop(opened?),
    }
    let store = SqliteStore::open_store_in_folder(&located.place.state)?;
    // A held policy is named in files beside the store, and its blob must stay.
    let named = digests_in_state_files(&located.place.state);
    let done = apply_retention(&store, &located.place, retention, &named, args.dry_run)?;
    let now = checkrein_runtime::now_millis();
    for gone in &done.removed_sessions {
        if !args.dry_run {
            // The index names the session's folder, and would lead its agent to a session that is
            // gone.
            session_index::remove_session_index_entry(&located.place.state, &gone.session);
        }
        let why = if gone.for_size {
            "the store is too large"
        } else {
            "too old"
        };
        ui::print_line_to_stdout(&format!(
            "{}  last used {}  {why}",
            gone.session,
            format_local_time_of_day(gone.last_at, now)
        ));
    }
    ui::print_line_to_stdout(&gc_removal_summary(&done, args.dry_run));
    if let Some(why) = &done.not_compacted {
        ui::print_wrapped_to_stderr(&format!(
            "The room is not given back to the disk yet: {why}"
        ));
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

fn gc_removal_summary(done: &RetentionReport, dry: bool) -> String {
    let count = |number: usize, one: &str, many: &str| {
        format!("{number} {}", if number == 1 { one } else { many })
    };
    format!(
        "{}{} of {}, {}, {}; store {} → {}",
        if dry { "would remove " } else { "removed " },
        count(done.removed_sessions.len(), "session", "sessions"),
        done.removed_sessions.len() + done.kept_sessions,
        count(done.orphans, "orphaned record", "orphaned records"),
        count(done.files, "file", "files"),
        format_size(done.bytes_before),
        format_size(done.bytes_after),
    )
}

/// Returns the digests in the small files beside the store: one of them may name a held policy.
fn digests_in_state_files(state: &Path) -> BTreeSet<Digest> {
    let mut named = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir(state) else {
        return named;
    };
    let files = entries.flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "json")) {
        // Too many digests only keep more than needed, so the files are not parsed.
        let text = durable_file::read_limited_text_file(&file, held_config::MAX_HELD_BYTES);
        let text = text.ok().flatten().unwrap_or_default();
        let words = text.split(|c: char| !c.is_ascii_hexdigit());
        named.extend(words.filter_map(Digest::from_hex));
    }
    named
}
