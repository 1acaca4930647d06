//! Tells which hook entries are ours, in whatever form they are written.

use checkrein_adapters::settings::{Call, Hook};
use serde_json::Value;

/// `checkrein hook AGENT ...`, as a command line or with `args`.
pub(super) fn is_ours(handler: &Value, agent: &str) -> bool {
    let words = call(handler).and_then(|call| call.is_ours().then(|| call.words())?);
    words.is_some_and(|words| {
        let mut after = words.iter().skip_while(|word| *word != "hook");
        after.next();
        after.next().is_some_and(|name| name == agent)
    })
}

fn call(handler: &Value) -> Option<Call> {
    let command = handler.get("command")?.as_str()?.to_owned();
    let args = handler.get("args").and_then(Value::as_array).map(|words| {
        let words = words.iter().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    });
    Some(Call::Command { command, args })
}

/// One of our entries, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The binary, as it is named.
    pub(super) program: String,
    /// A shell finds and starts it.
    pub(super) by_shell: bool,
    /// The agent it speaks for.
    pub(super) agent: String,
    pub(super) source: Option<String>,
    pub(super) deadline: Option<u64>,
    pub(super) state: Option<String>,
    pub(super) require_trust: bool,
}

impl Entry {
    pub(super) fn of(hook: &Hook) -> Option<Self> {
        if !hook.call.is_ours() {
            return None;
        }
        let words = hook.call.words()?;
        let at = words.iter().position(|word| word == "hook")?;
        let flag = |name: &str| {
            words.iter().enumerate().find_map(|(at, word)| {
                match word.strip_prefix(name)?.strip_prefix('=') {
                    Some(value) => Some(value.to_owned()),
                    None => (word == name).then(|| words.get(at + 1).cloned())?,
                }
            })
        };
        Some(Self {
            program: words.get(at.checked_sub(1)?)?.clone(),
            by_shell: matches!(&hook.call, Call::Command { args: None, .. }),
            agent: words.get(at + 1).cloned().unwrap_or_default(),
            source: flag("--source"),
            deadline: flag("--deadline").and_then(|seconds| seconds.parse().ok()),
            state: flag("--state"),
            require_trust: words.iter().any(|word| word == "--require-trust"),
        })
    }
}
