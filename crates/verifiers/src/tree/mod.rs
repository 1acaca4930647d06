//! Computes the digest of a tree: which files count, what is in them, and which of them each
//! verifier depends on. Nothing of git's state is trusted (index, assume-unchanged, fsmonitor): the
//! walk and the stat cache are our own.
//!
//! What counts: every regular file by content and executable bit, every symlink by its target, and
//! every empty folder, under names sorted by bytes. What does not count: the folders of version
//! control, the known cache folders of [`CACHE_FOLDERS`], ignored files, `.checkrein/`, and
//! `outputs`. A file that git tracked when the task began counts even if it is ignored by now or in
//! a cache folder. An ignore file always counts, so that hiding something shows. A file that a
//! verifier's `inputs` name counts for that verifier.

mod always_included;
mod content;
mod entries;
mod excluded_folders;
mod folder_queue;
mod globs;
mod ignore_files;
mod markers;
mod name_list;
mod reading;
mod stat_cache;
mod tracked;
mod walk;
mod watch;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use checkrein_core::ids::VerifierName;

use crate::file_system::{FileKind, FileStat, ReadOnlyFileSystem};

pub use excluded_folders::CACHE_FOLDERS;
pub use globs::check_glob;
pub use name_list::PackedNameSet;
pub use reading::{ExcludedFileCounts, TreeReadResult, VerifierInputFilesDigest};
pub use tracked::git_tracked_files;
pub use walk::would_file_count_in_tree;
pub use watch::FilesWatchedDuringCheck;

pub(crate) use walk::is_valid_tree_path;

use content::TreeContentResult;
use globs::VerifierPathMatcher;
use stat_cache::StatCache;

/// The part of the tree that a verifier depends on.
#[derive(Debug, Clone, Copy)]
pub struct UncompiledVerifierGlobs<'a> {
    /// The verifier's name.
    pub name: &'a VerifierName,
    /// Globs of what it depends on; empty = the whole tree. A folder's name stands for all in it.
    pub inputs: &'a [String],
    /// Globs of the files that it writes.
    pub outputs: &'a [String],
}

/// Reads one tree.
#[derive(Debug, Clone)]
pub struct TreeReader {
    /// The file system that holds the tree.
    pub files: Arc<dyn ReadOnlyFileSystem>,
    /// The root of the tree.
    pub root: PathBuf,
    /// The stat cache, one file per tree, in the state folder; created when missing. It is on disk
    /// even if the tree is not.
    pub cache_file: PathBuf,
    /// Files that count whatever ignore files say: those tracked at the task's start, relative
    /// to the root, as [`git_tracked_files`] gives them. A name that ends with `/` is a folder, and
    /// everything in it counts.
    pub always_included: Arc<PackedNameSet>,
    /// A few more names of the same kind.
    pub also_included: BTreeSet<String>,
    /// A folder that is never part of the tree, wherever it lies: Checkrein's state folder.
    pub excluded_folder: Option<PathBuf>,
    /// Files that are not part of the tree unless `always_included` names them: those that
    /// Checkrein's own output goes to.
    pub own_output_files: BTreeSet<FileId>,
}

/// Identifies a file by device and inode, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The device of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
}

impl FileId {
    /// Returns the id of a regular file.
    #[cfg(unix)]
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns `None`: the platform has no such ids.
    #[cfg(not(unix))]
    pub fn from_metadata(_: &std::fs::Metadata) -> Option<Self> {
        None
    }
}

impl FileId {
    fn file_id_from_stat(stat: &FileStat) -> Option<Self> {
        (stat.kind == FileKind::File && cfg!(unix)).then_some(Self {
            device: stat.stamp.device,
            inode: stat.stamp.inode,
        })
    }
}

/// Limits the time of a reading and allows it to be cancelled.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeReadTimeoutAndCancel<'a> {
    /// The longest that it may take.
    pub time: Option<Duration>,
    /// The reading stops with an error once this is set.
    pub cancelled: Option<&'a AtomicBool>,
}

impl TreeReader {
    /// Returns whether a file counts even if it is ignored.
    fn is_always_included(&self, name: &str) -> bool {
        self.always_included.contains_name(name) || self.also_included.contains(name)
    }

