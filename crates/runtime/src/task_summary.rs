//! Summarises one task in one row, for listings and later statistics. It is derived from the state
//! and never read to decide.

use checkrein_core::digest::Digest;
use checkrein_core::ids::SessionId;
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_store::TaskRow;

use crate::runtime::Runtime;

/// Returns the row of the state's newest task.
pub(crate) fn task_row_from_session_state(
    session: &SessionId,
    policy: &Policy,
    state: &SessionState,
    root: &str,
    runtime: &Runtime,
) -> Option<TaskRow> {
    let task = state.task.as_ref()?;
    let ended = task.ended.as_ref();
    Some(TaskRow {
        session: session.clone(),
        task: task.id,
        agent: state.agent.clone().unwrap_or_else(|| runtime.agent.clone()),
        level: Some(runtime.level.to_owned()),
        opened_at: task.opened_at,
        ended_at: ended.map(|_| state.now),
        reason: ended.map(|transition| transition.reason.as_str().to_owned()),
        detail: ended.and_then(|transition| transition.detail.clone()),
        native_reason: ended.and_then(|transition| transition.native_reason.clone()),
        stops: task.stops,
        continues: task.totals.continues,
        tool_calls: task.totals.tool_calls,
        rounds: state.shows_rounds.then_some(task.totals.rounds),
        output_tokens: task.totals.output_tokens,
        policy: state.policy.unwrap_or_else(|| Digest::hash_bytes(b"")),
        goal: policy.goal.clone(),
        root: root.to_owned(),
    })
}
