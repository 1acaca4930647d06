//! Parses a command line by its program's row into options, their values and operands, and derives
//! the effects. Follows getopt: clustered letters, attached values, abbreviated long names, `--`.

use super::program_spec::{OperandRole, OptionMeaning, ProgramEffectSpec};
use super::{CommandEffect, FileAccess, NonFileEffectKind, inert, invocation_risks};
use crate::rule_set::basename;
use crate::shell::{CommandWord, WordKnowledge};

/// Maximum depth of nested sub-commands.
const MAX_SUBS: usize = 6;

/// A parsed command line.
#[derive(Debug)]
pub(crate) struct ParsedArgs<'w> {
    /// Its words, the program or sub-command first.
    pub(crate) words: &'w [CommandWord],
    /// Options in the order of the words, without dashes, with their values.
    pub(crate) options: Vec<(String, Option<CommandWord>)>,
    /// The words that are neither options nor their values.
    pub(crate) operands: Vec<&'w CommandWord>,
    /// The number of operands before a `--`.
    operands_before_dashes: usize,
}

impl ParsedArgs<'_> {
    /// Whether one of these options is given.
    pub(crate) fn has_option(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Whether one of these words is the only argument.
    pub(crate) fn only_argument_is_one_of(&self, words: &[&str]) -> bool {
        self.words.len() == 2 && self.first_argument_is_one_of(words)
    }

    /// Whether options are given, and each is one of these.
    pub(crate) fn has_only_listed_options(&self, names: &[&str]) -> bool {
        let known = |(name, _): &(String, _)| names.contains(&name.as_str());
        !self.options.is_empty() && self.options.iter().all(known)
    }

    /// Whether its first word is one of these.
    pub(crate) fn first_argument_is_one_of(&self, words: &[&str]) -> bool {
        let first = self.words.get(1).and_then(CommandWord::as_literal);
        first.is_some_and(|first| words.contains(&first))
    }

    /// The values of these options.
    pub(crate) fn option_values<'a>(
        &'a self,
        names: &'a [&'a str],
    ) -> impl Iterator<Item = &'a CommandWord> {
        self.options
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }

    /// Returns the program without its folder, or the sub-command, as written.
    pub(crate) fn command_name(&self) -> &str {
        let first = self.words.first();
        first.map_or("", |word| basename(&word.text))
    }

    /// The words from the first operand on.
    pub(crate) fn words_from_first_operand(&self) -> Vec<CommandWord> {
        let Some(first) = self.operands.first() else {
            return Vec::new();
        };
        let before = |word: &&CommandWord| !std::ptr::eq(*word, *first);
        self.words.iter().skip_while(before).cloned().collect()
    }

    /// Returns the operand at this index if it is literal.
    pub(crate) fn literal_operand(&self, at: usize) -> Option<&str> {
        self.operands.get(at).and_then(|word| word.as_literal())
    }
}

/// Adds what a command does by its row, descending into sub-commands.
pub(super) fn add_command_effects(
    row: &ProgramEffectSpec,
    words: &[CommandWord],
    out: &mut Vec<CommandEffect>,
) {
    let program = words.first().map_or("", |word| basename(&word.text));
    let program = program.to_owned();
    let top = row;
    let mut row = row;
    let mut words = words;
    for _ in 0..MAX_SUBS {
        let call = parse_args_by_program_spec(row, words, !row.subcommands.is_empty());
        // A handler decides for itself: its program may give `--help` another meaning.
        if row.handler.is_none() && is_help_or_version_call(row, words, std::ptr::eq(row, top)) {
            return;
        }
        add_option_effects(row, &call, out);
        if row.subcommands.is_empty() {
            if !inert::is_dry_run_call(row, call.words) {
                add_operand_effects(row, &call, out);
                invocation_risks::add_task_runner_effects(&program, &call, out);
            }
            return;
        }
        // The row of a program with sub-commands adds its own effects before those of the
        // sub-command.
        out.extend(row.effects.iter().map(|deed| CommandEffect::Kind(*deed)));
        if let Some(more) = row.handler {
            more(&call, out);
        }
        // Without a sub-command such a program prints its usage.
        let Some(first) = call.operands.first() else {
            return;
        };
        let at = words
            .iter()
            .position(|word| std::ptr::eq(word, *first))
            .unwrap_or(words.len());
        let sub = first
            .as_literal()
            .and_then(|name| row.subcommands.iter().find(|sub| sub.names.contains(&name)));
        match (sub, row.other_subcommands) {
            (Some(sub), _) => {
                row = sub;
                words = words.get(at..).unwrap_or(&[]);
            }
            // A sub-command known only at run time could be any, so it falls through to unknown.
            (None, Some(deeds)) if first.knowledge == WordKnowledge::Literal => {
                out.extend(deeds.iter().map(|deed| CommandEffect::Kind(*deed)));
                return;
            }
            // `PROGRAM help COMMAND`; with more words than one, some write a version.
            _ if first.as_literal() == Some("help") && at == 1 => return,
            _ if first.as_literal() == Some("version") && words.len() == 2 => return,
            _ => {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownProgram));
                return;
            }
        }
    }
}

