//! Reads Claude Code's plug-ins and managed settings: hooks that no settings file shows, and
//! switches that nobody's own file can undo.

use std::path::{Path, PathBuf};

use checkrein_adapters as adapters;
use checkrein_adapters::settings::SettingsFaultImpact;
use checkrein_runtime::durable_file;
use serde_json::Value;

use super::agents::{InspectableAgent, PathShortener, SettingsFile};
use super::finding::DoctorFinding;

/// Where an organisation's settings may be.
const MANAGED_SETTINGS: &[&str] = &[
    "/etc/claude-code/managed-settings.json",
    "/Library/Application Support/ClaudeCode/managed-settings.json",
    "C:\\Program Files\\ClaudeCode\\managed-settings.json",
];
const HOOKS: &str = "hooks/hooks.json";

/// The findings on plug-ins and managed settings.
#[derive(Default)]
pub(super) struct AgentPluginFindings {
    pub(super) findings: Vec<DoctorFinding>,
    /// Whether a plug-in brings hooks of ours that are in force.
    pub(super) has_own_hooks: bool,
}

pub(super) fn gather_agent_plugin_findings(
    agent: &InspectableAgent,
    settings: &[SettingsFile],
    near: &PathShortener,
) -> AgentPluginFindings {
    let mut plugins = AgentPluginFindings::default();
    // Codex has plug-ins of another kind, which this does not read.
    if agent.name != "claude-code" {
        return plugins;
    }
    for file in MANAGED_SETTINGS.iter().map(Path::new) {
        let json: Value = durable_file::read_regular_file(file, durable_file::MAX_CONFIG_BYTES)
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        // Claude Code lets managed settings drop everybody else's hooks, or all hooks.
        for switch in ["allowManagedHooksOnly", "disableAllHooks"] {
            if json.get(switch) == Some(&Value::Bool(true)) {
                plugins.findings.push(
                    DoctorFinding::new_doctor_fault_finding(
                        agent.name,
                        "hooks_disabled",
                        format!("your organisation's settings say {switch}"),
                    )
                    .with_finding_place(file.display().to_string())
                    .with_finding_consequence("hooks of persons and repos are not called")
                    .with_fix("ask who manages this machine to add checkrein's hooks there"),
                );
            }
        }
    }
    let Some(folder) = agent.agent_home_folder() else {
        return plugins;
    };
    for (id, install) in installed_plugins(&folder) {
        inspect_agent_plugin_hooks(agent, &id, &install, settings, near, &mut plugins);
    }
    plugins
}

/// Returns id and folder of each plug-in.
fn installed_plugins(folder: &Path) -> Vec<(String, PathBuf)> {
    let list: Value = durable_file::read_regular_file(
        &folder.join("plugins/installed_plugins.json"),
        durable_file::MAX_CONFIG_BYTES,
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

fn inspect_agent_plugin_hooks(
    agent: &InspectableAgent,
    id: &str,
    install: &Path,
    settings: &[SettingsFile],
    near: &PathShortener,
    plugins: &mut AgentPluginFindings,
) {
    let file = install.join(HOOKS);
    // A plug-in named after us is expected to bring hooks, so one that cannot be read is a
    // fault. Others are not our affair.
    let named_us = id.contains("checkrein");
    let gone = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let read = durable_file::read_regular_file(&file, durable_file::MAX_CONFIG_BYTES)
        .and_then(|bytes| bytes.ok_or_else(gone));
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) if named_us => {
            plugins.findings.push(
                DoctorFinding::new_doctor_fault_finding(
                    agent.name,
                    "plugin_unreadable",
                    format!("the hooks of plug-in {id} cannot be read: {error}"),
                )
                .with_finding_place(near.short_path(&file))
                .with_finding_consequence("it brings no hook")
                .with_fix(format!(
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
    // The file nearest to the work that says anything decides.
    let enabled = settings.iter().rev().find_map(|file| {
        file.parsed_settings()
            .pointer("/enabledPlugins")?
            .get(id)?
            .as_bool()
    });
    if enabled != Some(true) {
        plugins.findings.push(
            DoctorFinding::new_doctor_fault_finding(
                agent.name,
                "plugin_disabled",
                format!("our hooks are in plug-in {id}, which is not enabled"),
            )
            .with_finding_place(near.short_path(&file))
            .with_finding_consequence("none of them is called, and nothing is said")
            .with_fix(format!("claude plugin enable {id}")),
        );
        return;
    }
    let reading =
        adapters::find_adapter(agent.name).and_then(|adapter| adapter.parse_hook_settings(&bytes));
    let Some(reading) = reading else { return };
    // A fault in the file costs at least an entry, so the hooks are not counted as in force.
    if let Some(fault) = reading
        .faults
        .iter()
        .find(|fault| fault.effect >= SettingsFaultImpact::Entry)
    {
        plugins.findings.push(
            DoctorFinding::new_doctor_fault_finding(
                agent.name,
                "plugin_unreadable",
                format!("the hooks of plug-in {id}: {}", fault.what),
            )
            .with_finding_place(format!("{} ({})", near.short_path(&file), fault.place))
            .with_finding_consequence("the agent leaves them out without a word")
            .with_fix(fault.fix.clone()),
        );
        return;
    }
    plugins.has_own_hooks = true;
    plugins.findings.push(
        DoctorFinding::ok_finding(
            agent.name,
            "plugin",
            format!("our hooks come from plug-in {id}"),
        )
        .with_finding_place(near.short_path(&file)),
    );
}
