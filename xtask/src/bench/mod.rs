//! `bench hook | loops | replay | check | patch | policy | tree | witness`: measures Checkrein beside its
//! peers, side by side in one run, and prints ratios. Figures go into `docs/benchmarks.md` with the
//! command that printed them.

mod bench_repo;
mod check;
mod comparison;
mod hook;
mod loops;
mod patch;
mod policy;
mod replay;
mod tree;
mod witness;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::build::{self, BuildProfile};

const USAGE: &str = "usage: cargo xtask bench hook|loops|replay|check|patch|policy|tree|witness [--runs N] [--events N] [--files N] [--debug|--dynamic|--binary FILE] [--beside FILE] [--strict]
  --runs N     timed runs of each contestant (200)
  --events N   events in the long session, lines in the trace (10000, 200000)
  --files N    tree: files in the tree (300000)
  --debug      the dev profile: a smoke test of the bench, not a measurement
  --dynamic    linked as `cargo install` does it, not as `cargo xtask install`
  --binary F   measures this checkrein, as installed, and builds none
  --beside F   hook, check, tree: a second checkrein, an older one say, in the same run
  --strict     exit 1 if a target is missed";

/// The options of a bench.
struct BenchOptions {
    runs: usize,
    events: Option<usize>,
    files: Option<usize>,
    profile: BuildProfile,
    /// A program to measure instead of building one.
    binary: Option<PathBuf>,
    /// A second program, which gets rows of its own.
    beside: Option<PathBuf>,
    strict: bool,
}

/// Runs the bench that is named.
pub(crate) fn run_bench(arguments: &[String]) -> Result<ExitCode, String> {
    let (what, rest) = arguments.split_first().ok_or(USAGE)?;
    let options = parse_bench_options(rest)?;
    let bench = match what.as_str() {
        "hook" => hook::bench_hook,
        "replay" => replay::bench_replay,
        "check" => check::bench_check,
        "patch" => patch::run_patch_bench,
        "policy" => policy::bench_policy_checking,
        "tree" => tree::bench_tree_reading,
        // `loops` does, too.
        "loops" => return run_bench_and_report(&options, loops::bench_openclaw_rules, None),
        // `witness` measures library code by `cargo bench` and needs no `checkrein` program.
        "witness" => {
            return run_bench_and_report(
                &options,
                || witness::bench_veto_and_verify_costs(&options),
                None,
            );
        }
        _ => return Err(USAGE.to_owned()),
    };
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => build::build_checkrein_binary(options.profile)?,
    };
    run_bench_and_report(&options, || bench(&binary, &options), Some(&binary))
}

/// Runs a bench, and prints its targets between two lines about the machine.
fn run_bench_and_report(
    options: &BenchOptions,
    bench: impl FnOnce() -> Result<Vec<BenchMeasurementWithGoal>, String>,
    binary: Option<&Path>,
) -> Result<ExitCode, String> {
    // The load before and after tells a reader whether the machine was busy meanwhile.
    println!("{}", bench_machine_description_line(binary, options));
    let targets = bench()?;
    println!();
    let mut code = ExitCode::SUCCESS;
    for target in &targets {
        println!("{}", target.measurement_report_line());
        // Speed depends on the machine and fails only with `--strict`; what is essential always
        // does.
        if target.essential && !target.is_measurement_in_bound()
            || options.strict && !target.is_measurement_in_bound()
        {
            code = ExitCode::from(1);
        }
    }
    println!("load after: {}", load_averages_text());
    Ok(code)
}

