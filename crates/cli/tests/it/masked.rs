//! A check that ends with status 0 although what it runs failed, or is not there: real
//! runners, real shells. Each form is inconclusive and refuses the stop, and passes again
//! once it is written honestly, or where its tests can be counted.

use std::process::Command;

use serde_json::Value;

use crate::world::{World, ending};

const RUST_MANIFEST: &str =
    "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
const RUST_TESTED: &str = "#[test]\nfn one() {}\n";
const RUST_FAILING: &str = "#[test]\nfn one() { panic!() }\n";
const PYTHON_TESTED: &str =
    "import unittest\nclass A(unittest.TestCase):\n    def test_one(self): pass\n";
const PYTHON_FAILING: &str =
    "import unittest\nclass A(unittest.TestCase):\n    def test_one(self): self.fail()\n";
const NODE_TESTED: &str = "require('node:test')('one', () => {});\n";
const NODE_FAILING: &str = "require('node:test')('one', () => { throw new Error('no'); });\n";

/// A repo of these files with one check.
fn world(run: &str, files: &[(&str, &str)]) -> World {
    let world = World::new();
    for (name, text) in files {
        world.write(name, text);
    }
    world.config(&format!(
        "[[verifier]]\nname = \"tests\"\ntimeout = \"120s\"\nrun = '''{run}'''\n"
    ));
    world.commit();
    world
}

/// What `check --json` says of the one check: verdict and cause, exit status, note.
fn checked(run: &str, files: &[(&str, &str)]) -> (String, Option<i32>, String) {
    let said = world(run, files).says(&["check", "--json"]);
    let document: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
    let check = &document["verifiers"][0];
    let verdict = check["verdict"].as_str().unwrap_or_default();
    let cause = check["cause"].as_str().unwrap_or_default();
    let note = check["note"].as_str().unwrap_or_default();
    (
        format!("{verdict} {cause}").trim().to_owned(),
        said.code,
        note.to_owned(),
    )
}

#[track_caller]
fn masked(run: &str, files: &[(&str, &str)], note: &str) {
    let (verdict, code, found) = checked(run, files);
    assert_eq!(
        (verdict.as_str(), code),
        ("inconclusive masked", Some(3)),
        "{run}: {found}"
    );
    assert!(found.contains(note), "{run}: {found}");
}

#[track_caller]
fn passes(run: &str, files: &[(&str, &str)]) {
    let (verdict, code, note) = checked(run, files);
    assert_eq!((verdict.as_str(), code), ("pass", Some(0)), "{run}: {note}");
}

/// Whether a program is there that a test needs; said where it is not.
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
fn is_there(program: &str, arguments: &[&str]) -> bool {
    let there = Command::new(program).args(arguments).output();
    let there = there.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!(
            "SKIPPED: {program} {} does not run here",
            arguments.join(" ")
        );
    }
    there
}

#[test]
fn a_masked_missing_program_does_not_pass() {
    masked(
        "nosuch-tool || true",
        &[],
        "`|| true` hides the exit status of `nosuch-tool`",
    );
    masked(
        "nosuch-tool 2>/dev/null | cat",
        &[],
        "`nosuch-tool` is not installed",
    );
    masked(
        "sh check.sh; true",
        &[],
        "`; true` hides the exit status of `sh check.sh`",
    );
    masked("./check.sh || true", &[], "`|| true`");
    masked("(nosuch-tool) & wait", &[], "`&` hides");
    masked(
        "sh check.sh",
        &[("check.sh", "nosuch-tool\necho done\n")],
        "in check.sh",
    );
    masked(
        "make -s test",
        &[("Makefile", "test:\n\t-nosuch-tool\n")],
        "in Makefile, test",
    );
    // Whether it is there makes no difference.
    masked("eslint . || true", &[], "`eslint .`");
    masked(
        "pytest-is-not-here -q; pytest -q | tail -5",
        &[],
        "`| tail -5` hides the exit status of `pytest -q`",
    );
    // These decide nothing, and hide nothing of interest.
    passes("mkdir -p out || true", &[]);
    passes("rm -rf out; test -f README", &[]);
    passes(
        "if command -v nosuch-tool; then nosuch-tool; fi; test -f README",
        &[],
    );
    passes("grep -q nothing README || test -f README", &[]);
}

