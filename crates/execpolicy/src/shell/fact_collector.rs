//! Collects what the rules say about each command into facts of bounded size. Every command is
//! judged before the facts are truncated, so a bound never hides a match.

use checkrein_core::input::{CommandWithRuleDecision, RuleDecision, ToolRequestFacts};

use super::word::{CommandWord, WordKnowledge};
use super::{environment_changes, lexical_scan};
use crate::effect_policy::UnmatchedDecision;
use crate::rule_set::{MatchedRule, RuleSet, basename};
use crate::self_protection;

/// Commands kept in the facts.
const MAX_COMMANDS: usize = 64;
/// Unresolved pieces kept in the facts.
const MAX_UNRESOLVED: usize = 16;
/// Words kept of each command.
const MAX_WORDS: usize = 64;
/// Changed files kept.
const MAX_TOUCHED: usize = 256;
/// Bytes kept of a word or piece.
const MAX_BYTES: usize = 256;
/// Bytes of a command shown to a person.
const MAX_SHOWN: usize = 60;

/// The reasons for which a command would be asked about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PromptReasons<'a> {
    /// Its effects, where effects decide and no rule names it.
    pub(super) effects: Option<&'a str>,
    /// It is a hazard, whatever rule allows it.
    pub(super) hazard: Option<&'a str>,
}

pub(super) struct CommandFactsCollector<'r> {
    rules: &'r RuleSet,
    restricts: bool,
    facts: ToolRequestFacts,
    /// The strictest match so far that prompts or forbids.
    strictest: Option<MatchedRule>,
    /// Some command has no allow rule, so the rules do not allow the request as a whole.
    uncovered: bool,
    any: bool,
    first_unresolved: Option<String>,
    affected_files: FilesCommandWouldChange,
}

/// A file that is written or removed, as far as its name is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCommandWouldChange {
    /// Its path; a relative one starts at the folder of the request.
    pub path: String,
    /// Whether it is removed. Removing a link removes the link itself and not its target.
    pub removed: bool,
}

/// The files that a command writes or removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilesCommandWouldChange {
    /// Those whose names are known, up to a bound.
    pub files: Vec<FileCommandWouldChange>,
    /// Whether there are more, or some whose names are not known.
    pub more: bool,
}

impl<'r> CommandFactsCollector<'r> {
    pub(super) fn new(rules: &'r RuleSet) -> Self {
        Self {
            rules,
            restricts: rules.has_restricting_rules(),
            facts: ToolRequestFacts::default(),
            strictest: None,
            uncovered: false,
            any: false,
            first_unresolved: None,
            affected_files: FilesCommandWouldChange::default(),
        }
    }

    /// Records a piece that cannot be resolved before the run.
    pub(super) fn note_unresolved_command_part(&mut self, piece: &str) {
        let piece = truncate_fact_text(piece.trim());
        if self.first_unresolved.is_none() {
            self.first_unresolved = Some(piece.clone());
        }
        if self.facts.unresolved.len() < MAX_UNRESOLVED && !self.facts.unresolved.contains(&piece) {
            self.facts.unresolved.push(piece);
        }
    }

    /// Records a program that reads further input while it runs; no hook sees that input.
    pub(super) fn note_unseen_interactive_input(&mut self, program: &str) {
        let piece = format!("what is typed at {}", truncate_fact_text(program));
        self.note_unresolved_command_part(&piece);
        // Input typed later could write anywhere, so it is asked about wherever paths are
        // protected.
        if !self.rules.effect_policy().protect.is_empty() {
            let why = format!("this may write a protected path: {piece} is not seen beforehand");
            self.record_prompt_or_forbid_reason(RuleDecision::Prompt, why);
        }
    }

    /// Scans text that could not be parsed for words that a rule forbids.
    pub(super) fn scan_unparsed_for_forbidden_words(&mut self, text: &str) {
        // Without a rule that prompts or forbids, a scan could find nothing.
        if self.restricts
            && let Some(hit) = lexical_scan::strictest_rule_in_shell_text(self.rules, text)
        {
            self.keep_strictest_match(&hit);
        }
    }

    /// Records a command whose program is not known.
    pub(super) fn add_unknown_program_to_verdict(&mut self, words: &[CommandWord]) {
        self.uncovered = true;
        self.add_evaluated_command_fact(words, None);
    }

