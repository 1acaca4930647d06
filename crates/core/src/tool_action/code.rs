//! Code in the arguments of a tool that runs some, as the command that runs it: code is judged as the
//! one-liner of its language (`python3 -c CODE`), and what a notebook gives to a shell as a shell's.

use serde_json::{Map, Value};

use super::ToolCommand;
use super::command::{joined, value_of, values_of};
use super::names::{BareName, words};

/// Names of arguments that hold code, in a tool that runs some, without case and `_`.
const CODES: &[&str] = &["code", "cellcode", "pycode", "pythoncode", "sourcecode"];

/// Names of arguments that can hold code, and a path, a place or a word as well.
const POSSIBLE_CODES: &[&str] = &["cell", "cellsource", "cells", "snippet", "source"];

/// Names of arguments that hold code where no other does, and else what is typed at it.
const TYPED_CODES: &[&str] = &["input", "line", "expression", "statement", "statements"];

/// Those that hold it only where a language is named.
const CODES_OF_A_LANGUAGE: &[&str] = &["query", "content", "text", "body", "exec"];

/// Names of arguments that say which language it is.
const LANGUAGES: &[&str] = &[
    "language",
    "lang",
    "kernel",
    "kernelname",
    "runtime",
    "interpreter",
];

/// What is given code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    Shell,
    /// The words before the code.
    OneLiner([&'static str; 2]),
}

const SHELL: [&str; 2] = ["sh", "-c"];
const PYTHON: Interpreter = Interpreter::OneLiner(["python3", "-c"]);
const NODE: Interpreter = Interpreter::OneLiner(["node", "-e"]);

impl Interpreter {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "python" | "python2" | "python3" | "py" | "ipython" | "jupyter" => PYTHON,
            "javascript" | "js" | "node" | "nodejs" | "typescript" | "ts" | "deno" | "bun" => NODE,
            "ruby" | "irb" => Self::OneLiner(["ruby", "-e"]),
            "perl" => Self::OneLiner(["perl", "-e"]),
            "php" => Self::OneLiner(["php", "-r"]),
            "bash" | "sh" | "shell" | "zsh" | "terminal" => Self::Shell,
            _ => return None,
        })
    }

    fn commands(self, code: &str) -> Vec<Vec<String>> {
        let command = |words: [&str; 2], code: String| {
            let words = words.map(str::to_owned);
            words.into_iter().chain([code]).collect()
        };
        match self {
            Self::Shell => vec![command(SHELL, code.to_owned())],
            PYTHON => {
                let (shell, code) = split_notebook(code);
                let shell = shell.map(|script| command(SHELL, script));
                let code = code.map(|code| command(["python3", "-c"], code));
                code.into_iter().chain(shell).collect()
            }
            Self::OneLiner(words) => vec![command(words, code.to_owned())],
        }
    }
}

/// Reads the code in the arguments of one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct CodeReader {
    /// As the call says, or the tool's name.
    language: Option<Interpreter>,
    /// The tool's name speaks of code.
    is_of_code: bool,
}

impl CodeReader {
    /// Of a tool that runs code; `None` of any other.
    pub(super) fn of(name: &BareName<'_>, args: &Value) -> Option<Self> {
        name.runs_code().then(|| Self {
            language: language(name, args),
            is_of_code: name.is_about_code(),
        })
    }

    /// The code among the arguments of one object.
    pub(super) fn codes(self, map: &Map<String, Value>) -> Vec<Vec<String>> {
        let reader = self.here(map);
        let sure = CODES.iter().flat_map(|name| values_of(map, name));
        let possible = POSSIBLE_CODES.iter().flat_map(|name| values_of(map, name));
        let mut commands: Vec<Vec<String>> = sure
            .filter_map(text)
            .filter(|code| reader.is_sure() || calls(code))
            .flat_map(|code| reader.commands(&code))
            .collect();
        let possible = possible
            .filter_map(text)
            .filter(|code| reader.is_sure() && is_program(code));
        commands.extend(possible.flat_map(|code| reader.commands(&code)));
        commands
    }

    /// Code that is typed at a tool, where it is given no other.
    pub(super) fn typed(self, args: &Value) -> Vec<Vec<String>> {
        let Some(map) = args.as_object() else {
            return Vec::new();
        };
        let reader = self.here(map);
        let typed = value_of(map, TYPED_CODES).and_then(text);
        // What is typed can be words for a person.
        let expression = || {
            value_of(map, &["expression"])
                .and_then(text)
                .filter(|code| calls(code))
        };
        let typed = typed.filter(|_| reader.is_sure()).or_else(expression);
        let named = || reader.language.and(value_of(map, CODES_OF_A_LANGUAGE));
        let code = typed.or_else(|| named().and_then(text));
        code.map_or_else(Vec::new, |code| reader.commands(&code))
    }

    /// What an argument named like a command holds, if that is code.
    pub(super) fn in_place_of_command(
        self,
        map: &Map<String, Value>,
        text: &str,
    ) -> Option<Vec<Vec<String>>> {
        let reader = self.here(map);
        let is_code = reader.is_sure() && reader.language != Some(Interpreter::Shell);
        (is_code && calls(text)).then(|| reader.commands(text))
    }

