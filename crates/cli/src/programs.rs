//! Finds programs on the search path.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the program of this name on the PATH.
pub(crate) fn find_program_on_path(name: &str) -> Option<PathBuf> {
    find_program_in_folders(name, env::split_paths(&env::var_os("PATH")?))
}

/// Returns the same, but never one in the repo: a clone's own settings, or a person's habit of
/// having one of its folders on the PATH, must not choose what we start.
pub(crate) fn find_program_outside_repo(name: &str, root: &Path) -> Option<PathBuf> {
    let path = search_path_outside_repo(&env::var_os("PATH")?, root);
    find_program_in_folders(name, env::split_paths(&path))
        // The file is checked as well: a link outside of the repo may lead into it.
        .filter(|file| !is_file_in_repo(file, root))
}

/// Returns a search path without relative folders and folders of the repo.
pub(crate) fn search_path_outside_repo(path: &std::ffi::OsStr, root: &Path) -> OsString {
    let kept = env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !is_file_in_repo(folder, root));
    env::join_paths(kept).unwrap_or_default()
}

/// Returns whether a file is the repo's. If the repo is the home folder or contains it, nothing is:
/// what lies there is the person's.
pub(crate) fn is_file_in_repo(file: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(root);
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    if home.is_some_and(|home| real(&home).starts_with(&root)) {
        return false;
    }
    // Both the path and what it leads to: a link in the repo to a program outside is the repo's
    // choice.
    file.starts_with(&root) || real(file).starts_with(&root)
}

fn find_program_in_folders(
    name: &str,
    mut folders: impl Iterator<Item = PathBuf>,
) -> Option<PathBuf> {
    folders
        .by_ref()
        .map(|folder| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|file| is_executable(file))
}

#[cfg(unix)]
pub(crate) fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_executable(file: &Path) -> bool {
    file.is_file()
}
