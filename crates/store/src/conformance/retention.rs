//! What goes, and what has to stay.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{EventSeq, SessionId};

use super::kept::task;
use super::log::{cache, effect};
use super::{Subject, append, event, events, look};
use crate::{Batch, Chain, Forget, Standing, Store, StoreError};

/// Two sessions with all that a session has, evidence and a blob.
fn furnished(store: &dyn Store) -> Result<(SessionId, SessionId, Digest, Digest), StoreError> {
    let (old, new) = (SessionId::from("old"), SessionId::from("new"));
    for session in [&old, &new] {
        let batch = Batch {
            events: vec![event("note", "1", Some("key")), event("note", "2", None)],
            effects: vec![effect("tests", 1)],
            cache: Some(cache(1)),
            tasks: vec![task(session.as_str(), 1, 5)],
            ..Batch::default()
        };
        append(store, session, &batch)?;
    }
    let key = Digest::hash_bytes(b"key");
    store.put_evidence(&key, b"evidence", Standing::Final)?;
    Ok((old, new, key, store.put_blob(b"blob")?))
}

pub(super) fn sessions_go_as_a_whole(subject: &dyn Subject) -> Result<(), StoreError> {
    let store = subject.open()?;
    assert_eq!(store.census()?.sessions, []);
    let (old, new, key, blob) = furnished(&*store)?;
    let census = store.census()?;
    let names: Vec<_> = census
        .sessions
        .iter()
        .map(|(name, last, _)| (name, *last))
        .collect();
    assert_eq!(names, [(&new, EventSeq(2)), (&old, EventSeq(2))]);
    assert!(census.sessions.iter().all(|(_, _, bytes)| *bytes >= 2));
    let mut kept = vec![(key, 8), (blob, 4)];
    kept.sort();
    assert_eq!(census.kept, kept);
    assert!(census.bytes >= 16);

    let untouched = store.events(&new, EventSeq(0))?;
    let gone = Forget {
        sessions: vec![old.clone(), SessionId::from("never there")],
        kept: vec![key],
    };
    assert!(store.forget(&census, &gone)?);
    store.compact()?;
    assert_eq!(store.events(&old, EventSeq(0))?, []);
    assert_eq!(store.tasks(Some(&old), 9)?, []);
    assert_eq!(store.evidence(&key)?, None);
    assert_eq!(store.blob(&blob)?.as_deref(), Some(&b"blob"[..]));
    assert_eq!(store.events(&new, EventSeq(0))?, untouched);
    assert_eq!(store.tasks(None, 9)?.len(), 1);
    assert_eq!(
        look(&*store, &new, |tail| tail.pending())?.map(|rows| rows.len()),
        Some(1)
    );
    assert!(matches!(
        store.verify_chain(&new)?,
        Chain::Whole {
            last: EventSeq(2),
            ..
        }
    ));
    let left = store.census()?;
    assert_eq!((left.sessions.len(), left.kept), (1, vec![(blob, 4)]));

    // The name is free: what comes under it now begins at the beginning.
    look(&*store, &old, |tail| {
        assert_eq!((tail.last(), tail.pending()?.len()), (EventSeq(0), 0));
        assert_eq!((tail.cache()?, tail.find_key("key")?), (None, None));
        Ok(())
    })?;
    let again = append(&*store, &old, &events(&["anew"]))?;
    assert_eq!(again.map(|a| a.last), Some(EventSeq(1)));
    assert!(matches!(
        store.verify_chain(&old)?,
        Chain::Whole {
            last: EventSeq(1),
            ..
        }
    ));
    Ok(())
}

pub(super) fn what_moved_on_stays(subject: &dyn Subject) -> Result<(), StoreError> {
    let store = subject.open()?;
    let (old, new, key, blob) = furnished(&*store)?;
    let gone = Forget {
        sessions: vec![old.clone()],
        kept: vec![key, blob],
    };
    let moves: [(&SessionId, &str); 3] = [
        (&old, "it"),
        (&new, "another"),
        (&SessionId::from("third"), "a new one"),
    ];
    for (session, what) in moves {
        let census = store.census()?;
        append(&*subject.open()?, session, &events(&["more"]))?;
        let before = store.census()?;
        assert!(!store.forget(&census, &gone)?, "{what} moved on");
        assert_eq!(store.census()?, before, "{what} moved on");
    }
    assert!(store.forget(&store.census()?, &gone)?);
    assert_eq!(store.events(&old, EventSeq(0))?, []);
    Ok(())
}
