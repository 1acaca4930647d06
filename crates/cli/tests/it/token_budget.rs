//! Whether going on is worth its tokens: how few of them, how often, and what share of the budget end a task.

use serde_json::{Value, json};

use crate::world::{World, ending, feed};

/// What an agent of its own host hears when it says so.
fn tell(world: &World, line: &Value) -> Value {
    let mut hook = world.checkrein(&["hook", "generic"]);
    feed(&mut hook, line.to_string().as_bytes()).json()
}

/// Stops with ever new failures, this many output tokens before each: how often it is sent back, and how the task
/// then ended.
fn stops(config: &str, tokens: &[Option<u64>]) -> (usize, String) {
    let world = World::new();
    world.config(&format!(
        "{config}\n{}",
        world.counted("tests", "exit $(cat work)")
    ));
    world.commit();
    let line = |kind: &str| json!({ "type": kind, "session": "s", "text": "Done." });
    tell(&world, &line("user"));
    for (nth, tokens) in tokens.iter().enumerate() {
        let mut round = line("assistant");
        if let Some(tokens) = tokens {
            round["tokens"] = json!(tokens);
        }
        tell(&world, &round);
        world.write("work", &(nth + 1).to_string());
        let answer = tell(&world, &line("stop"));
        if answer["decision"] != "continue" {
            assert_eq!(world.ending(), ending(&answer["transition"]));
            return (nth, ending(&answer["transition"]));
        }
    }
    (tokens.len(), world.ending())
}

#[track_caller]
fn check(config: &str, tokens: &[u64], sent_back: usize, ends: &str) {
    let tokens: Vec<Option<u64>> = tokens.iter().copied().map(Some).collect();
    assert_eq!(stops(config, &tokens), (sent_back, ends.to_owned()));
}

const DIMINISHING: &str = "diminishing_returns/diminishing";
const BUDGET: &str = "diminishing_returns/token_budget";

#[test]
fn little_between_two_stops_ends_it_after_three_continuations() {
    // 6,598 tokens of a budget of a million: what counts is what each round adds.
    check("", &[5_000, 600, 499, 499], 3, DIMINISHING);
    check("", &[5_000, 600, 500, 499], 4, "open");
    check("", &[5_000, 600, 499, 500], 4, "open");
    // Little from the start: no sooner than after the third continuation.
    check("", &[100, 100, 100, 100], 3, DIMINISHING);
    // Nobody knows what it used: no reason to stop.
    assert_eq!(stops("", &[None; 6]), (6, "open".to_owned()));
}

#[test]
fn nine_tenths_of_the_budget_end_it() {
    let budget = "[caps]\ntoken_budget = 10_000\n";
    check(budget, &[8_999], 1, "open");
    check(budget, &[9_000], 0, BUDGET);
    check(budget, &[6_000, 3_000], 1, BUDGET);
}

#[test]
fn each_of_the_three_numbers_can_be_set() {
    let set = |line: &str| format!("[caps]\ntoken_budget = 10_000\n[token_budget]\n{line}\n");
    check(&set("threshold = 0.5"), &[4_999], 1, "open");
    check(&set("threshold = 0.5"), &[5_000], 0, BUDGET);
    check(
        &set("diminishing_tokens = 700"),
        &[1_000, 1_000, 699, 699],
        3,
        DIMINISHING,
    );
    check(&set("diminishing_rounds = 1"), &[400, 400], 1, DIMINISHING);
}
