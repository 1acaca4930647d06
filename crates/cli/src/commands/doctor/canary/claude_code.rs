//! Plays the canary with Claude Code: settings with our entries only, and a home folder that has
//! been through onboarding.

use std::ffi::OsString;
use std::io::Result;

use checkrein_scripted::ScriptedModelApiKind;
use serde_json::json;

use super::{
    CanaryAgent, HookTrialRunEnvironment, HooksTrustedByPerson, SettingsFile,
    scripted_model_proxy_variables, settings_copy, write_file_creating_folders,
};
use crate::commands::doctor::agents::SettingsScope;

/// A dummy: the scripted model asks for no key.
const KEY: &str = "scripted-model-has-no-key";

pub(super) struct ClaudeCodeCanary;

impl CanaryAgent for ClaudeCodeCanary {
    fn agent_model_api(&self) -> ScriptedModelApiKind {
        ScriptedModelApiKind::Anthropic
    }

    fn write_canary_settings(
        &self,
        scene: &HookTrialRunEnvironment,
        settings: &[SettingsFile],
        _agreed: &HooksTrustedByPerson,
    ) -> Result<()> {
        // Each scope keeps its own file, so that precedence between the files stays as it is.
        for one in settings {
            let (folder, name) = match one.scope {
                SettingsScope::User => (&scene.home, "settings.json"),
                SettingsScope::Project => (&scene.repo, "settings.json"),
                SettingsScope::Local => (&scene.repo, "settings.local.json"),
            };
            if let Some(copy) = settings_copy::settings_with_only_checkrein_hooks(
                one.parsed_settings(),
                "claude-code",
                one.scope,
                &scene.inspected_repo,
            ) {
                write_file_creating_folders(&folder.join(".claude").join(name), &copy.to_string())?;
            }
        }
        // The answers that its dialogs would ask of a person at the first start.
        let state = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 3,
            "projects": { scene.repo.display().to_string(): {
                "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            } },
        });
        write_file_creating_folders(&scene.home.join(".claude.json"), &state.to_string())
    }

    fn env_vars_for_canary_run(
        &self,
        scene: &HookTrialRunEnvironment,
    ) -> Vec<(&'static str, OsString)> {
        let base = scene.model.base_url();
        // The proxy variables lead all traffic to the scripted model, which lets nothing out.
        let mut all = scripted_model_proxy_variables(&base);
        all.extend(
            [
                ("ANTHROPIC_BASE_URL", base.as_str()),
                ("ANTHROPIC_API_KEY", KEY),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("CLAUDE_CODE_MAX_RETRIES", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_UPDATES", "1"),
                ("DO_NOT_TRACK", "1"),
            ]
            .map(|(name, value)| (name, OsString::from(value))),
        );
        all
    }

    fn canary_agent_arguments(&self, prompt: &str) -> Vec<OsString> {
        // Not bypassPermissions: the canary allows nothing that it does not need.
        [
            "-p",
            prompt,
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash",
        ]
        .map(OsString::from)
        .into()
    }
}
