//! Reads `hooks.json` and `[hooks]` of `config.toml` as Codex does, as version 0.169.0 was seen to
//! read them (`fixtures/settings/codex@0.169.0.jsonl`). The types are as strict as its own, so the
//! same mistakes cost the same: mostly the whole file.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::settings::{
    HookHandler, HookHandlerInvocation, HookSettingsCollector, ParsedHookSettings,
    SettingsFaultImpact, SettingsFaultKind, exact_matcher_names,
};

/// Seconds that Codex waits for a handler without a `timeout`.
const DEFAULT_TIMEOUT: u64 = 600;
/// Most seconds that Codex waits for a handler of SessionEnd.
const MAX_SESSION_END: u64 = 3;

/// Tools under the names that matchers are compared with.
const TOOLS: &[&str] = &["Bash", "Edit", "Write", "apply_patch"];
const SOURCES: &[&str] = &["clear", "compact", "fork", "resume", "startup"];

/// `hooks.json`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodexHooksJson {
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default)]
    hooks: CodexHookGroupsByEvent,
}

macro_rules! events {
    ($($field:ident $name:literal $key:literal),* $(,)?) => {
        /// Each event's groups. Other keys are passed over, whatever they hold.
        #[derive(Debug, Default, Deserialize)]
        pub(super) struct CodexHookGroupsByEvent {
            $(#[serde(default, rename = $name)] $field: Vec<CodexHookMatcherGroup>,)*
        }

        impl CodexHookGroupsByEvent {
            fn into_hook_groups_by_event(self) -> Vec<(&'static str, Vec<CodexHookMatcherGroup>)> {
                vec![$(($name, self.$field),)*]
            }
        }

        /// The event's name in keys of trust.
        pub(super) fn trust_key_name_of_codex_event(event: &str) -> Option<&'static str> {
            match event {
                $($name => Some($key),)*
                _ => None,
            }
        }
    };
}

events! {
    pre_model_request "PreModelRequest" "pre_model_request",
    post_model_request "PostModelRequest" "post_model_request",
    pre_tool_use "PreToolUse" "pre_tool_use",
    permission_request "PermissionRequest" "permission_request",
    post_tool_use "PostToolUse" "post_tool_use",
    pre_compact "PreCompact" "pre_compact",
    post_compact "PostCompact" "post_compact",
    session_start "SessionStart" "session_start",
    session_end "SessionEnd" "session_end",
    user_prompt_submit "UserPromptSubmit" "user_prompt_submit",
    subagent_start "SubagentStart" "subagent_start",
    subagent_stop "SubagentStop" "subagent_stop",
    stop "Stop" "stop",
    interrupt "Interrupt" "interrupt",
}