/// Whether the words are `PROGRAM [COMMAND] --help` or `PROGRAM --version` and nothing else. With a
/// further word the option could have a value, or be one itself.
fn is_help_or_version_call(
    row: &ProgramEffectSpec,
    words: &[CommandWord],
    is_program: bool,
) -> bool {
    match words {
        [_, word] => match word.as_literal() {
            Some("--help") => true,
            Some("-help") => row.single_dash,
            Some("--version") => is_program,
            _ => false,
        },
        _ => false,
    }
}

/// Adds the effects of the options.
fn add_option_effects(
    row: &ProgramEffectSpec,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
    if inert::is_dry_run_call(row, call.words) {
        return;
    }
    for (name, value) in &call.options {
        let Some(on) = option_meaning(row, name) else {
            continue;
        };
        match (on, value) {
            (OptionMeaning::Reads, Some(word)) => {
                out.push(CommandEffect::File(FileAccess::Read, word.clone()))
            }
            (OptionMeaning::Writes, Some(word)) => {
                out.push(CommandEffect::File(FileAccess::Write, word.clone()))
            }
            (OptionMeaning::WorkingDir, Some(word)) => {
                out.push(CommandEffect::ChangeDir(word.clone()))
            }
            (OptionMeaning::Command, Some(word)) => {
                out.push(CommandEffect::RunsScript(word.clone()))
            }
            (OptionMeaning::FlagEffect(deed) | OptionMeaning::ValueEffect(deed), _) => {
                out.push(CommandEffect::Kind(deed))
            }
            (
                OptionMeaning::Reads
                | OptionMeaning::Writes
                | OptionMeaning::Command
                | OptionMeaning::Value
                | OptionMeaning::TargetDir
                | OptionMeaning::WorkingDir
                | OptionMeaning::Edits
                | OptionMeaning::ProgramText
                | OptionMeaning::Inert(_),
                _,
            ) => {}
        }
    }
    // A word known only at run time could be any of the dangerous options. Behind `--` none is.
    if row.spec_has_dangerous_options() {
        let open = |word: &&&CommandWord| {
            word.knowledge != WordKnowledge::Literal && word.literal_prefix_of_word().is_empty()
        };
        let values = call
            .words
            .iter()
            .skip(1)
            .filter(|word| word.is_wholly_unknown_word());
        let operands = call
            .operands
            .iter()
            .take(call.operands_before_dashes)
            .filter(|word| open(word));
        let all = operands.copied().chain(values);
        out.extend(all.map(|word| CommandEffect::PossibleOption(word.clone())));
    }
}

