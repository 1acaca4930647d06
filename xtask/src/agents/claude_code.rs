//! Prepares Claude Code for loopback: settings with hooks, a home folder in which onboarding is
//! complete, and an environment in which it asks nothing but the scripted model.

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
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "SubagentStop",
    "StopFailure",
    "SessionEnd",
];

/// A placeholder: the scripted model checks no key.
const API_KEY: &str = "scripted-model-has-no-key";

/// Claude Code as the scenarios run it.
#[derive(Debug)]
pub(super) struct ClaudeCodeUnderTest;

impl TestedAgent for ClaudeCodeUnderTest {
    fn agent_name(&self) -> &'static str {
        "claude-code"
    }

    fn agent_package(&self) -> AgentPackage {
        AgentPackage {
            variable: "CLAUDE_BIN",
            name: "@anthropic-ai/claude-code-{os}-{arch}@2.1.330",
            program: "package/claude",
        }
    }

    fn agent_model_api(&self) -> ScriptedModelApiKind {
        ScriptedModelApiKind::Anthropic
    }

    fn hooks_file_relative_path(&self) -> &'static str {
        ".claude/settings.json"
    }

    fn probe_hooks_file_json(&self, world: &ProbeCaseFixture<'_>, source: &str) -> Value {
        let hooks: Map<String, Value> = EVENTS
            .iter()
            .map(|event| {
                (
                    (*event).to_owned(),
                    claude_code_hook_entry(world, event, source),
                )
            })
            .collect();
        json!({ "hooks": hooks })
    }

    fn create_agent_settings_without_hooks(&self, world: &ProbeCaseFixture<'_>) -> Result<()> {
        // The answers to what its dialogs ask at the first start. An approved key is stored as its
        // last 20 characters.
        let end: String = API_KEY
            .chars()
            .skip(API_KEY.chars().count().saturating_sub(20))
            .collect();
        let mut projects = Map::new();
        projects.insert(
            world.repo.display().to_string(),
            json!({ "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true }),
        );
        let state = json!({
            "hasCompletedOnboarding": true, "lastOnboardingVersion": "2.1.330", "theme": "dark", "numStartups": 3,
            "customApiKeyResponses": { "approved": [end], "rejected": [] }, "projects": projects,
        });
        write_file(&world.home.join(".claude.json"), &state.to_string())
    }

    fn agent_process_env(&self, world: &ProbeCaseFixture<'_>) -> Vec<(&'static str, OsString)> {
        let base = world.model.base_url();
        [
            ("ANTHROPIC_BASE_URL", base.as_str()),
            ("ANTHROPIC_API_KEY", API_KEY),
            ("ANTHROPIC_MODEL", "claude-sonnet-5"),
            // Requests to other hosts arrive at the scripted model as their proxy, which refuses
            // and lists them.
            ("HTTPS_PROXY", &base),
            ("HTTP_PROXY", &base),
            ("NO_PROXY", "127.0.0.1,localhost"),
            // With these switches Claude Code tries no other host at all.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_UPDATES", "1"),
            ("DO_NOT_TRACK", "1"),
            // As root Claude Code refuses `bypassPermissions` without this.
            ("IS_SANDBOX", "1"),
        ]
        .map(|(name, value)| (name, OsString::from(value)))
        .into()
    }

    fn headless_arguments(&self, prompt: &str) -> Vec<OsString> {
        os_strings(&[
            "-p",
            prompt,
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "bypassPermissions",
        ])
    }

    fn unattended_arguments(&self) -> Vec<OsString> {
        os_strings(&["--permission-mode", "bypassPermissions"])
    }

    fn disable_hooks_in_agent_settings(&self, world: &ProbeCaseFixture<'_>) -> Result<()> {
        // The whole file is replaced: the scenario that calls this installs no hooks.
        write_file(
            &world.home.join(".claude/settings.json"),
            &json!({ "disableAllHooks": true }).to_string(),
        )
    }

    fn add_mcp_server_to_tested_agent(
        &self,
        world: &ProbeCaseFixture<'_>,
        server: &McpServerEntry,
    ) -> Result<()> {
        // The person's servers stand in the state file, whose other entries have to stay.
        let file = world.home.join(".claude.json");
        let mut state: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
        let env: Map<String, Value> = server
            .env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        if let Some(state) = state.as_object_mut() {
            let entry = json!({ "type": "stdio", "command": server.command, "args": server.arguments, "env": env });
            state.insert("mcpServers".to_owned(), json!({ server.name: entry }));
        }
        write_file(&file, &state.to_string())
    }

    fn interactive_agent_arguments(&self, prompt: &str) -> Vec<OsString> {
        // `bypassPermissions` would first ask a person. `--allowedTools` takes a list, and `--`
        // keeps the prompt out of it.
        os_strings(&[
            "--permission-mode",
            "acceptEdits",
            "--allowedTools",
            "Bash,Write,Edit",
            "--",
            prompt,
        ])
    }
}

fn claude_code_hook_entry(world: &ProbeCaseFixture<'_>, event: &str, source: &str) -> Value {
    let deadline = DEADLINE.to_string();
    // Claude Code ignores `block` at Stop, which always fails open when the hook itself fails. Only
    // a tool request can be refused then.
    let failing = if event == "PreToolUse" {
        "block"
    } else {
        "continue"
    };
    // With `args` Claude Code starts the program itself, so there is no shell and nothing to quote.
    json!([{ "hooks": [{
        "type": "command", "command": world.stage.programs.checkrein, "timeout": DEADLINE,
        "args": ["hook", "claude-code", "--source", source, "--deadline", deadline],
        "onFailure": failing,
    }] }])
}
