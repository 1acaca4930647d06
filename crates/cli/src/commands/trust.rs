//! `checkrein trust`: shows what this repo's config would run, asks, and remembers the answer.

use std::io::BufRead as _;
use std::process::ExitCode;

use checkrein_core::policy::{Policy, VerifierTier};
use checkrein_runtime::config::{ConfigSource, ConfigWithNamedFiles, PolicySources, TaskDriver};
use serde_json::Value;

use crate::args::Trust;
use crate::detect::{self, Check, Planned, Tree};
use crate::locate::{CONFIG, Located};
use crate::person::{self, Checked};
use crate::programs::on_path;
use crate::trust::{self, Approval};
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::printable::printable;
use crate::ui::style::Paint;
use crate::{exit_code, locate, sources, ui};

pub(crate) fn run(args: &Trust) -> Result<ExitCode, CommandError> {
    let by = person::required("trust")?;
    let located = locate::locate(&std::env::current_dir()?, None);
    if args.revoke {
        ui::answer(match trust::revoke(&located)? {
            true => {
                "taken back: hooks installed with --user run nothing of this repo until you trust it again; hooks of this repo are not affected"
            }
            false => "nothing was approved here",
        });
        return Ok(exit_code::exit(exit_code::YES));
    }
    let mut now = sources::now(&located)?;
    if now.repo.is_none() {
        now.repo = detected(&located)?;
    }
    let Some(repo) = &now.repo else {
        return Err(CommandError::usage(
            format!(
                "there is no checkrein.toml in {}, and no check that is known",
                located.place.root.display()
            ),
            "checkrein init writes one to begin with",
        ));
    };
    let already = trust::approved(&located) == Some(repo.config_digest());
    show(&located, &now)?;
    if already && matches!(located.held_nearest(), Ok(None)) {
        ui::answer("approved already");
        return Ok(exit_code::exit(exit_code::YES));
    }
    if !asked("Approve this?")? {
        ui::answer("not approved");
        return Ok(exit_code::exit(exit_code::NO));
    }
    approve(&located, repo, by)?;
    ui::answer("approved, for sessions that begin from now on");
    ui::say("A session that is under way goes on as it began; checkrein seal renews it.");
    Ok(exit_code::exit(exit_code::YES))
}

/// For a repo without a config: the checks that its files tell of. None of them is run before
/// a person has said yes.
fn detected(located: &Located) -> Result<Option<ConfigWithNamedFiles>, CommandError> {
    let found = detect::detect(&Tree::read(&located.place.root));
    if found.is_empty() {
        return Ok(None);
    }
    let plan = |check: Check| {
        // A path is one of the repo's own, and was seen there.
        let there = check.needs.contains('/') || on_path(&check.needs).is_some();
        let advisory = (!there).then(|| format!("`{}` is not installed here", check.needs));
        Planned { check, advisory }
    };
    let planned: Vec<Planned> = found.into_iter().map(plan).collect();
    ui::say(
        "There is no checkrein.toml here. What its files tell of, to be kept in your state folder, not in the repo:",
    );
    let config = ConfigSource {
        name: located.place.root.join(CONFIG),
        text: detect::config(&planned),
    };
    Ok(Some(ConfigWithNamedFiles::gather_files_named_by_config(
        config,
    )?))
}

/// Records it, and lets go of what was held: a person has seen what takes its place.
pub(super) fn approve(
    located: &Located,
    repo: &ConfigWithNamedFiles,
    by: Checked,
) -> Result<(), CommandError> {
    let approval = Approval {
        digest: repo.config_digest(),
        top: located.top.clone(),
        at: checkrein_runtime::now_millis(),
        by,
        text: located.repo.is_none().then(|| repo.config.text.clone()),
    };
    trust::approve(located, approval)?;
    located.let_go()?;
    Ok(())
}

/// Everything that would run and every file that says what may run.
pub(super) fn show(located: &Located, now: &PolicySources) -> Result<(), CommandError> {
    let Some(repo) = &now.repo else {
        return Ok(());
    };
    let file = match &located.repo {
        Some(_) => repo.config.name.display().to_string(),
        None => format!("found in {}", located.place.root.display()),
    };
    let file = printable(&file);
    ui::answer(Line::painted(Paint::Strong, &file));
    let plain = located.compile_plain(now, None, TaskDriver::Hook)?.policy;
    commands(&plain, "");
    for profile in repo.profile_names()? {
        let policy = located
            .compile_plain(now, Some(&profile), TaskDriver::Hook)?
            .policy;
        let notify = &policy.approvals.notify;
        let others = policy.verifiers != plain.verifiers || policy.middleware != plain.middleware;
        if others || *notify != plain.approvals.notify {
            commands(&policy, &format!(" (profile {})", printable(&profile)));
        }
    }
    let nothing = plain.verifiers.is_empty() && plain.middleware.is_empty();
    if nothing && plain.approvals.notify.is_none() {
        ui::answer("  it runs nothing");
    }
    for (what, files) in [("rules", &repo.rules), ("schema", &repo.schemas)] {
        for file in files {
            let file = printable(&file.name.display().to_string());
            ui::answer(&format!("  {what:<6} {file}"));
        }
    }
    let digest = repo.config_digest().to_hex();
    let digest = digest.get(..16).unwrap_or_default();
    ui::answer(Line::painted(Paint::Dim, &format!("  digest {digest}")));
    Ok(())
}

fn commands(policy: &Policy, which: &str) {
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
        ui::answer(&format!(
            "  {does} {name}{advisory}{which}: {}",
            printable(&what)
        ));
    }
    for layer in &policy.middleware {
        ui::answer(&format!(
            "  runs   middleware {}{which}: {}",
            layer.name,
            printable(&layer.run)
        ));
    }
    if let Some(notify) = &policy.approvals.notify {
        ui::answer(&format!(
            "  runs   approvals.notify{which}: {}",
            printable(notify)
        ));
    }
}

/// Asks the person at the terminal. Silence is no.
pub(super) fn asked(question: &str) -> Result<bool, CommandError> {
    ui::ask(&format!("{question} [y/N] "));
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
