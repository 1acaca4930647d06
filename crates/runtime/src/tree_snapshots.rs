//! Readings of the tree during one stop. A reading serves everyone who needs the tree as it was at
//! some moment since then: checks that end together share the reading after them, and the last look
//! of the stop is that one if nothing was waited for since.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use checkrein_verifiers::tree::TreeReadResult;

use crate::system::{MayBlockThread, System};

/// The tree at some moment.
#[derive(Debug)]
pub(crate) struct TreeSnapshot {
    /// No file was read before this moment.
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    pub(crate) reading: TreeReadResult,
    /// How many acts were counted before it.
    pub(crate) acts: u64,
}

/// The readings of one stop so far, and the checks that run meanwhile.
#[derive(Debug)]
pub(crate) struct StopTreeSnapshots {
    system: Arc<dyn System>,
    /// How long neighbours may be waited for, once in a stop.
    pub(crate) longest_wait: Duration,
    has_waited: Mutex<bool>,
    /// Held while the tree is read: readings share one cache file.
    latest: Mutex<Option<Arc<TreeSnapshot>>>,
    /// When something was last found out, in whatever way.
    ended: Mutex<Option<Instant>>,
    /// Checks of other processes that this stop has waited for: they may have written into the tree.
    elsewhere: Mutex<ForeignCheckState>,
    /// Checks that may end soon.
    busy: Mutex<usize>,
    one_ended: Condvar,
}

/// Checks of other processes.
#[derive(Debug, Clone, Copy, Default)]
enum ForeignCheckState {
    #[default]
    NoneSeen,
    /// The last one ended then.
    Ended(Instant),
    /// One goes on.
    GoesOn,
}

/// A check that is at work, until this is dropped.
pub(crate) struct RunningCheckGuard<'l>(&'l StopTreeSnapshots);

impl Drop for RunningCheckGuard<'_> {
    fn drop(&mut self) {
        *lock_unpoisoned(&self.0.busy) -= 1;
        self.0.one_ended.notify_all();
    }
}

/// After a check, the others are waited for at most this part of the time that a reading takes. In
/// a large tree a second reading takes longer than that, and a slow check does not hold back what
/// the others found out.
const SNAPSHOT_TIME_FRACTION: u32 = 4;
/// And no longer than this, since an answer may be due.
const MAX_SHARED_WAIT: Duration = Duration::from_secs(1);

impl StopTreeSnapshots {
    pub(crate) fn new(
        system: Arc<dyn System>,
        first: Option<Arc<TreeSnapshot>>,
        longest_wait: Duration,
    ) -> Self {
        Self {
            system,
            longest_wait,
            has_waited: Mutex::default(),
            latest: Mutex::new(first),
            ended: Mutex::default(),
            elsewhere: Mutex::default(),
            busy: Mutex::default(),
            one_ended: Condvar::default(),
        }
    }

