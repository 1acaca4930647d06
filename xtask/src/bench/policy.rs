//! `bench policy`: measures `policy check` as a whole process beside `codex execpolicy check`, on
//! the same rules files: one of one rule, and one of 2,000.

use std::path::Path;
use std::process::{Command, Stdio};

use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::hook::{BenchError, find_codex};
use super::{AtMostOrAtLeastBound, BenchMeasurementWithGoal, BenchOptions};

const MANY_RULES: usize = 2_000;

/// Runs the bench. It needs Codex.
pub(super) fn bench_policy_checking(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let codex = find_codex().ok_or("codex: not found on PATH or by CODEX_BIN")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut contestants = Vec::new();
    for (name, rules) in [("one rule", 1), ("2,000 rules", MANY_RULES)] {
        let file = folder.path().join(format!("{rules}.rules"));
        let text: String = (0..rules).map(bench_rule_text).collect();
        std::fs::write(&file, text).map_err(|error| error.to_string())?;
        // `--codex-exit` gives Codex's own answer, so that both do the same work.
        for (who, program, words) in [
            (
                "checkrein policy check",
                binary,
                &["policy", "check", "--codex-exit"][..],
            ),
            (
                "codex execpolicy check",
                codex.as_path(),
                &["execpolicy", "check"][..],
            ),
        ] {
            let file = file.clone();
            contestants.push(BenchmarkedProgram::new(
                format!("{who}, {name}"),
                move |n| {
                    let mut command = Command::new(program);
                    command.args(words).arg("--rules").arg(&file);
                    // No rule of either file matches, so most of the time goes into reading the rules.
                    command.args(["--", "tool1", &format!("name_{n}")]);
                    command.stdin(Stdio::null());
                    Ok(command)
                },
            ));
        }
    }
    let times = time_contestants_in_turn(&mut contestants, options.runs)?;
    drop(contestants);
    println!(
        "{} timed runs each, interleaved\n\n{}",
        options.runs,
        TimingSamples::bench_times_heading()
    );
    for times in &times {
        println!("{}", times.bench_times_row());
    }
    // In the order in which the loops have pushed them.
    let [ours, theirs, ours_many, theirs_many] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let ratio = |rules: &str, ours: &TimingSamples, theirs: &TimingSamples| {
        BenchMeasurementWithGoal::new(
            format!("policy check / codex execpolicy check, {rules}"),
            ours.median_ms() / theirs.median_ms(),
            AtMostOrAtLeastBound::AtMost(1.0),
            "x",
        )
    };
    Ok(vec![
        ratio("one rule", ours, theirs),
        ratio("2,000 rules", ours_many, theirs_many),
    ])
}

/// Returns one rule: a third of them have alternatives and an example, a third three words, a third
/// only the name.
fn bench_rule_text(number: usize) -> String {
    match number % 3 {
        0 => format!(
            "prefix_rule(pattern=[\"tool{number}\", [\"-a{number}\", \"-b{number}\"]], decision=\"prompt\", justification=\"ask {number}\", match=[\"tool{number} -a{number} x\"])\n"
        ),
        1 => format!(
            "prefix_rule(pattern=[\"tool{number}\", \"sub{number}\", \"x\"], decision=\"forbidden\", justification=\"no {number}\")\n"
        ),
        _ => format!("prefix_rule(pattern=[\"tool{number}\"])\n"),
    }
}
