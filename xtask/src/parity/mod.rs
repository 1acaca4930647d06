//! `parity WHAT`: compares our answers with those of the real program over many cases. Every
//! difference is counted; one without a reason makes the exit status 1.

mod patch;
mod rules;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask parity rules [--pairs N] [--seed N]
       cargo xtask parity patch [--cases N] [--seed N] [--show]";

/// Runs the comparison that is named.
pub(crate) fn run_parity(arguments: &[String]) -> Result<ExitCode, String> {
    match arguments.first().map(String::as_str) {
        Some("patch") => patch::run_patch_parity(arguments.get(1..).unwrap_or_default()),
        Some("rules") => rules::run_rules_parity(arguments),
        _ => Err(USAGE.to_owned()),
    }
}
