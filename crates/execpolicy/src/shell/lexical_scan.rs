//! The fallback for text that the grammar cannot parse: scans for words whose beginning a rule
//! forbids, with quotes and backslashes removed. It may see a command where there is none, but it
//! never misses a name that is spelt out.

use checkrein_core::input::RuleDecision;

use super::quoting;
use crate::rule_set::{MatchedRule, RuleSet};

/// Bytes of one word that are compared.
const MAX_WORD: usize = 512;

/// Returns the strictest restrictive match in the text, the first one among equals.
pub(crate) fn strictest_rule_in_shell_text(rules: &RuleSet, text: &str) -> Option<MatchedRule> {
    let longest = rules.longest_rule_pattern_len();
    let mut words: std::collections::VecDeque<String> = std::collections::VecDeque::new();
    let mut found: Option<MatchedRule> = None;
    let mut rest = text;
    // A window of as many words as the longest pattern has moves through the text, so each
    // position is tried as the start of a command.
    loop {
        while words.len() < longest {
            let Some((word, after)) = next_shell_word(rest) else {
                break;
            };
            rest = after;
            words.push_back(word);
        }
        if words.is_empty() {
            return found;
        }
        for hit in rules.matching_rules(words.make_contiguous()) {
            let worse = found
                .as_ref()
                .is_none_or(|before| before.decision < hit.decision);
            if hit.decision > RuleDecision::Allow && worse {
                found = Some(hit);
            }
        }
        // Nothing is stricter, so the rest need not be read.
        if found
            .as_ref()
            .is_some_and(|hit| hit.decision == RuleDecision::Forbidden)
        {
            return found;
        }
        words.pop_front();
    }
}

fn next_shell_word(text: &str) -> Option<(String, &str)> {
    let separates = |c: char| c.is_whitespace() || ";|&()<>`{}$=!,".contains(c);
    let mut rest = text;
    let mut word = String::new();
    while let Some(c) = rest.chars().next() {
        // `$'...'` can spell any name by character codes.
        if let Some(inner) = rest.strip_prefix("$'") {
            let (spelt, taken) = quoting::unquote_ansi_c(inner);
            word.push_str(&spelt);
            rest = inner.get(taken..).unwrap_or("");
            continue;
        }
        if separates(c) && !word.is_empty() {
            break;
        }
        if !separates(c) && !"\"'\\".contains(c) && word.len() < MAX_WORD {
            word.push(c);
        }
        rest = rest.get(c.len_utf8()..).unwrap_or("");
    }
    (!word.is_empty()).then_some((word, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_text_that_cannot_be_parsed() {
        let text = "a 'b c' r\\m;$(x)$'\\x72m'y d=\"e\" ) $'f";
        let mut words = Vec::new();
        let mut rest = text;
        while let Some((word, after)) = next_shell_word(rest) {
            words.push(word);
            rest = after;
        }
        assert_eq!(words, ["a", "b", "c", "rm", "x", "rmy", "d", "e", "f"]);
    }
}
