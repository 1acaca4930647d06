//! Finds calls in an unreadable program whose effect is plain from the text: a call that removes,
//! writes or moves a literal path, or runs a literal command. Everything else stays unknown. This
//! only adds effects, so that a destructive call is refused and not just asked about.

use super::{CodeLanguage, file_access_effect};
use crate::effects::{CommandEffect, FileAccess};
use crate::shell::CommandWord;

/// Maximum number of effects that are added for one program.
const MOST: usize = 64;

/// Functions that remove what their first argument names, whatever object they belong to.
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
/// Functions with common names, which count only as members of one of [`FILES`].
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
/// Functions that move, copy or link their first argument to their second.
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
/// Functions that run a command, given as one text or as a list of words.
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
/// Expressions for the home folder in several languages.
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

/// Adds the effects of calls with literal arguments.
pub(super) fn add_literal_call_effects(
    language: CodeLanguage,
    text: &str,
    out: &mut Vec<CommandEffect>,
) {
    let before = out.len();
    let mut rest = text;
    // The identifier before a dot, such as `os` in `os.remove`.
    let mut owner = "";
    // Each round takes at least one byte, so this bound only guards against a mistake.
    for _ in 0..text.len() {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if out.len() > before + MOST {
            return;
        }
        // Strings and comments are skipped as a whole, because calls in them do not run.
        let comment = match first {
            '#' => language != CodeLanguage::Node,
            '/' => language == CodeLanguage::Node && rest.starts_with("//"),
            _ => false,
        };
        if comment {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((_, after)) = split_off_string_literal(rest) {
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
        // An owner only holds up to the next sign other than `.` or `::`.
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
        // A string followed by an operator, as in `"/tmp/" + x`, is not the whole path.
        let alone = |rest: &str| {
            let next = rest.trim_start().chars().next();
            next.is_none_or(|next| matches!(next, ')' | ',' | ';' | '}'))
        };
        match split_off_string_literal(arguments) {
            // Only the shell expands `~`; elsewhere it is a file name.
            Some((path, rest)) if alone(rest) && !path.starts_with('~') => {
                out.push(file_access_effect(FileAccess::Remove, &path));
            }
            _ if home.is_some_and(alone) => out.push(file_access_effect(FileAccess::Remove, "~")),
            _ => {}
        }
    } else if WRITERS.contains(&name) || name == "write" && owner == "File" {
        out.extend(
            split_off_string_literal(arguments)
                .map(|(path, _)| file_access_effect(FileAccess::Write, &path)),
        );
    } else if MOVERS.contains(&name)
        || COMMON_MOVERS.contains(&name) && (FILES.contains(&owner) || owner == "shutil")
    {
        let second = split_off_string_literal(arguments).and_then(|(_, rest)| {
            split_off_string_literal(rest.trim_start().strip_prefix(',')?.trim_start())
        });
        // The target may be a folder, in which the file keeps its name.
        out.extend(second.map(|(path, _)| file_access_effect(FileAccess::Unpack, &path)));
    } else if RUNNERS.contains(&name) {
        let mut words = Vec::new();
        let mut rest = arguments;
        while let Some((word, after)) =
            split_off_string_literal(rest.trim_start_matches(['[', ' ']))
        {
            words.push(CommandWord::new_literal_word(word));
            rest = match after.trim_start().strip_prefix(',') {
                Some(after) => after.trim_start(),
                None => break,
            };
        }
        // One text is read by a shell; a list is the words of a command.
        match words.as_slice() {
            [] => {}
            [text] => out.push(CommandEffect::RunsScript(text.clone())),
            _ => out.push(CommandEffect::Command(words)),
        }
    }
}

/// Splits off the string literal that a text begins with. Template strings, which hold expressions,
/// are not taken.
fn split_off_string_literal(text: &str) -> Option<(String, &str)> {
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
