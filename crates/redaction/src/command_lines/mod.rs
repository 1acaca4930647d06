//! Passwords on command lines. What a word means is known by its program and its place: `-p` is a
//! password to one program, a port to another and a folder's parents to a third. So words are read
//! as a shell splits them, and only those that a program takes for a secret are hidden.

pub(crate) mod programs;
mod shell_words;

use std::ops::Range;

use programs::{ProgramSecret, WordPart, is_secret, program_name};
use shell_words::{CommandStart, ShellCommand, ShellWord, each_command};

use crate::marks;
use crate::rules::PROGRAMS;

/// What stands in place of such a secret.
const KIND: &str = "password";
/// Words of one command, its program's name included. Prose may name programs in each of its words.
const MOST_WORDS: usize = 128;
/// Bytes of one command in which an option is looked for before its words are read.
const LONGEST_COMMAND: usize = 2048;
/// Scripts in quotes in scripts in quotes.
const DEEPEST: u32 = 4;

/// Which quoted words are read as scripts of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotedScripts {
    All,
    /// Those with escapes have been read already, without them.
    WithoutEscapes,
}

/// The text without the passwords of its command lines; `None` if it has none.
pub(crate) fn redacted(
    text: &[u8],
    quoted: QuotedScripts,
    told: &mut dyn FnMut(&[u8]),
) -> Option<Vec<u8>> {
    let mut places = Vec::new();
    find(text, 0..text.len(), quoted, 0, &mut places);
    places.sort_unstable_by_key(|place| (place.start, place.end));
    let secrets = places.into_iter().map(|place| (place, KIND));
    marks::replaced(text, secrets, told)
}

/// Hides the passwords among the words of one command.
pub(crate) fn redact_words(words: &mut [String]) {
    let read: Vec<_> = words
        .iter()
        .map(|word| ShellWord::of_argument(word))
        .collect();
    let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); words.len()];
    for (nth, part) in secrets_of(&read) {
        if let Some(places) = places.get_mut(nth) {
            places.push(part);
        }
    }
    for (word, mut places) in words.iter_mut().zip(places) {
        places.sort_unstable_by_key(|place| (place.start, place.end));
        let secrets = places.into_iter().map(|place| (place, KIND));
        let hidden = marks::replaced(word.as_bytes(), secrets, &mut |_| {});
        if let Some(hidden) = hidden.and_then(|hidden| String::from_utf8(hidden).ok()) {
            *word = hidden;
        }
    }
}

/// Whether what follows the name of a program makes its arguments worth reading.
pub(crate) fn may_hold_secrets(name: &str, text: &[u8]) -> bool {
    let text = text.get(..LONGEST_COMMAND).unwrap_or(text);
    let programs = PROGRAMS.iter();
    let mut named = programs.filter(|program| program.programs.contains(&name));
    named.any(|program| program.may_apply(text))
}

fn find(
    text: &[u8],
    part: Range<usize>,
    quoted: QuotedScripts,
    depth: u32,
    places: &mut Vec<Range<usize>>,
) {
    let is_read = |script: &&Range<usize>| match quoted {
        QuotedScripts::All => depth < DEEPEST,
        QuotedScripts::WithoutEscapes => {
            let script = text.get((*script).clone()).unwrap_or_default();
            depth < DEEPEST && !script.contains(&b'\\')
        }
    };
    let mut before: Option<ShellCommand> = None;
    each_command(text, part, &mut |command| {
        for word in &command.words {
            for script in word.quoted.iter().filter(is_read) {
                find(text, script.clone(), quoted, depth + 1, places);
            }
        }
        let mut add = |words: &[ShellWord], found: Vec<WordPart>| {
            for (nth, part) in found {
                places.extend(
                    words
                        .get(nth)
                        .into_iter()
                        .flat_map(|word| word.places(part.clone())),
                );
            }
        };
        add(&command.words, secrets_of(&command.words));
        if reads_secret(&command.words) {
            if let Some(word) = &command.here_string {
                let words = std::slice::from_ref(word);
                add(words, secrets_in(words, vec![(0, 0..word.text.len())]));
            }
            for word in secret_lines(&command) {
                let words = std::slice::from_ref(word);
                add(words, secrets_in(words, vec![(0, 0..word.text.len())]));
            }
            if let Some(before) = &before
                && command.start == CommandStart::Pipe
            {
                add(
                    &before.words,
                    secrets_in(&before.words, written(&before.words)),
                );
            }
        }
        if command.start == CommandStart::Substitution
            && before
                .as_ref()
                .is_some_and(|before| reads_secret_file(&before.words))
        {
            add(
                &command.words,
                secrets_in(&command.words, written(&command.words)),
            );
        }
        before = Some(command);
    });
}

/// The secrets among the arguments of any program that a word of the command starts: what comes
/// before may be a wrapper, or prose.
fn secrets_of(words: &[ShellWord]) -> Vec<WordPart> {
    let mut found = Vec::new();
    for (nth, program) in started(words) {
        program.secrets(arguments(words, nth), nth + 1, &mut found);
    }
    secrets_in(words, found)
}

/// The words up to where the arguments of the program at this one end at the latest.
fn arguments(words: &[ShellWord], program: usize) -> &[ShellWord] {
    let end = words.len().min(program + MOST_WORDS);
    words.get(..end).unwrap_or(words)
}

fn secrets_in(words: &[ShellWord], found: Vec<WordPart>) -> Vec<WordPart> {
    let found = found.into_iter();
    found.filter(|part| is_secret(words, part)).collect()
}

fn started(words: &[ShellWord]) -> impl Iterator<Item = (usize, &'static ProgramSecret)> {
    let named = words.iter().enumerate();
    let named = named.filter_map(|(nth, word)| Some((nth, program_name(word)?)));
    named.flat_map(|(nth, name)| {
        let programs = PROGRAMS.iter();
        programs
            .filter(move |program| program.programs.contains(&name))
            .map(move |program| (nth, program))
    })
}

fn reads_secret(words: &[ShellWord]) -> bool {
    started(words).any(|(nth, program)| program.reads_secret(arguments(words, nth), nth + 1))
}

fn reads_secret_file(words: &[ShellWord]) -> bool {
    started(words).any(|(nth, program)| program.reads_secret_file(arguments(words, nth), nth + 1))
}

/// The lines of its here-document that a program takes for a secret. Behind the first one a
/// program that runs another one leaves the rest to it.
fn secret_lines(command: &ShellCommand) -> &[ShellWord] {
    let lines = &command.here_document;
    let runs_another = |word: &ShellWord| matches!(&*word.text, b"sudo" | b"su");
    match command.words.iter().any(runs_another) {
        true => lines.get(..1).unwrap_or_default(),
        false => lines,
    }
}

/// What `echo` or `printf` writes.
fn written(words: &[ShellWord]) -> Vec<WordPart> {
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
