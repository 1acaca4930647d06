//! Applies the hunks of a unified diff at the places where git would apply them: unchanged, nearest
//! to the line that they name, and not in lines that another hunk has changed.

use std::borrow::Cow;

use crate::line_search::LineContentIndex;
use crate::lines;
use crate::nearest_match;
use crate::parsed_patch::Hunk;
use crate::refusal::{PatchRefusal, PatchRefusalCause};

/// Failures after which a file is given up.
const MAX_REFUSALS: usize = 3;
/// Lines of context that GNU patch may ignore (its default fuzz).
const FUZZ: usize = 2;

/// Whose rules decide whether a hunk fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HunkMatchDialect {
    /// `git apply`: every line of context, and the ends of the file where the hunk has them.
    Git,
    /// GNU `patch`: up to two lines of context at either end may differ.
    Gnu,
}

/// Lines `start..start + old` are replaced by `new`.
struct PlacedHunk<'h> {
    start: usize,
    old: usize,
    new: &'h [String],
}

pub(crate) fn apply_hunks(
    path: &str,
    bytes: &[u8],
    hunks: &[Hunk],
    fit: HunkMatchDialect,
) -> Result<Vec<u8>, Vec<PatchRefusal>> {
    let file = lines::lines_with_ends(bytes);
    let index = LineContentIndex::new(file.iter().map(|line| Cow::Borrowed(*line)));
    let mut placed: Vec<PlacedHunk<'_>> = Vec::new();
    let mut refusals = Vec::new();
    for hunk in hunks {
        match place_hunk(&index, file.len(), &placed, hunk, fit) {
            Some(one) => placed.push(one),
            None => refusals.push(hunk_not_found_refusal(path, &file, hunk)),
        }
        if refusals.len() >= MAX_REFUSALS {
            break;
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Hunks may be out of order in the patch. No two overlap, so one pass writes the file.
    placed.sort_by_key(|one| (one.start, one.start + one.old));
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut next = 0;
    for one in &placed {
        out.extend(file.get(next..one.start).unwrap_or_default().concat());
        out.extend(one.new.concat().as_bytes());
        next = one.start + one.old;
    }
    out.extend(file.get(next..).unwrap_or_default().concat());
    Ok(out)
}

fn place_hunk<'h>(
    index: &LineContentIndex<'_>,
    length: usize,
    placed: &[PlacedHunk<'_>],
    hunk: &'h Hunk,
    fit: HunkMatchDialect,
) -> Option<PlacedHunk<'h>> {
    // Git has no fuzz: a hunk applies with all of its context or not at all.
    let most = match fit {
        HunkMatchDialect::Git => 0,
        HunkMatchDialect::Gnu => FUZZ.min(hunk.leading.max(hunk.trailing)),
    };
    (0..=most).find_map(|fuzz| {
        let (front, back) = (fuzz.min(hunk.leading), fuzz.min(hunk.trailing));
        let old = hunk.old.get(front..hunk.old.len().checked_sub(back)?)?;
        let new = hunk.new.get(front..hunk.new.len().checked_sub(back)?)?;
        let start = find_hunk_position(index, length, placed, hunk, (old, front), fit)?;
        Some(PlacedHunk {
            start,
            old: old.len(),
            new,
        })
    })
}

fn find_hunk_position(
    index: &LineContentIndex<'_>,
    length: usize,
    placed: &[PlacedHunk<'_>],
    hunk: &Hunk,
    (old, front): (&[String], usize),
    fit: HunkMatchDialect,
) -> Option<usize> {
    // Git anchors a hunk that starts at line 1 to the beginning of the file, and one without
    // trailing context to its end.
    let at_begin = fit == HunkMatchDialect::Git && hunk.old_start <= 1;
    let at_end = fit == HunkMatchDialect::Git && hunk.trailing == 0;
    let fits = |start: usize| {
        let end = start + old.len();
        let free = |one: &PlacedHunk<'_>| {
            end <= one.start || one.start + one.old <= start && (one.old > 0 || one.start < start)
        };
        (!at_begin || start == 0) && (!at_end || end == length) && placed.iter().all(free)
    };
    // How far earlier hunks move a line: `wanted` refers to the new file.
    let shift = |start: usize| -> i64 {
        let before = placed.iter().filter(|one| one.start < start);
        before
            .map(|one| one.new.len() as i64 - one.old as i64)
            .sum()
    };
    let wanted = hunk.new_start.saturating_sub(1) as i64 + front as i64;
    // A pure insertion has no lines to search for; only its line number says where it belongs.
    if old.is_empty() {
        let start = match (at_begin, at_end) {
            (true, _) => 0,
            (false, true) => length,
            (false, false) => hunk.old_start.min(length),
        };
        return fits(start).then_some(start);
    }
    let block = index.block_line_ids(old.iter().map(|line| Cow::Borrowed(line.as_bytes())))?;
    index
        .line_block_positions(&block, 0)
        .filter(|start| index.spend_line_comparisons(2 * placed.len()) && fits(*start))
        .min_by_key(|start| {
            let stands = *start as i64 + shift(*start);
            // At equal distances the later place wins.
            ((stands - wanted).abs(), stands < wanted)
        })
}

fn hunk_not_found_refusal(path: &str, file: &[&[u8]], hunk: &Hunk) -> PatchRefusal {
    let text = |line: &[u8]| {
        String::from_utf8_lossy(line)
            .trim_end_matches(['\n', '\r'])
            .to_owned()
    };
    let theirs: Vec<String> = file.iter().map(|line| text(line)).collect();
    let ours: Vec<String> = hunk.old.iter().map(|line| text(line.as_bytes())).collect();
    let theirs: Vec<&str> = theirs.iter().map(String::as_str).collect();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let bytes = |lines: &[&str]| -> Vec<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect()
    };
    let (their_bytes, our_bytes) = (bytes(&theirs), bytes(&ours));
    let index = LineContentIndex::new(their_bytes.iter().map(Cow::from));
    let block = index.block_line_ids(our_bytes.iter().map(Cow::from));
    let whole = block.is_some_and(|block| index.line_block_positions(&block, 0).next().is_some());
    let message = match (file.is_empty(), whole) {
        (true, _) => "the file is empty".to_owned(),
        (_, true) if hunk.trailing == 0 => "the lines of this hunk are in the file, but not where it says: a hunk without context behind its change belongs to the end of the file".to_owned(),
        (_, true) => "the lines of this hunk are in the file, but at a place that is taken, or with other line ends".to_owned(),
        (_, false) => format!("the lines that this hunk is about ({}) are not in the file", ours.len()),
    };
    PatchRefusal {
        nearest: match whole {
            true => None,
            false => nearest_match::find_most_similar_block(
                &theirs,
                &ours,
                hunk.old_start.saturating_sub(1),
                true,
            ),
        },
        ..PatchRefusal::refusal_for_file(PatchRefusalCause::NoMatch, path, hunk.line, message)
    }
}
