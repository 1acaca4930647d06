//! Finds a repository: its worktree, its own folder, and the folder that all its worktrees share.
//!
//! A folder that looks like a bare repository is treated as any other folder. A clone can contain
//! one as ordinary files, and git would believe its config.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::GitReadError;
use super::config::{GitObjectFormat, GitRepositoryConfig};
use crate::regular_file;

/// Limit in bytes of git's small files: pointers and configs.
const SMALL_FILE: u64 = 1 << 20;

/// A repository with a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRepository {
    /// The top of the worktree.
    pub worktree: PathBuf,
    /// The folder of what belongs to this worktree, above all its index.
    pub git_dir: PathBuf,
    /// The folder that all worktrees share: objects, branches, config.
    pub common_dir: PathBuf,
    /// The index file.
    pub(super) index: PathBuf,
}

/// The settings of a repository that say how it is read.
#[derive(Debug)]
pub(super) struct GitObjectFormatAndCoreWorktree {
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
    /// Finds the repository whose worktree contains `folder`, as git does.
    ///
    /// # Errors
    /// If the nearest `.git` is a file that leads to no repository.
    pub fn discover_git_repository(folder: &Path) -> Result<Option<Self>, GitReadError> {
        // Git walks up the real path, so a symlink into a repository is inside it.
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

    /// Opens the repository that `dot_git` is or points to; `None` if git would not accept it
    /// either.
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
        // Git ignores a `.git` that is neither a folder nor a file and searches further up.
        if !metadata.is_file() {
            return Ok(None);
        }
        // A worktree or a submodule has a file `.git` with the line `gitdir: PATH`.
        let pointer = read_small_git_file(dot_git)?.unwrap_or_default();
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
        // A linked worktree names the shared folder in `commondir`, relative to its own.
        let common_dir = match read_small_git_file(&git_dir.join("commondir"))? {
            Some(target) => real_path(git_dir.join(path_from_git_pointer_file(&target))),
            None => git_dir.clone(),
        };
        // The test that git makes: `HEAD`, which may be a dangling symlink, `objects` and `refs`.
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

    /// Returns the main worktree, if it is the folder that holds the shared `.git`.
    pub fn main_worktree(&self) -> Option<PathBuf> {
        let common_dir = self.common_dir.canonicalize().ok()?;
        let holder = common_dir.parent().filter(|_| common_dir.ends_with(".git"));
        holder.map(Path::to_owned)
    }

    /// Returns `folder` as git names it: relative to the worktree, `/`-separated, empty for the
    /// top.
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

    /// Returns what the config says of how the index is read. The config of a worktree counts only
    /// if the shared one says so. Without that the shared config does not speak for linked
    /// worktrees, as in git.
    pub(super) fn read_git_format_and_worktree_settings(
        &self,
    ) -> Result<GitObjectFormatAndCoreWorktree, GitReadError> {
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
            // The worktree's own file is read last, so it overrides the shared one.
            named = own.worktree.map(|named| (named, own_file)).or(named);
        }
        Ok(GitObjectFormatAndCoreWorktree {
            object_format: shared.object_format,
            worktree: named.map(|(named, config)| GitCoreWorktree {
                // Git resolves a relative `core.worktree` from the git folder.
                folder: self.git_dir.join(named),
                config,
            }),
        })
    }

    /// Returns the same settings if `core.worktree` agrees with where `.git` is. Otherwise the
    /// names in the index would be those of other files.
    pub(super) fn git_settings_if_core_worktree_matches(
        &self,
    ) -> Result<GitObjectFormatAndCoreWorktree, GitReadError> {
        let settings = self.read_git_format_and_worktree_settings()?;
        if let Some(configured) = &settings.worktree {
            let folder = configured.folder.canonicalize();
            // A folder that does not exist is another one, too.
            if !folder.is_ok_and(|folder| folder == self.worktree) {
                return Err(GitReadError::OtherWorktree {
                    config: configured.config.clone(),
                });
            }
        }
        Ok(settings)
    }

    fn read_git_config(&self, path: &Path) -> Result<GitRepositoryConfig, GitReadError> {
        let text = read_small_git_file(path)?.unwrap_or_default();
        Ok(GitRepositoryConfig::parse_git_config(
            &String::from_utf8_lossy(&text),
        ))
    }
}

/// Reads a small file of git's; `None` if there is none.
fn read_small_git_file(path: &Path) -> Result<Option<Vec<u8>>, GitReadError> {
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
    // One byte more than allowed tells a file at the limit from a longer one.
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

/// Resolves links if the path exists.
pub(super) fn real_path(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

/// Returns the path in a pointer file, without its line end.
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
