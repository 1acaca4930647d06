//! Remembers the digest of each file together with its stamp, what the file system says of it. A
//! lost or damaged cache counts as empty: it saves time and decides nothing.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use checkrein_core::digest::Digest;

use crate::file_system::FileStamp;
use crate::private_file::create_private_folder;
use crate::regular_file;

/// Part of the checksum: a cache of another layout is a damaged one.
const LAYOUT: &[u8] = b"checkrein stat cache 3";

/// Age in nanoseconds below which a file is not cached. A write through a memory mapping to a page
/// that is already dirty leaves no trace in the file's times until the page is written back: on
/// ext4 that took up to 34 seconds. On tmpfs and some network file systems it never happens.
const SETTLED_NS: i64 = 60_000_000_000;
/// Granularity of file times: a second write within one tick leaves no trace in them. The clock
/// ticks every few milliseconds.
const TICK_NS: i64 = 100_000_000;
/// The same on file systems that keep whole seconds.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// Bytes of a cache that are read. A longer one is cut and therefore counts as damaged.
const LARGEST: u64 = 512 << 20;

/// Bytes before the records: the checksum and the number of records.
const HEADER_BYTES: usize = 32 + 8;
/// Bytes of an encoded stamp.
const STAMP_BYTES: usize = 5 * 8 + 4;

impl FileStamp {
    fn stamp_to_bytes(self) -> [u8; STAMP_BYTES] {
        let mut bytes = [0; STAMP_BYTES];
        let numbers = [
            self.size,
            self.modified_ns.cast_unsigned(),
            self.changed_ns.cast_unsigned(),
            self.device,
            self.inode,
        ];
        let parts = numbers.map(u64::to_le_bytes);
        let mode = self.mode.to_le_bytes();
        let parts = parts.as_flattened().iter().chain(&mode);
        for (to, from) in bytes.iter_mut().zip(parts) {
            *to = *from;
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; STAMP_BYTES]) -> Self {
        let number = |nth: usize| {
            let part = bytes.get(nth * 8..).and_then(<[u8]>::first_chunk::<8>);
            part.map_or(0, |part| u64::from_le_bytes(*part))
        };
        Self {
            size: number(0),
            modified_ns: number(1).cast_signed(),
            changed_ns: number(2).cast_signed(),
            device: number(3),
            inode: number(4),
            mode: bytes
                .last_chunk::<4>()
                .map_or(0, |mode| u32::from_le_bytes(*mode)),
        }
    }

    /// Whether any of the executable bits is set.
    pub(crate) fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Returns whether the file could have been written again since `now` without a change of its
    /// stamp.
    pub(crate) fn stamp_may_hide_later_write(&self, now: SystemTime) -> bool {
        // The later of both times: a program can set the modification time to any past value, but
        // not the change time.
        let latest = self.modified_ns.max(self.changed_ns);
        latest.saturating_add(SETTLED_NS) >= to_unix_nanoseconds(now)
    }

    /// Returns the same by the change time alone, which the kernel sets at each write.
    #[cfg(unix)]
    pub(crate) fn is_just_changed(&self, now: SystemTime) -> bool {
        is_within_clock_tick(self.changed_ns, now)
    }

    /// Returns a digest that stands for the content of a file too large to read.
    #[cfg(unix)]
    pub(crate) fn stamp_digest(&self) -> Digest {
        // The mode is left out: the caller hashes the executable bit itself.
        let Self {
            size,
            modified_ns,
            changed_ns,
            device,
            inode,
            mode: _,
        } = self;
        Digest::hash_parts([
            b"stamp".as_slice(),
            &size.to_le_bytes(),
            &modified_ns.to_le_bytes(),
            &changed_ns.to_le_bytes(),
            &device.to_le_bytes(),
            &inode.to_le_bytes(),
        ])
    }
}

/// Returns whether the file may be written now without its stamp changing.
pub(super) fn can_file_change_unseen(stamp: &FileStamp, now: SystemTime) -> bool {
    is_within_clock_tick(stamp.changed_ns, now)
}

fn is_within_clock_tick(latest_ns: i64, now: SystemTime) -> bool {
    // A time without a fraction of a second suggests a file system that keeps whole seconds. A
    // false guess costs time, not correctness.
    let tick = if latest_ns % 1_000_000_000 == 0 {
        COARSE_TICK_NS
    } else {
        TICK_NS
    };
    latest_ns.saturating_add(tick) >= to_unix_nanoseconds(now)
}

fn to_unix_nanoseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Digests of files, sorted by path, in the encoding of the cache file. Lookups go along the
/// records without decoding them all.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatCache {
    /// The whole cache file, or empty: checksum, number of records, records.
    bytes: Vec<u8>,
    count: usize,
}

/// A cursor over the records.
pub(crate) struct StatCacheCursor<'c> {
    rest: &'c [u8],
    next: Option<StatCacheEntry<'c>>,
}

struct StatCacheEntry<'c> {
    path: &'c [u8],
    stamp: FileStamp,
    digest: [u8; 32],
}

impl StatCache {
    /// Loads the cache from `file`; empty if there is none or it is damaged.
    pub(crate) fn load_stat_cache(file: &Path) -> Self {
        let read = || {
            let opened = regular_file::open_regular_file(file).ok()?;
            let length = opened.metadata().ok()?.len().min(LARGEST);
            let mut bytes = Vec::with_capacity(usize::try_from(length).ok()?);
            opened.take(LARGEST).read_to_end(&mut bytes).ok()?;
            let (sum, body) = bytes.split_first_chunk::<32>()?;
            // The records are decoded without further checks, so a flipped bit must be found here.
            // The layout is part of the checksum: a cache of another version fails it too.
            if *sum != stat_cache_checksum(body) {
                return None;
            }
            let (count, _) = body.split_first_chunk::<8>()?;
            let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
            Some(Self { bytes, count })
        };
        read().unwrap_or_default()
    }

