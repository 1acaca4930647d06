//! Walks the tree and lists what is there minus what does not count. The walk is not the `ignore`
//! crate's, which can neither say what it left out nor keep tracked files that are ignored; only
//! its matcher is used.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::always_included::add_unwalked_tracked_files;
use super::entries::{FilesystemEntryKind, SortedPathChunks, TreeEntryList};
use super::excluded_folders::{OWN_FOLDER, is_cache_folder, is_version_control_name};
use super::folder_queue::FolderQueue;
use super::ignore_files::{
    IgnoreRules, folder_ignore_rules, ignore_rules_above_root, is_glob_start_excluded, is_ignored,
};
use super::markers::{self, InstalledPackageMarker};
use super::{ExcludedFileCounts, FileId, TreeReadDeadline, TreeReader, TreeReaderError};
use crate::file_system::{
    FileKind, FileStat, OpenFolder, ReadOnlyFileSystem, RealFileSystem, SymlinkMode,
};

pub(crate) struct TreeWalkResult {
    /// Sorted by path, each once.
    pub(crate) found: TreeEntryList,
    pub(crate) left_out: ExcludedFileCounts,
    /// Markers of what was left out.
    pub(crate) markers: Vec<InstalledPackageMarker>,
}

pub(crate) struct FolderToWalk {
    path: PathBuf,
    /// Relative, with a trailing `/`; empty for the root.
    prefix: Vec<u8>,
    ignores: Option<Arc<IgnoreRules>>,
}

/// Number of waiting folders from which more threads are worth starting.
const WORTH_THREADS: usize = 32;

pub(crate) fn walk_tree(
    reader: &TreeReader,
    time: &TreeReadDeadline<'_>,
) -> Result<TreeWalkResult, TreeReaderError> {
    let root = FolderToWalk {
        path: reader.root.clone(),
        prefix: Vec::new(),
        ignores: ignore_rules_above_root(&*reader.files, &reader.root),
    };
    // One thread begins; most trees never have enough waiting folders for a second one.
    let mut first = TreeWalker::new(reader);
    let mut folders = vec![root];
    while folders.len() < WORTH_THREADS
        && let Some(folder) = folders.pop()
    {
        first.collect_folder_entries(folder, &mut folders, time)?;
    }
    let mut walks = vec![first];
    if !folders.is_empty() {
        walks.extend(walk_tree_in_threads(reader, folders, time)?);
    }
    let mut left_out = ExcludedFileCounts::default();
    let (mut found, mut markers) = (Vec::new(), Vec::new());
    for mut walk in walks {
        found.push(walk.found);
        markers.append(&mut walk.markers);
        left_out.ignored += walk.left_out.ignored;
        left_out.caches += walk.left_out.caches;
    }
    // Threads list folders in any order. Sorting the chunks makes the result the same each time.
    let mut found = SortedPathChunks::merge_sorted_path_chunks(found);
    // Tracked files come last: only now is it known which of them the walk left out.
    add_unwalked_tracked_files(reader, &mut found, time)?;
    Ok(TreeWalkResult {
        found,
        left_out,
        markers,
    })
}

/// Lists these folders and all below them on several threads.
fn walk_tree_in_threads<'a>(
    reader: &'a TreeReader,
    folders: Vec<FolderToWalk>,
    time: &TreeReadDeadline<'_>,
) -> Result<Vec<TreeWalker<'a>>, TreeReaderError> {
    let queue = FolderQueue::new(folders);
    let work = || {
        let mut walk = TreeWalker::new(reader);
        while let Some(mut turn) = queue.wait_for_next_folder() {
            if let Some(folder) = turn.folder.take() {
                // An error drops `turn`, which frees the other threads from waiting for this one.
                walk.collect_folder_entries(folder, &mut turn.below, time)?;
            }
        }
        Ok(walk)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..reader.files.worthwhile_thread_count())
            .map(|_| scope.spawn(work))
            .collect();
        let mut walks = vec![work()];
        for other in others {
            walks.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        walks.into_iter().collect()
    })
}

/// The state and findings of one thread.
struct TreeWalker<'a> {
    reader: &'a TreeReader,
    /// The excluded folder, relative to the root, if it lies in the tree.
    apart: Option<Vec<u8>>,
    found: SortedPathChunks,
    left_out: ExcludedFileCounts,
    markers: Vec<InstalledPackageMarker>,
    /// The names of the folder being listed; kept for its allocated memory.
    names: FolderListing,
}

/// The names in a folder, in the order in which they and what is below them come in path order.
#[derive(Default)]
struct FolderListing {
    bytes: Vec<u8>,
    entries: Vec<(Range<usize>, FolderListingEntryKind)>,
}

