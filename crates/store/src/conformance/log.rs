//! Conformance of session logs: order, keys, chain, effects, cache, and one log for all handles.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId, VerifierName};

use super::records::sample_task_row;
use super::{
    StoreUnderTest, append_batch, batch_of_note_events, sample_log_event, sample_raw_store_event,
    with_session_view,
};
use crate::{
    AppendBatch, CachedSessionState, EvidenceFinality, HashChainStatus, NewEvent, Store,
    StoreError, StoredCheckRequest, UndecodedEvent,
};

pub(super) fn test_append_and_read(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    assert_eq!(store.events_after(&s, EventSeq(0))?, []);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(
            whole,
            HashChainStatus::Whole {
                last: EventSeq(0),
                ..
            }
        ),
        "{whole:?}"
    );

    let first = append_batch(&*store, &s, &batch_of_note_events(&["one", "two"]))?;
    assert_eq!(
        first.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(2)))
    );
    // Kinds and payloads are opaque: neither an unknown kind nor bytes that are no UTF-8 may be
    // lost.
    let odd = NewEvent {
        kind: "of_a_newer_version",
        payload: vec![0, 255, b'\''],
        key: None,
    };
    let second = append_batch(
        &*store,
        &s,
        &AppendBatch {
            events: vec![odd.clone()],
            durable: true,
            ..AppendBatch::default()
        },
    )?;
    assert_eq!(
        second.map(|a| (a.after, a.last)),
        Some((EventSeq(2), EventSeq(3)))
    );

    let odd = UndecodedEvent {
        seq: EventSeq(3),
        kind: odd.kind.to_owned(),
        payload: odd.payload,
    };
    let all = [
        sample_raw_store_event(1, "note", "one"),
        sample_raw_store_event(2, "note", "two"),
        odd,
    ];
    for (after, expected) in [
        (0, all.as_slice()),
        (2, all.as_slice().get(2..).unwrap_or(&[])),
    ] {
        assert_eq!(store.events_after(&s, EventSeq(after))?, expected);
        assert_eq!(
            with_session_view(&*store, &s, |tail| tail.events_after(EventSeq(after)))?,
            Some(expected.into())
        );
    }
    assert_eq!(store.events_after(&s, EventSeq(3))?, []);
    assert_eq!(
        with_session_view(&*store, &s, |tail| Ok(tail.last_seq()))?,
        Some(EventSeq(3))
    );
    let head = second.map(|a| HashChainStatus::Whole {
        last: a.last,
        head: a.head,
    });
    assert_eq!(Some(store.verify_chain(&s)?), head);
    Ok(())
}

pub(super) fn test_no_batch_changes_nothing(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    assert_eq!(store.transact_on_session(&s, &mut |_| Ok(None))?, None);
    // An empty batch is a batch all the same: it must neither take a number nor break the chain.
    let empty = append_batch(&*store, &s, &AppendBatch::default())?;
    assert_eq!(
        empty.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(0)))
    );
    let next = append_batch(&*store, &s, &batch_of_note_events(&["one"]))?;
    assert_eq!(
        next.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(1)))
    );
    let again = append_batch(&*store, &s, &AppendBatch::default())?;
    assert_eq!(again.map(|a| a.head), next.map(|a| a.head));
    Ok(())
}

pub(super) fn test_failed_transaction_rolls_back(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    append_batch(&*store, &s, &batch_of_note_events(&["one"]))?;
    let failed =
        store.transact_on_session(&s, &mut |_| Err(StoreError::store_error_from_caller("no")));
    assert!(matches!(&failed, Err(StoreError::Work(why)) if why.to_string() == "no"));
    assert_eq!(
        store.events_after(&s, EventSeq(0))?,
        [sample_raw_store_event(1, "note", "one")]
    );
    append_batch(&*store, &s, &batch_of_note_events(&["two"]))?;
    assert_eq!(
        store.events_after(&s, EventSeq(1))?,
        [sample_raw_store_event(2, "note", "two")]
    );
    Ok(())
}

