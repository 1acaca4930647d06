//! Manners of the command line: help that shows how, errors that say what to do, nothing
//! but text where nobody looks at colours.

use serde_json::Value;

use crate::agent::Agent;
use crate::world::{Said, World, feed, gone, read_line, signal, start};

const COMMANDS: [&str; 24] = [
    "approvals",
    "approve",
    "check",
    "demo",
    "deny",
    "doctor",
    "gc",
    "hook",
    "init",
    "judge",
    "mcp",
    "mcp-proxy",
    "off",
    "on",
    "patch",
    "policy",
    "replay",
    "run",
    "seal",
    "sessions",
    "show",
    "trust",
    "tune",
    "watch",
];

#[test]
fn every_command_is_listed_and_shows_examples() {
    let world = World::new();
    let help = world.says(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(help.stdout.contains("Examples:"), "{}", help.stdout);
    let listed: Vec<&str> = help
        .stdout
        .split("Commands:")
        .nth(1)
        .unwrap()
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|word| *word != "help")
        .collect();
    let mut known = listed.clone();
    known.sort_unstable();
    assert_eq!(known, COMMANDS);
    for command in listed {
        let help = world.says(&[command, "--help"]);
        assert_eq!(help.code, Some(0), "{help:?}");
        assert!(
            help.stdout.contains("Examples"),
            "{command} shows no example:\n{}",
            help.stdout
        );
        assert!(
            help.stdout.contains(&format!("checkrein {command}")),
            "{command}:\n{}",
            help.stdout
        );
    }
    assert!(
        !world.state().exists(),
        "asking for help leaves nothing behind"
    );
}

#[test]
fn errors_say_what_to_do() {
    let check = |prepare: &dyn Fn(&World), args: &[&str], code: i32, words: &[&str]| {
        let world = World::new();
        prepare(&world);
        let said = world.says(args);
        assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
        assert_eq!(said.stdout, "", "errors are no answer: {args:?}");
        for word in words {
            assert!(
                said.stderr.contains(word),
                "{args:?} does not say {word:?}: {}",
                said.stderr
            );
        }
    };
    let nothing = |_: &World| {};
    let config = |text: &'static str| move |world: &World| world.config(text);
    check(&nothing, &["chek"], 2, &["check"]);
    check(
        &nothing,
        &["check"],
        2,
        &["no verifier is configured", "[[verifier]]"],
    );
    check(
        &config("[[verifier]]\nname = \"tests\"\nrun = \"true\"\n"),
        &["check", "test"],
        2,
        &["'test'", "known: tests"],
    );
    check(&nothing, &["run"], 2, &["CMD"]);
    check(
        &nothing,
        &["show"],
        2,
        &["nothing is recorded", "checkrein run -- CMD"],
    );
    check(&nothing, &["replay"], 2, &["ID|FILE"]);
    check(
        &nothing,
        &["replay", "none.jsonl"],
        2,
        &["no file 'none.jsonl'"],
    );
    check(
        &config("accept = \"tests and lint\"\n[[verifier]]\nname = \"tests\"\nrun = \"true\"\n"),
        &["check"],
        2,
        &["lint"],
    );
    check(
        &config("[caps]\ntool_calls = 0\n"),
        &["run", "--", "true"],
        2,
        &["caps.tool_calls", "must be 1 or more"],
    );
    check(
        &config("[caps\n"),
        &["check"],
        2,
        &["checkrein.toml:1:6", "unclosed table"],
    );
    check(
        &config("[policy]\nrewrite = \"grant\"\n"),
        &["check"],
        2,
        &["'policy.rewrite", "take it out"],
    );
}

#[test]
fn a_session_that_nobody_knows() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "codex");
    agent.prompt("do it");
    for args in [["show", "nobody"], ["replay", "nobody"]] {
        let said = world.says(&args);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(
            said.stderr.contains("'nobody'") && said.stderr.contains("checkrein sessions"),
            "{said:?}"
        );
    }
    for args in [
        &["show", "codex"][..],
        &["show", "codex-session/1"],
        &["show", "--why", "codex"],
    ] {
        assert_eq!(
            world.says(args).code,
            Some(0),
            "the beginning of an id is enough"
        );
    }
}