enum FolderListingEntryKind {
    /// A folder, at the place of everything in it.
    Folder,
    /// A folder, at the place of its own path, used if it turns out to be empty.
    FolderItself,
    /// Anything else that exists.
    Other,
    Unknown(ErrorKind),
}

impl FolderListing {
    fn read_folder(&mut self, open: &mut dyn OpenFolder) -> io::Result<()> {
        self.bytes.clear();
        self.entries.clear();
        let read = open.for_each_folder_entry(&mut |name, kind| match kind {
            Ok(FileKind::Folder) => {
                // Twice, because `a` and `a/` sort differently: `a-b` comes between them.
                self.push_folder_entry(name, b"", FolderListingEntryKind::FolderItself);
                self.push_folder_entry(name, b"/", FolderListingEntryKind::Folder);
            }
            Ok(_) => self.push_folder_entry(name, b"", FolderListingEntryKind::Other),
            // Gone since the folder was listed.
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => {
                self.push_folder_entry(name, b"", FolderListingEntryKind::Unknown(err.kind()))
            }
        });
        let bytes = &self.bytes;
        let name = |(range, _): &(Range<usize>, FolderListingEntryKind)| bytes.get(range.clone());
        self.entries.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
        // A file that is renamed during the listing may be reported twice.
        self.entries.dedup_by(|a, b| name(a) == name(b));
        read
    }

    fn push_folder_entry(&mut self, name: &OsStr, end: &[u8], entry: FolderListingEntryKind) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&os_str_bytes(name));
        self.bytes.extend_from_slice(end);
        self.entries.push((start..self.bytes.len(), entry));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &FolderListingEntryKind)> {
        let name = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.entries
            .iter()
            .map(move |(range, entry)| (name(range), entry))
    }
}

impl<'a> TreeWalker<'a> {
    fn new(reader: &'a TreeReader) -> Self {
        let apart = reader.excluded_folder.as_ref();
        let apart = apart.and_then(|apart| apart.strip_prefix(&reader.root).ok());
        Self {
            reader,
            apart: apart.map(slash_path),
            found: SortedPathChunks::default(),
            left_out: ExcludedFileCounts::default(),
            markers: Vec::new(),
            names: FolderListing::default(),
        }
    }

    /// Adds the entries of a folder; subfolders to list are pushed to `below`.
    fn collect_folder_entries(
        &mut self,
        folder: FolderToWalk,
        below: &mut Vec<FolderToWalk>,
        time: &TreeReadDeadline<'_>,
    ) -> Result<(), TreeReaderError> {
        time.check_tree_read_time_and_cancel()?;
        self.found.begin_sorted_path_chunk();
        match self.reader.files.open_folder_for_listing(&folder.path) {
            Ok(mut open) => {
                // Taken out for the call, which needs `self` mutably, and put back for its buffer.
                let mut names = std::mem::take(&mut self.names);
                let seen = names.read_folder(&mut *open);
                self.walk_listed_folder(folder, &names, seen, &*open, below);
                self.names = names;
            }
            // Only an unreadable root is an error: below it, being unreadable is part of what the
            // tree is.
            Err(err) if folder.prefix.is_empty() => {
                return Err(TreeReaderError::unreadable_root_error(
                    &self.reader.root,
                    err,
                ));
            }
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self.add_found_tree_path(
                [trim_trailing_slash(&folder.prefix), &[]],
                FilesystemEntryKind::Unreadable(err.kind()),
            ),
        }
        Ok(())
    }

    fn add_installed_package_markers(&mut self, full: &Path, path: &[u8], is_folder: bool) {
        let files = &*self.reader.files;
        markers::collect_installed_package_markers(
            files,
            full,
            &path_bytes_to_lossless_text(path),
            is_folder,
            &mut self.markers,
        );
    }

    fn is_own_output_file(&self, stat: &FileStat) -> bool {
        let id = || FileId::file_id_from_stat(stat);
        let printed = &self.reader.own_output_files;
        !printed.is_empty() && id().is_some_and(|id| printed.contains(&id))
    }

    fn add_found_tree_path(&mut self, path: [&[u8]; 2], what: FilesystemEntryKind) {
        self.found.list.push_tree_entry(path, what, false);
    }

