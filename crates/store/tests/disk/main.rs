//! Law 9 on disk: what was synced survives a power cut, and a full disk harms nothing
//! that is there. SQLite runs on a disk of ours that forgets what was not synced.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod vfs;

use std::path::Path;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{
    AppendBatch, EvidenceFinality, HashChainStatus, NewEvent, SqliteStore, Store, StoreError,
    StoredCheckRequest,
};

fn session() -> SessionId {
    SessionId::from("session")
}

fn append(store: &dyn Store, payload: &str, durable: bool) -> Result<EventSeq, StoreError> {
    let appended = store.transact_on_session(&session(), &mut |tail| {
        let event = NewEvent {
            kind: "note",
            payload: payload.into(),
            key: None,
        };
        let effect = StoredCheckRequest {
            key: Digest::hash_bytes(payload.as_bytes()),
            verifier: "tests".into(),
            stop: tail.last_seq().successor_seq(),
        };
        let (events, effects) = (vec![event], vec![effect]);
        Ok(Some(AppendBatch {
            events,
            effects,
            durable,
            ..AppendBatch::default()
        }))
    })?;
    Ok(appended.unwrap().last)
}

/// How many events there are; they have no gap, a whole chain and their effects.
fn events(store: &dyn Store) -> u64 {
    let events = store.events_after(&session(), EventSeq(0)).unwrap();
    for (event, place) in events.iter().zip(1..) {
        assert_eq!(event.seq, EventSeq(place));
    }
    let count = events.len() as u64;
    let chain = store.verify_chain(&session()).unwrap();
    assert!(
        matches!(chain, HashChainStatus::Whole { last, .. } if last == EventSeq(count)),
        "{chain:?}"
    );
    store
        .transact_on_session(&session(), &mut |tail| {
            assert_eq!(tail.pending_effects()?.len() as u64, count);
            Ok(None)
        })
        .unwrap();
    count
}

/// The store in `folder` as it is found after a power cut now.
fn after_power_cut<T>(folder: &Path, look: impl FnOnce(&SqliteStore) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    vfs::power_cut(folder, dir.path());
    look(&SqliteStore::open_store_in_folder(dir.path()).unwrap())
}

#[test]
fn this_disk_does_forget_what_was_not_synced() {
    vfs::install();
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    append(&store, "stop", true).unwrap();
    append(&store, "tool event", false).unwrap();
    assert_eq!(events(&store), 2);
    assert_eq!(after_power_cut(dir.path(), |store| events(store)), 1);
}

#[test]
fn the_first_batch_of_a_new_store_survives() {
    vfs::install();
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    append(&store, "stop", true).unwrap();
    assert_eq!(after_power_cut(dir.path(), |store| events(store)), 1);
}

#[test]
fn synced_batches_evidence_and_blobs_survive_with_all_that_came_before() {
    vfs::install();
    let dir = tempfile::tempdir().unwrap();
    let payload = "x".repeat(6000);
    let (mut safe, mut forgotten) = (0, 0);
    for n in 0..400_u64 {
        // Handles of hooks: each is new, and some empty the long log.
        let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
        let name = n.to_le_bytes();
        let last = append(&store, &format!("{payload}{n}"), n % 5 == 0)
            .unwrap()
            .0;
        match n % 5 {
            0 => safe = last,
            2 => {
                let key = Digest::hash_bytes(&name);
                store
                    .put_evidence_under_key(&key, &name, EvidenceFinality::Final)
                    .unwrap();
                safe = last;
                let kept = after_power_cut(dir.path(), |store| store.read_evidence(&key).unwrap());
                assert_eq!(kept.map(|evidence| evidence.bytes), Some(name.to_vec()));
            }
            3 => {
                let digest = store.put_blob(&name).unwrap();
                safe = last;
                let kept = after_power_cut(dir.path(), |store| store.read_blob(&digest).unwrap());
                assert_eq!(kept, Some(name.to_vec()));
            }
            _ => {}
        }
        let kept = after_power_cut(dir.path(), |store| events(store));
        assert!(
            (safe..=last).contains(&kept),
            "{kept} of {last}, {safe} were synced"
        );
        forgotten += u64::from(kept < last);
    }
    assert!(forgotten > 50, "the disk forgot {forgotten} times");
}

#[test]
fn a_full_disk_is_named_and_harms_nothing() {
    vfs::install();
    let dir = tempfile::tempdir().unwrap();
    let key = Digest::hash_bytes(b"key");
    let store = SqliteStore::open_store_in_folder(dir.path()).unwrap();
    append(&store, "one", true).unwrap();

    vfs::set_full(dir.path(), true);
    for durable in [false, true] {
        let denied = append(&store, "two", durable).unwrap_err();
        assert!(matches!(denied, StoreError::Full { .. }), "{denied:?}");
    }
    let denied = store.put_evidence_under_key(&key, b"pass", EvidenceFinality::Final);
    assert!(matches!(denied, Err(StoreError::Full { .. })), "{denied:?}");
    assert_eq!(events(&store), 1);
    assert_eq!(
        events(&SqliteStore::open_store_in_folder(dir.path()).unwrap()),
        1
    );
    assert_eq!(after_power_cut(dir.path(), |store| events(store)), 1);

    vfs::set_full(dir.path(), false);
    assert_eq!(append(&store, "two", false).unwrap(), EventSeq(2));
    assert_eq!(store.read_evidence(&key).unwrap(), None);
    assert_eq!(
        events(&SqliteStore::open_store_in_folder(dir.path()).unwrap()),
        2
    );
}

#[test]
fn a_full_disk_while_the_store_is_made_is_named_and_can_be_mended() {
    vfs::install();
    let dir = tempfile::tempdir().unwrap();
    vfs::set_full(dir.path(), true);
    let denied = SqliteStore::open_store_in_folder(dir.path()).unwrap_err();
    assert!(matches!(denied, StoreError::Full { .. }), "{denied:?}");
    vfs::set_full(dir.path(), false);
    append(
        &SqliteStore::open_store_in_folder(dir.path()).unwrap(),
        "one",
        false,
    )
    .unwrap();
}
