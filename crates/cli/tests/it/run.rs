//! `checkrein run -- CMD`: every way in which a run can end, told by the exit code, by
//! `sessions --json` and by `show --why`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::world::{Said, World, ending, signal};

/// Runs `script` as an agent; it must end so, and every place must say so.
#[track_caller]
fn ends(world: &World, options: &[&str], script: &str, code: i32, reason: &str) -> Said {
    let said = world.says(&[&["run"], options, &["--", "sh", "-c", script]].concat());
    ended(world, &said, code, reason);
    said
}

#[track_caller]
fn ended(world: &World, said: &Said, code: i32, reason: &str) {
    assert_eq!(said.code, Some(code), "{said:?}");
    let tasks = world.tasks();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    assert_eq!(ending(&tasks[0]["transition"]), reason, "{said:?}");
    assert_eq!(tasks[0]["agent"], "run");
    let word = reason.split('/').next().unwrap();
    let why = world.why();
    assert!(why.starts_with(word), "{why}");
    assert!(said.stdout.contains(word), "{said:?}");
    if code != 0 {
        assert!(
            said.stderr.contains("--why"),
            "nobody is told where to look: {said:?}"
        );
    }
    world.replays(tasks[0]["session"].as_str().unwrap());
}

fn stops(world: &World) -> u64 {
    world.task()["stops"].as_u64().unwrap()
}

#[test]
fn fixed_on_the_second_try() {
    let world = World::with_check("test -f fixed");
    ends(
        &world,
        &[],
        "if [ \"$CHECKREIN_ATTEMPT\" = 2 ]; then touch fixed; fi",
        0,
        "task_complete",
    );
    assert_eq!((stops(&world), world.runs("tests")), (2, 2));
    assert!(world.why().contains("tests passes"), "{}", world.why());
}

#[test]
fn never_fixed() {
    let world = World::with_check("test -f fixed");
    let said = ends(
        &world,
        &[],
        "echo $CHECKREIN_ATTEMPT > work",
        11,
        "gave_up/same_failures",
    );
    assert_eq!((stops(&world), world.runs("tests")), (3, 3));
    assert_eq!(
        said.stderr.matches("not done yet").count(),
        2,
        "two continuations: {said:?}"
    );
    assert!(
        world.why().contains("the same failures were met 3 times"),
        "{}",
        world.why()
    );
}

#[test]
fn never_fixed_and_never_changed_runs_the_checks_once_and_again_before_it_is_given_up() {
    let world = World::with_check("test -f fixed");
    let said = ends(&world, &[], "true", 11, "gave_up/same_failures");
    assert_eq!((stops(&world), world.runs("tests")), (3, 2));
    assert_eq!(
        said.stderr.matches("not done yet").count(),
        1,
        "findings are sent once: {said:?}"
    );
}