    /// Notes that a check is about to run, until the guard is dropped.
    pub(crate) fn running_check_guard(&self) -> RunningCheckGuard<'_> {
        *lock_unpoisoned(&self.busy) += 1;
        RunningCheckGuard(self)
    }

    /// Returns the tree at some moment after a check that has just ended. Checks that end together
    /// share it.
    pub(crate) fn snapshot_after_check(
        &self,
        ended: RunningCheckGuard<'_>,
        read: impl FnOnce() -> Result<TreeSnapshot, String>,
    ) -> Result<Arc<TreeSnapshot>, String> {
        // The check has ended, so a reading that begins from here on sees all that it wrote.
        let now = self.system.monotonic_now();
        // Dropped before the wait: a check must not wait for itself.
        drop(ended);
        let a_look = self
            .system
            .lock_mutex(&self.latest)
            .as_ref()
            .map(|look| look.took);
        let part = a_look.unwrap_or_default() / SNAPSHOT_TIME_FRACTION;
        let until = now + part.min(MAX_SHARED_WAIT);
        self.system
            .wait_until_condition_holds(&mut |may_block| match may_block {
                MayBlockThread::Yes => {
                    let left = until.saturating_duration_since(self.system.monotonic_now());
                    let busy = lock_unpoisoned(&self.busy);
                    // The wait ends either way; the count is not needed.
                    drop(
                        self.one_ended
                            .wait_timeout_while(busy, left, |busy| *busy > 0),
                    );
                    true
                }
                MayBlockThread::No => {
                    *lock_unpoisoned(&self.busy) == 0 || self.system.monotonic_now() >= until
                }
            });
        self.get_or_read_tree_snapshot(|look| look.began >= now, read)
    }

    /// Returns the tree at some moment of this stop, for a check that is about to begin: later
    /// changes are seen by the reading after it.
    pub(crate) fn reuse_any_snapshot_or_read(
        &self,
        read: impl FnOnce() -> Result<TreeSnapshot, String>,
    ) -> Result<Arc<TreeSnapshot>, String> {
        self.get_or_read_tree_snapshot(|_| true, read)
    }

    /// Returns the tree at some moment from now on.
    pub(crate) fn read_fresh_tree_snapshot(
        &self,
        read: impl FnOnce() -> Result<TreeSnapshot, String>,
    ) -> Result<Arc<TreeSnapshot>, String> {
        let now = self.system.monotonic_now();
        self.get_or_read_tree_snapshot(|look| look.began >= now, read)
    }

    /// Returns the reading after everything that was found out, if there is one. It serves once: a
    /// second caller wants to know what became of the tree meanwhile.
    pub(crate) fn consume_snapshot_after_checks(&self) -> Option<Arc<TreeSnapshot>> {
        let ended = (*lock_unpoisoned(&self.ended))?;
        let latest = self.system.lock_mutex(&self.latest).clone();
        let last = latest.filter(|look| look.began >= ended)?;
        // The same reading must not serve a second time.
        self.record_evidence_time();
        Some(last)
    }

    /// Returns the newest reading.
    fn newest_tree_snapshot(&self) -> Option<Arc<TreeSnapshot>> {
        self.system.lock_mutex(&self.latest).clone()
    }

    /// Stores a reading that has served as the last one.
    pub(crate) fn cache_final_tree_snapshot(&self, look: TreeSnapshot) -> Arc<TreeSnapshot> {
        let look = Arc::new(look);
        *self.system.lock_mutex(&self.latest) = Some(Arc::clone(&look));
        self.record_evidence_time();
        look
    }

    /// Notes that something was found out just now.
    pub(crate) fn record_evidence_time(&self) {
        *lock_unpoisoned(&self.ended) = Some(self.system.monotonic_now());
    }

    /// Notes that another process found something out just now.
    pub(crate) fn note_evidence_from_other_process(&self) {
        *lock_unpoisoned(&self.elsewhere) = ForeignCheckState::Ended(self.system.monotonic_now());
    }

    /// Notes that another process goes on with a check that this stop no longer waits for.
    pub(crate) fn note_foreign_check_still_running(&self) {
        *lock_unpoisoned(&self.elsewhere) = ForeignCheckState::GoesOn;
    }

    /// Returns whether neighbours were waited for already, and notes that they are from now on.
    pub(crate) fn mark_waited_for_external_writers(&self) -> bool {
        std::mem::replace(&mut *lock_unpoisoned(&self.has_waited), true)
    }

    /// Returns the newest reading, if no check of this stop has run since then, in any process.
    pub(crate) fn newest_snapshot_if_no_check_since(&self) -> Option<Arc<TreeSnapshot>> {
        // A check of another process may write into the tree as ours do, so it rules a reading out
        // too.
        let elsewhere = *lock_unpoisoned(&self.elsewhere);
        self.newest_tree_snapshot().filter(|look| match elsewhere {
            ForeignCheckState::NoneSeen => true,
            ForeignCheckState::Ended(at) => at < look.began,
            ForeignCheckState::GoesOn => false,
        })
    }

    fn get_or_read_tree_snapshot(
        &self,
        serves: impl FnOnce(&TreeSnapshot) -> bool,
        read: impl FnOnce() -> Result<TreeSnapshot, String>,
    ) -> Result<Arc<TreeSnapshot>, String> {
        // The lock is held while the tree is read: a second caller waits, then finds the result.
        let mut latest = self.system.lock_mutex(&self.latest);
        if let Some(look) = latest.as_ref().filter(|look| serves(look)) {
            return Ok(Arc::clone(look));
        }
        let look = Arc::new(read()?);
        *latest = Some(Arc::clone(&look));
        Ok(look)
    }
}

