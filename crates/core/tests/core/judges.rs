//! Judges at a stop: who is asked, what follows, and how little it weighs.

use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::ScopeId;
use checkrein_core::input::JudgeTriggerOrSkipReason;
use checkrein_core::policy::{Policy, Stance, SubagentStopVerification};

use crate::story::{check, describe, tell};
use crate::world::{CoreWorld, ScriptedVerdict, policy, with};

/// `tests` is required, `j` is called.
fn called() -> Policy {
    policy("tests j?", "")
}

fn required() -> Policy {
    policy("tests j?", "tests and j")
}

fn terms(policy: Policy, attempts: u32, shadow: bool) -> Policy {
    with(policy, |policy| {
        for terms in policy.verifiers.iter_mut().flat_map(|spec| &mut spec.judge) {
            terms.max_attempts = attempts;
            terms.shadow = shadow;
        }
    })
}

#[test]
fn a_called_judge_is_asked_after_the_hard_tier() {
    check(
        called(),
        "prompt | edit | stop",
        "tests j look task_complete",
    );
    // Where evidence says no, nobody asks a model.
    check(
        called(),
        "prompt | edit | tests fail 1 | stop",
        "tests continue tests:1+0-0",
    );
    check(
        called(),
        "calling nothing | prompt | edit | stop",
        "tests look task_complete",
    );
}

#[test]
fn it_sends_back_until_its_attempts_are_spent() {
    // Three answers are seen, the first included: two are sent back, and the third stands.
    check(
        called(),
        "prompt | edit | j fail 1 | says one | stop | says two | stop | says three | stop",
        "tests j sent back 1/3 j:1+0-0 | j sent back 2/3 j:1+0-0 | j look task_complete",
    );
    check(
        terms(called(), 1, false),
        "prompt | edit | j fail 1 | stop",
        "tests j look task_complete",
    );
    // A new task resets it.
    check(
        terms(called(), 2, false),
        "prompt | edit | j fail 1 | stop | says two | stop | prompt | edit | says three | stop",
        "tests j sent back 1/2 j:1+0-0 | j look task_complete
         | tests j sent back 1/2 j:1+0-0",
    );
    check(
        called(),
        "prompt | edit | j fail 1 | stop | edit | says two | j pass | stop",
        "tests j sent back 1/3 j:1+0-0 | tests j look task_complete",
    );
}

#[test]
fn the_same_answer_is_not_judged_twice() {
    check(
        called(),
        "prompt | edit | j fail 1 | stop | stop | stop",
        "tests j sent back 1/3 j:1+0-0 | repeat j:0+1-0 | look task_complete",
    );
    // Another tree, or another prompt, is another question.
    check(
        called(),
        "prompt | edit | stop | edit | stop",
        "tests j look task_complete x2",
    );
}

#[test]
fn a_question_is_judged_and_nothing_is_run() {
    check(called(), "prompt | stop", "j look unverified/no_change");
    check(
        called(),
        "prompt | j fail 1 | stop | says two | j pass | stop",
        "j sent back 1/3 j:1+0-0 | j look unverified/no_change",
    );
    check(
        called(),
        "calling empty | prompt | stop",
        "unverified/no_change",
    );
}

#[test]
fn a_dead_model_changes_nothing_but_what_is_recorded() {
    for cause in [
        "model_unavailable",
        "unreadable",
        "timeout",
        "reply_deadline",
    ] {
        let mut world = CoreWorld::new(called());
        let story = format!("prompt | edit | j {cause} | stop");
        assert_eq!(tell(&mut world, &story), "tests j look task_complete");
        let said = world.decisions().last().unwrap().why.iter().any(|because| {
            matches!(
                because,
                DecisionFactor::Verdict {
                    cause: Some(_),
                    required: false,
                    by_stance: false,
                    ..
                }
            )
        });
        assert!(said, "{cause}");
    }
    // Unless its stance says otherwise.
    let stance = |stance| with(called(), |policy| policy.verifiers[1].stance = stance);
    check(
        stance(Stance::Block),
        "prompt | edit | j unreadable | stop",
        "tests j sent back 1/3 j:unreadable?0+0-0",
    );
    check(
        stance(Stance::Ask),
        "prompt | edit | j unreadable | stop",
        "tests j look awaiting_human/j",
    );
}

#[test]
fn what_rules_a_judge_out() {
    for calling in [
        "calls_pending",
        "delivered",
        "streamed",
        "empty",
        "heartbeat_off",
    ] {
        let told = |policy, expected: &str| {
            let mut world = CoreWorld::new(policy);
            let story = format!("calling {calling} | prompt | edit | stop");
            assert_eq!(tell(&mut world, &story), expected);
            let made = world.decisions().last().unwrap();
            let said = made
                .why
                .iter()
                .any(|because| matches!(because, DecisionFactor::NotAsked { .. }));
            assert!(said, "{calling}");
        };
        told(called(), "tests look task_complete");
        // One that is required did not pass: its stance is used.
        told(required(), "tests look unverified/passed_over");
    }
}

