//! Watches a few files while a check runs: one that takes them away and brings them back has judged
//! something else than the tree.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;

use super::content::{Leaf, leaf_now, stamp_now};
use super::stat_cache::may_be_written_unseen;
use super::walk::text;
use crate::file_system::{FileSystem, Stamp};

/// Shorter a file may be otherwise: whoever writes it anew empties it first.
const BRIEFLY: Duration = Duration::from_millis(100);

/// Files, as they should be.
#[derive(Debug)]
pub struct Watch {
    file_system: Arc<dyn FileSystem>,
    root: PathBuf,
    files: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    path: Vec<u8>,
    meant: Digest,
    stamp: Option<Stamp>,
    /// Since when it is otherwise.
    since: Option<Instant>,
    longest: Duration,
}

impl Watch {
    pub(crate) fn new<'a>(
        file_system: Arc<dyn FileSystem>,
        root: &Path,
        leaves: impl Iterator<Item = Leaf<'a>>,
    ) -> Self {
        let watched = |leaf: Leaf<'_>| Watched {
            path: leaf.path.to_vec(),
            meant: leaf.digest,
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

    /// Looks once. To be called every few milliseconds.
    pub fn look(&mut self) {
        let file_system = &*self.file_system;
        for file in &mut self.files {
            let stamp = stamp_now(file_system, &self.root, &file.path);
            let is_young = |stamp: Stamp| may_be_written_unseen(&stamp, file_system.now());
            if stamp != file.stamp || stamp.is_some_and(is_young) {
                let now =
                    stamp.and_then(|stamp| leaf_now(file_system, &self.root, &file.path, &stamp));
                let other = now != Some(file.meant);
                file.since = other.then(|| file.since.unwrap_or_else(|| file_system.monotonic()));
                file.stamp = stamp;
            }
            let lasted = file.since.map_or(Duration::ZERO, |since| {
                file_system.monotonic().saturating_duration_since(since)
            });
            file.longest = file.longest.max(lasted);
        }
    }

    /// The files that were otherwise, or gone, for longer than it takes to write one.
    pub fn taken_away(&self) -> Vec<String> {
        let long = self.files.iter().filter(|file| file.longest > BRIEFLY);
        long.map(|file| text(&file.path)).collect()
    }
}
