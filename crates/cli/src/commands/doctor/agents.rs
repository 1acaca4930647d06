//! The agents that doctor can inspect: the names of their programs, and where their settings and
//! transcripts are. A new agent is one entry in [`ALL`].

use std::env;
use std::path::{Path, PathBuf};

use checkrein_adapters as adapters;
use checkrein_adapters::settings::{HookHandlerInvocation, ParsedHookSettings};
use checkrein_runtime::durable_file;
use serde_json::{Value, json};

use super::json_location::{line_number_of_json_path, parse_json_path};
use crate::locate;

/// An agent that can be inspected.
#[derive(Debug)]
pub(super) struct InspectableAgent {
    /// Our name for the agent.
    pub(super) name: &'static str,
    /// The name that people use for it.
    pub(super) label: &'static str,
    pub(super) program: &'static str,
    /// The newest version that this build was tested with.
    pub(super) tested: &'static str,
    /// The variable that moves its folder, and the folder's name below home.
    home: (&'static str, &'static str),
    /// Its settings files in a repo.
    in_repo: &'static [(SettingsScope, &'static str)],
    /// Its settings file in its own folder.
    in_home: &'static str,
    /// Where it writes transcripts, in its own folder.
    pub(super) transcripts: &'static str,
}

/// All agents that doctor knows.
pub(super) const ALL: &[InspectableAgent] = &[
    InspectableAgent {
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
    InspectableAgent {
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

/// Whom the settings in a file are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsScope {
    /// One person, in all repos.
    User,
    /// Everybody who clones the repo.
    Project,
    /// One person, in this repo.
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

/// A settings file that exists.
#[derive(Debug)]
pub(super) struct SettingsFile {
    pub(super) scope: SettingsScope,
    pub(super) path: PathBuf,
    pub(super) text: String,
    /// The agent's own reading of it.
    pub(super) reading: ParsedHookSettings,
    json: Value,
}

impl SettingsFile {
    /// Returns the file as JSON; null if it is no JSON.
    pub(super) fn parsed_settings(&self) -> &Value {
        &self.json
    }

    /// Whether the file mentions Checkrein, be it readable or not.
    pub(super) fn settings_file_mentions_checkrein(&self) -> bool {
        self.text.contains("checkrein")
    }

    /// Returns `file:line` of the place that the parser named.
    pub(super) fn format_file_line_reference(&self, place: &str, near: &PathShortener) -> String {
        // A fault in the syntax is named by its line, since a path needs a text that parses.
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

/// Shortens paths for display.
#[derive(Debug)]
pub(super) struct PathShortener {
    pub(super) root: PathBuf,
    /// The top of the checkout: everything below it comes from the clone.
    pub(super) top: PathBuf,
}

impl PathShortener {
    /// Returns the path relative to the repo or to home.
    pub(super) fn short_path(&self, path: &Path) -> String {
        if let Ok(below) = path.strip_prefix(&self.root) {
            return below.display().to_string();
        }
        // An empty HOME would make every path one below home.
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }
}

impl InspectableAgent {
    /// Returns the agent's own folder.
    pub(super) fn agent_home_folder(&self) -> Option<PathBuf> {
        let (variable, below_home) = self.home;
        locate::agent_home_folder(variable, below_home)
    }

    /// Returns the settings files that exist.
    pub(super) fn settings_files(&self, repo: &Path) -> Vec<SettingsFile> {
        let own = self
            .agent_home_folder()
            .map(|folder| (SettingsScope::User, folder.join(self.in_home)));
        let in_repo = self
            .in_repo
            .iter()
            .map(|(scope, path)| (*scope, repo.join(path)));
        // From the person's file to the one nearest to the work: readers that look for the
        // deciding file go backwards.
        own.into_iter()
            .chain(in_repo)
            .filter_map(|(scope, path)| {
                let bytes = durable_file::read_regular_file(&path, durable_file::MAX_CONFIG_BYTES)
                    .ok()??;
                let text = String::from_utf8_lossy(&bytes).into_owned();
                // Some editors begin a file with a byte order mark, which serde_json takes for an
                // error.
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

/// Presents hooks that stand in a file of another kind as if they stood in JSON.
pub(super) fn inline_hooks_as_json_settings(
    scope: SettingsScope,
    path: PathBuf,
    text: String,
    reading: ParsedHookSettings,
) -> SettingsFile {
    let mut events = serde_json::Map::new();
    for hook in &reading.hooks {
        let HookHandlerInvocation::Command { command, .. } = &hook.call else {
            continue;
        };
        let handler = json!({ "type": "command", "command": command, "timeout": hook.timeout });
        // The same nesting of groups and handlers as in a JSON file, so that all later checks
        // read it alike.
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
