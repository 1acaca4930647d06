//! What a verdict is about: a pass that was found before something changed is not believed after it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::agent::{Agent, Answer, read};
use crate::terminal::Terminal;
use crate::world::{Said, World, read_line, start};

/// A task at work, in a repo with this check.
pub(crate) fn at_work<'w>(world: &'w World, more: &str, check: &str) -> Agent<'w> {
    world.config(&format!("{}{more}", world.counted("tests", check)));
    world.commit();
    let agent = Agent::new(world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent
}

/// Something that a check asks and that no file of the tree shows.
struct Service(PathBuf);

impl Service {
    fn running(world: &World) -> Self {
        let service = Self(world.outside("service"));
        service.is_now("up");
        service
    }

    fn is_now(&self, what: &str) {
        std::fs::write(&self.0, what).unwrap();
    }

    fn check(&self) -> String {
        format!("grep -q up {}", self.0.display())
    }
}

fn switch_off(world: &World) {
    let off = ["off", "--for", "1h", "--reason", "a demonstration"];
    let said = Terminal::new(world).says(&off);
    assert_eq!(said.code, Some(0), "{said:?}");
}

fn switch_on(world: &World) {
    let said = Terminal::new(world).says(&["on"]);
    assert_eq!(said.code, Some(0), "{said:?}");
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

/// Neither `.env` nor what is installed counts for the tree. A check reads both.
#[test]
fn what_is_installed_and_env_files_are_what_a_check_runs_with() {
    let world = World::new();
    world.write(".gitignore", ".env\nnode_modules\n.venv\n");
    world.write(".env", "0");
    world.write("node_modules/dep/i.js", "x");
    world.write(".venv/lib/python3.12/site-packages/dep/x.py", "x");
    let needs = "test -d node_modules/dep && test -d .venv/lib/python3.12/site-packages/dep";
    let attempts = "[caps]\nattempts = 9\n";
    let agent = at_work(&world, attempts, &format!("{needs} && grep -q 1 .env"));
    agent.stop().sent_back();
    world.write(".env", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 2));
    // What tools leave there themselves is no other set of packages.
    world.write("node_modules/.cache/x", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 2);
    for gone in ["node_modules/dep", ".venv/lib/python3.12/site-packages/dep"] {
        let hidden = world.outside("hidden");
        std::fs::rename(world.root().join(gone), &hidden).unwrap();
        agent.stop().sent_back();
        std::fs::rename(&hidden, world.root().join(gone)).unwrap();
        assert_eq!(agent.stop(), Answer::Nothing);
    }
    // A question is none the less one.
    agent.prompt("what is this?");
    world.write(".env", "0");
    agent.stop();
    assert_eq!(world.ending(), "unverified/no_change");
}

/// A package manager that the agent left running ends while a check runs: what passed is not what is installed.
#[test]
fn an_installation_that_ends_during_a_check_takes_its_pass_away() {
    let world = World::new();
    let (up, go) = (world.pipe("up"), world.pipe("go"));
    world.write(".gitignore", "node_modules\n");
    world.write("node_modules/dep/version", "1");
    let check = format!(
        "v=$(cat node_modules/dep/version); echo > '{}'; read x < '{}'; test $v = 1",
        up.display(),
        go.display()
    );
    let agent = at_work(&world, "", &check);
    agent.shell("npm install &", "");
    let message = agent.stop_message(false, "Done.").to_string();
    let hook = start(&mut agent.hook(), message.as_bytes());
    read_line(&up);
    world.write("node_modules/dep/version", "2");
    world.write("node_modules/.package-lock.json", "{\"dep\": 2}");
    std::fs::write(&go, "\n").unwrap();
    // It is run once more, with what is there by now.
    read_line(&up);
    std::fs::write(&go, "\n").unwrap();
    let answer = read(
        "claude-code",
        "Stop",
        &Said::of(&hook.wait_with_output().unwrap()),
    );
    assert!(answer.sent_back().contains("tests: failed"), "{answer:?}");
    assert_eq!(world.runs("tests"), 2);
    world.replays(&agent.session);
}

