//! Recognises lines by which shells, interpreters and package managers say that something that was
//! to run is missing.

use crate::patterns::{LazyRegex, LiteralPrefilter};

static MISSING: [LazyRegex; 13] = [
    LazyRegex::new(
        "not found",
        r"\bcommand not found\b|^\S*sh(?:: \S+)*: .*: not found$|^\S+: not found$|error Command .* not found",
    ),
    LazyRegex::new("No module named", r"No module named"),
    LazyRegex::new(
        "No such file or directory",
        r"^(?:\S*sh|\S*env|timeout|xargs|nice|time|stdbuf|exec|make(?:\[\d+\])?)\b.*: No such file or directory",
    ),
    LazyRegex::new("Permission denied", r"^\S*sh\b.*: Permission denied"),
    LazyRegex::new("sh: ", r"^\S*sh: .*[Cc]annot open "),
    LazyRegex::new("can't open file", r"can't open file '"),
    LazyRegex::new("failed to run command", r"failed to run command"),
    LazyRegex::new("npm ", r"^npm (?:ERR!|error) "),
    LazyRegex::new("ERR_PNPM_", r"ERR_PNPM_"),
    LazyRegex::new(
        "package.json",
        r"(?i)could(?:n't| not) find a package\.json|could not read package\.json",
    ),
    LazyRegex::new(
        "error: ",
        r"^error: (?:could not find|rustup could not choose|toolchain .* is not installed|no such (?:sub)?command|no bin target|Script not found|Justfile does not contain|No justfile found|Recipe `)",
    ),
    LazyRegex::new(
        "No rule to make target",
        r"No rule to make target|No targets specified",
    ),
    LazyRegex::new(
        "annot find m",
        r"^(?:Error: )?Cannot find module '|cannot find main module",
    ),
];

/// Returns whether the line says so.
pub(super) fn reports_missing_dependency(line: &str) -> bool {
    static PREFILTER: LiteralPrefilter = LiteralPrefilter::new();
    PREFILTER.line_may_match_patterns(line, || MISSING.iter().collect())
        && MISSING
            .iter()
            .any(|pattern| pattern.regex_matches_in_line(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_that_something_is_not_there() {
        for line in [
            "sh: 1: pytest: not found",
            "bash: line 1: pytest: command not found",
            "check.sh: 3: nosuch: not found",
            "check.sh: line 3: nosuch: command not found",
            "zsh:1: command not found: pytest",
            "/usr/bin/python3: No module named pytest",
            "ModuleNotFoundError: No module named 'tests'",
            "env: 'nosuch': No such file or directory",
            "/usr/bin/env: \u{2018}node\u{2019}: No such file or directory",
            "timeout: failed to run command 'pytest': No such file or directory",
            "xargs: pytest: No such file or directory",
            "sh: 0: cannot open check.sh: No such file",
            "bash: ./check.sh: Permission denied",
            "python3: can't open file '/x/run.py': [Errno 2] No such file or directory",
            "npm error code ENOENT",
            "npm ERR! Missing script: \"test\"",
            " ERR_PNPM_NO_SCRIPT  Missing script: test",
            "error: could not find `Cargo.toml` in `/x` or any parent directory",
            "error: no such command: `nextest`",
            "error: rustup could not choose a version of cargo to run, because one wasn't specified",
            "make: *** No rule to make target 'test'.  Stop.",
            "Error: Cannot find module '/x/test.js'",
        ] {
            assert!(reports_missing_dependency(line), "{line}");
        }
        for line in [
            "test not_found ... ok",
            "404 page not found",
            "test result: ok. 2 passed; 0 failed",
            "warning: file not found, skipped",
            "ok - error: could not find it is reported",
        ] {
            assert!(!reports_missing_dependency(line), "{line}");
        }
    }
}
