//! What well-known runners say of themselves: how much ran, and whether it failed. An
//! exit code of 0 is no pass if nothing ran (vacuous) or if the runner itself says that
//! it failed (`cargo test || true`, `pytest | tee log`).

use std::collections::BTreeMap;

use checkrein_core::evidence::TestCounts;
use checkrein_core::exit_status::TestRunner;

use crate::patterns::{Gate, Pattern, group};

/// A runner: its name, a line's pattern, and what the groups of that pattern mean.
struct Row(&'static str, Pattern, Meaning);

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Passed,
    Failed,
    Skipped,
    /// All tests, skipped ones included, as the runner itself adds them up.
    Total,
    /// All tests that ran, as the runner itself adds them up.
    Ran,
}

use Part::{Failed, Passed, Ran, Skipped, Total};

enum Meaning {
    /// A summary in words, `3 passed, 1 failed`: which word counts what.
    Words(&'static [(&'static str, Part)]),
    /// A summary: what each group counts.
    Groups(&'static [Part]),
    /// More of a summary that another line begins: what each group counts.
    More(&'static [Part]),
    /// The same in words, `errors=1, skipped=2`.
    MoreWords(&'static [(&'static str, Part)]),
    /// One thing ran and was fine.
    One,
    /// It failed.
    Fails,
    /// There was nothing to run.
    Empty,
}

use Meaning::{Empty, Fails, Groups, More, MoreWords, One, Words};

/// The name by which a runner's rows go.
fn name_of(runner: TestRunner) -> &'static str {
    match runner {
        TestRunner::Bun => "bun",
        TestRunner::Cargo => "cargo",
        TestRunner::Ctest => "ctest",
        TestRunner::Deno => "deno",
        TestRunner::Dotnet => "dotnet",
        TestRunner::Go => "go",
        TestRunner::Jest => "jest",
        TestRunner::Maven => "maven",
        TestRunner::Mocha => "mocha",
        TestRunner::Nextest => "nextest",
        TestRunner::Node => "node",
        TestRunner::Phpunit => "phpunit",
        TestRunner::Pytest => "pytest",
        TestRunner::Rspec => "rspec",
        TestRunner::Unittest => "unittest",
        TestRunner::Vitest => "vitest",
    }
}

