//! From what the walk found to leaves: each file's content, out of the cache or read.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use checkrein_core::digest::Digest;

use super::entries::{TreeEntry, TreeEntryKind, TreeEntryList};
use super::stat_cache::StatCache;
use super::walk::os_str_from_bytes;
use super::{TreeReadDeadline, TreeReaderError};
use crate::file_system::{FileKind, FileStamp, FileSystem, OpenFile, SymlinkMode};

/// Files to read from which on a second thread is worth its start.
const WORTH_A_THREAD: usize = 32;
/// So many more files must be remembered before one of the others is read again rather than the whole cache
/// written.
const FILES_WORTH_SAVING: usize = 128;
/// Or so much must have been read.
const BYTES_WORTH_SAVING: u64 = 1 << 20;
const BLOCK: usize = 256 * 1024;
/// A larger file is known by its size, its times and where it is, and not read: a file with holes
/// can be larger than any disk. It counts as changed whenever its change time does.
#[cfg(unix)]
const LARGEST_READ: u64 = 512 << 20;
/// How often such a file is looked at that was changed a moment ago, and the time between: together
/// more than a tick of the coarsest file times.
#[cfg(unix)]
const LOOKS: u32 = 110;
#[cfg(unix)]
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What counts of a tree, sorted by path.
#[derive(Debug)]
pub(crate) struct SortedPathDigests {
    found: TreeEntryList,
    /// Of each.
    digests: Vec<Digest>,
}

/// A path and the digest of all that counts of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeEntryDigest<'l> {
    pub(crate) path: &'l [u8],
    pub(crate) digest: Digest,
    /// See [`TreeEntry::named`].
    pub(crate) named: bool,
    /// Not an empty folder.
    pub(crate) is_file: bool,
    /// Of a file, what the file system says of it.
    pub(crate) stamp: Option<FileStamp>,
}

impl SortedPathDigests {
    pub(crate) fn iter(&self) -> impl Iterator<Item = TreeEntryDigest<'_>> {
        let pairs = self.found.iter().zip(&self.digests);
        pairs.map(|((path, found), digest)| TreeEntryDigest {
            path,
            digest: *digest,
            named: found.named,
            is_file: found.kind != TreeEntryKind::EmptyFolder,
            stamp: match found.kind {
                TreeEntryKind::File(stamp) => Some(stamp),
                _ => None,
            },
        })
    }
}

pub(crate) struct TreeContentResult {
    /// An error if there was no time to read them all.
    pub(crate) leaves: Result<SortedPathDigests, TreeReaderError>,
    /// What to remember, if that is worth its writing.
    pub(crate) cache: Option<StatCache>,
}

/// What came of reading a file or a link.
#[derive(Clone, Copy)]
enum FileReadOutcome {
    /// The leaf's digest, and whether the file held still.
    Read(Digest, bool),
    Gone,
    Unreadable(ErrorKind),
}

/// Whether the file counts by its size and its times.
pub(crate) fn is_too_large_to_read(entry: &TreeEntry) -> bool {
    match &entry.kind {
        #[cfg(unix)]
        TreeEntryKind::File(stamp) => stamp.size > LARGEST_READ,
        #[cfg(not(unix))]
        TreeEntryKind::File(_) => false,
        TreeEntryKind::Link
        | TreeEntryKind::EmptyFolder
        | TreeEntryKind::Special
        | TreeEntryKind::Unreadable(_) => false,
    }
}

