//! From what the walk found to leaves: each file's content, out of the cache or read.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use checkrein_core::digest::Digest;

use super::found::{Found, FoundList, What};
use super::stat_cache::StatCache;
use super::walk::os_name;
use super::{Time, TreeError};
use crate::file_system::{FileKind, FileSystem, Links, OpenFile, Stamp};

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
pub(crate) struct Leaves {
    found: FoundList,
    /// Of each.
    digests: Vec<Digest>,
}

/// A path and the digest of all that counts of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaf<'l> {
    pub(crate) path: &'l [u8],
    pub(crate) digest: Digest,
    /// See [`Found::named`].
    pub(crate) named: bool,
    /// Not an empty folder.
    pub(crate) is_file: bool,
    /// Of a file, what the file system says of it.
    pub(crate) stamp: Option<Stamp>,
}

impl Leaves {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Leaf<'_>> {
        let pairs = self.found.iter().zip(&self.digests);
        pairs.map(|((path, found), digest)| Leaf {
            path,
            digest: *digest,
            named: found.named,
            is_file: found.what != What::EmptyFolder,
            stamp: match found.what {
                What::File(stamp) => Some(stamp),
                _ => None,
            },
        })
    }
}

pub(crate) struct Contents {
    /// An error if there was no time to read them all.
    pub(crate) leaves: Result<Leaves, TreeError>,
    /// What to remember, if that is worth its writing.
    pub(crate) cache: Option<StatCache>,
}

/// What came of reading a file or a link.
#[derive(Clone, Copy)]
enum Content {
    /// The leaf's digest, and whether the file held still.
    Read(Digest, bool),
    Gone,
    Unreadable(ErrorKind),
}

/// Whether the file counts by its size and its times.
pub(crate) fn is_too_large(entry: &Found) -> bool {
    match &entry.what {
        #[cfg(unix)]
        What::File(stamp) => stamp.size > LARGEST_READ,
        #[cfg(not(unix))]
        What::File(_) => false,
        What::Link | What::EmptyFolder | What::Special | What::Unreadable(_) => false,
    }
}

pub(crate) fn contents(
    file_system: &dyn FileSystem,
    root: &Path,
    mut found: FoundList,
    cache: &StatCache,
    now: SystemTime,
    time: &Time<'_>,
) -> Contents {
    let mut remembered = cache.entries();
    let mut unread = Vec::new();
    let mut digests: Vec<Option<Digest>> = Vec::with_capacity(found.len());
    for (at, (path, entry)) in found.iter().enumerate() {
        let known = match &entry.what {
            // What was remembered by a clock that was ahead may be young yet.
            What::File(stamp) => remembered.find(path, stamp).filter(|_| !stamp.racy(now)),
            What::Link => None,
            What::EmptyFolder => Some(Digest::hash_parts([b"folder".as_slice()])),
            What::Special => Some(Digest::hash_parts([b"special".as_slice()])),
            What::Unreadable(kind) => Some(unreadable(*kind)),
        };
        if known.is_none() {
            unread.push((at, path, &entry.what));
        }
        digests.push(known);
    }
    let (read, cut) = read_all(file_system, root, &unread, time);
    let mut learnt = Learnt::default();
    for ((at, _, what), content) in unread.iter().zip(&read) {
        let digest = match content {
            Some(Content::Read(digest, _)) => Some(*digest),
            Some(Content::Unreadable(kind)) => Some(unreadable(*kind)),
            Some(Content::Gone) | None => None,
        };
        if let Some(place) = digests.get_mut(*at) {
            *place = digest;
        }
        learnt.take(*at, what, content.as_ref(), now);
    }
    let cache = learnt
        .is_worth_saving(cache.len(), found.len(), cut.is_some())
        .then(|| learnt.with_known(&found, &digests));
    let leaves = cut.map_or(Ok(()), Err).map(|()| {
        if digests.contains(&None) {
            let mut digests = digests.iter();
            found.retain(|_, _| digests.next().is_some_and(Option::is_some));
        }
        Leaves {
            found,
            digests: digests.into_iter().flatten().collect(),
        }
    });
    Contents { leaves, cache }
}

