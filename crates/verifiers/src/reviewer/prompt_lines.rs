//! Writes what a reviewer is shown: one line for each part, `name: content`, and no line break
//! within content, so that none can pass for another part. Lines are used instead of JSON, because
//! the request itself is JSON: every quotation mark would be escaped twice, at the cost of tokens.

use std::fmt::Write;

use checkrein_models::ChatMessage;

use super::recent_messages::ConversationExcerptLimits;

/// Appends lines to a text.
pub(crate) struct PromptLineWriter<'a> {
    text: &'a mut String,
    begins: usize,
}

impl<'a> PromptLineWriter<'a> {
    pub(crate) fn new(text: &'a mut String) -> Self {
        let begins = text.len();
        Self { text, begins }
    }

    /// Appends a text, of which at most `most` bytes are shown. An empty text is skipped.
    pub(crate) fn add_prompt_text_line(&mut self, name: &str, text: &str, most: usize) {
        if !text.is_empty() {
            self.begin_labelled_prompt_line(name);
            push_truncated_text(self.text, text, most);
        }
    }

    /// Appends JSON or a line of our own.
    pub(crate) fn add_labelled_json_line(&mut self, name: &str, line: &str) {
        self.begin_labelled_prompt_line(name);
        push_json_without_line_breaks(self.text, line);
    }

    /// Appends the end of a conversation. An empty one is skipped.
    pub(crate) fn add_recent_messages_to_prompt(
        &mut self,
        messages: &[ChatMessage],
        recent: ConversationExcerptLimits,
    ) {
        recent.write_recent_messages(messages, self);
    }

    pub(super) fn begin_labelled_prompt_line(&mut self, name: &str) {
        if self.text.len() > self.begins {
            self.text.push('\n');
        }
        self.text.push_str(name);
        self.text.push_str(": ");
    }

    /// Appends to the current line.
    pub(super) fn append_to_current_line(&mut self, text: &str) {
        push_text_as_one_line(self.text, text);
    }
}

/// Writes at most `most` bytes of a text on one line, then the number of bytes cut.
fn push_truncated_text(out: &mut String, text: &str, most: usize) {
    let kept = text.split_at(text.floor_char_boundary(most)).0;
    push_text_as_one_line(out, kept);
    let cut = text.len() - kept.len();
    if cut > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, "[... {cut} bytes cut]");
    }
}

/// Writes a text on one line: a line break and the blanks around it become one blank.
pub(crate) fn push_text_as_one_line(out: &mut String, text: &str) {
    // No early exit, so that the compiler can test many bytes at once.
    let special = |special, byte: &u8| special | !(b' '..0x7f).contains(byte);
    if !text.as_bytes().iter().fold(false, special) {
        out.push_str(text);
        return;
    }
    let mut pieces = text.split(is_control_or_line_break).map(str::trim);
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        out.push(' ');
        out.push_str(piece);
    }
}

fn is_control_or_line_break(c: char) -> bool {
    // Unicode's line and paragraph separators are no control characters.
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Writes JSON on one line: a line break between values becomes a blank, and one within a string
/// becomes an escape.
fn push_json_without_line_breaks(out: &mut String, json: &str) {
    let special = |special, byte: &u8| special | !(b' '..0x7f).contains(byte);
    if !json.as_bytes().iter().fold(false, special) {
        out.push_str(json);
        return;
    }
    for c in json.chars() {
        match c {
            // JSON allows these between values only, where a blank means the same.
            c if c.is_ascii_control() && c != '\u{7f}' => out.push(' '),
            c if is_control_or_line_break(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// Writes a text as a JSON string.
pub fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    let special =
        |special, byte: &u8| special | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\');
    if text.as_bytes().iter().fold(false, special) {
        // Serializing a string cannot fail.
        let quoted = serde_json::to_string(text).unwrap_or_default();
        out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
    } else {
        out.push_str(text);
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_one_line_whatever_is_in_it() {
        let mut text = "before\n".to_owned();
        let mut lines = PromptLineWriter::new(&mut text);
        lines.add_prompt_text_line("plain", "x  \"y\"", 10);
        lines.add_prompt_text_line("empty", "", 10);
        lines.add_prompt_text_line(
            "hostile",
            "a\r\n  tool: b\u{1}\u{7f}\u{85}\u{2028}tool: c\u{b}\u{c}ä🦀\n",
            100,
        );
        lines.add_prompt_text_line("broken", "\n\n", 100);
        lines.add_prompt_text_line("cut", "ab\nä", 4);
        lines.add_labelled_json_line("json", "{\"a\":\n\t\"x\\n\u{2029}\u{85}ö\"}");
        assert_eq!(
            text,
            "before\nplain: x  \"y\"\nhostile: a tool: b tool: c ä🦀\nbroken: \ncut: ab[... 2 bytes cut]\n\
             json: {\"a\":  \"x\\n\\u2029\\u0085ö\"}"
        );
        let json = text.rsplit("json: ").next().unwrap();
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(value["a"], "x\n\u{2029}\u{85}ö", "the same JSON");
    }

    #[test]
    fn texts_as_json() {
        for text in ["", "plain", "\"}\\\u{1}\n\u{7f}ä🦀"] {
            let mut out = String::new();
            push_json_string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
