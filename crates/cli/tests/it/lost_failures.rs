//! Checks that end with status 0 although their runner failed or was never run: a status that
//! is lost on the way, a condition, a trap, a makefile, a limit of coverage. The runners are
//! played by scripts that print what the real ones print.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::world::World;

/// It fails before any test, and counts none.
const PYTEST_FAILS: &str = "ImportError while loading conftest '/project/conftest.py'.
conftest.py:1: in <module>
    raise ValueError
E   ValueError";
const PYTEST_PASSES: &str =
    "============================= test session starts ==============================
collected 2 items

test_a.py ..                                                             [100%]

============================== 2 passed in 0.01s ===============================";
/// A program on the `PATH` of the check.
type Played<'a> = (&'a str, &'a str, i32);

/// Verdict, cause and note of the one check.
fn checked(run: &str, files: &[(&str, &str)], played: &[Played<'_>]) -> (String, String) {
    let world = World::new();
    for (name, text) in files {
        world.write(name, text);
    }
    world.config(&format!(
        "[[verifier]]\nname = \"tests\"\ntimeout = \"60s\"\nrun = '''{run}'''\n"
    ));
    world.commit();
    let programs = world.outside("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, says, status) in played {
        let text =
            format!("#!/bin/sh\ncat <<'END_OF_OUTPUT'\n{says}\nEND_OF_OUTPUT\nexit {status}\n");
        let program = programs.join(name);
        std::fs::write(&program, text).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs).chain(std::env::split_paths(&path));
    let output = world
        .checkrein(&["check", "--json"])
        .env("PATH", std::env::join_paths(paths).unwrap())
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let check = &document["verifiers"][0];
    let verdict = check["verdict"].as_str().unwrap_or_default();
    let cause = check["cause"].as_str().unwrap_or_default();
    let note = check["note"].as_str().unwrap_or_default();
    (
        format!("{verdict} {cause}").trim().to_owned(),
        note.to_owned(),
    )
}

/// Each of these is no pass.
#[track_caller]
fn none_passes(runs: &[&str], files: &[(&str, &str)], played: &[Played<'_>]) {
    let checked = runs.iter().map(|run| (run, checked(run, files, played)));
    let passed: Vec<String> = checked
        .filter(|(_, (verdict, _))| {
            verdict != "inconclusive masked" && verdict != "inconclusive vacuous_pass"
        })
        .map(|(run, (verdict, note))| format!("{run}: {verdict} {note}"))
        .collect();
    assert!(passed.is_empty(), "{}", passed.join("\n"));
}

/// Each of these passes.
#[track_caller]
fn all_pass(runs: &[&str], files: &[(&str, &str)], played: &[Played<'_>]) {
    let checked = runs.iter().map(|run| (run, checked(run, files, played)));
    let refused: Vec<String> = checked
        .filter(|(_, (verdict, _))| verdict != "pass")
        .map(|(run, (verdict, note))| format!("{run}: {verdict} {note}"))
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

const FAILS: &[Played<'_>] = &[("pytest", PYTEST_FAILS, 4)];
const PASSES: &[Played<'_>] = &[
    ("pytest", PYTEST_PASSES, 0),
    ("ruff", "All checks passed!", 0),
];

#[test]
fn the_status_of_another_command() {
    none_passes(
        &[
            "pytest || { echo failed; exit $?; }",
            "pytest || (echo failed; exit)",
            "if ! pytest; then echo x; exit $?; fi",
            "check() { pytest || { echo failed; return; }; }; check",
        ],
        &[],
        FAILS,
    );
    let honest = &[
        "pytest || { rc=$?; echo failed; exit $rc; }",
        "pytest || exit $?",
        "if ! pytest; then echo failed; exit 1; fi",
        "check() { pytest || return; }; check",
    ];
    all_pass(honest, &[], PASSES);
    for run in honest {
        assert_eq!(checked(run, &[], FAILS).0, "fail", "{run}");
    }
}

#[test]
fn a_runner_that_runs_only_if_it_is_there() {
    none_passes(
        &[
            "if command -v rspec; then rspec; fi",
            "which rspec || exit 0; rspec",
            "test -x node_modules/.bin/vitest || exit 0; npx vitest run",
            "[ ! -x node_modules/.bin/vitest ] || npx vitest run",
            "[ -d spec ] && pytest || true",
            "if [ -d spec ]; then pytest; fi",
            "python3 -c 'import nosuch_pytest' 2>/dev/null || exit 0; pytest",
            "for f in $(find . -name nosuch); do pytest $f || exit 1; done",
            "ls *.nosuch 2>/dev/null | xargs -r pytest",
            "command -v nosuch-lint || exit 0; ruff check .",
        ],
        &[],
        PASSES,
    );
    all_pass(
        &[
            "if command -v pytest; then pytest; fi",
            "which pytest || exit 0; pytest",
            "[ -d tests ] || exit 0; pytest",
            "if [ -d spec ]; then pytest spec; else pytest tests; fi",
            "python3 -c 'import sys' || exit 0; pytest",
            "ls tests/*.py | xargs -r pytest",
            "if command -v nosuch; then nosuch || exit 1; fi; pytest",
            "if [ -f ruff.toml ]; then ruff check .; fi",
        ],
        &[("tests/a.py", ""), ("ruff.toml", "")],
        PASSES,
    );
}

#[test]
fn a_trap_that_ends_well() {
    none_passes(
        &[
            "trap 'exit 0' EXIT INT; pytest",
            "cleanup() { rm -rf tmp; exit 0; }\ntrap cleanup EXIT\npytest",
            "trap 'rm -rf tmp' INT; trap \"exit 0\" EXIT; pytest; exit $?",
        ],
        &[],
        FAILS,
    );
    all_pass(
        &[
            "trap 'rm -rf tmp; exit 130' INT TERM; pytest",
            "cleanup() { rm -rf tmp; }\ntrap cleanup EXIT\npytest",
            "trap 'rc=$?; rm -rf tmp; exit $rc' EXIT; pytest",
        ],
        &[],
        PASSES,
    );
}

#[test]
fn a_status_that_is_looked_at_in_vain() {
    none_passes(
        &[
            "pytest; rc=$?; [ $rc -eq 0 ] || echo failed",
            "pytest; rc=$?; if [ $rc -eq 127 ]; then exit 1; fi",
            "pytest; [ $? -eq 127 ] && exit 1; exit 0",
            "pytest; rc=$?; test -f README; exit $?",
        ],
        &[],
        FAILS,
    );
    let honest = &[
        "pytest; rc=$?; [ $rc -eq 0 ] || exit 1",
        "pytest; case $? in 0) ;; *) exit 1;; esac",
        "pass=true; ruff check . || pass=false; pytest || pass=false; $pass",
        "ruff check . && ok=1; [ \"$ok\" = 1 ]",
        "ruff check . || ruff check --fix . || exit 1",
        "fail=0; pytest || fail=$((fail+1)); exit $fail",
    ];
    all_pass(honest, &[], PASSES);
}