static ROWS: [Row; 45] = [
    Row(
        "cargo",
        Pattern::new("test result: ", r"^\s*test result: \w+\. (.*)$"),
        Words(&[
            ("passed", Passed),
            ("measured", Passed),
            ("failed", Failed),
            ("ignored", Skipped),
        ]),
    ),
    Row(
        "cargo",
        Pattern::new("running ", r"^running (\d+) tests?$"),
        More(&[Total]),
    ),
    Row(
        "cargo",
        Pattern::new(
            "error: ",
            r"^error: (?:test failed|doctest failed|bench failed|could not compile|\d+ targets? failed)",
        ),
        Fails,
    ),
    Row(
        "nextest",
        Pattern::new(
            "Summary [",
            r"^\s*Summary \[[^\]]*\]\s+(?:\d+/)?(\d+) tests? run: (\d+) passed(?:.*?, (\d+) failed)?(?:.*?, (\d+) timed out)?(?:.*?, (\d+) skipped)?",
        ),
        Groups(&[Ran, Passed, Failed, Failed, Skipped]),
    ),
    Row(
        "nextest",
        Pattern::new("no tests to run", r"^\s*error: no tests to run"),
        Empty,
    ),
    Row(
        "pytest",
        Pattern::new(
            " in ",
            r"^(?:=+ )?((?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+) in [\d.]+s",
        ),
        Words(&[
            ("passed", Passed),
            ("xfailed", Passed),
            ("xpassed", Passed),
            ("failed", Failed),
            ("error", Failed),
            ("errors", Failed),
            ("skipped", Skipped),
        ]),
    ),
    Row(
        "pytest",
        Pattern::new("no tests ran", r"^(?:=+ )?no tests ran in "),
        Empty,
    ),
    Row(
        "unittest",
        Pattern::new("Ran ", r"^Ran (\d+) tests? in [\d.]+s$"),
        Groups(&[Total]),
    ),
    Row(
        "unittest",
        Pattern::new(
            " (",
            r"^(?:OK|FAILED) \(((?:(?:failures|errors|unexpected successes|skipped|expected failures)=\d+(?:, )?)+)\)$",
        ),
        MoreWords(&[
            ("failures", Failed),
            ("errors", Failed),
            ("successes", Failed),
            ("skipped", Skipped),
        ]),
    ),
    Row(
        "unittest",
        Pattern::new("NO TESTS RAN", r"^NO TESTS RAN"),
        Empty,
    ),
    Row(
        "go",
        Pattern::new(
            "[no test",
            r"^(?:\?|ok)\s+\S+\s.*\[no test(?:s to run| files)\]",
        ),
        Empty,
    ),
    Row(
        "go",
        Pattern::new("ok", r"^ok\s+\t?\S+\s+(?:[\d.]+s|\(cached\))"),
        One,
    ),
    Row(
        "go",
        Pattern::new("FAIL", r"^(?:--- FAIL: |FAIL\t|FAIL$)"),
        Fails,
    ),
    Row(
        "jest",
        Pattern::new("Tests:", r"^Tests:\s+(.*\btotal)$"),
        Words(&[
            ("passed", Passed),
            ("failed", Failed),
            ("skipped", Skipped),
            ("todo", Skipped),
            ("total", Total),
        ]),
    ),
    Row(
        "jest",
        Pattern::new("Test Suites:", r"^Test Suites:\s+\d+ failed"),
        Fails,
    ),
    Row(
        "jest",
        Pattern::new("No tests found", r"^No tests found"),
        Empty,
    ),
    Row(
        "vitest",
        Pattern::new("Tests ", r"^\s*Tests  (.*\(\d+\))$"),
        Words(&[
            ("passed", Passed),
            ("failed", Failed),
            ("skipped", Skipped),
            ("todo", Skipped),
            ("", Total),
        ]),
    ),
    Row(
        "vitest",
        Pattern::new("No test files found", r"^\s*No test files found"),
        Empty,
    ),
    Row(
        "mocha",
        Pattern::new(" passing (", r"^\s*(\d+) passing \("),
        Groups(&[Passed]),
    ),
    Row(
        "mocha",
        Pattern::new(" failing", r"^\s*([1-9]\d*) failing$"),
        More(&[Failed]),
    ),
    Row(
        "mocha",
        Pattern::new(" pending", r"^\s*(\d+) pending$"),
        More(&[Skipped]),
    ),
    Row("tap", Pattern::new("1..0", r"^1\.\.0\b"), Empty),
    Row(
        "node",
        Pattern::new(" tests ", r"^(?:#|\x{2139}) tests (\d+)$"),
        Groups(&[Total]),
    ),
    Row(
        "node",
        Pattern::new(" pass ", r"^(?:#|\x{2139}) pass (\d+)$"),
        More(&[Passed]),
    ),
    Row(
        "node",
        Pattern::new(" fail ", r"^(?:#|\x{2139}) fail (\d+)$"),
        More(&[Failed]),
    ),
    Row(
        "node",
        Pattern::new(" cancelled ", r"^(?:#|\x{2139}) cancelled (\d+)$"),
        More(&[Failed]),
    ),
    Row(
        "node",
        Pattern::new(" skipped ", r"^(?:#|\x{2139}) skipped (\d+)$"),
        More(&[Skipped]),
    ),
    Row(
        "node",
        Pattern::new(" todo ", r"^(?:#|\x{2139}) todo (\d+)$"),
        More(&[Skipped]),
    ),
    Row(
        "bun",
        Pattern::new(" pass", r"^\s*(\d+) pass$"),
        Groups(&[Passed]),
    ),
    Row(
        "bun",
        Pattern::new(" skip", r"^\s*(\d+) skip$"),
        More(&[Skipped]),
    ),
    Row(
        "bun",
        Pattern::new(" fail", r"^\s*([1-9]\d*) fail$"),
        More(&[Failed]),
    ),
    Row(
        "deno",
        Pattern::new(
            " | ",
            r"^(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed",
        ),
        Groups(&[Passed, Failed]),
    ),
    Row(
        "rspec",
        Pattern::new(
            " example",
            r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?",
        ),
        Groups(&[Total, Failed, Skipped]),
    ),
    Row(
        "phpunit",
        Pattern::new("No tests executed!", r"^No tests executed!"),
        Empty,
    ),
    Row(
        "phpunit",
        Pattern::new("OK (", r"^OK \((\d+) tests?, \d+ assertions?\)"),
        Groups(&[Passed]),
    ),
    Row(
        "maven",
        Pattern::new(
            "Tests run: ",
            r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)$",
        ),
        Groups(&[Total, Failed, Failed, Skipped]),
    ),
    Row(
        "maven",
        Pattern::new("BUILD FAILURE", r"^\[\w+\] BUILD FAILURE"),
        Fails,
    ),
    Row(
        "gradle",
        Pattern::new("BUILD FAILED", r"^BUILD FAILED in "),
        Fails,
    ),
    Row(
        "ctest",
        Pattern::new("No tests were found", r"^No tests were found"),
        Empty,
    ),
    Row(
        "ctest",
        Pattern::new(
            " tests failed out of ",
            r"tests passed, (?:[1-9]\d*) tests failed out of ",
        ),
        Fails,
    ),
    Row(
        "ctest",
        Pattern::new(
            " tests failed out of ",
            r"tests passed, 0 tests failed out of (\d+)",
        ),
        Groups(&[Total]),
    ),
    Row(
        "dotnet",
        Pattern::new(
            "Failed: ",
            r"^\s*(?:Passed|Failed)!\s+- Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+(\d+)",
        ),
        Groups(&[Failed, Passed, Skipped, Total]),
    ),
    Row(
        "mypy",
        Pattern::new("Found ", r"^Found [1-9]\d* errors? in \d+ files?"),
        Fails,
    ),
    Row(
        "npm",
        Pattern::new("no test specified", r"^(?:Error: )?no test specified$"),
        Empty,
    ),
    Row(
        "npm",
        Pattern::new("npm ", r"^npm (?:ERR!|error) Test failed"),
        Fails,
    ),
];

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
        let sum = match part {
            Passed => &mut self.passed,
            Failed => &mut self.failed,
            Skipped => &mut self.skipped,
            Total => &mut self.total,
            Ran => &mut self.ran,
        };
        *sum = sum.saturating_add(number);
        self.counts_passed |= part == Passed;
        part == Failed && number > 0
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
            .then(|| all.fold(TestCounts::default(), TestCounts::plus))
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
        self.counts().map_or(0, |counts| counts.executed())
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

    /// Whether this runner came to its end so many times, with at least one test in all and
    /// without a failure. `None`: whichever runner was heard.
    pub(crate) fn shows_success(&self, runner: Option<TestRunner>, times: u32) -> bool {
        let tally = runner.and_then(|runner| self.by_runner.get(name_of(runner)));
        match (runner, tally) {
            (Some(_), Some(tally)) => {
                !tally.ever_failed
                    && !tally.said_nothing
                    && tally.summaries >= times
                    && tally.counts().executed() > 0
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
mod tests {
    use super::*;

    /// What is made of an output: nothing ran / failed / neither.
    fn check(run: &str, output: &str, expected: (bool, bool)) {
        let mut runners = RunnerSummaries::default();
        output.lines().for_each(|line| runners.line(line));
        assert_eq!(
            (runners.nothing_ran(), runners.failed(run)),
            expected,
            "{run}: {output}"
        );
    }

    const EMPTY: (bool, bool) = (true, false);
    const FAILED: (bool, bool) = (false, true);
    const FINE: (bool, bool) = (false, false);

    /// A line for each row, in the order of the rows.
    const LINES: &[&str] = &[
        "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        "running 3 tests",
        "error: 2 targets failed:",
        "     Summary [   0.010s] 3 tests run: 2 passed, 1 failed, 0 skipped",
        "error: no tests to run",
        "=== 3 passed, 1 warning in 0.02s ===",
        "no tests ran in 0.01s",
        "Ran 3 tests in 0.001s",
        "FAILED (failures=1, errors=2)",
        "NO TESTS RAN",
        "?   \texample.com/a\t[no test files]",
        "ok  \texample.com/b\t(cached)",
        "FAIL\texample.com/b\t0.1s",
        "Tests:       1 failed, 3 passed, 4 total",
        "Test Suites: 1 failed, 1 total",
        "No tests found, exiting with code 1",
        "      Tests  1 failed | 2 passed (3)",
        " No test files found, exiting with code 0",
        "  12 passing (5ms)",
        "  1 failing",
        "  2 pending",
        "1..0 # nothing",
        "# tests 4",
        "# pass 3",
        "# fail 1",
        "# cancelled 0",
        "# skipped 0",
        "# todo 0",
        " 3 pass",
        " 2 skip",
        " 1 fail",
        "FAILED | 3 passed (1 step) | 1 failed (10ms)",
        "3 examples, 1 failure",
        "No tests executed!",
        "OK (3 tests, 5 assertions)",
        "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0",
        "[INFO] BUILD FAILURE",
        "BUILD FAILED in 3s",
        "No tests were found!!!",
        "50% tests passed, 1 tests failed out of 2",
        "100% tests passed, 0 tests failed out of 2",
        "Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total:     2, Duration: 3 ms",
        "Found 3 errors in 1 file (checked 2 source files)",
        "Error: no test specified",
        "npm ERR! Test failed.  See above for more details.",
    ];

    #[test]
    fn every_row_hears_its_own_line() {
        assert_eq!(LINES.len(), ROWS.len());
        for (Row(name, pattern, _), line) in ROWS.iter().zip(LINES) {
            assert!(pattern.matches(line), "{name}: {line}");
        }
    }

    #[test]
    fn cargo() {
        let none = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let some = "running 2 tests\ntest a ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        let bad = "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\nerror: test failed, to rerun pass `--lib`";
        check("cargo test", none, EMPTY);
        check("cargo test", &format!("{none}\n{some}"), FINE);
        check("cargo test || true", bad, FAILED);
        check(
            "cargo test a || cargo test b",
            &format!("{bad}\n{some}"),
            FINE,
        );
        check(
            "cargo test a; cargo test b",
            &format!("{bad}\n{some}"),
            FAILED,
        );
        check(
            "cargo test || true",
            "error: could not compile `a` (lib) due to 1 previous error",
            FAILED,
        );
        check(
            "cargo nextest run",
            "     Summary [   0.010s] 0 tests run: 0 passed, 3 skipped",
            EMPTY,
        );
        check(
            "cargo nextest run | tee x",
            "     Summary [   0.010s] 3 tests run: 2 passed, 1 failed, 0 skipped",
            FAILED,
        );
    }

    #[test]
    fn python() {
        check("pytest", "===== no tests ran in 0.01s =====", EMPTY);
        check("pytest", "===== 2 skipped in 0.01s =====", EMPTY);
        check("pytest -q", "3 passed in 0.02s", FINE);
        check(
            "pytest | tee log",
            "== 1 failed, 2 passed, 1 warning in 0.12s ==",
            FAILED,
        );
        check("pytest; true", "=== 1 error in 0.05s ===", FAILED);
        check(
            "python -m unittest",
            "Ran 0 tests in 0.000s\n\nNO TESTS RAN",
            EMPTY,
        );
        check(
            "python -m unittest; true",
            "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
            FAILED,
        );
        check("python -m unittest", "Ran 3 tests in 0.001s\n\nOK", FINE);
        check(
            "mypy . || true",
            "Found 3 errors in 1 file (checked 2 source files)",
            FAILED,
        );
        check(
            "ruff check --fix",
            "Found 3 errors (3 fixed, 0 remaining).",
            FINE,
        );
    }

    #[test]
    fn go_and_javascript() {
        check(
            "go test ./...",
            "?   \texample.com/a\t[no test files]",
            EMPTY,
        );
        check(
            "go test -run x",
            "ok  \texample.com/a\t0.002s [no tests to run]",
            EMPTY,
        );
        check(
            "go test ./...",
            "?   \ta\t[no test files]\nok  \tb\t0.012s",
            FINE,
        );
        check(
            "go test ./... | cat",
            "--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tb\t0.1s",
            FAILED,
        );
        check("jest", "No tests found, exiting with code 0", EMPTY);
        check("jest", "Tests:       3 passed, 3 total", FINE);
        check(
            "jest || true",
            "Tests:       1 failed, 3 passed, 4 total",
            FAILED,
        );
        check(
            "vitest",
            " Test Files  1 passed (1)\n      Tests  2 passed (2)",
            FINE,
        );
        check(
            "vitest | cat",
            "      Tests  1 failed | 2 passed (3)",
            FAILED,
        );
        check("mocha", "  0 passing (1ms)", EMPTY);
        check("mocha || true", "  3 passing (5ms)\n  1 failing", FAILED);
        check("node --test", "\u{2139} tests 0", EMPTY);
        check("deno test", "ok | 3 passed | 0 failed (10ms)", FINE);
    }

    #[test]
    fn others_and_strangers() {
        check("rspec", "0 examples, 0 failures", EMPTY);
        check("rspec | cat", "3 examples, 1 failure", FAILED);
        check(
            "mvn test",
            "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0",
            FINE,
        );
        check("./check.sh", "all good", FINE);
        check("./check.sh", "", FINE);
    }

    #[test]
    fn counts() {
        let check = |output: &str, expected: (u64, u64, u64), reconciles: bool| {
            let mut runners = RunnerSummaries::default();
            output.lines().for_each(|line| runners.line(line));
            let (passed, failed, skipped) = expected;
            let expected = TestCounts {
                passed,
                failed,
                skipped,
            };
            assert_eq!(runners.counts(), Some(expected), "{output}");
            assert_eq!(runners.reconcile(), reconciles, "{output}");
        };
        check(
            "running 4 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; 1 measured; 3 filtered out",
            (3, 0, 1),
            true,
        );
        // A test ended its process: the runner never came to its end.
        check(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored\nrunning 5 tests",
            (2, 0, 0),
            false,
        );
        check(
            "1 failed, 2 passed, 3 skipped, 1 xfailed, 1 warning in 0.1s",
            (3, 1, 3),
            true,
        );
        check(
            "Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)",
            (2, 2, 1),
            true,
        );
        check("Ran 5 tests in 0.1s\n\nOK (skipped=1)", (4, 0, 1), true);
        check(
            "Tests:       1 failed, 1 skipped, 3 passed, 5 total",
            (3, 1, 1),
            true,
        );
        check("Tests:       3 passed, 5 total", (3, 0, 0), false);
        check(
            "      Tests  1 failed | 2 passed | 1 skipped (4)",
            (2, 1, 1),
            true,
        );
        check(
            "     Summary [   0.010s] 3 tests run: 2 passed (1 slow), 1 failed, 4 skipped",
            (2, 1, 4),
            true,
        );
        check(
            "# tests 5\n# pass 2\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0",
            (2, 2, 1),
            true,
        );
        check(
            "  12 passing (5ms)\n  2 pending\n  1 failing",
            (12, 1, 2),
            true,
        );
        check(" 3 pass\n 1 skip\n 1 fail", (3, 1, 1), true);
        check("5 examples, 1 failure, 1 pending", (3, 1, 1), true);
        check(
            "[INFO] Tests run: 4, Failures: 1, Errors: 1, Skipped: 1",
            (1, 2, 1),
            true,
        );
        check(
            "Passed!  - Failed:     0, Passed:     2, Skipped:     1, Total:     3, Duration: 3 ms",
            (2, 0, 1),
            true,
        );
        // It failed, and nobody knows what.
        check(
            "test result: ok. 2 passed; 0 failed; 0 ignored\nerror: could not compile `a` (lib)",
            (2, 0, 0),
            false,
        );
    }

    #[test]
    fn every_runner_that_a_command_is_taken_for_has_rows() {
        use TestRunner::{
            Bun, Cargo, Ctest, Deno, Dotnet, Go, Jest, Maven, Mocha, Nextest, Node, Phpunit,
            Pytest, Rspec, Unittest, Vitest,
        };
        for runner in [
            Bun, Cargo, Ctest, Deno, Dotnet, Go, Jest, Maven, Mocha, Nextest, Node, Phpunit,
            Pytest, Rspec, Unittest, Vitest,
        ] {
            let name = name_of(runner);
            assert!(ROWS.iter().any(|Row(row, ..)| *row == name), "{name}");
        }
    }
}
