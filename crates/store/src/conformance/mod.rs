//! What every implementation of [`Store`] must do, as one suite run over each.
//!
//! A failed expectation panics, as in any test; trouble with the store comes back as its error.

mod acts;
mod kept;
mod log;
mod people;
mod retention;

use checkrein_core::ids::{EventSeq, SessionId};

use crate::{Appended, Batch, NewEvent, RawEvent, Store, StoreError};

/// A place with one store, empty at first.
pub trait Subject {
    /// Opens the store, again and beside others too: all that are open are the same store.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self) -> Result<Box<dyn Store>, StoreError>;

    /// Changes the bytes of an event behind the store's back.
    ///
    /// # Errors
    /// If that cannot be done.
    fn damage(&self, session: &SessionId, seq: EventSeq) -> Result<(), StoreError>;
}

/// A part of the suite.
pub type Part = fn(&dyn Subject) -> Result<(), StoreError>;

/// The suite: names and parts. Each part wants a subject of its own.
pub const ALL: &[(&str, Part)] = &[
    ("append_and_read", log::append_and_read),
    ("no_batch_changes_nothing", log::no_batch_changes_nothing),
    (
        "failed_work_changes_nothing",
        log::failed_work_changes_nothing,
    ),
    ("a_key_counts_once", log::a_key_counts_once),
    ("sessions_are_apart", log::sessions_are_apart),
    ("effects_until_settled", log::effects_until_settled),
    ("cache_is_the_newest", log::cache_is_the_newest),
    ("conversations_have_rows", kept::conversations_have_rows),
    ("acts_are_counted", acts::acts_are_counted),
    ("tasks_newest_first", kept::tasks_newest_first),
    ("blobs_by_content", kept::blobs_by_content),
    ("final_evidence_stays", kept::final_evidence_stays),
    (
        "the_newest_question_counts",
        people::the_newest_question_counts,
    ),
    (
        "an_answer_is_never_taken_back",
        people::an_answer_is_never_taken_back,
    ),
    ("conversations_are_kept", kept::conversations_are_kept),
    ("claims_exclude", kept::claims_exclude),
    ("reopened_is_the_same", log::reopened_is_the_same),
    ("handles_take_turns", log::handles_take_turns),
    (
        "a_reading_is_of_one_moment",
        log::a_reading_is_of_one_moment,
    ),
    ("chain_shows_damage", log::chain_shows_damage),
    ("sessions_go_as_a_whole", retention::sessions_go_as_a_whole),
    ("what_moved_on_stays", retention::what_moved_on_stays),
];

fn event(kind: &'static str, payload: &str, key: Option<&str>) -> NewEvent {
    NewEvent {
        kind,
        payload: payload.as_bytes().to_vec(),
        key: key.map(str::to_owned),
    }
}

fn events(payloads: &[&str]) -> Batch {
    let events = payloads
        .iter()
        .map(|payload| event("note", payload, None))
        .collect();
    Batch {
        events,
        ..Batch::default()
    }
}

fn raw(seq: u64, kind: &str, payload: &str) -> RawEvent {
    RawEvent {
        seq: EventSeq(seq),
        kind: kind.to_owned(),
        payload: payload.as_bytes().to_vec(),
    }
}

fn append(
    store: &dyn Store,
    session: &SessionId,
    batch: &Batch,
) -> Result<Option<Appended>, StoreError> {
    store.transact(session, &mut |_| Ok(Some(batch.clone())))
}

/// Runs `look` on the session's tail and changes nothing.
fn look<T>(
    store: &dyn Store,
    session: &SessionId,
    mut look: impl FnMut(&dyn crate::Tail) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut seen = None;
    store.read(session, &mut |tail| {
        seen = Some(look(tail)?);
        Ok(())
    })?;
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, SqliteStore};

    impl Subject for MemoryStore {
        fn open(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(self.clone()))
        }

        fn damage(&self, session: &SessionId, seq: EventSeq) -> Result<(), StoreError> {
            MemoryStore::damage(self, session, seq);
            Ok(())
        }
    }

    impl Subject for tempfile::TempDir {
        fn open(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(SqliteStore::open(&self.path().join("store"))?))
        }

        fn damage(&self, session: &SessionId, seq: EventSeq) -> Result<(), StoreError> {
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

    fn check(implementation: &str, fresh: impl Fn() -> Box<dyn Subject>) {
        for (name, part) in ALL {
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
