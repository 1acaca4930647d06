//! Errors of the store. Each message names the place and the next step.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use checkrein_core::ids::{EventSeq, SessionId};

/// An error of the store. Each message names the place and the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Other processes kept it busy.
    #[error("store `{}` was still busy after {} ms; try again, or end the process that holds it", path.display(), waited.as_millis())]
    Locked {
        /// The store's file.
        path: PathBuf,
        /// How long we waited.
        waited: Duration,
    },
    /// It can be read but not written.
    #[error("store `{}` is read-only; make its folder writable, or set CHECKREIN_STATE to one that is", path.display())]
    ReadOnly {
        /// The store's file or folder.
        path: PathBuf,
    },
    /// The disk or quota is full.
    #[error("no room to write store `{}`; free some disk space, what was written before is safe", path.display())]
    Full {
        /// The store's file.
        path: PathBuf,
    },
    /// Its content is damaged.
    #[error("store `{}` is damaged: {what}; move its folder away to begin a new one", path.display())]
    Corrupt {
        /// The store's file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A newer version wrote it, and this build would misread it.
    #[error("store `{}` needs a checkrein that reads format {needs}, this one reads up to {reads}; upgrade checkrein", path.display())]
    TooNew {
        /// The store's file.
        path: PathBuf,
        /// Format that a reader must know.
        needs: u32,
        /// Newest format that this build knows.
        reads: u32,
    },
    /// There is none.
    #[error("there is no store at `{}`; it is made when the first session is recorded", path.display())]
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// An idempotency key is in the log already; nothing was written.
    #[error("session `{session}` has key `{key}` already, at {seq}; take that event's answer")]
    DuplicateKey {
        /// The session.
        session: SessionId,
        /// The key.
        key: String,
        /// The event that has it.
        seq: EventSeq,
    },
    /// The operating system, or SQLite on its behalf, said no.
    #[error("cannot {doing} `{}`; check the folder and its permissions", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What was answered.
        source: io::Error,
    },
    /// The caller's work inside a transaction failed; nothing was written.
    #[error("nothing was written, the work inside the transaction failed: {0}")]
    Work(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Wraps what went wrong in the caller's own work.
    pub fn store_error_from_caller(
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Work(error.into())
    }

    /// Converts an operating system error by what can be done about it.
    pub(crate) fn from_io_error(
        doing: &'static str,
        path: &std::path::Path,
        source: io::Error,
    ) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Io {
                doing,
                path,
                source,
            },
        }
    }
}
