//! Hides secrets in text before anything is kept: known forms of tokens, passwords on command
//! lines, and the values of environment variables whose names say that they are secret. Pure
//! functions of text and values. What decides never reads the result: digests are taken of the
//! text as it was.
//!
//! Most text holds no secret, and a hook must stay quick. One pass over a text finds the rules
//! that can match it at all (`keywords`); only those are compiled and applied (`rules`).

mod command_lines;
mod escapes;
mod keywords;
mod marks;
mod rules;
mod trigram;
mod variables;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;

use memchr::{memchr, memmem};

use command_lines::QuotedScripts;
use keywords::KeywordHits;
use rules::RULES;
use variables::is_secret_variable;

/// A shorter value of a variable is a word of everyday: it is not hidden wherever it stands.
const SHORTEST_VALUE: usize = 8;
/// A secret that is hidden may uncover another one, which it was a part of.
const ROUNDS: u32 = 4;

/// Hears of what is hidden.
type Told<'a> = dyn FnMut(&[u8]) + 'a;

/// Knows the secrets of an environment.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Variables and what hides in them; longest value first: one may be part of another.
    values: Vec<(String, Vec<u8>)>,
}

impl Redactor {
    /// The values of variables with secret-looking names.
    pub fn of_environment(env: &BTreeMap<OsString, OsString>) -> Self {
        let mut values = Vec::new();
        for (name, value) in env {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            if !is_secret_variable(name) {
                continue;
            }
            // Whole, as it stands within JSON, and line by line: output is read in lines.
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
        values.dedup_by(|(_, a), (_, b)| a == b);
        Self { values }
    }

    /// The text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.text_telling(text, &mut |_| {})
    }

    /// The same; `told` gets each secret as it was.
    pub fn text_telling<'t>(&self, text: &'t str, told: &mut Told<'_>) -> Cow<'t, str> {
        match self.bytes_telling(text.as_bytes(), told) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(into_text(bytes)),
        }
    }

    /// The same for bytes of any kind; `None` if there is nothing to hide.
    pub fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.bytes_telling(text, &mut |_| {})
    }

    /// Hides the secrets among the words of a command.
    pub fn words(&self, words: &mut [String]) {
        let together = words.join(" ");
        let hits = KeywordHits::in_text(together.as_bytes());
        if hits.programs {
            command_lines::redact_words(words);
        }
        if self.bytes(together.as_bytes()).is_none() {
            return;
        }
        let mut flag = String::new();
        for word in words {
            let before = std::mem::replace(&mut flag, word.clone());
            if let Cow::Owned(hidden) = self.text(word) {
                *word = hidden;
            } else if before.starts_with('-') {
                let pair = format!("{before} {word}");
                // The flag itself is no secret: what was hidden is the word.
                if let Cow::Owned(hidden) = self.text(&pair)
                    && let Some(hidden) = hidden.strip_prefix(&format!("{before} "))
                {
                    *word = hidden.to_owned();
                }
            }
        }
    }

    fn bytes_telling(&self, text: &[u8], told: &mut Told<'_>) -> Option<Vec<u8>> {
        let mut hidden: Option<Vec<u8>> = None;
        for _ in 0..ROUNDS {
            match self.one_round(hidden.as_deref().unwrap_or(text), 0, told) {
                Some(done) => hidden = Some(done),
                None => break,
            }
        }
        hidden
    }

    fn one_round(&self, text: &[u8], depth: u32, told: &mut Told<'_>) -> Option<Vec<u8>> {
        let mut work = Work { text, hidden: None };
        for (name, value) in &self.values {
            work.put(|now| without_value(now, value, name, told));
        }
        let hits = KeywordHits::in_text(text);
        let has_strings = depth < escapes::DEEPEST && memchr(b'\\', text).is_some();
        // A keyword may be written in escapes of Unicode.
        if hits.is_empty() && !(has_strings && memmem::find(text, b"\\u").is_some()) {
            return work.hidden;
        }
        let is_json = escapes::is_json(text);
        if has_strings && is_json {
            work.put(|now| self.strings(now, depth, told));
        }
        if hits.programs {
            let quoted = match is_json {
                true => QuotedScripts::WithoutEscapes,
                false => QuotedScripts::All,
            };
            work.put(|now| command_lines::redacted(now, quoted, told));
        }
        for rule in hits.rules() {
            if let Some(rule) = RULES.get(usize::from(*rule)) {
                work.put(|now| rule.redacted(now, told));
            }
        }
        if has_strings && !is_json {
            work.put(|now| self.strings(now, depth, told));
        }
        work.hidden
    }

    fn strings(&self, text: &[u8], depth: u32, told: &mut Told<'_>) -> Option<Vec<u8>> {
        escapes::with_strings(text, &mut |plain| {
            let hidden = self.one_round(plain.as_bytes(), depth + 1, told)?;
            Some(into_text(hidden))
        })
    }
}

/// A text and what has been hidden in it so far.
struct Work<'t> {
    text: &'t [u8],
    hidden: Option<Vec<u8>>,
}

impl Work<'_> {
    fn put(&mut self, redacted: impl FnOnce(&[u8]) -> Option<Vec<u8>>) {
        if let Some(hidden) = redacted(self.hidden.as_deref().unwrap_or(self.text)) {
            self.hidden = Some(hidden);
        }
    }
}

fn without_value(text: &[u8], value: &[u8], name: &str, told: &mut Told<'_>) -> Option<Vec<u8>> {
    let found = memmem::find_iter(text, value).map(|at| (at..at + value.len(), name));
    marks::replaced(text, found, told)
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests;
