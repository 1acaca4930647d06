//! The walk: what is there, minus what does not count. Not the `ignore` crate's own, which
//! cannot say what it left out nor keep tracked files that are ignored; its matcher is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, ErrorKind, Read as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::folder_queue::FolderQueue;
use super::folders::{OURS, is_cache, is_version_control};
use super::globs::Reach;
use super::markers::{self, Marker};
use super::{FileId, LeftOut, Time, TreeError, TreeReader};
use crate::file_system::{
    FileKind, FileStat, FileSystem, Links, OpenFolder, RealFileSystem, Stamp,
};

/// Something that counts.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Relative to the root, `/`-separated; any bytes that a name may have.
    pub(crate) path: Vec<u8>,
    pub(crate) what: What,
    /// Ignore files leave it out, and only `inputs` that name it ask for it.
    pub(crate) named: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// A regular file.
    File(Stamp),
    /// A symlink; never followed.
    Link,
    /// A folder with nothing in it: it counts by its name.
    EmptyFolder,
    /// A pipe, socket or device; never opened.
    Special,
    /// It is there, but this came of looking.
    Unreadable(ErrorKind),
}

pub(crate) struct Walked {
    /// Sorted by path, each once.
    pub(crate) found: Vec<Found>,
    pub(crate) left_out: LeftOut,
    /// Of what is left out.
    pub(crate) markers: Vec<Marker>,
}

/// A folder's ignore file and those above it.
struct Ignores {
    here: Gitignore,
    above: Option<Arc<Ignores>>,
}

pub(crate) struct Folder {
    path: PathBuf,
    /// Relative, with a trailing `/`; empty for the root.
    prefix: Vec<u8>,
    ignores: Option<Arc<Ignores>>,
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

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
    let mut walked = Walked {
        found: Vec::new(),
        left_out: LeftOut::default(),
        markers: Vec::new(),
    };
    for mut walk in walks {
        walked.found.append(&mut walk.found);
        walked.markers.append(&mut walk.markers);
        walked.left_out.ignored += walk.left_out.ignored;
        walked.left_out.caches += walk.left_out.caches;
    }
    // What each thread found is sorted: this merges.
    walked.found.sort_by(|a, b| a.path.cmp(&b.path));
    add_always(reader, &mut walked.found, time)?;
    Ok(walked)
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
        walk.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
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
    found: Vec<Found>,
    left_out: LeftOut,
    markers: Vec<Marker>,
}

