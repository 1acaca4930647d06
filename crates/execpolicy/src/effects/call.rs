//! A command line read by its program's row: which words are options, values, operands.

use super::row::{On, Operands, Row};
use super::{Act, Deed, Effect, inert, told};
use crate::rules::basename;
use crate::shell::{Known, Word};

/// Sub-commands inside one another.
const MAX_SUBS: usize = 6;

/// A command line, read.
#[derive(Debug)]
pub(crate) struct Call<'w> {
    /// Its words, the program or sub-command first.
    pub(crate) words: &'w [Word],
    /// Options in the order of the words, without dashes, with their values.
    pub(crate) options: Vec<(String, Option<Word>)>,
    /// The other words.
    pub(crate) operands: Vec<&'w Word>,
    /// How many of them stand before a `--`.
    loose: usize,
}

impl Call<'_> {
    /// Whether one of these options is there.
    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|(name, _)| names.contains(&name.as_str()))
    }

    /// Whether it is this one word and nothing else.
    pub(crate) fn is_only(&self, words: &[&str]) -> bool {
        self.words.len() == 2 && self.begins_with(words)
    }

    /// Whether there are options, and each is one of these.
    pub(crate) fn has_only(&self, names: &[&str]) -> bool {
        let known = |(name, _): &(String, _)| names.contains(&name.as_str());
        !self.options.is_empty() && self.options.iter().all(known)
    }

    /// Whether its first word is one of these.
    pub(crate) fn begins_with(&self, words: &[&str]) -> bool {
        let first = self.words.get(1).and_then(Word::as_fixed);
        first.is_some_and(|first| words.contains(&first))
    }

    /// The values of these options.
    pub(crate) fn values_of<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = &'a Word> {
        self.options
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }

    /// The program without its folder, or the sub-command, as it is written.
    pub(crate) fn name(&self) -> &str {
        let first = self.words.first();
        first.map_or("", |word| basename(&word.text))
    }

    /// The words from the first operand on.
    pub(crate) fn behind(&self) -> Vec<Word> {
        let Some(first) = self.operands.first() else {
            return Vec::new();
        };
        let before = |word: &&Word| !std::ptr::eq(*word, *first);
        self.words.iter().skip_while(before).cloned().collect()
    }

    /// The operand at this place, as far as it is fixed.
    pub(crate) fn operand(&self, at: usize) -> Option<&str> {
        self.operands.get(at).and_then(|word| word.as_fixed())
    }
}

/// What a command does by its row.
pub(super) fn judge(row: &Row, words: &[Word], out: &mut Vec<Effect>) {
    let program = words.first().map_or("", |word| basename(&word.text));
    let program = program.to_owned();
    let top = row;
    let mut row = row;
    let mut words = words;
    for _ in 0..MAX_SUBS {
        let call = read(row, words, !row.subs.is_empty());
        if row.more.is_none() && only_asks(row, words, std::ptr::eq(row, top)) {
            return;
        }
        options(row, &call, out);
        if row.subs.is_empty() {
            if !inert::is_inert(row, call.words) {
                finish(row, &call, out);
                told::runs(&program, &call, out);
            }
            return;
        }
        out.extend(row.does.iter().map(|deed| Effect::Deed(*deed)));
        if let Some(more) = row.more {
            more(&call, out);
        }
        let Some(first) = call.operands.first() else {
            return;
        };
        let at = words
            .iter()
            .position(|word| std::ptr::eq(word, *first))
            .unwrap_or(words.len());
        let sub = first
            .as_fixed()
            .and_then(|name| row.subs.iter().find(|sub| sub.names.contains(&name)));
        match (sub, row.others) {
            (Some(sub), _) => {
                row = sub;
                words = words.get(at..).unwrap_or(&[]);
            }
            (None, Some(deeds)) if first.known == Known::Fixed => {
                out.extend(deeds.iter().map(|deed| Effect::Deed(*deed)));
                return;
            }
            // `PROGRAM help COMMAND`; with more words than one, some write a version.
            _ if first.as_fixed() == Some("help") && at == 1 => return,
            _ if first.as_fixed() == Some("version") && words.len() == 2 => return,
            _ => {
                out.push(Effect::Deed(Deed::Unknown));
                return;
            }
        }
    }
}

