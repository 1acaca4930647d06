//! Summary rows, one per task.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, Millis, SessionId, TaskId};
use rusqlite::{Connection, Row, params};

use crate::TaskRow;

pub(crate) fn put(tx: &Connection, session: i64, row: &TaskRow) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO task (session, task, agent, level, opened_at, ended_at, reason,
           detail, native_reason, stops, continues, tool_calls, rounds, output_tokens, policy,
           goal, root)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?
    .execute(params![
        session,
        row.task.0,
        row.agent.as_str(),
        row.level,
        row.opened_at.0,
        row.ended_at.map(|at| at.0),
        row.reason,
        row.detail,
        row.native_reason,
        row.stops,
        row.continues,
        row.tool_calls,
        row.rounds,
        row.output_tokens,
        row.policy.as_bytes(),
        row.goal,
        row.root,
    ])?;
    Ok(())
}

pub(crate) fn list(
    conn: &Connection,
    session: Option<&SessionId>,
    limit: usize,
) -> rusqlite::Result<Vec<TaskRow>> {
    conn.prepare_cached(
        "SELECT session.name, task, agent, level, opened_at, ended_at, reason, detail,
           native_reason, stops, continues, tool_calls, rounds, output_tokens, policy, goal, root
         FROM task JOIN session ON session.id = task.session
         WHERE ?1 IS NULL OR session.name = ?1
         ORDER BY opened_at DESC, task DESC, session.name LIMIT ?2",
    )?
    .query_map(
        (
            session.map(SessionId::as_str),
            i64::try_from(limit).unwrap_or(i64::MAX),
        ),
        row_of,
    )?
    .collect()
}

fn row_of(row: &Row<'_>) -> rusqlite::Result<TaskRow> {
    Ok(TaskRow {
        session: SessionId::new(row.get::<_, String>(0)?),
        task: TaskId(row.get(1)?),
        agent: AgentName::new(row.get::<_, String>(2)?),
        level: row.get(3)?,
        opened_at: Millis(row.get(4)?),
        ended_at: row.get::<_, Option<u64>>(5)?.map(Millis),
        reason: row.get(6)?,
        detail: row.get(7)?,
        native_reason: row.get(8)?,
        stops: row.get(9)?,
        continues: row.get(10)?,
        tool_calls: row.get(11)?,
        rounds: row.get(12)?,
        output_tokens: row.get(13)?,
        policy: Digest::from_bytes(row.get(14)?),
        goal: row.get(15)?,
        root: row.get(16)?,
    })
}
