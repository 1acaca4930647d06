//! What only the SQLite store has: its file, what may happen to it, and who else holds it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::time::Duration;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, ScopeId, SessionId, TaskId, UnixMillis};
use checkrein_store::{
    AppendBatch, EvidenceFinality, HashChainStatus, NewEvent, PruneSelection, ScopeRow,
    SqliteStore, SqliteStoreOptions, Store, StoreError, TaskRow,
};
use rusqlite::Connection;

fn session() -> SessionId {
    SessionId::from("session")
}

fn append(store: &dyn Store, payload: &str, key: Option<&str>) -> Result<Digest, StoreError> {
    let appended = store.transact_on_session(&session(), &mut |_| {
        let key = key.map(str::to_owned);
        let event = NewEvent {
            kind: "note",
            payload: payload.into(),
            key,
        };
        Ok(Some(AppendBatch {
            events: vec![event],
            ..AppendBatch::default()
        }))
    })?;
    Ok(appended.unwrap().head)
}

fn sql(folder: &Path, sql: &str) {
    Connection::open(folder.join("store.db"))
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

#[test]
fn every_change_to_the_log_shows_where_it_is() {
    fn check(change: &str, expected: Option<u64>) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
        let mut head = Digest::hash_bytes(b"");
        for (payload, key) in [("1", None), ("2", Some("k")), ("3", None), ("4", Some(""))] {
            head = append(&store, payload, key).unwrap();
        }
        sql(dir.path(), change);
        let expected = match expected {
            Some(at) => HashChainStatus::Broken { at: EventSeq(at) },
            None => HashChainStatus::Whole {
                last: EventSeq(4),
                head,
            },
        };
        assert_eq!(
            store.verify_chain(&session()).unwrap(),
            expected,
            "{change}"
        );
    }
    check("", None);
    check(
        "UPDATE event SET kind = 'other' WHERE id & 255 = 1",
        Some(1),
    );
    check(
        "UPDATE event SET payload = x'3333' WHERE id & 255 = 3",
        Some(3),
    );
    check("UPDATE event SET key = 'l' WHERE id & 255 = 2", Some(2));
    check("UPDATE event SET key = NULL WHERE id & 255 = 4", Some(4));
    check("UPDATE event SET key = 'm' WHERE id & 255 = 1", Some(1));
    check(
        "UPDATE event SET chain = zeroblob(32) WHERE id & 255 = 4",
        Some(4),
    );
    check("DELETE FROM event WHERE id & 255 = 1", Some(1));
    check("DELETE FROM event WHERE id & 255 = 3", Some(3));
    check(
        "DELETE FROM event WHERE id & 255 = 2; UPDATE event SET id = id - 1 WHERE id & 255 > 2",
        Some(2),
    );
    check(
        "UPDATE event SET id = (id & ~255) + 9 WHERE id & 255 = 4",
        Some(4),
    );
    check(
        "UPDATE session SET name = 'x'; INSERT INTO session (id, name) VALUES (7, 'session');
           UPDATE event SET id = (7 << 40) + 1 WHERE id & 255 = 3",
        Some(1),
    );
}

/// Of a log, a summary row and a question: none keeps what belongs to other sessions from being read or
/// removed.
#[test]
fn damage_to_one_session_stops_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    let other = SessionId::from("other");
    for session in [session(), other.clone()] {
        let row = |task| TaskRow {
            session: session.clone(),
            task: TaskId(task),
            agent: "test".into(),
            level: None,
            opened_at: UnixMillis(u64::from(task)),
            ended_at: None,
            reason: None,
            detail: None,
            native_reason: None,
            stops: 0,
            continues: 0,
            tool_calls: 0,
            rounds: None,
            output_tokens: None,
            policy: Digest::hash_bytes(b"policy"),
            goal: None,
            root: "/".to_owned(),
        };
        let batch = AppendBatch {
            tasks: vec![row(1), row(2)],
            ..AppendBatch::default()
        };
        store
            .transact_on_session(&session, &mut |_| Ok(Some(batch.clone())))
            .unwrap();
    }
    append(&store, "1", None).unwrap();
    append(&store, "2", None).unwrap();
    sql(
        dir.path(),
        "UPDATE event SET kind = CAST(x'ff' AS TEXT) WHERE id & 255 = 2;
         UPDATE task SET row = '{' WHERE session = 1 AND task = 2;
         INSERT INTO approval VALUES (x'00', 0, '{')",
    );
    let tasks = store.newest_task_summaries(None, 10).unwrap().into_iter();
    let tasks: Vec<_> = tasks.map(|row| (row.session, row.task.0)).collect();
    let expected = [(other.clone(), 2), (other.clone(), 1), (session(), 1)];
    assert_eq!(tasks, expected);
    assert_eq!(store.sessions_with_unreadable_tasks().unwrap(), [session()]);
    let broken = HashChainStatus::Broken { at: EventSeq(2) };
    assert_eq!(store.verify_chain(&session()).unwrap(), broken);
    let census = store.store_census().unwrap();
    let gone = PruneSelection {
        sessions: vec![session()],
        ..PruneSelection::default()
    };
    assert!(store.delete_sessions_if_unchanged(&census, &gone).unwrap());
    assert_eq!(store.sessions_with_unreadable_tasks().unwrap(), []);
    assert_eq!(store.newest_task_summaries(None, 10).unwrap().len(), 2);
}

