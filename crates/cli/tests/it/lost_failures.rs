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
const PYTEST_COVERAGE: &str = "collected 2 items

test_a.py ..                                                             [100%]

---------- coverage: platform linux, python 3.12.3-final-0 -----------
TOTAL                 24      7    71%
FAIL Required test coverage of 80% not reached. Total coverage: 70.83%
============================== 2 passed in 0.05s ===============================";
const JEST_COVERAGE: &str = "PASS ./a.test.js
Jest: \"global\" coverage threshold for lines (80%) not met: 71.42%
Test Suites: 1 passed, 1 total
Tests:       2 passed, 2 total
Time:        0.4 s";
const VITEST_ERRORS: &str = " \u{2713} a.test.ts (2 tests) 3ms

\u{23af}\u{23af} Unhandled Errors \u{23af}\u{23af}
Vitest caught 1 unhandled error during the test run.

 Test Files  1 passed (1)
      Tests  2 passed (2)
     Errors  1 error
   Duration  312ms";
const RSPEC_ERROR: &str = "An error occurred while loading ./spec/b_spec.rb.
Finished in 0.002 seconds (files took 0.05 seconds to load)
5 examples, 0 failures, 1 error occurred outside of examples";

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
fn reading_another_commands_status_hides_a_failure() {
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
fn a_trap_that_exits_zero_hides_a_failure() {
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
fn a_status_check_without_effect_hides_a_failure() {
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

#[test]
fn makefiles_that_pass_failures_over() {
    for makefile in [
        ".IGNORE: test\ntest:\n\tpytest\n",
        ".IGNORE:\ntest:\n\tpytest\n",
        "MAKEFLAGS += -ik\ntest:\n\tpytest\n",
        "MAKEFLAGS += -n\ntest:\n\tpytest\n",
        "MAKEFLAGS=--keep-going --ignore-errors\ntest:\n\tpytest\n",
        "SHELL = /bin/true\ntest:\n\tpytest\n",
        "SHELL := true\ntest:\n\tpytest\n",
        "include test.mk\n",
        "-include nosuch.mk test.mk\n",
        "te%:\n\t-pytest\n",
        "%st:\n\tpytest || true\n",
        "RUN = -\ntest:\n\t$(RUN)pytest\n",
        "test:\n\tpytest || true # it hides nothing\n",
    ] {
        none_passes(
            &["make test"],
            &[("Makefile", makefile), ("test.mk", "test:\n\t-pytest\n")],
            FAILS,
        );
    }
    none_passes(
        &[
            "make -it test",
            "make -n test",
            "make -C . -t test",
            "make SHELL=/bin/true test",
            "MAKEFLAGS=i make test",
        ],
        &[("Makefile", "test:\n\tpytest\n")],
        FAILS,
    );
    for makefile in [
        "MAKEFLAGS += --no-print-directory -s\nSHELL := /bin/bash\ntest:\n\tpytest\n",
        "include test.mk\n",
        "-include nosuch.mk\ntest:\n\tpytest\n",
        ".IGNORE: clean\nclean:\n\trm -rf out\ntest:\n\tpytest\n",
        "te%:\n\tpytest\n",
        ".SHELLFLAGS = -ec\n.PHONY: test\ntest: ; pytest\n",
    ] {
        all_pass(
            &["make test"],
            &[("Makefile", makefile), ("test.mk", "test:\n\tpytest\n")],
            PASSES,
        );
    }
}

#[test]
fn makefiles_that_run_nothing() {
    let fails = &[("pytest", PYTEST_FAILS, 4), ("ruff", "E501", 1)];
    for makefile in [
        "there:\n\tpytest\n",
        "there:\n\truff check .\n",
        "all:\n\tpytest\n",
        ".PHONY: there\nthere:\n",
        "there:\nifdef CI\n\tpytest\nendif\n",
        "ifndef CI\nRUN = true\nelse\nRUN = pytest\nendif\nthere:\n\t$(RUN)\n",
        ".SHELLFLAGS = -nc\n.PHONY: there\nthere:\n\tpytest\n",
        ".SHELLFLAGS = -c true\n.PHONY: there\nthere:\n\tpytest\n",
    ] {
        let makefile = makefile.replace("there", "test");
        none_passes(
            &["env -u CI make test"],
            &[("Makefile", &makefile), ("test/a.py", "")],
            fails,
        );
    }
    all_pass(
        &["make test"],
        &[
            ("Makefile", ".PHONY: test\ntest:\n\truff check .\n"),
            ("test/a.py", ""),
        ],
        PASSES,
    );
    // Its tests are seen to have run.
    all_pass(
        &["CI=1 make test"],
        &[("Makefile", "test:\nifdef CI\n\tpytest\nendif\n")],
        PASSES,
    );
}

#[test]
fn failures_after_passing_tests_do_not_pass() {
    for (runner, says) in [
        ("pytest", PYTEST_COVERAGE),
        (
            "pytest",
            "2 passed in 0.05s\nERROR: Coverage failure: total of 71 is less than fail-under=80",
        ),
        ("jest", JEST_COVERAGE),
        ("vitest", VITEST_ERRORS),
        ("rspec", RSPEC_ERROR),
    ] {
        none_passes(
            &[
                &format!("{runner} | tee log.txt"),
                &format!("{runner} || true"),
            ],
            &[(".gitignore", "log.txt\n")],
            &[(runner, says, 1)],
        );
    }
    for (runner, says) in [
        (
            "pytest",
            "Required test coverage of 70% reached. Total coverage: 70.83%\n2 passed in 0.05s",
        ),
        (
            "jest",
            "Test Suites: 1 passed, 1 total\nTests:       2 passed, 2 total",
        ),
        (
            "vitest",
            " Test Files  1 passed (1)\n      Tests  2 passed (2)",
        ),
        ("rspec", "5 examples, 0 failures"),
    ] {
        all_pass(
            &[&format!("{runner} | tee log.txt")],
            &[(".gitignore", "log.txt\n")],
            &[(runner, says, 0)],
        );
    }
}

#[test]
fn runners_behind_variables_containers_and_files_are_recognised() {
    let old = &[
        ("old.log", "2 passed in 0.01s\n"),
        (".gitignore", "new.log\n"),
    ];
    none_passes(
        &[
            "T=\"pytest || true\"; eval \"$T\"",
            "T='pytest; echo done'; sh -c \"$T\"",
            "pytest > new.log; cat old.log",
            "pytest >/dev/null 2>&1; cat old.log",
            "pytest >> old.log; cat old.log",
        ],
        old,
        FAILS,
    );
    for call in [
        "docker compose run --rm web pytest",
        "docker compose exec -T web pytest -q",
        "docker run --rm -v .:/app image pytest",
        "docker exec box pytest",
        "docker-compose run web pytest",
        "podman run --rm image pytest",
        "conda run -n env pytest",
        "mamba run -n env pytest",
        "micromamba run -n env pytest",
        "pixi run pytest",
        "nix develop -c pytest",
        "nix-shell --run 'pytest'",
        "kubectl exec pod -- pytest",
        "devbox run -- pytest",
        "pytest-3",
        "pixi run test",
        "task test",
        "composer test",
        "forge test",
    ] {
        let program = call.split(' ').next().unwrap_or_default();
        none_passes(
            &[&format!("{call} || true")],
            &[],
            &[(program, PYTEST_FAILS, 1)],
        );
    }
    all_pass(
        &[
            "docker compose run --rm web pytest | cat",
            "pytest-3 | cat",
            "conda run -n env pytest | cat",
        ],
        &[],
        &[
            ("docker", PYTEST_PASSES, 0),
            ("pytest-3", PYTEST_PASSES, 0),
            ("conda", PYTEST_PASSES, 0),
        ],
    );
    all_pass(
        &["pytest > new.log; cat new.log", "docker build . && pytest"],
        old,
        &[("pytest", PYTEST_PASSES, 0), ("docker", "", 0)],
    );
}

#[test]
fn tool_settings_that_ignore_failures_do_not_pass() {
    let tox = |commands: &str| format!("[tox]\nenvlist = py\n[testenv]\ncommands =\n{commands}\n");
    for ini in [
        tox("    - pytest"),
        tox("    pip list\n    -pytest -q"),
        format!("{}ignore_outcome = true\n", tox("    pytest")),
        tox("    pytest\nignore_errors = true\nignore_outcome=True"),
    ] {
        none_passes(
            &["tox", "tox -e py", "python3 -m tox"],
            &[("tox.ini", &ini)],
            &[("tox", "py: OK", 0), ("python3", "py: OK", 0)],
        );
    }
    all_pass(
        &["tox", "tox -e py"],
        &[("tox.ini", &tox("    pytest {posargs}"))],
        &[("tox", PYTEST_PASSES, 0)],
    );
    let alias = |line: &str| format!("[alias]\n{line}\n");
    for line in ["t2 = \"test --no-fail-fast\"", "t2 = [\"test\", \"--all\"]"] {
        none_passes(
            &["cargo t2 || true", "cargo t2; echo"],
            &[(".cargo/config.toml", &alias(line))],
            &[(
                "cargo",
                "running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored",
                101,
            )],
        );
    }
    let root =
        "{\"workspaces\": [\"packages/*\"], \"scripts\": {\"test\": \"npm test --workspaces\"}}";
    none_passes(
        &[
            "npm test",
            "npm test -ws",
            "npm run test -w packages/a",
            "npm test --workspace=packages/a",
        ],
        &[
            ("package.json", root),
            (
                "packages/a/package.json",
                "{\"name\": \"a\", \"scripts\": {\"test\": \"pytest || true\"}}",
            ),
        ],
        &[("npm", PYTEST_FAILS, 0)],
    );
    all_pass(
        &["npm test --workspaces", "npm test -w packages/a"],
        &[
            ("package.json", root),
            (
                "packages/a/package.json",
                "{\"name\": \"a\", \"scripts\": {\"test\": \"pytest\"}}",
            ),
        ],
        &[("npm", PYTEST_PASSES, 0)],
    );
}

/// Shells that run nothing, functions that are no runners, and what a shell reads first.
#[test]
fn functions_and_shells_that_run_nothing_do_not_pass() {
    none_passes(
        &[
            "set -n; pytest",
            "bash -n honest.sh",
            "bash -o noexec honest.sh || exit 1",
            "pytest() { true; }; pytest",
            "ruff() { :; }; ruff check .",
            "BASH_ENV=./start.sh bash honest.sh",
        ],
        &[
            ("honest.sh", "#!/bin/bash -e\npytest\n"),
            ("start.sh", "exit 0\n"),
        ],
        &[("pytest", "", 0)],
    );
    all_pass(
        &[
            "bash -eu honest.sh",
            "pytest() { command pytest -q \"$@\"; }; pytest tests",
            "ENV=test ruff check .",
        ],
        &[("honest.sh", "#!/bin/bash -e\npytest\n")],
        PASSES,
    );
}

/// What a program is called that is hidden makes no difference, if nothing else decides.
#[test]
fn an_unknown_program_that_is_masked_does_not_pass() {
    let fails = &[("dune", "Fatal error: exception Failure", 2)];
    none_passes(
        &[
            "dune runtest || true",
            "dune build && dune runtest || true",
            "dune runtest | tail -5",
            "dune runtest; echo done",
            "git status || true; dune runtest; exit 0",
            "npm run $T",
            "$T",
            "run() { \"$@\"; echo; }; run dune runtest",
        ],
        &[],
        &[
            ("dune", "Fatal error: exception Failure", 2),
            ("npm", "Scripts available:", 0),
        ],
    );
    assert_eq!(checked("dune runtest", &[], fails).0, "fail");
    assert_eq!(
        checked("dune runtest; rc=$?; echo; exit $rc", &[], fails).0,
        "fail"
    );
    all_pass(
        &[
            "dune install || true; pytest",
            "dune fetch || true; ruff check .",
            "dune build || true; git diff --exit-code",
            "git fetch || true; dune runtest",
            "dune runtest; rc=$?; echo; exit $rc",
            "grep -q x nosuch || true",
            "test -z \"$(dune format-diff)\"",
            "run() { \"$@\"; }; run ruff check .",
        ],
        &[("README", "x")],
        &[
            ("pytest", PYTEST_PASSES, 0),
            ("ruff", "All checks passed!", 0),
            ("dune", "", 0),
        ],
    );
}

/// A check runs under `sh`, which need not be bash. Where it is, these fail.
#[test]
fn bash_syntax_under_sh_does_not_pass() {
    for run in [
        "pytest; if [[ $? -gt 0 ]]; then exit 1; fi",
        "pytest &> log.txt",
        "pytest; rc=$?; ((rc > 0)) && exit 1; echo",
        "failed=; pytest || failed+=x; [ -z \"$failed\" ]",
        "trap 'exit 1' ERR; pytest; echo",
    ] {
        let (verdict, note) = checked(run, &[(".gitignore", "log.txt\n")], FAILS);
        assert!(
            verdict == "fail" || verdict == "inconclusive masked",
            "{run}: {verdict} {note}"
        );
    }
    all_pass(
        &[
            "bash -c 'pytest; if [[ $? -gt 0 ]]; then exit 1; fi'",
            "bash -c 'pytest &> log.txt'",
            "bash check.sh",
        ],
        &[
            (".gitignore", "log.txt\n"),
            (
                "check.sh",
                "#!/usr/bin/env bash\npytest || failed+=x; [[ -z $failed ]]\n",
            ),
        ],
        PASSES,
    );
    assert_eq!(
        checked(
            "bash -c 'pytest &> log.txt'",
            &[(".gitignore", "log.txt\n")],
            FAILS
        )
        .0,
        "fail"
    );
}

#[test]
fn honest_commands_that_look_masked_pass() {
    let package = &[("package.json", "{\"scripts\": {\"test\": \"pytest\"}}")];
    let tools = &[
        ("npm", PYTEST_PASSES, 0),
        ("pytest", PYTEST_PASSES, 0),
        ("ruff", "All checks passed!", 0),
        ("eslint", "", 0),
        ("nvm", "Now using node", 0),
    ];
    all_pass(
        &[
            "npm run build --if-present && npm test",
            "npm run build --if-present; npm test",
            "npm run lint --if-present && npm run typecheck --if-present && npm test",
            "ruff check . || ruff check --fix . || exit 1",
            "eslint --fix .; eslint .",
            "nvm use; npm test",
        ],
        package,
        tools,
    );
    // Without nvm, too: it is a function of the shell.
    all_pass(
        &["nvm use; npm test"],
        package,
        &[("npm", PYTEST_PASSES, 0)],
    );
}
