//! Facts first: what the runtime finds out about a tool request before the core judges
//! it. They depend only on the request and the sealed policy, so replay needs no shell parser.

use std::path::Path;

use checkrein_core::input::{PatchFact, RuleDecision, ToolFacts};
use checkrein_core::policy::Policy;
use checkrein_execpolicy::{RuleSet, Touched};

use crate::{links, patches};

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

/// The facts of a command, with the files that it touches.
pub(crate) fn of_command(policy: &Policy, command: Command<'_>) -> (ToolFacts, Vec<Touched>) {
    let rules = match rules(policy) {
        Ok(rules) => rules,
        Err(facts) => return (*facts, Vec::new()),
    };
    match command {
        Command::Script(script) => checkrein_execpolicy::judge_script_touching(&rules, script),
        Command::Argv(argv) => checkrein_execpolicy::judge_argv_touching(&rules, argv),
        Command::Writes(paths) => {
            let facts = checkrein_execpolicy::judge_writes(&rules, paths);
            (
                facts,
                paths.iter().map(String::as_str).map(written).collect(),
            )
        }
    }
}

fn rules(policy: &Policy) -> Result<RuleSet, Box<ToolFacts>> {
    RuleSet::from_text(&policy.rules).map_err(|error| {
        // The sealed rules were compiled by us: unreadable ones must not open the gate.
        Box::new(ToolFacts {
            rule: Some(RuleDecision::Forbidden),
            reason: Some(format!("the sealed exec policy cannot be read: {error}")),
            ..ToolFacts::default()
        })
    })
}

fn written(path: &str) -> Touched {
    Touched {
        path: path.to_owned(),
        removed: false,
    }
}

/// What is touched is asked about by where it really lies as well. `here`: where relative paths
/// begin.
pub(crate) fn with_places(
    policy: &Policy,
    facts: &mut ToolFacts,
    touched: &[Touched],
    here: &Path,
    root: &Path,
) {
    let places = links::elsewhere(touched, here, root);
    if places.is_empty() {
        return;
    }
    if let Ok(rules) = rules(policy) {
        stricter(facts, checkrein_execpolicy::judge_places(&rules, &places));
    }
}

fn stricter(facts: &mut ToolFacts, other: ToolFacts) {
    // That nothing is protected there allows nothing.
    if other.rule > facts.rule && other.rule > Some(RuleDecision::Allow) {
        (facts.rule, facts.reason) = (other.rule, other.reason);
    }
}

/// What the rules say of a tool of an MCP server, under whichever agent: they know it by the words
/// `mcp SERVER TOOL`. Nothing but rules on these words is asked: it is no command.
pub(crate) fn with_server_tool(policy: &Policy, facts: &mut ToolFacts, tool: &str) {
    let named = tool.strip_prefix("mcp__");
    let Some((server, name)) = named.and_then(|named| named.split_once("__")) else {
        return;
    };
    let rules = match rules(policy) {
        Ok(rules) => rules,
        Err(unreadable) => return stricter(facts, *unreadable),
    };
    let answer = rules.check(&["mcp", server, name], None);
    let Some(rule) = answer.decision() else {
        return;
    };
    let hit = answer.matches.iter().find(|hit| hit.decision == rule);
    let reason = hit.map(|hit| {
        let does = match rule {
            RuleDecision::Forbidden => "forbids",
            RuleDecision::Prompt | RuleDecision::Allow => "asks before",
        };
        let named = || format!("policy {does} `{}`", hit.matched_prefix.join(" "));
        hit.justification.clone().unwrap_or_else(named)
    });
    stricter(
        facts,
        ToolFacts {
            rule: Some(rule),
            reason,
            ..ToolFacts::default()
        },
    );
}

/// What a patch writes is asked about like what any tool writes: by where it really lies.
pub(crate) fn with_patch(
    policy: &Policy,
    facts: &mut ToolFacts,
    mut patch: PatchFact,
    root: &Path,
) {
    let below = |path: &String| root.join(path).display().to_string();
    let paths: Vec<String> = patch.paths.iter().map(below).collect();
    if !paths.is_empty() {
        let (writes, touched) = of_command(policy, Command::Writes(&paths));
        if writes.rule > facts.rule {
            (facts.rule, facts.reason) = (writes.rule, writes.reason);
        }
        with_places(policy, facts, &touched, root, root);
    }
    // All of them are judged, and the first are kept.
    patch.paths.truncate(patches::MAX_PATHS);
    facts.patch = Some(patch);
}
