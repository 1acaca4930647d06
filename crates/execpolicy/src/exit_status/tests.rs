//! Which commands can fail without the check failing, form by form.

use super::*;

mod endings;
mod left_behind;
mod makefiles;

/// Commands that matter, each with what hides it: `pytest <- || true`. Programs like any other
/// are left out unless they are hidden.
fn read(script: &str, files: &[(&str, &str)]) -> Vec<String> {
    read_by(false, script, files)
}

fn read_by(sh_is_bash: bool, script: &str, files: &[(&str, &str)]) -> Vec<String> {
    let file = |path: &str| {
        let found = files.iter().find(|(name, _)| *name == path);
        found.map(|(_, text)| (*text).to_owned())
    };
    let entry = |path: &str| {
        let known = files.iter().find(|(name, _)| *name == path);
        Some(match known {
            Some((_, text)) => FileFolderOrNothing::File {
                executable: text.starts_with("#!"),
                empty: text.is_empty(),
            },
            None if files
                .iter()
                .any(|(name, _)| name.starts_with(&format!("{path}/"))) =>
            {
                FileFolderOrNothing::Folder
            }
            None => FileFolderOrNothing::Nothing,
        })
    };
    let folders = |path: &str| {
        let inside = files
            .iter()
            .filter_map(|(name, _)| name.strip_prefix(&format!("{path}/")));
        let names = inside.filter_map(|name| Some(name.split_once('/')?.0.to_owned()));
        names.collect()
    };
    let project = ScriptProjectView {
        text: &file,
        folders: &folders,
        sh_is_bash,
        entry: &entry,
        has_program: &|name| !matches!(name, "nosuch" | "rspec"),
    };
    let reading = analyze_exit_status_masking(script, &project);
    let told = reading.commands.into_iter().filter_map(|command| {
        let place = command
            .place
            .map_or(String::new(), |place| format!(" in {place}"));
        match command.masked_by {
            Some(hider) => Some(format!("{} <- {}{place}", command.text, hider.text)),
            None if command.may_not_run => Some(format!("{} ?{place}", command.text)),
            None if matches!(
                command.kind,
                CheckScriptCommandKind::Program
                    | CheckScriptCommandKind::Utility
                    | CheckScriptCommandKind::Question
            ) =>
            {
                None
            }
            None => Some(format!("{}{place}", command.text)),
        }
    });
    told.collect()
}

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    check_in(&[], script, expected);
}

#[track_caller]
fn check_in(files: &[(&str, &str)], script: &str, expected: &[&str]) {
    assert_eq!(read(script, files), expected, "{script}");
}

