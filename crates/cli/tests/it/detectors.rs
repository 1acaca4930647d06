//! Loop detectors over recorded work: which calls each of them warns of, denies and halts.

use serde_json::{Value, json};

use crate::world::World;

/// A call and what came of it, as a line of a trace.
fn call(tool: &str, args: &Value, result: impl ToString) -> String {
    let result = result.to_string();
    json!({ "type": "tool_call", "tool": tool, "args": args, "result": result }).to_string()
}

fn read(path: &str, result: impl ToString) -> String {
    call("read", &json!({ "path": path }), result)
}

fn poll(result: impl ToString) -> String {
    call("process", &json!({ "action": "poll", "id": 7 }), result)
}

/// So many lines, each made from its number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> Vec<String> {
    (0..count).map(line).collect()
}

/// What `replay` says of these calls, one a line: `INDEX DETECTOR COUNT ACTION`. What is only observed is left out.
fn actions(preset: &str, calls: &[String]) -> Vec<String> {
    let world = World::without_git();
    world.write("trace.jsonl", &(calls.join("\n") + "\n"));
    let said = world.says(&["replay", "trace.jsonl", "--json", "--preset", preset]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = said.stdout.lines();
    told.map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["kind"] == "finding" && line["action"] != "observe")
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            let (detector, action) = (text("detector"), text("action"));
            format!("{} {detector} {} {action}", line["index"], line["count"])
        })
        .collect()
}

const NONE: [&str; 0] = [];

#[test]
fn equal_arguments_in_another_order_are_the_same_call() {
    let turned = |nth: usize| match nth % 2 {
        0 => {
            r#"{"type":"tool_call","tool":"find","args":{"a":1,"b":{"c":2,"d":3}},"result":"same"}"#
                .to_owned()
        }
        _ => {
            r#"{"type":"tool_call","tool":"find","args":{"b":{"d":3,"c":2},"a":1},"result":"same"}"#
                .to_owned()
        }
    };
    assert_eq!(
        actions("default", &lines(25, turned)),
        [
            "10 generic_repeat 10 nudge",
            "20 generic_repeat 20 deny",
            "21 generic_repeat 20 halt"
        ]
    );
}

#[test]
fn a_repeated_call_that_says_something_new_is_not_denied() {
    // Edit, compile, test: the same command, each time another outcome.
    let compiles = lines(25, |nth| call("shell", &json!({ "command": "make" }), nth));
    assert_eq!(
        actions("default", &compiles),
        ["10 generic_repeat 10 nudge", "20 generic_repeat 20 nudge"]
    );
}

#[test]
fn calls_older_than_the_last_thirty_do_not_count() {
    let others = |count| lines(count, |nth| read(&format!("file-{nth}"), nth));
    let same = |count| lines(count, |_| read("a", "same"));
    // Nine, then others, then the same again: together they are more than ten of 40 calls.
    let apart = [same(9), others(22), same(9)].concat();
    assert_eq!(actions("default", &apart), NONE);
    // Within thirty calls others in between hide nothing.
    let within = [same(9), others(5), same(2)].concat();
    assert_eq!(actions("default", &within), ["15 generic_repeat 10 nudge"]);
}

#[test]
fn a_poll_is_stopped_only_where_its_answer_does_not_change() {
    let still = lines(25, |_| poll("running"));
    assert_eq!(
        actions("seed", &still),
        [
            "10 known_poll_no_progress 10 nudge",
            "20 known_poll_no_progress 20 deny",
            "21 known_poll_no_progress 20 halt"
        ]
    );
    // `generic_repeat` leaves polls alone, whatever they answer.
    assert_eq!(actions("default", &still), NONE);
    let moving = lines(25, |nth| poll(format!("{nth} %")));
    assert_eq!(actions("seed", &moving), NONE);
}

