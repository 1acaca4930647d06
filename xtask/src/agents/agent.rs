//! What differs from agent to agent: where hooks are written, how it is started with and
//! without a person, which API it speaks. A new one is one file and one line in [`AGENTS`].

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use checkrein_scripted::ScriptedModelApi;
use serde_json::Value;

use super::claude_code::ClaudeCodeUnderTest;
use super::codex::CodexProbeAgent;
use super::programs::AgentPackage;
use super::world::{ProbeCaseFixture, write_file};

/// Seconds that hooks may take, the agent's limit and checkrein's.
pub(super) const DEADLINE: u32 = 60;

/// See above.
pub(super) trait TestedAgent: Sync {
    /// checkrein's name for it.
    fn agent_name(&self) -> &'static str;
    fn agent_package(&self) -> AgentPackage;
    fn agent_model_api(&self) -> ScriptedModelApi;
    /// The file for hooks, below the home folder or below the repo.
    fn hooks_file_relative_path(&self) -> &'static str;
    /// What is in it, with an entry for every event.
    fn hooks_json(&self, world: &ProbeCaseFixture<'_>, source: &str) -> Value;
    /// Writes all other settings.
    fn write_agent_settings(&self, world: &ProbeCaseFixture<'_>) -> Result<()>;
    fn agent_environment_variables(
        &self,
        world: &ProbeCaseFixture<'_>,
    ) -> Vec<(&'static str, OsString)>;
    /// Arguments for a run without a person.
    fn headless_arguments(&self, prompt: &str) -> Vec<OsString>;
    /// Arguments with which it does its work unattended.
    fn unattended_arguments(&self) -> Vec<OsString>;
    /// Writes the person's settings so that no hook is called.
    fn disable_hooks_in_agent_settings(&self, world: &ProbeCaseFixture<'_>) -> Result<()>;
    /// Gives it a server of tools, in the person's own settings.
    fn add_mcp_server_to_agent(
        &self,
        world: &ProbeCaseFixture<'_>,
        server: &McpServerEntry,
    ) -> Result<()>;
    /// Arguments for its terminal UI, the prompt given.
    fn interactive_agent_arguments(&self, prompt: &str) -> Vec<OsString>;
}

/// A server of tools that the agent starts.
#[derive(Debug)]
pub(super) struct McpServerEntry {
    pub(super) name: &'static str,
    pub(super) command: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
}

/// Which hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HooksToInstall {
    /// Ours, in the home folder.
    User,
    /// Ours, in the repo.
    Project,
    /// Those that our documentation tells people to paste into the repo.
    Documented,
}

/// Makes a world's agent ready.
pub(super) fn install_hooks_in_probed_agent(
    world: &ProbeCaseFixture<'_>,
    hooks: &[HooksToInstall],
) -> Result<()> {
    let agent = world.stage.agent;
    for place in hooks {
        let (folder, text) = match place {
            HooksToInstall::User => (&world.home, agent.hooks_json(world, "user").to_string()),
            HooksToInstall::Project => {
                (&world.repo, agent.hooks_json(world, "project").to_string())
            }
            HooksToInstall::Documented => {
                (&world.repo, documented_hook_settings(agent.agent_name())?)
            }
        };
        write_file(&folder.join(agent.hooks_file_relative_path()), &text)?;
    }
    agent.write_agent_settings(world)
}

/// The first JSON block of the agent's page.
fn documented_hook_settings(agent: &str) -> Result<String> {
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(PathBuf::from_iter(["..", "docs", agent]));
    let page = page.with_extension("md");
    let text = std::fs::read_to_string(&page)?;
    let block = text
        .split_once("```json\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    block
        .map(|(block, _)| block.to_owned())
        .ok_or_else(|| Error::other(format!("{} has no JSON block", page.display())))
}

/// All of them.
pub(super) const AGENTS: &[&dyn TestedAgent] = &[&ClaudeCodeUnderTest, &CodexProbeAgent];

pub(super) fn os_strings(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
