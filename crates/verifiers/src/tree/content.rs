//! From what the walk found to leaves: each file's content, out of the cache or read.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::Duration;
use std::time::SystemTime;

use checkrein_core::digest::Digest;

use super::stat_cache::{Stamp, StatCache};
use super::walk::{Found, What};
use super::{Time, TreeError};

/// Files to read from which on a second thread is worth its start.
const WORTH_A_THREAD: usize = 32;
const MAX_THREADS: usize = 4;
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
    /// Sorted by path.
    pub(crate) leaves: Vec<Leaf>,
    /// What to remember.
    pub(crate) cache: StatCache,
    /// Whether something was read that the cache did not know.
    pub(crate) fresh: bool,
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
        What::File(stamp) => stamp.size() > LARGEST_READ,
        #[cfg(not(unix))]
        What::File(_) => false,
        What::Link | What::EmptyFolder | What::Special | What::Unreadable(_) => false,
    }
}

pub(crate) fn contents(
    root: &Path,
    found: Vec<Found>,
    cache: &StatCache,
    now: SystemTime,
    time: &Time<'_>,
) -> Result<Contents, TreeError> {
    let known: Vec<Option<Digest>> = found
        .iter()
        .map(|entry| match &entry.what {
            What::File(stamp) => cache.find(&entry.path, stamp),
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
    let fresh = !unknown.is_empty();
    let mut read = read_all(root, &unknown, time)?.into_iter();

    let mut leaves = Vec::with_capacity(found.len());
    let mut next = StatCache::default();
    for (Found { path, what, named }, known) in found.into_iter().zip(known) {
        let is_file = !matches!(what, What::EmptyFolder);
        let stamp = match &what {
            What::File(stamp) => Some(*stamp),
            _ => None,
        };
        let digest = match what {
            What::File(stamp) => {
                let content = match known {
                    Some(digest) => Content::Read(digest, true),
                    None => read.next().unwrap_or(Content::Gone),
                };
                match content {
                    Content::Read(content, still) => {
                        if still && !stamp.racy(now) {
                            next.push(path.clone(), stamp, &content);
                        }
                        of_file(&stamp, &content)
                    }
                    Content::Gone => continue,
                    Content::Unreadable(kind) => unreadable(kind),
                }
            }
            What::Link => match std::fs::read_link(on_disk(root, &path)) {
                Ok(target) => {
                    Digest::of_parts([b"link".as_slice(), target.as_os_str().as_encoded_bytes()])
                }
                Err(err) if err.kind() == ErrorKind::NotFound => continue,
                Err(err) => unreadable(err.kind()),
            },
            What::EmptyFolder => Digest::of_parts([b"folder".as_slice()]),
            What::Special => Digest::of_parts([b"special".as_slice()]),
            What::Unreadable(kind) => unreadable(kind),
        };
        leaves.push(Leaf {
            path,
            digest,
            named,
            is_file,
            stamp,
        });
    }
    Ok(Contents {
        leaves,
        cache: next,
        fresh,
    })
}

fn of_file(stamp: &Stamp, content: &Digest) -> Digest {
    let executable = if stamp.executable() { b"x" } else { b"-" };
    Digest::of_parts([b"file".as_slice(), executable, content.as_bytes()])
}

/// What a file is by now, as leaves have it; `None` if there is none that can be read.
pub(crate) fn leaf_now(root: &Path, path: &[u8], stamp: &Stamp) -> Option<Digest> {
    let mut block = vec![0; BLOCK];
    let time = Time::new(super::Limits::default());
    match read_file(&on_disk(root, path), stamp, &mut block, &time).ok()? {
        Content::Read(content, _) => Some(of_file(stamp, &content)),
        Content::Gone | Content::Unreadable(_) => None,
    }
}

/// What the file system says of a file by now.
pub(crate) fn stamp_now(root: &Path, path: &[u8]) -> Option<Stamp> {
    let metadata = std::fs::symlink_metadata(on_disk(root, path)).ok()?;
    metadata.is_file().then(|| Stamp::of(&metadata))
}

fn unreadable(kind: ErrorKind) -> Digest {
    Digest::of_parts([b"unreadable".as_slice(), kind.to_string().as_bytes()])
}

/// The contents of these files, in their order.
fn read_all(
    root: &Path,
    files: &[(&Found, &Stamp)],
    time: &Time<'_>,
) -> Result<Vec<Content>, TreeError> {
    let threads = match std::thread::available_parallelism() {
        Ok(threads) if files.len() >= WORTH_A_THREAD => threads.get().min(MAX_THREADS),
        Ok(_) | Err(_) => 1,
    };
    let share = files.len().div_ceil(threads).max(1);
    let read_share = |share: &[(&Found, &Stamp)]| -> Result<Vec<Content>, TreeError> {
        let mut block = vec![0; BLOCK];
        share
            .iter()
            .map(|(entry, stamp)| {
                time.check()?;
                let path = on_disk(root, &entry.path);
                match read_file(&path, stamp, &mut block, time) {
                    Ok(content) => Ok(content),
                    Err(ReadError::Tree(err)) => Err(err),
                    Err(ReadError::Io(err)) if err.kind() == ErrorKind::NotFound => {
                        Ok(Content::Gone)
                    }
                    Err(ReadError::Io(err)) => Ok(Content::Unreadable(err.kind())),
                }
            })
            .collect()
    };
    if threads == 1 {
        return read_share(files);
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = files
            .chunks(share)
            .map(|share| (share, scope.spawn(move || read_share(share))))
            .collect();
        let mut all = Vec::with_capacity(files.len());
        for (share, thread) in running {
            // A thread that could not finish leaves its share to this one.
            all.extend(thread.join().unwrap_or_else(|_| read_share(share))?);
        }
        Ok(all)
    })
}

enum ReadError {
    Io(std::io::Error),
    Tree(TreeError),
}

fn read_file(
    path: &Path,
    stamp: &Stamp,
    block: &mut [u8],
    time: &Time<'_>,
) -> Result<Content, ReadError> {
    let mut file = open(path).map_err(ReadError::Io)?;
    // Another file may be there by now, and be a pipe.
    let metadata = file.metadata().map_err(ReadError::Io)?;
    if !metadata.is_file() {
        return Ok(Content::Unreadable(ErrorKind::InvalidInput));
    }
    #[cfg(unix)]
    if metadata.len() > LARGEST_READ
        && let Some(settled) = settled_stamp(&file, time)?
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
    let still = file
        .metadata()
        .is_ok_and(|metadata| Stamp::of(&metadata) == *stamp);
    Ok(Content::Read(
        Digest::from_bytes(*hasher.finalize().as_bytes()),
        still,
    ))
}

/// What the file system says of a file once a further write would show in it. `None` if the clock
/// of the file system is ahead of ours: then only the content tells.
#[cfg(unix)]
fn settled_stamp(file: &File, time: &Time<'_>) -> Result<Option<Stamp>, ReadError> {
    for _ in 0..LOOKS {
        let now = SystemTime::now();
        let stamp = Stamp::of(&file.metadata().map_err(ReadError::Io)?);
        if !stamp.is_just_changed(now) {
            return Ok(Some(stamp));
        }
        time.check().map_err(ReadError::Tree)?;
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(None)
}

#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    // Without waiting for the other end of what has become a pipe, and through no symlink.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    root.join(std::ffi::OsStr::from_bytes(path))
}

#[cfg(not(unix))]
fn on_disk(root: &Path, path: &[u8]) -> PathBuf {
    root.join(String::from_utf8_lossy(path).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of one file `a` whose cache entry says `cached`, read `later` seconds from now.
    fn one_file(cached: Option<&[u8]>, later: u64) -> (Contents, Digest) {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("a"), "real").unwrap();
        let stamp = Stamp::of(&std::fs::metadata(root.path().join("a")).unwrap());
        let mut cache = StatCache::default();
        if let Some(cached) = cached {
            cache.push(b"a".to_vec(), stamp, &Digest::of(cached));
        }
        let found = vec![Found {
            path: b"a".to_vec(),
            what: What::File(stamp),
            named: false,
        }];
        let now = SystemTime::now() + std::time::Duration::from_secs(later);
        let contents = contents(
            root.path(),
            found,
            &cache,
            now,
            &Time::new(crate::tree::Limits::default()),
        )
        .unwrap();
        let digest = contents.leaves[0].digest;
        (contents, digest)
    }

    #[test]
    fn what_is_known_is_not_read_and_what_is_young_is_not_remembered() {
        let leaf = |content: &[u8]| {
            Digest::of_parts([b"file".as_slice(), b"-", Digest::of(content).as_bytes()])
        };
        let (contents, digest) = one_file(None, 61);
        assert_eq!(
            (digest, contents.fresh, contents.cache.len()),
            (leaf(b"real"), true, 1)
        );
        let (contents, digest) = one_file(Some(b"remembered"), 61);
        assert_eq!(
            (digest, contents.fresh, contents.cache.len()),
            (leaf(b"remembered"), false, 1)
        );
        let (contents, digest) = one_file(None, 0);
        assert_eq!(
            (digest, contents.fresh, contents.cache.len()),
            (leaf(b"real"), true, 0)
        );
    }
}
