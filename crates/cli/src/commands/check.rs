//! `checkrein check`: runs the verifiers by hand, now.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use checkrein_core::accept::TruthValue;
use checkrein_core::event::Event;
use checkrein_core::evidence::{Evidence, InconclusiveCause, Verdict};
use checkrein_core::ids::{EventSeq, VerifierName};
use checkrein_core::input::Input;
use checkrein_core::policy::Policy;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{
    Deadline, ManualCheckReport, ManualVerifierResult as Checked, VerificationProgress,
};
use checkrein_store::{SqliteStore, Store as _};
use serde_json::json;

use crate::args::CheckArgs;
use crate::commands::engine;
use crate::locate::{self, CONFIG, ProjectLocation};
use crate::masked::{MASKED_CONSEQUENCE, checks_hiding_exit_status};
use crate::ui::errors::CommandError;
use crate::ui::explanations;
use crate::ui::line::StyledLine;
use crate::ui::progress::RunningChecksView;
use crate::ui::style::TextStyle;
use crate::{exit_code, signals, ui};

/// Lines of the end of an output that are shown if nothing was found in it.
const OUTPUT_LINES: usize = 10;

pub(crate) fn run_check_command(args: &CheckArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let asked =
        ChecksSelectedByArgs::select_checks_from_args(&args.verifiers, args.profile.as_deref())?;
    let checks = RunningChecksView::new_check_progress_view(Some(&asked.policy));
    let show = |progress: VerificationProgress| {
        if !args.json {
            checks.show_check_progress(progress);
        }
    };
    let report = asked.run_checks(!args.no_cache, &signals::CANCELLED, &show)?;
    checks.clear_progress_line();
    // A check that hides an exit status can pass although what it runs fails, so it is named at
    // every run.
    for masked in checks_hiding_exit_status(&asked.located.place.root, &asked.policy) {
        ui::print_wrapped_to_stderr(&format!(
            "checkrein: {}: {MASKED_CONSEQUENCE}. To mend it, {}",
            masked.what, masked.fix
        ));
    }
    if !report.large_files.is_empty() {
        ui::print_wrapped_to_stderr(&explanations::large_files_text(&report.large_files));
    }
    if args.json {
        ui::print_json(&check_report_json(&report));
    } else {
        print_check_report(&report);
    }
    Ok(exit_code::to_exit_code(
        match verdict_from_accept_expression(&report) {
            Verdict::Pass => exit_code::YES,
            Verdict::Fail => exit_code::NO,
            Verdict::Inconclusive => exit_code::INCONCLUSIVE,
        },
    ))
}

/// The checks to run, and where.
pub(super) struct ChecksSelectedByArgs {
    located: ProjectLocation,
    policy: Policy,
    names: Vec<VerifierName>,
}

impl ChecksSelectedByArgs {
    /// Selects the named checks of the current folder; all of them if none is named.
    pub(super) fn select_checks_from_args(
        verifiers: &[String],
        profile: Option<&str>,
    ) -> Result<Self, CommandError> {
        let located = locate::locate_project_with_profile(&std::env::current_dir()?, profile);
        let located = located.location_for_new_session()?;
        if let (None, Some(above)) = (&located.repo_config, located.unused_parent_config_folder()) {
            ui::print_wrapped_to_stderr(&explanations::ignored_parent_config_text(&above));
        }
        let compiled = located.compile_policy_for_new_session(TaskDriverKind::Hook)?;
        for warning in &compiled.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
        }
        let policy = compiled.policy;
        if policy.verifiers.is_empty() {
            return Err(CommandError::usage_error(
                format!(
                    "no verifier is configured for {}",
                    located.place.root.display()
                ),
                format!(
                    "write one into {CONFIG}:\n    [[verifier]]\n    name = \"tests\"\n    run = \"cargo test\""
                ),
            ));
        }
        let names: Vec<VerifierName> = verifiers
            .iter()
            .map(|name| VerifierName::new(name.as_str()))
            .collect();
        if let Some(unknown) = names
            .iter()
            .find(|name| policy.verifier_spec(name).is_none())
        {
            let known: Vec<&str> = policy
                .verifiers
                .iter()
                .map(|spec| spec.name.as_str())
                .collect();
            return Err(CommandError::usage_error(
                format!("no verifier is named '{unknown}'"),
                format!("known: {}", known.join(", ")),
            ));
        }
        Ok(Self {
            located,
            policy,
            names,
        })
    }

    /// Runs the checks.
    pub(super) fn run_checks(
        &self,
        use_cache: bool,
        cancelled: &AtomicBool,
        show: &(dyn Fn(VerificationProgress) + Sync),
    ) -> Result<ManualCheckReport, CommandError> {
        let store = engine::open_store(&self.located.place)?;
        let runtime = engine::build_checkrein_runtime(&self.located, store, TaskDriverKind::Hook);
        // Whoever asked can cancel it (Ctrl-C, an MCP client), so there is no deadline.
        let patience = Deadline {
            due_at: None,
            cancelled,
        };
        Ok(runtime.run_checks_on_demand(&self.policy, &self.names, use_cache, patience, show)?)
    }
}

