//! Claude Code's plug-ins and managed settings: hooks that no settings file shows, and switches
//! that nobody's own file can undo.

use std::path::{Path, PathBuf};

use checkrein_adapters as adapters;
use checkrein_adapters::settings::SettingsLostByFault;
use checkrein_runtime::whole;
use serde_json::Value;

use super::finding::Finding;
use super::places::{Agent, Near, Settings};

/// Where an organisation's settings are.
const MANAGED: &[&str] = &[
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
    "C:\\Program Files\\ClaudeCode\\managed-settings.json",
];
const HOOKS: &str = "hooks/hooks.json";

/// What was found.
#[derive(Default)]
pub(super) struct Plugins {
    pub(super) findings: Vec<Finding>,
    /// One of them brings hooks of ours that are in force.
    pub(super) ours: bool,
}

pub(super) fn look(agent: &Agent, settings: &[Settings], near: &Near) -> Plugins {
    let mut plugins = Plugins::default();
    if agent.name != "claude-code" {
        return plugins;
    }
    for file in MANAGED.iter().map(Path::new) {
        let json: Value = whole::read_regular_file(file, whole::MAX_CONFIG_BYTES)
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        for switch in ["allowManagedHooksOnly", "disableAllHooks"] {
            if json.get(switch) == Some(&Value::Bool(true)) {
                plugins.findings.push(
                    Finding::fault(
                        agent.name,
                        "hooks_disabled",
                        format!("your organisation's settings say {switch}"),
                    )
                    .at(file.display().to_string())
                    .so("hooks of persons and repos are not called")
                    .mend("ask who manages this machine to add checkrein's hooks there"),
                );
            }
        }
    }
    let Some(folder) = agent.folder() else {
        return plugins;
    };
    for (id, install) in installed(&folder) {
        one(agent, &id, &install, settings, near, &mut plugins);
    }
    plugins
}

/// Id and folder of each plug-in.
fn installed(folder: &Path) -> Vec<(String, PathBuf)> {
    let list: Value = whole::read_regular_file(
        &folder.join("plugins/installed_plugins.json"),
        whole::MAX_CONFIG_BYTES,
    )
    .ok()
    .flatten()
    .and_then(|bytes| serde_json::from_slice(&bytes).ok())
    .unwrap_or_default();
    let plugins = list.get("plugins").and_then(Value::as_object);
    plugins
        .into_iter()
        .flatten()
        .flat_map(|(id, installs)| {
            let installs = installs.as_array().map_or(&[][..], Vec::as_slice);
            installs.iter().filter_map(move |install| {
                let path = install.get("installPath")?.as_str()?;
                Some((id.clone(), PathBuf::from(path)))
            })
        })
        .collect()
}

fn one(
    agent: &Agent,
    id: &str,
    install: &Path,
    settings: &[Settings],
    near: &Near,
    plugins: &mut Plugins,
) {
    let file = install.join(HOOKS);
    let named_us = id.contains("checkrein");
    let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let read = whole::read_regular_file(&file, whole::MAX_CONFIG_BYTES)
        .and_then(|bytes| bytes.ok_or_else(gone));
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if named_us => {
            plugins.findings.push(
                Finding::fault(
                    agent.name,
                    "plugin_unreadable",
                    format!("the hooks of plug-in {id} cannot be read: {error}"),
                )
                .at(near.short(&file))
                .so("it brings no hook")
                .mend(format!(
                    "claude plugin uninstall {id}; claude plugin install {id}"
                )),
            );
            return;
        }
        Err(_) => return,
    };
    let text = String::from_utf8_lossy(&bytes);
    if !text.contains("checkrein") {
        return;
    }
    // The closest file that says anything decides.
    let enabled = settings
        .iter()
        .rev()
        .find_map(|file| file.json().pointer("/enabledPlugins")?.get(id)?.as_bool());
    if enabled != Some(true) {
        plugins.findings.push(
            Finding::fault(
                agent.name,
                "plugin_disabled",
                format!("our hooks are in plug-in {id}, which is not enabled"),
            )
            .at(near.short(&file))
            .so("none of them is called, and nothing is said")
            .mend(format!("claude plugin enable {id}")),
        );
        return;
    }
    let reading =
        adapters::find_adapter(agent.name).and_then(|adapter| adapter.parse_hook_settings(&bytes));
    let Some(reading) = reading else { return };
    if let Some(fault) = reading
        .faults
        .iter()
        .find(|fault| fault.effect >= SettingsLostByFault::Entry)
    {
        plugins.findings.push(
            Finding::fault(
                agent.name,
                "plugin_unreadable",
                format!("the hooks of plug-in {id}: {}", fault.what),
            )
            .at(format!("{} ({})", near.short(&file), fault.place))
            .so("the agent leaves them out without a word")
            .mend(fault.fix.clone()),
        );
        return;
    }
    plugins.ours = true;
    plugins.findings.push(
        Finding::ok(
            agent.name,
            "plugin",
            format!("our hooks come from plug-in {id}"),
        )
        .at(near.short(&file)),
    );
}