    /// Reads the tree as it is now.
    ///
    /// # Errors
    /// If the root cannot be read, a glob cannot be used, or a limit is reached. A file that
    /// cannot be read is no error: how it failed is part of the digest.
    pub fn read_tree(
        &self,
        views: &[UncompiledVerifierGlobs<'_>],
        limits: TreeReadTimeoutAndCancel<'_>,
    ) -> Result<TreeReadResult, TreeReaderError> {
        let time = TreeReadDeadline::new(limits, &*self.files);
        let is_left_out =
            |start: &str| ignore_files::is_glob_start_excluded(&*self.files, &self.root, start);
        let selector = VerifierPathMatcher::new(views, &is_left_out)?;
        // Before the walk: what is written from here on is too young to be remembered.
        let now = self.files.clock_now();
        let walk::TreeWalkResult {
            mut found,
            mut left_out,
            markers,
        } = walk::walk_tree(self, &time)?;
        // Ignored files that a glob asks for are searched after the walk, which does not enter
        // ignored folders.
        always_included::add_ignored_files_named_by_inputs(
            self,
            &selector.globs_including_ignored_files(),
            &mut found,
            &time,
        )?;
        // Files that only `outputs` name are dropped before anything is read: a build folder can be
        // larger than the tree.
        let before = found.len();
        found.retain_tree_entries(|path, entry| {
            selector.is_path_in_tree_or_verifier_view(path, entry.named)
        });
        left_out.outputs = u32::try_from(before - found.len()).unwrap_or(u32::MAX);

        // Reported, since such a file counts by its stamp and not by its content.
        let large = found
            .iter()
            .filter(|(_, entry)| content::is_too_large_to_read(entry));
        let unread = large
            .map(|(path, _)| walk::path_text_with_escapes(path))
            .collect();

        let cache = StatCache::load_stat_cache(&self.cache_file);
        let TreeContentResult {
            leaves,
            cache: next,
        } = content::digest_tree_contents(&*self.files, &self.root, found, &cache, now, &time);
        // Saved even if the reading was cut, so that the next one gets further. An error here is
        // reported and not fatal: the cache decides nothing.
        let cache_saved = next.map_or(Ok(()), |next| next.save_stat_cache(&self.cache_file));
        let leaves = leaves?;
        Ok(TreeReadResult::new(
            leaves,
            markers::keep_shallowest_package_markers(markers),
            selector,
            left_out,
            unread,
            cache_saved.err(),
            Arc::clone(&self.files),
        ))
    }
}

/// Why a tree could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TreeReaderError {
    /// The root itself cannot be read.
    #[error("cannot read '{}'", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The reading took longer than its limit.
    #[error("reading the tree took longer than {} ms", limit.as_millis())]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// The reading was cancelled.
    #[error("interrupted while the tree was read")]
    Cancelled,
    /// A glob of `inputs` or `outputs` is invalid.
    #[error("'{pattern}' is not a glob")]
    Glob {
        /// The glob.
        pattern: String,
        /// What is wrong with it.
        source: globset::Error,
    },
}

impl TreeReaderError {
    fn unreadable_root_error(path: &Path, source: std::io::Error) -> Self {
        Self::Root {
            path: path.to_owned(),
            source,
        }
    }
}

/// The limits of one reading.
pub(crate) struct TreeReadDeadline<'a> {
    file_system: &'a dyn ReadOnlyFileSystem,
    started: Instant,
    limits: TreeReadTimeoutAndCancel<'a>,
}

impl<'a> TreeReadDeadline<'a> {
    fn new(limits: TreeReadTimeoutAndCancel<'a>, file_system: &'a dyn ReadOnlyFileSystem) -> Self {
        Self {
            file_system,
            started: file_system.monotonic_now(),
            limits,
        }
    }

    pub(crate) fn check_tree_read_time_and_cancel(&self) -> Result<(), TreeReaderError> {
        if self
            .limits
            .cancelled
            .is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            return Err(TreeReaderError::Cancelled);
        }
        let passed = || {
            self.file_system
                .monotonic_now()
                .saturating_duration_since(self.started)
        };
        match self.limits.time {
            // The monotonic clock: a wall clock that is set back would never reach the limit.
            Some(limit) if passed() >= limit => Err(TreeReaderError::TooSlow { limit }),
            _ => Ok(()),
        }
    }
}
