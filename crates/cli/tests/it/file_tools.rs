//! File tools of agents and servers: the same call gets the same answer at every entry point.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::event::Event;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::coder::{run, says};
use crate::mcp_client::{Client, text};
use crate::world::{World, feed};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");

/// A repo whose tests are protected, with links into them; `None` where there is no Python.
fn world() -> Option<World> {
    let world = World::new();
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return None;
    }
    world.config("[policy]\nprotect = [\"tests/**\", \"Makefile\"]\n[loops]\npreset = \"off\"\n");
    world.write("tests/a.py", "1\n");
    world.write("src/b.py", "1\n");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("tests", world.root().join("lnk")).unwrap();
        std::os::unix::fs::symlink("tests/a.py", world.root().join("one.py")).unwrap();
    }
    world.commit();
    Some(world)
}

/// Calls, and whether each would write a protected file.
fn calls(world: &World) -> Vec<(&'static str, Value, bool)> {
    let root = world.root().display().to_string();
    let mut calls = vec![
        (
            "move_file",
            json!({"source": "tests/a.py", "destination": "old/a.py"}),
            true,
        ),
        (
            "move_file",
            json!({"source": "src/b.py", "destination": "tests"}),
            true,
        ),
        (
            "move_file",
            json!({"source": "src/b.py", "destination": "src/c.py"}),
            false,
        ),
        (
            "rename",
            json!({"from": "src/b.py", "to": format!("{root}/tests/c.py")}),
            true,
        ),
        (
            "copy_file",
            json!({"source": "src/b.py", "destination": "tests/b.py"}),
            true,
        ),
        (
            "copy_file",
            json!({"source": "tests/a.py", "destination": "src/c.py"}),
            false,
        ),
        (
            "edit_files",
            json!({"edits": [{"path": "src/b.py"}, {"path": "tests/a.py"}]}),
            true,
        ),
        (
            "edit_files",
            json!({"edits": "[{\"path\": \"tests/a.py\"}]"}),
            true,
        ),
        (
            "edit_files",
            json!({"edits": [{"path": "src/b.py", "text": "tests/a.py"}]}),
            false,
        ),
        (
            "write_files",
            json!({"files": {"src/b.py": "x", "Makefile": "y"}}),
            true,
        ),
        ("delete_file", json!({"path": "tests/a.py"}), true),
        ("delete_directory", json!({"path": "tests"}), true),
        ("delete_file", json!({"paths": ["src/b.py"]}), false),
        (
            "write_file",
            json!({"uri": format!("file://{root}/tests/a%2Epy"), "content": "x"}),
            true,
        ),
        (
            "write_file",
            json!({"path": "src/../tests/a.py", "content": "x"}),
            true,
        ),
        (
            "write_file",
            json!({"path": "./src//../tests/./a.py", "content": "x"}),
            true,
        ),
        // No file system here takes one case for the other.
        (
            "write_file",
            json!({"path": "TESTS/a.py", "content": "x"}),
            false,
        ),
        (
            "write_file",
            json!({"path": "src/b.py", "content": "tests/a.py"}),
            false,
        ),
        (
            "write_file",
            json!({"root": root, "relative_path": "tests/a.py"}),
            true,
        ),
        (
            "fs_put",
            json!({"dir": "tests", "name": "x", "file": "a.py"}),
            true,
        ),
        // A tool of which nobody knows what it does.
        ("settle", json!({"where": {"at": ["tests/a.py"]}}), true),
        ("settle", json!({"target": "src/b.py"}), false),
        ("settle", json!({"note": "tests/a.py is slow"}), false),
        ("read_file", json!({"path": "tests/a.py"}), false),
        (
            "read_file",
            json!({"path": "src/b.py", "save_to": "tests/a.py"}),
            true,
        ),
        ("list_directory", json!({"path": "tests"}), false),
    ];
    calls.extend(told_by_name_and_arguments(&root));
    if cfg!(unix) {
        calls.extend([
            (
                "write_file",
                json!({"path": "lnk/a.py", "content": "x"}),
                true,
            ),
            (
                "write_file",
                json!({"path": "lnk/new.py", "content": "x"}),
                true,
            ),
            ("settle", json!({"target": "one.py"}), true),
            ("delete_file", json!({"path": "one.py"}), true),
        ]);
    }
    calls
}

