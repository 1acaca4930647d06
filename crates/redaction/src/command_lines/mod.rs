//! Redacts passwords on command lines. The meaning of a word depends on its program and its
//! position: `-p` is a password to one program, a port to another and a flag for parent folders to
//! a third. Therefore text is split into words as a shell would, and only words that a program
//! takes as a secret are redacted.

pub(crate) mod program_secrets;
mod shell_words;

use std::ops::Range;

use program_secrets::{
    ProgramSecretOption, SecretArgumentPosition, known_program_name, may_word_part_be_secret,
};
use shell_words::{LinkToPreviousCommand, ScannedShellCommand, ShellWord, for_each_shell_command};

use crate::redaction_marks;
use crate::rules::PROGRAMS;

/// The kind in the mark of such a secret.
const PASSWORD_KIND: &str = "password";
/// Most words of one command, its program's name included. Without a bound, prose in which many
/// words are names of programs would take quadratic time.
const MAX_WORDS: usize = 128;
/// Bytes of one command that are searched for an option before its words are parsed.
const MAX_SCANNED_BYTES: usize = 2048;
/// Deepest nesting of quoted scripts.
const MAX_DEPTH: u32 = 4;

/// Which quoted words are parsed as scripts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotedWordsToParseAsScripts {
    All,
    /// Only those without escapes; the others have already been parsed with their escapes undone.
    WithoutEscapes,
}

/// Returns the text without the passwords of its command lines; `None` if it has none.
pub(crate) fn redact_command_line_passwords(
    text: &[u8],
    quoted: QuotedWordsToParseAsScripts,
    told: &mut dyn FnMut(&[u8]),
) -> Option<Vec<u8>> {
    let mut places = Vec::new();
    find_command_line_secrets(text, 0..text.len(), quoted, 0, &mut places);
    // Several programs and nested scripts may find the same place; marks are set in order.
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let secrets = places.into_iter().map(|place| (place, PASSWORD_KIND));
    redaction_marks::replace_secrets_with_marks(text, secrets, told)
}

/// Redacts the passwords among the words of one command.
pub(crate) fn redact_command_words(words: &mut [String]) {
    let read: Vec<_> = words
        .iter()
        .map(|word| ShellWord::shell_word_from_argument(word))
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
        let hidden =
            redaction_marks::replace_secrets_with_marks(word.as_bytes(), secrets, &mut |_| {});
        if let Some(hidden) = hidden.and_then(|hidden| String::from_utf8(hidden).ok()) {
            *word = hidden;
        }
    }
}

/// Returns whether the text after a program's name may contain a secret argument.
pub(crate) fn may_arguments_hold_secrets(name: &str, text: &[u8]) -> bool {
    let text = text.get(..MAX_SCANNED_BYTES).unwrap_or(text);
    let programs = PROGRAMS.iter();
    let mut named = programs.filter(|program| program.programs.contains(&name));
    named.any(|program| program.may_contain_program_secret_argument(text))
}