/// Returns `accept` as a verdict. False only because a check could not tell is inconclusive, and so
/// is true only because nothing is required.
fn verdict_from_accept_expression(report: &ManualCheckReport) -> Verdict {
    let failed = required_checks(report).any(|check| check.evidence.verdict == Verdict::Fail);
    match report.value {
        // Without a required check `accept` is true of anything, which is no pass (law 1).
        _ if required_checks(report).next().is_none() => Verdict::Inconclusive,
        TruthValue::True => Verdict::Pass,
        TruthValue::False if failed => Verdict::Fail,
        TruthValue::False | TruthValue::Open => Verdict::Inconclusive,
    }
}

fn required_checks(report: &ManualCheckReport) -> impl Iterator<Item = &Checked> {
    report.checks.iter().filter(|check| check.required)
}

fn print_check_report(report: &ManualCheckReport) {
    for line in check_report_finding_lines(report) {
        ui::print_line_to_stdout(&line);
    }
    let (paint, word) = check_verdict_label(report);
    let remark = advisory_checks_remark(report).unwrap_or_default();
    ui::print_line_to_stdout(
        StyledLine::line_from_styled_text(paint, word).with_plain_suffix(&remark),
    );
}

/// Returns the findings, a line each, and last what they come to.
pub(super) fn check_report_text(report: &ManualCheckReport) -> String {
    let mut lines: Vec<String> = check_report_finding_lines(report).collect();
    let (_, word) = check_verdict_label(report);
    lines.push(format!(
        "{word}{}",
        advisory_checks_remark(report).unwrap_or_default()
    ));
    lines.join("\n")
}

fn check_report_finding_lines(report: &ManualCheckReport) -> impl Iterator<Item = String> {
    report
        .checks
        .iter()
        .flat_map(|check| findings_or_output_lines(&check.evidence))
}

fn check_verdict_label(report: &ManualCheckReport) -> (TextStyle, &'static str) {
    match verdict_from_accept_expression(report) {
        Verdict::Pass => (TextStyle::Good, "accepted"),
        Verdict::Fail => (TextStyle::Bad, "not accepted"),
        Verdict::Inconclusive => (TextStyle::Warn, "inconclusive"),
    }
}

/// Returns what a check that did not pass says: its findings, or else the end of its output.
fn findings_or_output_lines(evidence: &Evidence) -> Vec<String> {
    let name = &evidence.verifier;
    let mut lines: Vec<String> = evidence
        .findings
        .iter()
        .map(|finding| format!("{name}: {}", explanations::check_finding_line(finding)))
        .collect();
    if evidence.verdict == Verdict::Pass {
        return lines;
    }
    lines.extend(changing_files_hint_lines(evidence));
    if lines.is_empty() {
        let mut output: Vec<&str> = evidence
            .excerpt
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        // Which program is missing, what hides a status, and which files were not seen stands in
        // our own note at the head of the excerpt.
        let noted = match evidence.cause {
            Some(
                InconclusiveCause::MissingProgram
                | InconclusiveCause::Masked
                | InconclusiveCause::TreeUnreadable,
            ) => output
                .first()
                .and_then(|line| checkrein_note_in_output_line(line)),
            _ => None,
        };
        if noted.is_some() {
            output.remove(0);
        }
        let what = match (noted, evidence.cause, evidence.exit_code) {
            (Some(noted), ..) => noted.to_owned(),
            (None, Some(cause), _) => explanations::inconclusive_cause_text(cause).to_owned(),
            (None, None, Some(code)) => format!("exit code {code}"),
            (None, None, None) => "it failed".to_owned(),
        };
        let ran = match &evidence.command {
            Some(command) if output.is_empty() && noted.is_none() => {
                format!(", no output (run: {command})")
            }
            _ => String::new(),
        };
        lines.push(format!("{name}: {what}{ran}"));
        // Errors stand at the end of most outputs.
        let end = output.len().saturating_sub(OUTPUT_LINES);
        lines.extend(output.iter().skip(end).map(|line| format!("  | {line}")));
    }
    if let Some(log) = &evidence.log {
        lines.push(format!("{name}: full output in {log}"));
    }
    lines
}

