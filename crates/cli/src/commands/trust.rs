//! `checkrein trust`: shows what this repo's config would run, asks, and records the answer.

use std::io::BufRead as _;
use std::process::ExitCode;

use checkrein_core::policy::{Policy, VerifierTier};
use checkrein_runtime::config::{
    ConfigWithNamedFiles, NamedConfigText, PolicySourceTexts, TaskDriverKind,
};
use serde_json::Value;

use crate::args::TrustArgs;
use crate::detect::{self, DetectedCheck, PlannedInitCheck, RepoFilesForDetection};
use crate::locate::{CONFIG, ProjectLocation};
use crate::person::{self, PersonCallerEvidence};
use crate::programs::find_program_on_path;
use crate::trust::{self, TrustApproval};
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::TextStyle;
use crate::{exit_code, locate, policy_sources, ui};

pub(crate) fn run_trust_command(args: &TrustArgs) -> Result<ExitCode, CommandError> {
    let by = person::require_person("trust")?;
    let located = locate::locate_project(&std::env::current_dir()?, None);
    if args.revoke {
        ui::print_line_to_stdout(match trust::revoke_trust_approval(&located)? {
            true => {
                "taken back: hooks installed with --user run nothing of this repo until you trust it again; hooks of this repo are not affected"
            }
            false => "nothing was approved here",
        });
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    let mut now = policy_sources::policy_sources_on_disk(&located)?;
    if now.repo.is_none() {
        now.repo = config_from_detected_checks(&located)?;
    }
    let Some(repo) = &now.repo else {
        return Err(CommandError::usage_error(
            format!(
                "there is no checkrein.toml in {}, and no check that is known",
                located.place.root.display()
            ),
            "checkrein init writes one to begin with",
        ));
    };
    let already = trust::approved_config_digest(&located) == Some(repo.config_digest());
    print_config_for_trust(&located, &now)?;
    // A held config goes on although this one is approved, so the question is asked again.
    if already && matches!(located.nearest_config_held_despite_edit(), Ok(None)) {
        ui::print_line_to_stdout("approved already");
        return Ok(exit_code::to_exit_code(exit_code::YES));
    }
    if !ask_yes_no("Approve this?")? {
        ui::print_line_to_stdout("not approved");
        return Ok(exit_code::to_exit_code(exit_code::NO));
    }
    approve_config(&located, repo, by)?;
    ui::print_line_to_stdout("approved, for sessions that begin from now on");
    ui::print_wrapped_to_stderr(
        "A session that is under way goes on as it began; checkrein seal renews it.",
    );
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Builds a config for a repo without one from the checks that its files show. None of them runs
/// before a person has said yes.
fn config_from_detected_checks(
    located: &ProjectLocation,
) -> Result<Option<ConfigWithNamedFiles>, CommandError> {
    let found = detect::detect_checks(&RepoFilesForDetection::read_files_to_detect_checks(
        &located.place.root,
    ));
    if found.is_empty() {
        return Ok(None);
    }
    let plan = |check: DetectedCheck| {
        // A path is one of the repo's own programs, and was seen there.
        let there = check.needs.contains('/') || find_program_on_path(&check.needs).is_some();
        let advisory = (!there).then(|| format!("`{}` is not installed here", check.needs));
        PlannedInitCheck { check, advisory }
    };
    let planned: Vec<PlannedInitCheck> = found.into_iter().map(plan).collect();
    ui::print_wrapped_to_stderr(
        "There is no checkrein.toml here. What its files tell of, to be kept in your state folder, not in the repo:",
    );
    let config = NamedConfigText {
        name: located.place.root.join(CONFIG),
        text: detect::render_starter_config(&planned),
    };
    Ok(Some(ConfigWithNamedFiles::gather_files_named_by_config(
        config,
    )?))
}

/// Records the approval and drops a held config: a person has seen what takes its place.
pub(super) fn approve_config(
    located: &ProjectLocation,
    repo: &ConfigWithNamedFiles,
    by: PersonCallerEvidence,
) -> Result<(), CommandError> {
    let approval = TrustApproval {
        digest: repo.config_digest(),
        top: located.top.clone(),
        at: checkrein_runtime::now_millis(),
        by,
        // A config that was only detected is kept in the state folder: there is no file to read
        // again.
        text: located
            .repo_config
            .is_none()
            .then(|| repo.config.text.clone()),
    };
    trust::record_trust_approval(located, approval)?;
    located.drop_config_held_despite_edit()?;
    Ok(())
}

/// Prints everything that would run, and every file that decides what may run.
pub(super) fn print_config_for_trust(
    located: &ProjectLocation,
    now: &PolicySourceTexts,
) -> Result<(), CommandError> {
    let Some(repo) = &now.repo else {
        return Ok(());
    };
    let file = match &located.repo_config {
        Some(_) => repo.config.name.display().to_string(),
        None => format!("found in {}", located.place.root.display()),
    };
    let file = escape_hidden_chars(&file);
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(TextStyle::Strong, &file));
    let plain = located
        .compile_config_policy_under_profile(now, None, TaskDriverKind::Hook)?
        .policy;
    print_policy_verifiers(&plain, "");
    for profile in repo.config_profile_names()? {
        let policy = located
            .compile_config_policy_under_profile(now, Some(&profile), TaskDriverKind::Hook)?
            .policy;
        let notify = &policy.approvals.notify;
        // A profile is shown if it runs anything else: approving the config approves all of its
        // profiles.
        let others = policy.verifiers != plain.verifiers || policy.middleware != plain.middleware;
        if others || *notify != plain.approvals.notify {
            print_policy_verifiers(
                &policy,
                &format!(" (profile {})", escape_hidden_chars(&profile)),
            );
        }
    }
    let nothing = plain.verifiers.is_empty() && plain.middleware.is_empty();
    if nothing && plain.approvals.notify.is_none() {
        ui::print_line_to_stdout("  it runs nothing");
    }
    for (what, files) in [("rules", &repo.rules), ("schema", &repo.schemas)] {
        for file in files {
            let file = escape_hidden_chars(&file.name.display().to_string());
            ui::print_line_to_stdout(&format!("  {what:<6} {file}"));
        }
    }
    let digest = repo.config_digest().to_hex();
    let digest = digest.get(..16).unwrap_or_default();
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(
        TextStyle::Dim,
        &format!("  digest {digest}"),
    ));
    Ok(())
}

