//! Reads JSON that is damaged in the two ways in which agents damage it: a length limit cuts a
//! character in half and leaves a lone surrogate escape, or broken UTF-8. Anything else is an
//! error.

use std::borrow::Cow;

use serde_json::Value;

/// Parses a JSON value. `serde_json` limits the nesting depth, so nothing recurses without bound.
pub(crate) fn parse_json_with_lone_surrogates(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        // The repair is tried only after a failure: the usual message costs one parse and no copy.
        Err(first) => {
            let text = String::from_utf8_lossy(bytes);
            let mended = replace_lone_surrogates(&text);
            if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&text, &mended) {
                // Nothing was mended, so the first error has the right place.
                return Err(first);
            }
            serde_json::from_str(&mended)
        }
    }
}

/// Replaces every `\uD8xx` escape without its other half by `\ufffd`.
fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        // A pair is 12 bytes, one escape 6. `\\u` is consumed as an escaped backslash by the last
        // arm, so that the `u` behind it is not read as an escape.
        let (keep, len) = match escaped_code_unit(escape) {
            Some(0xD800..=0xDBFF)
                if matches!(
                    escape.get(6..).and_then(escaped_code_unit),
                    Some(0xDC00..=0xDFFF)
                ) =>
            {
                (true, 12)
            }
            Some(0xD800..=0xDFFF) => (false, 6),
            Some(_) => (true, 6),
            // Any other escape is two bytes or, at a broken end, what is left.
            None => (
                true,
                escape
                    .char_indices()
                    .nth(2)
                    .map_or(escape.len(), |(end, _)| end),
            ),
        };
        let (escape, after) = escape.split_at(len);
        out.push_str(before);
        out.push_str(if keep { escape } else { "\\ufffd" });
        rest = after;
    }
    if out.is_empty() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    if out == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(out)
    }
}

/// The code unit of a `\uXXXX` escape at the beginning of `text`.
fn escaped_code_unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mends_cut_characters_and_nothing_else() {
        let check = |bytes: &[u8], expected: Option<Value>| {
            assert_eq!(
                parse_json_with_lone_surrogates(bytes).ok(),
                expected,
                "{}",
                String::from_utf8_lossy(bytes)
            );
        };
        check(br#"{"a":"\ud83d\ude00 ok"}"#, Some(json!({"a": "😀 ok"})));
        check(br#"{"a":"cut \ud83d"}"#, Some(json!({"a": "cut \u{fffd}"})));
        check(
            br#"{"a":"\ude00 \\ud83d \" \ud83d\n"}"#,
            Some(json!({"a": "\u{fffd} \\ud83d \" \u{fffd}\n"})),
        );
        check(b"{\"a\":\"\xf0\x9f\"}", Some(json!({"a": "\u{fffd}"})));
        check(b"\xef\xbb\xbf{}", Some(json!({})));
        check(br#"{"a":"\ud83d"#, None);
        check(b"{\"a\":1", None);
        check(b"\\", None);
        check("[".repeat(100_000).as_bytes(), None);
    }
}
