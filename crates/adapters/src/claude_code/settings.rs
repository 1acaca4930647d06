//! Reads `settings.json` as Claude Code does, as lax and as strict as version 2.1.330 was seen to
//! be (`fixtures/settings/claude-code@2.1.330.jsonl` holds each case with what really fired). A
//! mistake under PreToolUse or PermissionRequest costs the whole file.

use serde_json::{Map, Value};

use super::ClaudeCodeAdapter;
use crate::Adapter as _;
use crate::agent_event::AgentEventKind;
use crate::lenient_json;
use crate::settings::{
    HookHandler, HookHandlerInvocation, HookSettingsCollector, ParsedHookSettings,
    SettingsFaultImpact, SettingsFaultKind, exact_matcher_names, json_kind,
};

/// Every event of 2.1.330.
const EVENTS: &[&str] = &[
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "InstructionsLoaded",
    "MessageDisplay",
    "Notification",
    "PermissionDenied",
    "PermissionRequest",
    "PostCompact",
    "PostModelSwitch",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreCompact",
    "PreModelSwitch",
    "PreToolUse",
    "SessionEnd",
    "SessionStart",
    "Setup",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskCompleted",
    "TaskCreated",
    "TeammateIdle",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "WorktreeCreate",
    "WorktreeRemove",
];

/// Tools that matchers are compared with. Tools of MCP servers are named `mcp__...` and are not
/// listed.
pub(super) const TOOLS: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "BashOutput",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterPlanMode",
    "EnterWorktree",
    "ExitPlanMode",
    "ExitWorktree",
    "Glob",
    "Grep",
    "KillShell",
    "LSP",
    "ListAgents",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "NotebookRead",
    "PowerShell",
    "Read",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

const SOURCES: &[&str] = &["clear", "compact", "fork", "resume", "startup"];

/// Handler types, each with the fields that a handler of it needs in order to run.
const HANDLER_TYPES: &[(&str, &[&str])] = &[
    ("agent", &["prompt"]),
    ("command", &["command"]),
    ("http", &["url"]),
    ("mcp_tool", &["server", "tool"]),
    ("prompt", &["prompt"]),
];

/// Reads a settings file. An empty one sets nothing.
pub(super) fn parse_claude_settings(bytes: &[u8]) -> ParsedHookSettings {
    let mut found = HookSettingsCollector::default();
    // An empty file is no mistake to Claude Code, although it is no JSON.
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return found.settings;
    }
    match lenient_json::parse_json_with_lone_surrogates(bytes) {
        Ok(Value::Object(top)) => {
            check_settings_beside_hooks(&top, &mut found);
            collect_claude_hooks(&top, &mut found);
        }
        Ok(other) => found.push_settings_fault(
            SettingsFaultKind::WrongShape,
            SettingsFaultImpact::File,
            "line 1, column 1",
            format!("{}, where settings are one object", json_kind(&other)),
            "begin the file with {",
        ),
        Err(error) => found.add_invalid_json_fault(bytes, &error),
    }
    found.settings
}

/// Settings beside the hooks that take the hooks with them when they are wrong.
fn check_settings_beside_hooks(top: &Map<String, Value>, found: &mut HookSettingsCollector) {
    let wrong = |place: String, value: &Value, wanted: &str, found: &mut HookSettingsCollector| {
        found.push_settings_fault(
            SettingsFaultKind::WrongShape,
            SettingsFaultImpact::File,
            place,
            format!("{}, where {wanted} belongs", json_kind(value)),
            format!("make it {wanted}"),
        );
    };
    // The `model` key has nothing to do with hooks, but the wrong type there invalidates the whole
    // file and so silences its hooks.
    if let Some(model) = top.get("model").filter(|model| !model.is_string()) {
        wrong("model".to_owned(), model, "a text", found);
    }
    match top.get("disableAllHooks") {
        None => {}
        Some(Value::Bool(off)) => {
            // `false` is recorded too: in a file of higher precedence it switches the hooks on
            // again.
            found.settings.hooks_disabled = Some(*off);
            if *off {
                found.push_settings_fault(
                    SettingsFaultKind::HooksOff,
                    SettingsFaultImpact::Hooks,
                    "disableAllHooks",
                    "all hooks are switched off, those of other files as well",
                    "take the line out",
                );
            }
        }
        Some(other) => wrong("disableAllHooks".to_owned(), other, "true or false", found),
    }
    validate_permission_rule_lists(top, found);
}

