//! The config: the one that is there, or a new one with the checks of this repo, each tried once. A
//! check that does not pass today is written as advisory, with the reason, so that nobody is
//! blocked by what was red before.

use std::collections::BTreeMap;
use std::path::Path;

use checkrein_core::evidence::{Evidence, Verdict};
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::Policy;
use checkrein_runtime::config::{self, NamedConfigText, TaskDriverKind};
use checkrein_runtime::{Deadline, VerificationProgress};

use super::InitFoldersAndScope;
use super::writer::InitWriter;
use crate::commands::engine;
use crate::detect::{self, DetectedCheck, PlannedInitCheck, RepoFilesForDetection};
use crate::locate::CONFIG;
use crate::masked::{MASKED_CONSEQUENCE, checks_hiding_exit_status};
use crate::programs::find_program_on_path;
use crate::settings::install_record::InitWrittenFileKind;
use crate::settings::settings_file;
use crate::ui::errors::CommandError;
use crate::ui::progress::RunningChecksView;
use crate::{signals, ui, ui::explanations};

/// A check that takes longer gets more time than the usual ten minutes.
const SLOW_MS: u64 = 3 * 60_000;

/// Returns the policy that holds from now on, and writes a config if there is none.
pub(super) fn load_policy_or_create_config(
    pen: &mut InitWriter<'_>,
) -> Result<Policy, CommandError> {
    let site = pen.site;
    print_config_folder_unless_current(site)?;
    if let Some(file) = &site.located.repo_config {
        let compiled = site
            .located
            .compile_policy_for_new_session(TaskDriverKind::Hook)?;
        for warning in &compiled.warnings {
            ui::print_wrapped_to_stderr(&format!("checkrein: {warning}"));
        }
        pen.print_file_left_unchanged(file, "it is there already, and stays as it is");
        warn_masked_checks(&site.root, &compiled.policy);
        return Ok(compiled.policy);
    }
    let root = &site.root;
    let file = settings_file::resolve_settings_symlinks(&root.join(CONFIG), Some(root))?;
    // Asked before the checks are tried, which may take minutes.
    settings_file::ensure_settings_file_writable(&file)?;
    let found = detect::detect_checks(&RepoFilesForDetection::read_files_to_detect_checks(root));
    let planned = if pen.dry_run {
        if !found.is_empty() {
            ui::print_wrapped_to_stderr(
                "Checks are not tried in a dry run; those that fail would be advisory.",
            );
        }
        found.into_iter().map(planned_check_without_trial).collect()
    } else {
        try_detected_checks(pen, found)?
    };
    let text = detect::render_starter_config(&planned);
    // What is written must compile; the policy also tells how long a stop may take.
    let policy = compile_config_to_policy(&file, &text)?;
    warn_masked_checks(root, &policy);
    pen.write_and_record_init_file(
        &file,
        None,
        text,
        Vec::new(),
        InitWrittenFileKind::Config,
        None,
        &planned_init_checks_summary(&planned),
    )?;
    Ok(policy)
}

/// Warns about checks that can pass although what they run fails.
fn warn_masked_checks(root: &Path, policy: &Policy) {
    for masked in checks_hiding_exit_status(root, policy) {
        ui::print_wrapped_to_stderr(&format!(
            "checkrein: {}: {MASKED_CONSEQUENCE}. To mend it, {}",
            masked.what, masked.fix
        ));
    }
}

/// Says where the config belongs, if that is not the current folder.
fn print_config_folder_unless_current(site: &InitFoldersAndScope) -> Result<(), CommandError> {
    if let Some(above) = site.located.unused_parent_config_folder() {
        ui::print_wrapped_to_stderr(&explanations::ignored_parent_config_text(&above));
    } else if std::env::current_dir()?.canonicalize()? != site.root {
        ui::print_wrapped_to_stderr(&format!(
            "In {} (the top of this repo):",
            site.root.display()
        ));
    }
    Ok(())
}

fn planned_check_without_trial(check: DetectedCheck) -> PlannedInitCheck {
    let advisory =
        missing_check_program(&check).map(|program| format!("`{program}` is not installed here"));
    PlannedInitCheck { check, advisory }
}

/// Returns the program that a check needs and that is missing.
fn missing_check_program(check: &DetectedCheck) -> Option<String> {
    // A path is one of the repo's own programs, and was seen there.
    let there = check.needs.contains('/') || find_program_on_path(&check.needs).is_some();
    (!there).then(|| check.needs.clone())
}

