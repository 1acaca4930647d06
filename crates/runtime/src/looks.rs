//! Readings of the tree during one stop. One serves whoever needs the tree as it was at some moment since:
//! checks that end together share the look after them, and the last look is that one, if nothing was
//! waited for since.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use checkrein_verifiers::tree::TreeReading;

use crate::system::System;

/// The tree at some moment.
#[derive(Debug)]
pub(crate) struct Look {
    /// The moment is not before this one.
    pub(crate) began: Instant,
    pub(crate) reading: TreeReading,
    /// How many acts were counted before it.
    pub(crate) acts: u64,
}

/// What was seen of the tree so far.
#[derive(Debug)]
pub(crate) struct Looks {
    system: Arc<dyn System>,
    /// Held while the tree is read: readings share one cache file.
    latest: Mutex<Option<Arc<Look>>>,
    /// When something was found out last, in whatever way.
    ended: Mutex<Option<Instant>>,
}

impl Looks {
    pub(crate) fn new(system: Arc<dyn System>, first: Option<Arc<Look>>) -> Self {
        Self {
            system,
            latest: Mutex::new(first),
            ended: Mutex::default(),
        }
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
        let now = self.system.monotonic();
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
    pub(crate) fn newest(&self) -> Option<Arc<Look>> {
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
        *lock(&self.ended) = Some(self.system.monotonic());
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
    use super::*;
    use crate::system::RealSystem;
    use checkrein_verifiers::file_system::RealFileSystem;
    use checkrein_verifiers::tree::{Limits, TreeReader};

    fn look() -> Look {
        let root = tempfile::tempdir().unwrap();
        let reader = TreeReader {
            files: Arc::new(RealFileSystem),
            root: root.path().to_owned(),
            cache_file: root.path().join("cache"),
            always: Arc::default(),
            named: std::collections::BTreeSet::new(),
            apart: None,
            printed: std::collections::BTreeSet::new(),
        };
        Look {
            began: Instant::now(),
            reading: reader.read(&[], Limits::default()).unwrap(),
            acts: 0,
        }
    }

    #[test]
    fn a_look_serves_whoever_asked_before_it_began() {
        let looks = Looks::new(Arc::new(RealSystem), Some(Arc::new(look())));
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
    fn who_asks_while_the_tree_is_read_gets_one_that_begins_later() {
        let looks = Looks::new(Arc::new(RealSystem), None);
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
