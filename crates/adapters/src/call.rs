//! What identifies a call and its outcome: digests over canonical JSON, so that key order
//! and blanks make no difference.

use checkrein_core::digest::{Digest, Short};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::{Input, ToolFacts, ToolKind, ToolRequested, ToolReturned};
use serde_json::Value;

/// Digest of a tool's name and canonical arguments.
pub(crate) fn call_digest(tool: &str, args: &Digest) -> Short {
    Digest::of_parts([tool.as_bytes(), args.as_bytes().as_slice()]).short()
}

/// Digest of what came back. Fields that only tell how long it took are left out: the same
/// answer in another time is the same answer.
pub(crate) fn outcome_digest(result: &Value) -> Short {
    const TIMES: [&str; 6] = [
        "durationMs",
        "duration_ms",
        "durationSeconds",
        "duration_seconds",
        "totalDurationMs",
        "wall_time",
    ];
    match result {
        Value::Object(map) if TIMES.iter().any(|key| map.contains_key(*key)) => {
            let mut map = map.clone();
            map.retain(|key, _| !TIMES.contains(&key.as_str()));
            Digest::of_json(&Value::Object(map)).short()
        }
        _ => Digest::of_json(result).short(),
    }
}

/// The files that a writing tool names: by the usual arguments, and in the lines of a patch.
pub(crate) fn written(args: &Value) -> Vec<String> {
    let text = |key: &&str| args.get(*key).and_then(Value::as_str);
    let mut paths: Vec<String> = [
        "file_path",
        "notebook_path",
        "path",
        "filename",
        "target_file",
    ]
    .iter()
    .filter_map(text)
    .map(str::to_owned)
    .collect();
    for patch in ["command", "input", "patch", "diff"]
        .iter()
        .filter_map(text)
    {
        let lines = patch.lines().filter_map(|line| {
            PATCHED
                .iter()
                .find_map(|head| line.trim_start().strip_prefix(head))
        });
        paths.extend(lines.map(|path| path.trim().to_owned()));
    }
    paths
}

/// The patch in the arguments of a tool that applies one.
pub(crate) fn patch(args: &Value) -> Option<String> {
    let text = |key: &&str| args.get(*key).and_then(Value::as_str);
    ["patch", "input", "command", "diff"]
        .iter()
        .find_map(text)
        .or(args.as_str())
        .map(str::to_owned)
}

/// What a tool that nobody knows would run, if it takes commands: one of an MCP server, say. A
/// list is of words for no shell, unless something stands beside it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Script(String),
    Argv(Vec<String>),
}

/// What a tool does that no table of ours knows: editors, also those of an MCP server, say by
/// `command` what they do to a file; by whatever else takes a command it is run.
pub(crate) fn unknown(tool: &str, args: &Value) -> ToolKind {
    let name = tool.rsplit("__").next().unwrap_or(tool);
    match name.to_ascii_lowercase().as_str() {
        "memory" | "str_replace_based_edit_tool" | "str_replace_editor" | "text_editor" => {
            match args.get("command").and_then(Value::as_str) {
                Some("view") | None => ToolKind::Other,
                Some(_) => ToolKind::Write,
            }
        }
        _ => command(args).map_or(ToolKind::Other, |_| ToolKind::Shell),
    }
}

/// The command in the arguments of such a tool, by the names that it commonly has.
pub(crate) fn command(args: &Value) -> Option<Command> {
    let words = |value: &Value| -> Option<Vec<String>> {
        let words = value.as_array()?.iter();
        words.map(|word| word.as_str().map(str::to_owned)).collect()
    };
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
            Some(Command::Argv(argv))
        }
        _ => {
            if !more.is_empty() {
                *first = format!("{first} {}", joined(&more));
            }
            Some(Command::Script(lines.join("\n")))
        }
    }
}

fn joined(words: &[String]) -> String {
    let quoted = words
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    quoted.collect::<Vec<_>>().join(" ")
}

/// Whether a tool of this name, that neither runs nor writes, is known to only look at what is
/// here, to plan, or to talk to the person. Whatever is not known may do anything.
fn only_looks(tool: &str) -> bool {
    LOOKERS.iter().any(|known| known.eq_ignore_ascii_case(tool))
}

const LOOKERS: &[&str] = &[
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "LS",
    "LSP",
    "ListMcpResourcesTool",
    "NotebookRead",
    "Read",
    "ReadMcpResourceTool",
    "Search",
    "TodoRead",
    "TodoWrite",
    "ToolSearch",
    "find",
    "find_files",
    "get_file_contents",
    "glob_file_search",
    "grep_search",
    "list_dir",
    "list_directory",
    "list_files",
    "list_mcp_resources",
    "open_file",
    "read_file",
    "read_many_files",
    "read_mcp_resource",
    "request_user_input",
    "search_file_content",
    "search_files",
    "str_replace_based_edit_tool",
    "str_replace_editor",
    "text_editor",
    "tool_search",
    "update_plan",
    "view",
    "view_file",
    "view_image",
];

/// How the lines of a patch begin that name a file.
const PATCHED: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
];

