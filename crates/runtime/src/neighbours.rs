//! Files that somebody beside us writes: they were seen to change while no check of ours ran. A stop waits until
//! they hold still for a moment, since a check that they disturb says nothing. One small file for each tree;
//! without it a stop only begins too early.

use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};

use checkrein_core::digest::Digest;
use checkrein_core::ids::Millis;
use checkrein_verifiers::file_system::{Links, Stamp};
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
pub(crate) const LONGEST: Duration = Duration::from_secs(10);
/// And where nobody waits for an answer.
const LONGEST_OF_RUN: Duration = Duration::from_secs(60);
/// And where a check was disturbed although the stop has waited before: somebody may have written only once.
pub(crate) const ONCE_MORE: Duration = Duration::from_secs(3);
/// How often it looks meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Keeps that these were written while no check ran.
pub(crate) fn remember(place: &Place, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let now = place.system.millis();
    let mut all = entries(place);
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

/// Which of these files somebody writes within this time.
pub(crate) fn look_for(
    place: &Place,
    paths: &[String],
    time: Duration,
    patience: Patience<'_>,
) -> Vec<String> {
    let system = &*place.system;
    let stamp = |path: &String| {
        let stat = system.stat(&place.root.join(path), Links::Kept);
        stat.ok().map(|stat| stat.stamp)
    };
    let before: Vec<Option<Stamp>> = paths.iter().map(stamp).collect();
    let until = system.monotonic() + time;
    let goes_on = || {
        let is_over = patience.is_cancelled() || patience.is_over(system);
        system.monotonic() < until && !is_over
    };
    let mut written: Vec<String> = Vec::new();
    while written.len() < paths.len() && goes_on() {
        system.sleep(LOOK_AGAIN);
        let changed = paths.iter().zip(&before);
        let changed = changed.filter(|(path, before)| stamp(path) != **before);
        written = changed.map(|(path, _)| path.clone()).collect();
    }
    written
}

/// How long a stop waits for neighbours.
pub(crate) fn longest_wait(place: &Place, patience: Patience<'_>) -> Duration {
    patience.deadline.map_or(LONGEST_OF_RUN, |deadline| {
        let left = deadline.saturating_duration_since(place.system.monotonic());
        LONGEST.min(left / 4)
    })
}

/// Waits until these files hold still, at most until then. Whether they do.
pub(crate) fn wait_for_stillness(
    place: &Place,
    paths: &[String],
    until: Instant,
    patience: Patience<'_>,
) -> bool {
    let system = &*place.system;
    let is_moving = || {
        let now = system.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut changed = paths.iter().filter_map(|path| {
            let stat = system.stat(&place.root.join(path), Links::Kept).ok()?;
            u64::try_from(stat.stamp.changed_ns).ok()
        });
        // What is yet to come by our clock tells nothing of how long ago it was.
        changed.any(|ns| {
            let age = now.checked_sub(Duration::from_nanos(ns));
            age.is_some_and(|age| age < STILL)
        })
    };
    while is_moving() {
        let is_over = system.monotonic() >= until || patience.is_over(system);
        if is_over || patience.is_cancelled() {
            return false;
        }
        system.sleep(LOOK_AGAIN);
    }
    true
}

/// The files that are known.
pub(crate) fn known(place: &Place) -> Vec<String> {
    entries(place).into_iter().map(|(_, path)| path).collect()
}

/// What is known, with the time at which it was seen last.
fn entries(place: &Place) -> Vec<(Millis, String)> {
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
