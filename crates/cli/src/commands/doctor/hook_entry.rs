//! Tells which hook entries are ours, in whatever form they are written, and which of their
//! programs may be started: what a clone names is not.

use std::path::{Path, PathBuf};

use checkrein_adapters::own_hook::CheckreinHook;
use checkrein_adapters::settings::{HookHandler, HookHandlerAction};
use serde_json::Value;

use super::agents::SettingsScope;
use crate::programs;

/// `checkrein hook AGENT ...`, as a command line or with `args`.
pub(super) fn is_checkrein_handler(handler: &Value, agent: &str) -> bool {
    parse_checkrein_handler(handler, agent).is_some()
}

/// How a handler calls us for this agent.
pub(super) fn parse_checkrein_handler(
    handler: &Value,
    agent: &str,
) -> Option<(HookHandlerAction, CheckreinHook)> {
    let call = parse_hook_handler_command(handler)?;
    let ours = CheckreinHook::recognize_hook_command(&call)?;
    (ours.words.get(2)? == agent).then_some((call, ours))
}

fn parse_hook_handler_command(handler: &Value) -> Option<HookHandlerAction> {
    let command = handler.get("command")?.as_str()?.to_owned();
    let args = match handler.get("args") {
        None => None,
        Some(args) => {
            let words = args.as_array()?.iter();
            let words: Option<Vec<&str>> = words.map(Value::as_str).collect();
            Some(words?.into_iter().map(str::to_owned).collect())
        }
    };
    Some(HookHandlerAction::Command { command, args })
}

/// What an entry starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookProgram {
    /// This very program, or the `checkrein` of the person's PATH.
    Checkrein(PathBuf),
    /// Another file, named by the person's own settings.
    PersonChosen(PathBuf),
    /// Another file, named by what comes with a repo: not for us to start.
    Foreign(PathBuf),
    /// Nothing that could be started.
    Missing,
}

impl HookProgram {
    /// What an entry in a file of this scope starts, seen from the repo at `root`.
    pub(super) fn classify_hook_program(named: &str, scope: SettingsScope, root: &Path) -> Self {
        if !named.contains(['/', '\\']) {
            // By a bare name only what is called as we are.
            return match programs::find_program_outside_repo(named, root) {
                Some(found) if named == "checkrein" || is_current_executable(&found) => {
                    Self::Checkrein(found)
                }
                Some(found) => Self::Foreign(found),
                None => Self::Missing,
            };
        }
        let found = PathBuf::from(named);
        if !programs::is_executable(&found) {
            return Self::Missing;
        }
        let usual = || {
            let usual = programs::find_program_outside_repo("checkrein", root)?;
            usual.canonicalize().ok()
        };
        let real = found.canonicalize().ok();
        if found.is_absolute()
            && (is_current_executable(&found) || real.is_some() && real == usual())
        {
            Self::Checkrein(found)
        } else if found.is_absolute()
            && scope == SettingsScope::User
            && !programs::is_file_in_repo(&found, root)
        {
            Self::PersonChosen(found)
        } else {
            Self::Foreign(found)
        }
    }
}

/// Whether this file is the program that runs now.
pub(super) fn is_current_executable(file: &Path) -> bool {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    matches!((own, file.canonicalize()), (Ok(own), Ok(file)) if own == file)
}

/// One of our entries, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedHookEntry {
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

impl ParsedHookEntry {
    pub(super) fn checkrein_entry_from_hook(hook: &HookHandler) -> Option<Self> {
        let words = CheckreinHook::recognize_hook_command(&hook.call)?.words;
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
            by_shell: matches!(&hook.call, HookHandlerAction::Command { args: None, .. }),
            agent: words.get(2).cloned().unwrap_or_default(),
            source: flag("--source"),
            deadline: flag("--deadline").and_then(|seconds| seconds.parse().ok()),
            state: flag("--state"),
            require_trust: words.iter().any(|word| word == "--require-trust"),
        })
    }
}