#[test]
fn what_hides_a_status() {
    check("cargo test || true", &["cargo test <- || true"]);
    check("pytest -q || :", &["pytest -q <- || :"]);
    check("npm test || exit 0", &["npm test <- || exit 0"]);
    check("npm test || echo failed", &["npm test <- || echo failed"]);
    check("pytest | tail -5", &["pytest <- | tail -5"]);
    check(
        "pytest 2>&1 | tee log | tail",
        &["pytest <- | tee log | tail"],
    );
    check("pytest |& tee log", &["pytest <- | tee log"]);
    check("pytest; echo done", &["pytest <- ; echo done"]);
    check("pytest\necho done", &["pytest <- ; echo done"]);
    check("pytest; echo $?", &["pytest <- ; echo $?"]);
    check("pytest & echo started", &["pytest <- &"]);
    check("pytest & wait", &["pytest <- &"]);
    check("! pytest", &["pytest <- !"]);
    check("! { pytest; }", &["pytest <- !"]);
    check("if pytest; then echo ok; fi", &["pytest <- if pytest"]);
    check(
        "while pytest; do sleep 1; done",
        &["pytest <- while pytest"],
    );
    check(
        "for d in a b; do pytest $d; done",
        &["pytest $d <- for d in a b;"],
    );
    check("echo \"$(pytest)\"", &["pytest <- $(pytest)"]);
    check("diff <(pytest) out", &["pytest <- <(pytest)"]);
    check("export X=$(pytest)", &["pytest <- $(pytest)"]);
    check(
        "trap 'exit 0' EXIT; pytest",
        &["pytest <- trap 'exit 0' EXIT"],
    );
    check("(pytest) || true", &["pytest <- || true"]);
    check(
        "{ pytest; mypy .; } || true",
        &["pytest <- || true", "mypy . <- || true"],
    );
    check("{ pytest; echo; }", &["pytest <- ; echo"]);
    check("f() { pytest; }; f || true", &["pytest <- || true"]);
    check("f() { pytest; echo; }; f", &["pytest <- ; echo"]);
    check("f() { pytest || return 0; }; f", &["pytest <- || return 0"]);
    check("timeout 5 pytest || true", &["timeout 5 pytest <- || true"]);
    check("env A=b pytest || true", &["env A=b pytest <- || true"]);
    check("A=b pytest || true", &["A=b pytest <- || true"]);
    check("ls | xargs pytest || true", &["xargs pytest <- || true"]);
    check(
        "find . -exec pytest {} \\;",
        &["find . -exec pytest {} \\; <- find -exec ... ;"],
    );
    check("bash -c 'pytest || true'", &["pytest <- || true"]);
    check("sh -c 'pytest; true'", &["pytest <- ; true"]);
    check("eval 'pytest || true'", &["pytest <- || true"]);
    check("sh <<'END'\npytest || true\nEND", &["pytest <- || true"]);
    check(
        "script -qc 'pytest' /dev/null",
        &["pytest <- script without -e"],
    );
    check("nosuch || true", &["nosuch <- || true"]);
    check("nosuch | cat", &["nosuch <- | cat"]);
    check(
        "set -e; pytest && echo ok; echo done",
        &["pytest <- ; echo done"],
    );
    check("set -e; pytest || true; echo done", &["pytest <- || true"]);
    check(
        "set -e; set +e; pytest; echo done",
        &["pytest <- ; echo done"],
    );
    check(
        "f() { set -e; pytest; echo; }; f || exit 1",
        &["pytest <- ; echo"],
    );
    check("rc=0; pytest || rc=1; echo $rc", &["pytest <- || rc=1"]);
    check(
        "pytest && echo ok || echo failed",
        &["pytest <- || echo failed"],
    );
    check("case x in x) pytest || true;; esac", &["pytest <- || true"]);
    check("make -i test", &["make -i test <- make -i"]);
    check(
        "npm run lint --if-present",
        &["npm run lint --if-present <- --if-present"],
    );
    check("python -m pytest || true", &["python -m pytest <- || true"]);
    check("npx jest || true", &["npx jest <- || true"]);
    check("uv run pytest | cat", &["uv run pytest <- | cat"]);
    check(
        "./node_modules/.bin/eslint . || true",
        &["./node_modules/.bin/eslint . <- || true"],
    );
    check("./check || true", &["./check <- || true"]);
    check("cat <<END | pytest || true\nx\nEND", &["pytest <- || true"]);
}

