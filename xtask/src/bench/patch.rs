//! `bench patch`: a patch of 1,000 hunks for a file of 50,000 lines, checked by `checkrein patch
//! check` and applied by Codex's own tool. It is measured as it stands, and with other blanks at
//! line ends, so that each hunk is found only by the second, looser comparison of lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::comparison::{BenchmarkedProgram, TimingSamples, time_contestants_in_turn};
use super::hook::{BenchError, find_codex};
use super::{AtMostOrAtLeastBound, BenchMeasurementWithGoal, BenchOptions};

const LINES: usize = 50_000;
const HUNKS: usize = 1_000;

/// Runs the bench. It needs Codex.
pub(super) fn run_patch_bench(
    binary: &Path,
    options: &BenchOptions,
) -> Result<Vec<BenchMeasurementWithGoal>, BenchError> {
    let codex = find_codex().ok_or("codex: not found on PATH or by CODEX_BIN")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::write(at(name), text).map_err(|error| format!("{name}: {error}"))
    };
    let file: String = (0..LINES).map(generate_source_line).collect();
    write("exact.patch", &bench_patch_text(""))?;
    write("loose.patch", &bench_patch_text("  "))?;
    // Codex acts as `apply_patch` when it is started under that name.
    let tool = at("apply_patch");
    create_bench_symlink(&codex, &tool)?;
    let runs = options.runs.min(50);
    let mut contestants = Vec::new();
    for (name, file_name) in [("exact", "exact.patch"), ("other blanks", "loose.patch")] {
        let (root, text, fresh) = (at(name), at(file_name), file.clone());
        std::fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        // Codex changes the file, so each run gets a fresh one; ours as well, so that both find the
        // caches alike.
        let lay = move |root: &Path| {
            std::fs::write(root.join("f"), &fresh).map_err(|error| error.to_string())
        };
        let ours = (root.clone(), text.clone(), lay.clone());
        let state = at("state");
        contestants.push(BenchmarkedProgram::new(
            format!("checkrein patch check, {name}"),
            move |_| {
                let (root, text, lay) = &ours;
                lay(root)?;
                let mut command = command_without_stdin(binary);
                command
                    .args(["patch", "check"])
                    .arg(text)
                    .arg("--root")
                    .arg(root);
                // The developer's own store is not touched.
                command.env("CHECKREIN_STATE", &state);
                Ok(command)
            },
        ));
        let tool = tool.clone();
        contestants.push(BenchmarkedProgram::new(
            format!("codex apply_patch, {name}"),
            move |_| {
                lay(&root)?;
                let mut command = command_without_stdin(&tool);
                let patch = std::fs::File::open(&text).map_err(|error| error.to_string())?;
                command.current_dir(&root).stdin(patch);
                Ok(command)
            },
        ));
    }
    let times = time_contestants_in_turn(&mut contestants, runs)?;
    drop(contestants);
    println!(
        "{HUNKS} hunks, {LINES} lines; {runs} timed runs each, interleaved\n\n{}",
        TimingSamples::bench_times_heading()
    );
    for times in &times {
        println!("{}", times.bench_times_row());
    }
    // In the order in which the loop has pushed them.
    let [ours, theirs, loose_ours, loose_theirs] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    // Codex cannot check without applying, so its figure includes writing the file.
    let ratio = |what: &str, ours: &TimingSamples, theirs: &TimingSamples| {
        BenchMeasurementWithGoal::new(
            format!("patch check / codex apply_patch, {what}"),
            ours.median_ms() / theirs.median_ms(),
            AtMostOrAtLeastBound::AtMost(1.0),
            "x",
        )
    };
    Ok(vec![
        ratio("exact", ours, theirs),
        ratio("other blanks", loose_ours, loose_theirs),
    ])
}

fn generate_source_line(number: usize) -> String {
    // Many lines are like others, as in real code.
    match number % 5 {
        0 => "    }\n".to_owned(),
        1 => "\n".to_owned(),
        _ => format!(
            "    let value_{number} = compute({}, {});\n",
            number % 7,
            number / 3
        ),
    }
}

/// Returns a patch with its hunks in the order of the file, each with two lines of context on both
/// sides. `behind` follows each line that has to be found.
fn bench_patch_text(behind: &str) -> String {
    let mut text = "*** Begin Patch\n*** Update File: f\n".to_owned();
    for hunk in 0..HUNKS {
        // Line 13 of each stretch of 50 is one with a number of its own, so that a hunk fits in one
        // place only.
        let at = hunk * (LINES / HUNKS) + 13;
        text.push_str("@@\n");
        for near in at - 2..at + 3 {
            let line = generate_source_line(near);
            let line = line.trim_end_matches('\n');
            match near == at {
                true => text.push_str(&format!("-{line}{behind}\n+    changed({hunk});\n")),
                false => text.push_str(&format!(" {line}{behind}\n")),
            }
        }
    }
    text + "*** End Patch\n"
}

fn command_without_stdin(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(std::process::Stdio::null());
    command
}

#[cfg(unix)]
fn create_bench_symlink(target: &PathBuf, link: &PathBuf) -> Result<(), BenchError> {
    std::os::unix::fs::symlink(target, link).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn create_bench_symlink(_target: &PathBuf, _link: &PathBuf) -> Result<(), BenchError> {
    Err("this bench needs symbolic links".to_owned())
}
