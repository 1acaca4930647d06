//! `checkrein check`: the verifiers, now, by hand.

use std::process::ExitCode;

use checkrein_core::accept::Truth;
use checkrein_core::evidence::{Cause, Evidence, Verdict};
use checkrein_core::ids::VerifierName;
use checkrein_runtime::config::Driver;
use checkrein_runtime::{Check as Checked, CheckReport, Patience, Progress};
use serde_json::json;

use crate::args::Check;
use crate::commands::engine;
use crate::locate::{self, CONFIG};
use crate::ui::errors::CommandError;
use crate::ui::progress::Checks;
use crate::ui::style::{On, Paint};
use crate::ui::words;
use crate::{exit_code, signals, ui};

/// So much is shown of the end of an output that nothing was found in.
const OUTPUT_LINES: usize = 10;

pub(crate) fn run(args: &Check) -> Result<ExitCode, CommandError> {
    signals::listen();
    let located = locate::locate_under(&std::env::current_dir()?, args.profile.as_deref());
    let located = located.settled()?;
    if let (None, Some(above)) = (&located.repo, located.passed_over()) {
        ui::say(&words::passed_over(&above));
    }
    let compiled = located.compile(Driver::Hook)?;
    for warning in &compiled.warnings {
        ui::say(&format!("checkrein: {warning}"));
    }
    let policy = compiled.policy;
    if policy.verifiers.is_empty() {
        return Err(CommandError::usage(
            format!(
                "no verifier is configured for {}",
                located.place.root.display()
            ),
            format!(
                "write one into {CONFIG}:\n    [[verifier]]\n    name = \"tests\"\n    run = \"cargo test\""
            ),
        ));
    }
    let names: Vec<VerifierName> = args
        .verifiers
        .iter()
        .map(|name| VerifierName::new(name.as_str()))
        .collect();
    if let Some(unknown) = names.iter().find(|name| policy.verifier(name).is_none()) {
        let known: Vec<&str> = policy
            .verifiers
            .iter()
            .map(|spec| spec.name.as_str())
            .collect();
        return Err(CommandError::usage(
            format!("no verifier is named '{unknown}'"),
            format!("known: {}", known.join(", ")),
        ));
    }
    let runtime = engine::runtime(&located, engine::store(&located.place)?, Driver::Hook);
    let checks = Checks::of(Some(&policy));
    let show = |progress: Progress| {
        if !args.json {
            checks.show(progress);
        }
    };
    let patience = Patience {
        deadline: None,
        cancelled: &signals::CANCELLED,
    };
    let report = runtime.check(&policy, &names, !args.no_cache, patience, &show)?;
    checks.clear();
    if args.json {
        ui::json(&document(&report));
    } else {
        print(&report);
    }
    Ok(exit_code::exit(match verdict(&report) {
        Verdict::Pass => exit_code::YES,
        Verdict::Fail => exit_code::NO,
        Verdict::Inconclusive => exit_code::INCONCLUSIVE,
    }))
}

/// `accept` as a verdict; false only because something could not tell is inconclusive, and so is
/// true only because nothing is required.
fn verdict(report: &CheckReport) -> Verdict {
    let failed = required(report).any(|check| check.evidence.verdict == Verdict::Fail);
    match report.value {
        _ if required(report).next().is_none() => Verdict::Inconclusive,
        Truth::True => Verdict::Pass,
        Truth::False if failed => Verdict::Fail,
        Truth::False | Truth::Open => Verdict::Inconclusive,
    }
}

fn required(report: &CheckReport) -> impl Iterator<Item = &Checked> {
    report.checks.iter().filter(|check| check.required)
}

fn print(report: &CheckReport) {
    for check in &report.checks {
        for line in complaints(&check.evidence) {
            ui::answer(&line);
        }
    }
    let (paint, word) = match verdict(report) {
        Verdict::Pass => (Paint::Good, "accepted"),
        Verdict::Fail => (Paint::Bad, "not accepted"),
        Verdict::Inconclusive => (Paint::Warn, "inconclusive"),
    };
    let word = On::Stdout.paint(paint, word);
    ui::answer(&match remark(report) {
        Some(remark) => format!("{word}{remark}"),
        None => word,
    });
}