pub(crate) fn digest_tree_contents(
    file_system: &dyn FileSystem,
    root: &Path,
    mut found: TreeEntryList,
    cache: &StatCache,
    now: SystemTime,
    time: &TreeReadDeadline<'_>,
) -> TreeContentResult {
    let mut remembered = cache.cached_entries();
    let mut unread = Vec::new();
    let mut digests: Vec<Option<Digest>> = Vec::with_capacity(found.len());
    for (at, (path, entry)) in found.iter().enumerate() {
        let known = match &entry.kind {
            // What was remembered by a clock that was ahead may be young yet.
            TreeEntryKind::File(stamp) => remembered
                .find_cached_digest(path, stamp)
                .filter(|_| !stamp.is_racy(now)),
            TreeEntryKind::Link => None,
            TreeEntryKind::EmptyFolder => Some(Digest::hash_parts([b"folder".as_slice()])),
            TreeEntryKind::Special => Some(Digest::hash_parts([b"special".as_slice()])),
            TreeEntryKind::Unreadable(kind) => Some(unreadable_digest(*kind)),
        };
        if known.is_none() {
            unread.push((at, path, &entry.kind));
        }
        digests.push(known);
    }
    let (read, cut) = read_files_until_deadline(file_system, root, &unread, time);
    let mut learnt = StatCacheUpdate::default();
    for ((at, _, what), content) in unread.iter().zip(&read) {
        let digest = match content {
            Some(FileReadOutcome::Read(digest, _)) => Some(*digest),
            Some(FileReadOutcome::Unreadable(kind)) => Some(unreadable_digest(*kind)),
            Some(FileReadOutcome::Gone) | None => None,
        };
        if let Some(place) = digests.get_mut(*at) {
            *place = digest;
        }
        learnt.record_file_for_stat_cache(*at, what, content.as_ref(), now);
    }
    let cache = learnt
        .is_stat_cache_worth_saving(cache.len(), found.len(), cut.is_some())
        .then(|| learnt.build_stat_cache(&found, &digests));
    let leaves = cut.map_or(Ok(()), Err).map(|()| {
        if digests.contains(&None) {
            let mut digests = digests.iter();
            found.retain_tree_entries(|_, _| digests.next().is_some_and(Option::is_some));
        }
        SortedPathDigests {
            found,
            digests: digests.into_iter().flatten().collect(),
        }
    });
    TreeContentResult { leaves, cache }
}

/// What was read and may be remembered.
#[derive(Default)]
struct StatCacheUpdate {
    /// Of those files that were not known, in their order: where they are in the list, and whether they may
    /// be.
    files: Vec<(usize, bool)>,
    count: usize,
    bytes: u64,
}

impl StatCacheUpdate {
    fn record_file_for_stat_cache(
        &mut self,
        at: usize,
        what: &TreeEntryKind,
        content: Option<&FileReadOutcome>,
        now: SystemTime,
    ) {
        let TreeEntryKind::File(stamp) = what else {
            return;
        };
        // It is what the file holds, now and as long as the stamp stays.
        let is_settled =
            matches!(content, Some(FileReadOutcome::Read(_, true))) && !stamp.is_racy(now);
        self.files.push((at, is_settled));
        if is_settled {
            self.count += 1;
            self.bytes = self.bytes.saturating_add(stamp.size);
        }
    }

    /// Whether reading this again would take longer than to write the whole cache. What is out of date in it
    /// does no harm, but for its size.
    fn is_stat_cache_worth_saving(&self, remembered: usize, found: usize, is_cut: bool) -> bool {
        let is_much =
            self.count > remembered / FILES_WORTH_SAVING || self.bytes > BYTES_WORTH_SAVING;
        let is_some = self.count > 0;
        // A reading that was cut may be cut at the same place for ever.
        is_some && (is_much || is_cut) || remembered / 2 > found
    }

    fn build_stat_cache(&self, found: &TreeEntryList, digests: &[Option<Digest>]) -> StatCache {
        let mut next = StatCache::default();
        let mut files = self.files.iter().peekable();
        for (at, ((path, entry), digest)) in found.iter().zip(digests).enumerate() {
            let (TreeEntryKind::File(stamp), Some(digest)) = (&entry.kind, digest) else {
                files.next_if(|(file, _)| *file == at);
                continue;
            };
            let unknown = files.next_if(|(file, _)| *file == at);
            if unknown.is_none_or(|(_, is_settled)| *is_settled) {
                next.push_cached_file_stat(path, stamp, digest);
            }
        }
        next
    }
}

fn digest_of_mode_and_content(stamp: &FileStamp, content: &Digest) -> Digest {
    let executable = if stamp.is_executable() { b"x" } else { b"-" };
    Digest::hash_parts([b"file".as_slice(), executable, content.as_bytes()])
}

/// What a file is by now, as leaves have it; `None` if there is none that can be read.
pub(crate) fn current_file_digest(
    file_system: &dyn FileSystem,
    root: &Path,
    path: &[u8],
    stamp: &FileStamp,
) -> Option<Digest> {
    let mut block = Vec::new();
    let time = TreeReadDeadline::new(super::TreeReadLimits::default(), file_system);
    match read_file_content(
        file_system,
        &join_tree_path_to_root(root, path),
        stamp,
        &mut block,
        &time,
    )
    .ok()?
    {
        FileReadOutcome::Read(digest, _) => Some(digest),
        FileReadOutcome::Gone | FileReadOutcome::Unreadable(_) => None,
    }
}

