//! Retention: whole sessions go, nothing that a session which stays needs goes with them.

use checkrein_core::ids::SessionId;
use checkrein_store::{AppendBatch, NewEvent, SqliteStore, Store as _};

use serde_json::json;

use crate::agent::{Agent, Answer};
use crate::terminal::Terminal;
use crate::world::{Said, World};

const DAY: u64 = 86_400_000;

/// Copies of a session that ended well, as it would be so many days ago.
fn copies(world: &World, days: &[u64]) {
    for ago in days {
        let name = format!("{ago}-days-ago");
        world.record_again("claude-code-session", &name, |at| at - ago * DAY);
    }
}

fn sessions(world: &World) -> Vec<String> {
    let mut names: Vec<String> = world
        .tasks()
        .iter()
        .map(|task| task["session"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Away from whoever runs the tests, who may be an agent.
fn gc(world: &World, args: &[&str]) -> Said {
    let mut words = vec!["gc"];
    words.extend(args);
    Terminal::new(world).says(&words)
}

/// A world with one finished session, and its agent.
fn worked(config: &str) -> World {
    let world = World::new();
    world.config(&format!(
        "{config}\n{}",
        world.counted("tests", "test -f fixed")
    ));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    world
}

#[test]
fn old_sessions_go_as_a_whole_and_the_rest_is_as_it_was() {
    let world = worked("[store]\nkeep = \"10d\"");
    copies(&world, &[40, 20, 5]);
    let all = [
        "20-days-ago",
        "40-days-ago",
        "5-days-ago",
        "claude-code-session",
    ];
    assert_eq!(sessions(&world), all);

    let said = gc(&world, &["--dry-run"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.stdout.contains("would remove 2 sessions of 4"),
        "{said:?}"
    );
    assert!(
        said.stdout.starts_with("40-days-ago  last used "),
        "{said:?}"
    );
    assert_eq!(sessions(&world), all, "nothing went");

    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("removed 2 sessions of 4"), "{said:?}");
    assert_eq!(sessions(&world), ["5-days-ago", "claude-code-session"]);
    world.replays("claude-code-session");
    let gone = world.says(&["show", "40-days-ago"]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    let shown = world.says(&["show", "claude-code"]);
    assert!(shown.stdout.contains("tests fails"), "{shown:?}");

    // What was found is still known: the next session on this tree runs nothing.
    let runs = world.runs("tests");
    let agent = Agent::named(&world, "claude-code", "next");
    world.write("work", "2");
    agent.prompt("anything else?");
    world.write("work", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(world.runs("tests"), runs);
    let said = gc(&world, &[]);
    assert!(
        said.stdout.contains("removed 0 sessions of 3, 0 orphaned"),
        "{said:?}"
    );
}

#[test]
fn the_newest_session_stays_however_old_it_is() {
    let world = worked("[store]\nkeep = \"1d\"");
    copies(&world, &[40, 20]);
    let store = SqliteStore::open_store_in_folder(&world.store_folder()).unwrap();
    let census = store.store_census().unwrap();
    let gone = checkrein_store::PruneSelection {
        sessions: vec![SessionId::from("claude-code-session")],
        objects: Vec::new(),
    };
    assert!(store.delete_sessions_if_unchanged(&census, &gone).unwrap());
    drop(store);
    let said = gc(&world, &[]);
    assert!(said.stdout.contains("removed 1 session of 2"), "{said:?}");
    assert_eq!(sessions(&world), ["20-days-ago"]);
    world.replays("20-days-ago");
}

#[test]
fn a_store_that_is_too_large_loses_the_oldest_first() {
    let world = worked("[store]\nmax_size = \"1MB\"");
    let agent = Agent::new(&world, "claude-code");
    for n in 0..10 {
        agent.prompt(&format!("{n}{}", "long ".repeat(5000)));
    }
    copies(&world, &[1, 2, 3, 4, 5, 6]);
    let file = world.store_folder().join("store.db");
    let before = file.metadata().unwrap().len();
    assert!(before > 1_000_000, "{before}");
    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let after = file.metadata().unwrap().len();
    assert!(after < 1_000_000, "{after}: {said:?}");
    assert!(said.stdout.starts_with("6-days-ago"), "{said:?}");
    assert!(said.stdout.contains("the store is too large"), "{said:?}");
    let left = sessions(&world);
    assert!(left.contains(&"1-days-ago".to_owned()), "{left:?}");
    assert!(!left.contains(&"6-days-ago".to_owned()), "{left:?}");
    world.replays("claude-code-session");
}

/// Whatever `keep` and `max_size` say: somebody may be at work in it, or want to know what happened.
#[test]
fn what_lived_within_a_day_stays() {
    let world = worked("[store]\nmax_size = \"1MB\"\nkeep = \"1d\"");
    let agent = Agent::new(&world, "claude-code");
    for n in 0..10 {
        agent.prompt(&format!("{n}{}", "long ".repeat(5000)));
    }
    agent.tell(&agent.message("SessionEnd", json!({ "reason": "exit" })));
    for hours in [1, 12, 23, 25] {
        let name = format!("{hours}-hours-ago");
        world.record_again(&agent.session, &name, |at| at - hours * DAY / 24);
    }
    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let left = [
        "1-hours-ago",
        "12-hours-ago",
        "23-hours-ago",
        "claude-code-session",
    ];
    let mut known = sessions(&world);
    known.dedup();
    assert_eq!(known, left, "{said:?}");
}

/// A call that has not come back yet keeps its session for a week.
#[test]
fn a_session_with_an_open_call_stays_for_a_week() {
    let world = worked("[store]\nkeep = \"1d\"");
    let agent = Agent::named(&world, "claude-code", "at-work");
    agent.prompt("train it");
    assert_eq!(
        agent.tell(&agent.call("long", "./train.sh")),
        Answer::Nothing
    );
    for days in [2, 6, 8] {
        let name = format!("{days}-days-at-work");
        world.record_again(&agent.session, &name, |at| at - days * DAY);
    }
    copies(&world, &[2]);
    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let left = [
        "2-days-at-work",
        "6-days-at-work",
        "at-work",
        "claude-code-session",
    ];
    assert_eq!(sessions(&world), left, "{said:?}");
}

/// One session whose log, or whose rows, cannot be read is told of, and stops nothing.
#[test]
fn a_session_that_cannot_be_read_stops_no_other() {
    let world = worked("[store]\nkeep = \"10d\"");
    copies(&world, &[40, 20, 6, 5, 4]);
    let store = SqliteStore::open_store_in_folder(&world.store_folder()).unwrap();
    for name in ["40-days-ago", "6-days-ago"] {
        let bad = NewEvent {
            kind: "prompt_submitted",
            payload: b"{\"at\": oh".to_vec(),
            key: None,
        };
        let batch = AppendBatch {
            events: vec![bad],
            ..AppendBatch::default()
        };
        let put =
            store.transact_on_session(&SessionId::from(name), &mut |_| Ok(Some(batch.clone())));
        put.unwrap();
    }
    drop(store);
    let of = |name: &str| format!("(SELECT id FROM session WHERE name = '{name}')");
    let damaged = world.damage(&format!(
        "UPDATE event SET kind = CAST(x'ff' AS TEXT) WHERE id = {} << 40 | 3",
        of("5-days-ago")
    )) && world.damage(&format!(
        "UPDATE task SET row = '{{' WHERE session = {}",
        of("4-days-ago")
    ));
    let shown = world.says(&["show", "claude-code", "--why"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("tests passed") || shown.stdout.contains("tests"),
        "{shown:?}"
    );
    let said = world.says(&["sessions"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for name in ["40-days-ago", "20-days-ago", "6-days-ago", "claude-code"] {
        assert!(said.stdout.contains(name), "{name}: {said:?}");
    }
    if damaged {
        assert!(said.stdout.contains("is damaged at event 3"), "{said:?}");
        let told = "The record of session 4-days-ago is damaged";
        assert!(said.stderr.contains(told), "{said:?}");
        let shown = world.says(&["show", "5-days-ago"]);
        assert!(shown.stderr.contains("damaged at event 3"), "{shown:?}");
    }
    // Nor any agent at work.
    let agent = Agent::named(&world, "codex", "next");
    agent.prompt("go on");
    world.write("work", "2");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");

    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("removed 2 sessions of"), "{said:?}");
    let left = sessions(&world);
    assert!(
        !left
            .iter()
            .any(|name| name == "40-days-ago" || name == "20-days-ago")
    );
    assert!(left.contains(&"6-days-ago".to_owned()), "{left:?}");
    world.replays("claude-code-session");
    world.replays("next");
}

#[test]
fn an_agent_removes_no_records() {
    let world = worked("[store]\nkeep = \"1d\"");
    copies(&world, &[40]);
    for (name, value) in [
        ("CLAUDECODE", "1"),
        ("CODEX_THREAD_ID", "x"),
        ("CHECKREIN_SESSION", "s"),
    ] {
        let output = world.checkrein(&["gc"]).env(name, value).output().unwrap();
        let said = Said::of(&output);
        assert_eq!(said.code, Some(4), "{said:?}");
        assert!(said.stderr.contains("not for agents"), "{said:?}");
        let output = world
            .checkrein(&["gc", "--dry-run"])
            .env(name, value)
            .output();
        assert_eq!(Said::of(&output.unwrap()).code, Some(0));
    }
    assert_eq!(sessions(&world).len(), 2);
    // CI has no person, and may.
    let said = Terminal::new(&world).with("CI", "true").says(&["gc"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(sessions(&world).len(), 1);
}

#[test]
fn where_nothing_is_recorded_nothing_is_made() {
    let world = World::new();
    let said = gc(&world, &[]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("Nothing is recorded"), "{said:?}");
    assert!(!world.state().exists());
    world.config("[store]\nkeep = \"1h\"\n");
    assert_eq!(gc(&world, &[]).code, Some(2));
    world.config("[store]\nmax_size = \"lots\"\n");
    assert_eq!(gc(&world, &[]).code, Some(2));
}

#[test]
fn agents_at_work_meanwhile_lose_nothing() {
    let world = worked("[store]\nkeep = \"1d\"");
    copies(&world, &[30, 31, 32, 33]);
    let agent = Agent::named(&world, "codex", "busy");
    agent.prompt("go on");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(Terminal::new(&world).says(&["gc"]).code, Some(0)));
        }
        for n in 0..10 {
            assert_eq!(agent.shell(&format!("ls {n}"), "x"), Answer::Nothing);
        }
    });
    gc(&world, &[]);
    assert_eq!(sessions(&world), ["busy", "claude-code-session"]);
    world.replays("busy");
    assert_eq!(world.inputs("busy").len(), 21);
}
