//! What the recorded messages mean, as whole values where a value can differ.

use checkrein_adapters::{
    AgentEvent, AgentEventKind, AwaitedHookReplyForm, TranscriptFile, find_adapter,
};
use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, ScopeId, SessionId};
use checkrein_core::input::{
    Input, PromptSubmitted, RoundEnded, SessionEnded, SessionStartKind, SessionStarted,
    StopRequested, TokenUsage, ToolKind, ToolOutcomeFacts, ToolRequestFacts, ToolRequested,
    ToolReturned, TreeReadError, TurnEndedByApiError,
};
use checkrein_core::tool_action::{ScriptOrArgvOfToolCall, ToolAction};
use checkrein_core::tool_outcome::tool_outcome_facts;
use serde_json::{Value, json};

use crate::decisions::fixture;

const CLAUDE_SESSION: &str = "9eac3c12-542e-494d-a16f-07f94a2d5ddc";
const CLAUDE_TRANSCRIPT: &str =
    "/home/dev/.claude/projects/-home-dev-repo/9eac3c12-542e-494d-a16f-07f94a2d5ddc.jsonl";

fn read(agent: &str, file: &str) -> AgentEvent {
    find_adapter(agent)
        .unwrap()
        .parse_agent_hook_message(&fixture(agent, file), &|_| None)
        .unwrap()
}

fn read_with(agent: &str, file: &str, name: &str, value: &str) -> AgentEvent {
    let env = |asked: &str| (asked == name).then(|| value.to_owned());
    find_adapter(agent)
        .unwrap()
        .parse_agent_hook_message(&fixture(agent, file), &env)
        .unwrap()
}

fn call(tool: &str, args: &Value) -> checkrein_core::digest::EightByteDigest {
    Digest::hash_parts([
        tool.as_bytes(),
        Digest::hash_json(args).as_bytes().as_slice(),
    ])
    .to_eight_byte_digest()
}

fn claude(file: &str) -> AgentEvent {
    read("claude-code", &format!("{file}@2.1.330.json"))
}

fn codex(file: &str) -> AgentEvent {
    read("codex", &format!("{file}@0.169.0.json"))
}

fn generic(file: &str) -> AgentEvent {
    read("generic", &format!("{file}.json"))
}

fn input(knock: AgentEvent) -> Input {
    knock.input.unwrap()
}

#[test]
fn a_whole_event_of_claude_code() {
    let args = json!({"command": "echo fine", "description": "say fine"});
    assert_eq!(
        claude("PreToolUse"),
        AgentEvent {
            session: SessionId::from(CLAUDE_SESSION),
            cwd: Some("/home/dev/repo".into()),
            event: AgentEventKind::ToolRequest,
            native_event: "PreToolUse".into(),
            key: Some("PreToolUse:toolu_01A".into()),
            input: Some(Input::ToolRequested(ToolRequested {
                scope: ScopeId::main_scope(),
                call_id: Some("toolu_01A".into()),
                tool: "Bash".into(),
                kind: ToolKind::Shell,
                args: args.to_string(),
                call: call("Bash", &args),
                facts: ToolRequestFacts::default(),
                can_ask: true,
                may_act: false,
                reports_outcome: true,
                openclaw: None,
                waits: false,
                tokens: None,
            })),
            result_input: None,
            result_key: None,
            tool_response: None,
            action: ToolAction::shell_action_from_script("echo fine"),
            working_folder: Some("/home/dev/repo".into()),
            transcript: Some(TranscriptFile {
                path: CLAUDE_TRANSCRIPT.into(),
                scope: ScopeId::main_scope()
            }),
            reply_form: AwaitedHookReplyForm::Tool,
            first_stop: None,
            can_ask: true,
        }
    );
}