fn print_policy_verifiers(policy: &Policy, which: &str) {
    for spec in &policy.verifiers {
        let definition = serde_json::from_str::<Value>(&spec.definition).unwrap_or_default();
        let text = |key: &str| definition.get(key).and_then(Value::as_str);
        let asks = text("ask").filter(|_| spec.tier == VerifierTier::Person);
        let (does, what) = match (asks, text("run"), text("target"), text("schema")) {
            (Some(ask), ..) => ("asks  ", ask.to_owned()),
            (None, Some(run), ..) => ("runs  ", run.to_owned()),
            (None, None, Some(target), Some(schema)) => ("judges", format!("{target} by {schema}")),
            _ => ("runs  ", spec.definition.clone()),
        };
        let name = &spec.name;
        let advisory = if spec.advisory { " (advisory)" } else { "" };
        ui::print_line_to_stdout(&format!(
            "  {does} {name}{advisory}{which}: {}",
            escape_hidden_chars(&what)
        ));
    }
    for layer in &policy.middleware {
        ui::print_line_to_stdout(&format!(
            "  runs   middleware {}{which}: {}",
            layer.name,
            escape_hidden_chars(&layer.run)
        ));
    }
    if let Some(notify) = &policy.approvals.notify {
        ui::print_line_to_stdout(&format!(
            "  runs   approvals.notify{which}: {}",
            escape_hidden_chars(notify)
        ));
    }
}

/// Asks the person at the terminal. No answer is no.
pub(super) fn ask_yes_no(question: &str) -> Result<bool, CommandError> {
    ui::print_question(&format!("{question} [y/N] "));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
