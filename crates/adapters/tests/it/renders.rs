//! The exact bytes of every answer. Changing one is changing what a real agent does.

use checkrein_adapters::{AwaitedHookReplyForm, HookDecisionWithTexts, HookReply, find_adapter};
use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::policy::Stance;
use checkrein_core::transition::{Reason, Transition};

use crate::decisions::{feedback, tools};

fn shown(reply: &HookReply) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    match reply.exit_code {
        0 => text(&reply.stdout),
        code => format!(
            "exit {code}: {}{}",
            text(&reply.stdout),
            text(&reply.stderr)
        ),
    }
}

fn tool(agent: &str, can_ask: bool) -> Vec<String> {
    let adapter = find_adapter(agent).unwrap();
    tools()
        .into_iter()
        .map(|decision| {
            let answer = HookDecisionWithTexts {
                can_ask,
                ..HookDecisionWithTexts::new(Decision::Tool(decision))
            };
            shown(&adapter.render_decision_reply(AwaitedHookReplyForm::Tool, &answer))
        })
        .collect()
}

fn stop(agent: &str, decision: StopDecision, text: Option<&str>, notice: Option<&str>) -> String {
    let answer = HookDecisionWithTexts {
        decision: Decision::Stop(decision),
        text: text.map(str::to_owned),
        notice: notice.map(str::to_owned),
        can_ask: false,
    };
    shown(
        &find_adapter(agent)
            .unwrap()
            .render_decision_reply(AwaitedHookReplyForm::Stop, &answer),
    )
}

fn accept() -> StopDecision {
    StopDecision::Accept {
        transition: Some(Transition::new(Reason::Unverified, "no_checks")),
    }
}

fn go_on() -> StopDecision {
    StopDecision::Continue {
        feedback: feedback(),
    }
}

fn halt() -> StopDecision {
    StopDecision::Halt {
        transition: Transition::new(Reason::HardCap, "iterations"),
    }
}

fn permission(decision: &str, reason: &str) -> String {
    format!(
        "{{\"hookSpecificOutput\":{{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"{decision}\",\"permissionDecisionReason\":\"{reason}\"}}}}\n"
    )
}

const NUDGE: &str = "{\"hookSpecificOutput\":{\"additionalContext\":\"look around\",\"hookEventName\":\"PreToolUse\"}}\n";
const INSTEAD: &str =
    r#"too broad\ncheckrein: call the tool with these arguments instead: {\"command\":\"ls\"}"#;
const AWAITS: &str = r"deletes files\ncheckrein: refused until a person approves exactly this call in a terminal of their own: checkrein approve ap7. Say so and go on with what does not need it; do not try another way to the same end. Once it is approved, make the same call again.";

#[test]
fn claude_code_tool_answers() {
    let mut expected = vec![
        String::new(),
        NUDGE.to_owned(),
        permission("deny", INSTEAD),
        permission("deny", AWAITS),
        permission("deny", "forbidden by rule"),
        "{\"continue\":false,\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"loop found\"},\"stopReason\":\"loop found\",\"systemMessage\":\"loop found\"}\n".to_owned(),
    ];
    assert_eq!(tool("claude-code", false), expected);
    expected[3] = permission("ask", "deletes files");
    assert_eq!(tool("claude-code", true), expected);
}

#[test]
fn codex_tool_answers() {
    let expected = vec![
        String::new(),
        NUDGE.to_owned(),
        permission("deny", INSTEAD),
        permission("deny", AWAITS),
        permission("deny", "forbidden by rule"),
        permission(
            "deny",
            r"loop found\ncheckrein: this task is over and no further tool call will run. Stop now and say what is left to do.",
        ),
    ];
    assert_eq!(tool("codex", false), expected);
    assert_eq!(tool("codex", true), expected);
}