#[test]
fn a_required_judge_is_asked_whether_anything_calls_for_it() {
    check(
        required(),
        "calling nothing | prompt | edit | stop",
        "tests j look task_complete",
    );
    check(
        required(),
        "prompt | edit | j fail 1 | stop | says two | j pass | stop",
        "tests j sent back 1/3 j:1+0-0 | j look task_complete",
    );
}

#[test]
fn a_required_judge_that_is_never_content_ends_the_task() {
    check(
        required(),
        "prompt | edit | j fail 1 | says one | stop | j fail 2 | says two | stop | j fail 3 | says three | stop",
        "tests j sent back 1/3 j:1+0-0 | j sent back 2/3 j:1+0-0 | j gave_up/same_failures",
    );
    check(
        policy("tests j? k? l?", "tests and 2 of (j, k, l)"),
        "prompt | edit | k fail 1 | stop",
        "tests j k l look task_complete",
    );
    // Judges alone are no evidence.
    check(
        policy("j?", "j"),
        "prompt | edit | stop",
        "j look unverified/advisory_only",
    );
    check(
        required(),
        "prompt | edit | j model_unavailable | stop",
        "tests j look unverified/passed_over",
    );
}

#[test]
fn in_shadow_it_says_what_it_would_have_done() {
    let mut world = CoreWorld::new(terms(called(), 3, true));
    let told = tell(&mut world, "prompt | edit | j fail 1 | stop");
    assert_eq!(told, "tests j look task_complete");
    let made = world.decisions().last().unwrap();
    let would = DecisionFactor::Shadow {
        verifier: "j".into(),
        sends_back: true,
    };
    assert!(made.why.contains(&would), "{:?}", made.why);
}

#[test]
fn sub_agents() {
    check(
        called(),
        "prompt | edit | @s call write=1 | j fail 1 | @s stop | says two | @s stop | says three | @s stop",
        "allow | j sent back 1/3 j:1+0-0 | j sent back 2/3 j:1+0-0 | j look accept",
    );
    check(
        called(),
        "calling other_surface | prompt | edit | @s call write=1 | @s stop",
        "allow | accept",
    );
    check(
        with(required(), |policy| {
            policy.subagents.verify = SubagentStopVerification::Writers
        }),
        "prompt | edit | @s call write=1 | j fail 1 | @s stop",
        "allow | tests j sent back 1/3 j:1+0-0",
    );
}

#[test]
fn going_on_must_be_worth_it() {
    check(
        with(called(), |policy| policy.caps.continues = 1),
        "prompt | edit | j fail 1 | stop | says two | stop",
        "tests j sent back 1/3 j:1+0-0 | j look task_complete",
    );
    check(
        called(),
        "prompt | edit | j fail 1 | stop truncated",
        "tests j look task_complete",
    );
}

#[test]
fn triggers_ask_ignore_or_rule_out() {
    assert!(
        JudgeTriggerOrSkipReason::Keyword.is_judge_triggered()
            && !JudgeTriggerOrSkipReason::Keyword.is_final_answer_unjudgeable()
    );
    assert!(
        !JudgeTriggerOrSkipReason::Nothing.is_judge_triggered()
            && !JudgeTriggerOrSkipReason::Nothing.is_final_answer_unjudgeable()
    );
    assert!(
        JudgeTriggerOrSkipReason::Empty.is_final_answer_unjudgeable()
            && !JudgeTriggerOrSkipReason::OtherSurface.is_final_answer_unjudgeable()
    );
}

/// A judge that cannot tell leaves it to a person, unless a check says no.
#[test]
fn what_a_judge_leaves_to_a_person_is_no_pass() {
    let asks = with(called(), |policy| {
        let judge = &mut policy.verifiers[1];
        judge.stance = Stance::Ask;
        // Of the tree it depends on the tens alone.
        judge.inputs = vec!["tens/**".to_owned()];
    });
    let mut world = CoreWorld::new(asks);
    assert_eq!(tell(&mut world, "prompt | edit | j unreadable"), "");
    world.ask_stop(&ScopeId::main_scope());
    world.answer(0);
    world.answer(0);
    world
        .sayings
        .insert("tests".into(), ScriptedVerdict::fail(&[1]));
    world.tree = Some(3);
    // The last look: the tests are run anew.
    world.answer(0);
    let decision = world.answer(0).decision.unwrap();
    assert_eq!(describe(&[], &decision), "continue tests:1+0-0");
    assert!(world.open.is_empty());
}
