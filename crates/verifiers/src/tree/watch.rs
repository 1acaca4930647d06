//! Watches a few files while a check runs: a check that takes files away and brings them back has
//! judged something other than the tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;

use super::content::{TreeEntryDigest, current_file_digest, current_file_stamp};
use super::stat_cache::can_file_change_unseen;
use super::walk::path_text_with_escapes;
use crate::file_system::{FileStamp, ReadOnlyFileSystem};

/// How long a file may differ without counting: a program that rewrites a file truncates it first.
const BRIEFLY: Duration = Duration::from_millis(100);

/// Files with the content that they should have.
#[derive(Debug)]
pub struct FilesWatchedDuringCheck {
    file_system: Arc<dyn ReadOnlyFileSystem>,
    root: PathBuf,
    files: Vec<WatchedFile>,
}

#[derive(Debug)]
struct WatchedFile {
    path: Vec<u8>,
    meant: Digest,
    stamp: Option<FileStamp>,
    /// Since when it has differed.
    since: Option<Instant>,
    longest: Duration,
}

impl FilesWatchedDuringCheck {
    pub(crate) fn new<'a>(
        file_system: Arc<dyn ReadOnlyFileSystem>,
        root: &Path,
        leaves: impl Iterator<Item = TreeEntryDigest<'a>>,
    ) -> Self {
        let watched = |leaf: TreeEntryDigest<'_>| WatchedFile {
            path: leaf.path.to_vec(),
            meant: leaf.digest,
            // A leaf without a stamp is no regular file and is not watched.
            stamp: leaf.stamp,
            since: None,
            longest: Duration::ZERO,
        };
        Self {
            file_system,
            root: root.to_owned(),
            files: leaves
                .filter(|leaf| leaf.stamp.is_some())
                .map(watched)
                .collect(),
        }
    }

    /// Whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Checks all files once. Meant to be called every few milliseconds.
    pub fn record_changes_of_watched_files(&mut self) {
        let file_system = &*self.file_system;
        for file in &mut self.files {
            let stamp = current_file_stamp(file_system, &self.root, &file.path);
            let is_young =
                |stamp: FileStamp| can_file_change_unseen(&stamp, file_system.clock_now());
            // The content is read only if the stamp changed, or if it is too young to show a
            // further write.
            if stamp != file.stamp || stamp.is_some_and(is_young) {
                let now = stamp.and_then(|stamp| {
                    current_file_digest(file_system, &self.root, &file.path, &stamp)
                });
                let other = now != Some(file.meant);
                // A file that has its content back ends the period; the longest one is kept below.
                file.since =
                    other.then(|| file.since.unwrap_or_else(|| file_system.monotonic_now()));
                file.stamp = stamp;
            }
            let lasted = file.since.map_or(Duration::ZERO, |since| {
                file_system.monotonic_now().saturating_duration_since(since)
            });
            file.longest = file.longest.max(lasted);
        }
    }

    /// Returns the files that differed or were gone for longer than it takes to write one.
    pub fn files_differing_too_long(&self) -> Vec<String> {
        let long = self.files.iter().filter(|file| file.longest > BRIEFLY);
        long.map(|file| path_text_with_escapes(&file.path))
            .collect()
    }
}
