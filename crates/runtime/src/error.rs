//! The errors that keep Checkrein from going on. What happens in the world is evidence, never one
//! of these.

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
    /// The policy that stays in force despite an edit of the config cannot be read or written.
    #[error("held.json, the policy that goes on until `checkrein seal`: {source}")]
    HeldConfig {
        /// Why.
        source: std::io::Error,
    },
    /// The tree cannot be read.
    #[error("the tree cannot be read: {0}")]
    Tree(#[source] checkrein_verifiers::tree::TreeReaderError),
    /// A person answers a question that is closed.
    #[error("{approval} cannot be answered any more: it is {stands}")]
    ApprovalClosed {
        /// Which.
        approval: String,
        /// Its status.
        stands: &'static str,
    },
    /// A person approves what cannot be shown to them in full.
    #[error("{approval} cannot be approved: {why}")]
    ApprovalNotShown {
        /// Which.
        approval: String,
        /// Why not.
        why: String,
    },
    /// A check that is longer than its hook cannot be handed to an owner.
    #[error("this check cannot go on without its hook: {source}")]
    Owner {
        /// Why.
        source: std::io::Error,
    },
    /// Interrupted by SIGTERM or Ctrl-C: evidence found so far is recorded, the rest is asked for
    /// again.
    #[error("interrupted while checks were running")]
    Cancelled,
    /// The answer was due before it could be found.
    #[error("the answer was due before the checks of this stop came back")]
    Deadline,
}
