//! Translates between agents and the core: bytes an agent sent → [`AgentEvent`], decision →
//! bytes the agent obeys, transcript bytes → token use. Pure: no clock, disk, process,
//! environment (a lookup is passed in) or printing; nothing here decides anything.
//!
//! # How to add an agent
//!
//! 1. Record real payloads into `fixtures/NAME/EVENT@VERSION.json`, machine paths taken out.
//! 2. Make a folder `src/NAME/` with a unit struct that implements [`Adapter`]: one file per
//!    group of events, with reading and rendering side by side.
//! 3. Read with `fields`: an optional field of the wrong type is a missing one; only what
//!    cannot be judged without is an [`AgentMessageParseError`].
//! 4. Say in [`AgentCapabilities`] what the agent can be told. What it cannot is rendered as the
//!    next stronger thing it obeys, never as a weaker one.
//! 5. Render `allow` as no opinion (law 11), and print one JSON object or nothing.
//! 6. Add one line to [`ALL`]. `tests/conformance.rs` walks it: every event needs a fixture,
//!    and every decision is rendered for every form.

mod agent_event;
mod capabilities;
mod claude_code;
mod codex;
mod fields;
pub mod generic;
pub mod headless;
pub mod history;
mod lenient_json;
pub mod mcp;
pub mod own_hook;
mod reply;
pub mod settings;
mod tool_call;
mod usage_cursor;
mod wording;

pub use agent_event::{
    AgentEvent, AgentEventKind, AgentMessageParseError, AwaitedHookReplyForm, OwnedToolResponse,
    TranscriptFile,
};
pub use capabilities::{AgentCapabilities, DefaultReplyDeadlinesByEvent};
pub use claude_code::permissions as claude_permissions;
pub use codex::trust as codex_trust;
pub use headless::HeadlessAgent;
pub use reply::{HookDecisionWithTexts, HookReply};

use checkrein_core::input::TokenUsage;
use checkrein_core::policy::Stance;

/// Looks up a variable of the hook's environment.
pub type EnvLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One agent's protocol.
pub trait Adapter: Sync {
    /// The agent's name, as in `checkrein hook NAME`.
    fn agent_name(&self) -> &'static str;

    /// What the agent can be told.
    fn agent_capabilities(&self) -> AgentCapabilities;

    /// The agent's own names of the events to hook.
    fn hook_events(&self) -> &'static [&'static str];

    /// Reads what the agent sent; the caller has bounded its size.
    ///
    /// # Errors
    /// If it cannot be judged. The error says which form of answer the agent waits for, so
    /// that [`Adapter::stance_as_hook_reply`] can still speak its protocol.
    fn parse_agent_hook_message(
        &self,
        bytes: &[u8],
        env: EnvLookup<'_>,
    ) -> Result<AgentEvent, AgentMessageParseError>;

    /// Renders the answer for a decision.
    fn render_decision_reply(
        &self,
        form: AwaitedHookReplyForm,
        answer: &HookDecisionWithTexts,
    ) -> HookReply;

    /// Renders the answer for when Checkrein itself cannot judge.
    fn stance_as_hook_reply(
        &self,
        form: AwaitedHookReplyForm,
        stance: Stance,
        text: &str,
    ) -> HookReply;

    /// Reads a file with hooks as the agent would. `None` if the agent has no such file.
    fn parse_hook_settings(&self, _bytes: &[u8]) -> Option<settings::ParsedHookSettings> {
        None
    }

    /// Returns the byte of the transcript at which the next reading begins.
    fn transcript_offset(&self, cursor: &str) -> u64 {
        usage_cursor::parse_transcript_read_offset(cursor)
    }

    /// Returns the token use in `bytes`, which begin at [`Adapter::transcript_offset`] of `cursor`
    /// (empty at first). `None` if it is not known: there is no transcript, or no row in it reports
    /// a use. A last line without its newline is left for the next reading.
    fn transcript_token_usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage>;

    /// Returns how it works without a person, if `run` can start it.
    fn headless_agent_if_supported(&self) -> Option<&dyn HeadlessAgent> {
        None
    }
}

/// All adapters. `tests/conformance.rs` walks this list.
pub const ALL: &[&dyn Adapter] = &[
    &claude_code::ClaudeCodeAdapter,
    &codex::CodexAdapter,
    &generic::GenericAdapter,
];

/// Returns the adapter of this name.
pub fn find_adapter(name: &str) -> Option<&'static dyn Adapter> {
    ALL.iter()
        .copied()
        .find(|adapter| adapter.agent_name() == name)
}
