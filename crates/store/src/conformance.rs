//! What every implementation of [`Store`] must do, as one suite run over each.
//!
//! A failed expectation panics, as in any test; trouble with the store comes back as its error.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, Millis, Seq, SessionId, TaskId, VerifierName};
use checkrein_core::input::PersonAnswer;

use crate::{
    About, Answered, Appended, Approval, Batch, Chain, EffectRow, Evidence, Forget, Kept, NewEvent,
    RawEvent, Standing, Stands, StateCache, Store, StoreError, TaskRow,
};

/// A place with one store, empty at first.
pub trait Subject {
    /// Opens the store, again and beside others too: all that are open are the same store.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self) -> Result<Box<dyn Store>, StoreError>;

    /// Changes the bytes of an event behind the store's back.
    ///
    /// # Errors
    /// If that cannot be done.
    fn damage(&self, session: &SessionId, seq: Seq) -> Result<(), StoreError>;
}

/// A part of the suite.
pub type Part = fn(&dyn Subject) -> Result<(), StoreError>;

/// The suite: names and parts. Each part wants a subject of its own.
pub const ALL: &[(&str, Part)] = &[
    ("append_and_read", append_and_read),
    ("no_batch_changes_nothing", no_batch_changes_nothing),
    ("failed_work_changes_nothing", failed_work_changes_nothing),
    ("a_key_counts_once", a_key_counts_once),
    ("sessions_are_apart", sessions_are_apart),
    ("effects_until_settled", effects_until_settled),
    ("cache_is_the_newest", cache_is_the_newest),
    ("tasks_newest_first", tasks_newest_first),
    ("blobs_by_content", blobs_by_content),
    ("final_evidence_stays", final_evidence_stays),
    ("the_newest_question_counts", the_newest_question_counts),
    (
        "an_answer_is_never_taken_back",
        an_answer_is_never_taken_back,
    ),
    ("conversations_are_kept", conversations_are_kept),
    ("claims_exclude", claims_exclude),
    ("reopened_is_the_same", reopened_is_the_same),
    ("handles_take_turns", handles_take_turns),
    ("chain_shows_damage", chain_shows_damage),
    ("sessions_go_as_a_whole", sessions_go_as_a_whole),
    ("what_moved_on_stays", what_moved_on_stays),
];

fn event(kind: &'static str, payload: &str, key: Option<&str>) -> NewEvent {
    NewEvent {
        kind,
        payload: payload.as_bytes().to_vec(),
        key: key.map(str::to_owned),
    }
}

fn events(payloads: &[&str]) -> Batch {
    let events = payloads
        .iter()
        .map(|payload| event("note", payload, None))
        .collect();
    Batch {
        events,
        ..Batch::default()
    }
}

fn raw(seq: u64, kind: &str, payload: &str) -> RawEvent {
    RawEvent {
        seq: Seq(seq),
        kind: kind.to_owned(),
        payload: payload.as_bytes().to_vec(),
    }
}

fn append(
    store: &dyn Store,
    session: &SessionId,
    batch: &Batch,
) -> Result<Option<Appended>, StoreError> {
    store.transact(session, &mut |_| Ok(Some(batch.clone())))
}

/// Runs `look` on the session's tail and changes nothing.
fn look<T>(
    store: &dyn Store,
    session: &SessionId,
    mut look: impl FnMut(&dyn crate::Tail) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let mut seen = None;
    store.transact(session, &mut |tail| {
        seen = Some(look(tail)?);
        Ok(None)
    })?;
    Ok(seen)
}

fn append_and_read(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.events(&s, Seq(0))?, []);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(whole, Chain::Whole { last: Seq(0), .. }),
        "{whole:?}"
    );

    let first = append(&*store, &s, &events(&["one", "two"]))?;
    assert_eq!(first.map(|a| (a.after, a.last)), Some((Seq(0), Seq(2))));
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
    assert_eq!(second.map(|a| (a.after, a.last)), Some((Seq(2), Seq(3))));

    let odd = RawEvent {
        seq: Seq(3),
        kind: odd.kind.to_owned(),
        payload: odd.payload,
    };
    let all = [raw(1, "note", "one"), raw(2, "note", "two"), odd];
    for (after, expected) in [
        (0, all.as_slice()),
        (2, all.as_slice().get(2..).unwrap_or(&[])),
    ] {
        assert_eq!(store.events(&s, Seq(after))?, expected);
        assert_eq!(
            look(&*store, &s, |tail| tail.events_after(Seq(after)))?,
            Some(expected.into())
        );
    }
    assert_eq!(store.events(&s, Seq(3))?, []);
    assert_eq!(look(&*store, &s, |tail| Ok(tail.last()))?, Some(Seq(3)));
    let head = second.map(|a| Chain::Whole {
        last: a.last,
        head: a.head,
    });
    assert_eq!(Some(store.verify_chain(&s)?), head);
    Ok(())
}

