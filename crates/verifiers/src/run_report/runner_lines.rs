//! The table of lines by which well-known test runners say how much ran, and whether it failed.

use checkrein_core::exit_status::TestRunner;

use crate::patterns::LazyRegex;

/// A runner: its name, a line's pattern, and what the groups of that pattern mean.
pub(super) struct RunnerLinePattern(
    pub(super) &'static str,
    pub(super) LazyRegex,
    pub(super) RunnerLineMeaning,
);

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestCountKind {
    Passed,
    Failed,
    Skipped,
    /// All tests, skipped ones included, as the runner itself counts them.
    Total,
    /// All tests that ran, as the runner itself counts them.
    Ran,
    /// Failures outside of tests, which the runner's total does not include.
    Beyond,
}

use TestCountKind::{Beyond, Failed, Passed, Ran, Skipped, Total};

pub(super) enum RunnerLineMeaning {
    /// A summary in words, `3 passed, 1 failed`: which word counts what.
    Words(&'static [(&'static str, TestCountKind)]),
    /// A summary: what each group counts.
    Groups(&'static [TestCountKind]),
    /// More of a summary that another line begins: what each group counts.
    More(&'static [TestCountKind]),
    /// The same in words, `errors=1, skipped=2`.
    MoreWords(&'static [(&'static str, TestCountKind)]),
    /// One test or package ran and passed.
    One,
    /// It failed.
    Fails,
    /// There was nothing to run.
    Empty,
}

use RunnerLineMeaning::{Empty, Fails, Groups, More, MoreWords, One, Words};

/// Returns the name of a runner's rows.
pub(super) fn runner_name(runner: TestRunner) -> &'static str {
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

/// The name of rows for failures although all tests passed: limits of coverage.
pub(super) const LIMITS: &str = "limits";

