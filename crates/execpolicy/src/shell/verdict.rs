//! Collects what the rules say about each command into bounded facts. Everything is
//! judged before it is cut.

use checkrein_core::input::{CommandWithRuleDecision, RuleDecision, ToolRequestFacts};

use super::word::{Known, Word};
use super::{lexical, outside};
use crate::own;
use crate::policy::Unmatched;
use crate::rules::{Match, RuleSet, basename};

/// Commands that are kept.
const MAX_COMMANDS: usize = 64;
/// Unresolved pieces that are kept.
const MAX_UNRESOLVED: usize = 16;
/// Words of a command that are kept.
const MAX_WORDS: usize = 64;
/// Files that are kept.
const MAX_TOUCHED: usize = 256;
/// Bytes of a word or piece that are kept.
const MAX_BYTES: usize = 256;
/// Bytes of a command that a person is told.
const MAX_SHOWN: usize = 60;

/// Why a command would be asked about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asks<'a> {
    /// Because of what it does, where effects decide and no rule names it.
    pub(super) effects: Option<&'a str>,
    /// Because it is a hazard, whatever rule allows it.
    pub(super) hazard: Option<&'a str>,
}

pub(super) struct Verdict<'r> {
    rules: &'r RuleSet,
    restricts: bool,
    facts: ToolRequestFacts,
    /// The strictest answer so far that prompts or forbids.
    strictest: Option<Match>,
    /// Something has no allow rule: the whole is not allowed by rules.
    uncovered: bool,
    any: bool,
    first_unresolved: Option<String>,
    touched: Touches,
}

/// A file that is written or removed, as far as its name is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its path; a relative one begins where the request does.
    pub path: String,
    /// It is removed: a link goes itself, and not what it names.
    pub removed: bool,
}

/// The files that a command writes or removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Touches {
    /// Those that are known by name, at most so many.
    pub files: Vec<Touched>,
    /// There are more.
    pub more: bool,
}

impl<'r> Verdict<'r> {
    pub(super) fn new(rules: &'r RuleSet) -> Self {
        Self {
            rules,
            restricts: rules.has_restrictions(),
            facts: ToolRequestFacts::default(),
            strictest: None,
            uncovered: false,
            any: false,
            first_unresolved: None,
            touched: Touches::default(),
        }
    }

    /// A piece that no reading can settle.
    pub(super) fn unresolved(&mut self, piece: &str) {
        let piece = bounded(piece.trim());
        if self.first_unresolved.is_none() {
            self.first_unresolved = Some(piece.clone());
        }
        if self.facts.unresolved.len() < MAX_UNRESOLVED && !self.facts.unresolved.contains(&piece) {
            self.facts.unresolved.push(piece);
        }
    }

    /// A program that is told what to do while it runs, which no hook is asked about.
    pub(super) fn typed_at(&mut self, program: &str) {
        let piece = format!("what is typed at {}", bounded(program));
        self.unresolved(&piece);
        if !self.rules.bounds().protect.is_empty() {
            let why = format!("this may write a protected path: {piece} is not seen beforehand");
            self.refuse(RuleDecision::Prompt, why);
        }
    }

    /// Looks for forbidden words in text that could not be parsed.
    pub(super) fn scan(&mut self, text: &str) {
        if self.restricts
            && let Some(hit) = lexical::strictest(self.rules, text)
        {
            self.take(&hit);
        }
    }

    /// A command of which not even the name is known.
    pub(super) fn nameless(&mut self, words: &[Word]) {
        self.uncovered = true;
        self.keep(words, None);
    }

    /// A command whose program is `program`; if it is not `sure` to be one it only
    /// counts if a rule restricts it.
    pub(super) fn command(&mut self, words: &[Word], program: &str, sure: bool, asks: Asks<'_>) {
        self.own(words, program);
        if sure && !self.facts.outside {
            let fixed: Vec<&str> = words.iter().skip(1).map_while(Word::as_fixed).collect();
            self.facts.outside = outside::changes(basename(program), &fixed);
        }
        if self.rules.is_empty() && self.rules.bounds().unmatched == Unmatched::Allow {
            if sure {
                self.uncovered = true;
                let rule = asks.hazard.map(|why| self.hazard(words, why));
                self.keep(words, rule);
            }
            return;
        }
        let mut argv = vec![program];
        argv.extend(
            words
                .iter()
                .skip(1)
                .map_while(Word::as_fixed)
                .take(self.rules.longest_pattern()),
        );
        let hits = self.rules.matches(&argv);
        let rule = hits.iter().map(|hit| hit.decision).max();
        for hit in hits.iter().filter(|hit| hit.decision > RuleDecision::Allow) {
            self.take(hit);
        }
        if !sure {
            if rule > Some(RuleDecision::Allow) {
                self.keep(words, rule);
            }
            return;
        }
        // A rule whose pattern goes on where the words are not known any more.
        if let Some(next) = words
            .get(argv.len())
            .filter(|word| word.known != Known::Fixed)
            && self.rules.could_restrict(&argv, next.lead())
        {
            let piece = argv.join(" ") + " " + &next.text;
            self.unresolved(&piece);
        }
        let rule = rule.max(asks.hazard.map(|why| self.hazard(words, why)));
        let rule = rule.or_else(|| self.unmatched(words, asks.effects));
        self.uncovered |= rule.is_none();
        self.keep(words, rule);
    }

