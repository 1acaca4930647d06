//! Remembers files that somebody beside us writes: they were seen to change while no check of ours
//! ran. A stop waits until they hold still for a moment, since a check that they disturb says
//! nothing. One small file per tree; without it a stop merely begins too early.

use std::path::PathBuf;
use std::time::{Duration, Instant, UNIX_EPOCH};

use checkrein_core::digest::Digest;
use checkrein_core::ids::UnixMillis;
use checkrein_verifiers::file_system::{FileStamp, SymlinkMode};
use checkrein_verifiers::private_file::{create_private_folder, write_private_file};

use crate::durable_file;
use crate::event_delivery::Deadline;
use crate::workspace::TreeAndStateFolder;

/// How many files are watched at most.
const MAX_FILES: usize = 200;
/// A file that was not seen to be written for this long is forgotten.
const ENTRY_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// A file that was left alone for this long holds still.
const QUIET_TIME: Duration = Duration::from_secs(2);
/// The longest wait for that behind a hook.
pub(crate) const MAX_HOOK_WAIT: Duration = Duration::from_secs(10);
/// The longest wait where nobody waits for an answer.
const MAX_RUN_WAIT: Duration = Duration::from_secs(60);
/// The longest wait where a check was disturbed although the stop has waited before: somebody may
/// have written only once.
pub(crate) const SECOND_WAIT: Duration = Duration::from_secs(3);
/// The interval of the looks meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Records that these files were written while no check ran.
pub(crate) fn record_writes_between_checks(place: &TreeAndStateFolder, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let now = place.system.now_millis();
    let mut all = read_external_writes_record(place);
    all.retain(|(_, path)| !paths.contains(path));
    // One line per file: a name with a line feed would read as two.
    let named = paths.iter().filter(|path| !path.contains('\n'));
    all.extend(named.map(|path| (now, path.clone())));
    // The newest are at the end, so the oldest go.
    let first = all.len().saturating_sub(MAX_FILES);
    let lines = all.iter().skip(first);
    let lines: Vec<String> = lines
        .map(|(at, path)| format!("{} {path}\n", at.0))
        .collect();
    let file = files_written_by_others_path(place);
    // Errors are ignored: without the file a stop begins too early, and its checks run again.
    let _ = file.parent().map_or(Ok(()), create_private_folder);
    let _ = write_private_file(&file, lines.concat().as_bytes());
}

/// Returns which of these files somebody writes within this time.
pub(crate) fn watch_files_for_writes(
    place: &TreeAndStateFolder,
    paths: &[String],
    time: Duration,
    patience: Deadline<'_>,
) -> Vec<String> {
    let system = &*place.system;
    let stamp = |path: &String| {
        // The link itself, not what it leads to, which may lie outside of the tree.
        let stat = system.stat_file(&place.root.join(path), SymlinkMode::NoFollow);
        stat.ok().map(|stat| stat.stamp)
    };
    let before: Vec<Option<FileStamp>> = paths.iter().map(stamp).collect();
    let until = system.monotonic_now() + time;
    let goes_on = || {
        let is_over = patience.has_caller_cancelled() || patience.is_past_deadline(system);
        system.monotonic_now() < until && !is_over
    };
    let mut written: Vec<String> = Vec::new();
    while written.len() < paths.len() && goes_on() {
        system.sleep(POLL_INTERVAL);
        let changed = paths.iter().zip(&before);
        let changed = changed.filter(|(path, before)| stamp(path) != **before);
        written = changed.map(|(path, _)| path.clone()).collect();
    }
    written
}

/// The longest time that a stop waits for neighbours.
pub(crate) fn max_external_write_wait(
    place: &TreeAndStateFolder,
    patience: Deadline<'_>,
) -> Duration {
    patience.due_at.map_or(MAX_RUN_WAIT, |deadline| {
        let left = deadline.saturating_duration_since(place.system.monotonic_now());
        MAX_HOOK_WAIT.min(left / 4)
    })
}