    /// Replaces the cache in `file` atomically.
    pub(crate) fn save_stat_cache(&self, file: &Path) -> std::io::Result<()> {
        let (body, records) = (
            (self.count as u64).to_le_bytes(),
            self.serialized_cached_stats(),
        );
        let mut hasher = stat_cache_checksum_hasher(body.len() + records.len());
        hasher.update(&body).update(records);
        let folder = file.parent().unwrap_or(Path::new("."));
        create_private_folder(folder)?;
        // In the same folder, since a rename does not cross file systems. It is not synced: after a
        // crash the checksum finds a torn file.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(hasher.finalize().as_bytes())?;
        temporary.write_all(&body)?;
        temporary.write_all(records)?;
        temporary.persist(file)?;
        Ok(())
    }

    /// Returns a cursor that stands at the first entry.
    pub(crate) fn new_cursor_at_first_entry(&self) -> StatCacheCursor<'_> {
        let mut entries = StatCacheCursor {
            rest: self.serialized_cached_stats(),
            next: None,
        };
        entries.advance_to_next_cached_stat();
        entries
    }

    /// Appends an entry. Entries must be added in path order.
    pub(crate) fn push_cached_file_stat(
        &mut self,
        path: &[u8],
        stamp: &FileStamp,
        digest: &Digest,
    ) {
        // No path of a file system is longer.
        let Ok(length) = u32::try_from(path.len()) else {
            return;
        };
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER_BYTES, 0);
        }
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(path);
        self.bytes.extend_from_slice(&stamp.stamp_to_bytes());
        self.bytes.extend_from_slice(digest.as_bytes());
        self.count += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn serialized_cached_stats(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

impl StatCacheCursor<'_> {
    /// Returns the digest of a file whose stamp is unchanged. Files must be asked for in path
    /// order.
    pub(crate) fn find_cached_digest(&mut self, path: &[u8], stamp: &FileStamp) -> Option<Digest> {
        while self.next.as_ref().is_some_and(|entry| entry.path < path) {
            self.advance_to_next_cached_stat();
        }
        let known = self.next.as_ref().filter(|entry| entry.path == path)?;
        (known.stamp == *stamp).then_some(Digest::from_bytes(known.digest))
    }

    fn advance_to_next_cached_stat(&mut self) {
        self.next = StatCacheEntry::parse_stat_cache_entry(&mut self.rest);
    }
}

impl<'c> StatCacheEntry<'c> {
    /// Decodes the first record and advances past it; `None` at the end.
    fn parse_stat_cache_entry(rest: &mut &'c [u8]) -> Option<Self> {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (path, after) = after.split_at_checked(length)?;
        let (stamp, after) = after.split_first_chunk::<STAMP_BYTES>()?;
        let (digest, after) = after.split_first_chunk::<32>()?;
        *rest = after;
        Some(Self {
            path,
            stamp: FileStamp::from_bytes(stamp),
            digest: *digest,
        })
    }
}

fn stat_cache_checksum(body: &[u8]) -> [u8; 32] {
    let mut hasher = stat_cache_checksum_hasher(body.len());
    *hasher.update(body).finalize().as_bytes()
}

/// Returns a hasher primed for a body of this length.
fn stat_cache_checksum_hasher(length: usize) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(LAYOUT).update(&(length as u64).to_le_bytes());
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(changed_ns: i64) -> FileStamp {
        FileStamp {
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
        let loaded = || {
            StatCache::load_stat_cache(&file)
                .serialized_cached_stats()
                .to_vec()
        };
        assert!(loaded().is_empty());
        let mut cache = StatCache::default();
        cache.push_cached_file_stat(b"a", &stamp(7), &Digest::hash_bytes(b"x"));
        cache.push_cached_file_stat(b"b\xff", &stamp(8), &Digest::hash_bytes(b"y"));
        cache.save_stat_cache(&file).unwrap();
        assert_eq!(loaded(), cache.serialized_cached_stats());
        assert_eq!(StatCache::load_stat_cache(&file).len(), 2);
        let found = |path: &[u8], at| {
            cache
                .new_cursor_at_first_entry()
                .find_cached_digest(path, &stamp(at))
        };
        assert_eq!(found(b"a", 7), Some(Digest::hash_bytes(b"x")));
        assert_eq!(found(b"b\xff", 8), Some(Digest::hash_bytes(b"y")));
        assert_eq!(found(b"b\xff", 9), None);
        assert_eq!(found(b"aa", 8), None);
        assert_eq!(found(b"c", 8), None);

        let whole = std::fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            std::fs::write(&file, &damaged).unwrap();
            assert!(loaded().is_empty(), "byte {at}");
        }
        std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
        assert!(loaded().is_empty());
    }

    #[test]
    fn what_is_young_is_racy() {
        let at = |ns: u64| UNIX_EPOCH + std::time::Duration::from_nanos(ns);
        let check = |changed_ns: i64, now: u64, expected: bool| {
            assert_eq!(
                stamp(changed_ns).stamp_may_hide_later_write(at(now)),
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
