//! What is remembered, what is counted, how exact caps are.

use checkrein::models::ModelError;
use checkrein::supervisor::{ToolCallVerdictBasis, UnjudgedReason};
use checkrein::{ToolCallVerdict, UnusableModelAnswer};
use serde_json::{Value, json};

use super::{nth, standard, verdict};
use crate::scripted::{Scripted, now, score, veto};

#[test]
fn an_equal_call_is_not_asked_about_twice() {
    let model = Scripted::says(&veto("0.9", "no"));
    let network = standard(&model);
    let one: Value = serde_json::from_str(r##"{"channel":"#qa","text":"x"}"##).unwrap();
    let same: Value = serde_json::from_str(r##"{"text":"x","channel":"#qa"}"##).unwrap();
    let first = now(network.check_tool_call("slack_send", &one, &[]));
    let second = now(network.check_tool_call("slack_send", &same, &[]));
    assert!(!first.cached && second.cached);
    assert_eq!(
        (second.verdict, second.reason),
        (first.verdict, first.reason)
    );
    verdict(&network, &json!({"channel": "#qa", "text": "y"}));
    assert_eq!(model.times(), 2);
    let stats = network.veto_and_progress_stats();
    assert_eq!((stats.pretool_veto, stats.pretool_cached), (3, 1));
}

#[test]
fn what_nobody_judged_is_asked_again() {
    let answers = std::sync::Mutex::new(vec![Ok(veto("0.9", "no")), Err(401)]);
    let model = Scripted::by(move |_| answers.lock().unwrap().pop().unwrap());
    let network = standard(&model);
    let first = now(network.check_tool_call("slack_send", &nth(1), &[]));
    assert!(
        matches!(
            first.basis,
            ToolCallVerdictBasis::Unjudged(UnjudgedReason::NoAnswer(UnusableModelAnswer::Model(
                ModelError::Refused { status: 401, .. }
            )))
        ),
        "{first:?}"
    );
    assert_eq!(verdict(&network, &nth(1)), ToolCallVerdict::Veto);
}

#[test]
fn caps_are_exact_however_many_ask_at_once() {
    let model = Scripted::content();
    let network = standard(&model);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let network = &network;
            scope.spawn(move || {
                for call in 0..20 {
                    now(network.check_tool_call("slack_send", &nth(thread * 100 + call), &[]));
                    now(network.evaluate_step("read", &[]));
                }
            });
        }
    });
    assert_eq!(model.times(), 50 + 30);
    let stats = network.veto_and_progress_stats();
    assert_eq!(
        (
            stats.pretool_calls,
            stats.pretool_allow,
            stats.pretool_cap_spent
        ),
        (320, 50, 270)
    );
    assert_eq!((stats.progress_calls, stats.progress_unjudged), (320, 290));
}

/// A low score, a step that nobody could rate, two low scores: still three in a row.
#[test]
fn a_step_that_nobody_rated_neither_lengthens_nor_breaks_a_row() {
    let model = Scripted::one_by_one([
        score("0.1", None),
        "it went well".to_owned(),
        score("0.1", None),
        score("0.1", None),
    ]);
    let network = standard(&model);
    let nudged: Vec<bool> = (0..4)
        .map(|_| {
            let check = now(network.evaluate_step("read", &[]));
            network.maybe_nudge(&check).is_some()
        })
        .collect();
    assert_eq!(nudged, [false, false, false, true]);
}
