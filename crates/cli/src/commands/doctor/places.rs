//! The agents that can be looked at: what their program is called, where their settings and
//! transcripts are. A new one is one line in [`ALL`].

use std::env;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// checkrein's name for it.
    pub(super) name: &'static str,
    /// What people call it.
    pub(super) label: &'static str,
    pub(super) program: &'static str,
    /// The newest version that this build was tried with.
    pub(super) tested: &'static str,
    /// The variable that moves its folder, and the folder below home.
    home: (&'static str, &'static str),
    /// Settings files in the repo.
    in_repo: &'static [(Scope, &'static str)],
    /// Its settings file in its own folder.
    in_home: &'static str,
    /// Where it writes transcripts, in its own folder.
    pub(super) transcripts: &'static str,
}

/// All of them.
pub(super) const ALL: &[Agent] = &[
    Agent {
        name: "claude-code",
        label: "Claude Code",
        program: "claude",
        tested: "2.1.330",
        home: ("CLAUDE_CONFIG_DIR", ".claude"),
        in_repo: &[
            (Scope::Project, ".claude/settings.json"),
            (Scope::Local, ".claude/settings.local.json"),
        ],
        in_home: "settings.json",
        transcripts: "projects",
    },
    Agent {
        name: "codex",
        label: "Codex",
        program: "codex",
        tested: "0.169.0",
        home: ("CODEX_HOME", ".codex"),
        in_repo: &[(Scope::Project, ".codex/hooks.json")],
        in_home: "hooks.json",
        transcripts: "sessions",
    },
];

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// This person's, for all repos.
    User,
    /// The repo's, committed.
    Project,
    /// This person's, for this repo.
    Local,
}

impl Scope {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Local => "local",
        }
    }
}

/// A settings file that is there.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) scope: Scope,
    pub(super) path: PathBuf,
    /// `None`: it cannot be read as text.
    pub(super) text: Option<String>,
    json: Value,
}

impl Settings {
    /// Null if it is no JSON.
    pub(super) fn json(&self) -> &Value {
        &self.json
    }
}

impl Agent {
    /// Its own folder.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let (variable, below_home) = self.home;
        env::var_os(variable)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
            .or_else(|| Some(env::home_dir()?.join(below_home)))
    }

    /// The settings files that are there.
    pub(super) fn settings(&self, repo: &Path) -> Vec<Settings> {
        let own = self
            .folder()
            .map(|folder| (Scope::User, folder.join(self.in_home)));
        let in_repo = self
            .in_repo
            .iter()
            .map(|(scope, path)| (*scope, repo.join(path)));
        own.into_iter()
            .chain(in_repo)
            .filter(|(_, path)| path.is_file())
            .map(|(scope, path)| {
                let text = std::fs::read_to_string(&path).ok();
                let json = text
                    .as_deref()
                    .map(|text| text.trim_start_matches('\u{feff}'))
                    .and_then(|text| serde_json::from_str(text).ok())
                    .unwrap_or_default();
                Settings {
                    scope,
                    path,
                    text,
                    json,
                }
            })
            .collect()
    }
}

/// The program of this name on the PATH.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|file| is_program(file))
}

#[cfg(unix)]
pub(super) fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
pub(super) fn is_program(file: &Path) -> bool {
    file.is_file()
}
