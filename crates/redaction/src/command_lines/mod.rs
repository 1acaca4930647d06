//! Passwords on command lines. What a word means is known by its program and its place: `-p` is a
//! password to one program, a port to another and a folder's parents to a third. So words are read
//! as a shell splits them, and only those that a program takes for a secret are hidden.

pub(crate) mod program_secrets;
mod shell_words;

use std::ops::Range;

use program_secrets::{
    ProgramSecretOption, SecretArgumentPosition, known_program_name, may_word_part_be_secret,
};
use shell_words::{CommandConnection, ShellCommand, ShellWord, for_each_shell_command};

use crate::redaction_marks;
use crate::rules::PROGRAMS;

/// What stands in place of such a secret.
const PASSWORD_KIND: &str = "password";
/// Words of one command, its program's name included. Prose may name programs in each of its words.
const MAX_WORDS: usize = 128;
/// Bytes of one command in which an option is looked for before its words are read.
const MAX_SCANNED_BYTES: usize = 2048;
/// Scripts in quotes in scripts in quotes.
const MAX_DEPTH: u32 = 4;

/// Which quoted words are read as scripts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotedWordsReadAsScripts {
    All,
    /// Those with escapes have been read already, without them.
    WithoutEscapes,
}

/// The text without the passwords of its command lines; `None` if it has none.
pub(crate) fn redact_command_lines(
    text: &[u8],
    quoted: QuotedWordsReadAsScripts,
    told: &mut dyn FnMut(&[u8]),
) -> Option<Vec<u8>> {
    let mut places = Vec::new();
    find_command_line_secrets(text, 0..text.len(), quoted, 0, &mut places);
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let secrets = places.into_iter().map(|place| (place, PASSWORD_KIND));
    redaction_marks::replace_with_marks(text, secrets, told)
}

/// Hides the passwords among the words of one command.
pub(crate) fn redact_command_words(words: &mut [String]) {
    let read: Vec<_> = words
        .iter()
        .map(|word| ShellWord::from_argument(word))
        .collect();
    let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); words.len()];
    for (nth, part) in argument_secrets(&read) {
        if let Some(places) = places.get_mut(nth) {
            places.push(part);
        }
    }
    for (word, mut places) in words.iter_mut().zip(places) {
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let secrets = places.into_iter().map(|place| (place, PASSWORD_KIND));
        let hidden = redaction_marks::replace_with_marks(word.as_bytes(), secrets, &mut |_| {});
        if let Some(hidden) = hidden.and_then(|hidden| String::from_utf8(hidden).ok()) {
            *word = hidden;
        }
    }
}

/// Whether what follows the name of a program makes its arguments worth reading.
pub(crate) fn may_arguments_hold_secrets(name: &str, text: &[u8]) -> bool {
    let text = text.get(..MAX_SCANNED_BYTES).unwrap_or(text);
    let programs = PROGRAMS.iter();
    let mut named = programs.filter(|program| program.programs.contains(&name));
    named.any(|program| program.may_contain_program_secret(text))
}

fn find_command_line_secrets(
    text: &[u8],
    part: Range<usize>,
    quoted: QuotedWordsReadAsScripts,
    depth: u32,
    places: &mut Vec<Range<usize>>,
) {
    let is_read = |script: &&Range<usize>| match quoted {
        QuotedWordsReadAsScripts::All => depth < MAX_DEPTH,
        QuotedWordsReadAsScripts::WithoutEscapes => {
            let script = text.get((*script).clone()).unwrap_or_default();
            depth < MAX_DEPTH && !script.contains(&b'\\')
        }
    };
    let mut before: Option<ShellCommand> = None;
    for_each_shell_command(text, part, &mut |command| {
        for word in &command.words {
            for script in word.quoted.iter().filter(is_read) {
                find_command_line_secrets(text, script.clone(), quoted, depth + 1, places);
            }
        }
        let mut add = |words: &[ShellWord], found: Vec<SecretArgumentPosition>| {
            for (nth, part) in found {
                places.extend(
                    words
                        .get(nth)
                        .into_iter()
                        .flat_map(|word| word.word_source_ranges(part.clone())),
                );
            }
        };
        add(&command.words, argument_secrets(&command.words));
        if reads_secret_from_stdin(&command.words) {
            if let Some(word) = &command.here_string {
                let words = std::slice::from_ref(word);
                add(
                    words,
                    filter_secret_word_parts(words, vec![(0, 0..word.text.len())]),
                );
            }
            for word in secret_heredoc_lines(&command) {
                let words = std::slice::from_ref(word);
                add(
                    words,
                    filter_secret_word_parts(words, vec![(0, 0..word.text.len())]),
                );
            }
            if let Some(before) = &before
                && command.start == CommandConnection::Pipe
            {
                add(
                    &before.words,
                    filter_secret_word_parts(&before.words, echoed_words(&before.words)),
                );
            }
        }
        if command.start == CommandConnection::Substitution
            && before
                .as_ref()
                .is_some_and(|before| reads_secret_file(&before.words))
        {
            add(
                &command.words,
                filter_secret_word_parts(&command.words, echoed_words(&command.words)),
            );
        }
        before = Some(command);
    });
}

