//! `checkrein run --model`, killed at any moment and taken up again: nothing that was said is lost,
//! nothing is done twice, and what was spent stays spent. `CHECKREIN_KILLS=50` kills more often.

use std::process::Stdio;

use checkrein_scripted::coder::{Heard, USED, WIRES};
use checkrein_scripted::{Coder, Turn};
use rustix::process::Signal;

use crate::coder::{FIX, GOAL, read, repo, run, says};
use crate::crash::{Dice, cut_down, kills};
use crate::world::gone;

/// Steps of the script, each of which leaves a line outside of the tree.
const STEPS: usize = 8;

fn script(heard: &Heard) -> Turn {
    let step = |n| format!("sleep 0.03; echo step-{n} >> ../steps; sleep 0.03");
    match heard.turns {
        // A false claim in the middle: feedback has to survive, too.
        n if n == STEPS / 2 => Turn::say("Done."),
        n if n < STEPS => Turn::shell(&step(n)),
        n if n == STEPS || heard.fresh.contains("took effect is not known") => Turn::patch(FIX),
        _ => Turn::say("Mended."),
    }
}

#[test]
fn killed_at_random_moments_it_is_taken_up() {
    let (name, ..) = WIRES[0];
    let mut dice = Dice(0xc0de);
    let (mut left, mut rounds) = (kills(), 0);
    while left > 0 {
        rounds += 1;
        let world = repo(true);
        let coder = Coder::start(script).unwrap();
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
        assert_eq!(spent, Some(USED.1 * turns), "{}", world.task());
        assert_eq!(told["attempts"], 2, "{told}");
        assert_eq!(world.tasks().len(), 1);
        world.replays(told["session"].as_str().unwrap());
    }
    assert!(rounds > 1);
}

#[test]
fn what_is_over_is_told_again_and_goes_on_with_more_to_do() {
    let (name, ..) = WIRES[2];
    let world = repo(true);
    let coder = Coder::start(|heard| match heard.fresh.contains("say why") {
        true => Turn::say("It was wrong."),
        false if heard.turns == 0 => Turn::patch(FIX),
        false => Turn::say("Mended."),
    });
    let coder = coder.unwrap();
    let said = says(&mut run(&world, &coder, name, &["--model", name, GOAL]));
    assert_eq!(said.code, Some(0), "{said:?}");
    let session = world.task()["session"].as_str().unwrap().to_owned();
    let asked = coder.heard().len();

    let again = says(&mut run(&world, &coder, name, &["--resume", &session[..8]]));
    assert_eq!((again.code, &again.stdout), (Some(0), &said.stdout));
    assert_eq!(coder.heard().len(), asked, "nothing was left to be asked");

    let more = says(&mut run(
        &world,
        &coder,
        name,
        &["--resume", &session, "--json", "say why"],
    ));
    assert_eq!(more.json()["message"], "It was wrong.", "{more:?}");
    let last = coder.heard().pop().unwrap();
    assert!(
        last.whole.contains(GOAL) && last.whole.contains("Mended."),
        "{last:?}"
    );
    assert_eq!(world.tasks().len(), 2, "a task of its own");
}
