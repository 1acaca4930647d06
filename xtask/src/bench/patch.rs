//! `bench patch`: a patch of 1,000 hunks for a file of 50,000 lines, checked by us and applied
//! by Codex's own tool; as it stands, and with blanks that differ, so that every hunk is found
//! only by the second way of reading.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::contest::{Contestant, Times, interleave};
use super::hook::{Failure, codex};
use super::{Bound, Options, Target};

const LINES: usize = 50_000;
const HUNKS: usize = 1_000;

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let codex = codex().ok_or("codex: not found on PATH or by CODEX_BIN")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = |name: &str| folder.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::write(at(name), text).map_err(|error| format!("{name}: {error}"))
    };
    let file: String = (0..LINES).map(line).collect();
    write("exact.patch", &patch(""))?;
    write("loose.patch", &patch("  "))?;
    let tool = at("apply_patch");
    link(&codex, &tool)?;
    let runs = options.runs.min(50);
    let mut contestants = Vec::new();
    for (name, file_name) in [("exact", "exact.patch"), ("other blanks", "loose.patch")] {
        let (root, text, fresh) = (at(name), at(file_name), file.clone());
        std::fs::create_dir_all(&root).map_err(|error| error.to_string())?;
        let lay = move |root: &Path| {
            std::fs::write(root.join("f"), &fresh).map_err(|error| error.to_string())
        };
        let ours = (root.clone(), text.clone(), lay.clone());
        let state = at("state");
        contestants.push(Contestant::new(
            format!("checkrein patch check, {name}"),
            move |_| {
                let (root, text, lay) = &ours;
                lay(root)?;
                let mut command = quiet(binary);
                command
                    .args(["patch", "check"])
                    .arg(text)
                    .arg("--root")
                    .arg(root);
                command.env("CHECKREIN_STATE", &state);
                Ok(command)
            },
        ));
        let tool = tool.clone();
        contestants.push(Contestant::new(
            format!("codex apply_patch, {name}"),
            move |_| {
                lay(&root)?;
                let mut command = quiet(&tool);
                let patch = std::fs::File::open(&text).map_err(|error| error.to_string())?;
                command.current_dir(&root).stdin(patch);
                Ok(command)
            },
        ));
    }
    let times = interleave(&mut contestants, runs)?;
    drop(contestants);
    println!(
        "{HUNKS} hunks, {LINES} lines; {runs} timed runs each, interleaved\n\n{}",
        Times::heading()
    );
    for times in &times {
        println!("{}", times.line());
    }
    let [ours, theirs, loose_ours, loose_theirs] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let ratio = |what: &str, ours: &Times, theirs: &Times| {
        Target::new(
            format!("patch check / codex apply_patch, {what}"),
            ours.median() / theirs.median(),
            Bound::AtMost(1.0),
            "x",
        )
    };
    Ok(vec![
        ratio("exact", ours, theirs),
        ratio("other blanks", loose_ours, loose_theirs),
    ])
}

fn line(number: usize) -> String {
    // Many lines are like many others, as in code.
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

/// Hunks in the order of the file, each with context around the line that it changes.
fn patch(behind: &str) -> String {
    let mut text = "*** Begin Patch\n*** Update File: f\n".to_owned();
    for hunk in 0..HUNKS {
        let at = hunk * (LINES / HUNKS) + 13;
        text.push_str("@@\n");
        for near in at - 2..at + 3 {
            let line = line(near);
            let line = line.trim_end_matches('\n');
            match near == at {
                true => text.push_str(&format!("-{line}{behind}\n+    changed({hunk});\n")),
                false => text.push_str(&format!(" {line}{behind}\n")),
            }
        }
    }
    text + "*** End Patch\n"
}

fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(std::process::Stdio::null());
    command
}

#[cfg(unix)]
fn link(target: &PathBuf, link: &PathBuf) -> Result<(), Failure> {
    std::os::unix::fs::symlink(target, link).map_err(|error| error.to_string())
}

#[cfg(not(unix))]
fn link(_target: &PathBuf, _link: &PathBuf) -> Result<(), Failure> {
    Err("this bench needs symbolic links".to_owned())
}
