//! Decides whether a tool call only reads, for use where no policy can be asked: a mistake in a
//! file must not lock up a person's work, and nothing that changes anything may pass.

use std::path::Path;

use checkrein_core::input::{RuleDecision, ToolKind};
use checkrein_core::tool_action::{ScriptOrArgvOfToolCall, ToolAction};
use checkrein_execpolicy::{
    EffectPolicy, ParsedShellScriptCache, RuleSet, UnmatchedDecision,
    evaluate_argv_with_script_cache, evaluate_script_with_parse_cache, is_read_only_command,
};

use crate::start_folders;

/// How many commands of one script its facts name.
pub(crate) const MAX_COMMANDS: usize = 64;

/// Whether this call is known to only read, in the tree of this folder.
pub fn is_call_read_only(action: &ToolAction, root: &Path) -> bool {
    is_call_read_only_with_scripts(&ParsedShellScriptCache::default(), action, root)
}

/// The same, with scripts that may have been parsed before.
pub(crate) fn is_call_read_only_with_scripts(
    scripts: &ParsedShellScriptCache,
    action: &ToolAction,
    root: &Path,
) -> bool {
    // A call that names a file to write is not read-only, whatever its command does.
    let changes = [&action.writes, &action.removes, &action.may_write];
    if action.is_cut || action.patch.is_some() || changes.iter().any(|paths| !paths.is_empty()) {
        return false;
    }
    // Every path is protected, and nothing that cannot be read is guessed about.
    let rules = RuleSet::default().with_effect_policy(EffectPolicy {
        unmatched: UnmatchedDecision::ByEffect,
        opaque_asks: true,
        reach_asks: true,
        protect: vec!["**".to_owned()],
        roots: vec![root.display().to_string()],
        ..EffectPolicy::builtin_default_policy()
    });
    let start = start_folders::call_start_folders(action, root, root);
    let (facts, touched) = match &action.command {
        Some(ScriptOrArgvOfToolCall::Script(script)) => {
            evaluate_script_with_parse_cache(scripts, &rules, script, &start)
        }
        Some(ScriptOrArgvOfToolCall::Argv(argv)) => {
            evaluate_argv_with_script_cache(scripts, &rules, argv, &start)
        }
        None => {
            return match action.kind {
                ToolKind::Shell | ToolKind::Write => false,
                ToolKind::Poll | ToolKind::Other => !action.call_may_have_unknown_effects(),
            };
        }
    };
    touched.files.is_empty()
        && !touched.more
        && facts.unresolved.is_empty()
        && facts.rule == Some(RuleDecision::Allow)
        // At the limit the facts may be cut, so a command beyond it is unknown.
        && facts.commands.len() < MAX_COMMANDS
        && facts
            .commands
            .iter()
            .all(|command| is_read_only_command(&command.argv))
}