#[test]
fn the_stop_of_an_agent_is_refused_and_says_what_hides_what() {
    let world = world("nosuch-tool || true", &[]);
    let said = world.says(&["run", "--attempts", "2", "--", "sh", "-c", "echo x >> made"]);
    assert_eq!(said.code, Some(11), "{said:?}");
    assert_eq!(world.ending(), "gave_up/same_failures");
    assert!(
        said.stderr
            .contains("`|| true` hides the exit status of `nosuch-tool`"),
        "{said:?}"
    );
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn a_person_is_told_how_to_write_it() {
    let world = world("pytest -q | tail -5", &[]);
    let fix = "To mend it, run it as bash -o pipefail -c '...'";
    assert!(world.says(&["check"]).stderr.contains(fix));
    let doctor = world.says(&["doctor"]);
    assert!(
        doctor
            .stdout
            .contains("hides the exit status of `pytest -q`"),
        "{doctor:?}"
    );
}

#[test]
fn a_masked_cargo_test_passes_only_on_evidence() {
    if !is_there("cargo", &["--version"]) {
        return;
    }
    let files = |tests: &'static str| {
        [
            ("Cargo.toml", RUST_MANIFEST),
            ("src/lib.rs", tests),
            (".gitignore", "target\nCargo.lock\n"),
        ]
    };
    // Where cargo is rustup's, it looks for itself in the home folder, which is another one here.
    let home = std::env::var_os("HOME").unwrap_or_default();
    let own = |name: &str, folder: &str| {
        let default = std::path::Path::new(&home).join(folder);
        std::env::var_os(name)
            .map_or(default, Into::into)
            .display()
            .to_string()
    };
    let with_home = format!(
        "export RUSTUP_HOME='{}' CARGO_HOME='{}' CARGO_NET_OFFLINE=true; ",
        own("RUSTUP_HOME", ".rustup"),
        own("CARGO_HOME", ".cargo")
    );
    let masked_run = &format!("{with_home}cargo test 2>&1 || true");
    masked(masked_run, &[], "could not find `Cargo.toml`");
    masked(masked_run, &files(RUST_FAILING), "`|| true`");
    masked(masked_run, &files("fn broken( {}\n"), "`|| true`");
    masked(
        masked_run,
        &files("fn untested() {}\n"),
        "does not show that tests ran",
    );
    passes(masked_run, &files(RUST_TESTED));
    passes(
        &format!("{with_home}bash -o pipefail -c 'cargo test 2>&1 | tee ../log'"),
        &files(RUST_TESTED),
    );
    masked(
        &format!("{with_home}cargo check -q; cargo test -q"),
        &files(RUST_TESTED),
        "`cargo check -q`",
    );
    // Nothing ran: vacuous, masked or not.
    let (verdict, ..) = checked(
        &format!("{with_home}cargo test -q"),
        &files("fn untested() {}\n"),
    );
    assert_eq!(verdict, "inconclusive vacuous_pass");
}

