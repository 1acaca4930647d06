//! Writes what a witness is shown, one JSON object. By hand, because it is written for every call and most
//! of it is text that needs no escape; what needs one is left to the library.

use std::fmt::Write;

use checkrein_models::Message;

use super::recent::Recent;

/// An object that is being written at the end of a text.
pub(crate) struct Object<'a> {
    text: &'a mut String,
    begins: usize,
}

impl<'a> Object<'a> {
    pub(crate) fn new(text: &'a mut String) -> Self {
        text.push('{');
        let begins = text.len();
        Self { text, begins }
    }

    /// A text, of which at most so many bytes are shown. Nothing is written of an empty one.
    pub(crate) fn text(&mut self, key: &'static str, text: &str, most: usize) {
        if !text.is_empty() {
            self.key(key);
            string(self.text, text, most);
        }
    }

    /// What is JSON already.
    pub(crate) fn raw(&mut self, key: &'static str, json: &str) {
        self.key(key);
        self.text.push_str(json);
    }

    /// The end of a conversation. Nothing is written of an empty one.
    pub(crate) fn recent(&mut self, key: &'static str, messages: &[Message], recent: Recent) {
        if !messages.is_empty() {
            self.key(key);
            recent.write(messages, self.text);
        }
    }

    pub(crate) fn end(self) {
        self.text.push('}');
    }

    fn key(&mut self, key: &'static str) {
        if self.text.len() > self.begins {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(key);
        self.text.push_str("\":");
    }
}

/// Writes a text as JSON, of which at most so many bytes are shown; then it says how many are not.
pub fn string(out: &mut String, text: &str, most: usize) {
    let kept = text.split_at(text.floor_char_boundary(most)).0;
    out.push('"');
    escaped(out, kept);
    let cut = text.len() - kept.len();
    if cut > 0 {
        // Writing to a string does not fail.
        let _ = write!(out, "[... {cut} bytes cut]");
    }
    out.push('"');
}

fn escaped(out: &mut String, text: &str) {
    // Without a way out in the middle, so that many bytes are looked at in one.
    let special =
        |special, byte: &u8| special | (*byte < b' ') | (*byte == b'"') | (*byte == b'\\');
    if !text.as_bytes().iter().fold(false, special) {
        out.push_str(text);
        return;
    }
    // Texts can be written as JSON.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    out.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_written_is_json_whatever_is_in_it() {
        let mut text = String::new();
        let mut object = Object::new(&mut text);
        object.text("plain", "x", 10);
        object.text("empty", "", 10);
        object.text("hostile", "\"}\\\u{1}\n\u{7f}ä🦀", 100);
        object.text("quotes", "\"\"", 100);
        object.text("cut", "ab\"ä", 4);
        object.raw("raw", "[1,2]");
        object.end();
        let written: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            written,
            json!({
                "plain": "x", "hostile": "\"}\\\u{1}\n\u{7f}ä🦀", "quotes": "\"\"",
                "cut": "ab\"[... 2 bytes cut]", "raw": [1, 2],
            })
        );
        let mut text = String::new();
        Object::new(&mut text).end();
        assert_eq!(text, "{}");
    }
}
