//! Which news may still come once more by another installed entry.

use checkrein_core::event::{Event, InputWithoutNativeId};
use checkrein_core::ids::{EventSeq, ScopeId, SourceName};
use checkrein_core::state::DeliveredPromptOrStop;

use crate::story::tell;
use crate::world::{CoreWorld, policy, scope};

/// What of the prompt (`prompt`) and of the stops of main, `s` and `t` may be repeated
/// after this story.
fn repeatable(story: &str) -> String {
    let mut world = CoreWorld::new(policy("tests", ""));
    if !story.is_empty() {
        tell(&mut world, story);
    }
    let state = &world.state;
    let stops = [ScopeId::main_scope(), scope("s"), scope("t")];
    let mut words: Vec<&str> = Vec::new();
    words.extend(state.newest_prompt_if_nothing_followed().map(|_| "prompt"));
    for (id, word) in stops.iter().zip(["main", "s", "t"]) {
        words.extend(state.newest_stop_if_nothing_followed(id).map(|_| word));
    }
    words.join(" ")
}

#[test]
fn a_repeat_is_recognised_until_the_agent_acts() {
    for (story, expected) in [
        ("", ""),
        ("prompt", "prompt"),
        ("prompt | round", "prompt"),
        ("prompt | call a=1", ""),
        ("prompt | @s call a=1", ""),
        // Kept across the end of the task.
        ("prompt | edit | stop", "main"),
        ("prompt | edit | tests fail 1 | stop | stop", "main"),
        ("prompt | edit | stop | call a=1", ""),
        ("prompt | edit | stop | prompt", "prompt"),
        ("prompt | edit | stop | @s call a=1", "main"),
        ("prompt | @s stop | @t stop | stop", "main s t"),
        ("prompt | @s stop | @t stop | @s call a=1", "t"),
        ("prompt | @s stop | @t stop | call a=1", "s t"),
        ("prompt | @s stop | @t stop | prompt", "prompt"),
    ] {
        assert_eq!(repeatable(story), expected, "{story}");
    }
}

fn again(world: &mut CoreWorld, of: EventSeq, source: &str, what: InputWithoutNativeId) {
    let event = Event::Repeated {
        of,
        source: SourceName::from(source),
        what,
        scope: ScopeId::main_scope(),
    };
    world.state.apply_event(&event);
    world.log.push(event);
}

fn sources(delivered: Option<&DeliveredPromptOrStop>) -> Vec<&str> {
    let sources = delivered.iter().flat_map(|known| &known.sources);
    sources.map(SourceName::as_str).collect()
}

#[test]
fn who_delivered_it_is_remembered() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    let prompt = world
        .state
        .newest_prompt_if_nothing_followed()
        .unwrap()
        .clone();
    assert_eq!((prompt.seq, prompt.at.0), (EventSeq(2), world.now));
    again(
        &mut world,
        prompt.seq,
        "project",
        InputWithoutNativeId::Prompt,
    );
    assert_eq!(
        sources(world.state.newest_prompt_if_nothing_followed()),
        ["user", "project"]
    );
    // Not twice, not for another place.
    again(
        &mut world,
        prompt.seq,
        "project",
        InputWithoutNativeId::Prompt,
    );
    again(&mut world, EventSeq(1), "run", InputWithoutNativeId::Prompt);
    assert_eq!(
        sources(world.state.newest_prompt_if_nothing_followed()),
        ["user", "project"]
    );

    tell(&mut world, "edit | stop");
    let stop = world
        .state
        .newest_stop_if_nothing_followed(&main)
        .unwrap()
        .seq;
    again(&mut world, stop, "project", InputWithoutNativeId::Stop);
    let by = sources(world.state.newest_stop_if_nothing_followed(&main));
    assert_eq!(by, ["user", "project"]);
    // The next stop is another one, whoever delivered this one.
    tell(&mut world, "stop");
    assert_eq!(
        sources(world.state.newest_stop_if_nothing_followed(&main)),
        ["user"]
    );
}

#[test]
fn remembered_deliveries_are_bounded() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    for at in 0..100 {
        let of = world.state.newest_prompt_if_nothing_followed().unwrap().seq;
        again(
            &mut world,
            of,
            &format!("entry {at}"),
            InputWithoutNativeId::Prompt,
        );
    }
    assert_eq!(
        sources(world.state.newest_prompt_if_nothing_followed()).len(),
        8
    );
    tell(&mut world, "stop");
    for at in 0..100 {
        world.stop(&scope(&format!("s{at}")));
    }
    let known = |id: &ScopeId| world.state.newest_stop_if_nothing_followed(id).is_some();
    let subagents = (0..100).filter(|at| known(&scope(&format!("s{at}"))));
    assert_eq!(subagents.collect::<Vec<_>>(), (77..100).collect::<Vec<_>>());
    assert!(known(&ScopeId::main_scope()));
}