/// What was read and may be remembered.
#[derive(Default)]
struct Learnt {
    /// Of those files that were not known, in their order: where they are in the list, and whether they may
    /// be.
    files: Vec<(usize, bool)>,
    count: usize,
    bytes: u64,
}

impl Learnt {
    fn take(&mut self, at: usize, what: &What, content: Option<&Content>, now: SystemTime) {
        let What::File(stamp) = what else {
            return;
        };
        // It is what the file holds, now and as long as the stamp stays.
        let is_settled = matches!(content, Some(Content::Read(_, true))) && !stamp.racy(now);
        self.files.push((at, is_settled));
        if is_settled {
            self.count += 1;
            self.bytes = self.bytes.saturating_add(stamp.size);
        }
    }

    /// Whether reading this again would take longer than to write the whole cache. What is out of date in it
    /// does no harm, but for its size.
    fn is_worth_saving(&self, remembered: usize, found: usize, is_cut: bool) -> bool {
        let is_much =
            self.count > remembered / FILES_WORTH_SAVING || self.bytes > BYTES_WORTH_SAVING;
        let is_some = self.count > 0;
        // A reading that was cut may be cut at the same place for ever.
        is_some && (is_much || is_cut) || remembered / 2 > found
    }

    fn with_known(&self, found: &FoundList, digests: &[Option<Digest>]) -> StatCache {
        let mut next = StatCache::default();
        let mut files = self.files.iter().peekable();
        for (at, ((path, entry), digest)) in found.iter().zip(digests).enumerate() {
            let (What::File(stamp), Some(digest)) = (&entry.what, digest) else {
                files.next_if(|(file, _)| *file == at);
                continue;
            };
            let unknown = files.next_if(|(file, _)| *file == at);
            if unknown.is_none_or(|(_, is_settled)| *is_settled) {
                next.push(path, stamp, digest);
            }
        }
        next
    }
}

fn of_file(stamp: &Stamp, content: &Digest) -> Digest {
    let executable = if stamp.executable() { b"x" } else { b"-" };
    Digest::hash_parts([b"file".as_slice(), executable, content.as_bytes()])
}

/// What a file is by now, as leaves have it; `None` if there is none that can be read.
pub(crate) fn leaf_now(
    file_system: &dyn FileSystem,
    root: &Path,
    path: &[u8],
    stamp: &Stamp,
) -> Option<Digest> {
    let mut block = Vec::new();
    let time = Time::new(super::Limits::default(), file_system);
    match read_file(file_system, &on_disk(root, path), stamp, &mut block, &time).ok()? {
        Content::Read(digest, _) => Some(digest),
        Content::Gone | Content::Unreadable(_) => None,
    }
}

/// What the file system says of a file by now.
pub(crate) fn stamp_now(file_system: &dyn FileSystem, root: &Path, path: &[u8]) -> Option<Stamp> {
    let stat = file_system.stat(&on_disk(root, path), Links::Kept).ok()?;
    (stat.kind == FileKind::File).then_some(stat.stamp)
}

fn unreadable(kind: ErrorKind) -> Digest {
    Digest::hash_parts([b"unreadable".as_slice(), kind.to_string().as_bytes()])
}

