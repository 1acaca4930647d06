//! Recognises a command by its words: a test runner, a checker, something that runs a script of
//! the project, or a program like any other.

use checkrein_core::exit_status::{CheckScriptCommandKind, TestRunner};

use super::build_tools::{MavenGradleTestHandling, test_handling_by_build_args};
use super::called_scripts::is_shell;
use super::known_programs::{
    CHECKERS, CHECKERS_WITH, GIT_QUESTIONS, IDLE, ONLY_SHOWS, QUESTIONS, RUNNERS_OF_COMMANDS,
    RUNNERS_OF_TASKS, TASK_RUNNERS, TEST_RUNNERS, TESTERS_WITH, UTILITIES,
};
use super::launchers::{launched_command_index, launched_script_index};
use super::runner_calls::{
    PackageScriptCall, RecipeRunnerInvocation, operand_words_before_double_dash, parse_just_call,
    parse_make_command_args, parse_package_script_call,
};
use crate::rule_set::basename;

/// What a command is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RecognisedScriptCommand {
    /// It prints, moves files about or waits: whether it fails says nothing of the project.
    Idle,
    /// It is of this kind.
    Known(CheckScriptCommandKind),
    /// It runs the command that begins at this word.
    Wraps(usize),
    /// It runs this word as a script.
    Script(usize),
    /// Scripts of a `package.json`.
    PackageScripts(PackageScriptCall),
    /// Targets of a makefile.
    Make(RecipeRunnerInvocation),
    /// Recipes of a justfile.
    Just(RecipeRunnerInvocation),
}

/// Returns what the command with these words is.
pub(super) fn classify_script_command_words(words: &[&str]) -> RecognisedScriptCommand {
    let Some((first, rest)) = words.split_first() else {
        return RecognisedScriptCommand::Idle;
    };
    let program = basename(first);
    let plain = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let named = match plain {
        "python" | "pypy" => "python",
        // Some systems call it `pytest-3`.
        "pytest-" => "pytest",
        _ => program,
    };
    // `pytest --collect-only` and the like run no test.
    if rest.iter().any(|word| ONLY_SHOWS.contains(word)) {
        return RecognisedScriptCommand::Known(CheckScriptCommandKind::Program);
    }
    match named {
        "cargo" => return recognise_cargo_command(rest),
        "python" => return recognise_python_command(rest, 1),
        "go" if rest.first() == Some(&"run") => return project_script_kind(),
        "node" | "nodejs" | "ruby" | "php" | "perl" | "lua" | "tsx" | "ts-node" | "deno"
        | "bun"
            if interpreter_runs_code_or_file(named, rest) =>
        {
            return match rest.contains(&"--test") && matches!(named, "node" | "nodejs") {
                true => RecognisedScriptCommand::Known(CheckScriptCommandKind::Tests(Some(
                    TestRunner::Node,
                ))),
                false => project_script_kind(),
            };
        }
        "make" | "gmake" => return RecognisedScriptCommand::Make(parse_make_command_args(rest)),
        "just" => return RecognisedScriptCommand::Just(parse_just_call(rest)),
        "npm" | "pnpm" | "yarn" | "bun" => {
            if let Some(scripts) = parse_package_script_call(named, rest) {
                return RecognisedScriptCommand::PackageScripts(scripts);
            }
        }
        "run-s" | "run-p" | "npm-run-all" | "npm-run-all2" => {
            return RecognisedScriptCommand::PackageScripts(PackageScriptCall {
                names: operand_words_before_double_dash(rest),
                hooks: true,
                ..PackageScriptCall::default()
            });
        }
        _ => {}
    }
    if let Some(at) = launched_script_index(named, rest) {
        return RecognisedScriptCommand::Script(at + 1);
    }
    if let Some(at) = launched_command_index(named, rest) {
        return recognise_launched_command(named, words, at + 1);
    }
    if let Some(at) = wrapped_command_index(named, rest) {
        // Some of these run tasks of the project by name, and such a name is no program.
        let task = words.get(at).filter(|_| RUNNERS_OF_TASKS.contains(&named));
        return match task {
            Some(task) if is_test_task_name(task) => {
                RecognisedScriptCommand::Known(CheckScriptCommandKind::Tests(None))
            }
            _ => RecognisedScriptCommand::Wraps(at),
        };
    }
    if TASK_RUNNERS.contains(&named) && rest.iter().any(|word| is_test_task_name(word)) {
        return RecognisedScriptCommand::Known(CheckScriptCommandKind::Tests(None));
    }
    // `mvn -DskipTests package` is a build, and judges as one.
    if test_handling_by_build_args(named, rest) == MavenGradleTestHandling::LeftOut {
        return RecognisedScriptCommand::Known(CheckScriptCommandKind::Checker);
    }
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(word));
    // Test runners come first, since some of these programs also build: `go test`, `go build`.
    let kind = if let Some((_, runner)) = TEST_RUNNERS.iter().find(|(name, _)| *name == named) {
        CheckScriptCommandKind::Tests(*runner)
    } else if let Some((.., runner)) = TESTERS_WITH
        .iter()
        .find(|(name, wanted, _)| *name == named && has(wanted))
    {
        CheckScriptCommandKind::Tests(*runner)
    } else if CHECKERS.contains(&named)
        || CHECKERS_WITH
            .iter()
            .any(|(name, wanted)| *name == named && has(wanted))
        || named == "go" && has(&["build", "vet"])
        || named == "deno" && has(&["lint", "check"])
        || named == "dotnet" && has(&["build", "publish"])
    {
        CheckScriptCommandKind::Checker
    } else if IDLE.contains(&named) {
        return RecognisedScriptCommand::Idle;
    } else if QUESTIONS.contains(&named) || named == "git" && has(GIT_QUESTIONS) {
        CheckScriptCommandKind::Question
    } else if UTILITIES.contains(&named) {
        CheckScriptCommandKind::Utility
    } else {
        CheckScriptCommandKind::Program
    };
    RecognisedScriptCommand::Known(kind)
}