    /// Records a command whose program is `program`. If it is not `sure` to be a command, it
    /// counts only if a rule restricts it.
    pub(super) fn add_command_to_verdict(
        &mut self,
        words: &[CommandWord],
        program: &str,
        sure: bool,
        asks: PromptReasons<'_>,
    ) {
        // Self-protection comes before the shortcut below: it holds without any rule.
        self.check_self_protection_rules(words, program);
        if sure && !self.facts.outside {
            let fixed: Vec<&str> = words
                .iter()
                .skip(1)
                .map_while(CommandWord::as_literal)
                .collect();
            self.facts.outside =
                environment_changes::changes_packages_or_services(basename(program), &fixed);
        }
        // Nothing can restrict here, so the command is recorded without matching it.
        if self.rules.is_empty() && self.rules.effect_policy().unmatched == UnmatchedDecision::Allow
        {
            if sure {
                self.uncovered = true;
                let rule = asks
                    .hazard
                    .map(|why| self.record_prompt_for_risky_command(words, why));
                self.add_evaluated_command_fact(words, rule);
            }
            return;
        }
        // The words after the first unknown one are left out: a pattern must not match across a
        // gap.
        let mut argv = vec![program];
        argv.extend(
            words
                .iter()
                .skip(1)
                .map_while(CommandWord::as_literal)
                .take(self.rules.longest_rule_pattern_len()),
        );
        let hits = self.rules.matching_rules(&argv);
        let rule = hits.iter().map(|hit| hit.decision).max();
        for hit in hits.iter().filter(|hit| hit.decision > RuleDecision::Allow) {
            self.keep_strictest_match(hit);
        }
        // A guess may add a restriction, but it must never make the whole look allowed.
        if !sure {
            if rule > Some(RuleDecision::Allow) {
                self.add_evaluated_command_fact(words, rule);
            }
            return;
        }
        // The words known so far match the start of a restrictive rule, and the next word is not
        // known.
        if let Some(next) = words
            .get(argv.len())
            .filter(|word| word.knowledge != WordKnowledge::Literal)
            && self
                .rules
                .could_match_restrictive_rule(&argv, next.literal_prefix_of_word())
        {
            let piece = argv.join(" ") + " " + &next.text;
            self.note_unresolved_command_part(&piece);
        }
        let rule = rule.max(
            asks.hazard
                .map(|why| self.record_prompt_for_risky_command(words, why)),
        );
        // A matching rule, or a hazard, takes precedence over what effects say.
        let rule = rule.or_else(|| self.decide_unmatched_command(words, asks.effects));
        self.uncovered |= rule.is_none();
        self.add_evaluated_command_fact(words, rule);
    }

    /// Decides about a command that no rule names.
    fn decide_unmatched_command(
        &mut self,
        words: &[CommandWord],
        asks: Option<&str>,
    ) -> Option<RuleDecision> {
        let shown = shortened_command_text(words);
        let why = match (self.rules.effect_policy().unmatched, asks) {
            (UnmatchedDecision::Allow, _) => return None,
            (UnmatchedDecision::ByEffect, None) => return Some(RuleDecision::Allow),
            (UnmatchedDecision::ByEffect, Some(why)) => format!("policy asks: `{shown}` {why}"),
            (UnmatchedDecision::Prompt, _) => format!("policy asks: no rule names `{shown}`"),
        };
        self.record_prompt_or_forbid_reason(RuleDecision::Prompt, why);
        Some(RuleDecision::Prompt)
    }

    /// Records that a person is asked about this command, whatever rule allows it.
    pub(super) fn record_prompt_for_risky_command(
        &mut self,
        words: &[CommandWord],
        why: &str,
    ) -> RuleDecision {
        let why = format!("policy asks: `{}` {why}", shortened_command_text(words));
        self.record_prompt_or_forbid_reason(RuleDecision::Prompt, why);
        RuleDecision::Prompt
    }

    /// Records that a person is asked about something other than a command.
    pub(super) fn record_reason_to_ask_person(&mut self, why: String) {
        self.record_prompt_or_forbid_reason(RuleDecision::Prompt, why);
    }

