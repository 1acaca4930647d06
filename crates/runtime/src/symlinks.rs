//! Where files really lie: paths are judged by their text, and a symbolic link makes of a text
//! another place. Whatever tool writes: what is protected is so by every name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use checkrein_execpolicy::FileChangedByCommand;

use crate::start_folders::normalize_path;

/// Names of a path that are not there, and links that lead nowhere, that are followed.
const MAX_HOPS: usize = 128;

/// Those of the paths that lie elsewhere than they say, by where that is. Relative ones begin in
/// `here`; what lies in the tree is spelled from `root` on, as the policy spells it.
pub(crate) fn resolve_symlinked_paths(
    touched: &[FileChangedByCommand],
    here: &Path,
    root: &Path,
) -> Vec<FileChangedByCommand> {
    if touched.is_empty() {
        return Vec::new();
    }
    let real_root = root.canonicalize().ok();
    let mut found: Vec<FileChangedByCommand> = Vec::new();
    for one in touched {
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
            .filter(|_| place != normalize_path(&root.join(&one.path)))
        else {
            continue;
        };
        let place = FileChangedByCommand {
            path: path.to_owned(),
            removed: one.removed,
        };
        if !found.contains(&place) {
            found.push(place);
        }
    }
    found
}

/// Where a path leads through all links. `removed`: not through the one that it names itself.
pub(crate) fn real_path(path: &Path, removed: bool) -> Option<PathBuf> {
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
        // A link to what is not there yet: who writes through it makes that.
        if let Ok(target) = at.read_link() {
            at.pop();
            at.push(target);
            continue;
        }
        rest.push(at.file_name()?.to_owned());
        at.pop();
    }
    None
}
