//! Conformance of approvals: what people were asked, and their answers.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, SessionId, TaskId, UnixMillis};
use checkrein_core::input::PersonAnswer;

use super::{StoreUnderTest, append_batch, batch_of_note_events, with_session_view};
use crate::{
    AppendBatch, ApprovalAnswer, ApprovalStatus, ApprovalSubject, PruneSelection, Store,
    StoreError, StoredApprovalRequest,
};

pub(super) fn approval_for_store_test(
    session: &str,
    what: &str,
    nth: u32,
    at: u64,
) -> StoredApprovalRequest {
    StoredApprovalRequest {
        id: format!("ap-{what}{nth}"),
        key: Digest::hash_bytes(what.as_bytes()),
        nth,
        session: SessionId::from(session),
        task: Some(TaskId(1)),
        agent: AgentName::from("codex"),
        root: "/repo".to_owned(),
        about: ApprovalSubject::Call {
            tool: "Bash".to_owned(),
            text: what.to_owned(),
            details: None,
        },
        why: "deletes files".to_owned(),
        at: UnixMillis(at),
        until: UnixMillis(at + 100),
        answer: None,
        used_at: None,
        expiry_reported_at: None,
        notifies: false,
        notified_at: None,
        notification_error: None,
    }
}

fn approval_with_answer(row: &StoredApprovalRequest, approved: bool) -> StoredApprovalRequest {
    StoredApprovalRequest {
        answer: Some(ApprovalAnswer {
            at: UnixMillis(row.at.0 + 1),
            answer: PersonAnswer {
                approved,
                by: "ada".to_owned(),
                reason: Some("fine".to_owned()),
            },
        }),
        ..row.clone()
    }
}

fn append_approvals_to_store(
    store: &dyn Store,
    session: &SessionId,
    rows: &[StoredApprovalRequest],
) -> Result<(), StoreError> {
    let batch = AppendBatch {
        approvals: rows.to_vec(),
        durable: true,
        ..AppendBatch::default()
    };
    append_batch(store, session, &batch).map(drop)
}

/// A request is found by its subject from every session, and removed with its own session.
pub(super) fn test_newest_approval_counts(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s, other) = (subject.open_store()?, "s".into(), SessionId::from("other"));
    assert_eq!(store.list_approvals()?, []);
    let (rm, again) = (
        approval_for_store_test("s", "rm", 0, 10),
        approval_for_store_test("s", "rm", 1, 30),
    );
    let push = approval_for_store_test("other", "push", 0, 20);
    assert_eq!(
        with_session_view(&*store, &s, |tail| tail
            .newest_approval_request_for_key(&rm.key))?,
        Some(None)
    );
    append_batch(&*store, &s, &batch_of_note_events(&["one"]))?;
    append_approvals_to_store(&*store, &s, &[rm.clone(), again.clone()])?;
    append_batch(&*store, &other, &batch_of_note_events(&["one"]))?;
    append_approvals_to_store(&*store, &other, std::slice::from_ref(&push))?;

    let all = [again.clone(), push.clone(), rm.clone()];
    assert_eq!(store.list_approvals()?, all);
    for session in [&s, &other, &SessionId::from("third")] {
        let found = with_session_view(&*store, session, |tail| {
            tail.newest_approval_request_for_key(&rm.key)
        })?;
        assert_eq!(found, Some(Some(again.clone())));
    }
    drop(store);
    let store = subject.open_store()?;
    assert_eq!(store.list_approvals()?, all);

    let gone = PruneSelection {
        sessions: vec![s],
        objects: Vec::new(),
    };
    assert!(store.delete_sessions_if_unchanged(&store.store_census()?, &gone)?);
    assert_eq!(store.list_approvals()?, [push]);
    Ok(())
}

pub(super) fn test_approval_answer_is_final(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, "s".into());
    let row = approval_for_store_test("s", "rm", 0, 10);
    let yes = approval_with_answer(&row, true);
    let used = StoredApprovalRequest {
        used_at: Some(UnixMillis(12)),
        ..yes.clone()
    };
    // Each pair writes a row and names the row that must then be stored. An older copy must never
    // replace an answer.
    for (put, stays) in [
        (&row, &row),
        (&yes, &yes),
        (&row, &yes),
        (&approval_with_answer(&row, false), &yes),
        (&used, &used),
        (&yes, &used),
    ] {
        append_approvals_to_store(&*store, &s, std::slice::from_ref(put))?;
        assert_eq!(store.list_approvals()?, std::slice::from_ref(stays));
    }
    let stands = |row: &StoredApprovalRequest, at: u64| row.approval_status_at(UnixMillis(at));
    assert_eq!(stands(&row, 109), ApprovalStatus::Asked);
    assert_eq!(stands(&row, 110), ApprovalStatus::Expired);
    assert_eq!(stands(&yes, 109), ApprovalStatus::Approved);
    assert_eq!(stands(&yes, 110), ApprovalStatus::Expired);
    assert_eq!(
        stands(&approval_with_answer(&row, false), 109),
        ApprovalStatus::Denied
    );
    assert_eq!(
        stands(&approval_with_answer(&row, false), 110),
        ApprovalStatus::Expired
    );
    assert_eq!(stands(&used, 110), ApprovalStatus::Used);
    // Expiry does not count as use, and is not taken back.
    let ran_out = StoredApprovalRequest {
        expiry_reported_at: Some(UnixMillis(111)),
        ..approval_for_store_test("s", "push", 0, 10)
    };
    for put in [&ran_out, &approval_for_store_test("s", "push", 0, 10)] {
        append_approvals_to_store(&*store, &s, std::slice::from_ref(put))?;
        assert!(store.list_approvals()?.contains(&ran_out));
    }
    assert_eq!(stands(&ran_out, 50), ApprovalStatus::Expired);
    let noted_as_used = StoredApprovalRequest {
        used_at: Some(UnixMillis(111)),
        ..row.clone()
    };
    assert_eq!(stands(&noted_as_used, 111), ApprovalStatus::Expired);
    Ok(())
}