/// Names and arguments by which a call writes, or is known to read only.
fn told_by_name_and_arguments(root: &str) -> Vec<(&'static str, Value, bool)> {
    vec![
        (
            "apply_diff",
            json!({"patch": "--- tests/a.py\n+++ tests/a.py\n@@ -1 +1 @@\n-1\n+2\n"}),
            true,
        ),
        (
            "apply_diff",
            json!({"content": "--- a/tests/a.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n"}),
            true,
        ),
        (
            "apply_diff",
            json!({"diff": "diff --git i/tests/a.py w/old.py\nrename from tests/a.py\nrename to old.py\n"}),
            true,
        ),
        (
            "apply_diff",
            json!({"diff": "--- a/src/b.py\n+++ b/src/b.py\n@@ -1 +1 @@\n-1\n+2\n"}),
            false,
        ),
        (
            "text_editor",
            json!({"action": "create", "path": "tests/a.py"}),
            true,
        ),
        (
            "text_editor",
            json!({"command": "view", "path": "tests/a.py"}),
            false,
        ),
        (
            "read_file",
            json!({"path": "src/b.py", "into": "tests/x"}),
            true,
        ),
        (
            "read_file",
            json!({"path": "tests/a.py", "content": "2"}),
            true,
        ),
        ("get_screenshot", json!({"filename": "tests/x.png"}), true),
        ("tree_clear", json!({"path": "tests"}), true),
        (
            "helper",
            json!({"steps": [{"command": "rm tests/a.py"}]}),
            true,
        ),
        (
            "helper",
            json!({"request": {"command": "rm a.py", "cwd": "tests"}}),
            true,
        ),
        (
            "helper",
            json!({"command": "rm", "args": "tests/a.py"}),
            true,
        ),
        (
            "helper",
            json!({"command": "pytest -q", "args": ["tests/a.py"], "cwd": "."}),
            false,
        ),
        ("settle", json!({"title": "tests/a.py"}), true),
        (
            "settle",
            json!({"uri": format!("vscode://file{root}/tests/a.py:3")}),
            true,
        ),
        (
            "settle",
            json!({"uri": "https://x.example/tests/a.py"}),
            false,
        ),
        ("git_log", json!({"path": "tests/a.py"}), false),
        ("git_add", json!({"files": ["tests/a.py"]}), false),
        ("run_tests", json!({"path": "tests"}), false),
        ("open_file", json!({"path": "tests/a.py"}), false),
        (
            "open_file",
            json!({"path": "tests/a.py", "mode": "w"}),
            true,
        ),
        (
            "compare",
            json!({"source": "tests/a.py", "target": "src/b.py"}),
            false,
        ),
        (
            "set_breakpoint",
            json!({"file": "tests/a.py", "line": 1}),
            false,
        ),
        (
            "create_pull_request",
            json!({"head": "tests/fix", "base": "main"}),
            false,
        ),
        (
            "rg",
            json!({"pattern": "--fix", "path": "tests/a.py"}),
            false,
        ),
        ("mypy", json!({"path": "tests/a.py"}), false),
        ("cargo_test", json!({"path": "tests/a.py"}), false),
        ("lint_file", json!({"path": "tests/a.py"}), false),
        (
            "lint_file",
            json!({"path": "tests/a.py", "fix": true}),
            true,
        ),
        (
            "run_tests",
            json!({"path": "src", "args": ["--junitxml=tests/a.xml"]}),
            true,
        ),
        (
            "execute_code",
            json!({"source": "open('tests/a.py', 'w').write('2')"}),
            true,
        ),
        ("ipython", json!({"cell": "!rm tests/a.py"}), true),
        ("ipython", json!({"cell": "print(1)\n!pytest -q"}), false),
    ]
}