fn no_batch_changes_nothing(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.transact(&s, &mut |_| Ok(None))?, None);
    let empty = append(&*store, &s, &Batch::default())?;
    assert_eq!(empty.map(|a| (a.after, a.last)), Some((Seq(0), Seq(0))));
    let next = append(&*store, &s, &events(&["one"]))?;
    assert_eq!(next.map(|a| (a.after, a.last)), Some((Seq(0), Seq(1))));
    let again = append(&*store, &s, &Batch::default())?;
    assert_eq!(again.map(|a| a.head), next.map(|a| a.head));
    Ok(())
}

fn failed_work_changes_nothing(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    append(&*store, &s, &events(&["one"]))?;
    let failed = store.transact(&s, &mut |_| Err(StoreError::work("no")));
    assert!(matches!(&failed, Err(StoreError::Work(why)) if why.to_string() == "no"));
    assert_eq!(store.events(&s, Seq(0))?, [raw(1, "note", "one")]);
    append(&*store, &s, &events(&["two"]))?;
    assert_eq!(store.events(&s, Seq(1))?, [raw(2, "note", "two")]);
    Ok(())
}

fn a_key_counts_once(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    let keyed = |payload: &str, key: &str| event("note", payload, Some(key));
    let batch = Batch {
        events: vec![keyed("one", "k1"), keyed("two", "k2")],
        ..Batch::default()
    };
    append(&*store, &s, &batch)?;
    for (key, expected) in [
        ("k1", Some(Seq(1))),
        ("k2", Some(Seq(2))),
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
    for (batch, key, at) in [(refused, "k2", Seq(2)), (within, "k4", Seq(3))] {
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
        assert_eq!(look(&*store, &s, |tail| Ok(tail.last()))?, Some(Seq(2)));
    }
    assert_eq!(store.blob(&Digest::of(b"refused"))?, None);
    // A key is the session's own.
    append(&*store, &SessionId::from("t"), &batch)?;
    Ok(())
}

fn sessions_are_apart(subject: &dyn Subject) -> Result<(), StoreError> {
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
        Ok((nothing, tail.pending()?, tail.events_after(Seq(0))?))
    })?;
    assert_eq!(empty, Some(((Seq(0), None, None), vec![], vec![])));

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
    assert_eq!(here, Some((Seq(1), vec![effect("tests", 1)])));
    // The same events in another session are another chain.
    let in_u = append(&*store, &SessionId::from("u"), &rich)?;
    assert_ne!(in_s.map(|a| a.head), in_u.map(|a| a.head));
    Ok(())
}

fn effect(verifier: &str, stop: u64) -> EffectRow {
    let key = Digest::of(verifier.as_bytes());
    EffectRow {
        key,
        verifier: VerifierName::from(verifier),
        stop: Seq(stop),
    }
}

