//! Finds where files really lie: rules judge paths by their text, but a symbolic link can lead a
//! path elsewhere. Whatever tool writes, a protected file is protected under every name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use checkrein_execpolicy::FileCommandWouldChange;

use crate::start_folders::normalize_path;

/// How many missing names of a path, and links that lead nowhere, are followed.
const MAX_HOPS: usize = 128;

/// Returns those of the paths that lie elsewhere than their text says, by their real place.
/// Relative ones start in `here`; what lies in the tree is spelled from `root`, as the policy
/// spells it.
pub(crate) fn real_paths_where_symlinks_differ(
    touched: &[FileCommandWouldChange],
    here: &Path,
    root: &Path,
) -> Vec<FileCommandWouldChange> {
    if touched.is_empty() {
        return Vec::new();
    }
    let real_root = root.canonicalize().ok();
    let mut found: Vec<FileCommandWouldChange> = Vec::new();
    for one in touched {
        // A home folder is spelled by the shell; the rules know it by its text.
        if one.path.starts_with('~') {
            continue;
        }
        let spelled = here.join(&one.path);
        let Some(real) = real_path(&spelled, one.removed) else {
            continue;
        };
        let below = real_root
            .as_ref()
            .and_then(|top| real.strip_prefix(top).ok());
        let place = match below {
            Some(below) => root.join(below),
            None => real,
        };
        let Some(path) = place
            .to_str()
            // A path that lies where it says was judged by its text already.
            .filter(|_| place != normalize_path(&root.join(&one.path)))
        else {
            continue;
        };
        let place = FileCommandWouldChange {
            path: path.to_owned(),
            removed: one.removed,
        };
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found
}

/// Follows a path through all links; with `removed`, not through the last name itself.
pub(crate) fn real_path(path: &Path, removed: bool) -> Option<PathBuf> {
    // Removing a link removes the link, not what it leads to.
    if removed {
        let name = path.file_name()?;
        return Some(real_path(path.parent()?, false)?.join(name));
    }
    let mut at = path.to_owned();
    let mut rest: Vec<OsString> = Vec::new();
    for _ in 0..MAX_HOPS {
        if let Ok(mut real) = at.canonicalize() {
            real.extend(rest.iter().rev());
            return Some(real);
        }
        // A link to a missing file: writing through it creates that file.
        if let Ok(target) = at.read_link() {
            at.pop();
            at.push(target);
            continue;
        }
        // A name that is not there yet is put aside, and the folder above it is tried.
        rest.push(at.file_name()?.to_owned());
        at.pop();
    }
    None
}
