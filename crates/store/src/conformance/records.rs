//! Conformance of what is kept beside logs: summary rows, blobs, evidence, messages, claims.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, ScopeId, SessionId, TaskId, UnixMillis};

use super::{StoreUnderTest, append_batch, batch_of_note_events, with_session_view};
use crate::{
    AppendBatch, EvidenceBytesWithFinality, EvidenceFinality, EvidencePutOutcome, PruneSelection,
    ScopeRow, StoreError, TaskRow,
};

pub(super) fn sample_task_row(session: &str, ordinal: u32, opened_at: u64) -> TaskRow {
    TaskRow {
        session: SessionId::from(session),
        task: TaskId(ordinal),
        agent: AgentName::from("claude-code"),
        level: None,
        opened_at: UnixMillis(opened_at),
        ended_at: None,
        reason: None,
        detail: None,
        native_reason: None,
        stops: 0,
        continues: 0,
        tool_calls: 0,
        rounds: None,
        output_tokens: None,
        policy: Digest::hash_bytes(b"policy"),
        goal: None,
        root: "/repo".to_owned(),
    }
}

pub(super) fn test_task_rows_newest_first(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s, t) = (
        subject.open_store()?,
        SessionId::from("s"),
        SessionId::from("t"),
    );
    assert_eq!(store.newest_task_summaries(None, 10)?, []);
    // A row belongs to the transaction's session, whatever it says.
    let rows = vec![sample_task_row("wrong", 1, 10), sample_task_row("s", 2, 30)];
    append_batch(
        &*store,
        &s,
        &AppendBatch {
            tasks: rows,
            ..batch_of_note_events(&["one"])
        },
    )?;
    append_batch(
        &*store,
        &t,
        &AppendBatch {
            tasks: vec![sample_task_row("t", 1, 20)],
            ..batch_of_note_events(&["one"])
        },
    )?;
    let ended = TaskRow {
        level: Some("L1".to_owned()),
        ended_at: Some(UnixMillis(40)),
        reason: Some("gave_up".to_owned()),
        detail: Some("same_failures".to_owned()),
        native_reason: Some("it's over".to_owned()),
        stops: 3,
        continues: 2,
        tool_calls: 1_000_000_000_000,
        rounds: Some(0),
        output_tokens: Some(5_000_000_000),
        goal: Some("make it work".to_owned()),
        ..sample_task_row("s", 1, 10)
    };
    append_batch(
        &*store,
        &s,
        &AppendBatch {
            tasks: vec![ended.clone()],
            ..batch_of_note_events(&["two"])
        },
    )?;

    let (s2, t1) = (sample_task_row("s", 2, 30), sample_task_row("t", 1, 20));
    assert_eq!(
        store.newest_task_summaries(None, 10)?,
        [s2.clone(), t1.clone(), ended.clone()]
    );
    assert_eq!(store.newest_task_summaries(None, 2)?, [s2.clone(), t1]);
    assert_eq!(store.newest_task_summaries(Some(&s), 10)?, [s2, ended]);
    assert_eq!(
        store.newest_task_summaries(Some(&SessionId::from("u")), 10)?,
        []
    );
    Ok(())
}

pub(super) fn test_stored_scope_rows_found(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s, t) = (
        subject.open_store()?,
        SessionId::from("s"),
        SessionId::from("t"),
    );
    let row = |scope: &str, cursor: &str, halted_in| ScopeRow {
        scope: ScopeId::new(scope),
        cursor: cursor.to_owned(),
        halted_in,
    };
    let put = |session, scopes: &[ScopeRow]| {
        let batch = AppendBatch {
            scopes: scopes.to_vec(),
            ..batch_of_note_events(&["read"])
        };
        append_batch(&*store, session, &batch)
    };
    let find = |session, scope: &str| {
        let found = with_session_view(&*store, session, |tail| {
            tail.read_scope_row(&ScopeId::new(scope))
        })?;
        Ok::<_, StoreError>(found.flatten())
    };
    assert_eq!(find(&s, "a")?, None);
    // More scopes than the state keeps: the store must keep a row of each.
    let many: Vec<ScopeRow> = (0..100)
        .map(|at| row(&at.to_string(), "7:m", None))
        .collect();
    put(&s, &many)?;
    put(&s, &[row("", "1", None), row("a", "2", None)])?;
    // An empty cursor must replace the old one, too.
    put(&s, &[row("a", "", Some(TaskId(3)))])?;
    put(&t, &[row("a", "4", Some(TaskId(1)))])?;
    assert_eq!(find(&s, "")?, Some(row("", "1", None)));
    assert_eq!(
        find(&s, "a")?,
        Some(row("a", "", Some(TaskId(3)))),
        "the whole row is the newest"
    );
    assert_eq!(find(&t, "a")?, Some(row("a", "4", Some(TaskId(1)))));
    for known in &many {
        assert_eq!(find(&s, known.scope.as_str())?.as_ref(), Some(known));
    }
    assert_eq!(find(&t, "7")?, None, "sessions are apart");

    let gone = PruneSelection {
        sessions: vec![s.clone()],
        objects: Vec::new(),
    };
    assert!(store.delete_sessions_if_unchanged(&store.store_census()?, &gone)?);
    append_batch(&*store, &s, &batch_of_note_events(&["anew"]))?;
    assert_eq!(find(&s, "a")?, None, "they go with their session");
    assert_eq!(find(&t, "a")?, Some(row("a", "4", Some(TaskId(1)))));
    Ok(())
}

