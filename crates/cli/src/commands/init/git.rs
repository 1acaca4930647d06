//! What `init` asks git: where the repo is, and which files it would take up.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use checkrein_verifiers::process::brief::{self, Answer, Bounds};
use checkrein_verifiers::tree::git;

/// Longest wait for an answer, and longest answer.
const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(20),
    bytes: 1024 * 1024,
    errors: false,
};

/// What git says in a folder; `None` if it does not answer, or with no.
fn asked(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(git(folder)?);
    command.arg("-C").arg(folder).args(arguments);
    match brief::ask(command, BOUNDS) {
        Answer::Said(text) => Some(String::from_utf8(text).ok()?.trim_end().to_owned()),
        Answer::None | Answer::Cut => None,
    }
}

/// The top of the worktree.
pub(super) fn root(here: &Path) -> Option<PathBuf> {
    let top = asked(here, &["rev-parse", "--show-toplevel"])?;
    PathBuf::from(top).canonicalize().ok()
}

/// The top of the worktree that the repo was made with.
pub(super) fn main_worktree(root: &Path) -> Option<PathBuf> {
    let common = asked(
        root,
        &["rev-parse", "--path-format=absolute", "--git-common-dir"],
    )?;
    let common = PathBuf::from(common).canonicalize().ok()?;
    if !common.ends_with(".git") {
        return None;
    }
    common.parent().map(Path::to_owned)
}

/// Whether the file is committed, or about to be.
pub(super) fn is_tracked(root: &Path, file: &Path) -> bool {
    let file = file.to_string_lossy();
    asked(root, &["ls-files", "--error-unmatch", "--", &file]).is_some()
}

/// Whether git passes the file over.
pub(super) fn is_ignored(root: &Path, file: &Path) -> bool {
    let file = file.to_string_lossy();
    asked(root, &["check-ignore", "--quiet", "--", &file]).is_some()
}

/// The file of patterns that are this person's own.
pub(super) fn exclude(root: &Path) -> Option<PathBuf> {
    let path = asked(root, &["rev-parse", "--git-path", "info/exclude"])?;
    Some(root.join(path))
}
