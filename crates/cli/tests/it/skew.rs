//! Stores of another version. Golden ones, as earlier builds wrote them, open and go on;
//! a newer one sends this build to its stance, with the way out; what a newer build wrote
//! into a store that this one may read is kept as it is.

use std::path::{Path, PathBuf};

use checkrein_core::ids::{Seq, SessionId};
use checkrein_store::{Batch, NewEvent, SqliteStore, Store as _};
use rusqlite::Connection;
use rustix::process::Signal;

use crate::agent::{Agent, Answer, BOTH, read};
use crate::approvals::{PUSH, REVIEW, RULES, approve, deny, ids, unattended, waiting};
use crate::world::{Said, World, ending, gone, read_line, signal, start};

/// Added to, never edited: one file per schema, which only that schema's build could write.
fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/golden")
}

const CHECK: &str = "[[verifier]]\nname = \"tests\"\ntimeout = \"60s\"\nrun = \"sh check.sh\"\n";

/// The repo that all golden stores are about. Nothing in it names a folder of its own.
fn golden_world() -> World {
    let world = World::new();
    world.config(CHECK);
    world.write(
        "check.sh",
        "[ ! -p ../go ] || { echo ready > ../ready; read go < ../go; }
test -f fixed || { echo 'src/a.py:3: it is broken'; exit 1; }
",
    );
    world.commit();
    world
}

/// Puts a store where this repo's is.
fn adopt(world: &World, file: &Path) {
    Agent::named(world, "claude-code", "first").prompt("make the folder");
    let folder = world.store_folder();
    for old in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(folder.join(old));
    }
    std::fs::copy(file, folder.join("store.db")).unwrap();
}

fn ending_of(world: &World, task: &str) -> String {
    let tasks = world.tasks();
    let found = tasks
        .iter()
        .find(|row| task == format!("{}/{}", row["session"].as_str().unwrap(), row["task"]))
        .unwrap_or_else(|| panic!("{task} is not among {tasks:?}"));
    ending(&found["transition"])
}

#[test]
fn golden_stores_open_replay_and_go_on() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(golden_folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for name in ["schema-1.db", "schema-2.db", "schema-3.db"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}");
    }
    for file in files {
        let world = golden_world();
        adopt(&world, &file);
        let endings = [
            ("fixed/1", "task_complete"),
            ("fixed/2", "unverified/no_change"),
            ("gave-up/1", "gave_up/same_failures"),
            ("open/1", "open"),
            ("pending/1", "open"),
        ];
        for (task, expected) in endings {
            assert_eq!(ending_of(&world, task), expected, "{task} of {file:?}");
        }
        for session in ["fixed", "gave-up", "open", "pending"] {
            assert!(!world.log(session).is_empty());
            world.replays(session);
        }
        let shown = world.says(&["show", "fixed/1"]);
        assert!(
            shown.stdout.contains("tests fails, exit code 1"),
            "{shown:?}"
        );

        // The session of the open task goes on. The task does not: how long it was left grows with
        // the age of the file, and with it what ends it.
        let agent = Agent::named(&world, "claude-code", "open");
        agent.prompt("go on");
        assert!(ending_of(&world, "open/1").starts_with("abandoned/"));
        world.write("work", "open");
        agent.stop_saying("Done, once more.").sent_back();
        world.write("fixed", "");
        assert_eq!(agent.stop_saying("Done now."), Answer::Nothing);
        assert_eq!(ending_of(&world, "open/2"), "task_complete");
        world.replays("open");

        // What was pending when its hook was killed is asked again; after a day by a task of its own.
        let agent = Agent::named(&world, "codex", "pending");
        let accepted = agent.stop();
        // Since the third schema a session knows its folder; that one is gone, guarded files and all.
        let moved = "edited during this task: checkrein.toml, .git/info/exclude";
        assert!(
            accepted == Answer::Nothing || !is_old(&file) && accepted.notice().contains(moved),
            "{accepted:?} of {file:?}"
        );
        let tasks = world.tasks();
        let newest = tasks.iter().find(|row| row["session"] == "pending");
        assert_eq!(ending(&newest.unwrap()["transition"]), "task_complete");
        world.replays("pending");

        // What was written to is of this build's schema by now.
        let fresh = World::with_check("true");
        Agent::new(&fresh, "codex").prompt("begin");
        assert_eq!(schema(&world), schema(&fresh), "{file:?}");
        if !is_old(&file) {
            people_go_on(&world);
        }
    }
}

fn schema(world: &World) -> u32 {
    let store = Connection::open(world.store_folder().join("store.db")).unwrap();
    let read = store.query_row("SELECT schema FROM meta", [], |row| row.get(0));
    read.unwrap()
}

/// From before people were asked.
fn is_old(file: &Path) -> bool {
    file.ends_with("schema-1.db") || file.ends_with("schema-2.db")
}

