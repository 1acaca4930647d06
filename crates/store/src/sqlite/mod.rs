//! The store as a folder with one SQLite file, shared by any number of processes.

mod acts;
mod approvals;
mod busy_timeout;
mod claims;
mod connection;
mod folder;
mod messages;
mod open;
mod queries;
mod retention;
mod scopes;
mod session_view;
mod sqlite_error;
mod tasks;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::sqlite::busy_timeout::BusyTimeout;
use crate::sqlite::connection::{CommitSyncMode, StoreConnection};
use crate::sqlite::session_view::SqliteSessionView;
use crate::{
    ActNumbersForRoot, AppendedEventRange, EffectClaimGuard, EvidenceBytesWithFinality,
    EvidenceFinality, EvidencePutOutcome, HashChainStatus, PruneSelection, SessionReadFn, Store,
    StoreError, StoreInventory, StoredApprovalRequest, TaskRow, ToolAct, TransactFn,
    UndecodedEvent,
};

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct SqliteStoreOptions {
    /// How long to wait for other writers before [`StoreError::Locked`].
    pub busy_timeout: Duration,
}

impl Default for SqliteStoreOptions {
    /// Five seconds, which is shorter than any hook's deadline.
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(5),
        }
    }
}

/// A store in a folder. Threads take turns on one connection, and processes take turns on the file.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    file: PathBuf,
    writable: bool,
    busy_timeout: BusyTimeout,
    connection: Mutex<StoreConnection>,
}

impl SqliteStore {
    /// Opens the store in `folder`, and makes both if they are not there.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::TooNew`], [`StoreError::Corrupt`],
    /// [`StoreError::Locked`] or what the operating system says.
    pub fn open_store_in_folder(folder: &Path) -> Result<Self, StoreError> {
        Self::open_store_with_options(folder, SqliteStoreOptions::default())
    }

    /// As [`SqliteStore::open_store_in_folder`].
    ///
    /// # Errors
    /// As [`SqliteStore::open_store_in_folder`].
    pub fn open_store_with_options(
        folder: &Path,
        options: SqliteStoreOptions,
    ) -> Result<Self, StoreError> {
        let patience = BusyTimeout {
            limit: options.busy_timeout,
        };
        Ok(Self::store_from_connection(
            folder,
            patience,
            open::open_connection_for_writing(folder, patience)?,
            true,
        ))
    }

    /// Opens the store in `folder` for reading, even where nothing can be written. It creates
    /// nothing, but a store of an older build is migrated first. Everything that writes, and
    /// [`Store::try_claim_effect`], returns [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none, else as [`SqliteStore::open_store_in_folder`].
    pub fn open_store_read_only(folder: &Path) -> Result<Self, StoreError> {
        let patience = BusyTimeout {
            limit: SqliteStoreOptions::default().busy_timeout,
        };
        Ok(Self::store_from_connection(
            folder,
            patience,
            open::open_connection_for_reading(folder, patience)?,
            false,
        ))
    }

    /// Returns whether the session has a log, without reading it.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn has_session(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.query_database_with_retry(|conn| Ok(queries::session_row_id(conn, session)?.is_some()))
    }

    /// Sessions with a summary row that cannot be read, which [`Store::newest_task_summaries`] leaves out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn sessions_with_unreadable_tasks(&self) -> Result<Vec<SessionId>, StoreError> {
        self.query_database_with_retry(tasks::sessions_with_unreadable_tasks)
    }

    fn store_from_connection(
        folder: &Path,
        patience: BusyTimeout,
        conn: Connection,
        writable: bool,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            file: folder.join(open::FILE_NAME),
            writable,
            busy_timeout: patience,
            connection: Mutex::new(StoreConnection::new(conn)),
        }
    }

    fn lock_connection(&self) -> MutexGuard<'_, StoreConnection> {
        // A panic inside a transaction rolls it back, so the connection is as before.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_writable_connection(&self) -> Result<MutexGuard<'_, StoreConnection>, StoreError> {
        self.ensure_store_writable()?;
        Ok(self.lock_connection())
    }

    fn ensure_store_writable(&self) -> Result<(), StoreError> {
        if self.writable {
            Ok(())
        } else {
            Err(StoreError::ReadOnly {
                path: self.file.clone(),
            })
        }
    }

    fn query_database_with_retry<T>(
        &self,
        mut query: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let reader = self.lock_connection();
        self.busy_timeout
            .retry_while_busy(&self.file, || query(reader.sqlite_connection()))
    }
}

