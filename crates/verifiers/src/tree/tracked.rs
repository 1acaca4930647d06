//! Which files git tracks: names only, nothing else of git's is asked or believed. What git
//! reads is anybody's to write: it is given so long, and no longer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::walk::text;
use crate::process::brief::{self, Answer, Bounds};

/// Longer a list is not read.
const LARGEST: u64 = 256 << 20;

/// The files under `root` that git tracks, relative to it; none where there is no git. `None`
/// if git does not tell within `limit`: it hangs, or there is no end to what it says.
pub fn tracked_files(root: &Path, limit: Duration) -> Option<BTreeSet<String>> {
    let Some(git) = git(root) else {
        return Some(BTreeSet::new());
    };
    let mut command = Command::new(git);
    command
        .arg("-C")
        .arg(root)
        // What the repository's config would have git run is none of our business.
        .args(["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached"]);
    // They may mean another tree, where we are called from one of git's own hooks, or name
    // programs and files to write, where a stranger's settings set them.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    let bounds = Bounds {
        time: limit,
        bytes: LARGEST,
        errors: false,
    };
    match brief::ask(command, bounds) {
        Answer::Said(names) => {
            let names = names.split(|byte| *byte == 0);
            Some(names.filter(|name| !name.is_empty()).map(text).collect())
        }
        // There is no repository, or none that git takes for one.
        Answer::None => Some(BTreeSet::new()),
        Answer::Cut => None,
    }
}

/// The git of the search path, but never one that lies in the repo itself: an agent's settings
/// come with a clone, and can put a folder of it in front.
pub fn git(root: &Path) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    // A tree may be a folder of a clone. Where the clone is all there is, git is in it.
    let top = root
        .ancestors()
        .find(|above| above.join(".git").symlink_metadata().is_ok())
        .unwrap_or(&root);
    let is_theirs = |real: &Path| top.parent().is_some() && real.starts_with(top);
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(format!("git{}", std::env::consts::EXE_SUFFIX)))
        .find(|file| file.is_file() && file.canonicalize().is_ok_and(|real| !is_theirs(&real)))
}
