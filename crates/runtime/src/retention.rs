//! Removes whole sessions in which nothing has happened for long, and the oldest ones while the
//! store is larger than it may be; then evidence, blobs and logs that nothing names any more. The
//! newest session stays, and so does every session that was active within a day or has an open tool
//! call. A session that cannot be read is treated like the others; its rows say how old it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_core::ids::{EventSeq, SessionId, UnixMillis};
use checkrein_store::{PruneSelection, Store, StoreError, StoreInventory};

use crate::config::RetentionLimits;
use crate::error::RuntimeError;
use crate::workspace::TreeAndStateFolder;
use crate::{check_logs, clock, evidence_codec, log_reader};

/// How often pruning is tried while agents are at work, before it is left for another time.
const MAX_TRIES: usize = 5;
/// How many events at the end of a log are searched first for one with a time.
const LAST_EVENTS: u64 = 32;
/// A session that was active within this time stays, whatever the config says.
const DAY_MS: u64 = 86_400_000;

/// A session that is removed, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedSession {
    /// Which.
    pub session: SessionId,
    /// When something last happened in it.
    pub last_at: UnixMillis,
    /// Whether it goes only because the store is too large.
    pub for_size: bool,
}

/// What is removed, or was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionReport {
    /// Sessions, oldest first.
    pub removed_sessions: Vec<RemovedSession>,
    /// Evidence and blobs that nobody named any more.
    pub orphans: usize,
    /// Logs of checks and other files beside the store.
    pub files: usize,
    /// How many sessions stay.
    pub kept_sessions: usize,
    /// The size of the store before, in bytes.
    pub bytes_before: u64,
    /// The size of the store afterwards, in bytes; an estimate if nothing was removed.
    pub bytes_after: u64,
    /// Why the freed space was not returned to the disk.
    pub not_compacted: Option<String>,
}

/// One session as retention sees it.
struct RetentionCandidate {
    session: SessionId,
    last_at: UnixMillis,
    bytes: u64,
    /// Whether its task is open, so that somebody may come back to it.
    is_open: bool,
}

/// Removes what need not be kept; with `dry`, only reports it. `named` are digests that something
/// outside of the store names.
///
/// # Errors
/// If the store cannot be read or written.
pub fn apply_retention(
    store: &dyn Store,
    place: &TreeAndStateFolder,
    retention: RetentionLimits,
    named: &BTreeSet<Digest>,
    dry: bool,
) -> Result<RetentionReport, RuntimeError> {
    let now = clock::now_millis();
    let mut done = RetentionReport::default();
    let mut tries = MAX_TRIES;
    // Each round takes a new census and goes on until nothing is left to remove: agents may write
    // meanwhile, and a removed session leaves evidence behind that nothing names.
    loop {
        let census = store.store_census()?;
        if done.bytes_before == 0 {
            done.bytes_before = census.bytes;
        }
        done.bytes_after = census.bytes;
        let known = list_retention_candidates(store, &census, now)?;
        let gone = choose_sessions_to_remove(&known, &census, retention, now);
        done.kept_sessions = known.len() - gone.len();
        let sessions: BTreeSet<SessionId> = gone.iter().map(|one| one.session.clone()).collect();
        let orphans =
            find_orphaned_evidence_and_blobs(store, &census, &sessions, named, retention, now)?;
        if sessions.is_empty() && orphans.is_empty() {
            break;
        }
        let forget = PruneSelection {
            sessions: sessions.iter().cloned().collect(),
            objects: orphans.iter().map(|(key, _)| *key).collect(),
        };
        // The store prunes nothing if it has changed since the census.
        if !dry && !store.delete_sessions_if_unchanged(&census, &forget)? {
            tries -= 1;
            if tries == 0 {
                let why = "agents are at work here; what may go goes another time";
                done.not_compacted = Some(why.to_owned());
                break;
            }
            continue;
        }
        let bytes: u64 = orphans.iter().map(|(_, bytes)| bytes).sum();
        let of_sessions = known.iter().filter(|one| sessions.contains(&one.session));
        let bytes = bytes + of_sessions.map(|one| one.bytes).sum::<u64>();
        done.bytes_after = census.bytes.saturating_sub(bytes);
        done.orphans += orphans.len();
        done.removed_sessions.extend(gone);
        if dry {
            break;
        }
        for session in &sessions {
            done.files += usize::from(place.remove_session_files(session));
        }
    }
    done.files += remove_stale_logs_and_caches(place, retention, dry);
    // Removed rows leave room inside the file, which compacting gives back to the disk.
    if !dry && (!done.removed_sessions.is_empty() || done.orphans > 0) {
        match store.vacuum_database() {
            Ok(()) => done.bytes_after = store.store_census()?.bytes,
            Err(error) => done.not_compacted = Some(error.to_string()),
        }
    }
    Ok(done)
}

