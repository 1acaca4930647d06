//! V4A chunks put into a text. The places are those that Codex finds; lines that stay keep
//! the file's own spelling and line end, lines that come get the end of the file's first line.

use crate::line_search::BlockSeeker;
use crate::lines::{self, LineWithEnding};
use crate::nearest_match::{self, PatchBlockSearch};
use crate::parsed_patch::{ChunkLine, UpdateChunk};
use crate::refusal::{PatchRefusal, PatchRefusalCause};

/// Failures of one file that are looked into: each costs a search of its own.
const MAX_REFUSALS: usize = 3;

/// An edit without a line that stays: so many lines from `start` on give way to others.
struct LineEdit<'c> {
    start: usize,
    removed: usize,
    lines: Vec<&'c str>,
}

pub(crate) fn apply_chunks(
    path: &str,
    text: &str,
    chunks: &[UpdateChunk],
) -> Result<String, Vec<PatchRefusal>> {
    let file = lines::split_lines(text);
    let seeker = BlockSeeker::new(file.iter().map(|line| line.text).collect());
    let mut edits = Vec::new();
    let mut refusals = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        match place_chunk(path, &file, &seeker, chunk, &mut cursor) {
            Ok(found) => edits.extend(found),
            Err(refusal) => refusals.push(refusal),
        }
        if refusals.len() >= MAX_REFUSALS {
            break;
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    edits.sort_by_key(|edit| edit.start);
    Ok(apply_edits(text, &file, &edits))
}

fn place_chunk<'c>(
    path: &str,
    file: &[LineWithEnding<'_>],
    seeker: &BlockSeeker<'_>,
    chunk: &'c UpdateChunk,
    cursor: &mut usize,
) -> Result<Vec<LineEdit<'c>>, PatchRefusal> {
    let missed =
        |cause, wanted| nearest_match::block_not_found_refusal(path, file, seeker, cause, &wanted);
    if let Some(context) = &chunk.context {
        let wanted = [context.as_str()];
        let found = seeker.find_hunk_lines_in_file(&wanted, *cursor, false);
        let Some(found) = found else {
            return Err(missed(
                PatchRefusalCause::NoContext,
                PatchBlockSearch {
                    patch_line: chunk.line,
                    lines: &wanted,
                    cursor: *cursor,
                    at_end: false,
                },
            ));
        };
        *cursor = found + 1;
    }
    let old = chunk.old_lines();
    if old.is_empty() {
        return Ok(chunk_edits(file.len(), &chunk_line_sides(chunk)));
    }
    let mut sides = chunk_line_sides(chunk);
    let mut found = seeker.find_hunk_lines_in_file(&old, *cursor, chunk.at_end);
    if found.is_none()
        && let Some((last, before)) = old.split_last()
        && last.is_empty()
    {
        drop_trailing_blank_chunk_line(&mut sides);
        found = seeker.find_hunk_lines_in_file(before, *cursor, chunk.at_end);
    }
    let Some(start) = found else {
        return Err(missed(
            PatchRefusalCause::NoMatch,
            PatchBlockSearch {
                patch_line: chunk.line,
                lines: &old,
                cursor: *cursor,
                at_end: chunk.at_end,
            },
        ));
    };
    *cursor = start + sides.iter().filter(|side| side.old).count();
    Ok(chunk_edits(start, &sides))
}

/// A line of a chunk: whether the file has it before, and afterwards.
struct ChunkLineSides<'c> {
    text: &'c str,
    old: bool,
    new: bool,
}

fn chunk_line_sides(chunk: &UpdateChunk) -> Vec<ChunkLineSides<'_>> {
    let side = |text, old, new| ChunkLineSides { text, old, new };
    let lines = chunk.lines.iter().map(|line| match line {
        ChunkLine::Keep(text) => side(text.as_str(), true, true),
        ChunkLine::Remove(text) => side(text, true, false),
        ChunkLine::Insert(text) => side(text, false, true),
    });
    lines.collect()
}

/// The last line that was to be there is not, and is empty: it is done without, and so is an
/// empty line that would come last.
fn drop_trailing_blank_chunk_line(sides: &mut [ChunkLineSides<'_>]) {
    if let Some(last) = sides.iter_mut().rfind(|side| side.old) {
        last.old = false;
    }
    if let Some(last) = sides.iter_mut().rfind(|side| side.new)
        && last.text.is_empty()
    {
        last.new = false;
    }
}

/// A chunk's edits, once it is known where its old lines stand.
fn chunk_edits<'c>(start: usize, sides: &[ChunkLineSides<'c>]) -> Vec<LineEdit<'c>> {
    let mut edits: Vec<LineEdit<'_>> = Vec::new();
    let mut at = start;
    for side in sides {
        if side.old && side.new {
            at += 1;
            continue;
        }
        let removed = usize::from(side.old);
        let inserted = side.new.then_some(side.text);
        match edits.last_mut() {
            Some(last) if last.start + last.removed == at => {
                last.removed += removed;
                last.lines.extend(inserted);
            }
            _ => edits.push(LineEdit {
                start: at,
                removed,
                lines: inserted.into_iter().collect(),
            }),
        }
        at += removed;
    }
    edits
}

fn apply_edits(text: &str, file: &[LineWithEnding<'_>], edits: &[LineEdit<'_>]) -> String {
    let usual = match file.first().map(|line| line.end) {
        None | Some("") => "\n",
        Some(end) => end,
    };
    let mut out = String::with_capacity(text.len() + 64);
    let mut put = |text: &str, end: &str| {
        out.push_str(text);
        out.push_str(if end.is_empty() { usual } else { end });
    };
    let mut next = 0;
    for edit in edits {
        for line in file.get(next..edit.start).unwrap_or_default() {
            put(line.text, line.end);
        }
        for text in &edit.lines {
            put(text, usual);
        }
        next = next.max(edit.start + edit.removed);
    }
    for line in file.get(next..).unwrap_or_default() {
        put(line.text, line.end);
    }
    out
}
