//! Scans one JSON object at the beginning of a text into its fields, with each value as written. A
//! truncated object keeps its earlier fields, and a trailing comma is accepted.

use std::borrow::Cow;

use memchr::memchr2;
use serde::Deserialize;
use serde::de::Error;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::UnreadableAnswerCause;

/// A field.
#[derive(Debug, Clone)]
pub(super) struct JsonField<'a> {
    key: Cow<'a, str>,
    content: WholeOrCutJson<'a>,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum WholeOrCutJson<'a> {
    /// Valid JSON.
    Whole(&'a str),
    /// The text ended in it. For a string, the part that is there.
    Cut(Option<String>),
}

/// The result of scanning the beginning of a text.
pub(super) enum JsonObjectScanResult<'a> {
    /// An object, and its length.
    Whole(Vec<JsonField<'a>>, usize),
    /// The text ended in it.
    Cut(Vec<JsonField<'a>>),
    /// No object, for this reason.
    Not(serde_json::Error),
}

/// A text with its escapes resolved.
#[derive(Deserialize)]
struct UnescapedJsonText<'a>(#[serde(borrow)] Cow<'a, str>);

/// Returns the string of a raw value, or `None` if it is no string.
pub(super) fn unescape_json_string(raw: &str) -> Option<Cow<'_, str>> {
    // Most values are no strings, and a parse error costs more than this check.
    if !raw.starts_with('"') {
        return None;
    }
    if let Some((text, _)) = leading_plain_json_string(raw) {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str::<UnescapedJsonText<'_>>(raw)
        .ok()
        .map(|text| text.0)
}

/// Returns the string without escapes that the JSON begins with, and its length with quotes.
/// Anything that is not plain is left to `serde_json`, so both always agree.
fn leading_plain_json_string(json: &str) -> Option<(&str, usize)> {
    let inner = json.strip_prefix('"')?;
    let end = memchr2(b'"', b'\\', inner.as_bytes())?;
    let text = inner.get(..end)?;
    // JSON forbids raw control characters in strings, so `serde_json` would refuse these.
    let control = text.bytes().fold(false, |any, byte| any | (byte < b' '));
    (inner.as_bytes().get(end) == Some(&b'"') && !control).then_some((text, end + 2))
}

/// Returns the content of the field of this name, ignoring case.
pub(super) fn field_value_ignoring_case<'f, 'a>(
    fields: &'f [JsonField<'a>],
    key: &str,
) -> Result<Option<&'f WholeOrCutJson<'a>>, UnreadableAnswerCause> {
    let mut named = fields
        .iter()
        .filter(|field| field.key.eq_ignore_ascii_case(key))
        .map(|field| &field.content);
    let first = named.next();
    // Two fields with different values: which of them was meant is unknown.
    if named.any(|other| Some(other) != first) {
        return Err(UnreadableAnswerCause::Disagree);
    }
    Ok(first)
}

/// Scans the object that begins with this text's first byte, a `{`.
pub(super) fn scan_json_object(text: &str) -> JsonObjectScanResult<'_> {
    let mut fields = Vec::with_capacity(8);
    let mut at = 1;
    loop {
        at = skip_blanks(text, at);
        match text.as_bytes().get(at) {
            None => return JsonObjectScanResult::Cut(fields),
            Some(b'}') => return JsonObjectScanResult::Whole(fields, at + 1),
            Some(_) => {}
        }
        let key = match next_json_key(text, at) {
            NextJsonValue::Read(key, end) => {
                at = skip_blanks(text, end);
                key
            }
            NextJsonValue::Ended => return JsonObjectScanResult::Cut(fields),
            NextJsonValue::Not(error) => return JsonObjectScanResult::Not(error),
        };
        match text.as_bytes().get(at) {
            None => return JsonObjectScanResult::Cut(fields),
            Some(b':') => at = skip_blanks(text, at + 1),
            Some(_) => return JsonObjectScanResult::Not(json_separator_error(text, at)),
        }
        match next_raw_json_value(text, at) {
            // A number at the end of the text may have had more digits, so it counts as truncated.
            NextJsonValue::Read(raw, end) if end < text.len() || !raw.ends_with(is_digit_char) => {
                let held = WholeOrCutJson::Whole(raw);
                fields.push(JsonField { key, content: held });
                at = skip_blanks(text, end);
            }
            NextJsonValue::Read(..) | NextJsonValue::Ended => {
                let held =
                    WholeOrCutJson::Cut(parse_truncated_string(text.get(at..).unwrap_or_default()));
                fields.push(JsonField { key, content: held });
                return JsonObjectScanResult::Cut(fields);
            }
            NextJsonValue::Not(error) => return JsonObjectScanResult::Not(error),
        }
        match text.as_bytes().get(at) {
            Some(b',') => at += 1,
            // The loop goes round and handles the end of the object, or of the text, in one place.
            None | Some(b'}') => {}
            Some(_) => return JsonObjectScanResult::Not(json_separator_error(text, at)),
        }
    }
}

