//! Data cut to what a prompt has room for, never inside a character.

use std::borrow::Cow;

/// Which part of a text that is too long is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Its beginning.
    Start,
    /// Its end.
    End,
}

/// At most `most` bytes of a text, and where something was left out a mark that says how much;
/// the mark comes on top.
pub fn clip(text: &str, most: usize, keep: Keep) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    match keep {
        Keep::Start => {
            let kept = text.split_at(text.floor_char_boundary(most)).0;
            Cow::Owned(format!("{kept}[... {} bytes cut]", text.len() - kept.len()))
        }
        Keep::End => {
            let kept = text.split_at(text.ceil_char_boundary(text.len() - most)).1;
            Cow::Owned(format!("[{} bytes cut ...]{kept}", text.len() - kept.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Keep, clip};

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        for (text, most, keep, expected) in [
            ("short", 5, Keep::Start, "short"),
            ("abcdef", 4, Keep::Start, "abcd[... 2 bytes cut]"),
            ("abcdef", 4, Keep::End, "[2 bytes cut ...]cdef"),
            ("aäöü", 2, Keep::Start, "a[... 6 bytes cut]"),
            ("aäöü", 3, Keep::End, "[5 bytes cut ...]ü"),
            ("ä", 0, Keep::Start, "[... 2 bytes cut]"),
            ("ä", 0, Keep::End, "[2 bytes cut ...]"),
        ] {
            assert_eq!(clip(text, most, keep), expected, "{text} {most} {keep:?}");
        }
    }
}
