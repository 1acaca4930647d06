//! Finds the lines of a file that come nearest to a block that was not found, and shows them next
//! to the differing lines of the patch. Work and size are bounded.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, get_close_matches};

use crate::line_search::{LooseHunkLineFinder, fold_typography};
use crate::lines::LineWithEnding;
use crate::refusal::{PatchRefusal, PatchRefusalCause, truncate_text};

/// Most lines of a file that are compared with a line of the patch, and bytes of each.
const MAX_COMPARED_LINES: usize = 1_000;
const MAX_COMPARED_BYTES: usize = 120;
/// Least similarity of a near line; 1 means equal.
const MIN_SIMILARITY: f32 = 0.5;
/// Lines of a block that are considered.
const MAX_BLOCK_LINES: usize = 64;
/// Most rows that are shown, and bytes of one row.
const MAX_ROWS: usize = 12;
const MAX_ROW_BYTES: usize = 120;

/// The place in a file that comes nearest to the block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearestBlockMatch {
    /// Its first line that is shown, from 1.
    pub line: usize,
    /// The file's lines, and the lines that the patch has instead.
    pub rows: Vec<QuotedFileOrPatchLine>,
}

/// A line of the file or of the patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuotedFileOrPatchLine {
    /// The number of the file's line; `None` for a line of the patch.
    pub number: Option<usize>,
    /// The line, bounded.
    pub text: String,
    /// A difference that is hard to see.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl fmt::Display for NearestBlockMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "  the file has, from line {} (`>` is what the patch has there):",
            self.line
        )?;
        for row in &self.rows {
            match row.number {
                Some(number) => write!(f, "\n  {number:>5}| {}", row.text)?,
                None => write!(f, "\n      >| {}", row.text)?,
            }
            if let Some(note) = &row.note {
                write!(f, "   ({note})")?;
            }
        }
        Ok(())
    }
}

/// A block that was searched for.
pub(crate) struct UnmatchedPatchBlock<'a> {
    pub(crate) patch_line: usize,
    pub(crate) lines: &'a [&'a str],
    /// The line where the search began, from 0.
    pub(crate) cursor: usize,
    pub(crate) at_end: bool,
}