pub(super) fn test_idempotency_key_counts_once(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    let keyed = |payload: &str, key: &str| sample_log_event("note", payload, Some(key));
    let batch = AppendBatch {
        events: vec![keyed("one", "k1"), keyed("two", "k2")],
        ..AppendBatch::default()
    };
    append_batch(&*store, &s, &batch)?;
    for (key, expected) in [
        ("k1", Some(EventSeq(1))),
        ("k2", Some(EventSeq(2))),
        ("k3", None),
        ("", None),
    ] {
        assert_eq!(
            with_session_view(&*store, &s, |tail| tail.find_seq_by_idempotency_key(key))?,
            Some(expected),
            "{key}"
        );
    }

    // The second key is new, the first is not: neither its event nor anything else is written.
    let refused = AppendBatch {
        events: vec![keyed("three", "k3"), keyed("again", "k2")],
        blobs: vec![b"refused".to_vec()],
        durable: true,
        ..AppendBatch::default()
    };
    let within = AppendBatch {
        events: vec![keyed("a", "k4"), keyed("b", "k4")],
        ..AppendBatch::default()
    };
    for (batch, key, at) in [(refused, "k2", EventSeq(2)), (within, "k4", EventSeq(3))] {
        match append_batch(&*store, &s, &batch) {
            Err(StoreError::DuplicateKey {
                session,
                key: found,
                seq,
            }) => {
                assert_eq!((session, found.as_str(), seq), (s.clone(), key, at));
            }
            other => assert!(other.is_err(), "{key} was taken twice"),
        }
        assert_eq!(
            with_session_view(&*store, &s, |tail| Ok(tail.last_seq()))?,
            Some(EventSeq(2))
        );
    }
    assert_eq!(store.read_blob(&Digest::hash_bytes(b"refused"))?, None);
    // A key is the session's own.
    append_batch(&*store, &SessionId::from("t"), &batch)?;
    Ok(())
}

pub(super) fn test_sessions_are_isolated(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s, t) = (
        subject.open_store()?,
        SessionId::from("s"),
        SessionId::from("t"),
    );
    let rich = AppendBatch {
        events: vec![sample_log_event("note", "one", Some("k"))],
        effects: vec![sample_pending_check_row("tests", 1)],
        cache: Some(make_test_cached_session_state(1)),
        ..AppendBatch::default()
    };
    let in_s = append_batch(&*store, &s, &rich)?;
    let empty = with_session_view(&*store, &t, |tail| {
        let nothing = (
            tail.last_seq(),
            tail.find_seq_by_idempotency_key("k")?,
            tail.newest_state_cache()?,
        );
        Ok((
            nothing,
            tail.pending_effects()?,
            tail.events_after(EventSeq(0))?,
        ))
    })?;
    assert_eq!(empty, Some(((EventSeq(0), None, None), vec![], vec![])));

    append_batch(&*store, &t, &batch_of_note_events(&["other"]))?;
    append_batch(
        &*store,
        &t,
        &AppendBatch {
            settled: vec![sample_pending_check_row("tests", 1).key],
            ..AppendBatch::default()
        },
    )?;
    let here = with_session_view(&*store, &s, |tail| {
        Ok((tail.last_seq(), tail.pending_effects()?))
    })?;
    assert_eq!(
        here,
        Some((EventSeq(1), vec![sample_pending_check_row("tests", 1)]))
    );
    // The same events in another session are another chain.
    let in_u = append_batch(&*store, &SessionId::from("u"), &rich)?;
    assert_ne!(in_s.map(|a| a.head), in_u.map(|a| a.head));
    Ok(())
}

pub(super) fn sample_pending_check_row(verifier: &str, stop: u64) -> StoredCheckRequest {
    let key = Digest::hash_bytes(verifier.as_bytes());
    StoredCheckRequest {
        key,
        verifier: VerifierName::from(verifier),
        stop: EventSeq(stop),
    }
}

