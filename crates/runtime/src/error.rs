//! Why we are unable to go on. What the world did is evidence, never one of these.

use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::StoreError;

use crate::config::ConfigError;

/// Checkrein itself cannot judge: the front door answers by stance.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The config has a mistake; nothing was sealed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log holds an event that cannot be read.
    #[error("session {session}: event {seq} cannot be read: {source}")]
    Log {
        /// Which session.
        session: SessionId,
        /// Which event.
        seq: EventSeq,
        /// Why.
        source: serde_json::Error,
    },
    /// The sealed policy is missing or cannot be read.
    #[error("session {session}: its sealed policy {what}; start a new session")]
    Policy {
        /// Which session.
        session: SessionId,
        /// What is wrong with it.
        what: String,
    },
    /// The policy that goes on although the config was edited cannot be read or written.
    #[error("held.json, the policy that goes on until `checkrein seal`: {source}")]
    HeldConfig {
        /// Why.
        source: std::io::Error,
    },
    /// The tree cannot be read.
    #[error("the tree cannot be read: {0}")]
    Tree(#[source] checkrein_verifiers::tree::TreeReaderError),
    /// A person answers what cannot be answered any more.
    #[error("{approval} cannot be answered any more: it is {stands}")]
    ApprovalClosed {
        /// Which.
        approval: String,
        /// Where it stands.
        stands: &'static str,
    },
    /// A person says yes to what they cannot have seen all of.
    #[error("{approval} cannot be approved: {why}")]
    ApprovalNotShown {
        /// Which.
        approval: String,
        /// Why not.
        why: String,
    },
    /// What is longer than its hook cannot be owned.
    #[error("this check cannot go on without its hook: {source}")]
    Owner {
        /// Why.
        source: std::io::Error,
    },
    /// SIGTERM or Ctrl-C: what was found is recorded, the rest is asked again.
    #[error("interrupted while checks were running")]
    Cancelled,
    /// The answer was due before it could be found.
    #[error("the answer was due before the checks of this stop came back")]
    Deadline,
}
