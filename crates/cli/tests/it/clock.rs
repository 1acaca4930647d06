//! What follows from the time: a clock that was wrong for a while, sessions to which nobody comes back for
//! days, and entries that fire one after the other.

use checkrein_core::digest::Digest;
use checkrein_store::{EvidenceFinality, SqliteStore, Store as _};
use serde_json::Value;

use crate::agent::{Agent, Answer};
use crate::world::{World, ending};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const YEAR: u64 = 365 * DAY;

fn is_grace(answer: &Answer) -> bool {
    matches!(answer, Answer::Denied(text) if text.contains("say what is done"))
}

/// How the tasks of a session ended, oldest first.
fn endings(world: &World, session: &str) -> Vec<String> {
    let rows = world.tasks().into_iter().rev();
    let rows = rows.filter(|row| row["session"] == session);
    rows.map(|row| ending(&row["transition"])).collect()
}

/// The whole session was recorded while the clock was a year ahead. From its next event on time goes on.
#[test]
fn a_clock_that_was_ahead_freezes_no_cap() {
    let world = World::new();
    let check = world.counted("tests", "true");
    world.config(&format!("[caps]\nwall_clock = \"10m\"\n{check}"));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    agent.shell("ls", "x");
    world.record_again(&agent.session, "ahead", |at| at + YEAR);
    let ahead = Agent::named(&world, "claude-code", "ahead");
    assert_eq!(ahead.shell("cat a", "x"), Answer::Nothing);
    for (minutes, capped) in [(9, false), (20, true)] {
        let name = format!("{minutes}-minutes-later");
        world.record_again("ahead", &name, |at| at - minutes * MINUTE);
        let later = Agent::named(&world, "claude-code", &name);
        let answer = later.shell("cat b", "x");
        assert_eq!(is_grace(&answer), capped, "{answer:?}");
        world.replays(&name);
    }
    // Nor is a day without news hidden.
    world.record_again("ahead", "a-day-later", |at| at - DAY - MINUTE);
    Agent::named(&world, "claude-code", "a-day-later").prompt("go on");
    assert_eq!(
        endings(&world, "a-day-later"),
        ["abandoned/day_passed", "open"]
    );
}

/// Nobody knows how old it is.
#[test]
fn a_pass_that_a_clock_ahead_found_is_not_believed() {
    let world = World::with_check("test -f fixed");
    world.write("fixed", "");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    let again = |name: &str| {
        let agent = Agent::named(&world, "claude-code", name);
        world.write("work", "2");
        agent.prompt("anything else?");
        world.write("work", "1");
        assert_eq!(agent.stop(), Answer::Nothing);
        world.runs("tests")
    };
    assert_eq!(again("next"), 1);
    let store = SqliteStore::open_store_in_folder(&world.store_folder()).unwrap();
    let kept = |key: &Digest| -> Option<Value> {
        serde_json::from_slice(&store.read_evidence(key).unwrap()?.bytes).ok()
    };
    let census = store.store_census().unwrap();
    let named = census.objects.iter().find_map(|(key, _)| {
        let newest = kept(key).filter(|newest| newest["run"].is_string())?;
        Some((*key, newest))
    });
    let (key, mut newest) = named.unwrap();
    let run = Digest::from_hex(newest["run"].as_str().unwrap()).unwrap();
    let mut ahead = kept(&run).unwrap();
    let later = |time: &Value| Value::from(time.as_u64().unwrap() + YEAR);
    for time in ["at", "began"] {
        ahead[time] = later(&ahead[time]);
    }
    newest["at"] = later(&newest["at"]);
    let id = Digest::hash_bytes(b"a run of the next year");
    newest["run"] = id.to_hex().into();
    let put = |key: &Digest, value: &Value, standing| {
        store
            .put_evidence_under_key(key, value.to_string().as_bytes(), standing)
            .unwrap();
    };
    put(&id, &ahead, EvidenceFinality::Final);
    put(&key, &newest, EvidenceFinality::Inconclusive);
    drop(store);
    assert_eq!(again("last"), 2);
}

