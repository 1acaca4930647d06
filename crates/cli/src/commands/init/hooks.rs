//! Installs the hooks of one agent: into the right file, after a check of how the agent will read
//! it, and kept out of git if they are one person's.

use std::path::{Path, PathBuf};

use checkrein_adapters::settings::{ParsedHookSettings, SettingsFaultImpact};
use checkrein_core::policy::Policy;

use super::agents::InitAgent;
use super::entries::{self, HookEntryParameters};
use super::git;
use super::writer::{InitWriter, print_written_file_line};
use crate::programs::find_program_on_path;
use crate::settings::install_record::{InitWrittenFile, InitWrittenFileKind, InstallScope};
use crate::settings::{
    json, settings_file, settings_text_with_line_appended, without_checkrein_entries,
};
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;

/// The result of installing an agent's hooks.
pub(super) struct HooksInForceAndToReview {
    /// Whether the agent will call them, as far as its settings go.
    pub(super) in_force: bool,
    /// The file and its hooks, if a person has to review them.
    pub(super) to_review: Option<(PathBuf, ParsedHookSettings)>,
}

/// A prepared change of an agent's file.
struct PreparedHookFileChange {
    path: PathBuf,
    now: Option<String>,
    before: Option<String>,
    edited: crate::settings::EditedSettingsText,
    reading: ParsedHookSettings,
    entries: usize,
    /// Whether a stop gets less time than a check may take.
    stop_is_cut: bool,
}

