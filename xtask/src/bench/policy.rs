//! `bench policy`: `policy check`, whole process, beside `codex execpolicy check` on the same
//! files: one of one rule, and one of 2,000.

use std::path::Path;
use std::process::{Command, Stdio};

use super::contest::{Contestant, Times, interleave};
use super::hook::{Failure, codex};
use super::{Bound, Options, Target};

const MANY: usize = 2_000;

/// The bench.
pub(super) fn run(binary: &Path, options: &Options) -> Result<Vec<Target>, Failure> {
    let codex = codex().ok_or("codex: not found on PATH or by CODEX_BIN")?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut contestants = Vec::new();
    for (name, rules) in [("one rule", 1), ("2,000 rules", MANY)] {
        let file = folder.path().join(format!("{rules}.rules"));
        let text: String = (0..rules).map(rule).collect();
        std::fs::write(&file, text).map_err(|error| error.to_string())?;
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
            contestants.push(Contestant::new(format!("{who}, {name}"), move |n| {
                let mut command = Command::new(program);
                command.args(words).arg("--rules").arg(&file);
                command.args(["--", "tool1", &format!("name_{n}")]);
                command.stdin(Stdio::null());
                Ok(command)
            }));
        }
    }
    let times = interleave(&mut contestants, options.runs)?;
    drop(contestants);
    println!(
        "{} timed runs each, interleaved\n\n{}",
        options.runs,
        Times::heading()
    );
    for times in &times {
        println!("{}", times.line());
    }
    let [ours, theirs, ours_many, theirs_many] = times.as_slice() else {
        return Err("a contestant is missing".to_owned());
    };
    let ratio = |rules: &str, ours: &Times, theirs: &Times| {
        Target::new(
            format!("policy check / codex execpolicy check, {rules}"),
            ours.median() / theirs.median(),
            Bound::AtMost(1.0),
            "x",
        )
    };
    Ok(vec![
        ratio("one rule", ours, theirs),
        ratio("2,000 rules", ours_many, theirs_many),
    ])
}

/// A third each with alternatives and an example, with three words, and with the name alone.
fn rule(number: usize) -> String {
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
