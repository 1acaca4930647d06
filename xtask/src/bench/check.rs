//! `bench check`: measures what `checkrein check` adds to the longest of several commands, and what
//! a check of 5,000 unchanged files costs with installed packages beside them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::bench_repo::BenchRepo;
use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::hook::BenchError;
use super::{
    AtMostOrAtLeastBound, BASELINE_SUFFIX, BenchMeasurementWithGoal, BenchOptions,
    ratio_to_baseline_row,
};
use crate::build::BuildProfile;

/// Commands that run at the same time. They sleep, so that the number of cores does not matter.
const COMMANDS: usize = 8;
/// Seconds that the longest one sleeps.
const LONGEST_SLEEP: &str = "0.5";
const FILES: usize = 5_000;
/// Packages in `node_modules`, which git ignores, so that its files do not count.
const PACKAGES: usize = 400;
const FILES_IN_A_PACKAGE: usize = 100;
/// Age from which the stat cache believes a file's times.
const STAT_CACHE_AGE: Duration = Duration::from_secs(61);

/// Runs the bench.
pub(super) fn bench_check(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    // A run of the eight commands takes half a second, so more runs would take minutes.
    let runs = options.runs.min(30);
    let scenes = CheckBenchRepos::new(binary)?;
    let before = options
        .beside
        .as_deref()
        .map(CheckBenchRepos::new)
        .transpose()?;
    // The stat cache reads a file again if it was written less than a minute ago, since a write
    // through a mapping may show late in its times. What is measured is a tree at rest. A smoke
    // test does not wait.
    if options.profile != BuildProfile::Dev {
        std::thread::sleep(STAT_CACHE_AGE);
    }
    // The first run reads every file and runs the command; the second finds everything as it was.
    for scenes in [Some(&scenes), before.as_ref()].into_iter().flatten() {
        for _ in 0..2 {
            let done = with_null_stdio(scenes.large.checkrein_command(&["check"]))
                .status()
                .map_err(|error| format!("checkrein check: {error}"))?;
            if !done.success() {
                return Err(format!("checkrein check: {done}"));
            }
        }
    }
    let ran = scenes.verifier_run_count();

    // `times` is taken apart by position below: it has the order in which contestants are pushed
    // here.
    let mut contestants = vec![
        BenchmarkedProgram::new("/bin/true", |_| {
            Ok(with_null_stdio(Command::new("/bin/true")))
        }),
        BenchmarkedProgram::new(format!("sleep {LONGEST_SLEEP}, by sh"), |_| {
            let mut command = with_null_stdio(Command::new("sh"));
            command.arg("-c").arg(format!("sleep {LONGEST_SLEEP}"));
            Ok(command)
        }),
        BenchmarkedProgram::new("git status, the same tree", |_| {
            let mut command = with_null_stdio(Command::new("git"));
            command
                .args(["status", "--porcelain"])
                .current_dir(scenes.large.path_in_bench_repo("repo"));
            Ok(command)
        }),
    ];
    let (many, unchanged) = (
        format!("checkrein check, {COMMANDS} commands"),
        format!("checkrein check, {FILES} files unchanged"),
    );
    for (scenes, whose) in [(Some(&scenes), ""), (before.as_ref(), BASELINE_SUFFIX)] {
        let Some(CheckBenchRepos { small, large }) = scenes else {
            continue;
        };
        contestants.push(BenchmarkedProgram::new(format!("{many}{whose}"), |_| {
            Ok(with_null_stdio(
                small.checkrein_command(&["check", "--no-cache"]),
            ))
        }));
        contestants.push(BenchmarkedProgram::new(
            format!("{unchanged}{whose}"),
            |_| Ok(with_null_stdio(large.checkrein_command(&["check"]))),
        ));
    }
    let times = time_contestants_in_turn(&mut contestants, runs)?;
    drop(contestants);
    println!(
        "{runs} timed runs each, interleaved\n\n{}",
        TimingSamples::bench_times_heading()
    );
    for times in &times {
        println!("{}", times.bench_times_row());
    }
    let [_, longest, _, parallel, unchanged, ..] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    // Not a matter of speed: a check that runs again on an unchanged tree is a bug on any machine.
    let again = scenes.verifier_run_count();
    let mut nothing = BenchMeasurementWithGoal::new(
        "unchanged tree: commands run",
        (again - ran) as f64,
        AtMostOrAtLeastBound::AtMost(0.0),
        "runs",
    );
    nothing.essential = true;
    let mut targets = vec![
        BenchMeasurementWithGoal::new(
            format!("{COMMANDS} commands over the longest, median"),
            parallel.median_ms() - longest.median_ms(),
            AtMostOrAtLeastBound::AtMost(20.0),
            "ms",
        ),
        BenchMeasurementWithGoal::new(
            format!("{FILES} files unchanged, median"),
            unchanged.median_ms(),
            AtMostOrAtLeastBound::AtMost(60.0),
            "ms",
        ),
        nothing,
    ];
    for now in [parallel, unchanged] {
        let name = format!("{}{BASELINE_SUFFIX}", now.name);
        let before = times.iter().find(|times| times.name == name);
        targets.extend(before.and_then(|before| ratio_to_baseline_row(now, before.median_ms())));
    }
    Ok(targets)
}