/// The third stop with the same failures would end the task; a person has mended what only they can.
#[test]
fn a_person_who_mends_env_before_the_last_stop_is_seen() {
    let world = World::new();
    world.write(".gitignore", ".env\n");
    world.write(".env", "TOKEN=\n");
    let agent = at_work(&world, "", "grep -q TOKEN=x .env");
    agent.stop().sent_back();
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 1);
    world.write(".env", "TOKEN=x\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 2));
}

/// Another version of the program that a check runs is another check, and so is another interpreter.
#[test]
fn another_program_is_another_check() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let tool = |name: &str, text: &str| {
        let file = world.outside("bin").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    tool("mytool", "#!/usr/bin/env myshell\nexit 0\n");
    tool("myshell", "#!/bin/sh\nexec sh \"$@\"\n");
    let path = format!(
        "{}:{}",
        world.outside("bin").display(),
        std::env::var("PATH").unwrap()
    );
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"mytool\"\n");
    world.commit();
    let mut agent = Agent::new(&world, "claude-code");
    agent.env = vec![("PATH", path)];
    agent.prompt("mend it");
    world.write("work", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    tool("mytool", "#!/usr/bin/env myshell\nexit 1\n");
    agent.stop().sent_back();
    tool("mytool", "#!/usr/bin/env myshell\nexit 0\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    tool("myshell", "#!/bin/sh\nexit 1\n");
    agent.stop().sent_back();
    world.replays("claude-code-session");
}

/// The newest run of a key is the one that is told, believed and shared.
#[test]
fn a_later_run_takes_the_place_of_an_earlier_one() {
    let world = World::new();
    let out = world.outside("out");
    let told = |text: &str, status: u32| {
        std::fs::write(&out, format!("echo '{text}'; exit {status}\n")).unwrap();
    };
    told("FAILED t.py::test_alpha - alpha", 1);
    let check = format!("sh '{}'", out.display());
    world.config(&format!(
        "verify_on = \"always\"\n{}",
        world.counted("tests", &check)
    ));
    world.commit();
    let task = |session: &str| {
        let agent = Agent::named(&world, "claude-code", session);
        agent.prompt("mend it");
        agent.stop()
    };
    assert!(task("a").sent_back().contains("alpha"));
    told("FAILED t.py::test_beta - beta", 1);
    let answer = task("b");
    assert!(answer.sent_back().contains("beta"), "{answer:?}");
    assert!(!answer.sent_back().contains("alpha"), "{answer:?}");
    told("1 passed", 0);
    assert_eq!(task("c"), Answer::Nothing);
    let runs = world.runs("tests");
    assert_eq!(task("d"), Answer::Nothing);
    assert_eq!((runs, world.runs("tests")), (3, 3));
    // What each was told stands as it was told.
    let shown = world.says(&["show", "a"]).stdout;
    assert!(
        shown.contains("alpha") && !shown.contains("beta"),
        "{shown}"
    );
}

/// The same files, and nothing that this session could have seen was done to them.
#[test]
fn what_another_session_found_out_since_takes_the_place_of_a_pass() {
    let world = World::new();
    let service = Service::running(&world);
    let agent = at_work(&world, "", &service.check());
    assert_eq!(agent.stop(), Answer::Nothing);
    service.is_now("down");
    let other = Agent::named(&world, "claude-code", "b");
    other.prompt("something else");
    other.shell("./a-program-of-theirs", "");
    world.write("work", "2");
    other.stop().sent_back();
    world.write("work", "1");
    other.stop().sent_back();
    assert_eq!(world.runs("tests"), 3);
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 3, "its run is taken");
}

