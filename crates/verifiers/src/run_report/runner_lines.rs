//! The lines by which well-known runners say how much ran, and whether it failed.

use checkrein_core::exit_status::TestRunner;

use crate::patterns::Pattern;

/// A runner: its name, a line's pattern, and what the groups of that pattern mean.
pub(super) struct Row(
    pub(super) &'static str,
    pub(super) Pattern,
    pub(super) Meaning,
);

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Passed,
    Failed,
    Skipped,
    /// All tests, skipped ones included, as the runner itself adds them up.
    Total,
    /// All tests that ran, as the runner itself adds them up.
    Ran,
    /// Failures that are none of the tests that it adds up.
    Beyond,
}

use Part::{Beyond, Failed, Passed, Ran, Skipped, Total};

pub(super) enum Meaning {
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
pub(super) fn name_of(runner: TestRunner) -> &'static str {
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

/// The name of what fails although all tests passed: limits of coverage.
pub(super) const LIMITS: &str = "limits";

pub(super) static ROWS: [Row; 57] = [
    Row(
        "make",
        Pattern::new(
            "make",
            r"^g?make(?:\[\d+\])?: (?:Nothing to be done for |)['`\u{2018}](?:\S*[^\w'`])?(?:tests?|specs?|checks?|lint)(?:[^\w'\u{2019}]\S*)?['\u{2019}](?: is up to date|)\.$",
        ),
        Empty,
    ),
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
        Pattern::new("Errors  ", r"^\s*(?:Type )?Errors  [1-9]\d* errors?$"),
        Fails,
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
            " occurred outside of examples",
            r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?, (\d+) errors? occurred outside of examples",
        ),
        Groups(&[Total, Failed, Skipped, Beyond]),
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
        "maven",
        Pattern::new("No tests to run.", r"^(?:\[\w+\] )?No tests to run\.$"),
        Empty,
    ),
    Row(
        "gradle",
        Pattern::new("BUILD FAILED", r"^BUILD FAILED in "),
        Fails,
    ),
    // Also said where `ignoreFailures` lets the build go on.
    Row(
        "gradle",
        Pattern::new(
            "There were failing tests",
            r"^There were failing tests\. See the (?:report|results) at",
        ),
        Fails,
    ),
    Row(
        "gradle",
        Pattern::new(
            "> Task :",
            r"^> Task :(?:\S+:)?(?:test|\w+Test)(?: UP-TO-DATE| FROM-CACHE)?$",
        ),
        One,
    ),
    Row(
        "gradle",
        Pattern::new(
            " NO-SOURCE",
            r"^> Task :(?:\S+:)?(?:test|\w+Test) NO-SOURCE$",
        ),
        Empty,
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
        "dotnet",
        Pattern::new(
            "No test ",
            r"^\s*No test (?:is available in |matches the given testcase filter )",
        ),
        Empty,
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
    Row(
        LIMITS,
        Pattern::new(
            "overage",
            r"^(?:FAIL )?Required test coverage of \S+ not reached|Coverage failure: total of \S+ is less than fail-under",
        ),
        Fails,
    ),
    Row(
        LIMITS,
        Pattern::new(
            "overage",
            r"^(?:Jest: .*coverage threshold for .* not met|Jest: Coverage data for .* was not found|ERROR: Coverage for \w+ \([\d.]+%\) does not meet )",
        ),
        Fails,
    ),
    Row(
        LIMITS,
        Pattern::new(
            "overage",
            r"^(?:(?:Line|Branch) coverage .* is below the expected minimum coverage|Error: Coverage is below the failure threshold)",
        ),
        Fails,
    ),
    Row(
        LIMITS,
        Pattern::new(
            "coverage is below the specified",
            r"The (?:minimum|total) \w+ coverage is below the specified",
        ),
        Fails,
    ),
];
