//! Judges awk programs. Awk only reads its files unless the program has a pipe, a redirect, or a
//! call that runs a command.

use super::tokens::identifiers_in_code;
use crate::effects::paths::UNKNOWN;
use crate::effects::program_spec::NonFileEffectKind;
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

/// Adds what an awk program does besides reading its files.
pub(in crate::effects) fn awk_program_effects(program: &CommandWord, out: &mut Vec<CommandEffect>) {
    let text = program.text.as_str();
    // An expansion can hold any code.
    if program.knowledge != WordKnowledge::Literal {
        return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    if identifiers_in_code(text).any(|name| {
        matches!(
            name,
            "system" | "extension" | "load" | "include" | "nsmatch"
        )
    }) || has_awk_indirect_call(text)
    {
        return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    // Implementations of awk differ on a slash in a class and after `if (...)`: where one of them
    // ends a pattern, another begins a string, and a pipe could hide in it.
    let doubtful = text.contains('"')
        && (text.contains("[/")
            || text.contains("/]")
            || text.contains("[^/")
            || text.contains(") /")
            || text.contains(")/"))
        && text.contains(['|', '>', '@']);
    if doubtful {
        return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    }
    let mut rest = AwkCodeChars::new(text);
    let mut prints = false;
    while let Some((at, c)) = rest.next() {
        let word = text.get(at..).unwrap_or("");
        match c {
            // `>` is a redirect only in a print statement, and outside of brackets; else it
            // compares.
            'p' if word.starts_with("print") => prints = true,
            ';' | '}' | '\n' => prints = false,
            '|' if word.starts_with("||") => {
                rest.skip_next_char();
            }
            '|' => return out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode)),
            '>' if prints && !word.starts_with(">=") && rest.depth == 0 => {
                add_awk_redirect_effect(word.trim_start_matches('>'), FileAccess::Write, out)
            }
            // `getline < FILE` and `getline var < FILE` read. `COMMAND | getline` was caught at its
            // pipe.
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

/// Whether there is an indirect call, `@name(...)`, outside of strings and patterns (gawk).
fn has_awk_indirect_call(text: &str) -> bool {
    AwkCodeChars::new(text).any(|(at, c)| {
        c == '@'
            && text
                .get(at + 1..)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
    })
}

/// Adds the file that a redirect names.
fn add_awk_redirect_effect(text: &str, act: FileAccess, out: &mut Vec<CommandEffect>) {
    let text = text.trim_start();
    let fixed = text
        .strip_prefix('"')
        .and_then(|inner| inner.split_once('"'));
    match fixed {
        // The string is the whole name only if nothing follows, as awk concatenates what does.
        Some((path, rest))
            if rest.trim_start().is_empty()
                || rest.trim_start().starts_with([';', '}', '\n', ')', ']']) =>
        {
            out.push(CommandEffect::File(
                act,
                CommandWord::new_literal_word(path),
            ));
        }
        // `> $1".txt"`: the name is known only at run time.
        _ => out.push(CommandEffect::File(
            act,
            CommandWord::word_from_unresolved_text(UNKNOWN, WordKnowledge::SingleWord),
        )),
    }
}

/// Iterates over the characters outside of strings and patterns, with their offsets.
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

    fn skip_next_char(&mut self) {
        self.chars.next();
    }

    /// Whether a slash here begins a pattern: after a keyword, or where no value has just ended.
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

    // An unclosed string or pattern ends with its line, so that code behind it is still seen.
    fn skip_string_or_regex(&mut self, end: char) {
        let mut escaped = false;
        let mut class = false;
        for (_, c) in self.chars.by_ref() {
            // Inside of `[...]` a slash does not end the pattern.
            if end == '/' && !escaped {
                class = c == '[' || class && c != ']';
            }
            if class {
                escaped = !escaped && c == '\\';
                continue;
            }
            // An escaped newline continues the line.
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
                    self.skip_string_or_regex('"');
                    self.last = '"';
                    continue;
                }
                // After a value a slash divides; elsewhere it begins a pattern.
                '/' if self.begins_regex(at) => {
                    self.skip_string_or_regex('/');
                    self.last = '"';
                    continue;
                }
                '#' => {
                    self.skip_string_or_regex('\n');
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