impl Store for SqliteStore {
    fn transact_on_session(
        &self,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError> {
        self.lock_writable_connection()?
            .transact(&self.file, self.busy_timeout, session, work)
    }

    fn with_session_read_transaction(
        &self,
        session: &SessionId,
        work: &mut SessionReadFn<'_>,
    ) -> Result<(), StoreError> {
        let reader = self.lock_connection();
        // The first query takes the snapshot. Until then SQLite may report that it is busy, for
        // instance while another process recovers the WAL.
        let (tx, tail) = self.busy_timeout.retry_while_busy(&self.file, || {
            let tx = Transaction::new_unchecked(
                reader.sqlite_connection(),
                TransactionBehavior::Deferred,
            )?;
            let tail = SqliteSessionView::session_view_in_transaction(
                reader.sqlite_connection(),
                &self.file,
                session,
            )?;
            Ok((tx, tail))
        })?;
        // A read transaction is ended by dropping it: there is nothing to commit.
        let answer = work(&tail);
        drop(tx);
        answer
    }

    fn events_after(
        &self,
        session: &SessionId,
        after: EventSeq,
    ) -> Result<Vec<UndecodedEvent>, StoreError> {
        self.query_database_with_retry(|conn| match queries::session_row_id(conn, session)? {
            Some(id) => queries::read_events(conn, id, after),
            None => Ok(Vec::new()),
        })
    }

    fn verify_chain(&self, session: &SessionId) -> Result<HashChainStatus, StoreError> {
        self.query_database_with_retry(|conn| queries::verify_chain(conn, session))
    }

    fn act_numbers_in_root_for_session(
        &self,
        root: &str,
        session: Option<&SessionId>,
    ) -> Result<ActNumbersForRoot, StoreError> {
        self.query_database_with_retry(|conn| acts::newest_act_numbers_in_root(conn, root, session))
    }

    fn count_act_without_event(
        &self,
        session: &SessionId,
        act: &ToolAct,
    ) -> Result<(), StoreError> {
        self.lock_writable_connection()?.run_write_transaction(
            &self.file,
            self.busy_timeout,
            CommitSyncMode::Normal,
            |conn| acts::insert_tool_act(conn, session, act),
        )
    }

    fn newest_task_summaries(
        &self,
        session: Option<&SessionId>,
        limit: usize,
    ) -> Result<Vec<TaskRow>, StoreError> {
        self.query_database_with_retry(|conn| tasks::list_task_rows(conn, session, limit))
    }

    fn list_approvals(&self) -> Result<Vec<StoredApprovalRequest>, StoreError> {
        self.query_database_with_retry(approvals::list_approvals)
    }

    fn read_blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        // The content is checked after the query, so that damage is not retried as a busy database.
        let bytes =
            self.query_database_with_retry(|conn| queries::read_blob_from_store(conn, digest))?;
        queries::blob_if_digest_matches(&self.file, digest, bytes)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.lock_writable_connection()?.run_write_transaction(
            &self.file,
            self.busy_timeout,
            // Evidence and policies refer to blobs by digest, so a blob must not be lost in a power
            // cut after them.
            CommitSyncMode::Full,
            |conn| connection::insert_blob(conn, bytes),
        )
    }

    fn read_evidence(&self, key: &Digest) -> Result<Option<EvidenceBytesWithFinality>, StoreError> {
        self.query_database_with_retry(|conn| queries::read_evidence(conn, key))
    }

    fn put_evidence_under_key(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: EvidenceFinality,
    ) -> Result<EvidencePutOutcome, StoreError> {
        self.lock_writable_connection()?.run_write_transaction(
            &self.file,
            self.busy_timeout,
            CommitSyncMode::Full,
            |conn| connection::insert_evidence(conn, key, bytes, standing),
        )
    }

    fn put_conversation_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        self.lock_writable_connection()?.run_write_transaction(
            &self.file,
            self.busy_timeout,
            CommitSyncMode::Normal,
            |conn| messages::insert_conversation_message(conn, session, body),
        )
    }

    fn read_stored_conversation_messages(
        &self,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        self.query_database_with_retry(|conn| messages::list_session_messages(conn, session, limit))
    }

    fn try_claim_effect(&self, key: &Digest) -> Result<Option<EffectClaimGuard>, StoreError> {
        self.ensure_store_writable()?;
        // A claim is a lock on a file, not a row. It must outlive any transaction and end with its
        // process.
        claims::try_claim_effect(&self.folder, key)
    }

    fn store_census(&self) -> Result<StoreInventory, StoreError> {
        self.query_database_with_retry(|conn| {
            // One snapshot, so that sessions and objects of the census belong together.
            let tx = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
            retention::take_store_census(&tx)
        })
    }

    fn delete_sessions_if_unchanged(
        &self,
        census: &StoreInventory,
        gone: &PruneSelection,
    ) -> Result<bool, StoreError> {
        self.lock_writable_connection()?.run_write_transaction(
            &self.file,
            self.busy_timeout,
            CommitSyncMode::Full,
            |conn| retention::prune_selection_if_unchanged(conn, census, gone),
        )
    }

    fn vacuum_database(&self) -> Result<(), StoreError> {
        let writer = self.lock_writable_connection()?;
        self.busy_timeout.retry_while_busy(&self.file, || {
            retention::compact_database(writer.sqlite_connection())
        })
    }
}