/// Waits until these files hold still, at the latest until `until`; returns whether they do.
pub(crate) fn wait_until_files_unchanged(
    place: &TreeAndStateFolder,
    paths: &[String],
    until: Instant,
    patience: Deadline<'_>,
) -> bool {
    let system = &*place.system;
    let is_moving = || {
        let now = system
            .clock_now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut changed = paths.iter().filter_map(|path| {
            let stat = system
                .stat_file(&place.root.join(path), SymlinkMode::NoFollow)
                .ok()?;
            // A file that is gone holds still.
            u64::try_from(stat.stamp.changed_ns).ok()
        });
        // A time in the future, by our clock, does not show how long ago it was.
        changed.any(|ns| {
            let age = now.checked_sub(Duration::from_nanos(ns));
            age.is_some_and(|age| age < QUIET_TIME)
        })
    };
    while is_moving() {
        let is_over = system.monotonic_now() >= until || patience.is_past_deadline(system);
        if is_over || patience.has_caller_cancelled() {
            return false;
        }
        system.sleep(POLL_INTERVAL);
    }
    true
}

/// The files that are known to be written by others.
pub(crate) fn files_written_by_others(place: &TreeAndStateFolder) -> Vec<String> {
    read_external_writes_record(place)
        .into_iter()
        .map(|(_, path)| path)
        .collect()
}

/// The known files, with the time at which each was last seen to be written.
fn read_external_writes_record(place: &TreeAndStateFolder) -> Vec<(UnixMillis, String)> {
    let text = durable_file::read_limited_text_file(
        &files_written_by_others_path(place),
        durable_file::MAX_CONFIG_BYTES,
    );
    let text = text.ok().flatten().unwrap_or_default();
    let now = place.system.now_millis();
    let lines = text.lines().filter_map(|line| {
        let (at, path) = line.split_once(' ')?;
        Some((UnixMillis(at.parse().ok()?), path.to_owned()))
    });
    // The difference either way: an entry from the future, by a clock that was wrong, grows old as
    // well.
    let is_recent = |at: UnixMillis| Duration::from_millis(now.0.abs_diff(at.0)) < ENTRY_LIFETIME;
    lines.filter(|(at, _)| is_recent(*at)).collect()
}

