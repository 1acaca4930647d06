//! Accesses files relative to open folders (`openat` and its relatives). Each step of a path is
//! opened without following links, so a link that is swapped in cannot lead out of the root.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags};

use crate::file_tree::PathEntryKind;
use crate::tree_path::PathBelowRoot;

const FOLDER_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The open root folder; all paths are below it.
#[derive(Debug)]
pub(crate) struct PatchRootFolder(OwnedFd);

impl PatchRootFolder {
    pub(crate) fn open_root_folder(path: &Path) -> io::Result<Self> {
        Ok(Self(sys::open(path, FOLDER_FLAGS, Mode::empty())?))
    }

    pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
        let identity = |path: &Path| sys::stat(path).map(|stat| file_identity(&stat)).ok();
        identity(one).is_some() && identity(one) == identity(other)
    }

    fn open_folder(&self, path: &PathBelowRoot) -> io::Result<OwnedFd> {
        // Step by step: `NOFOLLOW` protects only the last name of each `open`.
        let mut folder = sys::openat(&self.0, ".", FOLDER_FLAGS, Mode::empty())?;
        for name in path.path_components() {
            folder = sys::openat(&folder, name, FOLDER_FLAGS, Mode::empty())?;
        }
        Ok(folder)
    }

    /// Opens the folder of a path; returns it with the last name.
    fn open_parent_folder<'p>(&self, path: &'p PathBelowRoot) -> io::Result<(OwnedFd, &'p str)> {
        let (folder, name) = path.parent_and_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.open_folder(&folder)?, name))
    }

    pub(crate) fn disk_node_at_path(&self, path: &PathBelowRoot) -> io::Result<PathEntryKind> {
        if *path == PathBelowRoot::tree_root_path() {
            return Ok(PathEntryKind::Folder);
        }
        let (folder, name) = match self.open_parent_folder(path) {
            Ok(found) => found,
            Err(error) if is_path_missing_error(&error) => return Ok(PathEntryKind::Missing),
            Err(error) => return Err(error),
        };
        let stat = match sys::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(rustix::io::Errno::NOENT) => return Ok(PathEntryKind::Missing),
            Err(error) => return Err(error.into()),
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => PathEntryKind::File {
                identity: Some(file_identity(&stat)),
                executable: stat.st_mode & 0o100 != 0,
            },
            FileType::Directory => PathEntryKind::Folder,
            FileType::Symlink => {
                let target = sys::readlinkat(&folder, name, Vec::new())?;
                target
                    .into_string()
                    .map_or(PathEntryKind::Other, PathEntryKind::Link)
            }
            _ => PathEntryKind::Other,
        })
    }

    /// `None` if it is longer than `largest`.
    pub(crate) fn read_file(
        &self,
        path: &PathBelowRoot,
        largest: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let (folder, name) = self.open_parent_folder(path)?;
        // `NONBLOCK`: opening a pipe in the file's place would otherwise wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(sys::openat(&folder, name, flags, Mode::empty())?);
        // Asked of the open file: the name may have been swapped since it was last checked.
        if !file.metadata()?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        // One byte more than allowed tells a file that is too long from one that just fits.
        file.take(largest.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= largest).then_some(bytes))
    }

    /// Creates a new file with the permissions of `like`; fails if it exists.
    pub(crate) fn create_empty_file(
        &self,
        path: &PathBelowRoot,
        like: Option<&PathBelowRoot>,
        executable: Option<bool>,
    ) -> io::Result<File> {
        let (folder, name) = self.open_parent_folder(path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = sys::openat(&folder, name, flags, Mode::from_raw_mode(0o666))?;
        let own = sys::fstat(&file)?;
        let mut mode = own.st_mode & 0o7777;
        if let Some(like) = like {
            let (folder, name) = self.open_parent_folder(like)?;
            let stat = sys::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if (stat.st_uid, stat.st_gid) != (own.st_uid, own.st_gid) {
                // Only root can give files away. The error is ignored: the content is what counts.
                let (user, group) = (
                    rustix::process::Uid::from_raw(stat.st_uid),
                    rustix::process::Gid::from_raw(stat.st_gid),
                );
                let _ = sys::fchown(&file, Some(user), Some(group));
            }
            mode = stat.st_mode & 0o7777;
        }
        match executable {
            // Whoever may read it may run it, as `chmod +x` under the usual umask.
            Some(true) => mode |= (mode & 0o444) >> 2,
            Some(false) => mode &= !0o111,
            None => {}
        }
        // After `fchown`, which clears the set-user-ID bits.
        sys::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(File::from(file))
    }

    pub(crate) fn rename_file(&self, from: &PathBelowRoot, to: &PathBelowRoot) -> io::Result<()> {
        let (old, old_name) = self.open_parent_folder(from)?;
        let (new, new_name) = self.open_parent_folder(to)?;
        Ok(sys::renameat(&old, old_name, &new, new_name)?)
    }

    pub(crate) fn remove_file_below_root(&self, path: &PathBelowRoot) -> io::Result<()> {
        let (folder, name) = self.open_parent_folder(path)?;
        Ok(sys::unlinkat(&folder, name, AtFlags::empty())?)
    }

    pub(crate) fn create_folder_below_root(&self, path: &PathBelowRoot) -> io::Result<()> {
        let (folder, name) = self.open_parent_folder(path)?;
        Ok(sys::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?)
    }

    /// Makes renames, creations and removals in this folder survive a power cut.
    pub(crate) fn sync_folder(&self, path: &PathBelowRoot) -> io::Result<()> {
        let folder = self.open_folder(path)?;
        Ok(sys::fsync(folder.as_fd())?)
    }
}

/// Returns whether the error means that there is nothing, or that something above is no folder.
fn is_path_missing_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns device and inode, whose width differs between systems.
fn file_identity(stat: &sys::Stat) -> (u64, u64) {
    fn to_u64(number: impl TryInto<u64>) -> u64 {
        number.try_into().unwrap_or(u64::MAX)
    }
    (to_u64(stat.st_dev), to_u64(stat.st_ino))
}
