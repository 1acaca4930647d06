//! Conformance of act numbers: one numbering for all roots, and the sessions that an act concerns.

use checkrein_core::ids::SessionId;
use checkrein_core::input::ActReach;

use super::{StoreUnderTest, append_batch, batch_of_note_events};
use crate::{AppendBatch, PruneSelection, Store, StoreError, ToolAct};

fn event_batch_with_act(root: &str, reach: ActReach) -> AppendBatch {
    AppendBatch {
        act: Some(ToolAct {
            root: root.to_owned(),
            reach,
        }),
        ..batch_of_note_events(&["act"])
    }
}

/// Returns all acts counted, the newest that concerns this session, and the newest that voids
/// verdicts with declared inputs.
fn act_count_and_newest_numbers(
    store: &dyn Store,
    root: &str,
    session: Option<&SessionId>,
) -> Result<(u64, u64, u64), StoreError> {
    let count = store.act_numbers_in_root_for_session(root, session)?;
    Ok((count.total, count.newest.any, count.newest.declared))
}

pub(super) fn test_store_counts_tool_acts(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let store = subject.open_store()?;
    let store = &*store;
    let (one, two) = (SessionId::from("one"), SessionId::from("two"));
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (0, 0, 0)
    );
    append_batch(store, &one, &event_batch_with_act("/a", ActReach::Unknown))?;
    // An act of unknown reach concerns only its own session.
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (1, 1, 0)
    );
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&two))?,
        (1, 0, 0)
    );
    assert_eq!(act_count_and_newest_numbers(store, "/a", None)?, (1, 0, 0));
    append_batch(
        store,
        &two,
        &event_batch_with_act("/a", ActReach::Elsewhere),
    )?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (2, 2, 0)
    );
    append_batch(store, &two, &event_batch_with_act("/a", ActReach::Outside))?;
    append_batch(store, &one, &event_batch_with_act("/b", ActReach::Outside))?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (4, 3, 3)
    );
    assert_eq!(
        act_count_and_newest_numbers(store, "/b", Some(&two))?,
        (4, 4, 4)
    );
    // The same act again has a new number.
    append_batch(store, &one, &event_batch_with_act("/a", ActReach::Unknown))?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (5, 5, 3)
    );
    // A batch without one counts nothing.
    append_batch(store, &one, &batch_of_note_events(&["look"]))?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (5, 5, 3)
    );

    // An act without events counts like any other, even of an unknown session.
    let act = |reach| ToolAct {
        root: "/a".to_owned(),
        reach,
    };
    store.count_act_without_event(&one, &act(ActReach::Unknown))?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&two))?,
        (6, 3, 3)
    );
    store.count_act_without_event(&SessionId::from("three"), &act(ActReach::Outside))?;
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&one))?,
        (7, 7, 7)
    );

    // Acts outlive their session, and no number is given twice.
    let gone = PruneSelection {
        sessions: vec![one.clone(), two.clone()],
        objects: Vec::new(),
    };
    assert!(store.delete_sessions_if_unchanged(&store.store_census()?, &gone)?);
    assert_eq!(
        act_count_and_newest_numbers(store, "/a", Some(&two))?,
        (7, 7, 7)
    );
    store.count_act_without_event(&two, &act(ActReach::Unknown))?;
    assert_eq!(act_count_and_newest_numbers(store, "/a", None)?, (8, 7, 7));
    Ok(())
}
