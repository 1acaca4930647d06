//! Queries that change nothing.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId, VerifierName};
use rusqlite::{Connection, OptionalExtension as _};

use crate::chain::{Chain, Row, Walk};
use crate::{EffectRow, Evidence, RawEvent, Standing, StateCache, StoreError};

/// Bits of an event's row id that say its place; the rest say its session.
const SEQ_BITS: u32 = 40;

/// The row id of a session's event.
pub(crate) fn place(session: i64, seq: EventSeq) -> i64 {
    // A log of 2^40 events would be 100 TB.
    session << SEQ_BITS | i64::try_from(seq.0).unwrap_or(i64::MAX) & ((1 << SEQ_BITS) - 1)
}

/// The place that a row id says.
fn seq(place: i64) -> EventSeq {
    EventSeq((place & ((1 << SEQ_BITS) - 1)).unsigned_abs())
}

/// The row id of a session that has events.
pub(crate) fn session(conn: &Connection, name: &SessionId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM session WHERE name = ?1")?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()
}

/// Where a session stands.
pub(crate) struct Stand {
    /// Its row id.
    pub(crate) id: i64,
    /// The place of its newest event.
    pub(crate) last: EventSeq,
    /// Its link.
    pub(crate) head: Digest,
    /// The newest state cache.
    pub(crate) cache: Option<(EventSeq, StateCache)>,
}

/// Where a session with events stands: one statement, since a hook prepares each one anew.
pub(crate) fn stand(conn: &Connection, name: &SessionId) -> rusqlite::Result<Option<Stand>> {
    conn.prepare_cached(
        "SELECT session.id, event.id, chain, cached, core_version, policy, state FROM session
         JOIN event ON event.id BETWEEN session.id << 40 AND (session.id + 1 << 40) - 1
         WHERE name = ?1 ORDER BY event.id DESC LIMIT 1",
    )?
    .query_row([name.as_str()], |row| {
        let cache = match row.get(3)? {
            Some(at) => Some((
                EventSeq(at),
                StateCache {
                    core_version: row.get(4)?,
                    policy: Digest::from_bytes(row.get(5)?),
                    bytes: row.get(6)?,
                },
            )),
            None => None,
        };
        Ok(Stand {
            id: row.get(0)?,
            last: seq(row.get(1)?),
            head: Digest::from_bytes(row.get(2)?),
            cache,
        })
    })
    .optional()
}

pub(crate) fn events(
    conn: &Connection,
    id: i64,
    after: EventSeq,
) -> rusqlite::Result<Vec<RawEvent>> {
    conn.prepare_cached(
        "SELECT id, kind, payload FROM event WHERE id > ?1 AND id < ?2 ORDER BY id",
    )?
    .query_map((place(id, after), place(id + 1, EventSeq(0))), |row| {
        Ok(RawEvent {
            seq: seq(row.get(0)?),
            kind: row.get(1)?,
            payload: row.get(2)?,
        })
    })?
    .collect()
}

pub(crate) fn find_key(
    conn: &Connection,
    id: i64,
    key: &str,
) -> rusqlite::Result<Option<EventSeq>> {
    conn.prepare_cached("SELECT id FROM event WHERE key = ?2 AND id >> 40 = ?1")?
        .query_row((id, key), |row| row.get(0).map(seq))
        .optional()
}

pub(crate) fn pending(conn: &Connection, id: i64) -> rusqlite::Result<Vec<EffectRow>> {
    conn.prepare_cached(
        "SELECT stop, key, verifier FROM effect WHERE session = ?1 ORDER BY stop, key",
    )?
    .query_map([id], |row| {
        Ok(EffectRow {
            stop: EventSeq(row.get(0)?),
            key: Digest::from_bytes(row.get(1)?),
            verifier: VerifierName::new(row.get::<_, String>(2)?),
        })
    })?
    .collect()
}

pub(crate) fn evidence(conn: &Connection, key: &Digest) -> rusqlite::Result<Option<Evidence>> {
    conn.prepare_cached("SELECT final, bytes FROM kept WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            let standing = if row.get(0)? {
                Standing::Final
            } else {
                Standing::Inconclusive
            };
            Ok(Evidence {
                standing,
                bytes: row.get(1)?,
            })
        })
        .optional()
}

pub(crate) fn blob(conn: &Connection, digest: &Digest) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT bytes FROM kept WHERE key = ?1")?
        .query_row([digest.as_bytes()], |row| row.get(0))
        .optional()
}

/// A blob, if it is what its digest says.
pub(crate) fn checked(
    file: &Path,
    digest: &Digest,
    bytes: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, StoreError> {
    match bytes {
        Some(bytes) if Digest::hash_bytes(&bytes) != *digest => Err(StoreError::Corrupt {
            path: file.to_owned(),
            what: format!("blob {digest} has other content"),
        }),
        bytes => Ok(bytes),
    }
}

pub(crate) fn chain(conn: &Connection, name: &SessionId) -> rusqlite::Result<Chain> {
    let mut walk = Walk::begin(name);
    let mut query = conn.prepare_cached(
        "SELECT id, kind, payload, key, chain FROM event WHERE id >= ?1 AND id < ?2 ORDER BY id",
    )?;
    let Some(id) = session(conn, name)? else {
        return Ok(walk.end());
    };
    let mut rows = query.query((place(id, EventSeq(0)), place(id + 1, EventSeq(0))))?;
    while let Some(row) = rows.next()? {
        // A column that holds something else is damage like any other.
        if !link_of(row, &mut walk).unwrap_or(false) {
            walk.stop();
            break;
        }
    }
    Ok(walk.end())
}

/// Takes the next row of a chain; false if it is not what was appended.
fn link_of(row: &rusqlite::Row<'_>, walk: &mut Walk) -> rusqlite::Result<bool> {
    let (kind, key): (String, Option<String>) = (row.get(1)?, row.get(3)?);
    let row_of = Row {
        seq: seq(row.get(0)?),
        kind: &kind,
        payload: row.get_ref(2)?.as_blob()?,
        key: key.as_deref(),
    };
    Ok(walk.step(&row_of, row.get_ref(4)?.as_blob()?))
}