pub(super) fn test_effects_pend_until_settled(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    let change = |settled: &[&str], effects: &[StoredCheckRequest]| {
        let settled = settled
            .iter()
            .map(|name| Digest::hash_bytes(name.as_bytes()))
            .collect();
        let batch = AppendBatch {
            settled,
            effects: effects.to_vec(),
            ..batch_of_note_events(&["change"])
        };
        append_batch(&*store, &s, &batch)?;
        with_session_view(&*store, &s, |tail| tail.pending_effects())
    };
    let rows = |mut rows: Vec<StoredCheckRequest>| {
        rows.sort_by_key(|row| (row.stop, row.key));
        Some(rows)
    };
    // Rows come back sorted by stop and key, and keys are digests, so the expected order is
    // computed.
    let (lint, tests) = (
        sample_pending_check_row("lint", 1),
        sample_pending_check_row("tests", 1),
    );
    let both = rows(vec![lint.clone(), tests.clone()]);
    assert_eq!(change(&[], &[lint.clone(), tests.clone()])?, both);
    assert_eq!(
        change(&[], std::slice::from_ref(&lint))?,
        both,
        "asked for twice is once"
    );
    assert_eq!(
        change(&["lint", "unknown"], &[])?,
        rows(vec![tests.clone()])
    );
    let later = sample_pending_check_row("tests", 4);
    assert_eq!(
        change(&[], std::slice::from_ref(&later))?,
        rows(vec![tests, later])
    );
    let anew = sample_pending_check_row("tests", 5);
    assert_eq!(
        change(&["tests"], std::slice::from_ref(&anew))?,
        rows(vec![anew]),
        "asked anew"
    );
    assert_eq!(change(&["tests"], &[])?, Some(vec![]));
    Ok(())
}

pub(super) fn make_test_cached_session_state(n: u8) -> CachedSessionState {
    CachedSessionState {
        core_version: u32::from(n),
        policy: Digest::hash_bytes(&[n]),
        bytes: vec![n, 0, 255],
    }
}

pub(super) fn test_newest_state_cache_wins(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    let cached = || with_session_view(&*store, &s, |tail| tail.newest_state_cache());
    assert_eq!(cached()?, Some(None));
    append_batch(
        &*store,
        &s,
        &AppendBatch {
            cache: Some(make_test_cached_session_state(1)),
            ..batch_of_note_events(&["one", "two"])
        },
    )?;
    assert_eq!(
        cached()?,
        Some(Some((EventSeq(2), make_test_cached_session_state(1))))
    );
    // A batch without a cache keeps the older one, which then lags behind the log.
    append_batch(&*store, &s, &batch_of_note_events(&["three"]))?;
    assert_eq!(
        cached()?,
        Some(Some((EventSeq(2), make_test_cached_session_state(1))))
    );
    append_batch(
        &*store,
        &s,
        &AppendBatch {
            cache: Some(make_test_cached_session_state(2)),
            ..batch_of_note_events(&["four"])
        },
    )?;
    assert_eq!(
        cached()?,
        Some(Some((EventSeq(4), make_test_cached_session_state(2))))
    );
    Ok(())
}

pub(super) fn test_reopened_store_is_same(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let s = SessionId::from("s");
    let key = Digest::hash_bytes(b"key");
    let batch = AppendBatch {
        events: vec![sample_log_event("note", "one", Some("k"))],
        effects: vec![sample_pending_check_row("tests", 1)],
        blobs: vec![b"policy".to_vec()],
        cache: Some(make_test_cached_session_state(1)),
        tasks: vec![sample_task_row("s", 1, 10)],
        ..AppendBatch::default()
    };
    let before = subject.open_store()?;
    append_batch(&*before, &s, &batch)?;
    before.put_evidence_under_key(&key, b"pass", EvidenceFinality::Final)?;
    let chain = before.verify_chain(&s)?;
    // Kept in a variable, because a memory store lives only as long as one of its clones.
    let after = subject.open_store()?;
    drop(before);

    assert_eq!(
        after.events_after(&s, EventSeq(0))?,
        [sample_raw_store_event(1, "note", "one")]
    );
    assert_eq!(after.verify_chain(&s)?, chain);
    assert_eq!(
        after.newest_task_summaries(None, 10)?,
        [sample_task_row("s", 1, 10)]
    );
    assert_eq!(
        after.read_blob(&Digest::hash_bytes(b"policy"))?,
        Some(b"policy".to_vec())
    );
    assert_eq!(
        after.read_evidence(&key)?.map(|e| e.bytes),
        Some(b"pass".to_vec())
    );
    let tail = with_session_view(&*after, &s, |tail| {
        Ok((
            tail.find_seq_by_idempotency_key("k")?,
            tail.newest_state_cache()?,
            tail.pending_effects()?,
        ))
    })?;
    assert_eq!(
        tail,
        Some((
            Some(EventSeq(1)),
            Some((EventSeq(1), make_test_cached_session_state(1))),
            vec![sample_pending_check_row("tests", 1)]
        ))
    );
    Ok(())
}

