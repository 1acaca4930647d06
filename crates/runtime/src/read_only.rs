//! Whether a tool call only reads. For where there is no policy that could be asked: a person's
//! work is not locked up by a mistake in a file, and nothing is let through that changes anything.

use std::path::Path;

use checkrein_core::input::{RuleDecision, ToolKind};
use checkrein_core::tool_action::{CommandInToolArguments, ToolAction};
use checkrein_execpolicy::{
    EffectPolicy, ParsedScripts, RuleSet, UnmatchedDecision, evaluate_argv_with_script_cache,
    evaluate_parsed_script, is_read_only_command,
};

use crate::start_folders;

/// More commands of one script are not named among its facts.
pub(crate) const MAX_COMMANDS: usize = 64;

/// Whether this call is known to read only, in the tree of this folder.
pub fn is_call_read_only(action: &ToolAction, root: &Path) -> bool {
    is_call_read_only_with_scripts(&ParsedScripts::default(), action, root)
}

/// The same where its scripts may have been parsed before.
pub(crate) fn is_call_read_only_with_scripts(
    scripts: &ParsedScripts,
    action: &ToolAction,
    root: &Path,
) -> bool {
    let changes = [&action.writes, &action.removes, &action.may_write];
    if action.is_cut || action.patch.is_some() || changes.iter().any(|paths| !paths.is_empty()) {
        return false;
    }
    // Nothing may be written, and what cannot be read is not guessed about.
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
        Some(CommandInToolArguments::Script(script)) => {
            evaluate_parsed_script(scripts, &rules, script, &start)
        }
        Some(CommandInToolArguments::Argv(argv)) => {
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
        && facts.commands.len() < MAX_COMMANDS
        && facts
            .commands
            .iter()
            .all(|command| is_read_only_command(&command.argv))
}