/// A check that changes the tree and changes it back has judged another, and so has one beside it.
#[test]
fn a_check_that_takes_files_away_and_brings_them_back_is_not_believed() {
    let stash = "git stash -q && sleep 0.5 && git stash pop -q";
    // Beside another, which passes only because it reads the file as it was before.
    let world = World::new();
    world.write("src.txt", "good\n");
    let beside = "sleep 0.2; v=$(cat src.txt); sleep 0.8; test \"$v\" = good";
    let lint = world.counted("lint", stash);
    let agent = at_work(&world, &lint, beside);
    world.write("src.txt", "broken\n");
    agent.stop().sent_back();
    let text = world.says(&["show"]).stdout.replace('\n', " ");
    assert!(text.contains("takes files away while it runs"), "{text}");
    assert!(text.contains("tests fails"), "{text}");

    // Alone.
    let world = World::new();
    world.write("src.txt", "good\n");
    let lone = "git stash -q; sleep 0.3; grep -q good src.txt; s=$?; git stash pop -q; exit $s";
    let agent = at_work(&world, "", lone);
    world.write("src.txt", "broken\n");
    let answer = agent.stop();
    let text = answer.sent_back();
    assert!(
        text.contains("takes files away") && text.contains("src.txt"),
        "{text}"
    );
    // It is known by now, and one run is enough.
    let runs = world.runs("tests");
    world.write("other.txt", "1");
    agent.stop();
    assert_eq!((runs, world.runs("tests")), (2, 3));
    assert_eq!(world.ending(), "verifier_failed_unrecoverable/tests");
}

/// One that writes what is there already leaves the tree as it is. It runs twice once, and alone ever after.
#[test]
fn a_check_that_writes_the_same_again_passes() {
    let world = World::new();
    world.write("made.txt", "made\n");
    let agent = at_work(&world, "", "rm made.txt && echo made > made.txt");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 2));
    world.write("work", "2");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 3));
}

/// A check that tidies what it finds: each edit moves other files, and each time it comes to rest.
#[test]
fn a_check_that_tidies_up_passes_after_each_edit() {
    let world = World::new();
    let tidy =
        "grep -q ' $' src.txt && sed -i 's/ *$//' src.txt; date +%N > gen.$(wc -c < work); true";
    let agent = at_work(&world, "outputs = [\"gen.*\"]\n", tidy);
    for at in 1..4 {
        world.write("src.txt", &format!("{at} \n"));
        assert_eq!(agent.stop(), Answer::Nothing, "{at}");
        assert_eq!(world.ending(), "task_complete");
    }
}

/// More files than are kept in mind.
#[test]
fn a_check_that_writes_many_files_again_passes_after_each_edit() {
    let world = World::new();
    for at in 0..250 {
        world.write(&format!("gen/{at}.txt"), "made\n");
    }
    let again = "for f in gen/*; do echo made > $f; done";
    let agent = at_work(&world, "", again);
    for at in 0..3 {
        world.write("work", &format!("{at}"));
        assert_eq!(agent.stop(), Answer::Nothing, "{at}");
        assert_eq!(world.ending(), "task_complete");
    }
}

/// Behind `timeout`, or linked from another checkout.
#[test]
fn a_program_behind_a_wrapper_and_linked_packages_are_what_a_check_runs_with() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = World::new();
    world.write(".gitignore", "node_modules\n");
    let tool = world.outside("mytool");
    let write = |text: &str| {
        std::fs::write(&tool, text).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("#!/bin/sh\nexit 0\n");
    let packages = world.outside("packages");
    std::fs::create_dir_all(packages.join("dep")).unwrap();
    symlink(&packages, world.root().join("node_modules")).unwrap();
    let check = format!("timeout 60 {} && test -d node_modules/dep", tool.display());
    let agent = at_work(&world, "", &check);
    assert_eq!(agent.stop(), Answer::Nothing);
    write("#!/bin/sh\nexit 1\n");
    agent.stop().sent_back();
    write("#!/bin/sh\nexit 0\n");
    assert_eq!(agent.stop(), Answer::Nothing);
    std::fs::remove_dir(packages.join("dep")).unwrap();
    agent.stop().sent_back();
}