fn files_written_by_others_path(place: &TreeAndStateFolder) -> PathBuf {
    let mut name = Digest::hash_bytes(place.root.as_os_str().as_encoded_bytes()).to_hex();
    name.truncate(24);
    place.state.join("neighbours").join(name)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use checkrein_verifiers::file_system::ReadOnlyFileSystem as _;

    use super::*;
    use crate::set_clock::SetClock;

    /// A tree whose files may change while somebody sleeps.
    struct Tree {
        place: TreeAndStateFolder,
        clock: Arc<SetClock>,
        cancelled: AtomicBool,
        _folder: tempfile::TempDir,
    }

    impl Tree {
        fn new() -> Self {
            Self::with(SetClock::new())
        }

        fn with(clock: Arc<SetClock>) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let mut place = TreeAndStateFolder::new_with_per_process_state_folder(folder.path());
            place.state = folder.path().join("state");
            place.system = clock.clone();
            Self {
                place,
                clock,
                cancelled: AtomicBool::new(false),
                _folder: folder,
            }
        }

        fn write(&self, name: &str, text: &str) {
            std::fs::write(self.place.root.join(name), text).unwrap();
        }

        /// An answer that is due in so long.
        fn due(&self, seconds: Option<u64>) -> Deadline<'_> {
            let due = seconds.map(|s| self.clock.monotonic_now() + Duration::from_secs(s));
            Deadline {
                due_at: due,
                cancelled: &self.cancelled,
            }
        }

        fn passed(&self) -> u128 {
            self.clock.passed().as_millis()
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_was_seen_is_known_for_an_hour() {
        let tree = Tree::new();
        record_writes_between_checks(&tree.place, &[]);
        assert!(!files_written_by_others_path(&tree.place).exists());
        record_writes_between_checks(&tree.place, &names(&["a", "two\nlines", "b c"]));
        assert_eq!(files_written_by_others(&tree.place), ["a", "b c"]);
        tree.clock.sleep(ENTRY_LIFETIME - Duration::from_secs(1));
        record_writes_between_checks(&tree.place, &names(&["a"]));
        assert_eq!(files_written_by_others(&tree.place), ["b c", "a"]);
        tree.clock.sleep(Duration::from_secs(1));
        assert_eq!(files_written_by_others(&tree.place), ["a"]);
    }

    #[test]
    fn the_newest_are_known_and_no_more_than_so_many() {
        let tree = Tree::new();
        let many: Vec<String> = (0..MAX_FILES + 2).map(|at| at.to_string()).collect();
        record_writes_between_checks(&tree.place, &many);
        assert_eq!(files_written_by_others(&tree.place), many[2..]);
    }

    #[test]
    fn who_writes_is_found_at_once_and_who_does_not_in_vain() {
        let tree = Tree::new();
        tree.write("a", "1");
        tree.write("b", "1");
        let both = names(&["a", "b"]);
        let time = Duration::from_secs(1);
        let found = watch_files_for_writes(&tree.place, &both, time, tree.due(None));
        assert_eq!((found, tree.passed()), (Vec::new(), 1_000));
        let found = watch_files_for_writes(&tree.place, &[], time, tree.due(None));
        assert_eq!((found, tree.passed()), (Vec::new(), 1_000));
        std::fs::remove_file(tree.place.root.join("b")).unwrap();
        let gone = names(&["b"]);
        assert!(watch_files_for_writes(&tree.place, &gone, time, tree.due(None)).is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while tree.passed() < 2_500 {
                    std::thread::yield_now();
                }
                tree.write("b", "1");
            });
            let found = watch_files_for_writes(
                &tree.place,
                &gone,
                Duration::from_secs(1 << 30),
                tree.due(None),
            );
            assert_eq!(found, gone);
        });
    }

    #[test]
    fn no_longer_than_until_the_answer_is_due() {
        let tree = Tree::new();
        let time = Duration::from_secs(100);
        watch_files_for_writes(&tree.place, &names(&["a"]), time, tree.due(Some(3)));
        assert_eq!(tree.passed(), 3_000);
        tree.cancelled
            .store(true, std::sync::atomic::Ordering::Relaxed);
        watch_files_for_writes(&tree.place, &names(&["a"]), time, tree.due(None));
        assert_eq!(tree.passed(), 3_000);
    }

    #[test]
    fn a_stop_waits_for_a_quarter_of_its_time() {
        let tree = Tree::new();
        let longest = |due| max_external_write_wait(&tree.place, tree.due(due)).as_secs();
        assert_eq!(
            (longest(None), longest(Some(600)), longest(Some(20))),
            (60, 10, 5)
        );
    }

    #[test]
    fn what_holds_still_for_two_seconds_is_waited_for() {
        let tree = Tree::new();
        // The file is older by then than it is by this clock, but for the time that this takes.
        tree.clock.sleep(Duration::from_secs(1));
        tree.write("a", "1");
        let wait = |most_ms: u64| {
            let until = tree.clock.monotonic_now() + Duration::from_millis(most_ms);
            let paths = names(&["a", "gone"]);
            wait_until_files_unchanged(&tree.place, &paths, until, tree.due(None))
        };
        assert!(!wait(500));
        assert_eq!(tree.passed(), 1_500);
        assert!(wait(10_000));
        let passed = tree.passed();
        assert!((2_000..3_000).contains(&passed), "{passed}");
        assert!(wait(0), "it does already");
    }

    #[test]
    fn stillness_is_not_waited_for_after_the_answer_is_due() {
        let tree = Tree::new();
        tree.clock.sleep(Duration::from_millis(500));
        tree.write("a", "1");
        let until = tree.clock.monotonic_now() + Duration::from_secs(10);
        let a = names(&["a"]);
        assert!(!wait_until_files_unchanged(
            &tree.place,
            &a,
            until,
            tree.due(Some(1))
        ));
        assert_eq!(tree.passed(), 1_500);
        tree.cancelled
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let until = tree.clock.monotonic_now() + Duration::from_secs(10);
        assert!(!wait_until_files_unchanged(
            &tree.place,
            &a,
            until,
            tree.due(None)
        ));
        assert_eq!(tree.passed(), 1_500);
    }

    /// A clock that is behind the file's tells nothing.
    #[test]
    fn what_is_yet_to_come_holds_still() {
        let tree = Tree::with(SetClock::behind(Duration::from_secs(1)));
        tree.write("a", "1");
        let until = tree.clock.monotonic_now() + Duration::from_secs(10);
        let a = names(&["a"]);
        assert!(wait_until_files_unchanged(
            &tree.place,
            &a,
            until,
            tree.due(None)
        ));
        assert_eq!(tree.passed(), 0);
    }
}
