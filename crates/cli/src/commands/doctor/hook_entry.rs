//! Recognises which hook entries are ours, in whatever form they are written, and which of their
//! programs may be started: programs that a clone names may not.

use std::path::{Path, PathBuf};

use checkrein_adapters::own_hook::CheckreinHookCommand;
use checkrein_adapters::settings::{HookHandler, HookHandlerInvocation};
use serde_json::Value;

use super::agents::SettingsScope;
use crate::programs;

/// Recognises `checkrein hook AGENT ...`, as a command line or with `args`.
pub(super) fn is_checkrein_handler(handler: &Value, agent: &str) -> bool {
    parse_checkrein_handler(handler, agent).is_some()
}

/// Returns how a handler calls us for this agent.
pub(super) fn parse_checkrein_handler(
    handler: &Value,
    agent: &str,
) -> Option<(HookHandlerInvocation, CheckreinHookCommand)> {
    let call = parse_hook_handler_command(handler)?;
    let ours = CheckreinHookCommand::recognize_hook_command(&call)?;
    (ours.words.get(2)? == agent).then_some((call, ours))
}

fn parse_hook_handler_command(handler: &Value) -> Option<HookHandlerInvocation> {
    let command = handler.get("command")?.as_str()?.to_owned();
    let args = match handler.get("args") {
        None => None,
        Some(args) => {
            let words = args.as_array()?.iter();
            // A list with anything but text in it is a mistake, and is no call of ours.
            let words: Option<Vec<&str>> = words.map(Value::as_str).collect();
            Some(words?.into_iter().map(str::to_owned).collect())
        }
    };
    Some(HookHandlerInvocation::Command { command, args })
}

/// The program that an entry starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookProgram {
    /// This program, or the `checkrein` on the person's PATH.
    Checkrein(PathBuf),
    /// Another file, named by the person's own settings.
    PersonChosen(PathBuf),
    /// Another file, named by something that comes with a repo: it must not be started.
    Foreign(PathBuf),
    /// Nothing that can be started.
    Missing,
}

impl HookProgram {
    /// Classifies the program of an entry in a file of this scope, seen from the repo at `root`.
    pub(super) fn classify_hook_program(named: &str, scope: SettingsScope, root: &Path) -> Self {
        if !named.contains(['/', '\\']) {
            // By a bare name only a program that is called as we are.
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
        // Looked up only when needed: it walks all of PATH.
        let usual = || {
            let usual = programs::find_program_outside_repo("checkrein", root)?;
            usual.canonicalize().ok()
        };
        let real = found.canonicalize().ok();
        // A relative path depends on the folder that the agent starts hooks in, so it is never
        // trusted.
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

/// Whether this file is the running program.
pub(super) fn is_current_executable(file: &Path) -> bool {
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    matches!((own, file.canonicalize()), (Ok(own), Ok(file)) if own == file)
}

/// One of our entries, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParsedCheckreinHookEntry {
    /// The program, as the entry names it.
    pub(super) program: String,
    /// Whether a shell finds and starts it.
    pub(super) by_shell: bool,
    /// The agent that it speaks for.
    pub(super) agent: String,
    pub(super) source: Option<String>,
    pub(super) deadline: Option<u64>,
    pub(super) state: Option<String>,
    pub(super) require_trust: bool,
}

impl ParsedCheckreinHookEntry {
    pub(super) fn checkrein_entry_from_hook(hook: &HookHandler) -> Option<Self> {
        let words = CheckreinHookCommand::recognize_hook_command(&hook.call)?.words;
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
            by_shell: matches!(
                &hook.call,
                HookHandlerInvocation::Command { args: None, .. }
            ),
            agent: words.get(2).cloned().unwrap_or_default(),
            source: flag("--source"),
            deadline: flag("--deadline").and_then(|seconds| seconds.parse().ok()),
            state: flag("--state"),
            require_trust: words.iter().any(|word| word == "--require-trust"),
        })
    }
}
