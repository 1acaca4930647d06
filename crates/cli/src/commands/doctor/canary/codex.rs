//! Plays the canary with Codex: a config whose only provider is the scripted model, and our hooks
//! in `hooks.json`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Result;
use std::path::Path;

use checkrein_adapters::{self as adapters, codex_trust};
use checkrein_scripted::ScriptedModelApiKind;
use serde_json::{Value, json};

use super::{
    CanaryAgent, HookTrialRunEnvironment, HooksTrustedByPerson, SettingsFile,
    scripted_model_proxy_variables, settings_copy, write_file_creating_folders,
};
use crate::commands::doctor::agents::SettingsScope;

pub(super) struct CodexHookFiringCanary;

impl CanaryAgent for CodexHookFiringCanary {
    fn agent_model_api(&self) -> ScriptedModelApiKind {
        ScriptedModelApiKind::OpenAi
    }

    fn write_canary_settings(
        &self,
        scene: &HookTrialRunEnvironment,
        settings: &[SettingsFile],
        agreed: &HooksTrustedByPerson,
    ) -> Result<()> {
        // Codex adds up the hooks of `hooks.json` and `config.toml` of one folder, so both go into
        // one copy.
        let mut copies: BTreeMap<&Path, (Value, Vec<&Path>)> = BTreeMap::new();
        for one in settings {
            let folder = match one.scope {
                SettingsScope::User => &scene.home,
                SettingsScope::Project | SettingsScope::Local => &scene.repo,
            };
            if let Some(copy) = settings_copy::settings_with_only_checkrein_hooks(
                one.parsed_settings(),
                "codex",
                one.scope,
                &scene.inspected_repo,
            ) {
                let (all, originals) = copies.entry(folder).or_default();
                settings_copy::merge_json(all, copy);
                originals.push(&one.path);
            }
        }
        // Reviews name a file, a place and a hash, so those of the originals do not fit the
        // copies.
        let mut states = String::new();
        for (folder, (copy, originals)) in copies {
            let (file, text) = (folder.join(".codex/hooks.json"), copy.to_string());
            write_file_creating_folders(&file, &text)?;
            states.push_str(&trust_toml_for_copied_hooks(
                &file, &text, &originals, agreed,
            ));
        }
        // An untrusted repo stays untrusted in the copy, or the canary would show more than the
        // person gets.
        let repo_level = if agreed.repo { "trusted" } else { "untrusted" };
        let base = scene.model.base_url();
        // No retries: the canary counts requests, and a repeated one would be counted too.
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\nweb_search = \"disabled\"\n\
             [analytics]\nenabled = false\n[feedback]\nenabled = false\n\
             [projects.{repo}]\ntrust_level = \"{repo_level}\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{base}/v1\"\nwire_api = \"responses\"\n\
             env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n{states}",
            repo = json!(scene.repo),
        );
        write_file_creating_folders(&scene.home.join(".codex/config.toml"), &config)
    }

    fn env_vars_for_canary_run(
        &self,
        scene: &HookTrialRunEnvironment,
    ) -> Vec<(&'static str, OsString)> {
        let mut all = scripted_model_proxy_variables(&scene.model.base_url());
        all.push(("SCRIPTED_KEY", OsString::from("scripted-model-has-no-key")));
        all
    }

    fn canary_agent_arguments(&self, prompt: &str) -> Vec<OsString> {
        ["exec", "--json", "--skip-git-repo-check", prompt]
            .map(OsString::from)
            .into()
    }
}

/// Writes reviews of the copy's hooks for those that the person reviewed in the originals.
fn trust_toml_for_copied_hooks(
    file: &Path,
    text: &str,
    originals: &[&Path],
    agreed: &HooksTrustedByPerson,
) -> String {
    let reading = adapters::find_adapter("codex")
        .and_then(|codex| codex.parse_hook_settings(text.as_bytes()));
    let path = file.display().to_string();
    let mut states = String::new();
    for hook in reading.iter().flat_map(|reading| &reading.hooks) {
        let reviewed = originals.iter().any(|original| {
            let hook = (original.to_path_buf(), hook.event.clone());
            agreed.hooks.contains(&hook)
        });
        if reviewed
            && let (Some(key), Some(hash)) = (
                codex_trust::codex_hook_trust_key(&path, hook),
                codex_trust::codex_hook_trust_hash(hook),
            )
        {
            let key = Value::from(key);
            states.push_str(&format!("[hooks.state.{key}]\ntrusted_hash = \"{hash}\"\n"));
        }
    }
    states
}