#[test]
fn generic_tool_answers() {
    let line = |decision: &str, reason: &str, text: &str| {
        format!(
            "{{\"decision\":\"{decision}\",\"reason\":{reason},\"text\":{text},\"transition\":null}}\n"
        )
    };
    let expected = vec![
        line("allow", "null", "null"),
        line("nudge", "null", "\"look around\""),
        line("rewrite", "\"too broad\"", r#""{\"command\":\"ls\"}""#),
        line("ask", "\"deletes files\"", "\"ap7\""),
        line("deny", "\"forbidden by rule\"", "null"),
        line("halt", "\"loop found\"", "null"),
    ];
    assert_eq!(tool("generic", false), expected);
}

#[test]
fn claude_code_stop_answers() {
    let check =
        |decision: StopDecision, text: Option<&str>, notice: Option<&str>, expected: &str| {
            assert_eq!(stop("claude-code", decision, text, notice), expected);
        };
    check(accept(), None, None, "");
    check(
        accept(),
        None,
        Some("unverified"),
        "{\"systemMessage\":\"unverified\"}\n",
    );
    check(go_on(), Some("fix it"), Some("ignored"), "exit 2: fix it");
    check(
        go_on(),
        None,
        None,
        "exit 2: checkrein: not done: failing: tests; no verdict: lint",
    );
    check(
        halt(),
        None,
        None,
        "{\"continue\":false,\"stopReason\":\"checkrein: hard_cap (iterations)\",\"systemMessage\":\"checkrein: hard_cap (iterations)\"}\n",
    );
    check(
        halt(),
        None,
        Some("capped"),
        "{\"continue\":false,\"stopReason\":\"capped\",\"systemMessage\":\"capped\"}\n",
    );
}

#[test]
fn codex_stop_answers() {
    let check =
        |decision: StopDecision, text: Option<&str>, notice: Option<&str>, expected: &str| {
            assert_eq!(stop("codex", decision, text, notice), expected);
        };
    check(accept(), None, None, "");
    check(
        accept(),
        None,
        Some("unverified"),
        "{\"systemMessage\":\"unverified\"}\n",
    );
    check(
        go_on(),
        Some("fix \"it\""),
        None,
        "{\"decision\":\"block\",\"reason\":\"fix \\\"it\\\"\"}\n",
    );
    check(
        go_on(),
        Some(" "),
        None,
        "{\"decision\":\"block\",\"reason\":\"checkrein: not done: failing: tests; no verdict: lint\"}\n",
    );
    check(
        halt(),
        None,
        None,
        "{\"systemMessage\":\"checkrein: hard_cap (iterations)\"}\n",
    );
    check(
        halt(),
        None,
        Some("capped"),
        "{\"systemMessage\":\"capped\"}\n",
    );
}

#[test]
fn generic_stop_answers() {
    let check =
        |decision: StopDecision, text: Option<&str>, notice: Option<&str>, expected: &str| {
            assert_eq!(stop("generic", decision, text, notice), expected);
        };
    check(
        accept(),
        None,
        Some("unverified"),
        "{\"decision\":\"accept\",\"reason\":null,\"text\":\"unverified\",\"transition\":{\"reason\":\"unverified\",\"detail\":\"no_checks\",\"native_reason\":null}}\n",
    );
    check(
        go_on(),
        Some("fix it"),
        None,
        "{\"decision\":\"continue\",\"reason\":\"checkrein: not done: failing: tests; no verdict: lint\",\"text\":\"fix it\",\"transition\":null}\n",
    );
    check(
        halt(),
        None,
        None,
        "{\"decision\":\"halt\",\"reason\":\"checkrein: hard_cap (iterations)\",\"text\":null,\"transition\":{\"reason\":\"hard_cap\",\"detail\":\"iterations\",\"native_reason\":null}}\n",
    );
}

#[test]
fn stances() {
    let check = |agent: &str, form: AwaitedHookReplyForm, stance: Stance, expected: &str| {
        let reply = find_adapter(agent)
            .unwrap()
            .stance_as_hook_reply(form, stance, "why");
        assert_eq!(shown(&reply), expected, "{agent} {form:?} {stance:?}");
    };
    let said = "{\"systemMessage\":\"why\"}\n";
    let (deny, ask) = (permission("deny", "why"), permission("ask", "why"));
    check(
        "claude-code",
        AwaitedHookReplyForm::Tool,
        Stance::Block,
        &deny,
    );
    check("claude-code", AwaitedHookReplyForm::Tool, Stance::Ask, &ask);
    check(
        "claude-code",
        AwaitedHookReplyForm::Tool,
        Stance::Allow,
        said,
    );
    check(
        "claude-code",
        AwaitedHookReplyForm::Stop,
        Stance::Block,
        "exit 2: why",
    );
    check(
        "claude-code",
        AwaitedHookReplyForm::Stop,
        Stance::Allow,
        said,
    );
    check(
        "claude-code",
        AwaitedHookReplyForm::Unknown,
        Stance::Block,
        "exit 2: why",
    );
    check(
        "claude-code",
        AwaitedHookReplyForm::Silent,
        Stance::Block,
        "",
    );
    check("codex", AwaitedHookReplyForm::Tool, Stance::Block, &deny);
    check("codex", AwaitedHookReplyForm::Tool, Stance::Ask, &deny);
    check("codex", AwaitedHookReplyForm::Tool, Stance::Allow, said);
    check(
        "codex",
        AwaitedHookReplyForm::Stop,
        Stance::Block,
        "{\"decision\":\"block\",\"reason\":\"why\"}\n",
    );
    check("codex", AwaitedHookReplyForm::Stop, Stance::Ask, said);
    check(
        "codex",
        AwaitedHookReplyForm::Unknown,
        Stance::Block,
        "exit 2: why",
    );
}

#[test]
fn a_reason_is_never_cut_or_reworded() {
    let reason = "é\"\\\n".repeat(5_000);
    let decision = Decision::Tool(ToolDecision::Deny {
        reason: reason.clone(),
    });
    for agent in ["claude-code", "codex"] {
        let reply = find_adapter(agent).unwrap().render_decision_reply(
            AwaitedHookReplyForm::Tool,
            &HookDecisionWithTexts::new(decision.clone()),
        );
        let said: serde_json::Value = serde_json::from_slice(&reply.stdout).unwrap();
        let pointer = "/hookSpecificOutput/permissionDecisionReason";
        assert_eq!(
            said.pointer(pointer).and_then(|value| value.as_str()),
            Some(reason.as_str())
        );
    }
}
