//! What people were asked, and what they said.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{AgentName, SessionId, TaskId, UnixMillis};
use checkrein_core::input::PersonAnswer;

use super::{Subject, append, events, look};
use crate::{About, Answered, Approval, Batch, Forget, Stands, Store, StoreError};

pub(super) fn approval(session: &str, what: &str, nth: u32, at: u64) -> Approval {
    Approval {
        id: format!("ap-{what}{nth}"),
        key: Digest::hash_bytes(what.as_bytes()),
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
        at: UnixMillis(at),
        until: UnixMillis(at + 100),
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

fn ask(store: &dyn Store, session: &SessionId, rows: &[Approval]) -> Result<(), StoreError> {
    let batch = Batch {
        approvals: rows.to_vec(),
        durable: true,
        ..Batch::default()
    };
    append(store, session, &batch).map(drop)
}

/// It is found by what it is about, from every session; those of a session go with it.
pub(super) fn the_newest_question_counts(subject: &dyn Subject) -> Result<(), StoreError> {
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

pub(super) fn an_answer_is_never_taken_back(subject: &dyn Subject) -> Result<(), StoreError> {
    let (store, s) = (subject.open()?, "s".into());
    let row = approval("s", "rm", 0, 10);
    let yes = answered(&row, true);
    let used = Approval {
        used_at: Some(UnixMillis(12)),
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
    let stands = |row: &Approval, at: u64| row.stands(UnixMillis(at));
    assert_eq!(stands(&row, 109), Stands::Asked);
    assert_eq!(stands(&row, 110), Stands::Expired);
    assert_eq!(stands(&yes, 109), Stands::Approved);
    assert_eq!(stands(&yes, 110), Stands::Expired);
    assert_eq!(stands(&answered(&row, false), 109), Stands::Denied);
    assert_eq!(stands(&answered(&row, false), 110), Stands::Expired);
    assert_eq!(stands(&used, 110), Stands::Used);
    // That nobody answered in time is no use of it, nor is it taken back.
    let ran_out = Approval {
        ran_out_at: Some(UnixMillis(111)),
        ..approval("s", "push", 0, 10)
    };
    for put in [&ran_out, &approval("s", "push", 0, 10)] {
        ask(&*store, &s, std::slice::from_ref(put))?;
        assert!(store.approvals()?.contains(&ran_out));
    }
    assert_eq!(stands(&ran_out, 50), Stands::Expired);
    let noted_as_used = Approval {
        used_at: Some(UnixMillis(111)),
        ..row.clone()
    };
    assert_eq!(stands(&noted_as_used, 111), Stands::Expired);
    Ok(())
}
