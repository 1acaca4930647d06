//! What differs from agent to agent: where hooks are written, how it is started with and
//! without a person, which API it speaks. A new one is one file and one line in [`ALL`].

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};

use checkrein_scripted::ScriptedModelApi;
use serde_json::Value;

use super::claude_code::ClaudeCode;
use super::codex::Codex;
use super::programs::Package;
use super::world::{World, put};

/// Seconds that hooks may take, the agent's limit and checkrein's.
pub(super) const DEADLINE: u32 = 60;

/// See above.
pub(super) trait Agent: Sync {
    /// checkrein's name for it.
    fn name(&self) -> &'static str;
    fn package(&self) -> Package;
    fn wire(&self) -> ScriptedModelApi;
    /// The file for hooks, below the home folder or below the repo.
    fn hooks_file(&self) -> &'static str;
    /// What is in it, with an entry for every event.
    fn hooks(&self, world: &World<'_>, source: &str) -> Value;
    /// Writes all other settings.
    fn settle(&self, world: &World<'_>) -> Result<()>;
    fn environment(&self, world: &World<'_>) -> Vec<(&'static str, OsString)>;
    /// Arguments for a run without a person.
    fn headless(&self, prompt: &str) -> Vec<OsString>;
    /// Arguments with which it does its work unattended.
    fn unattended(&self) -> Vec<OsString>;
    /// Writes the person's settings so that no hook is called.
    fn switch_hooks_off(&self, world: &World<'_>) -> Result<()>;
    /// Gives it a server of tools, in the person's own settings.
    fn attach(&self, world: &World<'_>, server: &Server) -> Result<()>;
    /// Arguments for its terminal UI, the prompt given.
    fn interactive(&self, prompt: &str) -> Vec<OsString>;
}

/// A server of tools that the agent starts.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) command: PathBuf,
    pub(super) arguments: Vec<String>,
    pub(super) env: Vec<(&'static str, String)>,
}

/// Which hooks are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hooks {
    /// Ours, in the home folder.
    User,
    /// Ours, in the repo.
    Project,
    /// Those that our documentation tells people to paste into the repo.
    Documented,
}

/// Makes a world's agent ready.
pub(super) fn install(world: &World<'_>, hooks: &[Hooks]) -> Result<()> {
    let agent = world.stage.agent;
    for place in hooks {
        let (folder, text) = match place {
            Hooks::User => (&world.home, agent.hooks(world, "user").to_string()),
            Hooks::Project => (&world.repo, agent.hooks(world, "project").to_string()),
            Hooks::Documented => (&world.repo, documented(agent.name())?),
        };
        put(&folder.join(agent.hooks_file()), &text)?;
    }
    agent.settle(world)
}

/// The first JSON block of the agent's page.
fn documented(agent: &str) -> Result<String> {
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
pub(super) const ALL: &[&dyn Agent] = &[&ClaudeCode, &Codex];

pub(super) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
