//! Tells which hook entries are ours, in whatever form they are written.

use std::path::Path;

use serde_json::Value;

/// `checkrein hook AGENT ...`, as a command line or with `args`.
pub(super) fn is_ours(handler: &Value, agent: &str) -> bool {
    words(handler).is_some_and(|words| {
        let hook = words.windows(3).find(|three| match three {
            [program, hook, name] => is_checkrein(program) && hook == "hook" && name == agent,
            _ => false,
        });
        hook.is_some()
    })
}

/// The words of a handler: program and arguments.
pub(super) fn words(handler: &Value) -> Option<Vec<String>> {
    let command = handler.get("command")?.as_str()?;
    match handler.get("args").and_then(Value::as_array) {
        Some(arguments) => {
            let arguments = arguments.iter().filter_map(Value::as_str);
            Some(
                std::iter::once(command)
                    .chain(arguments)
                    .map(str::to_owned)
                    .collect(),
            )
        }
        None => shlex::split(command),
    }
}

fn is_checkrein(program: &str) -> bool {
    // A path of Windows may stand in a file that is read elsewhere.
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    Path::new(name)
        .file_stem()
        .is_some_and(|stem| stem == "checkrein")
}
