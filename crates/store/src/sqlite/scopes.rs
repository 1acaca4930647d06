//! Rows of scopes: the main conversation and sub-agents.

use checkrein_core::ids::{ScopeId, SessionId, TaskId};
use rusqlite::{Connection, OptionalExtension as _};

use crate::ScopeRow;

/// Stores a scope's row, replacing the old one. Must run within a transaction.
pub(crate) fn put_scope_row(
    tx: &Connection,
    session: &SessionId,
    row: &ScopeRow,
) -> rusqlite::Result<()> {
    tx.prepare_cached("INSERT OR REPLACE INTO scope VALUES (?1, ?2, ?3, ?4)")?
        .execute((
            session.as_str(),
            row.scope.as_str(),
            &row.cursor,
            row.halted_in.map(|task| task.0),
        ))?;
    Ok(())
}

pub(crate) fn find_scope_row(
    conn: &Connection,
    session: &SessionId,
    scope: &ScopeId,
) -> rusqlite::Result<Option<ScopeRow>> {
    conn.prepare_cached("SELECT cursor, halted_in FROM scope WHERE session = ?1 AND name = ?2")?
        .query_row((session.as_str(), scope.as_str()), |row| {
            Ok(ScopeRow {
                scope: scope.clone(),
                cursor: row.get(0)?,
                halted_in: row.get::<_, Option<u32>>(1)?.map(TaskId),
            })
        })
        .optional()
}
