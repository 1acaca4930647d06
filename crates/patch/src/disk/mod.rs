//! A tree on disk. Paths are walked name by name and no link is followed, so that nothing
//! put in their place meanwhile leads out.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::io;
use std::path::Path;

use crate::file_tree::{FileTreeReader, PathEntryKind, TreeFileReadError};
use crate::tree_path::PathBelowRoot;

#[cfg(not(unix))]
pub(crate) use other::PatchRootFolder;
#[cfg(unix)]
pub(crate) use unix::PatchRootFolder;

/// A folder on disk.
#[derive(Debug)]
pub struct DiskTree {
    root: PatchRootFolder,
    root_spellings: Vec<String>,
    max_file_bytes: u64,
    folds_case: bool,
}

impl DiskTree {
    /// Opens the folder at `root`. Files of more than `largest` bytes are not read.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_file_tree(root: &Path, largest: u64) -> io::Result<Self> {
        // Both spellings are kept: a patch may use the path that the agent was given, or the real
        // one.
        let real = root.canonicalize()?;
        let mut spelled = Vec::new();
        for path in [root, real.as_path()] {
            if path.is_absolute()
                && let Some(path) = path.to_str()
            {
                spelled.push(path.to_owned());
            }
        }
        Ok(Self {
            root: PatchRootFolder::open_root_folder(&real)?,
            root_spellings: spelled,
            max_file_bytes: largest,
            folds_case: is_folder_case_insensitive(&real),
        })
    }

    pub(crate) fn root_folder(&self) -> &PatchRootFolder {
        &self.root
    }
}

/// Returns whether this folder is found by its own name in another case.
fn is_folder_case_insensitive(root: &Path) -> bool {
    let Some(name) = root.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let (upper, lower) = (name.to_uppercase(), name.to_lowercase());
    // Asked of the folder itself: a volume's case sensitivity can differ from its system's default.
    let other = if name == lower { upper } else { lower };
    if other == name {
        return false;
    }
    let same = |path: &Path| path.canonicalize().ok();
    match (same(root), same(&root.with_file_name(other))) {
        (Some(one), Some(other)) => PatchRootFolder::is_same_file(&one, &other),
        _ => false,
    }
}

impl FileTreeReader for DiskTree {
    fn file_tree_node_at_path(
        &self,
        path: &PathBelowRoot,
    ) -> Result<PathEntryKind, TreeFileReadError> {
        self.root
            .disk_node_at_path(path)
            .map_err(tree_error_from_io)
    }

    fn read_file(&self, path: &PathBelowRoot) -> Result<Vec<u8>, TreeFileReadError> {
        match self.root.read_file(path, self.max_file_bytes) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(TreeFileReadError::TooLarge(self.max_file_bytes)),
            Err(error) => Err(tree_error_from_io(error)),
        }
    }

    fn root_spellings(&self) -> Vec<String> {
        self.root_spellings.clone()
    }

    fn is_case_insensitive(&self) -> bool {
        self.folds_case
    }
}

/// Converts an error without its number and path, so that refusals are the same on every system.
fn tree_error_from_io(error: io::Error) -> TreeFileReadError {
    TreeFileReadError::System(error.kind().to_string())
}
