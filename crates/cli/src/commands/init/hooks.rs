//! Hooks of one agent: put into the right file, after a look at what the agent will make of
//! it, and kept out of git where they are one person's.

use std::path::{Path, PathBuf};

use checkrein_adapters::settings::{ParsedHookSettings, SettingsLostByFault};
use checkrein_core::policy::Policy;

use super::agents::Agent;
use super::entries::{self, Plan};
use super::git;
use super::write::{Pen, line};
use crate::programs::on_path;
use crate::settings::record::{Scope, What, Written};
use crate::settings::{file, json, with_line, without_ours};
use crate::ui;
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::Paint;

/// What came of an agent's hooks.
pub(super) struct Put {
    /// The agent will call them, as far as its settings go.
    pub(super) in_force: bool,
    /// Hooks in this file that a person has to review.
    pub(super) to_review: Option<(PathBuf, ParsedHookSettings)>,
}

/// What is to be written into an agent's file.
struct Ready {
    path: PathBuf,
    now: Option<String>,
    before: Option<String>,
    edited: crate::settings::Edited,
    reading: ParsedHookSettings,
    entries: usize,
    /// A stop is given less time than a check may take.
    cut: bool,
}

/// Finds out whether everything can be written, before anything is: half an installation
/// would be neither.
pub(super) fn look_first(pen: &Pen<'_>, agents: &[&'static Agent]) -> Result<(), CommandError> {
    for agent in agents {
        if let Some(ready) = ready(pen, agent, None)? {
            file::writable(&ready.path)?;
        }
        if agent.name == "codex"
            && let Some(home) = agent.home()
        {
            file::read(&file::resolve(&home.join("config.toml"), None)?)?;
        }
    }
    if pen.site.scope == Scope::Person
        && let Some(exclude) = git::exclude(&pen.site.root)?
    {
        file::read(&exclude)?;
    }
    Ok(())
}

/// What is to be written, after a look at what the agent would make of it. `None` if its hooks
/// are in another file.
fn ready(
    pen: &Pen<'_>,
    agent: &'static Agent,
    policy: Option<&Policy>,
) -> Result<Option<Ready>, CommandError> {
    let site = pen.site;
    let scope = site.scope;
    let repo = agent.repo(site);
    let place = agent.file(site, scope).ok_or_else(|| {
        CommandError::usage(
            "no home folder is known",
            "set HOME, or name a repo's files with --shared",
        )
    })?;
    let path = file::resolve(&place, (scope != Scope::User).then_some(repo.as_path()))?;
    if elsewhere(pen, agent, &path)? {
        return Ok(None);
    }
    let now = file::read(&path)?;
    let trouble = |trouble: crate::settings::Trouble| {
        CommandError::usage(
            format!("{}: {}: {}", path.display(), trouble.place, trouble.what),
            "mend it, then run this again; nothing was changed in it",
        )
    };
    // What was there without us: a second `init` starts from it as the first did.
    let before = match (pen.installed.of(&path).cloned(), &now) {
        (Some(noted), _) => bare(Some(&noted), now.as_deref())?,
        (None, Some(now)) => Some(json::remove(now, &[]).map_err(trouble)?),
        (None, None) => None,
    };
    let (stop, cut) = entries::stop_seconds(policy);
    let program = program()?;
    let plan = Plan {
        agent,
        scope,
        program: &program,
        state: &site.state,
        file: &site.shown(&path),
        stop,
    };
    let entries = plan.entries();
    let edited = json::install(before.as_deref().unwrap_or_default(), &entries).map_err(trouble)?;
    let reading = read(agent, &edited.text);
    others_stay(agent, &path, before.as_deref(), &reading)?;
    Ok(Some(Ready {
        path,
        now,
        before,
        edited,
        reading,
        entries: entries.len(),
        cut,
    }))
}

