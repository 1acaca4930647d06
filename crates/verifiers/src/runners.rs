//! What well-known runners say of themselves: how much ran, and whether it failed. An
//! exit code of 0 is no pass if nothing ran (vacuous) or if the runner itself says that
//! it failed (`cargo test || true`, `pytest | tee log`).

use std::collections::BTreeMap;

use crate::patterns::{Gate, Pattern, group};

/// What one line says.
enum Said {
    /// A summary: so many ran, so many of them failed. More summaries may follow.
    Summary { ran: u64, failed: u64 },
    /// It failed, whatever it counted.
    Failed,
    /// In so many words: there was nothing to run.
    Nothing,
}

/// A runner: its name, a line's pattern, and what the groups of that pattern mean.
struct Row(&'static str, Pattern, Meaning);

enum Meaning {
    /// Counts in words, `3 passed, 1 failed`: which words count as run, which as failed.
    Counts(&'static [&'static str], &'static [&'static str]),
    /// Group 1 is how many ran; if there is a group 2, how many of them failed.
    Numbers,
    /// One thing ran and was fine.
    One,
    /// It failed.
    Fails,
    /// There was nothing to run.
    Empty,
}

use Meaning::{Counts, Empty, Fails, Numbers, One};

static ROWS: [Row; 36] = [
    Row(
        "cargo",
        Pattern::new("test result: ", r"^\s*test result: \w+\. (.*)$"),
        Counts(&["passed", "failed", "measured"], &["failed"]),
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
            r"^\s*Summary \[[^\]]*\]\s+(?:\d+/)?(\d+) tests? run: \d+ passed(?:.*?, (\d+) failed)?",
        ),
        Numbers,
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
        Counts(
            &["passed", "failed", "error", "errors", "xfailed", "xpassed"],
            &["failed", "error", "errors"],
        ),
    ),
    Row(
        "pytest",
        Pattern::new("no tests ran", r"^(?:=+ )?no tests ran in "),
        Empty,
    ),
    Row(
        "unittest",
        Pattern::new("Ran ", r"^Ran (\d+) tests? in [\d.]+s$"),
        Numbers,
    ),
    Row(
        "unittest",
        Pattern::new(
            "FAILED (",
            r"^FAILED \((?:failures|errors|unexpected successes)=",
        ),
        Fails,
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
        Counts(&["passed", "failed"], &["failed"]),
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
        Counts(&["passed", "failed"], &["failed"]),
    ),
    Row(
        "vitest",
        Pattern::new("No test files found", r"^\s*No test files found"),
        Empty,
    ),
    Row(
        "mocha",
        Pattern::new(" passing (", r"^\s*(\d+) passing \("),
        Numbers,
    ),
    Row(
        "mocha",
        Pattern::new(" failing", r"^\s*[1-9]\d* failing$"),
        Fails,
    ),
    Row("tap", Pattern::new("1..0", r"^1\.\.0\b"), Empty),
    Row(
        "node",
        Pattern::new(" tests ", r"^(?:#|\x{2139}) tests (\d+)$"),
        Numbers,
    ),
    Row(
        "node",
        Pattern::new(" fail ", r"^(?:#|\x{2139}) fail [1-9]"),
        Fails,
    ),
    Row("bun", Pattern::new(" pass", r"^\s*(\d+) pass$"), Numbers),
    Row("bun", Pattern::new(" fail", r"^\s*[1-9]\d* fail$"), Fails),
    Row(
        "deno",
        Pattern::new(
            " | ",
            r"^(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed",
        ),
        Numbers,
    ),
    Row(
        "rspec",
        Pattern::new(" examples, ", r"^(\d+) examples, (\d+) failures?"),
        Numbers,
    ),
    Row(
        "phpunit",
        Pattern::new("No tests executed!", r"^No tests executed!"),
        Empty,
    ),
    Row(
        "maven",
        Pattern::new(
            "Tests run: ",
            r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: \d+, Skipped: \d+$",
        ),
        Numbers,
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
        Numbers,
    ),
    Row(
        "dotnet",
        Pattern::new(
            "Failed: ",
            r"^\s*(?:Passed|Failed)!\s+- Failed:\s+(?P<failed>\d+), Passed:\s+\d+, Skipped:\s+\d+, Total:\s+\d+",
        ),
        One,
    ),
    Row(
        "mypy",
        Pattern::new("Found ", r"^Found [1-9]\d* errors? in \d+ files?"),
        Fails,
    ),
    Row(
        "npm",
        Pattern::new("npm ", r"^npm (?:ERR!|error) Test failed"),
        Fails,
    ),
];

