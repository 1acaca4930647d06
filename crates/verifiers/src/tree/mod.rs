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

mod content;
mod folder_queue;
mod folders;
mod found;
mod globs;
mod ignore_files;
mod markers;
mod name_list;
mod named;
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

pub use folders::CACHE_FOLDERS;
pub use globs::check_glob;
pub use name_list::NameList;
pub use reading::{LeftOut, TreeReading, ViewReading};
pub use tracked::tracked_files;
pub use walk::would_count;
pub use watch::Watch;

pub(crate) use walk::is_ours_to_count;

use content::Contents;
use globs::Selector;
use stat_cache::StatCache;

/// The part of the tree that a verifier depends on.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
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
    /// to the root, as [`tracked_files`] gives them. A name that ends with `/` is a folder, and
    /// everything in it counts.
    pub always: Arc<NameList>,
    /// A few more of them.
    pub named: BTreeSet<String>,
    /// A folder that is no part of the tree wherever it lies: our own state.
    pub apart: Option<PathBuf>,
    /// Files that are no part of the tree unless `always` names them: what we print into.
    pub printed: BTreeSet<FileId>,
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
    pub fn of(metadata: &std::fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        metadata.is_file().then(|| Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// It cannot be told here.
    #[cfg(not(unix))]
    pub fn of(_: &std::fs::Metadata) -> Option<Self> {
        None
    }
}

impl FileId {
    fn of_stat(stat: &FileStat) -> Option<Self> {
        (stat.kind == FileKind::File && cfg!(unix)).then_some(Self {
            device: stat.stamp.device,
            inode: stat.stamp.inode,
        })
    }
}

/// How long a reading may take, and who may end it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits<'a> {
    /// At most so long.
    pub time: Option<Duration>,
    /// Given up once this is set.
    pub cancelled: Option<&'a AtomicBool>,
}

impl TreeReader {
    /// Whether a file counts whatever ignore files say.
    fn counts_always(&self, name: &str) -> bool {
        self.always.contains(name) || self.named.contains(name)
    }

    /// Reads the tree as it is now.
    ///
    /// # Errors
    /// If the root cannot be read, a glob cannot be used, or a limit is reached. A file that
    /// cannot be read is no error: how it failed is part of the digest.
    pub fn read(&self, views: &[View<'_>], limits: Limits<'_>) -> Result<TreeReading, TreeError> {
        let time = Time::new(limits, &*self.files);
        let is_left_out = |start: &str| ignore_files::is_left_out(&*self.files, &self.root, start);
        let selector = Selector::new(views, &is_left_out)?;
        // Before the walk: what is written from here on is too young to be remembered.
        let now = self.files.now();
        let walk::Walked {
            mut found,
            mut left_out,
            markers,
        } = walk::walk(self, &time)?;
        named::add_named(self, &selector.reaches(), &mut found, &time)?;
        let before = found.len();
        found.retain(|path, entry| selector.counts(path, entry.named));
        left_out.outputs = u32::try_from(before - found.len()).unwrap_or(u32::MAX);

        let large = found
            .iter()
            .filter(|(_, entry)| content::is_too_large(entry));
        let unread = large.map(|(path, _)| walk::text(path)).collect();

        let cache = StatCache::load(&self.cache_file);
        let Contents {
            leaves,
            cache: next,
        } = content::contents(&*self.files, &self.root, found, &cache, now, &time);
        // Also of a reading that was cut: the next one gets further.
        let cache_saved = next.map_or(Ok(()), |next| next.save(&self.cache_file));
        let leaves = leaves?;
        Ok(TreeReading::new(
            leaves,
            markers::nearest(markers),
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
pub enum TreeError {
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

impl TreeError {
    fn root(path: &Path, source: std::io::Error) -> Self {
        Self::Root {
            path: path.to_owned(),
            source,
        }
    }
}

/// The limits of one reading.
pub(crate) struct Time<'a> {
    file_system: &'a dyn FileSystem,
    started: Instant,
    limits: Limits<'a>,
}

impl<'a> Time<'a> {
    fn new(limits: Limits<'a>, file_system: &'a dyn FileSystem) -> Self {
        Self {
            file_system,
            started: file_system.monotonic(),
            limits,
        }
    }

    pub(crate) fn check(&self) -> Result<(), TreeError> {
        if self
            .limits
            .cancelled
            .is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
        {
            return Err(TreeError::Cancelled);
        }
        let passed = || {
            self.file_system
                .monotonic()
                .saturating_duration_since(self.started)
        };
        match self.limits.time {
            Some(limit) if passed() >= limit => Err(TreeError::TooSlow { limit }),
            _ => Ok(()),
        }
    }
}
