//! Tracks the folders in which a command can run, following `cd` as far as the text tells. A
//! folder is a chain of the words that led there; it is resolved where paths are judged.

use std::rc::Rc;

use super::word::{CommandWord, WordKnowledge};
use crate::effects::paths::UNKNOWN;

/// Folders that are told apart; with more of them the folder is unknown.
const MOST: usize = 8;
/// Words in the chain that leads to a folder.
const LONGEST: usize = 32;

/// A folder; `None` is where the script starts.
pub(crate) type WorkingDir = Option<Rc<CdStep>>;

/// One `cd` step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CdStep {
    /// The folder before it.
    pub(crate) from: WorkingDir,
    /// The word that names the target.
    pub(crate) to: CommandWord,
    depth: usize,
}

/// The folders in which a command can run.
pub(crate) type WorkingDirs = Rc<[WorkingDir]>;

/// Returns the folder in which a script starts.
pub(crate) fn initial_working_dirs() -> WorkingDirs {
    Rc::new([None])
}

/// The folders in which a command can start: where its call is made, or those that the call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandStartFolders(pub(super) WorkingDirs);

impl CommandStartFolders {
    /// Starts at the top of the project.
    pub fn start_folders_at_project_root() -> Self {
        Self(initial_working_dirs())
    }

    /// Starts in any of these; `None` is a folder that only the run knows. A relative one begins
    /// at the top of the project.
    pub fn from_possible_folders(folders: impl IntoIterator<Item = Option<String>>) -> Self {
        let mut dirs: Vec<WorkingDir> = Vec::new();
        for folder in folders {
            let word = folder.map_or_else(unknown_dir_word, CommandWord::new_literal_word);
            let dir = working_dir_with_cd_step(&None, &word);
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        // The named folders stay beside the unknown one, so that each of them is still judged.
        if dirs.len() > MOST {
            dirs.truncate(MOST);
            dirs.push(working_dir_with_cd_step(&None, &unknown_dir_word()));
        }
        match dirs.is_empty() {
            true => Self::start_folders_at_project_root(),
            false => Self(dirs.into()),
        }
    }
}

fn unknown_dir_word() -> CommandWord {
    CommandWord::word_from_unresolved_text(UNKNOWN, WordKnowledge::SingleWord)
}

/// Returns the folder after one more step.
pub(crate) fn working_dir_with_cd_step(from: &WorkingDir, to: &CommandWord) -> WorkingDir {
    let deep = from.as_ref().map_or(0, |step| step.depth) + 1;
    // A chain that is too long starts again from an unknown folder.
    let lost = deep > LONGEST;
    Some(Rc::new(CdStep {
        from: if lost { None } else { from.clone() },
        to: if lost { unknown_dir_word() } else { to.clone() },
        depth: if lost { 1 } else { deep },
    }))
}

/// Returns the folders of both.
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
    // The start of the script is kept beside the unknown folder.
    if all.len() > MOST {
        return Rc::new([None, working_dir_with_cd_step(&None, &unknown_dir_word())]);
    }
    all.into()
}

/// Returns where a `cd` with these words leads; `None` if they are no `cd`.
pub(crate) fn working_dirs_after_cd(
    words: &[CommandWord],
    now: &WorkingDirs,
    all: &WorkingDirs,
) -> Option<WorkingDirs> {
    // `command -v cd` only prints what `cd` is. Its option ends the prefixes, so it is no `cd`
    // here.
    let words = skip_builtin_prefix_words(words, &["builtin", "command"]);
    match words.split_first()? {
        (name, rest) if name.as_literal() == Some("eval") => dirs_after_eval(rest, now, all),
        _ => dirs_after_cd(words, now, all),
    }
}

/// Returns the words after prefixes that only say how the next word is looked up.
fn skip_builtin_prefix_words<'w>(words: &'w [CommandWord], names: &[&str]) -> &'w [CommandWord] {
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
        // It may return to any folder from before.
        "popd" => return Some(Rc::clone(all)),
        _ => return None,
    }
    let target = rest.iter().find(|word| {
        word.as_literal() == Some("-") || !word.literal_prefix_of_word().starts_with(['-', '+'])
    });
    match target {
        Some(word) if word.as_literal() == Some("-") => Some(Rc::clone(all)),
        Some(word) => Some(
            now.iter()
                .map(|dir| working_dir_with_cd_step(dir, word))
                .collect(),
        ),
        None => Some(Rc::new([working_dir_with_cd_step(
            &None,
            &CommandWord::new_literal_word("~"),
        )])),
    }
}

/// Does the same for a text that `eval` reads. If the text holds more than one plain command, the
/// folder is unknown from there on.
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
            skip_builtin_prefix_words(&words, &["builtin", "command", "eval"]),
            now,
            all,
        );
    }
    let leads = |word: &CommandWord| matches!(word.as_literal(), Some("cd" | "pushd" | "popd"));
    let nowhere: WorkingDirs = Rc::new([working_dir_with_cd_step(&None, &unknown_dir_word())]);
    words
        .iter()
        .any(leads)
        .then(|| union_of_working_dirs(now, &nowhere))
}
