//! Cuts data to the size that a prompt has room for, never inside a character.

use std::borrow::Cow;

/// Which part of a text that is too long is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepTextStartOrEnd {
    /// Its beginning.
    Start,
    /// Its end.
    End,
}

/// Returns at most `most` bytes of a text. If something was left out, a mark says how much; the
/// mark is not counted in `most`.
pub fn clip_text(text: &str, most: usize, keep: KeepTextStartOrEnd) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match keep {
        KeepTextStartOrEnd::Start => {
            let kept = text.split_at(text.floor_char_boundary(most)).0;
            Cow::Owned(format!("{kept}[... {} bytes cut]", text.len() - kept.len()))
        }
        KeepTextStartOrEnd::End => {
            // Rounded up, so that the kept end is never longer than `most`.
            let kept = text.split_at(text.ceil_char_boundary(text.len() - most)).1;
            Cow::Owned(format!("[{} bytes cut ...]{kept}", text.len() - kept.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeepTextStartOrEnd, clip_text};

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        for (text, most, keep, expected) in [
            ("short", 5, KeepTextStartOrEnd::Start, "short"),
            (
                "abcdef",
                4,
                KeepTextStartOrEnd::Start,
                "abcd[... 2 bytes cut]",
            ),
            (
                "abcdef",
                4,
                KeepTextStartOrEnd::End,
                "[2 bytes cut ...]cdef",
            ),
            ("aäöü", 2, KeepTextStartOrEnd::Start, "a[... 6 bytes cut]"),
            ("aäöü", 3, KeepTextStartOrEnd::End, "[5 bytes cut ...]ü"),
            ("ä", 0, KeepTextStartOrEnd::Start, "[... 2 bytes cut]"),
            ("ä", 0, KeepTextStartOrEnd::End, "[2 bytes cut ...]"),
        ] {
            assert_eq!(
                clip_text(text, most, keep),
                expected,
                "{text} {most} {keep:?}"
            );
        }
    }
}
