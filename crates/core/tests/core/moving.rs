//! Stops at which the tree does not hold still, or cannot be read any more: what is nobody's failure, and what is.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::ids::ScopeId;
use checkrein_core::policy::{Stance, VerdictSubjectKind};

use crate::story::{check, describe, tell};
use crate::world::{CoreWorld, policy, stance, with};

#[test]
fn a_tree_that_moves() {
    let tests = || policy("tests", "");
    // Judged anew once, on the new tree.
    check(
        tests(),
        "prompt | edit | moves 5 | stop",
        "tests look tests look task_complete",
    );
    // Moved again: it would not hold still.
    check(
        tests(),
        "prompt | edit | moves 5 6 | stop",
        "tests look tests look continue tests:tree_moving?0+0-0",
    );
    check(
        stance(tests(), Stance::Allow),
        "prompt | edit | moves 5 6 | stop",
        "tests look tests look unverified/passed_over",
    );
    // Moved, but not what the verifier depends on: its verdict stands.
    check(
        policy("docs~", ""),
        "prompt | tree 11 | moves 12 | stop",
        "docs look task_complete",
    );
    check(
        policy("docs~ tests", ""),
        "prompt | tree 11 | moves 12 | stop",
        "docs tests look tests look task_complete",
    );
    // Evidence about another tree than the stop's.
    check(
        tests(),
        "prompt | edit | tests on 9 pass | moves 9 | stop",
        "tests look look task_complete",
    );
    check(
        tests(),
        "prompt | edit | tests on 9 pass | stop",
        "tests look continue tests:tree_moving?0+0-0",
    );
    check(
        tests(),
        "prompt | edit | tests after 9 pass | stop",
        "tests continue tests:tree_moving?0+0-0",
    );
    check(
        tests(),
        "prompt | edit | tests on 9 pass | moves 8 | stop",
        "tests look tests continue tests:tree_moving?0+0-0",
    );
    // A check that writes into its own inputs and comes to rest; the others are asked anew.
    check(
        policy("fmt tests", ""),
        "prompt | edit | fmt on 3 pass | moves 3 | stop",
        "fmt tests look tests look task_complete",
    );
    // It is gone: whatever was found out is about something else.
    check(
        tests(),
        "prompt | unreadable | stop",
        "continue tests:tree_unreadable?0+0-0",
    );
}

/// Somebody else writes there: no attempt, and no end that says that the agent failed.
#[test]
fn what_moves_the_tree_is_nobodys_failure() {
    let tests = || policy("tests", "");
    // The same paths three times.
    check(
        tests(),
        "prompt | edit | tests after 9 pass | stop | stop | stop",
        "tests continue tests:tree_moving?0+0-0 x2 | tests unverified/tree_moving",
    );
    // Others each time: until it has been sent back as often as allowed.
    let said = [
        "tests continue tests:tree_moving?0+0-0 x7",
        "tests unverified/tree_moving",
    ];
    let stops: Vec<String> = (20..28)
        .map(|n| format!("tests after {n} pass | stop"))
        .collect();
    check(
        tests(),
        &format!("prompt | edit | {}", stops.join(" | ")),
        &said.join(" | "),
    );
    // What fails beside it is an attempt all the same, whatever moves.
    check(
        policy("tests lint", ""),
        "prompt | edit | lint fail 1 | tests after 9 pass | stop | tests after 8 pass | edit | stop
         | tests after 7 pass | edit | stop",
        "tests lint continue tests:tree_moving?0+0-0 lint:1+0-0
         | tests lint continue tests:tree_moving?0+0-0 lint:0+1-0 | tests lint gave_up/same_failures",
    );
    // Nor does what accept can hold without stand in the way of an attempt.
    check(
        policy("tests lint", "tests"),
        "prompt | edit | tests fail 1 | stop | edit | stop | edit | stop",
        "tests continue tests:1+0-0 | tests continue tests:0+1-0 | tests gave_up/same_failures",
    );
    // Once it holds still, it is judged.
    check(
        tests(),
        "prompt | edit | tests after 9 pass | stop | tests pass | stop",
        "tests continue tests:tree_moving?0+0-0 | tests look task_complete",
    );
}

#[test]
fn a_message_does_not_move_with_the_tree() {
    let both = with(policy("report tests", ""), |policy| {
        policy.verifiers[0].subject = VerdictSubjectKind::Message;
    });
    check(
        both,
        "prompt | edit | moves 5 6 | stop",
        "report tests look tests look continue tests:tree_moving?0+0-0",
    );
}

/// A tree that moves between the readings of one stop, as one that moves while a check runs.
#[test]
fn a_tree_that_moves_between_its_readings_is_nobodys_failure() {
    check(
        policy("tests", ""),
        "prompt | edit | moves 5 6 | stop | moves 7 8 | stop | moves 9 10 | stop",
        "tests look tests look continue tests:tree_moving?0+0-0 x2
         | tests look tests look unverified/tree_moving",
    );
}

/// Files that nobody can read are no files that move.
#[test]
fn a_tree_that_cannot_be_read_any_more_is_an_attempt() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | edit");
    let mut answers = Vec::new();
    for _ in 0..3 {
        world.tree = Some(2);
        world.ask_stop(&ScopeId::main_scope());
        let mut answer = None;
        while !world.open.is_empty() {
            // Readable for the check, and not for the look after it.
            if matches!(world.open[0], Effect::ReadTree { .. }) {
                world.tree = None;
            }
            answer = world.answer(0).decision;
        }
        answers.push(answer.map(|answer| describe(&[], &answer)));
    }
    let refused =
        ["continue", "repeat"].map(|word| Some(format!("{word} tests:tree_unreadable?0+0-0")));
    assert_eq!(answers[..2], refused);
    assert_eq!(world.ending().as_deref(), Some("gave_up/same_failures"));
}

/// The run whose paths the agent is told, which is none of a check that has not run at this stop.
#[test]
fn a_check_that_moved_shows_its_last_run() {
    let no_run = Digest::hash_bytes(b"");
    let shown = |story: &str| {
        let mut world = CoreWorld::new(policy("tests", ""));
        tell(&mut world, story);
        let last = world.decisions().last().map(|made| made.decision.clone());
        let Some(Decision::Stop(StopDecision::Continue { feedback })) = last else {
            panic!("not sent back: {last:?}");
        };
        feedback.checks[0].key
    };
    assert_ne!(shown("prompt | edit | moves 5 6 | stop"), no_run);
    assert_eq!(
        shown("prompt | edit | tests fail 1 | stop | unreadable | stop"),
        no_run
    );
}
