//! The walk: what is there, minus what does not count. Not the `ignore` crate's own, which
//! cannot say what it left out nor keep tracked files that are ignored; its matcher is.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder_queue::FolderQueue;
use super::folders::{OURS, is_cache, is_version_control};
use super::found::{FoundList, Stretches, What};
use super::ignore_files::{Ignores, ignores_above, is_ignored, is_left_out, with_ignore_file};
use super::markers::{self, Marker};
use super::named::add_always;
use super::{FileId, LeftOut, Time, TreeError, TreeReader};
use crate::file_system::{FileKind, FileStat, FileSystem, Links, OpenFolder, RealFileSystem};

pub(crate) struct Walked {
    /// Sorted by path, each once.
    pub(crate) found: FoundList,
    pub(crate) left_out: LeftOut,
    /// Of what is left out.
    pub(crate) markers: Vec<Marker>,
}

pub(crate) struct Folder {
    path: PathBuf,
    /// Relative, with a trailing `/`; empty for the root.
    prefix: Vec<u8>,
    ignores: Option<Arc<Ignores>>,
}

/// From so many folders on that wait to be listed, more threads are worth their start.
const WORTH_THREADS: usize = 32;

pub(crate) fn walk(reader: &TreeReader, time: &Time<'_>) -> Result<Walked, TreeError> {
    let root = Folder {
        path: reader.root.clone(),
        prefix: Vec::new(),
        ignores: ignores_above(&*reader.files, &reader.root),
    };
    let mut first = Walk::new(reader);
    let mut folders = vec![root];
    while folders.len() < WORTH_THREADS
        && let Some(folder) = folders.pop()
    {
        first.list(folder, &mut folders, time)?;
    }
    let mut walks = vec![first];
    if !folders.is_empty() {
        walks.extend(in_threads(reader, folders, time)?);
    }
    let mut left_out = LeftOut::default();
    let (mut found, mut markers) = (Vec::new(), Vec::new());
    for mut walk in walks {
        found.push(walk.found);
        markers.append(&mut walk.markers);
        left_out.ignored += walk.left_out.ignored;
        left_out.caches += walk.left_out.caches;
    }
    let mut found = Stretches::sorted(found);
    add_always(reader, &mut found, time)?;
    Ok(Walked {
        found,
        left_out,
        markers,
    })
}

/// Lists these folders and all below them.
fn in_threads<'a>(
    reader: &'a TreeReader,
    folders: Vec<Folder>,
    time: &Time<'_>,
) -> Result<Vec<Walk<'a>>, TreeError> {
    let queue = FolderQueue::new(folders);
    let work = || {
        let mut walk = Walk::new(reader);
        while let Some(mut turn) = queue.next() {
            if let Some(folder) = turn.folder.take() {
                walk.list(folder, &mut turn.below, time)?;
            }
        }
        Ok(walk)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..reader.files.threads())
            .map(|_| scope.spawn(work))
            .collect();
        let mut walks = vec![work()];
        for other in others {
            walks.push(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        walks.into_iter().collect()
    })
}

/// What one thread finds.
struct Walk<'a> {
    reader: &'a TreeReader,
    /// The folder that is no part of the tree, if it lies in it: relative to the root.
    apart: Option<Vec<u8>>,
    found: Stretches,
    left_out: LeftOut,
    markers: Vec<Marker>,
    /// Of the folder that is being listed; kept for the memory that it has.
    names: Names,
}

/// The names in a folder, in the order in which what is below them comes in the order of paths.
#[derive(Default)]
struct Names {
    bytes: Vec<u8>,
    entries: Vec<(Range<usize>, Entry)>,
}

enum Entry {
    /// A folder, at the place of all that is in it.
    Folder,
    /// The same, at the place where it stands itself if it turns out to be empty.
    FolderItself,
    /// Whatever it is.
    Other,
    Unknown(ErrorKind),
}

impl Names {
    fn read(&mut self, open: &mut dyn OpenFolder) -> io::Result<()> {
        self.bytes.clear();
        self.entries.clear();
        let read = open.list(&mut |name, kind| match kind {
            Ok(FileKind::Folder) => {
                self.push(name, b"", Entry::FolderItself);
                self.push(name, b"/", Entry::Folder);
            }
            Ok(_) => self.push(name, b"", Entry::Other),
            // Gone since the folder was listed.
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self.push(name, b"", Entry::Unknown(err.kind())),
        });
        let bytes = &self.bytes;
        let name = |(range, _): &(Range<usize>, Entry)| bytes.get(range.clone());
        self.entries.sort_unstable_by(|a, b| name(a).cmp(&name(b)));
        // What is renamed while a folder is listed may come twice.
        self.entries.dedup_by(|a, b| name(a) == name(b));
        read
    }

    fn push(&mut self, name: &OsStr, end: &[u8], entry: Entry) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&bytes(name));
        self.bytes.extend_from_slice(end);
        self.entries.push((start..self.bytes.len(), entry));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        let name = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.entries
            .iter()
            .map(move |(range, entry)| (name(range), entry))
    }
}