/// `PROGRAM [COMMAND] --help`, `PROGRAM --version` and nothing else: with a further word it could be
/// its value, and where words before it are read as operands it could be one, too.
fn only_asks(row: &Row, words: &[Word], is_program: bool) -> bool {
    match words {
        [_, word] => match word.as_fixed() {
            Some("--help") => true,
            Some("-help") => row.words,
            Some("--version") => is_program,
            _ => false,
        },
        _ => false,
    }
}

/// What its options do.
fn options(row: &Row, call: &Call<'_>, out: &mut Vec<Effect>) {
    if inert::is_inert(row, call.words) {
        return;
    }
    for (name, value) in &call.options {
        let Some(on) = meaning(row, name) else {
            continue;
        };
        match (on, value) {
            (On::Reads, Some(word)) => out.push(Effect::File(Act::Read, word.clone())),
            (On::Writes, Some(word)) => out.push(Effect::File(Act::Write, word.clone())),
            (On::At, Some(word)) => out.push(Effect::At(word.clone())),
            (On::Runs, Some(word)) => out.push(Effect::Runs(word.clone())),
            (On::Does(deed) | On::With(deed), _) => out.push(Effect::Deed(deed)),
            (
                On::Reads
                | On::Writes
                | On::Runs
                | On::Value
                | On::Into
                | On::At
                | On::Edits
                | On::Program
                | On::Inert(_),
                _,
            ) => {}
        }
    }
    // What only the run knows could be any of them.
    if row.has_teeth() {
        let open = |word: &&&Word| word.known != Known::Fixed && word.lead().is_empty();
        let values = call.words.iter().skip(1).filter(|word| word.is_wide_open());
        let operands = call
            .operands
            .iter()
            .take(call.loose)
            .filter(|word| open(word));
        let all = operands.copied().chain(values);
        out.extend(all.map(|word| Effect::Option(word.clone())));
    }
}

/// What its operands are for.
fn finish(row: &Row, call: &Call<'_>, out: &mut Vec<Effect>) {
    told::sent(row, call, out);
    out.extend(row.does.iter().map(|deed| Effect::Deed(*deed)));
    let is = |wanted: On| {
        call.options
            .iter()
            .any(|(name, _)| meaning(row, name) == Some(wanted))
    };
    let into = call.options.iter().find_map(|(name, value)| {
        (meaning(row, name) == Some(On::Into))
            .then_some(value.as_ref())
            .flatten()
    });
    let all = call.operands.as_slice();
    let mut act = |act: Act, words: &[&Word]| {
        out.extend(words.iter().map(|word| Effect::File(act, (*word).clone())));
    };
    // Programs that share a row differ on which letters take a value: `cat -n f`, `touch -m f`.
    let letters = call.options.iter().filter(|(name, _)| name.len() == 1);
    let values: Vec<&Word> = letters
        .filter(|(name, _)| meaning(row, name).is_none())
        .filter_map(|(_, value)| value.as_ref())
        .filter(|word| !word.text.chars().all(|c| c.is_ascii_digit()))
        .collect();
    match row.operands {
        Operands::Read => act(Act::Read, &values),
        Operands::Write | Operands::Replace => act(Act::Write, &values),
        Operands::Remove => act(Act::Remove, &values),
        _ => {}
    }
    let edits = is(On::Edits);
    match row.operands {
        Operands::Text => {}
        Operands::Read if edits => act(Act::Write, all),
        Operands::Read => act(Act::Read, all),
        Operands::List => act(Act::List, all),
        Operands::Write => act(Act::Write, all),
        Operands::Replace => act(Act::Replace, all),
        Operands::Remove => act(Act::Remove, all),
        Operands::FirstText => {
            let skip = usize::from(!is(On::Program));
            let files = all.get(skip..).unwrap_or(&[]);
            act(if edits { Act::Write } else { Act::Read }, files);
        }
        Operands::FromTo => {
            act(Act::Read, all.get(..1).unwrap_or(&[]));
            act(Act::Write, all.get(1..).unwrap_or(&[]));
        }
        Operands::Copy | Operands::Move => {
            let (target, sources) = match (into, all.split_last()) {
                (Some(folder), _) => (folder, all),
                (None, Some((last, sources))) => (*last, sources),
                (None, None) => {
                    if let Some(more) = row.more {
                        more(call, out);
                    }
                    return;
                }
            };
            act(
                if row.operands == Operands::Move {
                    Act::Remove
                } else {
                    Act::Read
                },
                sources,
            );
            act(Act::Replace, &[target]);
            let sources: Vec<Word> = sources.iter().map(|word| (*word).clone()).collect();
            out.push(Effect::PutInto(target.clone(), sources));
        }
        Operands::None => {
            if !all.is_empty() {
                out.push(Effect::Deed(Deed::Unknown));
            }
        }
    }
    if let Some(more) = row.more {
        more(call, out);
    }
}

