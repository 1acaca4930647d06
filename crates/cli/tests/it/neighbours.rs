//! Somebody else who writes into the tree while a check runs: what the check says then counts neither for nor against
//! the agent, and a stop waits for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::agent::{Agent, Answer};
use crate::freshness::at_work;
use crate::world::{World, read_line, start};

/// What somebody else writes during the checks is no failure of the agent's, and what fails beside it is.
#[test]
fn a_neighbour_that_writes_is_no_attempt_and_hides_none() {
    // A stop waits for it a part of its time.
    let deadline = || vec!["--deadline".to_owned(), "8".to_owned()];
    let world = World::new();
    let mut agent = at_work(&world, "", "sleep 0.5");
    agent.extra = deadline();
    let neighbour = Neighbour::at(&world, "other-agent.txt");
    for _ in 0..2 {
        let answer = agent.stop();
        let text = answer.sent_back();
        assert!(
            text.contains("not judged yet") && text.contains("other-agent.txt"),
            "{text}"
        );
        assert!(!text.contains("do not pass"), "{text}");
    }
    agent.stop();
    assert_eq!(world.ending(), "unverified/tree_moving");
    drop(neighbour);
    agent.prompt("again");
    world.write("work", "2");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");

    let world = World::new();
    let lint = format!("{}inputs = [\"src/**\"]\n", world.counted("lint", "exit 1"));
    let mut agent = at_work(&world, &lint, "sleep 0.5");
    agent.extra = deadline();
    let _neighbour = Neighbour::at(&world, "other-agent.txt");
    for n in 0..2 {
        world.write("src/a", &n.to_string());
        agent.stop().sent_back();
    }
    world.write("src/a", "2");
    agent.stop();
    assert_eq!(world.ending(), "gave_up/same_failures");
}

/// Whose check it is that writes there: a neighbour is somebody who writes while none runs.
#[test]
fn what_the_check_of_another_process_writes_is_no_neighbours() {
    let world = World::new();
    let up = world.pipe("up");
    let lint = format!(
        "echo > {}; for _ in $(seq 50); do date +%N > made.txt; sleep 0.1; done",
        up.display()
    );
    let checks = format!(
        "accept = \"tests\"\n{}{}",
        world.counted("tests", "sleep 0.5"),
        world.counted("lint", &lint)
    );
    world.config(&checks);
    world.commit();
    let mut agent = Agent::new(&world, "claude-code");
    agent.extra = vec!["--deadline".to_owned(), "90".to_owned()];
    agent.prompt("mend it");
    world.write("work", "1");
    let by_hand = start(&mut world.checkrein(&["check", "lint"]), b"");
    read_line(&up);
    let told = agent.stop();
    by_hand.wait_with_output().unwrap();
    let disturbed = world.runs("tests") > 1
        || matches!(&told, Answer::SentBack(said) if said.contains("made.txt"));
    assert!(disturbed, "{told:?}");
    let known = world.store_folder().join("neighbours");
    let known = std::fs::read_dir(known).map_or(0, Iterator::count);
    assert_eq!(known, 0, "{told:?}");
}

/// What holds without the check that a neighbour disturbs has to hold after it was waited for, too.
#[test]
fn an_edit_while_a_neighbour_is_waited_for_is_seen() {
    let world = World::new();
    let e2e = format!(
        "accept = \"tests or e2e\"\n{}inputs = [\"src/**\"]\n{}",
        world.counted("tests", "grep -q good src/a"),
        world.counted("e2e", "sleep 0.5"),
    );
    world.config(&e2e);
    world.write("src/a", "good");
    world.commit();
    let mut agent = Agent::new(&world, "claude-code");
    // Long enough for both checks, whatever they take: the hook itself runs them.
    agent.extra = vec!["--deadline".to_owned(), "90".to_owned()];
    agent.prompt("mend it");
    world.write("work", "1");
    // It writes the same again and again, so that the tree is the same at each look.
    world.write("made.txt", "made");
    let neighbour = Neighbour::writing(&world, "made.txt", |_| "made".to_owned());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                if world.runs("e2e") > 0 {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            // Both have ended, and the neighbour is waited for.
            std::thread::sleep(Duration::from_secs(3));
            world.write("src/a", "broken");
        });
        agent.stop().sent_back();
    });
    drop(neighbour);
    let text = world.says(&["show"]).stdout;
    assert!(text.contains("tests fails"), "{text}");
}

/// Writes a file again and again until it is dropped.
struct Neighbour {
    ends: Arc<AtomicBool>,
    writes: Option<JoinHandle<()>>,
}

impl Neighbour {
    fn at(world: &World, name: &str) -> Self {
        Self::writing(world, name, |n| n.to_string())
    }

    fn writing(world: &World, name: &str, text: fn(u32) -> String) -> Self {
        let (path, ends) = (world.root().join(name), Arc::new(AtomicBool::new(false)));
        let end = Arc::clone(&ends);
        let writes = std::thread::spawn(move || {
            let mut n = 0;
            while !end.load(Ordering::Relaxed) {
                n += 1;
                std::fs::write(&path, text(n)).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self {
            ends,
            writes: Some(writes),
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(writes) = self.writes.take() {
            writes.join().unwrap();
        }
    }
}
