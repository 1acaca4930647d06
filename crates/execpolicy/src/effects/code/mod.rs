//! Judges inline code in languages other than the shell. Nothing is run, and only little is
//! understood: a program that is not plainly harmless counts as unreadable.

mod awk;
mod javascript;
mod literal_calls;
mod one_liners;
mod python;
mod sed;
mod sql;
mod tokens;
mod write_detection;

use super::program_spec::NonFileEffectKind;
use super::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

pub(super) use awk::awk_program_effects;
pub(super) use sed::sed_script_effects;
pub(super) use sql::{sql_effects, sqlite_text_effects};

/// Maximum bytes of a program that is analyzed.
const LONGEST: usize = 64 << 10;
/// Maximum number of paths that are collected from an unreadable program.
const MOST_NAMED: usize = 64;

/// The language of a program text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeLanguage {
    /// Python.
    Python,
    /// JavaScript with the modules of Node.
    Node,
    /// Perl.
    Perl,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Statements to a database server.
    Sql,
    /// Statements and dot commands of the `sqlite3` shell.
    Sqlite,
    /// Commands of `redis-cli`.
    Redis,
    /// Shell, which the shell grammar reads.
    Shell,
    /// A language that is not analyzed.
    Unread,
    /// No code: the input goes to another machine.
    RemoteInput,
}

/// Adds the effects of a program that stands in the words of a command.
pub(super) fn add_inline_code_effects(
    language: CodeLanguage,
    program: Option<&CommandWord>,
    out: &mut Vec<CommandEffect>,
) {
    match program {
        Some(word) if word.knowledge == WordKnowledge::Literal => {
            add_code_effects(language, &word.text, out)
        }
        Some(word) => {
            // A variable in the program can hold any code. Its literal calls still run.
            add_unreadable_code_effects(&word.text, out);
            literal_calls::add_literal_call_effects(language, &word.text, out);
        }
        None => {}
    }
}

/// Adds the effects of a program text.
pub(crate) fn add_code_effects(language: CodeLanguage, text: &str, out: &mut Vec<CommandEffect>) {
    let harmless = text.len() <= LONGEST
        && match language {
            CodeLanguage::Python => python::analyze_python_code_effects(text, out),
            CodeLanguage::Node => javascript::analyze_javascript(text, out),
            CodeLanguage::Perl => one_liners::is_perl_code_harmless(text, out),
            CodeLanguage::Ruby => one_liners::is_ruby_code_harmless(text, out),
            CodeLanguage::Php => one_liners::is_php_code_harmless(text),
            CodeLanguage::Sql => {
                sql_effects(&CommandWord::new_literal_word(text), out);
                true
            }
            CodeLanguage::Sqlite => {
                sqlite_text_effects(&CommandWord::new_literal_word(text), out);
                true
            }
            CodeLanguage::Redis | CodeLanguage::Unread => false,
            // What is sent is judged where it is sent, and shell text by the grammar.
            CodeLanguage::RemoteInput => true,
            CodeLanguage::Shell => true,
        };
    if !harmless {
        add_unreadable_code_effects(text, out);
        if text.len() <= LONGEST {
            literal_calls::add_literal_call_effects(language, text, out);
        }
    }
}

/// Adds an unreadable program: what it does is unknown, but the paths that it names are recorded.
fn add_unreadable_code_effects(text: &str, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(NonFileEffectKind::UnreadableCode));
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '*' | '~');
    let writes = write_detection::code_may_write_files(text);
    let mut rest = text;
    let mut before = None;
    let mut found: Vec<&str> = Vec::new();
    let mut alone: Vec<&str> = Vec::new();
    while !rest.is_empty() && found.len() < MOST_NAMED {
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        // A word without a slash is a path if it is quoted; else it is an identifier.
        let quoted = before == Some('"') && after.starts_with('"')
            || before == Some('\'') && after.starts_with('\'');
        let names = piece.contains('/') || quoted || piece.contains('.') && !piece.starts_with('.');
        if names && piece.contains(char::is_alphanumeric) && !found.contains(&piece) {
            found.push(piece);
        }
        // A whole string is a file name (`"a/b"`, `">a/b"`, `f"{home}/a/b"`); a path in a longer
        // string may be part of a sentence.
        let begins = matches!(before, Some('"' | '\'' | '`' | '>' | '}'));
        if writes && begins && piece.contains('/') && after.starts_with(['"', '\'', '`']) {
            alone.push(piece);
        }
        before = after.chars().next();
        rest = after.get(before.map_or(0, char::len_utf8)..).unwrap_or("");
    }
    out.extend(
        found
            .into_iter()
            .map(|path| file_access_effect(FileAccess::NamedInCode, path)),
    );
    out.extend(
        alone
            .into_iter()
            .map(|path| file_access_effect(FileAccess::MayWrite, path)),
    );
}

/// Whether the module of this name only computes.
pub(super) fn is_pure_module(language: CodeLanguage, name: &str) -> bool {
    match language {
        CodeLanguage::Perl => one_liners::PERL_MODULES.contains(&name),
        CodeLanguage::Ruby => one_liners::RUBY_MODULES.contains(&name),
        _ => false,
    }
}

/// Returns the effect of an option that names a script file, or standard input.
pub(super) fn runs_file_or_unreadable_effect(word: &CommandWord) -> CommandEffect {
    let text = word.text.as_str();
    // A pipe or a process substitution has no file whose text could be judged.
    let fed = text == "-"
        || ["/dev/", "/proc/", "<("]
            .iter()
            .any(|begin| text.starts_with(begin));
    match fed {
        true => CommandEffect::Kind(NonFileEffectKind::UnreadableCode),
        false => CommandEffect::RunsFile(word.clone()),
    }
}

/// Adds the files that a Python module can be loaded from.
pub(super) fn add_python_module_source_files(module: &str, out: &mut Vec<CommandEffect>) {
    let path = module.trim_end_matches(".py").replace('.', "/");
    let ends = [".py", "/__init__.py", "/__main__.py"];
    // Importing `a.b` runs `a` first.
    if let Some((first, _)) = module.split_once('.') {
        out.push(CommandEffect::StartsFile(CommandWord::new_literal_word(
            format!("{first}.py"),
        )));
    }
    out.extend(ends.map(|end| {
        CommandEffect::StartsFile(CommandWord::new_literal_word(format!("{path}{end}")))
    }));
}

fn file_access_effect(act: FileAccess, path: &str) -> CommandEffect {
    CommandEffect::File(act, CommandWord::new_literal_word(path))
}
