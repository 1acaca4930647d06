//! What is known to read only, and the command and the folder that stand in a call.

use serde_json::json;

use super::*;

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
        "semantic_search",
        "test",
        "debug_test",
        "execute_tests",
        "is_file",
        "has_changes",
        "get_commit",
        "show_merge_conflicts",
        "getDiagnostics",
        "rg",
        "ripgrep",
        "bat",
        "lint",
        "lint_file",
        "run_linter",
        "mypy",
        "run_mypy",
        "typecheck",
        "type_check",
        "eslint",
        "ruff_check",
        "cargo_check",
        "cargo_clippy",
        "cargo_test",
        "npm_test",
        "npmRunTest",
        "run_python_tests",
        "pytest_run",
        "test_runner",
        "check_format",
        "prettier_check",
        "code_lint",
        "go_vet",
        "syntax_check",
        "jq",
        "semgrep_scan",
        "npx_jest",
        "run_tests_in_file",
        "bundle_exec_rspec",
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
        ("lint_file", json!({"path": "t/a", "fix": false})),
        ("eslint", json!({"path": "t/a", "args": ["--no-fix"]})),
        ("eslint", json!({"path": "t/a", "fix_dry_run": true})),
        ("black", json!({"path": "t/a", "check": true})),
        ("prettier", json!({"path": "t/a", "options": "--check"})),
        ("rg", json!({"pattern": "--fix", "path": "t/a"})),
        ("run_tests", json!({"path": "t/a", "args": ["-q", "-x"]})),
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
        ("format_file", json!({"path": "t/x"})),
        (
            "write_process_file",
            json!({"path": "t/x", "input": "two words"}),
        ),
        ("fix_tests", json!({"path": "t/x"})),
        ("sync_all", json!({"path": "t/x"})),
        ("run_file", json!({"path": "t/x"})),
        ("show", json!({"path": "a", "tee": "t/x"})),
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
        // A linter or a runner of tests that is told to change.
        ("lint_file", json!({"path": "t/x", "fix": true})),
        ("lint_file", json!({"path": "t/x", "fix_all": true})),
        ("eslint", json!({"path": "t/x", "args": ["--fix"]})),
        ("prettier_check", json!({"path": "t/x", "flags": "--write"})),
        ("run_tests", json!({"path": "t/x", "updateSnapshot": true})),
        (
            "run_tests",
            json!({"path": "a", "args": ["--junitxml=t/x"]}),
        ),
        ("pytest", json!({"path": "a", "args": ["--output", "t/x"]})),
        ("black", json!({"path": "t/x"})),
        ("make_tests", json!({"path": "t/x"})),
        ("create_test", json!({"path": "t/x"})),
        ("lint_and_format", json!({"path": "t/x"})),
        ("browser_run_code", json!({"code": "open('t/x', 'w')"})),
    ] {
        for name in [format!("mcp__x__{tool}"), tool.to_owned()] {
            let found = changed(&name, &args);
            let ends = |path: &String| path == "t/x" || path == "/x" || path.ends_with("/t/x");
            assert!(found.iter().any(ends), "{name} {args}");
        }
    }
    for tool in ["write_stdin", "wait", "bash", "process"] {
        let name = format!("mcp__x__{tool}");
        assert_eq!(changed(&name, &json!({"path": "t/x"})), ["t/x"], "{name}");
    }
}

