//! What a verdict does to a call, and what it and a rating hold.

use checkrein::supervisor::ToolCallVerdictBasis;
use checkrein::{Tool, ToolCallVerdict, ToolOutcome, UnitFraction};
use serde_json::{Value, json};

use super::{nth, sender, standard};
use crate::scripted::{Scripted, allow, now, rewrite, score, veto, with};

#[test]
fn an_allowed_call_runs_unchanged() {
    let model = Scripted::says(&allow());
    let tool = sender(&model);
    let output = now(tool.run(with(&nth(1))));
    assert_eq!(output.decision.unwrap().verdict, ToolCallVerdict::Allow);
    assert_eq!((output.text.as_str(), tool.sent()), ("sent", vec![nth(1)]));
}

#[test]
fn a_vetoed_call_does_not_run() {
    let model = Scripted::says(&veto("0.92", "nobody asked for it"));
    let tool = sender(&model);
    let output = now(tool.run(with(&nth(1))));
    assert_eq!(output.outcome, ToolOutcome::Vetoed);
    assert_eq!(
        output.text,
        "[verifier-veto] slack_send was not run: nobody asked for it (confidence 0.92). Do not repeat this call; find another way to the goal."
    );
    assert!(tool.sent().is_empty());
}

#[test]
fn a_rewritten_call_runs_with_new_arguments() {
    let model = Scripted::says(&rewrite("0.9", &json!({"channel": "#qa"})));
    let tool = sender(&model);
    let output = now(tool.run(with(&json!({"channel": "#qaa"}))));
    assert_eq!(output.outcome, ToolOutcome::Ran);
    assert_eq!(tool.sent(), [json!({"channel": "#qa"})]);
    // The agent is told with what its call ran.
    assert!(
        output
            .text
            .starts_with(r##"[verifier-rewrite] ran with {"channel":"#qa"} instead"##),
        "{}",
        output.text
    );
    assert!(output.text.ends_with("\nsent"));
    let new = output.decision.unwrap().new_args.unwrap();
    assert_eq!(new["channel"], "#qa");
}

#[test]
fn a_decision_holds_what_the_model_replied() {
    let model = Scripted::one_by_one([
        veto("0.92", "wrong channel"),
        rewrite("0.81", &json!({"channel": "#qa"})),
        allow(),
    ]);
    let network = standard(&model);
    let vetoed = now(network.check_tool_call("slack_send", &nth(0), &[]));
    assert_eq!(vetoed.verdict, ToolCallVerdict::Veto);
    assert_eq!(vetoed.reason, "wrong channel");
    assert_eq!(
        vetoed.confidence,
        Some(UnitFraction::share_from_thousandths(920))
    );
    assert_eq!(vetoed.new_args, None);
    let rewritten = now(network.check_tool_call("slack_send", &nth(1), &[]));
    assert_eq!(rewritten.reason, "a typo");
    assert_eq!(
        Value::Object(rewritten.new_args.unwrap()),
        json!({"channel": "#qa"})
    );
    assert_eq!(
        rewritten.confidence,
        Some(UnitFraction::share_from_thousandths(810))
    );
    let allowed = now(network.check_tool_call("slack_send", &nth(2), &[]));
    assert_eq!(
        (allowed.new_args, allowed.basis),
        (None, ToolCallVerdictBasis::Model)
    );
}

#[test]
fn a_progress_check_holds_what_the_model_replied() {
    let model = Scripted::one_by_one([score("0.25", Some("use grep")), score("0.75", None)]);
    let network = standard(&model);
    let low = now(network.evaluate_step("read", &[]));
    assert_eq!(low.score, Some(UnitFraction::share_from_thousandths(250)));
    assert_eq!(low.summary, "read a file");
    assert_eq!(low.suggested_action.as_deref(), Some("use grep"));
    let high = now(network.evaluate_step("read", &[]));
    assert_eq!(
        (high.score, high.suggested_action),
        (Some(UnitFraction::share_from_thousandths(750)), None)
    );
}
