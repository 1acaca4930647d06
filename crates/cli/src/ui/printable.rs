//! Makes what strangers wrote (agents, repos, prompts, names of sessions) safe for a terminal:
//! everything that moves the cursor, turns the direction of text or is not visible is spelled out.
//! Colours come later, by printing a [`StyledLine`](crate::ui::line::StyledLine).

use std::borrow::Cow;

/// Characters that a terminal does not show as what they are: formats (Unicode's category Cf), line
/// separators, fillers, variation selectors, tags. All control characters are hidden too.
const HIDDEN: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

fn is_hidden_char(c: char) -> bool {
    // The usual case, and the list below holds no ASCII.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control() || HIDDEN.iter().any(|(from, to)| (*from..=*to).contains(&c))
}

/// Returns whether a hidden character belongs to the emoji before it: a variation selector, or a
/// joiner to the next part.
fn is_emoji_part(before: char, c: char) -> bool {
    let picture = matches!(before, '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
        && !is_hidden_char(before);
    match c {
        '\u{fe0f}' => picture,
        '\u{200d}' => picture || before == '\u{fe0f}',
        _ => false,
    }
}

/// Escapes hidden characters; line breaks and tabs stay.
pub(crate) fn escape_hidden_except_newlines(text: &str) -> Cow<'_, str> {
    let strange = |c: char| is_hidden_char(c) && !matches!(c, '\n' | '\t');
    if !text.contains(strange) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    // The character before decides whether a joiner is part of an emoji; at the start there is
    // none.
    let mut before = ' ';
    for c in text.chars() {
        match strange(c) && !is_emoji_part(before, c) {
            true => safe.extend(c.escape_default()),
            false => safe.push(c),
        }
        before = c;
    }
    Cow::Owned(safe)
}

/// Escapes hidden characters in a text that must stay within its line, line breaks and tabs
/// included.
pub(crate) fn escape_hidden_chars(text: &str) -> String {
    text.chars()
        .flat_map(|c| match is_hidden_char(c) {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

/// Escapes a text so that it stays one line.
pub(crate) fn escape_to_one_line(text: &str) -> String {
    escape_hidden_except_newlines(text)
        .replace('\n', "\\n")
        .replace('\t', " ")
}

/// Escapes hidden characters in JSON, where `\u` means the same and is harmless.
pub(super) fn json_with_hidden_chars_escaped(value: &serde_json::Value) -> String {
    let text = value.to_string();
    if !text.contains(is_hidden_char) {
        return text;
    }
    let mut units = [0; 2];
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden_char(c) {
            // JSON has escapes of 16 bits only, so a character beyond them is a pair.
            for unit in c.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_hide_something_is_spelled_out() {
        assert_eq!(escape_hidden_chars("cargo test # ünï"), "cargo test # ünï");
        assert_eq!(
            escape_hidden_chars("rm x\r\u{1b}[2Kls"),
            "rm x\\r\\u{1b}[2Kls"
        );
        assert_eq!(escape_hidden_chars("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
        for c in [
            '\u{7f}',
            '\u{9b}',
            '\u{61c}',
            '\u{ad}',
            '\u{180e}',
            '\u{200d}',
            '\u{2028}',
            '\u{2029}',
            '\u{2066}',
            '\u{3164}',
            '\u{115f}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{fff9}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
        ] {
            let spelled = format!("a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(escape_hidden_chars(&format!("a{c}b")), spelled);
            assert_eq!(escape_hidden_except_newlines(&format!("a{c}b")), spelled);
        }
    }

    #[test]
    fn nobody_elses_styles_are_obeyed() {
        let theirs = "\u{1b}[32mdone\u{1b}[0m";
        assert_eq!(
            escape_hidden_except_newlines(theirs),
            "\\u{1b}[32mdone\\u{1b}[0m"
        );
        assert_eq!(
            escape_hidden_except_newlines(&escape_hidden_except_newlines(theirs)),
            escape_hidden_except_newlines(theirs)
        );
        assert_eq!(escape_hidden_except_newlines("a\n\tb"), "a\n\tb");
        assert_eq!(escape_to_one_line("a\n\tb"), "a\\n b");
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ "a\u{9b}": "\u{202e}\u{e0041}\u{1b}ü" });
        let text = json_with_hidden_chars_escaped(&value);
        assert_eq!(text, r#"{"a\u009b":"\u202e\udb40\udc41\u001bü"}"#);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
