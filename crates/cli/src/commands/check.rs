//! `checkrein check`: the verifiers, now, by hand.

use std::process::ExitCode;

use checkrein_core::accept::Truth;
use checkrein_core::evidence::Verdict;
use checkrein_core::ids::VerifierName;
use checkrein_runtime::config::Driver;
use checkrein_runtime::{CheckReport, Patience, Progress};
use serde_json::json;

use crate::args::Check;
use crate::commands::engine;
use crate::locate::{self, CONFIG};
use crate::ui::errors::CommandError;
use crate::ui::progress::Checks;
use crate::ui::style::{On, Paint};
use crate::{exit_code, signals, ui};

pub(crate) fn run(args: &Check) -> Result<ExitCode, CommandError> {
    signals::listen();
    let located = locate::locate_under(&std::env::current_dir()?, args.profile.as_deref());
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
    let checks = Checks::new();
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

/// `accept` as a verdict; false only because something could not tell is inconclusive.
fn verdict(report: &CheckReport) -> Verdict {
    let failed = report
        .checks
        .iter()
        .any(|check| check.required && check.evidence.verdict == Verdict::Fail);
    match report.value {
        Truth::True => Verdict::Pass,
        Truth::False if failed => Verdict::Fail,
        Truth::False | Truth::Open => Verdict::Inconclusive,
    }
}

fn print(report: &CheckReport) {
    for check in &report.checks {
        for finding in &check.evidence.findings {
            let place = match (&finding.file, finding.line) {
                (Some(file), Some(line)) => format!("{file}:{line}: "),
                (Some(file), None) => format!("{file}: "),
                (None, _) => String::new(),
            };
            ui::answer(&format!(
                "{}: {place}{}",
                check.evidence.verifier, finding.message
            ));
        }
        if check.evidence.verdict != Verdict::Pass
            && let Some(log) = &check.evidence.log
        {
            ui::answer(&format!(
                "{}: full output in {log}",
                check.evidence.verifier
            ));
        }
    }
    let (paint, word) = match verdict(report) {
        Verdict::Pass => (Paint::Good, "accepted"),
        Verdict::Fail => (Paint::Bad, "not accepted"),
        Verdict::Inconclusive => (Paint::Warn, "inconclusive"),
    };
    ui::answer(&On::Stdout.paint(paint, word));
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
