//! What needs no model: tools, schemas, the host's own rules, scope.

use checkrein::supervisor::{
    CallsReviewedByModel, HostToolCallVetoFn, ToolCallVerdictBasis, UnjudgedReason,
};
use checkrein::{InvalidToolCallError, Tool, ToolCallVerdict, ToolOutcome, VerifierConfig};
use serde_json::{Value, json};

use super::{both, network, nth, sender, standard};
use crate::scripted::{Scripted, Sender, allow, now, rewrite, veto, with};

#[test]
fn a_tool_that_does_not_exist_is_refused_without_asking() {
    let model = Scripted::says(&allow());
    let network = standard(&model);
    both(&network);
    for (name, hint) in [
        ("slack_sent", "did you mean 'slack_send'?"),
        ("delete_all_files", "there are: slack_search, slack_send"),
    ] {
        let decision = now(network.check_tool_call(name, &json!({}), &[]));
        assert_eq!(decision.verdict, ToolCallVerdict::Veto);
        assert!(matches!(
            decision.basis,
            ToolCallVerdictBasis::Misfit(InvalidToolCallError::UnknownTool { .. })
        ));
        assert!(decision.reason.contains(hint), "{}", decision.reason);
    }
    assert_eq!(model.times(), 0);
}

#[test]
fn arguments_that_do_not_fit_are_refused_without_asking() {
    let model = Scripted::says(&allow());
    let network = standard(&model);
    network.wrap_tools(vec![Sender::named("a"), Sender::named("slack_send")]);
    let decision =
        now(network.check_tool_call("slack_send", &json!({"channel": 7, "to": "x"}), &[]));
    assert!(
        matches!(
            decision.basis,
            ToolCallVerdictBasis::Misfit(InvalidToolCallError::InvalidArguments { .. })
        ),
        "{decision:?}"
    );
    assert!(
        decision
            .reason
            .contains("/channel: 7 is not of type \"string\""),
        "{}",
        decision.reason
    );
    assert!(
        decision.reason.contains("'to' was unexpected"),
        "{}",
        decision.reason
    );
    assert_eq!(model.times(), 0);
}

#[test]
fn the_hosts_policy_is_asked_first_and_about_what_is_rewritten() {
    let policy = |tool: &str, arguments: &Value| {
        (arguments["channel"] == "#general").then(|| format!("{tool} to everybody is not allowed"))
    };
    let _: Box<HostToolCallVetoFn> = Box::new(policy);
    let model = Scripted::says(&rewrite("0.9", &json!({"channel": "#general"})));
    let network = standard(&model).with_host_policy(policy);
    let decision = now(network.check_tool_call("slack_send", &json!({"channel": "#general"}), &[]));
    assert_eq!(
        (decision.verdict, decision.basis),
        (ToolCallVerdict::Veto, ToolCallVerdictBasis::Policy)
    );
    assert_eq!(model.times(), 0);
    let decision = now(network.check_tool_call("slack_send", &json!({"channel": "#qa"}), &[]));
    assert_eq!(decision.basis, ToolCallVerdictBasis::Policy);
    assert_eq!(
        decision.reason,
        "as rewritten: slack_send to everybody is not allowed"
    );
}

#[test]
fn a_rewrite_needs_arguments_that_fit() {
    for (new, expected) in [
        (json!({}), "without saying how"),
        (json!(null), "without saying how"),
        (json!("#qa"), "without saying how"),
        (json!({"to": "#qa"}), "do not fit"),
    ] {
        let model = Scripted::says(&rewrite("0.9", &new));
        let tool = sender(&model);
        let output = now(tool.run(with(&nth(1))));
        let decision = output.decision.unwrap();
        assert_eq!(decision.verdict, ToolCallVerdict::Unjudged, "{new}");
        assert!(decision.reason.contains(expected), "{}", decision.reason);
        assert_eq!(tool.sent(), [nth(1)], "it ran as it was");
    }
    let model = Scripted::says(&rewrite("0.5", &json!({"channel": "#qa"})));
    let decision = now(standard(&model).check_tool_call("slack_send", &nth(1), &[]));
    assert_eq!(
        decision.basis,
        ToolCallVerdictBasis::TooUnsure(ToolCallVerdict::Rewrite)
    );
    assert_eq!(
        (decision.verdict, decision.new_args),
        (ToolCallVerdict::Allow, None)
    );
}

#[test]
fn a_risky_scope_does_not_ask_about_tools_that_only_look() {
    let model = Scripted::says(&veto("0.9", "no"));
    let config = VerifierConfig {
        scope: CallsReviewedByModel::Risky,
        ..VerifierConfig::default()
    };
    let network = network(&model, config);
    let tools = both(&network);
    let looked = now(tools[0].run(with(&nth(1))));
    assert_eq!(looked.outcome, ToolOutcome::Ran);
    assert_eq!(
        looked.decision.unwrap().basis,
        ToolCallVerdictBasis::Unjudged(UnjudgedReason::OutOfScope)
    );
    assert_eq!(model.times(), 0);
    assert_eq!(
        now(tools[1].run(with(&nth(1)))).outcome,
        ToolOutcome::Vetoed
    );
}
