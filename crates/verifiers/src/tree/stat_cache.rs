//! What files held when they were last read, by what the file system says of them. Lost or
//! damaged it is empty: it saves time and decides nothing.

use std::fs::Metadata;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use checkrein_core::digest::Digest;

use crate::private_file::create_private_folder;
use crate::regular;

/// Part of the checksum: a cache of another layout is a damaged one.
const LAYOUT: &[u8] = b"checkrein stat cache 1";

/// How young a file must not be to be remembered. A write through a mapping to a page that is dirty
/// already leaves no trace in the file's times until the page is written back: on ext4 that took up
/// to 34 seconds. On tmpfs and some network file systems it never happens.
const SETTLED_NS: i64 = 60_000_000_000;
/// The clock of file times ticks every few milliseconds: a second write within one tick leaves no
/// trace in them.
const TICK_NS: i64 = 100_000_000;
/// The same on file systems that keep whole seconds.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// More of a cache is not read, and what is cut is a damaged one.
const LARGEST: u64 = 512 << 20;

/// What the file system says of a file. Content cannot change without the change time doing so,
/// which no program can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    size: u64,
    modified_ns: i64,
    changed_ns: i64,
    device: u64,
    inode: u64,
    mode: u32,
}

impl Stamp {
    #[cfg(unix)]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
        Self {
            size: metadata.size(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let modified_ns = metadata.modified().map_or(i64::MAX, nanoseconds);
        Self {
            size: metadata.len(),
            modified_ns,
            changed_ns: modified_ns,
            device: 0,
            inode: 0,
            mode: 0,
        }
    }

    #[cfg(unix)]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether any of the executable bits is set.
    pub(crate) fn executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Whether the file could have been written again since `now` without showing it.
    pub(crate) fn racy(&self, now: SystemTime) -> bool {
        let latest = self.modified_ns.max(self.changed_ns);
        latest.saturating_add(SETTLED_NS) >= nanoseconds(now)
    }

    /// The same by the change time alone, which each write sets to the time it is made.
    #[cfg(unix)]
    pub(crate) fn is_just_changed(&self, now: SystemTime) -> bool {
        is_within_a_tick(self.changed_ns, now)
    }

    /// Stands for the content of a file that is not read.
    #[cfg(unix)]
    pub(crate) fn digest(&self) -> Digest {
        let Self {
            size,
            modified_ns,
            changed_ns,
            device,
            inode,
            mode: _,
        } = self;
        Digest::of_parts([
            b"stamp".as_slice(),
            &size.to_le_bytes(),
            &modified_ns.to_le_bytes(),
            &changed_ns.to_le_bytes(),
            &device.to_le_bytes(),
            &inode.to_le_bytes(),
        ])
    }
}

fn is_within_a_tick(latest_ns: i64, now: SystemTime) -> bool {
    let tick = if latest_ns % 1_000_000_000 == 0 {
        COARSE_TICK_NS
    } else {
        TICK_NS
    };
    latest_ns.saturating_add(tick) >= nanoseconds(now)
}

fn nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Content digests by path, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StatCache {
    entries: Vec<(Vec<u8>, Stamp, [u8; 32])>,
}

impl StatCache {
    /// The cache in `file`; empty if there is none or it is damaged.
    pub(crate) fn load(file: &Path) -> Self {
        let read = || {
            let mut bytes = Vec::new();
            let opened = regular::open(file).ok()?;
            opened.take(LARGEST).read_to_end(&mut bytes).ok()?;
            let (sum, body) = bytes.split_first_chunk::<32>()?;
            if *sum != checksum(body) {
                return None;
            }
            postcard::from_bytes(body).ok()
        };
        read().unwrap_or_default()
    }

    /// Replaces the cache in `file`, whole or not at all.
    pub(crate) fn save(&self, file: &Path) -> std::io::Result<()> {
        let body = postcard::to_allocvec(self).map_err(std::io::Error::other)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        create_private_folder(folder)?;
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&checksum(&body))?;
        temporary.write_all(&body)?;
        temporary.persist(file)?;
        Ok(())
    }

    /// The content digest of a file that still is what it was.
    pub(crate) fn find(&self, path: &[u8], stamp: &Stamp) -> Option<Digest> {
        let at = self
            .entries
            .binary_search_by(|(known, _, _)| (**known).cmp(path))
            .ok()?;
        let (_, known, content) = self.entries.get(at)?;
        (known == stamp).then_some(Digest::from_bytes(*content))
    }

    /// Adds an entry; they must come sorted by path.
    pub(crate) fn push(&mut self, path: Vec<u8>, stamp: Stamp, content: &Digest) {
        self.entries.push((path, stamp, *content.as_bytes()));
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn checksum(body: &[u8]) -> [u8; 32] {
    *Digest::of_parts([LAYOUT, body]).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(changed_ns: i64) -> Stamp {
        Stamp {
            size: 1,
            modified_ns: 5,
            changed_ns,
            device: 1,
            inode: 2,
            mode: 0o644,
        }
    }

    #[test]
    fn saved_and_loaded_and_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/cache");
        assert_eq!(StatCache::load(&file), StatCache::default());
        let mut cache = StatCache::default();
        cache.push(b"a".to_vec(), stamp(7), &Digest::of(b"x"));
        cache.push(b"b\xff".to_vec(), stamp(8), &Digest::of(b"y"));
        cache.save(&file).unwrap();
        assert_eq!(StatCache::load(&file), cache);
        assert_eq!(cache.find(b"b\xff", &stamp(8)), Some(Digest::of(b"y")));
        assert_eq!(cache.find(b"b\xff", &stamp(9)), None);
        assert_eq!(cache.find(b"c", &stamp(8)), None);

        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, &damaged).unwrap();
            assert_eq!(StatCache::load(&file), StatCache::default(), "byte {at}");
        }
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(StatCache::load(&file), StatCache::default());
    }

    #[test]
    fn what_is_young_is_racy() {
        let at = |ns: u64| UNIX_EPOCH + std::time::Duration::from_nanos(ns);
        let check = |changed_ns: i64, now: u64, expected: bool| {
            assert_eq!(
                stamp(changed_ns).racy(at(now)),
                expected,
                "{changed_ns} {now}"
            );
        };
        check(1_000_000_001, 1_050_000_000, true);
        check(1_000_000_001, 60_900_000_000, true);
        check(1_000_000_001, 61_200_000_000, false);
        // A clock that is behind the file system's.
        check(9_000_000_001, 1_000_000_000, true);
    }
}
