//! The examples of a `prefix_rule` call: commands that its rules must hold for, and must not.

use crate::codex_check::{HostExecutables, ProgramPathBaseFolders};
use crate::rule_set::RuleSet;

/// The examples as they were written.
#[derive(Debug)]
pub(super) struct RuleExamples {
    pub(super) matching: Vec<Vec<String>>,
    pub(super) other: Vec<Vec<String>>,
}

/// An example, and whether it is true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExample {
    /// The command, quoted as a shell needs it.
    pub command: String,
    /// Whether a rule of its call is to hold for it.
    pub matches: bool,
    /// Whether it is as the author expects.
    pub holds: bool,
}

/// Bytes that may still be compared to try the examples of all files.
#[derive(Debug)]
pub(super) struct RuleExampleTestBudget(usize);

impl Default for RuleExampleTestBudget {
    fn default() -> Self {
        Self(64 << 20)
    }
}

impl RuleExamples {
    /// Tries the examples against the rules of their own call, `not_match` first, as Codex does.
    /// Returns `None` if that would take too long.
    pub(super) fn results_of_rule_examples(
        &self,
        rules: &RuleSet,
        hosts: &HostExecutables,
        from: &ProgramPathBaseFolders,
        trials: &mut RuleExampleTestBudget,
    ) -> Option<Vec<RuleExample>> {
        let mut tried = |argv: &Vec<String>, matches: bool| {
            // The cost is taken before the comparison, so no single example can exceed the budget.
            trials.0 = trials
                .0
                .checked_sub(rules.estimate_execpolicy_check_cost(argv, from, hosts))?;
            let hit = rules
                .match_rules_with_executables(argv, Some(from), hosts)
                .strictest_rule_decision()
                .is_some();
            Some(RuleExample {
                command: quote_command(argv),
                matches,
                holds: hit == matches,
            })
        };
        let other = self.other.iter().map(|argv| (argv, false));
        let matching = self.matching.iter().map(|argv| (argv, true));
        let mut all = other.chain(matching);
        all.try_fold(Vec::new(), |mut done, (argv, matches)| {
            done.push(tried(argv, matches)?);
            Some(done)
        })
    }
}

/// Returns what is wrong with a call, by its tried examples.
pub(super) fn failed_rule_examples_text(tried: &[RuleExample]) -> Option<String> {
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

fn quote_command(argv: &[String]) -> String {
    shlex::try_join(argv.iter().map(String::as_str))
        .unwrap_or_else(|_| "unable to render example".to_owned())
}
