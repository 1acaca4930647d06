//! `checkrein init`: finds this repo's checks, tries them once, writes a config, and installs hooks
//! for the agents found here. `--undo` restores every file to the byte.

mod agents;
mod checks;
mod entries;
mod git;
mod hooks;
mod reviews;
mod undo;
mod writer;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::policy::Policy;

use crate::args::InitArgs;
use crate::locate::{self, ProjectLocation};
use crate::settings::install_record::{InstallRecord, InstallScope};
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::style::TextStyle;
use crate::{exit_code, signals, ui};

use writer::InitWriter;

/// The folders and the scope of an installation.
struct InitFoldersAndScope {
    located: ProjectLocation,
    /// The repo, or the current folder.
    root: PathBuf,
    /// The state folder of all repos.
    state: PathBuf,
    scope: InstallScope,
}

impl InitFoldersAndScope {
    /// Returns the command that takes everything back.
    fn undo_command_line(&self) -> &'static str {
        match self.scope {
            InstallScope::User => "checkrein init --undo --user",
            InstallScope::Person | InstallScope::Shared => "checkrein init --undo",
        }
    }

    /// Returns a path as people read it.
    fn path_text_from_root_or_home(&self, path: &Path) -> String {
        if let Ok(inside) = path.strip_prefix(&self.root) {
            return inside.display().to_string();
        }
        let home = std::env::home_dir();
        match home.and_then(|home| Some(path.strip_prefix(home).ok()?.to_owned())) {
            Some(rest) => format!("~/{}", rest.display()),
            None => path.display().to_string(),
        }
    }
}

pub(crate) fn run_init_command(args: &InitArgs) -> Result<ExitCode, CommandError> {
    signals::install_signal_handlers();
    let here = std::env::current_dir()?;
    let located = locate::locate_project(&here, None);
    let site = InitFoldersAndScope {
        root: git::worktree_root(&here).unwrap_or_else(|| located.place.root.clone()),
        located,
        state: locate::default_state_folder(),
        scope: match (args.user, args.shared) {
            (true, _) => InstallScope::User,
            (_, true) => InstallScope::Shared,
            _ => InstallScope::Person,
        },
    };
    // Opened before anything is written: without the record nothing could be taken back.
    let mut installed = InstallRecord::open_or_create_record_file(&site.state)?;
    if args.undo {
        return undo::undo_init(&site, &mut installed, args);
    }
    let agents = agents::select_agents_for_init(&args.agent, &site)?;
    let mut pen = InitWriter::new(&site, &mut installed, args.dry_run);
    // All files are checked before the checks are tried, which may take minutes.
    hooks::ensure_hook_files_writable(&pen, &agents)?;
    let policy = match site.scope {
        // With hooks for all repos, each repo says for itself what is checked.
        InstallScope::User => None,
        InstallScope::Person | InstallScope::Shared => {
            Some(checks::load_policy_or_create_config(&mut pen)?)
        }
    };
    let mut all_in_force = true;
    let mut to_review = Vec::new();
    for agent in &agents {
        let put = hooks::install_hooks(&mut pen, agent, policy.as_ref())?;
        all_in_force &= put.in_force;
        to_review.extend(put.to_review.map(|review| (agent, review)));
    }
    if site.scope == InstallScope::Person {
        hooks::exclude_agent_settings_from_git(&mut pen, &agents)?;
    }
    // Reviews come last, because a person may leave at the question.
    let mut waiting = Vec::new();
    for (agent, (path, reading)) in &to_review {
        if reviews::ask_person_to_review_codex_hooks(
            &mut pen,
            agent,
            &agent.agent_settings_checkout(&site),
            path,
            reading,
        )? {
            waiting.push(agent.title);
        }
    }
    if !args.dry_run {
        print_next_steps(&site, policy.as_ref(), all_in_force, &waiting);
    }
    // Hooks that are not called are no success, although they were written.
    Ok(exit_code::to_exit_code(if all_in_force {
        exit_code::YES
    } else {
        exit_code::USAGE
    }))
}

/// `waiting` names the agents that run no hook before the person has done something there.
fn print_next_steps(
    site: &InitFoldersAndScope,
    policy: Option<&Policy>,
    all_in_force: bool,
    waiting: &[&str],
) {
    let required = policy.map_or(0, |policy| {
        let names = policy.verifiers.iter().map(|spec| &spec.name);
        names
            .filter(|name| policy.is_required_verifier(name))
            .count()
    });
    let next = match (site.scope, required) {
        _ if !all_in_force => {
            "Not every agent is guarded yet: see what is to do above, then run this again."
        }
        (InstallScope::User, _) => {
            "Use your agents as before. A repo's own checks run once you have looked at them there: checkrein trust"
        }
        (_, 0) => {
            "Use your agents as before. No check is required yet, so each \"done\" ends `unverified`: see checkrein.toml"
        }
        _ => "Use your agents as before: \"done\" now means that these checks pass.",
    };
    ui::print_line_to_stdout("");
    if all_in_force && !waiting.is_empty() {
        let agents = waiting.join(" and ");
        let first = format!("{agents} runs no hook yet: first do what is said above. Then:");
        ui::print_output_wrapped(
            StyledLine::line_from_styled_text(TextStyle::Strong, &first),
            0,
        );
    }
    ui::print_output_wrapped(
        StyledLine::line_from_styled_text(TextStyle::Strong, next),
        0,
    );
    ui::print_output_wrapped("Do the hooks fire?  checkrein doctor", 2);
    ui::print_output_wrapped(
        &format!("Take it all back:   {}", site.undo_command_line()),
        2,
    );
}
