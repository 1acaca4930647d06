//! Finds code in the arguments of a tool that runs code, and turns it into the command that runs
//! it. Code is judged as the one-liner of its language (`python3 -c CODE`), and shell lines of a
//! notebook as a shell script.

use serde_json::{Map, Value};

use super::ScriptOrArgvOfToolCall;
use super::command::{first_named_argument, shell_join, values_of_argument_in_any_spelling};
use super::tool_names::{ToolNameWithoutServer, split_tool_name_into_words};

/// Names of arguments that hold code, in a tool that runs some, without case and `_`.
const CODES: &[&str] = &["code", "cellcode", "pycode", "pythoncode", "sourcecode"];

/// Names of arguments that can hold code, but also a path, a place or a word.
const POSSIBLE_CODES: &[&str] = &["cell", "cellsource", "cells", "snippet", "source"];

/// Names of arguments that hold code if no other argument does, and otherwise typed input.
const TYPED_CODES: &[&str] = &["input", "line", "expression", "statement", "statements"];

/// Names of arguments that hold code only if a language is named.
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

/// The interpreter that runs code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeInterpreter {
    Shell,
    /// The words before the code.
    OneLiner([&'static str; 2]),
}

const SHELL: [&str; 2] = ["sh", "-c"];
const PYTHON: CodeInterpreter = CodeInterpreter::OneLiner(["python3", "-c"]);
const NODE: CodeInterpreter = CodeInterpreter::OneLiner(["node", "-e"]);

impl CodeInterpreter {
    fn from_language_name(word: &str) -> Option<Self> {
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

    fn code_as_interpreter_argvs(self, code: &str) -> Vec<Vec<String>> {
        let command = |words: [&str; 2], code: String| {
            let words = words.map(str::to_owned);
            words.into_iter().chain([code]).collect()
        };
        match self {
            Self::Shell => vec![command(SHELL, code.to_owned())],
            PYTHON => {
                let (shell, code) = split_cell_shell_from_python(code);
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
pub(super) struct ToolCallCodeReader {
    /// From the arguments, or else from the tool's name.
    language: Option<CodeInterpreter>,
    /// The tool's name speaks of code.
    is_code_tool: bool,
}

impl ToolCallCodeReader {
    /// Returns a reader for a tool that runs code; `None` for any other tool.
    pub(super) fn code_reader_for_tool(
        name: &ToolNameWithoutServer<'_>,
        args: &Value,
    ) -> Option<Self> {
        name.tool_name_runs_code().then(|| Self {
            language: language_of_tool_call(name, args),
            is_code_tool: name.tool_name_mentions_code(),
        })
    }

    /// The code among the arguments of one object.
    pub(super) fn code_args_as_interpreter_commands(
        self,
        map: &Map<String, Value>,
    ) -> Vec<Vec<String>> {
        let reader = self.with_language_from_arguments(map);
        let sure = CODES
            .iter()
            .flat_map(|name| values_of_argument_in_any_spelling(map, name));
        let possible = POSSIBLE_CODES
            .iter()
            .flat_map(|name| values_of_argument_in_any_spelling(map, name));
        let mut commands: Vec<Vec<String>> = sure
            .filter_map(string_or_joined_lines)
            // A field called `code` of another tool may hold a coupon or a country, so it must at
            // least call a function.
            .filter(|code| reader.tool_expects_code() || contains_any_function_call(code))
            .flat_map(|code| reader.interpreter_argvs_to_run_code(&code))
            .collect();
        let possible = possible
            .filter_map(string_or_joined_lines)
            .filter(|code| reader.tool_expects_code() && looks_like_code(code));
        commands.extend(possible.flat_map(|code| reader.interpreter_argvs_to_run_code(&code)));
        commands
    }

    /// Code that is typed at a tool, where it is given no other.
    pub(super) fn commands_running_typed_code(self, args: &Value) -> Vec<Vec<String>> {
        let Some(map) = args.as_object() else {
            return Vec::new();
        };
        let reader = self.with_language_from_arguments(map);
        let typed = first_named_argument(map, TYPED_CODES).and_then(string_or_joined_lines);
        // Typed input can also be words for a person, so it must at least call a function.
        let expression = || {
            first_named_argument(map, &["expression"])
                .and_then(string_or_joined_lines)
                .filter(|code| contains_any_function_call(code))
        };
        let typed = typed
            .filter(|_| reader.tool_expects_code())
            .or_else(expression);
        let named = || {
            reader
                .language
                .and(first_named_argument(map, CODES_OF_A_LANGUAGE))
        };
        let code = typed.or_else(|| named().and_then(string_or_joined_lines));
        code.map_or_else(Vec::new, |code| reader.interpreter_argvs_to_run_code(&code))
    }

    /// Returns the commands of an argument that is named like a command but holds code.
    pub(super) fn interpreter_argvs_if_argument_is_code(
        self,
        map: &Map<String, Value>,
        text: &str,
    ) -> Option<Vec<Vec<String>>> {
        let reader = self.with_language_from_arguments(map);
        let is_code = reader.tool_expects_code() && reader.language != Some(CodeInterpreter::Shell);
        // Without a call, the text is judged as the command that its argument name says.
        (is_code && contains_any_function_call(text))
            .then(|| reader.interpreter_argvs_to_run_code(text))
    }

    /// Returns the reader with the language that is named beside the code, if any.
    fn with_language_from_arguments(self, map: &Map<String, Value>) -> Self {
        Self {
            language: language_in_tool_arguments(map).or(self.language),
            ..self
        }
    }

    /// Returns whether the tool's input is code, whatever it looks like.
    fn tool_expects_code(self) -> bool {
        self.is_code_tool || self.language.is_some()
    }

    /// Returns the words of the commands that run this code. Code in an unnamed language is read as
    /// Python and as JavaScript, unless it calls nothing.
    fn interpreter_argvs_to_run_code(self, code: &str) -> Vec<Vec<String>> {
        match self.language {
            Some(known) => known.code_as_interpreter_argvs(code),
            // The language is unknown, so the code is judged in both. A danger in either counts.
            None if contains_any_function_call(code) => [PYTHON, NODE]
                .iter()
                .flat_map(|known| known.code_as_interpreter_argvs(code))
                .collect(),
            None if split_cell_shell_from_python(code).0.is_some() => {
                PYTHON.code_as_interpreter_argvs(code)
            }
            None => CodeInterpreter::Shell.code_as_interpreter_argvs(code),
        }
    }
}

/// The language that a call names, or its tool.
fn language_of_tool_call(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
) -> Option<CodeInterpreter> {
    let said = args.as_object().and_then(language_in_tool_arguments);
    said.or_else(|| {
        name.tool_name_words()
            .iter()
            .find_map(|word| CodeInterpreter::from_language_name(word))
    })
}

fn language_in_tool_arguments(map: &Map<String, Value>) -> Option<CodeInterpreter> {
    let said = first_named_argument(map, LANGUAGES)?.as_str()?;
    split_tool_name_into_words(said)
        .iter()
        .find_map(|word| CodeInterpreter::from_language_name(word))
}

/// The code of a tool that is known to run commands, where it is given no command.
pub(super) fn shell_tool_code(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
) -> Option<ScriptOrArgvOfToolCall> {
    let map = args.as_object()?;
    let value = first_named_argument(map, &[CODES, TYPED_CODES].concat())?;
    let language = language_of_tool_call(name, args);
    // `exec` is the name of a shell and of a code runner.
    let is_code = |code: &str| {
        language.is_none() && name.tool_name_words() == ["exec"] && contains_any_function_call(code)
    };
    match value {
        Value::String(code)
            if matches!(language, Some(CodeInterpreter::OneLiner(_))) || is_code(code) =>
        {
            let reader = ToolCallCodeReader {
                language,
                is_code_tool: true,
            };
            merge_tool_call_commands(reader.interpreter_argvs_to_run_code(code))
        }
        value => super::command::command_from_argument_value(value),
    }
}

/// Merges several commands into one.
pub(super) fn merge_tool_call_commands(
    mut commands: Vec<Vec<String>>,
) -> Option<ScriptOrArgvOfToolCall> {
    if commands.len() > 1 {
        let lines: Vec<String> = commands
            .iter()
            .map(|words| shell_line_from_words(words))
            .collect();
        return Some(ScriptOrArgvOfToolCall::Script(lines.join("\n")));
    }
    let words = commands.pop()?;
    Some(match inline_shell_script(&words) {
        Some(script) => ScriptOrArgvOfToolCall::Script(script.to_owned()),
        None => ScriptOrArgvOfToolCall::Argv(words),
    })
}

/// A line for a shell that runs this command.
pub(super) fn shell_line_from_words(words: &[String]) -> String {
    inline_shell_script(words).map_or_else(|| shell_join(words), str::to_owned)
}

/// The script that a shell is given by these words.
pub(super) fn inline_shell_script(words: &[String]) -> Option<&str> {
    match words {
        [shell, option, script] if [shell, option] == SHELL => Some(script),
        _ => None,
    }
}

/// The code in the arguments of a tool that runs some.
pub(super) fn code_in_tool_arguments(args: &Value) -> Vec<String> {
    let Some(map) = args.as_object() else {
        return Vec::new();
    };
    let names = [CODES, POSSIBLE_CODES, TYPED_CODES].concat();
    let values = names
        .iter()
        .flat_map(|name| values_of_argument_in_any_spelling(map, name));
    values.filter_map(string_or_joined_lines).collect()
}

/// A text, or the lines of one.
fn string_or_joined_lines(value: &Value) -> Option<String> {
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

/// Returns whether a text is code, and neither a path nor a word.
fn looks_like_code(text: &str) -> bool {
    contains_any_function_call(text)
        || text.trim().contains('\n')
        || split_cell_shell_from_python(text).0.is_some()
}

/// Returns whether a text calls a function outside of its quotes, which no simple command does.
fn contains_any_function_call(text: &str) -> bool {
    // Quotes are skipped, since text such as `echo "f(x)"` calls nothing. Escapes are not resolved.
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

/// Returns the part of a notebook line that goes to a shell.
fn notebook_shell_command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let begins = ["!!", "!", "%sx ", "%system "];
    // `!!` must be tried before `!`, or its second mark would become part of the command. These are
    // IPython's forms.
    begins.iter().find_map(|begin| line.strip_prefix(begin))
}

/// Splits a notebook cell into its shell part and its Python part.
fn split_cell_shell_from_python(code: &str) -> (Option<String>, Option<String>) {
    let (first, rest) = code.trim_start().split_once('\n').unwrap_or((code, ""));
    // A cell magic applies to the whole cell, a line magic only to its line.
    let magic = first.trim().strip_prefix("%%").unwrap_or("");
    if split_tool_name_into_words(magic)
        .iter()
        .take(2)
        .any(|word| CodeInterpreter::from_language_name(word) == Some(CodeInterpreter::Shell))
        || matches!(magic, "!" | "sx" | "system")
    {
        return (Some(rest.to_owned()), None);
    }
    let shell: Vec<&str> = code.lines().filter_map(notebook_shell_command).collect();
    if shell.is_empty() {
        return (None, Some(code.to_owned()));
    }
    let python: Vec<&str> = code
        .lines()
        .filter(|line| notebook_shell_command(line).is_none())
        .collect();
    let python = python.join("\n");
    let is_empty = python.trim().is_empty();
    (Some(shell.join("\n")), (!is_empty).then_some(python))
}