    pub(super) fn rule_set_in_use(&self) -> &'r RuleSet {
        self.rules
    }

    /// Records a file that is written or removed, so that the caller can check where it really
    /// lies.
    pub(super) fn record_file_command_may_change(&mut self, path: &str, removed: bool) {
        // A name with an expansion, a pattern or a shortened part cannot be looked up on the disk.
        let known = !path.is_empty() && !path.contains(['$', '…', '*', '?', '\0']);
        let touched = FileCommandWouldChange {
            path: path.to_owned(),
            removed,
        };
        if !known || self.affected_files.files.len() >= MAX_TOUCHED {
            self.affected_files.more = true;
        } else if !self.affected_files.files.contains(&touched) {
            self.affected_files.files.push(touched);
        }
    }

    /// Applies the rules that no config switches off. They do not count as restrictions otherwise:
    /// what cannot be read is asked about only if the config's own rules restrict something.
    fn check_self_protection_rules(&mut self, words: &[CommandWord], program: &str) {
        let program = basename(program);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = self_protection::unconditional_command_refusal(program, &texts) {
            self.record_prompt_or_forbid_reason(RuleDecision::Forbidden, why);
        }
        // `checkrein "$X"` could be `checkrein off`, so an unknown subcommand is asked about.
        let unknown = words
            .get(1)
            .filter(|word| word.knowledge != WordKnowledge::Literal);
        if program == "checkrein"
            && let Some(word) = unknown
        {
            let why = format!("`checkrein {}` cannot be read beforehand", word.text);
            self.record_prompt_or_forbid_reason(RuleDecision::Prompt, why);
        }
    }

    /// Forbids destruction that nobody intends; only a person may do it.
    pub(super) fn forbid_destruction(&mut self, what: &str) {
        let why = format!(
            "`builtin:default` forbids this: it {what}. If it is meant, the person does it in a \
             terminal of their own, or changes `[policy] rules` of the project"
        );
        self.record_prompt_or_forbid_reason(RuleDecision::Forbidden, why);
    }

    pub(super) fn record_prompt_or_forbid_reason(&mut self, decision: RuleDecision, why: String) {
        self.keep_strictest_match(&MatchedRule {
            matched_prefix: Vec::new(),
            decision,
            justification: Some(why),
        });
    }

    fn add_evaluated_command_fact(&mut self, words: &[CommandWord], rule: Option<RuleDecision>) {
        self.any = true;
        let fact = || CommandWithRuleDecision {
            argv: words
                .iter()
                .take(MAX_WORDS)
                .map(|word| truncate_fact_text(&word.text))
                .collect(),
            rule,
        };
        if self.facts.commands.len() < MAX_COMMANDS {
            self.facts.commands.push(fact());
        } else if rule > Some(RuleDecision::Allow) {
            // A restricted command is more useful in the facts than an allowed one, so it replaces
            // the last of those.
            let harmless =
                |kept: &&mut CommandWithRuleDecision| kept.rule <= Some(RuleDecision::Allow);
            if let Some(kept) = self.facts.commands.iter_mut().rev().find(harmless) {
                *kept = fact();
            }
        }
    }

    /// Keeps the strictest match; among equals the one with the longest prefix, as in Codex.
    fn keep_strictest_match(&mut self, hit: &MatchedRule) {
        let weight = |hit: &MatchedRule| (hit.decision, hit.matched_prefix.len());
        if self
            .strictest
            .as_ref()
            .is_none_or(|before| weight(before) < weight(hit))
        {
            self.strictest = Some(hit.clone());
        }
    }

    pub(super) fn into_facts_and_touched_files(
        mut self,
    ) -> (ToolRequestFacts, FilesCommandWouldChange) {
        // The order is the severity: a match first, then what could not be read, and `Allow` only
        // if every command has an allow rule.
        if let Some(hit) = self.strictest {
            self.facts.rule = Some(hit.decision);
            self.facts.reason = Some(
                hit.justification
                    .clone()
                    .unwrap_or_else(|| default_rule_reason(&hit)),
            );
        } else if let Some(piece) = self.first_unresolved {
            if self.restricts {
                self.facts.rule = Some(RuleDecision::Prompt);
                self.facts.reason =
                    Some(format!("policy asks: `{piece}` cannot be read beforehand"));
            }
        } else if (self.any || self.rules.effect_policy().unmatched == UnmatchedDecision::ByEffect)
            && !self.uncovered
        {
            self.facts.rule = Some(RuleDecision::Allow);
        }
        (self.facts, self.affected_files)
    }
}

fn default_rule_reason(hit: &MatchedRule) -> String {
    let prefix = hit.matched_prefix.join(" ");
    match hit.decision {
        RuleDecision::Forbidden => format!("policy forbids commands starting with `{prefix}`"),
        RuleDecision::Prompt | RuleDecision::Allow => {
            format!("policy asks before commands starting with `{prefix}`")
        }
    }
}

/// The command as text, shortened.
fn shortened_command_text(words: &[CommandWord]) -> String {
    let texts = words.iter().take(MAX_SHOWN).map(|word| word.text.as_str());
    truncate_at_char_boundary(&texts.collect::<Vec<_>>().join(" "), MAX_SHOWN)
}

fn truncate_fact_text(text: &str) -> String {
    truncate_at_char_boundary(text, MAX_BYTES)
}

/// Cuts the text to at most `most` bytes, between characters.
fn truncate_at_char_boundary(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    // The ellipsis counts towards the bound.
    let end = text.floor_char_boundary(most - '…'.len_utf8());
    text.get(..end).unwrap_or("").to_owned() + "…"
}
