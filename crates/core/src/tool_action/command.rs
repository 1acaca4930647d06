//! Finds the command or the patch in the arguments of a tool.

use serde_json::{Map, Value};

use super::ScriptOrArgvOfToolCall;
use super::arguments::is_content_argument;
use super::code::{self, ToolCallCodeReader};
use super::tool_names::{ToolNameWithoutServer, split_tool_name_into_words};

/// How deeply nested objects and lists are scanned.
const MAX_DEPTH: usize = 16;

/// Names of arguments that hold a command, in any case and without `_`.
const COMMANDS: &[&str] = &[
    "command",
    "cmd",
    "script",
    "commands",
    "commandline",
    "cmdline",
    "shellcommand",
    "bashcommand",
    "shellscript",
    "clicommand",
    "commandstring",
    "commandtext",
    "fullcommand",
    "terminalcommand",
];

/// Names of arguments that hold a program, where its arguments stand beside it.
const PROGRAMS: &[&str] = &["executable", "program", "binary"];

/// Names of arguments that hold the words behind a program.
pub(super) const ARGUMENTS: &[&str] = &["args", "arguments", "argv"];

/// Names of arguments that hold what is typed into a running process.
const TYPED: &[&str] = &["chars", "data", "input", "keys", "stdin", "text"];

/// Returns whether an argument of this name is part of a command, where there is one.
pub(super) fn is_command_argument_name(name: &str) -> bool {
    let joined = split_tool_name_into_words(name).concat();
    [COMMANDS, PROGRAMS, ARGUMENTS]
        .iter()
        .any(|names| names.contains(&joined.as_str()))
}

