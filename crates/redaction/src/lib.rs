//! Redacts secrets in text before anything is stored: known forms of tokens, passwords on command
//! lines, and the values of environment variables with secret names. All functions are pure.
//! Decisions never depend on redacted text: digests are taken of the original.
//!
//! Most text holds no secret, and a hook must stay quick. One pass over a text finds the rules
//! that can match it at all (`keywords`); only those are compiled and applied (`rules`).

mod command_lines;
mod escapes;
mod keywords;
mod redaction_marks;
mod rules;
mod trigram;
mod variables;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;

use memchr::{memchr, memmem};

use command_lines::QuotedWordsToParseAsScripts;
use keywords::RedactionKeywordHits;
use rules::RULES;
use variables::is_secret_variable;

/// Shortest value of a variable that is redacted everywhere; shorter ones may be ordinary words.
const SHORTEST_VALUE: usize = 8;
/// Most passes over a text: redacting one secret may reveal another that it was part of.
const ROUNDS: u32 = 4;

/// Called with each secret that is redacted.
type SecretFoundCallback<'a> = dyn FnMut(&[u8]) + 'a;

/// Redacts secrets, including the values of an environment's secret variables.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Names and values of secret variables, longest value first, since one may be part of another.
    values: Vec<(String, Vec<u8>)>,
}

impl Redactor {
    /// Collects the values of variables with secret names.
    pub fn new_from_secret_variables(env: &BTreeMap<OsString, OsString>) -> Self {
        let mut values = Vec::new();
        for (name, value) in env {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            if !is_secret_variable(name) {
                continue;
            }
            // The whole value, its form within JSON, and each of its lines, since output is
            // processed line by line.
            let quoted = serde_json::to_string(value.trim()).unwrap_or_default();
            let escaped = quoted
                .get(1..quoted.len().saturating_sub(1))
                .unwrap_or_default();
            let forms = [value, escaped].into_iter().chain(value.lines());
            for value in forms.map(str::trim) {
                if value.len() >= SHORTEST_VALUE {
                    values.push((name.to_owned(), value.as_bytes().to_vec()));
                }
            }
        }
        values.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        // Equal values are adjacent after the sort.
        values.dedup_by(|(_, a), (_, b)| a == b);
        Self { values }
    }

    /// Returns the text without its secrets.
    pub fn redact_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redact_text_reporting_secrets(text, &mut |_| {})
    }

    /// Like [`Self::redact_text`]; `told` is called with each original secret.
    pub fn redact_text_reporting_secrets<'t>(
        &self,
        text: &'t str,
        told: &mut SecretFoundCallback<'_>,
    ) -> Cow<'t, str> {
        match self.redact_bytes_reporting_secrets(text.as_bytes(), told) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(lossy_text_from_bytes(bytes)),
        }
    }

    /// Like [`Self::redact_text`], for any bytes; `None` if there is nothing to redact.
    pub fn redact_bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.redact_bytes_reporting_secrets(text, &mut |_| {})
    }

    /// Redacts the secrets among the words of a command.
    pub fn redact_command_words(&self, words: &mut [String]) {
        let together = words.join(" ");
        let hits = RedactionKeywordHits::secret_rules_with_keywords_in_text(together.as_bytes());
        // Parsed word by word first: in the joined text, quotes and blanks within words are lost.
        if hits.programs {
            command_lines::redact_command_words(words);
        }
        if self.redact_bytes(together.as_bytes()).is_none() {
            return;
        }
        let mut flag = String::new();
        for word in words {
            // The original word: a redacted flag would not be recognized.
            let before = std::mem::replace(&mut flag, word.clone());
            if let Cow::Owned(hidden) = self.redact_text(word) {
                *word = hidden;
            } else if before.starts_with('-') {
                let pair = format!("{before} {word}");
                // Only the word is replaced: the flag itself is no secret.
                if let Cow::Owned(hidden) = self.redact_text(&pair)
                    && let Some(hidden) = hidden.strip_prefix(&format!("{before} "))
                {
                    *word = hidden.to_owned();
                }
            }
        }
    }

    fn redact_bytes_reporting_secrets(
        &self,
        text: &[u8],
        told: &mut SecretFoundCallback<'_>,
    ) -> Option<Vec<u8>> {
        let mut hidden: Option<Vec<u8>> = None;
        for _ in 0..ROUNDS {
            match self.redact_once(hidden.as_deref().unwrap_or(text), 0, told) {
                Some(done) => hidden = Some(done),
                None => break,
            }
        }
        hidden
    }

    fn redact_once(
        &self,
        text: &[u8],
        depth: u32,
        told: &mut SecretFoundCallback<'_>,
    ) -> Option<Vec<u8>> {
        let mut work = TextUnderRedaction { text, hidden: None };
        // Known values first: they are certain, and their marks protect them from the rules below.
        for (name, value) in &self.values {
            work.apply_redaction_pass(|now| redact_known_value(now, value, name, told));
        }
        let hits = RedactionKeywordHits::secret_rules_with_keywords_in_text(text);
        let has_strings = depth < escapes::MAX_DEPTH && memchr(b'\\', text).is_some();
        // No keyword, unless it is written with Unicode escapes (`\u0070assword`).
        if hits.is_empty() && !(has_strings && memmem::find(text, b"\\u").is_some()) {
            return work.hidden;
        }
        let is_json = escapes::looks_like_json(text);
        // JSON is unescaped before the rules run: on escaped text they could match across an escape
        // and break the document.
        if has_strings && is_json {
            work.apply_redaction_pass(|now| self.redact_escaped_strings(now, depth, told));
        }
        if hits.programs {
            let quoted = match is_json {
                true => QuotedWordsToParseAsScripts::WithoutEscapes,
                false => QuotedWordsToParseAsScripts::All,
            };
            work.apply_redaction_pass(|now| {
                command_lines::redact_command_line_passwords(now, quoted, told)
            });
        }
        for rule in hits.secret_rules_with_keyword_in_text() {
            if let Some(rule) = RULES.get(usize::from(*rule)) {
                work.apply_redaction_pass(|now| rule.redact_secrets_matching_rule(now, told));
            }
        }
        // Text that is no JSON as a whole may still contain strings with escapes.
        if has_strings && !is_json {
            work.apply_redaction_pass(|now| self.redact_escaped_strings(now, depth, told));
        }
        work.hidden
    }

    fn redact_escaped_strings(
        &self,
        text: &[u8],
        depth: u32,
        told: &mut SecretFoundCallback<'_>,
    ) -> Option<Vec<u8>> {
        escapes::rewrite_escaped_json_strings(text, &mut |plain| {
            let hidden = self.redact_once(plain.as_bytes(), depth + 1, told)?;
            Some(lossy_text_from_bytes(hidden))
        })
    }
}

/// A text and what has been hidden in it so far.
struct TextUnderRedaction<'t> {
    text: &'t [u8],
    hidden: Option<Vec<u8>>,
}

impl TextUnderRedaction<'_> {
    fn apply_redaction_pass(&mut self, redacted: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        if let Some(hidden) = redacted(self.hidden.as_deref().unwrap_or(self.text)) {
            self.hidden = Some(hidden);
        }
    }
}

fn redact_known_value(
    text: &[u8],
    value: &[u8],
    name: &str,
    told: &mut SecretFoundCallback<'_>,
) -> Option<Vec<u8>> {
    let found = memmem::find_iter(text, value).map(|at| (at..at + value.len(), name));
    redaction_marks::replace_secrets_with_marks(text, found, told)
}

fn lossy_text_from_bytes(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
