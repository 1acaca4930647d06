//! The readers of settings against the real agents: each case holds a file and what the
//! agent was seen to make of it.

use std::collections::BTreeSet;

use checkrein_adapters::codex_trust::{self, HookTrust};
use checkrein_adapters::settings::{
    HookHandlerInvocation, ParsedHookSettings, SettingsFaultImpact, SettingsFaultKind,
};
use checkrein_adapters::{find_adapter, settings::HookHandler};
use serde_json::Value;

const CLAUDE_CODE: &str = include_str!("../../fixtures/settings/claude-code@2.1.330.jsonl");
const CODEX: &str = include_str!("../../fixtures/settings/codex@0.169.0.jsonl");

fn cases(text: &str) -> Vec<(String, Vec<u8>, Value)> {
    let cases: Vec<_> = text
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let name = case["case"].as_str().unwrap().to_owned();
            let bytes = case["text"].as_str().unwrap().as_bytes().to_owned();
            (name, bytes, case)
        })
        .collect();
    assert!(cases.len() > 40, "{}", cases.len());
    cases
}

fn read(agent: &str, bytes: &[u8]) -> ParsedHookSettings {
    find_adapter(agent)
        .unwrap()
        .parse_hook_settings(bytes)
        .unwrap()
}

fn command(hook: &HookHandler) -> &str {
    match &hook.call {
        HookHandlerInvocation::Command { command, .. } => command,
        HookHandlerInvocation::Other(kind) => kind,
    }
}

#[test]
fn claude_code_calls_what_we_say_it_calls() {
    for (name, bytes, case) in cases(CLAUDE_CODE) {
        let fired: BTreeSet<&str> = case["fired"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let reading = read("claude-code", &bytes);
        // What was played: a start, a prompt, two Bash calls and a stop.
        let said: BTreeSet<&str> = reading
            .active_hooks()
            .filter(|_| reading.hooks_disabled != Some(true))
            .filter(|hook| hook.matcher.as_deref() != Some("resume"))
            .map(command)
            .collect();
        assert_eq!(said, fired, "{name}: {:#?}", reading.faults);
    }
}

#[test]
fn claude_code_ignores_the_files_that_we_say_it_ignores() {
    let mut dropped = 0;
    for (name, bytes, case) in cases(CLAUDE_CODE) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        // The rule in the same file is the witness.
        if !text.contains("git log") || name == "top_bad_perm" {
            continue;
        }
        let reading = read("claude-code", &bytes);
        let heeded = case["deny_rule"] == true;
        assert_eq!(
            !reading.faults_make_agent_ignore_file(),
            heeded,
            "{name}: {:#?}",
            reading.faults
        );
        dropped += usize::from(!heeded);
    }
    assert!(dropped > 15, "{dropped}");
}

#[test]
fn whatever_is_not_called_is_a_fault_with_a_place_and_a_fix() {
    for (agent, text) in [("claude-code", CLAUDE_CODE), ("codex", CODEX)] {
        for (name, bytes, _) in cases(text) {
            let reading = read(agent, &bytes);
            for fault in &reading.faults {
                let complete = [&fault.place, &fault.what, &fault.fix]
                    .iter()
                    .all(|text| !text.is_empty());
                assert!(complete, "{name}: {fault:?}");
            }
            let silent = reading.hooks.iter().any(|hook| !hook.fires);
            assert!(!silent || !reading.faults.is_empty(), "{name}");
        }
    }
}

