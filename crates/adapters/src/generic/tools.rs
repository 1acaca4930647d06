//! What a tool does, by the names that agents commonly give it, and the command text of shell
//! tools by the names of the arguments in which it commonly stands.

use checkrein_core::input::ToolKind;
use serde_json::Value;

use crate::call::{self, Command};

/// What a tool does. Some tools do several things, told apart by an argument.
pub(crate) fn kind(tool: &str, args: &Value) -> ToolKind {
    match tool.to_ascii_lowercase().as_str() {
        "bash" | "cmd" | "exec" | "exec_command" | "execute_bash" | "execute_command"
        | "local_shell" | "powershell" | "run_bash" | "run_command" | "run_in_terminal"
        | "run_shell_command" | "run_terminal_cmd" | "sh" | "shell" | "shell_command"
        | "terminal" => ToolKind::Shell,
        "apply_diff"
        | "apply_patch"
        | "create"
        | "create_file"
        | "delete_file"
        | "edit"
        | "edit_file"
        | "insert"
        | "insert_edit_into_file"
        | "multi_edit"
        | "multiedit"
        | "notebookedit"
        | "patch"
        | "replace"
        | "replace_in_file"
        | "search_replace"
        | "str_replace"
        | "write"
        | "write_file"
        | "write_to_file" => ToolKind::Write,
        "bash_output"
        | "bashoutput"
        | "command_status"
        | "get_terminal_output"
        | "task_output"
        | "wait"
        | "write_stdin" => ToolKind::Poll,
        "process" => match text(args, "action") {
            Some("log" | "poll") => ToolKind::Poll,
            _ => ToolKind::Other,
        },
        // By a name that nobody knows, what it takes tells.
        _ => call::unknown(tool, args),
    }
}

/// Whether a tool of this name takes a patch: Codex's, and that of our own loop.
pub(crate) fn applies_patch(tool: &str) -> bool {
    tool.eq_ignore_ascii_case("apply_patch")
}

/// The command in these arguments of a shell tool; `None` if none is found.
pub(crate) fn command(args: &Value) -> Option<Command> {
    if let Some(command) = call::command(args) {
        return Some(command);
    }
    let value = match args {
        Value::Object(map) => ["commands", "code", "input"]
            .iter()
            .find_map(|name| map.get(*name))?,
        Value::String(_) | Value::Array(_) => args,
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    match value {
        Value::String(script) => Some(Command::Script(script.clone())),
        Value::Array(words) => words
            .iter()
            .map(|word| word.as_str().map(str::to_owned))
            .collect::<Option<Vec<String>>>()
            .filter(|words| !words.is_empty())
            .map(Command::Argv),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn text<'a>(args: &'a Value, field: &str) -> Option<&'a str> {
    args.get(field).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_go_by_name_and_sometimes_by_argument() {
        let check = |tool: &str, args: Value, expected: ToolKind| {
            assert_eq!(kind(tool, &args), expected, "{tool} {args}");
        };
        check("bash", json!({}), ToolKind::Shell);
        check("Shell", json!({}), ToolKind::Shell);
        check("apply_patch", json!({}), ToolKind::Write);
        check(
            "str_replace_editor",
            json!({"command": "view"}),
            ToolKind::Other,
        );
        check(
            "str_replace_editor",
            json!({"command": "create"}),
            ToolKind::Write,
        );
        check(
            "str_replace_editor",
            json!({"command": "insert"}),
            ToolKind::Write,
        );
        check("process", json!({"action": "poll"}), ToolKind::Poll);
        check("process", json!({"action": "kill"}), ToolKind::Other);
        check("command_status", json!({}), ToolKind::Poll);
        check("search", json!({}), ToolKind::Other);
        check("search", json!({"query": "x"}), ToolKind::Other);
        check("ssh_run", json!({"cmd": "ls"}), ToolKind::Shell);
    }

    #[test]
    fn finds_the_command_of_a_shell_tool() {
        let script = |text: &str| Some(Command::Script(text.to_owned()));
        let check =
            |args: Value, expected: Option<Command>| assert_eq!(command(&args), expected, "{args}");
        check(json!({"command": "ls -l"}), script("ls -l"));
        check(json!({"cmd": "ls"}), script("ls"));
        check(json!({"script": "ls"}), script("ls"));
        check(json!("ls"), script("ls"));
        check(
            json!({"command": ["ls", "-l"]}),
            Some(Command::Argv(vec!["ls".into(), "-l".into()])),
        );
        check(json!({"command": ["ls", 1]}), None);
        check(json!({"command": []}), None);
        check(json!({"other": "ls"}), None);
        check(json!(null), None);
    }
}
