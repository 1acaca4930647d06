//! Adds up what well-known test runners say: how much ran, and whether it failed. An exit code of 0
//! is no pass if nothing ran (vacuous) or if the runner itself says that it failed (`cargo test ||
//! true`, `pytest | tee log`).

use std::collections::BTreeMap;

use checkrein_core::evidence::TestCounts;
use checkrein_core::exit_status::TestRunner;

use super::runner_lines::RunnerLineMeaning::{Empty, Fails, Groups, More, MoreWords, One, Words};
use super::runner_lines::TestCountKind::{Beyond, Failed, Passed, Ran, Skipped, Total};
use super::runner_lines::{
    LIMITS, RUNNER_LINES, RunnerLineMeaning, RunnerLinePattern, TestCountKind, runner_name,
};
use crate::patterns::{LiteralPrefilter, capture_group_text};

/// Everything that one runner said.
#[derive(Debug, Clone, Default)]
struct TestRunnerTally {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Its own sums; a runner prints one of the two.
    total: u64,
    ran: u64,
    /// Whether it counts passed tests, or only all tests.
    counts_passed: bool,
    /// How often it finished.
    summaries: u32,
    /// It said explicitly that it failed.
    ever_failed: bool,
    /// Its last statement was that it failed: a retry may make up for an earlier failure.
    failed_last: bool,
    /// It had nothing to run, at least once.
    said_nothing: bool,
}

