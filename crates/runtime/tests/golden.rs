//! Golden logs as a store has them: replayed from the log alone and through the state cache, to the
//! byte. They are those of the core; `crates/core/tests/golden/README.md` says whose.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use checkrein_core::event;
use checkrein_core::ids::SessionId;
use checkrein_runtime::replay;
use checkrein_store::{AppendBatch, MemoryStore, NewEvent, Store as _};

fn logs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/tests/golden");
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    logs.sort();
    logs
}

/// A store with this log, in which the payload at `changed` says something else.
fn stored(file: &Path, changed: Option<usize>) -> MemoryStore {
    let lines = |path: &Path| -> Vec<Vec<u8>> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| line.as_bytes().to_vec()).collect()
    };
    let store = MemoryStore::new();
    let mut batch = AppendBatch {
        blobs: lines(&file.with_extension("policy.json")),
        ..AppendBatch::default()
    };
    for (at, payload) in lines(file).into_iter().enumerate() {
        let kind = event::decode_event(&payload).unwrap().log_event_kind();
        let payload = match changed == Some(at) {
            true => String::from_utf8(payload)
                .unwrap()
                .replace("\"answers\":", "\"answers\":9")
                .into_bytes(),
            false => payload,
        };
        batch.events.push(NewEvent {
            kind,
            payload,
            key: None,
        });
    }
    let session = SessionId::from("golden");
    store
        .transact_on_session(&session, &mut |_| Ok(Some(batch.clone())))
        .unwrap();
    store
}

#[test]
fn golden_logs_replay_with_and_without_the_state_cache() {
    let session = SessionId::from("golden");
    let logs = logs();
    assert!(!logs.is_empty());
    for file in &logs {
        let store = stored(file, None);
        for through_cache in [false, true] {
            let replayed = replay::replay_session(&store, &session, through_cache).unwrap();
            assert_eq!(replayed.differs_at, None, "{file:?} {through_cache}");
            assert!(replayed.inputs > 0, "{file:?}");
        }
    }
}

#[test]
fn a_golden_log_that_was_changed_does_not_replay() {
    let session = SessionId::from("golden");
    for file in logs() {
        let text = std::fs::read_to_string(&file).unwrap();
        let decided = text.lines().position(|line| line.contains("\"answers\":"));
        let store = stored(&file, decided);
        let replayed = replay::replay_session(&store, &session, false).unwrap();
        let seq = replayed.differs_at.map(|at| at.seq.0);
        assert_eq!(seq, decided.map(|at| at as u64 + 1), "{file:?}");
    }
}