/// Gathers what runners say over the lines of an output.
#[derive(Debug, Default)]
pub(crate) struct Runners {
    heard: bool,
    ran: u64,
    said_nothing: bool,
    ever_failed: bool,
    /// Whether the last word of each runner was that it failed: a retry may mend an earlier one.
    failed_last: BTreeMap<&'static str, bool>,
}

impl Runners {
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
            self.hear(name, meaning.read(&captures));
            // One row per line: a later, wider pattern of the same runner must not count it twice.
            return;
        }
    }

    fn hear(&mut self, name: &'static str, said: Said) {
        let failed = match said {
            Said::Summary { ran, failed } => {
                self.heard = true;
                self.ran = self.ran.saturating_add(ran);
                failed > 0
            }
            Said::Failed => true,
            Said::Nothing => {
                self.heard = true;
                self.said_nothing = true;
                return;
            }
        };
        self.ever_failed |= failed;
        // `Ran 3 tests` comes before unittest says whether they failed, other words after.
        self.failed_last.insert(name, failed);
    }

    /// A runner was heard, and none of them ran a thing.
    pub(crate) fn nothing_ran(&self) -> bool {
        self.heard && self.ran == 0
    }

    /// A runner said in so many words that it had nothing to run, and none ran a thing.
    pub(crate) fn said_nothing_ran(&self) -> bool {
        self.said_nothing && self.ran == 0
    }

    /// A runner says that it failed. In a text like `a; b` an earlier failure is as good as
    /// masked; in one with `||` a later run of the same runner may have mended it.
    pub(crate) fn failed(&self, run: &str) -> bool {
        let sequence = run.contains([';', '\n']) && !run.contains("||");
        if sequence {
            self.ever_failed
        } else {
            self.failed_last.values().any(|failed| *failed)
        }
    }
}

impl Meaning {
    fn read(&self, captures: &regex::Captures<'_>) -> Said {
        match self {
            Counts(run, failed) => {
                let (mut all, mut bad) = (0, 0);
                let words: Vec<&str> = group(captures, 1)
                    .split(|c: char| !c.is_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .collect();
                for pair in words.windows(2) {
                    let [number, word] = pair else { continue };
                    let Ok(number) = number.parse::<u64>() else {
                        continue;
                    };
                    all += if run.contains(word) { number } else { 0 };
                    bad += if failed.contains(word) { number } else { 0 };
                }
                Said::Summary {
                    ran: all,
                    failed: bad,
                }
            }
            Numbers => Said::Summary {
                ran: group(captures, 1).parse().unwrap_or(0),
                failed: group(captures, 2).parse().unwrap_or(0),
            },
            One => {
                let failed = captures
                    .name("failed")
                    .and_then(|text| text.as_str().parse().ok());
                Said::Summary {
                    ran: 1,
                    failed: failed.unwrap_or(0),
                }
            }
            Fails => Said::Failed,
            Empty => Said::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of an output: nothing ran / failed / neither.
    fn check(run: &str, output: &str, expected: (bool, bool)) {
        let mut runners = Runners::default();
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
        "1..0 # nothing",
        "# tests 4",
        "# fail 1",
        " 3 pass",
        " 1 fail",
        "FAILED | 3 passed (1 step) | 1 failed (10ms)",
        "3 examples, 1 failure",
        "No tests executed!",
        "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0",
        "[INFO] BUILD FAILURE",
        "BUILD FAILED in 3s",
        "No tests were found!!!",
        "50% tests passed, 1 tests failed out of 2",
        "100% tests passed, 0 tests failed out of 2",
        "Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total:     2, Duration: 3 ms",
        "Found 3 errors in 1 file (checked 2 source files)",
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
}
