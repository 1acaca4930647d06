//! Tests of the trace reader on small traces.

use serde_json::json;

use super::*;

/// What a trace says, one short line an item.
fn told(trace: &str) -> Vec<String> {
    read_generic_trace_items(trace.as_bytes())
        .map(|item| match item {
            AgentTraceLine::Session {
                id, agent, goal, ..
            } => format!("session {id:?} {agent:?} {goal:?}"),
            AgentTraceLine::End { success, label } => format!("end {success:?} {label:?}"),
            AgentTraceLine::Warning { line, what } => format!("warning {line} {what}"),
            AgentTraceLine::Input { input, call } => {
                let at = call.map_or(String::new(), |call| {
                    format!(" #{} {}", call.index, call.tool)
                });
                match input {
                    Input::PromptSubmitted(prompt) => format!("prompt {}", prompt.text),
                    Input::RoundEnded(round) => {
                        format!("round {:?}", round.tokens.map(|t| (t.output, t.input)))
                    }
                    Input::StopRequested(stop) => format!("stop {}", stop.message),
                    Input::ToolRequested(call) => format!("call{at} {:?} {}", call.kind, call.args),
                    Input::ToolReturned(call) => {
                        format!("result{at} error={} wrote={}", call.error, call.wrote)
                    }
                    other => format!("{other:?}"),
                }
            }
        })
        .collect()
}

fn check(trace: &str, expected: &[&str]) {
    assert_eq!(told(trace), expected, "{trace}");
}

#[test]
fn reads_every_type_of_line() {
    check(
        concat!(
            r#"{"type":"session","id":"s1","agent":"a","goal":"g","new":1}"#,
            "\n\n",
            r#"{"type":"user","text":"do \"it\""}"#,
            "\r\n",
            r#"{"type":"assistant","text":"on it","tokens":7,"usage":{"input_tokens":3,"cache_read_input_tokens":4}}"#,
            "\n",
            r#"{"type":"tool_call","i":0,"tool":"bash","args":{"command":"ls"},"result":"x","error":false}"#,
            "\n",
            r#"{"type":"tool_call","id":"c","tool":"write_file","args":{}}"#,
            "\n",
            r#"{"type":"tool_result","id":"c","result":"ok","error":null}"#,
            "\n",
            r#"{"type":"assistant","text":null,"tokens":null}"#,
            "\n",
            r#"{"type":"stop","text":"done"}"#,
            "\n",
            r#"{"type":"end","success":true,"label":"L"}"#,
            "\n",
            r#"{"type":"session","id":7}"#,
            "\n",
            r#"{"type":"tool_call","tool":"t"}"#,
            "\n",
            r#"{"type":"end","success":null,"label":null}"#,
        ),
        &[
            r#"session Some("s1") Some("a") Some("g")"#,
            r#"prompt do "it""#,
            "round Some((7, 7))",
            r#"call #0 bash Shell {"command":"ls"}"#,
            "result #0 bash error=false wrote=false",
            "call #1 write_file Write {}",
            "result #1 write_file error=false wrote=true",
            "round None",
            "stop done",
            r#"end Some(true) Some("L")"#,
            r#"session Some("7") None None"#,
            "call #0 t Other null",
            "end None None",
        ],
    );
}

