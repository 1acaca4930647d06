//! The conformance suite: what every implementation of [`Store`] must do.
//!
//! A failed expectation panics, as in any test. An error of the store is returned.

mod acts;
mod approvals;
mod log;
mod records;
mod retention;

use checkrein_core::ids::{EventSeq, SessionId};

use crate::{AppendBatch, AppendedEventRange, NewEvent, Store, StoreError, UndecodedEvent};

/// A place that holds one store, which is empty at first.
pub trait StoreUnderTest {
    /// Opens the store. Several may be open at once, and all are the same store.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open_store(&self) -> Result<Box<dyn Store>, StoreError>;

    /// Changes the bytes of an event without the store's knowledge.
    ///
    /// # Errors
    /// If that cannot be done.
    fn tamper_with_event_bytes(&self, session: &SessionId, seq: EventSeq)
    -> Result<(), StoreError>;
}

/// A part of the suite.
pub type StoreConformanceTestFn = fn(&dyn StoreUnderTest) -> Result<(), StoreError>;

/// The suite: names and cases. Each case needs an empty store of its own.
pub const CONFORMANCE_CASES: &[(&str, StoreConformanceTestFn)] = &[
    ("append_and_read", log::test_append_and_read),
    (
        "no_batch_changes_nothing",
        log::test_no_batch_changes_nothing,
    ),
    (
        "failed_work_changes_nothing",
        log::test_failed_transaction_rolls_back,
    ),
    ("a_key_counts_once", log::test_idempotency_key_counts_once),
    ("sessions_are_apart", log::test_sessions_are_isolated),
    (
        "effects_until_settled",
        log::test_effects_pend_until_settled,
    ),
    ("cache_is_the_newest", log::test_newest_state_cache_wins),
    (
        "conversations_have_rows",
        records::test_stored_scope_rows_found,
    ),
    ("acts_are_counted", acts::test_store_counts_tool_acts),
    ("tasks_newest_first", records::test_task_rows_newest_first),
    ("blobs_by_content", records::test_blobs_kept_by_content),
    (
        "final_evidence_stays",
        records::test_final_evidence_is_never_replaced,
    ),
    (
        "the_newest_question_counts",
        approvals::test_newest_approval_counts,
    ),
    (
        "an_answer_is_never_taken_back",
        approvals::test_approval_answer_is_final,
    ),
    ("conversations_are_kept", records::test_messages_are_kept),
    ("claims_exclude", records::test_claims_are_exclusive),
    ("reopened_is_the_same", log::test_reopened_store_is_same),
    ("handles_take_turns", log::test_writers_take_turns),
    ("a_reading_is_of_one_moment", log::test_read_is_one_snapshot),
    ("chain_shows_damage", log::test_chain_shows_corruption),
    (
        "sessions_go_as_a_whole",
        retention::test_sessions_pruned_whole,
    ),
    (
        "what_moved_on_stays",
        retention::test_store_prune_refuses_stale_census,
    ),
];

fn sample_log_event(kind: &'static str, payload: &str, key: Option<&str>) -> NewEvent {
    NewEvent {
        kind,
        payload: payload.as_bytes().to_vec(),
        key: key.map(str::to_owned),
    }
}

fn batch_of_note_events(payloads: &[&str]) -> AppendBatch {
    let events = payloads
        .iter()
        .map(|payload| sample_log_event("note", payload, None))
        .collect();
    AppendBatch {
        events,
        ..AppendBatch::default()
    }
}

fn sample_raw_store_event(seq: u64, kind: &str, payload: &str) -> UndecodedEvent {
    UndecodedEvent {
        seq: EventSeq(seq),
        kind: kind.to_owned(),
        payload: payload.as_bytes().to_vec(),
    }
}

fn append_batch(
    store: &dyn Store,
    session: &SessionId,
    batch: &AppendBatch,
) -> Result<Option<AppendedEventRange>, StoreError> {
    store.transact_on_session(session, &mut |_| Ok(Some(batch.clone())))
}

/// Runs `look` on the session's view and changes nothing.
fn with_session_view<T>(
    store: &dyn Store,
    session: &SessionId,
    mut look: impl FnMut(&dyn crate::SessionTransactionView) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut seen = None;
    // A read transaction, so that looking never changes what is tested.
    store.with_session_read_transaction(session, &mut |tail| {
        seen = Some(look(tail)?);
        Ok(())
    })?;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, SqliteStore};

    impl StoreUnderTest for MemoryStore {
        fn open_store(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(self.clone()))
        }

        fn tamper_with_event_bytes(
            &self,
            session: &SessionId,
            seq: EventSeq,
        ) -> Result<(), StoreError> {
            MemoryStore::tamper_with_stored_event(self, session, seq);
            Ok(())
        }
    }

    impl StoreUnderTest for tempfile::TempDir {
        fn open_store(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(SqliteStore::open_store_in_folder(
                &self.path().join("store"),
            )?))
        }

        fn tamper_with_event_bytes(
            &self,
            session: &SessionId,
            seq: EventSeq,
        ) -> Result<(), StoreError> {
            let conn = rusqlite::Connection::open(self.path().join("store/store.db")).unwrap();
            let changed = conn.execute(
                "UPDATE event SET payload = CAST(payload || '!' AS BLOB)
                 WHERE id = (SELECT id FROM session WHERE name = ?1) << 40 | ?2",
                (session.as_str(), seq.0),
            );
            assert_eq!(changed.unwrap(), 1);
            Ok(())
        }
    }

    fn check(implementation: &str, fresh: impl Fn() -> Box<dyn StoreUnderTest>) {
        for (name, part) in CONFORMANCE_CASES {
            part(&*fresh()).unwrap_or_else(|error| panic!("{implementation}: {name}: {error}"));
        }
    }

    #[test]
    fn memory() {
        check("memory", || Box::new(MemoryStore::new()));
    }

    #[test]
    fn sqlite() {
        check("sqlite", || Box::new(tempfile::tempdir().unwrap()));
    }
}
