//! Parses the V4A format as Codex does: accepts what Codex accepts, and refuses what Codex refuses,
//! with the line.

use crate::parsed_patch::{
    ParsedPatch, PatchChunkLine, PatchFileChange, PatchFileSection, PatchFormat, UpdateChunk,
};
use crate::refusal::{PatchRefusal, PatchRefusalCause};

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ENVIRONMENT: &str = "*** Environment ID: ";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Returns whether a text begins as a V4A patch. In the middle of a diff the marker is an ordinary
/// line.
pub(crate) fn starts_with_v4a_patch(text: &str) -> bool {
    let mut lines = text.trim().lines();
    match lines.next() {
        Some(first) if opens_heredoc(first) => {
            lines.next().is_some_and(|line| line.trim() == BEGIN)
        }
        first => first.is_some_and(|line| line.trim() == BEGIN),
    }
}

fn opens_heredoc(line: &str) -> bool {
    matches!(line, "<<EOF" | "<<'EOF'" | "<<\"EOF\"")
}

/// Converts a path as Codex does, which parses it like a URL and drops tabs and line breaks. A path
/// that had one of these in front of `/` is not absolute.
fn parse_path_like_codex(path: &str) -> String {
    let plain = path.replace(['\t', '\r', '\n'], "");
    match path.starts_with('/') {
        true => plain,
        false => plain.trim_start_matches('/').to_owned(),
    }
}

pub(crate) fn parse_v4a(text: &str) -> Result<ParsedPatch, PatchRefusal> {
    let text = text.trim();
    let lines: Vec<&str> = text.lines().collect();
    let (body, mut number) = lines_between_patch_markers(&lines)?;
    let (mut rest, first_line) = (body, number);
    let mut changes = Vec::new();
    while let Some((first, behind)) = rest.split_first()
        && let Some(id) = first.trim().strip_prefix(ENVIRONMENT.trim_end())
    {
        if id.trim().is_empty() || number > first_line {
            let what = "an environment is named once, and not by nothing".to_owned();
            return Err(PatchRefusal::refusal_at_patch_line(
                PatchRefusalCause::Malformed,
                number,
                what,
            ));
        }
        (rest, number) = (behind, number + 1);
    }
    // Repeated end markers are ignored, as in Codex.
    while !rest.iter().all(|line| line.trim() == END) {
        let (change, read) = parse_v4a_file_change(rest, number)?;
        changes.push(change);
        rest = rest.get(read..).unwrap_or_default();
        number += read;
    }
    if changes.is_empty() {
        return Err(PatchRefusal::refusal_at_patch_line(
            PatchRefusalCause::Empty,
            1,
            "the patch names no file".to_owned(),
        ));
    }
    Ok(ParsedPatch {
        format: PatchFormat::V4a,
        changes,
    })
}

/// Returns the lines between the markers and the number of the first one. A surrounding heredoc is
/// removed.
fn lines_between_patch_markers<'a, 't>(
    lines: &'a [&'t str],
) -> Result<(&'a [&'t str], usize), PatchRefusal> {
    match v4a_patch_body(lines) {
        Ok(body) => Ok((body, 2)),
        // Without a heredoc, the first refusal is the one to report.
        Err(refusal) => {
            let heredoc = match lines {
                [first, inner @ .., last] if lines.len() >= 4 => {
                    (opens_heredoc(first) && last.ends_with("EOF")).then_some(inner)
                }
                _ => None,
            };
            match heredoc {
                Some(inner) => v4a_patch_body(inner).map(|body| (body, 3)),
                None => Err(refusal),
            }
        }
    }
}

fn v4a_patch_body<'a, 't>(lines: &'a [&'t str]) -> Result<&'a [&'t str], PatchRefusal> {
    let refuse = |line, what: &str| {
        Err(PatchRefusal::refusal_at_patch_line(
            PatchRefusalCause::Malformed,
            line,
            what.to_owned(),
        ))
    };
    match lines {
        [first, ..] if first.trim() != BEGIN => refuse(
            1,
            "the first line must be `*** Begin Patch`, and nothing else",
        ),
        [_, body @ .., last] if last.trim() == END => Ok(body),
        [] => refuse(1, "the patch is empty; it begins with `*** Begin Patch`"),
        _ => refuse(
            lines.len(),
            "the last line must be `*** End Patch`, and nothing else",
        ),
    }
}

