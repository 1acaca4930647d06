//! `show --why` says why each check was run, or was not, and what does not count for the tree.

use serde_json::json;

use crate::agent::{Agent, Answer};
use crate::world::World;

const SESSION: &str = "claude-code-session";

#[test]
fn each_stop_says_why_its_checks_were_run() {
    let world = World::new();
    let service = world.outside("service");
    std::fs::write(&service, "up").unwrap();
    world.write(".gitignore", ".env\ndata/\nnode_modules/\n");
    world.write("data/a", "1");
    world.write("data/b", "1");
    world.write(".env", "1");
    world.write("node_modules/dep/i.js", "x");
    world.write("__pycache__/a.pyc", "x");
    world.write("gen/report", "1");
    world.write("src/a", "1");
    let tests = world.counted("tests", &format!("grep -q up {}", service.display()));
    let lint = world.counted("lint", "true");
    world.config(&format!(
        "{tests}outputs = [\"gen/**\"]\n{lint}inputs = [\"src/**\"]\noutputs = [\"gen/**\"]\n"
    ));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("src/a", "2");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(agent.stop(), Answer::Nothing);
    agent.shell("servicectl stop", "");
    std::fs::write(&service, "down").unwrap();
    agent.stop().sent_back();
    std::fs::write(&service, "up").unwrap();
    world.write("src/a", "3");
    world.write(".env", "2");
    assert_eq!(agent.stop(), Answer::Nothing);
    let other = Agent::named(&world, "claude-code", "b");
    other.prompt("something else");
    other.shell("npm install left-pad", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    let said = world.says(&["show", "--why", SESSION]);
    let told: Vec<&str> = said.stdout.lines().map(str::trim).collect();
    let checks = told.iter().position(|line| *line == "checks:").unwrap();
    assert_eq!(
        told.get(checks + 1..).unwrap(),
        [
            "stop 1: tests was run: first run in this session; lint was run: first run in this session",
            "stop 2: tests was not run again: nothing that it judges changed since stop 1; lint was not run again: nothing that it judges changed since stop 1",
            "stop 3: tests was run again: a tool call came since (Bash servicectl stop); lint was not run again: nothing that it judges changed since stop 1",
            "stop 4: tests was run again: files changed, what it runs with changed (programs, variables or packages); lint was run again: files changed, what it runs with changed (programs, variables or packages)",
            "stop 5: tests was run again: a tool call of another session came since; lint was run again: a tool call of another session came since",
            "left out of the tree, as it is now: 2 ignored files and folders, 2 cache folders, 1 file that outputs name",
        ],
        "{said:?}"
    );
    world.replays(SESSION);
}

/// The check is one that fails once, and each other session finds what it found.
#[test]
fn a_later_task_says_whose_run_it_rests_on() {
    let world = World::new();
    let once = world.outside("once");
    let fails_once = format!("test -f {0} || {{ touch {0}; exit 1; }}", once.display());
    world.config(&format!(
        "verify_on = \"always\"\n{}",
        world.counted("tests", &fails_once)
    ));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("one");
    agent.stop().sent_back();
    agent.prompt("two");
    assert_eq!(agent.stop(), Answer::Nothing);
    let again = "its newest run did not pass, in an earlier task";
    assert_eq!(
        world.runs_told()[0],
        format!("stop 1: tests was run again: {again}")
    );
    agent.prompt("three");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(
        world.runs_told()[0],
        "stop 1: tests was not run again: nothing that it judges changed since stop 1 of task 2"
    );
    let other = Agent::named(&world, "claude-code", "b");
    other.prompt("four");
    assert_eq!(other.stop(), Answer::Nothing);
    assert_eq!(
        world.runs_told()[0],
        "stop 1: tests was not run: another session or process had run it on the same files, and no tool call came since"
    );
    assert_eq!(world.runs("tests"), 2);
}

#[test]
fn how_a_check_was_run_is_told() {
    let world = World::new();
    let once = world.outside("once");
    let crashes_once = format!(
        "test -f {0} || {{ touch {0}; kill -9 $$; }}",
        once.display()
    );
    let first = world.outside("first");
    let writes_once = format!(
        "test -f {0} || {{ touch {0}; echo 1 > made; }}",
        first.display()
    );
    for (name, check, how) in [
        ("retried", crashes_once.as_str(), ", tried 2 times"),
        (
            "writes",
            "echo 1 > made",
            ", it writes into what it judges, so it ran alone",
        ),
        (
            "wrote",
            writes_once.as_str(),
            ", files had changed while it ran beside others, so it ran alone",
        ),
    ] {
        world.config(&format!("{}retries = 1\n", world.counted(name, check)));
        world.commit();
        let agent = Agent::named(&world, "claude-code", name);
        agent.prompt("go");
        world.write("work", name);
        assert_eq!(agent.stop(), Answer::Nothing, "{name}");
        assert_eq!(
            world.runs_told()[0],
            format!("stop 1: {name} was run: first run in this session{how}")
        );
        // What it made is tracked from here on, and the next one writes it once more.
        let _ = std::fs::remove_file(world.root().join("made"));
    }
}

/// A sub-agent works on while the main conversation stops: no file moves, and none is spoken of.
#[test]
fn a_stop_that_only_tool_calls_hold_up_speaks_of_no_files() {
    let world = World::new();
    let call = world.outside("call.json");
    // What checks run with is without our own variables.
    let run = format!(
        "CHECKREIN_STATE='{}' \"$BIN\" hook claude-code < '{}' > /dev/null",
        world.state().display(),
        call.display()
    );
    world.config(&world.counted("tests", &run));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    let mut act = agent.call("sub-1", "servicectl restart");
    act["agent_id"] = json!("a1");
    act.as_object_mut().unwrap().remove("tool_use_id");
    std::fs::write(&call, act.to_string()).unwrap();
    agent.prompt("go");
    world.write("work", "1");
    for _ in 0..2 {
        let answer = agent.stop();
        let text = answer.sent_back();
        assert!(
            text.starts_with("checkrein: not judged yet. Tool calls came while"),
            "{text}"
        );
        assert!(
            text.contains("tests: a tool call came while it was judged"),
            "{text}"
        );
        assert!(!text.to_lowercase().contains("file"), "{text}");
        // Handed back, it is ours still.
        agent.prompt(text);
        assert_eq!(world.tasks().len(), 1, "{text}");
    }
    let notice = agent.stop().notice().to_owned();
    assert!(notice.contains("tool calls kept coming"), "{notice}");
    assert_eq!(world.ending(), "unverified/tree_moving");
    let why = world.why();
    let told: Vec<&str> = why
        .lines()
        .filter(|line| !line.starts_with("left out"))
        .collect();
    assert!(!told.join("\n").contains("file"), "{why}");
    assert!(
        why.contains("because: a tool call came while it was judged, so it was judged anew; tests cannot tell (a tool call came while it was judged)"),
        "{why}"
    );
    assert!(
        why.contains("stop 1: tests was run: first run in this session; tests was run once more: a tool call came since (Bash servicectl restart)"),
        "{why}"
    );
}
