//! Tools as agents and servers name them, and what a call of them does.

use serde_json::json;

use super::*;

mod code;
mod known_to_read;

fn classify(tool: &str, args: Value) -> ToolAction {
    classify_call(tool, &args)
}

#[test]
fn kinds_go_by_name_and_sometimes_by_argument() {
    let check = |tool: &str, args: Value, expected: ToolKind| {
        assert_eq!(classify(tool, args.clone()).kind, expected, "{tool} {args}");
    };
    check("bash", json!({}), ToolKind::Shell);
    check("str_replace_editor", json!({}), ToolKind::Write);
    check(
        "str_replace_editor",
        json!({"Command": "view"}),
        ToolKind::Other,
    );
    check("memory", json!({"action": "create"}), ToolKind::Write);
    check(
        "write_stdin",
        json!({"chars": "rm -rf x\n"}),
        ToolKind::Poll,
    );
    check("Shell", json!({}), ToolKind::Shell);
    check("mcp__x__execute_command", json!({}), ToolKind::Shell);
    check("apply_patch", json!({}), ToolKind::Write);
    check("MultiEdit", json!({}), ToolKind::Write);
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
    check("BashOutput", json!({}), ToolKind::Poll);
    check("search", json!({}), ToolKind::Other);
    check("search", json!({"query": "x"}), ToolKind::Other);
    check("ssh_run", json!({"cmd": "ls"}), ToolKind::Shell);
    // Claude Code's own take a command that no shell reads; a server's tool of the name does not.
    check("SlashCommand", json!({"command": "/help"}), ToolKind::Other);
    check(
        "mcp__x__SlashCommand",
        json!({"command": "rm"}),
        ToolKind::Shell,
    );
    // A server's tool that names no file changes something elsewhere.
    check("mcp__x__create", json!({"title": "x"}), ToolKind::Other);
}

#[test]
fn finds_the_command_of_a_shell_tool() {
    let script = |text: &str| Some(ScriptOrArgvOfToolCall::Script(text.to_owned()));
    let argv = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        Some(ScriptOrArgvOfToolCall::Argv(words.collect()))
    };
    let check = |args: Value, expected: Option<ScriptOrArgvOfToolCall>| {
        assert_eq!(classify("bash", args.clone()).command, expected, "{args}");
    };
    check(json!({"command": "ls -l"}), script("ls -l"));
    check(json!({"cmd": "ls"}), script("ls"));
    check(json!({"script": "ls"}), script("ls"));
    check(json!("ls"), script("ls"));
    check(json!({"command": ["ls", "-l"]}), argv(&["ls", "-l"]));
    check(json!({"command": ["ls", 1]}), None);
    check(json!({"command": []}), None);
    check(json!({"other": "ls"}), None);
    check(json!(null), None);
}