#[test]
fn each_mistake_has_its_own_name() {
    let fault = |agent: &str, text: &str| {
        let reading = read(agent, text.as_bytes());
        let first = reading.faults.first().cloned();
        first.map(|fault| (fault.kind, fault.effect, fault.place))
    };
    let check = |agent: &str,
                 text: &str,
                 kind: SettingsFaultKind,
                 effect: SettingsFaultImpact,
                 place: &str| {
        assert_eq!(
            fault(agent, text),
            Some((kind, effect, place.to_owned())),
            "{agent}: {text}"
        );
    };
    let stop = |inner: &str| format!(r#"{{"hooks":{{"Stop":[{inner}]}}}}"#);
    let pre = |inner: &str| format!(r#"{{"hooks":{{"PreToolUse":[{inner}]}}}}"#);
    let handler = r#"{"type":"command","command":"x"}"#;
    let group = |extra: &str| format!(r#"{{{extra}"hooks":[{handler}]}}"#);
    use SettingsFaultImpact::{Entry, File, Hooks, Nothing};
    use SettingsFaultKind::*;
    check("claude-code", "{", Malformed, File, "line 1, column 1");
    check(
        "claude-code",
        "{\n  // x\n}",
        Comment,
        File,
        "line 2, column 3",
    );
    check(
        "claude-code",
        &stop(handler),
        FlatHandler,
        Entry,
        "hooks.Stop[0]",
    );
    check(
        "claude-code",
        &pre(handler),
        FlatHandler,
        File,
        "hooks.PreToolUse[0]",
    );
    check(
        "claude-code",
        &pre(r#"{"hooks":[{"type":"command"}]}"#),
        NoCommand,
        File,
        "hooks.PreToolUse[0].hooks[0]",
    );
    check(
        "claude-code",
        &stop(r#"{"hooks":[{"type":"command","command":"x","timeout":"30"}]}"#),
        BadTimeout,
        Entry,
        "hooks.Stop[0].hooks[0].timeout",
    );
    check(
        "claude-code",
        &pre(&group(r#""matcher":"bash","#)),
        NeverMatches,
        Entry,
        "hooks.PreToolUse[0].matcher",
    );
    check(
        "claude-code",
        &pre(&group(r#""matcher":"Bash(git *)","#)),
        NeverMatches,
        Entry,
        "hooks.PreToolUse[0].matcher",
    );
    check(
        "claude-code",
        &pre(&group(r#""matcher":"(","#)),
        BadMatcher,
        Entry,
        "hooks.PreToolUse[0].matcher",
    );
    check(
        "claude-code",
        &pre(&group(r#""matcher":3,"#)),
        BadMatcher,
        File,
        "hooks.PreToolUse[0].matcher",
    );
    check(
        "claude-code",
        r#"{"hooks":{"preToolUse":[]}}"#,
        UnknownEvent,
        Entry,
        "hooks.preToolUse",
    );
    check(
        "claude-code",
        r#"{"disableAllHooks":true}"#,
        HooksOff,
        Hooks,
        "disableAllHooks",
    );
    check("codex", "", Malformed, File, "line 1, column 0");
    check("codex", "{} // x", Comment, File, "line 1, column 4");
    check(
        "codex",
        &stop(r#"{"hooks":[{"type":"http","url":"x"}]}"#),
        UnknownType,
        File,
        "line 1, column 42",
    );
    check("codex", &stop(handler), FlatHandler, Entry, "hooks.Stop[0]");
    check(
        "codex",
        &pre(&group(r#""matcher":"bash","#)),
        NeverMatches,
        Entry,
        "hooks.PreToolUse[0].matcher",
    );
    check(
        "codex",
        r#"{"hooks":{"SessionEnd":[{"hooks":[{"type":"command","command":"x","timeout":9}]}]}}"#,
        Clamped,
        Nothing,
        "hooks.SessionEnd[0].hooks[0].timeout",
    );
    check("codex", r#"{"hook":{}}"#, BadKey, File, "line 1, column 7");
}

#[test]
fn a_file_that_is_in_order_has_no_faults() {
    for agent in ["claude-code", "codex"] {
        let file = format!(
            "{}/../../examples/{agent}/{}.json",
            env!("CARGO_MANIFEST_DIR"),
            if agent == "codex" {
                "hooks"
            } else {
                "settings"
            }
        );
        let reading = read(agent, &std::fs::read(file).unwrap());
        assert_eq!(reading.faults, [], "{agent}");
        let events: BTreeSet<&str> = reading
            .active_hooks()
            .map(|hook| hook.event.as_str())
            .collect();
        let all: BTreeSet<&str> = find_adapter(agent)
            .unwrap()
            .hook_events()
            .iter()
            .copied()
            .collect();
        assert_eq!(events, all, "{agent}");
        assert!(
            reading
                .active_hooks()
                .all(|hook| hook.call.is_checkrein_hook())
        );
    }
}

#[test]
fn codex_takes_over_what_we_say_it_takes_over() {
    for (name, bytes, case) in cases(CODEX) {
        let reading = read("codex", &bytes);
        let said: BTreeSet<(String, u64, bool, Option<String>)> = reading
            .hooks
            .iter()
            .filter(|_| !reading.faults_make_agent_ignore_file())
            .map(|hook| {
                let key = codex_trust::codex_hook_trust_key("", hook).unwrap();
                (
                    key.trim_start_matches(':').to_owned(),
                    hook.timeout,
                    hook.detached,
                    codex_trust::codex_hook_trust_hash(hook),
                )
            })
            .collect();
        let seen: BTreeSet<(String, u64, bool, Option<String>)> = case["hooks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hook| {
                let command = hook["type"] == "command";
                (
                    hook["key"].as_str().unwrap().to_owned(),
                    hook["timeout"].as_u64().unwrap_or(600),
                    hook["async"] == true,
                    command.then(|| hook["hash"].as_str().unwrap().to_owned()),
                )
            })
            .collect();
        assert_eq!(said, seen, "{name}: {:#?}", reading.faults);
        let warned = !case["warnings"].as_array().unwrap().is_empty();
        assert!(
            !warned || !reading.faults.is_empty() || name == "prec" || name == "hashes",
            "{name}"
        );
    }
}

#[test]
fn codex_runs_only_what_a_person_reviewed() {
    let file = br#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"echo x"}]}]}}"#;
    let reading = read("codex", file);
    let hook = &reading.hooks[0];
    let path = "/home/dev/repo/.codex/hooks.json";
    // As Codex itself wrote it.
    let hash = "sha256:7cd3bd75d5f588f95ee4f55650a36b04e9a48c57020107701365d29e991b85c0";
    let standing = |state: &str| {
        let text = format!("model = \"m\"\n[hooks.state.\"{path}:stop:0:0\"]\n{state}\n");
        codex_trust::parse_codex_config(&text)
            .unwrap()
            .hook_trust(path, hook)
    };
    assert_eq!(standing(""), HookTrust::Untrusted);
    assert_eq!(
        standing(&format!("trusted_hash = \"{hash}\"")),
        HookTrust::Trusted
    );
    assert_eq!(
        standing("trusted_hash = \"sha256:00\""),
        HookTrust::Modified
    );
    assert_eq!(
        standing(&format!("trusted_hash = \"{hash}\"\nenabled = false")),
        HookTrust::Disabled
    );
    let nothing = codex_trust::parse_codex_config("").unwrap();
    assert_eq!(nothing.hook_trust(path, hook), HookTrust::Untrusted);
    assert!(nothing.hooks_on && !nothing.codex_trusts_repo_hooks("/home/dev/repo"));
    let some = codex_trust::parse_codex_config(
        "[features]\nhooks = false\n[projects.\"/home/dev/repo\"]\ntrust_level = \"trusted\"\n\
         [[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"y\"\n",
    )
    .unwrap();
    assert!(
        !some.hooks_on
            && some.codex_trusts_repo_hooks("/home/dev/repo")
            && !some.codex_trusts_repo_hooks("/home/dev")
    );
    assert_eq!(some.inline_hooks.hooks.len(), 1);
    assert!(codex_trust::parse_codex_config("[").is_err());
    assert!(codex_trust::parse_codex_config("[hooks]\nStop = 3").is_err());
}