/// A check that asks a service, and what an agent does to that between two stops.
#[test]
fn what_was_done_since_takes_a_pass_away() {
    let world = World::new();
    let service = Service::running(&world);
    let agent = at_work(&world, "", &service.check());
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 1));
    // Who only reads has done nothing.
    agent.shell("ls -l && git status --short && cat work", "1");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 1);
    // Nor who changes files that count: the tree says so itself.
    let work = world.root().join("work").display().to_string();
    written(&agent, &work, || ());
    agent.shell("sed -i s/1/1/ work", "");
    agent.shell("touch none-yet", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 1);
    agent.shell("servicectl stop", "");
    service.is_now("down");
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 2);
    agent.shell("servicectl start", "");
    service.is_now("up");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 3));
    world.replays("claude-code-session");
}

/// A file tool that has done `does` by the time that it comes back.
fn written(agent: &Agent<'_>, path: &str, does: impl FnOnce()) {
    let id = agent.next_id();
    let call = |event: &str| {
        let input = json!({ "file_path": path, "content": "x" });
        let call = json!({
            "tool_name": "Write", "tool_input": input, "tool_use_id": id, "tool_response": {},
        });
        agent.message(event, call)
    };
    agent.tell(&call("PreToolUse"));
    does();
    agent.tell(&call("PostToolUse"));
}

/// What says of others whether they count, files of two names, and folders are no files that merely count.
#[test]
fn a_write_that_changes_more_than_its_file_takes_a_pass_away() {
    let check = "grep -q good data/fixture && test ! -d out";
    for (first, then) in [
        (".gitignore", "data/fixture"),
        ("sub/.GITIGNORE", "data/fixture"),
        ("Cargo.toml", "data/fixture"),
        ("twin", "twin"),
        ("out", "out"),
        ("~/x", "~/x"),
        ("data\\fixture", "data\\fixture"),
    ] {
        let world = World::new();
        world.write(".gitignore", "data/\nout/\n");
        world.write("data/fixture", "good");
        world.write("sub/a", "1");
        let fixture = world.root().join("data/fixture");
        if first == "twin" {
            std::fs::hard_link(&fixture, world.root().join("twin")).unwrap();
        }
        let agent = at_work(&world, "", check);
        assert_eq!(agent.stop(), Answer::Nothing);
        written(&agent, first, || ());
        written(&agent, then, || match then {
            "out" => std::fs::create_dir(world.root().join("out")).unwrap(),
            _ => std::fs::write(&fixture, "bad").unwrap(),
        });
        if first == "twin" {
            std::fs::remove_file(world.root().join("twin")).unwrap();
            std::fs::write(world.root().join("twin"), "good").unwrap();
        }
        agent.stop().sent_back();
        assert_eq!(world.runs("tests"), 2, "{first}");
    }
}

/// Times and modes are no part of the tree, and a shell changes them.
#[test]
fn a_shell_that_only_touches_files_takes_a_pass_away() {
    let world = World::new();
    world.write("src", "1");
    world.write("made", "1");
    let agent = at_work(&world, "", "test ! made -ot src");
    assert_eq!(agent.stop(), Answer::Nothing);
    let later = std::time::SystemTime::now() + Duration::from_secs(60);
    let src = std::fs::File::options()
        .write(true)
        .open(world.root().join("src"));
    src.unwrap().set_modified(later).unwrap();
    agent.shell("touch src", "");
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 2);
}

