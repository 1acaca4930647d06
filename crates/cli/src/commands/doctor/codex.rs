//! What only Codex has: a config that says which repos and which hooks a person agreed to. It
//! skips all others without a word.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use checkrein_adapters::codex_trust::{self, CodexHooksConfig, HookTrust};
use checkrein_runtime::whole;

use super::finding::Finding;
use super::firing::Agreed;
use super::hooks::{Installed, again};
use super::places::{self, Agent, Near, Scope, Settings};

const CONFIG: &str = "config.toml";

/// The person's config, and hooks that stand in configs.
pub(super) struct Configs {
    own: Option<(PathBuf, CodexHooksConfig)>,
    pub(super) findings: Vec<Finding>,
    pub(super) inline: Vec<Settings>,
}

/// Reads the configs of person and repo.
pub(super) fn read(agent: &Agent, root: &Path, near: &Near) -> Configs {
    let own = agent
        .folder()
        .map(|folder| (Scope::User, folder.join(CONFIG)));
    let repo = (Scope::Project, root.join(".codex").join(CONFIG));
    let mut configs = Configs {
        own: None,
        findings: Vec::new(),
        inline: Vec::new(),
    };
    for (scope, path) in own.into_iter().chain([repo]) {
        let Ok(Some(text)) = whole::read_limited_text_file(&path, whole::MAX_CONFIG_BYTES) else {
            continue;
        };
        match codex_trust::parse_codex_config(&text) {
            Ok(config) => {
                if !config.inline_hooks.hooks.is_empty() {
                    let reading = config.inline_hooks.clone();
                    configs
                        .inline
                        .push(places::inline(scope, path.clone(), text, reading));
                }
                if !config.hooks_on {
                    configs.findings.push(
                        Finding::fault(
                            agent.name,
                            "hooks_disabled",
                            "[features] switches hooks off",
                        )
                        .at(near.short(&path))
                        .so("no hook is called, and nothing is said")
                        .mend("take `hooks = false` out of [features]"),
                    );
                }
                if scope == Scope::User {
                    configs.own = Some((path, config));
                }
            }
            Err(error) => configs.findings.push(
                Finding::fault(
                    agent.name,
                    "settings_malformed",
                    format!("{CONFIG}: {}", error.lines().next().unwrap_or_default()),
                )
                .at(near.short(&path))
                .so("Codex does not start with it")
                .mend("mend the TOML there"),
            ),
        }
    }
    configs
}

/// Whether our entries would be run; what was agreed to goes into `agreed`.
pub(super) fn trusted(
    agent: &Agent,
    configs: &Configs,
    installed: &[Installed<'_>],
    near: &Near,
    agreed: &mut Agreed,
) -> Vec<Finding> {
    if installed.is_empty() {
        return Vec::new();
    }
    let fallback = CodexHooksConfig::default();
    let (own, config) = match &configs.own {
        Some((path, config)) => (near.short(path), config),
        None => ("~/.codex/config.toml".to_owned(), &fallback),
    };
    let mut findings = Vec::new();
    let in_repo = installed
        .iter()
        .any(|one| one.settings.scope != Scope::User);
    let root = near.root.display().to_string();
    agreed.repo = config.codex_trusts_repo_hooks(&root);
    if in_repo && !agreed.repo {
        findings.push(
            Finding::fault(
                agent.name,
                "project_not_trusted",
                "Codex does not trust this repo",
            )
            .at(&own)
            .so("hooks in its .codex folder are ignored")
            .mend(format!(
                "add to {own}:\n[projects.{}]\ntrust_level = \"trusted\"",
                serde_json::Value::from(root.as_str())
            )),
        );
    }
    let mut by_standing: BTreeMap<&str, Vec<&Installed<'_>>> = BTreeMap::new();
    let mut trusted = 0;
    for one in installed {
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
    for (what, entries) in by_standing {
        let Some(first) = entries.first() else {
            continue;
        };
        let events: Vec<&str> = entries.iter().map(|one| one.hook.event.as_str()).collect();
        findings.push(
            Finding::fault(
                agent.name,
                "hook_untrusted",
                format!("each of these hooks {what}: {}", events.join(", ")),
            )
            .at(&first.place)
            .so("Codex skips them without a word")
            .mend(format!(
                "start codex here once and agree to its hooks, or: {}",
                again(agent, first.settings.scope)
            )),
        );
    }
    let runs = |one: &Installed<'_>| {
        let reviewed = (one.settings.path.clone(), one.hook.event.clone());
        agreed.hooks.contains(&reviewed) && (one.settings.scope == Scope::User || agreed.repo)
    };
    agreed.to_none = !installed.iter().any(runs);
    if trusted > 0 {
        findings.push(Finding::ok(
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
