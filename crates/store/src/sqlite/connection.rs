//! The writing side of the SQLite store: one short transaction at a time.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::chain::{self, HashChainRowContent};
use crate::sqlite::busy_timeout::BusyTimeout;
use crate::sqlite::session_view::SqliteSessionView;
use crate::sqlite::{acts, approvals, queries, scopes, sqlite_error, tasks, wal};
use crate::{
    AppendBatch, AppendedEventRange, EvidenceFinality, EvidencePutOutcome, StoreError, TransactFn,
};

/// Whether a commit waits until the disk has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitSyncMode {
    /// It survives the death of processes.
    Normal,
    /// It survives a power cut, together with everything committed before it.
    Full,
}

/// The connection and the sync mode of its next commit. `None` if the mode is not known yet.
#[derive(Debug)]
pub(crate) struct StoreConnection {
    conn: Connection,
    sync: Option<CommitSyncMode>,
}

impl StoreConnection {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { conn, sync: None }
    }

    pub(crate) fn sqlite_connection(&self) -> &Connection {
        &self.conn
    }

    /// Sets the `synchronous` pragma. SQLite refuses this inside a transaction, so it must be set
    /// before one begins.
    fn set_commit_sync_mode(
        &mut self,
        file: &Path,
        sync: CommitSyncMode,
    ) -> Result<(), StoreError> {
        if self.sync != Some(sync) {
            let word = match sync {
                CommitSyncMode::Normal => "NORMAL",
                CommitSyncMode::Full => "FULL",
            };
            self.conn
                .pragma_update(None, "synchronous", word)
                .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
            self.sync = Some(sync);
        }
        Ok(())
    }

    /// Runs `change` in a transaction of its own.
    pub(crate) fn run_write_transaction<T>(
        &mut self,
        file: &Path,
        patience: BusyTimeout,
        sync: CommitSyncMode,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.set_commit_sync_mode(file, sync)?;
        let tx = begin_immediate_transaction(&self.conn, file, patience)?;
        let answer =
            change(&tx).map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
        tx.commit()
            .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
        wal::checkpoint_wal_if_long(&self.conn, file);
        Ok(answer)
    }

    /// See [`crate::Store::transact_on_session`].
    pub(crate) fn transact(
        &mut self,
        file: &Path,
        patience: BusyTimeout,
        session: &SessionId,
        work: &mut TransactFn<'_>,
    ) -> Result<Option<AppendedEventRange>, StoreError> {
        // Only `work` knows whether the commit must be synced, and the mode cannot be changed once
        // the transaction has begun. So it begins unsynced, as most batches need it, and starts
        // again if necessary. If nobody wrote in between, the decision still stands.
        self.set_commit_sync_mode(file, CommitSyncMode::Normal)?;
        let mut decided = None;
        loop {
            let tx = begin_immediate_transaction(&self.conn, file, patience)?;
            let tail = SqliteSessionView::session_view_in_transaction(&tx, file, session)
                .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
            let batch = match decided.take() {
                // The log has not grown since `work` decided, so its batch is still valid.
                Some((last, batch)) if last == tail.last => batch,
                Some(_) | None => match work(&tail)? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            if batch.durable && self.sync != Some(CommitSyncMode::Full) {
                decided = Some((tail.last, batch));
                // Dropping the transaction rolls it back. The pragma below fails inside of one.
                drop(tx);
                self.set_commit_sync_mode(file, CommitSyncMode::Full)?;
                continue;
            }
            let appended = append_batch(&tx, file, session, &tail, batch)?;
            tx.commit()
                .map_err(|error| sqlite_error::sqlite_to_store_error(file, error))?;
            wal::checkpoint_wal_if_long(&self.conn, file);
            return Ok(Some(appended));
        }
    }
}

fn begin_immediate_transaction<'a>(
    conn: &'a Connection,
    file: &Path,
    patience: BusyTimeout,
) -> Result<Transaction<'a>, StoreError> {
    // `IMMEDIATE` takes the write lock at once. A deferred transaction would take it at its first
    // write, and fail there if another process had written since its read.
    patience.retry_while_busy(file, || {
        Transaction::new_unchecked(conn, TransactionBehavior::Immediate)
    })
}

