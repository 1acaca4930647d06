//! Finds the programs that a check names, as the check itself would find them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Returns the file that `program` resolves to in the check's `PATH`.
pub fn find_program_in_path(program: &str, env: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let path = env.get(OsStr::new("PATH"))?;
    std::env::split_paths(path)
        .map(|folder| folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
        .find(|file| file.is_file())
}

/// Returns whether `program`, called in `folder` of the tree, exists. A name that is known only at
/// run time counts as existing.
pub fn program_exists(
    program: &str,
    folder: &str,
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
) -> bool {
    if program.contains(['$', '~', '`', '*', '\0']) || folder.contains('\0') {
        return true;
    }
    // POSIX: a name with a slash is a path and is not looked for in `PATH`.
    match program.contains('/') {
        true => root.join(folder).join(program).is_file(),
        false => find_program_in_path(program, env).is_some(),
    }
}
