//! `checkrein init --undo`: every file as it was, to the byte; where somebody has changed it
//! since, only our entries go.

use std::process::ExitCode;

use super::Site;
use super::agents::ALL;
use super::write::line;
use crate::args::Init;
use crate::settings::record::{Installed, Scope, What, Written, digest};
use crate::settings::{Trouble, file, json, toml, without};
use crate::ui::errors::CommandError;
use crate::ui::style::Paint;
use crate::{exit_code, ui};

pub(super) fn run(
    site: &Site,
    installed: &mut Installed,
    args: &Init,
) -> Result<ExitCode, CommandError> {
    let chosen = |written: &Written| {
        let here = match site.scope {
            Scope::User => written.scope == Scope::User,
            Scope::Shared => {
                written.scope == Scope::Shared && written.repo.as_ref() == Some(&site.root)
            }
            Scope::Person => {
                written.scope != Scope::User && written.repo.as_ref() == Some(&site.root)
            }
        };
        let named = args.agent.is_empty()
            || written
                .agent
                .as_ref()
                .is_some_and(|agent| args.agent.contains(agent));
        here && named
    };
    let files: Vec<Written> = installed
        .files
        .iter()
        .filter(|one| chosen(one))
        .rev()
        .cloned()
        .collect();
    if files.is_empty() {
        return unrecorded(site, args);
    }
    for written in files {
        one(site, installed, &written, args.dry_run)?;
        if !args.dry_run {
            installed.forget(&written.path)?;
        }
    }
    Ok(exit_code::exit(exit_code::YES))
}

/// What becomes of a file.
enum End {
    Text(String),
    Gone,
    /// It stays as it is, and why.
    Stays(&'static str),
}

fn one(
    site: &Site,
    installed: &Installed,
    written: &Written,
    dry_run: bool,
) -> Result<(), CommandError> {
    let path = &written.path;
    let shown = site.shown(path);
    if written.what == What::Reports {
        if path.is_dir() && !dry_run {
            std::fs::remove_dir_all(path)?;
            line(Paint::Good, "removed", &shown, "reports of checks");
        }
        return Ok(());
    }
    let Some(now) = file::read(path)? else {
        line(Paint::Dim, "gone", &shown, "somebody took it away already");
        return Ok(());
    };
    let untouched = digest(&now) == written.after;
    let before = match &written.before {
        Some(digest) => installed.kept(digest).ok(),
        None => None,
    };
    let (end, about) = match (untouched, &written.before, before) {
        (true, None, _) => (End::Gone, "it was not there before"),
        (true, Some(_), Some(before)) => (End::Text(before), "as it was, to the byte"),
        _ => (
            only_ours(written, &now).map_err(|trouble| {
                CommandError::usage(
                    format!("{}: {}: {}", path.display(), trouble.place, trouble.what),
                    "mend it, or take our entries out by hand; nothing was changed in it",
                )
            })?,
            "changed since: our entries are out, the rest stays",
        ),
    };
    let failed =
        |error: std::io::Error| CommandError::failed(format!("{}: {error}", path.display()));
    let verb = |done: &str| match dry_run {
        true => format!("would be {done}"),
        false => done.to_owned(),
    };
    match end {
        End::Text(text) if text == now => {
            line(Paint::Dim, "kept", &shown, "nothing of ours is in it")
        }
        End::Text(text) => {
            if !dry_run {
                file::write(path, &text).map_err(failed)?;
            }
            line(Paint::Good, &verb("restored"), &shown, about);
        }
        End::Gone => {
            if !dry_run {
                file::remove(path, &written.folders).map_err(failed)?;
            }
            line(Paint::Good, &verb("removed"), &shown, about);
        }
        End::Stays(why) => line(Paint::Dim, "kept", &shown, why),
    }
    Ok(())
}

/// The text of a file that was changed since, without our entries.
fn only_ours(written: &Written, now: &str) -> Result<End, Trouble> {
    Ok(match &written.what {
        What::Hooks => {
            let text = json::remove(now, &written.inserted)?;
            match written.before.is_none() && json::is_bare(&text) {
                true => End::Gone,
                false => End::Text(text),
            }
        }
        What::Reviews(keys) => {
            let text = toml::remove(now, &written.inserted, keys)?;
            match written.before.is_none() && text.trim().is_empty() {
                true => End::Gone,
                false => End::Text(text),
            }
        }
        What::Lines => End::Text(without(now, &written.inserted).unwrap_or_else(|| {
            let ours = |line: &str| {
                written
                    .inserted
                    .iter()
                    .any(|piece| piece.trim() == line.trim())
            };
            now.split_inclusive('\n')
                .filter(|line| !ours(line))
                .collect()
        })),
        What::Config | What::Reports => End::Stays("you have edited it: it is yours"),
    })
}

/// Nothing is noted: perhaps the state folder is new. Entries of ours are known by what they
/// call.
fn unrecorded(site: &Site, args: &Init) -> Result<ExitCode, CommandError> {
    let mut found = false;
    let scopes: &[Scope] = match site.scope {
        Scope::User => &[Scope::User],
        Scope::Shared => &[Scope::Shared],
        Scope::Person => &[Scope::Person],
    };
    for agent in ALL {
        if !args.agent.is_empty() && !args.agent.iter().any(|name| name == agent.name) {
            continue;
        }
        for path in scopes.iter().filter_map(|scope| agent.file(site, *scope)) {
            let Some(now) = file::read(&path)? else {
                continue;
            };
            if !json::holds_ours(&now) {
                continue;
            }
            found = true;
            let text = json::remove(&now, &[]).unwrap_or_else(|_| now.clone());
            if !args.dry_run {
                file::write(&path, &text)?;
            }
            let verb = if args.dry_run {
                "would restore"
            } else {
                "restored"
            };
            line(
                Paint::Good,
                verb,
                &site.shown(&path),
                "no note of what was there before: our entries are out",
            );
        }
    }
    if !found {
        ui::answer(match site.scope {
            Scope::User => "nothing of ours is installed for all repos",
            Scope::Person | Scope::Shared => "nothing of ours is installed in this repo",
        });
    }
    Ok(exit_code::exit(exit_code::YES))
}
