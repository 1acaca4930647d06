//! `checkrein init --undo`: every file as it was, to the byte; where somebody has changed it
//! since, only our entries go.

use std::process::ExitCode;

use super::Site;
use super::agents::ALL;
use super::write::line;
use crate::args::Init;
use crate::settings::record::{Installed, Scope, What, Written, digest};
use crate::settings::{file, json, without_ours};
use crate::ui::errors::{self, CommandError};
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
        return unrecorded(site, installed, args);
    }
    let mut code = exit_code::YES;
    for written in files {
        match one(site, installed, &written, args.dry_run) {
            Ok(()) if args.dry_run => {}
            Ok(()) => installed.forget(&written.path)?,
            // One that cannot be mended by us keeps no other from it.
            Err(error) => {
                errors::report(&error);
                code = exit_code::USAGE;
            }
        }
    }
    Ok(exit_code::exit(code))
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
        _ if written.what == What::Config => (End::Stays("you have edited it: it is yours"), ""),
        _ => {
            let left = without_ours(written, &now).map_err(|trouble| {
                CommandError::usage(
                    format!("{}: {}: {}", path.display(), trouble.place, trouble.what),
                    "mend it, or take our entries out by hand; nothing was changed in it",
                )
            })?;
            let end = left.map_or(End::Gone, End::Text);
            (end, "changed since: our entries are out, the rest stays")
        }
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

/// Nothing is noted: perhaps the state folder is new. Entries of ours are known by what they
/// call.
fn unrecorded(site: &Site, installed: &Installed, args: &Init) -> Result<ExitCode, CommandError> {
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
        let user = installed.files.iter().any(|one| one.scope == Scope::User);
        ui::answer(match site.scope {
            Scope::User => "nothing of ours is installed for all repos",
            _ if user => {
                "nothing of ours is installed in this repo; your own settings have it for all repos: checkrein init --undo --user"
            }
            Scope::Person | Scope::Shared => "nothing of ours is installed in this repo",
        });
    }
    Ok(exit_code::exit(exit_code::YES))
}