/// A refusal that says that the file is protected; `None` if the call may run.
fn refusal(answer: Answer) -> Option<String> {
    match answer {
        Answer::Nothing => None,
        Answer::Denied(text) => Some(text),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(entry: &str, (tool, args, protected): &(&str, Value, bool), refused: Option<String>) {
    match (protected, &refused) {
        (true, Some(text)) if text.contains("protected") => {}
        (false, None) => {}
        _ => panic!("{entry}: {tool} {args}: {refused:?}"),
    }
}

#[test]
fn a_file_tool_gets_the_same_answer_under_each_agents_hook() {
    let Some(world) = world() else { return };
    for name in ["claude-code", "codex"] {
        let agent = Agent::new(&world, name);
        agent.prompt("change it");
        for call in &calls(&world) {
            let (tool, args, _) = call;
            let message = json!({
                "tool_name": format!("mcp__files__{tool}"), "tool_input": args,
                "tool_use_id": agent.next_id(),
            });
            check(
                name,
                call,
                refusal(agent.tell(&agent.message("PreToolUse", message))),
            );
        }
        world.replays(&agent.session);
    }
}

#[test]
fn code_that_a_tool_runs_meets_the_floor() {
    let world = World::new();
    let code = "import shutil; shutil.rmtree('/')";
    let calls = [
        ("python", json!({"code": code}), "deny"),
        ("python", json!({"cmd": code}), "deny"),
        ("ipython", json!({"cell": code}), "deny"),
        ("run_cell", json!({"source": [code]}), "deny"),
        ("execute_code", json!({"script": code}), "deny"),
        (
            "repl",
            json!({"code": "require('fs').rmSync('/', {recursive: true})"}),
            "deny",
        ),
        (
            "python",
            json!({"code": "import os\nprint(os.getcwd())"}),
            "allow",
        ),
        (
            "node",
            json!({"code": "console.log([1, 2].map((n) => n + 1))"}),
            "allow",
        ),
        (
            "execute_code",
            json!({"code": "df.plot(kind='bar')"}),
            "allow",
        ),
    ];
    for (nth, (tool, args, expected)) in calls.iter().enumerate() {
        let line = json!({
            "type": "tool_call", "session": "code", "id": nth.to_string(), "tool": tool, "args": args,
        });
        let said = feed(
            &mut world.checkrein(&["hook", "generic"]),
            line.to_string().as_bytes(),
        );
        assert_eq!(said.json()["decision"], *expected, "{tool} {args}");
    }
}

#[test]
fn a_file_tool_gets_the_same_answer_under_the_generic_hook() {
    let Some(world) = world() else { return };
    let mut nth = 0;
    for prefix in ["", "mcp__files__"] {
        for call in &calls(&world) {
            let (tool, args, _) = call;
            nth += 1;
            let line = json!({
                "type": "tool_call", "session": "generic-session", "id": nth.to_string(),
                "tool": format!("{prefix}{tool}"), "args": args,
            });
            let said = feed(
                &mut world.checkrein(&["hook", "generic"]),
                line.to_string().as_bytes(),
            );
            let said = said.json();
            let refused = match said["decision"].as_str() {
                Some("allow") => None,
                Some("deny") => Some(said["reason"].as_str().unwrap().to_owned()),
                other => panic!("{other:?}: {said}"),
            };
            check("generic", call, refused);
        }
    }
    world.replays("generic-session");
}

#[test]
fn a_file_tool_gets_the_same_answer_behind_the_proxy() {
    let Some(world) = world() else { return };
    let mut client = Client::greeted(
        &world,
        &["mcp-proxy", "--", "python3", SERVER, "any"],
        "files",
    );
    for call in &calls(&world) {
        let (tool, args, _) = call;
        let result = client.call(tool, args.clone());
        let refused = (result["isError"] == true).then(|| text(&result));
        check("mcp-proxy", call, refused);
    }
    client.bye();
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn a_file_tool_gets_the_same_answer_under_our_own_loop() {
    let Some(world) = world() else { return };
    let expected = calls(&world);
    let turns: Vec<(&'static str, Value)> = expected
        .iter()
        .map(|(tool, args, _)| (*tool, args.clone()))
        .collect();
    let coder =
        ScriptedCoderServer::start_coder_model_server(move |heard| match turns.get(heard.turns) {
            Some((tool, args)) => ScriptedCoderTurn::scripted_tool_call_turn(tool, args.clone()),
            None => ScriptedCoderTurn::scripted_text_turn("Done."),
        })
        .unwrap();
    let said = says(&mut run(
        &world,
        &coder,
        "anthropic/claude-sonnet-4-5",
        &[
            "--model",
            "anthropic/claude-sonnet-4-5",
            "--json",
            "change it",
        ],
    ));
    let session = world.task()["session"].as_str().unwrap().to_owned();
    let answers: Vec<Option<String>> = world
        .log(&session)
        .into_iter()
        .filter_map(|event| match event {
            Event::DecisionMade(made) => Some(made.decision),
            _ => None,
        })
        .filter_map(|decision| match decision {
            Decision::Tool(ToolDecision::Allow) => Some(None),
            Decision::Tool(ToolDecision::Deny { reason }) => Some(Some(reason)),
            Decision::Tool(other) => panic!("{other:?}"),
            Decision::Stop(_) | Decision::Noted | Decision::Round(_) => None,
        })
        .collect();
    assert_eq!(answers.len(), expected.len(), "{said:?}");
    for (call, answer) in expected.iter().zip(answers) {
        check("run --model", call, answer);
    }
    world.replays(&session);
}
