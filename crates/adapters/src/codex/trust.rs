//! What Codex's own `config.toml` says about hooks: which repos it trusts, which handlers a
//! person has reviewed, whether hooks are on at all. It runs a handler only if the digest of
//! its definition is written there, and says nothing about those that it does not run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::settings;
use crate::settings::{HookHandler, HookHandlerAction, ParsedHookSettings};

/// What a `config.toml` says about hooks.
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

/// Whether Codex would run a handler.
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

/// What is hashed: compact JSON, keys in order, absent fields left out.
#[derive(Serialize)]
struct HandlerIdentity<'a> {
    event_name: &'a str,
    hooks: [HashedHookHandler<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    matcher: Option<&'a str>,
}

#[derive(Serialize)]
struct HashedHookHandler<'a> {
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
    let off = |name: &str| file.features.get(name) == Some(&Value::Bool(false));
    let hooks = file.hooks.unwrap_or(Value::Null);
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
        hooks_on: !off("hooks") && !off("codex_hooks"),
        inline_hooks: inline,
        projects: file
            .projects
            .iter()
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
    /// Whether the hooks in this repo's `.codex` are looked at; `root` is that of the main
    /// worktree, symlinks resolved.
    pub fn codex_trusts_repo_hooks(&self, root: &str) -> bool {
        self.projects
            .get(root)
            .is_some_and(|level| level == "trusted")
    }

    /// The digest that a person reviewed under this key.
    pub fn reviewed_hook_digest(&self, key: &str) -> Option<&str> {
        self.states.get(key)?.trusted_hash.as_deref()
    }

    /// Whether this handler of the file at `path` would be run.
    pub fn hook_trust(&self, path: &str, hook: &HookHandler) -> HookTrust {
        let state = codex_hook_trust_key(path, hook).and_then(|key| self.states.get(&key));
        let Some(state) = state else {
            return HookTrust::Untrusted;
        };
        match (&state.trusted_hash, state.enabled) {
            (_, Some(false)) => HookTrust::Disabled,
            (None, _) => HookTrust::Untrusted,
            (Some(reviewed), _) if Some(reviewed) == codex_hook_trust_hash(hook).as_ref() => {
                HookTrust::Trusted
            }
            (Some(_), _) => HookTrust::Modified,
        }
    }
}

/// The name under which a handler's review is kept; `path` is that of the file it stands in.
pub fn codex_hook_trust_key(path: &str, hook: &HookHandler) -> Option<String> {
    let event = settings::trust_event_name(&hook.event)?;
    Some(format!("{path}:{event}:{}:{}", hook.group, hook.handler))
}

/// The digest of a handler's definition. It covers the command as a text, not what the
/// command runs. `None` for handlers that are no commands.
pub fn codex_hook_trust_hash(hook: &HookHandler) -> Option<String> {
    let event = settings::trust_event_name(&hook.event)?;
    let HookHandlerAction::Command { command, .. } = &hook.call else {
        return None;
    };
    let identity = HandlerIdentity {
        event_name: event,
        hooks: [HashedHookHandler {
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
            .filter(|_| settings::codex_event_uses_matcher(&hook.event)),
    };
    let identity = serde_json::to_string(&identity).ok()?;
    let digest = Sha256::digest(identity);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("sha256:{hex}"))
}
