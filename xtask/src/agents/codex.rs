//! Prepares Codex for loopback: a config whose only provider is the scripted model, hooks in a
//! `hooks.json`, and trust in the hooks given for one call.

use std::ffi::OsString;
use std::io::Result;

use checkrein_scripted::ScriptedModelApiKind;
use serde_json::{Map, Value, json};

use super::agent::{DEADLINE, McpServerEntry, TestedAgent, os_strings};
use super::programs::AgentPackage;
use super::world::{ProbeCaseFixture, write_file};

/// Every event that checkrein reads.
const EVENTS: &[&str] = &[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SubagentStop",
    "SessionEnd",
];

/// The longest timeout that Codex allows a SessionEnd hook, in seconds.
const SESSION_END: u32 = 3;

/// Codex as the scenarios run it.
#[derive(Debug)]
pub(super) struct CodexProbeAgent;

impl TestedAgent for CodexProbeAgent {
    fn agent_name(&self) -> &'static str {
        "codex"
    }

    fn agent_package(&self) -> AgentPackage {
        AgentPackage {
            variable: "CODEX_BIN",
            name: "@openai/codex@0.169.0-{os}-{arch}",
            program: "package/vendor/*/bin/codex",
        }
    }

    fn agent_model_api(&self) -> ScriptedModelApiKind {
        ScriptedModelApiKind::OpenAi
    }

    fn hooks_file_relative_path(&self) -> &'static str {
        ".codex/hooks.json"
    }

    fn probe_hooks_file_json(&self, world: &ProbeCaseFixture<'_>, source: &str) -> Value {
        let hooks: Map<String, Value> = EVENTS
            .iter()
            .map(|event| ((*event).to_owned(), codex_hook_entry(world, event, source)))
            .collect();
        json!({ "hooks": hooks })
    }

    fn create_agent_settings_without_hooks(&self, world: &ProbeCaseFixture<'_>) -> Result<()> {
        let base = world.model.base_url();
        // The model is one of Codex's catalogue, because an unknown name gets no patch tool. Under
        // `notice.model_migrations` the offer of a newer model counts as answered; a person would
        // have to answer it otherwise. The repo is trusted, because Codex ignores the hooks of any
        // other project.
        let config = format!(
            "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\nweb_search = \"disabled\"\n\
             [analytics]\nenabled = false\n[feedback]\nenabled = false\n\
             [projects.{repo}]\ntrust_level = \"trusted\"\n\
             [notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n\
             [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{base}/v1\"\nwire_api = \"responses\"\n\
             env_key = \"SCRIPTED_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\nsupports_websockets = false\n",
            repo = json!(world.repo),
        );
        write_file(&world.home.join(".codex/config.toml"), &config)
    }

    fn agent_process_env(&self, world: &ProbeCaseFixture<'_>) -> Vec<(&'static str, OsString)> {
        let base = world.model.base_url();
        [
            // `env_key` names this variable; Codex requires that it is set and not empty.
            ("SCRIPTED_KEY", "scripted-model-has-no-key"),
            // Requests to other hosts arrive at the scripted model as their proxy, which refuses
            // and lists them.
            ("HTTPS_PROXY", base.as_str()),
            ("HTTP_PROXY", &base),
            ("NO_PROXY", "127.0.0.1,localhost"),
            ("no_proxy", "127.0.0.1,localhost"),
        ]
        .map(|(name, value)| (name, OsString::from(value)))
        .into()
    }

    fn headless_arguments(&self, prompt: &str) -> Vec<OsString> {
        // Codex runs only hooks that a person has reviewed. The flag allows them for this one call.
        os_strings(&["exec", "--json", "--dangerously-bypass-hook-trust", prompt])
    }

    fn unattended_arguments(&self) -> Vec<OsString> {
        // `approval_policy` and `sandbox_mode` of the config are enough.
        Vec::new()
    }

    fn disable_hooks_in_agent_settings(&self, world: &ProbeCaseFixture<'_>) -> Result<()> {
        let file = world.home.join(".codex/config.toml");
        let text = std::fs::read_to_string(&file)?;
        // The text ends within a table, and a new table may follow any other.
        write_file(&file, &format!("{text}[features]\nhooks = false\n"))
    }

    fn add_mcp_server_to_tested_agent(
        &self,
        world: &ProbeCaseFixture<'_>,
        server: &McpServerEntry,
    ) -> Result<()> {
        let file = world.home.join(".codex/config.toml");
        let text = std::fs::read_to_string(&file)?;
        let env = server
            .env
            .iter()
            .map(|(name, value)| format!("{name} = {}", json!(value)));
        let env: Vec<String> = env.collect();
        let entry = format!(
            "[mcp_servers.{}]\ncommand = {}\nargs = {}\nenv = {{ {} }}\n",
            server.name,
            json!(server.command),
            json!(server.arguments),
            env.join(", ")
        );
        write_file(&file, &(text + &entry))
    }

    fn interactive_agent_arguments(&self, prompt: &str) -> Vec<OsString> {
        // Without the shared server no process outlives the screen. tmux keeps no history of an
        // alternate screen, and the scenarios read the history.
        os_strings(&[
            "--no-daemon",
            "--no-alt-screen",
            "--dangerously-bypass-hook-trust",
            prompt,
        ])
    }
}

fn codex_hook_entry(world: &ProbeCaseFixture<'_>, event: &str, source: &str) -> Value {
    let timeout = if event == "SessionEnd" {
        SESSION_END
    } else {
        DEADLINE
    };
    // Codex hands the command to a shell, so a quote in the path has to be escaped.
    let program = world
        .stage
        .programs
        .checkrein
        .display()
        .to_string()
        .replace('\'', "'\\''");
    let command = format!("'{program}' hook codex --source {source} --deadline {timeout}");
    json!([{ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] }])
}
