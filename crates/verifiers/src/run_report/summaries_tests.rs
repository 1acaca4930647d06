//! What is made of the output of each runner.

use super::*;

/// What is made of an output: nothing ran / failed / neither.
fn check(run: &str, output: &str, expected: (bool, bool)) {
    let mut runners = TestRunnerSummaries::default();
    output
        .lines()
        .for_each(|line| runners.tally_test_summary_line(line));
    assert_eq!(
        (
            runners.has_run_no_tests(),
            runners.runner_reports_failure(run)
        ),
        expected,
        "{run}: {output}"
    );
}

const EMPTY: (bool, bool) = (true, false);
const FAILED: (bool, bool) = (false, true);
const FINE: (bool, bool) = (false, false);

/// A line for each row, in the order of the rows.
const LINES: &[&str] = &[
    "make: Nothing to be done for 'test'.",
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
    "     Errors  1 error",
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
    "5 examples, 0 failures, 1 error occurred outside of examples",
    "3 examples, 1 failure",
    "No tests executed!",
    "OK (3 tests, 5 assertions)",
    "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0",
    "[INFO] BUILD FAILURE",
    "[INFO] No tests to run.",
    "BUILD FAILED in 3s",
    "There were failing tests. See the report at: file:///a/index.html",
    "> Task :app:test UP-TO-DATE",
    "> Task :test NO-SOURCE",
    "No tests were found!!!",
    "50% tests passed, 1 tests failed out of 2",
    "100% tests passed, 0 tests failed out of 2",
    "Passed!  - Failed:     0, Passed:     2, Skipped:     0, Total:     2, Duration: 3 ms",
    "No test is available in /src/bin/Debug/net8.0/a.dll. Make sure that test discoverer & executors are registered.",
    "Found 3 errors in 1 file (checked 2 source files)",
    "Error: no test specified",
    "npm ERR! Test failed.  See above for more details.",
    "FAIL Required test coverage of 80% not reached. Total coverage: 70.83%",
    "Jest: \"global\" coverage threshold for lines (80%) not met: 71.42%",
    "Line coverage (71.0%) is below the expected minimum coverage (80.00%).",
    "error : The minimum line coverage is below the specified 80",
];

