//! A check that is longer than its hook. The hook hands the batch to a process of its own, the owner, and
//! waits for it until the answer is due; then the owner goes on alone, and a later stop takes up what it
//! finds. The owner records evidence and decides nothing.
//!
//! Hook and owner are tied by a socket. The hook sends the batch, and `keep` when its time is over; the
//! end of the socket without that word (the person pressed Esc, the hook was killed) ends the check. The
//! owner says what began and what came back.

mod agent_process;
mod hook_side;
mod link;
mod owner_records;
mod owner_side;

use std::io;
use std::path::PathBuf;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{SessionId, UnixMillis, VerifierName};
use serde::{Deserialize, Serialize};

pub use agent_process::UniqueProcessId;
pub use link::{ReceivedLine, WorkerLink, WorkerTransport, WorkerTransportWriter};
pub(crate) use owner_records::remove_lost_worker_records;
pub use owner_records::{cancel_all_workers, cancel_session_workers};

/// Starts an owner of this id, in a session of its own and without descriptors of ours but the link.
pub type WorkerLauncher = dyn Fn(&str) -> io::Result<WorkerLink> + Send + Sync;

/// What an owner is to find out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerCheckBatch {
    /// Its own id, no other's.
    pub id: String,
    /// The tree.
    pub root: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    /// As of [`crate::TreeAndStateFolder::trusts_addresses`].
    pub addresses: bool,
    pub(crate) session: SessionId,
    /// Digest of the policy that it is judged by.
    pub(crate) policy: Digest,
    /// When the task began, if this is for one.
    pub(crate) since: Option<UnixMillis>,
    pub(crate) checks: Vec<WorkerCheck>,
    /// As of [`crate::tree_snapshots::StopTreeSnapshots`].
    #[serde(default)]
    pub(crate) longest_wait_ms: u64,
    /// Without this process nobody wants to know any more.
    pub(crate) agent: UniqueProcessId,
}

/// One of its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerCheck {
    pub(crate) verifier: VerifierName,
    /// As of [`crate::verification::VerificationRequest`].
    pub(crate) content: Digest,
    /// As of [`crate::verification::VerificationRequest`].
    pub(crate) acts: u64,
    /// As of [`crate::verification::VerificationRequest`].
    #[serde(default)]
    pub(crate) again: Option<UnixMillis>,
}