    fn walk_listed_folder(
        &mut self,
        folder: FolderToWalk,
        names: &FolderListing,
        seen: io::Result<()>,
        open: &dyn OpenFolder,
        todo: &mut Vec<FolderToWalk>,
    ) {
        let FolderToWalk {
            path,
            prefix,
            ignores,
        } = folder;
        let files = &*self.reader.files;
        // A case-insensitive file system finds `.gitignore` under another spelling too.
        let is_ignore_file = |(name, _): (&[u8], _)| name.eq_ignore_ascii_case(b".gitignore");
        let ignores = match names.iter().any(is_ignore_file) {
            true => folder_ignore_rules(files, &path, &prefix, ignores),
            false => ignores,
        };
        match seen {
            // The rest of this folder cannot be seen, which is part of what the tree is.
            Err(err) => self.add_found_tree_path(
                [trim_trailing_slash(&prefix), &[]],
                FilesystemEntryKind::Unreadable(err.kind()),
            ),
            Ok(()) if names.entries.is_empty() && !prefix.is_empty() => {
                self.add_found_tree_path(
                    [trim_trailing_slash(&prefix), &[]],
                    FilesystemEntryKind::EmptyFolder,
                );
            }
            Ok(()) => {}
        }
        // The folder's own entry sorts before all that is in it, and paths of its siblings may come
        // in between (`a`, `a-b`, `a/x`).
        self.found.begin_sorted_path_chunk();
        // The path of each entry, in one reused buffer.
        let mut relative = prefix.clone();
        for (name, entry) in names.iter() {
            let name = match entry {
                FolderListingEntryKind::FolderItself => {
                    self.found.begin_sorted_path_chunk();
                    continue;
                }
                FolderListingEntryKind::Folder => name.strip_suffix(b"/").unwrap_or(name),
                FolderListingEntryKind::Other | FolderListingEntryKind::Unknown(_) => name,
            };
            // Before the ignore rules, so that these are neither counted as left out nor brought
            // back by a `!pattern`.
            if is_version_control_name(name) || prefix.is_empty() && *name == *OWN_FOLDER.as_bytes()
            {
                continue;
            }
            relative.truncate(prefix.len());
            relative.extend_from_slice(name);
            if self.apart.as_ref() == Some(&relative) {
                continue;
            }
            match entry {
                FolderListingEntryKind::Folder => {
                    self.found.begin_sorted_path_chunk();
                    let full = path.join(os_str_from_bytes(name));
                    // Caches come first: they are left out whether or not an ignore file names
                    // them, and reported apart.
                    if is_cache_folder(name, || is_file(files, &path.join("Cargo.toml"))) {
                        // The markers show an installed package that changed, although the folder
                        // itself does not count.
                        self.left_out.caches += 1;
                        self.add_installed_package_markers(&full, &relative, true);
                    } else if is_ignored(&relative, true, ignores.as_deref()) {
                        self.left_out.ignored += 1;
                        self.add_installed_package_markers(&full, &relative, true);
                    } else {
                        todo.push(FolderToWalk {
                            path: full,
                            prefix: [relative.as_slice(), b"/"].concat(),
                            ignores: ignores.clone(),
                        });
                    }
                }
                FolderListingEntryKind::Unknown(kind) => self
                    .add_found_tree_path([&relative, &[]], FilesystemEntryKind::Unreadable(*kind)),
                FolderListingEntryKind::Other | FolderListingEntryKind::FolderItself => {
                    self.add_non_folder_entry(name, &relative, &path, open, ignores.as_deref());
                }
            }
        }
    }

    /// Adds an entry that is not a folder, if it counts.
    fn add_non_folder_entry(
        &mut self,
        name: &[u8],
        relative: &[u8],
        folder: &Path,
        open: &dyn OpenFolder,
        ignores: Option<&IgnoreRules>,
    ) {
        // An ignore file that ignores itself would hide both itself and what it hides.
        let exempt = || {
            *name == *b".gitignore"
                || self
                    .reader
                    .is_always_included(&path_bytes_to_lossless_text(relative))
        };
        if is_ignored(relative, false, ignores) && !exempt() {
            self.left_out.ignored += 1;
            let full = folder.join(os_str_from_bytes(name));
            // Packages may be linked from another checkout.
            let leads_to_folder = is_folder(&*self.reader.files, &full, SymlinkMode::Follow);
            self.add_installed_package_markers(&full, relative, leads_to_folder);
            return;
        }
        match open.stat_folder_entry(os_str_from_bytes(name).as_ref()) {
            // A file that Checkrein's own output is redirected to would change with each reading.
            Ok(stat) if self.is_own_output_file(&stat) => {}
            Ok(stat) => self.add_found_tree_path(
                [relative, &[]],
                FilesystemEntryKind::entry_kind_from_stat(&stat),
            ),
            // Gone since the folder was listed.
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self
                .add_found_tree_path([relative, &[]], FilesystemEntryKind::Unreadable(err.kind())),
        }
    }
}

/// Returns the names in an open folder as far as they can be listed, and the error that ended the
/// listing if one did.
pub(crate) fn list_folder_entry_names(
    folder: &mut dyn OpenFolder,
) -> (Vec<OsString>, Option<io::Error>) {
    let mut names = Vec::new();
    let seen = folder.for_each_folder_entry(&mut |name, _| names.push(name.to_owned()));
    (names, seen.err())
}

