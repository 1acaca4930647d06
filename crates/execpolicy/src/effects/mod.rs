//! Works out what a command does: which files it reads, writes and removes, whether it reaches the
//! network, raises privileges or persists. Facts about programs are kept in tables, one row per
//! program. A program without a row is unknown, and unknown is not treated as harmless.

pub(crate) mod code;
mod credentials;
mod critical_paths;
pub(crate) mod dangerous_variables;
pub(crate) mod evaluation;
pub(crate) mod glob;
mod inert;
mod invocation_risks;
mod local_targets;
pub(crate) mod parsed_args;
pub(crate) mod paths;
mod program_spec;
mod programs;
#[cfg(test)]
mod tests;
pub(crate) mod word_expansion;

pub(crate) use code::CodeLanguage;
pub(crate) use program_spec::NonFileEffectKind;
pub(crate) use programs::{files_autoloaded_by_program, paths_found_by_find, printed_file_names};

use crate::rule_set::basename;
use crate::shell::CommandWord;

/// What happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    /// Its text is read, and may be shown.
    Read,
    /// Its text is handed to a program and not shown.
    ReadUnshown,
    /// Its name is seen, and those of all that lies below it.
    List,
    /// A folder is read with all that is in it.
    ReadBelow,
    /// It is made or changed.
    Write,
    /// Its content is lost; something else, or nothing, takes its place.
    Replace,
    /// A folder is written into, anywhere in it.
    WriteBelow,
    /// A folder is written into under names that only an archive knows.
    Unpack,
    /// What it holds is replaced by an empty file system, or a table of partitions.
    Format,
    /// It is removed or moved away, with all that is in it.
    Remove,
    /// Everything in a folder that nothing else keeps a record of is removed: `git clean`.
    ClearContents,
    /// Its owner cannot use it any more, or everybody can change it, with all that is in it.
    BreakPermissions,
    /// It is named in code that cannot be read.
    NamedInCode,
    /// It is a whole string literal in unreadable code that writes some file.
    MayWrite,
}

/// One thing that a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandEffect {
    /// Something happens to the file that a word names.
    File(FileAccess, CommandWord),
    /// If the first word is a folder, it is written into under the names of the others.
    PutInto(CommandWord, Vec<CommandWord>),
    /// The second word becomes another name of the first. The flag is `true` for a symbolic link,
    /// which names whatever lies at the first.
    Link(CommandWord, CommandWord, bool),
    /// The files that a patch names are changed, below this folder.
    Patch(Option<CommandWord>),
    /// The files of all later effects are named from this folder.
    ChangeDir(CommandWord),
    /// A text that a shell reads.
    RunsScript(CommandWord),
    /// A file of code.
    RunsFile(CommandWord),
    /// A program by its path, which may have been put there just now.
    StartsFile(CommandWord),
    /// The word could be an option of a program that has dangerous ones.
    PossibleOption(CommandWord),
    /// The word's text goes to another machine.
    Sends(CommandWord),
    /// Its standard input is code of this language.
    StdinCode(CodeLanguage),
    /// The words of another command.
    Command(Vec<CommandWord>),
    /// The words of a command that runs in a file system of its own.
    ContainerCommand(Vec<CommandWord>),
    /// The words of a program that the project, or a registry, brings.
    ProjectTool(Vec<CommandWord>),
    /// Anything else.
    Kind(NonFileEffectKind),
}

impl CommandEffect {
    /// Whether files are changed that only a patch names.
    pub(crate) fn is_patch_write_effect(&self) -> bool {
        matches!(self, Self::Patch(_) | Self::File(FileAccess::WriteBelow, _))
    }
}

/// Returns what the command of these words does; the first word names the program.
/// `brought`: the project or a registry supplies the program, so any name can be one of theirs.
pub(crate) fn command_effects(
    program: &str,
    words: &[CommandWord],
    brought: bool,
) -> Vec<CommandEffect> {
    let mut out = Vec::new();
    let name = basename(program);
    match programs::find_program_spec(name) {
        Some(row) => {
            parsed_args::add_command_effects(row, words, &mut out);
            if local_targets::command_targets_only_localhost(name, words) {
                // Nobody else feels these effects if they stay on this machine.
                let felt = [
                    NonFileEffectKind::Publishes,
                    NonFileEffectKind::Deploys,
                    NonFileEffectKind::OverwritesShared,
                ]
                .map(CommandEffect::Kind);
                out.retain(|effect| !felt.contains(effect));
            }
            // A relative path is taken for a file of the project: a script `./reboot` is not known
            // to stop the machine.
            if program.contains('/') && !program.starts_with('/') {
                out.retain(|effect| {
                    *effect != CommandEffect::Kind(NonFileEffectKind::ShutsDownMachine)
                });
            }
            // A path can lead to another program of the same name, written just before.
            if program.contains('/') {
                out.extend(words.first().cloned().map(CommandEffect::StartsFile));
            }
        }
        // The dynamic loader runs the program that its first argument names.
        None if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            out.push(CommandEffect::ProjectTool(
                words.get(1..).unwrap_or(&[]).to_vec(),
            ));
        }
        // A project tool of unknown name is still only code of the project.
        None if brought => out.push(CommandEffect::Kind(NonFileEffectKind::Opaque)),
        // A program that the project brings, or built.
        None if program.contains('/') => out.push(CommandEffect::RunsFile(
            words
                .first()
                .cloned()
                .unwrap_or_else(|| CommandWord::new_literal_word(program)),
        )),
        // A script of the environment, by its name.
        None if [".py", ".sh", ".js", ".mjs", ".ts", ".pl", ".rb"]
            .iter()
            .any(|end| name.ends_with(end)) =>
        {
            out.push(CommandEffect::Kind(NonFileEffectKind::Opaque))
        }
        // Even an unknown program is expected to print its version and end.
        None if is_version_query(words) => {}
        None => out.push(CommandEffect::Kind(NonFileEffectKind::UnknownProgram)),
    }
    out
}

/// Whether these words of `git apply` or `patch`, the name first, change nothing.
pub(crate) fn is_patch_dry_run(words: &[&str]) -> bool {
    let row = match words.first() {
        Some(&"apply") => {
            let git = programs::find_program_spec("git");
            git.and_then(|git| {
                git.subcommands
                    .iter()
                    .find(|sub| sub.names.contains(&"apply"))
            })
        }
        Some(&name) => programs::find_program_spec(name),
        None => None,
    };
    let words: Vec<CommandWord> = words
        .iter()
        .map(|word| CommandWord::new_literal_word(*word))
        .collect();
    row.is_some_and(|row| inert::is_dry_run_call(row, &words))
}

/// Whether a row says what this program does.
pub(crate) fn is_known_program(program: &str) -> bool {
    programs::find_program_spec(basename(program)).is_some()
}

/// Whether what a program writes is what its words, its input or other files say, and not what
/// it builds from the project.
pub(crate) fn written_content_is_given_not_built(name: &str) -> bool {
    const EMPTY: &[&str] = &[
        "mkdir", "gmkdir", "touch", "gtouch", "mkfifo", "chmod", "gchmod",
    ];
    !EMPTY.contains(&name) && !programs::is_build_program(name)
}

/// `PROGRAM --version`: whatever it is, it says so and ends.
fn is_version_query(words: &[CommandWord]) -> bool {
    let asks = |word: &CommandWord| matches!(word.as_literal(), Some("--version" | "--help"));
    matches!(words, [_, word] if asks(word))
}
