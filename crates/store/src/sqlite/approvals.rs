//! What a person was asked.

use checkrein_core::digest::Digest;
use rusqlite::types::{Type, ValueRef};
use rusqlite::{Connection, Error, OptionalExtension as _};

use crate::Approval;

fn read(text: ValueRef<'_>) -> rusqlite::Result<Approval> {
    serde_json::from_str(text.as_str()?)
        .map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

pub(crate) fn newest(conn: &Connection, key: &Digest) -> rusqlite::Result<Option<Approval>> {
    conn.prepare_cached("SELECT row FROM approval WHERE key = ?1 ORDER BY nth DESC LIMIT 1")?
        .query_row([key.as_bytes()], |row| read(row.get_ref(0)?))
        .optional()
}

pub(crate) fn list(conn: &Connection) -> rusqlite::Result<Vec<Approval>> {
    let mut rows: Vec<Approval> = conn
        .prepare_cached("SELECT row FROM approval")?
        .query_map([], |row| read(row.get_ref(0)?))?
        .collect::<rusqlite::Result<_>>()?;
    rows.sort_by_key(|row| (std::cmp::Reverse(row.at), row.key, row.nth));
    Ok(rows)
}

pub(crate) fn put(tx: &Connection, row: &Approval) -> rusqlite::Result<()> {
    let known = tx
        .prepare_cached("SELECT row FROM approval WHERE key = ?1 AND nth = ?2")?
        .query_row((row.key.as_bytes(), row.nth), |row| read(row.get_ref(0)?))
        .optional()?;
    if known.is_some_and(|known| !row.may_follow(&known)) {
        return Ok(());
    }
    // Strings and integers only: serialising cannot fail.
    let text = serde_json::to_string(row).unwrap_or_default();
    tx.prepare_cached("INSERT OR REPLACE INTO approval VALUES (?1, ?2, ?3)")?
        .execute((row.key.as_bytes(), row.nth, text))?;
    Ok(())
}