/// Adds the effects of the operands, of the row itself and of its handler.
fn add_operand_effects(
    row: &ProgramEffectSpec,
    call: &ParsedArgs<'_>,
    out: &mut Vec<CommandEffect>,
) {
    invocation_risks::add_upload_effects(row, call, out);
    out.extend(row.effects.iter().map(|deed| CommandEffect::Kind(*deed)));
    let is = |wanted: OptionMeaning| {
        call.options
            .iter()
            .any(|(name, _)| option_meaning(row, name) == Some(wanted))
    };
    // `-t FOLDER` names the target first, so that every operand is a source.
    let into = call.options.iter().find_map(|(name, value)| {
        (option_meaning(row, name) == Some(OptionMeaning::TargetDir))
            .then_some(value.as_ref())
            .flatten()
    });
    let all = call.operands.as_slice();
    let mut act = |act: FileAccess, words: &[&CommandWord]| {
        out.extend(
            words
                .iter()
                .map(|word| CommandEffect::File(act, (*word).clone())),
        );
    };
    // Programs that share a row differ on which letters take a value: `cat -n f`, `touch -m f`. The
    // value of a letter without a meaning may therefore be an operand, unless it is a number.
    let letters = call.options.iter().filter(|(name, _)| name.len() == 1);
    let values: Vec<&CommandWord> = letters
        .filter(|(name, _)| option_meaning(row, name).is_none())
        .filter_map(|(_, value)| value.as_ref())
        .filter(|word| !word.text.chars().all(|c| c.is_ascii_digit()))
        .collect();
    match row.operand_role {
        OperandRole::Read => act(FileAccess::Read, &values),
        OperandRole::Write | OperandRole::Replace => act(FileAccess::Write, &values),
        OperandRole::Remove => act(FileAccess::Remove, &values),
        _ => {}
    }
    let edits = is(OptionMeaning::Edits);
    match row.operand_role {
        OperandRole::Text => {}
        OperandRole::Read if edits => act(FileAccess::Write, all),
        OperandRole::Read => act(FileAccess::Read, all),
        OperandRole::List => act(FileAccess::List, all),
        OperandRole::Write => act(FileAccess::Write, all),
        OperandRole::Replace => act(FileAccess::Replace, all),
        OperandRole::Remove => act(FileAccess::Remove, all),
        OperandRole::PatternThenRead => {
            // With `-e PATTERN` the first operand is a file already.
            let skip = usize::from(!is(OptionMeaning::ProgramText));
            let files = all.get(skip..).unwrap_or(&[]);
            act(
                if edits {
                    FileAccess::Write
                } else {
                    FileAccess::Read
                },
                files,
            );
        }
        OperandRole::ReadThenWrite => {
            act(FileAccess::Read, all.get(..1).unwrap_or(&[]));
            act(FileAccess::Write, all.get(1..).unwrap_or(&[]));
        }
        OperandRole::Copy | OperandRole::Move => {
            let (target, sources) = match (into, all.split_last()) {
                (Some(folder), _) => (folder, all),
                (None, Some((last, sources))) => (*last, sources),
                (None, None) => {
                    // A copy without operands fails; the handler may still find effects in its
                    // options.
                    if let Some(more) = row.handler {
                        more(call, out);
                    }
                    return;
                }
            };
            act(
                if row.operand_role == OperandRole::Move {
                    FileAccess::Remove
                } else {
                    FileAccess::Read
                },
                sources,
            );
            // Whether the target is a file or a folder is not known here; both readings are added.
            act(FileAccess::Replace, &[target]);
            let sources: Vec<CommandWord> = sources.iter().map(|word| (*word).clone()).collect();
            out.push(CommandEffect::PutInto(target.clone(), sources));
        }
        OperandRole::None => {
            if !all.is_empty() {
                out.push(CommandEffect::Kind(NonFileEffectKind::UnknownProgram));
            }
        }
    }
    if let Some(more) = row.handler {
        more(call, out);
    }
}

/// Returns the meaning of an option. Long names may be abbreviated, as getopt allows.
fn option_meaning(row: &ProgramEffectSpec, name: &str) -> Option<OptionMeaning> {
    if let Some((_, on)) = row.option_meanings.iter().find(|(known, _)| *known == name) {
        return Some(*on);
    }
    // A complete name is never taken for an abbreviation of a longer one.
    if name.len() < 2 || row.value_options.contains(&name) {
        return None;
    }
    row.option_meanings
        .iter()
        .find(|(known, _)| known.len() > 1 && known.starts_with(name))
        .map(|(_, on)| *on)
}

