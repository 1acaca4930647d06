//! What commands do: read, write and remove files, reach the network, rise in privilege, persist.
//! Facts about programs, one row each; what no row knows is unknown, and unknown is not harmless.

pub(crate) mod call;
pub(crate) mod code;
mod credentials;
pub(crate) mod glob;
mod here;
mod inert;
pub(crate) mod judge;
pub(crate) mod means;
pub(crate) mod place;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod told;
pub(crate) mod variables;
mod vital;

pub(crate) use code::Language;
pub(crate) use row::Deed;
pub(crate) use table::{found_by, loads, names_printed};

use crate::rules::basename;
use crate::shell::Word;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Its text is read, and may be shown.
    Read,
    /// Its text is handed to a program and not shown.
    Use,
    /// Its name is seen, and those of all that lies below it.
    List,
    /// A folder is read with all that is in it.
    ReadBelow,
    /// It is made or changed.
    Write,
    /// What it held is lost, and something else or nothing put in its place.
    Replace,
    /// A folder is written into, anywhere in it.
    WriteBelow,
    /// A folder is written into under names that only an archive knows.
    Unpack,
    /// What it holds is replaced by an empty file system, or a table of partitions.
    Format,
    /// It is removed or moved away, with all that is in it.
    Remove,
    /// What nothing else keeps a record of is removed from a folder: `git clean`.
    Clear,
    /// Its owner cannot use it any more, or everybody can change it, with all that is in it.
    Spoil,
    /// It is named in code that cannot be read.
    Named,
    /// The same, as a text of its own in code that writes some file.
    MayWrite,
}

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Something happens to the file that a word names.
    File(Act, Word),
    /// If the first is a folder, it is written into under the names of the others.
    PutInto(Word, Vec<Word>),
    /// The second becomes another name of the first; or, if a symbolic one, a name for whatever
    /// lies there.
    Link(Word, Word, bool),
    /// The files that a patch names are changed, below this folder.
    Patch(Option<Word>),
    /// The files of all that follows are named from this folder.
    At(Word),
    /// A text that a shell reads.
    Runs(Word),
    /// A file of code.
    RunsFile(Word),
    /// A program by its path, which may have been put there just now.
    Starts(Word),
    /// It could be an option, where one does something.
    Option(Word),
    /// It goes to another machine, with what stands in it.
    Sends(Word),
    /// What it is fed is code.
    Fed(Language),
    /// The words of another command.
    Command(Vec<Word>),
    /// The words of a command that runs in a file system of its own.
    Inside(Vec<Word>),
    /// The words of a program that the project, or a registry, brings.
    Tool(Vec<Word>),
    /// Anything else.
    Deed(Deed),
}

impl Effect {
    /// Whether files are changed that only a patch names.
    pub(crate) fn is_patch(&self) -> bool {
        matches!(self, Self::Patch(_) | Self::File(Act::WriteBelow, _))
    }
}

/// What the command of these words does; the first names the program.
/// `brought`: by the project or a registry, so that any name is a program of theirs.
pub(crate) fn of(program: &str, words: &[Word], brought: bool) -> Vec<Effect> {
    let mut out = Vec::new();
    let name = basename(program);
    match table::find(name) {
        Some(row) => {
            call::judge(row, words, &mut out);
            if here::is_meant(name, words) {
                let felt = [Deed::Publishes, Deed::Deploys, Deed::Forces].map(Effect::Deed);
                out.retain(|effect| !felt.contains(effect));
            }
            // A script that is called `reboot` stops nothing that is known of.
            if program.contains('/') && !program.starts_with('/') {
                out.retain(|effect| *effect != Effect::Deed(Deed::Stops));
            }
            // It may be another one of the same name.
            if program.contains('/') {
                out.extend(words.first().cloned().map(Effect::Starts));
            }
        }
        // A loader starts what it is given.
        None if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            out.push(Effect::Tool(words.get(1..).unwrap_or(&[]).to_vec()));
        }
        None if brought => out.push(Effect::Deed(Deed::Opaque)),
        // A program that the project brings, or built.
        None if program.contains('/') => out.push(Effect::RunsFile(
            words
                .first()
                .cloned()
                .unwrap_or_else(|| Word::fixed(program)),
        )),
        // A script of the environment, by its name.
        None if [".py", ".sh", ".js", ".mjs", ".ts", ".pl", ".rb"]
            .iter()
            .any(|end| name.ends_with(end)) =>
        {
            out.push(Effect::Deed(Deed::Opaque))
        }
        None if only_asks(words) => {}
        None => out.push(Effect::Deed(Deed::Unknown)),
    }
    out
}

/// Whether these words of `git apply` or `patch`, the name first, change nothing.
pub(crate) fn only_shows_patch(words: &[&str]) -> bool {
    let row = match words.first() {
        Some(&"apply") => {
            let git = table::find("git");
            git.and_then(|git| git.subs.iter().find(|sub| sub.names.contains(&"apply")))
        }
        Some(&name) => table::find(name),
        None => None,
    };
    let words: Vec<Word> = words.iter().map(|word| Word::fixed(*word)).collect();
    row.is_some_and(|row| inert::is_inert(row, &words))
}

/// Whether a row says what this program does.
pub(crate) fn is_known(program: &str) -> bool {
    table::find(basename(program)).is_some()
}

/// Whether what a program writes is what its words, its input or other files say, and not what
/// it builds from the project.
pub(crate) fn carries(name: &str) -> bool {
    const EMPTY: &[&str] = &[
        "mkdir", "gmkdir", "touch", "gtouch", "mkfifo", "chmod", "gchmod",
    ];
    !EMPTY.contains(&name) && !table::builds(name)
}

/// `PROGRAM --version`: whatever it is, it says so and ends.
fn only_asks(words: &[Word]) -> bool {
    let asks = |word: &Word| matches!(word.as_fixed(), Some("--version" | "--help"));
    matches!(words, [_, word] if asks(word))
}