/// What an option means: long names may be cut short, as getopt allows.
fn meaning(row: &Row, name: &str) -> Option<On> {
    if let Some((_, on)) = row.options.iter().find(|(known, _)| *known == name) {
        return Some(*on);
    }
    if name.len() < 2 || row.longs.contains(&name) {
        return None;
    }
    row.options
        .iter()
        .find(|(known, _)| known.len() > 1 && known.starts_with(name))
        .map(|(_, on)| *on)
}

/// Reads the words; up to the first operand only if that is a sub-command.
fn read<'w>(row: &Row, words: &'w [Word], to_first: bool) -> Call<'w> {
    let mut call = Call {
        words,
        options: Vec::new(),
        operands: Vec::new(),
        loose: usize::MAX,
    };
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        let lead = word.lead();
        if word.as_fixed() == Some("--") {
            call.loose = call.operands.len();
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
            .or_else(|| lead.strip_prefix('-').filter(|_| row.words));
        match long {
            Some(_) => at += long_option(row, word, next, &mut call),
            None => at += cluster(row, word, next, &mut call),
        }
    }
    if to_first {
        // Options can stand behind it, too; they are the sub-command's.
        call.words = words.get(..at).unwrap_or(words);
    }
    call
}

fn long_option(row: &Row, word: &Word, next: Option<&Word>, call: &mut Call<'_>) -> usize {
    let text = word.text.trim_start_matches('-');
    let (name, attached) = match text.split_once('=') {
        Some((name, _)) => (name, word.after('=')),
        None => (text, None),
    };
    let name = in_full(row, name);
    if attached.is_some() {
        call.options.push((name.to_owned(), attached));
        return 0;
    }
    let text = name;
    let takes = row.longs.contains(&text) || meaning(row, text).is_some_and(On::takes_value);
    let value = next.filter(|_| takes).cloned();
    let used = usize::from(value.is_some());
    call.options.push((text.to_owned(), value));
    used
}

/// A long name that is cut short, as getopt allows.
fn in_full<'n>(row: &Row, name: &'n str) -> &'n str {
    let known = || {
        row.options
            .iter()
            .map(|(known, _)| *known)
            .chain(row.longs.iter().copied())
    };
    if name.len() < 2 || known().any(|known| known == name) {
        return name;
    }
    known()
        .find(|known| known.len() > 1 && known.starts_with(name))
        .unwrap_or(name)
}

fn cluster(row: &Row, word: &Word, next: Option<&Word>, call: &mut Call<'_>) -> usize {
    let text = word.text.get(1..).unwrap_or("");
    for (at, letter) in text.char_indices() {
        let name = letter.to_string();
        let on = row
            .options
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, on)| *on);
        let attached = || {
            let from = 1 + at + letter.len_utf8();
            (word.text.len() > from).then(|| word.from(from))
        };
        if row.values.contains(letter) || on.is_some_and(On::takes_value) {
            let value = attached();
            let used = usize::from(value.is_none() && next.is_some());
            call.options.push((name, value.or_else(|| next.cloned())));
            return used;
        }
        if on == Some(On::Edits) {
            call.options.push((name, attached()));
            return 0;
        }
        call.options.push((name, None));
    }
    0
}