impl<'a> Walk<'a> {
    fn new(reader: &'a TreeReader) -> Self {
        Self {
            reader,
            found: Vec::new(),
            left_out: LeftOut::default(),
            markers: Vec::new(),
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
        match self.reader.files.open_folder(&folder.path) {
            Ok(mut open) => self.folder(folder, &mut *open, below),
            Err(err) if folder.prefix.is_empty() => {
                return Err(TreeError::root(&self.reader.root, err));
            }
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => self.add(trimmed(&folder.prefix), What::Unreadable(err.kind())),
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

    fn add(&mut self, path: Vec<u8>, what: What) {
        self.found.push(Found {
            path,
            what,
            named: false,
        });
    }

    fn folder(&mut self, folder: Folder, open: &mut dyn OpenFolder, todo: &mut Vec<Folder>) {
        let files = &*self.reader.files;
        let Folder {
            path,
            prefix,
            ignores,
        } = folder;
        let ignores = with_ignore_file(files, &path, ignores);
        let (entries, unseen) = listed(open);
        match unseen {
            // The rest of this folder cannot be seen: that is part of what the tree is.
            Some(err) => self.add(trimmed(&prefix), What::Unreadable(err.kind())),
            None if entries.is_empty() && !prefix.is_empty() => {
                self.add(trimmed(&prefix), What::EmptyFolder);
            }
            None => {}
        }
        for (entry, kind) in entries {
            let name = bytes(&entry);
            if is_version_control(&name) || prefix.is_empty() && *name == *OURS.as_bytes() {
                continue;
            }
            let relative = [prefix.as_slice(), &name].concat();
            let kind = match kind {
                Ok(kind) => kind,
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                Err(err) => {
                    self.add(relative, What::Unreadable(err.kind()));
                    continue;
                }
            };
            let full = path.join(&entry);
            if self.reader.apart.as_ref() == Some(&full) {
                continue;
            }
            if kind == FileKind::Folder {
                if is_cache(&name, || is_file(files, &path.join("Cargo.toml"))) {
                    self.left_out.caches += 1;
                    self.mark(&full, &relative, true);
                } else if ignored(&full, true, ignores.as_deref()) {
                    self.left_out.ignored += 1;
                    self.mark(&full, &relative, true);
                } else {
                    let mut prefix = relative;
                    prefix.push(b'/');
                    todo.push(Folder {
                        path: full,
                        prefix,
                        ignores: ignores.clone(),
                    });
                }
                continue;
            }
            // An ignore file that ignores itself would hide both itself and what it hides.
            let exempt =
                || *name == *b".gitignore" || self.reader.counts_always(&lossless(&relative));
            if ignored(&full, false, ignores.as_deref()) && !exempt() {
                self.left_out.ignored += 1;
                // Packages may be linked from another checkout.
                self.mark(&full, &relative, is_folder(files, &full, Links::Followed));
                continue;
            }
            match open.stat(&entry) {
                Ok(stat) if self.is_printed(&stat) => {}
                Ok(stat) => self.add(relative, what(&stat)),
                // Gone since the folder was listed.
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) => self.add(relative, What::Unreadable(err.kind())),
            }
        }
    }
}

/// What an open folder holds, as far as it can be seen, and why no further.
fn listed(folder: &mut dyn OpenFolder) -> (Vec<Listed>, Option<io::Error>) {
    let mut entries = Vec::new();
    let seen = folder.list(&mut |name, kind| entries.push((name.to_owned(), kind)));
    (entries, seen.err())
}

/// A name in a folder, and what it is.
type Listed = (OsString, io::Result<FileKind>);

/// Adds the files that count whatever their folders are, sorted into place.
fn add_always(
    reader: &TreeReader,
    found: &mut Vec<Found>,
    time: &Time<'_>,
) -> Result<(), TreeError> {
    let (files, root) = (&*reader.files, &reader.root);
    let mut more = Vec::new();
    let mut real_folders = BTreeMap::new();
    let mut at = 0;
    for name in reader.always.iter().chain(&reader.named) {
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
        let known = found
            .get(at)
            .is_some_and(|entry| *entry.path == *name.as_bytes());
        if known || !is_ours_to_count(name) {
            continue;
        }
        time.check()?;
        let parent = name.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !is_real_folder(files, root, parent, &mut real_folders) {
            continue;
        }
        match files.stat(&root.join(name), Links::Kept) {
            // A submodule's entry is its folder, which was walked like any other.
            Ok(stat) if stat.kind == FileKind::Folder => {}
            Ok(stat) => {
                more.push(Found {
                    path: name.clone().into_bytes(),
                    what: what(&stat),
                    named: false,
                });
            }
            // Deleted, which is a difference too.
            Err(err) if matches!(err.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(err) => more.push(Found {
                path: name.clone().into_bytes(),
                what: What::Unreadable(err.kind()),
                named: false,
            }),
        }
    }
    sort_in(found, more);
    Ok(())
}

/// Where this path is or would be, looked for from this place on if that can be.
fn known_from(found: &[Found], from: usize, path: &[u8]) -> usize {
    let is_before = |entry: &Found| *entry.path < *path;
    let rest = found.get(from..).unwrap_or_default();
    if from > 0 && !found.get(from - 1).is_some_and(is_before) {
        return found.partition_point(is_before);
    }
    match rest.iter().take(8).position(|entry| !is_before(entry)) {
        Some(near) => from + near,
        None => from + rest.partition_point(is_before),
    }
}

/// Adds what ignore files leave out and these globs ask for, sorted into place.
pub(crate) fn add_named(
    reader: &TreeReader,
    reaches: &[Reach],
    found: &mut Vec<Found>,
    time: &Time<'_>,
) -> Result<(), TreeError> {
    let mut more = Vec::new();
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
    sort_in(found, more);
    Ok(())
}

fn sort_in(found: &mut Vec<Found>, mut more: Vec<Found>) {
    if more.is_empty() {
        return;
    }
    found.append(&mut more);
    found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // A file can be named itself and lie in a folder that is named.
    found.dedup_by(|a, b| a.path == b.path);
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
        found: &[Found],
        more: &mut Vec<Found>,
        time: &Time<'_>,
    ) -> Result<(), TreeError> {
        let mut prefix = self.folder.as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let mut add = |path: Vec<u8>, what: What| {
            more.push(Found {
                path,
                what,
                named: self.named,
            });
        };
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
            for (entry, _) in entries {
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
                    Ok(stat) => what(&stat),
                    Err(err) if err.kind() == ErrorKind::NotFound => continue,
                    Err(err) => What::Unreadable(err.kind()),
                };
                let known = found.binary_search_by(|entry| entry.path.cmp(&relative));
                if known.is_err() && (self.meant)(&relative) {
                    add(relative, what);
                }
            }
        }
        Ok(())
    }
}

