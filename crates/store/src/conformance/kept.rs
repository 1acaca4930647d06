//! What is kept beside logs: summary rows, blobs, evidence, conversations, claims.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, ScopeId, SessionId, TaskId, UnixMillis};

use super::{Subject, append, events, look};
use crate::{Batch, Evidence, Forget, Kept, ScopeRow, Standing, StoreError, TaskRow};

pub(super) fn task(session: &str, ordinal: u32, opened_at: u64) -> TaskRow {
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

pub(super) fn tasks_newest_first(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, t) = (subject.open()?, SessionId::from("s"), SessionId::from("t"));
    assert_eq!(store.tasks(None, 10)?, []);
    // A row belongs to the transaction's session, whatever it says.
    let rows = vec![task("wrong", 1, 10), task("s", 2, 30)];
    append(
        &*store,
        &s,
        &Batch {
            tasks: rows,
            ..events(&["one"])
        },
    )?;
    append(
        &*store,
        &t,
        &Batch {
            tasks: vec![task("t", 1, 20)],
            ..events(&["one"])
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
        ..task("s", 1, 10)
    };
    append(
        &*store,
        &s,
        &Batch {
            tasks: vec![ended.clone()],
            ..events(&["two"])
        },
    )?;

    let (s2, t1) = (task("s", 2, 30), task("t", 1, 20));
    assert_eq!(
        store.tasks(None, 10)?,
        [s2.clone(), t1.clone(), ended.clone()]
    );
    assert_eq!(store.tasks(None, 2)?, [s2.clone(), t1]);
    assert_eq!(store.tasks(Some(&s), 10)?, [s2, ended]);
    assert_eq!(store.tasks(Some(&SessionId::from("u")), 10)?, []);
    Ok(())
}

pub(super) fn conversations_have_rows(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, t) = (subject.open()?, SessionId::from("s"), SessionId::from("t"));
    let row = |scope: &str, cursor: &str, halted_in| ScopeRow {
        scope: ScopeId::new(scope),
        cursor: cursor.to_owned(),
        halted_in,
    };
    let put = |session, scopes: &[ScopeRow]| {
        let batch = Batch {
            scopes: scopes.to_vec(),
            ..events(&["read"])
        };
        append(&*store, session, &batch)
    };
    let find = |session, scope: &str| {
        let found = look(&*store, session, |tail| tail.scope(&ScopeId::new(scope)))?;
        Ok::<_, StoreError>(found.flatten())
    };
    assert_eq!(find(&s, "a")?, None);
    let many: Vec<ScopeRow> = (0..100)
        .map(|at| row(&at.to_string(), "7:m", None))
        .collect();
    put(&s, &many)?;
    put(&s, &[row("", "1", None), row("a", "2", None)])?;
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

    let gone = Forget {
        sessions: vec![s.clone()],
        kept: Vec::new(),
    };
    assert!(store.forget(&store.census()?, &gone)?);
    append(&*store, &s, &events(&["anew"]))?;
    assert_eq!(find(&s, "a")?, None, "they go with their session");
    assert_eq!(find(&t, "a")?, Some(row("a", "4", Some(TaskId(1)))));
    Ok(())
}

pub(super) fn blobs_by_content(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.blob(&Digest::hash_bytes(b"policy"))?, None);
    for _ in 0..2 {
        assert_eq!(store.put_blob(b"policy")?, Digest::hash_bytes(b"policy"));
        let batch = Batch {
            blobs: vec![b"policy".to_vec(), vec![]],
            ..events(&["sealed"])
        };
        append(&*store, &s, &batch)?;
    }
    for bytes in [b"policy".as_slice(), b""] {
        let digest = Digest::hash_bytes(bytes);
        assert_eq!(store.blob(&digest)?.as_deref(), Some(bytes));
        assert_eq!(
            look(&*store, &s, |tail| tail.blob(&digest))?,
            Some(Some(bytes.to_vec()))
        );
    }
    Ok(())
}

