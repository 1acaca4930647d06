//! Skips the options of a program that runs another one. An unknown option makes the position of
//! the command unsure; it is reported as such and never guessed.

use super::word::{CommandWord, WordKnowledge};

/// How the command line of a wrapper begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WrapperOptionsSpec {
    /// Letters that take no value.
    pub(crate) flags: &'static str,
    /// Letters that take a value, attached or as the next word.
    pub(crate) values: &'static str,
    /// Letters whose value can only be attached.
    pub(crate) attached: &'static str,
    /// Letters or long names of options with which nothing is run.
    pub(crate) inert: &'static [&'static str],
    /// Long names, without dashes, that take no value.
    pub(crate) long_flags: &'static [&'static str],
    /// Long names that take a value.
    pub(crate) long_values: &'static [&'static str],
    /// Words between the options and the command.
    pub(crate) operands: usize,
    /// Whether `NAME=value` words may stand before the command.
    pub(crate) assignments: bool,
}

/// No options at all.
pub(crate) const NO_OPTIONS: WrapperOptionsSpec = WrapperOptionsSpec {
    flags: "",
    values: "",
    attached: "",
    inert: &[],
    long_flags: &["help", "version"],
    long_values: &[],
    operands: 0,
    assignments: false,
};

/// Where the command of a wrapper begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WrappedCommandPosition {
    /// At this word; it may lie behind the last one.
    At(usize),
    /// Nothing is run.
    Nothing,
    /// It cannot be told.
    Unsure,
}

/// Options that were met, by letter or long name, with their values.
pub(crate) type SeenOptions = Vec<(String, Option<CommandWord>)>;

/// Skips the options of `words`, the first of which is the program itself.
pub(crate) fn skip_program_options(
    words: &[CommandWord],
    options: &WrapperOptionsSpec,
) -> (WrappedCommandPosition, SeenOptions) {
    let mut seen = SeenOptions::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        // `env` and `sudo` take assignments before the command.
        if options.assignments && word.is_assignment() {
            at += 1;
            continue;
        }
        let lead = word.literal_prefix_of_word();
        if !lead.starts_with('-') {
            // An expansion with nothing known before it could be an option.
            if word.knowledge != WordKnowledge::Literal && lead.is_empty() && options.operands == 0
            {
                return (WrappedCommandPosition::Unsure, seen);
            }
            break;
        }
        if word.as_literal() == Some("-") {
            // `env -` is `env -i`; `su -` a login shell.
            at += 1;
            continue;
        }
        if word.as_literal() == Some("--") {
            at += 1;
            while options.assignments && words.get(at).is_some_and(CommandWord::is_assignment) {
                at += 1;
            }
            break;
        }
        let used = match lead.strip_prefix("--") {
            Some(_) => long_option_word_count(word, words.get(at + 1), options, &mut seen),
            None => parse_short_option_cluster(word, words.get(at + 1), options, &mut seen),
        };
        match used {
            Some(used) => at += used,
            None => return (WrappedCommandPosition::Unsure, seen),
        }
    }
    // An inert option counts wherever it stands among the options.
    if seen
        .iter()
        .any(|(name, _)| options.inert.contains(&name.as_str()))
    {
        return (WrappedCommandPosition::Nothing, seen);
    }
    // An operand that may be several words shifts the command by an unknown number.
    let between = words.iter().skip(at).take(options.operands);
    if between
        .clone()
        .any(|word| word.knowledge == WordKnowledge::Unbounded)
    {
        return (WrappedCommandPosition::Unsure, seen);
    }
    (WrappedCommandPosition::At(at + options.operands), seen)
}

/// Returns how many words a long option takes; `None` if it is not known.
fn long_option_word_count(
    word: &CommandWord,
    next: Option<&CommandWord>,
    options: &WrapperOptionsSpec,
    seen: &mut SeenOptions,
) -> Option<usize> {
    let lead = word.literal_prefix_of_word().strip_prefix("--")?;
    // The value is attached, so the option takes no other word even if its name is not known.
    if let Some((name, _)) = lead.split_once('=') {
        let value = word.text.split_once('=').map_or("", |(_, value)| value);
        let value = match word.knowledge {
            WordKnowledge::Literal => CommandWord::new_literal_word(value),
            WordKnowledge::SingleWord => {
                CommandWord::word_from_unresolved_text(value, WordKnowledge::SingleWord)
            }
            WordKnowledge::Unbounded => return None,
        };
        seen.push((name.to_owned(), Some(value)));
        return Some(1);
    }
    let name = word.as_literal()?.strip_prefix("--")?;
    if options.long_flags.contains(&name) || options.inert.contains(&name) {
        seen.push((name.to_owned(), None));
        return Some(1);
    }
    if options.long_values.contains(&name) {
        seen.push((name.to_owned(), next.cloned()));
        return next
            .is_none_or(|value| value.knowledge != WordKnowledge::Unbounded)
            .then_some(2);
    }
    None
}

/// Returns how many words a cluster of short options takes; `None` if a letter is not known.
fn parse_short_option_cluster(
    word: &CommandWord,
    next: Option<&CommandWord>,
    options: &WrapperOptionsSpec,
    seen: &mut SeenOptions,
) -> Option<usize> {
    if word.knowledge == WordKnowledge::Unbounded {
        return None;
    }
    let cluster = word.literal_prefix_of_word().strip_prefix('-')?;
    for (at, letter) in cluster.char_indices() {
        let after = at + letter.len_utf8();
        let name = letter.to_string();
        if options.values.contains(letter) || options.attached.contains(letter) {
            let rest = word.text.get(1 + after..).unwrap_or("");
            let attached = match (rest.is_empty(), word.knowledge) {
                (true, _) => None,
                (false, WordKnowledge::Literal) => Some(CommandWord::new_literal_word(rest)),
                (false, _) => Some(CommandWord::word_from_unresolved_text(
                    rest,
                    WordKnowledge::SingleWord,
                )),
            };
            if attached.is_some() || options.attached.contains(letter) {
                seen.push((name, attached));
                return Some(1);
            }
            seen.push((name, next.cloned()));
            return next
                .is_none_or(|value| value.knowledge != WordKnowledge::Unbounded)
                .then_some(2);
        }
        if !options.flags.contains(letter) && !options.inert.contains(&name.as_str()) {
            return None;
        }
        seen.push((name, None));
    }
    // An expansion behind flags could hold any further letter.
    (word.knowledge == WordKnowledge::Literal).then_some(1)
}