fn effects_until_settled(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    let change = |settled: &[&str], effects: &[EffectRow]| {
        let settled = settled
            .iter()
            .map(|name| Digest::of(name.as_bytes()))
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

fn cache(n: u8) -> StateCache {
    StateCache {
        core_version: u32::from(n),
        policy: Digest::of(&[n]),
        bytes: vec![n, 0, 255],
    }
}

fn cache_is_the_newest(subject: &dyn Subject) -> Result<(), StoreError> {
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
    assert_eq!(cached()?, Some(Some((Seq(2), cache(1)))));
    append(&*store, &s, &events(&["three"]))?;
    assert_eq!(cached()?, Some(Some((Seq(2), cache(1)))));
    append(
        &*store,
        &s,
        &Batch {
            cache: Some(cache(2)),
            ..events(&["four"])
        },
    )?;
    assert_eq!(cached()?, Some(Some((Seq(4), cache(2)))));
    Ok(())
}

fn task(session: &str, ordinal: u32, opened_at: u64) -> TaskRow {
    TaskRow {
        session: SessionId::from(session),
        task: TaskId(ordinal),
        agent: AgentName::from("claude-code"),
        level: None,
        opened_at: Millis(opened_at),
        ended_at: None,
        reason: None,
        detail: None,
        native_reason: None,
        stops: 0,
        continues: 0,
        tool_calls: 0,
        rounds: None,
        output_tokens: None,
        policy: Digest::of(b"policy"),
        goal: None,
        root: "/repo".to_owned(),
    }
}

fn tasks_newest_first(subject: &dyn Subject) -> Result<(), StoreError> {
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
        ended_at: Some(Millis(40)),
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

fn blobs_by_content(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, SessionId::from("s"));
    assert_eq!(store.blob(&Digest::of(b"policy"))?, None);
    for _ in 0..2 {
        assert_eq!(store.put_blob(b"policy")?, Digest::of(b"policy"));
        let batch = Batch {
            blobs: vec![b"policy".to_vec(), vec![]],
            ..events(&["sealed"])
        };
        append(&*store, &s, &batch)?;
    }
    for bytes in [b"policy".as_slice(), b""] {
        let digest = Digest::of(bytes);
        assert_eq!(store.blob(&digest)?.as_deref(), Some(bytes));
        assert_eq!(
            look(&*store, &s, |tail| tail.blob(&digest))?,
            Some(Some(bytes.to_vec()))
        );
    }
    Ok(())
}

fn final_evidence_stays(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, key) = (subject.open()?, SessionId::from("s"), Digest::of(b"key"));
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
    assert_eq!(store.evidence(&Digest::of(b"other"))?, None);
    Ok(())
}

fn approval(session: &str, what: &str, nth: u32, at: u64) -> Approval {
    Approval {
        id: format!("ap-{what}{nth}"),
        key: Digest::of(what.as_bytes()),
        nth,
        session: SessionId::from(session),
        task: Some(TaskId(1)),
        agent: AgentName::from("codex"),
        root: "/repo".to_owned(),
        about: About::Call {
            tool: "Bash".to_owned(),
            text: what.to_owned(),
            beside: None,
        },
        why: "deletes files".to_owned(),
        at: Millis(at),
        until: Millis(at + 100),
        answer: None,
        used_at: None,
        ran_out_at: None,
        tell: false,
        told_at: None,
        not_told: None,
    }
}

fn answered(row: &Approval, approved: bool) -> Approval {
    Approval {
        answer: Some(Answered {
            at: Millis(row.at.0 + 1),
            answer: PersonAnswer {
                approved,
                by: "ada".to_owned(),
                reason: Some("fine".to_owned()),
            },
        }),
        ..row.clone()
    }
}

fn ask(store: &dyn Store, session: &SessionId, rows: &[Approval]) -> Result<(), StoreError> {
    let batch = Batch {
        approvals: rows.to_vec(),
        durable: true,
        ..Batch::default()
    };
    append(store, session, &batch).map(drop)
}

/// It is found by what it is about, from every session; those of a session go with it.
fn the_newest_question_counts(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, other) = (subject.open()?, "s".into(), SessionId::from("other"));
    assert_eq!(store.approvals()?, []);
    let (rm, again) = (approval("s", "rm", 0, 10), approval("s", "rm", 1, 30));
    let push = approval("other", "push", 0, 20);
    assert_eq!(
        look(&*store, &s, |tail| tail.approval(&rm.key))?,
        Some(None)
    );
    append(&*store, &s, &events(&["one"]))?;
    ask(&*store, &s, &[rm.clone(), again.clone()])?;
    append(&*store, &other, &events(&["one"]))?;
    ask(&*store, &other, std::slice::from_ref(&push))?;

    let all = [again.clone(), push.clone(), rm.clone()];
    assert_eq!(store.approvals()?, all);
    for session in [&s, &other, &SessionId::from("third")] {
        let found = look(&*store, session, |tail| tail.approval(&rm.key))?;
        assert_eq!(found, Some(Some(again.clone())));
    }
    drop(store);
    let store = subject.open()?;
    assert_eq!(store.approvals()?, all);

    let gone = Forget {
        sessions: vec![s],
        kept: Vec::new(),
    };
    assert!(store.forget(&store.census()?, &gone)?);
    assert_eq!(store.approvals()?, [push]);
    Ok(())
}

