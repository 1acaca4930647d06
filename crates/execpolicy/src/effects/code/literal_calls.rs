//! What a program that cannot be read as a whole plainly says: calls that remove a path or run a
//! command which stands in them as a text. More is not looked for.

use super::{CodeLanguage, file_access_effect};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

/// Calls of one program that are kept.
const MOST: usize = 64;

/// Functions that remove what their first argument names, whatever they belong to.
const REMOVERS: &[&str] = &[
    "rmtree",
    "remove_tree",
    "removedirs",
    "rm_rf",
    "rm_r",
    "rm_f",
    "remove_dir",
    "remove_entry",
    "remove_entry_secure",
    "rmSync",
    "rmdirSync",
    "unlinkSync",
    "rimraf",
    "rimrafSync",
];
/// Functions of so common a name that they count only where they belong to one of [`FILES`].
const COMMON: &[&str] = &["remove", "unlink", "rmdir", "rm", "delete"];
const FILES: &[&str] = &["os", "fs", "fsp", "promises", "File", "Dir", "FileUtils"];
/// Functions that write what their first argument names.
const WRITERS: &[&str] = &[
    "writeFile",
    "writeFileSync",
    "appendFile",
    "appendFileSync",
    "createWriteStream",
    "truncateSync",
];
/// Functions that put their first argument, or another name of it, where their second says.
const MOVERS: &[&str] = &[
    "renameSync",
    "copyFileSync",
    "cpSync",
    "symlinkSync",
    "linkSync",
];
const COMMON_MOVERS: &[&str] = &[
    "copy", "copy2", "copyfile", "copytree", "move", "rename", "replace", "symlink", "link", "cp",
    "cp_r", "mv", "ln_s",
];
/// Functions that run a command: a text, or a list of its words.
const RUNNERS: &[&str] = &[
    "system",
    "popen",
    "Popen",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
    "exec",
    "execSync",
    "spawn",
    "spawnSync",
    "execFileSync",
];
/// How a program asks for the home of its person.
const HOMES: &[&str] = &[
    "os.path.expanduser('~')",
    "os.path.expanduser(\"~\")",
    "expanduser('~')",
    "expanduser(\"~\")",
    "Path.home()",
    "pathlib.Path.home()",
    "os.environ['HOME']",
    "os.environ[\"HOME\"]",
    "os.getenv('HOME')",
    "os.getenv(\"HOME\")",
    "Dir.home",
    "ENV['HOME']",
    "ENV[\"HOME\"]",
    "os.homedir()",
    "require('os').homedir()",
    "require(\"os\").homedir()",
    "process.env.HOME",
    "$ENV{HOME}",
    "$ENV{'HOME'}",
    "$HOME",
];

/// Adds what the calls of this program remove and run.
pub(super) fn add_literal_call_effects(
    language: CodeLanguage,
    text: &str,
    out: &mut Vec<CommandEffect>,
) {
    let before = out.len();
    let mut rest = text;
    let mut owner = "";
    for _ in 0..text.len() {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if out.len() > before + MOST {
            return;
        }
        let comment = match first {
            '#' => language != CodeLanguage::Node,
            '/' => language == CodeLanguage::Node && rest.starts_with("//"),
            _ => false,
        };
        if comment {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((_, after)) = leading_string(rest) {
            rest = after;
        } else if first == '`' && matches!(language, CodeLanguage::Perl | CodeLanguage::Ruby) {
            let (command, after) = rest
                .get(1..)
                .unwrap_or("")
                .split_once('`')
                .unwrap_or((rest, ""));
            out.push(CommandEffect::RunsScript(CommandWord::new_literal_word(
                command,
            )));
            rest = after;
        } else if first.is_alphabetic() || first == '_' {
            let end = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            add_code_call_effects(owner, name, after, out);
            owner = name;
            rest = after;
            continue;
        } else {
            rest = rest.get(first.len_utf8()..).unwrap_or("");
        }
        // `os.remove`, `File::delete`: what belongs together stands together.
        if !matches!(first, '.' | ':') {
            owner = "";
        }
    }
}

fn add_code_call_effects(owner: &str, name: &str, after: &str, out: &mut Vec<CommandEffect>) {
    let bare = owner.is_empty() && matches!(name, "unlink" | "rmdir");
    let removes =
        REMOVERS.contains(&name) || bare || COMMON.contains(&name) && FILES.contains(&owner);
    let arguments = after.trim_start().trim_start_matches('(').trim_start();
    if removes {
        let home = HOMES.iter().find_map(|home| arguments.strip_prefix(home));
        let alone = |rest: &str| {
            let next = rest.trim_start().chars().next();
            next.is_none_or(|next| matches!(next, ')' | ',' | ';' | '}'))
        };
        match leading_string(arguments) {
            // No language but the shell takes a `~` for a home.
            Some((path, rest)) if alone(rest) && !path.starts_with('~') => {
                out.push(file_access_effect(FileAccess::Remove, &path));
            }
            _ if home.is_some_and(alone) => out.push(file_access_effect(FileAccess::Remove, "~")),
            _ => {}
        }
    } else if WRITERS.contains(&name) || name == "write" && owner == "File" {
        out.extend(
            leading_string(arguments).map(|(path, _)| file_access_effect(FileAccess::Write, &path)),
        );
    } else if MOVERS.contains(&name)
        || COMMON_MOVERS.contains(&name) && (FILES.contains(&owner) || owner == "shutil")
    {
        let second = leading_string(arguments).and_then(|(_, rest)| {
            leading_string(rest.trim_start().strip_prefix(',')?.trim_start())
        });
        out.extend(second.map(|(path, _)| file_access_effect(FileAccess::Unpack, &path)));
    } else if RUNNERS.contains(&name) {
        let mut words = Vec::new();
        let mut rest = arguments;
        while let Some((word, after)) = leading_string(rest.trim_start_matches(['[', ' '])) {
            words.push(CommandWord::new_literal_word(word));
            rest = match after.trim_start().strip_prefix(',') {
                Some(after) => after.trim_start(),
                None => break,
            };
        }
        match words.as_slice() {
            [] => {}
            [text] => out.push(CommandEffect::RunsScript(text.clone())),
            _ => out.push(CommandEffect::Command(words)),
        }
    }
}

/// The string that a text begins with, and what follows it; one that holds an expression of the
/// language is none.
fn leading_string(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if std::mem::take(&mut escaped) => value.push(c),
            '\\' => escaped = true,
            _ if c == quote => return Some((value, text.get(at + 1..).unwrap_or(""))),
            _ => value.push(c),
        }
    }
    None
}
