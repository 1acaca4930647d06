//! Codex: a config whose only provider is the scripted model, and our hooks in `hooks.json`.

use std::ffi::OsString;
use std::io::Result;

use checkrein_scripted::Wire;
use serde_json::json;

use super::{Canary, Scene, Settings, copied, loopback, put};
use crate::commands::doctor::places::Scope;

pub(super) struct Codex;

impl Canary for Codex {
    fn wire(&self) -> Wire {
        Wire::OpenAi
    }

    fn settle(&self, scene: &Scene, settings: &[Settings]) -> Result<()> {
        for one in settings {
            let folder = match one.scope {
                Scope::User => &scene.home,
                Scope::Project | Scope::Local => &scene.repo,
            };
            if let Some(copy) = copied::only_ours(one.json(), "codex") {
                put(&folder.join(".codex/hooks.json"), &copy.to_string())?;
            }
        }
        let base = scene.model.base();
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\nweb_search = \"disabled\"\n\
             [analytics]\nenabled = false\n[feedback]\nenabled = false\n\
             [projects.{repo}]\ntrust_level = \"trusted\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{base}/v1\"\nwire_api = \"responses\"\n\
             env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n",
            repo = json!(scene.repo),
        );
        put(&scene.home.join(".codex/config.toml"), &config)
    }

    fn environment(&self, scene: &Scene) -> Vec<(&'static str, OsString)> {
        let mut all = loopback(&scene.model.base());
        all.push(("SCRIPTED_KEY", OsString::from("scripted-model-has-no-key")));
        all
    }

    fn arguments(&self, prompt: &str) -> Vec<OsString> {
        // Only our own hooks are there, and whether the person trusts them is looked at elsewhere.
        [
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            prompt,
        ]
        .map(OsString::from)
        .into()
    }
}