fn an_answer_is_never_taken_back(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, "s".into());
    let row = approval("s", "rm", 0, 10);
    let yes = answered(&row, true);
    let used = Approval {
        used_at: Some(Millis(12)),
        ..yes.clone()
    };
    for (put, stays) in [
        (&row, &row),
        (&yes, &yes),
        (&row, &yes),
        (&answered(&row, false), &yes),
        (&used, &used),
        (&yes, &used),
    ] {
        ask(&*store, &s, std::slice::from_ref(put))?;
        assert_eq!(store.approvals()?, std::slice::from_ref(stays));
    }
    let stands = |row: &Approval, at: u64| row.stands(Millis(at));
    assert_eq!(stands(&row, 109), Stands::Asked);
    assert_eq!(stands(&row, 110), Stands::Expired);
    assert_eq!(stands(&yes, 109), Stands::Approved);
    assert_eq!(stands(&yes, 110), Stands::Expired);
    assert_eq!(stands(&answered(&row, false), 109), Stands::Denied);
    assert_eq!(stands(&answered(&row, false), 110), Stands::Expired);
    assert_eq!(stands(&used, 110), Stands::Used);
    // That nobody answered in time is no use of it, nor is it taken back.
    let ran_out = Approval {
        ran_out_at: Some(Millis(111)),
        ..approval("s", "push", 0, 10)
    };
    for put in [&ran_out, &approval("s", "push", 0, 10)] {
        ask(&*store, &s, std::slice::from_ref(put))?;
        assert!(store.approvals()?.contains(&ran_out));
    }
    assert_eq!(stands(&ran_out, 50), Stands::Expired);
    let noted_as_used = Approval {
        used_at: Some(Millis(111)),
        ..row.clone()
    };
    assert_eq!(stands(&noted_as_used, 111), Stands::Expired);
    Ok(())
}

fn conversations_are_kept(subject: &dyn Subject) -> Result<(), StoreError> {
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
    assert_eq!(store.messages(&a)?, said, "in order, none lost");
    assert_eq!(again.messages(&b)?, [b"other"]);
    assert!(store.messages(&SessionId::from("c"))?.is_empty());

    let census = store.census()?;
    let bytes = |census: &crate::Census| census.sessions.iter().map(|(_, _, bytes)| bytes).sum();
    let (less, more): (u64, u64) = (bytes(&before), bytes(&census));
    assert!(more >= less + 14, "they count: {less} then {more}");
    let gone = Forget {
        sessions: vec![a.clone()],
        kept: Vec::new(),
    };
    assert!(store.forget(&census, &gone)?);
    assert!(store.messages(&a)?.is_empty(), "they go with their session");
    assert_eq!(store.messages(&b)?, [b"other"]);
    Ok(())
}

fn claims_exclude(subject: &dyn Subject) -> Result<(), StoreError> {
    let (a, b) = (subject.open()?, subject.open()?);
    let (key, other) = (Digest::of(b"key"), Digest::of(b"other"));
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

fn reopened_is_the_same(subject: &dyn Subject) -> Result<(), StoreError> {
    let s = SessionId::from("s");
    let key = Digest::of(b"key");
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

    assert_eq!(after.events(&s, Seq(0))?, [raw(1, "note", "one")]);
    assert_eq!(after.verify_chain(&s)?, chain);
    assert_eq!(after.tasks(None, 10)?, [task("s", 1, 10)]);
    assert_eq!(
        after.blob(&Digest::of(b"policy"))?,
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
            Some(Seq(1)),
            Some((Seq(1), cache(1))),
            vec![effect("tests", 1)]
        ))
    );
    Ok(())
}

fn handles_take_turns(subject: &dyn Subject) -> Result<(), StoreError> {
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
    assert_eq!(store.events(&s, Seq(0))?, expected);
    let whole = store.verify_chain(&s)?;
    assert!(
        matches!(whole, Chain::Whole { last: Seq(100), .. }),
        "{whole:?}"
    );
    Ok(())
}

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
    let key = Digest::of(b"key");
    store.put_evidence(&key, b"evidence", Standing::Final)?;
    Ok((old, new, key, store.put_blob(b"blob")?))
}

