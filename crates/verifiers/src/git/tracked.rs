//! Lists the names that git tracks below a folder, including those in submodules and in the
//! repository that the environment names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::config::GitObjectFormat;
use super::index_file::LARGEST;
use super::repository::{GitRepository, path_from_bytes, real_path};
use super::{GitIndexEntryKind, GitPathsFromEnvironment, GitReadError};

/// Names that git tracks, as bytes relative to a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GitTrackedPaths {
    /// Files, symlinks and submodules, with the files of submodules.
    pub files: BTreeSet<Vec<u8>>,
    /// Folders of a sparse index: git tracks everything in them without listing it. The empty name
    /// is the folder itself.
    pub folders: BTreeSet<Vec<u8>>,
}

/// Returns what git tracks below `folder`; nothing where there is no repository. The files that
/// `env` leads to count in addition to those found without it.
///
/// # Errors
/// If there is a repository and its index, or that of a submodule, cannot be read by `until`: then
/// it is unknown what is tracked.
pub fn read_tracked_paths(
    folder: &Path,
    env: &GitPathsFromEnvironment,
    until: Instant,
) -> Result<GitTrackedPaths, GitReadError> {
    let mut tracked = TrackedPathsReader {
        files: Vec::new(),
        folders: Vec::new(),
        left: LARGEST as usize,
        until,
    };
    let Ok(folder) = folder.canonicalize() else {
        return Ok(GitTrackedPaths::default());
    };
    if let Some(repository) = GitRepository::discover_git_repository(&folder)? {
        let object_format = repository
            .git_settings_if_core_worktree_matches()?
            .object_format;
        tracked.collect_git_tracked_paths(&folder, &repository, object_format)?;
    }
    if let Some(repository) = env.repository_from_git_variables(&folder)? {
        // `core.worktree` is not compared here: with `GIT_DIR` and `GIT_WORK_TREE` git itself lets
        // the two differ.
        let object_format = repository
            .read_git_format_and_worktree_settings()?
            .object_format;
        tracked.collect_git_tracked_paths(&folder, &repository, object_format)?;
    }
    // Collected into sets at once: an index is sorted already.
    Ok(GitTrackedPaths {
        files: tracked.files.into_iter().collect(),
        folders: tracked.folders.into_iter().collect(),
    })
}

struct TrackedPathsReader {
    files: Vec<Vec<u8>>,
    folders: Vec<Vec<u8>>,
    /// Bytes that further names may take together.
    left: usize,
    until: Instant,
}

impl TrackedPathsReader {
    /// Collects what this repository and its submodules track below `folder`.
    fn collect_git_tracked_paths(
        &mut self,
        folder: &Path,
        repository: &GitRepository,
        object_format: GitObjectFormat,
    ) -> Result<(), GitReadError> {
        let Some(below) = repository.worktree_relative_path(folder) else {
            return Ok(());
        };
        // A `.git` file can point anywhere. A submodule whose repository is not inside this one is
        // an error: a clone could bring in names from another project.
        let home = [
            &repository.worktree,
            &repository.git_dir,
            &repository.common_dir,
        ]
        .map(|folder| real_path(folder.clone()));
        let is_at_home = |found: &PathBuf| {
            let found = real_path(found.clone());
            home.iter().any(|home| found.starts_with(home))
        };
        let mut found = self.collect_index_paths(repository, object_format, &below, &[])?;
        let mut seen = BTreeSet::new();
        // Every submodule is a real folder below the one it is in, so the loop ends.
        while let Some(name) = found.pop() {
            let Some(worktree) =
                submodule_checkout_folder(folder, &name).filter(|_| seen.insert(name.clone()))
            else {
                continue;
            };
            let dot_git = worktree.join(".git");
            let Some(submodule) = GitRepository::open_repository_at(&worktree, &dot_git)? else {
                continue;
            };
            if !is_at_home(&submodule.git_dir) || !is_at_home(&submodule.common_dir) {
                return Err(GitReadError::OutsideSubmodule { path: dot_git });
            }
            let object_format = submodule
                .git_settings_if_core_worktree_matches()?
                .object_format;
            found.extend(self.collect_index_paths(&submodule, object_format, &[], &name)?);
        }
        Ok(())
    }

    /// Collects the names of one index that are below a folder of its worktree, prefixed with the
    /// submodule that they are in. Returns the submodules among them.
    fn collect_index_paths(
        &mut self,
        repository: &GitRepository,
        object_format: GitObjectFormat,
        below: &[u8],
        submodule: &[u8],
    ) -> Result<Vec<Vec<u8>>, GitReadError> {
        let mut submodules = Vec::new();
        for entry in repository.read_index_entries(object_format, self.left, self.until)? {
            let inside = match strip_folder_prefix(&entry.name, below) {
                Some(inside) => inside,
                // A sparse folder above `below` covers all of it.
                None if entry.kind == GitIndexEntryKind::Folder
                    && is_at_or_inside(below, &entry.name) =>
                {
                    &[]
                }
                None => continue,
            };
            let name = join_submodule_path(submodule, inside);
            self.left = self.left.saturating_sub(name.len());
            if entry.kind == GitIndexEntryKind::Submodule {
                submodules.push(name.clone());
            }
            match entry.kind {
                GitIndexEntryKind::Folder => self.folders.push(name),
                GitIndexEntryKind::File | GitIndexEntryKind::Submodule => self.files.push(name),
            }
        }
        Ok(submodules)
    }
}

/// Returns the folder of this name; `None` if there is none. A symlink is refused: what is behind
/// it is not in the tree, and the names are untrusted.
fn submodule_checkout_folder(top: &Path, name: &[u8]) -> Option<PathBuf> {
    let mut folder = top.to_owned();
    for part in name.split(|byte| *byte == b'/') {
        if matches!(part, b"" | b"." | b"..") || part.eq_ignore_ascii_case(b".git") {
            return None;
        }
        folder.push(path_from_bytes(part));
        if !folder.symlink_metadata().ok()?.is_dir() {
            return None;
        }
    }
    Some(folder)
}

fn join_submodule_path(submodule: &[u8], name: &[u8]) -> Vec<u8> {
    match (submodule, name) {
        ([], name) => name.to_vec(),
        (submodule, []) => submodule.to_vec(),
        (submodule, name) => [submodule, name].join(&b'/'),
    }
}

/// Returns the part of `name` below `folder`; the empty folder is the top.
fn strip_folder_prefix<'n>(name: &'n [u8], folder: &[u8]) -> Option<&'n [u8]> {
    match folder {
        [] => Some(name),
        _ => name.strip_prefix(folder)?.strip_prefix(b"/"),
    }
}

fn is_at_or_inside(name: &[u8], folder: &[u8]) -> bool {
    name == folder || strip_folder_prefix(name, folder).is_some()
}