/// Whether ignore files or the list of caches leave out what begins with this text, which is what a
/// glob says before its first wildcard.
pub(crate) fn is_left_out(files: &dyn FileSystem, root: &Path, start: &str) -> bool {
    let mut ignores = with_ignore_file(files, root, ignores_above(files, root));
    let mut folder = root.to_owned();
    let mut parts = start.trim_end_matches('/').split('/').peekable();
    while let Some(part) = parts.next().filter(|part| !part.is_empty()) {
        let full = folder.join(part);
        let is_folder = parts.peek().is_some()
            || start.ends_with('/')
            || self::is_folder(files, &full, Links::Kept);
        let is_known_cache = is_folder
            && is_cache(part.as_bytes(), || {
                is_file(files, &folder.join("Cargo.toml"))
            });
        if is_known_cache || ignored(&full, is_folder, ignores.as_deref()) {
            return true;
        }
        ignores = with_ignore_file(files, &full, ignores);
        folder = full;
    }
    false
}

/// Whether a file of this name, relative to the root, would count by the ignore files, whether it is there or
/// not. A folder does not, nor does what a link leads to: it may lie elsewhere.
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
        && folders.all(|folder| is(folder, FileKind::Folder))
        && is(name, FileKind::File)
        && !is_left_out(files, root, text)
}

/// Whether this is the plain name of something that may be part of the tree.
pub(crate) fn is_ours_to_count(name: &str) -> bool {
    let mut parts = name.split('/');
    parts.clone().next() != Some(OURS)
        && parts.all(|part| {
            !part.is_empty() && part != "." && part != ".." && !is_version_control(part.as_bytes())
        })
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

/// Whether a regular file stands there, itself or behind a link.
fn is_file(files: &dyn FileSystem, path: &Path) -> bool {
    let found = files.stat(path, Links::Followed);
    found.is_ok_and(|found| found.kind == FileKind::File)
}

fn is_folder(files: &dyn FileSystem, path: &Path, links: Links) -> bool {
    let found = files.stat(path, links);
    found.is_ok_and(|found| found.kind == FileKind::Folder)
}

fn what(stat: &FileStat) -> What {
    match stat.kind {
        FileKind::File => What::File(stat.stamp),
        FileKind::Link => What::Link,
        // A folder: in the place of what was none when its own was listed.
        FileKind::Folder | FileKind::Special => What::Special,
    }
}

fn ignored(path: &Path, is_dir: bool, ignores: Option<&Ignores>) -> bool {
    let mut level = ignores;
    while let Some(Ignores { here, above }) = level {
        match here.matched(path, is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => level = above.as_deref(),
        }
    }
    false
}

/// More of an ignore file is not read: what it would leave out counts.
const LARGEST_IGNORE_FILE: u64 = 4 << 20;

fn with_ignore_file(
    files: &dyn FileSystem,
    folder: &Path,
    above: Option<Arc<Ignores>>,
) -> Option<Arc<Ignores>> {
    let file = folder.join(".gitignore");
    // Like git, no symlink; and a pipe of that name would have us wait for ever.
    let stat = files.stat(&file, Links::Kept);
    if !stat.is_ok_and(|stat| stat.kind == FileKind::File) {
        return above;
    }
    let Ok(open) = files.open_file(&file, Links::Kept) else {
        return above;
    };
    let mut text = Vec::new();
    // What can be read of it holds.
    let _ = open.take(LARGEST_IGNORE_FILE).read_to_end(&mut text);
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.lines().map_while(Result::ok) {
        // A line that is no glob is skipped, as git does.
        let _ = builder.add_line(None, &line);
    }
    match builder.build() {
        Ok(here) if !here.is_empty() => Some(Arc::new(Ignores { here, above })),
        Ok(_) | Err(_) => above,
    }
}

/// The ignore files between the root of the git repository and ours. None where there is no
/// repository: a stray ignore file in a home folder is nobody's wish for this tree.
fn ignores_above(files: &dyn FileSystem, root: &Path) -> Option<Arc<Ignores>> {
    let has_git = |folder: &Path| files.stat(&folder.join(".git"), Links::Followed).is_ok();
    if has_git(root) {
        return None;
    }
    let root = std::path::absolute(root).ok()?;
    let above: Vec<&Path> = root.ancestors().skip(1).collect();
    let git_root = above.iter().position(|folder| has_git(folder))?;
    above
        .iter()
        .take(git_root + 1)
        .rev()
        .fold(None, |ignores, folder| {
            with_ignore_file(files, folder, ignores)
        })
}

fn trimmed(prefix: &[u8]) -> Vec<u8> {
    prefix.strip_suffix(b"/").unwrap_or(prefix).to_vec()
}

#[cfg(unix)]
fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
    use std::os::unix::ffi::OsStrExt as _;
    name.as_bytes().into()
}

#[cfg(not(unix))]
fn bytes(name: &OsStr) -> std::borrow::Cow<'_, [u8]> {
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

fn lossless(path: &[u8]) -> std::borrow::Cow<'_, str> {
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