/// Some agents number their calls from nought in each turn, and have hooks in two settings.
#[test]
fn a_call_whose_id_was_used_before_is_a_call() {
    let both = &["user", "project"][..];
    for (between, reports, first, then) in [
        ("a prompt", true, both, both),
        ("a prompt", true, both, &both[1..]),
        ("31 calls", true, both, both),
        ("a stop", false, both, both),
        ("a stop", false, both, &both[1..]),
    ] {
        let world = World::new();
        let service = Service::running(&world);
        let check = world.counted("tests", &service.check());
        world.config(&format!("verify_on = \"always\"\n{check}"));
        world.commit();
        let entries = |names: &[&'static str]| -> Vec<Agent<'_>> {
            let entry = |name| Agent::source(&world, "claude-code", name);
            names.iter().map(|name| entry(name)).collect()
        };
        let all = entries(both);
        let agent = &all[0];
        agent.prompt("mend it");
        world.write("work", "1");
        let make = |sources: &[&'static str]| {
            let call = agent.call("call-0", "make gen");
            let result = agent.result("call-0", "make gen", "");
            for entry in entries(sources) {
                assert_eq!(entry.tell(&call), Answer::Nothing);
            }
            for entry in entries(sources).iter().filter(|_| reports) {
                entry.tell(&result);
            }
        };
        make(first);
        if between == "31 calls" {
            for at in 0..31 {
                agent.shell(&format!("ls {at}"), "");
            }
        }
        let calls = || world.task()["tool_calls"].as_u64().unwrap();
        assert_eq!(agent.stop(), Answer::Nothing);
        if between == "a prompt" {
            agent.prompt("and this");
        }
        let before = match between {
            "a prompt" => 0,
            _ => calls(),
        };
        service.is_now("down");
        make(then);
        agent.stop().sent_back();
        assert_eq!(calls(), before + 1, "{between}, {then:?}");
        world.replays(&agent.session);
    }
}

/// Nothing is judged while a person has it switched off, and what was found before is not believed after.
#[test]
fn what_was_done_while_switched_off_takes_a_pass_away() {
    let world = World::new();
    let service = Service::running(&world);
    let agent = at_work(&world, "", &service.check());
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 1));
    switch_off(&world);
    assert_eq!(agent.shell("servicectl stop", ""), Answer::Nothing);
    service.is_now("down");
    switch_on(&world);
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 2);
}

/// A call that was asked for while it was off does its work later.
#[test]
fn an_outcome_of_a_call_that_is_not_known_counts() {
    let world = World::new();
    let service = Service::running(&world);
    let agent = at_work(&world, "", &service.check());
    switch_off(&world);
    let id = agent.next_id();
    agent.tell(&agent.call(&id, "servicectl stop"));
    switch_on(&world);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(ended(&world), ("task_complete".to_owned(), 1));
    service.is_now("down");
    agent.tell(&agent.result(&id, "servicectl stop", ""));
    agent.stop().sent_back();
    assert_eq!(world.runs("tests"), 2);
}

/// It did not run, so what passed before stands.
#[test]
fn a_call_that_is_halted_takes_no_pass_away() {
    let world = World::new();
    let agent = at_work(&world, "[caps]\ntool_calls = 2\n", "true");
    assert_eq!(agent.stop(), Answer::Nothing);
    agent.shell("ls", "");
    agent.shell("ls -l", "");
    agent.tell(&agent.call(&agent.next_id(), "./reset.sh"));
    agent.tell(&agent.call(&agent.next_id(), "./reset.sh"));
    agent.stop();
    assert_eq!(ended(&world), ("task_complete/tool_calls".to_owned(), 1));
}

#[test]
fn what_another_session_does_counts_where_it_is_known_to_reach_further() {
    let world = World::new();
    let agent = at_work(&world, "", "true");
    assert_eq!(agent.stop(), Answer::Nothing);
    let other = Agent::named(&world, "claude-code", "b");
    other.prompt("something else");
    // What nobody can say counts for its own session.
    other.shell("servicectl stop", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 1);
    // What installs counts at its request and at its end.
    let id = other.next_id();
    other.tell(&other.call(&id, "npm install left-pad"));
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 2);
    other.tell(&other.result(&id, "npm install left-pad", "added 1 package"));
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 3);
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 3);
}

