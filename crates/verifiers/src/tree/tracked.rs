//! Lists the files that git tracks under the names that the tree's walk uses. Only names are taken
//! from the index; nothing else of git's is asked or believed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::PackedNameSet;
use super::walk::{path_bytes_to_lossless_text, path_text_with_escapes};
use crate::git::{self, GitPathsFromEnvironment, GitReadError};

/// Returns the files under `root` that git tracks, relative to it; none where there is no git
/// repository. A name that ends with `/` is a folder of which git tracks everything. `env` may
/// point git to other files.
///
/// # Errors
/// If there is a repository and its index cannot be read within `limit`.
pub fn git_tracked_files(
    root: &Path,
    env: &BTreeMap<OsString, OsString>,
    limit: Duration,
) -> Result<PackedNameSet, GitReadError> {
    let names = git::read_tracked_paths(
        root,
        &GitPathsFromEnvironment::git_variables_from_env(env),
        Instant::now() + limit,
    )?;
    let files: Vec<Cow<'_, str>> = names
        .files
        .iter()
        .map(|name| path_bytes_to_lossless_text(name))
        .collect();
    let folders: Vec<String> = names
        .folders
        .iter()
        .map(|name| path_text_with_escapes(name) + "/")
        .collect();
    let names = files.iter().map(AsRef::as_ref);
    Ok(names.chain(folders.iter().map(String::as_str)).collect())
}
