//! Parses git's index, versions 2 to 4 (`gitformat-index`): the names in it and what they stand
//! for. The bytes are untrusted: every length is checked.

use std::time::Instant;

use super::GitReadError;
use super::bitmap::read_ewah_bitmap;

/// Number of entries between two looks at the clock.
const NAMES_BETWEEN_LOOKS: usize = 4096;
/// The mode of a folder of a sparse index.
const MODE_FOLDER: u32 = 0o040_000;

/// The mode of a submodule.
const MODE_SUBMODULE: u32 = 0o160_000;

/// The content of an index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct GitIndex {
    /// The entries in the order of the file.
    pub entries: Vec<GitIndexEntry>,
    /// The link to the shared index, if the index is split.
    pub shared: Option<SplitIndexLink>,
}

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitIndexEntry {
    /// Path relative to the worktree. Empty in a split index if the entry replaces one of the
    /// shared index.
    pub name: Vec<u8>,
    /// What is tracked under this name.
    pub kind: GitIndexEntryKind,
}

/// What an entry of an index stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitIndexEntryKind {
    /// A file or a symlink.
    File,
    /// A folder of a sparse index, which stands for everything in it.
    Folder,
    /// A folder with a repository of its own.
    Submodule,
}

/// The link of a split index to the shared one.
#[derive(Debug, PartialEq, Eq)]
pub struct SplitIndexLink {
    /// The digest in the shared index's file name.
    pub(super) digest: Vec<u8>,
    /// The encoded bitmaps. They can be decoded only once the number of shared entries is known.
    bitmaps: Vec<u8>,
}

impl SplitIndexLink {
    /// Applies a split index to the entries of the shared one: some are deleted, and some replaced.
    /// A replaced entry keeps the name from the shared index and takes everything else from the
    /// split one.
    ///
    /// # Errors
    /// If the bitmaps are damaged.
    pub fn merge_split_git_index_entries(
        &self,
        base: Vec<GitIndexEntry>,
        own: Vec<GitIndexEntry>,
    ) -> Result<Vec<GitIndexEntry>, GitReadError> {
        const DAMAGED: GitReadError = GitReadError::Index("the bitmaps of its `link` are damaged");
        let (deleted, replaced) = self.read_split_index_bitmaps(base.len()).ok_or(DAMAGED)?;
        // Entries without a name stand for the set bits of the replace bitmap, in order; named ones
        // are new.
        let (replacing, mut entries): (Vec<_>, Vec<_>) =
            own.into_iter().partition(|entry| entry.name.is_empty());
        let mut replacing = replacing.into_iter();
        for ((mut entry, deleted), replaced) in base.into_iter().zip(deleted).zip(replaced) {
            if replaced {
                entry.kind = replacing.next().ok_or(DAMAGED)?.kind;
            }
            if !deleted {
                entries.push(entry);
            }
        }
        // Both lists must end together, or entries were matched with the wrong names.
        match replacing.next() {
            None => Ok(entries),
            Some(_) => Err(DAMAGED),
        }
    }

    /// Decodes which of so many entries are deleted, and which are replaced.
    fn read_split_index_bitmaps(&self, entries: usize) -> Option<(Vec<bool>, Vec<bool>)> {
        if self.bitmaps.is_empty() {
            return Some((vec![false; entries], vec![false; entries]));
        }
        let mut bytes = ByteReader::new(&self.bitmaps);
        let deleted = read_ewah_bitmap(&mut bytes, entries)?;
        let replaced = read_ewah_bitmap(&mut bytes, entries)?;
        bytes.has_no_bytes_left().then_some((deleted, replaced))
    }
}

/// Reads the names of an index whose objects have names of `object_name_len` bytes.
///
/// # Errors
/// If the bytes are no index, need something that this version does not know, hold names of
/// more than `largest` bytes together, or are not read by `until`.
pub fn parse_git_index(
    bytes: &[u8],
    object_name_len: usize,
    largest: usize,
    until: Instant,
) -> Result<GitIndex, GitReadError> {
    // The file ends with a digest of everything before it. It is not checked here: git itself skips
    // it when it reads.
    let damaged = |what| GitReadError::Index(what);
    let end = bytes.len().checked_sub(object_name_len);
    let (content, _digest) = end
        .and_then(|end| bytes.split_at_checked(end))
        .ok_or(damaged("it is cut off"))?;
    let mut bytes = ByteReader::new(content);
    if bytes.take_bytes(4) != Some(b"DIRC") {
        return Err(damaged("it does not begin like one"));
    }
    let version = bytes.read_u32().ok_or(damaged("it is cut off"))?;
    if !(2..=4).contains(&version) {
        return Err(damaged("its version is unknown"));
    }
    let count = bytes.read_u32().ok_or(damaged("it is cut off"))?;
    let mut entries: Vec<GitIndexEntry> = Vec::new();
    let mut total = 0;
    for at in 0..count as usize {
        // The count comes from the file, so nothing is allocated for it in advance.
        if at % NAMES_BETWEEN_LOOKS == 0 && Instant::now() >= until {
            return Err(GitReadError::TooSlow);
        }
        let before = entries.last().map_or(&[][..], |entry| &entry.name);
        let entry = read_index_entry(&mut bytes, version, object_name_len, before);
        let entry = entry.ok_or(damaged("an entry is damaged"))?;
        // In version 4 a few bytes can repeat a long name, so the sum is bounded and not only the
        // file.
        total += entry.name.len();
        if total > largest {
            return Err(damaged("its names are too long"));
        }
        entries.push(entry);
    }
    let shared = read_index_extensions(&mut bytes, object_name_len)?;
    // Only the extensions, which come last, tell whether an entry without a name is allowed.
    for entry in &mut entries {
        if shared.is_none() && entry.name.is_empty() {
            return Err(damaged("an entry has no name"));
        }
        if entry.kind == GitIndexEntryKind::Folder && entry.name.ends_with(b"/") {
            entry.name.pop();
        }
    }
    Ok(GitIndex { entries, shared })
}

