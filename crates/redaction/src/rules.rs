//! Applies the rules. Each rule has a pattern for one form of secret. The rules are data in
//! `rules/`; patterns are compiled on first use.

use std::sync::OnceLock;

use regex::bytes::{Captures, Match, Regex, RegexBuilder};

use crate::command_lines::program_secrets::{ProgramSecretOption, SecretArgumentPlace};
use crate::keywords::SecretMatchKeyword;
use crate::redaction_marks;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// A known form of secrets.
#[derive(Debug)]
pub(crate) struct SecretRule {
    /// The kind in its mark: `[redacted:ID]`.
    pub(crate) id: &'static str,
    /// The secret is the first group that participates in the match, or the whole match without
    /// groups.
    pub(crate) pattern: &'static str,
    check: SecretMatchCondition,
    /// Least entropy of a secret, in bits per byte.
    min_entropy: f64,
    /// Patterns of matches that are no secrets.
    except: &'static [&'static str],
    compiled: OnceLock<Option<CompiledSecretRule>>,
}

/// A further condition for a match.
#[derive(Debug, Clone, Copy)]
enum SecretMatchCondition {
    Any,
    HasDigit,
    Value,
    NotAPath,
    Token,
}

#[derive(Debug)]
struct CompiledSecretRule {
    pattern: Regex,
    except: Vec<Regex>,
}

impl SecretRule {
    const fn new(
        id: &'static str,
        pattern: &'static str,
        check: SecretMatchCondition,
        min_entropy: f64,
        except: &'static [&'static str],
    ) -> Self {
        Self {
            id,
            pattern,
            check,
            min_entropy,
            except,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the text with a mark in place of each secret; `None` if there is none.
    pub(crate) fn redact_secrets_matching_rule(
        &self,
        text: &[u8],
        told: &mut dyn FnMut(&[u8]),
    ) -> Option<Vec<u8>> {
        let compiled = self
            .compiled
            .get_or_init(|| self.compile_secret_rule())
            .as_ref()?;
        let found = compiled.pattern.captures_iter(text);
        let secrets = found.filter_map(|found| {
            let secret = captured_secret(&found)?;
            self.is_rule_match_secret(compiled, secret.as_bytes())
                .then(|| secret.range())
        });
        redaction_marks::replace_secrets_with_marks(
            text,
            secrets.map(|range| (range, self.id)),
            told,
        )
    }

    fn compile_secret_rule(&self) -> Option<CompiledSecretRule> {
        // Patterns match bytes: the Unicode tables would make each of them many times larger.
        let regex = |pattern: &str| RegexBuilder::new(pattern).unicode(false).build();
        Some(CompiledSecretRule {
            // The rules are constants that tests compile. At run time a broken one is skipped, not
            // fatal.
            pattern: regex(self.pattern).ok()?,
            except: self
                .except
                .iter()
                .filter_map(|pattern| regex(pattern).ok())
                .collect(),
        })
    }

    fn is_rule_match_secret(&self, compiled: &CompiledSecretRule, secret: &[u8]) -> bool {
        let checked = match self.check {
            SecretMatchCondition::Any => true,
            SecretMatchCondition::HasDigit => has_digit(secret),
            SecretMatchCondition::Value => is_literal_secret(secret),
            SecretMatchCondition::NotAPath => is_literal_secret(secret) && !looks_like_path(secret),
            SecretMatchCondition::Token => looks_like_token(secret),
        };
        checked
            && (self.min_entropy == 0.0 || shannon_entropy(secret) > self.min_entropy)
            && !compiled.except.iter().any(|except| except.is_match(secret))
    }
}

fn captured_secret<'t>(found: &Captures<'t>) -> Option<Match<'t>> {
    // Alternatives of a pattern have groups of their own, of which one participates.
    let group = found.iter().skip(1).flatten().next();
    group.or_else(|| found.get(0))
}

fn has_digit(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
}

/// Returns whether a value is literal, and not a variable or a placeholder of a shell or a
/// template.
pub(crate) fn is_literal_secret(secret: &[u8]) -> bool {
    !matches!(secret.first(), None | Some(b'$' | b'{' | b'`' | b'<'))
}

fn looks_like_path(secret: &[u8]) -> bool {
    matches!(secret.first(), Some(b'/' | b'~' | b'.'))
}

/// Returns whether a value looks like a token. Code often assigns ordinary words and numbers to
/// names such as `token`, so a digit or a certain length is required.
fn looks_like_token(secret: &[u8]) -> bool {
    is_literal_secret(secret)
        && (has_digit(secret) || secret.len() >= 24)
        && !secret
            .iter()
            .all(|byte| byte.is_ascii_digit() || b"._,".contains(byte))
}

/// Returns the Shannon entropy in bits per byte.
#[expect(
    clippy::cast_precision_loss,
    reason = "a secret is shorter than 2^52 bytes"
)]
fn shannon_entropy(secret: &[u8]) -> f64 {
    let mut counts = [0_usize; 256];
    for byte in secret {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let length = secret.len() as f64;
    let share = |count: &usize| *count as f64 / length;
    let shares = counts.iter().filter(|count| **count > 0).map(share);
    -shares.map(|share| share * share.log2()).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_compiled() {
        for rule in &RULES {
            let compiled = rule.compile_secret_rule();
            let except = compiled.map(|compiled| compiled.except.len());
            assert_eq!(except, Some(rule.except.len()), "{}", rule.id);
        }
    }

    #[test]
    fn the_kept_rules_are_all_there() {
        assert!(RULES.len() > 220, "{}", RULES.len());
    }

    #[test]
    fn entropy_is_that_of_the_bytes() {
        assert_eq!(shannon_entropy(b"aaaa"), 0.0);
        assert_eq!(shannon_entropy(b"abab"), 1.0);
        assert_eq!(shannon_entropy(b"abcdefgh"), 3.0);
    }
}