/// Of some calls no agent says that they came back. They have done their work when their conversation goes on.
#[test]
fn a_call_that_is_not_reported_counts_again_when_its_conversation_goes_on() {
    for (next, goes_on) in [
        ("another call", true),
        ("a prompt", true),
        ("a stop", true),
        ("a stop that is let through", false),
        ("a stop that fails", false),
        ("the end", false),
    ] {
        let world = World::new();
        let agent = at_work(&world, "", "true");
        let other = Agent::named(&world, "claude-code", "b");
        other.prompt("something else");
        other.tell(&other.call(&other.next_id(), "npm install left-pad"));
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.runs("tests"), 1, "{next}: it is under way");
        match next {
            "another call" => {
                other.tell(&other.call(&other.next_id(), "ls"));
            }
            "a prompt" => other.prompt("and this"),
            "a stop that is let through" => {
                switch_off(&world);
                other.stop();
                switch_on(&world);
            }
            "a stop that fails" => {
                let why = json!({ "error": "rate_limit" });
                other.tell(&other.message("StopFailure", why));
            }
            "the end" => {
                let why = json!({ "reason": "exit" });
                other.tell(&other.message("SessionEnd", why));
            }
            _ => {
                other.stop();
            }
        }
        // Their own stop may have run it already.
        let runs = world.runs("tests");
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.runs("tests"), 2, "{next}: {runs}");
        // Once.
        if goes_on {
            other.stop();
            assert_eq!(agent.stop(), Answer::Nothing);
            assert_eq!(world.runs("tests"), 2, "{next}");
        }
    }
}

#[test]
fn declared_inputs_outlive_all_but_what_installs() {
    let world = World::new();
    world.write("src/a", "1");
    let agent = at_work(&world, "inputs = [\"src/**\"]\n", "true");
    assert_eq!(agent.stop(), Answer::Nothing);
    agent.shell("servicectl stop", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 1);
    agent.shell("pip install requests", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    assert_eq!(world.runs("tests"), 2);
}

/// Files that do not count may be what a check reads.
#[test]
fn a_write_to_an_ignored_file_takes_a_pass_away() {
    let world = World::new();
    world.write(".gitignore", "data/\n");
    world.write("data/fixture", "good");
    let agent = at_work(&world, "", "grep -q good data/fixture");
    assert_eq!(agent.stop(), Answer::Nothing);
    world.write("src/a", "1");
    for (folder, command) in [
        ("", "sed -i s/good/bad/ data/fixture"),
        ("", "cd src && sed -i s/good/bad/ ../data/fixture"),
        ("src", "sed -i s/good/bad/ ../data/fixture"),
        ("data", "sed -i s/good/bad/ fixture"),
        ("", "ln -s data/fixture link && cp work link"),
    ] {
        agent.prompt("again");
        world.write("data/fixture", "good");
        world.write("work", command);
        assert_eq!(agent.stop(), Answer::Nothing, "{command}");
        let runs = world.runs("tests");
        let id = agent.next_id();
        let mut call = agent.call(&id, command);
        call["cwd"] = json!(world.root().join(folder));
        agent.tell(&call);
        world.write("data/fixture", "bad");
        agent.stop().sent_back();
        assert_eq!(world.runs("tests"), runs + 1, "{command} in {folder}");
    }
}

/// The tree is read twice for this stop: after the check, whose evidence is about another tree, and before the
/// answer, since a person was asked after that. The second reading was once taken for the first one told
/// again, and was asked for until the answer was due.
#[test]
fn each_look_of_a_stop_is_taken_in() {
    let world = World::new();
    world.write("report.md", "so it went\n");
    let mut agent = at_work(
        &world,
        &format!("stance = \"allow\"\n{}", crate::approvals::REVIEW),
        "if test -f flip; then rm flip; else touch flip; fi",
    );
    agent.extra = vec!["--deadline".to_owned(), "30".to_owned()];
    let answer = agent.stop();
    assert!(
        answer.notice().contains("awaiting_human (review)"),
        "{answer:?}"
    );
    let session = "claude-code-session";
    let looks = world.inputs(session).into_iter();
    let looks = looks.filter(|input| matches!(input, checkrein_core::input::Input::TreeRead(_)));
    assert_eq!((looks.count(), world.runs("tests")), (2, 2));
    world.replays(session);
}