impl TestRunnerTally {
    /// Adds a count and returns whether it is one of failures.
    fn add_test_count(&mut self, part: TestCountKind, number: u64) -> bool {
        // Such an error is no test, so the total is raised by it, or the sum would not add up.
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

    fn tally_to_test_counts(&self) -> TestCounts {
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

    /// Returns whether its counts add up to its own sum.
    fn has_consistent_test_counts(&self) -> bool {
        let executed = self.passed.saturating_add(self.failed);
        let all = executed.saturating_add(self.skipped);
        // A runner that does not count passes has nothing to compare.
        let total = self.total == 0 || !self.counts_passed || self.total == all;
        let ran = self.ran == 0 || self.ran == executed;
        // A runner that failed must name at least one failure.
        total && ran && (!self.ever_failed || self.failed > 0)
    }
}

/// Collects what runners say over the lines of an output.
#[derive(Debug, Default)]
pub(crate) struct TestRunnerSummaries {
    heard: bool,
    said_nothing: bool,
    by_runner: BTreeMap<&'static str, TestRunnerTally>,
}

impl TestRunnerSummaries {
    /// Takes the next line.
    pub(crate) fn tally_test_summary_line(&mut self, line: &str) {
        static PREFILTER: LiteralPrefilter = LiteralPrefilter::new();
        if !PREFILTER.line_may_match_patterns(line, || {
            RUNNER_LINES
                .iter()
                .map(|RunnerLinePattern(_, pattern, _)| pattern)
                .collect()
        }) {
            return;
        }
        for RunnerLinePattern(name, pattern, meaning) in &RUNNER_LINES {
            let Some(captures) = pattern.regex_captures(line) else {
                continue;
            };
            self.tally_runner_summary_line(name, meaning, &captures);
            // One row per line: a later, wider pattern of the same runner must not count it twice.
            return;
        }
    }

    fn tally_runner_summary_line(
        &mut self,
        name: &'static str,
        meaning: &RunnerLineMeaning,
        captures: &regex::Captures<'_>,
    ) {
        let tally = self.by_runner.entry(name).or_default();
        let mut failed = false;
        match meaning {
            Words(words) | MoreWords(words) => {
                for (number, part) in parse_test_counts(capture_group_text(captures, 1), words) {
                    failed |= tally.add_test_count(part, number);
                }
            }
            Groups(parts) | More(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let number = capture_group_text(captures, at + 1).parse().unwrap_or(0);
                    failed |= tally.add_test_count(*part, number);
                }
            }
            One => {
                tally.add_test_count(Passed, 1);
            }
            Fails => failed = true,
            Empty => {
                tally.said_nothing = true;
                self.heard = true;
                self.said_nothing = true;
                return;
            }
        }
        // Only these lines are summaries; the others add to one that another line began.
        let begins = matches!(meaning, Words(_) | Groups(_) | One);
        if begins {
            self.heard = true;
            tally.summaries = tally.summaries.saturating_add(1);
        }
        tally.ever_failed |= failed;
        // A line that only adds to a summary can say that the runner failed, never that it did not.
        if begins || failed {
            tally.failed_last = failed;
        }
    }

    /// Returns the tests by outcome, over all runners; `None` if none was recognised.
    pub(crate) fn total_test_counts(&self) -> Option<TestCounts> {
        let all = self
            .by_runner
            .values()
            .map(TestRunnerTally::tally_to_test_counts);
        self.heard
            .then(|| all.fold(TestCounts::default(), TestCounts::add_test_counts))
    }

    /// Returns whether the counts of each runner add up.
    pub(crate) fn has_consistent_test_counts(&self) -> bool {
        self.by_runner
            .values()
            .all(TestRunnerTally::has_consistent_test_counts)
    }

    /// Returns whether a runner was recognised and none ran anything.
    pub(crate) fn has_run_no_tests(&self) -> bool {
        self.heard && self.executed_test_count() == 0
    }

    /// Returns whether a runner said explicitly that it had nothing to run, and none ran anything.
    pub(crate) fn reports_nothing_to_run(&self) -> bool {
        self.said_nothing && self.executed_test_count() == 0
    }

    fn executed_test_count(&self) -> u64 {
        self.total_test_counts()
            .map_or(0, |counts| counts.executed_test_count())
    }

    /// Returns whether a runner says that it failed. In a command like `a; b` an earlier failure is
    /// as good as masked; in one with `||` a later run of the same runner may have made up for it.
    pub(crate) fn runner_reports_failure(&self, run: &str) -> bool {
        let sequence = run.contains([';', '\n']) && !run.contains("||");
        self.by_runner.values().any(|tally| match sequence {
            true => tally.ever_failed,
            false => tally.failed_last,
        })
    }

    /// Returns whether a runner said at any time that it failed.
    pub(crate) fn any_runner_reported_failure(&self) -> bool {
        self.by_runner.values().any(|tally| tally.ever_failed)
    }

    /// Returns whether this runner ran at least one test. `None` stands for any runner.
    pub(crate) fn runner_ran_any_test(&self, runner: Option<TestRunner>) -> bool {
        let tally = runner.map(|runner| self.by_runner.get(runner_name(runner)));
        match tally {
            Some(tally) => {
                tally.is_some_and(|tally| tally.tally_to_test_counts().executed_test_count() > 0)
            }
            None => self.executed_test_count() > 0,
        }
    }

    /// Returns whether this runner finished this many times, with at least one test in all and
    /// without a failure. `None` stands for any runner.
    pub(crate) fn runner_reports_passed_tests(
        &self,
        runner: Option<TestRunner>,
        times: u32,
    ) -> bool {
        // A missed limit of coverage is a failure, and nothing tells which runner it belongs to.
        if self.by_runner.contains_key(LIMITS) {
            return false;
        }
        let tally = runner.and_then(|runner| self.by_runner.get(runner_name(runner)));
        match (runner, tally) {
            (Some(_), Some(tally)) => {
                !tally.ever_failed
                    // With several calls of one runner, one that had nothing to run would hide
                    // behind the others.
                    && !tally.said_nothing
                    && tally.summaries >= times
                    && tally.tally_to_test_counts().executed_test_count() > 0
            }
            (Some(_), None) => false,
            (None, _) => !self.any_runner_reported_failure() && self.executed_test_count() > 0,
        }
    }
}

/// Returns pairs of a number and what it counts: `3 passed`, `skipped=2`, `(4)`.
fn parse_test_counts(text: &str, words: &[(&str, TestCountKind)]) -> Vec<(u64, TestCountKind)> {
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
        // `failures=1` has its word before the number, `1 failed` after it.
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