#[test]
fn claude_code_results() {
    let args = json!({"command": "echo fine", "description": "say fine"});
    let returned = |knock: AgentEvent| match knock.input {
        Some(Input::ToolReturned(returned)) => returned,
        other => panic!("{other:?}"),
    };
    let response = json!({"stdout": "fine", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false});
    assert_eq!(
        returned(claude("PostToolUse")),
        ToolReturned {
            excerpt: None,
            scope: ScopeId::main_scope(),
            call_id: Some("toolu_01A".into()),
            call: call("Bash", &args),
            outcome: Digest::hash_json(&response).to_eight_byte_digest(),
            error: false,
            wrote: false,
            facts: ToolOutcomeFacts::default(),
            tokens: None,
        }
    );
    let error = json!("Exit code 2\nls: cannot access '/nope': No such file or directory");
    assert_eq!(
        returned(claude("PostToolUseFailure")),
        ToolReturned {
            excerpt: None,
            scope: ScopeId::main_scope(),
            call_id: Some("toolu_01B".into()),
            call: call(
                "Bash",
                &json!({"command": "ls /nope", "description": "fails"})
            ),
            outcome: Digest::hash_json(&error).to_eight_byte_digest(),
            error: true,
            wrote: false,
            facts: tool_outcome_facts("Bash", &error, true),
            tokens: None,
        }
    );
    let wrote = returned(claude("PostToolUse-write"));
    assert_eq!((wrote.wrote, wrote.error), (true, false));
    assert_eq!(
        claude("PostToolUseFailure").key.as_deref(),
        Some("PostToolUseFailure:toolu_01B")
    );
}

#[test]
fn a_result_belongs_to_its_request() {
    let check = |request: AgentEvent, result: AgentEvent| match (input(request), input(result)) {
        (Input::ToolRequested(request), Input::ToolReturned(result)) => {
            assert_eq!(
                (request.call, request.call_id),
                (result.call, result.call_id)
            );
        }
        other => panic!("{other:?}"),
    };
    check(claude("PreToolUse"), claude("PostToolUse"));
    check(claude("PreToolUse-write"), claude("PostToolUse-write"));
    check(codex("PreToolUse"), codex("PostToolUse"));
    check(codex("PreToolUse-patch"), codex("PostToolUse-patch"));
    check(generic("tool_call"), generic("tool_result"));
}

#[test]
fn claude_code_stops() {
    let stop = |message: &str, background: u32, cap: Option<u32>, scope: &str| {
        Input::StopRequested(StopRequested {
            scope: ScopeId::from(scope),
            message: message.into(),
            message_digest: Digest::hash_bytes(message.as_bytes()),
            tree: Err(TreeReadError {
                why: "not read".into(),
                cut: false,
            }),
            block_cap: cap,
            truncated: false,
            background,
            agent_ending: None,
            answer: checkrein_core::input::AgentAnswerFacts::default(),
            judges: Box::default(),
            tokens: None,
        })
    };
    let first = claude("Stop");
    assert_eq!((first.first_stop, first.key.clone()), (Some(true), None));
    assert_eq!(
        input(first),
        stop("I believe the work is complete.", 2, Some(8), "")
    );
    assert_eq!(claude("Stop-again").first_stop, Some(false));
    let cap = |value: &str| {
        input(read_with(
            "claude-code",
            "Stop@2.1.330.json",
            "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
            value,
        ))
    };
    assert_eq!(
        cap("3"),
        stop("I believe the work is complete.", 2, Some(3), "")
    );
    assert_eq!(
        cap("0"),
        stop("I believe the work is complete.", 2, None, "")
    );

    let sub = claude("SubagentStop");
    assert_eq!(
        sub.transcript,
        Some(TranscriptFile {
            path: format!(
                "{}/subagents/agent-a59d197cbe0bde8b5.jsonl",
                CLAUDE_TRANSCRIPT.trim_end_matches(".jsonl")
            ),
            scope: ScopeId::from("a59d197cbe0bde8b5"),
        })
    );
    // It is still listed among the running tasks, beside the shell that really runs.
    assert_eq!(input(sub), stop("Extra.", 1, Some(8), "a59d197cbe0bde8b5"));
    // The summariser of `/compact` is let through unjudged.
    assert_eq!(claude("SubagentStop-compact").input, None);
}

#[test]
fn a_sub_agents_call_is_its_own() {
    let knock = claude("PreToolUse-subagent");
    let scope = ScopeId::from("a59d197cbe0bde8b5");
    let transcript = knock.transcript.clone().unwrap();
    assert_eq!(transcript.scope, scope);
    // The path that is derived for a tool call is the one that its stop names.
    assert_eq!(Some(transcript), claude("SubagentStop").transcript);
    assert!(matches!(input(knock), Input::ToolRequested(request) if request.scope == scope));
}

