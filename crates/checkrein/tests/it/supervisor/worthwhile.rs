//! When it is not worth it: nobody is asked, and why is said.

use std::time::Duration;

use checkrein::supervisor::{
    SupervisedRunExpectations, SupervisionNotWorthReason, ToolCallVerdictBasis, UnjudgedReason,
};
use checkrein::{Tool, ToolOutcome};

use super::{nth, standard, verdict};
use crate::scripted::{Scripted, Sender, now, veto, with};

#[test]
fn an_agent_with_one_tool_is_not_supervised() {
    let model = Scripted::says(&veto("0.9", "no"));
    let network = standard(&model);
    let tools = network.wrap_tools(vec![Sender::named("only")]);
    let output = now(tools[0].run(with(&nth(1))));
    let why = UnjudgedReason::NotWorth(SupervisionNotWorthReason::OneTool);
    assert_eq!(
        output.decision.unwrap().basis,
        ToolCallVerdictBasis::Unjudged(why)
    );
    assert_eq!((output.outcome, model.times()), (ToolOutcome::Ran, 0));
    assert_eq!(
        network.veto_and_progress_stats().veto_off,
        Some(SupervisionNotWorthReason::OneTool)
    );
    // With a second tool it is.
    network.wrap_tools(vec![Sender::named("other")]);
    assert_eq!(
        now(tools[0].run(with(&nth(1)))).outcome,
        ToolOutcome::Vetoed
    );
}

#[test]
fn quick_or_cheap_runs_are_not_supervised() {
    for (delay, cost, off) in [
        (Some(100), None, true),
        (Some(500), None, false),
        (None, Some(9_999), true),
        (None, Some(10_000), false),
    ] {
        let model = Scripted::content();
        let delay = delay.map(Duration::from_millis);
        let network = standard(&model)
            .with_expected_delay_and_cost(SupervisedRunExpectations { delay, cost });
        verdict(&network, &nth(0));
        now(network.evaluate_step("read", &[]));
        assert_eq!(model.times(), if off { 0 } else { 2 }, "{delay:?} {cost:?}");
        let stats = network.veto_and_progress_stats();
        assert_eq!(
            (stats.veto_off.is_some(), stats.progress_off.is_some()),
            (off, off)
        );
        if let Some(why) = stats.veto_off {
            let text = why.to_string();
            assert!(
                text.contains("delayed by 100 ms") || text.contains("0.9999 of a cent"),
                "{text}"
            );
        }
    }
}
