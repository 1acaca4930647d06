//! By open folders and names in them: each step of a path is opened without following links.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags};

use crate::path::Within;
use crate::tree::Node;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// An open folder below which everything happens.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(sys::open(path, FOLDER, Mode::empty())?))
    }

    pub(crate) fn are_same(one: &Path, other: &Path) -> bool {
        let identity = |path: &Path| sys::stat(path).map(|stat| identity(&stat)).ok();
        identity(one).is_some() && identity(one) == identity(other)
    }

    fn folder(&self, path: &Within) -> io::Result<OwnedFd> {
        let mut folder = sys::openat(&self.0, ".", FOLDER, Mode::empty())?;
        for name in path.names() {
            folder = sys::openat(&folder, name, FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The folder that a path lies in, and its name there.
    fn parent<'p>(&self, path: &'p Within) -> io::Result<(OwnedFd, &'p str)> {
        let (folder, name) = path.split().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.folder(&folder)?, name))
    }

    pub(crate) fn look(&self, path: &Within) -> io::Result<Node> {
        if *path == Within::root() {
            return Ok(Node::Folder);
        }
        let (folder, name) = match self.parent(path) {
            Ok(found) => found,
            Err(error) if is_missing(&error) => return Ok(Node::Missing),
            Err(error) => return Err(error),
        };
        let stat = match sys::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => return Ok(Node::Missing),
            Err(error) => return Err(error.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Node::File {
                identity: Some(identity(&stat)),
                executable: stat.st_mode & 0o100 != 0,
            },
            FileType::Directory => Node::Folder,
            FileType::Symlink => {
                let target = sys::readlinkat(&folder, name, Vec::new())?;
                target.into_string().map_or(Node::Other, Node::Link)
            }
            _ => Node::Other,
        })
    }

    /// `None` if it is longer than `largest`.
    pub(crate) fn read(&self, path: &Within, largest: u64) -> io::Result<Option<Vec<u8>>> {
        let (folder, name) = self.parent(path)?;
        // A pipe in its place is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(sys::openat(&folder, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        file.take(largest.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= largest).then_some(bytes))
    }

    /// A new file, which nobody else has made; permissions like those of `like`.
    pub(crate) fn create(
        &self,
        path: &Within,
        like: Option<&Within>,
        executable: Option<bool>,
    ) -> io::Result<File> {
        let (folder, name) = self.parent(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(&folder, name, flags, Mode::from_raw_mode(0o666))?;
        let own = sys::fstat(&file)?;
        let mut mode = own.st_mode & 0o7777;
        if let Some(like) = like {
            let (folder, name) = self.parent(like)?;
            let stat = sys::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if (stat.st_uid, stat.st_gid) != (own.st_uid, own.st_gid) {
                // Who may not give files away keeps them: the content is what counts.
                let (user, group) = (
                    rustix::process::Uid::from_raw(stat.st_uid),
                    rustix::process::Gid::from_raw(stat.st_gid),
                );
                let _ = sys::fchown(&file, Some(user), Some(group));
            }
            mode = stat.st_mode & 0o7777;
        }
        match executable {
            Some(true) => mode |= (mode & 0o444) >> 2,
            Some(false) => mode &= !0o111,
            None => {}
        }
        sys::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(File::from(file))
    }

    pub(crate) fn rename(&self, from: &Within, to: &Within) -> io::Result<()> {
        let (old, old_name) = self.parent(from)?;
        let (new, new_name) = self.parent(to)?;
        Ok(sys::renameat(&old, old_name, &new, new_name)?)
    }

    pub(crate) fn remove(&self, path: &Within) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        Ok(sys::unlinkat(&folder, name, AtFlags::empty())?)
    }

    pub(crate) fn make_folder(&self, path: &Within) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        Ok(sys::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?)
    }

    /// Makes what was renamed, made or removed in this folder survive a power cut.
    pub(crate) fn sync_folder(&self, path: &Within) -> io::Result<()> {
        let folder = self.folder(path)?;
        Ok(sys::fsync(folder.as_fd())?)
    }
}

/// Not there, or below something that is no folder.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// The numbers that make it this file; systems differ in how wide they are.
fn identity(stat: &sys::Stat) -> (u64, u64) {
    fn wide(number: impl TryInto<u64>) -> u64 {
        number.try_into().unwrap_or(u64::MAX)
    }
    (wide(stat.st_dev), wide(stat.st_ino))
}