#[test]
fn what_an_unknown_tool_would_run() {
    let check = |args: Value, expected: Option<ScriptOrArgvOfToolCall>| {
        assert_eq!(classify("helper", args.clone()).command, expected, "{args}");
    };
    let script = |text: &str| Some(ScriptOrArgvOfToolCall::Script(text.to_owned()));
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
        Some(ScriptOrArgvOfToolCall::Argv(vec!["rm".into(), "x".into()])),
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
fn what_changes_files_writes_them() {
    let check = |tool: &str, args: Value, expected: &[&str]| {
        for name in [tool.to_owned(), format!("mcp__files__{tool}")] {
            let mut writes = classify(&name, args.clone()).writes;
            writes.sort();
            assert_eq!(writes, expected, "{name} {args}");
        }
    };
    check(
        "edit",
        json!({"file_path": "/a/b", "content": "path"}),
        &["/a/b"],
    );
    check(
        "NotebookEdit",
        json!({"notebook_path": "n.ipynb"}),
        &["n.ipynb"],
    );
    let patch = "*** Begin Patch\n*** Add File: a b\n+*** Add File: c\n*** Update File: d\n*** Move to: e\n*** End Patch\n";
    check("apply_patch", json!({"command": patch}), &["a b", "d", "e"]);
    check("apply_diff", json!({"patch": "--- a/x\n+++ b/x\n"}), &["x"]);
    check("edit", json!(["path"]), &[]);
    check(
        "write_file",
        json!({"path": "a", "content": "path"}),
        &["a"],
    );
    // Text for a file is no path, whatever it says.
    check("write_file", json!({"path": "a", "content": patch}), &["a"]);
    check("moveFile", json!({"newPath": "b"}), &["b"]);
    check(
        "write_files",
        json!({"files": [{"path": "a"}, {"path": "b"}]}),
        &["a", "b"],
    );
    check(
        "write_files",
        json!({"files": {"src/file": "x", "Makefile": "y"}}),
        &["Makefile", "src/file"],
    );
    check(
        "edit_files",
        json!({"edits": "[{\"path\": \"a\"}]"}),
        &["a"],
    );
    check("delete-files", json!({"paths": ["a", "b"]}), &["a", "b"]);
    check(
        "file_write",
        json!({"root": "/r/", "relativePath": "a"}),
        &["/r/a", "a"],
    );
    check("create_issue", json!({"title": "path"}), &[]);
    check("update", json!({"uri": "https://x.example/a"}), &[]);
    check("update", json!({"uri": "file:///a%2Fb%20c?d"}), &["/a/b c"]);
    check("update", json!({"uri": "FILE://localhost/a"}), &["/a"]);
    check("read_file", json!({"path": "a"}), &[]);
    check("settle", json!({"path": "a"}), &[]);
    check("find_and_replace", json!({"path": "a"}), &["a"]);
}

#[test]
fn what_is_moved_is_gone_and_what_is_copied_is_not() {
    let action = classify("move_file", json!({"source": "a/x", "destination": "b"}));
    let mut writes = action.writes.clone();
    writes.sort();
    assert_eq!(writes, ["a/x", "b", "b/x"]);
    assert_eq!(action.removes, action.writes);
    let action = classify("copy_file", json!({"source": "a/x", "destination": "b"}));
    assert_eq!(action.writes, ["b", "b/x"]);
    assert_eq!(action.reads, ["a/x"]);
    assert!(action.removes.is_empty());
    let action = classify("delete_tree", json!({"root": "a"}));
    assert_eq!(action.removes, ["a"]);
    let memory = json!({"command": "delete", "path": "a"});
    assert_eq!(classify("memory", memory).removes, ["a"]);
}

#[test]
fn what_is_not_known_to_read_may_write_what_it_names() {
    let check = |tool: &str, args: Value, expected: &[&str]| {
        let mut found = classify(tool, args.clone()).may_write;
        found.sort();
        assert_eq!(found, expected, "{tool} {args}");
    };
    check("mcp__x__settle", json!({"path": "a"}), &["a"]);
    check("mcp__x__settle", json!({"a": [{"b": "c/d"}]}), &["c/d"]);
    check("mcp__x__settle", json!({"a": {"c/d": 1}}), &["c/d"]);
    check("mcp__x__settle", json!({"a": "words for a person"}), &[]);
    check("mcp__x__settle", json!({"file": "a b"}), &["a b"]);
    check("mcp__x__read_file", json!({"path": "a"}), &[]);
    check(
        "mcp__x__read_file",
        json!({"path": "a", "save_to": "b", "output_path": "c"}),
        &["b", "c"],
    );
    check("mcp__x__directory_tree", json!({"path": "a"}), &[]);
    check("mcp__x__run_search", json!({"path": "a"}), &["a"]);
    check("Read", json!({"file_path": "a"}), &[]);
    check("read_file", json!({"target_file": "a"}), &[]);
    check("Task", json!({"prompt": "a"}), &[]);
    let deep = (0..40).fold(json!("a"), |inner, _| json!([inner]));
    assert!(classify("mcp__x__settle", deep).is_cut);
    let many: Vec<String> = (0..3_000).map(|n| format!("f{n}")).collect();
    assert!(classify("mcp__x__settle", json!(many)).is_cut);
}

#[test]
fn what_is_not_known_to_only_look_may_act() {
    let may_act = |tool: &str| classify(tool, Value::Null).call_may_have_unknown_effects();
    for tool in [
        "mcp__github__push_files",
        "WebFetch",
        "Task",
        "CronCreate",
        "mcp__x__read_file",
    ] {
        assert!(may_act(tool), "{tool}");
    }
    for tool in ["Read", "read", "view_image", "Bash", "Edit", "BashOutput"] {
        assert!(!may_act(tool), "{tool}");
    }
}
