//! Derives a verdict from how a run ended and what its output says.

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, Verdict};

use super::definition::{CommandVerifierDefinition, DirectOrShellCommand};
use super::masked_status;
use super::process::ProcessExit;
use super::run::{CheckCommandResult, CommandAbortReason, CommandOutcome};
use crate::patterns::{LazyRegex, capture_group_text};
use crate::{VerifierJob, VerifierReport, logs};

/// `sh: 1: NAME: not found`, `bash: line 1: NAME: command not found`, `zsh:1: command not found: NAME`
static NOT_FOUND: LazyRegex = LazyRegex::new(
    "not found",
    r"(?m)^\S*sh(?:: line \d+|: \d+|:\d+)?: (?:command not found: (\S+)|(\S+?): (?:command )?not found)$",
);

/// Exit statuses with which a shell reports that a signal ended its command: abort, bus error,
/// arithmetic error, kill, segmentation fault, termination, illegal instruction.
const SHELL_CRASHES: &[i32] = &[
    128 + 4,
    128 + 6,
    128 + 7,
    128 + 8,
    128 + 9,
    128 + 11,
    128 + 15,
];

/// The exit status of pytest if no test was collected.
const PYTEST_NOTHING: i32 = 5;

/// A verdict with its cause and what else a report needs.
#[derive(Debug, PartialEq, Eq)]
struct CheckCommandRunVerdict {
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
    retryable: CheckRetryability,
    /// What a reader must know besides the output.
    note: Option<String>,
}

pub(crate) fn command_verifier_report(
    definition: &CommandVerifierDefinition,
    job: &VerifierJob<'_>,
    ran: CheckCommandResult,
) -> VerifierReport {
    let judged = verdict_of_command_run(definition, job, &ran);
    let CheckCommandResult {
        how,
        captured,
        survivors,
    } = ran;
    let mut notes: Vec<String> = judged.note.iter().cloned().collect();
    if survivors {
        notes.push("some of its processes could not be killed".to_owned());
    }
    let log = match captured.log {
        // An empty log is not worth a path that somebody would open.
        Ok(_) if captured.total == 0 => None,
        Ok(path) => Some(logs::path_text_from_root(&path, job.root)),
        Err(why) => {
            notes.push(format!("its full output could not be kept: {why}"));
            None
        }
    };
    let passed = judged.verdict == Verdict::Pass;
    VerifierReport {
        verdict: judged.verdict,
        cause: judged.cause,
        // A passing check's warnings are not something to fix.
        findings: if passed {
            Vec::new()
        } else {
            captured.report.findings
        },
        findings_total: if passed {
            0
        } else {
            captured.report.findings_total
        },
        counts: captured.report.counts,
        note: judged.note,
        command: Some(definition.run.trim().to_owned()),
        exit_code: match how {
            CommandOutcome::Ended(ProcessExit::Exited(code)) => Some(code),
            CommandOutcome::Ended(_)
            | CommandOutcome::Aborted(_)
            | CommandOutcome::NoProgram(_)
            | CommandOutcome::NotStarted(_) => None,
        },
        duration_ms: 0,
        retryable: judged.retryable,
        excerpt: captured.ends.render_output_excerpt(&notes),
        log,
        output_bytes: captured.total,
        stripped: captured.named,
        tools: Vec::new(),
        testimony: None,
    }
}

fn verdict_of_command_run(
    definition: &CommandVerifierDefinition,
    job: &VerifierJob<'_>,
    ran: &CheckCommandResult,
) -> CheckCommandRunVerdict {
    match &ran.how {
        CommandOutcome::Ended(ProcessExit::Exited(0)) => {
            command_verdict_on_zero_exit(definition, job, ran)
        }
        CommandOutcome::Ended(ProcessExit::Exited(code)) => {
            evaluate_nonzero_exit(definition, *code, ran)
        }
        CommandOutcome::Ended(ProcessExit::Signalled(signal)) => inconclusive_verdict(
            InconclusiveCause::Crash,
            format!("ended by signal {signal}"),
        ),
        CommandOutcome::Ended(ProcessExit::Lost) => inconclusive_verdict(
            InconclusiveCause::Crash,
            "its end could not be seen".to_owned(),
        ),
        CommandOutcome::Aborted(CommandAbortReason::Timeout) => inconclusive_verdict(
            InconclusiveCause::Timeout,
            format!("still running after {} ms; killed", job.spec.timeout_ms),
        ),
        CommandOutcome::Aborted(CommandAbortReason::ReplyDeadline) => inconclusive_verdict(
            InconclusiveCause::ReplyDeadline,
            "cut: the agent had to be answered".to_owned(),
        ),
        CommandOutcome::Aborted(CommandAbortReason::Cancelled) => inconclusive_verdict(
            InconclusiveCause::ReplyDeadline,
            "cut: Checkrein was told to stop".to_owned(),
        ),
        CommandOutcome::NoProgram(err) => {
            let program = definition.run.split_whitespace().next().unwrap_or_default();
            let there = err.kind() != std::io::ErrorKind::NotFound;
            missing_program_verdict(program, there.then(|| err.to_string()))
        }
        CommandOutcome::NotStarted(err) => inconclusive_verdict(
            InconclusiveCause::Internal,
            format!("could not be started: {err}"),
        ),
    }
}

