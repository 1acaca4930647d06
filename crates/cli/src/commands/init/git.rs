//! What `init` has to know of the git repository: where it is, which files it tracks, and which it
//! ignores. It is read in process; git is not started.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use checkrein_verifiers::git::{
    GitPathsFromEnvironment, GitReadError, GitRepository, read_tracked_paths,
};
use checkrein_verifiers::regular_file;
use ignore::Match;
use ignore::gitignore::{GitignoreBuilder, gitconfig_excludes_path};

use crate::ui::errors::CommandError;

/// Longest time for reading an index.
const INDEX_READ_LIMIT: Duration = Duration::from_secs(20);

/// Opens the repository; `None` also for one that cannot be read.
fn open_repository(folder: &Path) -> Option<GitRepository> {
    GitRepository::discover_git_repository(folder).ok()?
}

/// Returns the top of the worktree.
pub(super) fn worktree_root(here: &Path) -> Option<PathBuf> {
    Some(open_repository(here)?.worktree)
}

/// Returns the top of the main worktree.
pub(super) fn main_worktree(root: &Path) -> Option<PathBuf> {
    open_repository(root)?.main_worktree()
}

/// Returns whether the file is committed, or about to be.
pub(super) fn is_tracked_by_git(root: &Path, file: &Path) -> Result<bool, CommandError> {
    let Ok(name) = file.strip_prefix(root) else {
        return Ok(false);
    };
    let name = name.as_os_str().as_encoded_bytes();
    read_tracked_paths(
        root,
        &GitPathsFromEnvironment::default(),
        Instant::now() + INDEX_READ_LIMIT,
    )
    .map(|tracked| tracked.files.contains(name))
    .map_err(git_tracking_unknown_error)
}

fn git_tracking_unknown_error(error: GitReadError) -> CommandError {
    let source = error.source().map(|source| format!(": {source}"));
    CommandError::usage_error(
        format!(
            "it is not known which files git tracks, so your own could be committed: {error}{}",
            source.unwrap_or_default()
        ),
        format!("{}; then run this again", error.git_error_remedy()),
    )
}

/// Returns whether git ignores the file: by ignore files of the folders above it, by this person's
/// own for the repo, or by the one for all their repos.
pub(super) fn is_ignored_by_git(root: &Path, file: &Path) -> bool {
    let Some(repository) = open_repository(root) else {
        return false;
    };
    let top = &repository.worktree;
    // The repository's paths are real ones, so a link in the root would match none of them.
    let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let Some(file) = file
        .strip_prefix(root)
        .ok()
        .map(|name| real_root.join(name))
    else {
        return false;
    };
    let above = file
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(top));
    let mut sources: Vec<(PathBuf, PathBuf)> = above
        .map(|folder| (folder.to_owned(), folder.join(".gitignore")))
        .collect();
    sources.push((top.clone(), git_exclude_file_path(&repository)));
    sources.extend(global_excludes_file().map(|excludes| (top.clone(), excludes)));
    // The nearest file decides, and an ignored folder takes everything in it along.
    let parts: Vec<&Path> = file.ancestors().take_while(|part| part != top).collect();
    parts.iter().rev().any(|part| {
        let is_folder = *part != file;
        let verdicts = sources
            .iter()
            .filter(|(folder, _)| part.starts_with(folder) && part != folder)
            .map(|(folder, source)| match_ignore_file(folder, source, part, is_folder));
        verdicts
            .into_iter()
            .find(|verdict| !verdict.is_none())
            .is_some_and(|verdict| verdict.is_ignore())
    })
}

fn match_ignore_file(folder: &Path, source: &Path, part: &Path, is_folder: bool) -> Match<()> {
    // A pipe in its place would block the reading.
    if regular_file::open_regular_file(source).is_err() {
        return Match::None;
    }
    let mut builder = GitignoreBuilder::new(folder);
    // Lines that are no patterns are skipped, as git does.
    let _ = builder.add(source);
    let Ok(patterns) = builder.build() else {
        return Match::None;
    };
    patterns.matched(part, is_folder).map(|_| ())
}

/// Returns this person's ignore file for all repos.
fn global_excludes_file() -> Option<PathBuf> {
    let home = std::env::home_dir()?;
    let configs = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|folder| !folder.is_empty())
        .map_or_else(|| home.join(".config"), PathBuf::from);
    let settings = [home.join(".gitconfig"), configs.join("git/config")];
    // The library reads these files itself, and a pipe in their place would block it.
    let readable = |file: &PathBuf| !file.exists() || regular_file::open_regular_file(file).is_ok();
    settings
        .iter()
        .all(readable)
        .then(gitconfig_excludes_path)?
}

/// Returns the ignore file of this repo that is this person's own.
pub(super) fn repo_exclude_file(root: &Path) -> Result<Option<PathBuf>, CommandError> {
    let repository =
        GitRepository::discover_git_repository(root).map_err(git_tracking_unknown_error)?;
    Ok(repository.as_ref().map(git_exclude_file_path))
}

fn git_exclude_file_path(repository: &GitRepository) -> PathBuf {
    repository.common_dir.join("info/exclude")
}
