//! Awk: it reads, unless it has a pipe, a redirect or a call by name.

use super::tokens::identifiers_in;
use crate::effects::paths::UNKNOWN;
use crate::effects::program_spec::EffectKind;
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

/// What a program does beside reading its files.
pub(in crate::effects) fn awk_program_effects(program: &CommandWord, out: &mut Vec<CommandEffect>) {
    let text = program.text.as_str();
    // Behind an expansion all of a program can stand.
    if program.knowledge != WordKnowledge::Literal {
        return out.push(CommandEffect::Kind(EffectKind::UnreadableCode));
    }
    if identifiers_in(text).any(|name| {
        matches!(
            name,
            "system" | "extension" | "load" | "include" | "nsmatch"
        )
    }) || has_awk_indirect_call(text)
    {
        return out.push(CommandEffect::Kind(EffectKind::UnreadableCode));
    }
    // Programs differ on a slash in a class, and on one behind `if (...)`.
    let doubtful = text.contains('"')
        && (text.contains("[/")
            || text.contains("/]")
            || text.contains("[^/")
            || text.contains(") /")
            || text.contains(")/"))
        && text.contains(['|', '>', '@']);
    if doubtful {
        return out.push(CommandEffect::Kind(EffectKind::UnreadableCode));
    }
    let mut rest = AwkCodeChars::new(text);
    let mut prints = false;
    while let Some((at, c)) = rest.next() {
        let word = text.get(at..).unwrap_or("");
        match c {
            'p' if word.starts_with("print") => prints = true,
            ';' | '}' | '\n' => prints = false,
            '|' if word.starts_with("||") => {
                rest.skip_char();
            }
            '|' => return out.push(CommandEffect::Kind(EffectKind::UnreadableCode)),
            '>' if prints && !word.starts_with(">=") && rest.depth == 0 => {
                add_awk_redirect_effect(word.trim_start_matches('>'), FileAccess::Write, out)
            }
            'g' if word.starts_with("getline") => {
                let behind = word.get(7..).unwrap_or("").trim_start();
                let behind = behind
                    .trim_start_matches(|c: char| c.is_alphanumeric() || c == '_')
                    .trim_start();
                if let Some(file) = behind.strip_prefix('<') {
                    add_awk_redirect_effect(file, FileAccess::Read, out);
                }
            }
            _ => {}
        }
    }
}

/// `@name(...)` calls what the name holds; an address in a text or a pattern does not.
fn has_awk_indirect_call(text: &str) -> bool {
    AwkCodeChars::new(text).any(|(at, c)| {
        c == '@'
            && text
                .get(at + 1..)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    })
}

/// The file behind a redirect.
fn add_awk_redirect_effect(text: &str, act: FileAccess, out: &mut Vec<CommandEffect>) {
    let text = text.trim_start();
    let fixed = text
        .strip_prefix('"')
        .and_then(|inner| inner.split_once('"'));
    match fixed {
        // What follows would be joined to it.
        Some((path, rest))
            if rest.trim_start().is_empty()
                || rest.trim_start().starts_with([';', '}', '\n', ')', ']']) =>
        {
            out.push(CommandEffect::File(
                act,
                CommandWord::new_literal_word(path),
            ));
        }
        // `> $1".txt"`: a name that only the run knows.
        _ => out.push(CommandEffect::File(
            act,
            CommandWord::word_from_unresolved_text(UNKNOWN, WordKnowledge::SingleWord),
        )),
    }
}

/// The characters outside of texts and patterns, with their places.
struct AwkCodeChars<'t> {
    text: &'t str,
    chars: std::iter::Peekable<std::str::CharIndices<'t>>,
    depth: usize,
    last: char,
}

impl<'t> AwkCodeChars<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            chars: text.char_indices().peekable(),
            depth: 0,
            last: '{',
        }
    }

    fn skip_char(&mut self) {
        self.chars.next();
    }

    /// Whether a pattern begins here: where no value has ended, and behind a keyword.
    fn begins_regex(&self, at: usize) -> bool {
        const KEYWORDS: &[&str] = &["print", "printf", "return", "else", "in", "do", "case"];
        let before = self.text.get(..at).unwrap_or("").trim_end();
        let word = before
            .rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .next()
            .unwrap_or("");
        KEYWORDS.contains(&word)
            || !(self.last.is_alphanumeric() || matches!(self.last, ')' | ']' | '_' | '$' | '"'))
    }

    fn skip_to_closing_char(&mut self, end: char) {
        let mut escaped = false;
        let mut class = false;
        for (_, c) in self.chars.by_ref() {
            // In a class of a pattern the slash is one of its characters.
            if end == '/' && !escaped {
                class = c == '[' || class && c != ']';
            }
            if class {
                escaped = !escaped && c == '\\';
                continue;
            }
            // A line goes on behind a backslash.
            if !escaped && (c == end || c == '\n') {
                return;
            }
            escaped = !escaped && c == '\\';
        }
    }
}

impl Iterator for AwkCodeChars<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (at, c) = self.chars.next()?;
            match c {
                '"' => {
                    self.skip_to_closing_char('"');
                    self.last = '"';
                    continue;
                }
                // A pattern stands where no value has ended.
                '/' if self.begins_regex(at) => {
                    self.skip_to_closing_char('/');
                    self.last = '"';
                    continue;
                }
                '#' => {
                    self.skip_to_closing_char('\n');
                    self.last = '\n';
                    return Some((at, '\n'));
                }
                '(' | '[' => self.depth += 1,
                ')' | ']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if !c.is_whitespace() || c == '\n' {
                self.last = if c == '\n' { '{' } else { c };
            }
            return Some((at, c));
        }
    }
}
