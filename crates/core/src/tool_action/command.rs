//! The command, or the patch, that stands in the arguments of a tool.

use serde_json::{Map, Value};

use super::ToolCommand;
use super::arguments::is_content;
use super::code::{self, CodeReader};
use super::names::{BareName, words};

/// Objects and lists inside one another that are looked into.
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

/// Names of arguments that hold what is typed at something that runs.
const TYPED: &[&str] = &["chars", "data", "input", "keys", "stdin", "text"];

/// Whether an argument of this name is read as a command, where there is one.
pub(super) fn is_part(name: &str) -> bool {
    let joined = words(name).concat();
    [COMMANDS, PROGRAMS, ARGUMENTS]
        .iter()
        .any(|names| names.contains(&joined.as_str()))
}

/// The command of a tool that is known to run one.
pub(super) fn of_shell_tool(name: &BareName<'_>, args: &Value) -> Option<ToolCommand> {
    let value = match args {
        Value::Object(_) => {
            return of_any_tool(args, None).or_else(|| code::of_shell_tool(name, args));
        }
        Value::String(_) | Value::Array(_) => args,
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    of_value(value)
}

pub(super) fn of_value(value: &Value) -> Option<ToolCommand> {
    match value {
        Value::String(script) => Some(ToolCommand::Script(script.clone())),
        Value::Array(_) => strings(value)
            .filter(|words| !words.is_empty())
            .map(ToolCommand::Argv),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The command in the arguments of any tool, by the names that it commonly has, wherever it stands in
/// them, and the code of one that runs code. A list is of words for no shell, unless something stands
/// beside it.
pub(super) fn of_any_tool(args: &Value, code: Option<CodeReader>) -> Option<ToolCommand> {
    let mut found = Found {
        code,
        ..Found::default()
    };
    found.value(args, MAX_DEPTH);
    match (found.lines.len(), found.argv) {
        (0, _) => code::as_command(code?.typed(args)),
        (1, Some(argv)) => Some(ToolCommand::Argv(argv)),
        _ => Some(ToolCommand::Script(found.lines.join("\n"))),
    }
}

/// What is typed at something that runs, if it can be a command: an answer is one word.
pub(super) fn typed(args: &Value) -> Option<ToolCommand> {
    let text = value_of(args.as_object()?, TYPED)?.as_str()?;
    let is_command = text
        .trim()
        .contains(|c: char| c.is_whitespace() || "/<>|&;".contains(c));
    is_command.then(|| ToolCommand::Script(text.to_owned()))
}

/// The patch in the arguments of a tool that applies one.
pub(super) fn patch(args: &Value) -> Option<String> {
    let text = |key: &&str| args.get(*key).and_then(Value::as_str);
    ["patch", "input", "command", "diff", "content", "text"]
        .iter()
        .find_map(text)
        .or(args.as_str())
        .map(str::to_owned)
}

/// The first of these arguments that is there.
pub(super) fn value_of<'v>(map: &'v Map<String, Value>, names: &[&str]) -> Option<&'v Value> {
    let named = |name: &str| map.iter().find(|(key, _)| words(key).concat() == name);
    names
        .iter()
        .find_map(|name| named(name))
        .map(|(_, value)| value)
}

/// Commands that were found.
#[derive(Default)]
struct Found {
    /// How code is read, where it is run.
    code: Option<CodeReader>,
    lines: Vec<String>,
    /// The words of the last one that is given as words.
    argv: Option<Vec<String>>,
}

impl Found {
    fn value(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        match value {
            Value::Object(map) => {
                self.object(map);
                for (name, value) in map {
                    if !is_content(name) {
                        self.value(value, depth);
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.value(value, depth)),
            Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
                if let Ok(value @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
                {
                    self.value(&value, depth);
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn object(&mut self, map: &Map<String, Value>) {
        self.commands(map);
        let codes = self.code.map(|code| code.codes(map));
        self.codes(&codes.unwrap_or_default());
    }

    fn codes(&mut self, codes: &[Vec<String>]) {
        for words in codes {
            self.lines.push(code::line(words));
            // What is read as a script has no words.
            self.argv = code::script(words).is_none().then(|| words.clone());
        }
    }

    /// The commands of one object, with the arguments that stand beside them.
    fn commands(&mut self, map: &Map<String, Value>) {
        let (mut lines, mut argv) = (Vec::new(), None);
        for name in COMMANDS {
            for value in values_of(map, name) {
                match value {
                    Value::String(script) => {
                        let code = self
                            .code
                            .and_then(|code| code.in_place_of_command(map, script));
                        match code {
                            Some(codes) => self.codes(&codes),
                            None => lines.push(script.clone()),
                        }
                    }
                    _ => {
                        let list = strings(value).filter(|words| !words.is_empty());
                        match list {
                            // Several commands, each a line.
                            Some(list)
                                if list.iter().any(|line| line.contains(' '))
                                    && *name == "commands" =>
                            {
                                lines.extend(list);
                            }
                            list => {
                                lines.extend(list.iter().map(|words| joined(words)));
                                argv = list.or(argv);
                            }
                        }
                    }
                }
            }
        }
        let more = ARGUMENTS
            .iter()
            .flat_map(|name| values_of(map, name))
            .next();
        if lines.is_empty() {
            let mut programs = PROGRAMS.iter().flat_map(|name| values_of(map, name));
            match programs.find_map(Value::as_str) {
                Some(program) if more.is_some() => {
                    let words = vec![program.to_owned()];
                    lines.push(joined(&words));
                    argv = Some(words);
                }
                // All its words, the program first.
                _ => {
                    let words = values_of(map, "argv").find_map(strings);
                    if let Some(words) = words.filter(|words| !words.is_empty()) {
                        self.lines.push(joined(&words));
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
        // A program here and its arguments there.
        match (more, &mut argv) {
            (Some(Value::String(more)), _) => {
                *first = format!("{first} {more}");
                argv = None;
            }
            (Some(more), argv) => {
                let more = strings(more).unwrap_or_default();
                if !more.is_empty() {
                    *first = format!("{first} {}", joined(&more));
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

pub(super) fn values_of<'v>(
    map: &'v Map<String, Value>,
    name: &str,
) -> impl Iterator<Item = &'v Value> {
    map.iter()
        .filter(move |(key, _)| words(key).concat() == name)
        .map(|(_, value)| value)
}

pub(super) fn strings(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(super) fn joined(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
