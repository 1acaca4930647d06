//! When it is not worth it: nobody is asked, and why is said.

use std::time::Duration;

use checkrein::supervisor::{Basis, Expected, NotWorth, Unjudged};
use checkrein::{Tool, ToolEnded};

use super::{nth, standard, verdict};
use crate::scripted::{Scripted, Sender, now, veto, with};

#[test]
fn s004_not_worth_single_tool() {
    let model = Scripted::says(&veto("0.9", "no"));
    let network = standard(&model);
    let tools = network.wrap_tools(vec![Sender::named("only")]);
    let output = now(tools[0].run(with(&nth(1))));
    let why = Unjudged::NotWorth(NotWorth::OneTool);
    assert_eq!(output.decision.unwrap().basis, Basis::Unjudged(why));
    assert_eq!((output.ended, model.times()), (ToolEnded::Ran, 0));
    assert_eq!(network.stats().veto_off, Some(NotWorth::OneTool));
    // With a second tool it is.
    network.wrap_tools(vec![Sender::named("other")]);
    assert_eq!(now(tools[0].run(with(&nth(1)))).ended, ToolEnded::Vetoed);
}

#[test]
fn s004_not_worth_latency_and_cost() {
    for (delay, cost, off) in [
        (Some(100), None, true),
        (Some(500), None, false),
        (None, Some(9_999), true),
        (None, Some(10_000), false),
    ] {
        let model = Scripted::content();
        let delay = delay.map(Duration::from_millis);
        let network = standard(&model).expecting(Expected { delay, cost });
        verdict(&network, &nth(0));
        now(network.evaluate_step("read", &[]));
        assert_eq!(model.times(), if off { 0 } else { 2 }, "{delay:?} {cost:?}");
        let stats = network.stats();
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
