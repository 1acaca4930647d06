//! Stores: as the builds of each schema wrote them, they open, replay, are shown and go on; and
//! today's build writes the newest again. `crates/store/tests/golden.rs` opens them, too.

use std::path::{Path, PathBuf};

use checkrein_scripted::coder::PROVIDER_ENTRIES;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{in_repo, is_writing, newest, next, same, shape};
use crate::agent::{Agent, Answer, read};
use crate::approvals::{PUSH, REVIEW, RULES, approve, deny, ids, unattended, waiting};
use crate::coder;
use crate::world::{Said, World, ending, gone, read_line, signal, start};

pub(super) const FOLDER: &str = "crates/store/tests/golden";

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

fn database(world: &World) -> Connection {
    Connection::open(world.store_folder().join("store.db")).unwrap()
}

/// Puts a store where this repo's is.
fn adopt(world: &World, file: &Path) {
    Agent::named(world, "claude-code", "first").prompt("make the folder");
    let folder = world.store_folder();
    for old in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(folder.join(old));
    }
    std::fs::copy(file, folder.join("store.db")).unwrap();
    if !is_old(file) {
        // Questions run out, after thirty days at most: here a person comes in time.
        let late = "json_extract(row, '$.until') < unixepoch() * 1000 + 86400000";
        let set = "json_set(row, '$.until', unixepoch() * 1000 + 86400000)";
        let set = format!("UPDATE approval SET row = {set} WHERE {late}");
        database(world).execute_batch(&set).unwrap();
    }
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
    let mut files: Vec<PathBuf> = std::fs::read_dir(in_repo(FOLDER))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "db"))
        .collect();
    files.sort();
    for name in [
        "schema-1.db",
        "schema-2.db",
        "schema-3.db",
        "schema-4.1.db",
        "schema-5.1.db",
    ] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}");
    }
    for file in files {
        goes_on(&file);
    }
}

fn goes_on(file: &Path) {
    let world = golden_world();
    adopt(&world, file);
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
    every_task_is_shown(&world);

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
        accepted == Answer::Nothing || !is_old(file) && accepted.notice().contains(moved),
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
    if !is_old(file) {
        people_go_on(&world);
    }
    every_task_is_shown(&world);
}