#[test]
fn two_calls_that_take_turns_are_stopped() {
    let turns = lines(60, |nth| match nth % 2 {
        0 => read("a", "one"),
        _ => call("edit", &json!({ "path": "a" }), "two"),
    });
    let said = actions("seed", &turns);
    assert_eq!(
        said[..2],
        ["9 ping_pong 10 nudge", "19 ping_pong 20 deny"],
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.ends_with("halt")), "{said:?}");
    // The default set does not have this detector.
    let without = actions("default", &turns);
    assert!(
        without.iter().all(|line| !line.contains("ping_pong")),
        "{without:?}"
    );
    // Turns that bring something new are work.
    let works = lines(25, |nth| match nth % 2 {
        0 => call("shell", &json!({ "command": "make" }), nth),
        _ => call("edit", &json!({ "path": "a", "line": nth }), "done"),
    });
    let said = actions("default", &works);
    assert!(said.iter().all(|line| line.ends_with("nudge")), "{said:?}");
}

#[test]
fn thirty_calls_that_bring_nothing_new_are_stopped_whatever_they_are() {
    // Seven calls in turn: no pattern that another detector knows.
    let drifts = lines(60, |nth| read(&format!("file-{}", nth % 7), "same"));
    let said = actions("default", &drifts);
    let breaker: Vec<&String> = said
        .iter()
        .filter(|line| !line.ends_with("nudge"))
        .collect();
    assert_eq!(
        breaker,
        [
            "37 global_circuit_breaker 30 deny",
            "38 global_circuit_breaker 30 halt"
        ]
    );
    let useful = lines(60, |nth| read(&format!("file-{nth}"), nth));
    assert_eq!(actions("default", &useful), NONE);
    // The document's own: thirty calls, useful or not.
    assert_eq!(
        actions("seed", &useful),
        [
            "30 global_circuit_breaker 30 deny",
            "31 global_circuit_breaker 31 halt"
        ]
    );
}

#[test]
fn detectors_can_be_switched_off() {
    let same = lines(60, |_| read("a", "same"));
    assert_eq!(actions("off", &same), NONE);
    assert_eq!(actions("default", &same).len(), 3);
}

#[test]
fn without_a_config_the_calls_of_a_task_are_capped() {
    let useful = lines(1_510, |nth| read(&format!("file-{nth}"), nth));
    assert_eq!(
        actions("off", &useful),
        ["1500 tool_calls 1501 grace", "1501 tool_calls 1502 halt"]
    );
}

fn failed(command: &str, result: &str) -> String {
    let args = json!({ "command": command });
    json!({ "type": "tool_call", "tool": "bash", "args": args, "result": result, "error": true })
        .to_string()
}

fn bash(command: &str, result: impl ToString) -> String {
    call("bash", &json!({ "command": command }), result)
}

#[test]
fn balanced_says_a_word_denies_and_ends() {
    assert_eq!(
        actions("balanced", &lines(6, |_| read("a", "same"))),
        [
            "2 generic_repeat 2 nudge",
            "3 generic_repeat 3 deny",
            "4 generic_repeat 3 halt"
        ]
    );
}

