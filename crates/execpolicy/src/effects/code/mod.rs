//! Code of other languages, as far as it can be read. Nothing is run and little is understood:
//! what is not plainly harmless cannot be read.

mod awk;
mod javascript;
mod literal_calls;
mod one_liners;
mod python;
mod sed;
mod sql;
mod tokens;
mod write_detection;

use super::program_spec::EffectKind;
use super::{CommandEffect, FileAccess};
use crate::shell::{CommandWord, WordKnowledge};

pub(super) use awk::awk_program_effects;
pub(super) use sed::sed_script_effects;
pub(super) use sql::{sql_effects, sqlite_text_effects};

/// Bytes of a program that is read.
const LONGEST: usize = 64 << 10;
/// Paths that are looked for in a program that cannot be read.
const MOST_NAMED: usize = 64;

/// A language that is read.
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
    /// A shell's, read by the grammar.
    Shell,
    /// One that is not read.
    Unread,
    /// None: it goes to another machine.
    RemoteInput,
}

/// What a program in the words of a command does.
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
            add_unreadable_code_effects(&word.text, out);
            literal_calls::add_literal_call_effects(language, &word.text, out);
        }
        None => {}
    }
}

/// What a program does.
pub(crate) fn add_code_effects(language: CodeLanguage, text: &str, out: &mut Vec<CommandEffect>) {
    let harmless = text.len() <= LONGEST
        && match language {
            CodeLanguage::Python => python::analyze_python(text, out),
            CodeLanguage::Node => javascript::analyze_javascript(text, out),
            CodeLanguage::Perl => one_liners::analyze_perl(text, out),
            CodeLanguage::Ruby => one_liners::analyze_ruby(text, out),
            CodeLanguage::Php => one_liners::analyze_php(text),
            CodeLanguage::Sql => {
                sql_effects(&CommandWord::new_literal_word(text), out);
                true
            }
            CodeLanguage::Sqlite => {
                sqlite_text_effects(&CommandWord::new_literal_word(text), out);
                true
            }
            CodeLanguage::Redis | CodeLanguage::Unread => false,
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

/// What it does nobody knows; which files it may be about can be told from their names in it.
fn add_unreadable_code_effects(text: &str, out: &mut Vec<CommandEffect>) {
    out.push(CommandEffect::Kind(EffectKind::UnreadableCode));
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '*' | '~');
    let writes = write_detection::code_may_write_files(text);
    let mut rest = text;
    let mut before = None;
    let mut found: Vec<&str> = Vec::new();
    let mut alone: Vec<&str> = Vec::new();
    while !rest.is_empty() && found.len() < MOST_NAMED {
        let length = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let (piece, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        // A word alone is a path where it is quoted, not where it is a name of the program's.
        let quoted = before == Some('"') && after.starts_with('"')
            || before == Some('\'') && after.starts_with('\'');
        let names = piece.contains('/') || quoted || piece.contains('.') && !piece.starts_with('.');
        if names && piece.contains(char::is_alphanumeric) && !found.contains(&piece) {
            found.push(piece);
        }
        // `"a/b"`, `">a/b"`, `f"{home}/a/b"`: the name of a file, and not a part of a sentence.
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

/// Whether a module of this name is one that only computes.
pub(super) fn is_pure_module(language: CodeLanguage, name: &str) -> bool {
    match language {
        CodeLanguage::Perl => one_liners::PERL_MODULES.contains(&name),
        CodeLanguage::Ruby => one_liners::RUBY_MODULES.contains(&name),
        _ => false,
    }
}

/// The program that an option names: a file, or what comes in.
pub(super) fn script_file_effect(word: &CommandWord) -> CommandEffect {
    let text = word.text.as_str();
    let fed = text == "-"
        || ["/dev/", "/proc/", "<("]
            .iter()
            .any(|begin| text.starts_with(begin));
    match fed {
        true => CommandEffect::Kind(EffectKind::UnreadableCode),
        false => CommandEffect::RunsFile(word.clone()),
    }
}

/// The files that a module of Python can be.
pub(super) fn add_python_module_files(module: &str, out: &mut Vec<CommandEffect>) {
    let path = module.trim_end_matches(".py").replace('.', "/");
    let ends = [".py", "/__init__.py", "/__main__.py"];
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
