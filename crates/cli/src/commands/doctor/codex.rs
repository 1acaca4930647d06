//! What only Codex has: a config that says which repos and which hooks a person agreed to. It skips
//! all other hooks without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_adapters::codex_trust::{self, CodexHooksConfig, HookTrust};
use checkrein_runtime::durable_file;

use super::agents::{self, InspectableAgent, PathShortener, SettingsFile, SettingsScope};
use super::canary::HooksTrustedByPerson;
use super::finding::DoctorFinding;
use super::hooks::{InstalledHook, reinstall_hooks_command};

const CONFIG: &str = "config.toml";

/// The person's config, and hooks that stand in configs.
pub(super) struct CodexConfigs {
    own: Option<(PathBuf, CodexHooksConfig)>,
    pub(super) findings: Vec<DoctorFinding>,
    pub(super) inline: Vec<SettingsFile>,
}

/// Reads the configs of the person and of the repo.
pub(super) fn read_codex_configs(
    agent: &InspectableAgent,
    root: &Path,
    near: &PathShortener,
) -> CodexConfigs {
    let own = agent
        .agent_home_folder()
        .map(|folder| (SettingsScope::User, folder.join(CONFIG)));
    let repo = (SettingsScope::Project, root.join(".codex").join(CONFIG));
    let mut configs = CodexConfigs {
        own: None,
        findings: Vec::new(),
        inline: Vec::new(),
    };
    for (scope, path) in own.into_iter().chain([repo]) {
        // A config that is missing or too large is passed over: Codex works without one.
        let Ok(Some(text)) =
            durable_file::read_limited_text_file(&path, durable_file::MAX_CONFIG_BYTES)
        else {
            continue;
        };
        match codex_trust::parse_codex_config(&text) {
            Ok(config) => {
                if !config.inline_hooks.hooks.is_empty() {
                    let reading = config.inline_hooks.clone();
                    configs.inline.push(agents::inline_hooks_as_json_settings(
                        scope,
                        path.clone(),
                        text,
                        reading,
                    ));
                }
                if !config.hooks_on {
                    configs.findings.push(
                        DoctorFinding::new_doctor_fault_finding(
                            agent.name,
                            "hooks_disabled",
                            "[features] switches hooks off",
                        )
                        .with_finding_place(near.short_path(&path))
                        .with_finding_consequence("no hook is called, and nothing is said")
                        .with_fix("take `hooks = false` out of [features]"),
                    );
                }
                // Trust counts only in the person's own config: a repo cannot agree to its own
                // hooks.
                if scope == SettingsScope::User {
                    configs.own = Some((path, config));
                }
            }
            Err(error) => configs.findings.push(
                DoctorFinding::new_doctor_fault_finding(
                    agent.name,
                    "settings_malformed",
                    format!("{CONFIG}: {}", error.lines().next().unwrap_or_default()),
                )
                .with_finding_place(near.short_path(&path))
                .with_finding_consequence("Codex does not start with it")
                .with_fix("mend the TOML there"),
            ),
        }
    }
    configs
}

/// Checks whether our entries would run; what was agreed to is added to `agreed`.
pub(super) fn check_codex_hook_trust(
    agent: &InspectableAgent,
    configs: &CodexConfigs,
    installed: &[InstalledHook<'_>],
    near: &PathShortener,
    agreed: &mut HooksTrustedByPerson,
) -> Vec<DoctorFinding> {
    if installed.is_empty() {
        return Vec::new();
    }
    // Without a config nothing is trusted, which is what the default says.
    let fallback = CodexHooksConfig::default();
    let (own, config) = match &configs.own {
        Some((path, config)) => (near.short_path(path), config),
        None => ("~/.codex/config.toml".to_owned(), &fallback),
    };
    let mut findings = Vec::new();
    let in_repo = installed
        .iter()
        .any(|one| one.settings.scope != SettingsScope::User);
    let root = near.root.display().to_string();
    agreed.repo = config.codex_trusts_repo_hooks(&root);
    if in_repo && !agreed.repo {
        findings.push(
            DoctorFinding::new_doctor_fault_finding(
                agent.name,
                "project_not_trusted",
                "Codex does not trust this repo",
            )
            .with_finding_place(&own)
            .with_finding_consequence("hooks in its .codex folder are ignored")
            .with_fix(format!(
                "add to {own}:\n[projects.{}]\ntrust_level = \"trusted\"",
                serde_json::Value::from(root.as_str())
            )),
        );
    }
    let mut by_standing: BTreeMap<&str, Vec<&InstalledHook<'_>>> = BTreeMap::new();
    let mut trusted = 0;
    for one in installed {
        // Codex keys its reviews by the real path of the file.
        let path = one.settings.path.canonicalize();
        let path = path.unwrap_or_else(|_| one.settings.path.clone());
        let what = match config.hook_trust(&path.display().to_string(), one.hook) {
            HookTrust::Trusted => {
                trusted += 1;
                let reviewed = (one.settings.path.clone(), one.hook.event.clone());
                agreed.hooks.insert(reviewed);
                continue;
            }
            HookTrust::Untrusted => "was never agreed to",
            HookTrust::Modified => "was changed after it was agreed to",
            HookTrust::Disabled => "is switched off by a person",
        };
        by_standing.entry(what).or_default().push(one);
    }
    // One finding for each standing: a person agrees to all hooks of a file at once.
    for (what, entries) in by_standing {
        let Some(first) = entries.first() else {
            continue;
        };
        let events: Vec<&str> = entries.iter().map(|one| one.hook.event.as_str()).collect();
        findings.push(
            DoctorFinding::new_doctor_fault_finding(
                agent.name,
                "hook_untrusted",
                format!("each of these hooks {what}: {}", events.join(", ")),
            )
            .with_finding_place(&first.place)
            .with_finding_consequence("Codex skips them without a word")
            .with_fix(format!(
                "start codex here once and agree to its hooks, or: {}",
                reinstall_hooks_command(agent, first.settings.scope)
            )),
        );
    }
    // A reviewed hook of a repo runs only if the repo is trusted as well.
    let runs = |one: &InstalledHook<'_>| {
        let reviewed = (one.settings.path.clone(), one.hook.event.clone());
        agreed.hooks.contains(&reviewed)
            && (one.settings.scope == SettingsScope::User || agreed.repo)
    };
    agreed.skips_all_hooks = !installed.iter().any(runs);
    if trusted > 0 {
        findings.push(DoctorFinding::ok_finding(
            agent.name,
            "trust",
            format!(
                "{trusted} of {} entries are agreed to as they are now",
                installed.len()
            ),
        ));
    }
    findings
}