/// Builds the refusal for a block that was not found.
pub(crate) fn block_not_found_refusal(
    path: &str,
    file: &[LineWithEnding<'_>],
    seeker: &LooseHunkLineFinder<'_>,
    cause: PatchRefusalCause,
    wanted: &UnmatchedPatchBlock<'_>,
) -> PatchRefusal {
    let refuse = |message| PatchRefusal::refusal_for_file(cause, path, wanted.patch_line, message);
    let what = match (cause, wanted.lines) {
        (PatchRefusalCause::NoContext, [line, ..]) => format!("the line behind `@@`, `{line}`, is"),
        (_, [line]) => format!("the line `{line}` is"),
        (_, lines) => format!("these {} lines are", lines.len()),
    };
    // The most frequent mistake first: the lines exist, but not where the patch says.
    if let Some(place) = seeker.find_hunk_lines_in_file(wanted.lines, 0, false) {
        let line = place + 1;
        return refuse(if wanted.at_end && place >= wanted.cursor {
            format!(
                "{what} at line {line}, not at the end of the file: leave `*** End of File` out"
            )
        } else {
            format!(
                "{what} only at line {line}, not below the chunk before: chunks stand in the order of the file and do not overlap"
            )
        });
    }
    if cause == PatchRefusalCause::NoContext
        && let [line, ..] = wanted.lines
        && line.starts_with('-')
        && line.contains(" +")
    {
        return refuse(format!(
            "`@@ {line}` has line numbers, and this language knows none: behind `@@ ` stands a line of the file, or nothing"
        ));
    }
    let texts: Vec<&str> = file.iter().map(|line| line.text).collect();
    let nearest = find_most_similar_block(&texts, wanted.lines, wanted.cursor, false);
    let message = match (&nearest, file.is_empty()) {
        (_, true) => format!("{what} not in the file, which is empty"),
        (None, _) => format!("{what} not in the file, nor anything like it: read it again"),
        (Some(_), _) => format!("{what} not in the file"),
    };
    PatchRefusal {
        nearest,
        ..refuse(message)
    }
}

/// Returns the place in `file` that comes nearest to `block`, if any is near. With `exact`, lines
/// that differ only in blanks or punctuation count as different.
pub(crate) fn find_most_similar_block(
    file: &[&str],
    block: &[&str],
    cursor: usize,
    exact: bool,
) -> Option<NearestBlockMatch> {
    // Bounded before any work: a block may be as long as the patch.
    let block = block
        .get(..block.len().min(MAX_BLOCK_LINES))
        .unwrap_or(block);
    let start = likely_block_start_by_line_votes(file, block, cursor)
        .or_else(|| hunk_start_by_similarity(file, block, cursor))?;
    show_block_beside_file_lines(file, block, start, exact)
}

fn line_comparison_key(line: &str) -> String {
    fold_typography(line.trim()).into_owned()
}

/// Each line of the block that occurs in the file votes for the place where the block would then
/// begin. Long lines have more weight than short ones.
fn likely_block_start_by_line_votes(file: &[&str], block: &[&str], cursor: usize) -> Option<usize> {
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in block.iter().enumerate() {
        let key = line_comparison_key(line);
        // Braces and blank lines occur everywhere; their votes would be noise.
        if key.len() > 2 {
            wanted.entry(key).or_default().push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (place, line) in file.iter().enumerate() {
        let key = line_comparison_key(line);
        for at in wanted.get(&key).into_iter().flatten() {
            // The weight of a line is bounded, so that one long line does not outvote a whole
            // block.
            *votes.entry(place.saturating_sub(*at)).or_default() += key.len().min(40);
        }
    }
    // The most votes win; then a place not above the cursor; then the first place.
    votes
        .into_iter()
        .max_by_key(|(start, weight)| (*weight, *start >= cursor, usize::MAX - start))
        .map(|(start, _)| start)
}

/// Returns where the block would begin by the line that is most similar to its longest line.
fn hunk_start_by_similarity(file: &[&str], block: &[&str], cursor: usize) -> Option<usize> {
    let (at, line) = block
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let wanted = truncate_text(line_comparison_key(line), MAX_COMPARED_BYTES);
    if wanted.is_empty() {
        return None;
    }
    // From the cursor on first: the bound below may cut the lines above it.
    let (below, above) = (
        file.iter().enumerate().skip(cursor),
        file.iter().enumerate().take(cursor),
    );
    let keys: Vec<(usize, String)> = below
        .chain(above)
        .take(MAX_COMPARED_LINES)
        .map(|(place, line)| {
            (
                place,
                truncate_text(line_comparison_key(line), MAX_COMPARED_BYTES),
            )
        })
        .collect();
    let texts: Vec<&str> = keys.iter().map(|(_, key)| key.as_str()).collect();
    // Quadratic in the length of lines, hence the bounds above.
    let best = *get_close_matches(wanted.as_str(), &texts, 1, MIN_SIMILARITY).first()?;
    let (place, _) = keys.iter().find(|(_, key)| key == best)?;
    Some(place.saturating_sub(at))
}

/// Shows the block next to the file's lines from `start` on, beginning shortly before the first
/// difference.
fn show_block_beside_file_lines(
    file: &[&str],
    block: &[&str],
    start: usize,
    exact: bool,
) -> Option<NearestBlockMatch> {
    let end = (start + block.len()).min(file.len());
    let window = file.get(start..end)?;
    let keys = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line_comparison_key(line)).collect()
    };
    let (theirs, ours) = (keys(window), keys(block));
    let of_file = |at: usize| QuotedFileOrPatchLine {
        number: Some(start + at + 1),
        text: truncate_line_shown_to_agent(window.get(at).copied().unwrap_or_default()),
        note: None,
    };
    let of_patch = |at: usize, beside: Option<usize>| {
        let text = block.get(at).copied().unwrap_or_default();
        let other = beside.and_then(|at| window.get(at).copied());
        QuotedFileOrPatchLine {
            number: None,
            text: truncate_line_shown_to_agent(text),
            note: other.and_then(|other| invisible_difference_note(other, text)),
        }
    };
    let mut rows = Vec::new();
    let mut first_difference = None;
    for op in capture_diff_slices(Algorithm::Myers, &theirs, &ours) {
        if !matches!(op, DiffOp::Equal { .. }) {
            first_difference.get_or_insert(rows.len());
        }
        match op {
            DiffOp::Equal {
                old_index,
                new_index,
                len,
            } => {
                for step in 0..len {
                    rows.push(of_file(old_index + step));
                    // The keys are equal, the lines are not: they differ in blanks or typography,
                    // which `exact` must show.
                    if exact && window.get(old_index + step) != block.get(new_index + step) {
                        first_difference.get_or_insert(rows.len() - 1);
                        rows.push(of_patch(new_index + step, Some(old_index + step)));
                    }
                }
            }
            DiffOp::Delete {
                old_index, old_len, ..
            } => {
                rows.extend((old_index..old_index + old_len).map(of_file));
            }
            DiffOp::Insert {
                new_index, new_len, ..
            } => {
                rows.extend((new_index..new_index + new_len).map(|at| of_patch(at, None)));
            }
            DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            } => {
                for step in 0..old_len.max(new_len) {
                    if step < old_len {
                        rows.push(of_file(old_index + step));
                    }
                    if step < new_len {
                        let beside = (step < old_len).then_some(old_index + step);
                        rows.push(of_patch(new_index + step, beside));
                    }
                }
            }
        }
    }
    // Two equal lines before the first difference help to find the place.
    let skipped = first_difference.unwrap_or(0).saturating_sub(2);
    let rows: Vec<QuotedFileOrPatchLine> = rows.into_iter().skip(skipped).take(MAX_ROWS).collect();
    // Without a line of the file there is nothing to show.
    let line = rows.iter().find_map(|row| row.number)?;
    Some(NearestBlockMatch { line, rows })
}

