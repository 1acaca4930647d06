//! `checkrein run --model`, killed at any moment and taken up again: nothing that was said is lost,
//! nothing is done twice, and what was spent stays spent. `CHECKREIN_KILLS=50` kills more often.

use std::process::Stdio;

use checkrein_scripted::coder::{PROVIDER_ENTRIES, ScriptedCoderConversation, TURN_TOKENS};
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use rustix::process::Signal;

use crate::coder::{FIX, GOAL, read, repo, run, says};
use crate::crash::{Dice, cut_down, kills};
use crate::world::gone;
use crate::world::{World, read_line};

/// Steps of the script, each of which leaves a line outside of the tree.
const STEPS: usize = 8;

fn script(heard: &ScriptedCoderConversation) -> ScriptedCoderTurn {
    let step = |n| format!("sleep 0.03; echo step-{n} >> ../steps; sleep 0.03");
    match heard.turns {
        // A false claim in the middle: feedback has to survive, too.
        n if n == STEPS / 2 => ScriptedCoderTurn::scripted_text_turn("Done."),
        n if n < STEPS => ScriptedCoderTurn::scripted_shell_call_turn(&step(n)),
        n if n == STEPS || heard.new_text.contains("took effect is not known") => {
            ScriptedCoderTurn::patch_turn(FIX)
        }
        _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
    }
}

#[test]
fn a_run_killed_at_random_moments_is_resumed() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let mut dice = Dice(0xc0de);
    let (mut left, mut rounds) = (kills(), 0);
    while left > 0 {
        rounds += 1;
        let world = repo(true);
        let coder = ScriptedCoderServer::start_coder_model_server(script).unwrap();
        // All but the last of these runs are killed.
        let mut alive = 6;
        let told = loop {
            let known = match world.state().exists() {
                true => world.tasks(),
                false => Vec::new(),
            };
            let session = known
                .first()
                .map(|task| task["session"].as_str().unwrap().to_owned());
            let args = match &session {
                Some(session) => vec!["--resume", session, "--json"],
                None => vec!["--model", name, "--json", GOAL],
            };
            let mut run = run(&world, &coder, name, &args);
            if left == 0 || alive == 0 {
                let said = says(&mut run);
                assert_eq!(said.code, Some(0), "{said:?}");
                break said.json();
            }
            let child = run
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let said = cut_down(child.spawn().unwrap(), &mut dice, Signal::KILL, 300);
            gone(&world);
            left -= 1;
            alive -= 1;
            if said.code == Some(0) {
                break said.json();
            }
        };
        assert_eq!(told["transition"]["reason"], "task_complete", "{told}");
        assert_eq!(read(&world, "answer"), "42\n");
        let mut steps = world.lines_outside("steps");
        let all = steps.len();
        steps.dedup();
        assert_eq!(steps.len(), all, "done twice: {steps:?}");

        // Each answer of the conversation counts once, whoever asked for it.
        let turns = told["rounds"].as_u64().unwrap();
        assert!(turns >= STEPS as u64 + 2, "{told}");
        let spent = world.task()["output_tokens"].as_u64();
        assert_eq!(spent, Some(TURN_TOKENS.1 * turns), "{}", world.task());
        assert_eq!(told["attempts"], 2, "{told}");
        assert_eq!(world.tasks().len(), 1);
        world.replays(told["session"].as_str().unwrap());
    }
    assert!(rounds > 1);
}

#[test]
fn a_finished_run_reports_again_and_takes_a_new_task() {
    let (name, ..) = PROVIDER_ENTRIES[2];
    let world = repo(true);
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| {
        match heard.new_text.contains("say why") {
            true => ScriptedCoderTurn::scripted_text_turn("It was wrong."),
            false if heard.turns == 0 => ScriptedCoderTurn::patch_turn(FIX),
            false => ScriptedCoderTurn::scripted_text_turn("Mended."),
        }
    });
    let coder = coder.unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let session = world.task()["session"].as_str().unwrap().to_owned();
    let asked = coder.requests_to_scripted_coder().len();

    let again = says(&mut run(&world, &coder, name, &["--resume", &session[..8]]));
    assert_eq!((again.code, &again.stdout), (Some(0), &said.stdout));
    assert_eq!(
        coder.requests_to_scripted_coder().len(),
        asked,
        "nothing was left to be asked"
    );

    let more = says(&mut run(
        &world,
        &coder,
        name,
        &["--resume", &session, "--json", "say why"],
    ));
    assert_eq!(more.json()["message"], "It was wrong.", "{more:?}");
    let last = coder.requests_to_scripted_coder().pop().unwrap();
    assert!(
        last.full_text.contains(GOAL) && last.full_text.contains("Mended."),
        "{last:?}"
    );
    assert_eq!(world.tasks().len(), 2, "a task of its own");
}

fn session(world: &World) -> String {
    world.task()["session"].as_str().unwrap().to_owned()
}

/// Kills a run once it says that it is ready.
fn killed(world: &World, coder: &ScriptedCoderServer, name: &str, ready: &std::path::Path) {
    let mut run = run(world, coder, name, &["--model", name, "--json", GOAL]);
    let child = run
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    assert_eq!(read_line(ready), "ready\n");
    child.kill().unwrap();
    child.wait().unwrap();
    gone(world);
}

