//! Accesses files by path, for systems where folders cannot be held open. Each step is checked
//! before it is used; a link that is swapped in between the check and the use is not noticed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::file_tree::PathEntryKind;
use crate::tree_path::PathBelowRoot;

/// The root folder; all paths are below it.
#[derive(Debug)]
pub(crate) struct PatchRootFolder(PathBuf);

impl PatchRootFolder {
    pub(crate) fn open_root_folder(path: &Path) -> io::Result<Self> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(Self(path.to_owned())),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
        one == other
    }

    /// Returns the path on disk, if no step before the last is a link.
    fn path_on_disk_refusing_links(&self, path: &PathBelowRoot) -> io::Result<PathBuf> {
        let mut at = self.0.clone();
        let mut names = path.path_components().peekable();
        while let Some(name) = names.next() {
            at.push(name);
            if names.peek().is_some() && !fs::symlink_metadata(&at)?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        Ok(at)
    }

    pub(crate) fn disk_node_at_path(&self, path: &PathBelowRoot) -> io::Result<PathEntryKind> {
        let missing = |error: &io::Error| {
            matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            )
        };
        let found = self
            .path_on_disk_refusing_links(path)
            .and_then(|path| Ok((fs::symlink_metadata(&path)?, path)));
        let (metadata, path) = match found {
            Ok(found) => found,
            Err(error) if missing(&error) => return Ok(PathEntryKind::Missing),
            Err(error) => return Err(error),
        };
        let kind = metadata.file_type();
        Ok(if kind.is_symlink() {
            let target = fs::read_link(&path)?;
            target.to_str().map_or(PathEntryKind::Other, |target| {
                PathEntryKind::Link(target.replace(std::path::MAIN_SEPARATOR, "/"))
            })
        } else if kind.is_dir() {
            PathEntryKind::Folder
        } else if kind.is_file() {
            PathEntryKind::File {
                identity: None,
                executable: false,
            }
        } else {
            PathEntryKind::Other
        })
    }

    /// `None` if it is longer than `largest`.
    pub(crate) fn read_file(
        &self,
        path: &PathBelowRoot,
        largest: u64,
    ) -> io::Result<Option<Vec<u8>>> {
        let path = self.path_on_disk_refusing_links(path)?;
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut bytes = Vec::new();
        File::open(path)?
            .take(largest.saturating_add(1))
            .read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 <= largest).then_some(bytes))
    }

    /// Creates a new file; fails if it exists. Permissions are inherited from the folder here.
    pub(crate) fn create_empty_file(
        &self,
        path: &PathBelowRoot,
        _like: Option<&PathBelowRoot>,
        _executable: Option<bool>,
    ) -> io::Result<File> {
        let path = self.path_on_disk_refusing_links(path)?;
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    pub(crate) fn rename_file(&self, from: &PathBelowRoot, to: &PathBelowRoot) -> io::Result<()> {
        fs::rename(
            self.path_on_disk_refusing_links(from)?,
            self.path_on_disk_refusing_links(to)?,
        )
    }

    pub(crate) fn remove_file_below_root(&self, path: &PathBelowRoot) -> io::Result<()> {
        fs::remove_file(self.path_on_disk_refusing_links(path)?)
    }

    pub(crate) fn create_folder_below_root(&self, path: &PathBelowRoot) -> io::Result<()> {
        fs::create_dir(self.path_on_disk_refusing_links(path)?)
    }

    /// Does nothing but check the path: folders cannot be synced here, and the system orders its
    /// own records.
    pub(crate) fn sync_folder(&self, path: &PathBelowRoot) -> io::Result<()> {
        self.path_on_disk_refusing_links(path).map(|_| ())
    }
}
