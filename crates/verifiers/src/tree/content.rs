//! From what the walk found to leaves: each file's content, out of the cache or read.

use std::io::{ErrorKind, Read as _};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use checkrein_core::digest::Digest;

use super::stat_cache::StatCache;
use super::walk::{Found, What, os_name};
use super::{Time, TreeError};
use crate::file_system::{FileKind, FileSystem, Links, OpenFile, Stamp};

/// Files to read from which on a second thread is worth its start.
const WORTH_A_THREAD: usize = 32;
/// The same for what is in files that are known.
const WORTH_LEAVES: usize = 10_000;
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

/// A path and the digest of all that counts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) path: Vec<u8>,
    pub(crate) digest: Digest,
    /// See [`Found::named`].
    pub(crate) named: bool,
    /// Not an empty folder.
    pub(crate) is_file: bool,
    /// Of a file, what the file system says of it.
    pub(crate) stamp: Option<Stamp>,
}

pub(crate) struct Contents {
    /// Sorted by path; an error if there was no time to read them all.
    pub(crate) leaves: Result<Vec<Leaf>, TreeError>,
    /// What to remember, if that is not what was remembered.
    pub(crate) cache: Option<StatCache>,
}

/// What came of reading a file.
#[derive(Clone, Copy)]
enum Content {
    /// Digest, and whether the file held still.
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
    found: Vec<Found>,
    cache: &StatCache,
    now: SystemTime,
    time: &Time<'_>,
) -> Contents {
    let mut remembered = cache.entries();
    let known: Vec<Option<Digest>> = found
        .iter()
        .map(|entry| match &entry.what {
            What::File(stamp) => remembered.find(&entry.path, stamp),
            What::Link | What::EmptyFolder | What::Special | What::Unreadable(_) => None,
        })
        .collect();
    let unknown: Vec<(&Found, &Stamp)> = found
        .iter()
        .zip(&known)
        .filter_map(|(entry, known)| match (&entry.what, known) {
            (What::File(stamp), None) => Some((entry, stamp)),
            _ => None,
        })
        .collect();
    let (read, cut) = read_all(file_system, root, &unknown, time);
    let learnt = unknown.iter().zip(&read);
    let learnt = learnt.filter(|((_, stamp), content)| {
        content.is_some_and(|content| content.is_settled(stamp, now))
    });
    let is_new = learnt.count() > 0 || known.iter().flatten().count() != cache.len();

    let mut read = read.into_iter();
    let contents: Vec<Option<Content>> = found
        .iter()
        .zip(known)
        .map(|(entry, known)| match (&entry.what, known) {
            (What::File(_), Some(digest)) => Some(Content::Read(digest, true)),
            (What::File(_), None) => read.next().flatten(),
            _ => None,
        })
        .collect();
    let next = is_new.then(|| {
        let mut next = StatCache::default();
        for (entry, content) in found.iter().zip(&contents) {
            if let (What::File(stamp), Some(content @ Content::Read(digest, _))) =
                (&entry.what, content)
                && content.is_settled(stamp, now)
            {
                next.push(&entry.path, stamp, digest);
            }
        }
        next
    });
    let mut pairs: Vec<(Found, Option<Content>)> = found.into_iter().zip(contents).collect();
    Contents {
        leaves: match cut {
            None => Ok(leaves(file_system, root, &mut pairs)),
            Some(error) => Err(error),
        },
        cache: next,
    }
}

/// What these come to, in their order, less what is gone.
fn leaves(
    file_system: &dyn FileSystem,
    root: &Path,
    pairs: &mut [(Found, Option<Content>)],
) -> Vec<Leaf> {
    let share = match pairs.len() {
        many if many >= WORTH_LEAVES => many.div_ceil(file_system.threads().max(1)),
        few => few.max(1),
    };
    let of = |share: &mut [(Found, Option<Content>)]| -> Vec<Leaf> {
        let leaves = share
            .iter_mut()
            .map(|(found, content)| leaf(file_system, root, found, *content));
        leaves.flatten().collect()
    };
    let mut shares = pairs.chunks_mut(share);
    let first = shares.next().unwrap_or_default();
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || of(share))).collect();
        let mut all = of(first);
        for other in others {
            all.append(&mut other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        all
    })
}

fn leaf(
    file_system: &dyn FileSystem,
    root: &Path,
    found: &mut Found,
    content: Option<Content>,
) -> Option<Leaf> {
    let (digest, stamp) = match (&found.what, content) {
        (What::File(stamp), Some(Content::Read(digest, _))) => {
            (of_file(stamp, &digest), Some(*stamp))
        }
        (What::File(_), Some(Content::Gone) | None) => return None,
        (What::File(stamp), Some(Content::Unreadable(kind))) => (unreadable(kind), Some(*stamp)),
        (What::Link, _) => {
            let digest = match file_system.read_link(&on_disk(root, &found.path)) {
                Ok(target) => {
                    Digest::of_parts([b"link".as_slice(), target.as_os_str().as_encoded_bytes()])
                }
                Err(err) if err.kind() == ErrorKind::NotFound => return None,
                Err(err) => unreadable(err.kind()),
            };
            (digest, None)
        }
        (What::EmptyFolder, _) => (Digest::of_parts([b"folder".as_slice()]), None),
        (What::Special, _) => (Digest::of_parts([b"special".as_slice()]), None),
        (What::Unreadable(kind), _) => (unreadable(*kind), None),
    };
    Some(Leaf {
        path: std::mem::take(&mut found.path),
        digest,
        named: found.named,
        is_file: !matches!(found.what, What::EmptyFolder),
        stamp,
    })
}

