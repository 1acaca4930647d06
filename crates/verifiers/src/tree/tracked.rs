//! Which files git tracks, as the tree's walk names them: only names are taken from the index,
//! nothing else of git's is asked or believed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use super::walk::text;
use crate::git;

/// The files under `root` that git tracks, relative to it; none where there is no git. A name
/// that ends with `/` is a folder: git tracks everything in it. `None` if there is a repository
/// and its index cannot be read within `limit`.
pub fn tracked_files(root: &Path, limit: Duration) -> Option<BTreeSet<String>> {
    let names = git::tracked_below(root, Instant::now() + limit).ok()?;
    let files = names.files.iter().map(|name| text(name));
    let folders = names.folders.iter().map(|name| text(name) + "/");
    Some(files.chain(folders).collect())
}
