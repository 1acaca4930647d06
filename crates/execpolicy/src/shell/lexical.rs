//! The fallback for text no grammar can be trusted with: a plain scan for words whose
//! beginning a rule forbids, quotes and backslashes taken out. It can see a command where
//! there is none, never the other way round for a name that is spelt out.

use checkrein_core::input::RuleDecision;

use crate::rules::{Match, RuleSet};

/// Bytes of one word that are looked at.
const MAX_WORD: usize = 512;

/// The strictest restrictive match anywhere in the text; the first of the strictest.
pub(crate) fn strictest(rules: &RuleSet, text: &str) -> Option<Match> {
    let longest = rules.longest_pattern();
    let mut words: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    let mut found: Option<Match> = None;
    let mut rest = text;
    loop {
        while words.len() < longest {
            let Some((word, after)) = next_word(rest) else { break };
            rest = after;
            words.push_back(word);
        }
        if words.is_empty() {
            return found;
        }
        for hit in rules.matches(words.make_contiguous()) {
            let worse = found.as_ref().is_none_or(|before| before.decision < hit.decision);
            if hit.decision > RuleDecision::Allow && worse {
                found = Some(hit);
            }
        }
        if found.as_ref().is_some_and(|hit| hit.decision == RuleDecision::Forbidden) {
            return found;
        }
        words.pop_front();
    }
}

fn next_word(text: &str) -> Option<(String, &str)> {
    let separates = |c: char| c.is_whitespace() || ";|&()<>`{}$=!,".contains(c);
    let start = text.find(|c: char| !separates(c) && !"\"'\\".contains(c))?;
    let text = text.get(start..)?;
    let mut word = String::new();
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        if separates(c) {
            end = at;
            break;
        }
        if !"\"'\\".contains(c) && word.len() < MAX_WORD {
            word.push(c);
        }
    }
    Some((word, text.get(end..).unwrap_or("")))
}
