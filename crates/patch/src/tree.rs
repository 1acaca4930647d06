//! What a check asks of a tree, and a tree in memory for tests and for whoever has no disk.

use std::collections::BTreeMap;

use crate::path::Within;

/// What stands at a path. Links are not followed to find out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
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
pub enum TreeError {
    /// Larger than what is read.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// The system says no.
    #[error("{0}")]
    System(String),
}

/// A tree of files. Paths given to it lead through no link.
pub trait Tree {
    /// What stands at this path.
    ///
    /// # Errors
    /// If the system does not tell.
    fn look(&self, path: &Within) -> Result<Node, TreeError>;

    /// The bytes of the regular file at this path.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    fn read(&self, path: &Within) -> Result<Vec<u8>, TreeError>;

    /// Absolute spellings of its root.
    fn roots(&self) -> Vec<String>;

    /// Names that differ in case only name one file.
    fn folds_case(&self) -> bool {
        false
    }
}

/// A tree in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Its files.
    pub files: BTreeMap<Within, Vec<u8>>,
    /// Its symbolic links.
    pub links: BTreeMap<Within, String>,
    /// Folders beside those in which something lies.
    pub folders: Vec<Within>,
    /// Upper and lower case are one.
    pub folds_case: bool,
}

impl Memory {
    fn find<'a, T>(&self, of: &'a BTreeMap<Within, T>, path: &Within) -> Option<(usize, &'a T)> {
        let same = |known: &Within| match self.folds_case {
            true => known.in_lower_case() == path.in_lower_case(),
            false => known == path,
        };
        of.iter()
            .enumerate()
            .find(|(_, (known, _))| same(known))
            .map(|(at, (_, value))| (at, value))
    }
}

impl Tree for Memory {
    fn look(&self, path: &Within) -> Result<Node, TreeError> {
        if let Some((at, _)) = self.find(&self.files, path) {
            return Ok(Node::File {
                identity: Some((0, at as u64)),
                executable: false,
            });
        }
        if let Some((_, target)) = self.find(&self.links, path) {
            return Ok(Node::Link(target.clone()));
        }
        let mut known = self
            .files
            .keys()
            .chain(self.links.keys())
            .chain(&self.folders);
        Ok(
            match known.any(|known| known.starts_with(path)) || *path == Within::root() {
                true => Node::Folder,
                false => Node::Missing,
            },
        )
    }

    fn read(&self, path: &Within) -> Result<Vec<u8>, TreeError> {
        match self.find(&self.files, path) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => Err(TreeError::System("no such file".to_owned())),
        }
    }

    fn roots(&self) -> Vec<String> {
        vec!["/root-of-memory".to_owned()]
    }

    fn folds_case(&self) -> bool {
        self.folds_case
    }
}
