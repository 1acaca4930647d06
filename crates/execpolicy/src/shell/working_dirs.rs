//! In which folders a command can run: `cd` as far as the text says it. A folder is a chain of
//! the words that led there, worked out where paths are judged.

use std::rc::Rc;

use super::word::{CommandWord, WordKnowledge};
use crate::effects::paths::UNKNOWN;

/// Folders that are told apart; with more of them it is not known.
const MOST: usize = 8;
/// Words that led to one.
const LONGEST: usize = 32;

/// A folder; `None` is where the script starts.
pub(crate) type WorkingDir = Option<Rc<CdStep>>;

/// One `cd`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CdStep {
    /// From where.
    pub(crate) from: WorkingDir,
    /// Its word.
    pub(crate) to: CommandWord,
    depth: usize,
}

/// The folders that a command can run in.
pub(crate) type WorkingDirs = Rc<[WorkingDir]>;

/// Where a script starts.
pub(crate) fn script_start_folders() -> WorkingDirs {
    Rc::new([None])
}

/// The folders that a command can start in: where its call is made, or what the call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStartFolders(pub(super) WorkingDirs);

impl CommandStartFolders {
    /// The top of the project.
    pub fn starting_at_project_root() -> Self {
        Self(script_start_folders())
    }

    /// Any of these; `None` is one that only the run knows. A relative one begins at the top.
    pub fn from_possible_folders(folders: impl IntoIterator<Item = Option<String>>) -> Self {
        let mut dirs: Vec<WorkingDir> = Vec::new();
        for folder in folders {
            let word = folder.map_or_else(unknown_dir_word, CommandWord::new_literal_word);
            let dir = append_cd_step(&None, &word);
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        if dirs.len() > MOST {
            dirs.truncate(MOST);
            dirs.push(append_cd_step(&None, &unknown_dir_word()));
        }
        match dirs.is_empty() {
            true => Self::starting_at_project_root(),
            false => Self(dirs.into()),
        }
    }
}

fn unknown_dir_word() -> CommandWord {
    CommandWord::word_from_unresolved_text(UNKNOWN, WordKnowledge::SingleWord)
}

/// One step on.
pub(crate) fn append_cd_step(from: &WorkingDir, to: &CommandWord) -> WorkingDir {
    let deep = from.as_ref().map_or(0, |step| step.depth) + 1;
    let lost = deep > LONGEST;
    Some(Rc::new(CdStep {
        from: if lost { None } else { from.clone() },
        to: if lost { unknown_dir_word() } else { to.clone() },
        depth: if lost { 1 } else { deep },
    }))
}

/// All of both.
pub(crate) fn union_of_working_dirs(a: &WorkingDirs, b: &WorkingDirs) -> WorkingDirs {
    if a == b {
        return Rc::clone(a);
    }
    let mut all: Vec<WorkingDir> = a.to_vec();
    for dir in b.iter() {
        if !all.contains(dir) {
            all.push(dir.clone());
        }
    }
    if all.len() > MOST {
        return Rc::new([None, append_cd_step(&None, &unknown_dir_word())]);
    }
    all.into()
}

/// Where `cd`, with these words, leads; `None` if these words are none.
pub(crate) fn dirs_after_command(
    words: &[CommandWord],
    now: &WorkingDirs,
    all: &WorkingDirs,
) -> Option<WorkingDirs> {
    // `command -v cd` only says what it is, and is left at its option.
    let words = skip_command_prefix_words(words, &["builtin", "command"]);
    match words.split_first()? {
        (name, rest) if name.as_literal() == Some("eval") => dirs_after_eval(rest, now, all),
        _ => dirs_after_cd(words, now, all),
    }
}

/// The words behind those that only say how the next is taken.
fn skip_command_prefix_words<'w>(words: &'w [CommandWord], names: &[&str]) -> &'w [CommandWord] {
    let is = |word: &CommandWord| word.as_literal().is_some_and(|text| names.contains(&text));
    let count = words.iter().take_while(|word| is(word)).count();
    words.get(count..).unwrap_or(&[])
}

fn dirs_after_cd(
    words: &[CommandWord],
    now: &WorkingDirs,
    all: &WorkingDirs,
) -> Option<WorkingDirs> {
    let (name, rest) = words.split_first()?;
    match name.as_literal()? {
        "cd" | "pushd" | "chdir" => {}
        "popd" => return Some(Rc::clone(all)),
        _ => return None,
    }
    let target = rest.iter().find(|word| {
        word.as_literal() == Some("-") || !word.known_word_prefix().starts_with(['-', '+'])
    });
    match target {
        Some(word) if word.as_literal() == Some("-") => Some(Rc::clone(all)),
        Some(word) => Some(now.iter().map(|dir| append_cd_step(dir, word)).collect()),
        None => Some(Rc::new([append_cd_step(
            &None,
            &CommandWord::new_literal_word("~"),
        )])),
    }
}

/// The same for a text that a shell reads here. Where more than one command leads is not followed.
fn dirs_after_eval(
    words: &[CommandWord],
    now: &WorkingDirs,
    all: &WorkingDirs,
) -> Option<WorkingDirs> {
    let texts: Option<Vec<&str>> = words.iter().map(CommandWord::as_literal).collect();
    let text = texts?.join(" ");
    let words: Vec<CommandWord> = shlex::split(&text)?
        .into_iter()
        .map(CommandWord::new_literal_word)
        .collect();
    if !text.contains([';', '&', '|', '\n', '(', ')', '$', '`', '*', '?', '{']) {
        return dirs_after_cd(
            skip_command_prefix_words(&words, &["builtin", "command", "eval"]),
            now,
            all,
        );
    }
    let leads = |word: &CommandWord| matches!(word.as_literal(), Some("cd" | "pushd" | "popd"));
    let nowhere: WorkingDirs = Rc::new([append_cd_step(&None, &unknown_dir_word())]);
    words
        .iter()
        .any(leads)
        .then(|| union_of_working_dirs(now, &nowhere))
}
