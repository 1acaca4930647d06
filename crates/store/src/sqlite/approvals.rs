//! Approval rows, kept as JSON.

use checkrein_core::digest::Digest;
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, OptionalExtension as _};

use crate::StoredApprovalRequest;

fn parse_stored_approval(text: ValueRef<'_>) -> rusqlite::Result<StoredApprovalRequest> {
    serde_json::from_str(text.as_str()?)
        .map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

pub(crate) fn newest_approval_with_key(
    conn: &Connection,
    key: &Digest,
) -> rusqlite::Result<Option<StoredApprovalRequest>> {
    conn.prepare_cached("SELECT row FROM approval WHERE key = ?1 ORDER BY nth DESC LIMIT 1")?
        .query_row([key.as_bytes()], |row| {
            parse_stored_approval(row.get_ref(0)?)
        })
        .optional()
}

pub(crate) fn list_approvals(conn: &Connection) -> rusqlite::Result<Vec<StoredApprovalRequest>> {
    let mut rows: Vec<StoredApprovalRequest> = conn
        .prepare_cached("SELECT row FROM approval")?
        .query_map([], |row| parse_stored_approval(row.get_ref(0)?))?
        .collect::<rusqlite::Result<_>>()?;
    // Sorted here, since `at` is inside of the JSON. There are few rows.
    rows.sort_by_key(|row| (std::cmp::Reverse(row.at), row.key, row.nth));
    Ok(rows)
}

pub(crate) fn put_approval(tx: &Connection, row: &StoredApprovalRequest) -> rusqlite::Result<()> {
    let known = tx
        .prepare_cached("SELECT row FROM approval WHERE key = ?1 AND nth = ?2")?
        .query_row((row.key.as_bytes(), row.nth), |row| {
            parse_stored_approval(row.get_ref(0)?)
        })
        .optional()?;
    // A slower process may hold a copy from before the answer. Writing it would take the answer
    // back.
    if known.is_some_and(|known| !row.can_replace_approval(&known)) {
        return Ok(());
    }
    // The row holds strings and integers only, so serialising cannot fail.
    let text = serde_json::to_string(row).unwrap_or_default();
    tx.prepare_cached("INSERT OR REPLACE INTO approval VALUES (?1, ?2, ?3)")?
        .execute((row.key.as_bytes(), row.nth, text))?;
    Ok(())
}
