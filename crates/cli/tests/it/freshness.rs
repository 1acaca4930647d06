//! What a verdict is about: a pass that was found before something changed is not believed after it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use crate::agent::{Agent, Answer};
use crate::world::World;

/// A task at work, in a repo with this check.
fn at_work<'w>(world: &'w World, more: &str, check: &str) -> Agent<'w> {
    world.config(&format!("{}{more}", world.counted("tests", check)));
    world.commit();
    let agent = Agent::new(world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent
}

/// The newest task's end and its check's runs.
fn ended(world: &World) -> (String, usize) {
    (world.ending(), world.runs("tests"))
}

#[test]
fn what_inputs_name_counts_also_where_git_ignores_it() {
    let world = World::new();
    world.write(".gitignore", ".env\nnode_modules\n");
    world.write(".env", "1");
    world.write("node_modules/dep/i.js", "x");
    let agent = at_work(
        &world,
        "inputs = [\"**\", \".env\", \"node_modules/**\"]\n",
        "test -f node_modules/dep/i.js && grep -q 1 .env",
    );
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 1));
    world.write(".env", "0");
    agent.stop().sent_back();
    world.write(".env", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    std::fs::remove_dir_all(world.root().join("node_modules/dep")).unwrap();
    agent.stop().sent_back();
}

/// A second write through a mapping to a page that is dirty already: the file's times say nothing.
#[test]
fn a_write_through_a_mapping_is_seen() {
    let world = World::new();
    world.write("data.bin", "good data here");
    let agent = at_work(&world, "", "grep -q good data.bin");
    let mapped = "import mmap, sys, time\n\
        f = open('data.bin', 'r+b'); m = mmap.mmap(f.fileno(), 0)\n\
        m[0:4] = b'good'; time.sleep(0.3); print('dirty', flush=True)\n\
        sys.stdin.readline(); m[0:4] = b'bad!'; print('bad', flush=True); sys.stdin.readline()\n";
    let mut python = world.hermetic("python3");
    python.args(["-c", mapped]);
    python.stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut python) = python.spawn() else {
        return;
    };
    let (mut tell, said) = (python.stdin.take().unwrap(), python.stdout.take().unwrap());
    let mut said = BufReader::new(said).lines();
    assert_eq!(said.next().unwrap().unwrap(), "dirty");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 1));
    tell.write_all(b"\n").unwrap();
    assert_eq!(said.next().unwrap().unwrap(), "bad");
    agent.stop().sent_back();
    drop(tell);
    python.wait().unwrap();
    assert_eq!(world.runs("tests"), 2);
}

/// Handed back as a prompt, in whatever wrapping, it is no new task: that would reset every cap. What
/// a person asks about it is.
#[test]
fn our_own_feedback_opens_no_task_and_a_persons_question_does() {
    let world = World::new();
    let agent = at_work(&world, "", "test -f fixed");
    let told = agent.stop().sent_back().to_owned();
    let ours = [
        told.clone(),
        format!("Stop hook feedback:\n{told}"),
        format!(
            "<system-reminder>{}</system-reminder>",
            told.replace(' ', "\n")
        ),
        format!("{}\n[truncated]", told.lines().next().unwrap()),
    ];
    for text in ours {
        agent.prompt(&text);
        assert_eq!(world.tasks().len(), 1, "{text}");
    }
    agent.prompt("Stop hook feedback: what does this mean? Change src.txt please");
    assert_eq!(world.tasks().len(), 2);
    assert_eq!(
        world
            .inputs("claude-code-session")
            .iter()
            .filter(|input| { matches!(input, checkrein_core::input::Input::PromptSubmitted(_)) })
            .count(),
        2
    );
}

/// `checkrein run > out.json 2> err.log` in the repo: our own answer is no change of the tree, for `run`
/// nor for the hooks inside of it.
#[test]
fn what_we_print_into_the_tree_is_no_change_of_it() {
    let world = World::with_check("test -f ok.txt");
    let file = |name: &str| std::fs::File::create(world.root().join(name)).unwrap();
    let agent = "if [ -f first ]; then touch ok.txt; else touch first; fi; echo done";
    let mut run = world.checkrein(&["run", "--json", "--task", "make ok.txt", "--"]);
    run.args(["sh", "-c", agent]);
    let status = run
        .stdout(file("out.json"))
        .stderr(file("err.log"))
        .status();
    assert_eq!(status.unwrap().code(), Some(0));
    assert_eq!(ended(&world), ("task_complete".to_owned(), 2));
}
