//! Runs checks that are longer than their hook. The hook hands the batch to a process of its own,
//! the owner, and waits for it until the answer is due; then the owner goes on alone, and a later
//! stop takes up what it finds. The owner records evidence and decides nothing.
//!
//! Hook and owner are connected by a socket. The hook sends the batch, and `keep` when its time is
//! over; if the socket ends without that word (the person pressed Esc, the hook was killed), the
//! check ends. The owner reports what began and what came back.

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
pub use link::{HookWorkerLinkEnd, WorkerLinkReadOutcome, WorkerTransport, WorkerTransportWriter};
pub(crate) use owner_records::remove_lost_worker_records;
pub use owner_records::{cancel_all_workers, cancel_session_workers};

/// Starts an owner with this id, in a session of its own, which inherits no descriptor except the
/// link.
pub type WorkerLauncherFn = dyn Fn(&str) -> io::Result<HookWorkerLinkEnd> + Send + Sync;

/// The checks that an owner is to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerCheckBatch {
    /// Its own id, which no other batch has.
    pub id: String,
    /// The tree.
    pub root: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    /// As of [`crate::TreeAndStateFolder::trusts_addresses`].
    pub addresses: bool,
    pub(crate) session: SessionId,
    /// The digest of the session's policy.
    pub(crate) policy: Digest,
    /// When the task began, if this is for one.
    pub(crate) since: Option<UnixMillis>,
    pub(crate) checks: Vec<WorkerCheck>,
    /// As of [`crate::tree_snapshots::StopTreeSnapshots`].
    #[serde(default)]
    pub(crate) longest_wait_ms: u64,
    /// The agent's process. When it ends, nobody needs the result.
    pub(crate) agent: UniqueProcessId,
}

/// One of its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerCheck {
    pub(crate) verifier: VerifierName,
    /// As of [`crate::verification::VerifierRunRequest`].
    pub(crate) content: Digest,
    /// As of [`crate::verification::VerifierRunRequest`].
    pub(crate) acts: u64,
    /// As of [`crate::verification::VerifierRunRequest`].
    #[serde(default)]
    pub(crate) again: Option<UnixMillis>,
}
