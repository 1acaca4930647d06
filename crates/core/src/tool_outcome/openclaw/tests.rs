//! The rules for results, one by one.

use serde_json::{Value, json};

use super::*;

fn facts(tool: &str, args: Value, result: Value, error: Value) -> Option<OpenClawOutcomeFacts> {
    let tool = OpenClawTool::from_tool_name(tool);
    let call = tool.call_facts(tool.call_digest(&args), &args, None, None);
    let came_back = OpenClawResult {
        result: &result,
        error: &error,
        result_json: None,
    };
    openclaw_outcome_facts(&args, came_back, call)
}

fn result_digest(tool: &str, result: Value) -> Option<EightByteDigest> {
    facts(
        tool,
        json!({"command": "x", "action": "send"}),
        result,
        Value::Null,
    )?
    .result
}

#[test]
fn a_call_is_its_folded_name_and_its_arguments() {
    let digest = |tool: &str, args: Value| OpenClawTool::from_tool_name(tool).call_digest(&args);
    assert_eq!(
        digest(" BASH ", json!({"a": 1, "b": 2})),
        digest("exec", json!({"b": 2.0, "a": 1}))
    );
    assert_eq!(
        digest("apply-patch", json!(null)),
        digest("apply_patch", json!(null))
    );
    assert_eq!(digest("x", json!(-0.0)), digest("x", json!(0)));
    assert_ne!(digest("x", json!("1")), digest("x", json!(1)));
    assert_ne!(
        digest("x", json!(["ab", "c"])),
        digest("x", json!(["a", "bc"]))
    );
    assert_ne!(
        digest("x", json!([["a"], "b"])),
        digest("x", json!([["a", "b"]]))
    );
}

#[test]
fn of_a_running_command_only_the_tail_counts() {
    let running = |tail: &str, pid: u64| {
        result_digest(
            "exec",
            json!({"content": [], "details": {"status": "running", "tail": tail, "pid": pid}}),
        )
    };
    assert_eq!(running("t", 1), running("t", 2));
    assert_ne!(running("t", 1), running("u", 1));
}

#[test]
fn failures_that_differ_by_times_are_one_failure() {
    let failure = |output: &str, code: i64| {
        let details = json!({"status": "failed", "exitCode": code, "aggregated": output});
        facts(
            "bash",
            json!({}),
            json!({"content": [], "details": details}),
            Value::Null,
        )
        .unwrap()
    };
    let first = failure("attempt 1 at 2026-11-02T10:04:05Z took 3 ms (pid 7)", 1);
    let other = failure(
        "attempt 2 at 2026-11-03 11:04:05.5+02:00 took 9.25ms (PID=812)",
        1,
    );
    assert_ne!(first.result, other.result);
    assert_eq!(first.failure, other.failure);
    assert_ne!(
        first.failure,
        failure("attempt 1 at 2026-11-02T10:04:05Z took 3 ms (pid 7)", 2).failure
    );
    assert_ne!(
        failure("line 3: bad", 1).failure,
        failure("line 4: bad", 1).failure
    );
    // The host's own footer is no output.
    assert_eq!(failure("(Command exited with code 3)", 3).failure, None);
    assert_eq!(failure("done", 0).failure, None);
}

#[test]
fn markers_of_text_from_outside_are_masked_only_as_complete_pairs() {
    let marked = |first: &str, second: &str| {
        let text = format!(
            "<<<EXTERNAL_UNTRUSTED_CONTENT id=\"{first}\">>>hello<<<END_EXTERNAL_UNTRUSTED_CONTENT id=\"{second}\">>>"
        );
        result_digest(
            "web_fetch",
            json!({"content": [{"type": "text", "text": text}], "details": {}}),
        )
    };
    let (one, two) = ("0123456789abcdef", "fedcba9876543210");
    assert_eq!(marked(one, one), marked(two, two));
    assert_ne!(marked(one, two), marked(one, one));
}

#[test]
fn ids_of_a_delivery_do_not_count() {
    let sent = |id: &str, room: &str| {
        result_digest(
            "message",
            json!({"ok": true, "messageId": id, "route": {"id": room}}),
        )
    };
    assert_eq!(sent("m1", "a"), sent("m2", "a"));
    assert_ne!(sent("m1", "a"), sent("m1", "b"));
}

#[test]
fn an_unknown_tool_is_named_by_its_error() {
    let named = |error: &str| {
        facts("foo", json!({}), Value::Null, json!(error))
            .unwrap()
            .unknown_tool
    };
    assert!(named("Unknown tool: \"foo\"").is_some());
    assert_eq!(
        named("tool 'foo' is not available"),
        named("unknown tool foo")
    );
    assert_eq!(named("toolfoo not found"), None);
    assert_eq!(named("no such file"), None);
}

#[test]
fn a_veto_has_no_result_and_nothing_has_no_outcome() {
    let blocked =
        json!({"content": [], "details": {"status": "blocked", "deniedReason": "tool-loop"}});
    let vetoed = facts("read", json!({}), blocked, Value::Null).unwrap();
    assert!(vetoed.vetoed && vetoed.result.is_none());
    assert!(facts("read", json!({}), Value::Null, Value::Null).is_none());
}
