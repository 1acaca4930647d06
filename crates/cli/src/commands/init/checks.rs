//! The config: the one that is there, or a new one with the checks of this repo, each tried
//! once. What does not pass today is written down as advisory, with the reason: nobody is
//! to be blocked by what was red before.

use std::collections::BTreeMap;
use std::path::Path;

use checkrein_core::evidence::{Evidence, Verdict};
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::Policy;
use checkrein_runtime::config::{self, ConfigSource, TaskDriver};
use checkrein_runtime::{Deadline, VerificationProgress};

use super::Site;
use super::write::Pen;
use crate::commands::engine;
use crate::detect::{self, Check, Planned, Tree};
use crate::locate::CONFIG;
use crate::masked::{SO, masked_checks};
use crate::programs::on_path;
use crate::settings::file;
use crate::settings::record::What;
use crate::ui::errors::CommandError;
use crate::ui::progress::Checks;
use crate::{signals, ui, ui::words};

/// A check that takes longer than this gets more time than the usual ten minutes.
const SLOW_MS: u64 = 3 * 60_000;

/// The policy that holds from now on.
pub(super) fn settle(pen: &mut Pen<'_>) -> Result<Policy, CommandError> {
    let site = pen.site;
    place(site)?;
    if let Some(file) = &site.located.repo {
        let compiled = site.located.compile(TaskDriver::Hook)?;
        for warning in &compiled.warnings {
            ui::say(&format!("checkrein: {warning}"));
        }
        pen.kept(file, "it is there already, and stays as it is");
        tell_masked(&site.root, &compiled.policy);
        return Ok(compiled.policy);
    }
    let root = &site.root;
    let file = file::resolve(&root.join(CONFIG), Some(root))?;
    file::writable(&file)?;
    let found = detect::detect(&Tree::read(root));
    let planned = if pen.dry_run {
        if !found.is_empty() {
            ui::say("Checks are not tried in a dry run; those that fail would be advisory.");
        }
        found.into_iter().map(untried).collect()
    } else {
        tried(pen, found)?
    };
    let text = detect::config(&planned);
    let policy = compile(&file, &text)?;
    tell_masked(root, &policy);
    pen.write(
        &file,
        None,
        text,
        Vec::new(),
        What::Config,
        None,
        &summary(&planned),
    )?;
    Ok(policy)
}

/// Warns about checks that can pass although what they run fails.
fn tell_masked(root: &Path, policy: &Policy) {
    for masked in masked_checks(root, policy) {
        ui::say(&format!(
            "checkrein: {}: {SO}. To mend it, {}",
            masked.what, masked.fix
        ));
    }
}

/// Says where it happens, if that is not the folder that everybody looks at.
fn place(site: &Site) -> Result<(), CommandError> {
    if let Some(above) = site.located.passed_over() {
        ui::say(&words::passed_over(&above));
    } else if std::env::current_dir()?.canonicalize()? != site.root {
        ui::say(&format!(
            "In {} (the top of this repo):",
            site.root.display()
        ));
    }
    Ok(())
}

fn untried(check: Check) -> Planned {
    let advisory = missing(&check).map(|program| format!("`{program}` is not installed here"));
    Planned { check, advisory }
}

/// The program of a check that cannot be started.
fn missing(check: &Check) -> Option<String> {
    // A path is one of the repo's own, and was seen there.
    let there = check.needs.contains('/') || on_path(&check.needs).is_some();
    (!there).then(|| check.needs.clone())
}

/// Runs each check once.
fn tried(pen: &mut Pen<'_>, found: Vec<Check>) -> Result<Vec<Planned>, CommandError> {
    let mut planned: Vec<Planned> = found.into_iter().map(untried).collect();
    let able: Vec<VerifierName> = planned
        .iter()
        .filter(|one| one.advisory.is_none())
        .map(|one| VerifierName::new(one.check.name.as_str()))
        .collect();
    if able.is_empty() {
        return Ok(planned);
    }
    let site = pen.site;
    ui::say(&format!(
        "Trying {}, on the tree as it is (Ctrl-C writes nothing):",
        match able.len() {
            1 => "the check found, once".to_owned(),
            number => format!("the {number} checks found, once each"),
        }
    ));
    let policy = compile(&site.root.join(CONFIG), &detect::config(&planned))?;
    let made = pen.reports()?;
    let mut located = site.located.clone();
    located.place.root.clone_from(&site.root);
    let runtime = engine::runtime(&located, engine::store(&located.place)?, TaskDriver::Hook);
    let checks = Checks::of(Some(&policy));
    let show = |progress: VerificationProgress| checks.show(progress);
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    let report = runtime.run_checks_on_demand(&policy, &able, true, patience, &show);
    checks.clear();
    if report.is_err() {
        pen.no_reports(made)?;
    }
    let report = report?;
    let evidence: BTreeMap<&str, &Evidence> = report
        .checks
        .iter()
        .map(|check| (check.evidence.verifier.as_str(), &check.evidence))
        .collect();
    for one in &mut planned {
        if let Some(evidence) = evidence.get(one.check.name.as_str()) {
            one.advisory = why_not(evidence);
            if evidence.duration_ms > SLOW_MS {
                one.check.timeout = Some("30m");
            }
        }
    }
    Ok(planned)
}

/// Why a check is not required; `None` if it passed.
fn why_not(evidence: &Evidence) -> Option<String> {
    let first = evidence.findings.first().map(|finding| {
        let message: String = finding.message.chars().take(80).collect();
        match evidence.findings_total {
            0 | 1 => format!(": {message}"),
            many => format!(", with {many} findings, the first: {message}"),
        }
    });
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
                words::cause(cause)
            ),
            None => "it could not tell on the tree as it is".to_owned(),
        }),
    }
}

fn compile(file: &std::path::Path, text: &str) -> Result<Policy, CommandError> {
    let source = ConfigSource {
        name: file.to_owned(),
        text: text.to_owned(),
    };
    Ok(config::compile_config(Some(&source), None, TaskDriver::Hook)?.policy)
}

/// `tests, lint required; typecheck advisory`
fn summary(planned: &[Planned]) -> String {
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
