//! Removes escape sequences and control characters: the text goes to people, to agents and to
//! parsers of findings, none of which is a terminal.

use std::borrow::Cow;

/// Returns the text of `bytes`: lossy UTF-8, without escape sequences; a carriage return ends a
/// line.
pub(crate) fn strip_terminal_escapes(bytes: &[u8]) -> Cow<'_, str> {
    // Most output is plain and needs no copy.
    if bytes
        .iter()
        .all(|byte| *byte >= b' ' && *byte != 0x7f || matches!(byte, b'\n' | b'\t'))
    {
        return String::from_utf8_lossy(bytes);
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            0x1b => skip_escape_sequence(&mut rest),
            b'\r' if rest.peek() == Some(&b'\n') => {}
            // A progress bar returns to the start of its line for each step; as lines the steps
            // stay apart.
            b'\r' => kept.push(b'\n'),
            b'\n' | b'\t' => kept.push(byte),
            0..b' ' | 0x7f => {}
            _ => kept.push(byte),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&kept).into_owned())
}

fn skip_escape_sequence(rest: &mut std::iter::Peekable<impl Iterator<Item = u8>>) {
    match rest.next() {
        // CSI: parameters, then one final byte.
        Some(b'[') => {
            while let Some(byte) = rest.peek() {
                // A line's end inside a sequence means that it was cut.
                if *byte == b'\n' {
                    return;
                }
                // The range of final bytes of ECMA-48.
                let last = (0x40..=0x7e).contains(byte);
                rest.next();
                if last {
                    return;
                }
            }
        }
        // OSC (links, titles) and other strings: up to BEL or ST.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            while let Some(byte) = rest.peek().copied() {
                if byte == b'\n' {
                    return;
                }
                rest.next();
                if byte == 0x07 {
                    return;
                }
                if byte == 0x1b {
                    rest.next_if_eq(&b'\\');
                    return;
                }
            }
        }
        // Character sets take one more byte.
        Some(b'(' | b')' | b'*' | b'+' | b'#' | b'%') => {
            rest.next();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(strip_terminal_escapes(bytes), expected, "{bytes:?}");
    }

    #[test]
    fn escapes_go_and_text_stays() {
        check(b"plain\ttext\n", "plain\ttext\n");
        check(b"\x1b[1m\x1b[31merror\x1b[0m: x", "error: x");
        check(b"\x1b]8;;http://a/b\x1b\\link\x1b]8;;\x07!", "link!");
        check(b"\x1b(Bx\x1b7y", "xy");
        check(b"10%\r20%\r\ndone\r\n", "10%\n20%\ndone\n");
        check(b"a\x08\x00\x7fb", "ab");
        check("gr\u{fc}n \u{1f980}".as_bytes(), "gr\u{fc}n \u{1f980}");
        check(b"bad \xff byte", "bad \u{fffd} byte");
        check(b"cut \x1b[31", "cut ");
        check(b"cut \x1b]0;title\nnext", "cut \nnext");
    }
}
