//! Token budgets at a stop: a limit that ends the task, and a target that sends passing work on.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::policy::TokenLimitOrTarget;

use crate::story::{check, tell};
use crate::world::{CoreWorld, policy, with};

#[test]
fn a_token_budget_that_is_a_target() {
    let target = |single: bool| {
        with(policy("tests", ""), |policy| {
            policy.token_budget.mode = TokenLimitOrTarget::Target;
            policy.single_task = single;
        })
    };
    let passing = |stops: &[&str]| {
        let stops: Vec<String> = stops
            .iter()
            .map(|tokens| format!("edit | tests pass | stop {tokens}"))
            .collect();
        format!("prompt | {}", stops.join(" | "))
    };
    let (on, done) = ("tests look sent on", "tests look task_complete");
    // Passing work is sent on until the line is reached, and is then accepted as what it is.
    check(
        target(true),
        &passing(&["tokens=300000", "tokens=500000", "tokens=100000"]),
        &format!("{on} x2 | {done}"),
    );
    // Or until going on brings little, or the continuations are used up.
    check(
        target(true),
        &passing(&["tokens=5000", "tokens=600", "tokens=499", "tokens=499"]),
        &format!("{on} x3 | {done}"),
    );
    let many = passing(&["tokens=5000"; 8]);
    check(target(true), &many, &format!("{on} x7 | {done}"));
    let mut world = CoreWorld::new(target(true));
    tell(&mut world, &passing(&["tokens=5000"; 3]));
    let left = world.decisions().filter_map(|made| match &made.decision {
        Decision::Stop(StopDecision::Continue { feedback }) => Some(feedback.continues_left),
        _ => None,
    });
    let left: Vec<u32> = left.collect();
    assert_eq!(left, [6, 5, 4]);
    // Unknown use is no reason to go on; under hooks the target is a limit.
    check(target(true), &passing(&[""]), done);
    check(target(false), &passing(&["tokens=5000"]), done);
    // What fails is judged as always.
    check(
        target(true),
        "prompt | edit | tests fail 1 | stop tokens=5000",
        "tests continue tests:1+0-0",
    );
}

#[test]
fn the_token_budget() {
    let tests = || policy("tests", "");
    let failing = |tokens: &[&str]| {
        let rounds: Vec<String> = tokens
            .iter()
            .enumerate()
            .map(|(at, tokens)| format!("edit | tests fail {} | stop {tokens}", at + 1))
            .collect();
        format!("prompt | {}", rounds.join(" | "))
    };
    let first = "tests continue tests:1+0-0";
    let next = "tests continue tests:1+0-1";
    // 0.9 of the budget.
    check(tests(), &failing(&["tokens=899999"]), first);
    check(
        tests(),
        &failing(&["tokens=900000"]),
        "tests diminishing_returns/token_budget",
    );
    // Three continuations given, the last two deltas under 500.
    check(
        tests(),
        &failing(&["tokens=5000", "tokens=600", "tokens=499", "tokens=499"]),
        &format!("{first} | {next} x2 | tests diminishing_returns/diminishing"),
    );
    check(
        tests(),
        &failing(&[
            "tokens=5000",
            "tokens=499",
            "tokens=499",
            "tokens=500",
            "tokens=499",
        ]),
        &format!("{first} | {next} x4"),
    );
    // Unknown use never fires it, also if it was known before.
    check(tests(), &failing(&[""; 6]), &format!("{first} | {next} x5"));
    check(
        tests(),
        &failing(&["tokens=5000", "tokens=600", "", "", "", ""]),
        &format!("{first} | {next} x5"),
    );
    let resumed = failing(&[""; 6]).replace("stop", "resume tokens=0 | stop");
    check(tests(), &resumed, &format!("{first} | {next} x5"));
    // Readings may come with any news, not only with the stop.
    let by_calls = |tokens: [u64; 4]| {
        let round = |(at, tokens)| {
            format!("edit | tests fail {at} | call a={at} tokens={tokens} | round | stop")
        };
        let rounds: Vec<String> = tokens.into_iter().enumerate().map(round).collect();
        rounds.join(" | ")
    };
    let low = by_calls([5_000, 600, 499, 499]);
    for opened in ["prompt | ", ""] {
        check(
            tests(),
            &format!("{opened}{low}"),
            &format!(
                "allow | {first} | allow | {next} | allow | {next} | allow
                | tests diminishing_returns/diminishing"
            ),
        );
    }
    check(
        tests(),
        &format!("prompt | {}", by_calls([5_000, 600, 500, 499])),
        &format!("allow | {first} | allow | {next} | allow | {next} | allow | {next}"),
    );
    // An accepting stop is never weighed.
    check(
        tests(),
        "prompt | edit | stop tokens=900000",
        "tests look task_complete",
    );
}
