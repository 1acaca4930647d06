//! The file system of this machine.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::{FileKind, FileStat, FileSystem, Links, OpenFile, OpenFolder, Stamp};
use crate::regular;

/// The files and clocks of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

/// More threads than this do not read a tree any quicker.
const MAX_THREADS: usize = 4;

impl FileSystem for RealFileSystem {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MAX_THREADS))
    }

    fn open_folder(&self, folder: &Path) -> io::Result<Box<dyn OpenFolder>> {
        Ok(Box::new(RealFolder::open(folder)?))
    }

    fn stat(&self, path: &Path, links: Links) -> io::Result<FileStat> {
        let metadata = match links {
            Links::Followed => std::fs::metadata(path),
            Links::Kept => std::fs::symlink_metadata(path),
        };
        Ok(FileStat::of(&metadata?))
    }

    fn open_file(&self, path: &Path, links: Links) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(RealFile(match links {
            Links::Followed => regular::open(path)?,
            Links::Kept => regular::open_listed(path)?,
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

impl OpenFile for RealFile {
    fn stat(&self) -> io::Result<FileStat> {
        Ok(FileStat::of(&self.0.metadata()?))
    }
}

/// Lists by the system call itself: the standard library allocates each name twice, and asks for more of
/// each file than a stamp holds.
#[cfg(target_os = "linux")]
struct RealFolder(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl RealFolder {
    /// Names that are asked for at once.
    const LISTED_BYTES: usize = 32 * 1024;

    fn open(folder: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || rustix::fs::open(folder, flags, Mode::empty());
        Ok(Self(rustix::io::retry_on_intr(open)?))
    }

    fn stat_in<P: rustix::path::Arg>(&self, name: P) -> io::Result<FileStat> {
        use rustix::fs::AtFlags;
        let stat = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileStat::of_stat(&stat))
    }
}

#[cfg(target_os = "linux")]
impl OpenFolder for RealFolder {
    fn list(&mut self, each: &mut dyn FnMut(&OsStr, io::Result<FileKind>)) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;

        use rustix::io::Errno;
        let mut buffer = Vec::with_capacity(Self::LISTED_BYTES);
        let mut entries = rustix::fs::RawDir::new(&self.0, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::INTR) => continue,
                // It was removed meanwhile, which POSIX wants to look like its end.
                Err(Errno::NOENT) => return Ok(()),
                Err(err) => return Err(err.into()),
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                // This file system does not say so when it lists.
                rustix::fs::FileType::Unknown => self.stat_in(name).map(|stat| stat.kind),
                known => Ok(FileKind::of_raw(known)),
            };
            each(OsStr::from_bytes(name.to_bytes()), kind);
        }
        Ok(())
    }

    fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        self.stat_in(name)
    }
}

#[cfg(not(target_os = "linux"))]
struct RealFolder {
    path: PathBuf,
    entries: std::fs::ReadDir,
}

#[cfg(not(target_os = "linux"))]
impl RealFolder {
    fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            path: folder.to_owned(),
            entries: std::fs::read_dir(folder)?,
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl OpenFolder for RealFolder {
    fn list(&mut self, each: &mut dyn FnMut(&OsStr, io::Result<FileKind>)) -> io::Result<()> {
        for entry in self.entries.by_ref() {
            let entry = entry?;
            each(&entry.file_name(), entry.file_type().map(FileKind::of));
        }
        Ok(())
    }

    fn stat(&self, name: &OsStr) -> io::Result<FileStat> {
        let metadata = std::fs::symlink_metadata(self.path.join(name))?;
        Ok(FileStat::of(&metadata))
    }
}

impl FileKind {
    fn of(kind: FileType) -> Self {
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
    fn of_raw(kind: rustix::fs::FileType) -> Self {
        match kind {
            rustix::fs::FileType::RegularFile => Self::File,
            rustix::fs::FileType::Directory => Self::Folder,
            rustix::fs::FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

impl FileStat {
    fn of(metadata: &Metadata) -> Self {
        Self {
            kind: FileKind::of(metadata.file_type()),
            stamp: Stamp::of(metadata),
        }
    }

    #[cfg(target_os = "linux")]
    #[allow(
        clippy::useless_conversion,
        reason = "the types of the members differ from one processor to the next"
    )]
    fn of_stat(stat: &rustix::fs::Stat) -> Self {
        let number = |number: i64| u64::try_from(number).unwrap_or_default();
        let mode = stat.st_mode.into();
        Self {
            kind: FileKind::of_raw(rustix::fs::FileType::from_raw_mode(mode)),
            stamp: Stamp {
                size: number(stat.st_size.into()),
                modified_ns: nanoseconds(
                    stat.st_mtime.into(),
                    i64::try_from(stat.st_mtime_nsec).unwrap_or_default(),
                ),
                changed_ns: nanoseconds(
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
fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

impl Stamp {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self {
            size: metadata.size(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let since_1970 = |time: SystemTime| {
            let since = time.duration_since(std::time::UNIX_EPOCH);
            i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
        };
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
    fn a_folder_says_the_same_of_what_is_in_it_as_its_path_does() {
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

        let mut open = RealFileSystem.open_folder(folder.path()).unwrap();
        let mut listed = BTreeMap::new();
        open.list(&mut |name, kind| {
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
            let by_path = RealFileSystem.stat(&path(name), Links::Kept).unwrap();
            assert_eq!(open.stat(OsStr::new(name)).unwrap(), by_path);
            assert_eq!(by_path.kind, kind);
        }
        let gone = open.stat(OsStr::new("gone")).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        for links in [Links::Followed, Links::Kept] {
            let pipe = RealFileSystem.open_file(&path("pipe"), links);
            assert_eq!(
                pipe.err().unwrap().kind(),
                io::ErrorKind::InvalidInput,
                "{links:?}"
            );
        }
    }
}
