//! Finds gates that fell silent: the agent has worked here since its hooks were last heard of.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use checkrein_core::event::Event;
use checkrein_core::ids::UnixMillis;
use checkrein_runtime::durable_file;
use checkrein_store::{SqliteStore, Store as _};

use super::agents::{InspectableAgent, SettingsScope};
use super::finding::DoctorFinding;
use super::hooks::reinstall_hooks_command;
use crate::commands::lookup;
use crate::ui::style::format_duration;

/// A shorter silence may be a session whose hooks are about to be heard of.
const SILENCE_LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
/// Newest transcripts that are searched.
const MAX_FILES: usize = 60;
/// Newest tasks that are searched for this agent's.
const MAX_TASKS: usize = 500;

pub(super) fn check_silent_hooks(
    agent: &InspectableAgent,
    root: &Path,
    store: Option<&SqliteStore>,
) -> Option<DoctorFinding> {
    let worked = last_transcript_write_time(agent, root)?;
    let heard = store.and_then(|store| last_event_time_of_agent(agent, store));
    // Heard of after the newest transcript: nothing is silent, and nothing is reported.
    let since = match heard {
        Some(heard) => worked.duration_since(heard).ok()?,
        // Never heard of: the work may be older than the hooks, so it is a warning only.
        None => {
            return Some(
                DoctorFinding::warning_finding(
                    agent.name,
                    "silent",
                    format!(
                        "{} has worked here, and no hook of it was ever heard of",
                        agent.label
                    ),
                )
                .with_finding_consequence("what it did then was not checked")
                .with_fix("nothing, if that was before the hooks were installed"),
            );
        }
    };
    let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    if since < SILENCE_LIMIT {
        return Some(DoctorFinding::ok_finding(
            agent.name,
            "heard_of",
            "hooks were heard of when it last worked here",
        ));
    }
    Some(
        DoctorFinding::new_doctor_fault_finding(
            agent.name,
            "silent",
            format!(
                "{} worked here {} days after its last hook was heard of",
                agent.label,
                ms / 86_400_000
            ),
        )
        .with_finding_consequence(format!(
            "the gates were off all that time ({})",
            format_duration(ms)
        ))
        .with_fix(reinstall_hooks_command(agent, SettingsScope::Local)),
    )
}

/// Returns when this agent's newest event was recorded.
fn last_event_time_of_agent(agent: &InspectableAgent, store: &SqliteStore) -> Option<SystemTime> {
    let rows = store.newest_task_summaries(None, MAX_TASKS).ok()?;
    // Without an entry for SessionStart the log does not say which agent it is.
    let row = rows
        .iter()
        .find(|row| [agent.name, "unknown"].contains(&row.agent.as_str()))?;
    let events = lookup::task_events(store, &row.session, row.task).ok()?;
    let last = events.iter().rev().find_map(|(_, event)| match event {
        Event::Input(stamped) => Some(stamped.at),
        _ => None,
    });
    let UnixMillis(ms) = last.or(row.ended_at).unwrap_or(row.opened_at);
    UNIX_EPOCH.checked_add(Duration::from_millis(ms))
}

/// Returns when the agent last wrote a transcript of a conversation in this repo.
fn last_transcript_write_time(agent: &InspectableAgent, root: &Path) -> Option<SystemTime> {
    let folder = agent.agent_home_folder()?.join(agent.transcripts);
    let mut files = Vec::new();
    // The transcripts lie up to four folders deep.
    collect_transcripts(&folder, 4, &mut files);
    files.sort_by_key(|(when, _)| std::cmp::Reverse(*when));
    files
        .into_iter()
        .take(MAX_FILES)
        .find(|(_, file)| is_transcript_of_folder(file, root))
        .map(|(when, _)| when)
}

fn collect_transcripts(folder: &Path, depth: usize, files: &mut Vec<(SystemTime, PathBuf)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        let path = entry.path();
        if meta.is_dir() && depth > 0 {
            collect_transcripts(&path, depth - 1, files);
        } else if path.extension().is_some_and(|ending| ending == "jsonl")
            && let Ok(when) = meta.modified()
        {
            files.push((when, path));
        }
    }
}

/// Returns whether a conversation's first lines name this folder, or one in it, as its working
/// folder.
fn is_transcript_of_folder(file: &Path, root: &Path) -> bool {
    let mut head = Vec::new();
    let read = durable_file::open_regular_file(file)
        .and_then(|file| file.take(256 * 1024).read_to_end(&mut head));
    // The folder is searched for as JSON writes it; the closing quote is left off for folders
    // below it.
    let root = root.display().to_string();
    let root = serde_json::Value::from(root.as_str()).to_string();
    let root = root.trim_end_matches('"');
    let text = String::from_utf8_lossy(&head);
    read.is_ok()
        && [format!("\"cwd\":{root}\""), format!("\"cwd\":{root}/")]
            .iter()
            .any(|needle| text.contains(needle.as_str()))
}