impl Content {
    /// Whether it is what the file with this stamp holds, now and as long as the stamp stays.
    fn is_settled(&self, stamp: &Stamp, now: SystemTime) -> bool {
        matches!(self, Self::Read(_, true)) && !stamp.racy(now)
    }
}

fn of_file(stamp: &Stamp, content: &Digest) -> Digest {
    let executable = if stamp.executable() { b"x" } else { b"-" };
    Digest::of_parts([b"file".as_slice(), executable, content.as_bytes()])
}

/// What a file is by now, as leaves have it; `None` if there is none that can be read.
pub(crate) fn leaf_now(
    file_system: &dyn FileSystem,
    root: &Path,
    path: &[u8],
    stamp: &Stamp,
) -> Option<Digest> {
    let mut block = vec![0; BLOCK];
    let time = Time::new(super::Limits::default(), file_system);
    match read_file(file_system, &on_disk(root, path), stamp, &mut block, &time).ok()? {
        Content::Read(content, _) => Some(of_file(stamp, &content)),
        Content::Gone | Content::Unreadable(_) => None,
    }
}

/// What the file system says of a file by now.
pub(crate) fn stamp_now(file_system: &dyn FileSystem, root: &Path, path: &[u8]) -> Option<Stamp> {
    let stat = file_system.stat(&on_disk(root, path), Links::Kept).ok()?;
    (stat.kind == FileKind::File).then_some(stat.stamp)
}

fn unreadable(kind: ErrorKind) -> Digest {
    Digest::of_parts([b"unreadable".as_slice(), kind.to_string().as_bytes()])
}

/// The contents of these files, in their order, as far as there was time; and why no further.
fn read_all(
    file_system: &dyn FileSystem,
    root: &Path,
    files: &[(&Found, &Stamp)],
    time: &Time<'_>,
) -> (Vec<Option<Content>>, Option<TreeError>) {
    let threads = match files.len() {
        many if many >= WORTH_A_THREAD => file_system.threads(),
        _ => 1,
    };
    let share = files.len().div_ceil(threads.max(1)).max(1);
    let read_share = |share: &[(&Found, &Stamp)]| {
        let mut block = vec![0; BLOCK];
        let mut contents = vec![None; share.len()];
        for ((entry, stamp), content) in share.iter().zip(&mut contents) {
            if let Err(cut) = time.check() {
                return (contents, Some(cut));
            }
            let path = on_disk(root, &entry.path);
            *content = Some(
                match read_file(file_system, &path, stamp, &mut block, time) {
                    Ok(content) => content,
                    Err(ReadError::Tree(cut)) => return (contents, Some(cut)),
                    Err(ReadError::Io(err)) if err.kind() == ErrorKind::NotFound => Content::Gone,
                    Err(ReadError::Io(err)) => Content::Unreadable(err.kind()),
                },
            );
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

enum ReadError {
    Io(std::io::Error),
    Tree(TreeError),
}

fn read_file(
    file_system: &dyn FileSystem,
    path: &Path,
    stamp: &Stamp,
    block: &mut [u8],
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
        return Ok(Content::Read(settled.digest(), settled == *stamp));
    }
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
    Ok(Content::Read(
        Digest::from_bytes(*hasher.finalize().as_bytes()),
        still,
    ))
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
            cache.push(b"a", &stamp, &Digest::of(cached));
        }
        let found = vec![Found {
            path: b"a".to_vec(),
            what: What::File(stamp),
            named: false,
        }];
        let now = SystemTime::now() + std::time::Duration::from_secs(later);
        let contents = contents(
            &RealFileSystem,
            root.path(),
            found,
            &cache,
            now,
            &Time::new(crate::tree::Limits::default(), &RealFileSystem),
        );
        let digest = contents.leaves.as_ref().unwrap()[0].digest;
        (contents, digest)
    }

    #[test]
    fn what_is_known_is_not_read_and_what_is_young_is_not_remembered() {
        let leaf = |content: &[u8]| {
            Digest::of_parts([b"file".as_slice(), b"-", Digest::of(content).as_bytes()])
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
        let (contents, digest) = one_file(None, 0);
        assert_eq!(
            (digest, contents.cache.map(|cache| cache.len())),
            (leaf(b"real"), None)
        );
    }
}
