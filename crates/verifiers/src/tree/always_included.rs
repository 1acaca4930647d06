//! Adds the files that count although the walk leaves them out: files that git tracked when the
//! task began, and files that a verifier's `inputs` name.
//!
//! Ignore files and cache folders have no say here, but version control's folders and `.checkrein`
//! stay out. Nothing is reached through a symlink.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::entries::{FilesystemEntryKind, TreeEntryList};
use super::excluded_folders::OWN_FOLDER;
use super::excluded_folders::is_version_control_name;
use super::globs::GlobIncludingIgnoredFiles;
use super::walk::{
    is_folder, is_valid_tree_path, list_folder_entry_names, os_str_bytes, trim_trailing_slash,
};
use super::{TreeReadDeadline, TreeReader, TreeReaderError};
use crate::file_system::{FileKind, ReadOnlyFileSystem, SymlinkMode};

/// Adds the tracked files that the walk did not find, and keeps the list sorted.
pub(crate) fn add_unwalked_tracked_files(
    reader: &TreeReader,
    found: &mut TreeEntryList,
    time: &TreeReadDeadline<'_>,
) -> Result<(), TreeReaderError> {
    let (files, root) = (&*reader.files, &reader.root);
    let mut more = TreeEntryList::default();
    let mut real_folders = BTreeMap::new();
    // `at` follows `found`: names come in nearly the same order, so most lookups succeed within a
    // few entries.
    let mut at = 0;
    let named = reader.also_included.iter().map(String::as_str);
    for name in reader.always_included.iter().chain(named) {
        // A name that ends with `/` is a folder of a sparse index: git tracks everything in it
        // without listing it.
        if let Some(folder) = name.strip_suffix('/') {
            let is_ours = folder.is_empty() || is_valid_tree_path(folder);
            if is_ours && is_real_folder(files, root, folder, &mut real_folders) {
                let below = AlwaysIncludedFileSearch {
                    folder,
                    meant: &|_| true,
                    visited: &|_| true,
                    named: false,
                };
                below.add_unlisted_files_below_folder(reader, found, &mut more, time)?;
            }
            continue;
        }
        // `always_included` and `found` are both sorted. Only the few names of `also_included` are
        // not, and cost a binary search.
        at = tree_entry_or_insertion_index(found, at, name.as_bytes());
        if found.entry_path_at(at) == name.as_bytes() || !is_valid_tree_path(name) {
            continue;
        }
        // The walk listed every folder it counts, so a name that is missing here lies in a folder
        // that was left out, or is gone.
        time.check_tree_read_time_and_cancel()?;
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !is_real_folder(files, root, parent, &mut real_folders) {
            continue;
        }
        let what = match files.stat_file(&root.join(name), SymlinkMode::NoFollow) {
            // A submodule's entry is its folder, which was walked like any other.
            Ok(stat) if stat.kind == FileKind::Folder => continue,
            Ok(stat) => FilesystemEntryKind::entry_kind_from_stat(&stat),
            // Deleted, which is a difference too.
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                continue;
            }
            Err(err) => FilesystemEntryKind::Unreadable(err.kind()),
        };
        more.push_tree_entry([name.as_bytes(), &[]], what, false);
    }
    // A file can be named itself and lie in a folder that is named.
    found.merge_tree_entries(more);
    Ok(())
}

/// Returns the index of `path` in `found`, or the index at which it would be inserted. Tries the
/// eight entries from `from` on before it searches the whole list.
fn tree_entry_or_insertion_index(found: &TreeEntryList, from: usize, path: &[u8]) -> usize {
    let is_behind = from == 0 || from <= found.len() && found.entry_path_at(from - 1) < path;
    let near = from..found.len().min(from + 8);
    let mut near = near.filter(|at| found.entry_path_at(*at) >= path);
    match near.next() {
        Some(near) if is_behind => near,
        _ => found.lower_bound_index(path),
    }
}