fn list_retention_candidates(
    store: &dyn Store,
    census: &StoreInventory,
    now: UnixMillis,
) -> Result<Vec<RetentionCandidate>, RuntimeError> {
    let mut rows: BTreeMap<SessionId, (UnixMillis, bool)> = BTreeMap::new();
    for row in store.newest_task_summaries(None, usize::MAX)? {
        // A task without an end may have gone on since, but this is all that its row tells.
        let at = row.ended_at.unwrap_or(row.opened_at);
        let (newest, is_open) = rows.entry(row.session).or_default();
        *newest = at.max(*newest);
        *is_open |= row.ended_at.is_none();
    }
    let mut known = Vec::with_capacity(census.sessions.len());
    for (session, last, bytes) in &census.sessions {
        let row = rows.get(session);
        let is_open = row.is_some_and(|(_, is_open)| *is_open);
        known.push(RetentionCandidate {
            // The log is asked first, then the rows. A session of unknown age counts as new and
            // stays.
            last_at: last_input_time(store, session, *last)
                .or(row.map(|(newest, _)| *newest))
                .unwrap_or(now),
            bytes: *bytes,
            is_open: is_open && has_open_task(store, session, now),
            session: session.clone(),
        });
    }
    known.sort_by(|a, b| (a.last_at, &a.session).cmp(&(b.last_at, &b.session)));
    Ok(known)
}

/// The time of the newest input that can be read.
fn last_input_time(store: &dyn Store, session: &SessionId, last: EventSeq) -> Option<UnixMillis> {
    // The end of the log is enough as a rule; without an input there, all of it is read.
    for after in [EventSeq(last.0.saturating_sub(LAST_EVENTS)), EventSeq(0)] {
        for raw in store.events_after(session, after).ok()?.iter().rev() {
            if let Ok(Some(Event::Input(stamped))) = log_reader::decode_event(session, raw) {
                return Some(stamped.at);
            }
        }
    }
    None
}

/// Whether the newest task of this session, which is listed as open, still is: a tool call may be
/// open for days.
fn has_open_task(store: &dyn Store, session: &SessionId, now: UnixMillis) -> bool {
    let open = log_reader::query_session_view_and_state(store, session, |_, state| {
        Ok(state.current_open_task().is_some() && !state.is_session_idle_too_long(now))
    });
    matches!(open, Ok(Some(true)))
}

/// Chooses the sessions to remove from `known`, which is sorted, oldest first.
fn choose_sessions_to_remove(
    known: &[RetentionCandidate],
    census: &StoreInventory,
    keep: RetentionLimits,
    now: UnixMillis,
) -> Vec<RemovedSession> {
    // The last one is the newest session, which always stays.
    let Some((_, older)) = known.split_last() else {
        return Vec::new();
    };
    let mut bytes = census.bytes;
    let mut gone = Vec::new();
    for one in older {
        let age = now.millis_since(one.last_at);
        if age <= DAY_MS || one.is_open {
            continue;
        }
        let too_old = age > keep.keep_ms;
        let too_much = bytes > keep.max_bytes;
        if too_old || too_much {
            bytes = bytes.saturating_sub(one.bytes);
            gone.push(RemovedSession {
                session: one.session.clone(),
                last_at: one.last_at,
                for_size: !too_old,
            });
        }
    }
    gone
}

