//! Masks what differs between two runs of the same failing command: dates and times, attempts,
//! durations, process ids. Line numbers, ports and exit codes stay.

use std::borrow::Cow;

/// Returns the text with each span replaced by one sign.
pub(super) fn mask_volatile_failure_spans(text: &str) -> Cow<'_, str> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    // Every kind of span has a number in it.
    if !text.bytes().any(is_digit) {
        return Cow::Borrowed(text);
    }
    // In this order, each over what the one before has left.
    let text = Cow::Borrowed(text);
    let text = mask_spans_of_kind(text, is_digit, |_, rest| date_time_len(rest));
    let text = mask_spans_of_kind(text, is_digit, |_, rest| time_of_day_len(rest));
    let text = mask_spans_of_kind(
        text,
        |byte| matches!(byte, b'a' | b'A' | b'r' | b'R'),
        |before, rest| numbered_word_len(before, rest, &["attempt", "retry"]),
    );
    let text = mask_spans_of_kind(text, is_digit, duration_len);
    mask_spans_of_kind(
        text,
        |byte| matches!(byte, b'p' | b'P'),
        |before, rest| numbered_word_len(before, rest, &["pid", "ppid"]),
    )
}

/// Replaces the spans of one kind. `can_begin` says with which byte one can begin; `span_len` returns the
/// length of the span at the beginning of a text, before which the other sign stands.
fn mask_spans_of_kind<'a>(
    text: Cow<'a, str>,
    can_begin: impl Fn(u8) -> bool,
    span_len: impl Fn(Option<char>, &str) -> Option<usize>,
) -> Cow<'a, str> {
    let mut masked: Option<String> = None;
    // Up to where the text is in `masked`.
    let mut copied = 0;
    let mut at = 0;
    while let Some(skipped) = text
        .as_bytes()
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| can_begin(*byte)))
    {
        at += skipped;
        let (earlier, rest) = text.split_at(at);
        match span_len(earlier.chars().next_back(), rest) {
            Some(len) if len > 0 => {
                let out = masked.get_or_insert_with(|| String::with_capacity(text.len()));
                out.push_str(text.get(copied..at).unwrap_or_default());
                out.push('#');
                at += len;
                copied = at;
            }
            _ => at += 1,
        }
    }
    match masked {
        None => text,
        Some(mut out) => {
            out.push_str(text.get(copied..).unwrap_or_default());
            Cow::Owned(out)
        }
    }
}

/// `2026-11-02T10:04:05.123+02:00`
fn date_time_len(text: &str) -> Option<usize> {
    let mut scan = SpanScanner::new(text);
    scan.digits(4, 4)?;
    scan.sign("-")?;
    scan.digits(2, 2)?;
    scan.sign("-")?;
    scan.digits(2, 2)?;
    scan.sign("tT ")?;
    scan.clock(2)?;
    scan.optional_fraction(6);
    if scan.sign("zZ").is_none() {
        let mut zone = scan;
        if zone.sign("+-").is_some()
            && zone.digits(2, 2).is_some()
            && zone.sign(":").is_some()
            && zone.digits(2, 2).is_some()
        {
            scan = zone;
        }
    }
    Some(scan.at)
}

/// `9:04:05.123`
fn time_of_day_len(text: &str) -> Option<usize> {
    // Two digits of the hour are tried before one.
    [2, 1].into_iter().find_map(|hour| {
        let mut scan = SpanScanner::new(text);
        scan.clock(hour)?;
        scan.optional_fraction(6);
        Some(scan.at)
    })
}

/// `1.5 ms`, `3 seconds`
fn duration_len(before: Option<char>, text: &str) -> Option<usize> {
    const UNITS: [&str; 11] = [
        "ns", "us", "ms", "seconds", "second", "minutes", "minute", "hours", "hour", "s", "S",
    ];
    if before.is_some_and(is_word_sign) {
        return None;
    }
    let mut scan = SpanScanner::new(text);
    scan.digits(1, usize::MAX)?;
    scan.optional_fraction(usize::MAX);
    scan.optional_blank();
    let unit = UNITS.iter().find(|unit| scan.is_word_next(unit))?;
    Some(scan.at + unit.len())
}

/// `attempt #3`
fn numbered_word_len(before: Option<char>, text: &str, words: &[&str]) -> Option<usize> {
    if before.is_some_and(is_word_sign) {
        return None;
    }
    let mut scan = SpanScanner::new(text);
    let word = words.iter().find(|word| scan.is_word_next(word))?;
    scan.at += word.len();
    let rest = text.get(scan.at..)?;
    let is_between =
        |sign: char| matches!(sign, '#' | ':' | '=') || super::is_javascript_blank(sign);
    scan.at += rest.len() - rest.trim_start_matches(is_between).len();
    scan.digits(1, usize::MAX)?;
    Some(scan.at)
}

fn is_word_sign(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || sign == '_'
}

/// Reads a span from its beginning. Each step moves on, or gives `None` and stays.
#[derive(Clone, Copy)]
struct SpanScanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> SpanScanner<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<()> {
        let digits = self
            .rest()
            .bytes()
            .take(most)
            .take_while(u8::is_ascii_digit)
            .count();
        (digits >= least).then(|| self.at += digits)
    }

    /// One of these signs.
    fn sign(&mut self, of: &str) -> Option<()> {
        let sign = self
            .rest()
            .chars()
            .next()
            .filter(|sign| of.contains(*sign))?;
        self.at += sign.len_utf8();
        Some(())
    }

    /// `hh:mm:ss`
    fn clock(&mut self, hour_digits: usize) -> Option<()> {
        self.digits(hour_digits, hour_digits)?;
        self.sign(":")?;
        self.digits(2, 2)?;
        self.sign(":")?;
        self.digits(2, 2)
    }

    fn optional_fraction(&mut self, most: usize) {
        let mut fraction = *self;
        if fraction.sign(".").is_some() && fraction.digits(1, most).is_some() {
            *self = fraction;
        }
    }

    fn optional_blank(&mut self) {
        if let Some(blank) = self
            .rest()
            .chars()
            .next()
            .filter(|sign| super::is_javascript_blank(*sign))
        {
            self.at += blank.len_utf8();
        }
    }

    /// Whether this word comes next, in whatever case, and ends there.
    fn is_word_next(&self, word: &str) -> bool {
        let rest = self.rest();
        let next = rest.get(..word.len());
        next.is_some_and(|next| next.eq_ignore_ascii_case(word))
            && !rest
                .get(word.len()..)
                .is_some_and(|rest| rest.chars().next().is_some_and(is_word_sign))
    }
}
