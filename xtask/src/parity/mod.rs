//! `parity WHAT`: our answer beside the real program's, over many generated cases. Every
//! difference is listed, with why if there is a reason; one without is a failure.

mod cases;
mod patch;
mod random;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask parity patch [--cases N] [--seed N] [--show]";

/// The command.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, String> {
    match arguments.split_first() {
        Some((what, rest)) if what == "patch" => patch::run(rest),
        _ => Err(USAGE.to_owned()),
    }
}