    /// A language that stands beside the code is that of the code.
    fn here(self, map: &Map<String, Value>) -> Self {
        Self {
            language: said_language(map).or(self.language),
            ..self
        }
    }

    /// Whether what such a tool is given is code, whatever it looks like.
    fn is_sure(self) -> bool {
        self.is_of_code || self.language.is_some()
    }

    /// The words of the commands that run this code. Code in a language that nobody names is read as
    /// Python and as JavaScript, unless it calls nothing.
    fn commands(self, code: &str) -> Vec<Vec<String>> {
        match self.language {
            Some(known) => known.commands(code),
            None if calls(code) => [PYTHON, NODE]
                .iter()
                .flat_map(|known| known.commands(code))
                .collect(),
            None if split_notebook(code).0.is_some() => PYTHON.commands(code),
            None => Interpreter::Shell.commands(code),
        }
    }
}

/// The language that a call names, or its tool.
fn language(name: &BareName<'_>, args: &Value) -> Option<Interpreter> {
    let said = args.as_object().and_then(said_language);
    said.or_else(|| name.words().iter().find_map(|word| Interpreter::of(word)))
}

fn said_language(map: &Map<String, Value>) -> Option<Interpreter> {
    let said = value_of(map, LANGUAGES)?.as_str()?;
    words(said).iter().find_map(|word| Interpreter::of(word))
}

/// The code of a tool that is known to run commands, where it is given no command.
pub(super) fn of_shell_tool(name: &BareName<'_>, args: &Value) -> Option<ToolCommand> {
    let map = args.as_object()?;
    let value = value_of(map, &[CODES, TYPED_CODES].concat())?;
    let language = language(name, args);
    // Of the names of shells this one is that of code as well.
    let is_code = |code: &str| language.is_none() && name.words() == ["exec"] && calls(code);
    match value {
        Value::String(code)
            if matches!(language, Some(Interpreter::OneLiner(_))) || is_code(code) =>
        {
            let reader = CodeReader {
                language,
                is_of_code: true,
            };
            as_command(reader.commands(code))
        }
        value => super::command::of_value(value),
    }
}

/// One command for several.
pub(super) fn as_command(mut commands: Vec<Vec<String>>) -> Option<ToolCommand> {
    if commands.len() > 1 {
        let lines: Vec<String> = commands.iter().map(|words| line(words)).collect();
        return Some(ToolCommand::Script(lines.join("\n")));
    }
    let words = commands.pop()?;
    Some(match script(&words) {
        Some(script) => ToolCommand::Script(script.to_owned()),
        None => ToolCommand::Argv(words),
    })
}

/// A line for a shell that runs this command.
pub(super) fn line(words: &[String]) -> String {
    script(words).map_or_else(|| joined(words), str::to_owned)
}

/// The script that a shell is given by these words.
pub(super) fn script(words: &[String]) -> Option<&str> {
    match words {
        [shell, option, script] if [shell, option] == SHELL => Some(script),
        _ => None,
    }
}

/// The code in the arguments of a tool that runs some.
pub(super) fn texts(args: &Value) -> Vec<String> {
    let Some(map) = args.as_object() else {
        return Vec::new();
    };
    let names = [CODES, POSSIBLE_CODES, TYPED_CODES].concat();
    let values = names.iter().flat_map(|name| values_of(map, name));
    values.filter_map(text).collect()
}

/// A text, or the lines of one.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => {
            let lines: Option<Vec<&str>> = lines.iter().map(Value::as_str).collect();
            lines
                .filter(|lines| !lines.is_empty())
                .map(|lines| lines.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Whether a text is code, and neither a path nor a word.
fn is_program(text: &str) -> bool {
    calls(text) || text.trim().contains('\n') || split_notebook(text).0.is_some()
}

/// Whether a text calls a function outside of its quotes, which no simple command does.
fn calls(text: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in text.chars() {
        match quote {
            Some(open) => quote = (c != open).then_some(open),
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '(' && (before.is_alphanumeric() || matches!(before, '_' | ')' | ']')) => {
                return true;
            }
            None => {}
        }
        before = c;
    }
    false
}

/// What a line of a notebook gives to a shell.
fn of_shell_line(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let begins = ["!!", "!", "%sx ", "%system "];
    begins.iter().find_map(|begin| line.strip_prefix(begin))
}

/// What a notebook gives to a shell of a cell, and what to Python.
fn split_notebook(code: &str) -> (Option<String>, Option<String>) {
    let (first, rest) = code.trim_start().split_once('\n').unwrap_or((code, ""));
    let magic = first.trim().strip_prefix("%%").unwrap_or("");
    if words(magic)
        .iter()
        .take(2)
        .any(|word| Interpreter::of(word) == Some(Interpreter::Shell))
        || matches!(magic, "!" | "sx" | "system")
    {
        return (Some(rest.to_owned()), None);
    }
    let shell: Vec<&str> = code.lines().filter_map(of_shell_line).collect();
    if shell.is_empty() {
        return (None, Some(code.to_owned()));
    }
    let python: Vec<&str> = code
        .lines()
        .filter(|line| of_shell_line(line).is_none())
        .collect();
    let python = python.join("\n");
    let is_empty = python.trim().is_empty();
    (Some(shell.join("\n")), (!is_empty).then_some(python))
}
