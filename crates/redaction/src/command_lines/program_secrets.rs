//! Finds the passwords and tokens in the arguments of known programs. The table of programs is
//! `rules/programs.json`.

use std::ops::Range;

use memchr::memmem;

use super::shell_words::ShellWord;
use crate::rules::{MAP, PROGRAM_NAMES, is_literal_secret};
use crate::trigram;
use crate::variables::{is_secret_variable_name, mentions_secret_variable};

/// One way in which some programs take a secret.
#[derive(Debug)]
pub(crate) struct ProgramSecretOption {
    pub(crate) programs: &'static [&'static str],
    /// Words that must come before the secret, in this order.
    pub(crate) after: &'static [&'static str],
    /// Whether a short option may end a cluster, such as `-su`.
    pub(crate) clusters: bool,
    /// Whether a value is always a word of its own: `-keyout` is not `-k`.
    pub(crate) separate: bool,
    pub(crate) place: SecretArgumentPlace,
}

/// Where the secret is.
#[derive(Debug)]
pub(crate) enum SecretArgumentPlace {
    /// Only in the same word as the option: `-pSECRET`.
    Attached(&'static [&'static str]),
    /// The option's value, after this prefix: `-p SECRET`, `-pSECRET`, `--pass=SECRET`.
    OptionValue {
        options: &'static [&'static str],
        prefix: &'static str,
    },
    /// After a user's name in the option's value: `-u USER:SECRET`.
    AfterUser {
        options: &'static [&'static str],
        separator: char,
    },
    /// After the name in the option's value: `--from-literal=NAME=SECRET`.
    PairValue(&'static [&'static str]),
    /// The n-th argument that is no option.
    Operand(usize),
    /// The last argument that is no option, if this flag is given.
    LastOperand { flag: &'static str },
    /// An operand `USER:SECRET@HOST`, or with another separator.
    Login(char),
    /// Behind an operand that begins so: `net use \\\\HOST\\SHARE SECRET`.
    Behind(&'static [&'static str]),
    /// The value of an operand `NAME=SECRET` with one of these names, or the operand after the
    /// name; with any name, if the list is empty.
    Setting(&'static [&'static str]),
    /// The operand after the name of a secret variable, if this option is given.
    Variable { option: &'static str },
    /// The content of the file that follows one of these options.
    File(&'static [&'static str]),
    /// The program's standard input, if one of these arguments is given.
    StandardInput(&'static [&'static str]),
}

/// A secret in the arguments of a program: the number of its word, and its place within.
pub(crate) type SecretArgumentPosition = (usize, Range<usize>);

impl ProgramSecretOption {
    /// Returns whether this program's name is at this place of a text, as a command would be. An
    /// escape such as `\\n` may precede it.
    pub(crate) fn is_program_named_at_offset(name: &str, text: &[u8], at: usize) -> bool {
        let (before, rest) = text.split_at_checked(at).unwrap_or_default();
        let in_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
        let is_start = match before {
            [.., b'\\', b'n' | b't' | b'r'] => true,
            [.., last] => !in_word(last),
            [] => true,
        };
        is_start
            && rest.starts_with(name.as_bytes())
            && rest
                .get(name.len())
                .is_none_or(|next| b" \t\r\n\\\"';|&<)`".contains(next))
    }

    /// Returns whether a text that may be the program's arguments contains the words and options
    /// for a secret.
    pub(crate) fn may_contain_program_secret_argument(&self, text: &[u8]) -> bool {
        let has = |word: &&str| memmem::find(text, word.as_bytes()).is_some();
        let options = match &self.place {
            SecretArgumentPlace::Attached(options)
            | SecretArgumentPlace::OptionValue { options, .. }
            | SecretArgumentPlace::AfterUser { options, .. }
            | SecretArgumentPlace::PairValue(options)
            | SecretArgumentPlace::Behind(options)
            | SecretArgumentPlace::File(options)
            | SecretArgumentPlace::StandardInput(options) => *options,
            SecretArgumentPlace::Variable { .. } if !mentions_secret_variable(text) => &[],
            SecretArgumentPlace::Operand(_)
            | SecretArgumentPlace::LastOperand { .. }
            | SecretArgumentPlace::Login(_)
            | SecretArgumentPlace::Setting(_)
            | SecretArgumentPlace::Variable { .. } => &[""],
        };
        // A cluster does not contain the option literally, so the text cannot rule it out.
        self.after.iter().all(&has) && (self.clusters || options.iter().any(has))
    }

