//! Turns the entries that the walk found into digests. A file's digest comes from the stat cache if
//! its stamp is unchanged and old enough; otherwise the file is read, on several threads if there
//! are many.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use checkrein_core::digest::Digest;

use super::entries::{FilesystemEntryKind, ListedTreeEntry, TreeEntryList};
use super::stat_cache::StatCache;
use super::walk::os_str_from_bytes;
use super::{TreeReadDeadline, TreeReaderError};
use crate::file_system::{
    FileKind, FileStamp, OpenFileForReading, ReadOnlyFileSystem, SymlinkMode,
};

/// Number of files to read from which a second thread is worth starting.
const WORTH_A_THREAD: usize = 32;
/// A cache is rewritten if the files read are more than this fraction of those it holds. For fewer,
/// reading them again is cheaper than writing the whole cache.
const FILES_WORTH_SAVING: usize = 128;
/// A cache is also rewritten if more bytes than this were read.
const BYTES_WORTH_SAVING: u64 = 1 << 20;
const BLOCK: usize = 256 * 1024;
/// A larger file is known by its size, its times and where it is, and not read: a file with holes
/// can be larger than any disk. It counts as changed whenever its change time does.
#[cfg(unix)]
const LARGEST_READ: u64 = 512 << 20;
/// How often a large file that has just changed is checked, and the time between two checks:
/// together more than a tick of the coarsest file times.
#[cfg(unix)]
const LOOKS: u32 = 110;
#[cfg(unix)]
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The entries that count, sorted by path, each with its digest.
#[derive(Debug)]
pub(crate) struct SortedPathDigests {
    found: TreeEntryList,
    /// One digest for each entry of `found`, in the same order.
    digests: Vec<Digest>,
}

/// A path with the digest of everything that counts about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeEntryDigest<'l> {
    pub(crate) path: &'l [u8],
    pub(crate) digest: Digest,
    /// See [`ListedTreeEntry::named`].
    pub(crate) named: bool,
    /// False for an empty folder only.
    pub(crate) is_file: bool,
    /// The stamp of a file; `None` for anything else.
    pub(crate) stamp: Option<FileStamp>,
}

impl SortedPathDigests {
    pub(crate) fn iter(&self) -> impl Iterator<Item = TreeEntryDigest<'_>> {
        let pairs = self.found.iter().zip(&self.digests);
        pairs.map(|((path, found), digest)| TreeEntryDigest {
            path,
            digest: *digest,
            named: found.named,
            is_file: found.kind != FilesystemEntryKind::EmptyFolder,
            stamp: match found.kind {
                FilesystemEntryKind::File(stamp) => Some(stamp),
                _ => None,
            },
        })
    }
}

pub(crate) struct TreeContentResult {
    /// The digests; an error if a limit ended the reading.
    pub(crate) leaves: Result<SortedPathDigests, TreeReaderError>,
    /// The cache to save, if saving it is worthwhile.
    pub(crate) cache: Option<StatCache>,
}

/// The result of reading a file or a link.
#[derive(Clone, Copy)]
enum FileDigestOutcome {
    /// The leaf's digest, and whether the file was unchanged during the read.
    Read(Digest, bool),
    Gone,
    Unreadable(ErrorKind),
}

/// Returns whether the file counts by its size and times instead of its content.
pub(crate) fn is_too_large_to_read(entry: &ListedTreeEntry) -> bool {
    match &entry.kind {
        #[cfg(unix)]
        FilesystemEntryKind::File(stamp) => stamp.size > LARGEST_READ,
        #[cfg(not(unix))]
        FilesystemEntryKind::File(_) => false,
        FilesystemEntryKind::Link
        | FilesystemEntryKind::EmptyFolder
        | FilesystemEntryKind::Special
        | FilesystemEntryKind::Unreadable(_) => false,
    }
}

