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
