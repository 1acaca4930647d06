//! What ignore files leave out of a tree.

use std::borrow::Cow;
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::excluded_folders::is_cache_folder;
use super::walk::{is_file, is_folder, os_str_from_bytes};
use crate::file_system::{FileKind, FileSystem, SymlinkMode};

/// A folder's ignore file and those above it.
pub(crate) struct IgnoreRules {
    here: Gitignore,
    folder: IgnoreFilePlace,
    above: Option<Arc<IgnoreRules>>,
}

/// Where the folder of an ignore file lies.
enum IgnoreFilePlace {
    /// In the tree, and its own path is so long, with a `/` at the end.
    Inside(usize),
    /// Above the root, which lies there under this path, with a `/` at the end.
    Above(Vec<u8>),
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// More of an ignore file is not read: what it would leave out counts.
const LARGEST: u64 = 4 << 20;

/// Whether a path, relative to the root, is left out.
pub(crate) fn is_ignored(path: &[u8], is_folder: bool, ignores: Option<&IgnoreRules>) -> bool {
    let mut level = ignores;
    while let Some(ignores) = level {
        let from_there = match &ignores.folder {
            IgnoreFilePlace::Inside(length) => Cow::from(path.get(*length..).unwrap_or_default()),
            IgnoreFilePlace::Above(root) => Cow::from([root.as_slice(), path].concat()),
        };
        let name = os_str_from_bytes(&from_there);
        match ignores.here.matched(Path::new(&name), is_folder) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => level = ignores.above.as_deref(),
        }
    }
    false
}

/// The rules in a folder of the tree, `prefix` with a `/` at the end, or the root.
pub(crate) fn folder_ignore_rules(
    files: &dyn FileSystem,
    folder: &Path,
    prefix: &[u8],
    above: Option<Arc<IgnoreRules>>,
) -> Option<Arc<IgnoreRules>> {
    load_ignore_rules(
        files,
        folder,
        || IgnoreFilePlace::Inside(prefix.len()),
        above,
    )
}

fn load_ignore_rules(
    files: &dyn FileSystem,
    folder: &Path,
    place: impl FnOnce() -> IgnoreFilePlace,
    above: Option<Arc<IgnoreRules>>,
) -> Option<Arc<IgnoreRules>> {
    let file = folder.join(".gitignore");
    // Like git, no symlink; and a pipe of that name would have us wait for ever.
    let stat = files.stat_file(&file, SymlinkMode::NoFollow);
    if !stat.is_ok_and(|stat| stat.kind == FileKind::File) {
        return above;
    }
    let Ok(open) = files.open_file_for_reading(&file, SymlinkMode::NoFollow) else {
        return above;
    };
    let mut text = Vec::new();
    // What can be read of it holds.
    let _ = open.take(LARGEST).read_to_end(&mut text);
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    // Of this name its matcher takes no path for one that begins with the folder's.
    let mut builder = GitignoreBuilder::new(".");
    for line in text.lines().map_while(Result::ok) {
        // A line that is no glob is skipped, as git does.
        let _ = builder.add_line(None, &line);
    }
    match builder.build() {
        Ok(here) if !here.is_empty() => Some(Arc::new(IgnoreRules {
            here,
            folder: place(),
            above,
        })),
        Ok(_) | Err(_) => above,
    }
}

/// The ignore files between the root of the git repository and ours. None where there is no
/// repository: a stray ignore file in a home folder is nobody's wish for this tree.
pub(crate) fn ignore_rules_above_root(
    files: &dyn FileSystem,
    root: &Path,
) -> Option<Arc<IgnoreRules>> {
    let has_git = |folder: &Path| {
        files
            .stat_file(&folder.join(".git"), SymlinkMode::Follow)
            .is_ok()
    };
    if has_git(root) {
        return None;
    }
    let root = std::path::absolute(root).ok()?;
    let above: Vec<&Path> = root.ancestors().skip(1).collect();
    let git_root = above.iter().position(|folder| has_git(folder))?;
    let folders = above.iter().take(git_root + 1).rev();
    folders.fold(None, |ignores, folder| {
        let place = || IgnoreFilePlace::Above(relative_path_with_slash(folder, &root));
        load_ignore_rules(files, folder, place, ignores)
    })
}

/// Where `inside` lies in `folder`.
fn relative_path_with_slash(folder: &Path, inside: &Path) -> Vec<u8> {
    let mut path = Vec::new();
    for part in inside.strip_prefix(folder).unwrap_or(inside) {
        path.extend_from_slice(part.as_encoded_bytes());
        path.push(b'/');
    }
    path
}

/// Whether ignore files or the list of caches leave out what begins with this text, which is what a
/// glob says before its first wildcard.
pub(crate) fn is_glob_start_excluded(files: &dyn FileSystem, root: &Path, start: &str) -> bool {
    let mut ignores = folder_ignore_rules(files, root, &[], ignore_rules_above_root(files, root));
    let mut folder = root.to_owned();
    let mut path = String::new();
    let mut parts = start.trim_end_matches('/').split('/').peekable();
    while let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        let full = folder.join(part);
        path.push_str(part);
        let is_folder = parts.peek().is_some()
            || start.ends_with('/')
            || is_folder(files, &full, SymlinkMode::NoFollow);
        let is_known_cache = is_folder
            && is_cache_folder(part.as_bytes(), || {
                is_file(files, &folder.join("Cargo.toml"))
            });
        if is_known_cache || is_ignored(path.as_bytes(), is_folder, ignores.as_deref()) {
            return true;
        }
        path.push('/');
        ignores = folder_ignore_rules(files, &full, path.as_bytes(), ignores);
        folder = full;
    }
    false
}
