//! The agents that `init` can install hooks for: how one shows that it is here, and where its
//! settings are. A new one is one line in [`ALL`] and its entries in `entries.rs`.

use std::path::PathBuf;

use super::{Site, git};
use crate::programs::on_path;
use crate::settings::record::Scope;
use crate::ui::errors::CommandError;

/// An agent with a settings file.
#[derive(Debug)]
pub(super) struct Agent {
    /// Our name for it.
    pub(super) name: &'static str,
    /// Its own.
    pub(super) title: &'static str,
    program: &'static str,
    /// The variable that names its folder, and the folder below the home folder.
    home: (&'static str, &'static str),
    /// Its folder in a repo.
    folder: &'static str,
    /// Files in that folder: for one person, for all who clone the repo; and for all repos.
    files: [&'static str; 3],
}

pub(super) static CLAUDE_CODE: Agent = Agent {
    name: "claude-code",
    title: "Claude Code",
    program: "claude",
    home: ("CLAUDE_CONFIG_DIR", ".claude"),
    folder: ".claude",
    files: ["settings.local.json", "settings.json", "settings.json"],
};

pub(super) static CODEX: Agent = Agent {
    name: "codex",
    title: "Codex",
    program: "codex",
    home: ("CODEX_HOME", ".codex"),
    folder: ".codex",
    files: ["hooks.json", "hooks.json", "hooks.json"],
};

pub(super) const ALL: &[&Agent] = &[&CLAUDE_CODE, &CODEX];

impl Agent {
    /// Its folder for all repos.
    pub(super) fn home(&self) -> Option<PathBuf> {
        let (variable, folder) = self.home;
        let named = std::env::var_os(variable).filter(|value| !value.is_empty());
        match named {
            Some(named) => Some(PathBuf::from(named)),
            None => std::env::home_dir().map(|home| home.join(folder)),
        }
    }

    /// Where it looks for the settings of this repo: Codex in the main worktree, whichever
    /// one it runs in.
    pub(super) fn repo(&self, site: &Site) -> PathBuf {
        match self.name {
            "codex" => git::main_worktree(&site.root).unwrap_or_else(|| site.root.clone()),
            _ => site.root.clone(),
        }
    }

    /// The file that its hooks go into.
    pub(super) fn file(&self, site: &Site, scope: Scope) -> Option<PathBuf> {
        let [person, shared, user] = self.files;
        Some(match scope {
            Scope::Person => self.repo(site).join(self.folder).join(person),
            Scope::Shared => self.repo(site).join(self.folder).join(shared),
            Scope::User => self.home()?.join(user),
        })
    }

    /// What shows that it is used here.
    fn sign(&self, site: &Site) -> Option<String> {
        if on_path(self.program).is_some() {
            return Some(format!("`{}` on PATH", self.program));
        }
        let home = self.home().filter(|home| home.is_dir());
        if let Some(home) = home {
            return Some(site.shown(&home));
        }
        let folder = self.repo(site).join(self.folder);
        folder.is_dir().then(|| format!("{}/", self.folder))
    }
}

/// The agents that are named, else those that are here.
pub(super) fn wanted(names: &[String], site: &Site) -> Result<Vec<&'static Agent>, CommandError> {
    let known: Vec<&str> = ALL.iter().map(|agent| agent.name).collect();
    let mut found = Vec::new();
    for name in names {
        let agent = ALL.iter().find(|agent| agent.name == name);
        let agent = agent.ok_or_else(|| {
            CommandError::usage(
                format!("no agent with a settings file is named '{name}'"),
                format!("known: {}", known.join(", ")),
            )
        })?;
        if !found.iter().any(|other: &&Agent| other.name == agent.name) {
            found.push(*agent);
        }
    }
    if names.is_empty() {
        for agent in ALL {
            if let Some(sign) = agent.sign(site) {
                crate::ui::say(&format!("{} is here: {sign}", agent.title));
                found.push(*agent);
            }
        }
    }
    if found.is_empty() {
        return Err(CommandError::usage(
            "no agent was found: none on PATH, none with a folder in the home folder or in this repo",
            format!("name one: --agent {}", known.join(", --agent ")),
        ));
    }
    Ok(found)
}