/// Runs each check once and marks those that do not pass.
fn try_detected_checks(
    pen: &mut InitWriter<'_>,
    found: Vec<DetectedCheck>,
) -> Result<Vec<PlannedInitCheck>, CommandError> {
    let mut planned: Vec<PlannedInitCheck> =
        found.into_iter().map(planned_check_without_trial).collect();
    // A check whose program is missing is advisory already, and running it would tell
    // nothing.
    let able: Vec<VerifierName> = planned
        .iter()
        .filter(|one| one.advisory.is_none())
        .map(|one| VerifierName::new(one.check.name.as_str()))
        .collect();
    if able.is_empty() {
        return Ok(planned);
    }
    let site = pen.site;
    ui::print_wrapped_to_stderr(&format!(
        "Trying {}, on the tree as it is (Ctrl-C writes nothing):",
        match able.len() {
            1 => "the check found, once".to_owned(),
            number => format!("the {number} checks found, once each"),
        }
    ));
    let policy = compile_config_to_policy(
        &site.root.join(CONFIG),
        &detect::render_starter_config(&planned),
    )?;
    // Reports are written into the repo, so `--undo` has to know whether the folder is ours.
    let made = pen.record_reports_folder_for_undo()?;
    let mut located = site.located.clone();
    located.place.root.clone_from(&site.root);
    let runtime = engine::build_checkrein_runtime(
        &located,
        engine::open_store(&located.place)?,
        TaskDriverKind::Hook,
    );
    let checks = RunningChecksView::new_check_progress_view(Some(&policy));
    let show = |progress: VerificationProgress| checks.show_check_progress(progress);
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    let report = runtime.run_checks_on_demand(&policy, &able, true, patience, &show);
    checks.clear_progress_line();
    // Interrupted: Ctrl-C is to leave nothing behind, so the folder goes too.
    if report.is_err() {
        pen.remove_reports_folder(made)?;
    }
    let report = report?;
    let evidence: BTreeMap<&str, &Evidence> = report
        .checks
        .iter()
        .map(|check| (check.evidence.verifier.as_str(), &check.evidence))
        .collect();
    for one in &mut planned {
        if let Some(evidence) = evidence.get(one.check.name.as_str()) {
            one.advisory = reason_to_leave_check_optional(evidence);
            if evidence.duration_ms > SLOW_MS {
                one.check.timeout = Some("30m");
            }
        }
    }
    Ok(planned)
}

/// Returns why a check is not required; `None` if it passed.
fn reason_to_leave_check_optional(evidence: &Evidence) -> Option<String> {
    let first = evidence.findings.first().map(|finding| {
        let message: String = finding.message.chars().take(80).collect();
        match evidence.findings_total {
            0 | 1 => format!(": {message}"),
            many => format!(", with {many} findings, the first: {message}"),
        }
    });
    // Python's own words name the missing module, which says more than a failed test.
    let module = evidence.excerpt.lines().find_map(|line| {
        let (_, module) = line.split_once("No module named ")?;
        Some(module.trim_matches(['\'', '"', ' ']).to_owned())
    });
    match evidence.verdict {
        Verdict::Pass => None,
        _ if module.is_some() => Some(format!(
            "Python's module `{}` is not installed here",
            module.unwrap_or_default()
        )),
        Verdict::Fail => Some(format!(
            "it fails on the tree as it is{}",
            first.unwrap_or_default()
        )),
        Verdict::Inconclusive => Some(match evidence.cause {
            Some(cause) => format!(
                "it could not tell on the tree as it is: {}",
                explanations::inconclusive_cause_text(cause)
            ),
            None => "it could not tell on the tree as it is".to_owned(),
        }),
    }
}

fn compile_config_to_policy(file: &std::path::Path, text: &str) -> Result<Policy, CommandError> {
    let source = NamedConfigText {
        name: file.to_owned(),
        text: text.to_owned(),
    };
    Ok(config::compile_repo_and_personal_config(Some(&source), None, TaskDriverKind::Hook)?.policy)
}

/// Summarises the plan: `tests, lint required; typecheck advisory`.
fn planned_init_checks_summary(planned: &[PlannedInitCheck]) -> String {
    let names = |required: bool| {
        let chosen = planned
            .iter()
            .filter(|one| one.advisory.is_none() == required);
        let names: Vec<&str> = chosen.map(|one| one.check.name.as_str()).collect();
        names.join(", ")
    };
    match (names(true), names(false)) {
        (required, advisory) if required.is_empty() && advisory.is_empty() => {
            "no check was found: add yours".to_owned()
        }
        (required, advisory) if advisory.is_empty() => format!("required: {required}"),
        (required, advisory) if required.is_empty() => {
            format!("advisory for now: {advisory} (it says why)")
        }
        (required, advisory) => {
            format!("required: {required}; advisory for now: {advisory} (it says why)")
        }
    }
}
