//! Folders that wait to be listed by one of several threads. It is empty for good once none waits and
//! nobody lists one that could bring more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::walk::Folder;

pub(crate) struct FolderQueue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

struct Waiting {
    folders: Vec<Folder>,
    /// Threads that list one.
    busy: usize,
}

/// A folder to list. Dropped, it hands over what is below, also if the listing failed.
pub(crate) struct Turn<'q> {
    queue: &'q FolderQueue,
    pub(crate) folder: Option<Folder>,
    pub(crate) below: Vec<Folder>,
}

impl FolderQueue {
    pub(crate) fn new(folders: Vec<Folder>) -> Self {
        Self {
            waiting: Mutex::new(Waiting { folders, busy: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Waits for a folder; `None` if there will be none any more.
    pub(crate) fn next(&self) -> Option<Turn<'_>> {
        let mut waiting = self.lock();
        loop {
            if let Some(folder) = waiting.folders.pop() {
                waiting.busy += 1;
                return Some(Turn {
                    queue: self,
                    folder: Some(folder),
                    below: Vec::new(),
                });
            }
            if waiting.busy == 0 {
                return None;
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A poisoned lock guards nothing that could be half done.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock();
        waiting.busy -= 1;
        waiting.folders.append(&mut self.below);
        self.queue.changed.notify_all();
    }
}
