//! Which files git tracks, as the tree's walk names them: only names are taken from the index,
//! nothing else of git's is asked or believed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::walk::text;
use crate::git::{self, GitEnvironment, GitReadError};

/// The files under `root` that git tracks, relative to it; none where there is no git. A name
/// that ends with `/` is a folder: git tracks everything in it. `env` may lead git elsewhere.
///
/// # Errors
/// If there is a repository and its index cannot be read within `limit`.
pub fn tracked_files(
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
    limit: Duration,
) -> Result<BTreeSet<String>, GitReadError> {
    let names = git::tracked_below(root, &GitEnvironment::of(env), Instant::now() + limit)?;
    let files = names.files.iter().map(|name| text(name));
    let folders = names.folders.iter().map(|name| text(name) + "/");
    Ok(files.chain(folders).collect())
}
