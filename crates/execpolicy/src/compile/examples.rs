//! The examples of a `prefix_rule` call: commands that its rules must hold for, and must not.

use crate::check::{Hosts, Surroundings};
use crate::rules::RuleSet;

/// As they were written.
#[derive(Debug)]
pub(super) struct Examples {
    pub(super) matching: Vec<Vec<String>>,
    pub(super) other: Vec<Vec<String>>,
}

/// An example, and whether it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The command, quoted as a shell needs it.
    pub command: String,
    /// Whether a rule of its call is to hold for it.
    pub matches: bool,
    /// Whether it is as the author expects.
    pub holds: bool,
}

impl Examples {
    /// Tries them against the rules of their own call, `not_match` first, as Codex does.
    pub(super) fn tried(
        &self,
        rules: &RuleSet,
        hosts: &Hosts,
        from: &Surroundings,
    ) -> Vec<Example> {
        let tried = |argv: &Vec<String>, matches: bool| {
            let hit = rules
                .check_with(argv, Some(from), hosts)
                .decision()
                .is_some();
            Example {
                command: shown(argv),
                matches,
                holds: hit == matches,
            }
        };
        let other = self.other.iter().map(|argv| tried(argv, false));
        let matching = self.matching.iter().map(|argv| tried(argv, true));
        other.chain(matching).collect()
    }
}

/// What is wrong with a call by its tried examples.
pub(super) fn complaint(tried: &[Example]) -> Option<String> {
    let mut failing = tried.iter().filter(|example| !example.holds).peekable();
    let first = failing.peek()?;
    if !first.matches {
        let what = format!("expected example to not match rule: {}", first.command);
        return Some(what);
    }
    let unmatched: Vec<&str> = failing.map(|example| example.command.as_str()).collect();
    Some(format!(
        "expected every example to match at least one rule; unmatched examples: {unmatched:?}"
    ))
}

fn shown(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str))
        .unwrap_or_else(|_| "unable to render example".to_owned())
}