#[test]
fn attempts_of_the_command_line_win() {
    let world = World::with_check("test -f fixed");
    ends(
        &world,
        &["--attempts", "1"],
        "echo > work",
        11,
        "gave_up/same_failures",
    );
    assert_eq!(stops(&world), 1);
    let said = world.says(&["run", "--attempts", "0", "--", "true"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("--attempts must be 1 or more"),
        "{said:?}"
    );
}

#[test]
fn fails_differently_every_time() {
    let world = World::with_check("exit $(cat work)");
    ends(
        &world,
        &[],
        "echo $CHECKREIN_ATTEMPT > work",
        11,
        "gave_up/continues",
    );
    assert_eq!(stops(&world), 8, "seven continuations");
    assert!(world.why().contains("sent back 7 times"), "{}", world.why());
}

#[test]
fn an_endless_agent_is_killed_with_its_children() {
    let world = World::with_check("true");
    world.config("[caps]\nwall_clock = \"1s\"\n[[verifier]]\nname = \"tests\"\nrun = \"true\"\n");
    let script = "sleep 601 & \
        if command -v setsid > /dev/null; then setsid sh -c 'sleep 602 & sleep 603' & fi; \
        trap '' TERM INT HUP; while :; do sleep 604; done";
    ends(&world, &[], script, 12, "hard_cap/wall_clock");
    assert_eq!(world.alive(), [""; 0]);
    assert!(world.why().contains("wall clock"), "{}", world.why());
}

#[test]
fn repeats_one_call() {
    let world = World::with_check("true");
    let script = r#"i=0; while [ $i -lt 40 ]; do i=$((i + 1))
        printf '{"type":"tool_call","session":"%s","id":"c%d","tool":"read","args":{"path":"a"},"result":"same"}\n' \
            "$CHECKREIN_SESSION" $i | "$BIN" hook generic --source run >> "$HOME/answers"; done; sleep 605"#;
    ends(&world, &[], script, 14, "loop_detected/generic_repeat");
    assert_eq!(world.alive(), [""; 0]);
    let answers: Vec<String> = world
        .lines_outside("home/answers")
        .iter()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["decision"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(answers[..10], ["allow"; 10]);
    assert_eq!(answers[10], "nudge");
    assert_eq!(answers[11..20], ["allow"; 9]);
    assert_eq!(answers[20..22], ["deny", "halt"]);
    assert!(
        world.why().contains("generic_repeat saw the pattern"),
        "{}",
        world.why()
    );
}

#[test]
fn nothing_to_verify() {
    let world = World::new();
    ends(&world, &[], "echo > work", 10, "unverified/no_checks");
    assert!(
        world.why().contains("[[verifier]]"),
        "says what to do: {}",
        world.why()
    );
}

#[test]
fn the_verifiers_program_is_missing() {
    let world = World::new();
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"no-such-program-at-all --check\"\n");
    ends(
        &world,
        &[],
        "echo > work",
        15,
        "verifier_failed_unrecoverable/tests",
    );
    assert_eq!(stops(&world), 1, "no retry can mend it");
    assert!(
        world.why().contains("its program is not installed"),
        "{}",
        world.why()
    );
}

#[test]
fn exits_non_zero() {
    let world = World::with_check("true");
    ends(&world, &[], "exit 7", 1, "error/agent");
    assert!(world.why().contains("exit status 7"), "{}", world.why());
    assert_eq!(world.runs("tests"), 0, "that is no claim of done");
}

#[test]
fn any_exit_takes_every_status_for_a_claim() {
    let world = World::with_check("test -f fixed");
    ends(
        &world,
        &["--any-exit"],
        "touch fixed; exit 7",
        0,
        "task_complete",
    );
}

#[test]
fn cannot_be_started() {
    let world = World::with_check("true");
    let said = world.says(&["run", "--", "no-such-agent-at-all"]);
    ended(&world, &said, 1, "error/agent");
    assert!(
        said.stderr.contains(
            "checkrein: error (agent). Not done: cannot start 'no-such-agent-at-all': No such file or directory. Is it on PATH? Why: checkrein show "
        ),
        "{said:?}"
    );
    assert!(
        world.why().contains("next: put it on PATH"),
        "{}",
        world.why()
    );
    assert!(
        world.why().contains("no-such-agent-at-all"),
        "{}",
        world.why()
    );
}

#[test]
fn an_exit_status_that_is_no_claim_is_said() {
    let world = World::with_check("true");
    let said = ends(&world, &[], "exit 3", 1, "error/agent");
    assert!(
        said.stderr.contains(
            "Not done: 'sh' ended with exit status 3 (a claim of done is exit 0; --any-exit takes any). Why: "
        ),
        "{said:?}"
    );
}

#[test]
fn a_command_without_dashes_is_told_from_a_task() {
    let world = World::with_check("true");
    for (typed, told) in [
        (
            &["run", "sh", "-c", "echo hi"][..],
            "to run a command: checkrein run -- sh -c 'echo hi'",
        ),
        (
            &["run", "make", "test"],
            "to run a command: checkrein run -- make test",
        ),
        (
            &["run", "./agent.sh"],
            "'./agent.sh' was taken for the task\n  to run it: checkrein run -- ./agent.sh",
        ),
    ] {
        let said = world.says(typed);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(told), "{said:?}");
    }
    let said = world.says(&["run", "mend the tests"]);
    assert!(said.stderr.contains("nothing to run"), "{said:?}");
    assert!(said.stdout.is_empty(), "nothing was run: {said:?}");
}

/// Starts `run`, waits until something of it says "ready" and sends the signal.
fn interrupted(world: &World, script: &str, sent: rustix::process::Signal) -> Said {
    let mut run = world.checkrein(&["run", "--", "sh", "-c", script]);
    let mut run = run
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(run.stderr.take().unwrap());
    let mut heard = String::new();
    while !heard.contains("ready") {
        assert_ne!(stderr.read_line(&mut heard).unwrap(), 0, "{heard}");
    }
    signal(&run, sent);
    std::io::Read::read_to_string(&mut stderr, &mut heard).unwrap();
    let mut said = Said::of(&run.wait_with_output().unwrap());
    said.stderr = heard;
    said
}

#[test]
fn ctrl_c_and_sigterm_while_the_agent_works() {
    for sent in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        let world = World::with_check("true");
        let said = interrupted(&world, "sleep 606 & echo ready; sleep 607", sent);
        ended(&world, &said, 130, "user_interrupt");
        assert_eq!(world.alive(), [""; 0]);
    }
}

#[test]
fn ctrl_c_while_a_check_runs() {
    let world = World::new();
    let ready = world.pipe("ready");
    world.config(&world.counted(
        "tests",
        &format!("sleep 608 & echo ready > '{}'; sleep 609", ready.display()),
    ));
    let mut run = world.checkrein(&["run", "--", "sh", "-c", "true"]);
    let run = run
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(crate::world::read_line(&ready), "ready\n");
    signal(&run, rustix::process::Signal::INT);
    let said = Said::of(&run.wait_with_output().unwrap());
    ended(&world, &said, 130, "user_interrupt");
    assert_eq!(world.alive(), [""; 0]);
}

