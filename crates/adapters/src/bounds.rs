//! Bounds on what is kept of an agent's text. Digests are always taken before the cut.

/// At most this many bytes of arguments, messages and prompts are kept.
pub(crate) const MAX_TEXT: usize = 16 * 1024;

/// The text itself, or its beginning and a note of its size.
pub(crate) fn bounded(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_TEXT);
    let head = text.get(..end).unwrap_or_default();
    format!("{head}… [cut by checkrein: {} bytes in all]", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_a_character_and_says_how_much_there_was() {
        assert_eq!(bounded("short"), "short");
        let whole = "a".repeat(MAX_TEXT);
        assert_eq!(bounded(&whole), whole);
        let long = format!("{}é tail", "a".repeat(MAX_TEXT - 1));
        assert_eq!(
            bounded(&long),
            format!(
                "{}… [cut by checkrein: 16390 bytes in all]",
                "a".repeat(MAX_TEXT - 1)
            )
        );
    }
}
