//! Translates between agents and the core: bytes an agent sent → [`Knock`], decision →
//! bytes the agent obeys, transcript bytes → token use. Pure: no clock, disk, process,
//! environment (a lookup is passed in) or printing; nothing here decides anything.
//!
//! # How to add an agent
//!
//! 1. Record real payloads into `fixtures/NAME/EVENT@VERSION.json`, machine paths taken out.
//! 2. Make a folder `src/NAME/` with a unit struct that implements [`Adapter`]: one file per
//!    group of events, with reading and rendering side by side.
//! 3. Read with `fields`: an optional field of the wrong type is a missing one; only what
//!    cannot be judged without is an [`Unreadable`].
//! 4. Say in [`Capabilities`] what the agent can be told. What it cannot is rendered as the
//!    next stronger thing it obeys, never as a weaker one.
//! 5. Render `allow` as no opinion (law 11), and print one JSON object or nothing.
//! 6. Add one line to [`ALL`]. `tests/conformance.rs` walks it: every event needs a fixture,
//!    and every decision is rendered for every form.

mod call;
mod capabilities;
mod claude_code;
mod codex;
mod fields;
pub mod generic;
pub mod headless;
mod knock;
mod ledger;
mod lenient;
pub mod mcp;
pub mod ours;
mod reply;
pub mod settings;
mod wording;

pub use capabilities::{Capabilities, Deadlines};
pub use claude_code::permissions as claude_permissions;
pub use codex::trust as codex_trust;
pub use headless::Headless;
pub use knock::{EventKind, Knock, ReplyForm, Transcript, Unreadable};
pub use reply::{Answer, Reply};

use checkrein_core::input::TokenUsage;
use checkrein_core::policy::Stance;

/// Looks up a variable of the hook's environment.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// One agent's protocol.
pub trait Adapter: Sync {
    /// The agent's name, as in `checkrein hook NAME`.
    fn name(&self) -> &'static str;

    /// What the agent can be told.
    fn capabilities(&self) -> Capabilities;

    /// The agent's own names of the events to hook.
    fn events(&self) -> &'static [&'static str];

    /// Reads what the agent sent; the caller has bounded its size.
    ///
    /// # Errors
    /// If it cannot be judged. The error says which form of answer the agent waits for, so
    /// that [`Adapter::stance`] can still speak its protocol.
    fn read(&self, bytes: &[u8], env: Env<'_>) -> Result<Knock, Unreadable>;

    /// What to say for a decision.
    fn reply(&self, form: ReplyForm, answer: &Answer) -> Reply;

    /// What to say when Checkrein itself cannot judge.
    fn stance(&self, form: ReplyForm, stance: Stance, text: &str) -> Reply;

    /// What the agent would make of a file with hooks. `None` if it has no such file.
    fn settings(&self, _bytes: &[u8]) -> Option<settings::Reading> {
        None
    }

    /// Where in the transcript the next reading begins, in bytes.
    fn offset(&self, cursor: &str) -> u64 {
        ledger::offset(cursor)
    }

    /// Token use in `bytes`, which begin at [`Adapter::offset`] of `cursor` (empty at first).
    /// `None` if it is not known: no transcript, or not one row in it that tells. A last line
    /// without its newline is left for the next reading.
    fn usage(&self, bytes: &[u8], cursor: &str) -> Option<TokenUsage>;

    /// How it works without a person, if `run` can start it.
    fn headless(&self) -> Option<&dyn Headless> {
        None
    }
}

/// Every agent we speak with, by name.
pub const ALL: &[&dyn Adapter] = &[&claude_code::ClaudeCode, &codex::Codex, &generic::Generic];

/// The adapter of this name.
pub fn find(name: &str) -> Option<&'static dyn Adapter> {
    ALL.iter().copied().find(|adapter| adapter.name() == name)
}
