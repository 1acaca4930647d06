//! Reads the environment variables that point git to other files than those it would find.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::GitReadError;
use super::repository::{GitRepository, real_path};

/// The places of git's files that an environment names.
///
/// The environment may be set by somebody who wants fewer files to count: the agent settings of a
/// clone can set the environment of a hook. So the files that these variables lead to count in
/// addition to those found without them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitPathsFromEnvironment {
    git_dir: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    index_file: Option<PathBuf>,
}

impl GitPathsFromEnvironment {
    /// Reads `GIT_DIR`, `GIT_WORK_TREE` and `GIT_INDEX_FILE`.
    pub fn git_variables_from_env(env: &BTreeMap<OsString, OsString>) -> Self {
        let path = |name: &str| env.get(OsStr::new(name)).map(PathBuf::from);
        Self {
            git_dir: path("GIT_DIR"),
            work_tree: path("GIT_WORK_TREE"),
            index_file: path("GIT_INDEX_FILE"),
        }
    }

    /// Returns the repository that git would use in `folder` because of these variables; `None` if
    /// none is set.
    ///
    /// # Errors
    /// If a variable names something unusable: git would stop there.
    pub(super) fn repository_from_git_variables(
        &self,
        folder: &Path,
    ) -> Result<Option<GitRepository>, GitReadError> {
        if *self == Self::default() {
            return Ok(None);
        }
        let unusable = |name, value: &Path| GitReadError::Variable {
            name,
            value: value.to_owned(),
        };
        // Relative paths count from the folder that git was started in. That is this folder, or one
        // above it if this is one of git's own hooks, which git starts at the top of the worktree.
        let is_there = |above: &&Path| match &self.git_dir {
            Some(named) => !named.as_os_str().is_empty() && above.join(named).exists(),
            None => true,
        };
        let base = folder.ancestors().find(is_there);
        let mut repository = match &self.git_dir {
            Some(named) => base
                .map(|base| GitRepository::open_repository_at(base, &base.join(named)))
                .transpose()?
                .flatten()
                .ok_or_else(|| unusable("GIT_DIR", named))?,
            None => match GitRepository::discover_git_repository(folder)? {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        if let Some(named) = &self.work_tree {
            if named.as_os_str().is_empty() {
                return Err(unusable("GIT_WORK_TREE", named));
            }
            repository.worktree = real_path(base.unwrap_or(folder).join(named));
        // With `GIT_DIR` and without `GIT_WORK_TREE` git takes `core.worktree`.
        } else if self.git_dir.is_some()
            && let Some(configured) = repository.read_git_format_and_worktree_settings()?.worktree
        {
            repository.worktree = real_path(configured.folder);
        }
        if let Some(named) = &self.index_file {
            repository.index = repository.worktree.join(named);
        }
        Ok(Some(repository))
    }
}
