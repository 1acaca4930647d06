//! Summary rows, one per task.

use checkrein_core::ids::SessionId;
use rusqlite::types::Type;
use rusqlite::{Connection, Error};

use crate::TaskRow;

pub(crate) fn put(tx: &Connection, session: i64, row: &TaskRow) -> rusqlite::Result<()> {
    // Strings and integers only: serialising cannot fail.
    let text = serde_json::to_string(row).unwrap_or_default();
    tx.prepare_cached("INSERT OR REPLACE INTO task VALUES (?1, ?2, ?3, ?4)")?
        .execute((session, row.task.0, row.opened_at.0, text))?;
    Ok(())
}

pub(crate) fn list(
    conn: &Connection,
    session: Option<&SessionId>,
    limit: usize,
) -> rusqlite::Result<Vec<TaskRow>> {
    conn.prepare_cached(
        "SELECT row, session.name FROM task JOIN session ON session.id = task.session
         WHERE ?1 IS NULL OR session.name = ?1
         ORDER BY opened_at DESC, task DESC, session.name LIMIT ?2",
    )?
    .query_map(
        (
            session.map(SessionId::as_str),
            i64::try_from(limit).unwrap_or(i64::MAX),
        ),
        |row| {
            let mut task: TaskRow = serde_json::from_str(row.get_ref(0)?.as_str()?)
                .map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))?;
            // Whatever the row says, it is its session's.
            task.session = SessionId::new(row.get::<_, String>(1)?);
            Ok(task)
        },
    )?
    .collect()
}
