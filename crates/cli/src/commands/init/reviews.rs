//! Codex runs a hook only after a person has reviewed it. That review is written only if a person
//! at a terminal says so; otherwise `init` says what is missing.

use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use checkrein_adapters::codex_trust::{self, HookTrust};
use checkrein_adapters::settings::{HookHandler, ParsedHookSettings};

use super::agents::InitAgent;
use super::hooks::{print_step_left_to_person, text_without_checkrein_entries};
use super::writer::InitWriter;
use crate::settings::install_record::{InitWrittenFileKind, InstallScope};
use crate::settings::{settings_file, toml};
use crate::ui::errors::CommandError;
use crate::{person, signals, ui};

/// How often Ctrl-C is looked at.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Checks how Codex regards the hooks in `path`, and asks. Returns whether the person has to do
/// something before it runs them.
pub(super) fn ask_person_to_review_codex_hooks(
    pen: &mut InitWriter<'_>,
    agent: &InitAgent,
    repo: &Path,
    path: &Path,
    reading: &ParsedHookSettings,
) -> Result<bool, CommandError> {
    let Some(home) = agent.agent_home_folder() else {
        return Ok(false);
    };
    let config = settings_file::resolve_settings_symlinks(&home.join("config.toml"), None)?;
    let now = settings_file::read_text_if_present(&config)?;
    let text = now.as_deref().unwrap_or_default();
    let shown = pen.site.path_text_from_root_or_home(&config);
    let known = match codex_trust::parse_codex_config(text) {
        Ok(known) => known,
        Err(what) => {
            let what = what.lines().next().unwrap_or_default().to_owned();
            print_step_left_to_person(&shown, &format!("Codex cannot read it: {what}"));
            return Ok(true);
        }
    };
    if !known.hooks_on {
        print_step_left_to_person(
            &shown,
            "hooks are switched off in [features]; take that line out",
        );
    }
    // Hooks in the person's own folder need no trust in a repo.
    let trusts = pen.site.scope == InstallScope::User
        || known.codex_trusts_repo_hooks(&repo.to_string_lossy());
    let path = path.to_string_lossy();
    let ours: Vec<&HookHandler> = reading
        .hooks
        .iter()
        .filter(|hook| hook.call.is_checkrein_hook())
        .collect();
    let missing: Vec<&HookHandler> = ours
        .iter()
        .copied()
        .filter(|hook| known.hook_trust(&path, hook) != HookTrust::Trusted)
        .collect();
    let open = |reviewed: bool| {
        // What is left depends on two agreements, to the repo and to the hooks.
        let once = match (trusts, reviewed) {
            (true, true) => return !known.hooks_on,
            (false, false) => {
                "say yes twice (trust this repo, these hooks); until then it skips them"
            }
            (false, true) => "say yes (trust this repo); until then it skips these hooks",
            (true, false) => "say yes (these hooks); until then it skips them",
        };
        print_step_left_to_person(agent.title, &format!("start it here once and {once}"));
        true
    };
    if missing.is_empty() {
        return Ok(open(true));
    }
    let reviews: Vec<toml::ReviewedHookDigest> = missing
        .iter()
        .filter_map(|hook| {
            Some((
                codex_trust::codex_hook_trust_key(&path, hook)?,
                codex_trust::codex_hook_trust_hash(hook)?,
            ))
        })
        .collect();
    // The same edit is made in a dry run, so that its errors show.
    let edited = toml::write_codex_hook_reviews(text, &reviews).map_err(|trouble| {
        CommandError::usage_error(
            format!("{}: {}", config.display(), trouble.what),
            "review the hooks in Codex instead: start it here, it asks",
        )
    })?;
    // Outside of a dry run the review is an act in a person's name, so no agent may answer
    // the question.
    if pen.dry_run {
        ui::print_wrapped_to_stderr(&format!(
            "Asked first, because it is a review in your name ({shown}):"
        ));
    } else if person::require_person("init").is_err()
        || !ask_yes_no(
            &format!(
                "Codex runs only hooks that you have reviewed. Write your review of these {} into {shown}?",
                reviews.len()
            ),
            pen.site.undo_command_line(),
        )?
    {
        return Ok(open(false));
    }
    let left = open(true);
    let noted = pen.installed.find_installed_file_record(&config).cloned();
    let before = text_without_checkrein_entries(noted.as_ref(), now.as_deref())?;
    let mut keys = match noted.as_ref().map(|noted| &noted.what) {
        Some(InitWrittenFileKind::Reviews(keys)) => keys.clone(),
        _ => Vec::new(),
    };
    // A second `init` adds to the reviews it wrote before, and undo has to know all of them.
    let mut inserted = noted.map(|noted| noted.inserted).unwrap_or_default();
    inserted.extend(edited.inserted);
    keys.extend(reviews.iter().map(|(key, _)| key.clone()));
    keys.sort();
    keys.dedup();
    pen.write_and_record_init_file(
        &config,
        now.as_deref().map(|now| (now, before.as_deref())),
        edited.text,
        inserted,
        InitWrittenFileKind::Reviews(keys),
        Some(agent.name),
        "your review of these hooks",
    )?;
    Ok(left)
}

/// Asks a person at the terminal; anything but yes is no.
fn ask_yes_no(question: &str, undo: &str) -> Result<bool, CommandError> {
    ui::print_question(&format!("{question} [y/N] "));
    let (sender, receiver) = std::sync::mpsc::channel();
    // A signal does not end the reading of a line, so another thread waits for it.
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        // There is no receiver only if the command is about to end.
        let _ = sender.send(read.map(|_| answer));
    });
    loop {
        match receiver.recv_timeout(CANCEL_POLL_INTERVAL) {
            Ok(answer) => return Ok(matches!(answer?.trim(), "y" | "Y" | "yes")),
            Err(RecvTimeoutError::Timeout) if !signals::is_process_cancelled() => {}
            Err(_) => {
                ui::print_wrapped_to_stderr("");
                return Err(CommandError::command_interrupted_error(format!(
                    "interrupted: the hooks are in, your review is not. Take it back: {undo}"
                )));
            }
        }
    }
}
