//! Claude Code's reading of `settings.json`: as lax and as strict as version 2.1.330 was seen
//! to be (`fixtures/settings/claude-code@2.1.330.jsonl` holds each case with what really
//! fired). A mistake under PreToolUse or PermissionRequest costs the whole file.

use serde_json::{Map, Value};

use super::ClaudeCode;
use crate::Adapter as _;
use crate::knock::EventKind;
use crate::lenient;
use crate::settings::{Call, Effect, FaultKind, Gathered, Hook, Reading, alternatives, kind_of};

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

/// Tools that matchers are compared with; those of MCP servers are `mcp__...`.
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

/// Fields of a handler that it does not run without, by type.
const TYPES: &[(&str, &[&str])] = &[
    ("agent", &["prompt"]),
    ("command", &["command"]),
    ("http", &["url"]),
    ("mcp_tool", &["server", "tool"]),
    ("prompt", &["prompt"]),
];

/// Reads a settings file. An empty one sets nothing.
pub(super) fn read(bytes: &[u8]) -> Reading {
    let mut found = Gathered::default();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return found.reading;
    }
    match lenient::parse(bytes) {
        Ok(Value::Object(top)) => {
            general(&top, &mut found);
            hooks(&top, &mut found);
        }
        Ok(other) => found.fault(
            FaultKind::WrongShape,
            Effect::File,
            "line 1, column 1",
            format!("{}, where settings are one object", kind_of(&other)),
            "begin the file with {",
        ),
        Err(error) => found.malformed(bytes, &error),
    }
    found.reading
}

/// Settings beside the hooks that take the hooks with them when they are wrong.
fn general(top: &Map<String, Value>, found: &mut Gathered) {
    let wrong = |place: String, value: &Value, wanted: &str, found: &mut Gathered| {
        found.fault(
            FaultKind::WrongShape,
            Effect::File,
            place,
            format!("{}, where {wanted} belongs", kind_of(value)),
            format!("make it {wanted}"),
        );
    };
    if let Some(model) = top.get("model").filter(|model| !model.is_string()) {
        wrong("model".to_owned(), model, "a text", found);
    }
    match top.get("disableAllHooks") {
        None => {}
        Some(Value::Bool(off)) => {
            found.reading.all_off = Some(*off);
            if *off {
                found.fault(
                    FaultKind::HooksOff,
                    Effect::Hooks,
                    "disableAllHooks",
                    "all hooks are switched off, those of other files as well",
                    "take the line out",
                );
            }
        }
        Some(other) => wrong("disableAllHooks".to_owned(), other, "true or false", found),
    }
    permissions(top, found);
}

fn permissions(top: &Map<String, Value>, found: &mut Gathered) {
    let Some(Value::Object(permissions)) = top.get("permissions") else {
        return;
    };
    for name in ["allow", "ask", "deny"] {
        let Some(rules) = permissions.get(name) else {
            continue;
        };
        if !is_list_of_texts(rules) {
            found.fault(
                FaultKind::WrongShape,
                Effect::File,
                format!("permissions.{name}"),
                format!("{}, where a list of texts belongs", kind_of(rules)),
                "make it a list of rules",
            );
        }
    }
}

fn is_list_of_texts(value: &Value) -> bool {
    value
        .as_array()
        .is_some_and(|list| list.iter().all(Value::is_string))
}

fn hooks(top: &Map<String, Value>, found: &mut Gathered) {
    let events = match top.get("hooks") {
        None => return,
        Some(Value::Object(events)) => events,
        Some(other) => {
            return found.fault(
                FaultKind::WrongShape,
                Effect::Hooks,
                "hooks",
                format!("{}, where an object belongs", kind_of(other)),
                "write it as { EVENT: [ { \"hooks\": [ ... ] } ] }",
            );
        }
    };
    for (event, groups) in events {
        if !EVENTS.contains(&event.as_str()) {
            let near = EVENTS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(event));
            found.fault(
                FaultKind::UnknownEvent,
                Effect::Entry,
                format!("hooks.{event}"),
                "no event has this name",
                near.map_or_else(
                    || "take it out, or see the agent's list of events".to_owned(),
                    |near| format!("write it as {near}"),
                ),
            );
            continue;
        }
        let mut event = Event {
            name: event,
            found: &mut *found,
        };
        event.groups(groups);
    }
}

