//! What a file has where a patch expected something else: the lines that come nearest, with
//! those of the patch that differ beside them. Bounded in work and in size.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices, get_close_matches};

use crate::line_search::{BlockSeeker, fold_typography};
use crate::lines::LineWithEnding;
use crate::refusal::{PatchRefusal, PatchRefusalCause, truncate_text};

/// Lines of a file that are compared with one of the patch, and bytes of each.
const MAX_COMPARED_LINES: usize = 1_000;
const MAX_COMPARED_BYTES: usize = 120;
/// Less alike is not near; 1 is the same.
const MIN_SIMILARITY: f32 = 0.5;
/// Lines of a block that are looked at.
const MAX_BLOCK_LINES: usize = 64;
/// Rows that are shown, and bytes of one.
const MAX_ROWS: usize = 12;
const MAX_ROW_BYTES: usize = 120;

/// The place of a file that comes nearest to what was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearestMatch {
    /// Its first line that is shown, from 1.
    pub line: usize,
    /// Its lines, and those that the patch has instead.
    pub rows: Vec<LineComparisonRow>,
}

/// A line beside another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineComparisonRow {
    /// The number of the file's line; `None` for a line of the patch.
    pub number: Option<usize>,
    /// The line, bounded.
    pub text: String,
    /// Why it is hard to see what differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl fmt::Display for NearestMatch {
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

/// What was looked for.
pub(crate) struct PatchBlockSearch<'a> {
    pub(crate) patch_line: usize,
    pub(crate) lines: &'a [&'a str],
    /// From which line on, counted from 0.
    pub(crate) cursor: usize,
    pub(crate) at_end: bool,
}

/// The refusal of a block that was not found.
pub(crate) fn block_not_found_refusal(
    path: &str,
    file: &[LineWithEnding<'_>],
    seeker: &BlockSeeker<'_>,
    cause: PatchRefusalCause,
    wanted: &PatchBlockSearch<'_>,
) -> PatchRefusal {
    let refuse = |message| PatchRefusal::for_file(cause, path, wanted.patch_line, message);
    let what = match (cause, wanted.lines) {
        (PatchRefusalCause::NoContext, [line, ..]) => format!("the line behind `@@`, `{line}`, is"),
        (_, [line]) => format!("the line `{line}` is"),
        (_, lines) => format!("these {} lines are", lines.len()),
    };
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
    let nearest = find_nearest_hunk_match(&texts, wanted.lines, wanted.cursor, false);
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

/// The place in `file` that comes nearest to `block`, if any is near. `exact`: lines that
/// differ in blanks or punctuation only are not the same.
pub(crate) fn find_nearest_hunk_match(
    file: &[&str],
    block: &[&str],
    cursor: usize,
    exact: bool,
) -> Option<NearestMatch> {
    let block = block
        .get(..block.len().min(MAX_BLOCK_LINES))
        .unwrap_or(block);
    let start = block_start_by_equal_lines(file, block, cursor)
        .or_else(|| hunk_start_by_similarity(file, block, cursor))?;
    compare_block_with_file_lines(file, block, start, exact)
}

fn line_comparison_key(line: &str) -> String {
    fold_typography(line.trim()).into_owned()
}

/// Each line of the block that the file has votes for where the block would then begin; a
/// long line says more than a brace.
fn block_start_by_equal_lines(file: &[&str], block: &[&str], cursor: usize) -> Option<usize> {
    let mut wanted: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, line) in block.iter().enumerate() {
        let key = line_comparison_key(line);
        if key.len() > 2 {
            wanted.entry(key).or_default().push(at);
        }
    }
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for (place, line) in file.iter().enumerate() {
        let key = line_comparison_key(line);
        for at in wanted.get(&key).into_iter().flatten() {
            *votes.entry(place.saturating_sub(*at)).or_default() += key.len().min(40);
        }
    }
    // The most votes; then not above the cursor; then the first.
    votes
        .into_iter()
        .max_by_key(|(start, weight)| (*weight, *start >= cursor, usize::MAX - start))
        .map(|(start, _)| start)
}

/// Where the line stands that is most like the block's longest.
fn hunk_start_by_similarity(file: &[&str], block: &[&str], cursor: usize) -> Option<usize> {
    let (at, line) = block
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.trim().len())?;
    let wanted = truncate_text(line_comparison_key(line), MAX_COMPARED_BYTES);
    if wanted.is_empty() {
        return None;
    }
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
    let best = *get_close_matches(wanted.as_str(), &texts, 1, MIN_SIMILARITY).first()?;
    let (place, _) = keys.iter().find(|(_, key)| key == best)?;
    Some(place.saturating_sub(at))
}

/// The block beside the file's lines from `start` on, from shortly before the first difference.
fn compare_block_with_file_lines(
    file: &[&str],
    block: &[&str],
    start: usize,
    exact: bool,
) -> Option<NearestMatch> {
    let end = (start + block.len()).min(file.len());
    let window = file.get(start..end)?;
    let keys = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| line_comparison_key(line)).collect()
    };
    let (theirs, ours) = (keys(window), keys(block));
    let of_file = |at: usize| LineComparisonRow {
        number: Some(start + at + 1),
        text: truncate_shown_line(window.get(at).copied().unwrap_or_default()),
        note: None,
    };
    let of_patch = |at: usize, beside: Option<usize>| {
        let text = block.get(at).copied().unwrap_or_default();
        let other = beside.and_then(|at| window.get(at).copied());
        LineComparisonRow {
            number: None,
            text: truncate_shown_line(text),
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
    let skipped = first_difference.unwrap_or(0).saturating_sub(2);
    let rows: Vec<LineComparisonRow> = rows.into_iter().skip(skipped).take(MAX_ROWS).collect();
    let line = rows.iter().find_map(|row| row.number)?;
    Some(NearestMatch { line, rows })
}

/// What cannot be seen of how a line of the file and one of the patch differ.
fn invisible_difference_note(theirs: &str, ours: &str) -> Option<String> {
    if theirs != ours && without_blanks(theirs) == without_blanks(ours) {
        let punctuation = theirs.split_whitespace().eq(ours.split_whitespace());
        return Some(match punctuation || theirs.is_ascii() && ours.is_ascii() {
            true => "only blanks differ".to_owned(),
            false => "only blanks or typographic punctuation differ".to_owned(),
        });
    }
    // Marks that are not seen, and letters written in two ways.
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

/// As it is, tabs included: it is read to be typed again.
fn truncate_shown_line(line: &str) -> String {
    truncate_text(line.to_owned(), MAX_ROW_BYTES)
}
