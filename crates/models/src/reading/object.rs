//! One JSON object at the beginning of a text: its fields, each value as it is written. A text that
//! ends inside keeps the fields before; a comma after the last one is read past.

use std::borrow::Cow;

use memchr::memchr2;
use serde::Deserialize;
use serde::de::Error;
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::Unreadable;

/// A field.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    key: Cow<'a, str>,
    held: Held<'a>,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held<'a> {
    /// Valid JSON.
    Whole(&'a str),
    /// The text ended in it; if it is a text, what there is of it.
    Cut(Option<String>),
}

/// What stands at the beginning of a text.
pub(super) enum Walked<'a> {
    /// An object, and its length.
    Whole(Vec<Field<'a>>, usize),
    /// The text ended in it.
    Cut(Vec<Field<'a>>),
    /// No object, for this reason.
    Not(serde_json::Error),
}

/// A text with its escapes resolved.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The text that a raw value is.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    // Most values are none, and an error costs more than this look.
    if !raw.starts_with('"') {
        return None;
    }
    if let Some((text, _)) = plain(raw) {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str::<Text<'_>>(raw)
        .ok()
        .map(|text| text.0)
}

/// The text without escapes that a JSON text begins with, and how long it is with its quotes. Nothing
/// that the library would see otherwise: for what is not plain it is asked.
fn plain(json: &str) -> Option<(&str, usize)> {
    let inner = json.strip_prefix('"')?;
    let end = memchr2(b'"', b'\\', inner.as_bytes())?;
    let text = inner.get(..end)?;
    let control = text.bytes().fold(false, |any, byte| any | (byte < b' '));
    (inner.as_bytes().get(end) == Some(&b'"') && !control).then_some((text, end + 2))
}

/// What the field of this name holds, letter case aside.
pub(super) fn held<'f, 'a>(
    fields: &'f [Field<'a>],
    key: &str,
) -> Result<Option<&'f Held<'a>>, Unreadable> {
    let mut named = fields
        .iter()
        .filter(|field| field.key.eq_ignore_ascii_case(key))
        .map(|field| &field.held);
    let first = named.next();
    // Twice with different values: which of them was meant?
    if named.any(|other| Some(other) != first) {
        return Err(Unreadable::Disagree);
    }
    Ok(first)
}

/// Reads the object that begins with this text's first byte, a `{`.
pub(super) fn walk(text: &str) -> Walked<'_> {
    let mut fields = Vec::with_capacity(8);
    let mut at = 1;
    loop {
        at = past_blanks(text, at);
        match text.as_bytes().get(at) {
            None => return Walked::Cut(fields),
            Some(b'}') => return Walked::Whole(fields, at + 1),
            Some(_) => {}
        }
        let key = match key(text, at) {
            Next::Read(key, end) => {
                at = past_blanks(text, end);
                key
            }
            Next::Ended => return Walked::Cut(fields),
            Next::Not(error) => return Walked::Not(error),
        };
        match text.as_bytes().get(at) {
            None => return Walked::Cut(fields),
            Some(b':') => at = past_blanks(text, at + 1),
            Some(_) => return Walked::Not(wrong(text, at)),
        }
        match value(text, at) {
            // A number that the text ends with may have had more digits.
            Next::Read(raw, end) if end < text.len() || !raw.ends_with(is_number) => {
                let held = Held::Whole(raw);
                fields.push(Field { key, held });
                at = past_blanks(text, end);
            }
            Next::Read(..) | Next::Ended => {
                let held = Held::Cut(begun(text.get(at..).unwrap_or_default()));
                fields.push(Field { key, held });
                return Walked::Cut(fields);
            }
            Next::Not(error) => return Walked::Not(error),
        }
        match text.as_bytes().get(at) {
            Some(b',') => at += 1,
            None | Some(b'}') => {}
            Some(_) => return Walked::Not(wrong(text, at)),
        }
    }
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit()
}

/// What comes next in a text.
enum Next<T> {
    /// A value, and where it ends.
    Read(T, usize),
    /// The text is over before it is.
    Ended,
    /// No such value.
    Not(serde_json::Error),
}

fn key(text: &str, at: usize) -> Next<Cow<'_, str>> {
    match text.get(at..).and_then(plain) {
        Some((key, length)) => Next::Read(Cow::Borrowed(key), at + length),
        None => match next::<Text<'_>>(text, at) {
            Next::Read(key, end) => Next::Read(key.0, end),
            Next::Ended => Next::Ended,
            Next::Not(error) => Next::Not(error),
        },
    }
}

/// How long the number without sign and exponent is that a text begins with: for any other, and for
/// what only looks like one, the library is asked.
fn number(json: &str) -> Option<usize> {
    let bytes = json.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let zero = bytes.first() == Some(&b'0');
    let mut end = match whole {
        0 => return None,
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

fn value(text: &str, at: usize) -> Next<&str> {
    let rest = text.get(at..).unwrap_or_default();
    let length = plain(rest).map(|(_, length)| length);
    match length.or_else(|| number(rest)) {
        Some(length) => Next::Read(rest.get(..length).unwrap_or_default(), at + length),
        None => match next::<&RawValue>(text, at) {
            Next::Read(raw, end) => Next::Read(raw.get(), end),
            Next::Ended => Next::Ended,
            Next::Not(error) => Next::Not(error),
        },
    }
}

fn next<'a, T: Deserialize<'a>>(text: &'a str, at: usize) -> Next<T> {
    let rest = text.get(at..).unwrap_or_default();
    let mut values = Deserializer::from_str(rest).into_iter::<T>();
    match values.next() {
        Some(Ok(value)) => Next::Read(value, at + values.byte_offset()),
        None => Next::Ended,
        Some(Err(error)) if error.is_eof() => Next::Ended,
        Some(Err(error)) => Next::Not(error),
    }
}

/// What a JSON reader says of what stands there instead of a comma or colon.
fn wrong(text: &str, at: usize) -> serde_json::Error {
    let found = text.get(at..).and_then(|rest| rest.chars().next());
    serde_json::Error::custom(format!(
        "'{}' after a key or a value",
        found.unwrap_or(' ').escape_default()
    ))
}

/// What there is of a text that was cut, without half an escape.
fn begun(raw: &str) -> Option<String> {
    let inner = raw.strip_prefix('"')?;
    // The longest escape is a pair of surrogates, of twelve bytes.
    (0..12).find_map(|less| {
        let kept = inner.get(..inner.len().checked_sub(less)?)?;
        serde_json::from_str::<String>(&format!("\"{kept}\"")).ok()
    })
}

fn past_blanks(text: &str, mut at: usize) -> usize {
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
                let Some(length) = number(&text) else {
                    continue;
                };
                let mut values = Deserializer::from_str(&text).into_iter::<&RawValue>();
                let theirs = values.next().and_then(Result::ok).map(RawValue::get);
                assert_eq!(theirs, text.get(..length), "{text}");
            }
        }
        assert_eq!((number("48213947,"), number("0.92}")), (Some(8), Some(4)));
    }
}
