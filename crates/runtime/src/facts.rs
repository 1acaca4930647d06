//! Facts first: what the runtime finds out about a tool request before the core judges
//! it. They depend only on the request and the sealed policy, so replay needs no shell parser.

use std::path::Path;

use checkrein_core::input::{PatchFact, ToolFacts};
use checkrein_core::policy::Policy;
use checkrein_execpolicy::RuleSet;

/// What a tool request runs, as far as its adapter could tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// A script for a shell.
    Script(&'a str),
    /// Words, no shell between.
    Argv(&'a [String]),
    /// Files that are written.
    Writes(&'a [String]),
}

pub(crate) fn of_command(policy: &Policy, command: Command<'_>) -> ToolFacts {
    let rules = match RuleSet::from_text(&policy.rules) {
        Ok(rules) => rules,
        // The sealed rules were compiled by us: unreadable ones must not open the gate.
        Err(error) => {
            return ToolFacts {
                rule: Some(checkrein_core::input::RuleDecision::Forbidden),
                reason: Some(format!("the sealed exec policy cannot be read: {error}")),
                ..ToolFacts::default()
            };
        }
    };
    match command {
        Command::Script(script) => checkrein_execpolicy::judge_script(&rules, script),
        Command::Writes(paths) => checkrein_execpolicy::judge_writes(&rules, paths),
        Command::Argv(argv) => checkrein_execpolicy::judge_argv(&rules, argv),
    }
}

/// What a patch writes is asked about like what any tool writes: by where it really lies.
pub(crate) fn with_patch(policy: &Policy, facts: &mut ToolFacts, patch: PatchFact, root: &Path) {
    let below = |path: &String| root.join(path).display().to_string();
    let paths: Vec<String> = patch.paths.iter().map(below).collect();
    if !paths.is_empty() {
        let writes = of_command(policy, Command::Writes(&paths));
        if writes.rule > facts.rule {
            (facts.rule, facts.reason) = (writes.rule, writes.reason);
        }
    }
    facts.patch = Some(patch);
}
