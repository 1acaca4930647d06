//! Law 10 in the core: edits to guarded files are findings, and what a person seals anew
//! leaves no older verdict behind.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::ScopeId;

use crate::story::tell;
use crate::world::{CoreWorld, policy};

#[test]
fn law_10_edits_while_a_task_is_open_are_told_once_and_shown_at_the_ending() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(
        &mut world,
        "edited checkrein.toml | prompt | edit | tests fail 1",
    );
    let edited = |world: &CoreWorld| world.state.task.as_ref().unwrap().edited.clone();
    assert!(edited(&world).is_empty(), "no task was open");

    let told = |world: &CoreWorld| match world.log.iter().rev().find_map(|event| match event {
        Event::DecisionMade(made) => Some(made.decision.clone()),
        _ => None,
    }) {
        Some(Decision::Stop(StopDecision::Continue { feedback })) => feedback.edited,
        other => panic!("{other:?}"),
    };
    tell(&mut world, "edited checkrein.toml .gitignore | stop");
    assert_eq!(told(&world), ["checkrein.toml", ".gitignore"]);
    tell(&mut world, "edited checkrein.toml | edit | stop");
    assert_eq!(told(&world), [""; 0], "said once");

    tell(&mut world, "edit | tests pass | stop");
    assert_eq!(world.ending().as_deref(), Some("task_complete"));
    let shown = world.log.iter().any(|event| match event {
        Event::DecisionMade(made) => made.why.contains(&DecisionFactor::ConfigEdited {
            paths: vec!["checkrein.toml".to_owned(), ".gitignore".to_owned()],
        }),
        _ => false,
    });
    assert!(shown, "{:?}", world.log.last());
    tell(&mut world, "edited a.rules | prompt");
    assert!(edited(&world).is_empty(), "made between tasks");
}

#[test]
fn law_10_what_was_found_before_a_person_sealed_anew_counts_no_more() {
    let mut world = CoreWorld::new(policy("tests", ""));
    let told = tell(
        &mut world,
        "prompt | edit | tests pass | stop | renewed | stop",
    );
    // The same tree again: without the seal nothing would be run a second time.
    assert_eq!(told, "tests look task_complete x2");
    crate::laws::replays(&world);
}

#[test]
fn law_10_what_was_under_way_when_a_person_sealed_anew_accepts_nothing() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | edit | tests pass");
    let asked = world.ask_stop(&ScopeId::main_scope());
    assert!(asked.decision.is_none(), "{asked:?}");
    let sealed = Digest::hash_bytes(&world.policy.to_policy_blob());
    world.record(Event::PolicyRenewed {
        policy: sealed,
        guarded: None,
        by: "a person".to_owned(),
    });
    let again = world.answer(0);
    assert!(again.decision.is_none(), "{again:?}");
    let task = world.state.task.as_ref().unwrap();
    assert!(task.verdicts.is_empty(), "found under the older policy");
    let waiting = &world
        .state
        .pending_stop(&ScopeId::main_scope())
        .unwrap()
        .awaited_verifiers;
    assert_eq!(waiting.len(), 1, "it is asked for once more");
    crate::laws::replays(&world);
}
