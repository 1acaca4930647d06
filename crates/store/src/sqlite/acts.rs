//! Acts: tool calls that may have changed what checks find.

use checkrein_core::ids::SessionId;
use checkrein_core::input::{ActReach, NewestInvalidatingActNumbers};
use rusqlite::Connection;

use crate::{ActNumbersForRoot, ToolAct};

// The numbers are stored, and the query below compares with them.
fn act_reach_to_sql_integer(reach: ActReach) -> i64 {
    match reach {
        ActReach::Elsewhere => 0,
        ActReach::Outside => 1,
        ActReach::Unknown => 2,
    }
}

/// Within a transaction.
pub(crate) fn insert_tool_act(
    tx: &Connection,
    session: &SessionId,
    act: &ToolAct,
) -> rusqlite::Result<()> {
    // One row per root, session and reach is enough, because only the newest number is ever asked
    // for. The next number is one above the largest of all roots.
    tx.prepare_cached(
        "INSERT OR REPLACE INTO act VALUES
           (?1, ?2, ?3, (SELECT coalesce(max(newest), 0) + 1 FROM act))",
    )?
    .execute((
        &act.root,
        session.as_str(),
        act_reach_to_sql_integer(act.reach),
    ))?;
    Ok(())
}

pub(crate) fn newest_act_numbers_in_root(
    conn: &Connection,
    root: &str,
    session: Option<&SessionId>,
) -> rusqlite::Result<ActNumbersForRoot> {
    let own = session.map_or("", SessionId::as_str);
    // An act of unknown reach (2) concerns only its own session. The empty name belongs to acts of
    // removed sessions and matches none.
    conn.prepare_cached(
        "SELECT coalesce(max(newest), 0),
           coalesce(max(newest) FILTER (WHERE root = ?1 AND (reach < 2 OR session = ?2 AND ?2 <> '')), 0),
           coalesce(max(newest) FILTER (WHERE root = ?1 AND reach = 1), 0)
         FROM act",
    )?
    .query_row((root, own), |row| {
        Ok(ActNumbersForRoot {
            total: row.get(0)?,
            newest: NewestInvalidatingActNumbers {
                any: row.get(1)?,
                declared: row.get(2)?,
            },
        })
    })
}

/// Keeps the acts of a removed session without its name, because act numbers are never given twice.
pub(crate) fn keep_acts_of_removed_session(
    tx: &Connection,
    session: &SessionId,
) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT INTO act SELECT root, '', reach, newest FROM act WHERE session = ?1
         ON CONFLICT DO UPDATE SET newest = max(newest, excluded.newest)",
    )?
    .execute([session.as_str()])?;
    tx.prepare_cached("DELETE FROM act WHERE session = ?1")?
        .execute([session.as_str()])?;
    Ok(())
}