#[test]
fn an_error_is_none_a_flag_or_itself() {
    let check = |fields: &str, expected: Option<bool>| {
        let line = format!("{{\"type\":\"tool_call\",\"tool\":\"write_file\"{fields}}}");
        let error = read_generic_trace_items(line.as_bytes()).find_map(|item| match item {
            AgentTraceLine::Input {
                input: Input::ToolReturned(returned),
                ..
            } => {
                assert_eq!(returned.wrote, !returned.error);
                Some(returned.error)
            }
            _ => None,
        });
        assert_eq!(error, expected, "{line}");
    };
    check("", None);
    check(r#","result":null,"error":null"#, None);
    check(r#","result":"x""#, Some(false));
    check(r#","result":"x","error":null"#, Some(false));
    check(r#","result":null,"error":false"#, Some(false));
    check(r#","result":"x","error":"""#, Some(false));
    check(r#","error":true"#, Some(true));
    check(r#","result":{"a":1},"error":true"#, Some(true));
    check(r#","error":"no such file""#, Some(true));
    check(r#","error":{"code":3}"#, Some(true));
}

#[test]
fn results_find_their_calls() {
    check(
        concat!(
            r#"{"type":"tool_call","id":"a","tool":"one"}"#,
            "\n",
            r#"{"type":"tool_call","id":"b","tool":"two"}"#,
            "\n",
            r#"{"type":"tool_result","id":"b","result":1}"#,
            "\n",
            r#"{"type":"tool_result","id":"a","result":1}"#,
            "\n",
            r#"{"type":"tool_result","id":"a","result":1}"#,
            "\n",
            r#"{"type":"tool_call","id":"a","tool":"again"}"#,
            "\n",
            r#"{"type":"tool_result","id":"a","result":1}"#,
            "\n",
            r#"{"type":"tool_call","tool":"first"}"#,
            "\n",
            r#"{"type":"tool_call","tool":"second"}"#,
            "\n",
            r#"{"type":"tool_result","result":1}"#,
            "\n",
            r#"{"type":"tool_result","result":1}"#,
            "\n",
        ),
        &[
            "call #0 one Other null",
            "call #1 two Other null",
            "result #1 two error=false wrote=false",
            "result #0 one error=false wrote=false",
            "warning 5 a tool_result without its tool_call",
            "call #2 again Other null",
            "result #2 again error=false wrote=false",
            "call #3 first Other null",
            "call #4 second Other null",
            "result #3 first error=false wrote=false",
            "result #4 second error=false wrote=false",
        ],
    );
}

#[test]
fn what_is_not_understood_is_a_warning() {
    check(
        "{\"type\":\"dance\"}\nnot json\n{\"text\":\"x\"}\n{\"type\":\"tool_call\"}\n[]",
        &[
            "warning 1 unknown type \"dance\"",
            "warning 2 cannot be read: expected ident at line 1 column 2",
            "warning 3 cannot be read: missing field `type` at line 1 column 12",
            "warning 4 a tool_call without a tool",
            "warning 5 cannot be read: invalid length 0, expected an object at line 1 column 2",
        ],
    );
}

#[test]
fn the_quick_way_to_a_digest_agrees_with_the_canonical_one() {
    let check = |result: &str, error: &str| {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let (quick_result, quick_error) = (raw(result), raw(error));
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(
            outcome_from_raw_json("x", Some(&quick_result), Some(&quick_error)),
            reported_call_outcome("x", &value(result), &value(error)),
            "{result} {error}"
        );
    };
    for error in ["null", "false", "true", "\"\"", "\"why\"", "{\"code\":1}"] {
        check("\"plain é text\"", error);
        check("\"with \\\"escape\\\" \\u00e9 \\/\"", error);
        check("{\"b\":1,\"a\":[null]}", error);
        check("12", error);
        check("null", error);
    }
}

#[test]
fn the_same_call_written_otherwise_is_the_same_call() {
    let call = |line: &str| match read_generic_trace_items(line.as_bytes()).next() {
        Some(AgentTraceLine::Input {
            input: Input::ToolRequested(call),
            ..
        }) => call.call,
        other => panic!("{other:?}"),
    };
    let first = call(r#"{"type":"tool_call","tool":"bash","args":{"a":1,"b":"é"}}"#);
    assert_eq!(
        first,
        call(r#"{"args": {"b": "\u00e9", "a": 1}, "tool": "bash", "type": "tool_call"}"#)
    );
    assert_ne!(
        first,
        call(r#"{"type":"tool_call","tool":"bash","args":{"a":2,"b":"é"}}"#)
    );
    assert_eq!(
        first,
        tool_call_digest("bash", &Digest::hash_json(&json!({"a": 1, "b": "é"})))
    );
}

#[test]
fn nesting_without_bound_is_read_without_recursion() {
    let deep = "[".repeat(50_000) + &"]".repeat(50_000);
    let line = format!(r#"{{"type":"tool_call","tool":"t","args":{deep},"result":{deep}}}"#);
    assert_eq!(read_generic_trace_items(line.as_bytes()).count(), 2);
}

#[test]
fn token_use_comes_from_either_account() {
    let check = |tokens_field: Value, usage: Value, expected: Option<(u64, u64)>| {
        let used = parse_token_usage(&tokens_field, &usage);
        assert_eq!(used.map(|used| (used.output, used.input)), expected);
    };
    check(json!(5), json!(null), Some((5, 0)));
    check(
        json!(null),
        json!({"completion_tokens": 4, "prompt_tokens": 9}),
        Some((4, 9)),
    );
    check(
        json!(5),
        json!({"output_tokens": 6, "input_tokens": 1}),
        Some((5, 1)),
    );
    check(json!(null), json!(null), None);
    check(json!("5"), json!({}), None);
}
