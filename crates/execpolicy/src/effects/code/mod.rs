//! Code of other languages, as far as it can be read. Nothing is run and little is understood:
//! what is not plainly harmless cannot be read.

mod awk;
mod javascript;
mod lines;
mod literal;
mod python;
mod sed;
mod sql;
mod text;
mod writes;

use super::row::Deed;
use super::{Act, Effect};
use crate::shell::{Known, Word};

pub(super) use awk::awk;
pub(super) use sed::sed;
pub(super) use sql::{sql, sqlite};

/// Bytes of a program that is read.
const LONGEST: usize = 64 << 10;
/// Paths that are looked for in a program that cannot be read.
const MOST_NAMED: usize = 64;

/// A language that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
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
    Other,
    /// None: it goes to another machine.
    Sent,
}

/// What a program in the words of a command does.
pub(super) fn judge(language: Language, program: Option<&Word>, out: &mut Vec<Effect>) {
    match program {
        Some(word) if word.known == Known::Fixed => read(language, &word.text, out),
        Some(word) => {
            unreadable(&word.text, out);
            literal::calls(language, &word.text, out);
        }
        None => {}
    }
}

/// What a program does.
pub(crate) fn read(language: Language, text: &str, out: &mut Vec<Effect>) {
    let harmless = text.len() <= LONGEST
        && match language {
            Language::Python => python::read(text, out),
            Language::Node => javascript::read(text, out),
            Language::Perl => lines::perl(text, out),
            Language::Ruby => lines::ruby(text, out),
            Language::Php => lines::php(text),
            Language::Sql => {
                sql(&Word::fixed(text), out);
                true
            }
            Language::Sqlite => {
                sqlite(&Word::fixed(text), out);
                true
            }
            Language::Redis | Language::Other => false,
            Language::Sent => true,
            Language::Shell => true,
        };
    if !harmless {
        unreadable(text, out);
        if text.len() <= LONGEST {
            literal::calls(language, text, out);
        }
    }
}

/// What it does nobody knows; which files it may be about can be told from their names in it.
fn unreadable(text: &str, out: &mut Vec<Effect>) {
    out.push(Effect::Deed(Deed::Code));
    let part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '*' | '~');
    let writes = writes::some_file(text);
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
    out.extend(found.into_iter().map(|path| file(Act::Named, path)));
    out.extend(alone.into_iter().map(|path| file(Act::MayWrite, path)));
}

/// Whether a module of this name is one that only computes.
pub(super) fn is_module(language: Language, name: &str) -> bool {
    match language {
        Language::Perl => lines::PERL_MODULES.contains(&name),
        Language::Ruby => lines::RUBY_MODULES.contains(&name),
        _ => false,
    }
}

/// The program that an option names: a file, or what comes in.
pub(super) fn file_of(word: &Word) -> Effect {
    let text = word.text.as_str();
    let fed = text == "-"
        || ["/dev/", "/proc/", "<("]
            .iter()
            .any(|begin| text.starts_with(begin));
    match fed {
        true => Effect::Deed(Deed::Code),
        false => Effect::RunsFile(word.clone()),
    }
}

/// The files that a module of Python can be.
pub(super) fn imports(module: &str, out: &mut Vec<Effect>) {
    let path = module.trim_end_matches(".py").replace('.', "/");
    let ends = [".py", "/__init__.py", "/__main__.py"];
    if let Some((first, _)) = module.split_once('.') {
        out.push(Effect::Starts(Word::fixed(format!("{first}.py"))));
    }
    out.extend(ends.map(|end| Effect::Starts(Word::fixed(format!("{path}{end}")))));
}

fn file(act: Act, path: &str) -> Effect {
    Effect::File(act, Word::fixed(path))
}