pub(super) fn test_blobs_kept_by_content(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (store, s) = (subject.open_store()?, SessionId::from("s"));
    assert_eq!(store.read_blob(&Digest::hash_bytes(b"policy"))?, None);
    // Storing the same content twice must change nothing.
    for _ in 0..2 {
        assert_eq!(store.put_blob(b"policy")?, Digest::hash_bytes(b"policy"));
        let batch = AppendBatch {
            blobs: vec![b"policy".to_vec(), vec![]],
            ..batch_of_note_events(&["sealed"])
        };
        append_batch(&*store, &s, &batch)?;
    }
    for bytes in [b"policy".as_slice(), b""] {
        let digest = Digest::hash_bytes(bytes);
        assert_eq!(store.read_blob(&digest)?.as_deref(), Some(bytes));
        assert_eq!(
            with_session_view(&*store, &s, |tail| tail.read_stored_blob(&digest))?,
            Some(Some(bytes.to_vec()))
        );
    }
    Ok(())
}

pub(super) fn test_final_evidence_is_never_replaced(
    subject: &dyn StoreUnderTest,
) -> Result<(), StoreError> {
    let (store, s, key) = (
        subject.open_store()?,
        SessionId::from("s"),
        Digest::hash_bytes(b"key"),
    );
    assert_eq!(store.read_evidence(&key)?, None);
    // Inconclusive evidence is replaced by anything, final evidence by nothing.
    let steps = [
        (
            EvidenceFinality::Inconclusive,
            "timeout",
            EvidencePutOutcome::Stored,
            "timeout",
        ),
        (
            EvidenceFinality::Inconclusive,
            "crash",
            EvidencePutOutcome::Stored,
            "crash",
        ),
        (
            EvidenceFinality::Final,
            "pass",
            EvidencePutOutcome::Stored,
            "pass",
        ),
        (
            EvidenceFinality::Final,
            "fail",
            EvidencePutOutcome::KeptEarlier,
            "pass",
        ),
        (
            EvidenceFinality::Inconclusive,
            "timeout",
            EvidencePutOutcome::KeptEarlier,
            "pass",
        ),
    ];
    for (standing, bytes, kept, then) in steps {
        assert_eq!(
            store.put_evidence_under_key(&key, bytes.as_bytes(), standing)?,
            kept,
            "{bytes}"
        );
        let now = store.read_evidence(&key)?;
        assert_eq!(
            now.as_ref().map(|e| e.bytes.as_slice()),
            Some(then.as_bytes())
        );
        assert_eq!(
            with_session_view(&*store, &s, |tail| tail.read_evidence(&key))?,
            Some(now)
        );
    }
    let evidence = EvidenceBytesWithFinality {
        finality: EvidenceFinality::Final,
        bytes: b"pass".to_vec(),
    };
    assert_eq!(store.read_evidence(&key)?, Some(evidence));
    assert_eq!(store.read_evidence(&Digest::hash_bytes(b"other"))?, None);
    Ok(())
}

pub(super) fn test_messages_are_kept(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let store = subject.open_store()?;
    append_batch(&*store, &a, &batch_of_note_events(&["begun"]))?;
    append_batch(&*store, &b, &batch_of_note_events(&["begun"]))?;
    let before = store.store_census()?;
    // The same text twice is two messages.
    for body in ["one", "two", "one"] {
        store.put_conversation_message(&a, body.as_bytes())?;
    }
    store.put_conversation_message(&b, b"other")?;
    let again = subject.open_store()?;
    again.put_conversation_message(&a, b"")?;
    let said: [&[u8]; 4] = [b"one", b"two", b"one", b""];
    assert_eq!(
        store.read_stored_conversation_messages(&a, usize::MAX)?,
        said,
        "in order, none lost"
    );
    assert_eq!(
        store.read_stored_conversation_messages(&a, 2)?,
        said[..2],
        "no more than wanted"
    );
    assert_eq!(
        again.read_stored_conversation_messages(&b, usize::MAX)?,
        [b"other"]
    );
    assert!(
        store
            .read_stored_conversation_messages(&SessionId::from("c"), usize::MAX)?
            .is_empty()
    );

    let census = store.store_census()?;
    let bytes =
        |census: &crate::StoreInventory| census.sessions.iter().map(|(_, _, bytes)| bytes).sum();
    let (less, more): (u64, u64) = (bytes(&before), bytes(&census));
    assert!(more >= less + 14, "they count: {less} then {more}");
    let gone = PruneSelection {
        sessions: vec![a.clone()],
        objects: Vec::new(),
    };
    assert!(store.delete_sessions_if_unchanged(&census, &gone)?);
    assert!(
        store
            .read_stored_conversation_messages(&a, usize::MAX)?
            .is_empty(),
        "they go with their session"
    );
    assert_eq!(
        store.read_stored_conversation_messages(&b, usize::MAX)?,
        [b"other"]
    );
    Ok(())
}

pub(super) fn test_claims_are_exclusive(subject: &dyn StoreUnderTest) -> Result<(), StoreError> {
    let (a, b) = (subject.open_store()?, subject.open_store()?);
    let (key, other) = (Digest::hash_bytes(b"key"), Digest::hash_bytes(b"other"));
    for _ in 0..3 {
        let held = a.try_claim_effect(&key)?;
        assert!(held.is_some(), "free at first, and given back");
        assert!(
            a.try_claim_effect(&key)?.is_none(),
            "held by the same handle"
        );
        assert!(
            b.try_claim_effect(&key)?.is_none(),
            "held by another handle"
        );
        assert!(
            b.try_claim_effect(&other)?.is_some(),
            "another key is another claim"
        );
        // A claim outlives the handle that took it, and does not stop anybody from writing.
        append_batch(
            &*b,
            &SessionId::from("s"),
            &batch_of_note_events(&["meanwhile"]),
        )?;
        drop(held);
        assert!(b.try_claim_effect(&key)?.is_some(), "given back");
    }
    Ok(())
}
