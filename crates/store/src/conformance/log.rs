//! What a session's log must do: order, keys, chain, effects, cache; one log for all handles.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId, VerifierName};

use super::kept::task;
use super::{Subject, append, event, events, look, raw};
use crate::{Batch, Chain, EffectRow, NewEvent, RawEvent, Standing, StateCache, Store, StoreError};

pub(super) fn append_and_read(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.events(&s, EventSeq(0))?, []);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(
            whole,
            Chain::Whole {
                last: EventSeq(0),
                ..
            }
        ),
        "{whole:?}"
    );

    let first = append(&*store, &s, &events(&["one", "two"]))?;
    assert_eq!(
        first.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(2)))
    );
    let odd = NewEvent {
        kind: "of_a_newer_version",
        payload: vec![0, 255, b'\''],
        key: None,
    };
    let second = append(
        &*store,
        &s,
        &Batch {
            events: vec![odd.clone()],
            durable: true,
            ..Batch::default()
        },
    )?;
    assert_eq!(
        second.map(|a| (a.after, a.last)),
        Some((EventSeq(2), EventSeq(3)))
    );

    let odd = RawEvent {
        seq: EventSeq(3),
        kind: odd.kind.to_owned(),
        payload: odd.payload,
    };
    let all = [raw(1, "note", "one"), raw(2, "note", "two"), odd];
    for (after, expected) in [
        (0, all.as_slice()),
        (2, all.as_slice().get(2..).unwrap_or(&[])),
    ] {
        assert_eq!(store.events(&s, EventSeq(after))?, expected);
        assert_eq!(
            look(&*store, &s, |tail| tail.events_after(EventSeq(after)))?,
            Some(expected.into())
        );
    }
    assert_eq!(store.events(&s, EventSeq(3))?, []);
    assert_eq!(
        look(&*store, &s, |tail| Ok(tail.last()))?,
        Some(EventSeq(3))
    );
    let head = second.map(|a| Chain::Whole {
        last: a.last,
        head: a.head,
    });
    assert_eq!(Some(store.verify_chain(&s)?), head);
    Ok(())
}

pub(super) fn no_batch_changes_nothing(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.transact(&s, &mut |_| Ok(None))?, None);
    let empty = append(&*store, &s, &Batch::default())?;
    assert_eq!(
        empty.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(0)))
    );
    let next = append(&*store, &s, &events(&["one"]))?;
    assert_eq!(
        next.map(|a| (a.after, a.last)),
        Some((EventSeq(0), EventSeq(1)))
    );
    let again = append(&*store, &s, &Batch::default())?;
    assert_eq!(again.map(|a| a.head), next.map(|a| a.head));
    Ok(())
}

pub(super) fn failed_work_changes_nothing(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    append(&*store, &s, &events(&["one"]))?;
    let failed = store.transact(&s, &mut |_| Err(StoreError::work("no")));
    assert!(matches!(&failed, Err(StoreError::Work(why)) if why.to_string() == "no"));
    assert_eq!(store.events(&s, EventSeq(0))?, [raw(1, "note", "one")]);
    append(&*store, &s, &events(&["two"]))?;
    assert_eq!(store.events(&s, EventSeq(1))?, [raw(2, "note", "two")]);
    Ok(())
}

pub(super) fn a_key_counts_once(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    let keyed = |payload: &str, key: &str| event("note", payload, Some(key));
    let batch = Batch {
        events: vec![keyed("one", "k1"), keyed("two", "k2")],
        ..Batch::default()
    };
    append(&*store, &s, &batch)?;
    for (key, expected) in [
        ("k1", Some(EventSeq(1))),
        ("k2", Some(EventSeq(2))),
        ("k3", None),
        ("", None),
    ] {
        assert_eq!(
            look(&*store, &s, |tail| tail.find_key(key))?,
            Some(expected),
            "{key}"
        );
    }

    // The second key is new, the first is not: neither its event nor anything else is written.
    let refused = Batch {
        events: vec![keyed("three", "k3"), keyed("again", "k2")],
        blobs: vec![b"refused".to_vec()],
        durable: true,
        ..Batch::default()
    };
    let within = Batch {
        events: vec![keyed("a", "k4"), keyed("b", "k4")],
        ..Batch::default()
    };
    for (batch, key, at) in [(refused, "k2", EventSeq(2)), (within, "k4", EventSeq(3))] {
        match append(&*store, &s, &batch) {
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
            look(&*store, &s, |tail| Ok(tail.last()))?,
            Some(EventSeq(2))
        );
    }
    assert_eq!(store.blob(&Digest::hash_bytes(b"refused"))?, None);
    // A key is the session's own.
    append(&*store, &SessionId::from("t"), &batch)?;
    Ok(())
}

