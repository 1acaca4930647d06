//! Where a repository is: its worktree, its own folder, and the folder that all worktrees share.
//!
//! A folder that looks like a bare repository is a folder like any other. A clone can hold one
//! as ordinary files, and git would believe its config.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::GitReadError;
use super::config::{GitObjectFormat, GitRepositoryConfig};
use crate::regular_file;

/// Longer no file of git's is that names a folder, and no config.
const SMALL_FILE: u64 = 1 << 20;

/// A repository with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRepository {
    /// The top of the worktree.
    pub worktree: PathBuf,
    /// What belongs to this worktree, its index above all.
    pub git_dir: PathBuf,
    /// What all worktrees share: objects, branches, config.
    pub common_dir: PathBuf,
    /// The names of what is tracked.
    pub(super) index: PathBuf,
}

/// What a repository's own settings say of how it is read.
#[derive(Debug)]
pub(super) struct RepositorySettings {
    pub(super) object_format: GitObjectFormat,
    pub(super) worktree: Option<GitCoreWorktree>,
}

/// A `core.worktree`.
#[derive(Debug)]
pub(super) struct GitCoreWorktree {
    pub(super) folder: PathBuf,
    /// The file that says so.
    pub(super) config: PathBuf,
}

impl GitRepository {
    /// The repository whose worktree `folder` is in, found as git finds it.
    ///
    /// # Errors
    /// If the nearest `.git` is a file that leads to no repository.
    pub fn discover(folder: &Path) -> Result<Option<Self>, GitReadError> {
        let Ok(folder) = folder.canonicalize() else {
            return Ok(None);
        };
        for worktree in folder.ancestors() {
            if let Some(found) = Self::open_repository_at(worktree, &worktree.join(".git"))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The repository that `dot_git` is, or points to; `None` if it is none for git either.
    ///
    /// # Errors
    /// If it is a file that leads to no repository.
    pub(super) fn open_repository_at(
        worktree: &Path,
        dot_git: &Path,
    ) -> Result<Option<Self>, GitReadError> {
        let Ok(metadata) = std::fs::metadata(dot_git) else {
            return Ok(None);
        };
        if metadata.is_dir() {
            return Self::open_repository_from_git_dir(worktree, dot_git.to_owned());
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let pointer = read_small_file(dot_git)?.unwrap_or_default();
        let holder = dot_git.parent().unwrap_or(worktree);
        let found = match pointer.strip_prefix(b"gitdir: ") {
            Some(target) => Self::open_repository_from_git_dir(
                worktree,
                real_path(holder.join(path_from_git_pointer_file(target))),
            )?,
            None => None,
        };
        let wrong = || GitReadError::Pointer {
            path: dot_git.to_owned(),
        };
        found.ok_or_else(wrong).map(Some)
    }

    /// `None` if git would not take `git_dir` for a repository either.
    fn open_repository_from_git_dir(
        worktree: &Path,
        git_dir: PathBuf,
    ) -> Result<Option<Self>, GitReadError> {
        let common_dir = match read_small_file(&git_dir.join("commondir"))? {
            Some(target) => real_path(git_dir.join(path_from_git_pointer_file(&target))),
            None => git_dir.clone(),
        };
        let is_repository = git_dir.join("HEAD").symlink_metadata().is_ok()
            && common_dir.join("objects").is_dir()
            && common_dir.join("refs").is_dir();
        Ok(is_repository.then(|| Self {
            worktree: worktree.to_owned(),
            index: git_dir.join("index"),
            git_dir,
            common_dir,
        }))
    }

    /// The main worktree, where it is the folder that holds the shared `.git`.
    pub fn main_worktree(&self) -> Option<PathBuf> {
        let common_dir = self.common_dir.canonicalize().ok()?;
        let holder = common_dir.parent().filter(|_| common_dir.ends_with(".git"));
        holder.map(Path::to_owned)
    }

    /// How git names `folder`: relative to the worktree, with `/`; the top is empty.
    pub(super) fn worktree_relative_path(&self, folder: &Path) -> Option<Vec<u8>> {
        let folder = folder.canonicalize().ok()?;
        let below = folder.strip_prefix(&self.worktree).ok()?;
        let mut name = Vec::new();
        for part in below.components() {
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(part.as_os_str().as_encoded_bytes());
        }
        Some(name)
    }

    /// What the config says of how the index is read. The config of a worktree counts only where
    /// the shared one says so; without it, as in git, the shared config does not speak for linked
    /// worktrees.
    pub(super) fn read_git_settings(&self) -> Result<RepositorySettings, GitReadError> {
        let shared_file = self.common_dir.join("config");
        let shared = self.read_git_config(&shared_file)?;
        let is_linked = self.git_dir != self.common_dir;
        let mut named = match is_linked && !shared.worktree_config {
            true => None,
            false => shared.worktree.map(|named| (named, shared_file)),
        };
        if shared.worktree_config {
            let own_file = self.git_dir.join("config.worktree");
            let own = self.read_git_config(&own_file)?;
            named = own.worktree.map(|named| (named, own_file)).or(named);
        }
        Ok(RepositorySettings {
            object_format: shared.object_format,
            worktree: named.map(|(named, config)| GitCoreWorktree {
                folder: self.git_dir.join(named),
                config,
            }),
        })
    }

    /// The same, if it agrees with where `.git` is: otherwise the names in the index are those
    /// of other files.
    pub(super) fn read_worktree_settings(&self) -> Result<RepositorySettings, GitReadError> {
        let settings = self.read_git_settings()?;
        if let Some(configured) = &settings.worktree {
            let folder = configured.folder.canonicalize();
            if !folder.is_ok_and(|folder| folder == self.worktree) {
                return Err(GitReadError::OtherWorktree {
                    config: configured.config.clone(),
                });
            }
        }
        Ok(settings)
    }

    fn read_git_config(&self, path: &Path) -> Result<GitRepositoryConfig, GitReadError> {
        let text = read_small_file(path)?.unwrap_or_default();
        Ok(GitRepositoryConfig::parse_git_config(
            &String::from_utf8_lossy(&text),
        ))
    }
}

/// A small file of git's; `None` if there is none.
fn read_small_file(path: &Path) -> Result<Option<Vec<u8>>, GitReadError> {
    let failed = |source| GitReadError::File {
        path: path.to_owned(),
        source,
    };
    let file = match regular_file::open_regular_file(path) {
        Ok(file) => file,
        Err(error) if is_not_found_error(&error) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(SMALL_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    match bytes.len() as u64 > SMALL_FILE {
        true => Err(GitReadError::TooLarge {
            path: path.to_owned(),
            limit: SMALL_FILE,
        }),
        false => Ok(Some(bytes)),
    }
}

/// Without links, where it is there.
pub(super) fn real_path(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// The path in a file of git's, which ends with its line.
fn path_from_git_pointer_file(bytes: &[u8]) -> PathBuf {
    path_from_bytes(bytes.trim_ascii_end())
}

/// The path of these bytes.
pub(super) fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt as _;
        PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
    }
    #[cfg(not(unix))]
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

pub(super) fn is_not_found_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
