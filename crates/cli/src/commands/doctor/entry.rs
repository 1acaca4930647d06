//! Tells which hook entries are ours, in whatever form they are written.

use checkrein_adapters::settings::{Call, Hook};
use serde_json::Value;

/// `checkrein hook AGENT ...`, as a command line or with `args`.
pub(super) fn is_ours(handler: &Value, agent: &str) -> bool {
    let words = call(handler).and_then(|call| call.our_words());
    words.is_some_and(|words| words.get(2).is_some_and(|name| name == agent))
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
        let words = hook.call.our_words()?;
        let flag = |name: &str| {
            words.iter().enumerate().find_map(|(at, word)| {
                match word.strip_prefix(name)?.strip_prefix('=') {
                    Some(value) => Some(value.to_owned()),
                    None => (word == name).then(|| words.get(at + 1).cloned())?,
                }
            })
        };
        Some(Self {
            program: words.first()?.clone(),
            by_shell: matches!(&hook.call, Call::Command { args: None, .. }),
            agent: words.get(2).cloned().unwrap_or_default(),
            source: flag("--source"),
            deadline: flag("--deadline").and_then(|seconds| seconds.parse().ok()),
            state: flag("--state"),
            require_trust: words.iter().any(|word| word == "--require-trust"),
        })
    }
}
