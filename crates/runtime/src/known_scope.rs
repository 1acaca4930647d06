//! What is known of the conversation that an event comes from, even where the state has forgotten
//! it: the state is bounded, the number of sub-agents is not, and the store keeps a row for each.

use checkrein_core::ids::ScopeId;
use checkrein_core::state::SessionState;
use checkrein_store::{ScopeRow, SessionTransactionView, StoreError};

/// One conversation, before its event is folded in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScopeBeforeEvent {
    /// Where its transcript was read to; empty if it never was.
    pub(crate) cursor: String,
    /// Whether it was halted in this task, by the state.
    halted: bool,
    /// Whether it was halted, and the state has forgotten that.
    pub(crate) forgotten_halt: bool,
}

impl ScopeBeforeEvent {
    /// Looks the conversation up. `has_transcript` says whether its transcript is read with this
    /// event. A row is read only where the state cannot tell. The state comes first: it is folded
    /// from what every build wrote, and an older build writes no rows.
    pub(crate) fn find_scope_state_or_row(
        tail: &dyn SessionTransactionView,
        state: &SessionState,
        scope: &ScopeId,
        has_transcript: bool,
    ) -> Result<Self, StoreError> {
        let mut known = Self::scope_from_session_state(state, scope);
        let lost_place = has_transcript && known.cursor.is_empty();
        let lost_scope = !scope.is_main_scope() && state.conversation_scope_by_id(scope).is_none();
        if (lost_place || lost_scope)
            && let Some(row) = tail.read_scope_row(scope)?
        {
            let task = state.task.as_ref().map(|task| task.id);
            // A halt holds for its task only: in the next one the sub-agent may work again.
            known.forgotten_halt = lost_scope && row.halted_in.is_some() && row.halted_in == task;
            if known.cursor.is_empty() {
                known.cursor = row.cursor;
            }
        }
        Ok(known)
    }

    fn scope_from_session_state(state: &SessionState, scope: &ScopeId) -> Self {
        Self {
            cursor: state.transcript_cursor(scope).to_owned(),
            halted: state
                .conversation_scope_by_id(scope)
                .is_some_and(|scope| scope.halted),
            forgotten_halt: false,
        }
    }

    /// Returns the row to write, given the state after the event.
    pub(crate) fn scope_row_if_changed(
        &self,
        state: &SessionState,
        scope: &ScopeId,
    ) -> Option<ScopeRow> {
        let now = Self::scope_from_session_state(state, scope);
        // A state without a place has forgotten it, and must not erase the row's.
        let cursor = match now.cursor.is_empty() {
            true => &self.cursor,
            false => &now.cursor,
        };
        let was_halted = self.halted || self.forgotten_halt;
        if *cursor == self.cursor && now.halted == was_halted {
            return None;
        }
        let task = state.task.as_ref().map(|task| task.id);
        Some(ScopeRow {
            scope: scope.clone(),
            cursor: cursor.clone(),
            halted_in: task.filter(|_| now.halted),
        })
    }
}

#[cfg(test)]
mod tests {
    use checkrein_core::event::{Event, TaskOrigin};
    use checkrein_core::ids::{SessionId, TaskId};
    use checkrein_store::{AppendBatch, MemoryStore, Store as _};

    use super::*;

    fn known(row: Option<ScopeRow>, state: &SessionState, scope: &ScopeId) -> ScopeBeforeEvent {
        let (store, session) = (MemoryStore::new(), SessionId::from("s"));
        let batch = AppendBatch {
            scopes: row.into_iter().collect(),
            ..AppendBatch::default()
        };
        let put = store.transact_on_session(&session, &mut |_| Ok(Some(batch.clone())));
        put.unwrap();
        let mut found = None;
        let look = store.with_session_read_transaction(&session, &mut |tail| {
            found = Some(ScopeBeforeEvent::find_scope_state_or_row(
                tail, state, scope, true,
            )?);
            Ok(())
        });
        look.unwrap();
        found.unwrap()
    }

    #[test]
    fn a_row_counts_where_the_state_has_forgotten() {
        let scope = ScopeId::new("a");
        let row = |halted_in| {
            Some(ScopeRow {
                scope: scope.clone(),
                cursor: "1".to_owned(),
                halted_in,
            })
        };
        let mut state = SessionState::default();
        state.apply_event(&Event::TaskOpened {
            task: TaskId(2),
            by: TaskOrigin::Prompt,
            tree: None,
            acts: None,
        });
        let told = |row, state: &SessionState| {
            let known = known(row, state, &scope);
            (known.cursor, known.forgotten_halt)
        };
        assert_eq!(told(None, &state), (String::new(), false));
        assert_eq!(told(row(None), &state), ("1".to_owned(), false));
        assert_eq!(told(row(Some(TaskId(2))), &state), ("1".to_owned(), true));
        let of_another_task = told(row(Some(TaskId(1))), &state);
        assert_eq!(of_another_task, ("1".to_owned(), false));
        // An older build that came between wrote the log and no row.
        state.cursors.push((scope.clone(), "2".to_owned()));
        assert_eq!(told(row(None), &state), ("2".to_owned(), false));
    }

    #[test]
    fn a_row_is_written_only_where_something_changed() {
        let scope = ScopeId::new("a");
        let before = ScopeBeforeEvent::scope_from_session_state(&SessionState::default(), &scope);
        let mut state = SessionState::default();
        assert_eq!(before.scope_row_if_changed(&state, &scope), None);
        state.cursors.push((scope.clone(), "1".to_owned()));
        let written = before.scope_row_if_changed(&state, &scope).unwrap();
        assert_eq!((&*written.cursor, written.halted_in), ("1", None));
        let after = ScopeBeforeEvent::scope_from_session_state(&state, &scope);
        assert_eq!(after.scope_row_if_changed(&state, &scope), None);
        // Nothing could be read this time: where it was read to stays known.
        assert_eq!(
            after.scope_row_if_changed(&SessionState::default(), &scope),
            None
        );
    }
}