/// Parses the part of one file; returns it with the number of lines read.
fn parse_v4a_file_change(
    lines: &[&str],
    number: usize,
) -> Result<(PatchFileSection, usize), PatchRefusal> {
    let first = lines.first().map_or("", |line| line.trim());
    let named = |path: &str, what| PatchFileSection {
        path: parse_path_like_codex(path),
        line: number,
        kind: what,
    };
    if let Some(path) = first.strip_prefix(ADD) {
        // Ends at the first line without `+`, which must then be a header or the end marker.
        let added = lines
            .iter()
            .skip(1)
            .map_while(|line| line.strip_prefix('+'));
        let mut content = String::new();
        let mut read = 1;
        for line in added {
            content.push_str(line);
            content.push('\n');
            read += 1;
        }
        return Ok((named(path, PatchFileChange::Add(content)), read));
    }
    if let Some(path) = first.strip_prefix(DELETE) {
        return Ok((named(path, PatchFileChange::Delete), 1));
    }
    if let Some(path) = first.strip_prefix(UPDATE) {
        // `*** End of File` before the first chunk has no meaning and is skipped.
        let ends = |line: &&&str| line.trim_end() == END_OF_FILE;
        let mut read = 1 + lines.iter().skip(1).take_while(ends).count();
        let to = lines
            .get(read)
            .and_then(|line| line.trim_end().strip_prefix(MOVE));
        read += usize::from(to.is_some());
        let mut chunks = Vec::new();
        while let Some(line) = lines.get(read) {
            let passed_over = match chunks.last() {
                // Before the first chunk, an empty line belongs to that chunk.
                None => ends(&line),
                Some(UpdateChunk { at_end, .. }) => *at_end && line.trim().is_empty(),
            };
            if passed_over {
                read += 1;
                continue;
            }
            // The header of the next file, or the end marker.
            if line.starts_with("***") {
                break;
            }
            let rest = lines.get(read..).unwrap_or_default();
            let (chunk, taken) = parse_v4a_chunk(rest, number + read, chunks.is_empty())?;
            chunks.push(chunk);
            read += taken;
        }
        if chunks.is_empty() {
            let what = format!("the update of {path} has no chunk: say which lines change");
            return Err(PatchRefusal::refusal_at_patch_line(
                PatchRefusalCause::Malformed,
                number,
                what,
            ));
        }
        let to = to.map(parse_path_like_codex);
        return Ok((named(path, PatchFileChange::Update { to, chunks }), read));
    }
    let what = format!(
        "`{first}` is no header: one of `*** Add File: PATH`, `*** Delete File: PATH`, `*** Update File: PATH` is wanted"
    );
    Err(PatchRefusal::refusal_at_patch_line(
        PatchRefusalCause::Malformed,
        number,
        what,
    ))
}

/// Parses one chunk; returns it with the number of lines read.
fn parse_v4a_chunk(
    lines: &[&str],
    number: usize,
    is_first: bool,
) -> Result<(UpdateChunk, usize), PatchRefusal> {
    let refuse = |line, what: String| {
        Err(PatchRefusal::refusal_at_patch_line(
            PatchRefusalCause::Malformed,
            line,
            what,
        ))
    };
    let head = lines.first().map_or("", |line| line.trim_end());
    let (context, start) = if head == "@@" {
        (None, 1)
    } else if let Some(context) = head.strip_prefix("@@ ") {
        (Some(context.to_owned()), 1)
    // Only the first chunk may omit its `@@`.
    } else if is_first {
        (None, 0)
    } else {
        return refuse(
            number,
            format!("a chunk begins with `@@`, not with `{head}`"),
        );
    };
    let mut chunk = UpdateChunk {
        line: number,
        context,
        ..UpdateChunk::default()
    };
    let mut read = 0;
    for line in lines.iter().skip(start) {
        if line.trim_end() == END_OF_FILE {
            // Without a line before it, the marker is left to the caller, which refuses the empty
            // chunk.
            chunk.at_end = read > 0;
            read += usize::from(chunk.at_end);
            break;
        }
        let mut chars = line.chars();
        let first = chars.next();
        let text = chars.as_str().to_owned();
        chunk.lines.push(match first {
            // Editors and models strip trailing blanks, so an empty line means an empty kept line.
            None | Some(' ') => PatchChunkLine::Keep(text),
            Some('+') => PatchChunkLine::Insert(text),
            Some('-') => PatchChunkLine::Remove(text),
            // The caller decides whether the line begins a new chunk or a new file.
            Some(_) if read > 0 => break,
            Some(_) => {
                let what =
                    format!("`{line}` begins with neither ` ` (stays), `+` (comes) nor `-` (goes)");
                return refuse(number + start, what);
            }
        });
        read += 1;
    }
    if read == 0 {
        return refuse(number + start, "the chunk has no lines".to_owned());
    }
    Ok((chunk, start + read))
}
