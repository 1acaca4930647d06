//! `checkrein demo`: the main job on a real tiny project with a failing test and a scripted agent,
//! offline, in a temporary folder that is removed afterwards.
//!
//! The agent is this very program in another role (an environment variable says so), so that the
//! demo needs no shell.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use checkrein_core::event::Event;
use checkrein_core::transition::Reason;
use checkrein_verifiers::withheld::CHECK_VARIABLE;

use crate::args::DemoArgs;
use crate::commands::lookup;
use crate::commands::run::{self, command};
use crate::locate;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::TextStyle;
use crate::ui::{self, explanations, timeline};
use crate::{exit_code, signals};

/// The part of the demo that this process plays.
const ROLE_VARIABLE: &str = "CHECKREIN_DEMO_ROLE";

pub(crate) fn run_demo_command(args: &DemoArgs) -> Result<ExitCode, CommandError> {
    // Asked first: in its other roles this program must not begin a demo of its own.
    match std::env::var(ROLE_VARIABLE).ok().as_deref() {
        Some("agent") => return run_demo_agent(),
        Some("check") => return run_demo_check(),
        // A check may not get the role variable. A check that began a demo would start a check
        // again, without end.
        _ if std::env::var_os(CHECK_VARIABLE).is_some() => return run_demo_check(),
        _ => {}
    }
    signals::install_signal_handlers();
    let folder = tempfile::Builder::new()
        .prefix("checkrein-demo-")
        .tempdir()?;
    let repo = folder.path().join("adder");
    std::fs::create_dir(&repo)?;
    let me = std::env::current_exe()?;
    let project = DemoProject::pick_demo_project(&me);
    for (name, text) in &project.files {
        let file = repo.join(name);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(file, text)?;
    }
    let config = format!(
        "goal = \"make add() right\"\n\n[[verifier]]\nname = \"tests\"\nrun = {}\nenv = [\"{ROLE_VARIABLE}\"]\n",
        quote_toml_string(&project.test)
    );
    std::fs::write(repo.join(locate::CONFIG), &config)?;

    let say = |line: &str| {
        if !args.json {
            ui::print_wrapped_to_stderr(line);
        }
    };
    if !args.json {
        let about = format!(
            "A tiny {} project with a failing test, and an agent that says it is done.",
            project.language
        );
        ui::print_wrapped_to_stderr(StyledLine::line_from_styled_text(TextStyle::Strong, &about));
    }
    if !args.json {
        ui::print_wrapped_to_stderr(
            StyledLine::from("The check is: ").append_unwrappable_text(&project.test),
        );
        ui::print_wrapped_to_stderr("");
    }

    let mut located = locate::locate_project(&repo, Some(&folder.path().join("state")));
    // Checks get this program's role as a check, wherever it is asked for that.
    Arc::make_mut(&mut located.place.env)
        .insert(OsString::from(ROLE_VARIABLE), OsString::from("check"));
    // A person's own config must not change what the demo shows.
    located.person_config = None;
    let plan = command::CommandAsAgentRunPlan {
        command: vec![me.into_os_string(), OsString::from("demo")],
        task: "add() is wrong; make its test pass".to_owned(),
        any_exit: false,
        attempts: None,
        agent: "demo",
        env: vec![
            (OsString::from(ROLE_VARIABLE), OsString::from("agent")),
            (
                OsString::from("CHECKREIN_DEMO_FILE"),
                repo.join(project.broken_file).into_os_string(),
            ),
        ],
        confinement: None,
    };
    let (checks, quiet) = (RunningChecksView::new_check_progress_view(None), args.json);
    let show = Arc::new(move |progress| {
        if !quiet {
            checks.show_check_progress(progress);
        }
    });
    let outcome = command::run_command_as_agent(&located, &plan, &say, show)?;
    if args.json {
        ui::print_json(&run::run_result_json(&outcome));
    } else {
        say("");
        print_run_timeline(&outcome)?;
    }
    let code = outcome
        .transition
        .reason
        .run_exit_code()
        .unwrap_or(exit_code::NO);
    Ok(exit_code::to_exit_code(code))
}

