//! Rewrites the strings of a JSON document with their escapes undone. With escapes, a secret in
//! `"\nhvs.…"` seems to begin with an `n`, and a password does not end where the next command
//! begins.

use serde_json::Value;

/// Deepest nesting of strings in strings.
pub(crate) const MAX_DEPTH: u32 = 4;

/// Returns whether the text looks like JSON, possibly truncated.
pub(crate) fn looks_like_json(text: &[u8]) -> bool {
    let mut marks = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    let first = marks.next();
    let second = marks.next();
    matches!(
        (first, second),
        (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'"' | b'{' | b'[' | b']'))
    )
}

/// Returns the text with each string replaced by what `redacted` returns for it; `None` if nothing
/// changed. Any text with escapes between two quotes counts as a string: in a truncated text it is
/// unknown which quotes open, and text between strings has no escapes.
pub(crate) fn rewrite_escaped_json_strings(
    text: &[u8],
    redacted: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Vec<u8>> {
    let mut changed: Option<Vec<u8>> = None;
    let mut copied = 0;
    for (start, end) in escaped_string_ranges(text) {
        let Some(new) = text.get(start..end).and_then(|inner| {
            let quoted = [b"\"", inner, b"\""].concat();
            // Text that is no JSON string is skipped; its bytes are still searched with the text as
            // a whole.
            let plain: String = serde_json::from_slice(&quoted).ok()?;
            redacted(&plain)
        }) else {
            continue;
        };
        let quoted = Value::String(new).to_string();
        // Serialised again, so that JSON stays JSON; the quotes are those of the text.
        let new = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        let out = changed.get_or_insert_default();
        out.extend_from_slice(text.get(copied..start).unwrap_or_default());
        out.extend_from_slice(new.as_bytes());
        copied = end;
    }
    let mut out = changed?;
    out.extend_from_slice(text.get(copied..).unwrap_or_default());
    Some(out)
}

/// Returns the ranges with escapes between unescaped quotes.
fn escaped_string_ranges(text: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let (mut start, mut at, mut escapes) = (0, 0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                if escapes {
                    found.push((start, at));
                }
                (start, escapes) = (at + 1, false);
                at += 1;
            }
            b'\\' => {
                escapes = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
    // The last string may have lost its closing quote. If `at` is beyond the end, it was cut in an
    // escape.
    if escapes && at == text.len() {
        found.push((start, at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_seen_without_their_escapes() {
        let mut seen = Vec::new();
        let text = br#"{"a":"b\nc","d":"e","f\"":"g\\"}"#;
        let same = rewrite_escaped_json_strings(text, &mut |plain| {
            seen.push(plain.to_owned());
            None
        });
        assert_eq!(same, None);
        assert_eq!(seen, ["b\nc", "f\"", "g\\"]);
        let new = rewrite_escaped_json_strings(text, &mut |plain| {
            plain.contains('\n').then(|| "x\ty\"".to_owned())
        });
        assert_eq!(new.unwrap(), br#"{"a":"x\ty\"","d":"e","f\"":"g\\"}"#);
    }

    #[test]
    fn json_is_known_by_its_beginning() {
        for text in ["{\"a\":1}", " [ {", "[[", "{}", "[]"] {
            assert!(looks_like_json(text.as_bytes()), "{text}");
        }
        for text in ["{ a; }", "[ -f x ]", "a", ""] {
            assert!(!looks_like_json(text.as_bytes()), "{text}");
        }
    }
}