/// Adds the ignored files that these `inputs` globs name before their first wildcard, and keeps the
/// list sorted.
pub(crate) fn add_ignored_files_named_by_inputs(
    reader: &TreeReader,
    reaches: &[GlobIncludingIgnoredFiles],
    found: &mut TreeEntryList,
    time: &TreeReadDeadline<'_>,
) -> Result<(), TreeReaderError> {
    let mut more = TreeEntryList::default();
    let mut real_folders = BTreeMap::new();
    for reach in reaches {
        // The part before the first wildcard may end in the middle of a name (`build*`), so the
        // search begins in its parent folder.
        let start = reach.start.trim_end_matches('/');
        let folder = start.rsplit_once('/').map_or("", |(above, _)| above);
        let files = &*reader.files;
        if !is_valid_tree_path(start)
            || !is_real_folder(files, &reader.root, folder, &mut real_folders)
        {
            continue;
        }
        let below = AlwaysIncludedFileSearch {
            folder,
            meant: &|path| reach.glob_matches_file(path),
            visited: &|path| reach.may_match_at_or_below(path),
            named: true,
        };
        below.add_unlisted_files_below_folder(reader, found, &mut more, time)?;
    }
    found.merge_tree_entries(more);
    Ok(())
}

/// Searches one folder of the tree recursively, without regard to ignore files.
struct AlwaysIncludedFileSearch<'a> {
    folder: &'a str,
    /// Selects the files to add.
    meant: &'a dyn Fn(&[u8]) -> bool,
    /// Selects the files and folders to look at; a folder that it refuses is not entered.
    visited: &'a dyn Fn(&[u8]) -> bool,
    named: bool,
}

impl AlwaysIncludedFileSearch<'_> {
    /// Adds to `more` the files that `meant` selects and that `found` does not hold.
    fn add_unlisted_files_below_folder(
        &self,
        reader: &TreeReader,
        found: &TreeEntryList,
        more: &mut TreeEntryList,
        time: &TreeReadDeadline<'_>,
    ) -> Result<(), TreeReaderError> {
        let mut prefix = self.folder.as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let mut add = |path: &[u8], what: FilesystemEntryKind| {
            more.push_tree_entry([path, &[]], what, self.named)
        };
        let mut folders = vec![(reader.root.join(self.folder), prefix)];
        while let Some((path, prefix)) = folders.pop() {
            time.check_tree_read_time_and_cancel()?;
            let mut open = match reader.files.open_folder_for_listing(&path) {
                Ok(open) => open,
                // Gone since its parent was listed, which is a state like any other.
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                Err(err) => {
                    add(
                        trim_trailing_slash(&prefix),
                        FilesystemEntryKind::Unreadable(err.kind()),
                    );
                    continue;
                }
            };
            // A folder that can be listed only in part counts by what was seen and by the error.
            let (entries, unseen) = list_folder_entry_names(&mut *open);
            if let Some(err) = unseen {
                add(
                    trim_trailing_slash(&prefix),
                    FilesystemEntryKind::Unreadable(err.kind()),
                );
            }
            for entry in entries {
                let name = os_str_bytes(&entry);
                let full = path.join(&entry);
                let is_ours = prefix.is_empty() && *name == *OWN_FOLDER.as_bytes();
                if is_version_control_name(&name)
                    || is_ours
                    || reader.excluded_folder.as_ref() == Some(&full)
                {
                    continue;
                }
                let relative = [prefix.as_slice(), &name].concat();
                if !(self.visited)(&relative) {
                    continue;
                }
                let what = match open.stat_folder_entry(&entry) {
                    // A folder itself adds no entry: only files below it count.
                    Ok(stat) if stat.kind == FileKind::Folder => {
                        folders.push((full, [relative.as_slice(), b"/"].concat()));
                        continue;
                    }
                    Ok(stat) => FilesystemEntryKind::entry_kind_from_stat(&stat),
                    Err(err) if err.kind() == ErrorKind::NotFound => continue,
                    Err(err) => FilesystemEntryKind::Unreadable(err.kind()),
                };
                let is_known = found.entry_path_at(found.lower_bound_index(&relative)) == relative;
                if !is_known && (self.meant)(&relative) {
                    add(&relative, what);
                }
            }
        }
        Ok(())
    }
}

/// Returns whether every component of `folder` is a real folder. Through a symlink files would be
/// read that are not in the tree. `known` caches the answers.
fn is_real_folder(
    files: &dyn ReadOnlyFileSystem,
    root: &Path,
    folder: &str,
    known: &mut BTreeMap<String, bool>,
) -> bool {
    if folder.is_empty() {
        return true;
    }
    if let Some(answer) = known.get(folder) {
        return *answer;
    }
    let above = folder.rsplit_once('/').map_or("", |(above, _)| above);
    let answer = is_real_folder(files, root, above, known)
        && is_folder(files, &root.join(folder), SymlinkMode::NoFollow);
    known.insert(folder.to_owned(), answer);
    answer
}