    /// What holds for a command that no rule names.
    fn unmatched(&mut self, words: &[Word], asks: Option<&str>) -> Option<RuleDecision> {
        let shown = shown(words);
        let why = match (self.rules.bounds().unmatched, asks) {
            (Unmatched::Allow, _) => return None,
            (Unmatched::ByEffect, None) => return Some(RuleDecision::Allow),
            (Unmatched::ByEffect, Some(why)) => format!("policy asks: `{shown}` {why}"),
            (Unmatched::Prompt, _) => format!("policy asks: no rule names `{shown}`"),
        };
        self.refuse(RuleDecision::Prompt, why);
        Some(RuleDecision::Prompt)
    }

    /// A command that a person is asked about whatever allows it.
    pub(super) fn hazard(&mut self, words: &[Word], why: &str) -> RuleDecision {
        let why = format!("policy asks: `{}` {why}", shown(words));
        self.refuse(RuleDecision::Prompt, why);
        RuleDecision::Prompt
    }

    /// Something beside the commands that a person is asked about.
    pub(super) fn asks(&mut self, why: String) {
        self.refuse(RuleDecision::Prompt, why);
    }

    pub(super) fn rules(&self) -> &'r RuleSet {
        self.rules
    }

    /// A file that is written or removed, for who can see where it really lies.
    pub(super) fn touched(&mut self, path: &str, removed: bool) {
        let known = !path.is_empty() && !path.contains(['$', '…', '*', '?', '\0']);
        let touched = Touched {
            path: path.to_owned(),
            removed,
        };
        if !known || self.touched.files.len() >= MAX_TOUCHED {
            self.touched.more = true;
        } else if !self.touched.files.contains(&touched) {
            self.touched.files.push(touched);
        }
    }

    /// The rules that no config switches off. They restrict nothing else: what cannot be read
    /// is asked about only if the config's own rules restrict something.
    fn own(&mut self, words: &[Word], program: &str) {
        let program = basename(program);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if let Some(why) = own::command(program, &texts) {
            self.refuse(RuleDecision::Forbidden, why);
        }
        let unknown = words.get(1).filter(|word| word.known != Known::Fixed);
        if program == "checkrein"
            && let Some(word) = unknown
        {
            let why = format!("`checkrein {}` cannot be read beforehand", word.text);
            self.refuse(RuleDecision::Prompt, why);
        }
    }

    /// What nobody means, and only a person does.
    pub(super) fn destroys(&mut self, what: &str) {
        let why = format!(
            "`builtin:default` forbids this: it {what}. If it is meant, the person does it in a \
             terminal of their own, or changes `[policy] rules` of the project"
        );
        self.refuse(RuleDecision::Forbidden, why);
    }

    pub(super) fn refuse(&mut self, decision: RuleDecision, why: String) {
        self.take(&Match {
            matched_prefix: Vec::new(),
            decision,
            justification: Some(why),
        });
    }

    fn keep(&mut self, words: &[Word], rule: Option<RuleDecision>) {
        self.any = true;
        let fact = || CommandWithRuleDecision {
            argv: words
                .iter()
                .take(MAX_WORDS)
                .map(|word| bounded(&word.text))
                .collect(),
            rule,
        };
        if self.facts.commands.len() < MAX_COMMANDS {
            self.facts.commands.push(fact());
        } else if rule > Some(RuleDecision::Allow) {
            // What decides is worth more than what does not.
            let harmless =
                |kept: &&mut CommandWithRuleDecision| kept.rule <= Some(RuleDecision::Allow);
            if let Some(kept) = self.facts.commands.iter_mut().rev().find(harmless) {
                *kept = fact();
            }
        }
    }

    /// The strictest wins; among equals the longest prefix speaks, as in Codex.
    fn take(&mut self, hit: &Match) {
        let weight = |hit: &Match| (hit.decision, hit.matched_prefix.len());
        if self
            .strictest
            .as_ref()
            .is_none_or(|before| weight(before) < weight(hit))
        {
            self.strictest = Some(hit.clone());
        }
    }

    pub(super) fn finish(mut self) -> (ToolRequestFacts, Touches) {
        if let Some(hit) = self.strictest {
            self.facts.rule = Some(hit.decision);
            self.facts.reason = Some(hit.justification.clone().unwrap_or_else(|| reason(&hit)));
        } else if let Some(piece) = self.first_unresolved {
            if self.restricts {
                self.facts.rule = Some(RuleDecision::Prompt);
                self.facts.reason =
                    Some(format!("policy asks: `{piece}` cannot be read beforehand"));
            }
        } else if (self.any || self.rules.bounds().unmatched == Unmatched::ByEffect)
            && !self.uncovered
        {
            self.facts.rule = Some(RuleDecision::Allow);
        }
        (self.facts, self.touched)
    }
}

fn reason(hit: &Match) -> String {
    let prefix = hit.matched_prefix.join(" ");
    match hit.decision {
        RuleDecision::Forbidden => format!("policy forbids commands starting with `{prefix}`"),
        RuleDecision::Prompt | RuleDecision::Allow => {
            format!("policy asks before commands starting with `{prefix}`")
        }
    }
}

/// A command, or how it begins.
fn shown(words: &[Word]) -> String {
    let texts = words.iter().take(MAX_SHOWN).map(|word| word.text.as_str());
    cut(&texts.collect::<Vec<_>>().join(" "), MAX_SHOWN)
}

fn bounded(text: &str) -> String {
    cut(text, MAX_BYTES)
}

/// At most so many bytes, cut between characters.
fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most - '…'.len_utf8());
    text.get(..end).unwrap_or("").to_owned() + "…"
}
