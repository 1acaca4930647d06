//! The two example traces of the document.

use checkrein::{Tool, ToolOutcome, UnitFraction};
use serde_json::json;

use super::{both, standard};
use crate::scripted::{Scripted, allow, now, score, veto, with};

#[test]
fn example_trace_of_a_veto() {
    let model = Scripted::one_by_one([
        allow(),
        veto("0.92", "wrong channel; user said QA team"),
        allow().replace("0.95", "0.91"),
    ]);
    let network = standard(&model);
    let tools = both(&network);
    let [search, send] = tools.as_slice() else {
        panic!("two tools");
    };
    let first = now(search.run(with(&json!({"query": "QA channel"}))));
    let second = now(send.run(with(&json!({"channel": "#engineering", "text": "..."}))));
    let third = now(send.run(with(&json!({"channel": "#qa", "text": "..."}))));
    let ended = [first.outcome, second.outcome, third.outcome];
    assert_eq!(
        ended,
        [ToolOutcome::Ran, ToolOutcome::Vetoed, ToolOutcome::Ran]
    );
    assert!(
        second
            .text
            .contains("wrong channel; user said QA team (confidence 0.92)")
    );
    assert_eq!(send.sent(), [json!({"channel": "#qa", "text": "..."})]);
    assert_eq!(
        third.decision.unwrap().confidence,
        Some(UnitFraction::share_from_thousandths(910))
    );
    let stats = network.veto_and_progress_stats();
    assert_eq!(
        (stats.pretool_allow, stats.pretool_veto, model.times()),
        (2, 1, 3)
    );
}

#[test]
fn example_trace_of_a_stall() {
    let suggestion = "you're stalling — try grep instead of read_file";
    let scores = ["0.7", "0.3", "0.2", "0.2", "0.6"];
    let model = Scripted::one_by_one(scores.map(|text| score(text, Some(suggestion))));
    let network = standard(&model);
    let mut seen = Vec::new();
    for _ in scores {
        let check = now(network.evaluate_step("read", &[]));
        let streak = network.progress().low_score_streak();
        seen.push((streak, network.maybe_nudge(&check).is_some()));
    }
    assert_eq!(
        seen,
        [(0, false), (1, false), (2, false), (3, true), (0, false)]
    );
    assert_eq!(
        (
            network.veto_and_progress_stats().nudges_injected,
            model.times()
        ),
        (1, 5)
    );
}
