//! Readings of the tree during one stop. One serves whoever needs the tree as it was at some moment since:
//! checks that end together share the look after them, and the last look is that one, if nothing was
//! waited for since.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use checkrein_verifiers::tree::TreeReadResult;

use crate::system::{MayBlock, System};

/// The tree at some moment.
#[derive(Debug)]
pub(crate) struct Look {
    /// The moment is not before this one.
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    pub(crate) reading: TreeReadResult,
    /// How many acts were counted before it.
    pub(crate) acts: u64,
}

/// What was seen of the tree so far.
#[derive(Debug)]
pub(crate) struct Looks {
    system: Arc<dyn System>,
    /// How long neighbours may be waited for, once in a stop.
    pub(crate) longest_wait: Duration,
    has_waited: Mutex<bool>,
    /// Held while the tree is read: readings share one cache file.
    latest: Mutex<Option<Arc<Look>>>,
    /// When something was found out last, in whatever way.
    ended: Mutex<Option<Instant>>,
    /// Checks of other processes that this stop has waited for: they may have written into the tree.
    elsewhere: Mutex<Elsewhere>,
    /// Checks that may end soon.
    busy: Mutex<usize>,
    one_ended: Condvar,
}

/// Checks of other processes.
#[derive(Debug, Clone, Copy, Default)]
enum Elsewhere {
    #[default]
    NoneSeen,
    /// The last one ended then.
    Ended(Instant),
    /// One goes on.
    GoesOn,
}

/// A check that is at work, until this is dropped.
pub(crate) struct BusyCheck<'l>(&'l Looks);

impl Drop for BusyCheck<'_> {
    fn drop(&mut self) {
        *lock(&self.0.busy) -= 1;
        self.0.one_ended.notify_all();
    }
}

/// After a check the others are waited for at most this part of the time that a look takes: in a large tree a
/// second look takes longer than that, and a slow check does not hold back what the others found out.
const PART_OF_A_LOOK: u32 = 4;
/// And no longer than this, since an answer may be due.
const LONGEST: Duration = Duration::from_secs(1);

impl Looks {
    pub(crate) fn new(
        system: Arc<dyn System>,
        first: Option<Arc<Look>>,
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

    /// A check is about to be at work.
    pub(crate) fn begin_check(&self) -> BusyCheck<'_> {
        *lock(&self.busy) += 1;
        BusyCheck(self)
    }

    /// The tree at some moment after a check that has just ended. Checks that end together share it.
    pub(crate) fn after(
        &self,
        ended: BusyCheck<'_>,
        read: impl FnOnce() -> Result<Look, String>,
    ) -> Result<Arc<Look>, String> {
        let now = self.system.monotonic_now();
        drop(ended);
        let a_look = self
            .system
            .lock(&self.latest)
            .as_ref()
            .map(|look| look.took);
        let part = a_look.unwrap_or_default() / PART_OF_A_LOOK;
        let until = now + part.min(LONGEST);
        self.system.wait(&mut |may_block| match may_block {
            MayBlock::Yes => {
                let left = until.saturating_duration_since(self.system.monotonic_now());
                let busy = lock(&self.busy);
                // How many are left is not needed.
                drop(
                    self.one_ended
                        .wait_timeout_while(busy, left, |busy| *busy > 0),
                );
                true
            }
            MayBlock::No => *lock(&self.busy) == 0 || self.system.monotonic_now() >= until,
        });
        self.get(|look| look.began >= now, read)
    }

    /// The tree at some moment of this stop, for a check that is to begin: what changes from then on is
    /// seen after it.
    pub(crate) fn any(
        &self,
        read: impl FnOnce() -> Result<Look, String>,
    ) -> Result<Arc<Look>, String> {
        self.get(|_| true, read)
    }

    /// The tree at some moment from now on.
    pub(crate) fn next(
        &self,
        read: impl FnOnce() -> Result<Look, String>,
    ) -> Result<Arc<Look>, String> {
        let now = self.system.monotonic_now();
        self.get(|look| look.began >= now, read)
    }

    /// The tree after all that was found out, if it was read since. It serves once: whoever asks again
    /// wants to know what became of the tree meanwhile.
    pub(crate) fn last(&self) -> Option<Arc<Look>> {
        let ended = (*lock(&self.ended))?;
        let latest = self.system.lock(&self.latest).clone();
        let last = latest.filter(|look| look.began >= ended)?;
        self.found_out();
        Some(last)
    }

    /// The newest one there is.
    fn newest(&self) -> Option<Arc<Look>> {
        self.system.lock(&self.latest).clone()
    }

    /// Takes down another one, which has served as the last.
    pub(crate) fn put(&self, look: Look) -> Arc<Look> {
        let look = Arc::new(look);
        *self.system.lock(&self.latest) = Some(Arc::clone(&look));
        self.found_out();
        look
    }

    /// Something was found out just now.
    pub(crate) fn found_out(&self) {
        *lock(&self.ended) = Some(self.system.monotonic_now());
    }

    /// Another process found something out just now.
    pub(crate) fn found_elsewhere(&self) {
        *lock(&self.elsewhere) = Elsewhere::Ended(self.system.monotonic_now());
    }

    /// Another process goes on with a check that this stop no longer waits for.
    pub(crate) fn goes_on_elsewhere(&self) {
        *lock(&self.elsewhere) = Elsewhere::GoesOn;
    }

