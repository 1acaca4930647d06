//! Reads git repositories in process. Nothing here starts git or any other program: a
//! repository is its author's to write, and git runs what a repository's config names.

mod bitmap;
mod config;
mod index_file;
mod index_format;
mod repository;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use index_format::{IndexEntries, SharedPart, parse_index};
pub use repository::GitRepository;

/// Why a repository that is there cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitReadError {
    /// A file of the repository.
    #[error("cannot read '{}'", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A `.git` file, or what it points to.
    #[error("'{}' does not lead to a git repository", path.display())]
    Pointer {
        /// The `.git` file.
        path: PathBuf,
    },
    /// The files of the index belong to another folder.
    #[error("core.worktree of '{}' names another folder", git_dir.display())]
    OtherWorktree {
        /// The repository.
        git_dir: PathBuf,
    },
    /// The index is damaged, or of a form that this version does not know.
    #[error("the git index cannot be read: {0}")]
    Index(&'static str),
    /// A file of the repository is too large, or what it stands for is.
    #[error("'{}' is larger than {} MiB", path.display(), limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit in bytes.
        limit: u64,
    },
    /// It took longer than it may.
    #[error("reading the git index took too long")]
    TooSlow,
}

/// Names that git tracks, as bytes relative to a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrackedNames {
    /// Files, symlinks and submodules.
    pub files: BTreeSet<Vec<u8>>,
    /// Folders of a sparse index: git tracks everything in them, without naming it. The empty
    /// name is the folder itself.
    pub folders: BTreeSet<Vec<u8>>,
}

/// What git tracks below `folder`; nothing where there is no repository.
///
/// # Errors
/// If there is a repository and its index cannot be read by `until`: then nobody knows what is
/// tracked.
pub fn tracked_below(folder: &Path, until: Instant) -> Result<TrackedNames, GitReadError> {
    let Some(repository) = GitRepository::discover(folder)? else {
        return Ok(TrackedNames::default());
    };
    let Some(below) = repository.name_of(folder) else {
        return Ok(TrackedNames::default());
    };
    let entries = repository.index_entries(until)?;
    let mut names = TrackedNames::default();
    for name in &entries.names {
        match name.strip_suffix(b"/") {
            None => {
                if let Some(inside) = name_inside(name, &below) {
                    names.files.insert(inside.to_vec());
                }
            }
            Some(sparse) if is_at_or_inside(&below, sparse) => {
                names.folders.insert(Vec::new());
            }
            Some(sparse) => {
                if let Some(inside) = name_inside(sparse, &below) {
                    names.folders.insert(inside.to_vec());
                }
            }
        }
    }
    Ok(names)
}

/// The part of `name` below `folder`; the empty folder is the top.
fn name_inside<'n>(name: &'n [u8], folder: &[u8]) -> Option<&'n [u8]> {
    match folder {
        [] => Some(name),
        _ => name.strip_prefix(folder)?.strip_prefix(b"/"),
    }
}

fn is_at_or_inside(name: &[u8], folder: &[u8]) -> bool {
    name == folder || name_inside(name, folder).is_some()
}