pub(super) fn sessions_are_apart(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, t) = (subject.open()?, SessionId::from("s"), SessionId::from("t"));
    let rich = Batch {
        events: vec![event("note", "one", Some("k"))],
        effects: vec![effect("tests", 1)],
        cache: Some(cache(1)),
        ..Batch::default()
    };
    let in_s = append(&*store, &s, &rich)?;
    let empty = look(&*store, &t, |tail| {
        let nothing = (tail.last(), tail.find_key("k")?, tail.cache()?);
        Ok((nothing, tail.pending()?, tail.events_after(EventSeq(0))?))
    })?;
    assert_eq!(empty, Some(((EventSeq(0), None, None), vec![], vec![])));

    append(&*store, &t, &events(&["other"]))?;
    append(
        &*store,
        &t,
        &Batch {
            settled: vec![effect("tests", 1).key],
            ..Batch::default()
        },
    )?;
    let here = look(&*store, &s, |tail| Ok((tail.last(), tail.pending()?)))?;
    assert_eq!(here, Some((EventSeq(1), vec![effect("tests", 1)])));
    // The same events in another session are another chain.
    let in_u = append(&*store, &SessionId::from("u"), &rich)?;
    assert_ne!(in_s.map(|a| a.head), in_u.map(|a| a.head));
    Ok(())
}

pub(super) fn effect(verifier: &str, stop: u64) -> EffectRow {
    let key = Digest::hash_bytes(verifier.as_bytes());
    EffectRow {
        key,
        verifier: VerifierName::from(verifier),
        stop: EventSeq(stop),
    }
}

pub(super) fn effects_until_settled(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    let change = |settled: &[&str], effects: &[EffectRow]| {
        let settled = settled
            .iter()
            .map(|name| Digest::hash_bytes(name.as_bytes()))
            .collect();
        let batch = Batch {
            settled,
            effects: effects.to_vec(),
            ..events(&["change"])
        };
        append(&*store, &s, &batch)?;
        look(&*store, &s, |tail| tail.pending())
    };
    let rows = |mut rows: Vec<EffectRow>| {
        rows.sort_by_key(|row| (row.stop, row.key));
        Some(rows)
    };
    let (lint, tests) = (effect("lint", 1), effect("tests", 1));
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
    let later = effect("tests", 4);
    assert_eq!(
        change(&[], std::slice::from_ref(&later))?,
        rows(vec![tests, later])
    );
    let anew = effect("tests", 5);
    assert_eq!(
        change(&["tests"], std::slice::from_ref(&anew))?,
        rows(vec![anew]),
        "asked anew"
    );
    assert_eq!(change(&["tests"], &[])?, Some(vec![]));
    Ok(())
}

pub(super) fn cache(n: u8) -> StateCache {
    StateCache {
        core_version: u32::from(n),
        policy: Digest::hash_bytes(&[n]),
        bytes: vec![n, 0, 255],
    }
}

pub(super) fn cache_is_the_newest(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    let cached = || look(&*store, &s, |tail| tail.cache());
    assert_eq!(cached()?, Some(None));
    append(
        &*store,
        &s,
        &Batch {
            cache: Some(cache(1)),
            ..events(&["one", "two"])
        },
    )?;
    assert_eq!(cached()?, Some(Some((EventSeq(2), cache(1)))));
    append(&*store, &s, &events(&["three"]))?;
    assert_eq!(cached()?, Some(Some((EventSeq(2), cache(1)))));
    append(
        &*store,
        &s,
        &Batch {
            cache: Some(cache(2)),
            ..events(&["four"])
        },
    )?;
    assert_eq!(cached()?, Some(Some((EventSeq(4), cache(2)))));
    Ok(())
}

