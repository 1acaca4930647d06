//! What counts as a change: through a whole stop, from the files to the answer.

use crate::agent::{Agent, Answer};
use crate::world::{World, feed};

/// A conversation that has changed something.
fn at_work<'w>(world: &'w World) -> Agent<'w> {
    let agent = Agent::new(world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent
}

#[test]
fn bytecode_that_a_check_leaves_is_no_change() {
    let world = World::new();
    let python = feed(world.hermetic("python3").args(["-c", "pass"]), b"").code == Some(0);
    // Without Python: files of the same names, new ones each time.
    let check = match python {
        true => "python3 -c 'import mend; mend.check()'",
        false => "mkdir -p __pycache__; echo $$ > __pycache__/mend.$$.pyc; grep -q good mend.py",
    };
    world.write("mend.py", "# bad\ndef check():\n    raise SystemExit(1)\n");
    world.config(&world.counted("tests", check));
    world.commit();
    let agent = at_work(&world);
    agent.stop().sent_back();
    world.write("mend.py", "# good, and longer than before\ndef check():\n    pass\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(world.runs("tests"), 2, "once for each tree");
    assert!(world.root().join("__pycache__").is_dir(), "it did write");
}

#[test]
fn a_check_that_always_writes_something_else_cannot_be_believed() {
    let world = World::with_check("echo $$ > report.txt");
    let agent = at_work(&world);
    let answer = agent.stop();
    let text = answer.sent_back();
    assert!(text.contains("files kept changing"), "{text}");
    assert!(text.contains("changed meanwhile: report.txt"), "{text}");
    assert!(text.contains("outputs = [\"report.txt\"]"), "the line to paste: {text}");
    assert_eq!(world.runs("tests"), 2, "once more, alone");

    // Pasted, and a new session.
    let world = World::new();
    world.config(&format!("{}outputs = [\"report.txt\"]\n", world.counted("tests", "echo $$ > report.txt")));
    let agent = at_work(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!((world.ending().as_str(), world.runs("tests")), ("task_complete", 1));
}

#[test]
fn a_check_that_writes_the_same_again_is_a_fixpoint() {
    let world = World::with_check("echo formatted > work");
    let agent = at_work(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!((world.ending().as_str(), world.runs("tests")), ("task_complete", 2));
    world.replays(&agent.session);
}

/// A world whose check opens `ready`, waits for a word in `go`, and then looks at the work.
fn held() -> (World, std::path::PathBuf, std::path::PathBuf) {
    let world = World::new();
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let check = format!("echo ready > '{}'; read go < '{}'; ! grep -q bad work", ready.display(), go.display());
    world.config(&world.counted("tests", &check));
    world.commit();
    (world, ready, go)
}

#[test]
fn an_editor_beside_the_check() {
    // Once: judged anew for the tree as it is now.
    let (world, ready, go) = held();
    let agent = at_work(&world);
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| Agent::new(&world, "claude-code").stop());
        crate::world::read_line(&ready);
        world.write("work", "now it is bad");
        std::fs::write(&go, "go\n").unwrap();
        crate::world::read_line(&ready);
        std::fs::write(&go, "go\n").unwrap();
        let answer = stopping.join().unwrap();
        assert!(answer.sent_back().contains("tests: failed"), "{answer:?}");
    });
    assert_eq!(world.runs("tests"), 2);
    world.replays(&agent.session);

    // Again and again: nobody knows what the verdict is about.
    let (world, ready, go) = held();
    let agent = at_work(&world);
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| Agent::new(&world, "claude-code").stop());
        for n in 0..2 {
            crate::world::read_line(&ready);
            world.write("work", &format!("edit {n}"));
            std::fs::write(&go, "go\n").unwrap();
        }
        let answer = stopping.join().unwrap();
        assert!(answer.sent_back().contains("files kept changing"), "{answer:?}");
        assert!(answer.sent_back().contains("changed meanwhile: work"), "{answer:?}");
    });
    assert_eq!(world.ending(), "open");
    world.replays(&agent.session);
}

#[test]
fn hiding_a_file_from_git_does_not_hide_it_from_us() {
    for hide in ["--assume-unchanged", "--skip-worktree"] {
        let world = World::with_check("! grep -q bad README");
        let agent = at_work(&world);
        assert_eq!(agent.stop(), Answer::Nothing);
        world.git(&["update-index", hide, "README"]);
        world.write("README", "bad");
        assert!(matches!(agent.stop(), Answer::SentBack(_)), "{hide}");
        assert_eq!(world.runs("tests"), 2);
    }
}

#[test]
fn ignoring_everything_does_not_hide_what_was_tracked() {
    let world = World::with_check("! grep -q bad README");
    let agent = at_work(&world);
    world.write(".gitignore", "*\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    world.write("README", "bad");
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 2);
    assert_eq!(world.ending(), "open");
}

#[test]
fn ignored_files_do_not_count() {
    let world = World::with_check("true");
    world.write(".gitignore", "*.log\n");
    world.commit();
    let agent = at_work(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    world.write("noise.log", "much of it");
    agent.shell("ls", "");
    agent.stop();
    assert_eq!(world.runs("tests"), 1);
    world.write("noise.txt", "counts");
    agent.stop();
    assert_eq!(world.runs("tests"), 2);
}

#[test]
fn without_git() {
    let world = World::without_git();
    world.config(&world.counted("tests", "! grep -q bad work"));
    world.write("work", "bad");
    let agent = Agent::new(&world, "codex");
    agent.prompt("what is it?");
    agent.stop();
    assert_eq!((world.ending().as_str(), world.runs("tests")), ("unverified/no_change", 0));
    agent.prompt("mend it");
    world.write("other", "1");
    agent.stop().sent_back();
    world.write("work", "good");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!((world.ending().as_str(), world.runs("tests")), ("task_complete", 2));
    world.replays(&agent.session);
}

#[test]
fn five_thousand_files() {
    let world = World::with_check("true");
    for n in 0..5_000 {
        world.write(&format!("src/{}/{n}.txt", n % 50), &n.to_string());
    }
    world.commit();
    assert_eq!(world.says(&["check"]).code, Some(0));
    assert_eq!(world.says(&["check"]).code, Some(0));
    assert_eq!(world.runs("tests"), 1);
    // Same length, another text.
    world.write("src/7/4007.txt", "4008");
    assert_eq!(world.says(&["check"]).code, Some(0));
    assert_eq!(world.runs("tests"), 2);
    world.write("src/7/4007.txt", "4007");
    assert_eq!(world.says(&["check"]).code, Some(0));
    assert_eq!(world.runs("tests"), 2, "back again: that verdict is known");
}
