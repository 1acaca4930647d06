//! Cuts data to the size that a prompt has room for, never inside a character.

use std::borrow::Cow;

/// Which part of a text that is too long is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptTextPart {
    /// Its beginning.
    Start,
    /// Its end.
    End,
}

/// Returns at most `most` bytes of a text. If something was left out, a mark says how much; the
/// mark is not counted in `most`.
pub fn clip_text(text: &str, most: usize, keep: KeptTextPart) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match keep {
        KeptTextPart::Start => {
            let kept = text.split_at(text.floor_char_boundary(most)).0;
            Cow::Owned(format!("{kept}[... {} bytes cut]", text.len() - kept.len()))
        }
        KeptTextPart::End => {
            // Rounded up, so that the kept end is never longer than `most`.
            let kept = text.split_at(text.ceil_char_boundary(text.len() - most)).1;
            Cow::Owned(format!("[{} bytes cut ...]{kept}", text.len() - kept.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KeptTextPart, clip_text};

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        for (text, most, keep, expected) in [
            ("short", 5, KeptTextPart::Start, "short"),
            ("abcdef", 4, KeptTextPart::Start, "abcd[... 2 bytes cut]"),
            ("abcdef", 4, KeptTextPart::End, "[2 bytes cut ...]cdef"),
            ("aäöü", 2, KeptTextPart::Start, "a[... 6 bytes cut]"),
            ("aäöü", 3, KeptTextPart::End, "[5 bytes cut ...]ü"),
            ("ä", 0, KeptTextPart::Start, "[... 2 bytes cut]"),
            ("ä", 0, KeptTextPart::End, "[2 bytes cut ...]"),
        ] {
            assert_eq!(
                clip_text(text, most, keep),
                expected,
                "{text} {most} {keep:?}"
            );
        }
    }
}
