//! Lists for people what a rules file says, call by call.

use checkrein_core::input::RuleDecision;

use super::examples::RuleExample;
use crate::network_rules::NetworkRule;
use crate::rule_set::PrefixRule;

/// A file and its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesFileListing {
    /// Its name.
    pub file: String,
    /// Its calls, in order.
    pub entries: Vec<RulesListingEntry>,
}

/// A call and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesListingEntry {
    /// Where it stands, from 1.
    pub line: usize,
    /// What it says.
    pub rule: ListedRule,
}

/// What a call says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListedRule {
    /// `prefix_rule`
    Prefix {
        /// The alternatives of every position.
        pattern: Vec<Vec<String>>,
        /// What it decides.
        decision: RuleDecision,
        /// Why.
        justification: Option<String>,
        /// Whether letter case does not count.
        canonical: bool,
        /// Its examples, `not_match` first.
        examples: Vec<RuleExample>,
    },
    /// `host_executable`
    Host {
        /// A bare name.
        name: String,
        /// The paths that may stand for it.
        paths: Vec<String>,
    },
    /// `network_rule`
    Network(NetworkRule),
}

impl ListedRule {
    /// Lists one call. Its rules differ in their first token only, so the first rule stands for
    /// all.
    pub(super) fn listed_from_prefix_rule_call(
        rules: &[PrefixRule],
        examples: Vec<RuleExample>,
    ) -> Self {
        let heads = rules.iter().map(|rule| rule.head.clone()).collect();
        let first = rules.first();
        let mut pattern = vec![heads];
        pattern.extend(first.into_iter().flat_map(|rule| rule.tail.clone()));
        Self::Prefix {
            pattern,
            decision: first.map_or(RuleDecision::Allow, |rule| rule.decision),
            justification: first.and_then(|rule| rule.justification.clone()),
            canonical: first.is_some_and(|rule| rule.canonical),
            examples,
        }
    }
}
