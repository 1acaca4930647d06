//! Time as it is stamped: a clock that is wrong for a while, and sessions to which nobody comes back.

use checkrein_core::input::{Input, StampedInput};
use checkrein_core::policy::Policy;
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;

use crate::story::{check, tell};
use crate::world::{CoreWorld, policy, with};

const MINUTE: u64 = 60;
const DAY: u64 = 86_400;
const YEAR: u64 = 365 * DAY;

/// One check, and a cap of ten minutes.
fn limited() -> Policy {
    with(policy("tests", ""), |policy| {
        policy.caps.wall_clock_ms = Some(10 * MINUTE * 1_000);
    })
}

fn unlimited() -> Policy {
    with(policy("tests", ""), |policy| {
        policy.caps.wall_clock_ms = None;
    })
}

/// The clock says another year for one input, and then what it said before.
fn one_stamp_ahead(input: &str) -> String {
    format!("wait {YEAR} | {input} | back {YEAR}")
}

#[test]
fn a_clock_that_was_ahead_freezes_no_cap() {
    for ahead in ["call a=1", "round", "prompt"] {
        let ahead = one_stamp_ahead(ahead);
        let story = format!("prompt | {ahead} | call b=1 | wait 599 | call c=1 | wait 2 | call d");
        let mut world = CoreWorld::new(limited());
        let told = tell(&mut world, &story);
        assert!(
            told.ends_with("allow x2 | grace") || told.ends_with("allow x3 | grace"),
            "{told}"
        );
        crate::laws::replays(&world);
    }
    // `run` looks by itself, also where the agent says nothing any more.
    let run = with(limited(), |policy| policy.single_task = true);
    let story = format!(
        "{} | tick | wait 599 | tick | wait 2 | tick",
        one_stamp_ahead("prompt")
    );
    let told = tell(&mut CoreWorld::new(run), &story);
    assert_eq!(told, "halt hard_cap/wall_clock");
}

#[test]
fn a_clock_that_was_ahead_keeps_no_pass_fresh() {
    let ahead = one_stamp_ahead("prompt | edit | stop");
    for (later, expected) in [
        (
            0,
            "tests look task_complete | tests look task_complete | look task_complete",
        ),
        (
            15 * MINUTE,
            "tests look task_complete | tests look task_complete | tests look task_complete",
        ),
    ] {
        let story = format!("{ahead} | stop | wait {later} | stop");
        let mut world = CoreWorld::new(policy("tests", ""));
        let told = tell(&mut world, &story).replace(" x2", "");
        assert_eq!(told.replace(" x3", ""), collapsed(expected), "{later}");
        crate::laws::replays(&world);
        crate::laws::audit(&world);
    }
}

fn collapsed(answers: &str) -> String {
    let mut words: Vec<&str> = answers.split(" | ").collect();
    words.dedup();
    words.join(" | ")
}

#[test]
fn a_clock_that_was_ahead_hides_no_day_without_news() {
    let ahead = one_stamp_ahead("round");
    let left = format!(
        "prompt | {ahead} | call a=1 | wait {} | round | ending",
        DAY + 1
    );
    check(unlimited(), &left, "allow | abandoned/day_passed");
    let came_back = format!("prompt | {ahead} | call a=1 | wait {DAY} | round | ending");
    check(unlimited(), &came_back, "allow | open");
}

/// It was right, is far behind for a while, and is right again: nothing ends for that.
#[test]
fn a_clock_that_was_behind_ends_nothing() {
    for behind in [6 * MINUTE, DAY, 11 * DAY] {
        let story = format!(
            "wait {} | prompt | call a=1 | wait 60 | back {behind} | call b=1 | wait {behind} | call c=1 | wait 60 | call d=1 | ending",
            12 * DAY
        );
        let run = with(limited(), |policy| policy.single_task = true);
        for policy in [limited(), run] {
            check(policy, &story, "allow x4 | open");
        }
    }
}

/// What is less than a few minutes is waited out, as ever.
#[test]
fn a_small_step_back_changes_nothing() {
    let story = "prompt | call a=1 | wait 300 | call b=1 | back 300 | call c=1 | wait 599 | call d=1 | wait 2 | call e";
    check(limited(), story, "allow x4 | grace");
}

/// Logs of older builds do not say that the clock was turned back, nor that a call was open: they are
/// decided as they were.
#[test]
fn older_logs_are_decided_as_they_were() {
    let mut world = CoreWorld::new(limited());
    let ahead = one_stamp_ahead("round");
    tell(
        &mut world,
        &format!(
            "prompt | call a | {ahead} | wait 601 | call b | wait {} | round",
            2 * DAY
        ),
    );
    let older = |stamped: &StampedInput| StampedInput {
        turned_back: false,
        in_call: false,
        ..stamped.clone()
    };
    let mut state = SessionState::default();
    state.apply_event(&world.log[0]);
    let mut latest = state.now;
    for (stamped, _) in &world.steps {
        let stamped = older(stamped);
        latest = latest.max(stamped.at);
        apply_input_and_decide(&world.policy, &mut state, stamped);
        assert_eq!(state.now, latest);
    }
    let text = |stamped: &StampedInput| serde_json::to_string(stamped).unwrap();
    let (first, _) = &world.steps[0];
    assert!(matches!(first.input, Input::PromptSubmitted(_)));
    assert_eq!(
        text(first),
        text(&older(first)),
        "nothing more is written than before"
    );
}

#[test]
fn a_call_that_is_open_keeps_its_task_for_a_week() {
    let week = 7 * DAY;
    for (story, expected) in [
        (
            format!("prompt | call a | wait {} | returns a | ending", DAY + 1),
            "allow | open",
        ),
        (
            format!("prompt | call a | wait {week} | returns a | ending"),
            "allow | open",
        ),
        (
            format!("prompt | call a | wait {} | returns a | ending", week + 1),
            "allow | abandoned/day_passed",
        ),
        // Of a sub-agent, too.
        (
            format!("prompt | @s call a | wait {} | round | ending", DAY + 1),
            "allow | open",
        ),
        // It came back, was refused, or its agent has asked to stop since.
        (
            format!("prompt | call a=1 | wait {} | round | ending", DAY + 1),
            "allow | abandoned/day_passed",
        ),
        (
            format!("prompt | call !a | wait {} | round | ending", DAY + 1),
            "deny | abandoned/day_passed",
        ),
        (
            format!(
                "prompt | call a | tests fail 1 | edit | stop | wait {} | round | ending",
                DAY + 1
            ),
            "allow | tests continue tests:1+0-0 | abandoned/day_passed",
        ),
        // The next call of its conversation came back.
        (
            format!(
                "prompt | call a | call b=1 | wait {} | round | ending",
                DAY + 1
            ),
            "allow x2 | abandoned/day_passed",
        ),
    ] {
        check(unlimited(), &story, expected);
    }
}
