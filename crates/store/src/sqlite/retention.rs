//! The store's census, and the removal of old sessions and objects.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use rusqlite::Connection;

use crate::sqlite::acts;
use crate::{PruneSelection, StoreInventory};

pub(crate) fn take_store_census(conn: &Connection) -> rusqlite::Result<StoreInventory> {
    let sessions = conn
        .prepare(
            "SELECT session.name,
               coalesce(max(event.id) - (session.id << 40), 0),
               coalesce(sum(length(event.payload) + 120), 0) + coalesce(length(session.state), 0)
               + coalesce((SELECT sum(length(body) + 30) FROM message
                           WHERE message.session = session.name), 0)
             FROM session
             LEFT JOIN event ON event.id BETWEEN session.id << 40 AND (session.id + 1 << 40) - 1
             GROUP BY session.id ORDER BY session.name",
        )?
        .query_map([], |row| {
            Ok((
                SessionId::new(row.get::<_, String>(0)?),
                EventSeq(row.get(1)?),
                row.get(2)?,
            ))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let kept = conn
        .prepare("SELECT key, length(bytes) FROM kept ORDER BY key")?
        .query_map([], |row| Ok((Digest::from_bytes(row.get(0)?), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // Free pages are not counted: they are what `compact` returns to the disk.
    let number = |pragma: &str| conn.query_row(pragma, [], |row| row.get::<_, u64>(0));
    let pages = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
    Ok(StoreInventory {
        sessions,
        objects: kept,
        bytes: pages * number("PRAGMA page_size")?,
    })
}

/// Removes the chosen sessions and objects. Must run within a transaction.
pub(crate) fn prune_selection_if_unchanged(
    tx: &Connection,
    census_then: &StoreInventory,
    gone: &PruneSelection,
) -> rusqlite::Result<bool> {
    // A session that moved on since may name evidence that nobody named before, so nothing may be
    // removed by the old census.
    if !take_store_census(tx)?
        .last_seq_of_each_session()
        .eq(census_then.last_seq_of_each_session())
    {
        return Ok(false);
    }
    for session in &gone.sessions {
        // The session's row goes last: the other statements find its id by its name.
        acts::keep_acts_of_removed_session(tx, session)?;
        let name = session.as_str();
        for rows in [
            "DELETE FROM event WHERE id BETWEEN
               (SELECT id << 40 FROM session WHERE name = ?1) AND
               (SELECT (id + 1 << 40) - 1 FROM session WHERE name = ?1)",
            "DELETE FROM effect WHERE session = (SELECT id FROM session WHERE name = ?1)",
            "DELETE FROM scope WHERE session = ?1",
            "DELETE FROM task WHERE session = (SELECT id FROM session WHERE name = ?1)",
            "DELETE FROM message WHERE session = ?1",
            // A row that is not JSON belongs to no session.
            "DELETE FROM approval WHERE json_valid(row) AND json_extract(row, '$.session') = ?1",
            "DELETE FROM session WHERE name = ?1",
        ] {
            tx.prepare_cached(rows)?.execute([name])?;
        }
    }
    for key in &gone.objects {
        tx.prepare_cached("DELETE FROM kept WHERE key = ?1")?
            .execute([key.as_bytes()])?;
    }
    Ok(true)
}

/// Rewrites the database without its free pages. Must run outside of any transaction.
pub(crate) fn compact_database(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("VACUUM")?;
    // Without this, the file keeps its length until the next checkpoint.
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
