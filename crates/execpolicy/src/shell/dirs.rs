//! In which folders a command can run: `cd` as far as the text says it. A folder is a chain of
//! the words that led there, worked out where paths are judged.

use std::rc::Rc;

use super::word::{Known, Word};
use crate::effects::place::UNKNOWN;

/// Folders that are told apart; with more of them it is not known.
const MOST: usize = 8;
/// Words that led to one.
const LONGEST: usize = 32;

/// A folder; `None` is where the script starts.
pub(crate) type Dir = Option<Rc<Step>>;

/// One `cd`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// From where.
    pub(crate) from: Dir,
    /// Its word.
    pub(crate) to: Word,
    deep: usize,
}

/// The folders that a command can run in.
pub(crate) type Dirs = Rc<[Dir]>;

/// Where a script starts.
pub(crate) fn start() -> Dirs {
    Rc::new([None])
}

/// The folders that a command can start in: where its call is made, or what the call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartFolders(pub(super) Dirs);

impl StartFolders {
    /// The top of the project.
    pub fn top() -> Self {
        Self(start())
    }

    /// Any of these; `None` is one that only the run knows. A relative one begins at the top.
    pub fn any_of(folders: impl IntoIterator<Item = Option<String>>) -> Self {
        let mut dirs: Vec<Dir> = Vec::new();
        for folder in folders {
            let word = folder.map_or_else(unknown, Word::fixed);
            let dir = step(&None, &word);
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        if dirs.len() > MOST {
            dirs.truncate(MOST);
            dirs.push(step(&None, &unknown()));
        }
        match dirs.is_empty() {
            true => Self::top(),
            false => Self(dirs.into()),
        }
    }
}

fn unknown() -> Word {
    Word::open(UNKNOWN, Known::One)
}

/// One step on.
pub(crate) fn step(from: &Dir, to: &Word) -> Dir {
    let deep = from.as_ref().map_or(0, |step| step.deep) + 1;
    let lost = deep > LONGEST;
    Some(Rc::new(Step {
        from: if lost { None } else { from.clone() },
        to: if lost { unknown() } else { to.clone() },
        deep: if lost { 1 } else { deep },
    }))
}

/// All of both.
pub(crate) fn either(a: &Dirs, b: &Dirs) -> Dirs {
    if a == b {
        return Rc::clone(a);
    }
    let mut all: Vec<Dir> = a.to_vec();
    for dir in b.iter() {
        if !all.contains(dir) {
            all.push(dir.clone());
        }
    }
    if all.len() > MOST {
        return Rc::new([None, step(&None, &unknown())]);
    }
    all.into()
}

/// Where `cd`, with these words, leads; `None` if these words are none.
pub(crate) fn moved(words: &[Word], now: &Dirs, all: &Dirs) -> Option<Dirs> {
    // `command -v cd` only says what it is, and is left at its option.
    let words = behind(words, &["builtin", "command"]);
    match words.split_first()? {
        (name, rest) if name.as_fixed() == Some("eval") => moved_by_text(rest, now, all),
        _ => moved_by_words(words, now, all),
    }
}

/// The words behind those that only say how the next is taken.
fn behind<'w>(words: &'w [Word], names: &[&str]) -> &'w [Word] {
    let is = |word: &Word| word.as_fixed().is_some_and(|text| names.contains(&text));
    let count = words.iter().take_while(|word| is(word)).count();
    words.get(count..).unwrap_or(&[])
}

fn moved_by_words(words: &[Word], now: &Dirs, all: &Dirs) -> Option<Dirs> {
    let (name, rest) = words.split_first()?;
    match name.as_fixed()? {
        "cd" | "pushd" | "chdir" => {}
        "popd" => return Some(Rc::clone(all)),
        _ => return None,
    }
    let target = rest
        .iter()
        .find(|word| word.as_fixed() == Some("-") || !word.lead().starts_with(['-', '+']));
    match target {
        Some(word) if word.as_fixed() == Some("-") => Some(Rc::clone(all)),
        Some(word) => Some(now.iter().map(|dir| step(dir, word)).collect()),
        None => Some(Rc::new([step(&None, &Word::fixed("~"))])),
    }
}

/// The same for a text that a shell reads here. Where more than one command leads is not followed.
fn moved_by_text(words: &[Word], now: &Dirs, all: &Dirs) -> Option<Dirs> {
    let texts: Option<Vec<&str>> = words.iter().map(Word::as_fixed).collect();
    let text = texts?.join(" ");
    let words: Vec<Word> = shlex::split(&text)?.into_iter().map(Word::fixed).collect();
    if !text.contains([';', '&', '|', '\n', '(', ')', '$', '`', '*', '?', '{']) {
        return moved_by_words(behind(&words, &["builtin", "command", "eval"]), now, all);
    }
    let leads = |word: &Word| matches!(word.as_fixed(), Some("cd" | "pushd" | "popd"));
    let nowhere: Dirs = Rc::new([step(&None, &unknown())]);
    words.iter().any(leads).then(|| either(now, &nowhere))
}