/// Returns whether a file of this name, relative to the root, would count by the ignore files,
/// whether or not it exists. The answer is no for a folder, for a path through a link, for a file
/// with several hard links (its content may be elsewhere too), and for a file that decides which
/// others count.
pub fn would_file_count_in_tree(root: &Path, name: &Path) -> bool {
    let Some(text) = name.to_str() else {
        return false;
    };
    let files = &RealFileSystem;
    let is = |path: &Path, kind: FileKind| {
        let found = files.stat_file(&root.join(path), SymlinkMode::NoFollow);
        found.map_or(true, |found| found.kind == kind)
    };
    let mut folders = name.ancestors().skip(1);
    is_valid_tree_path(text)
        && !is_gitignore_or_cargo_toml(name)
        && !has_hard_links(&root.join(name))
        && folders.all(|folder| is(folder, FileKind::Folder))
        && is(name, FileKind::File)
        && !is_glob_start_excluded(files, root, text)
        // A tool may make a folder of that name.
        && (root.join(name).exists() || !is_glob_start_excluded(files, root, &format!("{text}/")))
}

/// Returns whether the content or existence of this file decides which other files count.
fn is_gitignore_or_cargo_toml(name: &Path) -> bool {
    let name = name.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let deciding = [".gitignore", "Cargo.toml"];
    // A file system may not tell `.GITIGNORE` from it.
    deciding
        .iter()
        .any(|decides| name.eq_ignore_ascii_case(decides))
}

/// Returns whether the file has another name somewhere. Where that cannot be told the answer is no.
fn has_hard_links(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        path.symlink_metadata()
            .is_ok_and(|found| found.is_file() && found.nlink() > 1)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Returns whether this is a plain path of something that may be part of the tree.
pub(crate) fn is_valid_tree_path(name: &str) -> bool {
    let mut parts = name.split('/');
    parts.clone().next() != Some(OWN_FOLDER)
        && parts.all(|part| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && !is_version_control_name(part.as_bytes())
        })
}

/// Returns whether there is a regular file, directly or behind a link.
pub(crate) fn is_file(files: &dyn ReadOnlyFileSystem, path: &Path) -> bool {
    let found = files.stat_file(path, SymlinkMode::Follow);
    found.is_ok_and(|found| found.kind == FileKind::File)
}

pub(crate) fn is_folder(files: &dyn ReadOnlyFileSystem, path: &Path, links: SymlinkMode) -> bool {
    let found = files.stat_file(path, links);
    found.is_ok_and(|found| found.kind == FileKind::Folder)
}

/// Returns a relative path with `/` as separator on every platform.
fn slash_path(path: &Path) -> Vec<u8> {
    let parts: Vec<_> = path.iter().map(os_str_bytes).collect();
    parts.join(&b'/')
}

pub(crate) fn trim_trailing_slash(prefix: &[u8]) -> &[u8] {
    prefix.strip_suffix(b"/").unwrap_or(prefix)
}

#[cfg(unix)]
pub(crate) fn os_str_bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    name.as_bytes().into()
}

#[cfg(not(unix))]
pub(crate) fn os_str_bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    name.to_string_lossy().into_owned().into_bytes().into()
}

/// Converts a name or path of the tree into the form that the file system takes.
#[cfg(unix)]
pub(crate) fn os_str_from_bytes(path: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(path)
}

#[cfg(not(unix))]
pub(crate) fn os_str_from_bytes(path: &[u8]) -> OsString {
    String::from_utf8_lossy(path).into_owned().into()
}

pub(crate) fn path_bytes_to_lossless_text(path: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(text) => text.into(),
        Err(_) => path_text_with_escapes(path).into(),
    }
}

/// Renders a path as text. Bytes that are not UTF-8 are written `\xNN`, for display and to
/// recognise the name again; digests are taken over the bytes.
pub(crate) fn path_text_with_escapes(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_no_text_are_shown_and_told_apart() {
        assert_eq!(path_text_with_escapes(b"a/\xff\xfeb"), "a/\\xff\\xfeb");
        assert_eq!(path_text_with_escapes("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_ne!(
            path_text_with_escapes(b"\xff"),
            path_text_with_escapes(b"\xfe")
        );
    }

    #[test]
    fn names_that_leave_the_tree_are_not_counted() {
        let check = |name: &str, expected| assert_eq!(is_valid_tree_path(name), expected, "{name}");
        check("a/b", true);
        check(".gitignore", true);
        check("../a", false);
        check("/etc/passwd", false);
        check(".git/config", false);
        check("sub/.git/config", false);
        check(".checkrein/logs/a", false);
    }
}
