//! What counts as a change: through a whole stop, from the files to the answer.

use std::path::{Path, PathBuf};

use crate::agent::{Agent, Answer};
use crate::world::{World, feed, read_line};

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
    // New ones each time, as an interpreter would write them.
    let check = "mkdir -p __pycache__; echo $$ > __pycache__/mend.$$.pyc; ! grep -q bad mend.py";
    world.write("mend.py", "bad = True\n");
    world.config(&world.counted("tests", check));
    world.commit();
    let agent = at_work(&world);
    agent.stop().sent_back();
    world.write("mend.py", "good = True\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(world.runs("tests"), 2, "once for each tree");
    assert!(world.root().join("__pycache__").is_dir(), "it did write");
}

/// An interpreter tells stale bytecode by second and size: a mend of the same size within
/// the second must not be judged by what the check of the broken file left behind.
#[test]
fn a_quick_mend_of_the_same_size_is_seen() {
    let world = World::new();
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return;
    }
    world.write("sum.py", "def add(a, b):\n    return a - b\n");
    world.config(&world.counted(
        "tests",
        "python3 -c 'from sum import add; assert add(2, 2) == 4'",
    ));
    let agent = at_work(&world);
    agent.stop().sent_back();
    world.write("sum.py", "def add(a, b):\n    return a + b\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
}

#[test]
fn a_check_that_always_writes_something_else_cannot_be_believed() {
    let world = World::with_check("echo $$ > report.txt");
    let agent = at_work(&world);
    let answer = agent.stop();
    let text = answer.sent_back();
    assert!(text.contains("files kept changing"), "{text}");
    assert!(text.contains("changed meanwhile: report.txt"), "{text}");
    // What to leave out is for a person to say.
    assert!(!text.contains("outputs"), "{text}");
    let story = world.says(&["show"]).stdout.replace('\n', " ");
    let story = story.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        story.contains("files kept changing while it ran: report.txt"),
        "{story}"
    );
    assert!(
        story.contains("outputs = [\"report.txt\"]"),
        "the line to paste: {story}"
    );
    // Once more, alone, for the stop's tree; the same for the tree as it was then.
    assert!(
        (2..=4).contains(&world.runs("tests")),
        "{}",
        world.runs("tests")
    );

    // Pasted, and a new session.
    let world = World::new();
    world.config(&format!(
        "{}outputs = [\"report.txt\"]\n",
        world.counted("tests", "echo $$ > report.txt")
    ));
    let agent = at_work(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(
        (world.ending().as_str(), world.runs("tests")),
        ("task_complete", 1)
    );
}

#[test]
fn a_check_that_writes_the_same_again_is_a_fixpoint() {
    let world = World::with_check("echo formatted > work");
    let agent = at_work(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(
        (world.ending().as_str(), world.runs("tests")),
        ("task_complete", 2)
    );
    world.replays(&agent.session);
}

/// A world whose check opens `ready`, waits for a word in `go`, and then looks at the work.
fn held() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let check = format!(
        "echo ready > '{}'; read go < '{}'; ! grep -q bad work",
        ready.display(),
        go.display()
    );
    world.config(&world.counted("tests", &check));
    world.commit();
    (world, ready, go)
}

/// Stops while somebody else edits during every run of the check; the number of runs.
fn stop_beside_an_editor(
    world: &World,
    ready: &Path,
    go: &Path,
    edit: impl Fn(usize) + Sync,
) -> (Answer, usize) {
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            let mut runs = 0;
            while read_line(ready) == "ready\n" {
                edit(runs);
                runs += 1;
                std::fs::write(go, "go\n").unwrap();
            }
            runs
        });
        let answer = Agent::new(world, "claude-code").stop();
        std::fs::write(ready, "that is all\n").unwrap();
        (answer, editor.join().unwrap())
    })
}