fn find_command_line_secrets(
    text: &[u8],
    part: Range<usize>,
    quoted: QuotedWordsToParseAsScripts,
    depth: u32,
    places: &mut Vec<Range<usize>>,
) {
    // A JSON text has been searched string by string before; parsing a string with escapes again
    // would find words that are not there.
    let is_read = |script: &&Range<usize>| match quoted {
        QuotedWordsToParseAsScripts::All => depth < MAX_DEPTH,
        QuotedWordsToParseAsScripts::WithoutEscapes => {
            let script = text.get((*script).clone()).unwrap_or_default();
            depth < MAX_DEPTH && !script.contains(&b'\\')
        }
    };
    let mut before: Option<ScannedShellCommand> = None;
    for_each_shell_command(text, part, &mut |command| {
        for word in &command.words {
            // `bash -c "mysql -pSECRET"`: a quoted word may be a script.
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
                        .flat_map(|word| word.source_ranges_of_word_part(part.clone())),
                );
            }
        };
        add(&command.words, argument_secrets(&command.words));
        if reads_secret_from_stdin(&command.words) {
            if let Some(word) = &command.here_string {
                let words = std::slice::from_ref(word);
                add(
                    words,
                    keep_possibly_secret_word_parts(words, vec![(0, 0..word.text.len())]),
                );
            }
            for word in secret_heredoc_lines(&command) {
                let words = std::slice::from_ref(word);
                add(
                    words,
                    keep_possibly_secret_word_parts(words, vec![(0, 0..word.text.len())]),
                );
            }
            // `echo SECRET | program --password-stdin`: the secret is in the command before.
            if let Some(before) = &before
                && command.start == LinkToPreviousCommand::Pipe
            {
                add(
                    &before.words,
                    keep_possibly_secret_word_parts(
                        &before.words,
                        echoed_word_positions(&before.words),
                    ),
                );
            }
        }
        // `program --pass-file <(echo SECRET)`: here the secret is in the command after.
        if command.start == LinkToPreviousCommand::Substitution
            && before
                .as_ref()
                .is_some_and(|before| command_expects_secret_file_next(&before.words))
        {
            add(
                &command.words,
                keep_possibly_secret_word_parts(
                    &command.words,
                    echoed_word_positions(&command.words),
                ),
            );
        }
        before = Some(command);
    });
}

/// Returns the secrets among the arguments of every program that the command names: the words
/// before a program may be a wrapper, or prose.
fn argument_secrets(words: &[ShellWord]) -> Vec<SecretArgumentPosition> {
    let mut found = Vec::new();
    for (nth, program) in find_secret_taking_programs(words) {
        program.collect_secret_arguments(
            words_up_to_argument_limit(words, nth),
            nth + 1,
            &mut found,
        );
    }
    keep_possibly_secret_word_parts(words, found)
}

/// Returns the words up to the bound for the arguments of the program at this index.
fn words_up_to_argument_limit(words: &[ShellWord], program: usize) -> &[ShellWord] {
    let end = words.len().min(program + MAX_WORDS);
    words.get(..end).unwrap_or(words)
}

fn keep_possibly_secret_word_parts(
    words: &[ShellWord],
    found: Vec<SecretArgumentPosition>,
) -> Vec<SecretArgumentPosition> {
    let found = found.into_iter();
    found
        .filter(|part| may_word_part_be_secret(words, part))
        .collect()
}

fn find_secret_taking_programs(
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
    find_secret_taking_programs(words).any(|(nth, program)| {
        program.reads_secret_from_stdin(words_up_to_argument_limit(words, nth), nth + 1)
    })
}

fn command_expects_secret_file_next(words: &[ShellWord]) -> bool {
    find_secret_taking_programs(words).any(|(nth, program)| {
        program.expects_secret_file_next(words_up_to_argument_limit(words, nth), nth + 1)
    })
}

/// Returns the lines of a here-document that a program reads as a secret. `sudo` and `su` read only
/// the first line and leave the rest to the program that they run.
fn secret_heredoc_lines(command: &ScannedShellCommand) -> &[ShellWord] {
    let lines = &command.here_document;
    // `sudo -S tee FILE <<EOF`: the first line is the password, the rest is the input of `tee`.
    let runs_another = |word: &ShellWord| matches!(&*word.text, b"sudo" | b"su");
    match command.words.iter().any(runs_another) {
        true => lines.get(..1).unwrap_or_default(),
        false => lines,
    }
}

/// Returns the words that `echo` or `printf` writes.
fn echoed_word_positions(words: &[ShellWord]) -> Vec<SecretArgumentPosition> {
    let is_writer = |word: &ShellWord| matches!(&*word.text, b"echo" | b"printf");
    let Some(at) = words.iter().position(is_writer) else {
        return Vec::new();
    };
    let rest = words.iter().enumerate().skip(at + 1);
    let operands = rest.filter(|(_, word)| !matches!(word.text.first(), None | Some(b'-')));
    // A format of `printf` is not part of the secret.
    let is_format = |word: &ShellWord| word.text.first() == Some(&b'%');
    operands
        .filter(|(_, word)| !is_format(word))
        .map(|(nth, word)| (nth, 0..word.text.len()))
        .collect()
}
