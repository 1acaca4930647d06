//! Summary rows of tasks, kept as JSON.

use checkrein_core::ids::SessionId;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::TaskRow;

pub(crate) fn put_task_row(tx: &Connection, session: i64, row: &TaskRow) -> rusqlite::Result<()> {
    // The row holds strings and integers only, so serialising cannot fail.
    let text = serde_json::to_string(row).unwrap_or_default();
    tx.prepare_cached("INSERT OR REPLACE INTO task VALUES (?1, ?2, ?3, ?4)")?
        .execute((session, row.task.0, row.opened_at.0, text))?;
    Ok(())
}

/// Returns the newest rows first, of one session or of all. A damaged row is skipped and does not
/// hide the others.
pub(crate) fn list_task_rows(
    conn: &Connection,
    session: Option<&SessionId>,
    limit: usize,
) -> rusqlite::Result<Vec<TaskRow>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows: Vec<Option<TaskRow>> = match session {
        // A hook runs this query at each event. It uses the order of the primary key and sorts
        // nothing.
        Some(session) => conn
            .prepare_cached(
                "SELECT row FROM task WHERE session = (SELECT id FROM session WHERE name = ?1)
                 ORDER BY task DESC LIMIT ?2",
            )?
            .query_map((session.as_str(), limit), |row| {
                Ok(parse_task_row(row.get_ref(0)?, session.clone()))
            })?
            .collect::<rusqlite::Result<_>>()?,
        None => conn
            .prepare_cached(
                "SELECT row, session.name FROM task JOIN session ON session.id = task.session
                 ORDER BY opened_at DESC, task DESC, session.name LIMIT ?1",
            )?
            .query_map([limit], |row| {
                Ok(parse_task_row(
                    row.get_ref(0)?,
                    SessionId::new(row.get::<_, String>(1)?),
                ))
            })?
            .collect::<rusqlite::Result<_>>()?,
    };
    Ok(rows.into_iter().flatten().collect())
}

/// Returns the sessions with a summary row that cannot be parsed.
pub(crate) fn sessions_with_unreadable_tasks(
    conn: &Connection,
) -> rusqlite::Result<Vec<SessionId>> {
    let sessions: Vec<Option<SessionId>> = conn
        .prepare_cached(
            "SELECT row, session.name FROM task JOIN session ON session.id = task.session
             ORDER BY session.name",
        )?
        .query_map([], |row| {
            let session = SessionId::new(row.get::<_, String>(1)?);
            let found = parse_task_row(row.get_ref(0)?, session.clone());
            Ok(found.is_none().then_some(session))
        })?
        .collect::<rusqlite::Result<_>>()?;
    let mut sessions: Vec<SessionId> = sessions.into_iter().flatten().collect();
    sessions.dedup();
    Ok(sessions)
}

/// Parses a row. Its session is taken from its key, whatever the JSON says.
fn parse_task_row(text: ValueRef<'_>, session: SessionId) -> Option<TaskRow> {
    let task: TaskRow = serde_json::from_str(text.as_str().ok()?).ok()?;
    Some(TaskRow { session, ..task })
}
