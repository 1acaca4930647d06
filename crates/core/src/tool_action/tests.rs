//! Tools as agents and servers name them, and what a call of them does.

use serde_json::json;

use super::*;

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
    let script = |text: &str| Some(ToolCommand::Script(text.to_owned()));
    let argv = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        Some(ToolCommand::Argv(words.collect()))
    };
    let check = |args: Value, expected: Option<ToolCommand>| {
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
    let check = |args: Value, expected: Option<ToolCommand>| {
        assert_eq!(classify("helper", args.clone()).command, expected, "{args}");
    };
    let script = |text: &str| Some(ToolCommand::Script(text.to_owned()));
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
        Some(ToolCommand::Argv(vec!["rm".into(), "x".into()])),
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
    let may_act = |tool: &str| classify(tool, Value::Null).may_act();
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

/// Every path that a call could change.
fn changed(tool: &str, args: &Value) -> Vec<String> {
    let action = classify_call(tool, args);
    let mut all = [action.writes, action.removes, action.may_write].concat();
    all.sort();
    all.dedup();
    all
}

#[test]
fn what_is_known_to_read_names_what_it_likes() {
    for tool in [
        "read_file",
        "directory_tree",
        "file_read",
        "git_log",
        "git_blame",
        "git_diff",
        "git_add",
        "analyze",
        "check_file",
        "definition",
        "goto_definition",
        "find_references",
        "get_symbols_overview",
        "run_tests",
        "run_unit_tests",
        "open",
        "open_file",
        "load",
        "explain",
        "explain_code",
        "validate",
        "compare",
        "summarize",
        "preview",
        "set_breakpoint",
        "add_comment_to_pending_review",
        "create_pull_request",
        "update_issue",
        "create_branch",
        "create_entities",
        "add_observations",
        "browser_click",
        "list_directory_with_sizes",
        "codebase_search",
        "get_commit",
        "show_merge_conflicts",
        "getDiagnostics",
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            let args = json!({"path": "t/a", "file": "t/b", "name": "t/c", "element": "t/d", "head": "t/e"});
            assert!(changed(&name, &args).is_empty(), "{name}");
        }
    }
    for (tool, args) in [
        ("compare", json!({"source": "t/a", "target": "t/b"})),
        ("diff_files", json!({"from": "t/a", "to": "t/b"})),
        ("tail_log", json!({"log_file": "t/a.log"})),
        ("search", json!({"content": "x", "path": "t/a"})),
        ("validate", json!({"content": "x", "path": "t/a"})),
        ("open_file", json!({"path": "t/a", "mode": "r"})),
        ("read_file", json!({"target_file": "t/a", "mode": "raw"})),
        (
            "get_file_contents",
            json!({"owner": "o", "repo": "r", "path": "t/a"}),
        ),
        ("set_breakpoint", json!({"uri": "vscode://file/t/a:12"})),
        ("memory", json!({"command": "view", "path": "t/a"})),
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            assert!(changed(&name, &args).is_empty(), "{name} {args}");
        }
    }
}

#[test]
fn what_is_not_known_to_read_only_may_write_what_it_names() {
    for (tool, args) in [
        // A place for a result.
        ("read_file", json!({"path": "a", "into": "t/x"})),
        ("read_file", json!({"path": "a", "to": "t/x"})),
        ("get_file", json!({"path": "a", "target": "t/x"})),
        ("view", json!({"path": "a", "write_to": "t/x"})),
        ("search_files", json!({"path": "a", "store": "t/x"})),
        ("get_status", json!({"log_file": "t/x"})),
        // Arguments of one that writes.
        ("Read", json!({"file_path": "t/x", "content": "1"})),
        ("open_file", json!({"path": "t/x", "mode": "w"})),
        ("open_file", json!({"path": "t/x", "mode": "append"})),
        (
            "get_file",
            json!({"url": "https://x.example/a", "path": "t/x"}),
        ),
        ("get_file", json!({"file_id": "7", "path": "t/x"})),
        // Names in which a word speaks of more.
        ("get_screenshot", json!({"filename": "t/x"})),
        ("tree_clear", json!({"path": "t/x"})),
        ("list_clear", json!({"path": "t/x"})),
        ("check_commit", json!({"path": "t/x"})),
        ("cat_into", json!({"file": "t/x"})),
        ("find_replace", json!({"path": "t/x"})),
        ("rotate_log", json!({"path": "t/x"})),
        ("git_checkout", json!({"paths": ["t/x"]})),
        ("git_rm", json!({"paths": ["t/x"]})),
        ("fix_issues", json!({"file": "t/x"})),
        ("apply_review_suggestion", json!({"path": "t/x"})),
        ("create_or_update_file", json!({"path": "t/x"})),
        // Editors.
        ("str_replace_editor", json!({"path": "t/x"})),
        ("text_editor", json!({"action": "create", "path": "t/x"})),
        (
            "str_replace_based_edit_tool",
            json!({"Command": "create", "path": "t/x"}),
        ),
        ("edit_tool", json!({"command": "create", "path": "t/x"})),
        // Patches.
        ("apply_diff", json!({"patch": "--- t/x\n+++ t/x\n"})),
        (
            "apply_diff",
            json!({"content": "--- a/t/x\n+++ /dev/null\n"}),
        ),
        (
            "apply_patch",
            json!({"text": "diff --git i/t/x w/t/x\nsimilarity index 100%\nrename from t/x\nrename to b\n"}),
        ),
        (
            "edit",
            json!({"content": "*** Begin Patch\n*** Delete File: t/x\n*** End Patch"}),
        ),
        ("apply_diff", json!({"cwd": "t", "diff": "--- x\n+++ x\n"})),
        ("settle", json!({"how": "--- t/x\n+++ t/x\n"})),
        // Texts that are paths.
        ("settle", json!({"title": "t/x"})),
        ("write_note", json!({"message": "t/x"})),
        ("write_file", json!({"path": "t/x\n", "content": "1"})),
        ("write_files", json!({"files": "a\nt/x"})),
        ("settle", json!({"uri": "vscode://file/t/x:12:3"})),
        ("settle", json!({"uri": "repo://t/x"})),
        ("settle", json!({"uri": "idea://open?file=t/x&line=3"})),
        ("run_code", json!({"code": "open('t/x', 'w')"})),
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            let found = changed(&name, &args);
            let ends = |path: &String| path == "t/x" || path == "/x" || path.ends_with("/t/x");
            assert!(found.iter().any(ends), "{name} {args}: {found:?}");
        }
    }
    for tool in ["write_stdin", "wait", "bash", "process"] {
        let name = format!("mcp__x__{tool}");
        assert_eq!(changed(&name, &json!({"path": "t/x"})), ["t/x"], "{name}");
    }
}