fn append_batch(
    tx: &Connection,
    file: &Path,
    session: &SessionId,
    tail: &SqliteSessionView<'_>,
    batch: AppendBatch,
) -> Result<AppendedEventRange, StoreError> {
    let failed = |error| sqlite_error::sqlite_to_store_error(file, error);
    // The session's row is made with its first batch, even if that has no events.
    let id = match tail.id {
        Some(id) => id,
        None => tx
            .prepare_cached("INSERT INTO session (name) VALUES (?1)")
            .and_then(|mut insert| insert.insert([session.as_str()]))
            .map_err(failed)?,
    };

    let mut last = tail.last;
    let mut head = tail.head;
    for event in &batch.events {
        last = last.successor_seq();
        let key = event.key.as_deref();
        let row = HashChainRowContent {
            seq: last,
            kind: event.kind,
            payload: &event.payload,
            key,
        };
        head = chain::next_hash_chain_link(&head, &row);
        let inserted = tx
            .prepare_cached(
                "INSERT INTO event (id, kind, payload, chain, key) VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .map_err(failed)?
            .execute((
                queries::event_row_id(id, last),
                event.kind,
                &event.payload,
                head.as_bytes(),
                key,
            ));
        // The unique index finds a repeated key. A query before each insert would cost every hook
        // one more statement.
        if let Err(error) = inserted {
            return Err(duplicate_event_key_error(tx, file, session, id, key)
                .unwrap_or_else(|| failed(error)));
        }
    }

    write_batch_rows(tx, session, id, last.0, &batch).map_err(failed)?;
    Ok(AppendedEventRange {
        after: tail.last,
        last,
        head,
    })
}

/// Returns the error of an insert whose key was taken, or `None` if the insert failed for another
/// reason.
fn duplicate_event_key_error(
    tx: &Connection,
    file: &Path,
    session: &SessionId,
    id: i64,
    key: Option<&str>,
) -> Option<StoreError> {
    let key = key?;
    match queries::find_seq_by_idempotency_key(tx, id, key) {
        Ok(Some(seq)) => Some(StoreError::DuplicateKey {
            session: session.clone(),
            key: key.to_owned(),
            seq,
        }),
        Ok(None) => None,
        Err(error) => Some(sqlite_error::sqlite_to_store_error(file, error)),
    }
}

fn write_batch_rows(
    tx: &Connection,
    session: &SessionId,
    id: i64,
    last: u64,
    batch: &AppendBatch,
) -> rusqlite::Result<()> {
    // Settled effects go first, so that an effect in both lists is requested again.
    for key in &batch.settled {
        tx.prepare_cached("DELETE FROM effect WHERE session = ?1 AND key = ?2")?
            .execute((id, key.as_bytes()))?;
    }
    for effect in &batch.effects {
        tx.prepare_cached(
            "INSERT INTO effect (session, stop, key, verifier) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute((
            id,
            effect.stop.0,
            effect.key.as_bytes(),
            effect.verifier.as_str(),
        ))?;
    }
    for bytes in &batch.blobs {
        insert_blob(tx, bytes)?;
    }
    if let Some(cache) = &batch.cache {
        tx.prepare_cached(
            "UPDATE session SET cached = ?2, core_version = ?3, policy = ?4, state = ?5
             WHERE id = ?1",
        )?
        .execute((
            id,
            last,
            cache.core_version,
            cache.policy.as_bytes(),
            &cache.bytes,
        ))?;
    }
    for row in &batch.approvals {
        approvals::put_approval(tx, row)?;
    }
    for row in &batch.scopes {
        scopes::put_scope_row(tx, session, row)?;
    }
    for row in &batch.tasks {
        tasks::put_task_row(tx, id, row)?;
    }
    if let Some(act) = &batch.act {
        acts::insert_tool_act(tx, session, act)?;
    }
    Ok(())
}

pub(crate) fn insert_blob(tx: &Connection, bytes: &[u8]) -> rusqlite::Result<Digest> {
    let digest = Digest::hash_bytes(bytes);
    tx.prepare_cached("INSERT INTO kept VALUES (?1, 1, ?2) ON CONFLICT DO NOTHING")?
        .execute((digest.as_bytes(), bytes))?;
    Ok(digest)
}

pub(crate) fn insert_evidence(
    tx: &Connection,
    key: &Digest,
    bytes: &[u8],
    standing: EvidenceFinality,
) -> rusqlite::Result<EvidencePutOutcome> {
    // The condition in the statement makes this atomic across processes: final evidence is never
    // replaced.
    let changed = tx
        .prepare_cached(
            "INSERT INTO kept (key, final, bytes) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET final = excluded.final, bytes = excluded.bytes
             WHERE final = 0",
        )?
        .execute((key.as_bytes(), standing == EvidenceFinality::Final, bytes))?;
    Ok(if changed == 0 {
        EvidencePutOutcome::KeptEarlier
    } else {
        EvidencePutOutcome::Stored
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use checkrein_core::ids::EventSeq;

    use super::*;
    use crate::NewEvent;
    use crate::sqlite::open;

    fn saw(seen: EventSeq, durable: bool) -> Option<AppendBatch> {
        let payload = seen.0.to_string().into_bytes();
        let events = vec![NewEvent {
            kind: "saw",
            payload,
            key: None,
        }];
        Some(AppendBatch {
            events,
            durable,
            ..AppendBatch::default()
        })
    }

    /// Between finding out that the disk must be waited for and beginning once more, others
    /// may write: then the decision is made anew, on what they wrote. SQLite calls the
    /// rollback hook at exactly that moment.
    #[test]
    fn a_synced_batch_is_decided_anew_if_somebody_came_between() {
        let dir = tempfile::tempdir().unwrap();
        let (file, session) = (dir.path().join(open::FILE_NAME), SessionId::from("s"));
        let patience = BusyTimeout {
            limit: Duration::from_secs(5),
        };
        let writer = || {
            StoreConnection::new(open::open_connection_for_writing(dir.path(), patience).unwrap())
        };
        let other = Arc::new(Mutex::new(writer()));
        let (of_other, in_other) = (session.clone(), file.clone());
        let mut writer = writer();
        writer
            .conn
            .rollback_hook(Some(move || {
                let mut other = other.lock().unwrap();
                let mut work =
                    |tail: &dyn crate::SessionTransactionView| Ok(saw(tail.last_seq(), false));
                other
                    .transact(&in_other, patience, &of_other, &mut work)
                    .unwrap();
            }))
            .unwrap();

        let mut seen = Vec::new();
        let mut work = |tail: &dyn crate::SessionTransactionView| {
            seen.push(tail.last_seq());
            Ok(saw(tail.last_seq(), true))
        };
        let appended = writer
            .transact(&file, patience, &session, &mut work)
            .unwrap()
            .unwrap();
        assert_eq!(seen, [EventSeq(0), EventSeq(1)]);
        assert_eq!((appended.after, appended.last), (EventSeq(1), EventSeq(2)));
        let payloads = queries::read_events(writer.sqlite_connection(), 1, EventSeq(0))
            .unwrap()
            .into_iter();
        assert_eq!(
            payloads.map(|event| event.payload).collect::<Vec<_>>(),
            [b"0", b"1"]
        );
    }
}