/// One event's list.
struct Event<'a> {
    name: &'a str,
    found: &'a mut Gathered,
}

impl Event<'_> {
    /// What a malformed entry takes with it.
    fn loss(&self) -> Effect {
        match self.name {
            "PreToolUse" | "PermissionRequest" => Effect::File,
            _ => Effect::Entry,
        }
    }

    fn wrong(&mut self, kind: FaultKind, place: String, what: String, mend: &str) {
        let loss = self.loss();
        self.found.fault(kind, loss, place, what, mend);
    }

    fn groups(&mut self, groups: &Value) {
        let Value::Array(groups) = groups else {
            let place = format!("hooks.{}", self.name);
            let what = format!("{}, where a list of groups belongs", kind_of(groups));
            return self.wrong(
                FaultKind::WrongShape,
                place,
                what,
                "put [ ] around the group",
            );
        };
        for (at, group) in groups.iter().enumerate() {
            self.group(at, group);
        }
    }

    fn group(&mut self, at: usize, group: &Value) {
        let place = format!("hooks.{}[{at}]", self.name);
        let Some(Value::Array(handlers)) = group.get("hooks") else {
            let flat = group.get("command").is_some() || group.get("type").is_some();
            return if flat {
                let what = "a handler without the group around it".to_owned();
                let mend = "write { \"hooks\": [ { \"type\": \"command\", ... } ] }";
                self.wrong(FaultKind::FlatHandler, place, what, mend)
            } else {
                let what = "a group without a list named hooks".to_owned();
                let mend = "write { \"hooks\": [ ... ] }";
                self.wrong(FaultKind::WrongShape, place, what, mend)
            };
        };
        let matcher = match group.get("matcher") {
            None => None,
            Some(Value::String(text)) => Some(text.as_str()),
            Some(other) => {
                let what = format!("{}, where a text belongs", kind_of(other));
                let mend = "put it in quotes, or take it out for all tools";
                return self.wrong(
                    FaultKind::BadMatcher,
                    format!("{place}.matcher"),
                    what,
                    mend,
                );
            }
        };
        let fires = self.matcher(&place, matcher);
        for (handler, value) in handlers.iter().enumerate() {
            if let Some(mut hook) = self.handler(format!("{place}.hooks[{handler}]"), value) {
                hook.group = at;
                hook.handler = handler;
                hook.matcher = matcher.map(str::to_owned);
                hook.fires &= fires;
                self.found.reading.hooks.push(hook);
            }
        }
    }

    fn handler(&mut self, place: String, value: &Value) -> Option<Hook> {
        let Value::Object(fields) = value else {
            let what = format!("{}, where a handler belongs", kind_of(value));
            self.wrong(FaultKind::WrongShape, place, what, "take it out");
            return None;
        };
        let named = fields.get("type").and_then(Value::as_str);
        let Some((kind, needs)) = TYPES
            .iter()
            .find(|(known, _)| named == Some(*known))
            .copied()
        else {
            let what = match fields.get("type") {
                None => "a handler without a type".to_owned(),
                Some(other) => format!("no type of handler is named {other}"),
            };
            let mend = "write \"type\": \"command\"";
            self.wrong(FaultKind::UnknownType, format!("{place}.type"), what, mend);
            return None;
        };
        if let Some(missing) = needs
            .iter()
            .find(|name| !fields.get(**name).is_some_and(Value::is_string))
        {
            let what = format!("a {kind} handler without a text named {missing}");
            self.wrong(FaultKind::NoCommand, place, what, "say what to call");
            return None;
        }
        self.optional(&place, fields)?;
        let timeout = self.timeout(&place, fields.get("timeout"))?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let flag = |name: &str| fields.get(name).and_then(Value::as_bool) == Some(true);
        let command = text("command").unwrap_or_default();
        let empty = kind == "command" && command.trim().is_empty();
        if empty {
            self.found.fault(
                FaultKind::NoCommand,
                Effect::Entry,
                format!("{place}.command"),
                "an empty command",
                "say what to call",
            );
        }
        let args = fields.get("args").and_then(Value::as_array).map(|list| {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        });
        // Where nothing waits for an answer, and at a stop, it has no effect.
        let can_block = !matches!(
            self.name,
            "Stop" | "SubagentStop" | "TaskCompleted" | "TeammateIdle"
        );
        Some(Hook {
            event: self.name.to_owned(),
            group: 0,
            handler: 0,
            matcher: None,
            call: if kind == "command" {
                Call::Command { command, args }
            } else {
                Call::Other(kind.to_owned())
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
    fn optional(&mut self, place: &str, fields: &Map<String, Value>) -> Option<()> {
        type Fits = fn(&Value) -> bool;
        let failing: Fits = |value| matches!(value.as_str(), Some("block" | "continue"));
        let known: [(&str, Fits, &str); 7] = [
            ("args", is_list_of_texts, "a list of texts"),
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
                self.wrong(
                    FaultKind::WrongShape,
                    format!("{place}.{name}"),
                    what,
                    &mend,
                );
                return None;
            }
        }
        Some(())
    }

    /// Seconds, the default included.
    fn timeout(&mut self, place: &str, value: Option<&Value>) -> Option<u64> {
        let Some(value) = value else {
            let deadlines = ClaudeCode.capabilities().deadlines;
            return Some(u64::from(deadlines.of(super::kind(self.name))));
        };
        let written = value.to_string();
        let whole = written.split(['.', 'e', 'E']).next().unwrap_or_default();
        let above_zero = value.is_number()
            && !written.starts_with('-')
            && written.chars().any(|c| matches!(c, '1'..='9'));
        if !above_zero {
            let what = format!("{value}, where a number of seconds above 0 belongs");
            let mend = "write it as a number, without quotes";
            self.wrong(
                FaultKind::BadTimeout,
                format!("{place}.timeout"),
                what,
                mend,
            );
            return None;
        }
        Some(
            value
                .as_u64()
                .or_else(|| whole.parse().ok())
                .unwrap_or(u64::MAX),
        )
    }

    /// Whether the matcher can ever match.
    fn matcher(&mut self, place: &str, matcher: Option<&str>) -> bool {
        let Some(subjects) = subjects(self.name) else {
            return true;
        };
        let Some(matcher) = matcher.filter(|matcher| !matches!(*matcher, "" | "*")) else {
            return true;
        };
        let place = format!("{place}.matcher");
        let (matches, why): (bool, String) = match alternatives(matcher, true) {
            Some(names) => {
                let known = |name: &&str| subjects.contains(name) || is_foreign(self.name, name);
                let near = subjects
                    .iter()
                    .find(|subject| names.iter().any(|name| name.eq_ignore_ascii_case(subject)));
                let why = near.map_or_else(
                    || "it names nothing that this event is ever about".to_owned(),
                    |near| format!("letters' case counts: it would have to be {near}"),
                );
                (names.iter().any(known), why)
            }
            None => match regress::Regex::new(matcher) {
                Ok(pattern) => {
                    let known = subjects.iter().any(|name| pattern.find(name).is_some());
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
                    self.found.fault(
                        FaultKind::BadMatcher,
                        Effect::Entry,
                        place,
                        format!("not a pattern: {error}; its hooks never fire"),
                        "mend the pattern, or take it out for all tools",
                    );
                    return false;
                }
            },
        };
        if !matches {
            self.found.fault(
                FaultKind::NeverMatches,
                Effect::Entry,
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
        super::kind(event),
        EventKind::ToolRequest | EventKind::ToolResult
    ) || matches!(event, "PermissionRequest" | "PermissionDenied")
}

/// Names of tools that come from elsewhere.
fn is_foreign(event: &str, name: &str) -> bool {
    is_tool_event(event) && name.starts_with("mcp__")
}

/// What an event's matcher is compared with; `None` = it takes none, or nobody can list it.
fn subjects(event: &str) -> Option<&'static [&'static str]> {
    match event {
        "SessionStart" => Some(SOURCES),
        "PreCompact" | "PostCompact" => Some(&["auto", "manual"]),
        event if is_tool_event(event) => Some(TOOLS),
        _ => None,
    }
}