fn every_task_is_shown(world: &World) {
    let listed = world.says(&["sessions"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    for row in world.tasks() {
        let task = format!("{}/{}", row["session"].as_str().unwrap(), row["task"]);
        for args in [&["show", &task][..], &["show", &task, "--why"]] {
            let said = world.says(args);
            assert_eq!((said.code, &*said.stderr), (Some(0), ""), "{args:?}");
            assert!(!said.stdout.is_empty(), "{args:?}");
        }
        let document = world.says(&["show", &task, "--json"]).json();
        assert_eq!(document["schema"], "checkrein/show/1", "{task}");
        assert!(!document["events"].as_array().unwrap().is_empty(), "{task}");
    }
}

fn schema(world: &World) -> u32 {
    let read = database(world).query_row("SELECT schema FROM meta", [], |row| row.get(0));
    read.unwrap()
}

/// From before people were asked.
fn is_old(file: &Path) -> bool {
    file.ends_with("schema-1.db") || file.ends_with("schema-2.db")
}

/// A push by an agent that does not say where it works: an answer holds in one folder only, and
/// that of a golden store is gone.
fn push(agent: &Agent<'_>) -> Answer {
    let id = agent.next_id();
    let tell = |mut message: Value| {
        message.as_object_mut().unwrap().remove("cwd");
        agent.tell(&message)
    };
    let answer = tell(agent.call(&id, PUSH));
    if answer == Answer::Nothing {
        tell(agent.result(&id, PUSH, "pushed"));
    }
    answer
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
    assert_eq!(push(&approved), Answer::Nothing);
    assert_eq!(ids(world, "used").len(), 1);
    push(&approved).denied();
    let denied = push(&agent("denied"));
    assert!(denied.denied().contains("use a branch"), "{denied:?}");
    let parked = agent("parked");
    let still = push(&parked);
    let how = format!("checkrein approve {asked}");
    assert!(still.denied().contains(&how), "{still:?}");
    approve(world, &asked);
    assert_eq!(push(&parked), Answer::Nothing);
    for session in ["parked", "approved", "denied"] {
        world.replays(session);
    }
}

/// Today's build writes what the newest golden store has: rows, events, evidence, blobs.
#[test]
fn a_golden_store_is_written_as_the_newest_has_it() {
    let world = golden_world();
    write_all(&world);
    let name = format!("schema-{}", schema(&world));
    let today = database(&world);
    let moved: u32 = today
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(moved, 0, "somebody else has the store open");
    let shapes_today = shapes(&today);
    if let Some((_, file)) = newest(FOLDER, &name, "db") {
        let copy = world.outside("golden.db");
        std::fs::copy(&file, &copy).unwrap();
        let recorded = shapes(&Connection::open(copy).unwrap());
        if !is_writing() {
            return same(&file, &recorded, &shapes_today);
        }
        if recorded == shapes_today {
            return;
        }
    }
    assert!(
        is_writing(),
        "no golden store is of {name}: {}=1 writes it",
        super::WRITE
    );
    let file = world.store_folder().join("store.db");
    std::fs::copy(file, next(FOLDER, &name, "db")).unwrap();
}

/// What two stores of the same stories have alike.
fn shapes(store: &Connection) -> Vec<String> {
    // Places and digests are the only columns left out.
    const ROWS: [(&str, &str); 8] = [
        (
            "table",
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name",
        ),
        (
            "session",
            "SELECT NAME || ' ' || (state IS NOT NULL) FROM session s ORDER BY NAME",
        ),
        (
            "event",
            "SELECT NAME || ' ' || e.kind, e.payload FROM event e JOIN session s ON s.id = e.id >> 40 ORDER BY NAME, e.id",
        ),
        (
            "scope",
            "SELECT NAME || ' ' || c.name || ' ' || (cursor <> '') || ' ' || (halted_in IS NOT NULL) FROM scope c JOIN session s ON s.name = c.session ORDER BY NAME, c.name",
        ),
        ("effect", "SELECT verifier FROM effect ORDER BY verifier"),
        (
            "approval",
            "SELECT json_extract(row, '$.session') || ' ' || nth, CAST(row AS BLOB) FROM approval ORDER BY json_extract(row, '$.at')",
        ),
        (
            "message",
            "SELECT '', body FROM message ORDER BY session, nth",
        ),
        (
            "task",
            "SELECT NAME || ' ' || t.task, CAST(row AS BLOB) FROM task t JOIN session s ON s.id = t.session ORDER BY NAME, t.task",
        ),
    ];
    // A session that no agent named is named by chance.
    const NAME: &str = "iif(s.name GLOB '*[0-9]*', 'a session', s.name)";
    let mut lines = Vec::new();
    for (what, sql) in ROWS {
        let mut query = store.prepare(&sql.replace("NAME", NAME)).unwrap();
        let has_body = query.column_count() > 1;
        let rows = query.query_map([], |row| {
            let body = has_body.then(|| row.get::<_, Vec<u8>>(1)).transpose()?;
            Ok((row.get::<_, String>(0)?, body))
        });
        for row in rows.unwrap() {
            let (head, body) = row.unwrap();
            let body = body.map(|body| shape::of_bytes(&body)).unwrap_or_default();
            lines.push(format!("{what} {head} {body}"));
        }
    }
    // Kept by digest, so in no order.
    let mut query = store.prepare("SELECT final, bytes FROM kept").unwrap();
    let rows = query.query_map([], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let kept = rows.unwrap().map(Result::unwrap);
    let mut kept: Vec<String> = kept
        .map(|(is_final, bytes)| format!("kept {is_final} {}", shape::of_bytes(&bytes)))
        .collect();
    kept.sort();
    lines.extend(kept);
    lines
}

/// The stories of a golden store.
fn write_all(world: &World) {
    people(world);
    write_conversation(world);
    let agent = Agent::named(world, "claude-code", "fixed");
    agent.prompt("mend it");
    agent.shell("cat check.sh", "test -f fixed");
    world.write("work", "fixed");
    agent.stop().sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop_saying("Mended."), Answer::Nothing);
    agent.prompt("how did you mend it?");
    assert_eq!(agent.stop_saying("Like this."), Answer::Nothing);
    std::fs::remove_file(world.root().join("fixed")).unwrap();

    let agent = Agent::named(world, "codex", "gave-up");
    agent.prompt("mend it");
    world.write("work", "gave up");
    agent.stop().sent_back();
    agent.stop().sent_back();
    agent.stop().notice();

    let agent = Agent::named(world, "claude-code", "open");
    agent.prompt("mend it as well");
    agent.shell("ls", "work");
    call_of_a_sub_agent(world, &agent);
    world.write("work", "open");
    agent.stop().sent_back();

    let agent = Agent::named(world, "codex", "pending");
    agent.prompt("mend that, too");
    world.write("work", "pending");
    let (ready, _go) = (world.pipe("ready"), world.pipe("go"));
    let stop = agent.stop_message(false, "Done.");
    let victim = start(&mut agent.hook(), stop.to_string().as_bytes());
    read_line(&ready);
    signal(&victim, Signal::KILL);
    let said = Said::of(&victim.wait_with_output().unwrap());
    assert_eq!(said.code, None, "{:?}", read("codex", "Stop", &said));
    gone(world);
}

/// A sub-agent whose transcript is read.
fn call_of_a_sub_agent(world: &World, agent: &Agent<'_>) {
    let folder = world.outside("transcript/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let usage = json!({ "output_tokens": 12, "input_tokens": 30 });
    let row = json!({ "type": "assistant", "message": { "id": "m1", "usage": usage } });
    std::fs::write(folder.join("agent-helper.jsonl"), format!("{row}\n")).unwrap();
    let mut call = agent.call(&agent.next_id(), "ls");
    let message = call.as_object_mut().unwrap();
    message.insert("agent_id".to_owned(), "helper".into());
    message.insert("agent_type".to_owned(), "general".into());
    let transcript = world.outside("transcript.jsonl");
    message.insert("transcript_path".to_owned(), json!(transcript));
    assert_eq!(agent.tell(&call), Answer::Nothing);
}

/// An agent of our own, whose conversation is kept.
fn write_conversation(world: &World) {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::scripted_shell_call_turn("touch fixed"),
        ScriptedCoderTurn::scripted_text_turn("Mended."),
    ])
    .unwrap();
    let said = coder::says(&mut coder::run(
        world,
        &coder,
        name,
        &["--model", name, "mend it"],
    ));
    assert_eq!(said.code, Some(0), "{said:?}");
    std::fs::remove_file(world.root().join("fixed")).unwrap();
}

/// Sessions in which people are asked, and a config of their own that is gone after them.
fn people(world: &World) {
    world.write("rules/own.rules", RULES);
    world.config(&format!(
        "{CHECK}\n{REVIEW}\n[policy]\nrules = [\"rules/*.rules\"]\n\n[approvals]\nexpires = \"30d\"\n"
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
    push(&approved).denied();
    approved.stop().notice();
    approve(world, &waiting(world));
    push(&denied).denied();
    deny(world, &waiting(world));
    denied.stop().notice();

    let reviewed = agent("reviewed");
    world.write("fixed", "");
    world.write("report.md", "all is well\n");
    reviewed.stop().notice();
    approve(world, &waiting(world));
    assert_eq!(reviewed.stop_saying("Read it."), Answer::Nothing);

    let parked = agent("parked");
    push(&parked).denied();
    parked.stop().notice();
    for gone in ["fixed", "report.md", "work", "rules/own.rules"] {
        std::fs::remove_file(world.root().join(gone)).unwrap();
    }
    world.config(CHECK);
    world.commit();
}