/// A tool call as an agent names it.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) scope: ScopeId,
    pub(crate) id: Option<String>,
    pub(crate) tool: &'a str,
    pub(crate) kind: ToolKind,
    pub(crate) args: &'a Value,
}

impl Call<'_> {
    pub(crate) fn digest(&self) -> Short {
        call_digest(self.tool, &Digest::of_json(self.args))
    }

    /// The request, without facts.
    pub(crate) fn requested(self) -> Input {
        Input::ToolRequested(ToolRequested {
            call: self.digest(),
            scope: self.scope,
            call_id: self.id,
            tool: self.tool.to_owned(),
            kind: self.kind,
            args: self.args.to_string(),
            facts: ToolFacts::default(),
            can_ask: false,
            may_act: self.kind == ToolKind::Other && !only_looks(self.tool),
            tokens: None,
        })
    }

    /// What came back from it.
    pub(crate) fn returned(self, outcome: Short, error: bool) -> Input {
        Input::ToolReturned(ToolReturned {
            call: self.digest(),
            scope: self.scope,
            call_id: self.id,
            outcome,
            error,
            wrote: self.kind == ToolKind::Write && !error,
            tokens: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_answer_in_another_time_is_the_same_answer() {
        let outcome = |value: Value| outcome_digest(&value);
        assert_eq!(
            outcome(json!({"result": "ok", "durationMs": 3})),
            outcome(json!({"durationMs": 900, "result": "ok"}))
        );
        assert_ne!(
            outcome(json!({"result": "ok"})),
            outcome(json!({"result": "ko"}))
        );
        assert_ne!(outcome(json!("1")), outcome(json!(1)));
    }

    #[test]
    fn what_is_not_known_to_only_look_may_act() {
        let may_act = |tool: &str, kind: ToolKind| {
            let call = Call {
                scope: ScopeId::main(),
                id: None,
                tool,
                kind,
                args: &Value::Null,
            };
            match call.requested() {
                Input::ToolRequested(request) => request.may_act,
                other => panic!("{other:?}"),
            }
        };
        for tool in ["mcp__github__push_files", "WebFetch", "Task", "CronCreate"] {
            assert!(may_act(tool, ToolKind::Other), "{tool}");
        }
        for tool in ["Read", "read", "view_image"] {
            assert!(!may_act(tool, ToolKind::Other), "{tool}");
        }
        // What these do is known already.
        for kind in [ToolKind::Shell, ToolKind::Write, ToolKind::Poll] {
            assert!(!may_act("mcp__x", kind));
        }
    }

    #[test]
    fn what_a_tool_writes() {
        let check = |args: Value, expected: &[&str]| assert_eq!(written(&args), expected, "{args}");
        check(json!({"file_path": "/a/b", "content": "path"}), &["/a/b"]);
        check(json!({"notebook_path": "n.ipynb"}), &["n.ipynb"]);
        let patch = "*** Begin Patch\n*** Add File: a b\n+*** Add File: c\n*** Update File: d\n*** Move to: e\n*** End Patch\n";
        check(json!({"command": patch}), &["a b", "d", "e"]);
        check(json!({"patch": "--- a/x\n+++ b/x\n"}), &["x"]);
        check(json!(["path"]), &[]);
    }

    #[test]
    fn what_an_unknown_tool_would_run() {
        let check =
            |args: Value, expected: Option<Command>| assert_eq!(command(&args), expected, "{args}");
        let script = |text: &str| Some(Command::Script(text.to_owned()));
        check(
            json!({"command": "rm -rf x", "cwd": "/"}),
            script("rm -rf x"),
        );
        check(json!({"cmd": "rm x"}), script("rm x"));
        check(json!({"script": "cd a\nrm x"}), script("cd a\nrm x"));
        // Nothing hides behind another.
        check(
            json!({"command": "ls", "cmd": "rm", "script": "rm x"}),
            script("ls\nrm\nrm x"),
        );
        check(
            json!({"command": "rm", "args": ["-rf", "it's"]}),
            script("rm '-rf' 'it'\\''s'"),
        );
        check(
            json!({"command": ["rm", "x"]}),
            Some(Command::Argv(vec!["rm".into(), "x".into()])),
        );
        check(
            json!({"command": ["rm", "x"], "cmd": "ls"}),
            script("'rm' 'x'\nls"),
        );
        check(json!({"command": 1, "cmd": [], "script": [2]}), None);
        check(json!({"query": "rm", "args": ["x"]}), None);
        check(json!("rm"), None);
    }

    #[test]
    fn a_call_is_its_tool_and_its_arguments() {
        let digest = |tool: &str, args: Value| call_digest(tool, &Digest::of_json(&args));
        assert_eq!(
            digest("a", json!({"x": 1, "y": 2})),
            digest("a", json!({"y": 2, "x": 1}))
        );
        assert_ne!(digest("a", json!({"x": 1})), digest("b", json!({"x": 1})));
        assert_ne!(digest("a", json!({"x": 1})), digest("a", json!({"x": 2})));
    }
}
