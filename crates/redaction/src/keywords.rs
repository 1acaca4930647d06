//! Finds the rules that can match a text at all. Every match of a rule contains one of its
//! keywords. One pass over the text finds them with a map indexed by three bytes, so that text
//! without a keyword costs a few instructions a byte and no pattern is compiled.

use crate::command_lines::{self, program_secrets::ProgramSecretOption};
use crate::redaction_marks;
use crate::rules::{KEYWORDS, MAP, PROGRAM_NAMES};
use crate::trigram;

/// Longest rest of a name after a keyword, such as `_id` in `access_key_id`.
const MAX_NAME_REST: usize = 8;

/// A text in lower case that matches of a rule contain.
#[derive(Debug)]
pub(crate) struct SecretMatchKeyword {
    pub(crate) text: &'static str,
    /// Number of token bytes that must follow it.
    pub(crate) tail: u8,
    /// Whether it must be part of a name to which something is assigned, or of an option's name.
    pub(crate) assigned: bool,
    pub(crate) rule: u16,
}

/// The rules and programs that a text names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RedactionKeywordHits {
    rules: Vec<u16>,
    /// Whether the text names a program that takes passwords.
    pub(crate) programs: bool,
}

impl RedactionKeywordHits {
    /// Finds the keywords of a text outside of its marks, whose kinds are keywords of the rules.
    pub(crate) fn secret_rules_with_keywords_in_text(text: &[u8]) -> Self {
        let mut hits = Self::default();
        for part in redaction_marks::text_outside_redaction_marks(text) {
            hits.scan_for_keywords(part);
        }
        // In the order of the table, not of the text: the result must not depend on which keyword
        // comes first.
        hits.rules.sort_unstable();
        hits
    }

    fn scan_for_keywords(&mut self, text: &[u8]) {
        let mut place = 0;
        for (at, byte) in text.iter().enumerate() {
            place = trigram::trigram_index_after_byte(place, *byte);
            // The map has false positives, since other bytes can share an index; the keyword is
            // compared below.
            if trigram::trigram_map_contains_index(&MAP, place) && at >= 2 {
                self.record_rules_with_keyword_at(text, at - 2, place);
            }
        }
    }

    /// Returns the numbers of the rules, in order.
    pub(crate) fn secret_rules_with_keyword_in_text(&self) -> &[u16] {
        &self.rules
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.programs
    }

    fn record_rules_with_keyword_at(&mut self, text: &[u8], at: usize, place: u16) {
        let rest = text.get(at..).unwrap_or_default();
        let first = KEYWORDS.partition_point(|(hash, _)| *hash < place);
        let same = KEYWORDS.get(first..).unwrap_or_default().iter();
        for (_, keyword) in same.take_while(|(hash, _)| *hash == place) {
            if !self.rules.contains(&keyword.rule) && keyword.keyword_matches_at(text, at) {
                self.rules.push(keyword.rule);
            }
        }
        // One program is enough: the command lines are then parsed as a whole.
        if !self.programs {
            let first = PROGRAM_NAMES.partition_point(|(hash, _)| *hash < place);
            let same = PROGRAM_NAMES.get(first..).unwrap_or_default().iter();
            self.programs = same
                .take_while(|(hash, _)| *hash == place)
                .any(|(_, name)| {
                    ProgramSecretOption::is_program_named_at_offset(name, text, at)
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

/// Returns whether the name around a keyword is assigned something, or is an option with a value. A
/// few letters of the name may follow the keyword.
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
                let hits =
                    RedactionKeywordHits::secret_rules_with_keywords_in_text(text.as_bytes());
                assert!(
                    hits.secret_rules_with_keyword_in_text()
                        .contains(&keyword.rule),
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
            let hits = RedactionKeywordHits::secret_rules_with_keywords_in_text(text.as_bytes());
            assert_eq!(
                !hits.secret_rules_with_keyword_in_text().is_empty(),
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
                    RedactionKeywordHits::secret_rules_with_keywords_in_text(text.as_bytes())
                        .programs,
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn ordinary_words_are_no_keywords() {
        let text = "Compiling core v0.1.0\nwarning: unused import: `std::fs`\nhttps://docs.rs/a";
        let hits = RedactionKeywordHits::secret_rules_with_keywords_in_text(text.as_bytes());
        assert!(!hits.programs);
        let names: Vec<_> = hits
            .secret_rules_with_keyword_in_text()
            .iter()
            .map(|rule| RULES[usize::from(*rule)].id)
            .collect();
        assert_eq!(names, ["url-password"]);
    }
}