#[test]
fn what_hides_nothing() {
    for script in [
        "pytest",
        "cd sub && pytest",
        "pytest || exit 1",
        "pytest || exit",
        "pytest || exit $?",
        "pytest || { echo failed; exit 1; }",
        "pytest || { echo failed >&2; exit 1; } >&2",
        "pytest || (echo failed; exit 1)",
        "pytest || false",
        "echo start; pytest",
        "rm -rf out\nmkdir out\npytest",
        "set -e; pytest; echo done",
        "set -eu\npytest\necho done",
        "set -o errexit; pytest; echo done",
        "trap 'rm -rf tmp' EXIT; pytest",
        "set -o pipefail; pytest | tee log",
        "set -euo pipefail\npytest 2>&1 | tee log\necho done",
        "bash -o pipefail -c 'pytest 2>&1 | tee log'",
        "bash -eo pipefail -c 'pytest | tee log; echo'",
        "sh -ec 'pytest; echo'",
        "pytest | tee log; exit ${PIPESTATUS[0]}",
        "pytest | tee log; test ${PIPESTATUS[0]} -eq 0",
        "pytest; exit $?",
        "pytest; rc=$?; rm -rf tmp; exit $rc",
        "pytest; rc=$?\nrm -rf tmp\nexit \"$rc\"",
        "pytest; if [ $? -ne 0 ]; then exit 1; fi; echo ok",
        "pytest; [ $? -eq 0 ] || exit 1; echo ok",
        "pytest; test $? -eq 0",
        "rc=0; pytest || rc=1; exit $rc",
        "rc=0; pytest || rc=$?; echo; exit $rc",
        "fail=0; pytest || fail=1; [ $fail = 0 ]",
        "if ! pytest; then echo failed; exit 1; fi; echo ok",
        "if pytest; then echo ok; else exit 1; fi",
        "if [ -f x ]; then pytest; fi",
        "until pytest; do sleep 1; done",
        "for d in a; do pytest; done",
        "for d in a b; do pytest || exit 1; done",
        "set -e; for d in a b; do pytest; done",
        "out=$(pytest)",
        "die() { echo \"$1\"; exit 1; }; pytest || die 'tests failed'; echo ok",
        "f() { pytest || return 1; }; f",
        "pytest & pid=$!; sleep 1; wait $pid",
        "exec pytest",
        "timeout 60 pytest",
        "find . -name x -exec pytest {} +",
        "pytest && exit 0; exit 1",
        "(cd sub && pytest)",
        "pytest 2>/dev/null",
        "if command -v nosuch; then nosuch; fi; pytest",
        "time pytest",
        "case x in x) pytest;; esac",
    ] {
        let told = read(script, &[]);
        let hidden: Vec<&String> = told
            .iter()
            .filter(|told| {
                told.contains("pytest") && told.contains(" <- ") || told.contains("nosuch")
            })
            .collect();
        assert!(hidden.is_empty(), "{script}: {told:?}");
        assert!(
            told.iter().any(|told| told.contains("pytest")),
            "{script}: {told:?}"
        );
    }
}

