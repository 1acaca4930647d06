//! Masks the spans of a text that differ from one run to the next: times, durations, attempt numbers,
//! process ids, addresses; and, if asked for, the names that an error quotes. The list is that of
//! OpenClaw's `tool-loop-detection` with addresses and chunk ids added. Line numbers, ports, counts
//! and exit codes stay: a change of one is a change.
//!
//! A hand-written scanner and no regular expressions, because a hook is a new process for each call and
//! would compile them each time.

use std::borrow::Cow;

/// Which spans are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskedVolatileSpanKinds {
    /// Those that differ by time alone.
    Volatile,
    /// Also quoted names and paths.
    VolatileAndNames,
}

/// A quoted name that is longer is no name.
const MAX_QUOTED_BYTES: usize = 200;

/// Returns the text with each span replaced by one character; borrowed if there is none.
pub(super) fn mask_spans_of_kinds(text: &str, kinds: MaskedVolatileSpanKinds) -> Cow<'_, str> {
    let mut masked: Option<String> = None;
    // Where the part of the text begins that is not in `masked` yet.
    let mut copied = 0;
    let mut at = 0;
    let mut no_path_before = 0;
    while let Some(first) = text.as_bytes().get(at).copied() {
        let rest = text.get(at..).unwrap_or_default();
        let starts_word = !text
            .as_bytes()
            .get(at.wrapping_sub(1))
            .is_some_and(|before| is_word_byte(*before));
        let span = volatile_span_at_start(rest, first, starts_word, kinds).or_else(|| {
            let may_begin_path = kinds == MaskedVolatileSpanKinds::VolatileAndNames && starts_word;
            if !may_begin_path || at < no_path_before {
                return None;
            }
            // A run without a slash is looked at once, not again for each word in it.
            let (len, has_slash) = path_run_len_and_has_slash(rest);
            no_path_before = at + len;
            has_slash.then_some(MaskedVolatileSpan {
                kept: 0,
                masked: len,
                mark: '@',
            })
        });
        match span {
            Some(MaskedVolatileSpan {
                kept,
                masked: len,
                mark,
            }) => {
                let out = masked.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(text.get(copied..at + kept).unwrap_or_default());
                out.push(mark);
                at += kept + len;
                copied = at;
            }
            // A word without a span is left as a whole: nothing can begin inside of it.
            None if starts_word && is_word_byte(first) => at += word_len(rest).max(1),
            None => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    match masked {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// A span, after `kept` bytes that stay.
struct MaskedVolatileSpan {
    kept: usize,
    masked: usize,
    mark: char,
}

fn volatile_span_at_start(
    rest: &str,
    first: u8,
    starts_word: bool,
    kinds: MaskedVolatileSpanKinds,
) -> Option<MaskedVolatileSpan> {
    let volatile = |(kept, masked)| MaskedVolatileSpan {
        kept,
        masked,
        mark: '#',
    };
    let name = |masked| MaskedVolatileSpan {
        kept: 0,
        masked,
        mark: '@',
    };
    let names = kinds == MaskedVolatileSpanKinds::VolatileAndNames;
    match first {
        b'0'..=b'9' if starts_word => volatile_number_len(rest).map(|len| volatile((0, len))),
        b'A'..=b'Z' | b'a'..=b'z' if starts_word => lens_of_word_and_number(rest).map(volatile),
        b'"' | b'`' if names => leading_quoted_len(rest, char::from(first)).map(name),
        // An apostrophe inside of a word opens nothing.
        b'\'' if names && starts_word => leading_quoted_len(rest, '\'').map(name),
        _ if names && rest.starts_with('‘') => leading_quoted_len(rest, '’').map(name),
        _ if names && rest.starts_with('“') => leading_quoted_len(rest, '”').map(name),
        _ => None,
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_len(text: &str) -> usize {
    text.bytes().take_while(|byte| is_word_byte(*byte)).count()
}

fn digits_len(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Returns the length of a date with a time, a time of day, an address, or a number with a unit of
/// time at the beginning of the text.
fn volatile_number_len(text: &str) -> Option<usize> {
    date_time_len(text)
        .or_else(|| clock_time_len(text))
        .or_else(|| hex_address_len(text))
        .or_else(|| duration_len(text))
}

/// `2026-11-26 12:00:00`, with a blank or `t`, up to six digits of a second, and a zone.
fn date_time_len(text: &str) -> Option<usize> {
    let date = text.get(..10)?.as_bytes();
    let is_date = date.iter().enumerate().all(|(at, byte)| match at {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let between = text.as_bytes().get(10)?;
    if !is_date || !matches!(between, b' ' | b't' | b'T') {
        return None;
    }
    let time = clock_time_len(text.get(11..)?)?;
    let after = text.get(11 + time..)?;
    let zone = match after.as_bytes().first() {
        Some(b'z' | b'Z') => 1,
        Some(b'+' | b'-') => {
            let digits = after.get(1..)?;
            let hours = digits_len(digits);
            let colon = usize::from(digits.as_bytes().get(hours) == Some(&b':'));
            1 + hours + colon + digits_len(digits.get(hours + colon..)?)
        }
        _ => 0,
    };
    Some(11 + time + zone)
}

/// `9:05:00`, with a fraction.
fn clock_time_len(text: &str) -> Option<usize> {
    let hours = digits_len(text);
    let minutes = text.get(hours..)?.strip_prefix(':')?;
    let seconds = minutes.get(2..)?.strip_prefix(':')?;
    if !matches!(hours, 1 | 2) || digits_len(minutes) != 2 || digits_len(seconds) != 2 {
        return None;
    }
    Some(hours + 6 + fraction_len(seconds.get(2..)?))
}

/// Returns the length of a decimal point with digits after it.
fn fraction_len(text: &str) -> usize {
    match text.strip_prefix('.').map(digits_len) {
        None | Some(0) => 0,
        Some(digits) => 1 + digits,
    }
}

/// `0x7ffd3c21`
fn hex_address_len(text: &str) -> Option<usize> {
    let digits = text.strip_prefix("0x")?;
    let len = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    (len >= 4).then_some(2 + len)
}

/// `3 ms`, `0.25s`, `10 minutes`
fn duration_len(text: &str) -> Option<usize> {
    const UNITS: &[&str] = &[
        "ns", "us", "ms", "s", "sec", "secs", "second", "seconds", "min", "minute", "minutes",
        "hour", "hours",
    ];
    let whole = digits_len(text);
    let number = whole + fraction_len(text.get(whole..)?);
    let blank = usize::from(text.as_bytes().get(number) == Some(&b' '));
    let unit = text.get(number + blank..)?;
    let len = word_len(unit);
    let unit = unit.get(..len)?;
    UNITS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(unit))
        .then_some(number + blank + len)
}

/// `attempt 3`, `retry #4`, `pid=1234`, `Chunk ID: 8f3a`: returns the length of the word with what
/// follows it, and that of the number.
fn lens_of_word_and_number(text: &str) -> Option<(usize, usize)> {
    let word = text.get(..word_len(text))?;
    let is = |known: &str| word.eq_ignore_ascii_case(known);
    if is("chunk") {
        let id = text.get(word.len()..)?.strip_prefix(' ')?;
        let (name, rest) = (id.get(..2)?, id.get(2..)?);
        let blanks = leading_separator_byte_count(rest);
        let len = word_len(rest.get(blanks..)?);
        return (name.eq_ignore_ascii_case("id") && blanks > 0 && len > 0)
            .then_some((word.len() + 3 + blanks, len));
    }
    if !["attempt", "retry", "pid", "ppid"].into_iter().any(is) {
        return None;
    }
    let rest = text.get(word.len()..)?;
    let blanks = leading_separator_byte_count(rest);
    let len = digits_len(rest.get(blanks..)?);
    (blanks > 0 && len > 0).then_some((word.len() + blanks, len))
}

fn leading_separator_byte_count(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'#' | b':' | b'='))
        .count()
}

/// Returns the length of a run of the letters that paths have, and whether there is a slash in it.
fn path_run_len_and_has_slash(text: &str) -> (usize, bool) {
    let is_path_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./~+*@%-".contains(byte);
    let len = text.bytes().take_while(is_path_byte).count();
    (len, text.bytes().take(len).any(|byte| byte == b'/'))
}

/// Returns the length of a quoted name on one line, its quotes included.
fn leading_quoted_len(text: &str, end: char) -> Option<usize> {
    let opening = text.chars().next()?.len_utf8();
    let mut len = opening;
    for letter in text.get(opening..)?.chars() {
        len += letter.len_utf8();
        if letter == end {
            return (len > opening + end.len_utf8()).then_some(len);
        }
        if letter == '\n' || len > MAX_QUOTED_BYTES {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_by_time_is_masked() {
        for (text, masked) in [
            ("at 2026-11-26T12:00:00.123Z done", "at # done"),
            ("at 2026-11-26 12:00:00+01:00 done", "at # done"),
            ("12:00:59.5 up", "# up"),
            ("took 3 ms, 0.25s, 10 minutes", "took #, #, #"),
            ("Attempt #3 of 5, retry: 4", "Attempt ## of 5, retry: #"),
            ("pid 1234, ppid=5", "pid #, ppid=#"),
            ("Chunk ID: 8f3a", "Chunk ID: #"),
            ("at 0x7ffd3c21", "at #"),
        ] {
            assert_eq!(
                mask_spans_of_kinds(text, MaskedVolatileSpanKinds::Volatile),
                masked
            );
        }
    }

    #[test]
    fn what_says_something_stays() {
        for text in [
            "",
            "main.c:12:5: error: x",
            "exit code 1",
            "HTTP 503 on port 8080",
            "2 failed, 8 passed",
            "errno 13",
            "v1.2.3s2",
            "rapid 5",
            "can't open 'a' — “b”",
            "3 msgs",
        ] {
            assert!(
                matches!(
                    mask_spans_of_kinds(text, MaskedVolatileSpanKinds::Volatile),
                    Cow::Borrowed(_)
                ),
                "{text}"
            );
        }
    }

    /// Each word of a long run without a slash was once the beginning of another look at all of it.
    #[test]
    fn a_long_run_is_looked_at_once() {
        let run = "a.".repeat(200_000);
        assert!(matches!(
            mask_spans_of_kinds(&run, MaskedVolatileSpanKinds::VolatileAndNames),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn names_are_masked_where_that_is_asked_for() {
        for (text, masked) in [
            ("can't open 'a b'", "can't open @"),
            ("no column `x` in \"t\"", "no column @ in @"),
            ("cp: ‘a’ → “b”", "cp: @ → @"),
            ("cat: /etc/x: No such file", "cat: @: No such file"),
            ("src/a.rs:12: error", "@:12: error"),
            ("'unclosed", "'unclosed"),
            ("''", "''"),
        ] {
            assert_eq!(
                mask_spans_of_kinds(text, MaskedVolatileSpanKinds::VolatileAndNames),
                masked
            );
        }
    }
}
