//! V4A chunks put into a text. The places are those that Codex finds; lines that stay keep
//! the file's own spelling and line end, lines that come get the end of the file's first line.

use crate::lines::{self, FileLine};
use crate::model::{Chunk, Line};
use crate::nearest::{self, Wanted};
use crate::refusal::{Cause, Refusal};
use crate::seek::Seeker;

/// Failures of one file that are looked into: each costs a search of its own.
const MOST: usize = 3;

/// Where a chunk goes: so many lines from `start` on give way to `lines`.
struct Placed<'c> {
    start: usize,
    taken: usize,
    lines: &'c [Line],
}

pub(crate) fn update(path: &str, text: &str, chunks: &[Chunk]) -> Result<String, Vec<Refusal>> {
    let file = lines::split(text);
    let seeker = Seeker::new(file.iter().map(|line| line.text).collect());
    let mut placed = Vec::new();
    let mut refusals = Vec::new();
    let mut cursor = 0;
    for chunk in chunks {
        match place(path, &file, &seeker, chunk, &mut cursor) {
            Ok(one) => placed.push(one),
            Err(refusal) => refusals.push(refusal),
        }
        if refusals.len() >= MOST {
            break;
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    placed.sort_by_key(|one| one.start);
    Ok(put_together(text, &file, &placed))
}

fn place<'c>(
    path: &str,
    file: &[FileLine<'_>],
    seeker: &Seeker<'_>,
    chunk: &'c Chunk,
    cursor: &mut usize,
) -> Result<Placed<'c>, Refusal> {
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
        return Ok(Placed {
            start: file.len(),
            taken: 0,
            lines: &chunk.lines,
        });
    }
    let (mut taken, mut lines) = (old.len(), chunk.lines.as_slice());
    let mut found = seeker.find(&old, *cursor, chunk.at_end);
    if found.is_none()
        && let Some((last, before)) = old.split_last()
        && last.is_empty()
    {
        (taken, lines) = (before.len(), without_last_blank(&chunk.lines));
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
    *cursor = start + taken;
    Ok(Placed {
        start,
        taken,
        lines,
    })
}

/// The lines of a chunk without an empty one that would come last.
fn without_last_blank(lines: &[Line]) -> &[Line] {
    let last = lines.iter().rposition(|line| !matches!(line, Line::Remove(_)));
    match last.and_then(|at| Some((at, lines.get(at)?))) {
        Some((at, Line::Keep(text) | Line::Insert(text))) if text.is_empty() => {
            lines.get(..at).unwrap_or_default()
        }
        _ => lines,
    }
}

fn put_together(text: &str, file: &[FileLine<'_>], placed: &[Placed<'_>]) -> String {
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
    for one in placed {
        for line in file.get(next..one.start).unwrap_or_default() {
            put(line.text, line.end);
        }
        let behind = one.start + one.taken;
        let mut at = one.start;
        for line in one.lines {
            match line {
                Line::Insert(text) => put(text, usual),
                // A last empty line that the file does not have comes in.
                Line::Keep(text) if at >= behind => put(text, usual),
                Line::Keep(_) => {
                    if let Some(line) = file.get(at) {
                        put(line.text, line.end);
                    }
                    at += 1;
                }
                Line::Remove(_) => at += 1,
            }
        }
        next = behind.max(next);
    }
    for line in file.get(next..).unwrap_or_default() {
        put(line.text, line.end);
    }
    out
}