/// Checks that everything can be written before anything is: half an installation would be neither.
pub(super) fn ensure_hook_files_writable(
    pen: &InitWriter<'_>,
    agents: &[&'static InitAgent],
) -> Result<(), CommandError> {
    for agent in agents {
        if let Some(ready) = plan_hook_installation(pen, agent, None)? {
            settings_file::ensure_settings_file_writable(&ready.path)?;
        }
        // The review is written there at the end, so it has to be readable now.
        if agent.name == "codex"
            && let Some(home) = agent.agent_home_folder()
        {
            settings_file::read_text_if_present(&settings_file::resolve_settings_symlinks(
                &home.join("config.toml"),
                None,
            )?)?;
        }
    }
    if pen.site.scope == InstallScope::Person
        && let Some(exclude) = git::repo_exclude_file(&pen.site.root)?
    {
        settings_file::read_text_if_present(&exclude)?;
    }
    Ok(())
}

/// Prepares the change, after a check of how the agent would read it. Returns `None` if its hooks
/// are in another file.
fn plan_hook_installation(
    pen: &InitWriter<'_>,
    agent: &'static InitAgent,
    policy: Option<&Policy>,
) -> Result<Option<PreparedHookFileChange>, CommandError> {
    let site = pen.site;
    let scope = site.scope;
    let repo = agent.agent_settings_checkout(site);
    let place = agent.hook_settings_file(site, scope).ok_or_else(|| {
        CommandError::usage_error(
            "no home folder is known",
            "set HOME, or name a repo's files with --shared",
        )
    })?;
    let path = settings_file::resolve_settings_symlinks(
        &place,
        (scope != InstallScope::User).then_some(repo.as_path()),
    )?;
    if has_hooks_elsewhere(pen, agent, &path)? {
        return Ok(None);
    }
    let now = settings_file::read_text_if_present(&path)?;
    let trouble = |trouble: crate::settings::SettingsEditError| {
        CommandError::usage_error(
            format!("{}: {}: {}", path.display(), trouble.place, trouble.what),
            "mend it, then run this again; nothing was changed in it",
        )
    };
    // The text without our entries: a second `init` starts from it as the first one did.
    let before = match (
        pen.installed.find_installed_file_record(&path).cloned(),
        &now,
    ) {
        (Some(noted), _) => text_without_checkrein_entries(Some(&noted), now.as_deref())?,
        // Not recorded: our entries are recognised by what they call.
        (None, Some(now)) => Some(json::remove_hook_entries(now, &[]).map_err(trouble)?),
        (None, None) => None,
    };
    let (stop, cut) = entries::stop_hook_timeout_seconds(policy);
    let program = hook_program_path()?;
    let plan = HookEntryParameters {
        agent,
        scope,
        program: &program,
        state: &site.state,
        file: &site.path_text_from_root_or_home(&path),
        stop_seconds: stop,
    };
    let entries = plan.planned_hook_entries();
    let edited =
        json::add_hook_entries_to_settings_json(before.as_deref().unwrap_or_default(), &entries)
            .map_err(trouble)?;
    // The agent's own parser reads the result before it is written.
    let reading = parse_agent_settings(agent, &edited.text);
    ensure_foreign_hooks_kept(agent, &path, before.as_deref(), &reading)?;
    Ok(Some(PreparedHookFileChange {
        path,
        now,
        before,
        edited,
        reading,
        entries: entries.len(),
        stop_is_cut: cut,
    }))
}

/// Installs the hooks.
pub(super) fn install_hooks(
    pen: &mut InitWriter<'_>,
    agent: &'static InitAgent,
    policy: Option<&Policy>,
) -> Result<HooksInForceAndToReview, CommandError> {
    let Some(ready) = plan_hook_installation(pen, agent, policy)? else {
        return Ok(HooksInForceAndToReview {
            in_force: true,
            to_review: None,
        });
    };
    let about = format!(
        "{}: {} hooks, {}",
        agent.title,
        ready.entries,
        match pen.site.scope {
            InstallScope::Person => "for you, in this repo",
            InstallScope::Shared => "for all who clone this repo, once it is committed",
            InstallScope::User => "for you, in all repos",
        }
    );
    pen.write_and_record_init_file(
        &ready.path,
        ready
            .now
            .as_deref()
            .map(|now| (now, ready.before.as_deref())),
        ready.edited.text,
        ready.edited.inserted,
        InitWrittenFileKind::Hooks,
        Some(agent.name),
        &about,
    )?;
    if ready.stop_is_cut {
        print_warning(
            "a required check may take longer than the hour that an agent is made to wait at a stop; it would be cut",
        );
    }
    let in_force = warn_unless_hooks_active(pen, agent, &ready.path, &ready.reading);
    Ok(HooksInForceAndToReview {
        in_force,
        to_review: (agent.name == "codex").then_some((ready.path, ready.reading)),
    })
}

/// Returns a file's text without anything of ours, which `--undo` goes back to.
pub(super) fn text_without_checkrein_entries(
    noted: Option<&InitWrittenFile>,
    now: Option<&str>,
) -> Result<Option<String>, CommandError> {
    match (noted, now) {
        (_, None) => Ok(None),
        (None, Some(now)) => Ok(Some(now.to_owned())),
        (Some(noted), Some(now)) => without_checkrein_entries(noted, now).map_err(|trouble| {
            CommandError::usage_error(
                format!(
                    "{}: {}: {}",
                    noted.path.display(),
                    trouble.place,
                    trouble.what
                ),
                "mend it, then run this again; nothing was changed in it",
            )
        }),
    }
}

/// Returns whether another file of this repo has our hooks: two entries of one source count every
/// event twice.
fn has_hooks_elsewhere(
    pen: &InitWriter<'_>,
    agent: &'static InitAgent,
    path: &Path,
) -> Result<bool, CommandError> {
    let site = pen.site;
    if site.scope == InstallScope::User {
        return Ok(false);
    }
    let other = match site.scope {
        InstallScope::Person => InstallScope::Shared,
        InstallScope::Shared | InstallScope::User => InstallScope::Person,
    };
    let repo = agent.agent_settings_checkout(site);
    // A file that git tracks is everybody's, so one person's hooks do not go into it.
    let tracked = site.scope == InstallScope::Person && git::is_tracked_by_git(&repo, path)?;
    let noted = pen
        .installed
        .find_installed_file_record(path)
        .is_some_and(|known| known.scope == other);
    let beside = agent
        .hook_settings_file(site, other)
        .filter(|file| file != path);
    let holds = |file: &Path| {
        settings_file::read_text_if_present(file)
            .map(|text| text.is_some_and(|text| json::has_checkrein_entries(&text)))
    };
    let taken = match &beside {
        Some(beside) => holds(beside)?,
        None => tracked && holds(path)?,
    };
    match site.scope {
        InstallScope::Person if taken => {
            let file = beside.as_deref().unwrap_or(path);
            pen.print_file_left_unchanged(
                file,
                "Checkrein's hooks are in it already, for all who clone this repo",
            );
            Ok(true)
        }
        InstallScope::Person if tracked => Err(CommandError::usage_error(
            format!(
                "{} is committed in this repo, and not for one person to change",
                site.path_text_from_root_or_home(path)
            ),
            format!(
                "for everybody: checkrein init --agent {0} --shared; for you in all repos: checkrein init --agent {0} --user",
                agent.name
            ),
        )),
        InstallScope::Shared if taken || noted => Err(CommandError::usage_error(
            format!(
                "hooks of your own are installed for {} in this repo, and both would count everything twice",
                agent.title
            ),
            "take them out first: checkrein init --undo",
        )),
        _ => Ok(false),
    }
}

/// Returns the path by which agents start us: the one on PATH if that is us, because it stays when
/// we are updated.
fn hook_program_path() -> Result<String, CommandError> {
    let own = std::env::current_exe()?;
    let own = own.canonicalize().unwrap_or(own);
    let named = find_program_on_path("checkrein")
        .filter(|named| named.canonicalize().is_ok_and(|real| real == own))
        .and_then(|named| std::path::absolute(named).ok());
    let program = named.unwrap_or(own);
    program.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::usage_error(
            format!(
                "{} is no UTF-8, which settings have to be",
                program.display()
            ),
            "install checkrein somewhere else",
        )
    })
}

fn parse_agent_settings(agent: &InitAgent, text: &str) -> ParsedHookSettings {
    let adapter = checkrein_adapters::find_adapter(agent.name);
    adapter
        .and_then(|adapter| adapter.parse_hook_settings(text.as_bytes()))
        .unwrap_or_default()
}

