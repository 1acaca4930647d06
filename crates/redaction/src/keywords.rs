//! Which rules can match a text at all. Each rule has keywords, one of which is part of every match.
//! One pass over the text finds them, by a map of three bytes, so that text without a keyword
//! costs a few instructions a byte and compiles nothing.

use crate::command_lines::{self, program_secrets::ProgramSecretOption};
use crate::redaction_marks;
use crate::rules::{KEYWORDS, MAP, PROGRAM_NAMES};
use crate::trigram;

/// Of `access_key_id`, behind `key`.
const MAX_NAME_REST: usize = 8;

/// A part of every match of a rule, in lower case.
#[derive(Debug)]
pub(crate) struct SecretMatchKeyword {
    pub(crate) text: &'static str,
    /// So many bytes of a token follow it.
    pub(crate) tail: u8,
    /// It is a name to which something is assigned, or the end of an option's name.
    pub(crate) assigned: bool,
    pub(crate) rule: u16,
}

/// The rules and programs that a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RedactionKeywordHits {
    rules: Vec<u16>,
    /// A program to which passwords are given stands in it.
    pub(crate) programs: bool,
}

impl RedactionKeywordHits {
    /// Of this text, but not of the marks in it: their kinds are words of the rules.
    pub(crate) fn keyword_hits_in_text(text: &[u8]) -> Self {
        let mut hits = Self::default();
        for part in redaction_marks::text_outside_redaction_marks(text) {
            hits.scan_for_keywords(part);
        }
        hits.rules.sort_unstable();
        hits
    }

    fn scan_for_keywords(&mut self, text: &[u8]) {
        let mut place = 0;
        for (at, byte) in text.iter().enumerate() {
            place = trigram::next_trigram(place, *byte);
            if trigram::is_in_trigram_map(&MAP, place) && at >= 2 {
                self.record_keywords_at(text, at - 2, place);
            }
        }
    }

    /// The numbers of the rules, in order.
    pub(crate) fn rule_numbers_with_keyword(&self) -> &[u16] {
        &self.rules
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.programs
    }

    fn record_keywords_at(&mut self, text: &[u8], at: usize, place: u16) {
        let rest = text.get(at..).unwrap_or_default();
        let first = KEYWORDS.partition_point(|(hash, _)| *hash < place);
        let same = KEYWORDS.get(first..).unwrap_or_default().iter();
        for (_, keyword) in same.take_while(|(hash, _)| *hash == place) {
            if !self.rules.contains(&keyword.rule) && keyword.keyword_matches_at(text, at) {
                self.rules.push(keyword.rule);
            }
        }
        if !self.programs {
            let first = PROGRAM_NAMES.partition_point(|(hash, _)| *hash < place);
            let same = PROGRAM_NAMES.get(first..).unwrap_or_default().iter();
            self.programs = same
                .take_while(|(hash, _)| *hash == place)
                .any(|(_, name)| {
                    ProgramSecretOption::is_program_named_at(name, text, at)
                        && command_lines::may_arguments_hold_secrets(name, rest)
                });
        }
    }
}

impl SecretMatchKeyword {
    fn keyword_matches_at(&self, text: &[u8], at: usize) -> bool {
        let (before, rest) = text.split_at_checked(at).unwrap_or_default();
        let Some((found, after)) = rest.split_at_checked(self.text.len()) else {
            return false;
        };
        found.eq_ignore_ascii_case(self.text.as_bytes())
            && after
                .get(..usize::from(self.tail))
                .is_some_and(|tail| tail.iter().all(|byte| is_secret_token_byte(*byte)))
            && (!self.assigned || is_secret_name_assigned(before, after))
    }
}

/// Whether a name of which this is the end is assigned something, or is that of an option. What
/// belongs to the name behind the keyword is not read: a few letters may.
fn is_secret_name_assigned(before: &[u8], after: &[u8]) -> bool {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'-');
    let name = after.iter().take(MAX_NAME_REST).take_while(in_name).count();
    let after = after.get(name..).unwrap_or_default();
    let quote = after
        .iter()
        .take_while(|byte| b"\\\"'".contains(byte))
        .count();
    let after = after.get(quote..).unwrap_or_default();
    let sign = after.trim_ascii_start();
    if matches!(sign.first(), Some(b':' | b'=')) {
        return true;
    }
    let start = before.iter().rev().take_while(in_name).last();
    sign.len() < after.len() && start == Some(&b'-')
}

fn is_secret_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-+/=.~%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    /// What makes each program's arguments worth reading.
    const SOME_WORDS: &str = "login sql auth AUTH requirepass password passwd bearer obscure unlock add_user \
        change_password authenticate_user alias config host add set secret create --encrypt user_pw \
        owner_pw input_pw add-generic-password add-internet-password unlock-keychain create-keychain --secret \
        -p x -a x -P -k -w -U -u -A -pw -upw -ap -passwd -storepass --pass --creds --user --stdin -i -S stdin \
        /p: --passphrase --passphrase-fd --admin-password --http-password --password --password-stdin \
        --with-token --from-literal";

    #[test]
    fn every_keyword_is_found_in_any_letter_case() {
        for (_, keyword) in &KEYWORDS {
            let tail = "0".repeat(usize::from(keyword.tail));
            let tail = if keyword.assigned { "s\\\" : x" } else { &tail };
            for text in [keyword.text.to_owned(), keyword.text.to_uppercase()] {
                let text = format!("words before {text}{tail} words after");
                let hits = RedactionKeywordHits::keyword_hits_in_text(text.as_bytes());
                assert!(
                    hits.rule_numbers_with_keyword().contains(&keyword.rule),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn names_count_where_something_is_assigned() {
        for (text, expected) in [
            ("token=x", true),
            ("tokens : x", true),
            ("{\\\"access_key_id\\\": 1", true),
            ("--api-token x", true),
            ("--token\n", true),
            ("the token is x", false),
            ("a-token x", false),
            ("token", false),
        ] {
            let hits = RedactionKeywordHits::keyword_hits_in_text(text.as_bytes());
            assert_eq!(
                !hits.rule_numbers_with_keyword().is_empty(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn every_program_is_found_where_a_command_can_begin() {
        for (_, name) in &PROGRAM_NAMES {
            for text in [
                format!("{name} {SOME_WORDS}"),
                format!("a && /usr/bin/{name} {SOME_WORDS}"),
            ] {
                assert!(
                    RedactionKeywordHits::keyword_hits_in_text(text.as_bytes()).programs,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn ordinary_words_are_no_keywords() {
        let text = "Compiling core v0.1.0\nwarning: unused import: `std::fs`\nhttps://docs.rs/a";
        let hits = RedactionKeywordHits::keyword_hits_in_text(text.as_bytes());
        assert!(!hits.programs);
        let names: Vec<_> = hits
            .rule_numbers_with_keyword()
            .iter()
            .map(|rule| RULES[usize::from(*rule)].id)
            .collect();
        assert_eq!(names, ["url-password"]);
    }
}
