//! Claude Code: settings with our entries, and a home folder that has been through onboarding.

use std::ffi::OsString;
use std::io::Result;

use checkrein_scripted::Wire;
use serde_json::json;

use super::{Agreed, Canary, Scene, Settings, copied, loopback, put};
use crate::commands::doctor::places::Scope;

/// Not a key: the scripted model asks for none.
const KEY: &str = "scripted-model-has-no-key";

pub(super) struct ClaudeCode;

impl Canary for ClaudeCode {
    fn wire(&self) -> Wire {
        Wire::Anthropic
    }

    fn settle(&self, scene: &Scene, settings: &[Settings], _agreed: &Agreed) -> Result<()> {
        for one in settings {
            let (folder, name) = match one.scope {
                Scope::User => (&scene.home, "settings.json"),
                Scope::Project => (&scene.repo, "settings.json"),
                Scope::Local => (&scene.repo, "settings.local.json"),
            };
            if let Some(copy) = copied::only_ours(one.json(), "claude-code", one.scope, &scene.from)
            {
                put(&folder.join(".claude").join(name), &copy.to_string())?;
            }
        }
        // What its dialogs ask a person at the first start.
        let state = json!({
            "hasCompletedOnboarding": true, "theme": "dark", "numStartups": 3,
            "projects": { scene.repo.display().to_string(): {
                "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true,
            } },
        });
        put(&scene.home.join(".claude.json"), &state.to_string())
    }

    fn environment(&self, scene: &Scene) -> Vec<(&'static str, OsString)> {
        let base = scene.model.base();
        let mut all = loopback(&base);
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

    fn arguments(&self, prompt: &str) -> Vec<OsString> {
        // Not bypassPermissions: nothing is to be allowed that the canary does not need.
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
