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
            // Three rows of one message: its tokens count once.
            "round Some((11, 1110))",
            "returned failed=true",
            "returned failed=false",
            r#"call Write {"file_path":"hello.txt","content":"hello\n"}"#,
            "round Some((22, 2220))",
            "returned failed=false",
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
