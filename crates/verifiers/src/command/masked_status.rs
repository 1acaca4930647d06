//! Decides whether a command that masks the exit status of what it runs is believed all the same:
//! only if its output shows that tests ran and none failed.

use checkrein_core::exit_status::{
    CheckScriptCommand, CheckScriptCommandKind, ExitStatusAnalysis, ExitStatusMask,
};

use super::programs::program_exists;
use crate::VerifierJob;
use crate::run_report::ParsedCheckOutput;

/// Masked commands that a message names.
const MAX_NAMED: usize = 3;

/// Returns why exit status 0 proves nothing; `None` if it does prove something.
pub(super) fn masked_status_reason(
    statuses: &ExitStatusAnalysis,
    report: &ParsedCheckOutput,
    job: &VerifierJob<'_>,
) -> Option<String> {
    let commands = statuses.commands.iter();
    let doubts: Vec<String> = commands
        .filter_map(|command| match &command.masked_by {
            Some(hider) => doubt_about_masked_command(command, hider, statuses, report, job),
            None if command.may_not_run => reason_to_doubt_command_ran(command, report),
            None => None,
        })
        .collect();
    let (first, more) = (doubts.get(..MAX_NAMED).unwrap_or(&doubts), doubts.len());
    if first.is_empty() {
        return None;
    }
    let mut text = first.join("; ");
    if more > first.len() {
        text.push_str(&format!("; and {} more", more - first.len()));
    }
    Some(text)
}

/// Returns the doubt about a command whose status is not masked but that may not have run.
fn reason_to_doubt_command_ran(
    command: &CheckScriptCommand,
    report: &ParsedCheckOutput,
) -> Option<String> {
    let ran = match command.kind {
        CheckScriptCommandKind::Tests(runner) => {
            !command.prints_elsewhere && report.output_shows_tests_ran(runner)
        }
        // Many linters print nothing when they pass, so output cannot show that one ran.
        CheckScriptCommandKind::Checker => false,
        CheckScriptCommandKind::ProjectScript
        | CheckScriptCommandKind::Utility
        | CheckScriptCommandKind::Question
        | CheckScriptCommandKind::Program => true,
    };
    (!ran).then(|| {
        format!(
            "`{}`{} runs only under a condition, and its output does not show that it ran",
            command.text,
            command_place_suffix(command)
        )
    })
}

fn command_place_suffix(command: &CheckScriptCommand) -> String {
    let place = command.place.as_ref();
    place.map_or(String::new(), |place| format!(" in {place}"))
}

/// Returns the doubt about one masked command.
fn doubt_about_masked_command(
    command: &CheckScriptCommand,
    hider: &ExitStatusMask,
    statuses: &ExitStatusAnalysis,
    report: &ParsedCheckOutput,
    job: &VerifierJob<'_>,
) -> Option<String> {
    let hides = hider.describe_exit_mask(command);
    let is_missing = || {
        // A script that changes `PATH` may find programs that we do not, so none counts as missing.
        let found = statuses.changes_path
            || program_exists(&command.program, &command.folder, job.root, job.env);
        let said = report.missing.as_ref();
        !found || said.is_some_and(|line| line.contains(command.program.as_str()))
    };
    let unshown = "and its output does not show that tests ran and none failed";
    let missing = |unless: bool| match (&report.missing, is_missing()) {
        _ if unless => None,
        (Some(line), _) => Some(format!(
            "{hides}, and its output says: {}",
            truncate_line(line)
        )),
        (None, true) => Some(format!(
            "{hides}, and `{}` is not installed",
            command.program
        )),
        (None, false) => Some(format!("{hides}, {unshown}")),
    };
    match command.kind {
        CheckScriptCommandKind::Tests(Some(runner)) => {
            let alike = |other: &&CheckScriptCommand| {
                other.kind == CheckScriptCommandKind::Tests(Some(runner))
            };
            let times = statuses.commands.iter().filter(alike);
            // The same runner may be called several times, and each call has to show its own
            // summary: a second one that died says nothing.
            let times = times.fold(0_u32, |sum, other| sum.saturating_add(other.times));
            missing(
                !command.prints_elsewhere && report.output_shows_tests_passed(Some(runner), times),
            )
        }
        CheckScriptCommandKind::Tests(None) => {
            missing(!command.prints_elsewhere && report.output_shows_tests_passed(None, 1))
        }
        CheckScriptCommandKind::Checker => {
            Some(format!("{hides}, and nothing else tells whether it passed"))
        }
        CheckScriptCommandKind::ProjectScript => {
            // If another command decides the status, the check is about that one.
            let decided = statuses.other_command_decides_status(command);
            missing(decided || report.output_shows_tests_passed(None, 1))
        }
        CheckScriptCommandKind::Utility
        | CheckScriptCommandKind::Question
        | CheckScriptCommandKind::Program => {
            // Masking a utility (`rm x || true`) is harmless, unless it is missing or guards
            // something that matters.
            match is_missing() || statuses.masks_relevant_failure(command) {
                true => missing(report.output_shows_tests_passed(None, 1)),
                false => None,
            }
        }
    }
}

fn truncate_line(line: &str) -> String {
    line.chars().take(120).collect()
}
