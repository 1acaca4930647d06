//! Everything that writes, one short transaction at a time.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::chain::{self, Row};
use crate::sqlite::patience::Patience;
use crate::sqlite::tail::SqliteTail;
use crate::sqlite::{acts, approvals, fault, read, scopes, tasks, wal};
use crate::{Appended, Batch, Kept, Standing, StoreError, Work};

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// It survives processes.
    Normal,
    /// It survives a power cut, with all that was committed before it.
    Full,
}

/// The connection, and how its next commit will be synced.
#[derive(Debug)]
pub(crate) struct Writer {
    conn: Connection,
    sync: Option<Sync>,
}

impl Writer {
    pub(crate) fn new(conn: Connection) -> Self {
        Self { conn, sync: None }
    }

    pub(crate) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// SQLite cannot change this within a transaction.
    fn set_sync(&mut self, file: &Path, sync: Sync) -> Result<(), StoreError> {
        if self.sync != Some(sync) {
            let word = match sync {
                Sync::Normal => "NORMAL",
                Sync::Full => "FULL",
            };
            self.conn
                .pragma_update(None, "synchronous", word)
                .map_err(|error| fault::of(file, error))?;
            self.sync = Some(sync);
        }
        Ok(())
    }

    /// Runs `change` in a transaction of its own.
    pub(crate) fn write<T>(
        &mut self,
        file: &Path,
        patience: Patience,
        sync: Sync,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.set_sync(file, sync)?;
        let tx = begin(&self.conn, file, patience)?;
        let answer = change(&tx).map_err(|error| fault::of(file, error))?;
        tx.commit().map_err(|error| fault::of(file, error))?;
        wal::bound(&self.conn, file);
        Ok(answer)
    }

    /// See [`crate::Store::transact`].
    pub(crate) fn transact(
        &mut self,
        file: &Path,
        patience: Patience,
        session: &SessionId,
        work: &mut Work<'_>,
    ) -> Result<Option<Appended>, StoreError> {
        // Only `work` knows whether the disk must be waited for, and by then the
        // transaction has begun. So begin without, as most batches want it, and begin
        // once more if need be; if nobody was quicker the decision still stands.
        self.set_sync(file, Sync::Normal)?;
        let mut decided = None;
        loop {
            let tx = begin(&self.conn, file, patience)?;
            let tail =
                SqliteTail::read(&tx, file, session).map_err(|error| fault::of(file, error))?;
            let batch = match decided.take() {
                Some((last, batch)) if last == tail.last => batch,
                Some(_) | None => match work(&tail)? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            if batch.durable && self.sync != Some(Sync::Full) {
                decided = Some((tail.last, batch));
                drop(tx);
                self.set_sync(file, Sync::Full)?;
                continue;
            }
            let appended = append(&tx, file, session, &tail, batch)?;
            tx.commit().map_err(|error| fault::of(file, error))?;
            wal::bound(&self.conn, file);
            return Ok(Some(appended));
        }
    }
}

fn begin<'a>(
    conn: &'a Connection,
    file: &Path,
    patience: Patience,
) -> Result<Transaction<'a>, StoreError> {
    patience.wait(file, || {
        Transaction::new_unchecked(conn, TransactionBehavior::Immediate)
    })
}

fn append(
    tx: &Connection,
    file: &Path,
    session: &SessionId,
    tail: &SqliteTail<'_>,
    batch: Batch,
) -> Result<Appended, StoreError> {
    let failed = |error| fault::of(file, error);
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
        last = last.next_seq();
        let key = event.key.as_deref();
        let row = Row {
            seq: last,
            kind: event.kind,
            payload: &event.payload,
            key,
        };
        head = chain::link(&head, &row);
        let inserted = tx
            .prepare_cached(
                "INSERT INTO event (id, kind, payload, chain, key) VALUES (?1, ?2, ?3, ?4, ?5)",
            )
            .map_err(failed)?
            .execute((
                read::place(id, last),
                event.kind,
                &event.payload,
                head.as_bytes(),
                key,
            ));
        if let Err(error) = inserted {
            return Err(duplicate(tx, file, session, id, key).unwrap_or_else(|| failed(error)));
        }
    }

    rows_beside(tx, session, id, last.0, &batch).map_err(failed)?;
    Ok(Appended {
        after: tail.last,
        last,
        head,
    })
}

