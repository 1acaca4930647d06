//! The file system of this machine.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::{
    FileKind, FileStamp, FileStat, OpenFileForReading, OpenFolder, ReadOnlyFileSystem, SymlinkMode,
};
use crate::regular_file;

/// The files and clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

/// Threads beyond which a tree is not read faster.
const MAX_THREADS: usize = 4;

impl ReadOnlyFileSystem for RealFileSystem {
    fn clock_now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic_now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn worthwhile_thread_count(&self) -> usize {
        std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS))
    }

    fn open_folder_for_listing(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        Ok(Box::new(OpenFolderOnDisk::open_folder(folder)?))
    }

    fn stat_file(&self, path: &Path, links: SymlinkMode) -> io::Result<FileStat> {
        let metadata = match links {
            SymlinkMode::Follow => std::fs::metadata(path),
            SymlinkMode::NoFollow => std::fs::symlink_metadata(path),
        };
        Ok(FileStat::from_metadata(&metadata?))
    }

    fn open_file_for_reading(
        &self,
        path: &Path,
        links: SymlinkMode,
    ) -> io::Result<Box<dyn OpenFileForReading>> {
        Ok(Box::new(RealFile(match links {
            SymlinkMode::Follow => regular_file::open_regular_file(path)?,
            // The walk has just listed it as a regular file; the check after the open is enough.
            SymlinkMode::NoFollow => regular_file::open_file_listed_as_regular(path)?,
        })))
    }

    fn read_link(&self, link: &Path) -> io::Result<PathBuf> {
        std::fs::read_link(link)
    }
}

struct RealFile(File);

impl Read for RealFile {
    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        self.0.read(block)
    }
}

impl OpenFileForReading for RealFile {
    fn stat_open_file(&self) -> io::Result<FileStat> {
        Ok(FileStat::from_metadata(&self.0.metadata()?))
    }
}

/// Lists with the system call itself: the standard library allocates each name twice and asks for
/// more of each file than a stamp holds.
#[cfg(target_os = "linux")]
struct OpenFolderOnDisk(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl OpenFolderOnDisk {
    /// Bytes of names that are asked for at once.
    const LISTED_BYTES: usize = 32 * 1024;

    fn open_folder(folder: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        // `DIRECTORY` refuses a pipe of this name, which would block the open.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(folder, flags, Mode::empty());
        Ok(Self(rustix::io::retry_on_intr(open)?))
    }

    fn stat_at<P: rustix::path::Arg>(&self, name: P) -> io::Result<FileStat> {
        use rustix::fs::AtFlags;
        // Relative to the open folder: a folder that is renamed meanwhile does not mix with
        // another.
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileStat::from_raw_stat(&stat))
    }
}

#[cfg(target_os = "linux")]
impl OpenFolder for OpenFolderOnDisk {
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;

        use rustix::io::Errno;
        let mut buffer = Vec::with_capacity(Self::LISTED_BYTES);
        let mut entries = rustix::fs::RawDir::new(&self.0, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                // A signal interrupted the call; nothing of the listing is lost.
                Err(Errno::INTR) => continue,
                // The folder was removed meanwhile, which POSIX treats like its end.
                Err(Errno::NOENT) => return Ok(()),
                Err(err) => return Err(err.into()),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some file systems do not report the type in the listing (`DT_UNKNOWN`).
                rustix::fs::FileType::Unknown => self.stat_at(name).map(|stat| stat.kind),
                known => Ok(FileKind::from_raw_file_type(known)),
            };
            each(OsStr::from_bytes(name.to_bytes()), kind);
        }
        Ok(())
    }

    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        self.stat_at(name)
    }
}

#[cfg(not(target_os = "linux"))]
struct OpenFolderOnDisk {
    path: PathBuf,
    entries: std::fs::ReadDir,
}