pub(super) fn test_writers_take_turns(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    const HANDLES: u64 = 4;
    const EACH: u64 = 25;
    let s = SessionId::from("s");
    let handles: Vec<_> = (0..HANDLES)
        .map(|_| subject.open_store())
        .collect::<Result<_, _>>()?;
    // Each appends what it saw. A lost turn would show as a number that occurs twice.
    let turn = |store: &dyn Store, durable: bool| {
        store.transact_on_session(&s, &mut |tail| {
            let seen = tail.last_seq().0.to_string();
            Ok(Some(AppendBatch {
                durable,
                ..batch_of_note_events(&[&seen])
            }))
        })
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = handles
            .iter()
            .map(|store| {
                scope.spawn(|| (0..EACH).try_for_each(|n| turn(&**store, n % 5 == 0).map(|_| ())))
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(())))
            .collect()
    });
    results.into_iter().collect::<Result<Vec<()>, _>>()?;
    let store = subject.open_store()?;
    let expected: Vec<_> = (1..=HANDLES * EACH)
        .map(|seq| sample_raw_store_event(seq, "note", &(seq - 1).to_string()))
        .collect();
    assert_eq!(store.events_after(&s, EventSeq(0))?, expected);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(
            whole,
            HashChainStatus::Whole {
                last: EventSeq(100),
                ..
            }
        ),
        "{whole:?}"
    );
    Ok(())
}

/// A writer appends two events at a time, with a key and a cache. A concurrent reader must see all
/// that belongs together or nothing of it.
pub(super) fn test_read_is_one_snapshot(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    const BATCHES: u64 = 100;
    let s = SessionId::from("s");
    let (writer, reader) = (subject.open_store()?, subject.open_store()?);
    let write = |batch: u64| {
        let key = format!("key {}", 2 * batch + 2);
        let batch = AppendBatch {
            events: vec![
                sample_log_event("note", "first", None),
                sample_log_event("note", "last", Some(&key)),
            ],
            cache: Some(make_test_cached_session_state(1)),
            ..AppendBatch::default()
        };
        append_batch(&*writer, &s, &batch).map(|_| ())
    };
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| (0..BATCHES).try_for_each(write));
        loop {
            // Read before the snapshot, so that the last round sees everything that was written.
            let is_over = writing.is_finished();
            let seen = with_session_view(&*reader, &s, |tail| {
                let last = tail.last_seq();
                let events = tail.events_after(EventSeq(0))?.len() as u64;
                let newest = tail.find_seq_by_idempotency_key(&format!("key {last}"))?;
                let next = tail.find_seq_by_idempotency_key(&format!("key {}", last.0 + 2))?;
                let cached = tail.newest_state_cache()?.map(|(at, _)| at);
                Ok((last, events, newest, next, cached))
            })?;
            let (last, events, newest, next, cached) = seen.unwrap_or_default();
            let found = (events, newest.unwrap_or_default(), next);
            assert_eq!(found, (last.0, last, None));
            // An odd position would be half a batch.
            assert_eq!((last.0 % 2, cached.unwrap_or_default()), (0, last));
            if is_over {
                assert_eq!(last, EventSeq(2 * BATCHES));
                return writing.join().unwrap_or(Ok(()));
            }
        }
    })
}

pub(super) fn test_chain_shows_corruption(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s, t) = (
        subject.open_store()?,
        SessionId::from("s"),
        SessionId::from("t"),
    );
    for session in [&s, &t] {
        append_batch(
            &*store,
            session,
            &batch_of_note_events(&["one", "two", "three", "four"]),
        )?;
    }
    subject.tamper_with_event_bytes(&s, EventSeq(3))?;
    assert_eq!(
        store.verify_chain(&s)?,
        HashChainStatus::Broken { at: EventSeq(3) }
    );
    let whole = store.verify_chain(&t)?;
    assert!(
        matches!(
            whole,
            HashChainStatus::Whole {
                last: EventSeq(4),
                ..
            }
        ),
        "{whole:?}"
    );
    // The first broken row is reported, not the newest.
    subject.tamper_with_event_bytes(&s, EventSeq(1))?;
    assert_eq!(
        store.verify_chain(&s)?,
        HashChainStatus::Broken { at: EventSeq(1) }
    );
    Ok(())
}
