//! A queue of folders that several threads list. It is exhausted once no folder waits and no thread
//! lists one that could add more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::walk::FolderToWalk;

pub(crate) struct FolderQueue {
    waiting: Mutex<FolderListingQueueState>,
    changed: Condvar,
}

struct FolderListingQueueState {
    folders: Vec<FolderToWalk>,
    /// Number of threads that are listing a folder.
    busy: usize,
}

/// A folder to list. Dropping the lease queues the subfolders in `below`, even if the listing
/// failed.
pub(crate) struct FolderToListLease<'q> {
    queue: &'q FolderQueue,
    pub(crate) folder: Option<FolderToWalk>,
    pub(crate) below: Vec<FolderToWalk>,
}

impl FolderQueue {
    pub(crate) fn new(folders: Vec<FolderToWalk>) -> Self {
        Self {
            waiting: Mutex::new(FolderListingQueueState { folders, busy: 0 }),
            changed: Condvar::new(),
        }
    }

    /// Waits for a folder; `None` if there will be none any more.
    pub(crate) fn wait_for_next_folder(&self) -> Option<FolderToListLease<'_>> {
        let mut waiting = self.lock_listing_queue();
        loop {
            // Last in, first out keeps the queue short: a breadth-first order would hold a whole
            // level of the tree.
            if let Some(folder) = waiting.folders.pop() {
                waiting.busy += 1;
                return Some(FolderToListLease {
                    queue: self,
                    folder: Some(folder),
                    below: Vec::new(),
                });
            }
            // An empty queue is not the end while a thread is busy: its folder may have subfolders.
            if waiting.busy == 0 {
                return None;
            }
            waiting = self
                .changed
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ignores poisoning: the lock guards nothing that a panic could leave half done.
    fn lock_listing_queue(&self) -> MutexGuard<'_, FolderListingQueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FolderToListLease<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock_listing_queue();
        waiting.busy -= 1;
        // `busy` falls and the subfolders are queued under one lock, so that no thread sees the
        // queue empty and idle in between.
        waiting.folders.append(&mut self.below);
        // All are woken, not one: several folders may have come, or all threads may have to end.
        self.queue.changed.notify_all();
    }
}
