//! `checkrein init --undo`: restores every file to the byte. Where somebody has changed a file
//! since, only our entries are removed.

use std::process::ExitCode;

use super::InitFoldersAndScope;
use super::agents::ALL;
use super::writer::print_written_file_line;
use crate::args::InitArgs;
use crate::settings::install_record::{
    InitWrittenFile, InitWrittenFileKind, InstallRecord, InstallScope, text_digest,
};
use crate::settings::{json, settings_file, without_checkrein_entries};
use crate::ui::errors::{self, CommandError};
use crate::ui::style::TextStyle;
use crate::{exit_code, ui};

pub(super) fn undo_init(
    site: &InitFoldersAndScope,
    installed: &mut InstallRecord,
    args: &InitArgs,
) -> Result<ExitCode, CommandError> {
    // Undo without --user never touches the hooks for all repos.
    let chosen = |written: &InitWrittenFile| {
        let here = match site.scope {
            InstallScope::User => written.scope == InstallScope::User,
            InstallScope::Shared => {
                written.scope == InstallScope::Shared && written.repo.as_ref() == Some(&site.root)
            }
            InstallScope::Person => {
                written.scope != InstallScope::User && written.repo.as_ref() == Some(&site.root)
            }
        };
        let named = args.agent.is_empty()
            || written
                .agent
                .as_ref()
                .is_some_and(|agent| args.agent.contains(agent));
        here && named
    };
    // Last written, first undone: a folder has to be empty before it is removed.
    let files: Vec<InitWrittenFile> = installed
        .files
        .iter()
        .filter(|one| chosen(one))
        .rev()
        .cloned()
        .collect();
    if files.is_empty() {
        return undo_unrecorded_hooks(site, installed, args);
    }
    let mut code = exit_code::YES;
    for written in files {
        match undo_init_file_change(site, installed, &written, args.dry_run) {
            Ok(()) if args.dry_run => {}
            Ok(()) => installed.forget_installed_file(&written.path)?,
            // A file that cannot be restored must not keep the others from being restored.
            Err(error) => {
                errors::report_command_error(&error);
                code = exit_code::USAGE;
            }
        }
    }
    Ok(exit_code::to_exit_code(code))
}

/// What to do with a file.
enum FileAfterHookRemoval {
    Restore(String),
    Remove,
    /// It stays as it is, for this reason.
    Keep(&'static str),
}

fn undo_init_file_change(
    site: &InitFoldersAndScope,
    installed: &InstallRecord,
    written: &InitWrittenFile,
    dry_run: bool,
) -> Result<(), CommandError> {
    let path = &written.path;
    let shown = site.path_text_from_root_or_home(path);
    if written.what == InitWrittenFileKind::Reports {
        if path.is_dir() && !dry_run {
            std::fs::remove_dir_all(path)?;
            print_written_file_line(TextStyle::Good, "removed", &shown, "reports of checks");
        }
        return Ok(());
    }
    let Some(now) = settings_file::read_text_if_present(path)? else {
        print_written_file_line(
            TextStyle::Dim,
            "gone",
            &shown,
            "somebody took it away already",
        );
        return Ok(());
    };
    // The digest of what was written tells whether somebody has edited the file since.
    let untouched = text_digest(&now) == written.after;
    let before = match &written.before {
        // Without its backup a file is treated like an edited one.
        Some(digest) => installed.read_settings_backup(digest).ok(),
        None => None,
    };
    let (end, about) = match (untouched, &written.before, before) {
        (true, None, _) => (FileAfterHookRemoval::Remove, "it was not there before"),
        (true, Some(_), Some(before)) => (
            FileAfterHookRemoval::Restore(before),
            "as it was, to the byte",
        ),
        // A config that a person has edited is theirs, even the checks that we wrote into it.
        _ if written.what == InitWrittenFileKind::Config => (
            FileAfterHookRemoval::Keep("you have edited it: it is yours"),
            "",
        ),
        _ => {
            let left = without_checkrein_entries(written, &now).map_err(|trouble| {
                CommandError::usage_error(
                    format!("{}: {}: {}", path.display(), trouble.place, trouble.what),
                    "mend it, or take our entries out by hand; nothing was changed in it",
                )
            })?;
            let end = left.map_or(FileAfterHookRemoval::Remove, FileAfterHookRemoval::Restore);
            (end, "changed since: our entries are out, the rest stays")
        }
    };
    let failed = |error: std::io::Error| {
        CommandError::cli_failure_error(format!("{}: {error}", path.display()))
    };
    let verb = |done: &str| match dry_run {
        true => format!("would be {done}"),
        false => done.to_owned(),
    };
    match end {
        FileAfterHookRemoval::Restore(text) if text == now => {
            print_written_file_line(TextStyle::Dim, "kept", &shown, "nothing of ours is in it")
        }
        FileAfterHookRemoval::Restore(text) => {
            if !dry_run {
                settings_file::write_atomically(path, &text).map_err(failed)?;
            }
            print_written_file_line(TextStyle::Good, &verb("restored"), &shown, about);
        }
        FileAfterHookRemoval::Remove => {
            if !dry_run {
                settings_file::remove_file_and_empty_folders(path, &written.folders)
                    .map_err(failed)?;
            }
            print_written_file_line(TextStyle::Good, &verb("removed"), &shown, about);
        }
        FileAfterHookRemoval::Keep(why) => {
            print_written_file_line(TextStyle::Dim, "kept", &shown, why)
        }
    }
    Ok(())
}

/// Removes entries that were never recorded, perhaps because the state folder is new. They are
/// recognised by what they call.
fn undo_unrecorded_hooks(
    site: &InitFoldersAndScope,
    installed: &InstallRecord,
    args: &InitArgs,
) -> Result<ExitCode, CommandError> {
    let mut found = false;
    let scopes: &[InstallScope] = match site.scope {
        InstallScope::User => &[InstallScope::User],
        InstallScope::Shared => &[InstallScope::Shared],
        InstallScope::Person => &[InstallScope::Person],
    };
    for agent in ALL {
        if !args.agent.is_empty() && !args.agent.iter().any(|name| name == agent.name) {
            continue;
        }
        for path in scopes
            .iter()
            .filter_map(|scope| agent.hook_settings_file(site, *scope))
        {
            let Some(now) = settings_file::read_text_if_present(&path)? else {
                continue;
            };
            if !json::has_checkrein_entries(&now) {
                continue;
            }
            found = true;
            // A file that cannot be edited stays as it is.
            let text = json::remove_hook_entries(&now, &[]).unwrap_or_else(|_| now.clone());
            if !args.dry_run {
                settings_file::write_atomically(&path, &text)?;
            }
            let verb = if args.dry_run {
                "would restore"
            } else {
                "restored"
            };
            print_written_file_line(
                TextStyle::Good,
                verb,
                &site.path_text_from_root_or_home(&path),
                "no note of what was there before: our entries are out",
            );
        }
    }
    if !found {
        // A person who looks for hooks in the wrong place is led to the right one.
        let user = installed
            .files
            .iter()
            .any(|one| one.scope == InstallScope::User);
        ui::print_line_to_stdout(match site.scope {
            InstallScope::User => "nothing of ours is installed for all repos",
            _ if user => {
                "nothing of ours is installed in this repo; your own settings have it for all repos: checkrein init --undo --user"
            }
            InstallScope::Person | InstallScope::Shared => {
                "nothing of ours is installed in this repo"
            }
        });
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}