/// A poisoned lock guards nothing that could be half done.
fn lock_unpoisoned<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::system::RealSystem;
    use checkrein_verifiers::file_system::RealFileSystem;
    use checkrein_verifiers::tree::{TreeReadTimeoutAndCancel, TreeReader};

    fn look() -> TreeSnapshot {
        let root = tempfile::tempdir().unwrap();
        let reader = TreeReader {
            files: Arc::new(RealFileSystem),
            root: root.path().to_owned(),
            cache_file: root.path().join("cache"),
            always_included: Arc::default(),
            also_included: std::collections::BTreeSet::new(),
            excluded_folder: None,
            own_output_files: std::collections::BTreeSet::new(),
        };
        TreeSnapshot {
            began: std::time::Instant::now(),
            took: Duration::from_secs(3600),
            reading: reader
                .read_tree(&[], TreeReadTimeoutAndCancel::default())
                .unwrap(),
            acts: 0,
        }
    }

    #[test]
    fn a_snapshot_serves_whoever_asked_before_it_began() {
        let looks =
            StopTreeSnapshots::new(Arc::new(RealSystem), Some(Arc::new(look())), Duration::ZERO);
        let never = || -> Result<TreeSnapshot, String> { panic!("there is one") };
        let first = looks.reuse_any_snapshot_or_read(never).unwrap();
        // Nothing was found out yet, so none is the last.
        assert!(looks.consume_snapshot_after_checks().is_none());
        looks.record_evidence_time();
        assert!(
            looks.consume_snapshot_after_checks().is_none(),
            "it began before that"
        );
        let second = looks.read_fresh_tree_snapshot(|| Ok(look())).unwrap();
        assert!(second.began > first.began);
        assert!(Arc::ptr_eq(
            &looks.consume_snapshot_after_checks().unwrap(),
            &second
        ));
        assert!(
            looks.consume_snapshot_after_checks().is_none(),
            "it has served"
        );
        assert!(Arc::ptr_eq(
            &looks.reuse_any_snapshot_or_read(never).unwrap(),
            &second
        ));
        looks.record_evidence_time();
        assert!(looks.consume_snapshot_after_checks().is_none());
    }

    #[test]
    fn checks_that_end_together_share_a_snapshot() {
        let looks =
            StopTreeSnapshots::new(Arc::new(RealSystem), Some(Arc::new(look())), Duration::ZERO);
        let reads = AtomicUsize::new(0);
        let read = || {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(look())
        };
        let last = looks.running_check_guard();
        let checks: Vec<_> = (0..3).map(|_| looks.running_check_guard()).collect();
        std::thread::scope(|scope| {
            for check in checks {
                scope.spawn(|| {
                    looks.record_evidence_time();
                    looks.snapshot_after_check(check, read).unwrap();
                });
            }
            // They have ended, and wait for it.
            let others = lock_unpoisoned(&looks.busy);
            drop(looks.one_ended.wait_while(others, |busy| *busy > 1));
            looks.record_evidence_time();
            looks.snapshot_after_check(last, read).unwrap();
        });
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert!(
            looks.consume_snapshot_after_checks().is_some(),
            "nothing was found out since"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_slow_check_is_waited_for_for_a_part_of_a_look_and_at_most_a_second() {
        let waited = |took: Duration, is_alone: bool| {
            let first = Arc::new(TreeSnapshot { took, ..look() });
            let clock = crate::set_clock::SetClock::new();
            let looks = StopTreeSnapshots::new(clock.clone(), Some(first), Duration::ZERO);
            let slow = looks.running_check_guard();
            let quick = looks.running_check_guard();
            let _slow = (!is_alone).then_some(slow);
            let mut reads = 0;
            let read = || {
                reads += 1;
                Ok(look())
            };
            looks.snapshot_after_check(quick, read).unwrap();
            assert_eq!(reads, 1);
            clock.passed().as_millis()
        };
        assert_eq!(waited(Duration::from_millis(40), false), 10);
        assert_eq!(waited(Duration::from_millis(3_600), false), 900);
        assert_eq!(waited(Duration::from_secs(3_600), false), 1_000);
        assert_eq!(waited(Duration::from_secs(3_600), true), 0);
    }

    /// What a check of another process may have written is no neighbour's.
    #[test]
    fn a_look_is_at_rest_if_no_check_has_been_running_elsewhere_since() {
        let looks = StopTreeSnapshots::new(Arc::new(RealSystem), None, Duration::ZERO);
        assert!(
            looks.newest_snapshot_if_no_check_since().is_none(),
            "there is none"
        );
        let look_again = || looks.read_fresh_tree_snapshot(|| Ok(look())).unwrap();
        look_again();
        assert!(looks.newest_snapshot_if_no_check_since().is_some());
        looks.note_evidence_from_other_process();
        assert!(looks.newest_snapshot_if_no_check_since().is_none());
        let newest = look_again();
        assert!(Arc::ptr_eq(
            &looks.newest_snapshot_if_no_check_since().unwrap(),
            &newest
        ));
        looks.note_foreign_check_still_running();
        look_again();
        assert!(looks.newest_snapshot_if_no_check_since().is_none());
    }

    #[test]
    fn neighbours_are_waited_for_once() {
        let looks = StopTreeSnapshots::new(Arc::new(RealSystem), None, Duration::ZERO);
        assert!(!looks.mark_waited_for_external_writers());
        assert!(looks.mark_waited_for_external_writers());
    }

    #[test]
    fn who_asks_while_the_tree_is_read_gets_one_that_begins_later() {
        let looks = StopTreeSnapshots::new(Arc::new(RealSystem), None, Duration::ZERO);
        let (begun, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let read = || {
                    let look = look();
                    begun.send(look.began).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    Ok(look)
                };
                looks.read_fresh_tree_snapshot(read).unwrap();
            });
            let earlier = wait.recv().unwrap();
            let ours = looks.read_fresh_tree_snapshot(|| Ok(look())).unwrap();
            assert!(ours.began > earlier);
        });
    }
}
