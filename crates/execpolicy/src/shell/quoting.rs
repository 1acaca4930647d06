//! Applies the quoting rules of the shell to pieces of source text: which characters a backslash
//! keeps, and what `$'...'` spells.

/// Returns the text of a `$'...'` literal, and how many bytes of `inner` it takes up to and
/// including the closing quote. `inner` begins after the opening quote. The grammar's lexer takes
/// the longest match and can run past the real end, so callers compare.
pub(crate) fn unquote_ansi_c(inner: &str) -> (String, usize) {
    let mut out: Vec<u8> = Vec::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\'' {
            return (text_before_nul(out), at + 1);
        }
        if c != '\\' {
            push_char_as_utf8(&mut out, c);
            continue;
        }
        let Some((_, escape)) = chars.next() else {
            break;
        };
        match escape {
            'a' => out.push(0x07),
            'b' => out.push(0x08),
            'e' | 'E' => out.push(0x1b),
            'f' => out.push(0x0c),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(0x0b),
            'x' => {
                let value = read_escape_digits(&mut chars, 16, 2, 0);
                out.push(value.to_le_bytes()[0]);
            }
            'u' | 'U' => {
                let most = if escape == 'u' { 4 } else { 8 };
                let value = read_escape_digits(&mut chars, 16, most, 0);
                push_char_as_utf8(&mut out, char::from_u32(value).unwrap_or('\u{fffd}'));
            }
            'c' => {
                let control = chars.next().map_or(0, |(_, c)| u32::from(c) & 0x1f);
                out.push(control.to_le_bytes()[0]);
            }
            '0'..='7' => {
                let first = escape.to_digit(8).unwrap_or(0);
                let value = read_escape_digits(&mut chars, 8, 2, first);
                // `\777` does not fit into a byte; its low eight bits are kept.
                out.push(value.to_le_bytes()[0]);
            }
            '\\' | '\'' | '"' | '?' => push_char_as_utf8(&mut out, escape),
            // An unknown escape keeps its backslash.
            other => {
                out.push(b'\\');
                push_char_as_utf8(&mut out, other);
            }
        }
    }
    // The literal is never closed, so it takes all the rest.
    (text_before_nul(out), inner.len())
}

fn read_escape_digits(
    chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
    radix: u32,
    most: usize,
    first: u32,
) -> u32 {
    let mut value = first;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix)) else {
            break;
        };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        chars.next();
    }
    value
}

fn push_char_as_utf8(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Cuts the text at its first NUL, as the shell cuts such a word.
fn text_before_nul(mut bytes: Vec<u8>) -> String {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Unescapes text between double quotes, or in a heredoc that expands: a backslash is removed only
/// before a character that would otherwise have a meaning there.
pub(crate) fn unescape_double_quoted(text: &str, quote: bool, out: &mut String) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('\\', Some('\n')) => {
                chars.next();
            }
            ('\\', Some(next @ ('$' | '`' | '\\'))) => {
                out.push(*next);
                chars.next();
            }
            // A heredoc does not treat double quotes specially, so a backslash before one stays.
            ('\\', Some('"')) if quote => {
                out.push('"');
                chars.next();
            }
            _ => out.push(c),
        }
    }
}

/// Returns whether text in which `$(...)` and backquotes are substitutions holds one that is not
/// escaped.
pub(crate) fn has_unescaped_substitution(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '`' => return true,
            '$' if chars.peek() == Some(&'(') => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_c_spellings() {
        let check = |inner: &str, text: &str, taken: usize| {
            assert_eq!(unquote_ansi_c(inner), (text.to_owned(), taken), "{inner}");
        };
        check("rm'", "rm", 3);
        check(r"\x72\155' x", "rm", 9);
        check(r"\u0072\U0000006d'", "rm", 17);
        check(r"a\'b'", "a'b", 5);
        check(r"a\\' ; rm x ; echo '", r"a\", 4);
        check(r"rm\0more'", "rm", 9);
        check(r"a\qb", r"a\qb", 4);
        check(r"\xe2\x82\xac'", "€", 13);
    }

    #[test]
    fn substitutions_that_are_not_escaped() {
        for (text, expected) in [
            ("a $(b)", true),
            ("a `b`", true),
            (r"a \$(b) \`c\`", false),
            (r"\\`x`", true),
            ("$x", false),
        ] {
            assert_eq!(has_unescaped_substitution(text), expected, "{text}");
        }
    }
}