#[test]
fn a_lost_end_shows_against_a_head_kept_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    let first = append(&store, "1", None).unwrap();
    let second = append(&store, "2", None).unwrap();
    sql(dir.path(), "DELETE FROM event WHERE id & 255 = 2");
    let now = store.verify_chain(&session()).unwrap();
    assert_eq!(
        now,
        HashChainStatus::Whole {
            last: EventSeq(1),
            head: first
        }
    );
    assert_ne!(first, second);
}

/// Another process is writing, for as long as it likes: a reader has its answer without waiting, and
/// it is the state before. What is committed while it reads is not mixed in.
#[test]
fn a_reader_waits_for_no_writer_and_sees_one_state() {
    let dir = tempfile::tempdir().unwrap();
    let impatient = SqliteStoreOptions {
        busy_timeout: Duration::ZERO,
    };
    let writer = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    append(&writer, "1", None).unwrap();
    let readers = [
        SqliteStore::open_store_with_options(dir.path(), impatient).unwrap(),
        SqliteStore::open_store_read_only(dir.path()).unwrap(),
    ];
    let locked = Connection::open(dir.path().join("store.db")).unwrap();
    locked.execute_batch("BEGIN IMMEDIATE").unwrap();
    let held = append(&readers[0], "2", None);
    assert!(matches!(held, Err(StoreError::Locked { .. })), "{held:?}");
    for reader in &readers {
        let mut seen = Vec::new();
        let read = reader.with_session_read_transaction(&session(), &mut |tail| {
            seen.push((tail.last_seq(), tail.events_after(EventSeq(0))?.len()));
            Ok(())
        });
        read.unwrap();
        assert_eq!(seen, [(EventSeq(1), 1)]);
    }
    locked.execute_batch("ROLLBACK").unwrap();
    for (reader, before) in readers.iter().zip(1..) {
        let mut seen = Vec::new();
        let read = reader.with_session_read_transaction(&session(), &mut |tail| {
            seen.push((tail.last_seq(), tail.events_after(EventSeq(0))?.len()));
            append(&writer, "between", Some(&before.to_string())).unwrap();
            let key = tail.find_seq_by_idempotency_key(&before.to_string())?;
            assert_eq!(key, None, "it came after");
            seen.push((tail.last_seq(), tail.events_after(EventSeq(0))?.len()));
            Ok(())
        });
        read.unwrap();
        assert_eq!(seen, [(EventSeq(before), before as usize); 2]);
        // A failed reading leaves no transaction behind, either.
        let failed = reader.with_session_read_transaction(&session(), &mut |_| {
            Err(StoreError::store_error_from_caller("no"))
        });
        assert!(matches!(failed, Err(StoreError::Work(_))), "{failed:?}");
        let again = reader.events_after(&session(), EventSeq(0)).unwrap();
        assert_eq!(again.len() as u64, before + 1);
    }
}

#[test]
fn a_changed_blob_is_not_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    let digest = store.put_blob(b"strict").unwrap();
    sql(dir.path(), "UPDATE kept SET bytes = CAST('loose' AS BLOB)");
    assert!(matches!(
        store.read_blob(&digest),
        Err(StoreError::Corrupt { .. })
    ));
}

#[test]
fn a_newer_store_asks_for_an_upgrade_only_if_it_would_be_misread() {
    let dir = tempfile::tempdir().unwrap();
    append(
        &SqliteStore::open_store_in_folder(dir.path()).unwrap(),
        "1",
        None,
    )
    .unwrap();
    sql(
        dir.path(),
        "UPDATE meta SET schema = 7; ALTER TABLE event ADD COLUMN later TEXT",
    );
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    append(&store, "2", None).unwrap();
    assert_eq!(
        store.events_after(&session(), EventSeq(0)).unwrap().len(),
        2
    );
    drop(store);

    sql(dir.path(), "UPDATE meta SET min_reader = 7");
    for opened in [
        SqliteStore::open_store_in_folder(dir.path()),
        SqliteStore::open_store_read_only(dir.path()),
    ] {
        let error = opened.unwrap_err();
        assert!(
            matches!(
                error,
                StoreError::TooNew {
                    needs: 7,
                    reads: 6,
                    ..
                }
            ),
            "{error:?}"
        );
        assert!(error.to_string().ends_with("upgrade checkrein"), "{error}");
    }
}

/// An older build removes a session without the rows that it does not know, and its number is given
/// to the next one.
#[test]
fn a_session_has_no_rows_of_one_that_an_older_build_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    let row = ScopeRow {
        scope: ScopeId::main_scope(),
        cursor: "900:m".to_owned(),
        halted_in: None,
    };
    let batch = AppendBatch {
        scopes: vec![row],
        ..AppendBatch::default()
    };
    let put = store.transact_on_session(&session(), &mut |_| Ok(Some(batch.clone())));
    put.unwrap();
    sql(dir.path(), "DELETE FROM session");
    let next = SessionId::from("next");
    let begin = store.transact_on_session(&next, &mut |_| Ok(Some(AppendBatch::default())));
    begin.unwrap();
    let look = store.transact_on_session(&next, &mut |tail| {
        assert_eq!(tail.read_scope_row(&ScopeId::main_scope())?, None);
        Ok(None)
    });
    look.unwrap();
}

