//! Acts: one row of numbers, and who they concern.

use checkrein_core::ids::SessionId;
use checkrein_core::input::ActReach;

use super::{Subject, append, events};
use crate::{Act, Batch, Forget, Store, StoreError};

fn act(root: &str, reach: ActReach) -> Batch {
    Batch {
        act: Some(Act {
            root: root.to_owned(),
            reach,
        }),
        ..events(&["act"])
    }
}

/// All counted, the newest that concerns this session, and the newest whatever is declared.
fn count(
    store: &dyn Store,
    root: &str,
    session: Option<&SessionId>,
) -> Result<(u64, u64, u64), StoreError> {
    let count = store.acts(root, session)?;
    Ok((count.counted, count.newest.any, count.newest.declared))
}

pub(super) fn acts_are_counted(subject: &dyn Subject) -> Result<(), StoreError> {
    let store = subject.open()?;
    let store = &*store;
    let (one, two) = (SessionId::from("one"), SessionId::from("two"));
    assert_eq!(count(store, "/a", Some(&one))?, (0, 0, 0));
    append(store, &one, &act("/a", ActReach::Unknown))?;
    // Nobody can say how far it reaches: it concerns its own session.
    assert_eq!(count(store, "/a", Some(&one))?, (1, 1, 0));
    assert_eq!(count(store, "/a", Some(&two))?, (1, 0, 0));
    assert_eq!(count(store, "/a", None)?, (1, 0, 0));
    append(store, &two, &act("/a", ActReach::Elsewhere))?;
    assert_eq!(count(store, "/a", Some(&one))?, (2, 2, 0));
    append(store, &two, &act("/a", ActReach::Outside))?;
    append(store, &one, &act("/b", ActReach::Outside))?;
    assert_eq!(count(store, "/a", Some(&one))?, (4, 3, 3));
    assert_eq!(count(store, "/b", Some(&two))?, (4, 4, 4));
    // The same again is another act.
    append(store, &one, &act("/a", ActReach::Unknown))?;
    assert_eq!(count(store, "/a", Some(&one))?, (5, 5, 3));
    // A batch without one counts nothing.
    append(store, &one, &events(&["look"]))?;
    assert_eq!(count(store, "/a", Some(&one))?, (5, 5, 3));

    // One without events counts like any other, of a session that nobody knows as well.
    let act = |reach| Act {
        root: "/a".to_owned(),
        reach,
    };
    store.count_act(&one, &act(ActReach::Unknown))?;
    assert_eq!(count(store, "/a", Some(&two))?, (6, 3, 3));
    store.count_act(&SessionId::from("three"), &act(ActReach::Outside))?;
    assert_eq!(count(store, "/a", Some(&one))?, (7, 7, 7));

    // What a session did outlives it, and no number is given twice.
    let gone = Forget {
        sessions: vec![one.clone(), two.clone()],
        kept: Vec::new(),
    };
    assert!(store.forget(&store.census()?, &gone)?);
    assert_eq!(count(store, "/a", Some(&two))?, (7, 7, 7));
    store.count_act(&two, &act(ActReach::Unknown))?;
    assert_eq!(count(store, "/a", None)?, (8, 7, 7));
    Ok(())
}
