//! What follows from the word of a layer of middleware.

use checkrein_core::decision::{Decision, RoundDecision, StopDecision, ToolDecision};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::feedback;
use checkrein_core::ids::{ScopeId, UnixMillis};
use checkrein_core::input::{ApprovalStatusFact, Input, RoundEnded, RuleDecision};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact, MiddlewareStage};
use checkrein_core::transition::{Reason, Transition};

use crate::laws::replays;
use crate::world::{CoreWorld, layer, policy};

fn call(
    world: &mut CoreWorld,
    says: &[MiddlewareAnswerFact],
    rule: Option<RuleDecision>,
) -> ToolDecision {
    world.layers = says.to_vec();
    let made = world.tool(&ScopeId::main_scope(), "run", Some(1), rule, None);
    match made.decision {
        Some(Decision::Tool(decision)) => decision,
        other => panic!("{other:?}"),
    }
}

fn of(name: &str, says: MiddlewareAnswer) -> MiddlewareAnswerFact {
    layer(name, MiddlewareStage::BeforeTool, says)
}

/// A stop of the main conversation, all checks answered.
fn stop(world: &mut CoreWorld, says: &[MiddlewareAnswerFact]) -> StopDecision {
    world.layers = says.to_vec();
    world.stop(&ScopeId::main_scope());
    let made = world.decisions().last().cloned().unwrap();
    match made.decision {
        Decision::Stop(decision) => decision,
        other => panic!("{other:?}"),
    }
}

fn guard(says: MiddlewareAnswer) -> MiddlewareAnswerFact {
    layer("guard", MiddlewareStage::BeforeStop, says)
}

#[test]
fn the_severest_of_the_layers_counts_and_the_first_of_equals() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    let pass = of("calm", MiddlewareAnswer::Pass);
    assert_eq!(
        call(&mut world, std::slice::from_ref(&pass), None),
        ToolDecision::Allow
    );
    let nudge = call(
        &mut world,
        &[pass, of("kind", MiddlewareAnswer::Nudge)],
        None,
    );
    assert!(matches!(nudge, ToolDecision::Nudge { text } if text.contains("kind says so")));
    let both = [
        of("one", MiddlewareAnswer::Deny),
        of("two", MiddlewareAnswer::Deny),
    ];
    let ToolDecision::Deny { reason } = call(&mut world, &both, None) else {
        panic!("not denied");
    };
    assert_eq!(reason, "checkrein: 'one' refuses this call: one says so");
    let told = [
        of("kind", MiddlewareAnswer::Nudge),
        of("new", MiddlewareAnswer::Rewrite),
    ];
    let rewrite = call(&mut world, &told, None);
    assert!(matches!(rewrite, ToolDecision::Rewrite { args, .. } if args == "{}"));
    let why = &world.decisions().last().unwrap().why;
    assert_eq!(why.len(), 2, "{why:?}");
    replays(&world);
}

#[test]
fn what_could_not_be_judged_is_denied_or_let_pass_as_the_stance_has_it() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    let denied = call(
        &mut world,
        &[of("guard", MiddlewareAnswer::BlockedByStance)],
        None,
    );
    assert!(
        matches!(&denied, ToolDecision::Deny { reason } if reason.contains("it took too long")),
        "{denied:?}"
    );
    let passed = call(
        &mut world,
        &[of("guard", MiddlewareAnswer::PassedOver)],
        None,
    );
    assert_eq!(passed, ToolDecision::Allow);
    // What nobody judged makes no complete task, however good the checks are.
    world.tree = Some(2);
    let ended = stop(&mut world, &[]);
    let expected = Transition::new(Reason::Unverified, "passed_over");
    assert_eq!(
        ended,
        StopDecision::Accept {
            transition: Some(expected)
        }
    );
    let why = &world.decisions().last().unwrap().why;
    assert!(why.contains(&DecisionFactor::LayerPassedOver), "{why:?}");
    // A new prompt begins anew.
    world.prompt();
    world.tree = Some(3);
    let ended = stop(&mut world, &[]);
    let done = Transition::transition_without_detail(Reason::TaskComplete);
    assert_eq!(
        ended,
        StopDecision::Accept {
            transition: Some(done)
        }
    );
    replays(&world);
}

#[test]
fn a_layer_that_asks_is_a_rule_that_prompts_and_lifts_no_other() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    let asks = [of("guard", MiddlewareAnswer::Ask)];
    let asked = call(&mut world, &asks, None);
    assert!(
        matches!(&asked, ToolDecision::Ask { reason, .. } if reason.contains("guard says so")),
        "{asked:?}"
    );
    let forbidden = call(&mut world, &asks, Some(RuleDecision::Forbidden));
    assert!(matches!(forbidden, ToolDecision::Deny { .. }));
    let passes = [of("guard", MiddlewareAnswer::Pass)];
    let asked = call(&mut world, &passes, Some(RuleDecision::Prompt));
    assert!(matches!(asked, ToolDecision::Ask { .. }));
    replays(&world);
}

