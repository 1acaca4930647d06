//! Defines [`FileTreeReader`], what a check needs to know of a tree, and a tree in memory for tests and
//! for hosts without a disk.

use std::collections::BTreeMap;

use crate::tree_path::PathBelowRoot;

/// What is at a path. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathEntryKind {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// Device and inode, where the system reports them.
        identity: Option<(u64, u64)>,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A folder.
    Folder,
    /// A symbolic link, with its target.
    Link(String),
    /// A pipe, a device, or a link whose target is no UTF-8.
    Other,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeFileReadError {
    /// It is larger than the limit.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The system reports an error.
    #[error("{0}")]
    System(String),
}

/// A tree of files. The paths given to it contain no links.
pub trait FileTreeReader {
    /// Returns what is at this path.
    ///
    /// # Errors
    /// If the system reports an error.
    fn file_tree_node_at_path(
        &self,
        path: &PathBelowRoot,
    ) -> Result<PathEntryKind, TreeFileReadError>;

    /// The bytes of the regular file at this path.
    ///
    /// # Errors
    /// If it cannot be read, or is no regular file.
    fn read_file(&self, path: &PathBelowRoot) -> Result<Vec<u8>, TreeFileReadError>;

    /// Absolute spellings of its root.
    fn root_spellings(&self) -> Vec<String>;

    /// Returns whether names that differ only in case name the same file.
    fn is_case_insensitive(&self) -> bool {
        false
    }
}

/// A tree in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InMemoryFileTree {
    /// Its files.
    pub files: BTreeMap<PathBelowRoot, Vec<u8>>,
    /// Its symbolic links.
    pub links: BTreeMap<PathBelowRoot, String>,
    /// Folders in addition to those of the files and links.
    pub folders: Vec<PathBelowRoot>,
    /// Whether names that differ only in case name the same file.
    pub is_case_insensitive: bool,
}

impl InMemoryFileTree {
    fn find_entry_by_tree_path<'a, T>(
        &self,
        of: &'a BTreeMap<PathBelowRoot, T>,
        path: &PathBelowRoot,
    ) -> Option<(usize, &'a T)> {
        let same = |known: &PathBelowRoot| match self.is_case_insensitive {
            true => known.lowercase_path() == path.lowercase_path(),
            false => known == path,
        };
        of.iter()
            .enumerate()
            .find(|(_, (known, _))| same(known))
            .map(|(at, (_, value))| (at, value))
    }
}

impl FileTreeReader for InMemoryFileTree {
    fn file_tree_node_at_path(
        &self,
        path: &PathBelowRoot,
    ) -> Result<PathEntryKind, TreeFileReadError> {
        if let Some((at, _)) = self.find_entry_by_tree_path(&self.files, path) {
            return Ok(PathEntryKind::File {
                // The position is unique, and stable as long as a check borrows the tree.
                identity: Some((0, at as u64)),
                executable: false,
            });
        }
        if let Some((_, target)) = self.find_entry_by_tree_path(&self.links, path) {
            return Ok(PathEntryKind::Link(target.clone()));
        }
        // Folders are implied by what lies below them.
        let mut known = self
            .files
            .keys()
            .chain(self.links.keys())
            .chain(&self.folders);
        Ok(
            match known.any(|known| known.is_at_or_below_folder(path))
                || *path == PathBelowRoot::tree_root_path()
            {
                true => PathEntryKind::Folder,
                false => PathEntryKind::Missing,
            },
        )
    }

    fn read_file(&self, path: &PathBelowRoot) -> Result<Vec<u8>, TreeFileReadError> {
        match self.find_entry_by_tree_path(&self.files, path) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => Err(TreeFileReadError::System("no such file".to_owned())),
        }
    }

    fn root_spellings(&self) -> Vec<String> {
        vec!["/root-of-memory".to_owned()]
    }

    fn is_case_insensitive(&self) -> bool {
        self.is_case_insensitive
    }
}