#[test]
fn an_open_call_keeps_its_task_for_a_week() {
    let world = World::new();
    let check = world.counted("tests", "true");
    world.config(&format!("[caps]\nwall_clock = \"30d\"\n{check}"));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("train it");
    assert_eq!(
        agent.tell(&agent.call("long", "./train.sh")),
        Answer::Nothing
    );
    for (days, expected) in [(2, "open"), (6, "open"), (8, "abandoned/day_passed")] {
        let name = format!("{days}-days-at-work");
        world.record_again(&agent.session, &name, |at| at - days * DAY);
        let at_work = Agent::named(&world, "claude-code", &name);
        at_work.tell(&at_work.result("long", "./train.sh", "done"));
        assert_eq!(endings(&world, &name), [expected]);
        world.replays(&name);
    }
    agent.tell(&agent.result("long", "./train.sh", "done"));
    world.record_again(&agent.session, "came-back", |at| at - 2 * DAY);
    Agent::named(&world, "claude-code", "came-back").prompt("and now?");
    assert_eq!(
        endings(&world, "came-back"),
        ["abandoned/day_passed", "open"]
    );
}

/// Some agents start their entries one after the other: the second comes when the first has waited for its
/// checks.
#[test]
fn entries_that_fire_minutes_apart_deliver_one_stop() {
    let world = World::new();
    let check = world.counted("tests", "test -f fixed");
    world.config(&format!("[caps]\nattempts = 9\n{check}"));
    world.commit();
    let user = Agent::source(&world, "claude-code", "user");
    user.prompt("mend it");
    world.write("work", "1");
    user.stop().sent_back();
    world.record_again(&user.session, "later", |at| at - 2 * MINUTE);
    let entry = |session: &str, source: &str| {
        let mut entry = Agent::source(&world, "claude-code", source);
        entry.session = session.to_owned();
        entry
    };
    let counted = || {
        let tasks = world.tasks();
        let row = tasks.iter().find(|row| row["session"] == "later").unwrap();
        (
            row["stops"].as_u64().unwrap(),
            row["continues"].as_u64().unwrap(),
        )
    };
    let (user, project) = (entry("later", "user"), entry("later", "project"));
    let told = project.stop();
    assert!(
        told.sent_back()
            .contains("for the reason given beside this"),
        "{told:?}"
    );
    assert_eq!((counted(), world.runs("tests")), ((1, 1), 1));
    // The same words once more, by the same entry, are another stop.
    project.stop().sent_back();
    assert_eq!(counted(), (2, 2));

    let told = user.stop();
    assert!(told.sent_back().contains("beside this"), "{told:?}");
    assert_eq!(counted(), (2, 2));

    world.write("fixed", "");
    assert_eq!(user.stop(), Answer::Nothing);
    assert_eq!(counted(), (3, 2));
    let runs = world.runs("tests");
    world.record_again("later", "accepted", |at| at - 2 * MINUTE);
    world.record_again("later", "edited", |at| at - 2 * MINUTE);
    world.record_again("later", "long-ago", |at| at - 16 * MINUTE);
    let deliver = |session: &str| {
        let answer = entry(session, "project").stop();
        let tasks = world.tasks();
        let row = tasks.iter().find(|row| row["session"] == session).unwrap();
        (answer, row["stops"].as_u64().unwrap())
    };
    assert_eq!(deliver("accepted"), (Answer::Nothing, 3));
    assert_eq!(world.runs("tests"), runs);
    assert_eq!(deliver("long-ago"), (Answer::Nothing, 4));
    std::fs::remove_file(world.root().join("fixed")).unwrap();
    let (answer, stops) = deliver("edited");
    answer.sent_back();
    assert_eq!(
        stops, 4,
        "an accept is given again only for what it was about"
    );
}
