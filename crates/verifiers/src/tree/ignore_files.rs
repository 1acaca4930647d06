//! Reads `.gitignore` files and decides which paths they exclude. The pattern matching is the
//! `ignore` crate's.
//!
//! Only `.gitignore` is read: not `.git/info/exclude`, not the user's global excludes, nor
//! `.ignore`.

use std::borrow::Cow;
use std::io::{BufRead as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::excluded_folders::is_cache_folder;
use super::walk::{is_file, is_folder, os_str_from_bytes};
use crate::file_system::{FileKind, ReadOnlyFileSystem, SymlinkMode};

/// The rules of one folder's ignore file, linked to those of the folders above it.
pub(crate) struct IgnoreRules {
    here: Gitignore,
    folder: IgnoreFileInsideOrAboveRoot,
    above: Option<Arc<IgnoreRules>>,
}

/// Where the folder of an ignore file lies, relative to the root.
enum IgnoreFileInsideOrAboveRoot {
    /// In the tree; the length of its path in bytes, with a `/` at the end.
    Inside(usize),
    /// Above the root; the path from that folder to the root, with a `/` at the end.
    Above(Vec<u8>),
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes of an ignore file that are read. Paths that only the rest would exclude count.
const LARGEST: u64 = 4 << 20;

/// Returns whether a path, relative to the root, is excluded.
pub(crate) fn is_ignored(path: &[u8], is_folder: bool, ignores: Option<&IgnoreRules>) -> bool {
    // The nearest file that says anything about the path decides, as in git.
    let mut level = ignores;
    while let Some(ignores) = level {
        // Patterns are relative to the folder of their file, so the path is rewritten from there.
        let from_there = match &ignores.folder {
            IgnoreFileInsideOrAboveRoot::Inside(length) => {
                Cow::from(path.get(*length..).unwrap_or_default())
            }
            IgnoreFileInsideOrAboveRoot::Above(root) => Cow::from([root.as_slice(), path].concat()),
        };
        let name = os_str_from_bytes(&from_there);
        match ignores.here.matched(Path::new(&name), is_folder) {
            Match::Ignore(_) => return true,
            // A `!pattern` ends the search: files further up are overruled.
            Match::Whitelist(_) => return false,
            Match::None => level = ignores.above.as_deref(),
        }
    }
    false
}

/// The rules in a folder of the tree, `prefix` with a `/` at the end, or the root.
pub(crate) fn folder_ignore_rules(
    files: &dyn ReadOnlyFileSystem,
    folder: &Path,
    prefix: &[u8],
    above: Option<Arc<IgnoreRules>>,
) -> Option<Arc<IgnoreRules>> {
    load_ignore_rules(
        files,
        folder,
        || IgnoreFileInsideOrAboveRoot::Inside(prefix.len()),
        above,
    )
}

fn load_ignore_rules(
    files: &dyn ReadOnlyFileSystem,
    folder: &Path,
    place: impl FnOnce() -> IgnoreFileInsideOrAboveRoot,
    above: Option<Arc<IgnoreRules>>,
) -> Option<Arc<IgnoreRules>> {
    let file = folder.join(".gitignore");
    // Git does not follow a `.gitignore` that is a symlink. A pipe of that name would block the
    // open for ever.
    let stat = files.stat_file(&file, SymlinkMode::NoFollow);
    if !stat.is_ok_and(|stat| stat.kind == FileKind::File) {
        return above;
    }
    let Ok(open) = files.open_file_for_reading(&file, SymlinkMode::NoFollow) else {
        return above;
    };
    let mut text = Vec::new();
    // A read error is ignored: the rules read so far hold, and fewer rules make more files count.
    let _ = open.take(LARGEST).read_to_end(&mut text);
    // Git skips a byte order mark too; left in, it would become part of the first pattern.
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    // With the root "." the matcher strips no folder name from paths; with the real folder it would
    // strip that name from paths that happen to begin with it.
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

/// Returns the rules of the ignore files between the top of the git repository and the root.
/// Returns `None` where there is no repository: a stray ignore file in a home folder says nothing
/// about this tree.
pub(crate) fn ignore_rules_above_root(
    files: &dyn ReadOnlyFileSystem,
    root: &Path,
) -> Option<Arc<IgnoreRules>> {
    let has_git = |folder: &Path| {
        files
            .stat_file(&folder.join(".git"), SymlinkMode::Follow)
            .is_ok()
    };
    // The root is the top of the repository: nothing above it counts.
    if has_git(root) {
        return None;
    }
    // A relative root has no parents to look into.
    let root = std::path::absolute(root).ok()?;
    let above: Vec<&Path> = root.ancestors().skip(1).collect();
    let git_root = above.iter().position(|folder| has_git(folder))?;
    // Outermost first, so that each level links to the one above it.
    let folders = above.iter().take(git_root + 1).rev();
    folders.fold(None, |ignores, folder| {
        let place =
            || IgnoreFileInsideOrAboveRoot::Above(relative_path_with_trailing_slash(folder, &root));
        load_ignore_rules(files, folder, place, ignores)
    })
}

/// Returns the path of `inside` relative to `folder`, with a `/` at the end.
fn relative_path_with_trailing_slash(folder: &Path, inside: &Path) -> Vec<u8> {
    let mut path = Vec::new();
    for part in inside.strip_prefix(folder).unwrap_or(inside) {
        path.extend_from_slice(part.as_encoded_bytes());
        path.push(b'/');
    }
    path
}

/// Returns whether ignore files or the cache list exclude paths that begin with this text, the
/// literal start of a glob.
pub(crate) fn is_glob_start_excluded(
    files: &dyn ReadOnlyFileSystem,
    root: &Path,
    start: &str,
) -> bool {
    let mut ignores = folder_ignore_rules(files, root, &[], ignore_rules_above_root(files, root));
    let mut folder = root.to_owned();
    let mut path = String::new();
    let mut parts = start.trim_end_matches('/').split('/').peekable();
    // Every component is tested, from the root down: git does not look into an ignored folder, so a
    // later rule cannot bring back what is below it.
    while let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        let full = folder.join(part);
        path.push_str(part);
        // A component with something after it is a folder whether or not it exists yet.
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
