//! What well-known runners say of themselves: how much ran, and whether it failed. An
//! exit code of 0 is no pass if nothing ran (vacuous) or if the runner itself says that
//! it failed (`cargo test || true`, `pytest | tee log`).

use std::collections::BTreeMap;

use checkrein_core::evidence::TestCounts;
use checkrein_core::exit_status::TestRunner;

use super::runner_lines::Meaning::{Empty, Fails, Groups, More, MoreWords, One, Words};
use super::runner_lines::Part::{Beyond, Failed, Passed, Ran, Skipped, Total};
use super::runner_lines::{LIMITS, Meaning, Part, ROWS, Row, name_of};
use crate::patterns::{Gate, group};

/// What one runner said in all.
#[derive(Debug, Clone, Default)]
struct RunnerTally {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// As it adds them up itself; whichever of the two it does.
    total: u64,
    ran: u64,
    /// Whether it counts what passed, or only what there was.
    counts_passed: bool,
    /// How often it came to its end.
    summaries: u32,
    /// It said in so many words that it failed.
    ever_failed: bool,
    /// The last that it said was that it failed: a retry may mend what was before.
    failed_last: bool,
    /// It had nothing to run, at least once.
    said_nothing: bool,
}

impl RunnerTally {
    /// Takes a number; whether it is one of a failure.
    fn add(&mut self, part: Part, number: u64) -> bool {
        if part == Beyond {
            self.total = self.total.saturating_add(number);
        }
        let sum = match part {
            Passed => &mut self.passed,
            Failed | Beyond => &mut self.failed,
            Skipped => &mut self.skipped,
            Total => &mut self.total,
            Ran => &mut self.ran,
        };
        *sum = sum.saturating_add(number);
        self.counts_passed |= part == Passed;
        matches!(part, Failed | Beyond) && number > 0
    }

    fn counts(&self) -> TestCounts {
        let there = self.total.max(self.ran);
        let others = self.failed.saturating_add(self.skipped);
        let passed = match self.counts_passed {
            true => self.passed,
            false => there.saturating_sub(others),
        };
        TestCounts {
            passed,
            failed: self.failed,
            skipped: self.skipped,
        }
    }

    /// Whether its parts add up to what it says there was.
    fn reconciles(&self) -> bool {
        let executed = self.passed.saturating_add(self.failed);
        let all = executed.saturating_add(self.skipped);
        let total = self.total == 0 || !self.counts_passed || self.total == all;
        let ran = self.ran == 0 || self.ran == executed;
        // Who failed has to say what.
        total && ran && (!self.ever_failed || self.failed > 0)
    }
}

/// Gathers what runners say over the lines of an output.
#[derive(Debug, Default)]
pub(crate) struct RunnerSummaries {
    heard: bool,
    said_nothing: bool,
    by_runner: BTreeMap<&'static str, RunnerTally>,
}