#[test]
fn an_agent_that_stops_right_after_a_layer_said_no_was_refused() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    call(&mut world, &[of("guard", MiddlewareAnswer::Deny)], None);
    let ended = stop(&mut world, &[]);
    let expected = Transition::transition_without_detail(Reason::PermissionDenied);
    assert_eq!(
        ended,
        StopDecision::Accept {
            transition: Some(expected)
        }
    );
}

#[test]
fn a_refused_stop_runs_no_check_and_says_why() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    world.tree = Some(2);
    let StopDecision::Continue { feedback: told } =
        stop(&mut world, &[guard(MiddlewareAnswer::Deny)])
    else {
        panic!("let through");
    };
    assert!(world.open.is_empty(), "{:?}", world.open);
    assert!(told.checks.is_empty());
    let text = feedback::render_feedback(&told, None, &|_| None);
    assert!(text.contains("guard: guard says so"), "{text}");
    // The same again is told in a line, and then it is over.
    let StopDecision::Continue { feedback: told } =
        stop(&mut world, &[guard(MiddlewareAnswer::Deny)])
    else {
        panic!("let through");
    };
    assert!(told.repeat);
    let text = feedback::render_feedback(&told, None, &|_| None);
    assert!(
        text.contains("still failing: guard (asked 2 times, 1 left)"),
        "{text}"
    );
    let ended = stop(&mut world, &[guard(MiddlewareAnswer::Deny)]);
    let expected = Transition::new(Reason::GaveUp, "same_failures");
    assert_eq!(
        ended,
        StopDecision::Accept {
            transition: Some(expected)
        }
    );
    replays(&world);
}

#[test]
fn other_words_each_time_are_bounded_by_the_continuations() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    world.tree = Some(2);
    let mut refused = 0;
    let ended = (0..20).find_map(|nth| {
        let mut fact = guard(MiddlewareAnswer::Deny);
        fact.reason = format!("reason {nth}");
        match stop(&mut world, &[fact]) {
            StopDecision::Continue { .. } => {
                refused += 1;
                None
            }
            ended => Some(ended),
        }
    });
    assert_eq!(refused, 7);
    let expected = Transition::new(Reason::GaveUp, "continues");
    assert_eq!(
        ended,
        Some(StopDecision::Accept {
            transition: Some(expected)
        })
    );
}

#[test]
fn a_stop_that_could_not_be_judged_is_refused_or_accepted_unverified() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    world.tree = Some(2);
    let StopDecision::Continue { feedback: told } =
        stop(&mut world, &[guard(MiddlewareAnswer::BlockedByStance)])
    else {
        panic!("let through");
    };
    let text = feedback::render_feedback(&told, None, &|_| None);
    assert!(
        text.contains("guard: could not judge this stop (it took too long)"),
        "{text}"
    );
    let ended = stop(&mut world, &[guard(MiddlewareAnswer::PassedOver)]);
    let expected = Transition::new(Reason::Unverified, "passed_over");
    assert_eq!(
        ended,
        StopDecision::Accept {
            transition: Some(expected)
        }
    );
    replays(&world);
}

#[test]
fn a_halted_task_is_not_saved_past_a_layer_that_refuses() {
    let halted = |says: MiddlewareAnswer| {
        let mut world = CoreWorld::new(policy("a", ""));
        world.policy.caps.tool_calls = Some(1);
        world.prompt();
        world.tree = Some(2);
        let first = stop(&mut world, &[]);
        assert!(matches!(first, StopDecision::Accept { .. }));
        for _ in 0..3 {
            call(&mut world, &[], None);
        }
        stop(&mut world, &[guard(says)])
    };
    let StopDecision::Accept {
        transition: Some(passed),
    } = halted(MiddlewareAnswer::Pass)
    else {
        panic!("not accepted");
    };
    assert_eq!(passed.reason, Reason::TaskComplete);
    for says in [
        MiddlewareAnswer::Deny,
        MiddlewareAnswer::BlockedByStance,
        MiddlewareAnswer::PassedOver,
    ] {
        let StopDecision::Accept {
            transition: Some(ended),
        } = halted(says)
        else {
            panic!("not accepted");
        };
        assert_eq!(ended.reason, Reason::HardCap, "{says:?}");
    }
}

