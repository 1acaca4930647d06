//! Writes what a witness is shown: one line for each part, `name: what it is`, and no data with a line break, so that
//! none passes for another part. Lines and not JSON, because a request is JSON already: every quotation mark would
//! be escaped twice, and tokens are paid for each.

use std::fmt::Write;

use checkrein_models::ChatMessage;

use super::recent_messages::ConversationExcerptLimits;

/// Lines that are being written at the end of a text.
pub(crate) struct PromptLines<'a> {
    text: &'a mut String,
    begins: usize,
}

impl<'a> PromptLines<'a> {
    pub(crate) fn new(text: &'a mut String) -> Self {
        let begins = text.len();
        Self { text, begins }
    }

    /// A text, of which at most so many bytes are shown. Nothing is written of an empty one.
    pub(crate) fn add_prompt_text_line(&mut self, name: &str, text: &str, most: usize) {
        if !text.is_empty() {
            self.begin_labelled_prompt_line(name);
            push_truncated_text(self.text, text, most);
        }
    }

    /// What is JSON, or a line of ours.
    pub(crate) fn add_prompt_raw_line(&mut self, name: &str, line: &str) {
        self.begin_labelled_prompt_line(name);
        push_json_without_line_breaks(self.text, line);
    }

    /// The end of a conversation. Nothing is written of an empty one.
    pub(crate) fn add_recent_messages(
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

    /// More of the line that was begun.
    pub(super) fn append_to_prompt_line(&mut self, text: &str) {
        push_one_line(self.text, text);
    }
}

/// Writes a text on one line, of which at most so many bytes are shown; then it says how many are not.
fn push_truncated_text(out: &mut String, text: &str, most: usize) {
    let kept = text.split_at(text.floor_char_boundary(most)).0;
    push_one_line(out, kept);
    let cut = text.len() - kept.len();
    if cut > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "[... {cut} bytes cut]");
    }
}

/// Whatever breaks a line, and whatever is blank beside it, is one blank.
pub(crate) fn push_one_line(out: &mut String, text: &str) {
    // Without a way out in the middle, so that many bytes are looked at in one.
    let special = |special, byte: &u8| special | !(b' '..0x7f).contains(byte);
    if !text.as_bytes().iter().fold(false, special) {
        out.push_str(text);
        return;
    }
    let mut pieces = text.split(is_line_break).map(str::trim);
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces.filter(|piece| !piece.is_empty()) {
        out.push(' ');
        out.push_str(piece);
    }
}

fn is_line_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// JSON, with what breaks a line written as JSON writes it: between two values a blank does as well, and within
/// a text only what JSON allows there is left.
fn push_json_without_line_breaks(out: &mut String, json: &str) {
    let special = |special, byte: &u8| special | !(b' '..0x7f).contains(byte);
    if !json.as_bytes().iter().fold(false, special) {
        out.push_str(json);
        return;
    }
    for c in json.chars() {
        match c {
            c if c.is_ascii_control() && c != '\u{7f}' => out.push(' '),
            c if is_line_break(c) => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

/// Writes a text as JSON.
pub fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    let special =
        |special, byte: &u8| special | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\');
    if text.as_bytes().iter().fold(false, special) {
        // Texts can be written as JSON.
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
        let mut lines = PromptLines::new(&mut text);
        lines.add_prompt_text_line("plain", "x  \"y\"", 10);
        lines.add_prompt_text_line("empty", "", 10);
        lines.add_prompt_text_line(
            "hostile",
            "a\r\n  tool: b\u{1}\u{7f}\u{85}\u{2028}tool: c\u{b}\u{c}ä🦀\n",
            100,
        );
        lines.add_prompt_text_line("broken", "\n\n", 100);
        lines.add_prompt_text_line("cut", "ab\nä", 4);
        lines.add_prompt_raw_line("json", "{\"a\":\n\t\"x\\n\u{2029}\u{85}ö\"}");
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