/// Names the files that kept changing while a check ran, and the line to paste if the check writes
/// them itself.
pub(super) fn changing_files_hint_lines(evidence: &Evidence) -> Vec<String> {
    let name = &evidence.verifier;
    // What such a check saw is not the tree, whatever `outputs` says: it needs a tree of its
    // own.
    if evidence.cause == Some(InconclusiveCause::CheckRestores) {
        return vec![
            format!(
                "{name}: {}: {}",
                explanations::inconclusive_cause_text(InconclusiveCause::CheckRestores),
                join_first_paths(&evidence.moved)
            ),
            format!("{name}: let it work on a copy of the tree: git worktree add, or cp -r"),
        ];
    }
    if evidence.cause != Some(InconclusiveCause::TreeMoving) || evidence.moved.is_empty() {
        return Vec::new();
    }
    vec![
        format!(
            "{name}: {}: {}",
            explanations::inconclusive_cause_text(InconclusiveCause::TreeMoving),
            join_first_paths(&evidence.moved)
        ),
        format!(
            "{name}: if the check writes them, add to [[verifier]] {name} in {CONFIG}: outputs = [{}]",
            comma_separated_toml_strings(&evidence.moved)
        ),
    ]
}

/// Paths that are named if a tree moved.
const MOST_PATHS: usize = 8;

fn join_first_paths(paths: &[String]) -> String {
    let named: Vec<&str> = paths.iter().take(MOST_PATHS).map(String::as_str).collect();
    match paths.len().saturating_sub(MOST_PATHS) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// Renders paths as a list of TOML strings.
fn comma_separated_toml_strings(paths: &[String]) -> String {
    // A JSON string is also a basic string of TOML.
    let quoted = paths.iter().map(|path| json!(path).to_string());
    quoted.collect::<Vec<_>>().join(", ")
}

/// Returns our own note in a line of an excerpt.
fn checkrein_note_in_output_line(line: &str) -> Option<&str> {
    line.strip_prefix("[checkrein: ")?.strip_suffix(']')
}

/// Returns the remark on checks that are not required.
fn advisory_checks_remark(report: &ManualCheckReport) -> Option<String> {
    // A person who sees only passes must learn that none of them counts.
    if required_checks(report).next().is_none() {
        let all: Vec<String> = report
            .checks
            .iter()
            .map(|check| {
                let verdict = explanations::verdict_text(check.evidence.verdict);
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

/// Returns the report as one JSON document.
pub(super) fn check_report_json(report: &ManualCheckReport) -> serde_json::Value {
    let verifiers = report.checks.iter().map(|check| {
        let mut document = evidence_json(&check.evidence);
        if let Some(fields) = document.as_object_mut() {
            fields.insert("required".to_owned(), json!(check.required));
            fields.insert("cached".to_owned(), json!(check.cached));
        }
        document
    });
    let verifiers: Vec<serde_json::Value> = verifiers.collect();
    json!({
        "schema": "checkrein/check/1",
        "verdict": verdict_from_accept_expression(report),
        "tree": report.tree,
        "verifiers": verifiers,
    })
}

/// Returns what each check of a task found last.
pub(super) fn latest_evidence_json(
    store: &SqliteStore,
    events: &[(EventSeq, Event)],
) -> serde_json::Value {
    let mut newest: BTreeMap<&VerifierName, serde_json::Value> = BTreeMap::new();
    // Later evidence replaces earlier evidence of the same verifier.
    for (_, event) in events {
        if let Event::Input(stamped) = event
            && let Input::EvidenceArrived(arrived) = &stamped.input
            && let Some(kept) = store.read_evidence(&arrived.evidence.key).ok().flatten()
            && let Some(evidence) = checkrein_runtime::decode_evidence(&kept.bytes)
        {
            newest.insert(&arrived.evidence.verifier, evidence_json(&evidence));
        }
    }
    newest.into_values().collect()
}

/// Returns what a verifier found as JSON.
fn evidence_json(evidence: &Evidence) -> serde_json::Value {
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
        "exit_code": evidence.exit_code,
        "duration_ms": evidence.duration_ms,
        "command": evidence.command,
        "log": evidence.log,
        "tests": evidence.counts,
        "note": evidence.note,
        "moved": evidence.moved,
        "findings_total": evidence.findings_total,
        "findings": findings,
    })
}
