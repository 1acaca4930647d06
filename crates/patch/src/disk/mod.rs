//! A tree on disk. Paths are walked name by name and no link is followed, so that nothing
//! put in their place meanwhile leads out.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use std::io;
use std::path::Path;

use crate::path::Within;
use crate::tree::{Node, Tree, TreeError};

#[cfg(not(unix))]
pub(crate) use other::Root;
#[cfg(unix)]
pub(crate) use unix::Root;

/// A folder on disk.
#[derive(Debug)]
pub struct Disk {
    root: Root,
    spelled: Vec<String>,
    largest: u64,
    folds_case: bool,
}

impl Disk {
    /// The folder at `root`, of whose files at most `largest` bytes each are read.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(root: &Path, largest: u64) -> io::Result<Self> {
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
            root: Root::open(&real)?,
            spelled,
            largest,
            folds_case: folds_case(&real),
        })
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }
}

/// Whether this folder answers to its own name in another case.
fn folds_case(root: &Path) -> bool {
    let Some(name) = root.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    let (upper, lower) = (name.to_uppercase(), name.to_lowercase());
    let other = if name == lower { upper } else { lower };
    if other == name {
        return false;
    }
    let same = |path: &Path| path.canonicalize().ok();
    match (same(root), same(&root.with_file_name(other))) {
        (Some(one), Some(other)) => Root::are_same(&one, &other),
        _ => false,
    }
}

impl Tree for Disk {
    fn look(&self, path: &Within) -> Result<Node, TreeError> {
        self.root.look(path).map_err(told)
    }

    fn read(&self, path: &Within) -> Result<Vec<u8>, TreeError> {
        match self.root.read(path, self.largest) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(TreeError::TooLarge(self.largest)),
            Err(error) => Err(told(error)),
        }
    }

    fn roots(&self) -> Vec<String> {
        self.spelled.clone()
    }

    fn folds_case(&self) -> bool {
        self.folds_case
    }
}

/// Without numbers and paths: the same refusal everywhere.
fn told(error: io::Error) -> TreeError {
    TreeError::System(error.kind().to_string())
}
