//! Tools that are named like the one program that they start: `git` with `args`, `kubectl` with
//! `command`, `run_gh`. The program is no word of what they are given.

use serde_json::Value;

use super::ToolCommand;
use super::command::{self, joined, strings, value_of};
use super::names::BareName;

/// Programs that are more than their first word, by what can be done with them.
const PROGRAMS: &[&str] = &[
    "aws",
    "az",
    "bq",
    "cargo",
    "curl",
    "docker",
    "flyctl",
    "gcloud",
    "gh",
    "git",
    "glab",
    "gsutil",
    "helm",
    "heroku",
    "kubectl",
    "mysql",
    "npm",
    "npx",
    "pip",
    "pnpm",
    "podman",
    "psql",
    "rsync",
    "scp",
    "ssh",
    "terraform",
    "tofu",
    "uv",
    "vercel",
    "wget",
    "wrangler",
    "yarn",
];

/// What such a tool is given as a command can be code, or a command of its own.
const INTERPRETERS: &[&str] = &[
    "bun", "deno", "node", "perl", "php", "python", "python3", "ruby",
];

/// Words that may stand before a program in the name of its tool, and behind it.
const BEFORE: &[&str] = &["call", "exec", "execute", "invoke", "run", "use"];
const BEHIND: &[&str] = &["cli", "cmd", "command", "tool"];

/// Names of arguments that hold the first word behind the program.
const FIRST: &[&str] = &["subcommand", "action", "operation", "verb"];

/// The command of a tool that is named like a program, beside the one that was found without that.
pub(super) fn of(
    name: &BareName<'_>,
    args: &Value,
    found: Option<&ToolCommand>,
) -> Option<ToolCommand> {
    let program = named(name.words())?;
    let map = args.as_object()?;
    match found {
        // As it is written it may be a command as well.
        Some(ToolCommand::Script(script)) if !INTERPRETERS.contains(&program) => {
            let is_whole = script.split_whitespace().next() == Some(program);
            let is_line = !script.trim().contains('\n');
            (is_line && !is_whole)
                .then(|| ToolCommand::Script(format!("{program} {script}\n{script}")))
        }
        Some(ToolCommand::Argv(words)) if !INTERPRETERS.contains(&program) => {
            let is_whole = words.first().is_some_and(|first| first == program);
            (!is_whole).then(|| {
                let words = joined(words);
                ToolCommand::Script(format!("{program} {words}\n{words}"))
            })
        }
        Some(_) => None,
        None => {
            let first = value_of(map, FIRST).and_then(Value::as_str);
            let words = |more: Vec<String>| -> Vec<String> {
                let before = std::iter::once(program).chain(first).map(str::to_owned);
                before.chain(more).collect()
            };
            match value_of(map, command::ARGUMENTS) {
                Some(Value::String(more)) => {
                    let before = joined(&words(Vec::new()));
                    Some(ToolCommand::Script(format!("{before} {more}")))
                }
                Some(more) => Some(ToolCommand::Argv(words(strings(more)?))),
                None => first.map(|_| ToolCommand::Argv(words(Vec::new()))),
            }
        }
    }
}

/// The program that a name of these words is.
fn named(words: &[String]) -> Option<&'static str> {
    let words = match words {
        [first, rest @ ..] if BEFORE.contains(&first.as_str()) => rest,
        words => words,
    };
    let program = match words {
        [program] => program,
        [program, last] if BEHIND.contains(&last.as_str()) => program,
        _ => return None,
    };
    let mut known = PROGRAMS.iter().chain(INTERPRETERS);
    known.find(|known| *known == program).copied()
}