#[test]
fn claude_code_sessions() {
    let check = |file: &str, how: SessionStartKind| {
        let agent = AgentName::from("claude-code");
        let expected = Input::SessionStarted(SessionStarted {
            agent,
            how,
            parent: None,
            tokens: None,
        });
        assert_eq!(input(claude(file)), expected, "{file}");
    };
    check("SessionStart", SessionStartKind::Startup);
    check("SessionStart-resume", SessionStartKind::Resume);
    check("SessionStart-compact", SessionStartKind::Compact);
    check("SessionStart-fork", SessionStartKind::Fork);
    assert_eq!(
        input(claude("UserPromptSubmit")),
        Input::PromptSubmitted(PromptSubmitted {
            text: "Do the smoke task.".into(),
            tree: None,
            tokens: None,
            tells_calls: true,
            acts: None,
        })
    );
    // The end of a background task comes as a prompt, but nobody prompted.
    assert_eq!(claude("UserPromptSubmit-notification").input, None);
    assert_eq!(
        input(claude("SessionEnd")),
        Input::SessionEnded(SessionEnded {
            native_reason: "other".into()
        })
    );
    let batch = claude("PostToolBatch");
    assert_eq!(batch.key.as_deref(), Some("PostToolBatch:toolu_01A"));
    assert_eq!(
        input(batch),
        Input::RoundEnded(RoundEnded {
            scope: ScopeId::main_scope(),
            tokens: None
        })
    );
    assert_eq!(
        input(read("claude-code", "StopFailure@2.1.330-by-schema.json")),
        Input::StopFailed(TurnEndedByApiError {
            scope: ScopeId::main_scope(),
            native_reason: "server_error".into(),
            truncated: false
        })
    );
}

#[test]
fn a_person_can_be_asked_only_where_one_attends() {
    let check = |value: &str, expected: bool| {
        let name = "CLAUDE_CODE_SESSION_ATTENDED";
        let knock = read_with("claude-code", "PreToolUse@2.1.330.json", name, value);
        assert_eq!(knock.can_ask, expected, "{value}");
    };
    check("0", false);
    check("1", true);
    assert!(!codex("PreToolUse").can_ask);
}

#[test]
fn codex_messages() {
    let knock = codex("PreToolUse");
    assert_eq!(
        (
            knock.key.as_deref(),
            knock.action.shell_script_of_call(),
            knock.reply_form
        ),
        (
            Some("PreToolUse:call_1"),
            Some("echo one > one.txt && cat one.txt"),
            AwaitedHookReplyForm::Tool
        )
    );
    assert!(
        knock
            .transcript
            .unwrap()
            .path
            .starts_with("/home/dev/.codex/sessions/")
    );
    let patch = codex("PreToolUse-patch");
    assert_eq!(patch.action.command, None);
    assert!(
        matches!(input(patch), Input::ToolRequested(request) if request.kind == ToolKind::Write)
    );
    let result = |file: &str| match input(codex(file)) {
        Input::ToolReturned(returned) => (returned.outcome, returned.error, returned.wrote),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        result("PostToolUse"),
        (
            Digest::hash_json(&json!("one\n")).to_eight_byte_digest(),
            false,
            false
        )
    );
    let patched = json!([
        "0",
        "Output:\nSuccess. Updated the following files:\nA p.txt\n"
    ]);
    assert_eq!(
        result("PostToolUse-patch"),
        (
            Digest::hash_json(&patched).to_eight_byte_digest(),
            false,
            true
        )
    );
    assert_eq!(
        (codex("Stop").first_stop, codex("Stop-again").first_stop),
        (Some(true), Some(false))
    );
    assert!(
        matches!(input(codex("Stop")), Input::StopRequested(stop) if stop.block_cap.is_none() && stop.message == "I am done.")
    );
}