/// Refuses a change that would cost anybody else's hook.
fn ensure_foreign_hooks_kept(
    agent: &InitAgent,
    path: &Path,
    before: Option<&str>,
    after: &ParsedHookSettings,
) -> Result<(), CommandError> {
    let Some(before) = before else { return Ok(()) };
    let others = |reading: &ParsedHookSettings| -> Vec<String> {
        // Other people's hooks must be the same in number, order and content.
        let foreign = reading
            .active_hooks()
            .filter(|hook| !hook.call.is_checkrein_hook());
        foreign
            .map(|hook| format!("{} {:?} {:?}", hook.event, hook.matcher, hook.call))
            .collect()
    };
    let before = parse_agent_settings(agent, before);
    if others(&before) == others(after)
        && (before.faults_make_agent_ignore_file() || !after.faults_make_agent_ignore_file())
    {
        return Ok(());
    }
    Err(CommandError::cli_failure_error(format!(
        "{}: with our entries in it the agent would read other people's hooks differently; nothing was changed. Please report this",
        path.display()
    )))
}

/// Warns about anything that keeps the agent from calling the hooks in the file.
fn warn_unless_hooks_active(
    pen: &InitWriter<'_>,
    agent: &InitAgent,
    path: &Path,
    reading: &ParsedHookSettings,
) -> bool {
    let mut fine = true;
    let shown = pen.site.path_text_from_root_or_home(path);
    // Smaller faults cost single entries of others; ours are well-formed.
    for fault in reading
        .faults
        .iter()
        .filter(|fault| fault.effect >= SettingsFaultImpact::Hooks)
    {
        fine = false;
        print_warning(&format!(
            "{} calls none of these hooks: {shown}, {}: {}\n  to do: {}",
            agent.title, fault.place, fault.what, fault.fix
        ));
    }
    if fine && let Some(off) = disabling_settings_file(pen, agent, path) {
        fine = false;
        print_warning(&format!(
            "{} calls no hooks at all: disableAllHooks is true in {off}\n  to do: take that line out",
            agent.title
        ));
    }
    fine
}

/// Returns the file that switches all of Claude Code's hooks off: the most local one that says
/// anything about it counts.
fn disabling_settings_file(pen: &InitWriter<'_>, agent: &InitAgent, path: &Path) -> Option<String> {
    // Codex switches hooks off in its config, which the review looks at.
    if agent.name != "claude-code" {
        return None;
    }
    // In the order of Claude Code's precedence: local, project, user.
    let files = [
        InstallScope::Person,
        InstallScope::Shared,
        InstallScope::User,
    ]
    .iter()
    .filter_map(|scope| agent.hook_settings_file(pen.site, *scope));
    for file in files {
        let Ok(Some(text)) = settings_file::read_text_if_present(&file) else {
            continue;
        };
        match parse_agent_settings(agent, &text).hooks_disabled {
            Some(true) if file != path => return Some(pen.site.path_text_from_root_or_home(&file)),
            Some(_) => return None,
            None => {}
        }
    }
    None
}

/// Keeps one person's files from being committed by accident.
pub(super) fn exclude_agent_settings_from_git(
    pen: &mut InitWriter<'_>,
    agents: &[&'static InitAgent],
) -> Result<(), CommandError> {
    let root = &pen.site.root;
    let Some(exclude) = git::repo_exclude_file(root)? else {
        return Ok(());
    };
    let now = settings_file::read_text_if_present(&exclude)?;
    let noted = pen.installed.find_installed_file_record(&exclude).cloned();
    let before = text_without_checkrein_entries(noted.as_ref(), now.as_deref())?;
    let mut inserted = noted.map(|noted| noted.inserted).unwrap_or_default();
    let mut text = now.clone().unwrap_or_default();
    for agent in agents {
        let repo = agent.agent_settings_checkout(pen.site);
        let Some(path) = agent.hook_settings_file(pen.site, InstallScope::Person) else {
            continue;
        };
        let Ok(inside) = path.strip_prefix(&repo) else {
            continue;
        };
        // The leading slash ties the pattern to this folder.
        let line = format!("/{}", inside.display());
        let there = text.lines().any(|other| other == line);
        if !there && !git::is_ignored_by_git(&repo, &path) && !git::is_tracked_by_git(&repo, &path)?
        {
            let edited = settings_text_with_line_appended(&text, &line);
            inserted.extend(edited.inserted);
            text = edited.text;
        }
    }
    if text == now.clone().unwrap_or_default() {
        return Ok(());
    }
    pen.write_and_record_init_file(
        &exclude,
        now.as_deref().map(|now| (now, before.as_deref())),
        text,
        inserted,
        InitWrittenFileKind::Lines,
        None,
        "keeps your own files out of commits",
    )
}

pub(super) fn print_warning(text: &str) {
    let head = StyledLine::line_from_styled_text(TextStyle::Warn, "checkrein:");
    ui::print_wrapped_to_stderr(head.with_plain_suffix(" ").with_plain_suffix(text));
}

/// Prints something that a person still has to do.
pub(super) fn print_step_left_to_person(path: &str, about: &str) {
    print_written_file_line(TextStyle::Warn, "to do", path, about);
}