    /// Adds the secrets in the arguments, which begin at this word.
    pub(crate) fn collect_secret_arguments(
        &self,
        words: &[ShellWord],
        first: usize,
        found: &mut Vec<SecretArgumentPosition>,
    ) {
        let Some(rest) = self.secret_arguments_start(words, first) else {
            return;
        };
        match &self.place {
            SecretArgumentPlace::Attached(options) => {
                for (nth, word) in words.iter().enumerate().skip(rest) {
                    let lengths = options
                        .iter()
                        .filter(|option| has_attached_value(word, option));
                    // The longest option wins: `--password` and not `--pass` with the rest of the
                    // name.
                    if let Some(length) = lengths.map(|option| option.len()).max() {
                        found.push((nth, length..word.text.len()));
                    }
                }
            }
            SecretArgumentPlace::OptionValue { options, prefix } => {
                for (nth, value) in self.secret_option_value_positions(words, rest, options) {
                    let text = word_part_bytes(words, nth, &value);
                    if text.starts_with(prefix.as_bytes()) {
                        found.push((nth, value.start + prefix.len()..value.end));
                    }
                }
            }
            SecretArgumentPlace::AfterUser { options, separator } => {
                for (nth, value) in self.secret_option_value_positions(words, rest, options) {
                    found.extend(secret_position_after_separator(
                        words, nth, &value, *separator,
                    ));
                }
            }
            SecretArgumentPlace::PairValue(options) => {
                for (nth, value) in self.secret_option_value_positions(words, rest, options) {
                    found.extend(secret_position_after_separator(words, nth, &value, '='));
                }
            }
            SecretArgumentPlace::Operand(nth) => {
                found.extend(
                    operand_indexes(words, rest)
                        .nth(*nth)
                        .map(|nth| secret_position_of_whole_word(words, nth)),
                );
            }
            SecretArgumentPlace::LastOperand { flag } => {
                let flagged = flag.is_empty() || has_flag(words, rest, flag);
                let last = operand_indexes(words, rest).last().filter(|_| flagged);
                found.extend(last.map(|nth| secret_position_of_whole_word(words, nth)));
            }
            SecretArgumentPlace::Login(separator) => {
                for nth in operand_indexes(words, rest) {
                    found.extend(secret_in_userinfo_argument(words, nth, *separator));
                }
            }
            SecretArgumentPlace::Behind(prefixes) => {
                let begins = |word: &&ShellWord| {
                    prefixes
                        .iter()
                        .any(|prefix| word.text.starts_with(prefix.as_bytes()))
                };
                let place = words.iter().skip(rest).position(|word| begins(&word));
                let next = place.map(|nth| rest + nth + 1);
                let next = next.filter(|nth| {
                    let first = words.get(*nth).and_then(|word| word.text.first());
                    // `net use` takes switches with `/`, and `*` asks for the password.
                    !matches!(first, None | Some(b'-' | b'/' | b'*'))
                });
                found.extend(next.map(|nth| secret_position_of_whole_word(words, nth)));
            }
            SecretArgumentPlace::Setting(names) => {
                find_name_value_secrets(words, rest, names, found)
            }
            SecretArgumentPlace::Variable { option } => {
                let mut operands = operand_indexes(words, rest);
                let name = operands.next().zip(operands.next());
                let flagged = option.is_empty()
                    || words
                        .iter()
                        .skip(rest)
                        .any(|word| word.text.starts_with(option.as_bytes()));
                found.extend(name.filter(|_| flagged).and_then(|(name, value)| {
                    let is_secret = is_secret_variable_name(&words.get(name)?.text);
                    is_secret.then(|| secret_position_of_whole_word(words, value))
                }));
            }
            // These secrets are in another command or a here-document; the caller looks for them.
            SecretArgumentPlace::StandardInput(_) | SecretArgumentPlace::File(_) => {}
        }
    }

    /// Returns whether the process substitution that follows provides a file with a secret.
    pub(crate) fn expects_secret_file_next(&self, words: &[ShellWord], first: usize) -> bool {
        let SecretArgumentPlace::File(options) = &self.place else {
            return false;
        };
        let last = words.iter().skip(first).next_back();
        options.iter().any(|option| {
            let is_last = |word: &ShellWord| {
                let text = word.text.strip_suffix(b"=").unwrap_or(&word.text);
                text == option.as_bytes()
            };
            option.is_empty() || last.is_some_and(is_last)
        })
    }