/// Installs.
pub(super) fn install(
    pen: &mut Pen<'_>,
    agent: &'static Agent,
    policy: Option<&Policy>,
) -> Result<Put, CommandError> {
    let Some(ready) = ready(pen, agent, policy)? else {
        return Ok(Put {
            in_force: true,
            to_review: None,
        });
    };
    let about = format!(
        "{}: {} hooks, {}",
        agent.title,
        ready.entries,
        match pen.site.scope {
            Scope::Person => "for you, in this repo",
            Scope::Shared => "for all who clone this repo, once it is committed",
            Scope::User => "for you, in all repos",
        }
    );
    pen.write(
        &ready.path,
        ready
            .now
            .as_deref()
            .map(|now| (now, ready.before.as_deref())),
        ready.edited.text,
        ready.edited.inserted,
        What::Hooks,
        Some(agent.name),
        &about,
    )?;
    if ready.cut {
        warn(
            "a required check may take longer than the hour that an agent is made to wait at a stop; it would be cut",
        );
    }
    let in_force = in_force(pen, agent, &ready.path, &ready.reading);
    Ok(Put {
        in_force,
        to_review: (agent.name == "codex").then_some((ready.path, ready.reading)),
    })
}

/// A file's text without anything of ours: what `--undo` goes back to.
pub(super) fn bare(
    noted: Option<&Written>,
    now: Option<&str>,
) -> Result<Option<String>, CommandError> {
    match (noted, now) {
        (_, None) => Ok(None),
        (None, Some(now)) => Ok(Some(now.to_owned())),
        (Some(noted), Some(now)) => without_ours(noted, now).map_err(|trouble| {
            CommandError::usage(
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

/// Two entries of one source count every event twice: whoever has hooks in another file of
/// this repo needs no more.
fn elsewhere(pen: &Pen<'_>, agent: &'static Agent, path: &Path) -> Result<bool, CommandError> {
    let site = pen.site;
    if site.scope == Scope::User {
        return Ok(false);
    }
    let other = match site.scope {
        Scope::Person => Scope::Shared,
        Scope::Shared | Scope::User => Scope::Person,
    };
    let repo = agent.repo(site);
    let tracked = site.scope == Scope::Person && git::is_tracked(&repo, path)?;
    let noted = pen
        .installed
        .of(path)
        .is_some_and(|known| known.scope == other);
    let beside = agent.file(site, other).filter(|file| file != path);
    let holds =
        |file: &Path| file::read(file).map(|text| text.is_some_and(|text| json::holds_ours(&text)));
    let taken = match &beside {
        Some(beside) => holds(beside)?,
        None => tracked && holds(path)?,
    };
    match site.scope {
        Scope::Person if taken => {
            let file = beside.as_deref().unwrap_or(path);
            pen.kept(
                file,
                "Checkrein's hooks are in it already, for all who clone this repo",
            );
            Ok(true)
        }
        Scope::Person if tracked => Err(CommandError::usage(
            format!(
                "{} is committed in this repo, and not for one person to change",
                site.shown(path)
            ),
            format!(
                "for everybody: checkrein init --agent {0} --shared; for you in all repos: checkrein init --agent {0} --user",
                agent.name
            ),
        )),
        Scope::Shared if taken || noted => Err(CommandError::usage(
            format!(
                "hooks of your own are installed for {} in this repo, and both would count everything twice",
                agent.title
            ),
            "take them out first: checkrein init --undo",
        )),
        _ => Ok(false),
    }
}

/// The path that agents are to start us by: the one on PATH if that is us, because it stays
/// when we are updated.
fn program() -> Result<String, CommandError> {
    let own = std::env::current_exe()?;
    let own = own.canonicalize().unwrap_or(own);
    let named = on_path("checkrein")
        .filter(|named| named.canonicalize().is_ok_and(|real| real == own))
        .and_then(|named| std::path::absolute(named).ok());
    let program = named.unwrap_or(own);
    program.to_str().map(str::to_owned).ok_or_else(|| {
        CommandError::usage(
            format!(
                "{} is no UTF-8, which settings have to be",
                program.display()
            ),
            "install checkrein somewhere else",
        )
    })
}

fn read(agent: &Agent, text: &str) -> ParsedHookSettings {
    let adapter = checkrein_adapters::find_adapter(agent.name);
    adapter
        .and_then(|adapter| adapter.parse_hook_settings(text.as_bytes()))
        .unwrap_or_default()
}

/// Nothing is written that would cost anybody else's hook.
fn others_stay(
    agent: &Agent,
    path: &Path,
    before: Option<&str>,
    after: &ParsedHookSettings,
) -> Result<(), CommandError> {
    let Some(before) = before else { return Ok(()) };
    let others = |reading: &ParsedHookSettings| -> Vec<String> {
        let foreign = reading
            .active_hooks()
            .filter(|hook| !hook.call.is_checkrein_hook());
        foreign
            .map(|hook| format!("{} {:?} {:?}", hook.event, hook.matcher, hook.call))
            .collect()
    };
    let before = read(agent, before);
    if others(&before) == others(after)
        && (before.agent_ignores_settings_file() || !after.agent_ignores_settings_file())
    {
        return Ok(());
    }
    Err(CommandError::failed(format!(
        "{}: with our entries in it the agent would read other people's hooks differently; nothing was changed. Please report this",
        path.display()
    )))
}

/// Says what keeps the agent from calling the hooks that are in the file.
fn in_force(pen: &Pen<'_>, agent: &Agent, path: &Path, reading: &ParsedHookSettings) -> bool {
    let mut fine = true;
    let shown = pen.site.shown(path);
    for fault in reading
        .faults
        .iter()
        .filter(|fault| fault.effect >= SettingsLostByFault::Hooks)
    {
        fine = false;
        warn(&format!(
            "{} calls none of these hooks: {shown}, {}: {}\n  to do: {}",
            agent.title, fault.place, fault.what, fault.fix
        ));
    }
    if fine && let Some(off) = switched_off(pen, agent, path) {
        fine = false;
        warn(&format!(
            "{} calls no hooks at all: disableAllHooks is true in {off}\n  to do: take that line out",
            agent.title
        ));
    }
    fine
}

/// The file that switches all of Claude Code's hooks off: the most local one that says
/// anything about it counts.
fn switched_off(pen: &Pen<'_>, agent: &Agent, path: &Path) -> Option<String> {
    if agent.name != "claude-code" {
        return None;
    }
    let files = [Scope::Person, Scope::Shared, Scope::User]
        .iter()
        .filter_map(|scope| agent.file(pen.site, *scope));
    for file in files {
        let Ok(Some(text)) = file::read(&file) else {
            continue;
        };
        match read(agent, &text).hooks_disabled {
            Some(true) if file != path => return Some(pen.site.shown(&file)),
            Some(_) => return None,
            None => {}
        }
    }
    None
}

/// One person's files are not to be committed by accident.
pub(super) fn keep_out_of_git(
    pen: &mut Pen<'_>,
    agents: &[&'static Agent],
) -> Result<(), CommandError> {
    let root = &pen.site.root;
    let Some(exclude) = git::exclude(root)? else {
        return Ok(());
    };
    let now = file::read(&exclude)?;
    let noted = pen.installed.of(&exclude).cloned();
    let before = bare(noted.as_ref(), now.as_deref())?;
    let mut inserted = noted.map(|noted| noted.inserted).unwrap_or_default();
    let mut text = now.clone().unwrap_or_default();
    for agent in agents {
        let repo = agent.repo(pen.site);
        let Some(path) = agent.file(pen.site, Scope::Person) else {
            continue;
        };
        let Ok(inside) = path.strip_prefix(&repo) else {
            continue;
        };
        let line = format!("/{}", inside.display());
        let there = text.lines().any(|other| other == line);
        if !there && !git::is_ignored(&repo, &path) && !git::is_tracked(&repo, &path)? {
            let edited = with_line(&text, &line);
            inserted.extend(edited.inserted);
            text = edited.text;
        }
    }
    if text == now.clone().unwrap_or_default() {
        return Ok(());
    }
    pen.write(
        &exclude,
        now.as_deref().map(|now| (now, before.as_deref())),
        text,
        inserted,
        What::Lines,
        None,
        "keeps your own files out of commits",
    )
}

pub(super) fn warn(text: &str) {
    let head = Line::painted(Paint::Warn, "checkrein:");
    ui::say(head.with(" ").with(text));
}

/// Something that a person still has to do.
pub(super) fn to_do(path: &str, about: &str) {
    line(Paint::Warn, "to do", path, about);
}