#[test]
fn every_runner_line_matches_its_sample() {
    assert_eq!(LINES.len(), RUNNER_LINES.len());
    for (RunnerLinePattern(name, pattern, _), line) in RUNNER_LINES.iter().zip(LINES) {
        assert!(pattern.regex_matches_in_line(line), "{name}: {line}");
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
fn other_runners_and_unknown_output() {
    check("rspec", "0 examples, 0 failures", EMPTY);
    check("rspec | cat", "3 examples, 1 failure", FAILED);
    check(
        "mvn test",
        "[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0",
        FINE,
    );
    check(
        "mvn test",
        "[INFO] No tests to run.\n[INFO] BUILD SUCCESS",
        EMPTY,
    );
    // A module without tests beside one with tests.
    check(
        "mvn test",
        "[INFO] No tests to run.\n[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0",
        FINE,
    );
    check(
        "dotnet test",
        "No test is available in /src/a.dll. Make sure that test discoverer & executors are registered.",
        EMPTY,
    );
    check(
        "dotnet test --filter Nope",
        "No test matches the given testcase filter `Nope` in /src/a.dll",
        EMPTY,
    );
    check(
        "dotnet test",
        "No test is available in /src/a.dll.\nPassed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 5 ms - b.dll",
        FINE,
    );
    check("./check.sh", "all good", FINE);
    // What is built is there already; of tests, that says that none ran.
    check(
        "make test",
        "make[1]: Nothing to be done for 'unit-test'.",
        EMPTY,
    );
    check("make test", "make: 'test' is up to date.", EMPTY);
    check("make", "make: Nothing to be done for 'all'.", FINE);
    check("make", "make: 'latest' is up to date.", FINE);
    check("./check.sh", "", FINE);
}

#[test]
fn failures_beside_tests() {
    for limit in [
        "FAIL Required test coverage of 80% not reached. Total coverage: 70.83%",
        "ERROR: Coverage failure: total of 71 is less than fail-under=80",
        "Coverage failure: total of 71 is less than fail-under=80",
    ] {
        let before = format!("{limit}\n===== 2 passed in 0.05s =====");
        check("pytest | tee log", &before, FAILED);
        check(
            "pytest | tee log",
            &format!("2 passed in 0.05s\n{limit}"),
            FAILED,
        );
    }
    check(
        "pytest | cat",
        "Required test coverage of 70% reached. Total coverage: 70.83%\n2 passed in 0.05s",
        FINE,
    );
    for limit in [
        "Jest: \"global\" coverage threshold for lines (80%) not met: 71.42%",
        "Jest: Coverage data for ./src/a.js was not found.",
        "ERROR: Coverage for lines (71.4%) does not meet global threshold (80%)",
    ] {
        check(
            "jest | cat",
            &format!("{limit}\nTests:       2 passed, 2 total"),
            FAILED,
        );
    }
    check(
        "vitest run | cat",
        " Test Files  1 passed (1)\n      Tests  2 passed (2)\n     Errors  1 error\n   Duration  312ms",
        FAILED,
    );
    check(
        "vitest run | cat",
        "      Tests  2 passed (2)\nType Errors  2 errors",
        FAILED,
    );
    check(
        "vitest run | cat",
        "      Tests  2 passed (2)\nType Errors  no errors",
        FINE,
    );
    for line in [
        "5 examples, 0 failures, 1 error occurred outside of examples",
        "0 examples, 0 failures, 2 errors occurred outside of examples",
        "5 examples, 0 failures, 1 pending, 1 error occurred outside of examples",
    ] {
        check("rspec | cat", line, FAILED);
    }
    check(
        "rspec | cat",
        "5 examples, 0 failures\nLine coverage (71.0%) is below the expected minimum coverage (80.00%).",
        FAILED,
    );
}

#[test]
fn counts() {
    let check = |output: &str, expected: (u64, u64, u64), reconciles: bool| {
        let mut runners = TestRunnerSummaries::default();
        output
            .lines()
            .for_each(|line| runners.tally_test_summary_line(line));
        let (passed, failed, skipped) = expected;
        let expected = TestCounts {
            passed,
            failed,
            skipped,
        };
        assert_eq!(runners.total_test_counts(), Some(expected), "{output}");
        assert_eq!(runners.has_consistent_test_counts(), reconciles, "{output}");
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
        "5 examples, 0 failures, 1 error occurred outside of examples",
        (5, 1, 0),
        true,
    );
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
        Bun, Cargo, Ctest, Deno, Dotnet, Go, Jest, Maven, Mocha, Nextest, Node, Phpunit, Pytest,
        Rspec, Unittest, Vitest,
    };
    for runner in [
        Bun, Cargo, Ctest, Deno, Dotnet, Go, Jest, Maven, Mocha, Nextest, Node, Phpunit, Pytest,
        Rspec, Unittest, Vitest,
    ] {
        let name = runner_name(runner);
        assert!(
            RUNNER_LINES
                .iter()
                .any(|RunnerLinePattern(row, ..)| *row == name),
            "{name}"
        );
    }
}

/// Of a build with several projects some may have no tests; with none at all nothing was judged.
#[test]
fn gradle_says_of_each_task_whether_it_found_tests() {
    let none = "> Task :compileTestJava NO-SOURCE\n> Task :testClasses UP-TO-DATE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n";
    check("gradle test", none, EMPTY);
    let some = "> Task :lib:test NO-SOURCE\n> Task :app:test\n\nBUILD SUCCESSFUL in 1s\n";
    check("gradle test", some, FINE);
    let ignored = "> Task :test\n2 tests completed, 1 failed\nThere were failing tests. See the report at: file:///a\n\nBUILD SUCCESSFUL in 1s\n";
    check("gradle test", ignored, FAILED);
    check(
        "gradle build",
        "> Task :jar\n\nBUILD SUCCESSFUL in 1s\n",
        FINE,
    );
}