fn validate_permission_rule_lists(top: &Map<String, Value>, found: &mut HookSettingsCollector) {
    let Some(Value::Object(permissions)) = top.get("permissions") else {
        return;
    };
    // Only the types are checked. What a rule says is read by `permissions`.
    for name in ["allow", "ask", "deny"] {
        let Some(rules) = permissions.get(name) else {
            continue;
        };
        if !is_json_string_list(rules) {
            found.push_settings_fault(
                SettingsFaultKind::WrongShape,
                SettingsFaultImpact::File,
                format!("permissions.{name}"),
                format!("{}, where a list of texts belongs", json_kind(rules)),
                "make it a list of rules",
            );
        }
    }
}

fn is_json_string_list(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_string))
}

fn collect_claude_hooks(top: &Map<String, Value>, found: &mut HookSettingsCollector) {
    let events = match top.get("hooks") {
        None => return,
        Some(Value::Object(events)) => events,
        Some(other) => {
            return found.push_settings_fault(
                SettingsFaultKind::WrongShape,
                SettingsFaultImpact::Hooks,
                "hooks",
                format!("{}, where an object belongs", json_kind(other)),
                "write it as { EVENT: [ { \"hooks\": [ ... ] } ] }",
            );
        }
    };
    for (event, groups) in events {
        // An unknown event costs only its own entry, so reading goes on with the next one.
        if !EVENTS.contains(&event.as_str()) {
            // The most likely mistake is the case of letters, as in `stop` for `Stop`.
            let near = EVENTS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(event));
            found.push_settings_fault(
                SettingsFaultKind::UnknownEvent,
                SettingsFaultImpact::Entry,
                format!("hooks.{event}"),
                "no event has this name",
                near.map_or_else(
                    || "take it out, or see the agent's list of events".to_owned(),
                    |near| format!("write it as {near}"),
                ),
            );
            continue;
        }
        let mut event = EventHookListReader {
            name: event,
            collector: &mut *found,
        };
        event.read_matcher_groups(groups);
    }
}

/// One event's list.
struct EventHookListReader<'a> {
    name: &'a str,
    collector: &'a mut HookSettingsCollector,
}