    /// Returns whether the program reads a secret from its standard input.
    pub(crate) fn reads_secret_from_stdin(&self, words: &[ShellWord], first: usize) -> bool {
        let SecretArgumentPlace::StandardInput(options) = &self.place else {
            return false;
        };
        let Some(rest) = self.secret_arguments_start(words, first) else {
            return false;
        };
        let mut words = words.iter().skip(rest);
        options.contains(&"")
            || words.any(|word| {
                let is_given = |option: &&str| {
                    word.text == option.as_bytes()
                        || self.clusters && is_cluster_ending_with_option(word, option)
                };
                options.iter().any(is_given)
            })
    }

    /// Returns where the arguments begin that may contain the secret; `None` if a word that must
    /// precede them is missing.
    fn secret_arguments_start(&self, words: &[ShellWord], first: usize) -> Option<usize> {
        self.after.iter().try_fold(first, |from, wanted| {
            let mut rest = words.iter().enumerate().skip(from);
            rest.find(|(_, word)| word.text == wanted.as_bytes())
                .map(|(nth, _)| nth + 1)
        })
    }

    /// Returns the values of these options.
    fn secret_option_value_positions(
        &self,
        words: &[ShellWord],
        rest: usize,
        options: &[&str],
    ) -> Vec<SecretArgumentPosition> {
        let mut found = Vec::new();
        for (nth, word) in words.iter().enumerate().skip(rest) {
            for option in options {
                let is_short = option.len() == 2;
                if word.text == option.as_bytes()
                    || self.clusters && is_short && is_cluster_ending_with_option(word, option)
                {
                    let next = words.get(nth + 1);
                    // A word that begins with `-` is the next option, not a value.
                    let next = next.filter(|next| next.text.first() != Some(&b'-'));
                    found.extend(next.map(|_| secret_position_of_whole_word(words, nth + 1)));
                } else if has_attached_value(word, option) {
                    let attached = option.len()..word.text.len();
                    match word.text.get(option.len()) {
                        Some(b'=') => found.push((nth, attached.start + 1..attached.end)),
                        Some(_) if is_short && !self.separate => found.push((nth, attached)),
                        _ => {}
                    }
                }
            }
        }
        found
    }
}

/// Returns the program of the table that this word names.
pub(crate) fn known_program_name(word: &ShellWord) -> Option<&'static str> {
    // A path names the program as well, and so does a Windows name.
    let name = word.text.rsplit(|byte| *byte == b'/').next()?;
    let name = name.strip_suffix(b".exe").unwrap_or(name);
    let place = match name {
        // The table has names of two letters with the blank after them.
        [first, second] => trigram::leading_trigram_index(&[*first, *second, b' ']),
        _ => trigram::leading_trigram_index(name),
    };
    if !trigram::trigram_map_contains_index(&MAP, place) {
        return None;
    }
    let first = PROGRAM_NAMES.partition_point(|(hash, _)| *hash < place);
    let same = PROGRAM_NAMES
        .get(first..)?
        .iter()
        .take_while(|(hash, _)| *hash == place);
    same.map(|(_, known)| *known)
        .find(|known| known.as_bytes() == name)
}

/// Returns whether this part of a word can be a secret.
pub(crate) fn may_word_part_be_secret(
    words: &[ShellWord],
    (nth, part_of): &SecretArgumentPosition,
) -> bool {
    let secret = word_part_bytes(words, *nth, part_of);
    is_literal_secret(secret) && !matches!(secret, b"-" | b"\"\"" | b"''")
}

fn word_part_bytes<'w>(words: &'w [ShellWord], nth: usize, part: &Range<usize>) -> &'w [u8] {
    let text = words.get(nth).map(|word| word.text.get(part.clone()));
    text.flatten().unwrap_or_default()
}

fn secret_position_of_whole_word(words: &[ShellWord], nth: usize) -> SecretArgumentPosition {
    (nth, 0..words.get(nth).map_or(0, |word| word.text.len()))
}

/// Returns the part after the first separator.
fn secret_position_after_separator(
    words: &[ShellWord],
    nth: usize,
    value: &Range<usize>,
    by: char,
) -> Option<SecretArgumentPosition> {
    let text = word_part_bytes(words, nth, value);
    let at = text.iter().position(|byte| char::from(*byte) == by)?;
    Some((nth, value.start + at + 1..value.end))
}