pub(crate) fn digest_tree_contents(
    file_system: &dyn ReadOnlyFileSystem,
    root: &Path,
    mut found: TreeEntryList,
    cache: &StatCache,
    now: SystemTime,
    time: &TreeReadDeadline<'_>,
) -> TreeContentResult {
    // Pass 1: entries and cache are both sorted by path, so one cursor over the cache serves every
    // lookup.
    let mut remembered = cache.new_cursor_at_first_entry();
    let mut unread = Vec::new();
    let mut digests: Vec<Option<Digest>> = Vec::with_capacity(found.len());
    for (at, (path, entry)) in found.iter().enumerate() {
        let known = match &entry.kind {
            // An entry that was saved under a clock ahead of this one may still be too young to be
            // trusted.
            FilesystemEntryKind::File(stamp) => remembered
                .find_cached_digest(path, stamp)
                .filter(|_| !stamp.stamp_may_hide_later_write(now)),
            // The entry of a link carries no stamp, so its target is read each time: one system
            // call.
            FilesystemEntryKind::Link => None,
            FilesystemEntryKind::EmptyFolder => Some(Digest::hash_parts([b"folder".as_slice()])),
            FilesystemEntryKind::Special => Some(Digest::hash_parts([b"special".as_slice()])),
            FilesystemEntryKind::Unreadable(kind) => Some(digest_for_unreadable_file(*kind)),
        };
        if known.is_none() {
            unread.push((at, path, &entry.kind));
        }
        digests.push(known);
    }
    // Pass 2: read what the cache does not know.
    let (read, cut) = read_files_until_deadline(file_system, root, &unread, time);
    let mut learnt = StatCacheCandidates::default();
    for ((at, _, what), content) in unread.iter().zip(&read) {
        let digest = match content {
            Some(FileDigestOutcome::Read(digest, _)) => Some(*digest),
            Some(FileDigestOutcome::Unreadable(kind)) => Some(digest_for_unreadable_file(*kind)),
            // A file that vanished between the walk and the read is not part of this tree. `None`
            // means that time ran out before it.
            Some(FileDigestOutcome::Gone) | None => None,
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
        // The paths of vanished files go too, so that `found` and `digests` stay parallel.
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

/// Collects which of the files just read may enter the cache, and how much was read.
#[derive(Default)]
struct StatCacheCandidates {
    /// For each file that the cache did not know, in order: its index in the list, and whether it
    /// may be cached.
    files: Vec<(usize, bool)>,
    count: usize,
    bytes: u64,
}

impl StatCacheCandidates {
    fn record_file_for_stat_cache(
        &mut self,
        at: usize,
        what: &FilesystemEntryKind,
        content: Option<&FileDigestOutcome>,
        now: SystemTime,
    ) {
        let FilesystemEntryKind::File(stamp) = what else {
            return;
        };
        // The digest is what the file holds now, and for as long as its stamp stays the same: the
        // file held still during the read, and it is old enough that no later write can leave the
        // stamp unchanged.
        let is_settled = matches!(content, Some(FileDigestOutcome::Read(_, true)))
            && !stamp.stamp_may_hide_later_write(now);
        self.files.push((at, is_settled));
        if is_settled {
            self.count += 1;
            self.bytes = self.bytes.saturating_add(stamp.size);
        }
    }

    /// Returns whether reading these files again would take longer than writing the whole cache.
    /// Outdated entries do no harm except for their size.
    fn is_stat_cache_worth_saving(&self, remembered: usize, found: usize, is_cut: bool) -> bool {
        let is_much =
            self.count > remembered / FILES_WORTH_SAVING || self.bytes > BYTES_WORTH_SAVING;
        let is_some = self.count > 0;
        // A reading that was cut could be cut at the same place every time, so any progress is
        // saved. The last term drops a cache of which more than half is about files that are gone.
        is_some && (is_much || is_cut) || remembered / 2 > found
    }

    fn build_stat_cache(&self, found: &TreeEntryList, digests: &[Option<Digest>]) -> StatCache {
        let mut next = StatCache::default();
        // `files` holds indices in ascending order, so it is consumed in step with the entries.
        let mut files = self.files.iter().peekable();
        for (at, ((path, entry), digest)) in found.iter().zip(digests).enumerate() {
            let (FilesystemEntryKind::File(stamp), Some(digest)) = (&entry.kind, digest) else {
                // Not a file or not read: skip its record as well, or all later ones would be out
                // of step.
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

// Of the permissions only the executable bit counts, as in git: others differ with the umask.
fn digest_of_mode_and_content(stamp: &FileStamp, content: &Digest) -> Digest {
    let executable = if stamp.is_executable() { b"x" } else { b"-" };
    Digest::hash_parts([b"file".as_slice(), executable, content.as_bytes()])
}

/// Returns the current digest of a file, computed as for a leaf; `None` if there is no readable
/// file.
pub(crate) fn current_file_digest(
    file_system: &dyn ReadOnlyFileSystem,
    root: &Path,
    path: &[u8],
    stamp: &FileStamp,
) -> Option<Digest> {
    let mut block = Vec::new();
    let time = TreeReadDeadline::new(super::TreeReadTimeoutAndCancel::default(), file_system);
    match hash_file_content(
        file_system,
        &join_tree_path_to_root(root, path),
        stamp,
        &mut block,
        &time,
    )
    .ok()?
    {
        FileDigestOutcome::Read(digest, _) => Some(digest),
        FileDigestOutcome::Gone | FileDigestOutcome::Unreadable(_) => None,
    }
}

/// Returns the current stamp of a regular file.
pub(crate) fn current_file_stamp(
    file_system: &dyn ReadOnlyFileSystem,
    root: &Path,
    path: &[u8],
) -> Option<FileStamp> {
    let stat = file_system
        .stat_file(&join_tree_path_to_root(root, path), SymlinkMode::NoFollow)
        .ok()?;
    (stat.kind == FileKind::File).then_some(stat.stamp)
}

fn digest_for_unreadable_file(kind: ErrorKind) -> Digest {
    Digest::hash_parts([b"unreadable".as_slice(), kind.to_string().as_bytes()])
}

/// Reads these files in order until time runs out. Returns what was read, and the limit that ended
/// the reading if one did.
fn read_files_until_deadline(
    file_system: &dyn ReadOnlyFileSystem,
    root: &Path,
    files: &[TreeEntryToRead<'_>],
    time: &TreeReadDeadline<'_>,
) -> (Vec<Option<FileDigestOutcome>>, Option<TreeReaderError>) {
    let threads = match files.len() {
        many if many >= WORTH_A_THREAD => file_system.worthwhile_thread_count(),
        _ => 1,
    };
    // Each thread takes one contiguous share, so that the results can be concatenated in order.
    let share = files.len().div_ceil(threads.max(1)).max(1);
    let read_share = |share: &[TreeEntryToRead<'_>]| {
        let mut block = Vec::new();
        let mut contents = vec![None; share.len()];
        for ((_, path, what), content) in share.iter().zip(&mut contents) {
            if let Err(cut) = time.check_tree_read_time_and_cancel() {
                return (contents, Some(cut));
            }
            let path = join_tree_path_to_root(root, path);
            let read = match what {
                FilesystemEntryKind::File(stamp) => {
                    hash_file_content(file_system, &path, stamp, &mut block, time)
                }
                _ => digest_symlink_target(file_system, &path).map_err(ContentReadError::Io),
            };
            *content = Some(match read {
                Ok(content) => content,
                // A limit is not a property of the file, unlike the errors below, which become part
                // of the digest.
                Err(ContentReadError::Tree(cut)) => return (contents, Some(cut)),
                Err(ContentReadError::Io(err)) if err.kind() == ErrorKind::NotFound => {
                    FileDigestOutcome::Gone
                }
                Err(ContentReadError::Io(err)) => FileDigestOutcome::Unreadable(err.kind()),
            });
        }
        (contents, None)
    };
    // No thread is started for a small tree: starting one costs more than it saves.
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
            // If a thread panicked, its share is read again here.
            let (contents, cut_here) = thread.join().unwrap_or_else(|_| read_share(share));
            all.extend(contents);
            cut = cut.or(cut_here);
        }
        (all, cut)
    })
}

/// Where it is in the list, and what it is: a file or a link.
type TreeEntryToRead<'f> = (usize, &'f [u8], &'f FilesystemEntryKind);

fn digest_symlink_target(
    file_system: &dyn ReadOnlyFileSystem,
    path: &Path,
) -> std::io::Result<FileDigestOutcome> {
    let target = file_system.read_link(path)?;
    let parts = [b"link".as_slice(), target.as_os_str().as_encoded_bytes()];
    Ok(FileDigestOutcome::Read(Digest::hash_parts(parts), true))
}

enum ContentReadError {
    Io(std::io::Error),
    Tree(TreeReaderError),
}

fn hash_file_content(
    file_system: &dyn ReadOnlyFileSystem,
    path: &Path,
    stamp: &FileStamp,
    block: &mut Vec<u8>,
    time: &TreeReadDeadline<'_>,
) -> Result<FileDigestOutcome, ContentReadError> {
    // The file may have been replaced since it was listed, by a pipe or a link: it is opened
    // without following links and without waiting.
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
        && let Some(settled) = wait_for_settled_file_stamp(file_system, &*file, time)?
    {
        // The size is taken from the open file, not from the walk: the file may have grown past the
        // limit since.
        let digest = digest_of_mode_and_content(stamp, &settled.stamp_digest());
        return Ok(FileDigestOutcome::Read(digest, settled == *stamp));
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
        // Checked once per block, so that a file of half a gigabyte cannot outlast the limit.
        time.check_tree_read_time_and_cancel()
            .map_err(ContentReadError::Tree)?;
    }
    // The stamp is compared after the last byte: a write during the read shows as a different
    // stamp.
    let still = file.stat_open_file().is_ok_and(|stat| stat.stamp == *stamp);
    let content = Digest::from_bytes(*hasher.finalize().as_bytes());
    Ok(FileDigestOutcome::Read(
        digest_of_mode_and_content(stamp, &content),
        still,
    ))
}

/// Waits until the file's last change is old enough that a further write would change its stamp,
/// and returns the stamp. Returns `None` if that does not happen in time because the file system's
/// clock is ahead of ours; then only the content tells.
#[cfg(unix)]
fn wait_for_settled_file_stamp(
    file_system: &dyn ReadOnlyFileSystem,
    file: &dyn OpenFileForReading,
    time: &TreeReadDeadline<'_>,
) -> Result<Option<FileStamp>, ContentReadError> {
    for _ in 0..LOOKS {
        let now = file_system.clock_now();
        let stamp = file.stat_open_file().map_err(ContentReadError::Io)?.stamp;
        if !stamp.is_just_changed(now) {
            return Ok(Some(stamp));
        }
        time.check_tree_read_time_and_cancel()
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
        found.push_tree_entry([b"a", b""], FilesystemEntryKind::File(stamp), false);
        let now = SystemTime::now() + std::time::Duration::from_secs(later);
        let contents = digest_tree_contents(
            &RealFileSystem,
            root.path(),
            found,
            &cache,
            now,
            &TreeReadDeadline::new(
                crate::tree::TreeReadTimeoutAndCancel::default(),
                &RealFileSystem,
            ),
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
            let learnt = StatCacheCandidates {
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
