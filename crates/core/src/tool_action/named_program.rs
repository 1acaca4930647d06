//! Finds the command of tools that are named like the program that they start: `git` with `args`,
//! `kubectl` with `command`, `run_gh`. The program is not among the words that they are given.

use serde_json::Value;

use super::ScriptOrArgvOfToolCall;
use super::command::{self, first_named_argument, shell_join, string_array_from_json};
use super::tool_names::ToolNameWithoutServer;

/// Programs whose subcommands decide what they do.
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

/// Programs whose tools may be given code, or a command of its own.
const INTERPRETERS: &[&str] = &[
    "bun", "deno", "node", "perl", "php", "python", "python3", "ruby",
];

/// Words that may stand before a program in the name of its tool, and behind it.
const BEFORE: &[&str] = &["call", "exec", "execute", "invoke", "run", "use"];
const BEHIND: &[&str] = &["cli", "cmd", "command", "tool"];

/// Names of arguments that hold the first word behind the program.
const FIRST: &[&str] = &["subcommand", "action", "operation", "verb"];

/// The command of a tool that is named like a program, beside the one that was found without that.
pub(super) fn command_of_program_named_tool(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
    found: Option<&ScriptOrArgvOfToolCall>,
) -> Option<ScriptOrArgvOfToolCall> {
    let program = program_from_tool_name(name.tool_name_words())?;
    let map = args.as_object()?;
    match found {
        // The text may also be a complete command, so both readings are judged, each as a line.
        Some(ScriptOrArgvOfToolCall::Script(script)) if !INTERPRETERS.contains(&program) => {
            // With the program already in front, there is only one reading.
            let is_whole = script.split_whitespace().next() == Some(program);
            let is_line = !script.trim().contains('\n');
            (is_line && !is_whole)
                .then(|| ScriptOrArgvOfToolCall::Script(format!("{program} {script}\n{script}")))
        }
        Some(ScriptOrArgvOfToolCall::Argv(words)) if !INTERPRETERS.contains(&program) => {
            let is_whole = words.first().is_some_and(|first| first == program);
            (!is_whole).then(|| {
                let words = shell_join(words);
                ScriptOrArgvOfToolCall::Script(format!("{program} {words}\n{words}"))
            })
        }
        Some(_) => None,
        None => {
            let first = first_named_argument(map, FIRST).and_then(Value::as_str);
            let words = |more: Vec<String>| -> Vec<String> {
                let before = std::iter::once(program).chain(first).map(str::to_owned);
                before.chain(more).collect()
            };
            match first_named_argument(map, command::ARGUMENTS) {
                Some(Value::String(more)) => {
                    let before = shell_join(&words(Vec::new()));
                    Some(ScriptOrArgvOfToolCall::Script(format!("{before} {more}")))
                }
                Some(more) => Some(ScriptOrArgvOfToolCall::Argv(words(string_array_from_json(
                    more,
                )?))),
                // Without a subcommand or arguments nothing is known about the call, and the name
                // alone decides.
                None => first.map(|_| ScriptOrArgvOfToolCall::Argv(words(Vec::new()))),
            }
        }
    }
}

/// The program that a name of these words is.
fn program_from_tool_name(words: &[String]) -> Option<&'static str> {
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