pub(super) fn final_evidence_stays(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, key) = (
        subject.open()?,
        SessionId::from("s"),
        Digest::hash_bytes(b"key"),
    );
    assert_eq!(store.evidence(&key)?, None);
    let steps = [
        (Standing::Inconclusive, "timeout", Kept::New, "timeout"),
        (Standing::Inconclusive, "crash", Kept::New, "crash"),
        (Standing::Final, "pass", Kept::New, "pass"),
        (Standing::Final, "fail", Kept::Earlier, "pass"),
        (Standing::Inconclusive, "timeout", Kept::Earlier, "pass"),
    ];
    for (standing, bytes, kept, then) in steps {
        assert_eq!(
            store.put_evidence(&key, bytes.as_bytes(), standing)?,
            kept,
            "{bytes}"
        );
        let now = store.evidence(&key)?;
        assert_eq!(
            now.as_ref().map(|e| e.bytes.as_slice()),
            Some(then.as_bytes())
        );
        assert_eq!(look(&*store, &s, |tail| tail.evidence(&key))?, Some(now));
    }
    let evidence = Evidence {
        standing: Standing::Final,
        bytes: b"pass".to_vec(),
    };
    assert_eq!(store.evidence(&key)?, Some(evidence));
    assert_eq!(store.evidence(&Digest::hash_bytes(b"other"))?, None);
    Ok(())
}

pub(super) fn conversations_are_kept(subject: &dyn Subject) -> Result<(), StoreError> {
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let store = subject.open()?;
    append(&*store, &a, &events(&["begun"]))?;
    append(&*store, &b, &events(&["begun"]))?;
    let before = store.census()?;
    for body in ["one", "two", "one"] {
        store.put_message(&a, body.as_bytes())?;
    }
    store.put_message(&b, b"other")?;
    let again = subject.open()?;
    again.put_message(&a, b"")?;
    let said: [&[u8]; 4] = [b"one", b"two", b"one", b""];
    assert_eq!(store.messages(&a, usize::MAX)?, said, "in order, none lost");
    assert_eq!(store.messages(&a, 2)?, said[..2], "no more than wanted");
    assert_eq!(again.messages(&b, usize::MAX)?, [b"other"]);
    assert!(
        store
            .messages(&SessionId::from("c"), usize::MAX)?
            .is_empty()
    );

    let census = store.census()?;
    let bytes = |census: &crate::Census| census.sessions.iter().map(|(_, _, bytes)| bytes).sum();
    let (less, more): (u64, u64) = (bytes(&before), bytes(&census));
    assert!(more >= less + 14, "they count: {less} then {more}");
    let gone = Forget {
        sessions: vec![a.clone()],
        kept: Vec::new(),
    };
    assert!(store.forget(&census, &gone)?);
    assert!(
        store.messages(&a, usize::MAX)?.is_empty(),
        "they go with their session"
    );
    assert_eq!(store.messages(&b, usize::MAX)?, [b"other"]);
    Ok(())
}

pub(super) fn claims_exclude(subject: &dyn Subject) -> Result<(), StoreError> {
    let (a, b) = (subject.open()?, subject.open()?);
    let (key, other) = (Digest::hash_bytes(b"key"), Digest::hash_bytes(b"other"));
    for _ in 0..3 {
        let held = a.claim(&key)?;
        assert!(held.is_some(), "free at first, and given back");
        assert!(a.claim(&key)?.is_none(), "held by the same handle");
        assert!(b.claim(&key)?.is_none(), "held by another handle");
        assert!(b.claim(&other)?.is_some(), "another key is another claim");
        // A claim outlives the handle that took it, and does not stop anybody from writing.
        append(&*b, &SessionId::from("s"), &events(&["meanwhile"]))?;
        drop(held);
        assert!(b.claim(&key)?.is_some(), "given back");
    }
    Ok(())
}