#[cfg(not(target_os = "linux"))]
impl OpenFolderOnDisk {
    fn open_folder(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            path: folder.to_owned(),
            entries: std::fs::read_dir(folder)?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl OpenFolder for OpenFolderOnDisk {
    fn for_each_folder_entry(
        &mut self,
        each: &mut dyn FnMut(&OsStr, io::Result<FileKind>),
    ) -> io::Result<()> {
        for entry in self.entries.by_ref() {
            let entry = entry?;
            each(
                &entry.file_name(),
                entry.file_type().map(FileKind::from_file_type),
            );
        }
        Ok(())
    }

    fn stat_folder_entry(&self, name: &OsStr) -> io::Result<FileStat> {
        let metadata = std::fs::symlink_metadata(self.path.join(name))?;
        Ok(FileStat::from_metadata(&metadata))
    }
}

impl FileKind {
    fn from_file_type(kind: FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Folder
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Special
        }
    }

    #[cfg(target_os = "linux")]
    fn from_raw_file_type(kind: rustix::fs::FileType) -> Self {
        match kind {
            rustix::fs::FileType::RegularFile => Self::File,
            rustix::fs::FileType::Directory => Self::Folder,
            rustix::fs::FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

impl FileStat {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            kind: FileKind::from_file_type(metadata.file_type()),
            stamp: FileStamp::stamp_from_metadata(metadata),
        }
    }

    #[cfg(target_os = "linux")]
    #[allow(
        clippy::useless_conversion,
        reason = "the types of the members differ from one processor to the next"
    )]
    fn from_raw_stat(stat: &rustix::fs::Stat) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or_default();
        let mode = stat.st_mode.into();
        Self {
            kind: FileKind::from_raw_file_type(rustix::fs::FileType::from_raw_mode(mode)),
            stamp: FileStamp {
                size: number(stat.st_size.into()),
                modified_ns: seconds_and_nanos_to_nanos(
                    stat.st_mtime.into(),
                    i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
                ),
                changed_ns: seconds_and_nanos_to_nanos(
                    stat.st_ctime.into(),
                    i64::try_from(stat.st_ctime_nsec).unwrap_or_default(),
                ),
                device: stat.st_dev.into(),
                inode: stat.st_ino.into(),
                mode,
            },
        }
    }
}

#[cfg(unix)]
fn seconds_and_nanos_to_nanos(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

impl FileStamp {
    #[cfg(unix)]
    pub(crate) fn stamp_from_metadata(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            size: metadata.size(),
            modified_ns: seconds_and_nanos_to_nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: seconds_and_nanos_to_nanos(metadata.ctime(), metadata.ctime_nsec()),
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn stamp_from_metadata(metadata: &Metadata) -> Self {
        let since_1970 = |time: SystemTime| {
            let since = time.duration_since(std::time::UNIX_EPOCH);
            i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
        };
        // Without a time the file counts as just changed and is never cached.
        let modified_ns = metadata.modified().map_or(i64::MAX, since_1970);
        Self {
            size: metadata.len(),
            modified_ns,
            changed_ns: modified_ns,
            device: 0,
            inode: 0,
            mode: 0,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn test_folder_and_path_stats_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "12345").unwrap();
        std::fs::create_dir(path("folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(path("pipe"))
            .status();
        assert!(made.unwrap().success());
        // More than is asked for at once.
        for n in 0..2_000 {
            std::fs::write(path(&format!("{n:064}")), "").unwrap();
        }

        let mut open = RealFileSystem
            .open_folder_for_listing(folder.path())
            .unwrap();
        let mut listed = BTreeMap::new();
        open.for_each_folder_entry(&mut |name, kind| {
            assert!(listed.insert(name.to_owned(), kind.unwrap()).is_none());
        })
        .unwrap();
        assert_eq!(listed.len(), 2_004);
        let kinds = [
            ("file", FileKind::File),
            ("folder", FileKind::Folder),
            ("link", FileKind::Link),
            ("pipe", FileKind::Special),
        ];
        for (name, kind) in kinds {
            assert_eq!(listed[OsStr::new(name)], kind);
            let by_path = RealFileSystem
                .stat_file(&path(name), SymlinkMode::NoFollow)
                .unwrap();
            assert_eq!(open.stat_folder_entry(OsStr::new(name)).unwrap(), by_path);
            assert_eq!(by_path.kind, kind);
        }
        let gone = open.stat_folder_entry(OsStr::new("gone")).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        for links in [SymlinkMode::Follow, SymlinkMode::NoFollow] {
            let pipe = RealFileSystem.open_file_for_reading(&path("pipe"), links);
            assert_eq!(
                pipe.err().unwrap().kind(),
                io::ErrorKind::InvalidInput,
                "{links:?}"
            );
        }
    }
}
