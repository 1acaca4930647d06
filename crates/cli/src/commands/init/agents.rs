//! The agents that `init` can install hooks for: how one is detected, and where its settings are. A
//! new one is an entry in [`ALL`] and its events in `entries.rs`.

use std::path::PathBuf;

use super::{InitFoldersAndScope, git};
use crate::programs::find_program_on_path;
use crate::settings::install_record::InstallScope;
use crate::ui::errors::CommandError;

/// An agent with a settings file.
#[derive(Debug)]
pub(super) struct InitAgent {
    /// Our name for the agent.
    pub(super) name: &'static str,
    /// The name it calls itself.
    pub(super) title: &'static str,
    program: &'static str,
    /// The variable that moves its folder, and the folder's name below home.
    home: (&'static str, &'static str),
    /// The name of its folder in a repo.
    folder: &'static str,
    /// Files in that folder: for one person in this repo, for all who clone it, and for one person
    /// in all repos.
    files: [&'static str; 3],
}

pub(super) static CLAUDE_CODE: InitAgent = InitAgent {
    name: "claude-code",
    title: "Claude Code",
    program: "claude",
    home: ("CLAUDE_CONFIG_DIR", ".claude"),
    folder: ".claude",
    files: ["settings.local.json", "settings.json", "settings.json"],
};

pub(super) static CODEX: InitAgent = InitAgent {
    name: "codex",
    title: "Codex",
    program: "codex",
    home: ("CODEX_HOME", ".codex"),
    folder: ".codex",
    files: ["hooks.json", "hooks.json", "hooks.json"],
};

pub(super) const ALL: &[&InitAgent] = &[&CLAUDE_CODE, &CODEX];

impl InitAgent {
    /// Returns the agent's folder for all repos.
    pub(super) fn agent_home_folder(&self) -> Option<PathBuf> {
        let (variable, folder) = self.home;
        let named = std::env::var_os(variable).filter(|value| !value.is_empty());
        match named {
            Some(named) => Some(PathBuf::from(named)),
            None => std::env::home_dir().map(|home| home.join(folder)),
        }
    }

    /// Returns where it looks for the settings of this repo: Codex in the main worktree, whichever
    /// worktree it runs in.
    pub(super) fn agent_settings_checkout(&self, site: &InitFoldersAndScope) -> PathBuf {
        match self.name {
            "codex" => git::main_worktree(&site.root).unwrap_or_else(|| site.root.clone()),
            _ => site.root.clone(),
        }
    }

    /// Returns the file that its hooks go into.
    pub(super) fn hook_settings_file(
        &self,
        site: &InitFoldersAndScope,
        scope: InstallScope,
    ) -> Option<PathBuf> {
        let [person, shared, user] = self.files;
        Some(match scope {
            InstallScope::Person => self
                .agent_settings_checkout(site)
                .join(self.folder)
                .join(person),
            InstallScope::Shared => self
                .agent_settings_checkout(site)
                .join(self.folder)
                .join(shared),
            InstallScope::User => self.agent_home_folder()?.join(user),
        })
    }

    /// Returns what shows that the agent is used here.
    fn agent_installation_sign(&self, site: &InitFoldersAndScope) -> Option<String> {
        // The program is the surest sign; a folder alone may be left from an earlier
        // installation.
        if find_program_on_path(self.program).is_some() {
            return Some(format!("`{}` on PATH", self.program));
        }
        let home = self.agent_home_folder().filter(|home| home.is_dir());
        if let Some(home) = home {
            return Some(site.path_text_from_root_or_home(&home));
        }
        let folder = self.agent_settings_checkout(site).join(self.folder);
        folder.is_dir().then(|| format!("{}/", self.folder))
    }
}

/// Returns the agents that are named, or else those that are found here.
pub(super) fn select_agents_for_init(
    names: &[String],
    site: &InitFoldersAndScope,
) -> Result<Vec<&'static InitAgent>, CommandError> {
    let known: Vec<&str> = ALL.iter().map(|agent| agent.name).collect();
    let mut found = Vec::new();
    for name in names {
        let agent = ALL.iter().find(|agent| agent.name == name);
        let agent = agent.ok_or_else(|| {
            CommandError::usage_error(
                format!("no agent with a settings file is named '{name}'"),
                format!("known: {}", known.join(", ")),
            )
        })?;
        // Named twice, an agent is still installed once.
        if !found
            .iter()
            .any(|other: &&InitAgent| other.name == agent.name)
        {
            found.push(*agent);
        }
    }
    if names.is_empty() {
        for agent in ALL {
            if let Some(sign) = agent.agent_installation_sign(site) {
                crate::ui::print_wrapped_to_stderr(&format!("{} is here: {sign}", agent.title));
                found.push(*agent);
            }
        }
    }
    if found.is_empty() {
        return Err(CommandError::usage_error(
            "no agent was found: none on PATH, none with a folder in the home folder or in this repo",
            format!("name one: --agent {}", known.join(", --agent ")),
        ));
    }
    Ok(found)
}