fn is_digit_char(c: char) -> bool {
    c.is_ascii_digit()
}

/// What comes next in a text.
enum NextJsonValue<T> {
    /// A value, and where it ends.
    Read(T, usize),
    /// The text is over before it is.
    Ended,
    /// No such value.
    Not(serde_json::Error),
}

fn next_json_key(text: &str, at: usize) -> NextJsonValue<Cow<'_, str>> {
    match text.get(at..).and_then(leading_plain_json_string) {
        Some((key, length)) => NextJsonValue::Read(Cow::Borrowed(key), at + length),
        None => match next_json_value::<UnescapedJsonText<'_>>(text, at) {
            NextJsonValue::Read(key, end) => NextJsonValue::Read(key.0, end),
            NextJsonValue::Ended => NextJsonValue::Ended,
            NextJsonValue::Not(error) => NextJsonValue::Not(error),
        },
    }
}

/// Returns the length of the plain number (no sign, no exponent) that the text begins with.
/// Anything else is left to `serde_json`.
fn json_number_length(json: &str) -> Option<usize> {
    let bytes = json.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let zero = bytes.first() == Some(&b'0');
    let mut end = match whole {
        0 => return None,
        // A leading zero is no JSON number.
        2.. if zero => return None,
        whole => whole,
    };
    if bytes.get(end) == Some(&b'.') {
        let parts = digits(end + 1);
        end += 1 + parts;
        if parts == 0 {
            return None;
        }
    }
    let over = matches!(
        bytes.get(end),
        None | Some(b',' | b'}' | b' ' | b'\n' | b'\r' | b'\t')
    );
    over.then_some(end)
}

fn next_raw_json_value(text: &str, at: usize) -> NextJsonValue<&str> {
    let rest = text.get(at..).unwrap_or_default();
    let length = leading_plain_json_string(rest).map(|(_, length)| length);
    match length.or_else(|| json_number_length(rest)) {
        Some(length) => NextJsonValue::Read(rest.get(..length).unwrap_or_default(), at + length),
        None => match next_json_value::<&RawValue>(text, at) {
            NextJsonValue::Read(raw, end) => NextJsonValue::Read(raw.get(), end),
            NextJsonValue::Ended => NextJsonValue::Ended,
            NextJsonValue::Not(error) => NextJsonValue::Not(error),
        },
    }
}

fn next_json_value<'a, T: Deserialize<'a>>(text: &'a str, at: usize) -> NextJsonValue<T> {
    let rest = text.get(at..).unwrap_or_default();
    let mut values = Deserializer::from_str(rest).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => NextJsonValue::Read(value, at + values.byte_offset()),
        None => NextJsonValue::Ended,
        Some(Err(error)) if error.is_eof() => NextJsonValue::Ended,
        Some(Err(error)) => NextJsonValue::Not(error),
    }
}

/// Returns the error for a character that stands where a comma or colon should be.
fn json_separator_error(text: &str, at: usize) -> serde_json::Error {
    let found = text.get(at..).and_then(|rest| rest.chars().next());
    serde_json::Error::custom(format!(
        "'{}' after a key or a value",
        found.unwrap_or(' ').escape_default()
    ))
}

/// Returns what there is of a truncated string, without half an escape.
fn parse_truncated_string(raw: &str) -> Option<String> {
    let inner = raw.strip_prefix('"')?;
    // The longest escape is a pair of surrogates, of twelve bytes.
    (0..12).find_map(|less| {
        let kept = inner.get(..inner.len().checked_sub(less)?)?;
        serde_json::from_str::<String>(&format!("\"{kept}\"")).ok()
    })
}

fn skip_blanks(text: &str, mut at: usize) -> usize {
    while matches!(text.as_bytes().get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is read without the library is read as by it.
    #[test]
    fn numbers_are_read_as_the_library_reads_them() {
        let parts = [
            "0", "1", "42", "007", "0.5", "1.25", "1.", ".5", "-3", "1e9", "2E-4", "1.5e3", "0e1",
            "+1", "1.2.3", "1-2", "0x1", "9_0",
        ];
        for part in parts {
            for after in ["", ",", "}", " ", "]", "a", "\"", "e", "."] {
                let text = format!("{part}{after}");
                let Some(length) = json_number_length(&text) else {
                    continue;
                };
                let mut values = Deserializer::from_str(&text).into_iter::<&RawValue>();
                let theirs = values.next().and_then(Result::ok).map(RawValue::get);
                assert_eq!(theirs, text.get(..length), "{text}");
            }
        }
        assert_eq!(
            (json_number_length("48213947,"), json_number_length("0.92}")),
            (Some(8), Some(4))
        );
    }
}
