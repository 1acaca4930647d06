//! Messages of conversations with Checkrein's own agents.

use checkrein_core::ids::SessionId;
use rusqlite::Connection;

/// Appends a message. Must run within a transaction.
pub(crate) fn insert_conversation_message(
    tx: &Connection,
    session: &SessionId,
    body: &[u8],
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO message
         SELECT ?1, coalesce(max(nth), 0) + 1, ?2 FROM message WHERE session = ?1",
    )?
    .execute((session.as_str(), body))?;
    Ok(())
}

/// Returns at most `limit` messages, oldest first.
pub(crate) fn list_session_messages(
    conn: &Connection,
    session: &SessionId,
    limit: usize,
) -> rusqlite::Result<Vec<Vec<u8>>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    conn.prepare_cached("SELECT body FROM message WHERE session = ?1 ORDER BY nth LIMIT ?2")?
        .query_map((session.as_str(), limit), |row| row.get(0))?
        .collect()
}
