//! Describes what an agent makes of a settings file with hooks: which handlers it takes over, and
//! what is wrong with the rest, with the effect that each mistake really has. Agents mostly drop
//! what they cannot read without a message, so only a reader as strict as they are can tell.

use serde_json::Value;

use crate::own_hook::CheckreinHookCommand;

/// The contents of one settings file, as an agent takes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedHookSettings {
    /// Handlers of the right form, in the file's order, even if the agent ignores the file.
    pub hooks: Vec<HookHandler>,
    /// What is wrong.
    pub faults: Vec<SettingsFault>,
    /// The switch for all hooks, where the file sets it.
    pub hooks_disabled: Option<bool>,
}

impl ParsedHookSettings {
    /// Returns whether the agent ignores the file as a whole.
    pub fn faults_make_agent_ignore_file(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.effect == SettingsFaultImpact::File)
    }

    /// Returns the handlers that the agent would call, as far as this file is concerned.
    pub fn active_hooks(&self) -> impl Iterator<Item = &HookHandler> {
        let dropped = self.faults_make_agent_ignore_file();
        // Handlers of an ignored file stay in `hooks`, so that they can be shown, but none of them
        // is active.
        self.hooks.iter().filter(move |hook| !dropped && hook.fires)
    }
}

/// One handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookHandler {
    /// The agent's name of the event.
    pub event: String,
    /// Its group's place in the event's list, from 0.
    pub group: usize,
    /// Its place in the group, from 0.
    pub handler: usize,
    /// Which tools or sources it is for; none = all.
    pub matcher: Option<String>,
    /// What the handler calls.
    pub call: HookHandlerInvocation,
    /// Seconds that the agent waits for it, its own default included.
    pub timeout: u64,
    /// Whether a failure of the hook blocks the action.
    pub blocks_on_failure: bool,
    /// The agent does not wait for it.
    pub detached: bool,
    /// What the agent shows while it runs.
    pub status: Option<String>,
    /// Longest context that it may add.
    pub context_limit: Option<u64>,
    /// False if it never fires: its matcher matches nothing, or its command is empty.
    pub fires: bool,
}

/// What a handler calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookHandlerInvocation {
    /// A shell command, or with `args` a program that is started directly.
    Command {
        /// The command, or the program.
        command: String,
        /// Arguments; none = the command is a shell's.
        args: Option<Vec<String>>,
    },
    /// Any other kind, by the agent's name of it.
    Other(String),
}

impl HookHandlerInvocation {
    /// Returns whether this is an entry of ours and nothing more.
    pub fn is_checkrein_hook(&self) -> bool {
        CheckreinHookCommand::recognize_hook_command(self).is_some()
    }
}

/// A mistake in a settings file, and what the agent really does with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFault {
    /// What kind of mistake.
    pub kind: SettingsFaultKind,
    /// Where: `hooks.PreToolUse[0].matcher`, or line and column of what is no JSON.
    pub place: String,
    /// How much is lost by it.
    pub effect: SettingsFaultImpact,
    /// The mistake, in words.
    pub what: String,
    /// What to do about it.
    pub fix: String,
}

/// The kind of a mistake in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsFaultKind {
    /// No JSON, or no TOML.
    Malformed,
    /// JSON with comments, which the agent does not read.
    Comment,
    /// A value of a type the agent does not take.
    WrongShape,
    /// A handler outside of a group's `hooks` list.
    FlatHandler,
    /// A handler without a command or another target.
    NoCommand,
    /// A kind of handler the agent does not know.
    UnknownType,
    /// A kind of handler it knows and does not run.
    Unsupported,
    /// A timeout that is not a number above 0.
    BadTimeout,
    /// A timeout that the agent shortens.
    Clamped,
    /// A matcher that is no pattern.
    BadMatcher,
    /// A matcher that none of the agent's tools or sources has.
    NeverMatches,
    /// An event the agent does not know.
    UnknownEvent,
    /// A key where the agent allows no unknown ones, or the same key twice.
    BadKey,
    /// All hooks are switched off.
    HooksOff,
}

/// How much is lost by a mistake. The agent says none of it reliably.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingsFaultImpact {
    /// Nothing is lost.
    Nothing,
    /// This handler or group does nothing.
    Entry,
    /// No hook of this file is called; its other settings count.
    Hooks,
    /// The whole file is ignored, other settings (permission rules, say) included.
    File,
}

/// Collects what a reader finds.
#[derive(Debug, Default)]
pub(crate) struct HookSettingsCollector {
    pub(crate) settings: ParsedHookSettings,
}

impl HookSettingsCollector {
    pub(crate) fn push_settings_fault(
        &mut self,
        kind: SettingsFaultKind,
        effect: SettingsFaultImpact,
        place: impl Into<String>,
        what: impl Into<String>,
        mend: impl Into<String>,
    ) {
        self.settings.faults.push(SettingsFault {
            kind,
            place: place.into(),
            effect,
            what: what.into(),
            fix: mend.into(),
        });
    }

    /// Reports a text that is no JSON.
    pub(crate) fn add_invalid_json_fault(&mut self, bytes: &[u8], error: &serde_json::Error) {
        let place = format!("line {}, column {}", error.line(), error.column());
        let text = String::from_utf8_lossy(bytes);
        // The parser stops at the first byte of a comment, which tells it from other mistakes.
        let at = text
            .lines()
            .nth(error.line().saturating_sub(1))
            .and_then(|line| line.get(error.column().saturating_sub(1)..))
            .unwrap_or_default();
        if at.starts_with('/') {
            self.push_settings_fault(
                SettingsFaultKind::Comment,
                SettingsFaultImpact::File,
                place,
                "a comment: this agent reads JSON without any",
                "take the comments out",
            );
        } else {
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            self.push_settings_fault(
                SettingsFaultKind::Malformed,
                SettingsFaultImpact::File,
                place,
                format!("not JSON: {said}"),
                "mend the JSON there",
            );
        }
    }
}

/// Returns the kind of a JSON value in words.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the names of a matcher that holds only exact names, split at `|` and, where the agent
/// does so, at commas. `None` if the matcher is a pattern.
pub(crate) fn exact_matcher_names(matcher: &str, commas: bool) -> Option<Vec<&str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '|');
    // Claude Code allows blanks around names, and `-` because tools of MCP servers have it. Codex
    // reads a matcher with either as a regular expression.
    let plain = |c: char| plain(c) || (commas && matches!(c, ',' | ' ' | '-'));
    matcher.chars().all(plain).then(|| {
        matcher
            .split(|c| c == '|' || (commas && c == ','))
            .map(str::trim)
            .collect()
    })
}