fn print_run_timeline(outcome: &run::TaskRunResult) -> Result<(), CommandError> {
    let events = lookup::task_events(&outcome.store, &outcome.session, outcome.task)?;
    let why = lookup::task_end_reasons(&events).to_vec();
    let events: Vec<Event> = events.into_iter().map(|(_, event)| event).collect();
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(
        TextStyle::Strong,
        "What happened",
    ));
    for line in timeline::timeline_lines(&events) {
        ui::print_line_to_stdout(line);
    }
    ui::print_line_to_stdout("");
    ui::print_output_wrapped(
        &explanations::task_ending_meaning(&outcome.transition, &why, None),
        0,
    );
    if outcome.transition.reason == Reason::TaskComplete {
        ui::print_output_wrapped(
            "In your own repo: checkrein init. For an agent without hooks: checkrein run -- YOUR-AGENT.",
            0,
        );
    }
    Ok(())
}

/// A project that the machine can check.
struct DemoProject {
    language: &'static str,
    /// Path and text of each file.
    files: Vec<(&'static str, &'static str)>,
    /// The file that the agent has to mend.
    broken_file: &'static str,
    test: String,
}

impl DemoProject {
    fn pick_demo_project(me: &Path) -> Self {
        // The first language that is installed is taken; the last project needs none.
        if can_run_program("cargo", &["--version"]) {
            return Self {
                language: "Rust",
                files: vec![
                    (
                        "Cargo.toml",
                        "[package]\nname = \"adder\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
                    ),
                    (
                        "src/lib.rs",
                        "pub fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\n\n#[test]\nfn adds() {\n    assert_eq!(add(2, 2), 4);\n}\n",
                    ),
                ],
                broken_file: "src/lib.rs",
                test: "cargo test --offline --quiet".to_owned(),
            };
        }
        let python = ["python3", "python"]
            .into_iter()
            .find(|name| can_run_program(name, &["-c", "import unittest"]));
        if let Some(python) = python {
            return Self {
                language: "Python",
                files: vec![
                    ("adder.py", "def add(a, b):\n    return a - b\n"),
                    (
                        "test_adder.py",
                        "import unittest\n\nfrom adder import add\n\n\nclass Adds(unittest.TestCase):\n    def test_adds(self):\n        self.assertEqual(add(2, 2), 4)\n",
                    ),
                ],
                broken_file: "adder.py",
                // Without bytecode: Python tells it apart by second and size, and the mended file
                // has those of the broken one.
                test: format!("{python} -B -m unittest"),
            };
        }
        if can_run_program("node", &["--version"]) {
            return Self {
                language: "JavaScript",
                files: vec![
                    ("adder.mjs", "export const add = (a, b) => a - b;\n"),
                    (
                        "adder.test.mjs",
                        "import assert from \"node:assert\";\nimport { add } from \"./adder.mjs\";\n\nassert.strictEqual(add(2, 2), 4);\n",
                    ),
                ],
                broken_file: "adder.mjs",
                test: "node adder.test.mjs".to_owned(),
            };
        }
        Self {
            language: "text",
            files: vec![("sum.txt", "2 + 2 = 2 - 2\n")],
            broken_file: "sum.txt",
            test: format!("\"{}\" demo", me.display()),
        }
    }
}

fn can_run_program(program: &str, args: &[&str]) -> bool {
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The scripted agent: claims done without having mended anything, then mends it.
fn run_demo_agent() -> Result<ExitCode, CommandError> {
    let attempt = std::env::var("CHECKREIN_ATTEMPT").unwrap_or_default();
    if attempt == "1" {
        ui::print_output_wrapped(
            "agent: I looked at add() and fixed it. All tests pass. Done!",
            2,
        );
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let file = std::env::var_os("CHECKREIN_DEMO_FILE").ok_or_else(|| {
        CommandError::cli_failure_error("the demo's agent was not told which file to mend")
    })?;
    let text = std::fs::read_to_string(&file)?;
    std::fs::write(&file, text.replace("a - b", "a + b").replace("2 - 2", "4"))?;
    ui::print_output_wrapped(
        "agent: The test still failed: add() subtracts. Fixed for real now.",
        2,
    );
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// The built-in check, for machines that have none of the languages.
fn run_demo_check() -> Result<ExitCode, CommandError> {
    let text = std::fs::read_to_string("sum.txt").map_err(|_| {
        CommandError::usage_error(
            "a check cannot begin a demo",
            "run it in a terminal: checkrein demo",
        )
    })?;
    if text.trim() == "2 + 2 = 4" {
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    ui::print_line_to_stdout(&format!("sum.txt:1: wrong: {}", text.trim()));
    Ok(exit_code::to_exit_code(exit_code::NO))
}

fn quote_toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
