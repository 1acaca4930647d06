//! Ways around that a fresh reader found: each was open once.

use serde_json::json;

use crate::agent::{Agent, Answer};
use crate::world::{World, ending};

/// `run`'s own claim is never answered by what a hook of the same session was told before.
#[test]
fn a_hooks_accepted_stop_does_not_answer_the_claim_of_run() {
    let world = World::with_check("test -f ok");
    let script = r#"touch ok
        printf '{"type":"stop","session":"%s","text":"Done."}\n' "$CHECKREIN_SESSION" | "$BIN" hook generic
        rm ok"#;
    let said = world.says(&["run", "--", "sh", "-c", script]);
    assert_eq!(said.code, Some(11), "{said:?}");
    assert_eq!(world.ending(), "gave_up/same_failures");
}

/// An entry that was not there before is no second voice of what another one said long ago.
#[test]
fn another_entry_later_on_tells_something_new() {
    let world = World::with_check("test -f ok");
    let user = Agent::source(&world, "claude-code", "user");
    let project = Agent::source(&world, "claude-code", "project");
    user.prompt("one");
    world.write("ok", "1");
    user.shell("touch ok", "");
    assert_eq!(user.stop(), Answer::Nothing);
    project.prompt("two");
    std::fs::remove_file(world.root().join("ok")).unwrap();
    project.shell("rm ok", "");
    project.stop().sent_back();
    let tasks = world.tasks();
    assert_eq!(tasks.len(), 2, "{tasks:?}");
}

/// An id that is used again is another call.
#[test]
fn a_call_id_used_again_is_judged_anew() {
    let world = World::with_check("true");
    world.write(
        "a.rules",
        "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")\n",
    );
    world.config("[policy]\nrules = [\"a.rules\"]\n");
    let agent = Agent::new(&world, "claude-code");
    assert_eq!(agent.tell(&agent.call("1", "ls")), Answer::Nothing);
    agent.tell(&agent.call("1", "rm -rf x")).denied();
    agent.tell(&agent.result("1", "ls", "a"));
    assert_eq!(agent.tell(&agent.call("1", "ls")), Answer::Nothing);
    assert_eq!(world.task()["tool_calls"], json!(3));
}

/// A link in a cloned repo does not lead our broom elsewhere.
#[cfg(unix)]
#[test]
fn logs_are_not_written_or_swept_through_a_link() {
    let world = World::with_check("sh -c 'echo said; exit 1'");
    world.write("docs/keep-0.txt", "0");
    for nth in 0..80 {
        world.write(&format!("docs/tests-{nth:016x}.log"), "mine");
    }
    std::fs::create_dir_all(world.root().join(".checkrein")).unwrap();
    std::os::unix::fs::symlink("../docs", world.root().join(".checkrein/logs")).unwrap();
    world.says(&["check"]);
    assert_eq!(
        std::fs::read_dir(world.root().join("docs"))
            .unwrap()
            .count(),
        81
    );
}

/// Files too large to read in time end in an answer, not in a hook that is given up on.
#[test]
fn huge_files_do_not_outlast_the_deadline() {
    let world = World::with_check("true");
    let mut agent = Agent::new(&world, "claude-code");
    agent.extra = vec!["--deadline".to_owned(), "3".to_owned()];
    agent.prompt("go");
    // Each is small enough to be read.
    for nth in 0..400 {
        let big = std::fs::File::create(world.root().join(format!("{nth}.img"))).unwrap();
        big.set_len(512 << 20).unwrap();
    }
    let began = std::time::Instant::now();
    let answer = agent.stop();
    // The agent would have stopped waiting after 3 s.
    assert!(began.elapsed().as_secs() < 20, "{answer:?}");
    assert!(!matches!(answer, Answer::Nothing), "{answer:?}");
}

#[test]
fn one_huge_file_is_judged_within_the_deadline() {
    let world = World::with_check("true");
    let mut agent = Agent::new(&world, "claude-code");
    agent.extra = vec!["--deadline".to_owned(), "60".to_owned()];
    agent.prompt("go");
    let big = std::fs::File::create(world.root().join("big.img")).unwrap();
    big.set_len(200 << 30).unwrap();
    let answer = agent.stop();
    assert!(answer.notice().contains("big.img"), "{answer:?}");
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(world.runs("tests"), 1);
}

/// A check that was cut once does not decide for the run that comes after it.
#[test]
fn a_verdict_of_an_earlier_run_is_not_taken_for_the_one_waited_for() {
    let world = World::new();
    let check = world.outside("check.sh");
    std::fs::write(&check, "test -f \"$HOME/quick\" && exit 0; sleep 30\n").unwrap();
    world.config(&format!(
        "[[verifier]]\nname = \"slow\"\nrun = \"sh {}\"\ntimeout = \"1s\"\n",
        check.display()
    ));
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    std::fs::create_dir_all(world.outside("home")).unwrap();
    std::fs::write(world.outside("home").join("quick"), "1").unwrap();
    let waiting: Vec<_> = (0..4)
        .map(|_| crate::world::start(&mut world.checkrein(&["check"]), b""))
        .collect();
    for child in waiting {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

/// A typo in `inputs` does not make a verdict eternal.
#[test]
fn inputs_that_match_nothing_are_about_everything() {
    let world = World::new();
    world.config(
        "[[verifier]]\nname = \"t\"\nrun = \"grep -q good src/a\"\ninputs = [\"scr/**\"]\n",
    );
    world.write("src/a", "good");
    for (session, text, expected) in [
        ("one", "good", "task_complete"),
        ("two", "bad", "gave_up/same_failures"),
    ] {
        world.write("src/a", text);
        world.commit();
        let agent = Agent::named(&world, "claude-code", session);
        agent.shell("true", "");
        for _ in 0..3 {
            agent.stop();
        }
        let task = world
            .tasks()
            .into_iter()
            .find(|task| task["session"] == session)
            .unwrap();
        assert_eq!(ending(&task["transition"]), expected);
    }
}
