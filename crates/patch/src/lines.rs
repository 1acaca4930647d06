//! Splits a text into lines with their endings. `\n`, `\r\n` and a lone `\r` end a line, as they do
//! for Codex.

/// A line and its ending, which the last line may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineWithEnding<'t> {
    pub(crate) text: &'t str,
    pub(crate) end: &'t str,
}

pub(crate) fn split_lines(text: &str) -> Vec<LineWithEnding<'_>> {
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = find_line_end(rest.as_bytes());
        let (line, behind) = rest.split_at(at);
        let length = match behind.as_bytes() {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        let (end, behind) = behind.split_at(length);
        lines.push(LineWithEnding { text: line, end });
        rest = behind;
    }
    lines
}

fn find_line_end(bytes: &[u8]) -> usize {
    memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len())
}

/// Splits bytes into lines that keep their `\n`, as diffs compare them.
pub(crate) fn lines_with_ends(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}
