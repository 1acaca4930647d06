//! Splits a text into commands and words as a shell would. Each byte of a word keeps its position
//! in the text. The text may be prose that contains a command, so a quote that is not closed is an
//! ordinary character.

use std::ops::Range;

/// Most lines of a here-document that are considered.
const MOST_LINES: usize = 64;

/// One word of a command.
#[derive(Debug, Default, Clone)]
pub(crate) struct ShellWord {
    /// The word without its quotes.
    pub(crate) text: Vec<u8>,
    /// The source range of each byte.
    places: Vec<Range<usize>>,
    /// The position after its last byte or quote.
    end: usize,
    /// Quoted parts with blanks, which may be scripts.
    pub(crate) quoted: Vec<Range<usize>>,
}

impl ShellWord {
    /// Creates a word from an argument, without parsing quotes.
    pub(crate) fn shell_word_from_argument(text: &str) -> Self {
        Self {
            text: text.as_bytes().to_vec(),
            places: (0..text.len()).map(|at| at..at + 1).collect(),
            end: text.len(),
            quoted: Vec::new(),
        }
    }

    /// Creates a word from a line at this position, without the blanks around it.
    fn word_from_trimmed_line(line: &[u8], at: usize) -> Self {
        let mut word = Self::default();
        let start = at + line.len() - line.trim_ascii_start().len();
        for (place, byte) in (start..).zip(line.trim_ascii()) {
            word.push_shell_word_byte(*byte, place..place + 1);
        }
        word
    }

    /// Returns the source ranges of a part of the word. Quotes are excluded: if one were replaced,
    /// the text after it would be parsed differently.
    pub(crate) fn source_ranges_of_word_part(&self, part: Range<usize>) -> Vec<Range<usize>> {
        let mut joined: Vec<Range<usize>> = Vec::new();
        for place in self.places.get(part).unwrap_or_default() {
            match joined.last_mut() {
                Some(last) if last.end == place.start => last.end = place.end,
                _ => joined.push(place.clone()),
            }
        }
        joined
    }

    fn push_shell_word_byte(&mut self, byte: u8, place: Range<usize>) {
        self.end = place.end;
        self.text.push(byte);
        self.places.push(place);
    }
}

/// How a command is connected to the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LinkToPreviousCommand {
    /// It reads the other one's output.
    Pipe,
    /// Its output is a file argument of the other one: `<(...)`.
    Substitution,
    /// In any other way.
    #[default]
    Other,
}

/// A simple command.
#[derive(Debug, Default)]
pub(crate) struct ScannedShellCommand {
    pub(crate) start: LinkToPreviousCommand,
    pub(crate) words: Vec<ShellWord>,
    /// The here-string, given with `<<<`.
    pub(crate) here_string: Option<ShellWord>,
    /// The lines of the here-document, given with `<<`.
    pub(crate) here_document: Vec<ShellWord>,
}

/// Splits a part of a text and calls `take` with each command.
pub(crate) fn for_each_shell_command(
    text: &[u8],
    part: Range<usize>,
    take: &mut dyn FnMut(ScannedShellCommand),
) {
    CommandSplitter {
        text,
        at: part.start,
        end: part.end,
        word: None,
        command: ScannedShellCommand::default(),
        next_word: NextWordRole::Argument,
        unclosed: [false; 2],
    }
    .split_commands(take);
}

/// The role of the next word in its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextWordRole {
    Argument,
    HereString,
    /// The line that ends a here-document.
    HereDocument,
    /// The file of a redirection.
    File,
}

struct CommandSplitter<'t> {
    text: &'t [u8],
    at: usize,
    end: usize,
    word: Option<ShellWord>,
    command: ScannedShellCommand,
    next_word: NextWordRole,
    /// Whether the rest of the text has no closing quote: for `'`, and for `"`.
    unclosed: [bool; 2],
}

