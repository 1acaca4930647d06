//! What differs from agent to agent: where hooks are written, how it is started with and
//! without a person, which API it speaks. A new one is one file and one line in [`ALL`].

use std::ffi::OsString;
use std::io::Result;

use super::claude_code::ClaudeCode;
use super::codex::Codex;
use super::model::Wire;
use super::programs::Package;
use super::world::World;

/// Seconds that hooks may take, the agent's limit and checkrein's.
pub(super) const DEADLINE: u32 = 60;

/// See above.
pub(super) trait Agent: Sync {
    /// checkrein's name for it.
    fn name(&self) -> &'static str;
    fn package(&self) -> Package;
    fn wire(&self) -> Wire;
    /// Writes settings and hooks; each source gets an entry for every event.
    fn install(&self, world: &World<'_>, sources: &[&str]) -> Result<()>;
    fn environment(&self, world: &World<'_>) -> Vec<(&'static str, OsString)>;
    /// Arguments for a run without a person.
    fn headless(&self, prompt: &str) -> Vec<OsString>;
    /// Arguments for its terminal UI, the prompt given.
    fn interactive(&self, prompt: &str) -> Vec<OsString>;
}

/// All of them.
pub(super) const ALL: &[&dyn Agent] = &[&ClaudeCode, &Codex];

pub(super) fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