#[derive(Debug, Deserialize)]
struct CodexHookMatcherGroup {
    #[serde(default)]
    matcher: Option<String>,
    #[serde(default)]
    hooks: Vec<RawCodexHookHandler>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawCodexHookHandler {
    Command {
        command: String,
        #[serde(default)]
        timeout: Option<u64>,
        #[serde(default, rename = "async")]
        detached: bool,
        #[serde(default, rename = "statusMessage")]
        status: Option<String>,
        #[serde(default, rename = "additionalContextLimit")]
        context_limit: Option<u64>,
    },
    McpTool {
        #[serde(rename = "server")]
        _server: IgnoredAny,
        #[serde(rename = "tool")]
        _tool: IgnoredAny,
        #[serde(default)]
        timeout: Option<u64>,
    },
    Prompt {},
    Agent {},
}

/// Reads a `hooks.json`. A missing file is fine, an empty one is a mistake.
pub(super) fn parse_hooks_file(bytes: &[u8]) -> ParsedHookSettings {
    let mut found = HookSettingsCollector::default();
    match serde_json::from_slice::<CodexHooksJson>(bytes) {
        Ok(file) => {
            // The types drop unknown events silently, as Codex does. The second reading finds what
            // was dropped.
            if let Ok(whole) = serde_json::from_slice::<Value>(bytes) {
                push_faults_of_skipped_hooks(whole.get("hooks"), &mut found);
            }
            collect_codex_hook_handlers(file.hooks, &mut found);
        }
        // `is_data` is a value of the wrong type in valid JSON; the later arms are about no JSON at
        // all.
        Err(error) if error.is_data() => add_settings_type_fault(&error, &mut found),
        Err(_) if bytes.starts_with(b"\xef\xbb\xbf") => found.push_settings_fault(
            SettingsFaultKind::Malformed,
            SettingsFaultImpact::File,
            "line 1, column 1",
            "a byte order mark, which this agent does not read",
            "save the file as UTF-8 without it",
        ),
        Err(error) => found.add_invalid_json_fault(bytes, &error),
    }
    found.settings
}

/// Reads the handlers of `[hooks]` in a `config.toml`.
pub(super) fn read_codex_hook_handlers(
    events: CodexHookGroupsByEvent,
    whole: &Value,
) -> ParsedHookSettings {
    let mut found = HookSettingsCollector::default();
    push_faults_of_skipped_hooks(Some(whole), &mut found);
    collect_codex_hook_handlers(events, &mut found);
    found.settings
}

/// Reports a value that the types of Codex refuse.
fn add_settings_type_fault(error: &serde_json::Error, found: &mut HookSettingsCollector) {
    let said = error.to_string();
    // The place is a field of its own, so it is cut from serde's message.
    let said = said.split(" at line ").next().unwrap_or_default();
    // serde has no structured errors, so the kind is taken from the message's words.
    let (kind, mend) = if said.starts_with("unknown variant") {
        (
            SettingsFaultKind::UnknownType,
            "this agent runs command handlers; take the other one out",
        )
    } else if said.contains("`command`") || said.contains("`type`") {
        (
            SettingsFaultKind::NoCommand,
            "write { \"type\": \"command\", \"command\": ... }",
        )
    } else if said.starts_with("unknown field") || said.starts_with("duplicate field") {
        (
            SettingsFaultKind::BadKey,
            "take that key out; only description and hooks stand at the top, and each once",
        )
    } else if said.contains("expected u64") {
        (
            SettingsFaultKind::BadTimeout,
            "write whole seconds as a number, without quotes",
        )
    } else {
        (SettingsFaultKind::WrongShape, "mend the value there")
    };
    let place = format!("line {}, column {}", error.line(), error.column());
    found.push_settings_fault(kind, SettingsFaultImpact::File, place, said, mend);
}

/// Reports entries that Codex skips without a message.
fn push_faults_of_skipped_hooks(events: Option<&Value>, found: &mut HookSettingsCollector) {
    let Some(Value::Object(events)) = events else {
        return;
    };
    for (event, groups) in events {
        if trust_key_name_of_codex_event(event).is_none() {
            // `state` is no event: Codex keeps the reviewed digests there.
            if event != "state" {
                found.push_settings_fault(
                    SettingsFaultKind::UnknownEvent,
                    SettingsFaultImpact::Entry,
                    format!("hooks.{event}"),
                    "no event has this name",
                    "take it out, or see the agent's list of events",
                );
            }
            continue;
        }
        for (at, group) in groups.as_array().into_iter().flatten().enumerate() {
            if group.get("hooks").is_none() {
                found.push_settings_fault(
                    SettingsFaultKind::FlatHandler,
                    SettingsFaultImpact::Entry,
                    format!("hooks.{event}[{at}]"),
                    "no list named hooks: nothing in here is called",
                    "write { \"hooks\": [ { \"type\": \"command\", ... } ] }",
                );
            }
        }
    }
}

fn collect_codex_hook_handlers(events: CodexHookGroupsByEvent, found: &mut HookSettingsCollector) {
    for (event, groups) in events.into_hook_groups_by_event() {
        for (at, group) in groups.into_iter().enumerate() {
            let place = format!("hooks.{event}[{at}]");
            // A matcher that is no pattern drops its group in Codex; one that matches nothing only
            // keeps it silent.
            let Some(matches) =
                check_matcher_can_match(event, group.matcher.as_deref(), &place, found)
            else {
                continue;
            };
            for (position, handler) in group.hooks.into_iter().enumerate() {
                let place = format!("{place}.hooks[{position}]");
                if let Some(mut hook) = read_codex_hook_handler(event, handler, &place, found) {
                    hook.group = at;
                    hook.handler = position;
                    hook.matcher = group.matcher.clone();
                    hook.fires &= matches;
                    found.settings.hooks.push(hook);
                }
            }
        }
    }
}

fn read_codex_hook_handler(
    event: &'static str,
    handler: RawCodexHookHandler,
    place: &str,
    found: &mut HookSettingsCollector,
) -> Option<HookHandler> {
    let (call, timeout, detached, status, limit) = match handler {
        RawCodexHookHandler::Command {
            command,
            timeout,
            detached,
            status,
            context_limit,
        } => {
            if command.trim().is_empty() {
                found.push_settings_fault(
                    SettingsFaultKind::NoCommand,
                    SettingsFaultImpact::Entry,
                    format!("{place}.command"),
                    "an empty command",
                    "say what to call",
                );
                return None;
            }
            // Codex knows no `args`: a command is always a line for the shell.
            let args = None;
            let call = HookHandlerInvocation::Command { command, args };
            // Where the event adds no context, a limit on it is ignored.
            let limit = context_limit.filter(|_| codex_event_accepts_context(event));
            (call, timeout, detached, status, limit)
        }
        RawCodexHookHandler::McpTool { timeout, .. } => {
            let call = HookHandlerInvocation::Other("mcp_tool".to_owned());
            (call, timeout, false, None, None)
        }
        RawCodexHookHandler::Prompt {} | RawCodexHookHandler::Agent {} => {
            found.push_settings_fault(
                SettingsFaultKind::Unsupported,
                SettingsFaultImpact::Entry,
                place,
                "prompt and agent handlers are not run",
                "use a command handler",
            );
            return None;
        }
    };
    let waits = effective_codex_hook_timeout(event, timeout);
    // Only a shortened timeout is a fault. One of 0 is raised to 1, which costs nobody an answer.
    if timeout.is_some_and(|asked| asked > waits) {
        found.push_settings_fault(
            SettingsFaultKind::Clamped,
            SettingsFaultImpact::Nothing,
            format!("{place}.timeout"),
            format!("at {event} this agent waits {waits} s at most"),
            format!("write {waits}"),
        );
    }
    Some(HookHandler {
        event: event.to_owned(),
        group: 0,
        handler: 0,
        matcher: None,
        call,
        timeout: waits,
        blocks_on_failure: false,
        detached,
        status,
        context_limit: limit,
        fires: true,
    })
}

fn effective_codex_hook_timeout(event: &str, asked: Option<u64>) -> u64 {
    match event {
        "SessionEnd" => asked.unwrap_or(1).clamp(1, MAX_SESSION_END),
        "Interrupt" => asked.unwrap_or(1).max(1),
        _ => asked.unwrap_or(DEFAULT_TIMEOUT).max(1),
    }
}

fn codex_event_accepts_context(event: &str) -> bool {
    matches!(
        event,
        "PreToolUse" | "PostToolUse" | "SessionStart" | "UserPromptSubmit" | "SubagentStart"
    )
}

/// Returns whether an event's matcher counts at all. Where it does not, it is not part of the
/// trusted identity either.
pub(super) fn codex_event_uses_matcher(event: &str) -> bool {
    !matches!(
        event,
        "Stop" | "UserPromptSubmit" | "SessionEnd" | "Interrupt"
    )
}

/// Returns whether the matcher can match; `None` if it is no pattern, which drops the group.
fn check_matcher_can_match(
    event: &str,
    matcher: Option<&str>,
    place: &str,
    found: &mut HookSettingsCollector,
) -> Option<bool> {
    let Some(matcher) =
        matcher.filter(|matcher| codex_event_uses_matcher(event) && !matches!(*matcher, "" | "*"))
    else {
        return Some(true);
    };
    let place = format!("{place}.matcher");
    // Exact names come first: a plain word is also a valid regular expression, which would match
    // parts of names.
    let names = exact_matcher_names(matcher, false);
    let pattern = match (&names, regex::Regex::new(matcher)) {
        (Some(_), _) => None,
        (None, Ok(pattern)) => Some(pattern),
        (None, Err(error)) => {
            let said = error.to_string();
            // The regex parser draws the pattern over several lines; the last one says what is
            // wrong.
            let said = said.lines().last().unwrap_or_default().to_owned();
            found.push_settings_fault(
                SettingsFaultKind::BadMatcher,
                SettingsFaultImpact::Entry,
                place,
                format!("not a pattern ({said}); its hooks are dropped"),
                "mend the pattern, or take it out for all tools",
            );
            return None;
        }
    };
    let subjects = match event {
        "PreToolUse" | "PostToolUse" | "PermissionRequest" => TOOLS,
        "SessionStart" => SOURCES,
        _ => return Some(true),
    };
    // Tools of MCP servers are named by whoever runs them.
    let tools = event != "SessionStart";
    let matches = match (&names, &pattern) {
        (Some(names), _) => names
            .iter()
            .any(|name| subjects.contains(name) || tools && name.starts_with("mcp__")),
        (None, Some(pattern)) => {
            subjects.iter().any(|subject| pattern.is_match(subject))
                || tools && (matcher.contains("mcp") || pattern.is_match("mcp__a__b"))
        }
        (None, None) => true,
    };
    if !matches {
        let near = subjects
            .iter()
            .find(|subject| subject.eq_ignore_ascii_case(matcher));
        found.push_settings_fault(
            SettingsFaultKind::NeverMatches,
            SettingsFaultImpact::Entry,
            place,
            near.map_or_else(
                || "it matches nothing that this event is ever about".to_owned(),
                |near| format!("letters' case counts: it would have to be {near}"),
            ),
            "mend it, or take it out for all",
        );
    }
    Some(matches)
}
