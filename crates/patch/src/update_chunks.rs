//! Applies V4A chunks to a text, at the places that Codex would find. Kept lines keep the file's
//! own spelling and line ending; inserted lines get the ending of the file's first line.

use crate::line_search::LooseHunkLineFinder;
use crate::lines::{self, LineWithEnding};
use crate::nearest_match::{self, UnmatchedPatchBlock};
use crate::parsed_patch::{PatchChunkLine, UpdateChunk};
use crate::refusal::{PatchRefusal, PatchRefusalCause};

/// Failures after which a file is given up; each costs a search for the nearest lines.
const MAX_REFUSALS: usize = 3;

/// An edit without kept lines: `removed` lines from `start` on are replaced by others.
struct LineRangeReplacement<'c> {
    start: usize,
    removed: usize,
    lines: Vec<&'c str>,
}

pub(crate) fn apply_update_chunks(
    path: &str,
    text: &str,
    chunks: &[UpdateChunk],
) -> Result<String, Vec<PatchRefusal>> {
    let file = lines::split_lines(text);
    let seeker = LooseHunkLineFinder::new(file.iter().map(|line| line.text).collect());
    let mut edits = Vec::new();
    let mut refusals = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        match find_chunk_line_replacements(path, &file, &seeker, chunk, &mut cursor) {
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
    // Insertions at the end of the file may precede other edits in the patch. The sort is stable.
    edits.sort_by_key(|edit| edit.start);
    Ok(apply_line_edits(text, &file, &edits))
}

fn find_chunk_line_replacements<'c>(
    path: &str,
    file: &[LineWithEnding<'_>],
    seeker: &LooseHunkLineFinder<'_>,
    chunk: &'c UpdateChunk,
    cursor: &mut usize,
) -> Result<Vec<LineRangeReplacement<'c>>, PatchRefusal> {
    let missed =
        |cause, wanted| nearest_match::block_not_found_refusal(path, file, seeker, cause, &wanted);
    if let Some(context) = &chunk.context {
        let wanted = [context.as_str()];
        let found = seeker.find_hunk_lines_in_file(&wanted, *cursor, false);
        let Some(found) = found else {
            return Err(missed(
                PatchRefusalCause::NoContext,
                UnmatchedPatchBlock {
                    patch_line: chunk.line,
                    lines: &wanted,
                    cursor: *cursor,
                    at_end: false,
                },
            ));
        };
        // The chunk's own lines follow its context line.
        *cursor = found + 1;
    }
    let old = chunk.old_lines();
    // A chunk that only inserts goes to the end of the file, as in Codex.
    if old.is_empty() {
        return Ok(chunk_edits_at_line(
            file.len(),
            &chunk_lines_with_sides(chunk),
        ));
    }
    let mut sides = chunk_lines_with_sides(chunk);
    let mut found = seeker.find_hunk_lines_in_file(&old, *cursor, chunk.at_end);
    if found.is_none()
        && let Some((last, before)) = old.split_last()
        && last.is_empty()
    {
        // A model often ends a chunk with an empty line that stands for the end of the file. Codex
        // retries without it.
        drop_trailing_blank_chunk_line(&mut sides);
        found = seeker.find_hunk_lines_in_file(before, *cursor, chunk.at_end);
    }
    let Some(start) = found else {
        return Err(missed(
            PatchRefusalCause::NoMatch,
            UnmatchedPatchBlock {
                patch_line: chunk.line,
                lines: &old,
                cursor: *cursor,
                at_end: chunk.at_end,
            },
        ));
    };
    // The next chunk must come after this one: chunks do not overlap.
    *cursor = start + sides.iter().filter(|side| side.old).count();
    Ok(chunk_edits_at_line(start, &sides))
}

/// A line of a chunk, and whether the file has it before and after the edit.
struct ChunkLineWithSides<'c> {
    text: &'c str,
    old: bool,
    new: bool,
}

fn chunk_lines_with_sides(chunk: &UpdateChunk) -> Vec<ChunkLineWithSides<'_>> {
    let side = |text, old, new| ChunkLineWithSides { text, old, new };
    let lines = chunk.lines.iter().map(|line| match line {
        PatchChunkLine::Keep(text) => side(text.as_str(), true, true),
        PatchChunkLine::Remove(text) => side(text, true, false),
        PatchChunkLine::Insert(text) => side(text, false, true),
    });
    lines.collect()
}

/// Drops an empty last line from the old side, and an empty last line from the new side.
fn drop_trailing_blank_chunk_line(sides: &mut [ChunkLineWithSides<'_>]) {
    if let Some(last) = sides.iter_mut().rfind(|side| side.old) {
        last.old = false;
    }
    if let Some(last) = sides.iter_mut().rfind(|side| side.new)
        && last.text.is_empty()
    {
        last.new = false;
    }
}

/// Returns a chunk's edits, given the position of its old lines.
fn chunk_edits_at_line<'c>(
    start: usize,
    sides: &[ChunkLineWithSides<'c>],
) -> Vec<LineRangeReplacement<'c>> {
    let mut edits: Vec<LineRangeReplacement<'_>> = Vec::new();
    let mut at = start;
    for side in sides {
        // Kept lines are not part of an edit, so that the file's own spelling of them survives a
        // loose match.
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
            _ => edits.push(LineRangeReplacement {
                start: at,
                removed,
                lines: inserted.into_iter().collect(),
            }),
        }
        at += removed;
    }
    edits
}

fn apply_line_edits(
    text: &str,
    file: &[LineWithEnding<'_>],
    edits: &[LineRangeReplacement<'_>],
) -> String {
    // A file has one style of line endings as a rule; the first line stands for all.
    let usual = match file.first().map(|line| line.end) {
        None | Some("") => "\n",
        Some(end) => end,
    };
    let mut out = String::with_capacity(text.len() + 64);
    let mut put = |text: &str, end: &str| {
        out.push_str(text);
        // The result always ends with a line ending, as in Codex.
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
