//! Reads what Codex's own `config.toml` says about hooks: which repos it trusts, which handlers a
//! person has reviewed, and whether hooks are on at all. Codex runs a handler only if the digest of
//! its definition is written there, and says nothing about those that it does not run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::settings;
use crate::settings::{HookHandler, HookHandlerInvocation, ParsedHookSettings};

/// The part of a `config.toml` that is about hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodexHooksConfig {
    /// Hooks are on: neither feature switch says no.
    pub hooks_on: bool,
    /// Handlers written into the config itself.
    pub inline_hooks: ParsedHookSettings,
    projects: BTreeMap<String, String>,
    states: BTreeMap<String, HookTrustRecord>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct HookTrustRecord {
    trusted_hash: Option<String>,
    enabled: Option<bool>,
}

/// The trust that Codex has in a handler, which decides whether it runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookTrust {
    /// Reviewed as it is now.
    Trusted,
    /// Never reviewed: skipped without a word.
    Untrusted,
    /// Changed since it was reviewed: skipped without a word.
    Modified,
    /// Switched off by a person.
    Disabled,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CodexConfigTables {
    features: BTreeMap<String, Value>,
    projects: BTreeMap<String, Value>,
    hooks: Option<Value>,
}

/// The text that is hashed: compact JSON, keys in order, absent fields left out. The order of these
/// fields is the alphabetical one of the keys and must stay so.
#[derive(Serialize)]
struct CodexHookTrustHashInput<'a> {
    event_name: &'a str,
    hooks: [HookHandlerHashInput<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'a str>,
}

#[derive(Serialize)]
struct HookHandlerHashInput<'a> {
    #[serde(
        rename = "additionalContextLimit",
        skip_serializing_if = "Option::is_none"
    )]
    additional_context_limit: Option<u64>,
    #[serde(rename = "async")]
    detached: bool,
    command: &'a str,
    #[serde(rename = "statusMessage", skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    timeout: u64,
    #[serde(rename = "type")]
    kind: &'a str,
}

/// Reads a `config.toml`; an empty text is a config that says nothing.
///
/// # Errors
/// What is wrong with it, in the parser's words: Codex then does not start.
pub fn parse_codex_config(text: &str) -> Result<CodexHooksConfig, String> {
    let file: CodexConfigTables = toml::from_str(text).map_err(|error| error.to_string())?;
    // A switch counts only as a plain `false`; anything else leaves hooks on.
    let off = |name: &str| file.features.get(name) == Some(&Value::Bool(false));
    let hooks = file.hooks.unwrap_or(Value::Null);
    // The same value is read twice: by the strict types, and untyped for what those pass over.
    let inline = match &hooks {
        Value::Object(_) => {
            let events = serde_json::from_value(hooks.clone())
                .map_err(|error| format!("in [hooks]: {error}"))?;
            settings::read_codex_hook_handlers(events, &hooks)
        }
        _ => ParsedHookSettings::default(),
    };
    let text_of =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let states = hooks.get("state").and_then(Value::as_object);
    Ok(CodexHooksConfig {
        // `codex_hooks` is the older name of the same feature.
        hooks_on: !off("hooks") && !off("codex_hooks"),
        inline_hooks: inline,
        projects: file
            .projects
            .iter()
            // Other keys of a project's table do not matter here, and a level that is no text is no
            // trust.
            .filter_map(|(root, table)| Some((root.clone(), text_of(table, "trust_level")?)))
            .collect(),
        states: states
            .into_iter()
            .flatten()
            .map(|(key, table)| {
                let state = HookTrustRecord {
                    trusted_hash: text_of(table, "trusted_hash"),
                    enabled: table.get("enabled").and_then(Value::as_bool),
                };
                (key.clone(), state)
            })
            .collect(),
    })
}

impl CodexHooksConfig {
    /// Returns whether Codex looks at the hooks in this repo's `.codex`. `root` is the root of the
    /// main worktree, symlinks resolved.
    pub fn codex_trusts_repo_hooks(&self, root: &str) -> bool {
        self.projects
            .get(root)
            .is_some_and(|level| level == "trusted")
    }

    /// Returns the digest that a person reviewed under this key.
    pub fn reviewed_hook_digest(&self, key: &str) -> Option<&str> {
        self.states.get(key)?.trusted_hash.as_deref()
    }

    /// Returns whether Codex would run this handler of the file at `path`.
    pub fn hook_trust(&self, path: &str, hook: &HookHandler) -> HookTrust {
        let state = codex_hook_trust_key(path, hook).and_then(|key| self.states.get(&key));
        let Some(state) = state else {
            return HookTrust::Untrusted;
        };
        match (&state.trusted_hash, state.enabled) {
            // Disabled comes first: Codex does not run such a handler even if its digest is
            // reviewed.
            (_, Some(false)) => HookTrust::Disabled,
            (None, _) => HookTrust::Untrusted,
            (Some(reviewed), _) if Some(reviewed) == codex_hook_trust_hash(hook).as_ref() => {
                HookTrust::Trusted
            }
            (Some(_), _) => HookTrust::Modified,
        }
    }
}

/// Returns the key under which a handler's review is kept. `path` is that of the file it stands in.
pub fn codex_hook_trust_key(path: &str, hook: &HookHandler) -> Option<String> {
    let event = settings::trust_key_name_of_codex_event(&hook.event)?;
    // The position is part of the key: a handler that moves within its list needs a new review.
    Some(format!("{path}:{event}:{}:{}", hook.group, hook.handler))
}

/// Returns the digest of a handler's definition. It covers the command as a text, not what the
/// command runs. `None` for handlers that are no commands.
pub fn codex_hook_trust_hash(hook: &HookHandler) -> Option<String> {
    let event = settings::trust_key_name_of_codex_event(&hook.event)?;
    let HookHandlerInvocation::Command { command, .. } = &hook.call else {
        return None;
    };
    let identity = CodexHookTrustHashInput {
        event_name: event,
        hooks: [HookHandlerHashInput {
            additional_context_limit: hook.context_limit,
            detached: hook.detached,
            command,
            status_message: hook.status.as_deref(),
            timeout: hook.timeout,
            kind: "command",
        }],
        matcher: hook
            .matcher
            .as_deref()
            // A matcher that Codex ignores is not part of the definition, so changing it needs no
            // new review.
            .filter(|_| settings::codex_event_uses_matcher(&hook.event)),
    };
    let identity = serde_json::to_string(&identity).ok()?;
    let digest = Sha256::digest(identity);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("sha256:{hex}"))
}
