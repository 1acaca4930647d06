//! `checkrein init`: finds this repo's checks, tries them once, writes a config, and installs
//! hooks for the agents that are here. `--undo` takes all of it back, to the byte.

mod agents;
mod checks;
mod entries;
mod git;
mod hooks;
mod reviews;
mod undo;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checkrein_core::policy::Policy;

use crate::args::Init;
use crate::locate::{self, Located};
use crate::settings::record::{Installed, Scope};
use crate::ui::errors::CommandError;
use crate::ui::line::Line;
use crate::ui::style::Paint;
use crate::{exit_code, signals, ui};

use write::Pen;

/// Where everything is.
struct Site {
    located: Located,
    /// The repo, or the folder that we are in.
    root: PathBuf,
    /// The state folder of all repos.
    state: PathBuf,
    scope: Scope,
}

impl Site {
    /// The command that takes it all back.
    fn undo(&self) -> &'static str {
        match self.scope {
            Scope::User => "checkrein init --undo --user",
            Scope::Person | Scope::Shared => "checkrein init --undo",
        }
    }

    /// A path as people read it.
    fn shown(&self, path: &Path) -> String {
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

pub(crate) fn run(args: &Init) -> Result<ExitCode, CommandError> {
    signals::listen();
    let here = std::env::current_dir()?;
    let located = locate::locate(&here, None);
    let site = Site {
        root: git::root(&here).unwrap_or_else(|| located.place.root.clone()),
        located,
        state: locate::usual_state_folder(),
        scope: match (args.user, args.shared) {
            (true, _) => Scope::User,
            (_, true) => Scope::Shared,
            _ => Scope::Person,
        },
    };
    let mut installed = Installed::open(&site.state)?;
    if args.undo {
        return undo::run(&site, &mut installed, args);
    }
    let agents = agents::wanted(&args.agent, &site)?;
    let mut pen = Pen::new(&site, &mut installed, args.dry_run);
    hooks::look_first(&pen, &agents)?;
    let policy = match site.scope {
        // Hooks for all repos: what is checked there, each repo says for itself.
        Scope::User => None,
        Scope::Person | Scope::Shared => Some(checks::settle(&mut pen)?),
    };
    let mut all_in_force = true;
    let mut to_review = Vec::new();
    for agent in &agents {
        let put = hooks::install(&mut pen, agent, policy.as_ref())?;
        all_in_force &= put.in_force;
        to_review.extend(put.to_review.map(|review| (agent, review)));
    }
    if site.scope == Scope::Person {
        hooks::keep_out_of_git(&mut pen, &agents)?;
    }
    // Last, because a person may leave at the question.
    let mut waiting = Vec::new();
    for (agent, (path, reading)) in &to_review {
        if reviews::settle(&mut pen, agent, &agent.repo(&site), path, reading)? {
            waiting.push(agent.title);
        }
    }
    if !args.dry_run {
        farewell(&site, policy.as_ref(), all_in_force, &waiting);
    }
    Ok(exit_code::exit(if all_in_force {
        exit_code::YES
    } else {
        exit_code::USAGE
    }))
}

/// `waiting` are the agents that run no hook before the person has done something there.
fn farewell(site: &Site, policy: Option<&Policy>, all_in_force: bool, waiting: &[&str]) {
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
        (Scope::User, _) => {
            "Use your agents as before. A repo's own checks run once you have looked at them there: checkrein trust"
        }
        (_, 0) => {
            "Use your agents as before. No check is required yet, so each \"done\" ends `unverified`: see checkrein.toml"
        }
        _ => "Use your agents as before: \"done\" now means that these checks pass.",
    };
    ui::answer("");
    if all_in_force && !waiting.is_empty() {
        let agents = waiting.join(" and ");
        let first = format!("{agents} runs no hook yet: first do what is said above. Then:");
        ui::answer_wrapped(Line::painted(Paint::Strong, &first), 0);
    }
    ui::answer_wrapped(Line::painted(Paint::Strong, next), 0);
    ui::answer_wrapped("Do the hooks fire?  checkrein doctor", 2);
    ui::answer_wrapped(&format!("Take it all back:   {}", site.undo()), 2);
}
