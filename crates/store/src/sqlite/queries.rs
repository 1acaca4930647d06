//! Read-only queries.

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId, VerifierName};
use rusqlite::{Connection, OptionalExtension as _};

use crate::chain::{HashChainRowContent, HashChainStatus, HashChainWalk};
use crate::{
    CachedSessionState, EvidenceBytesWithFinality, EvidenceFinality, StoreError,
    StoredCheckRequest, UndecodedEvent,
};

/// Bits of an event's row id that hold its position. The others hold its session.
const SEQ_BITS: u32 = 40;

/// Returns the row id of a session's event. Session and position in one integer key keep a log's
/// rows together and in order.
pub(crate) fn event_row_id(session: i64, seq: EventSeq) -> i64 {
    // 2^40 events would take 100 TB, so the position never overflows into the session.
    session << SEQ_BITS | i64::try_from(seq.0).unwrap_or(i64::MAX) & ((1 << SEQ_BITS) - 1)
}

/// Returns the position in a row id.
fn seq_from_row_id(place: i64) -> EventSeq {
    EventSeq((place & ((1 << SEQ_BITS) - 1)).unsigned_abs())
}

/// The row id of a session that has events.
pub(crate) fn session_row_id(conn: &Connection, name: &SessionId) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM session WHERE name = ?1")?
        .query_row([name.as_str()], |row| row.get(0))
        .optional()
}

/// The newest event and state cache of a session.
pub(crate) struct StoredSessionHead {
    /// Its row id.
    pub(crate) id: i64,
    /// The place of its newest event.
    pub(crate) last: EventSeq,
    /// Its link.
    pub(crate) head: Digest,
    /// The newest state cache.
    pub(crate) cache: Option<(EventSeq, CachedSessionState)>,
}

/// Reads the head of a session that has events. It is one statement, because a hook prepares each
/// statement anew.
pub(crate) fn read_session_head(
    conn: &Connection,
    name: &SessionId,
) -> rusqlite::Result<Option<StoredSessionHead>> {
    conn.prepare_cached(
        "SELECT session.id, event.id, chain, cached, core_version, policy, state FROM session
         JOIN event ON event.id BETWEEN session.id << 40 AND (session.id + 1 << 40) - 1
         WHERE name = ?1 ORDER BY event.id DESC LIMIT 1",
    )?
    .query_row([name.as_str()], |row| {
        let cache = match row.get(3)? {
            Some(at) => Some((
                EventSeq(at),
                CachedSessionState {
                    core_version: row.get(4)?,
                    policy: Digest::from_bytes(row.get(5)?),
                    bytes: row.get(6)?,
                },
            )),
            None => None,
        };
        Ok(StoredSessionHead {
            id: row.get(0)?,
            last: seq_from_row_id(row.get(1)?),
            head: Digest::from_bytes(row.get(2)?),
            cache,
        })
    })
    .optional()
}

pub(crate) fn read_events(
    conn: &Connection,
    id: i64,
    after: EventSeq,
) -> rusqlite::Result<Vec<UndecodedEvent>> {
    conn.prepare_cached(
        "SELECT id, kind, payload FROM event WHERE id > ?1 AND id < ?2 ORDER BY id",
    )?
    .query_map(
        (event_row_id(id, after), event_row_id(id + 1, EventSeq(0))),
        |row| {
            Ok(UndecodedEvent {
                seq: seq_from_row_id(row.get(0)?),
                kind: row.get(1)?,
                payload: row.get(2)?,
            })
        },
    )?
    .collect()
}

pub(crate) fn find_seq_by_idempotency_key(
    conn: &Connection,
    id: i64,
    key: &str,
) -> rusqlite::Result<Option<EventSeq>> {
    // The expression `id >> 40` is that of the unique index `event_key`, or SQLite would not use
    // it.
    conn.prepare_cached("SELECT id FROM event WHERE key = ?2 AND id >> 40 = ?1")?
        .query_row((id, key), |row| row.get(0).map(seq_from_row_id))
        .optional()
}

pub(crate) fn pending_effects(
    conn: &Connection,
    id: i64,
) -> rusqlite::Result<Vec<StoredCheckRequest>> {
    conn.prepare_cached(
        "SELECT stop, key, verifier FROM effect WHERE session = ?1 ORDER BY stop, key",
    )?
    .query_map([id], |row| {
        Ok(StoredCheckRequest {
            stop: EventSeq(row.get(0)?),
            key: Digest::from_bytes(row.get(1)?),
            verifier: VerifierName::new(row.get::<_, String>(2)?),
        })
    })?
    .collect()
}

pub(crate) fn read_evidence(
    conn: &Connection,
    key: &Digest,
) -> rusqlite::Result<Option<EvidenceBytesWithFinality>> {
    conn.prepare_cached("SELECT final, bytes FROM kept WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            let standing = if row.get(0)? {
                EvidenceFinality::Final
            } else {
                EvidenceFinality::Inconclusive
            };
            Ok(EvidenceBytesWithFinality {
                finality: standing,
                bytes: row.get(1)?,
            })
        })
        .optional()
}

pub(crate) fn read_blob_from_store(
    conn: &Connection,
    digest: &Digest,
) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.prepare_cached("SELECT bytes FROM kept WHERE key = ?1")?
        .query_row([digest.as_bytes()], |row| row.get(0))
        .optional()
}

/// Returns the blob if its content has this digest.
pub(crate) fn blob_if_digest_matches(
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

pub(crate) fn verify_chain(
    conn: &Connection,
    name: &SessionId,
) -> rusqlite::Result<HashChainStatus> {
    let mut walk = HashChainWalk::new(name);
    let mut query = conn.prepare_cached(
        "SELECT id, kind, payload, key, chain FROM event WHERE id >= ?1 AND id < ?2 ORDER BY id",
    )?;
    // An unknown session has an empty chain, which is whole.
    let Some(id) = session_row_id(conn, name)? else {
        return Ok(walk.into_hash_chain_status());
    };
    let mut rows = query.query((
        event_row_id(id, EventSeq(0)),
        event_row_id(id + 1, EventSeq(0)),
    ))?;
    while let Some(row) = rows.next()? {
        // A column of another type is damage like any other.
        if !verify_chain_row(row, &mut walk).unwrap_or(false) {
            walk.mark_chain_broken();
            break;
        }
    }
    Ok(walk.into_hash_chain_status())
}

/// Verifies the next row of a chain. Returns false if it is not what was appended.
fn verify_chain_row(row: &rusqlite::Row<'_>, walk: &mut HashChainWalk) -> rusqlite::Result<bool> {
    let (kind, key): (String, Option<String>) = (row.get(1)?, row.get(3)?);
    let row_of = HashChainRowContent {
        seq: seq_from_row_id(row.get(0)?),
        kind: &kind,
        payload: row.get_ref(2)?.as_blob()?,
        key: key.as_deref(),
    };
    Ok(walk.verify_next_hash_chain_row(&row_of, row.get_ref(4)?.as_blob()?))
}