#[test]
fn a_command_is_found_wherever_it_stands() {
    let script = |text: &str| Some(ToolCommand::Script(text.to_owned()));
    let check = |tool: &str, args: Value, expected: Option<ToolCommand>| {
        assert_eq!(
            classify(tool, args.clone()).command,
            expected,
            "{tool} {args}"
        );
    };
    for args in [
        json!({"Command": "rm t/x"}),
        json!({"commands": "rm t/x"}),
        json!({"shell_command": "rm t/x"}),
        json!({"commandLine": "rm t/x"}),
        json!({"command": "rm", "args": "t/x"}),
        json!({"request": {"command": "rm t/x"}}),
        json!({"steps": [{"command": "rm t/x"}]}),
        json!({"request": "{\"command\": \"rm t/x\"}"}),
    ] {
        check("mcp__x__helper", args, script("rm t/x"));
    }
    check(
        "helper",
        json!({"steps": [{"command": "ls"}, {"run": {"cmd": "rm x"}}]}),
        script("ls\nrm x"),
    );
    check(
        "helper",
        json!({"commands": ["cd t", "rm x"]}),
        script("cd t\nrm x"),
    );
    for key in ["code", "input", "line"] {
        check("mcp__x__bash", json!({key: "rm t/x"}), script("rm t/x"));
        check("mcp__x__note", json!({key: "rm t/x"}), None);
    }
    let words = |words: [&str; 3]| Some(ToolCommand::Argv(words.map(str::to_owned).to_vec()));
    check(
        "run_python",
        json!({"code": "1 / 2"}),
        words(["python3", "-c", "1 / 2"]),
    );
    check(
        "execute_code",
        json!({"language": "bash", "code": "rm x"}),
        script("rm x"),
    );
    check(
        "write_stdin",
        json!({"session_id": 1, "chars": "rm x\n"}),
        script("rm x\n"),
    );
    check(
        "write_stdin",
        json!({"session_id": 1, "chars": "y\n"}),
        None,
    );
    check("write_stdin", json!({"session_id": 1, "chars": ""}), None);
    // Text for a file holds no command of the call.
    check(
        "write_file",
        json!({"path": "a", "content": {"command": "rm x"}}),
        None,
    );
    check("helper", json!({"text": "{\"command\": \"rm x\"}"}), None);
}

#[test]
fn the_folder_of_a_command() {
    let named = |path: &str| CallFolder::Named(path.to_owned());
    let check = |tool: &str, args: Value, expected: &[CallFolder]| {
        assert_eq!(
            classify(tool, args.clone()).folders,
            expected,
            "{tool} {args}"
        );
    };
    for key in [
        "cwd",
        "Cwd",
        "workdir",
        "working_directory",
        "workingDirectory",
        "directory",
        "dir",
        "dir_path",
    ] {
        check(
            "bash",
            json!({"command": "ls", key: "/a b"}),
            &[named("/a b")],
        );
        check(
            "mcp__x__run",
            json!({"command": "ls", "options": {key: "/a"}}),
            &[named("/a")],
        );
    }
    check("bash", json!({"command": "ls"}), &[]);
    check("bash", json!({"command": "ls", "cwd": ""}), &[]);
    check("bash", json!({"command": "ls", "cwd": null}), &[]);
    check(
        "bash",
        json!({"command": "ls", "cwd": "$X/a"}),
        &[CallFolder::Unknown],
    );
    check(
        "bash",
        json!({"command": "ls", "cwd": "file:///a"}),
        &[named("/a")],
    );
    check(
        "run",
        json!({"command": "ls", "cwd": {"uri": "a"}}),
        &[named("a")],
    );
    check(
        "run",
        json!({"command": "ls", "path": "a"}),
        &[CallFolder::Possible("a".into())],
    );
    // Where it starts is nothing that it writes.
    assert!(
        changed(
            "mcp__x__run",
            &json!({"command": "ls -l", "dir": "t", "path": "u"})
        )
        .is_empty()
    );
    assert!(
        changed(
            "mcp__x__run",
            &json!({"command": "ls", "env": {"A": "t/x"}})
        )
        .is_empty()
    );
}
