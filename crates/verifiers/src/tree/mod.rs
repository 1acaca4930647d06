//! The digest of a tree: which files count, what is in them, and which of them each
//! verifier depends on. Nothing of git's is trusted (index, assume-unchanged, fsmonitor):
//! the walk and the stat cache are our own.
//!
//! What counts: every regular file by content and executable bit, every symlink by its
//! target, every empty folder, under names sorted by bytes. What does not: the folders of version control, the
//! known cache folders of [`CACHE_FOLDERS`], what ignore files name, `.checkrein/`, and
//! `outputs`. A file that was tracked when the task began counts whatever the first three say
//! by now; an ignore file always counts, so that hiding something shows. What a verifier's `inputs`
//! name counts for that verifier.

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

use crate::file_system::{FileKind, FileStat, FileSystem};

pub use excluded_folders::CACHE_FOLDERS;
pub use globs::check_glob;
pub use name_list::PackedNameSet;
pub use reading::{ExcludedFileCounts, TreeReadResult, VerifierInputDigest};
pub use tracked::git_tracked_files;
pub use walk::is_included_by_ignore_files;
pub use watch::FilesWatchedDuringCheck;

pub(crate) use walk::is_valid_tree_path;

use content::TreeContentResult;
use globs::VerifierPathMatcher;
use stat_cache::StatCache;

/// The part of the tree that a verifier depends on.
#[derive(Debug, Clone, Copy)]
pub struct VerifierGlobs<'a> {
    /// Whose it is.
    pub name: &'a VerifierName,
    /// Globs of what it depends on; empty = the whole tree. A folder's name stands for all in it.
    pub inputs: &'a [String],
    /// Globs of what it writes.
    pub outputs: &'a [String],
}

/// Reads one tree.
#[derive(Debug, Clone)]
pub struct TreeReader {
    /// Where it lies.
    pub files: Arc<dyn FileSystem>,
    /// The tree.
    pub root: PathBuf,
    /// Our own stat cache, one file per tree, in the state folder; made when missing. On disk, wherever the
    /// tree lies.
    pub cache_file: PathBuf,
    /// Files that count whatever ignore files say: those tracked at the task's start, relative
    /// to the root, as [`git_tracked_files`] gives them. A name that ends with `/` is a folder, and
    /// everything in it counts.
    pub always_included: Arc<PackedNameSet>,
    /// A few more of them.
    pub also_included: BTreeSet<String>,
    /// A folder that is no part of the tree wherever it lies: our own state.
    pub excluded_folder: Option<PathBuf>,
    /// Files that are no part of the tree unless `always` names them: what we print into.
    pub own_output_files: BTreeSet<FileId>,
}

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileId {
    /// The file system.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl FileId {
    /// Of a regular file.
    #[cfg(unix)]
    pub fn from_metadata(metadata: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// It cannot be told here.
    #[cfg(not(unix))]
    pub fn from_metadata(_: &std::fs::Metadata) -> Option<Self> {
        None
    }
}

impl FileId {
    fn from_stat(stat: &FileStat) -> Option<Self> {
        (stat.kind == FileKind::File && cfg!(unix)).then_some(Self {
            device: stat.stamp.device,
            inode: stat.stamp.inode,
        })
    }
}

/// How long a reading may take, and who may end it.
#[derive(Debug, Clone, Copy, Default)]
pub struct TreeReadLimits<'a> {
    /// At most so long.
    pub time: Option<Duration>,
    /// Given up once this is set.
    pub cancelled: Option<&'a AtomicBool>,
}

impl TreeReader {
    /// Whether a file counts whatever ignore files say.
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
        views: &[VerifierGlobs<'_>],
        limits: TreeReadLimits<'_>,
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
        always_included::add_ignored_inputs(
            self,
            &selector.globs_reaching_ignored_files(),
            &mut found,
            &time,
        )?;
        let before = found.len();
        found.retain_tree_entries(|path, entry| selector.is_path_counted(path, entry.named));
        left_out.outputs = u32::try_from(before - found.len()).unwrap_or(u32::MAX);

        let large = found
            .iter()
            .filter(|(_, entry)| content::is_too_large_to_read(entry));
        let unread = large.map(|(path, _)| walk::path_text(path)).collect();

        let cache = StatCache::load(&self.cache_file);
        let TreeContentResult {
            leaves,
            cache: next,
        } = content::digest_tree_contents(&*self.files, &self.root, found, &cache, now, &time);
        // Also of a reading that was cut: the next one gets further.
        let cache_saved = next.map_or(Ok(()), |next| next.save(&self.cache_file));
        let leaves = leaves?;
        Ok(TreeReadResult::new(
            leaves,
            markers::ignored_file_markers_nearest_root(markers),
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
    /// The root itself.
    #[error("cannot read '{}'", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It took longer than it may.
    #[error("reading the tree took longer than {} ms", limit.as_millis())]
    TooSlow {
        /// The limit.
        limit: Duration,
    },
    /// We were told to stop.
    #[error("interrupted while the tree was read")]
    Cancelled,
    /// A glob of `inputs` or `outputs`.
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
    file_system: &'a dyn FileSystem,
    started: Instant,
    limits: TreeReadLimits<'a>,
}

impl<'a> TreeReadDeadline<'a> {
    fn new(limits: TreeReadLimits<'a>, file_system: &'a dyn FileSystem) -> Self {
        Self {
            file_system,
            started: file_system.monotonic_now(),
            limits,
        }
    }

    pub(crate) fn check_tree_read_limits(&self) -> Result<(), TreeReaderError> {
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
            Some(limit) if passed() >= limit => Err(TreeReaderError::TooSlow { limit }),
            _ => Ok(()),
        }
    }
}