/// Describes a difference between two lines that cannot be seen.
fn invisible_difference_note(theirs: &str, ours: &str) -> Option<String> {
    if theirs != ours && without_blanks(theirs) == without_blanks(ours) {
        let punctuation = theirs.split_whitespace().eq(ours.split_whitespace());
        return Some(match punctuation || theirs.is_ascii() && ours.is_ascii() {
            true => "only blanks differ".to_owned(),
            false => "only blanks or typographic punctuation differ".to_owned(),
        });
    }
    // Invisible characters, and letters with two encodings: code points show the difference.
    let same = theirs
        .chars()
        .zip(ours.chars())
        .take_while(|(one, other)| one == other);
    let at = same.count();
    let from = |line: &str| -> Vec<char> { line.chars().skip(at).take(2).collect() };
    let (theirs, ours) = (from(theirs), from(ours));
    let looks = |one: &Vec<char>| one.iter().any(|char| !char.is_ascii() || char.is_control());
    (looks(&theirs) || looks(&ours)).then(|| {
        format!(
            "from character {} on the file has {}, this {}",
            at + 1,
            format_code_points(&theirs),
            format_code_points(&ours)
        )
    })
}

fn format_code_points(chars: &[char]) -> String {
    match chars {
        [] => "nothing".to_owned(),
        chars => {
            let named: Vec<String> = chars
                .iter()
                .map(|char| format!("U+{:04X}", u32::from(*char)))
                .collect();
            named.join(" ")
        }
    }
}

fn without_blanks(line: &str) -> String {
    fold_typography(line).split_whitespace().collect()
}

/// Truncates a line. Tabs stay: the agent has to type the line again.
fn truncate_line_shown_to_agent(line: &str) -> String {
    truncate_text(line.to_owned(), MAX_ROW_BYTES)
}