    /// Whether neighbours were waited for already; from now on they were.
    pub(crate) fn begin_wait(&self) -> bool {
        std::mem::replace(&mut *lock(&self.has_waited), true)
    }

    /// The newest look, if no check of this stop has been running since, whoever runs it.
    pub(crate) fn newest_at_rest(&self) -> Option<Arc<Look>> {
        let elsewhere = *lock(&self.elsewhere);
        self.newest().filter(|look| match elsewhere {
            Elsewhere::NoneSeen => true,
            Elsewhere::Ended(at) => at < look.began,
            Elsewhere::GoesOn => false,
        })
    }

    fn get(
        &self,
        serves: impl FnOnce(&Look) -> bool,
        read: impl FnOnce() -> Result<Look, String>,
    ) -> Result<Arc<Look>, String> {
        let mut latest = self.system.lock(&self.latest);
        if let Some(look) = latest.as_ref().filter(|look| serves(look)) {
            return Ok(Arc::clone(look));
        }
        let look = Arc::new(read()?);
        *latest = Some(Arc::clone(&look));
        Ok(look)
    }
}

/// A poisoned lock guards nothing that could be half done.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::system::RealSystem;
    use checkrein_verifiers::file_system::RealFileSystem;
    use checkrein_verifiers::tree::{TreeReadLimits, TreeReader};

    fn look() -> Look {
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
        Look {
            began: std::time::Instant::now(),
            took: Duration::from_secs(3600),
            reading: reader.read_tree(&[], TreeReadLimits::default()).unwrap(),
            acts: 0,
        }
    }

    #[test]
    fn a_look_serves_whoever_asked_before_it_began() {
        let looks = Looks::new(Arc::new(RealSystem), Some(Arc::new(look())), Duration::ZERO);
        let never = || -> Result<Look, String> { panic!("there is one") };
        let first = looks.any(never).unwrap();
        // Nothing was found out yet, so none is the last.
        assert!(looks.last().is_none());
        looks.found_out();
        assert!(looks.last().is_none(), "it began before that");
        let second = looks.next(|| Ok(look())).unwrap();
        assert!(second.began > first.began);
        assert!(Arc::ptr_eq(&looks.last().unwrap(), &second));
        assert!(looks.last().is_none(), "it has served");
        assert!(Arc::ptr_eq(&looks.any(never).unwrap(), &second));
        looks.found_out();
        assert!(looks.last().is_none());
    }

    #[test]
    fn checks_that_end_together_share_the_look_after_them() {
        let looks = Looks::new(Arc::new(RealSystem), Some(Arc::new(look())), Duration::ZERO);
        let reads = AtomicUsize::new(0);
        let read = || {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(look())
        };
        let last = looks.begin_check();
        let checks: Vec<_> = (0..3).map(|_| looks.begin_check()).collect();
        std::thread::scope(|scope| {
            for check in checks {
                scope.spawn(|| {
                    looks.found_out();
                    looks.after(check, read).unwrap();
                });
            }
            // They have ended, and wait for it.
            let others = lock(&looks.busy);
            drop(looks.one_ended.wait_while(others, |busy| *busy > 1));
            looks.found_out();
            looks.after(last, read).unwrap();
        });
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        assert!(looks.last().is_some(), "nothing was found out since");
    }

    #[cfg(unix)]
    #[test]
    fn a_slow_check_is_waited_for_for_a_part_of_a_look_and_at_most_a_second() {
        let waited = |took: Duration, is_alone: bool| {
            let first = Arc::new(Look { took, ..look() });
            let clock = crate::set_clock::SetClock::new();
            let looks = Looks::new(clock.clone(), Some(first), Duration::ZERO);
            let slow = looks.begin_check();
            let quick = looks.begin_check();
            let _slow = (!is_alone).then_some(slow);
            let mut reads = 0;
            let read = || {
                reads += 1;
                Ok(look())
            };
            looks.after(quick, read).unwrap();
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
        let looks = Looks::new(Arc::new(RealSystem), None, Duration::ZERO);
        assert!(looks.newest_at_rest().is_none(), "there is none");
        let look_again = || looks.next(|| Ok(look())).unwrap();
        look_again();
        assert!(looks.newest_at_rest().is_some());
        looks.found_elsewhere();
        assert!(looks.newest_at_rest().is_none());
        let newest = look_again();
        assert!(Arc::ptr_eq(&looks.newest_at_rest().unwrap(), &newest));
        looks.goes_on_elsewhere();
        look_again();
        assert!(looks.newest_at_rest().is_none());
    }

    #[test]
    fn neighbours_are_waited_for_once() {
        let looks = Looks::new(Arc::new(RealSystem), None, Duration::ZERO);
        assert!(!looks.begin_wait());
        assert!(looks.begin_wait());
    }

    #[test]
    fn who_asks_while_the_tree_is_read_gets_one_that_begins_later() {
        let looks = Looks::new(Arc::new(RealSystem), None, Duration::ZERO);
        let (begun, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let read = || {
                    let look = look();
                    begun.send(look.began).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                    Ok(look)
                };
                looks.next(read).unwrap();
            });
            let earlier = wait.recv().unwrap();
            let ours = looks.next(|| Ok(look())).unwrap();
            assert!(ours.began > earlier);
        });
    }
}
