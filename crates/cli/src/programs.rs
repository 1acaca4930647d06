//! Programs of the search path.

use std::env;
use std::path::{Path, PathBuf};

/// The program of this name on the PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
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