/// What these hold, in their order, as far as there was time; and why no further.
fn read_all(
    file_system: &dyn FileSystem,
    root: &Path,
    files: &[Unread<'_>],
    time: &Time<'_>,
) -> (Vec<Option<Content>>, Option<TreeError>) {
    let threads = match files.len() {
        many if many >= WORTH_A_THREAD => file_system.threads(),
        _ => 1,
    };
    let share = files.len().div_ceil(threads.max(1)).max(1);
    let read_share = |share: &[Unread<'_>]| {
        let mut block = Vec::new();
        let mut contents = vec![None; share.len()];
        for ((_, path, what), content) in share.iter().zip(&mut contents) {
            if let Err(cut) = time.check() {
                return (contents, Some(cut));
            }
            let path = on_disk(root, path);
            let read = match what {
                What::File(stamp) => read_file(file_system, &path, stamp, &mut block, time),
                _ => read_link(file_system, &path).map_err(ReadError::Io),
            };
            *content = Some(match read {
                Ok(content) => content,
                Err(ReadError::Tree(cut)) => return (contents, Some(cut)),
                Err(ReadError::Io(err)) if err.kind() == ErrorKind::NotFound => Content::Gone,
                Err(ReadError::Io(err)) => Content::Unreadable(err.kind()),
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
type Unread<'f> = (usize, &'f [u8], &'f What);

fn read_link(file_system: &dyn FileSystem, path: &Path) -> std::io::Result<Content> {
    let target = file_system.read_link(path)?;
    let parts = [b"link".as_slice(), target.as_os_str().as_encoded_bytes()];
    Ok(Content::Read(Digest::hash_parts(parts), true))
}

enum ReadError {
    Io(std::io::Error),
    Tree(TreeError),
}

fn read_file(
    file_system: &dyn FileSystem,
    path: &Path,
    stamp: &Stamp,
    block: &mut Vec<u8>,
    time: &Time<'_>,
) -> Result<Content, ReadError> {
    // Another file may be there by now, and be a pipe or a link.
    let mut file = file_system
        .open_file(path, Links::Kept)
        .map_err(ReadError::Io)?;
    #[cfg(unix)]
    if file.stat().map_err(ReadError::Io)?.stamp.size > LARGEST_READ
        && let Some(settled) = settled_stamp(file_system, &*file, time)?
    {
        let digest = of_file(stamp, &settled.digest());
        return Ok(Content::Read(digest, settled == *stamp));
    }
    block.resize(BLOCK, 0);
    let mut hasher = blake3::Hasher::new();
    loop {
        match file.read(block) {
            Ok(0) => break,
            Ok(length) => hasher.update(block.get(..length).unwrap_or_default()),
            Err(err) if err.kind() == ErrorKind::Interrupted => continue,
            Err(err) => return Err(ReadError::Io(err)),
        };
        time.check().map_err(ReadError::Tree)?;
    }
    let still = file.stat().is_ok_and(|stat| stat.stamp == *stamp);
    let content = Digest::from_bytes(*hasher.finalize().as_bytes());
    Ok(Content::Read(of_file(stamp, &content), still))
}

/// What the file system says of a file once a further write would show in it. `None` if the clock
/// of the file system is ahead of ours: then only the content tells.
#[cfg(unix)]
fn settled_stamp(
    file_system: &dyn FileSystem,
    file: &dyn OpenFile,
    time: &Time<'_>,
) -> Result<Option<Stamp>, ReadError> {
    for _ in 0..LOOKS {
        let now = file_system.now();
        let stamp = file.stat().map_err(ReadError::Io)?.stamp;
        if !stamp.is_just_changed(now) {
            return Ok(Some(stamp));
        }
        time.check().map_err(ReadError::Tree)?;
        file_system.sleep(BETWEEN_LOOKS);
    }
    Ok(None)
}

fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    root.join(os_name(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_system::RealFileSystem;

    /// What is made of one file `a` whose cache entry says `cached`, read `later` seconds from now.
    fn one_file(cached: Option<&[u8]>, later: u64) -> (Contents, Digest) {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "real").unwrap();
        let stamp = Stamp::of(&std::fs::metadata(root.path().join("a")).unwrap());
        let mut cache = StatCache::default();
        if let Some(cached) = cached {
            cache.push(b"a", &stamp, &of_file(&stamp, &Digest::hash_bytes(cached)));
        }
        let mut found = FoundList::default();
        found.push([b"a", b""], What::File(stamp), false);
        let now = SystemTime::now() + std::time::Duration::from_secs(later);
        let contents = contents(
            &RealFileSystem,
            root.path(),
            found,
            &cache,
            now,
            &Time::new(crate::tree::Limits::default(), &RealFileSystem),
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
            let learnt = Learnt {
                files: Vec::new(),
                count,
                bytes,
            };
            let saved = learnt.is_worth_saving(remembered, found, is_cut);
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