/// Parses the words; `to_first` stops at the first operand, which is a sub-command.
fn parse_args_by_program_spec<'w>(
    row: &ProgramEffectSpec,
    words: &'w [CommandWord],
    to_first: bool,
) -> ParsedArgs<'w> {
    let mut call = ParsedArgs {
        words,
        options: Vec::new(),
        operands: Vec::new(),
        operands_before_dashes: usize::MAX,
    };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        // A word is an option if it is known to begin with a dash, even if its rest is not known.
        let lead = word.literal_prefix_of_word();
        if word.as_literal() == Some("--") {
            call.operands_before_dashes = call.operands.len();
            call.operands.extend(words.get(at..).unwrap_or(&[]));
            break;
        }
        let is_option = lead.len() > 1 && lead.starts_with('-');
        if !is_option {
            call.operands.push(word);
            if to_first {
                break;
            }
            continue;
        }
        let next = words.get(at);
        let long = lead
            .strip_prefix("--")
            .or_else(|| lead.strip_prefix('-').filter(|_| row.single_dash));
        match long {
            Some(_) => at += parse_long_option(row, word, next, &mut call),
            None => at += parse_short_option_cluster(row, word, next, &mut call),
        }
    }
    if to_first {
        // Options behind the sub-command belong to it, and are parsed by its own row.
        call.words = words.get(..at).unwrap_or(words);
    }
    call
}

fn parse_long_option(
    row: &ProgramEffectSpec,
    word: &CommandWord,
    next: Option<&CommandWord>,
    call: &mut ParsedArgs<'_>,
) -> usize {
    let text = word.text.trim_start_matches('-');
    let (name, attached) = match text.split_once('=') {
        Some((name, _)) => (name, word.suffix_after_char('=')),
        None => (text, None),
    };
    // Handlers compare with full names, so an abbreviation is expanded first.
    let name = expand_option_abbreviation(row, name);
    if attached.is_some() {
        call.options.push((name.to_owned(), attached));
        return 0;
    }
    let text = name;
    let takes = row.value_options.contains(&text)
        || option_meaning(row, text).is_some_and(OptionMeaning::option_takes_value);
    let value = next.filter(|_| takes).cloned();
    let used = usize::from(value.is_some());
    call.options.push((text.to_owned(), value));
    used
}

/// Expands an abbreviated long name, as getopt does.
fn expand_option_abbreviation<'n>(row: &ProgramEffectSpec, name: &'n str) -> &'n str {
    let known = || {
        row.option_meanings
            .iter()
            .map(|(known, _)| *known)
            .chain(row.value_options.iter().copied())
    };
    if name.len() < 2 || known().any(|known| known == name) {
        return name;
    }
    known()
        .find(|known| known.len() > 1 && known.starts_with(name))
        .unwrap_or(name)
}

fn parse_short_option_cluster(
    row: &ProgramEffectSpec,
    word: &CommandWord,
    next: Option<&CommandWord>,
    call: &mut ParsedArgs<'_>,
) -> usize {
    let text = word.text.get(1..).unwrap_or("");
    // `-rfo FILE`: letters up to the first that takes a value; the rest of the word is that value.
    for (at, letter) in text.char_indices() {
        let name = letter.to_string();
        let on = row
            .option_meanings
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, on)| *on);
        let attached = || {
            let from = 1 + at + letter.len_utf8();
            (word.text.len() > from).then(|| word.word_suffix_from_byte(from))
        };
        if row.value_letters.contains(letter) || on.is_some_and(OptionMeaning::option_takes_value) {
            let value = attached();
            let used = usize::from(value.is_none() && next.is_some());
            call.options.push((name, value.or_else(|| next.cloned())));
            return used;
        }
        if on == Some(OptionMeaning::Edits) {
            call.options.push((name, attached()));
            return 0;
        }
        call.options.push((name, None));
    }
    0
}
