//! V4A chunks put into a text. The places are those that Codex finds; lines that stay keep
//! the file's own spelling and line end, lines that come get the end of the file's first line.

use crate::lines::{self, FileLine};
use crate::model::{Chunk, Line};
use crate::nearest::{self, Wanted};
use crate::refusal::{Cause, Refusal};
use crate::seek::Seeker;

/// Failures of one file that are looked into: each costs a search of its own.
const MOST: usize = 3;

/// An edit without a line that stays: so many lines from `start` on give way to others.
struct Edit<'c> {
    start: usize,
    taken: usize,
    lines: Vec<&'c str>,
}

pub(crate) fn update(path: &str, text: &str, chunks: &[Chunk]) -> Result<String, Vec<Refusal>> {
    let file = lines::split(text);
    let seeker = Seeker::new(file.iter().map(|line| line.text).collect());
    let mut edits = Vec::new();
    let mut refusals = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        match place(path, &file, &seeker, chunk, &mut cursor) {
            Ok(found) => edits.extend(found),
            Err(refusal) => refusals.push(refusal),
        }
        if refusals.len() >= MOST {
            break;
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    edits.sort_by_key(|edit| edit.start);
    Ok(put_together(text, &file, &edits))
}

fn place<'c>(
    path: &str,
    file: &[FileLine<'_>],
    seeker: &Seeker<'_>,
    chunk: &'c Chunk,
    cursor: &mut usize,
) -> Result<Vec<Edit<'c>>, Refusal> {
    let missed = |cause, wanted| nearest::refusal(path, file, seeker, cause, &wanted);
    if let Some(context) = &chunk.context {
        let wanted = [context.as_str()];
        let found = seeker.find(&wanted, *cursor, false);
        let Some(found) = found else {
            return Err(missed(
                Cause::NoContext,
                Wanted {
                    patch_line: chunk.line,
                    lines: &wanted,
                    cursor: *cursor,
                    at_end: false,
                },
            ));
        };
        *cursor = found + 1;
    }
    let old = chunk.old();
    if old.is_empty() {
        return Ok(edits(file.len(), &sides(chunk)));
    }
    let mut sides = sides(chunk);
    let mut found = seeker.find(&old, *cursor, chunk.at_end);
    if found.is_none()
        && let Some((last, before)) = old.split_last()
        && last.is_empty()
    {
        drop_last_blank(&mut sides);
        found = seeker.find(before, *cursor, chunk.at_end);
    }
    let Some(start) = found else {
        return Err(missed(
            Cause::NoMatch,
            Wanted {
                patch_line: chunk.line,
                lines: &old,
                cursor: *cursor,
                at_end: chunk.at_end,
            },
        ));
    };
    *cursor = start + sides.iter().filter(|side| side.old).count();
    Ok(edits(start, &sides))
}

/// A line of a chunk: whether the file has it before, and afterwards.
struct Side<'c> {
    text: &'c str,
    old: bool,
    new: bool,
}

fn sides(chunk: &Chunk) -> Vec<Side<'_>> {
    let side = |text, old, new| Side { text, old, new };
    let lines = chunk.lines.iter().map(|line| match line {
        Line::Keep(text) => side(text.as_str(), true, true),
        Line::Remove(text) => side(text, true, false),
        Line::Insert(text) => side(text, false, true),
    });
    lines.collect()
}

/// The last line that was to be there is not, and is empty: it is done without, and so is an
/// empty line that would come last.
fn drop_last_blank(sides: &mut [Side<'_>]) {
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
fn edits<'c>(start: usize, sides: &[Side<'c>]) -> Vec<Edit<'c>> {
    let mut edits: Vec<Edit<'_>> = Vec::new();
    let mut at = start;
    for side in sides {
        if side.old && side.new {
            at += 1;
            continue;
        }
        let removed = usize::from(side.old);
        let inserted = side.new.then_some(side.text);
        match edits.last_mut() {
            Some(last) if last.start + last.taken == at => {
                last.taken += removed;
                last.lines.extend(inserted);
            }
            _ => edits.push(Edit {
                start: at,
                taken: removed,
                lines: inserted.into_iter().collect(),
            }),
        }
        at += removed;
    }
    edits
}

fn put_together(text: &str, file: &[FileLine<'_>], edits: &[Edit<'_>]) -> String {
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
        next = next.max(edit.start + edit.taken);
    }
    for line in file.get(next..).unwrap_or_default() {
        put(line.text, line.end);
    }
    out
}