#[test]
fn an_editor_beside_the_check() {
    // Once: judged anew for the tree as it is now.
    let (world, ready, go) = held();
    let agent = at_work(&world);
    let once = |run: usize| {
        if run == 0 {
            world.write("work", "now it is bad");
        }
    };
    let (answer, runs) = stop_beside_an_editor(&world, &ready, &go, once);
    assert!(answer.sent_back().contains("tests: failed"), "{answer:?}");
    assert_eq!(runs, 2);
    world.replays(&agent.session);

    // Again and again: nobody knows what the verdict is about.
    let (world, ready, go) = held();
    let agent = at_work(&world);
    let always = |run: usize| world.write("work", &format!("edit {run}"));
    let (answer, runs) = stop_beside_an_editor(&world, &ready, &go, always);
    assert!(
        answer.sent_back().contains("files kept changing"),
        "{answer:?}"
    );
    assert!(
        answer.sent_back().contains("changed meanwhile: work"),
        "{answer:?}"
    );
    assert!(
        runs <= 4,
        "twice for the stop's tree, twice for the tree as it was then: {runs}"
    );
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
    assert!(
        agent
            .stop()
            .notice()
            .contains("edited during this task: .gitignore")
    );
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
fn a_file_with_a_hole_of_20_gib_is_not_read_and_that_is_said() {
    let world = World::with_check("true");
    let large = std::fs::File::create(world.root().join("large.bin")).unwrap();
    large.set_len(20 << 30).unwrap();
    let check = || {
        let said = world.says(&["check"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.stderr.contains("512 MiB"), "{said:?}");
        assert!(said.stderr.contains("large.bin"), "{said:?}");
        world.runs("tests")
    };
    assert_eq!((check(), check()), (1, 1));
    let modified = large.metadata().unwrap().modified().unwrap();
    std::os::unix::fs::FileExt::write_all_at(&large, b"x", 10 << 30).unwrap();
    large.set_modified(modified).unwrap();
    assert_eq!((check(), check()), (2, 2));

    // So does the ending, to the person, and `doctor`; a question is answered without a word.
    let agent = at_work(&world);
    let answer = agent.stop();
    assert_eq!(world.ending(), "task_complete");
    let notice = answer.notice();
    assert!(
        notice.contains("512 MiB") && notice.contains("large.bin"),
        "{notice}"
    );
    agent.prompt("what is it?");
    assert_eq!(agent.stop(), Answer::Nothing);
    let said = world.says(&["doctor"]);
    assert!(
        said.stdout.contains("larger than 512 MiB: large.bin"),
        "{said:?}"
    );
    let said = world.says(&["run", "--", "sh", "-c", "echo 7 > work"]);
    assert!(said.stderr.contains("large.bin"), "{said:?}");
}

#[test]
fn without_git() {
    let world = World::without_git();
    world.config(&world.counted("tests", "! grep -q bad work"));
    world.write("work", "bad");
    let agent = Agent::new(&world, "codex");
    agent.prompt("what is it?");
    agent.stop();
    assert_eq!(
        (world.ending().as_str(), world.runs("tests")),
        ("unverified/no_change", 0)
    );
    agent.prompt("mend it");
    world.write("other", "1");
    agent.stop().sent_back();
    world.write("work", "good");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(
        (world.ending().as_str(), world.runs("tests")),
        ("task_complete", 2)
    );
    world.replays(&agent.session);
}

#[test]
fn five_thousand_files() {
    let world = World::with_check("true");
    for n in 0..5_000 {
        world.write(&format!("src/{}/{n}.txt", n % 50), &n.to_string());
    }
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

/// Nobody knows then what the tree was at the prompt. What the agent did since, its calls say.
#[test]
fn a_question_in_a_tree_that_is_too_large_to_be_read_in_time_runs_nothing() {
    for (command, ending, runs) in [
        ("ls src", "unverified/no_change", 0),
        ("touch src/new", "task_complete", 1),
        ("./mend.sh", "task_complete", 1),
    ] {
        let world = World::with_check("true");
        let large = |n: usize| world.root().join(format!("large-{n}.bin"));
        // Holes are read as fast as memory is, and digested: far more than two seconds' work.
        for n in 0..96 {
            let file = std::fs::File::create(large(n)).unwrap();
            file.set_len((512 << 20) - 1).unwrap();
        }
        let agent = Agent::new(&world, "claude-code");
        agent.prompt("what is this?");
        (0..96).for_each(|n| std::fs::remove_file(large(n)).unwrap());
        assert_eq!(agent.shell(command, "said"), Answer::Nothing);
        assert_eq!(agent.stop_saying("A project."), Answer::Nothing);
        assert_eq!(
            (world.ending(), world.runs("tests")),
            (ending.to_owned(), runs)
        );
        let why = world.why().contains("the tree at the prompt is not known");
        assert_eq!(why, runs == 0);
        world.replays(&agent.session);
    }
}
