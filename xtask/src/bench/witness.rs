//! `bench witness`: measures the own cost of a veto check and of a verify-and-retry round, beside
//! shipit_agent and pydantic-ai where a Python (`PYTHON_BIN`) has them. Models answer at once; what
//! is measured is the processor time of each process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::hook::BenchError;
use super::{AtMostOrAtLeastBound, BenchMeasurementWithGoal, BenchOptions, BuildProfile};
use crate::build::cargo_command;

const SHIPIT: &str = include_str!("peers/shipit.py");
const VERIFY_LOOP: &str = include_str!("peers/verify_loop.py");

/// Costs in nanoseconds, by name.
type BenchNanosByName = BTreeMap<String, f64>;

/// Runs the bench.
pub(super) fn bench_veto_and_verify_costs(
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let ours = run_program_for_timings("ours", &mut cargo_bench_command(options.profile))?;
    let veto = find_measured_nanos(&ours, "veto check, 6 messages")?;
    let round = nanos_per_failing_round(&ours)?;
    let mut targets = vec![
        BenchMeasurementWithGoal::new(
            "veto check",
            veto / 1e3,
            AtMostOrAtLeastBound::AtMost(1.0),
            "µs",
        ),
        BenchMeasurementWithGoal::new(
            "verify round",
            round / 1e3,
            AtMostOrAtLeastBound::AtMost(50.0),
            "µs",
        ),
    ];
    let python = std::env::var_os("PYTHON_BIN").map_or_else(|| "python3".into(), PathBuf::from);
    let peer = |script: &str| {
        let mut command = Command::new(&python);
        command.args(["-c", script]);
        command
    };
    // A missing peer leaves its rows out; our own targets are measured anyway.
    match run_program_for_timings("shipit_agent", &mut peer(SHIPIT)) {
        Ok(theirs) => {
            for (what, least) in [
                ("veto check, no history", 8.0),
                ("veto check, 6 messages", 8.0),
                // A bound of 0 is always met: this ratio is printed for information.
                ("progress check, 6 messages", 0.0),
            ] {
                let ratio = find_measured_nanos(&theirs, what)? / find_measured_nanos(&ours, what)?;
                let name = format!("shipit_agent / ours, {what}");
                targets.push(BenchMeasurementWithGoal::new(
                    name,
                    ratio,
                    AtMostOrAtLeastBound::AtLeast(least),
                    "x",
                ));
            }
        }
        Err(why) => println!("\nshipit_agent is not compared: {why}"),
    }
    match run_program_for_timings("pydantic-ai", &mut peer(VERIFY_LOOP)) {
        Ok(theirs) => targets.push(BenchMeasurementWithGoal::new(
            "pydantic-ai / ours, verify round",
            self::nanos_per_failing_round(&theirs)? / round,
            AtMostOrAtLeastBound::AtLeast(50.0),
            "x",
        )),
        Err(why) => println!("\npydantic-ai is not compared: {why}"),
    }
    Ok(targets)
}

/// Returns the cost of one failing round, the agent's call included.
fn nanos_per_failing_round(costs: &BenchNanosByName) -> Result<f64, BenchError> {
    let of = |rounds| find_measured_nanos(costs, &format!("verification, {rounds} failing rounds"));
    // The difference takes out what a verification costs without a failing round.
    Ok((of(3)? - of(0)?) / 3.0)
}

fn find_measured_nanos(costs: &BenchNanosByName, name: &str) -> Result<f64, BenchError> {
    let cost = costs.get(name).copied();
    cost.ok_or_else(|| format!("'{name}' was not measured"))
}

fn cargo_bench_command(profile: BuildProfile) -> Command {
    let profile = if profile == BuildProfile::Dev {
        "dev"
    } else {
        "dist"
    };
    let mut command = cargo_command();
    command.args(["bench", "--quiet", "--package", "checkrein", "--bench"]);
    command.args(["witness", "--profile", profile]);
    command
}

/// Runs a program that prints `NAME: N ns` and lines that describe it, and returns the costs.
fn run_program_for_timings(
    who: &str,
    command: &mut Command,
) -> Result<BenchNanosByName, BenchError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot be run: {error}"))?;
    if !output.status.success() {
        // The last line of a Python traceback names the exception.
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or_default();
        return Err(format!("{}: {last}", output.status));
    }
    println!("\n{who}");
    let mut costs = BenchNanosByName::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("  {line}");
        let cost = line
            .rsplit_once(": ")
            .and_then(|(name, rest)| Some((name, rest.strip_suffix(" ns")?.parse().ok()?)));
        if let Some((name, cost)) = cost {
            costs.insert(name.to_owned(), cost);
        }
    }
    Ok(costs)
}
