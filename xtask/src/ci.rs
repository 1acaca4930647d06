//! `ci`: runs everything that a change has to pass, in the order in which it is cheapest to fail.
//! The first red step ends it; each step prints how long it took.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// One call of cargo: a heading, its arguments, and variables of its environment.
struct CiCargoStep {
    heading: &'static str,
    arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

const STEPS: &[CiCargoStep] = &[
    CiCargoStep {
        heading: "format",
        arguments: &["fmt", "--all", "--check"],
        variables: &[],
    },
    CiCargoStep {
        heading: "lint",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        variables: &[],
    },
    CiCargoStep {
        heading: "test",
        arguments: &["test", "--workspace"],
        variables: &[],
    },
    CiCargoStep {
        heading: "rows of the documents, of which the step before has built the tests",
        arguments: &["xtask", "rows"],
        variables: &[],
    },
    // Features of sibling crates can change how serde_json orders a map, and with it the core's
    // bytes: the golden logs must come out the same without siblings.
    CiCargoStep {
        heading: "test the core alone",
        arguments: &["test", "-p", "checkrein-core"],
        variables: &[],
    },
    // Three runs of a dev build measure nothing; they show that the bench still works.
    CiCargoStep {
        heading: "the bench of the hook, three runs",
        arguments: &["xtask", "bench", "hook", "--runs", "3", "--debug"],
        variables: &[],
    },
    CiCargoStep {
        heading: "the simulation, half a minute",
        arguments: &["xtask", "simulate", "--debug", "--seconds", "30"],
        variables: &[],
    },
    CiCargoStep {
        heading: "fuzzing, a few seconds",
        arguments: &[
            "xtask",
            "fuzz",
            "script",
            "patch",
            "read",
            "schema",
            "--seconds",
            "5",
        ],
        variables: &[],
    },
    CiCargoStep {
        heading: "documentation",
        arguments: &["doc", "--workspace", "--no-deps"],
        variables: &[("RUSTDOCFLAGS", "-D warnings")],
    },
];

/// Runs the steps.
pub(crate) fn run_ci(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(first) = arguments.first() {
        return Err(format!("ci takes no arguments, not even '{first}'"));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("xtask has no parent folder")?;
    let began = Instant::now();
    println!("== install what is missing");
    install_ci_prerequisites()?;
    for step in STEPS {
        println!("\n== {}: cargo {}", step.heading, step.arguments.join(" "));
        let at = Instant::now();
        let status = Command::new("cargo")
            .args(step.arguments)
            .envs(step.variables.iter().copied())
            .current_dir(root)
            .status()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        let took = at.elapsed().as_secs();
        if !status.success() {
            println!("== {}: RED after {took} s", step.heading);
            return Ok(ExitCode::FAILURE);
        }
        println!("== {}: green, {took} s", step.heading);
    }
    println!("\n== all green, {} s", began.elapsed().as_secs());
    Ok(ExitCode::SUCCESS)
}

/// A tool that the steps need: its name, a command that shows it is there, and commands that
/// install it, of which the first that works is enough.
type CiToolRequirement = (
    &'static str,
    &'static [&'static str],
    &'static [&'static [&'static str]],
);

const NEEDS: &[CiToolRequirement] = &[
    (
        "git",
        &["git", "--version"],
        &[
            &["apt-get", "install", "-y", "--no-install-recommends", "git"],
            &["brew", "install", "git"],
        ],
    ),
    // The bundled SQLite and the bash grammar are C.
    (
        "a C compiler",
        &["cc", "--version"],
        &[&[
            "apt-get",
            "install",
            "-y",
            "--no-install-recommends",
            "gcc",
            "libc6-dev",
        ]],
    ),
    (
        "rustfmt",
        &["cargo", "fmt", "--version"],
        &[&["rustup", "component", "add", "rustfmt"]],
    ),
    (
        "clippy",
        &["cargo", "clippy", "--version"],
        &[&["rustup", "component", "add", "clippy"]],
    ),
];

fn install_ci_prerequisites() -> Result<(), String> {
    for (name, probe, ways) in NEEDS {
        // Windows builds C through MSVC, which has no `cc` to ask for.
        if command_succeeds(probe) || (cfg!(windows) && probe.first() == Some(&"cc")) {
            println!("{name}: there");
            continue;
        }
        println!("{name}: missing, installing");
        // Probed again, since an installer can succeed without the tool being on `PATH`.
        let installed = ways.iter().any(|way| command_succeeds(way)) && command_succeeds(probe);
        if !installed {
            return Err(format!("'{name}' is missing and could not be installed"));
        }
    }
    Ok(())
}

fn command_succeeds(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    // Nothing is printed: ways that fail here, such as `brew` on Debian, are expected.
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