// The first row that matches a line is the only one that counts it, so a narrow pattern stands
// before a wider one of the same runner.
pub(super) static RUNNER_LINES: [RunnerLinePattern; 57] = [
    RunnerLinePattern(
        "make",
        LazyRegex::new(
            "make",
            r"^g?make(?:\[\d+\])?: (?:Nothing to be done for |)['`\u{2018}](?:\S*[^\w'`])?(?:tests?|specs?|checks?|lint)(?:[^\w'\u{2019}]\S*)?['\u{2019}](?: is up to date|)\.$",
        ),
        Empty,
    ),
    RunnerLinePattern(
        "cargo",
        LazyRegex::new("test result: ", r"^\s*test result: \w+\. (.*)$"),
        Words(&[
            ("passed", Passed),
            ("measured", Passed),
            ("failed", Failed),
            ("ignored", Skipped),
        ]),
    ),
    RunnerLinePattern(
        "cargo",
        LazyRegex::new("running ", r"^running (\d+) tests?$"),
        More(&[Total]),
    ),
    RunnerLinePattern(
        "cargo",
        LazyRegex::new(
            "error: ",
            r"^error: (?:test failed|doctest failed|bench failed|could not compile|\d+ targets? failed)",
        ),
        Fails,
    ),
    RunnerLinePattern(
        "nextest",
        LazyRegex::new(
            "Summary [",
            r"^\s*Summary \[[^\]]*\]\s+(?:\d+/)?(\d+) tests? run: (\d+) passed(?:.*?, (\d+) failed)?(?:.*?, (\d+) timed out)?(?:.*?, (\d+) skipped)?",
        ),
        Groups(&[Ran, Passed, Failed, Failed, Skipped]),
    ),
    RunnerLinePattern(
        "nextest",
        LazyRegex::new("no tests to run", r"^\s*error: no tests to run"),
        Empty,
    ),
    RunnerLinePattern(
        "pytest",
        LazyRegex::new(
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
    RunnerLinePattern(
        "pytest",
        LazyRegex::new("no tests ran", r"^(?:=+ )?no tests ran in "),
        Empty,
    ),
    RunnerLinePattern(
        "unittest",
        LazyRegex::new("Ran ", r"^Ran (\d+) tests? in [\d.]+s$"),
        Groups(&[Total]),
    ),
    RunnerLinePattern(
        "unittest",
        LazyRegex::new(
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
    RunnerLinePattern(
        "unittest",
        LazyRegex::new("NO TESTS RAN", r"^NO TESTS RAN"),
        Empty,
    ),
    RunnerLinePattern(
        "go",
        LazyRegex::new(
            "[no test",
            r"^(?:\?|ok)\s+\S+\s.*\[no test(?:s to run| files)\]",
        ),
        Empty,
    ),
    RunnerLinePattern(
        "go",
        LazyRegex::new("ok", r"^ok\s+\t?\S+\s+(?:[\d.]+s|\(cached\))"),
        One,
    ),
    RunnerLinePattern(
        "go",
        LazyRegex::new("FAIL", r"^(?:--- FAIL: |FAIL\t|FAIL$)"),
        Fails,
    ),
    RunnerLinePattern(
        "jest",
        LazyRegex::new("Tests:", r"^Tests:\s+(.*\btotal)$"),
        Words(&[
            ("passed", Passed),
            ("failed", Failed),
            ("skipped", Skipped),
            ("todo", Skipped),
            ("total", Total),
        ]),
    ),
    RunnerLinePattern(
        "jest",
        LazyRegex::new("Test Suites:", r"^Test Suites:\s+\d+ failed"),
        Fails,
    ),
    RunnerLinePattern(
        "jest",
        LazyRegex::new("No tests found", r"^No tests found"),
        Empty,
    ),
    RunnerLinePattern(
        "vitest",
        LazyRegex::new("Tests ", r"^\s*Tests  (.*\(\d+\))$"),
        Words(&[
            ("passed", Passed),
            ("failed", Failed),
            ("skipped", Skipped),
            ("todo", Skipped),
            ("", Total),
        ]),
    ),
    RunnerLinePattern(
        "vitest",
        LazyRegex::new("Errors  ", r"^\s*(?:Type )?Errors  [1-9]\d* errors?$"),
        Fails,
    ),
    RunnerLinePattern(
        "vitest",
        LazyRegex::new("No test files found", r"^\s*No test files found"),
        Empty,
    ),
    RunnerLinePattern(
        "mocha",
        LazyRegex::new(" passing (", r"^\s*(\d+) passing \("),
        Groups(&[Passed]),
    ),
    RunnerLinePattern(
        "mocha",
        LazyRegex::new(" failing", r"^\s*([1-9]\d*) failing$"),
        More(&[Failed]),
    ),
    RunnerLinePattern(
        "mocha",
        LazyRegex::new(" pending", r"^\s*(\d+) pending$"),
        More(&[Skipped]),
    ),
    RunnerLinePattern("tap", LazyRegex::new("1..0", r"^1\.\.0\b"), Empty),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" tests ", r"^(?:#|\x{2139}) tests (\d+)$"),
        Groups(&[Total]),
    ),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" pass ", r"^(?:#|\x{2139}) pass (\d+)$"),
        More(&[Passed]),
    ),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" fail ", r"^(?:#|\x{2139}) fail (\d+)$"),
        More(&[Failed]),
    ),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" cancelled ", r"^(?:#|\x{2139}) cancelled (\d+)$"),
        More(&[Failed]),
    ),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" skipped ", r"^(?:#|\x{2139}) skipped (\d+)$"),
        More(&[Skipped]),
    ),
    RunnerLinePattern(
        "node",
        LazyRegex::new(" todo ", r"^(?:#|\x{2139}) todo (\d+)$"),
        More(&[Skipped]),
    ),
    RunnerLinePattern(
        "bun",
        LazyRegex::new(" pass", r"^\s*(\d+) pass$"),
        Groups(&[Passed]),
    ),
    RunnerLinePattern(
        "bun",
        LazyRegex::new(" skip", r"^\s*(\d+) skip$"),
        More(&[Skipped]),
    ),
    RunnerLinePattern(
        "bun",
        LazyRegex::new(" fail", r"^\s*([1-9]\d*) fail$"),
        More(&[Failed]),
    ),
    RunnerLinePattern(
        "deno",
        LazyRegex::new(
            " | ",
            r"^(?:ok|FAILED) \| (\d+) passed(?: \([^)]*\))? \| (\d+) failed",
        ),
        Groups(&[Passed, Failed]),
    ),
    RunnerLinePattern(
        "rspec",
        LazyRegex::new(
            " occurred outside of examples",
            r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?, (\d+) errors? occurred outside of examples",
        ),
        Groups(&[Total, Failed, Skipped, Beyond]),
    ),
    RunnerLinePattern(
        "rspec",
        LazyRegex::new(
            " example",
            r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?",
        ),
        Groups(&[Total, Failed, Skipped]),
    ),
    RunnerLinePattern(
        "phpunit",
        LazyRegex::new("No tests executed!", r"^No tests executed!"),
        Empty,
    ),
    RunnerLinePattern(
        "phpunit",
        LazyRegex::new("OK (", r"^OK \((\d+) tests?, \d+ assertions?\)"),
        Groups(&[Passed]),
    ),
    RunnerLinePattern(
        "maven",
        LazyRegex::new(
            "Tests run: ",
            r"^(?:\[\w+\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)$",
        ),
        Groups(&[Total, Failed, Failed, Skipped]),
    ),
    RunnerLinePattern(
        "maven",
        LazyRegex::new("BUILD FAILURE", r"^\[\w+\] BUILD FAILURE"),
        Fails,
    ),
    RunnerLinePattern(
        "maven",
        LazyRegex::new("No tests to run.", r"^(?:\[\w+\] )?No tests to run\.$"),
        Empty,
    ),
    RunnerLinePattern(
        "gradle",
        LazyRegex::new("BUILD FAILED", r"^BUILD FAILED in "),
        Fails,
    ),
    // Also said where `ignoreFailures` lets the build go on.
    RunnerLinePattern(
        "gradle",
        LazyRegex::new(
            "There were failing tests",
            r"^There were failing tests\. See the (?:report|results) at",
        ),
        Fails,
    ),
    RunnerLinePattern(
        "gradle",
        LazyRegex::new(
            "> Task :",
            r"^> Task :(?:\S+:)?(?:test|\w+Test)(?: UP-TO-DATE| FROM-CACHE)?$",
        ),
        One,
    ),
    RunnerLinePattern(
        "gradle",
        LazyRegex::new(
            " NO-SOURCE",
            r"^> Task :(?:\S+:)?(?:test|\w+Test) NO-SOURCE$",
        ),
        Empty,
    ),
    RunnerLinePattern(
        "ctest",
        LazyRegex::new("No tests were found", r"^No tests were found"),
        Empty,
    ),
    RunnerLinePattern(
        "ctest",
        LazyRegex::new(
            " tests failed out of ",
            r"tests passed, (?:[1-9]\d*) tests failed out of ",
        ),
        Fails,
    ),
    RunnerLinePattern(
        "ctest",
        LazyRegex::new(
            " tests failed out of ",
            r"tests passed, 0 tests failed out of (\d+)",
        ),
        Groups(&[Total]),
    ),
    RunnerLinePattern(
        "dotnet",
        LazyRegex::new(
            "Failed: ",
            r"^\s*(?:Passed|Failed)!\s+- Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+(\d+)",
        ),
        Groups(&[Failed, Passed, Skipped, Total]),
    ),
    RunnerLinePattern(
        "dotnet",
        LazyRegex::new(
            "No test ",
            r"^\s*No test (?:is available in |matches the given testcase filter )",
        ),
        Empty,
    ),
    RunnerLinePattern(
        "mypy",
        LazyRegex::new("Found ", r"^Found [1-9]\d* errors? in \d+ files?"),
        Fails,
    ),
    RunnerLinePattern(
        "npm",
        LazyRegex::new("no test specified", r"^(?:Error: )?no test specified$"),
        Empty,
    ),
    RunnerLinePattern(
        "npm",
        LazyRegex::new("npm ", r"^npm (?:ERR!|error) Test failed"),
        Fails,
    ),
    RunnerLinePattern(
        LIMITS,
        LazyRegex::new(
            "overage",
            r"^(?:FAIL )?Required test coverage of \S+ not reached|Coverage failure: total of \S+ is less than fail-under",
        ),
        Fails,
    ),
    RunnerLinePattern(
        LIMITS,
        LazyRegex::new(
            "overage",
            r"^(?:Jest: .*coverage threshold for .* not met|Jest: Coverage data for .* was not found|ERROR: Coverage for \w+ \([\d.]+%\) does not meet )",
        ),
        Fails,
    ),
    RunnerLinePattern(
        LIMITS,
        LazyRegex::new(
            "overage",
            r"^(?:(?:Line|Branch) coverage .* is below the expected minimum coverage|Error: Coverage is below the failure threshold)",
        ),
        Fails,
    ),
    RunnerLinePattern(
        LIMITS,
        LazyRegex::new(
            "coverage is below the specified",
            r"The (?:minimum|total) \w+ coverage is below the specified",
        ),
        Fails,
    ),
];