/// What the file system says of a file by now.
pub(crate) fn current_file_stamp(
    file_system: &dyn FileSystem,
    root: &Path,
    path: &[u8],
) -> Option<FileStamp> {
    let stat = file_system
        .stat_file(&join_tree_path_to_root(root, path), SymlinkMode::NoFollow)
        .ok()?;
    (stat.kind == FileKind::File).then_some(stat.stamp)
}

fn unreadable_digest(kind: ErrorKind) -> Digest {
    Digest::hash_parts([b"unreadable".as_slice(), kind.to_string().as_bytes()])
}

/// What these hold, in their order, as far as there was time; and why no further.
fn read_files_until_deadline(
    file_system: &dyn FileSystem,
    root: &Path,
    files: &[UnreadTreeEntry<'_>],
    time: &TreeReadDeadline<'_>,
) -> (Vec<Option<FileReadOutcome>>, Option<TreeReaderError>) {
    let threads = match files.len() {
        many if many >= WORTH_A_THREAD => file_system.worthwhile_thread_count(),
        _ => 1,
    };
    let share = files.len().div_ceil(threads.max(1)).max(1);
    let read_share = |share: &[UnreadTreeEntry<'_>]| {
        let mut block = Vec::new();
        let mut contents = vec![None; share.len()];
        for ((_, path, what), content) in share.iter().zip(&mut contents) {
            if let Err(cut) = time.check_tree_read_limits() {
                return (contents, Some(cut));
            }
            let path = join_tree_path_to_root(root, path);
            let read = match what {
                TreeEntryKind::File(stamp) => {
                    read_file_content(file_system, &path, stamp, &mut block, time)
                }
                _ => read_link_content(file_system, &path).map_err(ContentReadError::Io),
            };
            *content = Some(match read {
                Ok(content) => content,
                Err(ContentReadError::Tree(cut)) => return (contents, Some(cut)),
                Err(ContentReadError::Io(err)) if err.kind() == ErrorKind::NotFound => {
                    FileReadOutcome::Gone
                }
                Err(ContentReadError::Io(err)) => FileReadOutcome::Unreadable(err.kind()),
            });
        }
        (contents, None)
    };
    if threads <= 1 {
        return read_share(files);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = files
            .chunks(share)
            .map(|share| (share, scope.spawn(move || read_share(share))))
            .collect();
        let (mut all, mut cut) = (Vec::with_capacity(files.len()), None);
        for (share, thread) in running {
            // A thread that could not finish leaves its share to this one.
            let (contents, cut_here) = thread.join().unwrap_or_else(|_| read_share(share));
            all.extend(contents);
            cut = cut.or(cut_here);
        }
        (all, cut)
    })
}

/// Where it is in the list, and what it is: a file or a link.
type UnreadTreeEntry<'f> = (usize, &'f [u8], &'f TreeEntryKind);

fn read_link_content(
    file_system: &dyn FileSystem,
    path: &Path,
) -> std::io::Result<FileReadOutcome> {
    let target = file_system.read_link(path)?;
    let parts = [b"link".as_slice(), target.as_os_str().as_encoded_bytes()];
    Ok(FileReadOutcome::Read(Digest::hash_parts(parts), true))
}

enum ContentReadError {
    Io(std::io::Error),
    Tree(TreeReaderError),
}

fn read_file_content(
    file_system: &dyn FileSystem,
    path: &Path,
    stamp: &FileStamp,
    block: &mut Vec<u8>,
    time: &TreeReadDeadline<'_>,
) -> Result<FileReadOutcome, ContentReadError> {
    // Another file may be there by now, and be a pipe or a link.
    let mut file = file_system
        .open_file_for_reading(path, SymlinkMode::NoFollow)
        .map_err(ContentReadError::Io)?;
    #[cfg(unix)]
    if file
        .stat_open_file()
        .map_err(ContentReadError::Io)?
        .stamp
        .size
        > LARGEST_READ
        && let Some(settled) = wait_for_settled_stamp(file_system, &*file, time)?
    {
        let digest = digest_of_mode_and_content(stamp, &settled.stamp_digest());
        return Ok(FileReadOutcome::Read(digest, settled == *stamp));
    }
    block.resize(BLOCK, 0);
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(block) {
            Ok(0) => break,
            Ok(length) => hasher.update(block.get(..length).unwrap_or_default()),
            Err(err) if err.kind() == ErrorKind::Interrupted => continue,
            Err(err) => return Err(ContentReadError::Io(err)),
        };
        time.check_tree_read_limits()
            .map_err(ContentReadError::Tree)?;
    }
    let still = file.stat_open_file().is_ok_and(|stat| stat.stamp == *stamp);
    let content = Digest::from_bytes(*hasher.finalize().as_bytes());
    Ok(FileReadOutcome::Read(
        digest_of_mode_and_content(stamp, &content),
        still,
    ))
}

