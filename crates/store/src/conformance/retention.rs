//! Conformance of pruning: what is removed, and what has to stay.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};

use super::log::{make_test_cached_session_state, sample_pending_check_row};
use super::records::sample_task_row;
use super::{
    StoreUnderTest, append_batch, batch_of_note_events, sample_log_event, with_session_view,
};
use crate::{AppendBatch, EvidenceFinality, HashChainStatus, PruneSelection, Store, StoreError};

/// Creates two sessions with everything a session can have, one evidence and one blob.
fn fill_two_conformance_sessions(
    store: &dyn Store,
) -> Result<(SessionId, SessionId, Digest, Digest), StoreError> {
    let (old, new) = (SessionId::from("old"), SessionId::from("new"));
    for session in [&old, &new] {
        let batch = AppendBatch {
            events: vec![
                sample_log_event("note", "1", Some("key")),
                sample_log_event("note", "2", None),
            ],
            effects: vec![sample_pending_check_row("tests", 1)],
            cache: Some(make_test_cached_session_state(1)),
            tasks: vec![sample_task_row(session.as_str(), 1, 5)],
            ..AppendBatch::default()
        };
        append_batch(store, session, &batch)?;
    }
    let key = Digest::hash_bytes(b"key");
    store.put_evidence_under_key(&key, b"evidence", EvidenceFinality::Final)?;
    Ok((old, new, key, store.put_blob(b"blob")?))
}

pub(super) fn test_sessions_pruned_whole(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let store = subject.open_store()?;
    assert_eq!(store.store_census()?.sessions, []);
    let (old, new, key, blob) = fill_two_conformance_sessions(&*store)?;
    let census = store.store_census()?;
    let names: Vec<_> = census
        .sessions
        .iter()
        .map(|(name, last, _)| (name, *last))
        .collect();
    assert_eq!(names, [(&new, EventSeq(2)), (&old, EventSeq(2))]);
    assert!(census.sessions.iter().all(|(_, _, bytes)| *bytes >= 2));
    let mut kept = vec![(key, 8), (blob, 4)];
    kept.sort();
    assert_eq!(census.objects, kept);
    assert!(census.bytes >= 16);

    let untouched = store.events_after(&new, EventSeq(0))?;
    let gone = PruneSelection {
        sessions: vec![old.clone(), SessionId::from("never there")],
        objects: vec![key],
    };
    assert!(store.delete_sessions_if_unchanged(&census, &gone)?);
    store.vacuum_database()?;
    assert_eq!(store.events_after(&old, EventSeq(0))?, []);
    assert_eq!(store.newest_task_summaries(Some(&old), 9)?, []);
    assert_eq!(store.read_evidence(&key)?, None);
    assert_eq!(store.read_blob(&blob)?.as_deref(), Some(&b"blob"[..]));
    assert_eq!(store.events_after(&new, EventSeq(0))?, untouched);
    assert_eq!(store.newest_task_summaries(None, 9)?.len(), 1);
    assert_eq!(
        with_session_view(&*store, &new, |tail| tail.pending_effects())?.map(|rows| rows.len()),
        Some(1)
    );
    assert!(matches!(
        store.verify_chain(&new)?,
        HashChainStatus::Whole {
            last: EventSeq(2),
            ..
        }
    ));
    let left = store.store_census()?;
    assert_eq!((left.sessions.len(), left.objects), (1, vec![(blob, 4)]));

    // The name is free again, and a new session under it starts from the beginning.
    with_session_view(&*store, &old, |tail| {
        assert_eq!(
            (tail.last_seq(), tail.pending_effects()?.len()),
            (EventSeq(0), 0)
        );
        assert_eq!(
            (
                tail.newest_state_cache()?,
                tail.find_seq_by_idempotency_key("key")?
            ),
            (None, None)
        );
        Ok(())
    })?;
    let again = append_batch(&*store, &old, &batch_of_note_events(&["anew"]))?;
    assert_eq!(again.map(|a| a.last), Some(EventSeq(1)));
    assert!(matches!(
        store.verify_chain(&old)?,
        HashChainStatus::Whole {
            last: EventSeq(1),
            ..
        }
    ));
    Ok(())
}

pub(super) fn test_store_prune_refuses_stale_census(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let store = subject.open_store()?;
    let (old, new, key, blob) = fill_two_conformance_sessions(&*store)?;
    let gone = PruneSelection {
        sessions: vec![old.clone()],
        objects: vec![key, blob],
    };
    // Each way in which the store can move on after a census, of which none may be pruned by it.
    let moves: [(&SessionId, &str); 3] = [
        (&old, "it"),
        (&new, "another"),
        (&SessionId::from("third"), "a new one"),
    ];
    for (session, what) in moves {
        let census = store.store_census()?;
        append_batch(
            &*subject.open_store()?,
            session,
            &batch_of_note_events(&["more"]),
        )?;
        let before = store.store_census()?;
        assert!(
            !store.delete_sessions_if_unchanged(&census, &gone)?,
            "{what} moved on"
        );
        assert_eq!(store.store_census()?, before, "{what} moved on");
    }
    assert!(store.delete_sessions_if_unchanged(&store.store_census()?, &gone)?);
    assert_eq!(store.events_after(&old, EventSeq(0))?, []);
    Ok(())
}
