//! What the walk finds, in the order of paths. The paths of a tree lie in one piece of memory: one
//! allocation each would take longer than to look at the files.

use std::io::ErrorKind;
use std::ops::Range;

use crate::file_system::{FileKind, FileStamp, FileStat};

/// Something that counts. Its path is in the list that it is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeEntry {
    start: usize,
    end: usize,
    pub(crate) kind: TreeEntryKind,
    /// Ignore files leave it out, and only `inputs` that name it ask for it.
    pub(crate) named: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeEntryKind {
    /// A regular file.
    File(FileStamp),
    /// A symlink; never followed.
    Link,
    /// A folder with nothing in it: it counts by its name.
    EmptyFolder,
    /// A pipe, socket or device; never opened.
    Special,
    /// It is there, but this came of looking.
    Unreadable(ErrorKind),
}

impl TreeEntryKind {
    pub(crate) fn entry_kind_from_stat(stat: &FileStat) -> Self {
        match stat.kind {
            FileKind::File => Self::File(stat.stamp),
            FileKind::Link => Self::Link,
            // A folder: in the place of what was none when its own was listed.
            FileKind::Folder | FileKind::Special => Self::Special,
        }
    }
}

/// Things that were found, with their paths: relative to the root, `/`-separated, any bytes that a name may
/// have.
#[derive(Debug, Default)]
pub(crate) struct TreeEntryList {
    paths: Vec<u8>,
    entries: Vec<TreeEntry>,
}

impl TreeEntryList {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn tree_entry_path(&self, entry: &TreeEntry) -> &[u8] {
        path_in_buffer(&self.paths, entry)
    }

    /// The path of the entry at this place; the empty one if there is none.
    pub(crate) fn entry_path_at(&self, at: usize) -> &[u8] {
        let entry = self.entries.get(at);
        entry.map_or(&[], |entry| self.tree_entry_path(entry))
    }

    /// Each entry with its path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &TreeEntry)> {
        self.entries
            .iter()
            .map(|entry| (self.tree_entry_path(entry), entry))
    }

    /// The first place whose path is not before this one, of a list that is sorted.
    pub(crate) fn lower_bound_index(&self, path: &[u8]) -> usize {
        self.entries
            .partition_point(|entry| self.tree_entry_path(entry) < path)
    }

    /// Adds an entry behind the others. Its path comes in two parts.
    pub(crate) fn push_tree_entry(&mut self, path: [&[u8]; 2], what: TreeEntryKind, named: bool) {
        let start = self.paths.len();
        for part in path {
            self.paths.extend_from_slice(part);
        }
        self.entries.push(TreeEntry {
            start,
            end: self.paths.len(),
            kind: what,
            named,
        });
    }

    /// Keeps those entries for which this holds.
    pub(crate) fn retain_tree_entries(
        &mut self,
        mut counts: impl FnMut(&[u8], &TreeEntry) -> bool,
    ) {
        let paths = &self.paths;
        self.entries
            .retain(|entry| counts(path_in_buffer(paths, entry), entry));
    }

    /// Sorts more entries in; of two with one path one stays.
    pub(crate) fn merge_tree_entries(&mut self, more: Self) {
        if more.entries.is_empty() {
            return;
        }
        self.append_tree_entries(more);
        let paths = &self.paths;
        let path = |entry: &TreeEntry| path_in_buffer(paths, entry);
        self.entries.sort_by(|a, b| path(a).cmp(path(b)));
        self.entries.dedup_by(|a, b| path(a) == path(b));
    }

    fn append_tree_entries(&mut self, more: Self) {
        let shift = self.paths.len();
        self.paths.extend_from_slice(&more.paths);
        self.entries
            .extend(more.entries.into_iter().map(|entry| TreeEntry {
                start: entry.start + shift,
                end: entry.end + shift,
                ..entry
            }));
    }
}

fn path_in_buffer<'p>(paths: &'p [u8], entry: &TreeEntry) -> &'p [u8] {
    paths.get(entry.start..entry.end).unwrap_or_default()
}

/// A list in the making, of stretches that are sorted in themselves. No path lies between two of a stretch that
/// is in another, so that stretches are sorted instead of paths.
#[derive(Debug, Default)]
pub(crate) struct SortedPathChunks {
    pub(crate) list: TreeEntryList,
    /// Where the finished ones lie.
    ranges: Vec<Range<usize>>,
}

impl SortedPathChunks {
    /// What is added next begins a new stretch.
    pub(crate) fn begin_sorted_path_chunk(&mut self) {
        let start = self.ranges.last().map_or(0, |last| last.end);
        if start < self.list.len() {
            self.ranges.push(start..self.list.len());
        }
    }

    /// All of several in one list.
    pub(crate) fn merge_sorted(all: Vec<Self>) -> TreeEntryList {
        let mut list = TreeEntryList::default();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for mut some in all {
            some.begin_sorted_path_chunk();
            let shift = list.entries.len();
            let shifted = |range: Range<usize>| range.start + shift..range.end + shift;
            ranges.extend(some.ranges.into_iter().map(shifted));
            match list.entries.is_empty() {
                true => list = some.list,
                false => list.append_tree_entries(some.list),
            }
        }
        ranges.sort_by(|a, b| list.entry_path_at(a.start).cmp(list.entry_path_at(b.start)));
        let mut entries = Vec::with_capacity(list.entries.len());
        for range in ranges {
            entries.extend_from_slice(list.entries.get(range).unwrap_or_default());
        }
        TreeEntryList { entries, ..list }
    }
}