#[test]
fn a_command_is_found_wherever_it_stands() {
    let script = |text: &str| Some(ScriptOrArgvOfToolCall::Script(text.to_owned()));
    let check = |tool: &str, args: Value, expected: Option<ScriptOrArgvOfToolCall>| {
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
    let words = |words: [&str; 3]| {
        Some(ScriptOrArgvOfToolCall::Argv(
            words.map(str::to_owned).to_vec(),
        ))
    };
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
    for (tool, key) in [
        ("mcp__x__interact_with_process", "input"),
        ("mcp__x__send_keys", "keys"),
        ("mcp__x__write_to_terminal", "text"),
        ("process", "data"),
    ] {
        check(tool, json!({key: "rm t/x\n"}), script("rm t/x\n"));
        check(tool, json!({key: "y\n"}), None);
    }
    check("browser_type", json!({"text": "rm t/x"}), None);
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
    let named = |path: &str| CallStartFolder::Named(path.to_owned());
    let check = |tool: &str, args: Value, expected: &[CallStartFolder]| {
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
        &[CallStartFolder::Unknown],
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
        &[CallStartFolder::Possible("a".into())],
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

#[test]
fn a_call_that_says_that_it_changes_may_write() {
    for (tool, args) in [
        ("test_file", json!({"path": "tests/a.py", "content": "x"})),
        (
            "git_add_file",
            json!({"path": "tests/a.py", "content": "x"}),
        ),
        ("run_tests", json!({"path": "tests/a.py", "text": "x"})),
        ("grep_files", json!({"path": "tests/a.py", "replace": "x"})),
        (
            "find_text",
            json!({"path": "tests/a.py", "replacement": "x"}),
        ),
        ("scan_file", json!({"path": "tests/a.py", "autofix": true})),
        ("analyze_file", json!({"path": "tests/a.py", "apply": true})),
        (
            "validate_json",
            json!({"path": "tests/a.py", "inplace": true}),
        ),
    ] {
        let changed = changed(tool, &args);
        assert!(changed.contains(&"tests/a.py".to_owned()), "{tool} {args}");
    }
    for (tool, args) in [
        ("scan_file", json!({"path": "tests/a.py", "autofix": false})),
        ("run_tests", json!({"path": "tests/a.py"})),
        (
            "add_comment_to_pending_review",
            json!({"path": "tests/a.py", "body": "x", "line": 3}),
        ),
    ] {
        assert!(changed(tool, &args).is_empty(), "{tool} {args}");
    }
}

#[test]
fn a_program_and_its_arguments_are_a_command() {
    let command = |tool: &str, args: Value| classify_call(tool, &args).command;
    let words = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Some(ScriptOrArgvOfToolCall::Argv(words))
    };
    let rm = words(&["rm", "-rf", "/"]);
    for (tool, args) in [
        (
            "run_process",
            json!({"executable": "rm", "arguments": ["-rf", "/"]}),
        ),
        ("spawn", json!({"argv": ["rm", "-rf", "/"]})),
        (
            "mcp__x__start",
            json!({"program": "rm", "args": ["-rf", "/"]}),
        ),
    ] {
        assert_eq!(command(tool, args), rm, "{tool}");
    }
    // The program is the tool's name.
    let script = |text: &str| Some(ScriptOrArgvOfToolCall::Script(text.to_owned()));
    for (tool, args, expected) in [
        (
            "git",
            json!({"args": ["push", "--force"]}),
            words(&["git", "push", "--force"]),
        ),
        (
            "mcp__x__git",
            json!({"command": "push --force"}),
            script("git push --force\npush --force"),
        ),
        (
            "run_git",
            json!({"command": "git push"}),
            script("git push"),
        ),
        (
            "git",
            json!({"subcommand": "push", "args": "--force"}),
            script("'git' 'push' --force"),
        ),
        (
            "kubectl_cli",
            json!({"operation": "delete", "args": ["ns", "prod"]}),
            words(&["kubectl", "delete", "ns", "prod"]),
        ),
        (
            "call_aws",
            json!({"cli_command": "aws s3 rb s3://x"}),
            script("aws s3 rb s3://x"),
        ),
        (
            "python",
            json!({"args": ["-c", "f()"]}),
            words(&["python", "-c", "f()"]),
        ),
        ("docker_exec", json!({"args": ["x"]}), None),
        ("git_log", json!({"args": ["x"]}), None),
        ("helper", json!({"subcommand": "x"}), None),
    ] {
        assert_eq!(command(tool, args.clone()), expected, "{tool} {args}");
    }
    // A program that is to be debugged, and no command.
    assert_eq!(
        command("start_debugging", json!({"program": "src/a.py"})),
        None
    );
}
