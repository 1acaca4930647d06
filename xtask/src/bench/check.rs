//! `bench check`: what `checkrein check` adds to the longest of N commands, and what an
//! unchanged tree of 5,000 files costs, with installed packages beside it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::contest::{Contestant, Times, interleave};
use super::hook::Failure;
use super::scene::Scene;
use super::{BEFORE, Bound, Options, Target, no_slower};
use crate::build::Profile;

/// Commands side by side. They sleep, so that cores do not matter.
const COMMANDS: usize = 8;
/// Seconds that the longest sleeps.
const LONGEST: &str = "0.5";
const FILES: usize = 5_000;
/// In `node_modules`, which does not count.
const PACKAGES: usize = 400;
const FILES_IN_A_PACKAGE: usize = 100;
/// After so long the stat cache believes a file's times.
const AT_REST: Duration = Duration::from_secs(61);

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let runs = options.runs.min(30);
    let scenes = Scenes::new(binary)?;
    let before = options.beside.as_deref().map(Scenes::new).transpose()?;
    // A file that was written less than a minute ago is read again at each look. What is measured is
    // a tree at rest.
    if options.profile != Profile::Dev {
        std::thread::sleep(AT_REST);
    }
    // The first reads every file and runs the command, the second finds all as it was.
    for scenes in [Some(&scenes), before.as_ref()].into_iter().flatten() {
        for _ in 0..2 {
            let done = quiet(scenes.large.checkrein(&["check"]))
                .status()
                .map_err(|error| format!("checkrein check: {error}"))?;
            if !done.success() {
                return Err(format!("checkrein check: {done}"));
            }
        }
    }
    let ran = scenes.ran();

    let mut contestants = vec![
        Contestant::new("/bin/true", |_| Ok(quiet(Command::new("/bin/true")))),
        Contestant::new(format!("sleep {LONGEST}, by sh"), |_| {
            let mut command = quiet(Command::new("sh"));
            command.arg("-c").arg(format!("sleep {LONGEST}"));
            Ok(command)
        }),
        Contestant::new("git status, the same tree", |_| {
            let mut command = quiet(Command::new("git"));
            command
                .args(["status", "--porcelain"])
                .current_dir(scenes.large.path("repo"));
            Ok(command)
        }),
    ];
    let (many, unchanged) = (
        format!("checkrein check, {COMMANDS} commands"),
        format!("checkrein check, {FILES} files unchanged"),
    );
    for (scenes, whose) in [(Some(&scenes), ""), (before.as_ref(), BEFORE)] {
        let Some(Scenes { small, large }) = scenes else {
            continue;
        };
        contestants.push(Contestant::new(format!("{many}{whose}"), |_| {
            Ok(quiet(small.checkrein(&["check", "--no-cache"])))
        }));
        contestants.push(Contestant::new(format!("{unchanged}{whose}"), |_| {
            Ok(quiet(large.checkrein(&["check"])))
        }));
    }
    let times = interleave(&mut contestants, runs)?;
    drop(contestants);
    println!(
        "{runs} timed runs each, interleaved\n\n{}",
        Times::heading()
    );
    for times in &times {
        println!("{}", times.line());
    }
    let [_, longest, _, parallel, unchanged, ..] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let again = scenes.ran();
    let mut nothing = Target::new(
        "unchanged tree: commands run",
        (again - ran) as f64,
        Bound::AtMost(0.0),
        "runs",
    );
    nothing.essential = true;
    let mut targets = vec![
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
    ];
    for now in [parallel, unchanged] {
        let name = format!("{}{BEFORE}", now.name);
        let before = times.iter().find(|times| times.name == name);
        targets.extend(before.and_then(|before| no_slower(now, before.median())));
    }
    Ok(targets)
}

/// The two repos of one program.
struct Scenes {
    /// Eight commands and few files.
    small: Scene,
    /// One command and many files.
    large: Scene,
}

impl Scenes {
    fn new(binary: &Path) -> Result<Self, Failure> {
        let small = Scene::new(binary)?;
        let mut config = String::new();
        for n in 0..COMMANDS {
            let seconds = if n == 0 { LONGEST } else { "0.1" };
            config.push_str(&format!(
                "[[verifier]]\nname = \"v{n}\"\nrun = \"sleep {seconds}\"\ninputs = [\"src/**\"]\n"
            ));
        }
        small.write("repo/checkrein.toml", &config)?;

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
        large.write("repo/.gitignore", "node_modules/\n")?;
        for n in 0..PACKAGES {
            let folder = format!("repo/node_modules/package-{n}/lib");
            std::fs::create_dir_all(large.path(&folder))
                .map_err(|error| format!("{folder}: {error}"))?;
            for file in 0..FILES_IN_A_PACKAGE {
                let text = format!("exports.f = () => {file};\n");
                large.write(&format!("{folder}/f{file}.js"), &text)?;
            }
        }
        large.git(&["add", "-A"])?;
        Ok(Self { small, large })
    }

    /// How often the command of the large one has run.
    fn ran(&self) -> usize {
        std::fs::read_to_string(self.large.path("ran"))
            .unwrap_or_default()
            .lines()
            .count()
    }
}

fn quiet(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
