//! `checkrein run --autopilot GOAL.toml`: criteria, budget, kills, and what is told at the end.

use std::process::Stdio;

use checkrein_scripted::coder::{PROVIDER_ENTRIES, ScriptedCoderConversation, TURN_TOKENS};
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use rustix::process::Signal;
use serde_json::Value;

use crate::coder::{FIX, read, repo, run, says};
use crate::crash::{Dice, cut_down, kills};
use crate::world::{Said, World, gone};

const STEPS: usize = 6;

/// With a criterion beside the config's own check.
fn goal(world: &World, budget: &str) {
    let (name, ..) = PROVIDER_ENTRIES[0];
    world.write(
        "GOAL.toml",
        &format!(
            "goal = \"The answer is right, and the notes say so.\"\nmodel = \"{name}\"\n\n\
             [budget]\n{budget}\n[[criterion]]\nname = \"noted\"\nrun = \"grep -q right notes\"\n\n\
             [[criterion]]\nname = \"small\"\nrun = \"test $(wc -c < notes) -lt 1000\"\nadvisory = true\n"
        ),
    );
    world.commit();
}

fn fly(world: &World, coder: &ScriptedCoderServer) -> Said {
    let (name, ..) = PROVIDER_ENTRIES[0];
    says(&mut run(
        world,
        coder,
        name,
        &["--autopilot", "GOAL.toml", "--json"],
    ))
}

fn script(heard: &ScriptedCoderConversation) -> ScriptedCoderTurn {
    let step = |n| format!("sleep 0.03; echo step-{n} >> ../steps; sleep 0.03");
    let is_unknown = heard.new_text.contains("took effect is not known");
    let has_noted = heard.full_text.contains("echo right");
    match heard.turns {
        n if n == STEPS / 2 => ScriptedCoderTurn::scripted_text_turn("The goal is reached."),
        n if n < STEPS => ScriptedCoderTurn::scripted_shell_call_turn(&step(n)),
        n if n == STEPS || is_unknown && !has_noted => ScriptedCoderTurn::patch_turn(FIX),
        n if n < 30 && (is_unknown || !has_noted) => {
            ScriptedCoderTurn::scripted_shell_call_turn("echo right > notes")
        }
        _ => ScriptedCoderTurn::scripted_text_turn("Reached."),
    }
}

#[test]
fn killed_at_random_moments_it_goes_on_with_what_is_left() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let mut dice = Dice(0xf1e5);
    let mut left = kills();
    while left > 0 {
        let world = repo(true);
        goal(&world, "dollars = 5\ntokens = 100_000\n");
        let coder = ScriptedCoderServer::start_coder_model_server(script).unwrap();
        for _ in 0..left.min(5) {
            let mut run = run(
                &world,
                &coder,
                name,
                &["--autopilot", "GOAL.toml", "--json"],
            );
            let child = run
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let said = cut_down(child.spawn().unwrap(), &mut dice, Signal::KILL, 250);
            gone(&world);
            left -= 1;
            if said.code.is_some() {
                break;
            }
        }
        let done = world.state().exists()
            && world
                .tasks()
                .first()
                .is_some_and(|task| task["transition"].is_object());
        let said = fly(&world, &coder);
        // Had it been over already, a second flight finds everything as it should be.
        assert_eq!(said.code, Some(0), "{said:?}");
        let told = said.json();
        let mut steps = world.lines_outside("steps");
        let all = steps.len();
        if !done {
            steps.dedup();
            assert_eq!(steps.len(), all, "done twice: {steps:?}");
            assert_eq!(world.tasks().len(), 1, "one flight");
            let spent = world.task()["output_tokens"].as_u64();
            let turns = told["rounds"].as_u64().unwrap();
            assert_eq!(spent, Some(TURN_TOKENS.1 * turns), "{told}");
        }
        assert_eq!(read(&world, "answer"), "42\n");
        world.replays(told["session"].as_str().unwrap());
    }
}

