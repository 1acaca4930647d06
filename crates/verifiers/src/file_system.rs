//! The file system and the clocks, as the tree's walk asks them. The walk decides what counts and what is
//! remembered; whether files lie on a disk or in memory is the business of a [`FileSystem`].

mod real;

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

pub use real::RealFileSystem;

/// Files and clocks. Several threads ask it at once.
pub trait FileSystem: Send + Sync + Debug {
    /// The clock that stamps are compared with.
    fn clock_now(&self) -> SystemTime;

    /// The clock that durations are taken by; it never goes back.
    fn monotonic_now(&self) -> Instant;

    /// Returns after this time.
    fn sleep(&self, time: Duration);

    /// How many threads are worth starting to ask it.
    fn worthwhile_thread_count(&self) -> usize;

    /// Opens a folder for listing. A link in the last place of the path is followed.
    ///
    /// # Errors
    /// If there is none, or it cannot be listed.
    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>>;

    /// What stands at a path.
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
    ) -> io::Result<Box<dyn OpenFile>>;

    /// Where a link leads.
    ///
    /// # Errors
    /// If there is none.
    fn read_link(&self, link: &Path) -> io::Result<PathBuf>;
}

/// Whether a link in the last place of a path is followed. Those in the places before always are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymlinkMode {
    /// It stands for what it leads to.
    Follow,
    /// It stands for itself.
    NoFollow,
}

/// A folder that is being listed.
pub trait OpenFolder {
    /// Tells each name in it once, but `.` and `..`, in any order. The kind is an error if it cannot be told.
    ///
    /// # Errors
    /// If the rest of it cannot be seen.
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()>;

    /// What stands in it under a name; a link stands for itself.
    ///
    /// # Errors
    /// If nothing does, or it cannot be told.
    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat>;
}

/// A regular file that is open for reading.
pub trait OpenFile: Read {
    /// What the file system says of it by now.
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

/// What a file system says of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// What tells whether it has changed.
    pub stamp: FileStamp,
}

/// Of a file, what changes whenever its content does: no program can set the change time.
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
    /// Its number there; 0 where it cannot be told.
    pub inode: u64,
    /// Type and permission bits; 0 where there are none.
    pub mode: u32,
}
