//! Each method of the document, wrapped tools included.

use checkrein::models::ChatMessage;
use checkrein::supervisor::VerifierNetwork;
use checkrein::{
    Tool, ToolCallVerdict, ToolInvocation, ToolOutcome, UnitFraction, VerifierConfig,
    wrap_tool_with_verifier,
};
use serde_json::json;

use super::{GOAL, both, network, nth, nudge_text, standard, verdict};
use crate::scripted::{
    Scripted, Sender, allow, last_message_text, now, rewrite, score, system, veto, with,
};

#[test]
fn wrapped_tools_are_judged_before_they_run() {
    let model = Scripted::by(|request| {
        Ok(if last_message_text(request).contains("#engineering") {
            veto("0.92", "wrong channel; user said QA team")
        } else {
            allow()
        })
    });
    let network = standard(&model);
    let tools = both(&network);
    let send = &tools[1];
    let refused = now(send.run(with(&json!({"channel": "#engineering"}))));
    assert_eq!(refused.outcome, ToolOutcome::Vetoed);
    assert!(
        refused.text.starts_with("[verifier-veto] slack_send"),
        "{}",
        refused.text
    );
    assert!(refused.text.contains("wrong channel; user said QA team"));
    assert!(send.sent().is_empty(), "it did not run");
    let ran = now(send.run(with(&json!({"channel": "#qa"}))));
    assert_eq!((ran.outcome, ran.text.as_str()), (ToolOutcome::Ran, "sent"));
    assert_eq!(send.sent(), [json!({"channel": "#qa"})]);
    // What is counted is counted for wrapped calls too.
    let stats = network.veto_and_progress_stats();
    assert_eq!(
        (stats.pretool_calls, stats.pretool_veto, stats.pretool_allow),
        (2, 1, 1)
    );
}

/// Name, description, schema, and whatever else the host's tools can do.
#[test]
fn a_wrapped_tool_is_the_tool_that_it_was() {
    let network = standard(&Scripted::says(&allow()));
    let plain = Sender::named("slack_search");
    let wrapped = &network.wrap_tools(vec![Sender::named("slack_search"), Sender::named("b")])[0];
    assert_eq!(wrapped.name(), plain.name());
    assert_eq!(wrapped.tool_description(), plain.tool_description());
    assert_eq!(wrapped.input_schema(), plain.input_schema());
    assert!(wrapped.is_read_only_tool());
    assert_eq!(
        wrapped.open(),
        1,
        "a method that only this kind of tool has"
    );
    // Behind a pointer to a host's own trait as well.
    trait Priced: Tool {
        fn price(&self) -> u32;
    }
    impl Priced for Sender {
        fn price(&self) -> u32 {
            7
        }
    }
    let boxed: Box<dyn Priced> = Box::new(Sender::named("slack_send"));
    let wrapped = wrap_tool_with_verifier(boxed, network.pre_tool(), "");
    assert_eq!(wrapped.price(), 7);
    assert_eq!(wrapped.into_inner().price(), 7);
}

#[test]
fn check_tool_shows_goal_history_and_arguments() {
    let model = Scripted::says(&allow());
    let network = standard(&model);
    let history = [
        ChatMessage::User("remind QA".to_owned()),
        ChatMessage::Assistant {
            text: "I will look for the channel.".to_owned(),
            calls: Vec::new(),
        },
    ];
    let arguments = json!({"channel": "#qa", "text": "Friday!"});
    let decision = now(network.check_tool_call("slack_send", &arguments, &history));
    assert_eq!(decision.verdict, ToolCallVerdict::Allow);
    assert_eq!(
        model.shown(),
        json!({
            "goal": GOAL,
            "history": [{"user": "remind QA"}, {"assistant": "I will look for the channel."}],
            "tool": "slack_send",
            "arguments": {"channel": "#qa", "text": "Friday!"},
        })
    );
}

/// The tools that exist, and the schema of this one.
#[test]
fn a_model_is_shown_what_tools_there_are() {
    let model = Scripted::says(&allow());
    let network = standard(&model);
    let tools = both(&network);
    let history = [ChatMessage::User("remind QA".to_owned())];
    let call = ToolInvocation {
        arguments: &nth(1),
        history: &history,
    };
    now(tools[1].run(call));
    let shown = model.shown();
    assert_eq!(shown["tools"], json!(["slack_search", "slack_send"]));
    assert_eq!(shown["takes"], "channel?, query?, text?");
    assert_eq!(
        shown["history"],
        json!([{"user": "remind QA"}]),
        "also of wrapped calls"
    );
    let request = model.asked().remove(0);
    assert_eq!(request["response_format"]["json_schema"]["name"], "veto");
    assert!(system(&request).contains("never instructions"));
}

#[test]
fn evaluate_step_scores_a_step() {
    let model = Scripted::says(&score("0.7", Some("look into main.rs")));
    let network = standard(&model);
    let history = [ChatMessage::User("remind QA".to_owned())];
    let check = now(network.evaluate_step("read a file", &history));
    assert_eq!(check.score, Some(UnitFraction::share_from_thousandths(700)));
    assert_eq!(
        model.shown(),
        json!({"goal": GOAL, "history": [{"user": "remind QA"}], "step": "read a file"})
    );
    let stats = network.veto_and_progress_stats();
    assert_eq!(
        (stats.progress_calls, stats.progress_below_threshold),
        (1, 0)
    );
    assert_eq!(
        stats.last_progress_scores,
        [UnitFraction::share_from_thousandths(700)]
    );
}

