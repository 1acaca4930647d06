//! Finds the guarded files (law 10) and what counts of each: config, rules, schemas and middleware
//! programs as they are, an agent's settings as far as they are about hooks, ignore files.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use checkrein_core::digest::Digest;
use checkrein_runtime::config::{ConfigWithNamedFiles, PolicySourceTexts};
use checkrein_runtime::{GuardedFileDigests, durable_file};
use serde_json::Value;

use crate::locate::{self, ProjectLocation};

/// The keys of Claude Code's settings by which hooks are set, silenced or misled. Claude Code
/// writes the other keys itself while it works, as when a person allows a command for good.
const HOOK_SETTINGS_KEYS: &[&str] = &[
    "allowManagedHooksOnly",
    "disableAllHooks",
    "enabledPlugins",
    "env",
    "hooks",
];

/// Reads the digests that guarded files have now, for a session that is judged in `root`.
pub(crate) fn hash_guarded_files(located: &ProjectLocation, root: &Path) -> GuardedFileDigests {
    // A session is judged in the folder that it was sealed for, which may be another one by now.
    if root != located.place.root {
        return hash_guarded_files(&located.with_project_root(root), root);
    }
    let mut seen = GuardedFileDigests::default();
    let mut others = BTreeMap::new();
    let configs = [
        located.repo_config.as_deref(),
        located.person_config.as_deref(),
    ];
    for config in configs.into_iter().flatten() {
        // A file that is missing has no entry, so that creating or deleting one is seen as an edit.
        let Some(digest) = file_digest(config) else {
            continue;
        };
        seen.policy
            .insert(path_text_from_checkout_or_home(located, config), digest);
        // Policy files and others are kept apart: only an edit of the former means that an older
        // policy is held.
        let gathered = load_config_and_named_files(config);
        for named in gathered
            .iter()
            .flat_map(ConfigWithNamedFiles::rules_and_schema_files)
        {
            let digest = Digest::hash_bytes(named.text.as_bytes());
            seen.policy.insert(
                path_text_from_checkout_or_home(located, &named.name),
                digest,
            );
        }
        for program in gathered
            .iter()
            .flat_map(ConfigWithNamedFiles::middleware_programs)
        {
            if let Some(digest) = file_digest(&program) {
                others.insert(path_text_from_checkout_or_home(located, &program), digest);
            }
        }
    }
    for settings in hook_settings_files(located) {
        if let Some(digest) = hook_settings_digest(&settings) {
            others.insert(path_text_from_checkout_or_home(located, &settings), digest);
        }
    }
    for ignores in git_ignore_file_paths(located) {
        if let Some(digest) = file_digest(&ignores) {
            others.insert(path_text_from_checkout_or_home(located, &ignores), digest);
        }
    }
    seen.others = others;
    seen
}

/// Returns a config with the files it names, as they are now.
pub(crate) fn load_config_and_named_files(config: &Path) -> Option<ConfigWithNamedFiles> {
    let source = locate::read_config_source(config).ok().flatten()?;
    ConfigWithNamedFiles::gather_files_named_by_config(source).ok()
}

/// Returns the settings in which hooks of agents are installed: of this repo, and of the person.
pub(crate) fn hook_settings_files(located: &ProjectLocation) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // The tree's root may be a folder of the checkout with agent settings of its own.
    for folder in [&located.top, &located.place.root] {
        found.push(folder.join(".claude/settings.json"));
        found.push(folder.join(".claude/settings.local.json"));
        found.push(folder.join(".codex/hooks.json"));
        found.push(folder.join(".codex/config.toml"));
    }
    if let Some(folder) = locate::agent_home_folder("CLAUDE_CONFIG_DIR", ".claude") {
        found.push(folder.join("settings.json"));
    }
    if let Some(folder) = locate::agent_home_folder("CODEX_HOME", ".codex") {
        found.push(folder.join("hooks.json"));
        found.push(folder.join("config.toml"));
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the paths that no tool call may write: our state, settings with hooks that lie elsewhere
/// than usual, the rules and schemas in force, and files that middleware runs.
pub(crate) fn paths_no_call_may_write(
    located: &ProjectLocation,
    sources: &PolicySourceTexts,
) -> Vec<String> {
    let mut paths: Vec<PathBuf> = hook_settings_files(located);
    paths.extend(located.place.state.parent().map(Path::to_owned));
    for gathered in [&sources.repo, &sources.person].into_iter().flatten() {
        paths.extend(
            gathered
                .rules_and_schema_files()
                .map(|named| named.name.clone()),
        );
        paths.extend(gathered.middleware_programs());
    }
    let text = |path: PathBuf| path.into_os_string().into_string().ok();
    paths.into_iter().filter_map(text).collect()
}

fn git_ignore_file_paths(located: &ProjectLocation) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = [&located.top, &located.place.root]
        .map(|folder| folder.join(".gitignore"))
        .into();
    found.extend(locate::git_common_dir(&located.top).map(|git| git.join("info/exclude")));
    found
}

/// Returns the digest of the whole file, if there is one.
fn file_digest(file: &Path) -> Option<Digest> {
    guarded_file_bytes(file).map(|bytes| Digest::hash_bytes(&bytes))
}

/// Bytes of a guarded file that are read.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// Reads a guarded file. What is no regular file could block a hook for ever, or feed it for ever,
/// so it counts by its kind alone.
fn guarded_file_bytes(file: &Path) -> Option<Vec<u8>> {
    let opened = match durable_file::open_regular_file(file) {
        Ok(opened) => opened,
        Err(_) => {
            let found = std::fs::metadata(file).ok()?;
            return (!found.is_file()).then(|| format!("{:?}", found.file_type()).into_bytes());
        }
    };
    let length = opened.metadata().ok()?.len();
    let mut bytes = Vec::new();
    opened.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    // What lies beyond the bound still shows by its length.
    if length > MAX_FILE {
        bytes.extend(length.to_le_bytes());
    }
    Some(bytes)
}

/// Returns the digest of settings. Those that cannot be read count byte by byte: the agent may read
/// them.
fn hook_settings_digest(file: &Path) -> Option<Digest> {
    let bytes = guarded_file_bytes(file)?;
    let settings = file.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.starts_with("settings.")
    });
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(mut object)) if settings => {
            // Canonical JSON of the kept keys: a reformatted file is no edit.
            object.retain(|key, _| HOOK_SETTINGS_KEYS.contains(&key.as_str()));
            Some(Digest::hash_json(&Value::Object(object)))
        }
        _ => Some(Digest::hash_bytes(&bytes)),
    }
}

/// Returns a path as a person sees it: from the checkout on, or from home on.
fn path_text_from_checkout_or_home(located: &ProjectLocation, file: &Path) -> String {
    if let Ok(below) = file.strip_prefix(&located.top) {
        return below.display().to_string();
    }
    let home = locate::home_folder();
    match home.and_then(|home| file.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => file.display().to_string(),
    }
}