#[test]
fn each_criterion_is_listed_with_its_evidence() {
    let world = repo(true);
    goal(&world, "dollars = 5\nseconds = 600\n");
    let coder = ScriptedCoderServer::start_coder_model_server(script).unwrap();
    let said = fly(&world, &coder);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = said.json();
    let criteria = told["criteria"].as_array().unwrap();
    let names: Vec<&Value> = criteria.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["noted", "small"]);
    assert_eq!(criteria[0]["verdict"], "pass");
    assert_eq!(criteria[0]["what"], "grep -q right notes");
    let evidence = criteria[0]["evidence"].as_str().unwrap();
    let store = checkrein_store::SqliteStore::open_store_read_only(&world.store_folder()).unwrap();
    let key = serde_json::from_value(evidence.into()).unwrap();
    assert!(
        checkrein_store::Store::read_evidence(&store, &key)
            .unwrap()
            .is_some(),
        "{evidence}"
    );

    // What a model was told to reach names what is looked at.
    let first = &coder.requests_to_scripted_coder()[0];
    assert!(
        first.full_text.contains("The answer is right")
            && first.full_text.contains("grep -q right notes")
    );

    // Words for people.
    let (name, ..) = PROVIDER_ENTRIES[0];
    let said = says(&mut run(
        &world,
        &coder,
        name,
        &["--autopilot", "GOAL.toml"],
    ));
    assert!(said.stdout.contains("pass  noted  evidence"), "{said:?}");
}

#[test]
fn a_spent_budget_ends_it_and_the_goal_cannot_be_made_easier() {
    for (budget, detail) in [
        ("dollars = 0.03", "cost"),
        ("tokens = 3000", "tokens"),
        ("iterations = 3", "iterations"),
        ("tool_calls = 2", "tool_calls"),
        ("seconds = 1", "wall_clock"),
    ] {
        let world = repo(true);
        goal(&world, budget);
        let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
            0 => ScriptedCoderTurn::scripted_shell_call_turn("sh -c 'echo goal > GOAL.toml'"),
            1 => ScriptedCoderTurn::patch_turn(
                "*** Begin Patch\n*** Delete File: GOAL.toml\n*** End Patch",
            ),
            n => ScriptedCoderTurn::scripted_shell_call_turn(&format!("sleep 0.4; echo {n}")),
        });
        let coder = coder.unwrap();
        let before = read(&world, "GOAL.toml");
        let said = fly(&world, &coder);
        assert_eq!(said.code, Some(12), "{budget}: {said:?}");
        assert_eq!(said.json()["transition"]["detail"], *detail, "{said:?}");
        assert_eq!(read(&world, "GOAL.toml"), before, "{budget}");
    }
}

#[test]
fn two_runs_of_one_goal_exclude_each_other() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    goal(&world, "iterations = 9");
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn("echo ready > ../ready; cat ../go"),
        _ => ScriptedCoderTurn::scripted_text_turn("Stuck."),
    });
    let coder = coder.unwrap();
    let mut first = run(
        &world,
        &coder,
        name,
        &["--autopilot", "GOAL.toml", "--json"],
    );
    let first = first
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let first = first.spawn().unwrap();
    assert_eq!(crate::world::read_line(&ready), "ready\n");
    let second = fly(&world, &coder);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(
        second.stderr.contains("that goal is at work already"),
        "{second:?}"
    );
    std::fs::write(go, "go\n").unwrap();
    let first = Said::of(&first.wait_with_output().unwrap());
    assert_eq!(first.code, Some(11), "{first:?}");
}