impl<'a> Walk<'a> {
    fn new(reader: &'a TreeReader) -> Self {
        let apart = reader.apart.as_ref();
        let apart = apart.and_then(|apart| apart.strip_prefix(&reader.root).ok());
        Self {
            reader,
            apart: apart.map(slashed),
            found: Stretches::default(),
            left_out: LeftOut::default(),
            markers: Vec::new(),
            names: Names::default(),
        }
    }

    /// Adds what is in a folder; what is to be listed next comes into `below`.
    fn list(
        &mut self,
        folder: Folder,
        below: &mut Vec<Folder>,
        time: &Time<'_>,
    ) -> Result<(), TreeError> {
        time.check()?;
        self.found.cut();
        match self.reader.files.open_folder(&folder.path) {
            Ok(mut open) => {
                let mut names = std::mem::take(&mut self.names);
                let seen = names.read(&mut *open);
                self.folder(folder, &names, seen, &*open, below);
                self.names = names;
            }
            Err(err) if folder.prefix.is_empty() => {
                return Err(TreeError::root(&self.reader.root, err));
            }
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self.add([trimmed(&folder.prefix), &[]], What::Unreadable(err.kind())),
        }
        Ok(())
    }

    fn mark(&mut self, full: &Path, path: &[u8], is_folder: bool) {
        let files = &*self.reader.files;
        markers::of_left_out(files, full, &lossless(path), is_folder, &mut self.markers);
    }

    fn is_printed(&self, stat: &FileStat) -> bool {
        let id = || FileId::of_stat(stat);
        let printed = &self.reader.printed;
        !printed.is_empty() && id().is_some_and(|id| printed.contains(&id))
    }

    fn add(&mut self, path: [&[u8]; 2], what: What) {
        self.found.list.push(path, what, false);
    }

    fn folder(
        &mut self,
        folder: Folder,
        names: &Names,
        seen: io::Result<()>,
        open: &dyn OpenFolder,
        todo: &mut Vec<Folder>,
    ) {
        let Folder {
            path,
            prefix,
            ignores,
        } = folder;
        let files = &*self.reader.files;
        // Some file systems find it under a name of other letters.
        let is_ignore_file = |(name, _): (&[u8], _)| name.eq_ignore_ascii_case(b".gitignore");
        let ignores = match names.iter().any(is_ignore_file) {
            true => with_ignore_file(files, &path, &prefix, ignores),
            false => ignores,
        };
        match seen {
            // The rest of this folder cannot be seen: that is part of what the tree is.
            Err(err) => self.add([trimmed(&prefix), &[]], What::Unreadable(err.kind())),
            Ok(()) if names.entries.is_empty() && !prefix.is_empty() => {
                self.add([trimmed(&prefix), &[]], What::EmptyFolder);
            }
            Ok(()) => {}
        }
        self.found.cut();
        // The path of the entry, in the same memory for all.
        let mut relative = prefix.clone();
        for (name, entry) in names.iter() {
            let name = match entry {
                Entry::FolderItself => {
                    self.found.cut();
                    continue;
                }
                Entry::Folder => name.strip_suffix(b"/").unwrap_or(name),
                Entry::Other | Entry::Unknown(_) => name,
            };
            if is_version_control(name) || prefix.is_empty() && *name == *OURS.as_bytes() {
                continue;
            }
            relative.truncate(prefix.len());
            relative.extend_from_slice(name);
            if self.apart.as_ref() == Some(&relative) {
                continue;
            }
            match entry {
                Entry::Folder => {
                    self.found.cut();
                    let full = path.join(os_name(name));
                    if is_cache(name, || is_file(files, &path.join("Cargo.toml"))) {
                        self.left_out.caches += 1;
                        self.mark(&full, &relative, true);
                    } else if is_ignored(&relative, true, ignores.as_deref()) {
                        self.left_out.ignored += 1;
                        self.mark(&full, &relative, true);
                    } else {
                        todo.push(Folder {
                            path: full,
                            prefix: [relative.as_slice(), b"/"].concat(),
                            ignores: ignores.clone(),
                        });
                    }
                }
                Entry::Unknown(kind) => self.add([&relative, &[]], What::Unreadable(*kind)),
                Entry::Other | Entry::FolderItself => {
                    self.no_folder(name, &relative, &path, open, ignores.as_deref());
                }
            }
        }
    }

    /// Adds what is no folder, if it counts.
    fn no_folder(
        &mut self,
        name: &[u8],
        relative: &[u8],
        folder: &Path,
        open: &dyn OpenFolder,
        ignores: Option<&Ignores>,
    ) {
        // An ignore file that ignores itself would hide both itself and what it hides.
        let exempt = || *name == *b".gitignore" || self.reader.counts_always(&lossless(relative));
        if is_ignored(relative, false, ignores) && !exempt() {
            self.left_out.ignored += 1;
            let full = folder.join(os_name(name));
            // Packages may be linked from another checkout.
            let leads_to_folder = is_folder(&*self.reader.files, &full, Links::Followed);
            self.mark(&full, relative, leads_to_folder);
            return;
        }
        match open.stat(os_name(name).as_ref()) {
            Ok(stat) if self.is_printed(&stat) => {}
            Ok(stat) => self.add([relative, &[]], What::of(&stat)),
            // Gone since the folder was listed.
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self.add([relative, &[]], What::Unreadable(err.kind())),
        }
    }
}

