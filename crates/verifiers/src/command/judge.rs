//! From how a run ended and what its output says to a verdict.

use checkrein_core::evidence::{InconclusiveCause, Retryability, Verdict};

use super::definition::{Definition, Start};
use super::masks;
use super::process::Ended;
use super::run::{Cut, How, Ran};
use crate::patterns::{Pattern, group};
use crate::{Job, Report, logs};

/// `sh: 1: NAME: not found`, `bash: line 1: NAME: command not found`, `zsh:1: command not found: NAME`
static NOT_FOUND: Pattern = Pattern::new(
    "not found",
    r"(?m)^\S*sh(?:: line \d+|: \d+|:\d+)?: (?:command not found: (\S+)|(\S+?): (?:command )?not found)$",
);

/// Statuses by which a shell tells that a signal ended its command: abort, bus error,
/// arithmetic, kill, segmentation, termination, illegal instruction.
const SHELL_CRASHES: &[i32] = &[
    128 + 4,
    128 + 6,
    128 + 7,
    128 + 8,
    128 + 9,
    128 + 11,
    128 + 15,
];

/// pytest: no test was collected.
const PYTEST_NOTHING: i32 = 5;

/// A verdict with what goes with it.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
    retryable: Retryability,
    /// What a reader of the excerpt must know.
    note: Option<String>,
}

pub(crate) fn report(definition: &Definition, job: &Job<'_>, ran: Ran) -> Report {
    let judged = judge(definition, job, &ran);
    let Ran {
        how,
        captured,
        survivors,
    } = ran;
    let mut notes: Vec<String> = judged.note.iter().cloned().collect();
    if survivors {
        notes.push("some of its processes could not be killed".to_owned());
    }
    let log = match captured.log {
        Ok(_) if captured.total == 0 => None,
        Ok(path) => Some(logs::shown(&path, job.root)),
        Err(why) => {
            notes.push(format!("its full output could not be kept: {why}"));
            None
        }
    };
    let passed = judged.verdict == Verdict::Pass;
    Report {
        verdict: judged.verdict,
        cause: judged.cause,
        // What a passing check complains of is not what anybody must mend.
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
            How::Ended(Ended::Exited(code)) => Some(code),
            How::Ended(_) | How::Cut(_) | How::NoProgram(_) | How::NotStarted(_) => None,
        },
        duration_ms: 0,
        retryable: judged.retryable,
        excerpt: captured.ends.excerpt(&notes),
        log,
        output_bytes: captured.total,
        stripped: captured.named,
        tools: Vec::new(),
        testimony: None,
    }
}

fn judge(definition: &Definition, job: &Job<'_>, ran: &Ran) -> Judged {
    match &ran.how {
        How::Ended(Ended::Exited(0)) => zero(definition, job, ran),
        How::Ended(Ended::Exited(code)) => nonzero(definition, *code, ran),
        How::Ended(Ended::Signalled(signal)) => unsure(
            InconclusiveCause::Crash,
            format!("ended by signal {signal}"),
        ),
        How::Ended(Ended::Lost) => unsure(
            InconclusiveCause::Crash,
            "its end could not be seen".to_owned(),
        ),
        How::Cut(Cut::Timeout) => unsure(
            InconclusiveCause::Timeout,
            format!("still running after {} ms; killed", job.spec.timeout_ms),
        ),
        How::Cut(Cut::ReplyDeadline) => unsure(
            InconclusiveCause::ReplyDeadline,
            "cut: the agent had to be answered".to_owned(),
        ),
        How::Cut(Cut::Cancelled) => unsure(
            InconclusiveCause::ReplyDeadline,
            "cut: Checkrein was told to stop".to_owned(),
        ),
        How::NoProgram(err) => {
            let program = definition.run.split_whitespace().next().unwrap_or_default();
            let there = err.kind() != std::io::ErrorKind::NotFound;
            missing(program, there.then(|| err.to_string()))
        }
        How::NotStarted(err) => unsure(
            InconclusiveCause::Internal,
            format!("could not be started: {err}"),
        ),
    }
}

fn zero(definition: &Definition, job: &Job<'_>, ran: &Ran) -> Judged {
    let report = &ran.captured.report;
    let masked = job
        .exit_statuses
        .and_then(|statuses| masks::unproven(statuses, report, job));
    if let Some(why) = masked {
        unsure(InconclusiveCause::Masked, why)
    } else if report.failed(&definition.run) {
        unsure(
            InconclusiveCause::VacuousPass,
            "exit status 0, but its own output says that it failed: the status is masked"
                .to_owned(),
        )
    } else if report.nothing_ran() {
        unsure(
            InconclusiveCause::VacuousPass,
            "exit status 0, but nothing ran".to_owned(),
        )
    } else {
        Judged {
            verdict: Verdict::Pass,
            cause: None,
            retryable: Retryability::Yes,
            note: None,
        }
    }
}

fn nonzero(definition: &Definition, code: i32, ran: &Ran) -> Judged {
    let captured = &ran.captured;
    let by_shell = matches!(definition.start(), Start::Shell(_));
    if by_shell && code == 127 {
        let text = captured.ends.excerpt(&[]);
        // The last one: it is the shell's own last word.
        let name = NOT_FOUND
            .all(&text)
            .last()
            .map(|found| [group(found, 1), group(found, 2)].concat())
            // What a script of the check's own misses is the check's failure.
            .filter(|name| words(&definition.run).any(|word| word == name));
        if let Some(name) = name {
            return missing(&name, None);
        }
    }
    if by_shell && SHELL_CRASHES.contains(&code) {
        return unsure(
            InconclusiveCause::Crash,
            format!("ended by signal {}", code - 128),
        );
    }
    let report = &captured.report;
    let nothing = report.said_nothing_ran() && report.findings.is_empty();
    if nothing && !report.failed(&definition.run) {
        let pytest = if code == PYTEST_NOTHING {
            " (no tests collected)"
        } else {
            ""
        };
        return unsure(
            InconclusiveCause::VacuousPass,
            format!("exit status {code}: nothing ran{pytest}"),
        );
    }
    Judged {
        verdict: Verdict::Fail,
        cause: None,
        retryable: Retryability::Yes,
        note: None,
    }
}

fn words(run: &str) -> impl Iterator<Item = &str> {
    run.split(|c: char| c.is_whitespace() || ";&|()<>\"'".contains(c))
}

/// A program that is missing in the tree can come back by an edit; one of the machine cannot.
/// `why`: what keeps it from being run although it is there.
fn missing(program: &str, why: Option<String>) -> Judged {
    let in_tree = program.contains('/') && !program.starts_with('/');
    let gone = if in_tree { "there" } else { "installed" };
    Judged {
        verdict: Verdict::Inconclusive,
        cause: Some(InconclusiveCause::MissingProgram),
        retryable: if in_tree {
            Retryability::Yes
        } else {
            Retryability::No
        },
        note: Some(match why {
            None => format!("'{program}' is not {gone}, or misspelt in run"),
            Some(why) => format!("cannot run '{program}': {why}"),
        }),
    }
}

fn unsure(cause: InconclusiveCause, note: String) -> Judged {
    Judged {
        verdict: Verdict::Inconclusive,
        cause: Some(cause),
        retryable: Retryability::Yes,
        note: Some(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_found() {
        let check = |text: &str, expected: Option<&str>| {
            let all = NOT_FOUND.all(text);
            let name = all
                .last()
                .map(|found| [group(found, 1), group(found, 2)].concat());
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