#[test]
fn three_low_steps_make_one_nudge() {
    let model = Scripted::says(&score("0.2", Some("try grep instead of read_file")));
    let network = standard(&model);
    let mut nudges = Vec::new();
    for _ in 0..3 {
        let check = now(network.evaluate_step("read", &[]));
        nudges.push(nudge_text(network.maybe_nudge(&check)));
    }
    assert_eq!(nudges[..2], [None, None]);
    let text = nudges[2].as_deref().unwrap();
    assert!(
        text.starts_with("[progress-check] Your last 3 steps"),
        "{text}"
    );
    assert!(text.contains("try grep instead of read_file"), "{text}");
    assert_eq!(network.veto_and_progress_stats().nudges_injected, 1);
}

#[test]
fn a_nudge_without_a_suggestion_has_one() {
    let model = Scripted::says(&score("0", None));
    let config = VerifierConfig {
        progress_window: 1,
        ..VerifierConfig::default()
    };
    let network = network(&model, config);
    let check = now(network.evaluate_step("read", &[]));
    let text = nudge_text(network.maybe_nudge(&check)).unwrap();
    assert!(text.contains("one step of another kind"), "{text}");
}

/// Also for tools that were wrapped before.
#[test]
fn reset_clears_cap_and_cache_of_wrapped_tools() {
    let model = Scripted::says(&allow());
    let config = VerifierConfig {
        max_pretool_calls_per_run: 2,
        ..VerifierConfig::default()
    };
    let network = network(&model, config);
    let tools = network.wrap_tools(vec![Sender::named("a"), Sender::named("b")]);
    let judged = |number| {
        let output = now(tools[0].run(with(&nth(number))));
        output.decision.unwrap().verdict
    };
    assert_eq!(judged(0), ToolCallVerdict::Allow);
    assert_eq!(judged(1), ToolCallVerdict::Allow);
    assert_eq!(judged(2), ToolCallVerdict::Unjudged);
    network.reset();
    assert_eq!(
        network.veto_and_progress_stats(),
        checkrein::VerifierStats::default()
    );
    assert_eq!(judged(0), ToolCallVerdict::Allow);
    assert_eq!(model.times(), 3, "what was remembered is forgotten too");
}

/// A streak of the run before is not carried over, nor is its cap.
#[test]
fn reset_clears_streak_and_progress_cap() {
    let model = Scripted::says(&score("0.1", None));
    let config = VerifierConfig {
        max_progress_calls_per_run: 2,
        ..VerifierConfig::default()
    };
    let network = network(&model, config);
    let step = || {
        let check = now(network.evaluate_step("read", &[]));
        (check.score.is_some(), network.maybe_nudge(&check).is_some())
    };
    assert_eq!(
        [step(), step(), step()],
        [(true, false), (true, false), (false, false)]
    );
    network.reset();
    assert_eq!(
        [step(), step(), step()],
        [(true, false), (true, false), (false, false)]
    );
    assert_eq!(model.times(), 4);
}

#[test]
fn stats_count_every_verdict_and_score() {
    let model = Scripted::one_by_one([
        allow(),
        veto("0.9", "no"),
        rewrite("0.9", &json!({"channel": "#qa"})),
        "nonsense".to_owned(),
        score("0.1", None),
        score("0.2", None),
        score("0.3", None),
    ]);
    let network = standard(&model);
    for number in 0..4 {
        verdict(&network, &nth(number));
    }
    for _ in 0..3 {
        let check = now(network.evaluate_step("read", &[]));
        network.maybe_nudge(&check);
    }
    let stats = network.veto_and_progress_stats();
    assert_eq!(stats.pretool_calls, 4);
    assert_eq!(stats.pretool_allow, 1);
    assert_eq!(stats.pretool_veto, 1);
    assert_eq!(stats.pretool_rewrite, 1);
    assert_eq!((stats.pretool_unjudged, stats.pretool_no_answer), (1, 1));
    assert_eq!(stats.progress_calls, 3);
    assert_eq!(stats.progress_below_threshold, 3);
    assert_eq!(stats.nudges_injected, 1);
    assert_eq!(
        stats.last_progress_scores,
        [100, 200, 300].map(UnitFraction::share_from_thousandths)
    );
    assert_eq!((stats.input_tokens, stats.output_tokens), (7 * 900, 7 * 60));
    assert_eq!((stats.pretool_asked, stats.progress_asked), (4, 3));
}

#[test]
fn ten_scores_are_kept() {
    let model = Scripted::one_by_one((0..25).map(|n| score(&format!("0.5{n:02}"), None)));
    let network = standard(&model);
    for _ in 0..25 {
        now(network.evaluate_step("read", &[]));
    }
    let scores = network.veto_and_progress_stats().last_progress_scores;
    let last: Vec<UnitFraction> = (515..525)
        .map(UnitFraction::share_from_thousandths)
        .collect();
    assert_eq!(scores, last);
}

#[test]
fn the_goal_is_shown_unless_it_is_empty() {
    let model = Scripted::says(&allow());
    let with_goal = standard(&model);
    verdict(&with_goal, &nth(0));
    assert_eq!(model.shown()["goal"], GOAL);
    let without = VerifierNetwork::new(model.clone(), VerifierConfig::default(), "").unwrap();
    verdict(&without, &nth(0));
    assert_eq!(model.shown().get("goal"), None);
}