/// The names that an open folder holds, as far as they can be seen, and why no further.
pub(crate) fn listed(folder: &mut dyn OpenFolder) -> (Vec<OsString>, Option<io::Error>) {
    let mut names = Vec::new();
    let seen = folder.list(&mut |name, _| names.push(name.to_owned()));
    (names, seen.err())
}

/// Whether a file of this name, relative to the root, would count by the ignore files, whether it is there or
/// not. A folder does not, nor does what a link leads to or what has another name, too: that may lie elsewhere. Nor
/// does what says of others whether they count.
pub fn would_count(root: &Path, name: &Path) -> bool {
    let Some(text) = name.to_str() else {
        return false;
    };
    let files = &RealFileSystem;
    let is = |path: &Path, kind: FileKind| {
        let found = files.stat(&root.join(path), Links::Kept);
        found.map_or(true, |found| found.kind == kind)
    };
    let mut folders = name.ancestors().skip(1);
    is_ours_to_count(text)
        && !decides_what_counts(name)
        && !has_another_name(&root.join(name))
        && folders.all(|folder| is(folder, FileKind::Folder))
        && is(name, FileKind::File)
        && !is_left_out(files, root, text)
        // A tool may make a folder of that name.
        && (root.join(name).exists() || !is_left_out(files, root, &format!("{text}/")))
}

/// Whether other files may count or not for what this one holds, or for its being there.
fn decides_what_counts(name: &Path) -> bool {
    let name = name.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let deciding = [".gitignore", "Cargo.toml"];
    // A file system may not tell `.GITIGNORE` from it.
    deciding
        .iter()
        .any(|decides| name.eq_ignore_ascii_case(decides))
}

/// Whether the file there is also one of another place. Where that cannot be told it is not.
fn has_another_name(path: &Path) -> bool {
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

/// Whether this is the plain name of something that may be part of the tree.
pub(crate) fn is_ours_to_count(name: &str) -> bool {
    let mut parts = name.split('/');
    parts.clone().next() != Some(OURS)
        && parts.all(|part| {
            !part.is_empty() && part != "." && part != ".." && !is_version_control(part.as_bytes())
        })
}

/// Whether a regular file stands there, itself or behind a link.
pub(crate) fn is_file(files: &dyn FileSystem, path: &Path) -> bool {
    let found = files.stat(path, Links::Followed);
    found.is_ok_and(|found| found.kind == FileKind::File)
}

pub(crate) fn is_folder(files: &dyn FileSystem, path: &Path, links: Links) -> bool {
    let found = files.stat(path, links);
    found.is_ok_and(|found| found.kind == FileKind::Folder)
}

/// A relative path with `/` between its parts, wherever they are written otherwise.
fn slashed(path: &Path) -> Vec<u8> {
    let parts: Vec<_> = path.iter().map(bytes).collect();
    parts.join(&b'/')
}

pub(crate) fn trimmed(prefix: &[u8]) -> &[u8] {
    prefix.strip_suffix(b"/").unwrap_or(prefix)
}

#[cfg(unix)]
pub(crate) fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    name.as_bytes().into()
}

#[cfg(not(unix))]
pub(crate) fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    name.to_string_lossy().into_owned().into_bytes().into()
}

/// A name or a path of the tree as the file system takes it.
#[cfg(unix)]
pub(crate) fn os_name(path: &[u8]) -> &OsStr {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(path)
}

#[cfg(not(unix))]
pub(crate) fn os_name(path: &[u8]) -> OsString {
    String::from_utf8_lossy(path).into_owned().into()
}

pub(crate) fn lossless(path: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(path) {
        Ok(text) => text.into(),
        Err(_) => text(path).into(),
    }
}

/// A path as text. Bytes that are no UTF-8 are written `\xNN`: for people, and to know such a
/// name again; digests are taken over the bytes.
pub(crate) fn text(path: &[u8]) -> String {
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
        assert_eq!(text(b"a/\xff\xfeb"), "a/\\xff\\xfeb");
        assert_eq!(text("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_ne!(text(b"\xff"), text(b"\xfe"));
    }

    #[test]
    fn names_that_leave_the_tree_are_not_counted() {
        let check = |name: &str, expected| assert_eq!(is_ours_to_count(name), expected, "{name}");
        check("a/b", true);
        check(".gitignore", true);
        check("../a", false);
        check("/etc/passwd", false);
        check(".git/config", false);
        check("sub/.git/config", false);
        check(".checkrein/logs/a", false);
    }
}