#[test]
fn what_is_no_store_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| SqliteStore::open_store_in_folder(&dir.path().join(name));
    let read = |name: &str| SqliteStore::open_store_read_only(&dir.path().join(name));
    assert!(matches!(read("none"), Err(StoreError::Missing { .. })));
    assert!(!dir.path().join("none").exists(), "reading makes nothing");

    std::fs::create_dir(dir.path().join("empty")).unwrap();
    std::fs::write(dir.path().join("empty/store.db"), "").unwrap();
    assert!(matches!(read("empty"), Err(StoreError::Missing { .. })));
    append(&open("empty").unwrap(), "made after all", None).unwrap();

    std::fs::create_dir(dir.path().join("garbage")).unwrap();
    std::fs::write(
        dir.path().join("garbage/store.db"),
        "no database ".repeat(1000),
    )
    .unwrap();
    assert!(matches!(open("garbage"), Err(StoreError::Corrupt { .. })));
    assert!(matches!(read("garbage"), Err(StoreError::Corrupt { .. })));

    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(matches!(open("file"), Err(StoreError::Io { .. })));

    open("foreign").unwrap();
    sql(&dir.path().join("foreign"), "DROP TABLE meta");
    assert!(matches!(open("foreign"), Err(StoreError::Corrupt { .. })));
}

#[test]
fn a_busy_store_is_waited_for_up_to_a_bound_and_can_be_read_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let patience = Duration::from_millis(30);
    let store = SqliteStore::open_store_with_options(
        dir.path(),
        SqliteStoreOptions {
            busy_timeout: patience,
        },
    )
    .unwrap();
    append(&store, "1", None).unwrap();
    let other = Connection::open(dir.path().join("store.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let denied = append(&store, "2", None).unwrap_err();
    assert!(
        matches!(denied, StoreError::Locked { waited, .. } if waited >= patience),
        "{denied:?}"
    );
    let key = Digest::hash_bytes(b"key");
    let denied = store.put_evidence_under_key(&key, b"pass", EvidenceFinality::Final);
    assert!(matches!(denied, Err(StoreError::Locked { .. })));
    assert_eq!(
        store.events_after(&session(), EventSeq(0)).unwrap().len(),
        1
    );
    SqliteStore::open_store_in_folder(dir.path()).unwrap();

    other.execute_batch("COMMIT").unwrap();
    append(&store, "2", None).unwrap();
    assert_eq!(
        store.events_after(&session(), EventSeq(0)).unwrap().len(),
        2
    );
}

#[test]
fn a_synced_batch_is_decided_once_if_nobody_came_between() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    for durable in [true, false, true, true] {
        let mut calls = 0;
        let batch = AppendBatch {
            durable,
            ..AppendBatch::default()
        };
        store
            .transact_on_session(&session(), &mut |_| {
                calls += 1;
                Ok(Some(batch.clone()))
            })
            .unwrap();
        assert_eq!(calls, 1);
    }
}

/// Each hook is alone and leaves the log to the next; see `sqlite::wal`.
#[test]
fn hooks_that_come_alone_keep_the_log_short() {
    let dir = tempfile::tempdir().unwrap();
    let payload = "x".repeat(3000);
    let mut longest = 0;
    for n in 0..600 {
        append(
            &SqliteStore::open_store_in_folder(dir.path()).unwrap(),
            &payload,
            Some(&n.to_string()),
        )
        .unwrap();
        longest = longest.max(dir.path().join("store.db-wal").metadata().unwrap().len());
    }
    assert!((128 * 1024..=304 * 1024).contains(&longest), "{longest}");
    let store = SqliteStore::open_store_read_only(dir.path()).unwrap();
    assert_eq!(
        store.events_after(&session(), EventSeq(0)).unwrap().len(),
        600
    );
}

#[test]
fn a_store_opened_to_read_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    append(
        &SqliteStore::open_store_in_folder(dir.path()).unwrap(),
        "1",
        None,
    )
    .unwrap();
    let store = SqliteStore::open_store_read_only(dir.path()).unwrap();
    let denied = [
        append(&store, "2", None).err(),
        store.put_blob(b"blob").err(),
        store
            .put_evidence_under_key(
                &Digest::hash_bytes(b"key"),
                b"pass",
                EvidenceFinality::Final,
            )
            .err(),
        store.try_claim_effect(&Digest::hash_bytes(b"key")).err(),
    ];
    for error in denied {
        assert!(
            matches!(error, Some(StoreError::ReadOnly { .. })),
            "{error:?}"
        );
    }
    assert_eq!(
        store.events_after(&session(), EventSeq(0)).unwrap().len(),
        1
    );
}