/// Returns the secret of `USER:SECRET@HOST` or `USER/SECRET`.
fn secret_in_userinfo_argument(
    words: &[ShellWord],
    nth: usize,
    separator: char,
) -> Option<SecretArgumentPosition> {
    let (_, all) = secret_position_of_whole_word(words, nth);
    let text = word_part_bytes(words, nth, &all);
    // The last `@`: a password may contain others.
    let host = text.iter().rposition(|byte| *byte == b'@');
    // Without a host, `a/b` is a login and `a:b` is not.
    let end = host.or((separator == '/').then_some(text.len()))?;
    let at = text
        .iter()
        .position(|byte| char::from(*byte) == separator)?;
    // A domain may stand before the user.
    let is_name = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || b"_-.#$".contains(byte)
            || separator == ':' && b"/\\".contains(byte)
    };
    // A URL such as `https://host` has a `:` as well, but is followed by slashes.
    let is_user = at > 0 && text.get(..at)?.iter().all(is_name);
    let is_place = text.get(at..)?.starts_with(b"://");
    (is_user && !is_place && at + 1 < end).then_some((nth, at + 1..end))
}

/// Finds the secrets of `NAME=SECRET ...`, or of `NAME SECRET ...` if there is no `=`.
fn find_name_value_secrets(
    words: &[ShellWord],
    rest: usize,
    names: &[&str],
    found: &mut Vec<SecretArgumentPosition>,
) {
    let is_meant = |name: &[u8]| {
        names.is_empty()
            || names
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:@".contains(byte);
    let operands: Vec<usize> = operand_indexes(words, rest).collect();
    let mut pairs = 0;
    for nth in &operands {
        let (_, all) = secret_position_of_whole_word(words, *nth);
        let text = word_part_bytes(words, *nth, &all);
        let Some(at) = text.iter().position(|byte| *byte == b'=') else {
            continue;
        };
        let name = text.get(..at).unwrap_or_default();
        if name.iter().all(is_name) {
            pairs += 1;
            // A registry may stand before the name: `//r.example.com/:_password`.
            let name = name.rsplit(|byte| *byte == b':').next().unwrap_or(name);
            if is_meant(name) {
                found.push((*nth, at + 1..all.end));
            }
        }
    }
    // `NAME=VALUE` and `NAME VALUE` are not mixed in one command.
    if pairs > 0 {
        return;
    }
    let mut operands = operands.into_iter();
    while let Some(name) = operands.next() {
        let (_, all) = secret_position_of_whole_word(words, name);
        let text = word_part_bytes(words, name, &all);
        if is_meant(text.rsplit(|byte| *byte == b':').next().unwrap_or(text)) {
            found.extend(
                operands
                    .next()
                    .map(|value| secret_position_of_whole_word(words, value)),
            );
            // With any name allowed, only the first two operands are a pair.
            if names.is_empty() {
                return;
            }
        }
    }
}

/// Returns the indexes of the words that are no options.
fn operand_indexes(words: &[ShellWord], rest: usize) -> impl Iterator<Item = usize> {
    let words = words.iter().enumerate().skip(rest);
    words
        .filter(|(_, word)| word.text.first() != Some(&b'-'))
        .map(|(nth, _)| nth)
}

fn has_flag(words: &[ShellWord], rest: usize, flag: &str) -> bool {
    words.iter().skip(rest).any(|word| {
        let short = word.text.strip_prefix(b"-");
        let short = short.filter(|flags| flags.iter().all(u8::is_ascii_alphabetic));
        short.is_some_and(|flags| flag.bytes().all(|flag| flags.contains(&flag)))
    })
}

/// Returns whether the word is a cluster that ends with this option: `-su` for `-u`.
fn is_cluster_ending_with_option(word: &ShellWord, option: &str) -> bool {
    let Some(flags) = word.text.strip_prefix(b"-") else {
        return false;
    };
    // Longer ones are taken for long options with a single dash.
    (2..=6).contains(&flags.len())
        && flags.iter().all(u8::is_ascii_alphabetic)
        && option.len() == 2
        && flags.last() == option.as_bytes().last()
}

/// Returns whether the word is the option with something attached.
fn has_attached_value(word: &ShellWord, option: &str) -> bool {
    word.text.len() > option.len() && word.text.starts_with(option.as_bytes())
}
