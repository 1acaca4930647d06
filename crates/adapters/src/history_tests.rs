//! Recorded files of the real agents, as histories.

use checkrein_core::input::{Input, SessionStartKind};

use super::*;

const TRANSCRIPT: &str = include_str!("../fixtures/claude-code/transcript@2.1.330.jsonl");
const ROLLOUT: &str = include_str!("../fixtures/codex/history@0.169.0.jsonl");

/// What a history says, a word or two for each item.
fn items(text: &str) -> Vec<String> {
    let mut reader = AgentHistoryReader::new(AgentTraceReader::default());
    text.lines()
        .for_each(|line| reader.read_history_line(line.as_bytes()));
    reader.end_history();
    let mut said = Vec::new();
    while let Some(item) = reader.next_trace_item() {
        said.push(match item {
            AgentTraceLine::Session { id, agent, .. } => {
                format!("session {} {:.8}", agent.unwrap(), id.unwrap())
            }
            AgentTraceLine::Input { input, .. } => match input {
                Input::ToolRequested(request) => format!("call {} {}", request.tool, request.args),
                Input::ToolReturned(returned) => format!("returned failed={}", returned.error),
                Input::RoundEnded(round) => {
                    let tokens = round.tokens.map(|tokens| (tokens.output, tokens.input));
                    format!("round {tokens:?}")
                }
                Input::PromptSubmitted(prompt) => format!("prompt {}", prompt.text),
                Input::StopRequested(stop) => format!("stop {}", stop.message),
                Input::SessionStarted(started) if started.how == SessionStartKind::Compact => {
                    "compaction".to_owned()
                }
                other => format!("{other:?}"),
            },
            AgentTraceLine::End { .. } => "end".to_owned(),
            AgentTraceLine::Warning { line, what } => format!("warning {line} {what}"),
        });
    }
    said
}

#[test]
fn a_transcript_of_claude_code() {
    assert_eq!(
        items(TRANSCRIPT),
        [
            "session claude-code 9eac3c12",
            "prompt Do the smoke task.",
            r#"call Bash {"command":"echo fine","description":"say fine"}"#,
            r#"call Bash {"command":"ls /nope","description":"fails"}"#,
            "returned failed=true",
            "returned failed=false",
            // Three rows of one message: its tokens count once.
            "round Some((11, 1110))",
            r#"call Write {"file_path":"hello.txt","content":"hello\n"}"#,
            "returned failed=false",
            "round Some((22, 2220))",
            "round Some((33, 3000))",
            "stop I believe the work is complete.",
        ]
    );
}

#[test]
fn a_rollout_of_codex() {
    assert_eq!(
        items(ROLLOUT),
        [
            "session codex 01a218d0",
            "prompt make one.txt",
            r#"call exec_command {"cmd": "echo one > one.txt && cat one.txt"}"#,
            "returned failed=false",
            "round Some((20, 100))",
            "round Some((20, 100))",
            r#"call exec_command {"cmd": "echo two > two.txt"}"#,
            "returned failed=false",
            "round Some((20, 100))",
            "round Some((40, 900))",
            "stop Now it is really done.",
        ]
    );
}

#[test]
fn what_no_person_said_is_no_prompt() {
    let row = |more: &str, content: &str| {
        format!(
            r#"{{"type":"user","sessionId":"s1234567"{more},"message":{{"role":"user","content":{content}}}}}"#
        )
    };
    let text = [
        row("", "\"do it\""),
        row(r#","isMeta":true"#, "\"Stop hook feedback: no\""),
        r#"{"type":"system","subtype":"compact_boundary","sessionId":"s1234567"}"#.to_owned(),
        row(r#","isCompactSummary":true"#, "\"what was before\""),
        // Rows of a sub-agent in the file of the main conversation.
        row(r#","isSidechain":true"#, "\"a task for a sub-agent\""),
        row("", r#"[{"type":"text","text":"go on"}]"#),
    ];
    assert_eq!(
        items(&text.join("\n")),
        [
            "session claude-code s1234567",
            "prompt do it",
            "compaction",
            "prompt go on"
        ]
    );
}

#[test]
fn failures_of_commands_are_told_in_words() {
    let output = |text: &str| {
        let call = r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c"}}"#;
        let text = json_string(text);
        format!(
            r#"{call}
{{"timestamp":"t","type":"response_item","payload":{{"type":"function_call_output","call_id":"c","output":{text}}}}}"#
        )
    };
    let failed = |text: &str| items(&output(text)).pop().unwrap();
    assert_eq!(
        failed("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nno"),
        "returned failed=true"
    );
    assert_eq!(
        failed("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno"),
        "returned failed=true"
    );
    // What a command prints about others says nothing.
    assert_eq!(
        failed("Chunk ID: 1\nOutput:\nProcess exited with code 2"),
        "returned failed=false"
    );
}

#[test]
fn our_own_traces_are_histories_too() {
    let trace = r#"{"type":"session","id":"s1234567","agent":"mine"}
{"type":"tool_call","tool":"read","args":{},"result":"x"}
nonsense"#;
    assert_eq!(
        items(trace),
        [
            "session mine s1234567",
            "call read {}",
            "returned failed=false",
            "warning 3 cannot be read: expected ident at line 1 column 2"
        ]
    );
}

#[test]
fn results_between_the_rows_of_a_response_split_nothing() {
    let row = |usage: u32, content: &str| {
        format!(
            r#"{{"type":"assistant","sessionId":"s1234567","message":{{"id":"m","content":[{content}],"usage":{{"input_tokens":5,"output_tokens":{usage}}}}}}}"#
        )
    };
    let call =
        |id: &str| format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#);
    let result = |id: &str| {
        format!(
            r#"{{"type":"user","sessionId":"s1234567","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}]}}}}"#
        )
    };
    let text = [
        row(1, &call("a")),
        result("a"),
        row(40, &call("b")),
        result("b"),
    ];
    assert_eq!(
        items(&text.join("\n")),
        [
            "session claude-code s1234567",
            "call Read {}",
            "returned failed=false",
            "call Read {}",
            "returned failed=false",
            "round Some((40, 5))",
        ]
    );
}

#[test]
fn a_total_that_is_said_again_is_no_round() {
    let count = |output: u32| {
        format!(
            r#"{{"timestamp":"t","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":7,"output_tokens":{output}}}}}}}}}"#
        )
    };
    let text = [count(3), count(3), count(9)];
    assert_eq!(
        items(&text.join("\n")),
        ["round Some((3, 7))", "round Some((6, 0))"]
    );
}

#[test]
fn bookkeeping_before_a_transcript_is_no_mistake_and_in_an_unknown_file_it_is() {
    let summary = r#"{"type":"summary","summary":"x","leafUuid":"l"}"#;
    let prompt =
        r#"{"type":"user","sessionId":"s1234567","message":{"role":"user","content":"do it"}}"#;
    assert_eq!(
        items(&format!("{summary}\n{prompt}")),
        ["session claude-code s1234567", "prompt do it"]
    );
    assert_eq!(items(summary), ["warning 1 unknown type \"summary\""]);
    // However many there are, none is kept for ever.
    let many = vec![summary; 1_000].join("\n");
    assert_eq!(items(&many).len(), 1_000);
}