impl EventHookListReader<'_> {
    /// Returns how much is lost by a malformed entry of this event.
    fn malformed_hook_entry_impact(&self) -> SettingsFaultImpact {
        match self.name {
            "PreToolUse" | "PermissionRequest" => SettingsFaultImpact::File,
            _ => SettingsFaultImpact::Entry,
        }
    }

    fn push_hook_settings_fault(
        &mut self,
        kind: SettingsFaultKind,
        place: String,
        what: String,
        mend: &str,
    ) {
        let loss = self.malformed_hook_entry_impact();
        self.collector
            .push_settings_fault(kind, loss, place, what, mend);
    }

    fn read_matcher_groups(&mut self, groups: &Value) {
        let Value::Array(groups) = groups else {
            let place = format!("hooks.{}", self.name);
            let what = format!("{}, where a list of groups belongs", json_kind(groups));
            return self.push_hook_settings_fault(
                SettingsFaultKind::WrongShape,
                place,
                what,
                "put [ ] around the group",
            );
        };
        for (at, group) in groups.iter().enumerate() {
            self.read_matcher_group(at, group);
        }
    }

    fn read_matcher_group(&mut self, at: usize, group: &Value) {
        let place = format!("hooks.{}[{at}]", self.name);
        let Some(Value::Array(handlers)) = group.get("hooks") else {
            // A handler that stands directly in the event's list is the usual mistake. It gets a
            // message of its own, since "no list named hooks" would not say what to move.
            let flat = group.get("command").is_some() || group.get("type").is_some();
            return if flat {
                let what = "a handler without the group around it".to_owned();
                let mend = "write { \"hooks\": [ { \"type\": \"command\", ... } ] }";
                self.push_hook_settings_fault(SettingsFaultKind::FlatHandler, place, what, mend)
            } else {
                let what = "a group without a list named hooks".to_owned();
                let mend = "write { \"hooks\": [ ... ] }";
                self.push_hook_settings_fault(SettingsFaultKind::WrongShape, place, what, mend)
            };
        };
        let matcher = match group.get("matcher") {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(other) => {
                let what = format!("{}, where a text belongs", json_kind(other));
                let mend = "put it in quotes, or take it out for all tools";
                return self.push_hook_settings_fault(
                    SettingsFaultKind::BadMatcher,
                    format!("{place}.matcher"),
                    what,
                    mend,
                );
            }
        };
        // A matcher that never matches does not drop the handlers: they are still listed, as not
        // firing, since `init` looks through all of them.
        let fires = self.check_hook_matcher_can_match(&place, matcher);
        for (handler, value) in handlers.iter().enumerate() {
            if let Some(mut hook) = self.read_handler(format!("{place}.hooks[{handler}]"), value) {
                hook.group = at;
                hook.handler = handler;
                hook.matcher = matcher.map(str::to_owned);
                hook.fires &= fires;
                self.collector.settings.hooks.push(hook);
            }
        }
    }

    fn read_handler(&mut self, place: String, value: &Value) -> Option<HookHandler> {
        let Value::Object(fields) = value else {
            let what = format!("{}, where a handler belongs", json_kind(value));
            self.push_hook_settings_fault(
                SettingsFaultKind::WrongShape,
                place,
                what,
                "take it out",
            );
            return None;
        };
        // The checks run in this order so that each handler has one fault, the first that Claude
        // Code would stumble over.
        let named = fields.get("type").and_then(Value::as_str);
        let Some((kind, needs)) = HANDLER_TYPES
            .iter()
            .find(|(known, _)| named == Some(*known))
            .copied()
        else {
            let what = match fields.get("type") {
                None => "a handler without a type".to_owned(),
                Some(other) => format!("no type of handler is named {other}"),
            };
            let mend = "write \"type\": \"command\"";
            self.push_hook_settings_fault(
                SettingsFaultKind::UnknownType,
                format!("{place}.type"),
                what,
                mend,
            );
            return None;
        };
        if let Some(missing) = needs
            .iter()
            .find(|name| !fields.get(**name).is_some_and(Value::is_string))
        {
            let what = format!("a {kind} handler without a text named {missing}");
            self.push_hook_settings_fault(
                SettingsFaultKind::NoCommand,
                place,
                what,
                "say what to call",
            );
            return None;
        }
        self.check_optional_handler_fields(&place, fields)?;
        let timeout = self.read_hook_timeout(&place, fields.get("timeout"))?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
        let command = text("command").unwrap_or_default();
        let empty = kind == "command" && command.trim().is_empty();
        if empty {
            self.collector.push_settings_fault(
                SettingsFaultKind::NoCommand,
                SettingsFaultImpact::Entry,
                format!("{place}.command"),
                "an empty command",
                "say what to call",
            );
        }
        // The list is known to hold only texts here, so nothing is dropped by the filter.
        let args = fields.get("args").and_then(Value::as_array).map(|list| {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        });
        // Claude Code ignores `onFailure` where nothing waits for an answer, and at these events.
        let can_block = !matches!(
            self.name,
            "Stop" | "SubagentStop" | "TaskCompleted" | "TeammateIdle"
        );
        Some(HookHandler {
            event: self.name.to_owned(),
            group: 0,
            handler: 0,
            matcher: None,
            call: if kind == "command" {
                HookHandlerInvocation::Command { command, args }
            } else {
                HookHandlerInvocation::Other(kind.to_owned())
            },
            timeout,
            blocks_on_failure: can_block
                && !flag("async")
                && text("onFailure").as_deref() == Some("block"),
            detached: flag("async") || flag("asyncRewake"),
            status: text("statusMessage"),
            context_limit: None,
            fires: !empty,
        })
    }

    /// `None` if an optional field has a type that makes the handler invalid.
    fn check_optional_handler_fields(
        &mut self,
        place: &str,
        fields: &Map<String, Value>,
    ) -> Option<()> {
        type FieldTypeCheck = fn(&Value) -> bool;
        let failing: FieldTypeCheck = |value| matches!(value.as_str(), Some("block" | "continue"));
        let known: [(&str, FieldTypeCheck, &str); 7] = [
            ("args", is_json_string_list, "a list of texts"),
            ("statusMessage", Value::is_string, "a text"),
            ("if", Value::is_string, "a text"),
            ("onFailure", failing, "\"block\" or \"continue\""),
            ("async", Value::is_boolean, "true or false"),
            ("asyncRewake", Value::is_boolean, "true or false"),
            ("once", Value::is_boolean, "true or false"),
        ];
        for (name, fits, wanted) in known {
            if let Some(value) = fields.get(name).filter(|value| !fits(value)) {
                let what = format!("{value}, where {wanted} belongs");
                let mend = format!("make it {wanted}");
                self.push_hook_settings_fault(
                    SettingsFaultKind::WrongShape,
                    format!("{place}.{name}"),
                    what,
                    &mend,
                );
                return None;
            }
        }
        Some(())
    }

    /// Returns the seconds that Claude Code waits, the default included.
    fn read_hook_timeout(&mut self, place: &str, value: Option<&Value>) -> Option<u64> {
        let Some(value) = value else {
            // The default differs by event, so that `doctor` can compare a written deadline with
            // the real one.
            let deadlines = ClaudeCodeAdapter.agent_capabilities().deadlines;
            return Some(u64::from(deadlines.default_hook_deadline_for_event(
                super::event_kind_from_hook_name(self.name),
            )));
        };
        // The number is examined as text: `0.5` is above 0 and has no integer form, and an `f64`
        // would lose digits of a large one.
        let written = value.to_string();
        let whole = written.split(['.', 'e', 'E']).next().unwrap_or_default();
        let above_zero = value.is_number()
            && !written.starts_with('-')
            && written.chars().any(|c| matches!(c, '1'..='9'));
        if !above_zero {
            let what = format!("{value}, where a number of seconds above 0 belongs");
            let mend = "write it as a number, without quotes";
            self.push_hook_settings_fault(
                SettingsFaultKind::BadTimeout,
                format!("{place}.timeout"),
                what,
                mend,
            );
            return None;
        }
        Some(
            value
                // Fractions are rounded down, so that a deadline derived from it never lies after
                // the real one.
                .as_u64()
                .or_else(|| whole.parse().ok())
                .unwrap_or(u64::MAX),
        )
    }

    /// Returns whether the matcher can ever match, and reports one that cannot.
    fn check_hook_matcher_can_match(&mut self, place: &str, matcher: Option<&str>) -> bool {
        // For events whose subjects cannot be listed, no matcher can be called wrong.
        let Some(subjects) = matchable_values_of_hook_event(self.name) else {
            return true;
        };
        let Some(matcher) = matcher.filter(|matcher| !matches!(*matcher, "" | "*")) else {
            return true;
        };
        let place = format!("{place}.matcher");
        let (matches, why): (bool, String) = match exact_matcher_names(matcher, true) {
            Some(names) => {
                // Tools of MCP servers are named by whoever runs the server, so any such name may
                // match.
                let known = |name: &&str| subjects.contains(name) || is_mcp_tool(self.name, name);
                let near = subjects
                    .iter()
                    .find(|subject| names.iter().any(|name| name.eq_ignore_ascii_case(subject)));
                let why = near.map_or_else(
                    || "it names nothing that this event is ever about".to_owned(),
                    |near| format!("letters' case counts: it would have to be {near}"),
                );
                (names.iter().any(known), why)
            }
            // A matcher with other characters is a JavaScript regular expression without anchors.
            // `regress` has that syntax; the `regex` crate lacks lookaround and back-references.
            None => match regress::Regex::new(matcher) {
                Ok(pattern) => {
                    let known = subjects.iter().any(|name| pattern.find(name).is_some());
                    // A pattern that may be meant for an MCP tool is given the benefit of the
                    // doubt.
                    let foreign = is_tool_event(self.name)
                        && (matcher.contains("mcp") || pattern.find("mcp__a__b").is_some());
                    let why = if matcher.contains('(') {
                        "as a pattern it matches no tool: rules like Bash(git *) belong in `if`"
                    } else {
                        "as a pattern it matches nothing that this event is about"
                    };
                    (known || foreign, why.to_owned())
                }
                Err(error) => {
                    self.collector.push_settings_fault(
                        SettingsFaultKind::BadMatcher,
                        SettingsFaultImpact::Entry,
                        place,
                        format!("not a pattern: {error}; its hooks never fire"),
                        "mend the pattern, or take it out for all tools",
                    );
                    return false;
                }
            },
        };
        if !matches {
            self.collector.push_settings_fault(
                SettingsFaultKind::NeverMatches,
                SettingsFaultImpact::Entry,
                place,
                why,
                "mend it, or take it out for all",
            );
        }
        matches
    }
}

fn is_tool_event(event: &str) -> bool {
    matches!(
        super::event_kind_from_hook_name(event),
        AgentEventKind::ToolRequest | AgentEventKind::ToolResult
    ) || matches!(event, "PermissionRequest" | "PermissionDenied")
}

/// Names of tools that come from elsewhere.
fn is_mcp_tool(event: &str, name: &str) -> bool {
    is_tool_event(event) && name.starts_with("mcp__")
}

/// Returns what an event's matcher is compared with; `None` if the event takes none, or nobody can
/// list it.
fn matchable_values_of_hook_event(event: &str) -> Option<&'static [&'static str]> {
    match event {
        "SessionStart" => Some(SOURCES),
        "PreCompact" | "PostCompact" => Some(&["auto", "manual"]),
        event if is_tool_event(event) => Some(TOOLS),
        _ => None,
    }
}
