//! Stores as earlier builds wrote them: each opens, for reading and for writing, and goes
//! on. What is in them means something only to the layers above; `crates/cli/tests/it/golden`
//! makes them, replays them and goes on with their sessions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use checkrein_core::ids::{EventSeq, ScopeId, SessionId};
use checkrein_store::{AppendBatch, HashChainStatus, NewEvent, SqliteStore, Store};

fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_golden_store_opens_and_goes_on() {
    let files = golden();
    assert!(!files.is_empty());
    for file in files {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(&file, dir.path().join("store.db")).unwrap();
        let read = SqliteStore::open_store_read_only(dir.path()).unwrap();
        let tasks = read.newest_task_summaries(None, 100).unwrap();
        drop(read);
        // With the third schema came questions to people, with the fourth conversations with our
        // own agents.
        let name = file.file_name().unwrap().to_str().unwrap();
        let (count, questions, messages) = match name {
            "schema-1.db" | "schema-2.db" => (5, 0, 0),
            "schema-3.db" => (9, 4, 0),
            _ => (10, 4, 5),
        };
        // With the fifth came rows of sub-agents.
        let has_scopes = !(1..5).any(|old| name.starts_with(&format!("schema-{old}")));
        assert_eq!(tasks.len(), count, "{file:?}");

        let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
        assert_eq!(
            store.newest_task_summaries(None, 100).unwrap(),
            tasks,
            "{file:?}"
        );
        let asked = store.list_approvals().unwrap();
        assert_eq!(asked.len(), questions, "{file:?}");
        for row in &asked {
            assert!(
                !store
                    .events_after(&row.session, EventSeq(0))
                    .unwrap()
                    .is_empty()
            );
        }
        let said = tasks.iter().map(|task| {
            let said = store.read_stored_conversation_messages(&task.session, 100);
            said.unwrap().len()
        });
        assert_eq!(said.max(), Some(messages), "{file:?}");
        let (mut pending, mut rows) = (0, 0);
        for session in ["fixed", "gave-up", "open", "pending"] {
            let session = SessionId::from(session);
            let before = store.events_after(&session, EventSeq(0)).unwrap();
            let count = before.len() as u64;
            assert!(count > 0);
            let chain = |last| matches!(store.verify_chain(&session).unwrap(), HashChainStatus::Whole { last: at, .. } if at == last);
            assert!(chain(EventSeq(count)), "{session} of {file:?}");
            store
                .transact_on_session(&session, &mut |tail| {
                    assert_eq!(tail.last_seq(), EventSeq(count));
                    assert!(
                        tail.newest_state_cache()?
                            .is_none_or(|(at, _)| at <= EventSeq(count))
                    );
                    pending += tail.pending_effects()?.len();
                    rows += usize::from(tail.read_scope_row(&ScopeId::new("helper"))?.is_some());
                    Ok(Some(AppendBatch {
                        events: vec![NewEvent {
                            kind: "note",
                            payload: b"1".to_vec(),
                            key: Some("later".to_owned()),
                        }],
                        ..AppendBatch::default()
                    }))
                })
                .unwrap();
            let after = store.events_after(&session, EventSeq(0)).unwrap();
            assert_eq!(after.get(..before.len()), Some(&before[..]));
            assert!(chain(EventSeq(count + 1)), "{session} of {file:?}");
        }
        assert_eq!(pending, 1, "{file:?}");
        assert_eq!(rows, usize::from(has_scopes), "{file:?}");
        for task in tasks {
            assert!(store.read_blob(&task.policy).unwrap().is_some(), "{file:?}");
        }
    }
}
