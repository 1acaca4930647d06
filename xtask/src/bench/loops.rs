//! `bench loops`: OpenClaw's rules for loops as restated in core, beside the real detector, per call, in
//! one run. `OPENCLAW_LOOPS` names a script for node that times the detector of the npm package: it is
//! called with `--time TRACE...` and prints a line of JSON for each trace with `trace` and `ns_per_call`.
//! `LOOP_TRACES` names the folder of the traces, a call a line: `tool`, `args`, `result`, `error`.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::hook::BenchError;
use super::{AtMostOrAtLeastBound, BenchMeasurementWithGoal};
use crate::build::cargo_command;

/// Runs the bench.
pub(super) fn bench_openclaw_rules() -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let named = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).ok_or(format!(
            "{name} is not set: see the top of xtask/src/bench/loops.rs"
        ))
    };
    let (script, folder) = (named("OPENCLAW_LOOPS")?, named("LOOP_TRACES")?);
    let mut traces: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    traces.sort();
    let mut ours = cargo_command();
    ours.args([
        "bench",
        "--quiet",
        "-p",
        "checkrein-core",
        "--bench",
        "openclaw",
        "--",
    ]);
    let mut theirs = Command::new("node");
    theirs.arg(script).arg("--time");
    let (ours, theirs) = (
        nanos_per_call(ours.args(&traces))?,
        nanos_per_call(theirs.args(&traces))?,
    );
    let mut targets = Vec::new();
    for ((trace, ours), (_, theirs)) in ours.iter().zip(&theirs) {
        println!("{trace:<24} ours {ours:>8.0} ns   openclaw {theirs:>8.0} ns");
        targets.push(BenchMeasurementWithGoal::new(
            format!("openclaw / ours, {trace}"),
            theirs / ours,
            AtMostOrAtLeastBound::AtLeast(20.0),
            "x",
        ));
    }
    Ok(targets)
}

/// Returns the nanoseconds per call of each trace, in the order of the command's output.
fn nanos_per_call(command: &mut Command) -> Result<Vec<(String, f64)>, BenchError> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let parse = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let nanos = line.get("ns_per_call")?;
        // The peer's best of its repetitions, as ours is.
        let nanos = nanos.get("wall_best").unwrap_or(nanos).as_f64()?;
        Some((line.get("trace")?.as_str()?.to_owned(), nanos))
    };
    let timed: Vec<(String, f64)> = lines.lines().filter_map(parse).collect();
    match timed.is_empty() {
        true => Err(format!("{command:?} printed no figure")),
        false => Ok(timed),
    }
}