fn parse_bench_options(rest: &[String]) -> Result<BenchOptions, String> {
    let mut options = BenchOptions {
        runs: 200,
        events: None,
        files: None,
        profile: BuildProfile::Static,
        binary: None,
        beside: None,
        strict: false,
    };
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|text| text.parse::<usize>().ok());
            number
                .filter(|number| *number > 0)
                .ok_or(format!("{word} takes a number above 0\n{USAGE}"))
        };
        match word.as_str() {
            "--runs" => options.runs = number()?,
            "--events" => options.events = Some(number()?),
            "--files" => options.files = Some(number()?),
            "--debug" => options.profile = BuildProfile::Dev,
            "--dynamic" => options.profile = BuildProfile::Dist,
            "--binary" | "--beside" => {
                // Made absolute: benches start the program in folders of their own.
                let file = words
                    .next()
                    .map(PathBuf::from)
                    .and_then(|file| file.canonicalize().ok())
                    .filter(|file| file.is_file());
                let file = file.ok_or(format!("{word} takes a file\n{USAGE}"))?;
                match word.as_str() {
                    "--binary" => options.binary = Some(file),
                    _ => options.beside = Some(file),
                }
            }
            "--strict" => options.strict = true,
            _ => return Err(format!("unknown argument '{word}'\n{USAGE}")),
        }
    }
    Ok(options)
}

/// Suffix of the rows of the program that `--beside` names.
const BASELINE_SUFFIX: &str = ", beside";

/// Compares a row with the same row of the program that `--beside` names.
fn ratio_to_baseline_row(
    times: &comparison::TimingSamples,
    before: f64,
) -> Option<BenchMeasurementWithGoal> {
    (before > 0.0).then(|| {
        BenchMeasurementWithGoal::new(
            format!("{} / beside", times.name),
            times.median_ms() / before,
            AtMostOrAtLeastBound::AtMost(1.05),
            "x",
        )
    })
}

/// A measured figure, and the bound that it should keep.
struct BenchMeasurementWithGoal {
    what: String,
    measured: f64,
    bound: AtMostOrAtLeastBound,
    unit: &'static str,
    /// Missing it is a failure of the product, not of the machine.
    essential: bool,
}

#[derive(Clone, Copy)]
enum AtMostOrAtLeastBound {
    AtMost(f64),
    AtLeast(f64),
}

impl BenchMeasurementWithGoal {
    fn new(
        what: impl Into<String>,
        measured: f64,
        bound: AtMostOrAtLeastBound,
        unit: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            measured,
            bound,
            unit,
            essential: false,
        }
    }

    fn is_measurement_in_bound(&self) -> bool {
        match self.bound {
            AtMostOrAtLeastBound::AtMost(most) => self.measured <= most,
            AtMostOrAtLeastBound::AtLeast(least) => self.measured >= least,
        }
    }

    fn measurement_report_line(&self) -> String {
        let (sign, bound) = match self.bound {
            AtMostOrAtLeastBound::AtMost(most) => ("<=", most),
            AtMostOrAtLeastBound::AtLeast(least) => (">=", least),
        };
        let digits = |number: f64| if number.abs() >= 100.0 { 0 } else { 2 };
        let bound = format!("{bound:.2}");
        let bound = bound.trim_end_matches('0').trim_end_matches('.');
        let verdict = if self.is_measurement_in_bound() {
            "met"
        } else {
            "MISSED"
        };
        let (measured, unit) = (self.measured, self.unit);
        format!(
            "{:<58} {measured:>10.*} {unit:<8} {sign} {bound:<9} {verdict}",
            self.what,
            digits(measured)
        )
    }
}

/// Describes the machine and the build, without which no figure means anything.
fn bench_machine_description_line(binary: Option<&Path>, options: &BenchOptions) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    // Linux only; elsewhere processor and load are printed as unknown.
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let built = match &options.binary {
        Some(_) => "a given binary",
        None => options.profile.build_profile_label(),
    };
    let size = binary.and_then(|binary| std::fs::metadata(binary).ok());
    let size = size.map_or_else(String::new, |file| {
        format!(", {:.1} MB", file.len() as f64 / 1e6)
    });
    format!(
        "machine: {cores} cores, {model}, {}, load {}; {built}{size}",
        std::env::consts::OS,
        load_averages_text(),
    )
}

fn load_averages_text() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let three: Vec<&str> = text.split_whitespace().take(3).collect();
    if three.is_empty() {
        "unknown".to_owned()
    } else {
        three.join(" ")
    }
}
