//! The agents that can be looked at: what their program is called, where their settings and
//! transcripts are. A new one is one line in [`ALL`].

use std::env;
use std::path::{Path, PathBuf};

use checkrein_adapters as adapters;
use checkrein_adapters::settings::{HookHandlerAction, ParsedHookSettings};
use checkrein_runtime::durable_file;
use serde_json::{Value, json};

use super::json_location::{line_number_of_json_path, parse_json_path};
use crate::locate;

/// An agent.
#[derive(Debug)]
pub(super) struct DoctorAgent {
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
    in_repo: &'static [(SettingsScope, &'static str)],
    /// Its settings file in its own folder.
    in_home: &'static str,
    /// Where it writes transcripts, in its own folder.
    pub(super) transcripts: &'static str,
}

/// All of them.
pub(super) const ALL: &[DoctorAgent] = &[
    DoctorAgent {
        name: "claude-code",
        label: "Claude Code",
        program: "claude",
        tested: "2.1.330",
        home: ("CLAUDE_CONFIG_DIR", ".claude"),
        in_repo: &[
            (SettingsScope::Project, ".claude/settings.json"),
            (SettingsScope::Local, ".claude/settings.local.json"),
        ],
        in_home: "settings.json",
        transcripts: "projects",
    },
    DoctorAgent {
        name: "codex",
        label: "Codex",
        program: "codex",
        tested: "0.169.0",
        home: ("CODEX_HOME", ".codex"),
        in_repo: &[(SettingsScope::Project, ".codex/hooks.json")],
        in_home: "hooks.json",
        transcripts: "sessions",
    },
];

/// Whose settings a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsScope {
    /// This person's, for all repos.
    User,
    /// The repo's, committed.
    Project,
    /// This person's, for this repo.
    Local,
}

impl SettingsScope {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            SettingsScope::User => "user",
            SettingsScope::Project => "project",
            SettingsScope::Local => "local",
        }
    }
}

/// A settings file that is there.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) scope: SettingsScope,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// What the agent makes of it.
    pub(super) reading: ParsedHookSettings,
    json: Value,
}

impl SettingsFile {
    /// Null if it is no JSON.
    pub(super) fn settings_json(&self) -> &Value {
        &self.json
    }

    /// Whether it has anything to do with us, readable or not.
    pub(super) fn mentions_checkrein(&self) -> bool {
        self.text.contains("checkrein")
    }

    /// `file:line` of what stands at a place that the reader named.
    pub(super) fn line_reference(&self, place: &str, near: &PathShortener) -> String {
        let line = match place.strip_prefix("line ") {
            Some(rest) => rest.split(',').next().and_then(|line| line.parse().ok()),
            None if self.json.is_null() => None,
            None => Some(line_number_of_json_path(
                &self.text,
                &parse_json_path(place),
            )),
        };
        let file = near.short_path(&self.path);
        line.map_or_else(|| file.clone(), |line: usize| format!("{file}:{line}"))
    }
}

/// Names files the short way.
#[derive(Debug)]
pub(super) struct PathShortener {
    pub(super) root: PathBuf,
    /// Top of the checkout: what lies below it is the clone's.
    pub(super) top: PathBuf,
}

impl PathShortener {
    /// Relative to the repo, or to home.
    pub(super) fn short_path(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.root) {
            return below.display().to_string();
        }
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }
}

impl DoctorAgent {
    /// Its own folder.
    pub(super) fn agent_home_folder(&self) -> Option<PathBuf> {
        let (variable, below_home) = self.home;
        locate::agent_home_folder(variable, below_home)
    }

    /// The settings files that are there.
    pub(super) fn settings_files(&self, repo: &Path) -> Vec<SettingsFile> {
        let own = self
            .agent_home_folder()
            .map(|folder| (SettingsScope::User, folder.join(self.in_home)));
        let in_repo = self
            .in_repo
            .iter()
            .map(|(scope, path)| (*scope, repo.join(path)));
        own.into_iter()
            .chain(in_repo)
            .filter_map(|(scope, path)| {
                let bytes = durable_file::read_regular_file(&path, durable_file::MAX_CONFIG_BYTES)
                    .ok()??;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let json = serde_json::from_str(text.trim_start_matches('\u{feff}'));
                let reading = adapters::find_adapter(self.name)?.parse_hook_settings(&bytes)?;
                Some(SettingsFile {
                    scope,
                    path,
                    text,
                    reading,
                    json: json.unwrap_or_default(),
                })
            })
            .collect()
    }
}

/// Hooks that stand in a file of another kind, as if they stood in JSON.
pub(super) fn settings_from_inline_hooks(
    scope: SettingsScope,
    path: PathBuf,
    text: String,
    reading: ParsedHookSettings,
) -> SettingsFile {
    let mut events = serde_json::Map::new();
    for hook in &reading.hooks {
        let HookHandlerAction::Command { command, .. } = &hook.call else {
            continue;
        };
        let handler = json!({ "type": "command", "command": command, "timeout": hook.timeout });
        let mut group = json!({ "hooks": [handler] });
        if let (Some(matcher), Some(fields)) = (&hook.matcher, group.as_object_mut()) {
            fields.insert("matcher".to_owned(), Value::from(matcher.as_str()));
        }
        let groups = events.entry(hook.event.clone()).or_insert(json!([]));
        if let Some(groups) = groups.as_array_mut() {
            groups.push(group);
        }
    }
    SettingsFile {
        scope,
        path,
        text,
        reading,
        json: json!({ "hooks": events }),
    }
}