pub(super) fn reopened_is_the_same(subject: &dyn Subject) -> Result<(), StoreError> {
    let s = SessionId::from("s");
    let key = Digest::hash_bytes(b"key");
    let batch = Batch {
        events: vec![event("note", "one", Some("k"))],
        effects: vec![effect("tests", 1)],
        blobs: vec![b"policy".to_vec()],
        cache: Some(cache(1)),
        tasks: vec![task("s", 1, 10)],
        ..Batch::default()
    };
    let before = subject.open()?;
    append(&*before, &s, &batch)?;
    before.put_evidence(&key, b"pass", Standing::Final)?;
    let chain = before.verify_chain(&s)?;
    // Kept in a variable: a store in memory lives as long as somebody has it.
    let after = subject.open()?;
    drop(before);

    assert_eq!(after.events(&s, EventSeq(0))?, [raw(1, "note", "one")]);
    assert_eq!(after.verify_chain(&s)?, chain);
    assert_eq!(after.tasks(None, 10)?, [task("s", 1, 10)]);
    assert_eq!(
        after.blob(&Digest::hash_bytes(b"policy"))?,
        Some(b"policy".to_vec())
    );
    assert_eq!(
        after.evidence(&key)?.map(|e| e.bytes),
        Some(b"pass".to_vec())
    );
    let tail = look(&*after, &s, |tail| {
        Ok((tail.find_key("k")?, tail.cache()?, tail.pending()?))
    })?;
    assert_eq!(
        tail,
        Some((
            Some(EventSeq(1)),
            Some((EventSeq(1), cache(1))),
            vec![effect("tests", 1)]
        ))
    );
    Ok(())
}

pub(super) fn handles_take_turns(subject: &dyn Subject) -> Result<(), StoreError> {
    const HANDLES: u64 = 4;
    const EACH: u64 = 25;
    let s = SessionId::from("s");
    let handles: Vec<_> = (0..HANDLES)
        .map(|_| subject.open())
        .collect::<Result<_, _>>()?;
    // Each appends what it saw: a lost turn would show as a number that comes twice.
    let turn = |store: &dyn Store, durable: bool| {
        store.transact(&s, &mut |tail| {
            let seen = tail.last().0.to_string();
            Ok(Some(Batch {
                durable,
                ..events(&[&seen])
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
    let store = subject.open()?;
    let expected: Vec<_> = (1..=HANDLES * EACH)
        .map(|seq| raw(seq, "note", &(seq - 1).to_string()))
        .collect();
    assert_eq!(store.events(&s, EventSeq(0))?, expected);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(
            whole,
            Chain::Whole {
                last: EventSeq(100),
                ..
            }
        ),
        "{whole:?}"
    );
    Ok(())
}

/// A writer appends two events, with a key and a cache, at a time. Whoever reads meanwhile sees all that
/// belongs together or nothing of it.
pub(super) fn a_reading_is_of_one_moment(subject: &dyn Subject) -> Result<(), StoreError> {
    const BATCHES: u64 = 100;
    let s = SessionId::from("s");
    let (writer, reader) = (subject.open()?, subject.open()?);
    let write = |batch: u64| {
        let key = format!("key {}", 2 * batch + 2);
        let batch = Batch {
            events: vec![
                event("note", "first", None),
                event("note", "last", Some(&key)),
            ],
            cache: Some(cache(1)),
            ..Batch::default()
        };
        append(&*writer, &s, &batch).map(|_| ())
    };
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| (0..BATCHES).try_for_each(write));
        loop {
            let is_over = writing.is_finished();
            let seen = look(&*reader, &s, |tail| {
                let last = tail.last();
                let events = tail.events_after(EventSeq(0))?.len() as u64;
                let newest = tail.find_key(&format!("key {last}"))?;
                let next = tail.find_key(&format!("key {}", last.0 + 2))?;
                let cached = tail.cache()?.map(|(at, _)| at);
                Ok((last, events, newest, next, cached))
            })?;
            let (last, events, newest, next, cached) = seen.unwrap_or_default();
            let found = (events, newest.unwrap_or_default(), next);
            assert_eq!(found, (last.0, last, None));
            assert_eq!((last.0 % 2, cached.unwrap_or_default()), (0, last));
            if is_over {
                assert_eq!(last, EventSeq(2 * BATCHES));
                return writing.join().unwrap_or(Ok(()));
            }
        }
    })
}

pub(super) fn chain_shows_damage(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, t) = (subject.open()?, SessionId::from("s"), SessionId::from("t"));
    for session in [&s, &t] {
        append(&*store, session, &events(&["one", "two", "three", "four"]))?;
    }
    subject.damage(&s, EventSeq(3))?;
    assert_eq!(store.verify_chain(&s)?, Chain::Broken { at: EventSeq(3) });
    let whole = store.verify_chain(&t)?;
    assert!(
        matches!(
            whole,
            Chain::Whole {
                last: EventSeq(4),
                ..
            }
        ),
        "{whole:?}"
    );
    subject.damage(&s, EventSeq(1))?;
    assert_eq!(store.verify_chain(&s)?, Chain::Broken { at: EventSeq(1) });
    Ok(())
}