#[test]
fn a_masked_npm_or_node_test_passes_only_on_evidence() {
    if !is_there("node", &["--test", "--help"]) || !is_there("npm", &["--version"]) {
        return;
    }
    let package = |test: &str| {
        format!(
            "{{\"scripts\": {{\"test\": {test:?}, \"unit\": \"node --test a.test.js || true\"}}}}"
        )
    };
    masked(
        "npm test || true",
        &[],
        "`|| true` hides the exit status of `npm test`",
    );
    for (test, source, expected) in [
        (
            "node --test a.test.js || true",
            NODE_FAILING,
            "inconclusive masked",
        ),
        ("node --test a.test.js || true", NODE_TESTED, "pass"),
        ("npm run unit", NODE_FAILING, "inconclusive masked"),
        ("npm run unit", NODE_TESTED, "pass"),
        ("node --test a.test.js", NODE_TESTED, "pass"),
        ("nosuch-tool; exit 0", NODE_TESTED, "inconclusive masked"),
        (
            "node --test empty/",
            NODE_TESTED,
            "inconclusive vacuous_pass",
        ),
        (
            "echo \"Error: no test specified\" && exit 0",
            NODE_TESTED,
            "inconclusive vacuous_pass",
        ),
    ] {
        let package = package(test);
        let files = [
            ("package.json", package.as_str()),
            ("a.test.js", source),
            ("empty/README", ""),
        ];
        let (verdict, _, note) = checked("npm test", &files);
        // node says differently by version what an empty folder is: no pass in any case.
        match test.contains("empty/") {
            true => assert_ne!(verdict, "pass", "{test}: {note}"),
            false => assert_eq!(verdict, expected, "{test}: {note}"),
        }
    }
    masked(
        "npm run lint --if-present",
        &[("package.json", "{\"scripts\": {}}")],
        "`--if-present`",
    );
}

#[test]
fn a_masked_python_test_passes_only_on_evidence() {
    if !is_there("python3", &["--version"]) {
        return;
    }
    let run = "python3 -m unittest 2>&1 | tail -5";
    masked(run, &[("test_a.py", PYTHON_FAILING)], "`| tail -5`");
    masked(run, &[("a.py", "")], "`| tail -5`");
    passes(run, &[("test_a.py", PYTHON_TESTED)]);
    passes("python3 -m unittest", &[("test_a.py", PYTHON_TESTED)]);
    passes(
        "python3 -m unittest; rc=$?; rm -rf tmp; exit $rc",
        &[("test_a.py", PYTHON_TESTED)],
    );
    masked(
        "python3 -m nosuch_module || true; python3 -m unittest nosuch | cat",
        &[],
        "`| cat`",
    );
    // With and without pytest itself.
    let tested = [("test_a.py", "def test_one(): pass\n")];
    match is_there("python3", &["-m", "pytest", "--version"]) {
        true => {
            passes("python3 -m pytest | tail -5", &tested);
            masked(
                "python3 -m pytest | tail -5",
                &[("test_a.py", "def test_one(): assert 0\n")],
                "`| tail -5`",
            );
        }
        false => masked(
            "python3 -m pytest | tail -5",
            &tested,
            "No module named pytest",
        ),
    }
}

#[test]
fn a_run_names_its_checks_and_what_they_found() {
    let world = world("echo 'test a::b ... FAILED'; exit 1", &[]);
    let said = world.says(&["run", "--json", "--attempts", "1", "--", "true"]);
    let document: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(ending(&document["transition"]), "gave_up/same_failures");
    let check = &document["verifiers"][0];
    assert_eq!(
        (&check["name"], &check["verdict"]),
        (&"tests".into(), &"fail".into())
    );
    assert_eq!(check["findings"][0]["id"], "a::b");
}

#[test]
fn check_names_the_test_that_fails_and_the_files_that_move() {
    let named = world(
        r"printf 'TAP version 13\nnot ok 1 - adds numbers\n'; exit 1",
        &[],
    );
    let said = named.says(&["check"]);
    assert!(
        said.stdout.contains("tests: adds numbers: failed"),
        "{said:?}"
    );
    let moving = world("date +%N >> stamp.txt", &[("stamp.txt", "")]);
    let said = moving.says(&["check"]);
    assert!(
        said.stdout
            .contains("files kept changing while it ran: stamp.txt"),
        "{said:?}"
    );
    assert!(
        said.stdout.contains("outputs = [\"stamp.txt\"]"),
        "{said:?}"
    );
}