fn command_verdict_on_zero_exit(
    definition: &CommandVerifierDefinition,
    job: &VerifierJob<'_>,
    ran: &CheckCommandResult,
) -> CheckCommandRunVerdict {
    let report = &ran.captured.report;
    // Masking first: it names the command that hides the status, which says more than the other two
    // causes.
    let masked = job
        .exit_statuses
        .and_then(|statuses| masked_status::masked_status_reason(statuses, report, job));
    if let Some(why) = masked {
        inconclusive_verdict(InconclusiveCause::Masked, why)
    // Reached also where no analysis of the exit statuses was made.
    } else if report.runner_reports_failure(&definition.run) {
        inconclusive_verdict(
            InconclusiveCause::VacuousPass,
            "exit status 0, but its own output says that it failed: the status is masked"
                .to_owned(),
        )
    // Only if a runner is recognised: a check that prints nothing known is believed by its status.
    } else if report.runner_ran_no_tests() {
        inconclusive_verdict(
            InconclusiveCause::VacuousPass,
            "exit status 0, but nothing ran".to_owned(),
        )
    } else {
        CheckCommandRunVerdict {
            verdict: Verdict::Pass,
            cause: None,
            retryable: CheckRetryability::Yes,
            note: None,
        }
    }
}

fn evaluate_nonzero_exit(
    definition: &CommandVerifierDefinition,
    code: i32,
    ran: &CheckCommandResult,
) -> CheckCommandRunVerdict {
    let captured = &ran.captured;
    let by_shell = matches!(
        definition.direct_or_shell_invocation(),
        DirectOrShellCommand::Shell(_)
    );
    // POSIX: a shell ends with 127 if it does not find the command. A program may also end with 127
    // itself, so the shell's message is required.
    if by_shell && code == 127 {
        let text = captured.ends.render_output_excerpt(&[]);
        // The last message is that of the outer shell.
        let name = NOT_FOUND
            .all_regex_captures(&text)
            .last()
            .map(|found| [capture_group_text(found, 1), capture_group_text(found, 2)].concat())
            // A program that is missing inside a script of the check is the check's failure.
            .filter(|name| rough_command_words(&definition.run).any(|word| word == name));
        if let Some(name) = name {
            return missing_program_verdict(&name, None);
        }
    }
    // Only through a shell: a program that is run directly and ends with 139 chose that status
    // itself.
    if by_shell && SHELL_CRASHES.contains(&code) {
        return inconclusive_verdict(
            InconclusiveCause::Crash,
            format!("ended by signal {}", code - 128),
        );
    }
    let report = &captured.report;
    // pytest, jest and others fail if they find no test. Sent back as a failure, an agent would
    // have nothing to fix.
    let nothing = report.reports_nothing_to_run() && report.findings.is_empty();
    if nothing && !report.runner_reports_failure(&definition.run) {
        let pytest = if code == PYTEST_NOTHING {
            " (no tests collected)"
        } else {
            ""
        };
        return inconclusive_verdict(
            InconclusiveCause::VacuousPass,
            format!("exit status {code}: nothing ran{pytest}"),
        );
    }
    CheckCommandRunVerdict {
        verdict: Verdict::Fail,
        cause: None,
        retryable: CheckRetryability::Yes,
        note: None,
    }
}

fn rough_command_words(run: &str) -> impl Iterator<Item = &str> {
    run.split(|c: char| c.is_whitespace() || ";&|()<>\"'".contains(c))
}

/// A program that is missing in the tree can be added by an edit; one that is missing on the
/// machine cannot. `why` says what keeps an existing program from being run.
fn missing_program_verdict(program: &str, why: Option<String>) -> CheckCommandRunVerdict {
    let in_tree = program.contains('/') && !program.starts_with('/');
    let gone = if in_tree { "there" } else { "installed" };
    CheckCommandRunVerdict {
        verdict: Verdict::Inconclusive,
        cause: Some(InconclusiveCause::MissingProgram),
        retryable: if in_tree {
            CheckRetryability::Yes
        } else {
            CheckRetryability::No
        },
        note: Some(match why {
            None => format!("'{program}' is not {gone}, or misspelt in run"),
            Some(why) => format!("cannot run '{program}': {why}"),
        }),
    }
}

fn inconclusive_verdict(cause: InconclusiveCause, note: String) -> CheckCommandRunVerdict {
    CheckCommandRunVerdict {
        verdict: Verdict::Inconclusive,
        cause: Some(cause),
        retryable: CheckRetryability::Yes,
        note: Some(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_program_is_read_from_the_shells_message() {
        let check = |text: &str, expected: Option<&str>| {
            let all = NOT_FOUND.all_regex_captures(text);
            let name = all
                .last()
                .map(|found| [capture_group_text(found, 1), capture_group_text(found, 2)].concat());
            assert_eq!(name.as_deref(), expected, "{text}");
        };
        check("sh: 1: pytset: not found", Some("pytset"));
        check("ok\nsh: line 1: pytset: command not found", Some("pytset"));
        check("bash: line 1: pytset: command not found", Some("pytset"));
        check("/bin/sh: 1: ./x: not found", Some("./x"));
        check("zsh:1: command not found: pytset", Some("pytset"));
        check("page not found", None);
    }
}
