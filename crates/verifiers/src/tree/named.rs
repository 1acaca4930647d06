//! What counts whatever ignore files say: files that were tracked, and what `inputs` name.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use super::folders::OURS;
use super::folders::is_version_control;
use super::found::{FoundList, What};
use super::globs::Reach;
use super::walk::{bytes, is_folder, is_ours_to_count, listed, trimmed};
use super::{Time, TreeError, TreeReader};
use crate::file_system::{FileKind, FileSystem, Links};

/// Adds the files that count whatever their folders are, sorted into place.
pub(crate) fn add_always(
    reader: &TreeReader,
    found: &mut FoundList,
    time: &Time<'_>,
) -> Result<(), TreeError> {
    let (files, root) = (&*reader.files, &reader.root);
    let mut more = FoundList::default();
    let mut real_folders = BTreeMap::new();
    let mut at = 0;
    let named = reader.named.iter().map(String::as_str);
    for name in reader.always.iter().chain(named) {
        if let Some(folder) = name.strip_suffix('/') {
            let is_ours = folder.is_empty() || is_ours_to_count(folder);
            if is_ours && is_real_folder(files, root, folder, &mut real_folders) {
                let below = Below {
                    folder,
                    meant: &|_| true,
                    visited: &|_| true,
                    named: false,
                };
                below.add(reader, found, &mut more, time)?;
            }
            continue;
        }
        // Both are sorted, but for the few that are named.
        at = known_from(found, at, name.as_bytes());
        if found.path_at(at) == name.as_bytes() || !is_ours_to_count(name) {
            continue;
        }
        time.check()?;
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !is_real_folder(files, root, parent, &mut real_folders) {
            continue;
        }
        let what = match files.stat(&root.join(name), Links::Kept) {
            // A submodule's entry is its folder, which was walked like any other.
            Ok(stat) if stat.kind == FileKind::Folder => continue,
            Ok(stat) => What::of(&stat),
            // Deleted, which is a difference too.
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                continue;
            }
            Err(err) => What::Unreadable(err.kind()),
        };
        more.push([name.as_bytes(), &[]], what, false);
    }
    // A file can be named itself and lie in a folder that is named.
    found.merge(more);
    Ok(())
}

/// Where this path is or would be, looked for from this place on if that can be.
fn known_from(found: &FoundList, from: usize, path: &[u8]) -> usize {
    let is_behind = from == 0 || from <= found.len() && found.path_at(from - 1) < path;
    let near = from..found.len().min(from + 8);
    let mut near = near.filter(|at| found.path_at(*at) >= path);
    match near.next() {
        Some(near) if is_behind => near,
        _ => found.first_from(path),
    }
}

/// Adds what ignore files leave out and these globs ask for, sorted into place.
pub(crate) fn add_named(
    reader: &TreeReader,
    reaches: &[Reach],
    found: &mut FoundList,
    time: &Time<'_>,
) -> Result<(), TreeError> {
    let mut more = FoundList::default();
    let mut real_folders = BTreeMap::new();
    for reach in reaches {
        let start = reach.start.trim_end_matches('/');
        let folder = start.rsplit_once('/').map_or("", |(above, _)| above);
        let files = &*reader.files;
        if !is_ours_to_count(start)
            || !is_real_folder(files, &reader.root, folder, &mut real_folders)
        {
            continue;
        }
        let below = Below {
            folder,
            meant: &|path| reach.matches(path),
            visited: &|path| reach.leads_to(path),
            named: true,
        };
        below.add(reader, found, &mut more, time)?;
    }
    found.merge(more);
    Ok(())
}

/// What is in a folder of the tree, whatever ignore files say.
struct Below<'a> {
    folder: &'a str,
    /// The files.
    meant: &'a dyn Fn(&[u8]) -> bool,
    /// The files and folders that are looked at.
    visited: &'a dyn Fn(&[u8]) -> bool,
    named: bool,
}

impl Below<'_> {
    /// Adds to `more` what is not in `found`.
    fn add(
        &self,
        reader: &TreeReader,
        found: &FoundList,
        more: &mut FoundList,
        time: &Time<'_>,
    ) -> Result<(), TreeError> {
        let mut prefix = self.folder.as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let mut add = |path: &[u8], what: What| more.push([path, &[]], what, self.named);
        let mut folders = vec![(reader.root.join(self.folder), prefix)];
        while let Some((path, prefix)) = folders.pop() {
            time.check()?;
            let mut open = match reader.files.open_folder(&path) {
                Ok(open) => open,
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                Err(err) => {
                    add(trimmed(&prefix), What::Unreadable(err.kind()));
                    continue;
                }
            };
            let (entries, unseen) = listed(&mut *open);
            if let Some(err) = unseen {
                add(trimmed(&prefix), What::Unreadable(err.kind()));
            }
            for entry in entries {
                let name = bytes(&entry);
                let full = path.join(&entry);
                let is_ours = prefix.is_empty() && *name == *OURS.as_bytes();
                if is_version_control(&name) || is_ours || reader.apart.as_ref() == Some(&full) {
                    continue;
                }
                let relative = [prefix.as_slice(), &name].concat();
                if !(self.visited)(&relative) {
                    continue;
                }
                let what = match open.stat(&entry) {
                    Ok(stat) if stat.kind == FileKind::Folder => {
                        folders.push((full, [relative.as_slice(), b"/"].concat()));
                        continue;
                    }
                    Ok(stat) => What::of(&stat),
                    Err(err) if err.kind() == ErrorKind::NotFound => continue,
                    Err(err) => What::Unreadable(err.kind()),
                };
                let is_known = found.path_at(found.first_from(&relative)) == relative;
                if !is_known && (self.meant)(&relative) {
                    add(&relative, what);
                }
            }
        }
        Ok(())
    }
}

/// Whether every part of `folder` is a folder itself: through a symlink we would read what is
/// not in the tree.
fn is_real_folder(
    files: &dyn FileSystem,
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
        && is_folder(files, &root.join(folder), Links::Kept);
    known.insert(folder.to_owned(), answer);
    answer
}
