//! The copy of a settings file that the canary is played on: our entries as they stand, nobody
//! else's, and nothing in them that would reach the person's own records.

use serde_json::{Map, Value};

use crate::commands::doctor::entry;

/// Flags of an entry that name the person's state folder, trust or profile, and whether a value follows.
const LEFT_OUT: &[(&str, bool)] = &[
    ("--state", true),
    ("--profile", true),
    ("--require-trust", false),
];

/// `None` if there is nothing of ours in it.
pub(super) fn only_ours(settings: &Value, agent: &str) -> Option<Value> {
    let mut events = Map::new();
    for (event, groups) in settings.get("hooks")?.as_object()? {
        let groups: Vec<Value> = groups
            .as_array()?
            .iter()
            .filter_map(|group| our_part(group, agent))
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
    if let Some(disabled) = settings.get("disableAllHooks") {
        copy.insert("disableAllHooks".to_owned(), disabled.clone());
    }
    Some(Value::Object(copy))
}

/// Objects merged, lists joined.
pub(super) fn add(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                add(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}

fn our_part(group: &Value, agent: &str) -> Option<Value> {
    let mut group = group.clone();
    match group.get_mut("hooks").and_then(Value::as_array_mut) {
        Some(handlers) => {
            handlers.retain(|handler| entry::is_ours(handler, agent));
            handlers.iter_mut().for_each(apart);
            (!handlers.is_empty()).then_some(group)
        }
        // A handler where a group belongs: copied as it stands, so that the agent stumbles as it would.
        None => entry::is_ours(&group, agent).then(|| {
            apart(&mut group);
            group
        }),
    }
}

/// Takes out what names the person's own folders.
fn apart(handler: &mut Value) {
    if let Some(arguments) = handler.get_mut("args").and_then(Value::as_array_mut) {
        let words: Vec<String> = arguments
            .iter()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        *arguments = without(words).into_iter().map(Value::from).collect();
        return;
    }
    let words = handler
        .get("command")
        .and_then(Value::as_str)
        .and_then(shlex::split);
    let Some(words) = words else { return };
    let fewer = without(words.clone());
    if fewer != words
        && let Ok(command) = shlex::try_join(fewer.iter().map(String::as_str))
        && let Some(fields) = handler.as_object_mut()
    {
        fields.insert("command".to_owned(), Value::from(command));
    }
}

fn without(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        // A script of `sh -c`, which stays what it is but for those flags.
        if word.contains(" hook ") {
            kept.push(
                LEFT_OUT
                    .iter()
                    .fold(word, |script, (flag, valued)| cut(&script, flag, *valued)),
            );
            continue;
        }
        let flag = word.split('=').next().unwrap_or_default();
        match LEFT_OUT.iter().find(|(name, _)| *name == flag) {
            None => kept.push(word),
            Some((_, true)) if !word.contains('=') => drop(words.next()),
            Some(_) => {}
        }
    }
    kept
}

/// A script without this flag and its value.
fn cut(script: &str, flag: &str, valued: bool) -> String {
    let Some((before, after)) = script.split_once(&format!(" {flag}")) else {
        return script.to_owned();
    };
    if !valued || after.is_empty() {
        return format!("{before}{after}");
    }
    let (mut quote, mut end) = (None, after.len());
    for (at, c) in after.char_indices().skip(1) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | ';' | '&' | '|' | ')') => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    format!("{before}{}", after.split_at(end).1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_our_entries_are_copied_and_they_remember_elsewhere() {
        let settings = json!({
            "env": { "SECRET": "x" },
            "hooks": {
                "Stop": [
                    { "hooks": [
                        { "type": "command", "command": "other" },
                        { "type": "command", "command": "/x/checkrein", "timeout": 60,
                          "args": ["hook", "claude-code", "--state", "/s", "--require-trust", "--deadline", "60"] },
                    ] },
                    { "hooks": [{ "type": "command", "command": "other" }] },
                ],
                "PreToolUse": [{ "type": "command", "command": "'/x y/checkrein' hook claude-code --profile=ci --source user" }],
                "PostToolUse": [{ "hooks": [{ "type": "command", "command": "other" }] }],
            },
        });
        let copy = only_ours(&settings, "claude-code").unwrap();
        assert_eq!(
            copy,
            json!({ "hooks": {
                "Stop": [{ "hooks": [{ "type": "command", "command": "/x/checkrein", "timeout": 60,
                    "args": ["hook", "claude-code", "--deadline", "60"] }] }],
                "PreToolUse": [{ "type": "command", "command": "'/x y/checkrein' hook claude-code --source user" }],
            } })
        );
        assert!(only_ours(&settings, "codex").is_none());
        let script = "test -x \"$0\" || exit 2; exec \"$0\" hook codex --require-trust --state '/a b' --source user";
        let nested = |script: &str| {
            let command = shlex::try_join(["sh", "-c", script, "/x/checkrein", "gone"]).unwrap();
            json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": command }] }] } })
        };
        assert_eq!(
            only_ours(&nested(script), "codex"),
            Some(nested(
                "test -x \"$0\" || exit 2; exec \"$0\" hook codex --source user"
            ))
        );
        assert!(only_ours(&json!({ "hooks": {} }), "codex").is_none());
    }
}