#[test]
fn a_person_who_answers_meanwhile_lifts_no_layers_refusal_of_the_stop() {
    for says in [MiddlewareAnswer::Deny, MiddlewareAnswer::BlockedByStance] {
        let mut world = CoreWorld::new(policy("a", ""));
        world.approval = Some(ApprovalStatusFact {
            id: "ap-1".to_owned(),
            until: UnixMillis(2_000_000),
            answer: None,
        });
        world.prompt();
        world.tree = Some(2);
        let asked = call(&mut world, &[], Some(RuleDecision::Prompt));
        assert!(matches!(asked, ToolDecision::Ask { .. }), "{asked:?}");
        // It is over before anybody can answer: no check runs.
        world.layers = vec![guard(says)];
        let made = world.ask_stop(&ScopeId::main_scope());
        assert!(made.effects.is_empty(), "{:?}", made.effects);
        let expected = Transition::new(Reason::AwaitingHuman, "parked");
        let accept = StopDecision::Accept {
            transition: Some(expected),
        };
        assert_eq!(made.decision, Some(Decision::Stop(accept)));
        let why = &world.decisions().last().unwrap().why;
        assert!(why.contains(&DecisionFactor::Layer(guard(says))), "{why:?}");
        replays(&world);
    }
}

fn at_round_end(name: &str, says: MiddlewareAnswer) -> MiddlewareAnswerFact {
    layer(name, MiddlewareStage::RoundEnd, says)
}

#[test]
fn a_layer_that_halts_a_call_ends_the_task_by_its_name() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    let halted = call(&mut world, &[of("enough", MiddlewareAnswer::Halt)], None);
    assert!(
        matches!(&halted, ToolDecision::Halt { reason } if reason.contains("'enough' ends the work")),
        "{halted:?}"
    );
    let ended = world.state.task.as_ref().unwrap().ended.clone();
    assert_eq!(ended, Some(Transition::new(Reason::LoopDetected, "enough")));
    // It is severer than a denial, and the calls that follow are denied without the layer.
    let next = call(&mut world, &[], None);
    assert!(matches!(next, ToolDecision::Deny { .. }), "{next:?}");
    replays(&world);
}

#[test]
fn a_layer_that_halts_a_subagent_ends_it_alone() {
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    let agent = ScopeId::from("agent-7");
    world.layers = vec![of("enough", MiddlewareAnswer::Halt)];
    let made = world.tool(&agent, "run", Some(1), None, None);
    assert!(matches!(
        made.decision,
        Some(Decision::Tool(ToolDecision::Deny { .. }))
    ));
    world.layers.clear();
    let made = world.tool(&agent, "look", Some(1), None, None);
    assert!(matches!(
        made.decision,
        Some(Decision::Tool(ToolDecision::Deny { .. }))
    ));
    assert_eq!(call(&mut world, &[], None), ToolDecision::Allow);
    assert!(world.state.current_open_task().is_some());
    replays(&world);
}

#[test]
fn the_end_of_a_round_has_words_or_is_the_end() {
    let round = |world: &mut CoreWorld, scope: &ScopeId, says: &[MiddlewareAnswerFact]| {
        world.layers = says.to_vec();
        let made = world.news(Input::RoundEnded(RoundEnded {
            scope: scope.clone(),
            tokens: None,
        }));
        world.layers.clear();
        made.decision.unwrap()
    };
    let (main, agent) = (ScopeId::main_scope(), ScopeId::from("agent-7"));
    let mut world = CoreWorld::new(policy("a", ""));
    world.prompt();
    // A detector that fails leaves nothing unjudged.
    let passed = [at_round_end("dead", MiddlewareAnswer::PassedOver)];
    assert_eq!(round(&mut world, &main, &passed), Decision::Noted);
    assert!(!world.state.task.as_ref().unwrap().passed_over);
    let words = [
        at_round_end("one", MiddlewareAnswer::Nudge),
        at_round_end("two", MiddlewareAnswer::Nudge),
    ];
    match round(&mut world, &main, &words) {
        Decision::Round(RoundDecision::Nudge { text }) => {
            assert!(text.contains("'one'") && text.contains("'two'"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    // A sub-agent is ended alone.
    let halt = [at_round_end("enough", MiddlewareAnswer::Halt)];
    let ended = round(&mut world, &agent, &halt);
    assert!(
        matches!(ended, Decision::Round(RoundDecision::Halt { .. })),
        "{ended:?}"
    );
    assert!(world.state.current_open_task().is_some());
    let made = world.tool(&agent, "look", Some(1), None, None);
    assert!(matches!(
        made.decision,
        Some(Decision::Tool(ToolDecision::Deny { .. }))
    ));

    let ended = round(&mut world, &main, &halt);
    assert!(
        matches!(ended, Decision::Round(RoundDecision::Halt { .. })),
        "{ended:?}"
    );
    let ended = world.state.task.as_ref().unwrap().ended.clone();
    assert_eq!(ended, Some(Transition::new(Reason::LoopDetected, "enough")));
    // It is over: nobody is told twice.
    assert_eq!(round(&mut world, &main, &words), Decision::Noted);
    replays(&world);
}
