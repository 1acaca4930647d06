//! Abstracts the file system and the clocks for the tree's walk. The walk decides what counts and
//! what is remembered; whether files are on a disk or in memory is a matter of the [`ReadOnlyFileSystem`].

mod real;

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use real::RealFileSystem;

/// Access to files and clocks. It is used by several threads at once.
pub trait ReadOnlyFileSystem: Send + Sync + Debug {
    /// Returns the time of the clock that stamps are compared with.
    fn clock_now(&self) -> SystemTime;

    /// Returns the time of the clock that durations are measured with; it never goes back.
    fn monotonic_now(&self) -> Instant;

    /// Returns after this time.
    fn sleep(&self, time: Duration);

    /// Returns how many threads are worth starting.
    fn worthwhile_thread_count(&self) -> usize;

    /// Opens a folder for listing. A link in the last place of the path is followed.
    ///
    /// # Errors
    /// If there is none, or it cannot be listed.
    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>>;

    /// Returns what is at a path.
    ///
    /// # Errors
    /// If nothing does, or it cannot be told.
    fn stat_file(&self, path: &Path, links: SymlinkMode) -> io::Result<FileStat>;

    /// Opens a regular file for reading, and never waits for anybody to do so.
    ///
    /// # Errors
    /// If there is none or it cannot be read; [`io::ErrorKind::InvalidInput`] if it is no regular file.
    fn open_file_for_reading(
        &self,
        path: &Path,
        links: SymlinkMode,
    ) -> io::Result<Box<dyn OpenFileForReading>>;

    /// Returns the target of a link.
    ///
    /// # Errors
    /// If there is none.
    fn read_link(&self, link: &Path) -> io::Result<PathBuf>;
}

/// Whether a link in the last place of a path is followed. Those in the places before always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkMode {
    /// The link stands for its target.
    Follow,
    /// The link stands for itself.
    NoFollow,
}

/// A folder that is being listed.
pub trait OpenFolder {
    /// Calls `each` once for every name except `.` and `..`, in any order. The kind is an error if
    /// it cannot be told.
    ///
    /// # Errors
    /// If the rest of it cannot be seen.
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()>;

    /// Returns what has this name in the folder; a link stands for itself.
    ///
    /// # Errors
    /// If nothing does, or it cannot be told.
    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat>;
}

/// A regular file that is open for reading.
pub trait OpenFileForReading: Read {
    /// Returns its current stat.
    ///
    /// # Errors
    /// If that cannot be told.
    fn stat_open_file(&self) -> io::Result<FileStat>;
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symlink.
    Link,
    /// A pipe, socket or device.
    Special,
}

/// What the file system says about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// The stamp that tells whether it has changed.
    pub stamp: FileStamp,
}

/// The metadata of a file that change whenever its content does: no program can set the change
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Its length in bytes.
    pub size: u64,
    /// When it was modified, as programs may set it: nanoseconds since 1970.
    pub modified_ns: i64,
    /// When it was changed in any way: nanoseconds since 1970.
    pub changed_ns: i64,
    /// The file system; 0 where it cannot be told.
    pub device: u64,
    /// The inode number; 0 where it cannot be told.
    pub inode: u64,
    /// Type and permission bits; 0 where there are none.
    pub mode: u32,
}
