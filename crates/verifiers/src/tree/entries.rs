//! The list of tree entries, in path order. All paths of a tree share one buffer: one allocation
//! for each would take longer than looking at the files.

use std::io::ErrorKind;
use std::ops::Range;

use crate::file_system::{FileKind, FileStamp, FileStat};

/// An entry of the tree. Its path is stored in the [`TreeEntryList`] that holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedTreeEntry {
    start: usize,
    end: usize,
    pub(crate) kind: FilesystemEntryKind,
    /// It is ignored, and counts only because `inputs` name it.
    pub(crate) named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilesystemEntryKind {
    /// A regular file.
    File(FileStamp),
    /// A symlink; never followed.
    Link,
    /// An empty folder, which counts by its name.
    EmptyFolder,
    /// A pipe, socket or device; never opened.
    Special,
    /// It exists, but looking at it failed with this error.
    Unreadable(ErrorKind),
}

impl FilesystemEntryKind {
    pub(crate) fn entry_kind_from_stat(stat: &FileStat) -> Self {
        match stat.kind {
            FileKind::File => Self::File(stat.stamp),
            FileKind::Link => Self::Link,
            // A folder can appear here only if it replaced a file after the parent was listed.
            FileKind::Folder | FileKind::Special => Self::Special,
        }
    }
}

/// Entries with their paths: relative to the root, `/`-separated, any bytes that a name may have.
#[derive(Debug, Default)]
pub(crate) struct TreeEntryList {
    paths: Vec<u8>,
    entries: Vec<ListedTreeEntry>,
}

impl TreeEntryList {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn tree_entry_path(&self, entry: &ListedTreeEntry) -> &[u8] {
        path_of_file_tree_entry(&self.paths, entry)
    }

    /// The path of the entry at this place; the empty one if there is none.
    pub(crate) fn entry_path_at(&self, at: usize) -> &[u8] {
        let entry = self.entries.get(at);
        entry.map_or(&[], |entry| self.tree_entry_path(entry))
    }

    /// Iterates over the entries with their paths.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &ListedTreeEntry)> {
        self.entries
            .iter()
            .map(|entry| (self.tree_entry_path(entry), entry))
    }

    /// Returns the index of the first entry whose path is not less than `path`. The list must be
    /// sorted.
    pub(crate) fn lower_bound_index(&self, path: &[u8]) -> usize {
        self.entries
            .partition_point(|entry| self.tree_entry_path(entry) < path)
    }

    /// Appends an entry. Its path is the concatenation of the two parts.
    pub(crate) fn push_tree_entry(
        &mut self,
        path: [&[u8]; 2],
        what: FilesystemEntryKind,
        named: bool,
    ) {
        let start = self.paths.len();
        for part in path {
            self.paths.extend_from_slice(part);
        }
        self.entries.push(ListedTreeEntry {
            start,
            end: self.paths.len(),
            kind: what,
            named,
        });
    }

    /// Keeps the entries for which `counts` holds.
    pub(crate) fn retain_tree_entries(
        &mut self,
        mut counts: impl FnMut(&[u8], &ListedTreeEntry) -> bool,
    ) {
        let paths = &self.paths;
        self.entries
            .retain(|entry| counts(path_of_file_tree_entry(paths, entry), entry));
    }

    /// Merges `more` into the sorted list. Of two entries with the same path one stays.
    pub(crate) fn merge_tree_entries(&mut self, more: Self) {
        if more.entries.is_empty() {
            return;
        }
        self.append_tree_entries(more);
        let paths = &self.paths;
        let path = |entry: &ListedTreeEntry| path_of_file_tree_entry(paths, entry);
        // The sort is stable, so of two entries with one path the one that was here first stays.
        self.entries.sort_by(|a, b| path(a).cmp(path(b)));
        self.entries.dedup_by(|a, b| path(a) == path(b));
    }

    fn append_tree_entries(&mut self, more: Self) {
        // Ranges of `more` count from the start of its own buffer.
        let shift = self.paths.len();
        self.paths.extend_from_slice(&more.paths);
        self.entries
            .extend(more.entries.into_iter().map(|entry| ListedTreeEntry {
                start: entry.start + shift,
                end: entry.end + shift,
                ..entry
            }));
    }
}

fn path_of_file_tree_entry<'p>(paths: &'p [u8], entry: &ListedTreeEntry) -> &'p [u8] {
    paths.get(entry.start..entry.end).unwrap_or_default()
}

/// A list under construction, made of chunks that are sorted in themselves. No path of one chunk
/// lies between two paths of another, so sorting the chunks by their first path sorts the whole
/// list.
#[derive(Debug, Default)]
pub(crate) struct SortedPathChunks {
    pub(crate) list: TreeEntryList,
    /// The ranges of the finished chunks.
    ranges: Vec<Range<usize>>,
}

impl SortedPathChunks {
    /// Ends the current chunk; the next entry begins a new one.
    pub(crate) fn begin_sorted_path_chunk(&mut self) {
        let start = self.ranges.last().map_or(0, |last| last.end);
        if start < self.list.len() {
            self.ranges.push(start..self.list.len());
        }
    }

    /// Merges the lists of several threads into one sorted list.
    pub(crate) fn merge_sorted_path_chunks(all: Vec<Self>) -> TreeEntryList {
        let mut list = TreeEntryList::default();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for mut some in all {
            some.begin_sorted_path_chunk();
            let shift = list.entries.len();
            let shifted = |range: Range<usize>| range.start + shift..range.end + shift;
            ranges.extend(some.ranges.into_iter().map(shifted));
            // The first list is taken over as it is, without a copy of its buffer.
            match list.entries.is_empty() {
                true => list = some.list,
                false => list.append_tree_entries(some.list),
            }
        }
        // Chunks do not interleave, so the order of their first paths is the order of all.
        ranges.sort_by(|a, b| list.entry_path_at(a.start).cmp(list.entry_path_at(b.start)));
        // Only the entries move; the paths stay where they are in the buffer.
        let mut entries = Vec::with_capacity(list.entries.len());
        for range in ranges {
            entries.extend_from_slice(list.entries.get(range).unwrap_or_default());
        }
        TreeEntryList { entries, ..list }
    }
}