/// What was under way when a run was killed is counted once, also if a person says something new.
#[test]
fn a_call_cut_by_a_kill_is_counted_once_with_a_new_task() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let ready = world.pipe("ready");
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn("echo ready > ../ready; sleep 609"),
        1 => ScriptedCoderTurn::patch_turn(FIX),
        _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
    });
    let coder = coder.unwrap();
    killed(&world, &coder, name, &ready);
    let args = ["--resume", &session(&world), "--json", "now the notes"];
    let said = says(&mut run(&world, &coder, name, &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    let last = coder.requests_to_scripted_coder().pop().unwrap().full_text;
    assert!(
        last.contains("a person says something new") && last.contains("now the notes"),
        "{last}"
    );
    let spent = world.task()["output_tokens"].as_u64();
    assert_eq!(spent, Some(TURN_TOKENS.1 * 3), "{}", world.task());
    assert_eq!(world.task()["rounds"], 3);
}

/// What was hidden in the arguments of a call is not known any more: the call is not made without it.
#[test]
fn a_call_whose_secret_was_not_kept_is_not_made_again() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let ready = world.pipe("ready");
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn(
            "echo login >> ../logins; echo ready > ../ready; sleep 611; : login --password hunter22",
        ),
        1 => ScriptedCoderTurn::patch_turn(FIX),
        _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
    });
    let coder = coder.unwrap();
    killed(&world, &coder, name, &ready);
    let args = ["--resume", &session(&world), "--json"];
    let said = says(&mut run(&world, &coder, name, &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    let last = coder.requests_to_scripted_coder().pop().unwrap().full_text;
    assert!(
        last.contains("held a secret, which is not kept") && !last.contains("hunter22"),
        "{last}"
    );
    assert_eq!(world.lines_outside("logins"), ["login"]);
    world.replays(&session(&world));
}

/// A result that middleware had not passed when the process died reaches no model as it was.
#[test]
fn a_result_unseen_by_middleware_never_reaches_the_model() {
    let (name, ..) = PROVIDER_ENTRIES[2];
    for more in [Some("now the notes"), None] {
        let world = repo(true);
        world.write("secret", "SECRET-123\n");
        world.write(
            "clean.sh",
            "cat > /dev/null; if [ -e ../was ]; then echo '{\"result\":\"clean\"}'; else touch ../was; \
             echo ready > ../ready; sleep 610; fi\n",
        );
        let config = read(&world, "checkrein.toml");
        world.config(&format!(
            "{config}\n[[middleware]]\nname = \"clean\"\non = [\"after_tool\"]\nrun = \"sh clean.sh\"\ntimeout = \"10m\"\n"
        ));
        world.commit();
        let ready = world.pipe("ready");
        let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
            0 => ScriptedCoderTurn::scripted_shell_call_turn("cat secret"),
            1 => ScriptedCoderTurn::patch_turn(FIX),
            _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
        });
        let coder = coder.unwrap();
        killed(&world, &coder, name, &ready);
        let session = session(&world);
        let args: Vec<&str> = ["--resume", &session, "--json"]
            .into_iter()
            .chain(more)
            .collect();
        let said = says(&mut run(&world, &coder, name, &args));
        assert_eq!(said.code, Some(0), "{said:?}");
        let heard = coder.requests_to_scripted_coder();
        assert!(
            heard
                .iter()
                .all(|heard| !heard.full_text.contains("SECRET-123")),
            "{more:?}"
        );
        assert!(
            heard.last().unwrap().full_text.contains("clean"),
            "{more:?}"
        );
    }
}

/// However deep its arguments nest, a call is taken up as it was; so no later claim is taken for an
/// earlier one.
#[test]
fn deeply_nested_arguments_survive_a_resume() {
    let (name, ..) = PROVIDER_ENTRIES[2];
    let world = repo(true);
    let deep = (0..120).fold(serde_json::json!("x"), |within, _| {
        serde_json::json!([within])
    });
    let coder = ScriptedCoderServer::start_coder_model_server(move |heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_tool_call_turn(
            "shell",
            serde_json::json!({ "command": "true", "why": deep }),
        ),
        1 => ScriptedCoderTurn::patch_turn(FIX),
        2 => ScriptedCoderTurn::scripted_text_turn("Mended."),
        _ => ScriptedCoderTurn::scripted_text_turn("Done."),
    });
    let coder = coder.unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(0), "{said:?}");
    world.write("answer", "41\n");
    let args = ["--resume", &session(&world), "make it 42 again"];
    let said = says(&mut run(&world, &coder, name, &args));
    assert_eq!(said.code, Some(11), "{said:?}");
    assert_eq!(world.tasks().len(), 2);
}

/// A cap on what it costs holds for whoever goes on.
#[test]
fn a_model_without_a_price_takes_up_nothing_that_may_cost_so_much() {
    let ((name, ..), (local, ..)) = (PROVIDER_ENTRIES[0], PROVIDER_ENTRIES[4]);
    let world = repo(true);
    let config = read(&world, "checkrein.toml");
    world.config(&format!("[caps]\ncost_usd = 0.5\n{config}"));
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::patch_turn(FIX),
        ScriptedCoderTurn::scripted_text_turn("Mended."),
    ])
    .unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let args = ["--resume", &session(&world), "--model", local, "more"];
    let said = says(&mut run(&world, &coder, local, &args));
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("nobody knows what"), "{said:?}");
}

/// Each task has its own cut answers.
#[test]
fn a_further_task_may_be_cut_once_as_well() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 | 1 => ScriptedCoderTurn::Truncated("one".to_owned()),
        2 => ScriptedCoderTurn::Truncated("two".to_owned()),
        3 => ScriptedCoderTurn::patch_turn(FIX),
        _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
    });
    let coder = coder.unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(18), "{said:?}");
    let said = says(&mut run(
        &world,
        &coder,
        name,
        &["--resume", &session(&world), "more"],
    ));
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn instructions_that_are_no_file_hold_nobody_up() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::patch_turn(FIX),
        ScriptedCoderTurn::scripted_text_turn("Mended."),
    ])
    .unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(world.root().join("AGENTS.md"))
        .status();
    assert!(made.unwrap().success());
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(0), "{said:?}");
}
