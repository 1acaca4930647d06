//! The policy that both sides of the measurement are held against, and how commands are counted.

use std::collections::BTreeMap;

use checkrein_core::digest::Digest;
use checkrein_core::input::{CommandWithRuleDecision, RuleDecision, ToolRequestFacts};
use checkrein_execpolicy::{
    EffectPolicy, RuleSet, UnmatchedDecision, compile_execpolicy_rules_files, evaluate_script,
};

/// The one rule beside `builtin:default` and `unmatched = "by-effect"`.
const FORBIDDEN: &str = "prefix_rule(['rm'], 'forbidden', justification='use git clean or move it to a scratch folder')";

/// Effects decide, beside one forbidden rule, in a project at these roots.
pub(crate) fn policy(roots: &[&str]) -> Result<RuleSet, String> {
    let rules = compile_execpolicy_rules_files(&[("rm.rules", FORBIDDEN)])
        .map_err(|error| error.to_string())?;
    Ok(rules.with_effect_policy(EffectPolicy {
        unmatched: UnmatchedDecision::ByEffect,
        roots: roots.iter().map(|root| (*root).to_owned()).collect(),
        ..EffectPolicy::builtin_default_policy()
    }))
}

/// Its digest, wherever the project lies.
pub(crate) fn digest() -> Result<String, String> {
    Ok(Digest::hash_bytes(policy(&[])?.rules_to_json().as_bytes()).to_string())
}

/// The lines of a data file without its comments; `json:` before one that holds more than a line.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("# "))
        .map(|line| match line.strip_prefix("json:") {
            Some(json) => serde_json::from_str(json).unwrap_or_else(|_| line.to_owned()),
            None => line.to_owned(),
        })
        .collect()
}

/// Which of these are `allow`.
pub(crate) fn allowed(rules: &RuleSet, scripts: &[String]) -> Vec<String> {
    let allow = |script: &&String| evaluate_script(rules, script).rule == Some(RuleDecision::Allow);
    scripts.iter().filter(allow).cloned().collect()
}

/// Programs with their flags, each once, and how much of each went through.
#[derive(Default)]
pub(crate) struct Share {
    units: BTreeMap<String, (usize, usize)>,
    /// Units that were interrupted, with the first reason and a command.
    pub(crate) interrupted: BTreeMap<String, (String, String)>,
}

impl Share {
    /// Counts one script.
    pub(crate) fn add(&mut self, rules: &RuleSet, script: &str) {
        let facts = evaluate_script(rules, script);
        let blamed = |command: &&CommandWithRuleDecision| command.rule > Some(RuleDecision::Allow);
        for command in &facts.commands {
            self.count_one(unit(&command.argv), blamed(&command), &facts, script);
        }
        // Something beside its commands: a redirect, a name or a text that cannot be read.
        if facts.rule != Some(RuleDecision::Allow)
            && !facts.commands.iter().any(|command| blamed(&command))
        {
            let piece = facts
                .unresolved
                .first()
                .map_or("(redirect)", String::as_str);
            let first = piece.split_whitespace().next().unwrap_or(piece);
            self.count_one(format!("(unreadable) {first}"), true, &facts, script);
        }
    }

    fn count_one(&mut self, unit: String, stopped: bool, facts: &ToolRequestFacts, script: &str) {
        let (all, through) = self.units.entry(unit.clone()).or_default();
        *all += 1;
        *through += usize::from(!stopped);
        if stopped {
            self.interrupted
                .entry(unit)
                .or_insert_with(|| (why(facts), script.to_owned()));
        }
    }

    /// How many there are, and how many more are spellings of what the added rule forbids.
    pub(crate) fn count(&self) -> (usize, usize) {
        let spellings = self.units.keys().filter(|unit| meant(unit)).count();
        (self.units.len() - spellings, spellings)
    }

    /// The share that goes through, each unit counted once by how often it does, in tenths of a
    /// per cent. What the added rule forbids is left out: it is meant to be interrupted.
    pub(crate) fn per_mille(&self) -> usize {
        let units = || self.units.iter().filter(|(unit, _)| !meant(unit));
        let sum: usize = units()
            .map(|(_, (all, through))| through * 100_000 / all)
            .sum();
        sum / units().count().max(1) / 100
    }
}

/// Whether the added rule forbids it.
fn meant(unit: &str) -> bool {
    unit == "rm" || unit.starts_with("rm ")
}

fn why(facts: &ToolRequestFacts) -> String {
    facts
        .reason
        .clone()
        .unwrap_or_else(|| "nothing to judge".to_owned())
}

/// A program with its flags in order, values left out.
fn unit(argv: &[String]) -> String {
    let mut words: Vec<&str> = argv.iter().take(1).map(String::as_str).collect();
    if let Some(name) = words.first_mut() {
        *name = name.rsplit('/').next().unwrap_or(name);
    }
    let mut flags: Vec<&str> = argv
        .iter()
        .skip(1)
        .filter(|word| word.starts_with('-') && word.len() > 1)
        .map(|word| word.split('=').next().unwrap_or(word))
        .filter(|flag| {
            !flag
                .trim_start_matches('-')
                .starts_with(|c: char| c.is_ascii_digit())
        })
        .collect();
    flags.sort_unstable();
    flags.dedup();
    words.extend(flags);
    words.join(" ")
}