fn sessions_go_as_a_whole(subject: &dyn Subject) -> Result<(), StoreError> {
    let store = subject.open()?;
    assert_eq!(store.census()?.sessions, []);
    let (old, new, key, blob) = furnished(&*store)?;
    let census = store.census()?;
    let names: Vec<_> = census
        .sessions
        .iter()
        .map(|(name, last, _)| (name, *last))
        .collect();
    assert_eq!(names, [(&new, Seq(2)), (&old, Seq(2))]);
    assert!(census.sessions.iter().all(|(_, _, bytes)| *bytes >= 2));
    let mut kept = vec![(key, 8), (blob, 4)];
    kept.sort();
    assert_eq!(census.kept, kept);
    assert!(census.bytes >= 16);

    let untouched = store.events(&new, Seq(0))?;
    let gone = Forget {
        sessions: vec![old.clone(), SessionId::from("never there")],
        kept: vec![key],
    };
    assert!(store.forget(&census, &gone)?);
    store.compact()?;
    assert_eq!(store.events(&old, Seq(0))?, []);
    assert_eq!(store.tasks(Some(&old), 9)?, []);
    assert_eq!(store.evidence(&key)?, None);
    assert_eq!(store.blob(&blob)?.as_deref(), Some(&b"blob"[..]));
    assert_eq!(store.events(&new, Seq(0))?, untouched);
    assert_eq!(store.tasks(None, 9)?.len(), 1);
    assert_eq!(
        look(&*store, &new, |tail| tail.pending())?.map(|rows| rows.len()),
        Some(1)
    );
    assert!(matches!(
        store.verify_chain(&new)?,
        Chain::Whole { last: Seq(2), .. }
    ));
    let left = store.census()?;
    assert_eq!((left.sessions.len(), left.kept), (1, vec![(blob, 4)]));

    // The name is free: what comes under it now begins at the beginning.
    look(&*store, &old, |tail| {
        assert_eq!((tail.last(), tail.pending()?.len()), (Seq(0), 0));
        assert_eq!((tail.cache()?, tail.find_key("key")?), (None, None));
        Ok(())
    })?;
    let again = append(&*store, &old, &events(&["anew"]))?;
    assert_eq!(again.map(|a| a.last), Some(Seq(1)));
    assert!(matches!(
        store.verify_chain(&old)?,
        Chain::Whole { last: Seq(1), .. }
    ));
    Ok(())
}

fn what_moved_on_stays(subject: &dyn Subject) -> Result<(), StoreError> {
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
    assert_eq!(store.events(&old, Seq(0))?, []);
    Ok(())
}

fn chain_shows_damage(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s, t) = (subject.open()?, SessionId::from("s"), SessionId::from("t"));
    for session in [&s, &t] {
        append(&*store, session, &events(&["one", "two", "three", "four"]))?;
    }
    subject.damage(&s, Seq(3))?;
    assert_eq!(store.verify_chain(&s)?, Chain::Broken { at: Seq(3) });
    let whole = store.verify_chain(&t)?;
    assert!(
        matches!(whole, Chain::Whole { last: Seq(4), .. }),
        "{whole:?}"
    );
    subject.damage(&s, Seq(1))?;
    assert_eq!(store.verify_chain(&s)?, Chain::Broken { at: Seq(1) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, SqliteStore};

    impl Subject for MemoryStore {
        fn open(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(self.clone()))
        }

        fn damage(&self, session: &SessionId, seq: Seq) -> Result<(), StoreError> {
            MemoryStore::damage(self, session, seq);
            Ok(())
        }
    }

    impl Subject for tempfile::TempDir {
        fn open(&self) -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(SqliteStore::open(&self.path().join("store"))?))
        }

        fn damage(&self, session: &SessionId, seq: Seq) -> Result<(), StoreError> {
            let conn = rusqlite::Connection::open(self.path().join("store/store.db")).unwrap();
            let changed = conn.execute(
                "UPDATE event SET payload = CAST(payload || '!' AS BLOB)
                 WHERE id = (SELECT id FROM session WHERE name = ?1) << 40 | ?2",
                (session.as_str(), seq.0),
            );
            assert_eq!(changed.unwrap(), 1);
            Ok(())
        }
    }

    fn check(implementation: &str, fresh: impl Fn() -> Box<dyn Subject>) {
        for (name, part) in ALL {
            part(&*fresh()).unwrap_or_else(|error| panic!("{implementation}: {name}: {error}"));
        }
    }

    #[test]
    fn memory() {
        check("memory", || Box::new(MemoryStore::new()));
    }

    #[test]
    fn sqlite() {
        check("sqlite", || Box::new(tempfile::tempdir().unwrap()));
    }
}
