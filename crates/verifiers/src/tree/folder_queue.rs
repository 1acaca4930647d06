//! Folders that wait to be listed by one of several threads. It is empty for good once none waits and
//! nobody lists one that could bring more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::walk::PendingFolder;

pub(crate) struct FolderQueue {
    waiting: Mutex<FolderListingQueueState>,
    changed: Condvar,
}

struct FolderListingQueueState {
    folders: Vec<PendingFolder>,
    /// Threads that list one.
    busy: usize,
}

/// A folder to list. Dropped, it hands over what is below, also if the listing failed.
pub(crate) struct FolderListingLease<'q> {
    queue: &'q FolderQueue,
    pub(crate) folder: Option<PendingFolder>,
    pub(crate) below: Vec<PendingFolder>,
}

impl FolderQueue {
    pub(crate) fn new(folders: Vec<PendingFolder>) -> Self {
        Self {
            waiting: Mutex::new(FolderListingQueueState { folders, busy: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Waits for a folder; `None` if there will be none any more.
    pub(crate) fn next(&self) -> Option<FolderListingLease<'_>> {
        let mut waiting = self.lock_listing_queue();
        loop {
            if let Some(folder) = waiting.folders.pop() {
                waiting.busy += 1;
                return Some(FolderListingLease {
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
    fn lock_listing_queue(&self) -> MutexGuard<'_, FolderListingQueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FolderListingLease<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock_listing_queue();
        waiting.busy -= 1;
        waiting.folders.append(&mut self.below);
        self.queue.changed.notify_all();
    }
}
