//! `bench check`: what `checkrein check` adds to the longest of N commands, and what an
//! unchanged tree of 5,000 files costs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::contest::{Contestant, Times, interleave};
use super::hook::Failure;
use super::scene::Scene;
use super::{Bound, Options, Target};
use crate::build::Profile;

/// Commands side by side. They sleep, so that cores do not matter.
const COMMANDS: usize = 8;
/// Seconds that the longest sleeps.
const LONGEST: &str = "0.5";
const FILES: usize = 5_000;
/// After so long the stat cache believes a file's times.
const AT_REST: Duration = Duration::from_secs(61);

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let runs = options.runs.min(30);
    let scene = Scene::new(binary)?;
    let mut config = String::new();
    for n in 0..COMMANDS {
        let seconds = if n == 0 { LONGEST } else { "0.1" };
        config.push_str(&format!(
            "[[verifier]]\nname = \"v{n}\"\nrun = \"sleep {seconds}\"\ninputs = [\"src/**\"]\n"
        ));
    }
    scene.write("repo/checkrein.toml", &config)?;

    let large = Scene::new(binary)?;
    large.write(
        "repo/checkrein.toml",
        "[[verifier]]\nname = \"tests\"\nrun = \"echo ran >> ../ran\"\n",
    )?;
    for n in 0..FILES {
        let folder = format!("repo/src/m{}", n % 100);
        if n < 100 {
            std::fs::create_dir_all(large.path(&folder))
                .map_err(|error| format!("{folder}: {error}"))?;
        }
        large.write(
            &format!("{folder}/f{n}.rs"),
            &format!("pub fn f{n}() -> u32 {{ {n} }}\n"),
        )?;
    }
    large.git(&["add", "-A"])?;
    // A file that was written less than a minute ago is read again at each look. What is measured is
    // a tree at rest.
    if options.profile != Profile::Dev {
        std::thread::sleep(AT_REST);
    }
    // The first reads every file and runs the command, the second finds all as it was.
    for _ in 0..2 {
        let done = quiet(large.checkrein(&["check"]))
            .status()
            .map_err(|error| format!("checkrein check: {error}"))?;
        if !done.success() {
            return Err(format!("checkrein check: {done}"));
        }
    }
    let ran = std::fs::read_to_string(large.path("ran"))
        .unwrap_or_default()
        .lines()
        .count();

    let mut contestants = [
        Contestant::new("/bin/true", |_| Ok(quiet(Command::new("/bin/true")))),
        Contestant::new(format!("sleep {LONGEST}, by sh"), |_| {
            let mut command = quiet(Command::new("sh"));
            command.arg("-c").arg(format!("sleep {LONGEST}"));
            Ok(command)
        }),
        Contestant::new(format!("checkrein check, {COMMANDS} commands"), |_| {
            Ok(quiet(scene.checkrein(&["check", "--no-cache"])))
        }),
        Contestant::new(format!("checkrein check, {FILES} files unchanged"), |_| {
            Ok(quiet(large.checkrein(&["check"])))
        }),
        Contestant::new("git status, the same tree", |_| {
            let mut command = quiet(Command::new("git"));
            command
                .args(["status", "--porcelain"])
                .current_dir(large.path("repo"));
            Ok(command)
        }),
    ];
    let times = interleave(&mut contestants, runs)?;
    drop(contestants);
    println!(
        "{runs} timed runs each, interleaved\n\n{}",
        Times::heading()
    );
    for times in &times {
        println!("{}", times.line());
    }
    let [_, longest, parallel, unchanged, _] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let again = std::fs::read_to_string(large.path("ran"))
        .unwrap_or_default()
        .lines()
        .count();
    let mut nothing = Target::new(
        "unchanged tree: commands run",
        (again - ran) as f64,
        Bound::AtMost(0.0),
        "runs",
    );
    nothing.essential = true;
    Ok(vec![
        Target::new(
            format!("{COMMANDS} commands over the longest, median"),
            parallel.median() - longest.median(),
            Bound::AtMost(20.0),
            "ms",
        ),
        Target::new(
            format!("{FILES} files unchanged, median"),
            unchanged.median(),
            Bound::AtMost(60.0),
            "ms",
        ),
        nothing,
    ])
}

fn quiet(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