#[test]
fn a_codex_patch_that_failed_wrote_nothing() {
    let message = json!({
        "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "apply_patch",
        "tool_input": {"command": "*** Begin Patch"},
        "tool_response": "Exit code: 1\nWall time: 0.2 seconds\nOutput:\nno\n",
    });
    let knock = find_adapter("codex")
        .unwrap()
        .parse_agent_hook_message(message.to_string().as_bytes(), &|_| None)
        .unwrap();
    match input(knock) {
        Input::ToolReturned(returned) => {
            assert_eq!((returned.error, returned.wrote), (true, false))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn generic_messages() {
    assert_eq!(
        input(generic("assistant")),
        Input::RoundEnded(RoundEnded {
            scope: ScopeId::main_scope(),
            tokens: Some(TokenUsage {
                output: 42,
                input: 100,
                cost: None,
                cursor: String::new()
            }),
        })
    );
    assert_eq!(
        input(generic("session")),
        Input::SessionStarted(SessionStarted {
            agent: AgentName::from("my-agent"),
            how: SessionStartKind::Startup,
            parent: None,
            tokens: None,
        })
    );
    let argv = generic("tool_call-argv");
    assert_eq!(
        argv.action.command,
        Some(ScriptOrArgvOfToolCall::Argv(vec![
            "cargo".into(),
            "test".into()
        ]))
    );
    let inline = generic("tool_call-inline");
    assert_eq!(
        (inline.key.as_deref(), inline.result_key.as_deref()),
        (Some("tool_call:3"), Some("tool_result:3"))
    );
    assert!(matches!(inline.result_input, Some(Input::ToolReturned(returned)) if returned.wrote));
    assert_eq!(generic("tool_call").result_input, None);
    assert_eq!(
        input(generic("end")),
        Input::SessionEnded(SessionEnded {
            native_reason: "closed".into()
        })
    );
}

#[test]
fn unknown_events_mean_nothing_and_missing_fields_are_named() {
    let check = |agent: &str, bytes: &str, expected: Result<Option<AwaitedHookReplyForm>, &str>| {
        let read = find_adapter(agent)
            .unwrap()
            .parse_agent_hook_message(bytes.as_bytes(), &|_| None);
        match (read, expected) {
            (Ok(knock), Ok(form)) => {
                assert_eq!(
                    (knock.input.is_some(), Some(knock.reply_form)),
                    (false, form),
                    "{bytes}"
                );
            }
            (Err(error), Err(text)) => assert_eq!(error.to_string(), text),
            (read, expected) => panic!("{bytes}: {read:?}, expected {expected:?}"),
        }
    };
    let silent = Ok(Some(AwaitedHookReplyForm::Silent));
    check(
        "claude-code",
        r#"{"hook_event_name":"Dance","session_id":"s"}"#,
        silent,
    );
    check(
        "codex",
        r#"{"hook_event_name":"PreModelRequest","session_id":"s"}"#,
        silent,
    );
    check("generic", r#"{"type":"dance","session":"s"}"#, silent);
    check(
        "claude-code",
        r#"{"hook_event_name":"PreToolUse","session_id":"s"}"#,
        Err(
            "cannot read the message of claude-code: PreToolUse cannot be judged without this (field \"tool_name\")",
        ),
    );
    check(
        "codex",
        r#"{"hook_event_name":"Stop"}"#,
        Err(
            "cannot read the message of codex: Stop cannot be judged without this (field \"session_id\")",
        ),
    );
    check(
        "generic",
        r#"{"type":"stop","text":"x"}"#,
        Err(
            "cannot read the message of generic: stop cannot be judged without this (field \"session\")",
        ),
    );
    check(
        "claude-code",
        "",
        Err("cannot read the message of claude-code: empty input (line 1, column 0)"),
    );
}

#[test]
fn long_texts_are_handed_over_whole() {
    let message = "x".repeat(100_000);
    let stop =
        json!({"hook_event_name": "Stop", "session_id": "s", "last_assistant_message": message});
    let knock = find_adapter("codex")
        .unwrap()
        .parse_agent_hook_message(stop.to_string().as_bytes(), &|_| None)
        .unwrap();
    match input(knock) {
        Input::StopRequested(stop) => {
            assert_eq!(stop.message_digest, Digest::hash_bytes(message.as_bytes()));
            assert_eq!(
                stop.message, message,
                "what is kept of it is the runtime's to say"
            );
        }
        other => panic!("{other:?}"),
    }
    let args = json!({"command": message});
    let tool = json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": args});
    let knock = find_adapter("codex")
        .unwrap()
        .parse_agent_hook_message(tool.to_string().as_bytes(), &|_| None)
        .unwrap();
    assert_eq!(
        knock.action.shell_script_of_call().map(str::len),
        Some(100_000)
    );
    match input(knock) {
        Input::ToolRequested(request) => {
            assert_eq!(request.call, call("Bash", &args));
            assert_eq!(request.args, args.to_string());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn leaving_the_folder_does_not_leave_the_project() {
    let knock = read_with(
        "claude-code",
        "Stop@2.1.330.json",
        "CLAUDE_PROJECT_DIR",
        "/home/dev/project",
    );
    assert_eq!(knock.cwd.as_deref(), Some("/home/dev/project"));
}
