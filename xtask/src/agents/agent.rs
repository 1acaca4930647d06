//! Defines [`TestedAgent`]: what differs between the agents, such as where hooks are written, how
//! the agent is started with and without a person, and which API it speaks. A new agent takes one
//! file and one line in [`AGENTS`].

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use checkrein_scripted::ScriptedModelApiKind;
use serde_json::Value;

use super::claude_code::ClaudeCodeUnderTest;
use super::codex::CodexProbeAgent;
use super::programs::AgentPackage;
use super::world::{ProbeCaseFixture, write_file};

/// Seconds that a hook may take: the agent's timeout and checkrein's `--deadline`.
pub(super) const DEADLINE: u32 = 60;

/// An agent that the scenarios run.
pub(super) trait TestedAgent: Sync {
    /// Returns checkrein's name for the agent.
    fn agent_name(&self) -> &'static str;
    fn agent_package(&self) -> AgentPackage;
    fn agent_model_api(&self) -> ScriptedModelApiKind;
    /// Returns the path of the hooks file, relative to the home folder or to the repo.
    fn hooks_file_relative_path(&self) -> &'static str;
    /// Returns the content of that file, with an entry for every event that checkrein reads.
    fn probe_hooks_file_json(&self, world: &ProbeCaseFixture<'_>, source: &str) -> Value;
    /// Writes all settings but the hooks into the home folder.
    fn create_agent_settings_without_hooks(&self, world: &ProbeCaseFixture<'_>) -> Result<()>;
    fn agent_process_env(&self, world: &ProbeCaseFixture<'_>) -> Vec<(&'static str, OsString)>;
    /// Returns the arguments of a headless run that the scenario itself starts.
    fn headless_arguments(&self, prompt: &str) -> Vec<OsString>;
    /// Returns the arguments that are added to `checkrein run --agent` so that the agent asks
    /// nobody.
    fn unattended_arguments(&self) -> Vec<OsString>;
    /// Changes the person's settings so that the agent calls no hook.
    fn disable_hooks_in_agent_settings(&self, world: &ProbeCaseFixture<'_>) -> Result<()>;
    /// Adds an MCP server to the person's own settings.
    fn add_mcp_server_to_tested_agent(
        &self,
        world: &ProbeCaseFixture<'_>,
        server: &McpServerEntry,
    ) -> Result<()>;
    /// Returns the arguments that start the terminal UI with a prompt.
    fn interactive_agent_arguments(&self, prompt: &str) -> Vec<OsString>;
}

/// An MCP server that the agent starts.
#[derive(Debug)]
pub(super) struct McpServerEntry {
    pub(super) name: &'static str,
    pub(super) command: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
}

/// Which hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeHookInstallKind {
    /// Ours, in the home folder.
    User,
    /// Ours, in the repo.
    Project,
    /// Those that our documentation tells people to paste into the repo.
    Documented,
}

/// Writes the hooks and all other settings of a world's agent.
pub(super) fn install_hooks_in_probed_agent(
    world: &ProbeCaseFixture<'_>,
    hooks: &[ProbeHookInstallKind],
) -> Result<()> {
    let agent = world.stage.agent;
    for place in hooks {
        let (folder, text) = match place {
            ProbeHookInstallKind::User => (
                &world.home,
                agent.probe_hooks_file_json(world, "user").to_string(),
            ),
            ProbeHookInstallKind::Project => (
                &world.repo,
                agent.probe_hooks_file_json(world, "project").to_string(),
            ),
            // The page tells people to paste them into the project, and their source is `project`.
            ProbeHookInstallKind::Documented => {
                (&world.repo, documented_hook_settings(agent.agent_name())?)
            }
        };
        write_file(&folder.join(agent.hooks_file_relative_path()), &text)?;
    }
    agent.create_agent_settings_without_hooks(world)
}

/// Returns the first JSON block of the agent's page in `docs`.
fn documented_hook_settings(agent: &str) -> Result<String> {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(PathBuf::from_iter(["..", "docs", agent]));
    let page = page.with_extension("md");
    let text = std::fs::read_to_string(&page)?;
    // The first block is the one to paste; later ones show other settings.
    let block = text
        .split_once("```json\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    block
        .map(|(block, _)| block.to_owned())
        .ok_or_else(|| Error::other(format!("{} has no JSON block", page.display())))
}

/// All agents that the scenarios run.
pub(super) const AGENTS: &[&dyn TestedAgent] = &[&ClaudeCodeUnderTest, &CodexProbeAgent];

pub(super) fn os_strings(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