#[test]
fn what_it_calls_is_read() {
    let package = |test: &str| {
        format!(r#"{{"scripts": {{"test": {test:?}, "unit": "jest", "pretest": "tsc"}}}}"#)
    };
    let masked = package("jest || true");
    check_in(
        &[("package.json", &masked)],
        "npm test",
        &[
            "tsc in package.json, script pretest",
            "jest <- || true in package.json, script test",
        ],
    );
    check_in(
        &[("package.json", &package("npm run unit"))],
        "npm test || true",
        &[
            "tsc <- || true in package.json, script pretest",
            "jest <- || true in package.json, script unit",
        ],
    );
    check_in(
        &[("web/package.json", &masked)],
        "npm --prefix web run test",
        &[
            "tsc in web/package.json, script pretest",
            "jest <- || true in web/package.json, script test",
        ],
    );
    check_in(
        &[("web/package.json", &masked)],
        "cd web && yarn test",
        &["jest <- || true in web/package.json, script test"],
    );
    check_in(&[], "npm test || true", &["npm test <- || true"]);
    check_in(
        &[("check.sh", "#!/bin/sh\npytest\necho done\n")],
        "./check.sh",
        &["pytest <- ; echo done in check.sh", "./check.sh"],
    );
    for fed in [
        "bash < check.sh",
        "sh -s < ./check.sh",
        "cat check.sh | bash",
        "timeout 9 sh < check.sh",
    ] {
        check_in(
            &[("check.sh", "#!/bin/sh\npytest\necho done\n")],
            fed,
            &["pytest <- ; echo done in check.sh"],
        );
    }
    check_in(
        &[("check.sh", "pytest\n")],
        "bash -e < check.sh && cat check.sh | dash",
        &["pytest in check.sh", "pytest in check.sh"],
    );
    check_in(&[], "bash < \"$script\"", &["bash <- bash reads $script"]);
    check_in(
        &[("loop.sh", "bash < loop.sh; pytest || true\n")],
        "bash < loop.sh",
        &["pytest <- || true in loop.sh"],
    );
    check_in(
        &[("check.sh", "#!/bin/bash -e\npytest\necho done\n")],
        "sh check.sh && ./check.sh",
        &[
            "pytest in check.sh",
            "sh check.sh",
            "pytest in check.sh",
            "./check.sh",
        ],
    );
    check_in(
        &[(
            "Makefile",
            "PYTEST ?= pytest -q\nall: test\ntest: lint\n\t@$(PYTEST) || true\nlint:\n\t-mypy .\n\tcd x && ruff check\n",
        )],
        "make",
        &[
            "pytest -q <- || true in Makefile, test",
            "mypy . <- - in Makefile, lint",
            "ruff check in Makefile, lint",
        ],
    );
    check_in(
        &[("Makefile", "test:\n\tpytest\n\techo done\n")],
        "make test",
        &["pytest in Makefile, test"],
    );
    check_in(
        &[("Makefile", ".ONESHELL:\ntest:\n\tpytest\n\techo done\n")],
        "make test",
        &["pytest <- ; echo done in Makefile, test"],
    );
    check_in(
        &[(
            "justfile",
            "set shell := [\"bash\", \"-cu\"]\ntest: lint\n    pytest | tail\nlint:\n    -ruff check\n",
        )],
        "just test",
        &[
            "pytest <- | tail in justfile, test",
            "ruff check <- - in justfile, lint",
        ],
    );
    // Calls that come back to themselves end.
    check_in(
        &[("a.sh", "sh a.sh; pytest || true")],
        "sh a.sh",
        &[
            "sh a.sh <- ; pytest || true in a.sh",
            "pytest <- || true in a.sh",
            "sh a.sh",
        ],
    );
}

#[test]
fn what_is_hostile_is_read_in_no_time() {
    let numbered = |count: usize, line: &dyn Fn(usize) -> String| -> String {
        (0..count).map(|at| line(at) + "\n").collect()
    };
    let begins = std::time::Instant::now();
    for text in [
        numbered(2_000, &|at| {
            format!("if [ -n \"$A{at}\" ]; then x{at}=1; fi; y=$x{at}")
        }) + "pytest || exit 1",
        numbered(200, &|at| format!("pytest {at} || r{at}=$?")) + "exit $r1",
        numbered(40, &|at| format!("f{at}() {{ f{0}; f{0}; f{0}; }}", at + 1)) + "f0",
        "pytest | ".repeat(2_000) + "pytest",
        "pytest\n".repeat(2_000),
        format!("x=aaaaaaaa\n{}pytest", "x=$x$x$x\n".repeat(20)),
        "(".repeat(100_000),
        "pytest || ".repeat(20_000),
        "$(".repeat(3_000),
        "f() { f; }; f || true".to_owned(),
        "f() { g; }; g() { f; }; f || g".to_owned(),
        "if ".repeat(2_000),
        "a=$(".repeat(500) + &")".repeat(500),
        "\u{0}".to_owned(),
        "é\u{a0}|| true".to_owned(),
    ] {
        read(&text, &[]);
    }
    // All of them together took minutes before what is copied was counted; some never ended.
    assert!(begins.elapsed().as_secs() < 40, "{:?}", begins.elapsed());
}

/// Where a part was not read, or there are too many ways, nobody knows what hides what.
#[test]
fn what_is_too_much_to_read_is_told() {
    let many = |line: &str, count: usize| line.repeat(count);
    let numbered: String = (0..400)
        .map(|at| format!("if [ -n \"$A{at}\" ]; then x{at}=1; fi; [ -z $x{at} ] || b\n"))
        .collect();
    for script in [
        format!("trap 'exit 0' EXIT\n{numbered}pytest"),
        format!("pytest || true; {}", many("#", 200_000)),
        format!("{}pytest || true{}", many("{ ", 100), many("; }", 100)),
        format!("pytest || true{}", many(" && ruff check", 100)),
        format!("{}pytest || true", many("eslint .\n", 600)),
        format!("{}pytest || true", many("timeout 1 ", 30)),
        "((pytest; true); trap 'exit 0' EXIT && echo)".to_owned(),
        "echo )( ; pytest".to_owned(),
    ] {
        let told = read(&script, &[]);
        assert!(
            told.iter().any(|told| told.contains(" <- ")),
            "{}: {told:?}",
            shorten_to_first_line(&script)
        );
    }
}
