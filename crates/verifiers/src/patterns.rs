//! Regular expressions as constants. Each has a literal that every match contains: most lines of
//! most outputs are dismissed by the literals alone.

use std::sync::OnceLock;

use regex::{Captures, Regex};

/// A regular expression, compiled when first needed.
pub(crate) struct LazyRegex {
    literal: &'static str,
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl LazyRegex {
    /// `literal` must be part of every text that `text` matches.
    pub(crate) const fn new(literal: &'static str, text: &'static str) -> Self {
        Self {
            literal,
            text,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the match in `line`, if there is one.
    pub(crate) fn regex_captures<'t>(&self, line: &'t str) -> Option<Captures<'t>> {
        if line.contains(self.literal) {
            self.compiled_regex().captures(line)
        } else {
            None
        }
    }

    /// Returns whether it matches in `line`.
    pub(crate) fn regex_matches_in_line(&self, line: &str) -> bool {
        line.contains(self.literal) && self.compiled_regex().is_match(line)
    }

    /// Returns every match in `text`.
    pub(crate) fn all_regex_captures<'t>(&self, text: &'t str) -> Vec<Captures<'t>> {
        // Whole texts are searched here, in which the literal would nearly always be found.
        self.compiled_regex().captures_iter(text).collect()
    }

    /// Returns `text` with all matches replaced.
    pub(crate) fn replace_all_regex_matches(&self, text: &str, with: &str) -> String {
        self.compiled_regex().replace_all(text, with).into_owned()
    }

    #[expect(
        clippy::expect_used,
        reason = "patterns are literals of this crate; each is compiled by a test"
    )]
    fn compiled_regex(&self) -> &Regex {
        self.compiled
            .get_or_init(|| Regex::new(self.text).expect("a literal pattern"))
    }
}

/// Returns the text of a group; empty if it took no part in the match.
pub(crate) fn capture_group_text<'t>(captures: &Captures<'t>, index: usize) -> &'t str {
    captures.get(index).map_or("", |found| found.as_str())
}

/// A filter that dismisses, in one pass, lines that contain none of the literals of many patterns.
pub(crate) struct LiteralPrefilter(OnceLock<Regex>);

impl LiteralPrefilter {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns whether `line` contains the literal of any of `patterns`, which must be the same
    /// ones each time.
    #[expect(
        clippy::expect_used,
        reason = "escaped literals are always a regular expression"
    )]
    pub(crate) fn line_may_match_patterns<'p>(
        &self,
        line: &str,
        patterns: impl FnOnce() -> Vec<&'p LazyRegex>,
    ) -> bool {
        // An alternation of literals compiles to one multi-substring search.
        let gate = self.0.get_or_init(|| {
            let literals: Vec<String> = patterns()
                .iter()
                .map(|pattern| regex::escape(pattern.literal))
                .collect();
            Regex::new(&literals.join("|")).expect("escaped literals")
        });
        gate.is_match(line)
    }
}
