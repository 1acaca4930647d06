//! Which files git tracks: names only, nothing else of git's is asked or believed.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use super::walk::text;

/// The files under `root` that git tracks, relative to it; none where there is no git.
pub fn tracked_files(root: &Path) -> BTreeSet<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        // What the repository's config would have git run is none of our business.
        .args(["-c", "core.fsmonitor=false", "ls-files", "-z", "--cached"])
        // Set where we are called from one of git's own hooks; they may mean another tree.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_PREFIX")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(text)
            .collect(),
        Ok(_) | Err(_) => BTreeSet::new(),
    }
}
