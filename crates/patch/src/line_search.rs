//! Finds blocks of lines in a file. Equal lines get the same number once, so that a block is
//! searched only at the places of its rarest line and not from the top each time.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

/// Most line comparisons for one file: a base, and a number for each of its lines. Ordinary patches
/// stay far below. A patch made to be slow exceeds it and does not fit.
const COMPARISONS: usize = 5_000_000;
const COMPARISONS_PER_LINE: usize = 50;

/// An index of a file's lines, normalized in one way.
pub(crate) struct LineContentIndex<'t> {
    numbers: HashMap<Cow<'t, [u8]>, u32>,
    /// The number of each line.
    line_numbers: Vec<u32>,
    /// Where the positions of each number begin in `places`.
    starts: Vec<u32>,
    places: Vec<u32>,
    /// Comparisons left.
    comparisons_left: Cell<usize>,
}

impl<'t> LineContentIndex<'t> {
    pub(crate) fn new(lines: impl Iterator<Item = Cow<'t, [u8]>>) -> Self {
        let mut numbers = HashMap::new();
        let of: Vec<u32> = lines
            .map(|line| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(line).or_insert(next)
            })
            .collect();
        // A counting sort: positions grouped by line number, in file order, in one allocation.
        let mut starts = vec![0_u32; numbers.len() + 1];
        for number in &of {
            if let Some(count) = starts.get_mut(*number as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut places = vec![0_u32; of.len()];
        for (at, number) in of.iter().enumerate() {
            if let Some(slot) = next.get_mut(*number as usize) {
                if let Some(place) = places.get_mut(*slot as usize) {
                    *place = u32::try_from(at).unwrap_or(u32::MAX);
                }
                *slot += 1;
            }
        }
        Self {
            numbers,
            comparisons_left: Cell::new(COMPARISONS + COMPARISONS_PER_LINE * of.len()),
            line_numbers: of,
            starts,
            places,
        }
    }

    /// Converts a block to line numbers; `None` if the file lacks one of the lines.
    pub(crate) fn block_line_ids<'b>(
        &self,
        lines: impl Iterator<Item = Cow<'b, [u8]>>,
    ) -> Option<Vec<u32>> {
        lines
            .map(|line| self.numbers.get(line.as_ref()).copied())
            .collect()
    }

    fn occurrences_of_line(&self, number: u32) -> &[u32] {
        let at = |number: usize| self.starts.get(number).map_or(0, |start| *start as usize);
        self.places
            .get(at(number as usize)..at(number as usize + 1))
            .unwrap_or_default()
    }

    pub(crate) fn matches_line_block_at(&self, block: &[u32], place: usize) -> bool {
        let rest = self.line_numbers.get(place..).unwrap_or_default();
        let same = block.iter().zip(rest).take_while(|(a, b)| a == b).count();
        self.spend_line_comparisons(same + 1) && same == block.len()
    }

    /// Spends comparisons; returns whether enough were left.
    pub(crate) fn spend_line_comparisons(&self, count: usize) -> bool {
        let left = self.comparisons_left.get().checked_sub(count);
        // Once the budget is exceeded, it stays 0: the rest of the patch fails fast.
        self.comparisons_left.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Returns every position at or after `from` where the block occurs, in order; none for an
    /// empty block.
    pub(crate) fn line_block_positions<'a>(
        &'a self,
        block: &'a [u32],
        from: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let rarest = block
            .iter()
            .enumerate()
            .map(|(at, number)| (at, self.occurrences_of_line(*number)))
            .min_by_key(|(_, places)| places.len());
        let (offset, places) = rarest.unwrap_or((0, &[]));
        // The rarest line is `offset` lines into the block.
        let first = places.partition_point(|place| (*place as usize) < from + offset);
        places
            .get(first..)
            .unwrap_or_default()
            .iter()
            .filter_map(move |place| (*place as usize).checked_sub(offset))
            .filter(move |place| self.matches_line_block_at(block, *place))
    }
}

/// Normalizes a line for comparison.
type PatchLineNormalizer = fn(&str) -> Cow<'_, [u8]>;

/// The ways to compare two lines, from exact to loose. Each is tried over the whole file before the
/// next one.
const NORMALIZERS: [PatchLineNormalizer; 4] = [
    |line| Cow::Borrowed(line.as_bytes()),
    |line| Cow::Borrowed(line.trim_end().as_bytes()),
    |line| Cow::Borrowed(line.trim().as_bytes()),
    |line| match fold_typography(line.trim()) {
        Cow::Borrowed(line) => Cow::Borrowed(line.as_bytes()),
        Cow::Owned(line) => Cow::Owned(line.into_bytes()),
    },
];

/// Searches a file as loosely as Codex does.
pub(crate) struct LooseHunkLineFinder<'t> {
    lines: Vec<&'t str>,
    levels: [OnceCell<LineContentIndex<'t>>; 4],
}

impl<'t> LooseHunkLineFinder<'t> {
    pub(crate) fn new(lines: Vec<&'t str>) -> Self {
        Self {
            lines,
            levels: Default::default(),
        }
    }

    /// Returns the first position at or after `from` where the block occurs, by the strictest
    /// comparison that finds one; with `at_end` only at the end of the file.
    pub(crate) fn find_hunk_lines_in_file(
        &self,
        block: &[&str],
        from: usize,
        at_end: bool,
    ) -> Option<usize> {
        if block.is_empty() {
            return Some(from);
        }
        let last = self.lines.len().checked_sub(block.len())?;
        NORMALIZERS
            .iter()
            .zip(&self.levels)
            .find_map(|(read, index)| {
                // Built on demand: most blocks are found exactly.
                let index = index.get_or_init(|| {
                    LineContentIndex::new(self.lines.iter().map(|line| read(line)))
                });
                let block = index.block_line_ids(block.iter().map(|line| read(line)))?;
                if at_end {
                    return (last >= from && index.matches_line_block_at(&block, last))
                        .then_some(last);
                }
                index.line_block_positions(&block, from).next()
            })
    }
}

/// Replaces typographic punctuation and blanks by the ones on a keyboard.
pub(crate) fn fold_typography(line: &str) -> Cow<'_, str> {
    // All characters below are outside of ASCII.
    if line.is_ascii() {
        return Cow::Borrowed(line);
    }
    let fold = |char| match char {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    };
    Cow::Owned(line.chars().map(fold).collect())
}