/// What was asked in a golden store is asked still, and what was said holds, once.
fn people_go_on(world: &World) {
    let endings = [
        ("parked/1", "awaiting_human/parked"),
        ("approved/1", "awaiting_human/parked"),
        ("denied/1", "permission_denied/denied"),
        ("reviewed/1", "task_complete"),
    ];
    for (task, expected) in endings {
        assert_eq!(ending_of(world, task), expected);
    }
    for session in ["parked", "approved", "denied", "reviewed"] {
        world.replays(session);
    }
    let shown = world.says(&["show", "reviewed/1"]);
    assert!(
        shown.stdout.contains("person: approved ap-"),
        "a person's verdict: {shown:?}"
    );
    let asked = waiting(world);
    assert_eq!(ids(world, "approved").len(), 2);
    assert_eq!(ids(world, "denied").len(), 1);

    let agent = |name: &str| {
        let mut agent = unattended(world, "codex");
        agent.session = name.to_owned();
        agent.prompt("go on");
        // The store has its first call.
        agent.next_id();
        agent
    };
    let approved = agent("approved");
    assert_eq!(approved.shell(PUSH, "pushed"), Answer::Nothing);
    assert_eq!(ids(world, "used").len(), 1);
    approved.shell(PUSH, "pushed").denied();
    let denied = agent("denied").shell(PUSH, "");
    assert!(denied.denied().contains("use a branch"), "{denied:?}");
    let parked = agent("parked");
    let still = parked.shell(PUSH, "");
    let how = format!("checkrein approve {asked}");
    assert!(still.denied().contains(&how), "{still:?}");
    approve(world, &asked);
    assert_eq!(parked.shell(PUSH, "pushed"), Answer::Nothing);
    for session in ["parked", "approved", "denied"] {
        world.replays(session);
    }
}

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
        let rows = store.events(&session, Seq(0)).unwrap();
        rows.into_iter().find(|row| row.kind == "dreamt").unwrap()
    };
    let store = SqliteStore::open(&world.store_folder()).unwrap();
    store
        .transact(&session, &mut |_| {
            let event = NewEvent {
                kind: "dreamt",
                payload: payload.to_vec(),
                key: None,
            };
            Ok(Some(Batch {
                events: vec![event],
                ..Batch::default()
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
    let store = SqliteStore::open_read_only(&world.store_folder()).unwrap();
    assert_eq!(kept(&store), written);
    assert_eq!(written.payload, payload);
}

/// Writes the golden store of this build's schema, if there is none; nothing else. Run
/// with `--ignored` after a change of schema, before the next one:
/// `TMPDIR=/tmp cargo test -p checkrein-cli --test it -- --ignored write_the_missing`.
#[test]
#[ignore = "writes a new golden store"]
fn write_the_missing_golden_store() {
    let world = golden_world();
    let people = people(&world);
    let agent = Agent::named(&world, "claude-code", "fixed");
    agent.prompt("mend it");
    agent.shell("cat check.sh", "test -f fixed");
    world.write("work", "fixed");
    agent.stop().sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop_saying("Mended."), Answer::Nothing);
    agent.prompt("how did you mend it?");
    agent.stop_saying("Like this.").notice();
    std::fs::remove_file(world.root().join("fixed")).unwrap();

    let agent = Agent::named(&world, "codex", "gave-up");
    agent.prompt("mend it");
    world.write("work", "gave up");
    agent.stop().sent_back();
    agent.stop().sent_back();
    agent.stop().notice();

    let agent = Agent::named(&world, "claude-code", "open");
    agent.prompt("mend it as well");
    agent.shell("ls", "work");
    world.write("work", "open");
    agent.stop().sent_back();

    let agent = Agent::named(&world, "codex", "pending");
    agent.prompt("mend that, too");
    world.write("work", "pending");
    let (ready, _go) = (world.pipe("ready"), world.pipe("go"));
    let stop = agent.stop_message(false, "Done.");
    let victim = start(&mut agent.hook(), stop.to_string().as_bytes());
    read_line(&ready);
    signal(&victim, Signal::KILL);
    let said = Said::of(&victim.wait_with_output().unwrap());
    assert_eq!(said.code, None, "{:?}", read("codex", "Stop", &said));
    gone(&world);

    let store = Connection::open(world.store_folder().join("store.db")).unwrap();
    let count = |sql: &str| {
        store
            .query_row(sql, [], |row| row.get::<_, u32>(0))
            .unwrap()
    };
    assert_eq!(count("SELECT count(*) FROM effect"), 1);
    assert_eq!(count("SELECT count(*) FROM approval"), people);
    let schema = count("SELECT schema FROM meta");
    let file = golden_folder().join(format!("schema-{schema}.db"));
    if !file.exists() {
        let moved = count("PRAGMA wal_checkpoint(TRUNCATE)");
        assert_eq!(moved, 0, "somebody else has the store open");
        std::fs::create_dir_all(golden_folder()).unwrap();
        std::fs::copy(world.store_folder().join("store.db"), file).unwrap();
    }
}

/// Sessions in which people are asked, and a config of their own that is gone after them. Says
/// how many questions there are.
fn people(world: &World) -> u32 {
    world.write("rules/own.rules", RULES);
    world.config(&format!(
        "{CHECK}\n{REVIEW}\n[policy]\nrules = [\"rules/*.rules\"]\n\n[approvals]\nexpires = \"3650d\"\n"
    ));
    world.commit();
    let agent = |name: &str| {
        let mut agent = unattended(world, "codex");
        agent.session = name.to_owned();
        agent.prompt("ship it");
        world.write("work", name);
        agent
    };
    let (approved, denied) = (agent("approved"), agent("denied"));
    approved.shell(PUSH, "").denied();
    approved.stop().notice();
    approve(world, &waiting(world));
    denied.shell(PUSH, "").denied();
    deny(world, &waiting(world));
    denied.stop().notice();

    let reviewed = agent("reviewed");
    world.write("fixed", "");
    world.write("report.md", "all is well\n");
    reviewed.stop().notice();
    approve(world, &waiting(world));
    assert_eq!(reviewed.stop_saying("Read it."), Answer::Nothing);

    let parked = agent("parked");
    parked.shell(PUSH, "").denied();
    parked.stop().notice();
    for gone in ["fixed", "report.md", "work", "rules/own.rules"] {
        std::fs::remove_file(world.root().join(gone)).unwrap();
    }
    world.config(CHECK);
    world.commit();
    4
}
