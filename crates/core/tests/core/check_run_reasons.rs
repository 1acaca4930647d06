//! Why each check was run, or was not, as the log alone tells it.

use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::event::Event;
use checkrein_core::explain::{self, ChangeKindHoldingUpStop, CheckRunOrSkipReason};
use checkrein_core::ids::{EventSeq, ScopeId};
use checkrein_core::input::NewestCheckRun;
use checkrein_core::policy::{Policy, SubagentStopVerification, VerifyOnChangeOrAlways};

use crate::story::tell;
use crate::world::{CoreWorld, policy, with};

fn world(policy: Policy, story: &str) -> CoreWorld {
    let mut world = CoreWorld::new(policy);
    tell(&mut world, story);
    world
}

/// `1: tests=First | 2: tests=Files+Act(5), lint held 1`.
fn told(world: &CoreWorld) -> String {
    let sealed = world.policy.clone();
    let find = |digest: &Digest| {
        (Digest::hash_bytes(&sealed.to_policy_blob()) == *digest).then(|| sealed.clone())
    };
    let events = (1..).map(EventSeq).zip(&world.log);
    let stops = explain::list_check_runs_of_each_stop(events, &find);
    let words = stops.iter().map(|stop| {
        let checks = stop.checks.iter().map(|check| {
            let name = &check.verifier;
            match &check.outcome {
                CheckRunOrSkipReason::Ran(reasons) => {
                    let words: Vec<String> =
                        reasons.iter().map(|reason| format!("{reason:?}")).collect();
                    let words = words.join("+").replace("Act { request: ", "Act(");
                    format!("{name}={}", words.replace(" }", ")"))
                }
                CheckRunOrSkipReason::StillValid { task, number } => {
                    format!("{name} held {task}/{number}")
                }
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
         | 1/3: tests=FilesChanged, lint held 1/1 | 1/4: tests=Act(None), lint held 1/1 \
         | 1/5: tests=Act(None), lint=Act(None)",
    );
    check(
        policy("tests", ""),
        "prompt | edit | stop | edit | act | stop | wait 900 | stop",
        "1/1: tests=First | 1/2: tests=FilesChanged+Act(None) | 1/3: tests=TooOld",
    );
    check(
        policy("tests", ""),
        "prompt | edit | stop | renewed | stop",
        "1/1: tests=First | 1/2: tests=PolicySealed",
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
    let expected = format!("1/1: tests=First | 1/2: tests=Act(Some(EventSeq({call})))");
    assert_eq!(told(&world), expected);
}

#[test]
fn what_came_of_the_newest_run_is_told() {
    check(
        policy("tests", ""),
        "prompt | edit | tests reply_deadline | stop | tests claimed_elsewhere | stop \
         | tests tree_moving | stop | tests missing_program | stop",
        "1/1: tests=First | 1/2: tests RunningElsewhere | 1/3: tests=ResultLost | 1/4: tests=FilesMoved",
    );
    check(
        with(policy("tests", ""), |policy| {
            policy.verify_on = VerifyOnChangeOrAlways::Always;
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
        "1/1: tests=First, tests=RerunAtSameStop+FilesChanged",
    );
}

#[test]
fn stops_of_sub_agents_are_counted_by_themselves() {
    let verified = with(policy("tests", ""), |policy| {
        policy.subagents.verify = SubagentStopVerification::Writers;
    });
    check(
        verified,
        "prompt | @s call write=1 | edit | @s stop | edit | stop",
        "s1/1: tests=First | 1/1: tests=FilesChanged",
    );
}

#[test]
fn a_stop_that_opens_its_task_is_its_first() {
    check(
        policy("tests", ""),
        "edit | stop | prompt | edit | stop",
        "1/1: tests=First | 2/1: tests=FilesChanged",
    );
}

#[test]
fn what_held_a_stop_up_is_told_by_its_readings() {
    let held_up = |story: &str| {
        let world = world(policy("tests", ""), story);
        explain::newest_stop_held_up_cause(&world.log, &ScopeId::main_scope())
    };
    assert_eq!(held_up("prompt | edit | stop"), None);
    assert_eq!(
        held_up("prompt | edit | moves 5 6 | stop"),
        Some(ChangeKindHoldingUpStop::Files)
    );
    assert_eq!(
        held_up("prompt | edit | moves 5 6 | stop | tree 6 | stop"),
        None
    );
    assert_eq!(
        held_up("prompt | edit | tests after 7 pass | stop"),
        Some(ChangeKindHoldingUpStop::Files)
    );
    assert_eq!(held_up("prompt | edit | tests reply_deadline | stop"), None);
    // Acts alone: one comes before each of the stop's readings.
    let mut world = world(policy("tests", ""), "prompt | edit");
    world.ask_stop(&ScopeId::main_scope());
    while !world.open.is_empty() {
        world.acts.any += 1;
        world.answer(0);
    }
    assert_eq!(
        explain::newest_stop_held_up_cause(&world.log, &ScopeId::main_scope()),
        Some(ChangeKindHoldingUpStop::Acts)
    );
    assert_eq!(
        told(&world),
        "1/1: tests=First, tests=RerunAtSameStop+Act(None)"
    );
}

/// Where the runtime tells which runs are the newest.
#[test]
fn what_runs_although_it_is_known_is_told() {
    let mut world = CoreWorld::new(policy("tests", ""));
    world.runs = Some(Box::default());
    tell(
        &mut world,
        "prompt | edit | tests fail 1 | stop | stop | stop",
    );
    assert_eq!(
        told(&world),
        "1/1: tests=First | 1/2: tests held 1/1 | 1/3: tests=LastAttempt"
    );
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | edit | stop");
    let newer = NewestCheckRun {
        verifier: "tests".into(),
        run: Some(EightByteDigest(7)),
    };
    world.runs = Some([newer].into());
    tell(&mut world, "stop");
    assert_eq!(told(&world), "1/1: tests=First | 1/2: tests=NewerRun");
}