/// Finds evidence and blobs that no remaining session names. Evidence also saves a check from
/// running again, so it goes only when it is as old as a session that goes; with a session that
/// goes for its size goes everything that only it named.
fn find_orphaned_evidence_and_blobs(
    store: &dyn Store,
    census: &StoreInventory,
    gone: &BTreeSet<SessionId>,
    named: &BTreeSet<Digest>,
    keep: RetentionLimits,
    now: UnixMillis,
) -> Result<Vec<(Digest, u64)>, RuntimeError> {
    let mut staying = named.clone();
    let mut going = BTreeSet::new();
    for (session, _, _) in &census.sessions {
        let names = if gone.contains(session) {
            &mut going
        } else {
            &mut staying
        };
        match store.events_after(session, EventSeq(0)) {
            Ok(rows) => names.extend(
                rows.iter()
                    .flat_map(|raw| digests_in_event_payload(&raw.payload)),
            ),
            // What it names is unknown, so nothing is known to be unnamed.
            Err(StoreError::Corrupt { .. }) if !gone.contains(session) => return Ok(Vec::new()),
            Err(StoreError::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut orphans = Vec::new();
    for (key, bytes) in &census.objects {
        if staying.contains(key) {
            continue;
        }
        let found = store.read_evidence(key)?;
        let at = found.and_then(|found| evidence_codec::stored_evidence_time(&found.bytes));
        let old = at.is_some_and(|at| now.millis_since(at) > keep.keep_ms);
        // Anything else is a policy, or the record of a seal, that nothing names.
        if old || at.is_none() || going.contains(key) {
            orphans.push((*key, *bytes));
        }
    }
    Ok(orphans)
}

/// Returns every digest in an event, whatever it identifies, so that nothing an event names is
/// removed, even if only a newer version knows its kind.
fn digests_in_event_payload(payload: &[u8]) -> impl Iterator<Item = Digest> {
    let words = payload.split(|byte| !byte.is_ascii_hexdigit());
    words
        .filter_map(|word| std::str::from_utf8(word).ok())
        .filter_map(Digest::from_hex)
}

/// Removes files beside the store that nobody wrote to for as long: logs of checks, and caches of
/// trees that are not read any more.
fn remove_stale_logs_and_caches(
    place: &TreeAndStateFolder,
    keep: RetentionLimits,
    dry: bool,
) -> usize {
    let keep = Duration::from_millis(keep.keep_ms);
    let Some(before) = SystemTime::now().checked_sub(keep) else {
        return 0;
    };
    let trees = remove_stale_files_in(&place.state.join("tree"), before, dry, &|_| true);
    #[cfg(unix)]
    let owners = crate::owner::remove_lost_worker_records(&place.state, before, dry);
    #[cfg(not(unix))]
    let owners = 0;
    check_logs::possible_check_log_folders(place)
        .iter()
        .map(|folder| remove_stale_files_in(folder, before, dry, &check_logs::is_own_log_file_name))
        .sum::<usize>()
        + trees
        + owners
}

fn remove_stale_files_in(
    folder: &Path,
    before: SystemTime,
    dry: bool,
    ours: &dyn Fn(&str) -> bool,
) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(ours))
        .filter(|entry| {
            // For a link this is the link's own metadata.
            let metadata = std::fs::symlink_metadata(entry.path());
            metadata.is_ok_and(|metadata| {
                metadata.is_file() && metadata.modified().is_ok_and(|at| at < before)
            })
        })
        .filter(|entry| dry || std::fs::remove_file(entry.path()).is_ok())
        .count()
}
