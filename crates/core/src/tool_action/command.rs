//! The command, or the patch, that stands in the arguments of a tool.

use serde_json::Value;

use super::ToolCommand;

/// The command of a tool that is known to run one.
pub(super) fn of_shell_tool(args: &Value) -> Option<ToolCommand> {
    if let Some(command) = of_any_tool(args) {
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
        Value::String(script) => Some(ToolCommand::Script(script.clone())),
        Value::Array(_) => words(value)
            .filter(|words| !words.is_empty())
            .map(ToolCommand::Argv),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The command in the arguments of any tool, by the names that it commonly has. A list is of words
/// for no shell, unless something stands beside it.
pub(super) fn of_any_tool(args: &Value) -> Option<ToolCommand> {
    let (mut lines, mut argv) = (Vec::new(), None);
    for value in ["command", "cmd", "script"]
        .iter()
        .filter_map(|name| args.get(*name))
    {
        match value {
            Value::String(script) => lines.push(script.clone()),
            _ => {
                let list = words(value).filter(|words| !words.is_empty());
                lines.extend(list.iter().map(|words| joined(words)));
                argv = list.or(argv);
            }
        }
    }
    // A program here and its arguments there.
    let more = ["args", "arguments", "argv"]
        .iter()
        .find_map(|name| args.get(*name).and_then(words))
        .unwrap_or_default();
    let alone = lines.len() == 1;
    let first = lines.first_mut()?;
    match argv {
        Some(mut argv) if alone => {
            argv.extend(more);
            Some(ToolCommand::Argv(argv))
        }
        _ => {
            if !more.is_empty() {
                *first = format!("{first} {}", joined(&more));
            }
            Some(ToolCommand::Script(lines.join("\n")))
        }
    }
}

/// The patch in the arguments of a tool that applies one.
pub(super) fn patch(args: &Value) -> Option<String> {
    let text = |key: &&str| args.get(*key).and_then(Value::as_str);
    ["patch", "input", "command", "diff"]
        .iter()
        .find_map(text)
        .or(args.as_str())
        .map(str::to_owned)
}

fn words(value: &Value) -> Option<Vec<String>> {
    let words = value.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

fn joined(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}