/// Returns what a command is that runs elsewhere. A program that is not known may exist there and
/// not here.
fn recognise_launched_command(program: &str, words: &[&str], at: usize) -> RecognisedScriptCommand {
    let inner = words.get(at..).unwrap_or(&[]);
    let first = inner.first().map_or("", |word| basename(word));
    if RUNNERS_OF_TASKS.contains(&program) && is_test_task_name(first) {
        return RecognisedScriptCommand::Known(CheckScriptCommandKind::Tests(None));
    }
    if is_shell(first) {
        return RecognisedScriptCommand::Wraps(at);
    }
    match classify_script_command_words(inner) {
        RecognisedScriptCommand::Idle => {
            RecognisedScriptCommand::Known(CheckScriptCommandKind::Program)
        }
        known @ RecognisedScriptCommand::Known(_) => known,
        _ => RecognisedScriptCommand::Wraps(at),
    }
}

/// Returns whether the name of a task says that it tests: `test`, `test:unit`.
pub(super) fn is_test_task_name(task: &str) -> bool {
    !task.starts_with('-')
        && task
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|part| matches!(part, "test" | "tests" | "spec" | "specs"))
}

fn project_script_kind() -> RecognisedScriptCommand {
    RecognisedScriptCommand::Known(CheckScriptCommandKind::ProjectScript)
}

