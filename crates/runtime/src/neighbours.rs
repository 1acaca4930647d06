//! Files that somebody beside us writes: they were seen to change while no check of ours ran. A stop waits until
//! they hold still for a moment, since a check that they disturb says nothing. One small file for each tree;
//! without it a stop only begins too early.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use checkrein_core::digest::Digest;
use checkrein_core::ids::Millis;
use checkrein_verifiers::file_system::Links;
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use crate::delivery::Patience;
use crate::whole;
use crate::workspace::Place;

/// More files are not watched.
const MOST: usize = 200;
/// A file that was not seen to be written for so long is nobody's any more.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);
/// Files that were left alone for so long hold still.
const STILL: Duration = Duration::from_secs(2);
/// How long a stop waits for that behind a hook.
const LONGEST: Duration = Duration::from_secs(10);
/// And where nobody waits for an answer.
const LONGEST_OF_RUN: Duration = Duration::from_secs(60);
/// How often it looks meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Keeps that these were written while no check ran.
pub(crate) fn remember(place: &Place, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let now = place.system.millis();
    let mut all = known(place);
    all.retain(|(_, path)| !paths.contains(path));
    let named = paths.iter().filter(|path| !path.contains('\n'));
    all.extend(named.map(|path| (now, path.clone())));
    let first = all.len().saturating_sub(MOST);
    let lines = all.iter().skip(first);
    let lines: Vec<String> = lines
        .map(|(at, path)| format!("{} {path}\n", at.0))
        .collect();
    let file = file(place);
    let _ = file.parent().map_or(Ok(()), create_private_folder);
    let _ = write_private_file(&file, lines.concat().as_bytes());
}

/// Waits until the files that neighbours write hold still, but not for ever.
pub(crate) fn wait_for_stillness(place: &Place, patience: Patience<'_>) {
    let paths = known(place);
    if paths.is_empty() {
        return;
    }
    let system = &*place.system;
    let longest = match patience.deadline {
        Some(deadline) => {
            let left = deadline.saturating_duration_since(system.monotonic());
            LONGEST.min(left / 4)
        }
        None => LONGEST_OF_RUN,
    };
    let until = system.monotonic() + longest;
    let is_moving = || {
        let now = system.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut changed = paths.iter().filter_map(|(_, path)| {
            let stat = system.stat(&place.root.join(path), Links::Kept).ok()?;
            u64::try_from(stat.stamp.changed_ns).ok()
        });
        // What is yet to come by our clock tells nothing of how long ago it was.
        changed.any(|ns| {
            let age = now.checked_sub(Duration::from_nanos(ns));
            age.is_some_and(|age| age < STILL)
        })
    };
    let is_cancelled = || {
        let cancelled = patience.cancelled;
        cancelled.load(std::sync::atomic::Ordering::Relaxed)
    };
    while is_moving() && system.monotonic() < until && !is_cancelled() {
        system.sleep(LOOK_AGAIN);
    }
}

/// What is known, with the time at which it was seen last.
fn known(place: &Place) -> Vec<(Millis, String)> {
    let text = whole::read_text(&file(place), whole::CONFIG);
    let text = text.ok().flatten().unwrap_or_default();
    let now = place.system.millis();
    let lines = text.lines().filter_map(|line| {
        let (at, path) = line.split_once(' ')?;
        Some((Millis(at.parse().ok()?), path.to_owned()))
    });
    let is_recent = |at: Millis| Duration::from_millis(now.0.abs_diff(at.0)) < FORGOTTEN;
    lines.filter(|(at, _)| is_recent(*at)).collect()
}

fn file(place: &Place) -> PathBuf {
    let mut name = Digest::of(place.root.as_os_str().as_encoded_bytes()).to_hex();
    name.truncate(24);
    place.state.join("neighbours").join(name)
}
