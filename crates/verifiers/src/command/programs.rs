//! Where the programs that a check names lie, as the check itself would find them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::Job;

/// The file that `program` stands for in the check's `PATH`.
pub(super) fn find_in_path(program: &str, job: &Job<'_>) -> Option<PathBuf> {
    let path = job.env.get(OsStr::new("PATH"))?;
    std::env::split_paths(path)
        .map(|folder| folder.join(format!("{program}{}", std::env::consts::EXE_SUFFIX)))
        .find(|file| file.is_file())
}

/// Whether `program`, called in `folder` of the tree, is there. One whose name only the run knows is.
pub(super) fn is_there(program: &str, folder: &str, job: &Job<'_>) -> bool {
    if program.contains(['$', '~', '`', '*', '\0']) || folder.contains('\0') {
        return true;
    }
    match program.contains('/') {
        true => job.root.join(folder).join(Path::new(program)).is_file(),
        false => find_in_path(program, job).is_some(),
    }
}