#[test]
fn nothing_recorded_yet_is_no_error_for_sessions() {
    let world = World::new();
    let said = world.says(&["sessions"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    assert!(said.stderr.contains("checkrein run -- CMD"), "{said:?}");
    assert_eq!(world.tasks(), Vec::<Value>::new());
    assert!(!world.state().exists(), "looking leaves nothing behind");
}

#[test]
fn piped_output_has_no_escape_codes() {
    let world = World::with_check("test -f fixed || { echo 'a.py:1: broken'; exit 1; }");
    world.says(&["run", "--", "sh", "-c", "echo > work"]);
    for args in [
        &["--help"][..],
        &["chek"],
        &["check"],
        &["run", "--", "sh", "-c", "touch fixed"],
        &["run", "--", "sh", "-c", "exit 3"],
        &["sessions"],
        &["show"],
        &["show", "--why"],
        &["replay", "--help"],
        &["demo"],
    ] {
        let mut command = world.checkrein(args);
        let said = crate::world::feed(
            command
                .env("TERM", "xterm-256color")
                .env("COLORTERM", "truecolor"),
            b"",
        );
        assert!(!said.stdout.contains('\x1b'), "{args:?}: {:?}", said.stdout);
        assert!(!said.stderr.contains('\x1b'), "{args:?}: {:?}", said.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::with_check("true");
    world.says(&["run", "--", "true"]);
    let script =
        "\"$BIN\" show --json | head -c 1 > /dev/null; \"$BIN\" --help | head -c 1 > /dev/null";
    let said = crate::world::feed(world.hermetic("sh").args(["-c", script]), b"");
    assert_eq!(said.stderr, "");
}

#[test]
fn check_answers_by_its_exit_status() {
    let check = |run: &str, code: i32, verdict: &str, cause: Option<&str>| {
        let world = World::new();
        world.config(&format!(
            "[[verifier]]\nname = \"tests\"\ntimeout = \"1s\"\nrun = '''{run}'''\n"
        ));
        let said = world.says(&["check", "--json"]);
        assert_eq!(said.code, Some(code), "{run}: {said:?}");
        let document = said.json();
        assert_eq!(document["schema"], "checkrein/check/1");
        assert_eq!(document["verdict"], verdict, "{run}: {document}");
        let verifier = &document["verifiers"][0];
        assert_eq!(
            (verifier["name"].as_str(), verifier["verdict"].as_str()),
            (Some("tests"), Some(verdict)),
            "{document}"
        );
        assert_eq!(verifier["cause"].as_str(), cause, "{document}");
    };
    check("true", 0, "pass", None);
    check("exit 4", 1, "fail", None);
    check("sleep 610", 3, "inconclusive", Some("timeout"));
    check("kill -9 $$", 3, "inconclusive", Some("crash"));
    check(
        "no-such-program-at-all",
        3,
        "inconclusive",
        Some("missing_program"),
    );
}

#[test]
fn check_names_the_program_that_is_missing() {
    let world = World::new();
    world.config("[[verifier]]\nname = \"a\"\nrun = \"no-such-program --x\"\n");
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let line = "a: 'no-such-program' is not installed, or misspelt in run\n";
    assert!(said.stdout.starts_with(line), "{said:?}");
    assert_eq!(said.stdout.matches("misspelt").count(), 1, "{said:?}");
}

#[test]
fn check_says_that_a_config_further_up_does_not_count() {
    let world = World::without_git();
    world.config(&world.counted("tests", "true"));
    world.write("below/a", "");
    let mut check = world.checkrein(&["check"]);
    let said = Said::of(
        &check
            .current_dir(world.root().join("below"))
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, Some(2), "{said:?}");
    let top = world.root().canonicalize().unwrap();
    let named = format!("{} has a checkrein.toml: run it there", top.display());
    assert!(said.stderr.contains(&named), "{said:?}");
    assert!(!world.says(&["check"]).stderr.contains("only this folder"));
}

#[test]
fn check_runs_nothing_twice_on_the_same_tree() {
    let world = World::with_check("echo 'a.py:7: broken'; exit 1");
    world.write("a.py", "");
    let first = world.says(&["check", "--json"]).json();
    let second = world.says(&["check", "--json"]).json();
    assert_eq!(world.runs("tests"), 1);
    assert_eq!(
        (
            &first["verifiers"][0]["cached"],
            &second["verifiers"][0]["cached"]
        ),
        (&false.into(), &true.into())
    );
    assert_eq!(
        first["verifiers"][0]["findings"],
        second["verifiers"][0]["findings"]
    );
    let finding = &first["verifiers"][0]["findings"][0];
    assert_eq!(
        (
            finding["file"].as_str(),
            finding["line"].as_u64(),
            finding["message"].as_str()
        ),
        (Some("a.py"), Some(7), Some("broken"))
    );
    world.says(&["check", "--no-cache"]);
    assert_eq!(world.runs("tests"), 2);
}

#[test]
fn what_a_person_found_out_does_not_count_as_evidence() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "codex");
    agent.prompt("do it");
    world.write("work", "1");
    assert_eq!(world.says(&["check"]).code, Some(0));
    agent.stop();
    assert_eq!(world.runs("tests"), 2, "a pass of `check` only informs");
}

#[test]
fn the_demo_ends_well() {
    let world = World::new();
    let said = world.says(&["demo", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let document = said.json();
    assert_eq!(document["transition"]["reason"], "task_complete");
    assert!(document["attempts"].as_u64().unwrap() >= 2, "{document}");
}

/// Where no language is installed the demo's check is the demo itself in another role: it must not
/// begin a demo, whose check would begin one more.
#[test]
fn a_demo_inside_of_a_check_begins_no_demo() {
    let world = World::new();
    let mut inside = world.checkrein(&["demo"]);
    inside.env("CHECKREIN_CHECK", "nonce");
    let said = feed(&mut inside, b"");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(said.stdout, "");
    assert!(
        said.stderr.contains("a check cannot begin a demo"),
        "{said:?}"
    );
}

#[test]
fn a_trace_file_gives_findings_and_a_summary() {
    let world = World::new();
    let call = "{\"type\":\"tool_call\",\"tool\":\"read\",\"args\":{\"path\":\"a\"},\"result\":\"same\"}\n";
    world.write("trace.jsonl", &format!("{{\"type\":\"session\",\"id\":\"t\",\"agent\":\"x\"}}\n{}{{\"type\":\"stop\",\"text\":\"Done.\"}}\n", call.repeat(25)));
    let said = world.says(&["replay", "trace.jsonl", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let lines: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (summary, findings) = lines.split_last().unwrap();
    let seen: Vec<(u64, &str)> = findings
        .iter()
        .filter(|finding| finding["action"] != "observe")
        .map(|finding| {
            (
                finding["index"].as_u64().unwrap(),
                finding["action"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [(10, "nudge"), (20, "deny"), (21, "halt")]);
    assert!(
        findings
            .iter()
            .all(|finding| finding["kind"] == "finding" && finding["detector"] == "generic_repeat")
    );
    assert_eq!(
        (
            &summary["kind"],
            &summary["tool_calls"],
            &summary["halted_at"]
        ),
        (&"summary".into(), &25.into(), &21.into())
    );
    assert_eq!(summary["transition"]["reason"], "loop_detected");
}

#[test]
fn a_file_in_which_nothing_can_be_read() {
    let world = World::new();
    world.write("notes.md", "# notes\nnothing else\n");
    world.write(
        "trace.jsonl",
        "{\"type\":\"tool_call\",\"tool\":\"read\",\"args\":{},\"result\":\"x\"}\n",
    );
    let said = world.says(&["replay", "notes.md", "trace.jsonl"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("notes.md: no trajectory in it could be read"),
        "{said:?}"
    );
    assert!(
        said.stdout.contains("trace.jsonl: 1 call, 0 warnings"),
        "the other one is read: {said:?}"
    );
    assert_eq!(world.says(&["replay", "trace.jsonl"]).code, Some(0));
}

#[test]
fn ctrl_c_during_a_check() {
    let world = World::new();
    let ready = world.pipe("ready");
    world.config(&world.counted(
        "tests",
        &format!("sleep 611 & echo ready > '{}'; sleep 612", ready.display()),
    ));
    let check = start(&mut world.checkrein(&["check"]), b"");
    assert_eq!(read_line(&ready), "ready\n");
    signal(&check, rustix::process::Signal::INT);
    let said = Said::of(&check.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(said.stderr.contains("interrupted"), "{said:?}");
    gone(&world);
    assert_eq!(
        world.says(&["check", "nobody"]).code,
        Some(2),
        "the store is as good as before"
    );
}

#[test]
fn what_is_only_advisory_is_not_accepted() {
    let advisory = |run: &str, name: &str| {
        format!("[[verifier]]\nname = \"{name}\"\nadvisory = true\nrun = '''{run}'''\n")
    };
    for (run, word) in [("exit 7", "fails"), ("true", "passes")] {
        let world = World::new();
        world.config(&advisory(run, "tests"));
        let said = world.says(&["check"]);
        assert_eq!(said.code, Some(3), "{said:?}");
        let last = said.stdout.lines().next_back().unwrap();
        assert_eq!(
            last,
            format!(
                "inconclusive: nothing is required: tests (advisory) {word}. Take \"advisory = true\" out of checkrein.toml to require it"
            )
        );
        let line = said.stderr.lines().find(|line| line.contains("tests"));
        assert!(line.unwrap().ends_with(" (advisory)"), "{said:?}");
        let said = world.says(&["check", "--json"]);
        assert_eq!(said.code, Some(3), "{said:?}");
        assert_eq!(said.json()["verdict"], "inconclusive");
    }
    let world = World::new();
    let required = "[[verifier]]\nname = \"build\"\nrun = \"true\"\n";
    world.config(&format!("{required}{}", advisory("exit 7", "tests")));
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let last = said.stdout.lines().next_back().unwrap();
    assert_eq!(last, "accepted (not required, and failing: tests)");
    assert_eq!(said.stderr.matches("(advisory)").count(), 1, "{said:?}");
}

#[test]
fn a_failure_without_findings_shows_its_output() {
    let world = World::new();
    world.config(
        "[[verifier]]\nname = \"a-check-of-a-long-name\"\nrun = \"echo boom; exit 7\"\n[[verifier]]\nname = \"b\"\nrun = \"false\"\n",
    );
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert!(
        lines.starts_with(&["a-check-of-a-long-name: exit code 7", "  | boom"]),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"b: exit code 1, no output (run: false)"),
        "{lines:?}"
    );
    // Both in columns of the longer name.
    for name in ["a-check-of-a-long-name", "b"] {
        let begin = format!("  FAIL  {name:<22} ");
        assert!(
            said.stderr.lines().any(|line| line.starts_with(&begin)),
            "{said:?}"
        );
    }
}