/// What a check says that did not pass: its findings, or else the end of its output.
fn complaints(evidence: &Evidence) -> Vec<String> {
    let name = &evidence.verifier;
    let mut lines: Vec<String> = evidence
        .findings
        .iter()
        .map(|finding| {
            let place = match (&finding.file, finding.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                (Some(file), None) => format!("{file}: "),
                (None, _) => String::new(),
            };
            format!("{name}: {place}{}", finding.message)
        })
        .collect();
    if evidence.verdict == Verdict::Pass {
        return lines;
    }
    if lines.is_empty() {
        let mut output: Vec<&str> = evidence
            .excerpt
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        // Which program it is that is missing stands in our own note.
        let missing = (evidence.cause == Some(Cause::MissingProgram))
            .then(|| output.first().and_then(|line| note(line)))
            .flatten();
        if missing.is_some() {
            output.remove(0);
        }
        let what = match (missing, evidence.cause, evidence.exit_code) {
            (Some(missing), ..) => missing.to_owned(),
            (None, Some(cause), _) => words::cause(cause).to_owned(),
            (None, None, Some(code)) => format!("exit code {code}"),
            (None, None, None) => "it failed".to_owned(),
        };
        let ran = match &evidence.command {
            Some(command) if output.is_empty() && missing.is_none() => {
                format!(", no output (run: {command})")
            }
            _ => String::new(),
        };
        lines.push(format!("{name}: {what}{ran}"));
        let end = output.len().saturating_sub(OUTPUT_LINES);
        lines.extend(output.iter().skip(end).map(|line| format!("  | {line}")));
    }
    if let Some(log) = &evidence.log {
        lines.push(format!("{name}: full output in {log}"));
    }
    lines
}

/// What we say ourselves in the excerpt of an output.
fn note(line: &str) -> Option<&str> {
    line.strip_prefix("[checkrein: ")?.strip_suffix(']')
}

/// What has to be said of the checks that are not required.
fn remark(report: &CheckReport) -> Option<String> {
    if required(report).next().is_none() {
        let all: Vec<String> = report
            .checks
            .iter()
            .map(|check| {
                let verdict = words::verdict(check.evidence.verdict);
                format!("{} (advisory) {verdict}", check.evidence.verifier)
            })
            .collect();
        return Some(format!(
            ": nothing is required: {}. Take \"advisory = true\" out of {CONFIG} to require it",
            all.join(", ")
        ));
    }
    let failing: Vec<&str> = report
        .checks
        .iter()
        .filter(|check| !check.required && check.evidence.verdict == Verdict::Fail)
        .map(|check| check.evidence.verifier.as_str())
        .collect();
    (!failing.is_empty()).then(|| format!(" (not required, and failing: {})", failing.join(", ")))
}

fn document(report: &CheckReport) -> serde_json::Value {
    let verifiers: Vec<serde_json::Value> = report
        .checks
        .iter()
        .map(|check| {
            let evidence = &check.evidence;
            let findings: Vec<serde_json::Value> = evidence
                .findings
                .iter()
                .map(|finding| {
                    json!({
                        "id": finding.id,
                        "file": finding.file,
                        "line": finding.line,
                        "message": finding.message,
                        "state": finding.state,
                    })
                })
                .collect();
            json!({
                "name": evidence.verifier,
                "verdict": evidence.verdict,
                "cause": evidence.cause,
                "required": check.required,
                "exit_code": evidence.exit_code,
                "duration_ms": evidence.duration_ms,
                "cached": check.cached,
                "command": evidence.command,
                "log": evidence.log,
                "findings_total": evidence.findings_total,
                "findings": findings,
            })
        })
        .collect();
    json!({
        "schema": "checkrein/check/1",
        "verdict": verdict(report),
        "tree": report.tree,
        "verifiers": verifiers,
    })
}
