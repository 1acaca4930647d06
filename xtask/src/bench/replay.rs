//! `bench replay`: measures how fast recorded work is read again. Decoded events are measured by
//! the bench of `checkrein-runtime` in its own process, a trace file by the command itself.

use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Stdio;

use super::bench_repo::BenchRepo;
use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::hook::BenchError;
use super::{AtMostOrAtLeastBound, BenchMeasurementWithGoal, BenchOptions, BuildProfile};
use crate::build::cargo_command;

/// Calls of one trajectory: more than most have, within the default caps.
const CALLS: usize = 200;

/// Runs the bench.
pub(super) fn bench_replay(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let lines = options
        .events
        .unwrap_or(if options.profile == BuildProfile::Dev {
            2_000
        } else {
            200_000
        });
    let scene = BenchRepo::new(binary)?;
    // The last call may take the file past the number asked for; the rate needs the true one.
    let lines = write_agent_trace_for_bench(&scene, lines)?;
    let runs = options.runs.min(9);
    let command = |_| {
        let mut command = scene.checkrein_command(&["replay", "--json"]);
        command
            .arg(scene.path_in_bench_repo("trace.jsonl"))
            .stdin(Stdio::null());
        Ok(command)
    };
    let times = time_contestants_in_turn(
        &mut [BenchmarkedProgram::new("checkrein replay FILE", command)],
        runs,
    )?;
    println!(
        "{lines} lines, {runs} timed runs\n\n{}",
        TimingSamples::bench_times_heading()
    );
    for times in &times {
        println!("{}", times.bench_times_row());
    }
    let file = times.first().map_or(0.0, TimingSamples::median_ms);
    let mut targets = bench_event_log_replay(options)?;
    targets.push(BenchMeasurementWithGoal::new(
        "JSONL lines read, stepped, reported",
        // Lines per millisecond are thousands of lines per second.
        lines as f64 / file,
        AtMostOrAtLeastBound::AtLeast(200.0),
        "k/s",
    ));
    Ok(targets)
}

/// Runs `benches/replay.rs`, which prints `NAME: N events/s`, and returns its figures.
fn bench_event_log_replay(
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let profile = if options.profile == BuildProfile::Dev {
        "dev"
    } else {
        "dist"
    };
    let output = cargo_command()
        .args([
            "bench",
            "--quiet",
            "--package",
            "checkrein-runtime",
            "--bench",
            "replay",
            "--profile",
            profile,
        ])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let targets: Vec<BenchMeasurementWithGoal> = text
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(": ")?;
            let per_second: f64 = rest.strip_suffix(" events/s")?.parse().ok()?;
            // The goal is about events that are decoded already; decoding them is printed with a
            // bound of 0, which is none.
            let least = if name.starts_with("decoded") {
                1.0
            } else {
                0.0
            };
            let bound = AtMostOrAtLeastBound::AtLeast(least);
            Some(BenchMeasurementWithGoal::new(
                name,
                per_second / 1e6,
                bound,
                "M/s",
            ))
        })
        .collect();
    // Output in another form must not pass as a bench that has no targets.
    if output.status.success() && !targets.is_empty() {
        Ok(targets)
    } else {
        Err(format!("cargo bench: {}\n{text}", output.status))
    }
}

/// Writes calls with their results inline and rounds between them, as an importer does. Returns the
/// number of lines.
fn write_agent_trace_for_bench(scene: &BenchRepo, lines: usize) -> Result<usize, BenchError> {
    let file = scene.path_in_bench_repo("trace.jsonl");
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut out = BufWriter::new(std::fs::File::create(&file).map_err(failed)?);
    let mut written = 0;
    let mut n = 0;
    while written < lines {
        let mut line = |value: serde_json::Value| {
            written += 1;
            writeln!(out, "{value}").map_err(failed)
        };
        // A new trajectory before the caps of the task are reached.
        if n % CALLS == 0 {
            line(
                serde_json::json!({ "type": "session", "id": format!("t{n}"), "agent": "bench", "goal": "find it" }),
            )?;
            line(serde_json::json!({ "type": "user", "text": "find it" }))?;
        }
        line(
            serde_json::json!({ "type": "assistant", "text": format!("Looking at {n}."), "tokens": 40 }),
        )?;
        line(serde_json::json!({
            "type": "tool_call", "id": format!("c{n}"), "tool": "bash",
            "args": { "command": format!("rg -n name_{n} src | head -n 20") },
            "result": format!("src/lib.rs:{n}: pub fn name_{n}() -> u32 {{ {n} }}\n").repeat(4), "error": false,
        }))?;
        n += 1;
    }
    out.flush().map_err(failed)?;
    Ok(written)
}
