//! What a check asks of a tree, and a tree in memory for tests and for whoever has no disk.

use std::collections::BTreeMap;

use crate::tree_path::PathBelowRoot;

/// What stands at a path. Links are not followed to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeNode {
    /// Nothing.
    Missing,
    /// A regular file.
    File {
        /// What makes it this file and no other, where the system tells.
        identity: Option<(u64, u64)>,
        /// It may be run.
        executable: bool,
    },
    /// A folder.
    Folder,
    /// A symbolic link to this.
    Link(String),
    /// A pipe, a device, a link to what is no text.
    Other,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileTreeError {
    /// Larger than what is read.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The system says no.
    #[error("{0}")]
    System(String),
}

/// A tree of files. Paths given to it lead through no link.
pub trait FileTree {
    /// What stands at this path.
    ///
    /// # Errors
    /// If the system does not tell.
    fn file_node_at_path(&self, path: &PathBelowRoot) -> Result<TreeNode, FileTreeError>;

    /// The bytes of the regular file at this path.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    fn read_file(&self, path: &PathBelowRoot) -> Result<Vec<u8>, FileTreeError>;

    /// Absolute spellings of its root.
    fn root_spellings(&self) -> Vec<String>;

    /// Names that differ in case only name one file.
    fn is_case_insensitive(&self) -> bool {
        false
    }
}

/// A tree in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryTree {
    /// Its files.
    pub files: BTreeMap<PathBelowRoot, Vec<u8>>,
    /// Its symbolic links.
    pub links: BTreeMap<PathBelowRoot, String>,
    /// Folders beside those in which something lies.
    pub folders: Vec<PathBelowRoot>,
    /// Upper and lower case are one.
    pub is_case_insensitive: bool,
}

impl MemoryTree {
    fn find_path<'a, T>(
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

impl FileTree for MemoryTree {
    fn file_node_at_path(&self, path: &PathBelowRoot) -> Result<TreeNode, FileTreeError> {
        if let Some((at, _)) = self.find_path(&self.files, path) {
            return Ok(TreeNode::File {
                identity: Some((0, at as u64)),
                executable: false,
            });
        }
        if let Some((_, target)) = self.find_path(&self.links, path) {
            return Ok(TreeNode::Link(target.clone()));
        }
        let mut known = self
            .files
            .keys()
            .chain(self.links.keys())
            .chain(&self.folders);
        Ok(
            match known.any(|known| known.is_at_or_below_folder(path))
                || *path == PathBelowRoot::tree_root_path()
            {
                true => TreeNode::Folder,
                false => TreeNode::Missing,
            },
        )
    }

    fn read_file(&self, path: &PathBelowRoot) -> Result<Vec<u8>, FileTreeError> {
        match self.find_path(&self.files, path) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => Err(FileTreeError::System("no such file".to_owned())),
        }
    }

    fn root_spellings(&self) -> Vec<String> {
        vec!["/root-of-memory".to_owned()]
    }

    fn is_case_insensitive(&self) -> bool {
        self.is_case_insensitive
    }
}
