//! The store as a folder with one SQLite file, shared by as many processes as like.

mod acts;
mod append;
mod approvals;
mod claims;
mod fault;
mod folder;
mod messages;
mod open;
mod patience;
mod read;
mod retain;
mod scopes;
mod tail;
mod tasks;
mod wal;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::sqlite::append::{Sync, Writer};
use crate::sqlite::patience::Patience;
use crate::sqlite::tail::SqliteTail;
use crate::{
    Act, ActCount, Appended, Approval, Census, Chain, Claim, Evidence, Forget, Kept, RawEvent,
    ReadWork, Standing, Store, StoreError, TaskRow, Work,
};

/// How a store is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How long to wait for other writers before [`StoreError::Locked`].
    pub patience: Duration,
}

impl Default for Options {
    /// Five seconds: shorter than any hook's deadline.
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(5),
        }
    }
}

/// A store in a folder. Threads take turns; processes do, too.
#[derive(Debug)]
pub struct SqliteStore {
    folder: PathBuf,
    file: PathBuf,
    writable: bool,
    patience: Patience,
    writer: Mutex<Writer>,
}

impl SqliteStore {
    /// Opens the store in `folder`, and makes both if they are not there.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`], [`StoreError::TooNew`], [`StoreError::Corrupt`],
    /// [`StoreError::Locked`] or what the operating system says.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        Self::open_with(folder, Options::default())
    }

    /// As [`SqliteStore::open`].
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub fn open_with(folder: &Path, options: Options) -> Result<Self, StoreError> {
        let patience = Patience {
            limit: options.patience,
        };
        Ok(Self::of(
            folder,
            patience,
            open::writing(folder, patience)?,
            true,
        ))
    }

    /// Opens the store in `folder` to read it, also where nothing can be written. It
    /// makes nothing (but one that an older build made is brought up to date first);
    /// everything that writes, and [`Store::claim`], answers
    /// [`StoreError::ReadOnly`].
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none, else as [`SqliteStore::open`].
    pub fn open_read_only(folder: &Path) -> Result<Self, StoreError> {
        let patience = Patience {
            limit: Options::default().patience,
        };
        Ok(Self::of(
            folder,
            patience,
            open::reading(folder, patience)?,
            false,
        ))
    }

    /// Whether there is a log of this session. It is not read.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn knows(&self, session: &SessionId) -> Result<bool, StoreError> {
        self.query(|conn| Ok(read::session(conn, session)?.is_some()))
    }

    /// Sessions with a summary row that cannot be read, which [`Store::tasks`] leaves out.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn unreadable_tasks(&self) -> Result<Vec<SessionId>, StoreError> {
        self.query(tasks::unreadable)
    }

    fn of(folder: &Path, patience: Patience, conn: Connection, writable: bool) -> Self {
        Self {
            folder: folder.to_owned(),
            file: folder.join(open::FILE),
            writable,
            patience,
            writer: Mutex::new(Writer::new(conn)),
        }
    }

    fn reader(&self) -> MutexGuard<'_, Writer> {
        // A panic inside a transaction has rolled it back: the connection is as before.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> Result<MutexGuard<'_, Writer>, StoreError> {
        self.check_writable()?;
        Ok(self.reader())
    }

    fn check_writable(&self) -> Result<(), StoreError> {
        if self.writable {
            Ok(())
        } else {
            Err(StoreError::ReadOnly {
                path: self.file.clone(),
            })
        }
    }

    fn query<T>(
        &self,
        mut query: impl FnMut(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let reader = self.reader();
        self.patience.wait(&self.file, || query(reader.conn()))
    }
}

impl Store for SqliteStore {
    fn transact(
        &self,
        session: &SessionId,
        work: &mut Work<'_>,
    ) -> Result<Option<Appended>, StoreError> {
        self.writer()?
            .transact(&self.file, self.patience, session, work)
    }

    fn read(&self, session: &SessionId, work: &mut ReadWork<'_>) -> Result<(), StoreError> {
        let reader = self.reader();
        // The first query is what takes the snapshot. Until then SQLite may say that it is busy, for
        // instance while another process recovers the log.
        let (tx, tail) = self.patience.wait(&self.file, || {
            let tx = Transaction::new_unchecked(reader.conn(), TransactionBehavior::Deferred)?;
            let tail = SqliteTail::read(reader.conn(), &self.file, session)?;
            Ok((tx, tail))
        })?;
        let answer = work(&tail);
        drop(tx);
        answer
    }

    fn events(&self, session: &SessionId, after: EventSeq) -> Result<Vec<RawEvent>, StoreError> {
        self.query(|conn| match read::session(conn, session)? {
            Some(id) => read::events(conn, id, after),
            None => Ok(Vec::new()),
        })
    }

    fn verify_chain(&self, session: &SessionId) -> Result<Chain, StoreError> {
        self.query(|conn| read::chain(conn, session))
    }

    fn acts(&self, root: &str, session: Option<&SessionId>) -> Result<ActCount, StoreError> {
        self.query(|conn| acts::count(conn, root, session))
    }

    fn count_act(&self, session: &SessionId, act: &Act) -> Result<(), StoreError> {
        self.writer()?
            .write(&self.file, self.patience, Sync::Normal, |conn| {
                acts::put(conn, session, act)
            })
    }

    fn tasks(&self, session: Option<&SessionId>, limit: usize) -> Result<Vec<TaskRow>, StoreError> {
        self.query(|conn| tasks::list(conn, session, limit))
    }

    fn approvals(&self) -> Result<Vec<Approval>, StoreError> {
        self.query(approvals::list)
    }

    fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = self.query(|conn| read::blob(conn, digest))?;
        read::checked(&self.file, digest, bytes)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        self.writer()?
            .write(&self.file, self.patience, Sync::Full, |conn| {
                append::blob(conn, bytes)
            })
    }

    fn evidence(&self, key: &Digest) -> Result<Option<Evidence>, StoreError> {
        self.query(|conn| read::evidence(conn, key))
    }

    fn put_evidence(
        &self,
        key: &Digest,
        bytes: &[u8],
        standing: Standing,
    ) -> Result<Kept, StoreError> {
        self.writer()?
            .write(&self.file, self.patience, Sync::Full, |conn| {
                append::evidence(conn, key, bytes, standing)
            })
    }

    fn put_message(&self, session: &SessionId, body: &[u8]) -> Result<(), StoreError> {
        self.writer()?
            .write(&self.file, self.patience, Sync::Normal, |conn| {
                messages::put(conn, session, body)
            })
    }

    fn messages(&self, session: &SessionId, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        self.query(|conn| messages::list(conn, session, limit))
    }

    fn claim(&self, key: &Digest) -> Result<Option<Claim>, StoreError> {
        self.check_writable()?;
        claims::take(&self.folder, key)
    }

    fn census(&self) -> Result<Census, StoreError> {
        self.query(|conn| {
            let tx = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
            retain::census(&tx)
        })
    }

    fn forget(&self, census: &Census, gone: &Forget) -> Result<bool, StoreError> {
        self.writer()?
            .write(&self.file, self.patience, Sync::Full, |conn| {
                retain::forget(conn, census, gone)
            })
    }

    fn compact(&self) -> Result<(), StoreError> {
        let writer = self.writer()?;
        self.patience
            .wait(&self.file, || retain::compact(writer.conn()))
    }
}
