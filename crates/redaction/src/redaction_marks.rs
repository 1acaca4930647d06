//! Replaces secrets with marks, `[redacted:KIND]`. Existing marks are never replaced, even if a
//! later rule matches text that contains them.

use std::ops::Range;

use memchr::memmem;

const MARK_START: &[u8] = b"[redacted:";
/// Longest kind of a mark that is recognized.
const LONGEST_KIND: usize = 128;

/// Replaces each of these places, which must be in order, with a mark; returns `None` if nothing
/// was replaced.
pub(crate) fn replace_secrets_with_marks<'k>(
    text: &[u8],
    secrets: impl Iterator<Item = (Range<usize>, &'k str)>,
    told: &mut dyn FnMut(&[u8]),
) -> Option<Vec<u8>> {
    let mut marks = RedactionMarkFinder::new(text);
    let mut hidden = Vec::new();
    let mut copied = 0;
    for (secret, kind) in secrets {
        // Places may overlap; what the previous one has replaced is skipped.
        let mut start = secret.start.max(copied);
        while start < secret.end {
            let mark = marks.next_redaction_mark(start);
            let end = mark
                .as_ref()
                .map_or(secret.end, |mark| mark.start.min(secret.end));
            if start < end {
                hidden.extend_from_slice(text.get(copied..start).unwrap_or_default());
                hidden.extend_from_slice(MARK_START);
                hidden.extend_from_slice(kind.as_bytes());
                hidden.push(b']');
                told(text.get(start..end).unwrap_or_default());
                copied = end;
            }
            // The rest of the secret after a mark gets a mark of its own.
            start = mark.map_or(secret.end, |mark| mark.end.max(end));
        }
    }
    // Every replacement advances `copied`, so 0 means that there was none.
    if copied == 0 {
        return None;
    }
    hidden.extend_from_slice(text.get(copied..).unwrap_or_default());
    Some(hidden)
}

/// Returns the parts of the text outside of marks.
pub(crate) fn text_outside_redaction_marks(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut marks = RedactionMarkFinder::new(text);
    let mut start = Some(0);
    std::iter::from_fn(move || {
        let from = start?;
        let mark = marks.next_redaction_mark(from);
        start = mark.as_ref().map(|mark| mark.end);
        text.get(from..mark.map_or(text.len(), |mark| mark.start))
    })
}

/// Finds the marks of a text from left to right.
struct RedactionMarkFinder<'t> {
    text: &'t [u8],
    /// The first mark that ends after the last requested place; the outer `None` means not searched
    /// yet.
    found: Option<Option<Range<usize>>>,
}

impl<'t> RedactionMarkFinder<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, found: None }
    }

    /// Returns the first mark that ends after this place; it may begin before it.
    fn next_redaction_mark(&mut self, place: usize) -> Option<Range<usize>> {
        let mut from = match &self.found {
            None => 0,
            // Remembered: without it, each call would search the rest of the text again.
            Some(None) => return None,
            Some(Some(mark)) if mark.end > place => return Some(mark.clone()),
            Some(Some(mark)) => mark.end,
        };
        let found = loop {
            let rest = self.text.get(from..).unwrap_or_default();
            let Some(begin) = memmem::find(rest, MARK_START) else {
                break None;
            };
            let kind = rest.get(begin + MARK_START.len()..).unwrap_or_default();
            let is_kind = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
            let length = kind
                .iter()
                .take(LONGEST_KIND)
                .take_while(|byte| is_kind(byte))
                .count();
            let end = from + begin + MARK_START.len() + length + 1;
            match kind.get(length) {
                Some(b']') if length > 0 && end > place => break Some(from + begin..end),
                Some(b']') if length > 0 => from = end,
                _ => from += begin + MARK_START.len(),
            }
        };
        self.found = Some(found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<const N: usize>(text: &str, secrets: [(usize, usize); N], expected: Option<&str>) {
        let secrets = secrets.into_iter().map(|(start, end)| (start..end, "k"));
        let hidden = replace_secrets_with_marks(text.as_bytes(), secrets, &mut |_| {});
        assert_eq!(hidden.as_deref(), expected.map(str::as_bytes), "{text}");
    }

    #[test]
    fn what_is_around_marks_is_all_the_rest() {
        let parts = |text: &'static str| -> Vec<_> {
            text_outside_redaction_marks(text.as_bytes()).collect()
        };
        assert_eq!(parts("a"), [b"a"]);
        assert_eq!(
            parts("a[redacted:x]bc[redacted:y]"),
            [&b"a"[..], b"bc", b""]
        );
        assert_eq!(parts("[redacted:x][redacted:"), [&b""[..], b"[redacted:"]);
    }

    #[test]
    fn marks_stay_and_what_is_around_them_goes() {
        check("abc", [(0, 1), (2, 3)], Some("[redacted:k]b[redacted:k]"));
        check("abc", [], None);
        check(
            "a[redacted:x]b",
            [(0, 14)],
            Some("[redacted:k][redacted:x][redacted:k]"),
        );
        check("[redacted:x]", [(0, 12)], None);
        check("[redacted:x]", [(3, 8)], None);
        check(
            "[redacted:x][redacted:y]z",
            [(0, 25)],
            Some("[redacted:x][redacted:y][redacted:k]"),
        );
        check("[redacted: ]", [(0, 12)], Some("[redacted:k]"));
    }
}