#[test]
fn mistakes_in_a_goal_are_told() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    let coder = ScriptedCoderServer::start_coder_model_server(script).unwrap();
    let fails = |text: Option<&str>, told: &str| {
        if let Some(text) = text {
            world.write("GOAL.toml", text);
        }
        let said = fly(&world, &coder);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(told), "{told}: {said:?}");
    };
    fails(None, "there is no file GOAL.toml");
    fails(Some("goal = \"x\"\n"), "[[criterion]] is missing");
    let criterion = "goal = \"x\"\n[[criterion]]\nname = \"a\"\nrun = \"true\"\n";
    fails(Some(criterion), "nobody is named who works for that goal");
    let clash = format!(
        "model = \"{name}\"\n{}",
        criterion.replace("\"a\"", "\"tests\"")
    );
    fails(Some(&clash), "criterion 'tests'");
    assert!(coder.requests_to_scripted_coder().is_empty());
}

/// An edit that no gate saw is a finding, and what was edited is another goal: that is said.
#[test]
fn a_goal_that_was_edited_is_another_one() {
    let world = repo(true);
    goal(&world, "iterations = 4");
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::patch_turn(
            "*** Begin Patch\n*** Add File: e.sh\n+sed -i 's/grep -q right notes/true/' G*L.toml\n*** End Patch",
        ),
        1 => ScriptedCoderTurn::scripted_shell_call_turn("sh e.sh"),
        2 => ScriptedCoderTurn::patch_turn(FIX),
        _ => ScriptedCoderTurn::scripted_text_turn("Reached."),
    });
    let coder = coder.unwrap();
    let first = fly(&world, &coder);
    assert_ne!(first.code, Some(0), "{first:?}");
    assert!(read(&world, "GOAL.toml").contains("run = \"true\""));
    let shown = world.says(&["show"]).stdout;
    assert!(shown.contains("GOAL.toml"), "{shown}");
    let second = fly(&world, &coder);
    assert!(second.stderr.contains("this is another goal"), "{second:?}");
}

/// The same goal in another tree is another flight.
#[test]
fn the_same_goal_in_another_worktree_runs_separately() {
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = repo(true);
    goal(&world, "iterations = 9");
    let other = world.outside("other");
    world.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    let ready = world.pipe("ready");
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 if heard.full_text.contains("reached when") => {
            ScriptedCoderTurn::scripted_shell_call_turn(
                "if mkdir ../begun; then echo ready > ../ready; sleep 611; fi",
            )
        }
        1 => ScriptedCoderTurn::patch_turn(FIX),
        2 => ScriptedCoderTurn::scripted_shell_call_turn("echo right > notes"),
        _ => ScriptedCoderTurn::scripted_text_turn("Reached."),
    });
    let coder = coder.unwrap();
    let mut first = run(&world, &coder, name, &["--autopilot", "GOAL.toml"]);
    let first = first
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut first = first.spawn().unwrap();
    assert_eq!(crate::world::read_line(&ready), "ready\n");
    first.kill().unwrap();
    first.wait().unwrap();
    gone(&world);
    let mut second = run(&world, &coder, name, &["--autopilot", "GOAL.toml"]);
    let second = says(second.current_dir(&other));
    assert_eq!(second.code, Some(0), "{second:?}");
    assert!(!second.stderr.contains("goes on with"), "{second:?}");
    assert_eq!(read(&world, "answer"), "41\n");
    assert_eq!(
        std::fs::read_to_string(other.join("answer")).unwrap(),
        "42\n"
    );
}

/// What was found before the last edits is not told as if it stood.
#[test]
fn old_evidence_is_told_as_old() {
    let world = repo(true);
    goal(&world, "iterations = 5");
    let coder = ScriptedCoderServer::start_coder_model_server(|heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn("echo right > notes"),
        1 => ScriptedCoderTurn::scripted_text_turn("Reached."),
        2 => ScriptedCoderTurn::scripted_shell_call_turn("echo wrong > notes"),
        n => ScriptedCoderTurn::scripted_shell_call_turn(&format!("echo {n}")),
    });
    let said = fly(&world, &coder.unwrap());
    assert_eq!(said.code, Some(12), "{said:?}");
    let criteria = &said.json()["criteria"];
    assert_eq!(criteria[0]["verdict"], "pass");
    assert_eq!(criteria[0]["stands"], false);
}
