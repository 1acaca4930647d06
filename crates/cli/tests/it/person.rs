//! What only a person at a terminal may do, and what it means to be switched off.

use checkrein_core::event::Event;
use serde_json::Value;

use crate::agent::{Agent, Answer, BOTH};
use crate::terminal::Terminal;
use crate::world::World;

const OFF: [&str; 5] = ["off", "--for", "1h", "--reason", "the build server is down"];

/// What is refused to whoever is no person.
const ACTS: &[&[&str]] = &[&OFF, &["on"]];

fn off_file(world: &World) -> Option<Value> {
    let folders = std::fs::read_dir(world.state()).unwrap().flatten();
    let file = folders
        .map(|folder| folder.path().join("off.json"))
        .find(|file| file.exists())?;
    Some(serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
}

#[test]
fn without_a_terminal_nobody_is_a_person() {
    let world = World::with_check("true");
    for act in ACTS {
        let said = world.says(act);
        assert_eq!(said.code, Some(4), "{act:?}: {said:?}");
        assert!(
            said.stderr.contains("for a person at a terminal"),
            "{said:?}"
        );
        assert!(said.stderr.contains("not both a terminal"), "{said:?}");
        assert!(!world.state().exists(), "nothing was written");
    }
}

#[test]
fn under_an_agents_marks_nobody_is_a_person() {
    let world = World::with_check("true");
    for mark in ["CLAUDECODE", "CODEX_THREAD_ID", "CHECKREIN_SESSION", "CI"] {
        for act in ACTS {
            let said = Terminal::new(&world).with(mark, "1").says(act);
            assert_eq!(said.code, Some(4), "{act:?}: {said:?}");
            assert!(said.stdout.contains(mark), "{said:?}");
            assert!(!world.state().exists(), "nothing was written");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn under_an_agents_process_nobody_is_a_person() {
    let world = World::with_check("true");
    for agent in ["claude", "codex"] {
        for act in ACTS {
            let said = Terminal::new(&world).under(agent).says(act);
            assert_eq!(said.code, Some(4), "{act:?}: {said:?}");
            assert!(
                said.stdout.contains(&format!("under `{agent}`")),
                "{said:?}"
            );
        }
    }
    let said = Terminal::new(&world).under("some-shell").says(&OFF);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn off_is_recorded_with_how_a_person_was_told() {
    let world = World::with_check("true");
    let said = Terminal::new(&world).says(&OFF);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("switched off until"), "{said:?}");
    let off = off_file(&world).unwrap();
    assert_eq!(off["reason"], "the build server is down");
    assert_eq!(off["by"]["terminal"], true);
    assert_eq!(off["by"]["marks"], serde_json::json!([]));
    #[cfg(target_os = "linux")]
    assert_eq!(off["by"]["ancestors"][0], "sh", "{off}");
    assert_eq!(
        off["until"].as_u64().unwrap() - off["since"].as_u64().unwrap(),
        3_600_000
    );

    let said = Terminal::new(&world).says(&["on"]);
    assert!(said.stdout.contains("on again"), "{said:?}");
    assert_eq!(off_file(&world), None);
    let said = Terminal::new(&world).says(&["on"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("was not switched off"), "{said:?}");
}

#[test]
fn off_takes_a_span_and_a_reason() {
    let world = World::with_check("true");
    for (act, what) in [
        (["off", "--for", "soon", "--reason", "x"], "'soon'"),
        (["off", "--for", "0m", "--reason", "x"], "'0m'"),
        (["off", "--for", "1h", "--reason", " "], "--reason"),
    ] {
        let said = Terminal::new(&world).says(&act);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stdout.contains(what), "{said:?}");
    }
    let said = Terminal::new(&world).says(&["off"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[test]
fn while_off_nothing_is_judged_and_every_ending_says_so() {
    for name in BOTH {
        let world = World::with_check("exit 1");
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop().sent_back();
        Terminal::new(&world).says(&OFF);

        assert_eq!(agent.shell("checkrein off --for 9h", ""), Answer::Nothing);
        let answer = agent.stop();
        let notice = answer.notice();
        assert!(notice.contains("switched off until"), "{notice}");
        assert!(notice.contains("the build server is down"), "{notice}");
        assert!(notice.contains("show"), "{notice}");
        assert_eq!(world.ending(), "unverified/passed_over");
        assert!(
            notice.contains("Let through unchecked: checkrein is switched off until"),
            "{notice}"
        );
        assert!(
            world.why().contains("next: checkrein on\n"),
            "{}",
            world.why()
        );
        assert!(
            world.why().contains("checkrein is switched off until"),
            "{}",
            world.why()
        );
        assert_eq!(world.runs("tests"), 1, "nothing ran");
        for command in [&["sessions"][..], &["show"]] {
            let said = world.says(command);
            assert!(said.stderr.contains("switched off until"), "{said:?}");
        }
        world.replays(&agent.session);

        Terminal::new(&world).says(&["on"]);
        agent.stop().sent_back();
        assert_eq!(world.ending(), "open", "work after it is judged again");
    }
}

#[test]
fn off_runs_out() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    Terminal::new(&world).says(&OFF);
    let mut off = off_file(&world).unwrap();
    off["until"] = off["since"].clone();
    std::fs::write(world.store_folder().join("off.json"), off.to_string()).unwrap();
    agent.stop().sent_back();
}

#[test]
fn off_works_when_the_store_does_not() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    Terminal::new(&world).says(&OFF);
    for file in std::fs::read_dir(world.store_folder()).unwrap().flatten() {
        if file.file_name().to_string_lossy().starts_with("store.db") {
            std::fs::write(file.path(), "this is no database, whatever it is called").unwrap();
        }
    }
    assert_eq!(agent.shell("ls", ""), Answer::Nothing);
    let answer = agent.stop();
    assert!(answer.notice().contains("switched off until"), "{answer:?}");
}

#[test]
fn run_ends_unverified_while_off() {
    let world = World::with_check("exit 1");
    Terminal::new(&world).says(&OFF);
    let said = world.says(&["run", "--", "sh", "-c", "echo 1 > work"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    assert!(said.stderr.contains("switched off until"), "{said:?}");
    assert_eq!(world.ending(), "unverified/passed_over");
    assert_eq!(world.runs("tests"), 0);
}

#[test]
fn a_session_that_begins_with_a_stop_while_off_is_sealed_as_run_would() {
    let world = World::with_check("exit 1");
    let sealed = |session: &str, source: &str, first: fn(&Agent<'_>)| {
        let mut agent = Agent::named(&world, "claude-code", session);
        agent.extra = ["--source", source, "--attempts", "7"]
            .map(str::to_owned)
            .to_vec();
        first(&agent);
        match world.log(session).into_iter().next() {
            Some(Event::PolicySealed { policy, .. }) => policy,
            other => panic!("not sealed: {other:?}"),
        }
    };
    let by_run = sealed("judged", "run", |agent| agent.prompt("mend it"));
    let by_hook = sealed("hook", "hook", |agent| agent.prompt("mend it"));
    assert_ne!(by_run, by_hook);
    Terminal::new(&world).says(&OFF);
    let stop = |agent: &Agent<'_>| {
        agent.stop().notice();
    };
    assert_eq!(sealed("off", "run", stop), by_run);
    assert_eq!(sealed("off-hook", "hook", stop), by_hook);
}