/// The secrets among the arguments of any program that a word of the command starts: what comes
/// before may be a wrapper, or prose.
fn argument_secrets(words: &[ShellWord]) -> Vec<SecretArgumentPosition> {
    let mut found = Vec::new();
    for (nth, program) in programs_with_secret_arguments(words) {
        program.collect_secret_arguments(program_argument_words(words, nth), nth + 1, &mut found);
    }
    filter_secret_word_parts(words, found)
}

/// The words up to where the arguments of the program at this one end at the latest.
fn program_argument_words(words: &[ShellWord], program: usize) -> &[ShellWord] {
    let end = words.len().min(program + MAX_WORDS);
    words.get(..end).unwrap_or(words)
}

fn filter_secret_word_parts(
    words: &[ShellWord],
    found: Vec<SecretArgumentPosition>,
) -> Vec<SecretArgumentPosition> {
    let found = found.into_iter();
    found
        .filter(|part| may_word_part_be_secret(words, part))
        .collect()
}

fn programs_with_secret_arguments(
    words: &[ShellWord],
) -> impl Iterator<Item = (usize, &'static ProgramSecretOption)> {
    let named = words.iter().enumerate();
    let named = named.filter_map(|(nth, word)| Some((nth, known_program_name(word)?)));
    named.flat_map(|(nth, name)| {
        let programs = PROGRAMS.iter();
        programs
            .filter(move |program| program.programs.contains(&name))
            .map(move |program| (nth, program))
    })
}

fn reads_secret_from_stdin(words: &[ShellWord]) -> bool {
    programs_with_secret_arguments(words).any(|(nth, program)| {
        program.reads_secret_from_stdin(program_argument_words(words, nth), nth + 1)
    })
}

fn reads_secret_file(words: &[ShellWord]) -> bool {
    programs_with_secret_arguments(words).any(|(nth, program)| {
        program.expects_secret_file_next(program_argument_words(words, nth), nth + 1)
    })
}

/// The lines of its here-document that a program takes for a secret. Behind the first one a
/// program that runs another one leaves the rest to it.
fn secret_heredoc_lines(command: &ShellCommand) -> &[ShellWord] {
    let lines = &command.here_document;
    let runs_another = |word: &ShellWord| matches!(&*word.text, b"sudo" | b"su");
    match command.words.iter().any(runs_another) {
        true => lines.get(..1).unwrap_or_default(),
        false => lines,
    }
}

/// What `echo` or `printf` writes.
fn echoed_words(words: &[ShellWord]) -> Vec<SecretArgumentPosition> {
    let is_writer = |word: &ShellWord| matches!(&*word.text, b"echo" | b"printf");
    let Some(at) = words.iter().position(is_writer) else {
        return Vec::new();
    };
    let rest = words.iter().enumerate().skip(at + 1);
    let operands = rest.filter(|(_, word)| !matches!(word.text.first(), None | Some(b'-')));
    // A format is none, unless there is nothing else.
    let is_format = |word: &ShellWord| word.text.first() == Some(&b'%');
    operands
        .filter(|(_, word)| !is_format(word))
        .map(|(nth, word)| (nth, 0..word.text.len()))
        .collect()
}