impl CommandSplitter<'_> {
    fn split_commands(mut self, take: &mut dyn FnMut(ScannedShellCommand)) {
        while let Some(byte) = self.byte_at(self.at) {
            let at = self.at;
            self.at += 1;
            match byte {
                b' ' | b'\t' | b'\r' => self.end_word(),
                b'(' if self.next_word == NextWordRole::File
                    && self
                        .text
                        .get(..at)
                        .is_some_and(|before| before.ends_with(b"<")) =>
                {
                    self.finish_split_command(LinkToPreviousCommand::Substitution, take);
                }
                // Subshells and command substitutions end the command around them, too: each part
                // is searched on its own.
                b'\n' | b';' | b'(' | b')' | b'`' => {
                    self.finish_split_command(LinkToPreviousCommand::Other, take)
                }
                b'|' | b'&' => self.end_command_at_pipe_or_ampersand(byte, take),
                b'<' | b'>' => self.start_redirection(byte),
                b'\\' => self.read_escape(at),
                b'\'' | b'"' => self.read_quoted_shell_text(at, byte),
                // Brackets and commas around the strings of an argument list, as in JSON and most
                // languages.
                b'[' if matches!(self.byte_at(self.at), Some(b'"' | b'\'')) => self.end_word(),
                b',' | b']' if self.is_after_quote(at) => self.end_word(),
                _ => self.push_word_byte(byte, at..at + 1),
            }
        }
        self.finish_split_command(LinkToPreviousCommand::Other, take);
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        (at < self.end)
            .then(|| self.text.get(at).copied())
            .flatten()
    }

    fn is_after_quote(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.text.get(before));
        matches!(before, Some(b'"' | b'\''))
            && self.word.as_ref().is_some_and(|word| word.end == at)
    }

    fn push_word_byte(&mut self, byte: u8, place: Range<usize>) {
        self.word
            .get_or_insert_default()
            .push_shell_word_byte(byte, place);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else {
            return;
        };
        match std::mem::replace(&mut self.next_word, NextWordRole::Argument) {
            NextWordRole::Argument => self.command.words.push(word),
            NextWordRole::HereString => self.command.here_string = Some(word),
            NextWordRole::HereDocument => {
                self.command.here_document = self.here_document_lines(&word.text)
            }
            // The name of a redirected file is no argument.
            NextWordRole::File => {}
        }
    }

    fn finish_split_command(
        &mut self,
        next: LinkToPreviousCommand,
        take: &mut dyn FnMut(ScannedShellCommand),
    ) {
        self.end_word();
        self.next_word = NextWordRole::Argument;
        let command = std::mem::take(&mut self.command);
        // An empty command would replace the one that a pipe refers to.
        if !command.words.is_empty() {
            take(command);
        }
        // Belongs to the command that follows, which `take` above has made empty.
        self.command.start = next;
    }

    /// `|`, `|&`, `||`, `&` or `&&`.
    fn end_command_at_pipe_or_ampersand(
        &mut self,
        byte: u8,
        take: &mut dyn FnMut(ScannedShellCommand),
    ) {
        let next = self.byte_at(self.at);
        // `|&` is a pipe as well, `||` is not.
        let is_pipe = byte == b'|' && next != Some(b'|');
        if matches!(next, Some(b'|' | b'&')) {
            self.at += 1;
        }
        let start = if is_pipe {
            LinkToPreviousCommand::Pipe
        } else {
            LinkToPreviousCommand::Other
        };
        self.finish_split_command(start, take);
    }

    fn start_redirection(&mut self, byte: u8) {
        self.end_word();
        let mut length = 1;
        while self.byte_at(self.at) == Some(byte) {
            self.at += 1;
            length += 1;
        }
        self.next_word = match (byte, length) {
            (b'<', 2) => NextWordRole::HereDocument,
            (b'<', 3) => NextWordRole::HereString,
            _ => NextWordRole::File,
        };
    }

    /// Returns the lines after the current one up to the line `end`. They are not consumed, because
    /// they may be a script.
    fn here_document_lines(&self, end: &[u8]) -> Vec<ShellWord> {
        let end = end.strip_prefix(b"-").unwrap_or(end);
        let rest = self.text.get(self.at.saturating_sub(1)..self.end);
        let mut lines = rest.unwrap_or_default().split(|byte| *byte == b'\n');
        let mut at = self.at.saturating_sub(1);
        at += lines.next().unwrap_or_default().len() + 1;
        let body = lines.clone().take(MOST_LINES);
        // Without its end it may not be a here-document at all, but prose with `<<`.
        let Some(length) = body.into_iter().position(|line| line.trim_ascii() == end) else {
            return Vec::new();
        };
        let place = |line: &'_ [u8]| {
            let word = ShellWord::word_from_trimmed_line(line, at);
            at += line.len() + 1;
            word
        };
        lines.take(length).map(place).collect()
    }

    fn read_escape(&mut self, at: usize) {
        match self.byte_at(self.at) {
            // An escaped line break continues the line.
            Some(b'\n') => self.at += 1,
            Some(byte) => {
                self.at += 1;
                self.push_word_byte(byte, at..at + 2);
            }
            None => self.push_word_byte(b'\\', at..at + 1),
        }
    }

    fn read_quoted_shell_text(&mut self, at: usize, quote: u8) {
        let Some(close) = self.closing_quote(quote) else {
            return self.push_word_byte(quote, at..at + 1);
        };
        let word = self.word.get_or_insert_default();
        let inner = at + 1..close;
        let content = self.text.get(inner.clone()).unwrap_or_default();
        if content.iter().any(u8::is_ascii_whitespace) {
            word.quoted.push(inner);
        }
        let mut place = at + 1;
        while place < close {
            let byte = self.text.get(place).copied().unwrap_or_default();
            let next = self.text.get(place + 1).copied();
            match (quote, byte, next) {
                // In double quotes POSIX lets a backslash escape only these characters (and a line
                // break).
                (b'"', b'\\', Some(next @ (b'"' | b'\\' | b'$' | b'`'))) => {
                    word.push_shell_word_byte(next, place..place + 2);
                    place += 2;
                }
                _ => {
                    word.push_shell_word_byte(byte, place..place + 1);
                    place += 1;
                }
            }
        }
        word.end = close + 1;
        self.at = close + 1;
    }

    /// Returns the position of the quote that closes the one just before.
    fn closing_quote(&mut self, quote: u8) -> Option<usize> {
        let unclosed = self.unclosed.get_mut(usize::from(quote == b'"'))?;
        if *unclosed {
            return None;
        }
        let mut at = self.at;
        while at < self.end {
            match self.text.get(at) {
                Some(byte) if *byte == quote => return Some(at),
                Some(b'\\') if quote == b'"' => at += 2,
                _ => at += 1,
            }
        }
        // Remembered, or a text full of opening quotes would be searched to its end for each of
        // them.
        *unclosed = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        for_each_shell_command(text.as_bytes(), 0..text.len(), &mut |command| {
            let words = command.words.into_iter();
            commands.push(
                words
                    .map(|word| String::from_utf8(word.text).unwrap())
                    .collect(),
            );
        });
        commands
    }

    #[test]
    fn a_script_falls_into_commands_and_words() {
        assert_eq!(
            words("a 'b c' \"d\\\"e\"f && g | h\\ i; j 2>k <l\nm"),
            [
                vec!["a", "b c", "d\"ef"],
                vec!["g"],
                vec!["h i"],
                vec!["j", "2"],
                vec!["m"]
            ]
        );
        assert_eq!(words("[\"mysql\", \"-px y\"]"), [["mysql", "-px y"]]);
        assert_eq!(words("don't stop"), [["don't", "stop"]]);
        assert_eq!(words("a \\\n b"), [["a", "b"]]);
        assert_eq!(words("a \\"), [["a", "\\"]]);
        assert_eq!(words("\"a\\"), [["\"a\\"]]);
    }

    #[test]
    fn a_part_of_a_word_is_found_again_without_its_quotes() {
        for (text, part, expected) in [
            ("-px", 2..3, &["x"][..]),
            ("-p'x y'", 2..5, &["x y"]),
            ("-p'x'y", 2..4, &["x", "y"]),
            ("'-px y'", 2..5, &["x y"]),
            ("'-px'y", 2..4, &["x", "y"]),
            ("'x y'", 0..3, &["x y"]),
            ("-p\"x\"", 2..3, &["x"]),
            ("a\\ b", 1..3, &["\\ b"]),
            ("a", 0..2, &[]),
        ] {
            for_each_shell_command(text.as_bytes(), 0..text.len(), &mut |command| {
                let places = command.words[0].source_ranges_of_word_part(part.clone());
                let found: Vec<_> = places.into_iter().filter_map(|at| text.get(at)).collect();
                assert_eq!(found, expected, "{text}");
            });
        }
    }
}
