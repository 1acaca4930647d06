//! Copies a settings file for the canary: our entries as they stand, nobody else's, and nothing
//! that would reach the person's own records.

use std::path::Path;

use checkrein_adapters::settings::HookHandlerInvocation;
use serde_json::{Map, Value};

use crate::commands::doctor::agents::SettingsScope;
use crate::commands::doctor::hook_entry::{self, HookProgram};

/// Flags of an entry that name the person's state folder, profile or trust, and whether a value
/// follows.
const PERSON_FLAGS: &[(&str, bool)] = &[
    ("--state", true),
    ("--profile", true),
    ("--require-trust", false),
];

/// Keys of a handler that are copied. Any other could make the agent do more than call us.
const KEPT_HANDLER_KEYS: &[&str] = &[
    "type",
    "timeout",
    "statusMessage",
    "onFailure",
    "async",
    "asyncRewake",
];

/// Returns `None` if the file holds nothing of ours, or nothing that may be started.
pub(super) fn settings_with_only_checkrein_hooks(
    settings: &Value,
    agent: &str,
    scope: SettingsScope,
    root: &Path,
) -> Option<Value> {
    let ours = |handler: &Value| copy_checkrein_hook_handler(handler, agent, scope, root);
    let mut events = Map::new();
    for (event, groups) in settings.get("hooks")?.as_object()? {
        let groups: Vec<Value> = groups
            .as_array()?
            .iter()
            .filter_map(|group| hook_group_with_only_checkrein_handlers(group, &ours))
            .collect();
        if !groups.is_empty() {
            events.insert(event.clone(), Value::Array(groups));
        }
    }
    if events.is_empty() {
        return None;
    }
    let mut copy = Map::new();
    copy.insert("hooks".to_owned(), Value::Object(events));
    // A switch that turns all hooks off is part of what the person gets, so the canary must
    // show it.
    if let Some(Value::Bool(disabled)) = settings.get("disableAllHooks") {
        copy.insert("disableAllHooks".to_owned(), Value::Bool(*disabled));
    }
    Some(Value::Object(copy))
}

/// Merges objects and joins lists.
pub(super) fn merge_json(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge_json(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

fn hook_group_with_only_checkrein_handlers(
    group: &Value,
    ours: &dyn Fn(&Value) -> Option<Value>,
) -> Option<Value> {
    match group.get("hooks").and_then(Value::as_array) {
        Some(handlers) => {
            let handlers: Vec<Value> = handlers.iter().filter_map(ours).collect();
            if handlers.is_empty() {
                return None;
            }
            let mut copy = Map::new();
            if let Some(matcher) = group.get("matcher") {
                copy.insert("matcher".to_owned(), matcher.clone());
            }
            copy.insert("hooks".to_owned(), Value::Array(handlers));
            Some(Value::Object(copy))
        }
        // A handler where a group belongs is copied as it stands, so that the agent fails on it as
        // it would.
        None => ours(group),
    }
}

/// Copies a handler that calls us and nothing else. It is written anew from its words: whatever a
/// shell or an agent makes of the original, the copy is one call of a program that may be started.
fn copy_checkrein_hook_handler(
    handler: &Value,
    agent: &str,
    scope: SettingsScope,
    root: &Path,
) -> Option<Value> {
    let fields = handler.as_object()?;
    // A handler without a type is kept, because the agent fails on it.
    if fields.get("type").is_some_and(|kind| kind != "command") {
        return None;
    }
    let (call, ours) = hook_entry::parse_checkrein_handler(handler, agent)?;
    // A clone can name any program in its settings. Only ours and the person's own choice is
    // started.
    match HookProgram::classify_hook_program(ours.words.first()?, scope, root) {
        HookProgram::Checkrein(_) | HookProgram::PersonChosen(_) => {}
        HookProgram::Foreign(_) | HookProgram::Missing => return None,
    }
    let HookHandlerInvocation::Command { command, args } =
        ours.hook_with_replaced_command(&strip_person_folder_flags(&ours.words), &call)
    else {
        return None;
    };
    let mut copy: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| KEPT_HANDLER_KEYS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    copy.insert("command".to_owned(), Value::from(command));
    if let Some(args) = args {
        copy.insert("args".to_owned(), Value::from(args));
    }
    Some(Value::Object(copy))
}

/// Removes flags that name the person's own folders.
fn strip_person_folder_flags(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or_default();
        match PERSON_FLAGS.iter().find(|(name, _)| *name == flag) {
            None => kept.push(word.clone()),
            // A value that is a word of its own goes with its flag.
            Some((_, true)) if !word.contains('=') => drop(words.next()),
            Some(_) => {}
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use checkrein_adapters::own_hook::REFUSE_IF_MISSING;
    use serde_json::json;

    use super::*;

    /// This program, which alone may be started.
    fn me() -> String {
        std::env::current_exe().unwrap().display().to_string()
    }

    fn kept(settings: &Value, agent: &str) -> Option<Value> {
        settings_with_only_checkrein_hooks(
            settings,
            agent,
            SettingsScope::Project,
            Path::new("/nowhere/repo"),
        )
    }

    #[test]
    fn only_our_entries_are_copied_and_they_remember_elsewhere() {
        let me = me();
        let settings = json!({
            "env": { "SECRET": "x" },
            "hooks": {
                "Stop": [
                    { "hooks": [
                        { "type": "command", "command": "other" },
                        { "type": "command", "command": me, "timeout": 60, "shell": "x", "if": "y",
                          "args": ["hook", "claude-code", "--source", "user", "--deadline", "60", "--state", "/s", "--require-trust"] },
                        { "type": "http", "url": "http://127.0.0.1:1", "command": me,
                          "args": ["hook", "claude-code", "--source", "user", "--deadline", "60"] },
                        { "type": "command", "command": "/bin/sh",
                          "args": ["hook", "claude-code", "--source", "user", "--deadline", "60"] },
                    ] },
                    { "hooks": [{ "type": "command", "command": "other" }] },
                ],
                "PreToolUse": [{ "type": "command",
                    "command": format!("'{me}' hook claude-code --source user --deadline 3 --profile='a b'") }],
                "PostToolUse": [{ "hooks": [{ "type": "command", "command": "other" }] }],
                "SessionEnd": [{ "hooks": [{ "type": "command",
                    "command": format!("touch x; '{me}' hook claude-code --source user --deadline 3") }] }],
            },
        });
        assert_eq!(
            kept(&settings, "claude-code").unwrap(),
            json!({ "hooks": {
                "Stop": [{ "hooks": [{ "type": "command", "command": me, "timeout": 60,
                    "args": ["hook", "claude-code", "--source", "user", "--deadline", "60"] }] }],
                "PreToolUse": [{ "type": "command",
                    "command": format!("{me} hook claude-code --source user --deadline 3") }],
            } })
        );
        assert!(kept(&settings, "codex").is_none());
        let guarded = |arguments: &str| {
            let script =
                format!("{REFUSE_IF_MISSING}hook codex --source user --deadline 3{arguments}");
            let command = format!("sh -c '{}' {me} gone", script.replace('\'', "'\\''"));
            json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": command }] }] } })
        };
        assert_eq!(
            kept(&guarded(" --require-trust --state '/a b'"), "codex"),
            Some(guarded(""))
        );
        assert!(kept(&json!({ "hooks": {} }), "codex").is_none());
    }
}