/// The two repos that one program is measured in.
struct CheckBenchRepos {
    /// Eight commands and few files.
    small: BenchRepo,
    /// One command and many files.
    large: BenchRepo,
}

impl CheckBenchRepos {
    fn new(binary: &Path) -> Result<Self, BenchError> {
        let small = BenchRepo::new(binary)?;
        let mut config = String::new();
        for n in 0..COMMANDS {
            // The others end while the first still sleeps, so only what Checkrein adds is left over
            // it.
            let seconds = if n == 0 { LONGEST_SLEEP } else { "0.1" };
            config.push_str(&format!(
                "[[verifier]]\nname = \"v{n}\"\nrun = \"sleep {seconds}\"\ninputs = [\"src/**\"]\n"
            ));
        }
        small.write_file("repo/checkrein.toml", &config)?;

        let large = BenchRepo::new(binary)?;
        // The mark is outside of the repo, so that the tree stays unchanged.
        large.write_file(
            "repo/checkrein.toml",
            "[[verifier]]\nname = \"tests\"\nrun = \"echo ran >> ../ran\"\n",
        )?;
        for n in 0..FILES {
            let folder = format!("repo/src/m{}", n % 100);
            if n < 100 {
                std::fs::create_dir_all(large.path_in_bench_repo(&folder))
                    .map_err(|error| format!("{folder}: {error}"))?;
            }
            large.write_file(
                &format!("{folder}/f{n}.rs"),
                &format!("pub fn f{n}() -> u32 {{ {n} }}\n"),
            )?;
        }
        large.write_file("repo/.gitignore", "node_modules/\n")?;
        // Ignored files must cost nothing, however many there are.
        for n in 0..PACKAGES {
            let folder = format!("repo/node_modules/package-{n}/lib");
            std::fs::create_dir_all(large.path_in_bench_repo(&folder))
                .map_err(|error| format!("{folder}: {error}"))?;
            for file in 0..FILES_IN_A_PACKAGE {
                let text = format!("exports.f = () => {file};\n");
                large.write_file(&format!("{folder}/f{file}.js"), &text)?;
            }
        }
        large.run_git(&["add", "-A"])?;
        Ok(Self { small, large })
    }

    /// Returns how often the command of the large repo has run.
    fn verifier_run_count(&self) -> usize {
        std::fs::read_to_string(self.large.path_in_bench_repo("ran"))
            .unwrap_or_default()
            .lines()
            .count()
    }
}

fn with_null_stdio(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