impl RunnerSummaries {
    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &str) {
        static GATE: Gate = Gate::new();
        if !GATE.opens(line, || {
            ROWS.iter().map(|Row(_, pattern, _)| pattern).collect()
        }) {
            return;
        }
        for Row(name, pattern, meaning) in &ROWS {
            let Some(captures) = pattern.captures(line) else {
                continue;
            };
            self.take(name, meaning, &captures);
            // One row per line: a later, wider pattern of the same runner must not count it twice.
            return;
        }
    }

    fn take(&mut self, name: &'static str, meaning: &Meaning, captures: &regex::Captures<'_>) {
        let tally = self.by_runner.entry(name).or_default();
        let mut failed = false;
        match meaning {
            Words(words) | MoreWords(words) => {
                for (number, part) in numbers(group(captures, 1), words) {
                    failed |= tally.add(part, number);
                }
            }
            Groups(parts) | More(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let number = group(captures, at + 1).parse().unwrap_or(0);
                    failed |= tally.add(*part, number);
                }
            }
            One => {
                tally.add(Passed, 1);
            }
            Fails => failed = true,
            Empty => {
                tally.said_nothing = true;
                self.heard = true;
                self.said_nothing = true;
                return;
            }
        }
        let begins = matches!(meaning, Words(_) | Groups(_) | One);
        if begins {
            self.heard = true;
            tally.summaries = tally.summaries.saturating_add(1);
        }
        tally.ever_failed |= failed;
        // What only adds to a summary says that it failed, and never that it did not.
        if begins || failed {
            tally.failed_last = failed;
        }
    }

    /// Tests by outcome, over all runners; `None` if none was heard.
    pub(crate) fn counts(&self) -> Option<TestCounts> {
        let all = self.by_runner.values().map(RunnerTally::counts);
        self.heard
            .then(|| all.fold(TestCounts::default(), TestCounts::add_test_counts))
    }

    /// Whether what each says adds up.
    pub(crate) fn reconcile(&self) -> bool {
        self.by_runner.values().all(RunnerTally::reconciles)
    }

    /// A runner was heard, and none of them ran a thing.
    pub(crate) fn nothing_ran(&self) -> bool {
        self.heard && self.executed() == 0
    }

    /// A runner said in so many words that it had nothing to run, and none ran a thing.
    pub(crate) fn said_nothing_ran(&self) -> bool {
        self.said_nothing && self.executed() == 0
    }

    fn executed(&self) -> u64 {
        self.counts()
            .map_or(0, |counts| counts.executed_test_count())
    }

    /// A runner says that it failed. In a text like `a; b` an earlier failure is as good as
    /// masked; in one with `||` a later run of the same runner may have mended it.
    pub(crate) fn failed(&self, run: &str) -> bool {
        let sequence = run.contains([';', '\n']) && !run.contains("||");
        self.by_runner.values().any(|tally| match sequence {
            true => tally.ever_failed,
            false => tally.failed_last,
        })
    }

    /// A runner said at any time that it failed.
    pub(crate) fn ever_failed(&self) -> bool {
        self.by_runner.values().any(|tally| tally.ever_failed)
    }

    /// Whether this runner ran at least one test. `None`: whichever runner was heard.
    pub(crate) fn ran(&self, runner: Option<TestRunner>) -> bool {
        let tally = runner.map(|runner| self.by_runner.get(name_of(runner)));
        match tally {
            Some(tally) => tally.is_some_and(|tally| tally.counts().executed_test_count() > 0),
            None => self.executed() > 0,
        }
    }

    /// Whether this runner came to its end so many times, with at least one test in all and
    /// without a failure. `None`: whichever runner was heard.
    pub(crate) fn shows_success(&self, runner: Option<TestRunner>, times: u32) -> bool {
        // Whose limit it is nobody says.
        if self.by_runner.contains_key(LIMITS) {
            return false;
        }
        let tally = runner.and_then(|runner| self.by_runner.get(name_of(runner)));
        match (runner, tally) {
            (Some(_), Some(tally)) => {
                !tally.ever_failed
                    && !tally.said_nothing
                    && tally.summaries >= times
                    && tally.counts().executed_test_count() > 0
            }
            (Some(_), None) => false,
            (None, _) => !self.ever_failed() && self.executed() > 0,
        }
    }
}

/// Pairs of a number and what it counts: `3 passed`, `skipped=2`, `(4)`.
fn numbers(text: &str, words: &[(&str, Part)]) -> Vec<(u64, Part)> {
    let pieces: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|piece| !piece.is_empty())
        .collect();
    let part_of = |word: &str| {
        let found = words.iter().find(|(known, _)| *known == word);
        found.map(|(_, part)| *part)
    };
    let mut found = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let Ok(number) = piece.parse::<u64>() else {
            continue;
        };
        let after = pieces.get(at + 1).copied().unwrap_or("");
        let before = at.checked_sub(1).and_then(|at| pieces.get(at));
        let part = match text.contains('=') {
            true => before.and_then(|word| part_of(word)),
            false => part_of(after),
        };
        found.extend(part.map(|part| (number, part)));
    }
    found
}

#[cfg(test)]
#[path = "summaries_tests.rs"]
mod tests;
