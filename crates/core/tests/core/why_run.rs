//! Why each check was run, or was not, as the log alone tells it.

use checkrein_core::digest::{Digest, Short};
use checkrein_core::event::Event;
use checkrein_core::explain::{self, HeldUpBy, RunOutcome};
use checkrein_core::ids::{ScopeId, Seq};
use checkrein_core::input::NewestRun;
use checkrein_core::policy::{Policy, SubagentVerify, VerifyOn};

use crate::story::tell;
use crate::world::{World, policy, with};

fn world(policy: Policy, story: &str) -> World {
    let mut world = World::new(policy);
    tell(&mut world, story);
    world
}

/// `1: tests=First | 2: tests=Files+Act(5), lint held 1`.
fn told(world: &World) -> String {
    let sealed = world.policy.clone();
    let find = |digest: &Digest| (Digest::of(&sealed.to_blob()) == *digest).then(|| sealed.clone());
    let events = (1..).map(Seq).zip(&world.log);
    let stops = explain::runs(events, &find);
    let words = stops.iter().map(|stop| {
        let checks = stop.checks.iter().map(|check| {
            let name = &check.verifier;
            match &check.outcome {
                RunOutcome::Ran(reasons) => {
                    let words: Vec<String> =
                        reasons.iter().map(|reason| format!("{reason:?}")).collect();
                    let words = words.join("+").replace("Act { request: ", "Act(");
                    format!("{name}={}", words.replace(" }", ")"))
                }
                RunOutcome::Held { task, number } => format!("{name} held {task}/{number}"),
                other => format!("{name} {other:?}"),
            }
        });
        let checks: Vec<String> = checks.collect();
        let scope = &stop.scope;
        format!(
            "{scope}{}/{}: {}",
            stop.task,
            stop.number,
            checks.join(", ")
        )
    });
    words.collect::<Vec<_>>().join(" | ")
}

fn check(policy: Policy, story: &str, expected: &str) {
    assert_eq!(told(&world(policy, story)), expected, "{story}");
}

#[test]
fn what_changed_since_the_newest_run_is_told() {
    check(
        policy("tests lint~", ""),
        "prompt | edit | stop | stop | edit | stop | act | stop | installs | stop",
        "1/1: tests=First, lint=First | 1/2: tests held 1/1, lint held 1/1 \
         | 1/3: tests=Files, lint held 1/1 | 1/4: tests=Act(None), lint held 1/1 \
         | 1/5: tests=Act(None), lint=Act(None)",
    );
    check(
        policy("tests", ""),
        "prompt | edit | stop | edit | act | stop | wait 900 | stop",
        "1/1: tests=First | 1/2: tests=Files+Act(None) | 1/3: tests=Old",
    );
    check(
        policy("tests", ""),
        "prompt | edit | stop | renewed | stop",
        "1/1: tests=First | 1/2: tests=Sealed",
    );
}

/// An older log says of a call that it reaches outside, and numbers none.
#[test]
fn a_call_of_this_session_is_named() {
    let world = world(
        policy("tests", ""),
        "prompt | edit | tests fail 1 | stop | call install=1 | call !install | tests pass | stop",
    );
    let call = world.log.iter().position(|event| match event {
        Event::Input(stamped) => matches!(
            &stamped.input,
            checkrein_core::input::Input::ToolRequested(request) if request.facts.outside
        ),
        _ => false,
    });
    let call = call.unwrap() + 1;
    let expected = format!("1/1: tests=First | 1/2: tests=Act(Some(Seq({call})))");
    assert_eq!(told(&world), expected);
}

#[test]
fn what_came_of_the_newest_run_is_told() {
    check(
        policy("tests", ""),
        "prompt | edit | tests reply_deadline | stop | tests claimed_elsewhere | stop \
         | tests tree_moving | stop | tests missing_program | stop",
        "1/1: tests=First | 1/2: tests RunsElsewhere | 1/3: tests=Lost | 1/4: tests=Moved",
    );
    check(
        with(policy("tests", ""), |policy| {
            policy.verify_on = VerifyOn::Always;
        }),
        "prompt | edit | tests fail 1 | stop | prompt | stop",
        "1/1: tests=First | 2/1: tests=FailedBefore",
    );
}

#[test]
fn what_is_run_twice_at_one_stop_is_told() {
    check(
        policy("tests", ""),
        "prompt | edit | moves 5 | stop",
        "1/1: tests=First, tests=OnceMore+Files",
    );
}

#[test]
fn stops_of_sub_agents_are_counted_by_themselves() {
    let verified = with(policy("tests", ""), |policy| {
        policy.subagents.verify = SubagentVerify::Writers;
    });
    check(
        verified,
        "prompt | @s call write=1 | edit | @s stop | edit | stop",
        "s1/1: tests=First | 1/1: tests=Files",
    );
}

#[test]
fn a_stop_that_opens_its_task_is_its_first() {
    check(
        policy("tests", ""),
        "edit | stop | prompt | edit | stop",
        "1/1: tests=First | 2/1: tests=Files",
    );
}

#[test]
fn what_held_a_stop_up_is_told_by_its_readings() {
    let held_up = |story: &str| {
        let world = world(policy("tests", ""), story);
        explain::held_up_by(&world.log, &ScopeId::main())
    };
    assert_eq!(held_up("prompt | edit | stop"), None);
    assert_eq!(
        held_up("prompt | edit | moves 5 6 | stop"),
        Some(HeldUpBy::Files)
    );
    assert_eq!(
        held_up("prompt | edit | moves 5 6 | stop | tree 6 | stop"),
        None
    );
    assert_eq!(
        held_up("prompt | edit | tests after 7 pass | stop"),
        Some(HeldUpBy::Files)
    );
    assert_eq!(held_up("prompt | edit | tests reply_deadline | stop"), None);
    // Acts alone: one comes before each of the stop's readings.
    let mut world = world(policy("tests", ""), "prompt | edit");
    world.ask_stop(&ScopeId::main());
    while !world.open.is_empty() {
        world.acts.any += 1;
        world.answer(0);
    }
    assert_eq!(
        explain::held_up_by(&world.log, &ScopeId::main()),
        Some(HeldUpBy::Acts)
    );
    assert_eq!(told(&world), "1/1: tests=First, tests=OnceMore+Act(None)");
}

/// Where the runtime tells which runs are the newest.
#[test]
fn what_runs_although_it_is_known_is_told() {
    let mut world = World::new(policy("tests", ""));
    world.runs = Some(Box::default());
    tell(
        &mut world,
        "prompt | edit | tests fail 1 | stop | stop | stop",
    );
    assert_eq!(
        told(&world),
        "1/1: tests=First | 1/2: tests held 1/1 | 1/3: tests=LastAttempt"
    );
    let mut world = World::new(policy("tests", ""));
    tell(&mut world, "prompt | edit | stop");
    let newer = NewestRun {
        verifier: "tests".into(),
        run: Some(Short(7)),
    };
    world.runs = Some([newer].into());
    tell(&mut world, "stop");
    assert_eq!(told(&world), "1/1: tests=First | 1/2: tests=NewerRun");
}