/// The command of a tool that is known to run one.
pub(super) fn shell_tool_command(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
) -> Option<ScriptOrArgvOfToolCall> {
    let value = match args {
        Value::Object(_) => {
            return command_in_tool_arguments(args, None)
                .or_else(|| code::shell_tool_code(name, args));
        }
        Value::String(_) | Value::Array(_) => args,
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    command_from_argument_value(value)
}

pub(super) fn command_from_argument_value(value: &Value) -> Option<ScriptOrArgvOfToolCall> {
    match value {
        Value::String(script) => Some(ScriptOrArgvOfToolCall::Script(script.clone())),
        Value::Array(_) => string_array_from_json(value)
            .filter(|words| !words.is_empty())
            .map(ScriptOrArgvOfToolCall::Argv),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Finds the command in the arguments of any tool, by the usual argument names, at any depth, and
/// the code of a tool that runs code. A list is the words of a command without a shell, unless
/// something stands beside it.
pub(super) fn command_in_tool_arguments(
    args: &Value,
    code: Option<ToolCallCodeReader>,
) -> Option<ScriptOrArgvOfToolCall> {
    let mut found = CommandsInToolArguments {
        code,
        ..CommandsInToolArguments::default()
    };
    found.scan_value_for_commands(args, MAX_DEPTH);
    match (found.lines.len(), found.argv) {
        (0, _) => code::merge_tool_call_commands(code?.commands_running_typed_code(args)),
        (1, Some(argv)) => Some(ScriptOrArgvOfToolCall::Argv(argv)),
        // Several commands are judged together, as lines of one script.
        _ => Some(ScriptOrArgvOfToolCall::Script(found.lines.join("\n"))),
    }
}

/// Returns what is typed into a running process, if it can be a command. A single word is taken for
/// an answer.
pub(super) fn command_typed_to_process(args: &Value) -> Option<ScriptOrArgvOfToolCall> {
    let text = first_named_argument(args.as_object()?, TYPED)?.as_str()?;
    let is_command = text
        .trim()
        .contains(|c: char| c.is_whitespace() || "/<>|&;".contains(c));
    is_command.then(|| ScriptOrArgvOfToolCall::Script(text.to_owned()))
}

/// The patch in the arguments of a tool that applies one.
pub(super) fn patch_argument(args: &Value) -> Option<String> {
    let text = |key: &&str| args.get(*key).and_then(Value::as_str);
    ["patch", "input", "command", "diff", "content", "text"]
        .iter()
        .find_map(text)
        .or(args.as_str())
        .map(str::to_owned)
}

/// The first of these arguments that is there.
pub(super) fn first_named_argument<'v>(
    map: &'v Map<String, Value>,
    names: &[&str],
) -> Option<&'v Value> {
    let named = |name: &str| {
        map.iter()
            // `commandLine`, `command_line` and `command-line` are one name.
            .find(|(key, _)| split_tool_name_into_words(key).concat() == name)
    };
    names
        .iter()
        .find_map(|name| named(name))
        .map(|(_, value)| value)
}

/// Commands that were found.
#[derive(Default)]
struct CommandsInToolArguments {
    /// How code is read, where it is run.
    code: Option<ToolCallCodeReader>,
    lines: Vec<String>,
    /// The words of the last one that is given as words.
    argv: Option<Vec<String>>,
}

impl CommandsInToolArguments {
    fn scan_value_for_commands(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::Object(map) => {
                self.collect_tool_argument_commands(map);
                for (name, value) in map {
                    // Text for a file is not run, even if it looks like JSON with a command in it.
                    if !is_content_argument(name) {
                        self.scan_value_for_commands(value, depth);
                    }
                }
            }
            Value::Array(list) => list
                .iter()
                .for_each(|value| self.scan_value_for_commands(value, depth)),
            // Some agents send nested arguments as JSON in a string.
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
                {
                    self.scan_value_for_commands(&value, depth);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn collect_tool_argument_commands(&mut self, map: &Map<String, Value>) {
        self.scan_commands_in_arguments(map);
        let codes = self
            .code
            .map(|code| code.code_args_as_interpreter_commands(map));
        self.add_code_commands(&codes.unwrap_or_default());
    }

    fn add_code_commands(&mut self, codes: &[Vec<String>]) {
        for words in codes {
            self.lines.push(code::shell_line_from_words(words));
            // A shell script has no words of its own.
            self.argv = code::inline_shell_script(words)
                .is_none()
                .then(|| words.clone());
        }
    }

    /// The commands of one object, with the arguments that stand beside them.
    fn scan_commands_in_arguments(&mut self, map: &Map<String, Value>) {
        let (mut lines, mut argv) = (Vec::new(), None);
        for name in COMMANDS {
            for value in values_of_argument_in_any_spelling(map, name) {
                match value {
                    Value::String(script) => {
                        let code = self.code.and_then(|code| {
                            code.interpreter_argvs_if_argument_is_code(map, script)
                        });
                        match code {
                            Some(codes) => self.add_code_commands(&codes),
                            None => lines.push(script.clone()),
                        }
                    }
                    _ => {
                        let list = string_array_from_json(value).filter(|words| !words.is_empty());
                        match list {
                            // `commands` with blanks in its items is a list of command lines, not
                            // the words of one command.
                            Some(list)
                                if list.iter().any(|line| line.contains(' '))
                                    && *name == "commands" =>
                            {
                                lines.extend(list);
                            }
                            list => {
                                lines.extend(list.iter().map(|words| shell_join(words)));
                                argv = list.or(argv);
                            }
                        }
                    }
                }
            }
        }
        let more = ARGUMENTS
            .iter()
            .flat_map(|name| values_of_argument_in_any_spelling(map, name))
            .next();
        if lines.is_empty() {
            let mut programs = PROGRAMS
                .iter()
                .flat_map(|name| values_of_argument_in_any_spelling(map, name));
            match programs.find_map(Value::as_str) {
                Some(program) if more.is_some() => {
                    let words = vec![program.to_owned()];
                    lines.push(shell_join(&words));
                    argv = Some(words);
                }
                // `argv` alone holds the whole command, with the program first.
                _ => {
                    let words = values_of_argument_in_any_spelling(map, "argv")
                        .find_map(string_array_from_json);
                    if let Some(words) = words.filter(|words| !words.is_empty()) {
                        self.lines.push(shell_join(&words));
                        self.argv = Some(words);
                    }
                    return;
                }
            }
        }
        let alone = lines.len() == 1;
        let Some(first) = lines.first_mut() else {
            return;
        };
        // The program is in one argument and its words are in another.
        match (more, &mut argv) {
            (Some(Value::String(more)), _) => {
                *first = format!("{first} {more}");
                // A text of arguments is split by a shell, so the words are not known.
                argv = None;
            }
            (Some(more), argv) => {
                let more = string_array_from_json(more).unwrap_or_default();
                if !more.is_empty() {
                    *first = format!("{first} {}", shell_join(&more));
                }
                if let Some(argv) = argv {
                    argv.extend(more);
                }
            }
            (None, _) => {}
        }
        if alone {
            self.argv = argv;
        }
        self.lines.extend(lines);
    }
}

pub(super) fn values_of_argument_in_any_spelling<'v>(
    map: &'v Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'v Value> {
    map.iter()
        .filter(move |(key, _)| split_tool_name_into_words(key).concat() == name)
        .map(|(_, value)| value)
}

pub(super) fn string_array_from_json(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(super) fn shell_join(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