/// Reads one entry. `before` is the name of the previous one, which version 4 builds on.
fn read_index_entry(
    bytes: &mut ByteReader<'_>,
    version: u32,
    object_name_len: usize,
    before: &[u8],
) -> Option<GitIndexEntry> {
    let started = bytes.unread_byte_count();
    // Two times, device and inode.
    bytes.take_bytes(24)?;
    let mode = bytes.read_u32()?;
    // Owner, group, size.
    bytes.take_bytes(12)?;
    bytes.take_bytes(object_name_len)?;
    let flags = bytes.read_u16()?;
    // The extended flag adds two bytes of flags; version 2 has none.
    if flags & 0x4000 != 0 {
        if version < 3 {
            return None;
        }
        bytes.read_u16()?;
    }
    let name = match version {
        // A number of bytes to drop from the previous name, then the rest of the new one.
        4 => {
            let kept = before.len().checked_sub(bytes.read_varint()?)?;
            let end = bytes.take_until_nul()?;
            [before.get(..kept)?, end].concat()
        }
        _ => {
            let name = bytes.take_until_nul()?.to_vec();
            // Entries end at multiples of eight bytes, with one NUL at least.
            let len = started - bytes.unread_byte_count();
            bytes.take_bytes(len.next_multiple_of(8) - len)?;
            name
        }
    };
    let kind = match mode {
        MODE_FOLDER => GitIndexEntryKind::Folder,
        MODE_SUBMODULE => GitIndexEntryKind::Submodule,
        _ => GitIndexEntryKind::File,
    };
    // Only a folder's name may end with `/`; another one would be taken for a folder.
    (kind == GitIndexEntryKind::Folder || !name.ends_with(b"/"))
        .then_some(GitIndexEntry { name, kind })
}

/// Reads the extensions that follow the entries. One whose first letter is small must be understood
/// to read the index.
fn read_index_extensions(
    bytes: &mut ByteReader<'_>,
    object_name_len: usize,
) -> Result<Option<SplitIndexLink>, GitReadError> {
    const DAMAGED: GitReadError = GitReadError::Index("an extension is damaged");
    let mut shared = None;
    while !bytes.has_no_bytes_left() {
        let kind = bytes.take_bytes(4).ok_or(DAMAGED)?;
        let len = bytes.read_u32().ok_or(DAMAGED)?;
        let data = bytes.take_bytes(len as usize).ok_or(DAMAGED)?;
        match kind {
            b"link" => {
                let (digest, bitmaps) = data.split_at_checked(object_name_len).ok_or(DAMAGED)?;
                shared = Some(SplitIndexLink {
                    digest: digest.to_vec(),
                    bitmaps: bitmaps.to_vec(),
                });
            }
            // Says only that there may be folders among the entries.
            b"sdir" => {}
            // Optional ones: caches of git, such as `TREE` and `UNTR`.
            [b'A'..=b'Z', ..] => {}
            _ => return Err(GitReadError::Index("it needs an unknown extension")),
        }
    }
    Ok(shared)
}

/// Reads bytes from the front.
#[derive(Debug)]
pub(super) struct ByteReader<'b> {
    rest: &'b [u8],
}

impl<'b> ByteReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    fn unread_byte_count(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn has_no_bytes_left(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take_bytes(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    pub(super) fn read_u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take_bytes(4)?.try_into().ok()?))
    }

    fn read_u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take_bytes(2)?.try_into().ok()?))
    }

    fn read_u8(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Returns the bytes before the next NUL and consumes the NUL.
    fn take_until_nul(&mut self) -> Option<&'b [u8]> {
        let len = memchr::memchr(0, self.rest)?;
        let taken = self.take_bytes(len)?;
        self.read_u8()?;
        Some(taken)
    }

    /// Reads a number of seven bits per byte, most significant first. Each further byte adds one,
    /// so that no number has two encodings.
    fn read_varint(&mut self) -> Option<usize> {
        let mut byte = self.read_u8()?;
        let mut number = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.read_u8()?;
            number = number
                .checked_add(1)?
                .checked_mul(128)?
                .checked_add(usize::from(byte & 0x7f))?;
        }
        Some(number)
    }
}
