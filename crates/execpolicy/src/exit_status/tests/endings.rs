//! Whether a script can end well although the runner failed, or without having run it.

use super::{read, read_by};

/// What is said of pytest (or of the one other runner in it).
fn told(script: &str) -> Vec<String> {
    let files = [
        ("tests/a.py", ""),
        (
            "lib.sh",
            "die() { echo \"$1\" >&2; exit 1; }\nwarn() { echo \"$1\"; }\n",
        ),
        ("Cargo.toml", "[package]"),
        ("run", "#!/bin/sh\n"),
    ];
    let told = read(script, &files).into_iter();
    told.filter(|told| {
        let command = told.split(" <- ").next().unwrap_or("");
        [
            "pytest", "rspec", "vitest", "ruff", "eslint", "npm test", "cargo", "$T", "$cmd",
        ]
        .iter()
        .any(|name| command.contains(name))
    })
    .collect()
}

#[test]
fn a_status_that_is_lost_on_the_way() {
    let mut wrong = Vec::new();
    for script in [
        // `$?` is that of the last command.
        "pytest || { echo failed; exit $?; }",
        "pytest || { echo failed; exit; }",
        "pytest || (echo failed; exit $?)",
        "pytest || { echo failed; rc=$?; exit $rc; }",
        "pytest || { cat log; exit ${?}; }",
        "if ! pytest; then echo x; exit $?; fi",
        "if ! pytest; then exit $?; fi",
        "if pytest; then :; else echo x; exit; fi",
        "f() { pytest || { echo x; return; }; }; f",
        "f() { if ! pytest; then return $?; fi; }; f && echo ok",
        "fail() { echo failed; exit $?; }; pytest || fail",
        "set -e; pytest || { echo failed; exit $?; }",
        "pytest; echo done; exit $?",
        "pytest; rc=$?; rc=0; exit $rc",
        "pytest || exit ${RC:-0}",
        "pytest || exit $CODE",
        // Traps.
        "trap 'exit 0' EXIT; pytest",
        "trap 'exit 0' EXIT INT; pytest",
        "trap 'exit 0' INT EXIT TERM\npytest",
        "trap 'echo bye; exit' EXIT; set -e; pytest",
        "cleanup() { rm -rf tmp; exit 0; }; trap cleanup EXIT; pytest",
        "trap cleanup 0; cleanup() { exit 0; }; pytest",
        "trap 'rm x' INT; trap \"exit 0\" EXIT; pytest; exit $?",
        "trap \"$HANDLER\" EXIT; pytest",
        "set -e; trap 'exit 0' ERR; pytest; echo done",
        // It is tested, and nothing follows from that.
        "pytest; rc=$?; [ $rc -eq 0 ] || echo failed",
        "pytest; rc=$?; if [ $rc -ne 0 ]; then echo failed; fi",
        "pytest; rc=$?; if [ $rc -eq 127 ]; then exit 1; fi",
        "pytest; [ $? -eq 127 ] && exit 1; exit 0",
        "pytest; if [ $? -eq 127 ]; then exit 1; fi",
        "pytest; if [ $? -gt 1 ]; then exit 1; fi",
        "pytest; case $? in 2) exit 1;; esac",
        "pytest; rc=$?; test -f x; exit $?",
        "pytest; rc=$?; test $other -eq 0",
        "pytest; rc=$?; echo $rc; [ $other = 0 ] || exit $rc",
        "rc=0; pytest || rc=1; [ $rc -gt 1 ] && exit 1; exit 0",
        "pass=true; pytest || pass=false; echo $pass",
        "pytest | tee log; [ ${PIPESTATUS[1]} -eq 0 ]",
        "pytest | tee log; echo; exit ${PIPESTATUS[0]}",
        "pytest | tee log; exit $PIPESTATUS",
        "eval 'pytest' || :",
        "alias pytest='pytest || true'\npytest",
        ". ./lib.sh; pytest || warn failed",
        "ec=0; { pytest && ruff check .; } || ec=$?; echo; exit 0",
        "T=\"pytest || true\"; eval \"$T\"",
        "T='pytest; echo done'; sh -c \"$T\"",
        "T='pytest -q'\n$T || true",
        "readonly T='pytest | tail'; bash -c \"${T}\"",
        "run() { local T='pytest || :'; eval $T; }; run",
        "while ! pytest; do break; done",
        "for d in a b; do cd $d; pytest; done",
        "! (pytest)",
        "ruff check . || ruff format .",
        "ruff check a || ruff check --fix b",
        "eslint --fix . ; eslint src",
        "cd web; eslint .; cd ..; eslint .",
        "pytest || pytest --lf",
        "pytest; pytest --co",
    ] {
        let told = told(script);
        let hidden = told.iter().any(|told| told.contains(" <- "));
        if !hidden {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_status_that_arrives() {
    let mut wrong = Vec::new();
    for script in [
        "pytest || { rc=$?; echo failed; exit $rc; }",
        "pytest || exit $?",
        "pytest || return $?",
        "pytest || { code=$?; echo \"failed: $code\"; exit \"$code\"; }",
        "if pytest; then :; else exit $?; fi",
        "if pytest; then :; else rc=$?; echo x; exit ${rc}; fi",
        "if ! pytest; then echo x; exit 1; fi",
        "f() { pytest || return; }; f",
        "f() { pytest; local rc=$?; echo; return $rc; }; f",
        "f() { local rc=0; pytest || rc=$?; echo; return $rc; }; f || exit 1",
        "E=3; pytest || exit $E",
        "die() { echo \"$1\" >&2; exit ${2:-1}; }; pytest || die failed",
        "die() { echo \"$1\" >&2; exit ${2:-1}; }; pytest || die failed 4",
        "trap 'rm -rf tmp; exit' INT TERM; pytest",
        "trap 'rc=$?; rm -rf tmp; exit $rc' EXIT; pytest",
        "cleanup() { rm -rf tmp; }; trap cleanup EXIT INT; pytest",
        "trap 'exit 0' EXIT; trap - EXIT; pytest",
        "trap 'exit 130' INT; pytest",
        "pytest; rc=$?; [ $rc -eq 0 ] || exit 1",
        "pytest; rc=$?; if [ \"$rc\" != 0 ]; then exit $rc; fi; echo",
        "pytest; case $? in 0) ;; *) exit 1;; esac",
        "pytest; status=$?; ((status == 0)) || exit 1",
        "fail=0; pytest || fail=$((fail+1)); mypy . || fail=$((fail+1)); exit $fail",
        "rc=0; pytest || rc=1; ruff check . || rc=1; test $rc = 0",
        "rc=0; pytest; rc=$((rc | $?)); ruff check .; rc=$((rc | $?)); exit $rc",
        "errors=; pytest || errors=\"$errors pytest\"; [ -z \"$errors\" ]",
        "failed=no; pytest || failed=yes; if [ \"$failed\" = yes ]; then exit 1; fi",
        "pytest | tee log; [ ${PIPESTATUS[0]} -eq 0 ]",
        "pytest | tee log; rc=${PIPESTATUS[0]}; echo; exit $rc",
        "pass=true; ruff check . || pass=false; $pass",
        "ok=0; ruff check . && ok=1; [ \"$ok\" = 1 ]",
        "ruff check . && ok=1; [ $ok -eq 1 ]",
        "ruff check . || ruff check --fix . || exit 1",
        "eslint --fix .; eslint .",
        "pytest || pytest",
        "cmd=pytest; $cmd",
        ". ./lib.sh; pytest || die failed; echo ok",
        "set -euo pipefail\nfor d in */; do\n  (cd \"$d\" && pytest)\ndone",
        "docker compose up -d && pytest; rc=$?; docker compose down; exit $rc",
        "out=$(ruff check . 2>&1) || { echo \"$out\"; exit 1; }",
        "test -z \"$(gofmt -l .)\" && pytest",
        "errors=0; for f in tests/*.py; do pytest \"$f\" || errors=$((errors + 1)); done; [ \"$errors\" -eq 0 ]",
        "status=0; pytest || status=$?; mypy . || status=$?; exit $status",
        "trap 'docker compose down' EXIT; docker compose up -d; pytest",
        "while read -r f; do ruff check \"$f\" || exit 1; done < files.txt",
        "git ls-files '*.py' | while read -r f; do ruff check \"$f\" || exit 1; done",
        "pytest && echo PASS || { echo FAIL; exit 1; }",
        "set +e; pytest; code=$?; set -e; rm -rf tmp; exit $code",
        "python -m http.server & PID=$!; sleep 1; pytest; RC=$?; kill $PID; exit $RC",
        "function check { pytest || return 1; }; check",
        "if pytest; then echo ok; else echo bad; exit 1; fi",
        "usage() { echo usage; exit 2; }; [ $# -gt 9 ] && usage; pytest",
        "export PYTHONPATH=src; pytest",
        "find . -name '*.py' -print0 | xargs -0 pytest",
        "ec=0; { pytest && ruff check .; } || ec=$?; echo; exit \"$ec\"",
        "pytest || status=failed; [ \"${status:-ok}\" = ok ]",
        "until curl -s localhost; do sleep 1; done; pytest",
        "T='pytest -q && echo ok'; eval \"$T\"",
        "T='pytest || exit 1'; sh -c \"$T\"",
        "for d in a b; do (cd $d && pytest) || exit 1; done",
        "pytest || return",
        "rc=0; for d in a b; do pytest $d || rc=1; done; exit $rc",
        "(set -e; pytest; echo done)",
        "{ pytest && echo ok; } || { echo failed; exit 1; }",
        "set -e\nrun() { echo \"+ $*\"; \"$@\"; }\npytest\nrun ls",
        "set -euo pipefail\ncd \"$(dirname \"$0\")\"\npytest tests\necho ok",
        "command -v pytest >/dev/null || { echo 'pytest is missing'; exit 1; }\npytest",
        "unset CI; pytest",
    ] {
        let told = told(script);
        let hidden = told.iter().any(|told| told.contains(" <- "));
        if hidden || told.is_empty() {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What only bash knows is an error to `sh` where that is another shell, and then the script goes on.
#[test]
fn what_only_bash_knows() {
    for script in [
        "trap 'echo \"line $LINENO\"; exit 1' ERR; set -E; pytest; echo",
        "pytest; if [[ $? -gt 0 ]]; then exit 1; fi",
        "fail=0; pytest || ((fail++)); mypy . || ((fail++)); [ $fail -eq 0 ]",
        "fail=0; pytest || let fail+=1; exit $fail",
        "pytest; rc=$?; [[ $rc != 0 ]] && exit 1; echo",
        "pytest; rc=$?; if [ $rc == 0 ]; then echo; else exit 1; fi; [ $rc == 0 ]",
        "failed=; pytest || failed+=pytest; [ -z \"$failed\" ]",
        "pytest &> log || exit 1; cat log",
        "trap 'exit 1' ERR; pytest; echo done",
        "pytest; (( $? > 0 )) && exit 1; echo",
        "pytest || declare failed=1; [ -z \"$failed\" ]",
    ] {
        let said = read_by(true, script, &[]);
        let of_pytest = |told: &&String| told.starts_with("pytest");
        let honest = said
            .iter()
            .find(of_pytest)
            .is_some_and(|told| !told.contains(" <- "));
        assert!(honest, "bash: {script}: {said:?}");
        let by_file = read("bash run.sh", &[("run.sh", script)]);
        assert_eq!(
            by_file
                .iter()
                .find(of_pytest)
                .map(|told| told.contains(" <- ")),
            Some(false),
            "{script}"
        );
        if script.contains("[ $rc == 0 ]; then") {
            // Other shells always take the other branch, which refuses.
            continue;
        }
        let hidden = read(script, &[]);
        assert!(
            hidden
                .iter()
                .find(of_pytest)
                .is_some_and(|told| told.contains(" <- ")),
            "sh: {script}: {hidden:?}"
        );
        let by_file = read("./run.sh", &[("run.sh", &format!("#!/bin/sh\n{script}"))]);
        assert!(by_file.iter().any(|told| told.contains(" <- ")), "{script}");
    }
}

/// Ways through a script are as many as its conditions allow.
#[test]
fn script_with_many_branches() {
    let options: String = (0..12)
        .map(|at| format!("if [ \"$O{at}\" ]; then a{at}=yes; else a{at}=none; fi\ncmd{at} \"$a{at}\" || true\n"))
        .collect();
    for (end, hidden) in [
        ("pytest || exit 1\necho ok", false),
        ("rc=0; pytest || rc=$?; echo; exit $rc", false),
        ("set -e; pytest; echo ok", false),
        ("if ! pytest; then echo failed; exit 1; fi; echo", false),
        ("pytest || { echo; exit $?; }\necho ok", true),
        ("rc=0; pytest || rc=$?; echo $rc", true),
    ] {
        let script = format!("{options}{end}");
        let told = told(&script);
        let found = told.iter().any(|told| told.contains("pytest <- "));
        assert_eq!(found, hidden, "{end}: {told:?}");
        assert!(!told.is_empty(), "{end}");
    }
}

#[test]
fn runner_that_may_be_skipped() {
    let mut wrong = Vec::new();
    for script in [
        "if command -v rspec; then rspec; fi",
        "which rspec || exit 0; rspec",
        "command -v rspec >/dev/null 2>&1 || { echo skipped; exit 0; }; rspec",
        "type rspec && rspec || true",
        "test -x node_modules/.bin/vitest || exit 0; npx vitest run",
        "[ ! -x node_modules/.bin/vitest ] || npx vitest run",
        "if [ -d spec ]; then pytest; fi",
        "[ -d spec ] && pytest || true",
        "python -c 'import pytest' 2>/dev/null || exit 0; pytest",
        "if python -c 'import pytest'; then pytest; else echo skipped; fi",
        "[ -n \"$SKIP\" ] && exit 0; pytest",
        "for f in $(ls tests); do pytest $f || exit 1; done",
        "ls *.md | xargs -r pytest",
        "find . -name '*.py' | xargs --no-run-if-empty pytest",
        "exit 0; pytest",
        "if command -v nosuch; then eslint .; fi",
    ] {
        let told = told(script);
        let marked = told
            .iter()
            .any(|told| told.contains(" <- ") || told.ends_with(" ?"));
        if !marked {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    for script in [
        "if [ -d tests ]; then pytest; fi",
        "[ -f Cargo.toml ] && cargo test",
        "[ -f Cargo.toml ] || exit 0; cargo test",
        "test -f nosuch && exit 0; pytest",
        "if [ -d spec ]; then pytest spec; else pytest tests; fi",
        "if [ \"$CI\" ]; then pytest -x; else npm test; fi",
        "command -v pytest || exit 1; pytest",
        "if command -v rspec; then rspec || exit 1; fi; pytest",
        "for f in tests/*.py; do pytest $f || exit 1; done",
        "if command -v shellcheck; then shellcheck run || exit 1; fi; pytest",
        "if [ -f ruff.toml ] || [ -f pyproject.toml ]; then ruff check . || exit 1; fi; pytest",
        "[ -x run ] && pytest",
        "ls | xargs pytest",
    ] {
        let told = told(script);
        let marked = told
            .iter()
            .any(|told| told.contains(" <- ") || told.ends_with(" ?"));
        if marked || told.is_empty() {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A hook that dies answers nothing, and the stop goes through.
#[test]
fn what_is_nested_deeply_ends_in_an_answer() {
    for (open, close) in [
        ("${a:-", "}"),
        ("$(", ")"),
        ("$((", "))"),
        ("(", ")"),
        ("{ ", "; }"),
        ("a[", "]"),
        ("[ ", " ]"),
        ("\"$(echo ", ")\""),
    ] {
        for depth in [150, 1_200, 10_000] {
            let script = format!("exit 0\n{}1{}", open.repeat(depth), close.repeat(depth));
            // Whatever is said of it.
            let _ = told(&script);
        }
    }
}

/// What the program is that a check is about need not be known.
#[test]
fn a_program_that_only_the_run_knows() {
    let hidden = |script: &str, text: &str, is_hidden: bool| {
        let told = read(script, &[("run.py", "")]);
        let found = told
            .iter()
            .any(|told| told.starts_with(text) && (told.contains(" <- ") || told.ends_with(" ?")));
        assert_eq!(found, is_hidden, "{script}: {told:?}");
    };
    for (script, text) in [
        ("$PYTHON -m pytest || true", "$PYTHON -m pytest"),
        (
            "${PYTHON:-python3} -m pytest; echo",
            "${PYTHON:-python3} -m pytest",
        ),
        ("$SUDO pytest || true", "$SUDO pytest"),
        ("$BIN/pytest | tail", "$BIN/pytest"),
        ("$RUNNER -q || true", "$RUNNER -q"),
        ("$T", "$T"),
        ("\"$T\"", "\"$T\""),
        ("npm run $T", "npm run $T"),
        ("npm run \"$T\"", "npm run"),
        ("yarn $T", "yarn $T"),
        ("make $T", "make $T"),
        ("cargo $T", "cargo $T"),
        ("python3 $F", "python3 $F"),
        ("poetry run $T", "poetry run $T"),
        ("dune runtest || true", "dune runtest"),
        ("run() { \"$@\"; echo; }; run pytest -q", "\"$@\""),
        ("run() { \"$@\" || true; }; run ruff check", "\"$@\""),
        ("run() { echo \"$*\"; $*; echo; }; run pytest -q", "$*"),
    ] {
        hidden(script, text, true);
    }
    for script in [
        "$PYTHON -m pytest",
        "${PYTHON:-python3} -m pytest",
        "$SUDO pytest",
        "\"$BIN\"/pytest",
        "npm run test $T",
        "cargo test $ARGS",
        "cargo run $ARGS",
        "make -j$N $FLAGS test",
        "python3 \"$(dirname \"$0\")/run.py\"",
        "dune runtest",
        "dune runtest; rc=$?; echo; exit $rc",
        "run() { echo \"+ $*\"; \"$@\"; }; run pytest -q",
        "set -e; run() { \"$@\"; echo done; }; run dune runtest",
    ] {
        hidden(script, "", false);
    }
}

/// Options with which a shell runs nothing, functions that are no runners, and files that each shell reads first.
#[test]
fn shells_and_functions_that_run_no_runner() {
    let files = [
        ("run.sh", "#!/bin/sh -n\nruff check\n"),
        ("env.sh", "#!/usr/bin/env -S bash -n\npytest\n"),
        ("honest.sh", "#!/bin/bash -e\npytest\n"),
        ("true.sh", "#!/bin/true\npytest\n"),
        ("start.sh", "exit 0\n"),
        ("lib.sh", "pytest() { :; }\n"),
    ];
    let doubted = |script: &str| {
        let told = read(script, &files);
        let doubted = |told: &String| told.contains(" <- ") || told.contains(" ?");
        (told.iter().any(doubted), told)
    };
    let mut wrong = Vec::new();
    for script in [
        "set -n; pytest",
        "set -en; ruff check",
        "set -o noexec; ./honest.sh",
        "shopt -so noexec; ruff check",
        "set -e; shopt -uo errexit; ruff check; echo",
        "bash -n honest.sh",
        "sh -n -c 'pytest'",
        "bash --version honest.sh",
        "bash -o noexec -c 'ruff check'",
        "bash -D honest.sh",
        "./run.sh",
        "sh ./run.sh || exit 1; bash -n run.sh",
        "./env.sh",
        "./true.sh",
        "exit 0; ./honest.sh",
        "pytest() { true; }; pytest",
        "ruff() { echo ok; }; ruff check .",
        "npm() { :; }; npm test",
        "function pytest { return 0; }\npytest -q",
        "cargo() { echo; }; cargo test",
        ". ./lib.sh; pytest",
        "BASH_ENV=start.sh bash honest.sh",
        "export BASH_ENV=./start.sh; ./honest.sh",
        "BASH_ENV=start.sh; export BASH_ENV; bash honest.sh",
        "env BASH_ENV=start.sh bash honest.sh",
        "ENV=./start.sh sh -i honest.sh",
        "env SHELLOPTS=noexec bash honest.sh",
    ] {
        let (doubted, told) = doubted(script);
        if !doubted {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    for script in [
        "bash honest.sh",
        "bash -eu honest.sh",
        "bash --norc -c 'pytest'",
        "./honest.sh",
        "pytest() { command pytest -q \"$@\"; }; pytest tests",
        "pytest() { python3 -m pytest \"$@\"; }; pytest tests",
        "npm() { command npm \"$@\"; }; npm test",
        "pytest() { true; }; command pytest",
        "check() { pytest; }; time check",
        "ENV=test pytest",
        "export ENV=production; ./honest.sh",
        "BASH_ENV= bash honest.sh",
    ] {
        let (doubted, told) = doubted(script);
        if doubted || told.is_empty() {
            wrong.push(format!("{script}: {told:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
