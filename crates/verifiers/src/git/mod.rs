//! Reads git repositories in process. Nothing here starts git or any other program: the author of a
//! repository controls its files, and git runs the programs that a repository's config names.

mod bitmap;
mod config;
mod environment;
mod index_file;
mod index_format;
mod repository;
mod tracked;

use std::io;
use std::path::PathBuf;

pub use environment::GitPathsFromEnvironment;
pub use index_format::{
    GitIndex, GitIndexEntry, GitIndexEntryKind, SplitIndexLink, parse_git_index,
};
pub use repository::GitRepository;
pub use tracked::{GitTrackedPaths, read_tracked_paths};

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
    #[error("core.worktree in '{}' names another folder", config.display())]
    OtherWorktree {
        /// The file that says so.
        config: PathBuf,
    },
    /// A submodule whose repository is elsewhere: its content is not part of this work.
    #[error("'{}' leads out of the repository that the submodule is in", path.display())]
    OutsideSubmodule {
        /// The `.git` of the submodule.
        path: PathBuf,
    },
    /// A variable of the environment.
    #[error("{name} is '{}', which git cannot use", value.display())]
    Variable {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: PathBuf,
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
    /// Reading took longer than the limit.
    #[error("reading the git index took too long")]
    TooSlow,
}

impl GitReadError {
    /// Returns what a person or an agent can do about it.
    pub fn git_error_remedy(&self) -> String {
        match self {
            Self::File { .. } | Self::TooLarge { .. } => {
                "make it a file that can be read; `git status` says what git makes of it".to_owned()
            }
            Self::Pointer { path } => format!(
                "run `git worktree repair` where the repository is, or remove '{}' if there is none any more",
                path.display()
            ),
            Self::OtherWorktree { config } => format!(
                "run: git config --file '{}' --unset core.worktree",
                config.display()
            ),
            Self::OutsideSubmodule { .. } => "run: git submodule absorbgitdirs".to_owned(),
            Self::Variable { name, .. } => {
                format!("unset {name} where the agent or its hook is started")
            }
            Self::Index(_) => {
                "remove the index file in the git folder and run `git reset`, which writes a new one"
                    .to_owned()
            }
            Self::TooSlow => "it is read again at the next stop".to_owned(),
        }
    }
}