/// Returns where the command of `npx COMMAND` and the like begins.
fn wrapped_command_index(program: &str, rest: &[&str]) -> Option<usize> {
    let fits = |(name, between): &&(&str, &[&str])| *name == program && rest.starts_with(between);
    let (_, between) = RUNNERS_OF_COMMANDS.iter().find(fits)?;
    let mut at = between.len();
    while let Some(word) = rest.get(at) {
        if *word == "--" {
            at += 1;
            break;
        }
        let assigns = program.starts_with("cross-env") && word.contains('=');
        if !word.starts_with('-') && !assigns {
            break;
        }
        // Options that are known to take a value.
        let valued = [
            "-p",
            "--package",
            "--with",
            "--python",
            "--extra",
            "--group",
            "--project",
            "-e",
            "-s",
        ];
        at += if valued.contains(word) { 2 } else { 1 };
        // `coverage run -m pytest`
        if program == "coverage" && *word == "-m" {
            break;
        }
    }
    (at < rest.len()).then_some(at + 1)
}

fn recognise_cargo_command(rest: &[&str]) -> RecognisedScriptCommand {
    let mut rest = rest.iter().skip_while(|word| word.starts_with('+'));
    let sub = loop {
        match rest.next() {
            Some(&("--config" | "-C" | "-Z" | "--color" | "--manifest-path")) => {
                rest.next();
            }
            Some(word) if word.starts_with('-') => {}
            other => break other.copied(),
        }
    };
    let rest: Vec<&str> = rest.copied().collect();
    let kind = match sub {
        // With `--no-run` the tests are only compiled.
        Some("test" | "t" | "bench") if rest.contains(&"--no-run") => {
            CheckScriptCommandKind::Checker
        }
        Some("test" | "t" | "bench") => CheckScriptCommandKind::Tests(Some(TestRunner::Cargo)),
        Some("nextest") if rest.first() == Some(&"run") => {
            CheckScriptCommandKind::Tests(Some(TestRunner::Nextest))
        }
        Some("llvm-cov" | "tarpaulin" | "miri" | "mutants" | "careful" | "insta") => {
            CheckScriptCommandKind::Tests(None)
        }
        Some(
            "build" | "b" | "check" | "c" | "clippy" | "doc" | "d" | "deny" | "audit" | "hack"
            | "machete" | "udeps" | "semver-checks" | "publish" | "package" | "spellcheck" | "vet",
        ) => CheckScriptCommandKind::Checker,
        Some("fmt") if rest.contains(&"--check") => CheckScriptCommandKind::Checker,
        Some("run" | "r" | "xtask" | "make") => CheckScriptCommandKind::ProjectScript,
        _ => CheckScriptCommandKind::Program,
    };
    RecognisedScriptCommand::Known(kind)
}

/// `python -m pytest`, `python manage.py test`. `at`: where `rest` begins.
fn recognise_python_command(rest: &[&str], at: usize) -> RecognisedScriptCommand {
    let mut place = 0;
    while let Some(word) = rest.get(place) {
        match *word {
            // The module has the name of its program, so it is recognised like one.
            "-m" if rest.get(place + 1).is_some() => {
                return RecognisedScriptCommand::Wraps(at + place + 1);
            }
            "-W" | "-X" => place += 2,
            "-c" => return project_script_kind(),
            "-" => return project_script_kind(),
            word if word.starts_with('-') => place += 1,
            file => {
                let tests = rest.get(place + 1) == Some(&"test") && file.ends_with(".py");
                return match tests {
                    true => RecognisedScriptCommand::Known(CheckScriptCommandKind::Tests(Some(
                        TestRunner::Unittest,
                    ))),
                    false => project_script_kind(),
                };
            }
        }
    }
    project_script_kind()
}

/// Returns whether an interpreter is given code or a file, and not a subcommand of its own.
fn interpreter_runs_code_or_file(program: &str, rest: &[&str]) -> bool {
    let first = rest.iter().find(|word| !word.starts_with('-'));
    match program {
        "deno" => first == Some(&"run"),
        // A word with a dot is a file; other words are scripts or subcommands.
        "bun" => first.is_some_and(|word| word.contains('.') && !word.contains(' ')),
        "ruby" | "php" | "perl" | "lua" | "node" | "nodejs" | "tsx" | "ts-node" => !rest.is_empty(),
        _ => false,
    }
}
