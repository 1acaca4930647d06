//! Stores of another version: a newer one sends this build to its stance, with the way out; what
//! a newer build wrote into a store that this one may read is kept as it is. Stores of earlier
//! builds are in `golden/stores.rs`.

use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_store::{AppendBatch, NewEvent, SqliteStore, Store as _};
use rusqlite::Connection;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

#[test]
fn a_newer_store_is_answered_by_stance_with_upgrade() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        agent.prompt("begin");
        let file = world.store_folder().join("store.db");
        let before = agent.shell("ls", "a");
        assert_eq!(before, Answer::Nothing);
        let newer = "UPDATE meta SET schema = 99, min_reader = 99";
        Connection::open(&file)
            .unwrap()
            .execute_batch(newer)
            .unwrap();

        let denied = agent.shell("ls", "a");
        assert!(
            denied.denied().contains("upgrade checkrein"),
            "{name}: {denied:?}"
        );
        let let_through = agent.stop();
        assert!(
            let_through.notice().contains("upgrade checkrein"),
            "{name}: {let_through:?}"
        );
        world.config("[stance]\ntool = \"allow\"\nstop = \"block\"\n");
        let allowed = agent.shell("ls", "a");
        assert!(
            matches!(&allowed, Answer::Notice(text) if text.contains("upgrade checkrein")),
            "{name}: {allowed:?}"
        );
        let refused = agent.stop();
        assert!(
            refused.sent_back().contains("upgrade checkrein"),
            "{name}: {refused:?}"
        );
        // What cannot be counted is not continued: the second stop goes through.
        let stop = agent.stop_message(true, "Done.");
        agent.tell(&stop).notice();
    }
}

#[test]
fn a_newer_store_stops_every_command_with_upgrade() {
    let world = World::with_check("true");
    Agent::new(&world, "claude-code").prompt("begin");
    let file = world.store_folder().join("store.db");
    Connection::open(&file)
        .unwrap()
        .execute_batch("UPDATE meta SET schema = 99, min_reader = 99")
        .unwrap();
    let commands: [&[&str]; 6] = [
        &["check"],
        &["sessions"],
        &["sessions", "--json"],
        &["show"],
        &["replay", "claude"],
        &["run", "--", "true"],
    ];
    for command in commands {
        let said = world.says(command);
        assert_eq!(said.code, Some(1), "{command:?}: {said:?}");
        assert!(said.stderr.contains("upgrade checkrein"), "{said:?}");
        assert_eq!(said.stdout, "", "{command:?}");
    }
    assert_eq!(world.runs("tests"), 0);
}

#[test]
fn events_of_unknown_kind_are_kept_and_passed_over() {
    let world = World::with_check("test -f fixed");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    let (session, payload) = (
        SessionId::from(agent.session.as_str()),
        br#"{"dreamt":{"of":["sheep"]}}"#,
    );
    let kept = |store: &SqliteStore| {
        let rows = store.events_after(&session, EventSeq(0)).unwrap();
        rows.into_iter().find(|row| row.kind == "dreamt").unwrap()
    };
    let store = SqliteStore::open_store_in_folder(&world.store_folder()).unwrap();
    store
        .transact_on_session(&session, &mut |_| {
            let event = NewEvent {
                kind: "dreamt",
                payload: payload.to_vec(),
                key: None,
            };
            Ok(Some(AppendBatch {
                events: vec![event],
                ..AppendBatch::default()
            }))
        })
        .unwrap();
    let written = kept(&store);
    drop(store);

    agent.stop().sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    world.replays(&agent.session);
    let shown = world.says(&["show", "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let store = SqliteStore::open_store_read_only(&world.store_folder()).unwrap();
    assert_eq!(kept(&store), written);
    assert_eq!(written.payload, payload);
}