/// What the file system says of a file once a further write would show in it. `None` if the clock
/// of the file system is ahead of ours: then only the content tells.
#[cfg(unix)]
fn wait_for_settled_stamp(
    file_system: &dyn FileSystem,
    file: &dyn OpenFile,
    time: &TreeReadDeadline<'_>,
) -> Result<Option<FileStamp>, ContentReadError> {
    for _ in 0..LOOKS {
        let now = file_system.clock_now();
        let stamp = file.stat_open_file().map_err(ContentReadError::Io)?.stamp;
        if !stamp.is_just_changed(now) {
            return Ok(Some(stamp));
        }
        time.check_tree_read_limits()
            .map_err(ContentReadError::Tree)?;
        file_system.sleep(BETWEEN_LOOKS);
    }
    Ok(None)
}

fn join_tree_path_to_root(root: &Path, path: &[u8]) -> PathBuf {
    root.join(os_str_from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::RealFileSystem;

    /// What is made of one file `a` whose cache entry says `cached`, read `later` seconds from now.
    fn one_file(cached: Option<&[u8]>, later: u64) -> (TreeContentResult, Digest) {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "real").unwrap();
        let stamp =
            FileStamp::stamp_from_metadata(&std::fs::metadata(root.path().join("a")).unwrap());
        let mut cache = StatCache::default();
        if let Some(cached) = cached {
            cache.push_cached_file_stat(
                b"a",
                &stamp,
                &digest_of_mode_and_content(&stamp, &Digest::hash_bytes(cached)),
            );
        }
        let mut found = TreeEntryList::default();
        found.push_tree_entry([b"a", b""], TreeEntryKind::File(stamp), false);
        let now = SystemTime::now() + std::time::Duration::from_secs(later);
        let contents = digest_tree_contents(
            &RealFileSystem,
            root.path(),
            found,
            &cache,
            now,
            &TreeReadDeadline::new(crate::tree::TreeReadLimits::default(), &RealFileSystem),
        );
        let digest = contents.leaves.as_ref().unwrap().digests[0];
        (contents, digest)
    }

    #[test]
    fn what_is_known_is_not_read_and_what_is_young_is_not_remembered() {
        let leaf = |content: &[u8]| {
            Digest::hash_parts([
                b"file".as_slice(),
                b"-",
                Digest::hash_bytes(content).as_bytes(),
            ])
        };
        let (contents, digest) = one_file(None, 61);
        assert_eq!(
            (digest, contents.cache.map(|cache| cache.len())),
            (leaf(b"real"), Some(1))
        );
        let (contents, digest) = one_file(Some(b"remembered"), 61);
        assert_eq!(
            (digest, contents.cache.map(|cache| cache.len())),
            (leaf(b"remembered"), None)
        );
        let (contents, digest) = one_file(Some(b"remembered"), 0);
        assert_eq!(
            (digest, contents.cache.map(|cache| cache.len())),
            (leaf(b"real"), None)
        );
        let (contents, digest) = one_file(None, 0);
        assert_eq!(
            (digest, contents.cache.map(|cache| cache.len())),
            (leaf(b"real"), None)
        );
    }

    #[test]
    fn a_cache_is_written_when_reading_again_would_take_longer() {
        let check = |count: usize, bytes: u64, remembered, found, is_cut, expected: bool| {
            let learnt = StatCacheUpdate {
                files: Vec::new(),
                count,
                bytes,
            };
            let saved = learnt.is_stat_cache_worth_saving(remembered, found, is_cut);
            assert_eq!(
                saved, expected,
                "{count} {bytes} {remembered} {found} {is_cut}"
            );
        };
        check(0, 0, 10, 10, false, false);
        check(1, 1, 0, 1, false, true);
        check(1, 1, 10, 11, false, true);
        check(1, 1, 300_000, 300_001, false, false);
        check(3_000, 1, 300_000, 300_001, false, true);
        check(1, 2 << 20, 300_000, 300_001, false, true);
        check(1, 1, 300_000, 300_001, true, true);
        check(0, 0, 300_000, 300_001, true, false);
        // Most of it is of files that are gone.
        check(0, 0, 300_000, 100_000, false, true);
    }
}