#[test]
fn placeholders_environment_and_stdin() {
    let world = World::with_check("test -f fixed");
    // Nothing filled in: the text comes on stdin, and in the environment.
    let script = "{ echo \"task: $CHECKREIN_TASK\"; echo \"attempt: $CHECKREIN_ATTEMPT\"; \
        echo \"feedback: $CHECKREIN_FEEDBACK\"; echo \"session: $CHECKREIN_SESSION\"; \
        echo stdin:; cat; } > \"$HOME/seen$CHECKREIN_ATTEMPT\"; [ $CHECKREIN_ATTEMPT = 1 ] || touch fixed";
    ends(&world, &["--task", "mend it"], script, 0, "task_complete");
    let first = world.lines_outside("home/seen1");
    assert_eq!(first[..3], ["task: mend it", "attempt: 1", "feedback: "]);
    assert_eq!(
        first[3],
        format!("session: {}", world.task()["session"].as_str().unwrap())
    );
    assert_eq!(first[4..], ["stdin:", "mend it"]);
    let second = world.lines_outside("home/seen2").join("\n");
    assert!(
        second.contains("feedback: checkrein: not done yet"),
        "{second}"
    );
    let stdin = second.split("stdin:\n").nth(1).unwrap();
    assert!(
        stdin.starts_with("mend it\n\ncheckrein: not done yet"),
        "{stdin}"
    );

    // Filled in: each in its place, and nothing on stdin.
    let world = World::with_check("test -f fixed");
    let script = "printf '%s|%s|' \"$1\" \"$2\" > \"$HOME/seen$CHECKREIN_ATTEMPT\"; \
        cat \"$3\" - >> \"$HOME/seen$CHECKREIN_ATTEMPT\"; [ $CHECKREIN_ATTEMPT = 1 ] || touch fixed";
    let said = world.says(&[
        "run",
        "--task",
        "mend it",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        "do: {task}",
        "{feedback}",
        "{feedback_file}",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(world.lines_outside("home/seen1"), ["do: mend it||"]);
    let second = world.lines_outside("home/seen2").join("\n");
    assert_eq!(
        second.matches("checkrein: not done yet").count(),
        2,
        "argument and file, not stdin: {second}"
    );
}

#[test]
fn the_agents_words_do_not_mix_with_our_answer() {
    let world = World::with_check("test -f fixed");
    let said = ends(&world, &[], "echo chatter; touch fixed", 0, "task_complete");
    assert_eq!(said.stdout, "task_complete\n");
    assert!(said.stderr.contains("chatter"));
}

#[test]
fn one_json_document() {
    let world = World::with_check("test -f fixed");
    let said = world.says(&[
        "run",
        "--json",
        "--",
        "sh",
        "-c",
        "[ $CHECKREIN_ATTEMPT = 1 ] || touch fixed",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let document = said.json();
    assert_eq!(document["schema"], "checkrein/run/1");
    assert_eq!(
        document["transition"],
        serde_json::json!({ "reason": "task_complete", "detail": null, "native_reason": null })
    );
    assert_eq!(document["attempts"], 2);
    assert_eq!(document["session"], world.task()["session"]);
    let events = document["events"].as_array().unwrap();
    assert_eq!(
        events.len(),
        world.log(document["session"].as_str().unwrap()).len()
    );
    assert_eq!(events.last().unwrap()["kind"], "task_ended");
}

/// What `--agent` and `--resume` cannot do is a mistake of whoever typed it, before anything starts.
#[test]
fn agents_that_cannot_be_started_are_usage_errors() {
    let world = World::with_check("true");
    let check = |args: &[&str], wanted: &str| {
        let said = world.says(&[&["run"], args].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(wanted), "{wanted}: {said:?}");
    };
    check(
        &["--agent", "nobody", "task"],
        "it knows claude-code, codex",
    );
    check(
        &["--agent", "generic", "task"],
        "it knows claude-code, codex",
    );
    check(&["--agent", "claude-code"], "there is no task");
    check(&["--resume", "abc", "task"], "nothing is recorded");
    check(
        &["--agent", "codex", "task", "--", "--json"],
        "'--json' would get in the way",
    );
    check(
        &["--agent", "codex", "task", "--", "-c", "hooks.Stop=[]"],
        "'hooks.Stop=[]' would get in the way",
    );
    check(&["task without an agent"], "nothing to run");
    assert_eq!(world.says(&["run", "--", "true"]).code, Some(0));
    let session = world.task()["session"].as_str().unwrap().to_owned();
    check(&["--resume", &session, "more"], "'run' cannot be taken up");
    let said = Said::of(
        &world
            .checkrein(&["run", "--agent", "claude-code", "task"])
            .env("PATH", world.root())
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("'claude' is not on PATH"), "{said:?}");
}

#[test]
fn a_task_of_nothing_is_no_task() {
    let world = World::with_check("true");
    for task in [&[""][..], &[" \n"], &["--task", ""]] {
        let said = world.says(&[&["run", "--agent", "claude-code"], task].concat());
        assert_eq!(said.code, Some(2), "{task:?} {said:?}");
        assert!(said.stderr.contains("there is no task"), "{said:?}");
    }
}
