//! Programs of the search path.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The program of this name on the PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    find(name, env::split_paths(&env::var_os("PATH")?))
}

/// The same, but never one that lies in the repo: a clone's own settings, or a person's habit
/// of taking a folder of it into the PATH, must not choose what we start.
pub(crate) fn outside(name: &str, root: &Path) -> Option<PathBuf> {
    let path = path_outside(&env::var_os("PATH")?, root);
    find(name, env::split_paths(&path)).filter(|file| !lies_in(file, root))
}

/// A search path without what is relative or in the repo.
pub(crate) fn path_outside(path: &std::ffi::OsStr, root: &Path) -> OsString {
    let kept =
        env::split_paths(path).filter(|folder| folder.is_absolute() && !lies_in(folder, root));
    env::join_paths(kept).unwrap_or_default()
}

/// Whether a file is the repo's. Where the repo is the home folder, or all there is, nothing is:
/// what is there is the person's.
pub(crate) fn lies_in(file: &Path, root: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real(root);
    let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
    if home.is_some_and(|home| real(&home).starts_with(&root)) {
        return false;
    }
    file.starts_with(&root) || real(file).starts_with(&root)
}

fn find(name: &str, mut folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    folders
        .by_ref()
        .map(|folder| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|file| is_program(file))
}

#[cfg(unix)]
pub(crate) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_program(file: &Path) -> bool {
    file.is_file()
}