/// The error of an insert that found its key taken.
fn duplicate(
    tx: &Connection,
    file: &Path,
    session: &SessionId,
    id: i64,
    key: Option<&str>,
) -> Option<StoreError> {
    let key = key?;
    match read::find_key(tx, id, key) {
        Ok(Some(seq)) => Some(StoreError::DuplicateKey {
            session: session.clone(),
            key: key.to_owned(),
            seq,
        }),
        Ok(None) => None,
        Err(error) => Some(fault::of(file, error)),
    }
}

fn rows_beside(
    tx: &Connection,
    session: &SessionId,
    id: i64,
    last: u64,
    batch: &Batch,
) -> rusqlite::Result<()> {
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
        blob(tx, bytes)?;
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
        approvals::put(tx, row)?;
    }
    for row in &batch.scopes {
        scopes::put(tx, session, row)?;
    }
    for row in &batch.tasks {
        tasks::put(tx, id, row)?;
    }
    if let Some(act) = &batch.act {
        acts::put(tx, session, act)?;
    }
    Ok(())
}

pub(crate) fn blob(tx: &Connection, bytes: &[u8]) -> rusqlite::Result<Digest> {
    let digest = Digest::hash_bytes(bytes);
    tx.prepare_cached("INSERT INTO kept VALUES (?1, 1, ?2) ON CONFLICT DO NOTHING")?
        .execute((digest.as_bytes(), bytes))?;
    Ok(digest)
}

pub(crate) fn evidence(
    tx: &Connection,
    key: &Digest,
    bytes: &[u8],
    standing: Standing,
) -> rusqlite::Result<Kept> {
    let changed = tx
        .prepare_cached(
            "INSERT INTO kept (key, final, bytes) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET final = excluded.final, bytes = excluded.bytes
             WHERE final = 0",
        )?
        .execute((key.as_bytes(), standing == Standing::Final, bytes))?;
    Ok(if changed == 0 {
        Kept::Earlier
    } else {
        Kept::New
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

    fn saw(seen: EventSeq, durable: bool) -> Option<Batch> {
        let payload = seen.0.to_string().into_bytes();
        let events = vec![NewEvent {
            kind: "saw",
            payload,
            key: None,
        }];
        Some(Batch {
            events,
            durable,
            ..Batch::default()
        })
    }

    /// Between finding out that the disk must be waited for and beginning once more, others
    /// may write: then the decision is made anew, on what they wrote. SQLite calls the
    /// rollback hook at exactly that moment.
    #[test]
    fn a_synced_batch_is_decided_anew_if_somebody_came_between() {
        let dir = tempfile::tempdir().unwrap();
        let (file, session) = (dir.path().join(open::FILE), SessionId::from("s"));
        let patience = Patience {
            limit: Duration::from_secs(5),
        };
        let writer = || Writer::new(open::writing(dir.path(), patience).unwrap());
        let other = Arc::new(Mutex::new(writer()));
        let (of_other, in_other) = (session.clone(), file.clone());
        let mut writer = writer();
        writer
            .conn
            .rollback_hook(Some(move || {
                let mut other = other.lock().unwrap();
                let mut work = |tail: &dyn crate::Tail| Ok(saw(tail.last(), false));
                other
                    .transact(&in_other, patience, &of_other, &mut work)
                    .unwrap();
            }))
            .unwrap();

        let mut seen = Vec::new();
        let mut work = |tail: &dyn crate::Tail| {
            seen.push(tail.last());
            Ok(saw(tail.last(), true))
        };
        let appended = writer
            .transact(&file, patience, &session, &mut work)
            .unwrap()
            .unwrap();
        assert_eq!(seen, [EventSeq(0), EventSeq(1)]);
        assert_eq!((appended.after, appended.last), (EventSeq(1), EventSeq(2)));
        let payloads = read::events(writer.conn(), 1, EventSeq(0))
            .unwrap()
            .into_iter();
        assert_eq!(
            payloads.map(|event| event.payload).collect::<Vec<_>>(),
            [b"0", b"1"]
        );
    }
}