/// Cases of users whose agents were stopped wrongly, or were not stopped, by the detectors that are
/// listed in docs/loops.md. In each, `balanced` denies nothing.
#[test]
fn what_was_taken_for_a_loop_and_is_none() {
    let quiet = |what: &str, calls: &[String]| {
        let said = actions("balanced", calls);
        let harsh = said.iter().find(|line| !line.ends_with("nudge"));
        assert_eq!(harsh, None, "{what}: {said:?}");
        said.len()
    };
    // Waiting for a long job (OpenHands 5355): a poll that says "running", and a shell that sleeps.
    let waits = lines(19, |_| bash("sleep 30", ""));
    assert_eq!(quiet("sleep", &waits), 1);
    let running = json!({ "status": "running", "output": "" }).to_string();
    let polls = lines(60, |_| {
        let args = json!({ "action": "poll", "id": 7 });
        format!(r#"{{"type":"tool_call","tool":"process","args":{args},"result":{running}}}"#)
    });
    quiet("poll of a build", &polls);
    // Codex' polls differ in a chunk id and a wall time only, and then say something.
    let chunks = lines(15, |nth| {
        let said = format!("Chunk ID: a{nth}f\nWall time: {nth}.2 seconds\nbuilding");
        call("process", &json!({ "action": "poll", "id": 7 }), said)
    });
    quiet("chunks", &chunks);
    // Polling that is told by its arguments alone (stella 359).
    let progress = lines(40, |nth| bash("gh run view 7", format!("step {nth} of 40")));
    assert_eq!(quiet("moving poll", &progress), 0);
    // Other files, other line ranges, other words to search for (Gemini CLI 5873).
    let ranges = lines(40, |nth| {
        call(
            "read_file",
            &json!({ "path": "a", "from": nth * 50 }),
            format!("lines {nth}"),
        )
    });
    assert_eq!(quiet("ranges", &ranges), 0);
    // A build after each edit, red twenty times with another line each.
    let builds = lines(40, |nth| match nth % 2 {
        0 => call("edit", &json!({ "path": "a.c", "line": nth }), "done"),
        _ => failed("make", &format!("a.c:{nth}: error: expected ';'")),
    });
    assert_eq!(quiet("builds", &builds), 0);
    // Lists that share a beginning, written to different files (Gemini CLI 18975).
    let lists = lines(30, |nth| {
        call(
            "write_file",
            &json!({ "path": format!("{nth}.md") }),
            "Saved",
        )
    });
    assert_eq!(quiet("lists", &lists), 0);
    // `git status` between steps (OpenClaw, any ten within thirty calls).
    let looks = lines(30, |nth| match nth % 3 {
        0 => bash("git status --short", " M a.c"),
        _ => call("edit", &json!({ "path": "a.c", "line": nth }), nth),
    });
    assert!(quiet("status", &looks) <= 3);
}

#[test]
fn loops_that_others_do_not_see() {
    let halted = |calls: &[String]| {
        let said = actions("balanced", calls);
        said.iter().find(|line| line.ends_with("halt")).cloned()
    };
    // Three and five calls in turn (stella 359, OpenHands: period three is invisible).
    for period in [3, 5] {
        let round = lines(40, |nth| read(&format!("file-{}", nth % period), "same"));
        let said = halted(&round).unwrap();
        assert!(
            said.contains("cycle") || said.contains("generic_repeat"),
            "{said}"
        );
    }
    // Thoughts that are worded anew hide nothing: only calls and results count.
    let thinks = lines(12, |nth| match nth % 2 {
        0 => format!(r#"{{"type":"assistant","text":"Let me look again, {nth}.","tokens":9}}"#),
        _ => read("a", "same"),
    });
    assert!(halted(&thinks).is_some());
    // A tool that does not exist, with other arguments each time.
    let unknown = lines(8, |nth| {
        let args = json!({ "q": nth });
        json!({ "type": "tool_call", "tool": "web_find", "args": args, "error": "Unknown tool: web_find" })
            .to_string()
    });
    assert_eq!(
        actions("balanced", &unknown)[..3],
        [
            "2 unknown_tool 2 nudge",
            "4 unknown_tool 4 deny",
            "5 unknown_tool 4 halt"
        ]
    );
    // An edit that fails in the same way with other texts: told, denied once, never ended.
    let edits = lines(12, |nth| {
        let args = json!({ "path": "a", "old": nth });
        let error = format!("old_str '{nth}' not found in /w/a.c");
        json!({ "type": "tool_call", "tool": "edit", "args": args, "error": error }).to_string()
    });
    assert_eq!(
        actions("balanced", &edits),
        ["4 same_failure 4 nudge", "6 same_failure 6 deny"]
    );
    // A search that finds the same whatever is asked: told, and again when that has doubled.
    let finds = lines(12, |nth| {
        call("search", &json!({ "q": nth }), "No results.")
    });
    assert_eq!(
        actions("balanced", &finds),
        ["5 no_progress_tool 5 nudge", "10 no_progress_tool 10 nudge"]
    );
}

#[test]
fn thresholds_are_set_by_config() {
    let world = World::without_git();
    let calls = lines(12, |_| read("a", "same"));
    world.write("trace.jsonl", &(calls.join("\n") + "\n"));
    let halted = |config: &str| {
        world.write("loops.toml", config);
        let said = world.says(&["replay", "trace.jsonl", "--json", "--config", "loops.toml"]);
        assert_eq!(said.code, Some(0), "{config}: {said:?}");
        let summary: Value = serde_json::from_str(said.stdout.lines().last().unwrap()).unwrap();
        summary["halted_at"].clone()
    };
    assert_eq!(halted("[loops]\npreset = \"balanced\""), json!(4));
    assert_eq!(
        halted("[loops]\npreset = \"balanced\"\n[loops.generic_repeat]\ncritical = 5"),
        json!(6)
    );
    assert_eq!(halted("[loops]\nwarning = 3\ncritical = 6"), json!(7));
    // What lies further back than the history is not seen.
    assert_eq!(
        halted("[loops]\nhistory = 4\nwarning = 2\ncritical = 4"),
        json!(5)
    );
    assert_eq!(halted("[loops]\nhistory = 4"), Value::Null);
    assert_eq!(
        halted("[loops]\npreset = \"seed\"\ndetectors = [\"global_circuit_breaker\"]\nbreaker = 4"),
        json!(5)
    );
    assert_eq!(
        halted(
            "[loops]\ndetectors = [\"global_circuit_breaker\"]\nbreaker = 4\nbreaker_counts = \"no_progress\""
        ),
        json!(6)
    );
    assert_eq!(
        halted("[loops]\npreset = \"balanced\"\ndetectors = [\"cycle\"]"),
        Value::Null
    );
    for (config, what) in [
        ("[loops]\nhistory = 31", "look back at most 30"),
        ("[loops]\ncritical = 40", "cannot reach"),
        ("[loops]\nwarning = 25", "above the 20"),
        ("[loops.cycle]\nlaps = 2", "unknown key 'loops.cycle.laps'"),
        ("[loops]\ndetectors = [\"x\"]", "loops.detectors"),
    ] {
        world.write("loops.toml", config);
        let said = world.says(&["replay", "trace.jsonl", "--config", "loops.toml"]);
        assert_eq!(said.code, Some(2), "{config}: {said:?}");
        assert!(said.stderr.contains(what), "{config}: {}", said.stderr);
    }
}

#[test]
fn the_time_that_a_run_took_is_no_news() {
    let runs = lines(12, |nth| {
        bash("pytest -q", format!("1 passed in 0.{nth}2s"))
    });
    assert_eq!(
        actions("balanced", &runs),
        [
            "2 generic_repeat 2 nudge",
            "3 generic_repeat 3 deny",
            "4 generic_repeat 3 halt"
        ]
    );
}

#[test]
fn waits_are_known_in_the_forms_that_agents_write() {
    for command in [
        json!({ "command": ["bash", "-lc", "sleep 30; gh run view 7"] }),
        json!({ "command": "bash -c \"sleep 30; make status\"" }),
        json!({ "command": "timeout 60 sleep 30" }),
        json!({ "command": "gh pr checks 12" }),
    ] {
        let waits = lines(9, |_| call("shell", &command, "pending"));
        assert_eq!(actions("balanced", &waits), NONE, "{command}");
    }
}

#[test]
fn a_shell_that_speaks_of_a_tool_is_no_unknown_tool() {
    let tests = lines(8, |nth| {
        failed(
            &format!("go tool covdata v{nth}"),
            "go: no such tool \"covdata\"",
        )
    });
    let said = actions("balanced", &tests);
    assert!(
        !said.iter().any(|line| line.contains("unknown_tool")),
        "{said:?}"
    );
    let registry = lines(8, |nth| {
        let args = json!({ "name": format!("x{nth}") });
        let error = format!("tool 'x{nth}' not found");
        json!({ "type": "tool_call", "tool": "mcp__reg__get_tool", "args": args, "error": error })
            .to_string()
    });
    let said = actions("balanced", &registry);
    assert!(
        !said.iter().any(|line| line.contains("unknown_tool")),
        "{said:?}"
    );
}
