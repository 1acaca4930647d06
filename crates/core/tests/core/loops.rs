//! The ladder of patterns: a word, a denial, the end, for each pattern on its own.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::detectors::BALANCED;
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::event::{DetectorOrCapResponse, Event, LadderRung};
use checkrein_core::ids::{DetectorName, ScopeId};
use checkrein_core::input::{Input, ToolOutcomeFacts, ToolReturned};
use checkrein_core::policy::{DetectorThresholds, LoopEscalationMode, Policy};

use crate::story::{check, tell};
use crate::world::{CoreWorld, policy, scope, with};

fn balanced() -> Policy {
    with(policy("tests", ""), |policy| {
        policy.loops.detectors = BALANCED
            .iter()
            .map(|name| DetectorName::new(*name))
            .collect();
        policy.loops.ladder = LoopEscalationMode::PerPattern;
        policy.loops.thresholds = vec![DetectorThresholds {
            detector: DetectorName::new("generic_repeat"),
            warning: Some(2),
            critical: Some(3),
        }];
    })
}

/// A failure of this family, told apart by its number.
fn fails(world: &mut CoreWorld, tool: &str, arguments: &str, family: u64, number: u64) -> String {
    let main = ScopeId::main_scope();
    let made = world.tool_with_arguments(&main, tool, arguments);
    let answer = crate::story::describe(&[], &made.decision.unwrap());
    if answer.starts_with("allow") || answer.starts_with("nudge") {
        let call = Digest::hash_bytes(format!("{tool} {arguments}").as_bytes());
        world.news(Input::ToolReturned(ToolReturned {
            excerpt: None,
            scope: main,
            call_id: None,
            call: call.to_eight_byte_digest(),
            outcome: EightByteDigest(number),
            error: true,
            wrote: false,
            facts: ToolOutcomeFacts {
                family: Some(EightByteDigest(family)),
                ..ToolOutcomeFacts::default()
            },
            tokens: None,
        }));
    }
    answer
}

#[test]
fn a_word_then_a_denial_then_the_end() {
    check(
        balanced(),
        "prompt | call a=1 | call a=1 | call a=1 | call a=1 | call a=1 | call a=1 | ending",
        "allow x2 | nudge | deny | halt | halted | loop_detected/generic_repeat",
    );
    // Other calls between change nothing, as long as they bring nothing new.
    check(
        balanced(),
        "prompt | call b=2 | call a=1 | call b=2 | call a=1 | call a=1 | call b=2 | call a=1 | call b=2 | call a=1",
        "allow x4 | nudge x2 | deny x2 | halt",
    );
    // Other outcomes are no repeat.
    check(
        balanced(),
        "prompt | call a=1 | call a=2 | call a=3 | call a=4 | call a=5 | call a=6",
        "allow x6",
    );
}

#[test]
fn news_takes_the_ladder_back_and_not_the_counts() {
    // After a new pair that succeeded, the pattern begins with a word again, once its count has
    // doubled since the last.
    check(
        balanced(),
        "prompt | 3x call a=1 | call a=1 | call b=1 | call a=1 | call a=1 | call a=1 | call a=1",
        "allow x2 | nudge | deny | allow x2 | nudge | deny | halt",
    );
    // Who looks at the same thing between steps that bring something is told at two, four, eight and
    // sixteen, and never denied.
    let steps: Vec<String> = (0..20)
        .map(|step| format!("call status=1 | call b{step}=1"))
        .collect();
    check(
        balanced(),
        &format!("prompt | {}", steps.join(" | ")),
        "allow x4 | nudge | allow x3 | nudge | allow x7 | nudge | allow x23",
    );
}

#[test]
fn each_pattern_has_its_own_ladder() {
    // Under the old ladder the denial of `b` would have ended the task.
    check(
        balanced(),
        "prompt | call a=1 | call b=1 | call a=1 | call b=1 | call a=1 | call b=1 | call a=1 | call b=1 | ending",
        "allow x4 | nudge x2 | deny x2 | open",
    );
}

#[test]
fn a_cycle_is_counted_in_laps() {
    let cycle = || {
        with(balanced(), |policy| {
            policy.loops.detectors = vec!["cycle".into()];
        })
    };
    check(
        cycle(),
        "prompt | call a=1 | call b=1 | call c=1 | call a=1 | call b=1 | call c=1 | call a=1 | call b=1 | call c=1 | call a=1 | call b=1 | ending",
        "allow x6 | nudge | allow x2 | deny | allow | open",
    );
    // A lap with something new in it is none.
    check(
        cycle(),
        "prompt | call a=1 | call b=1 | call a=1 | call b=2 | call a=1 | call b=3 | call a=1 | call b=4 | call a=1",
        "allow x9",
    );
    // Waiting between polls is no cycle.
    check(
        cycle(),
        "prompt | call poll=1 | call b=1 | call poll=1 | call b=1 | call poll=1 | call b=1 | call poll=1 | call b=1",
        "allow x8",
    );
}

#[test]
fn failures_of_one_family_deny_one_call_and_never_end_the_task() {
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt");
    let mut answers = Vec::new();
    for number in 0..12 {
        let arguments = format!("{{\"path\":\"{number}\"}}");
        answers.push(fails(&mut world, "edit", &arguments, 7, number));
    }
    assert_eq!(answers[..4], ["allow"; 4]);
    assert_eq!(answers[4..8], ["nudge", "allow", "deny", "allow"]);
    assert_eq!(answers[8..], ["allow"; 4]);
    assert!(world.state.task.as_ref().unwrap().ended.is_none());

    // A shell is many tools: only a command that has failed before is denied.
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt");
    let mut answers = Vec::new();
    for number in 0..8 {
        let arguments = format!("{{\"command\":\"{number}\"}}");
        answers.push(fails(&mut world, "run", &arguments, 7, number));
    }
    assert_eq!(answers[4], "nudge");
    assert!(!answers.contains(&"deny".to_owned()), "{answers:?}");
    assert_eq!(
        fails(&mut world, "run", "{\"command\":\"3\"}", 7, 3),
        "deny"
    );

    // Another family, or a success, begins anew.
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt");
    for number in 0..12 {
        let arguments = format!("{{\"path\":\"{number}\"}}");
        let answer = fails(&mut world, "edit", &arguments, number / 3, number);
        assert_eq!(answer, "allow", "{number}");
    }
}

#[test]
fn a_word_that_nobody_hears_is_not_said() {
    // A person is asked about the call, so the word would not be read. It comes with the first call
    // in whose answer it can stand.
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt | 4x call ?push");
    let said = world.log.iter().filter_map(|event| match event {
        Event::Detected(found) => Some((found.action, found.rung)),
        _ => None,
    });
    let unsaid = (DetectorOrCapResponse::Observe, Some(LadderRung::Unsaid));
    assert!(said.into_iter().all(|said| said == unsaid));
    // A denial by the rules is a word, and whoever is denied the same call for ever is stopped.
    check(
        balanced(),
        "prompt | 4x call !rm | call !rm | call !rm | ending",
        "deny x4 | halt | halted | loop_detected/generic_repeat",
    );
}

#[test]
fn a_sub_agent_is_halted_alone() {
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt | 3x @s call a=1 | @s call a=1");
    let main = ScopeId::main_scope();
    let sub = scope("s");
    let made = world.tool(&sub, "a", Some(1), None, None);
    let Some(Decision::Tool(ToolDecision::Deny { reason })) = made.decision else {
        panic!("{:?}", made.decision);
    };
    assert!(
        reason.contains("ended the work of this sub-agent"),
        "{reason}"
    );
    assert!(world.state.conversation_scope_by_id(&sub).unwrap().halted);
    let made = world.tool(&main, "a", Some(1), None, None);
    assert_eq!(made.decision, Some(Decision::Tool(ToolDecision::Allow)));
}

#[test]
fn the_word_names_the_call() {
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt");
    let main = ScopeId::main_scope();
    let arguments = r#"{"command":"cargo\n  test"}"#;
    for number in 0..2 {
        world.tool_with_arguments(&main, "run", arguments);
        world.tool_result(&main, None, &format!("run {arguments}"), 1);
        assert!(number < 2);
    }
    let made = world.tool_with_arguments(&main, "run", arguments);
    let Some(Decision::Tool(ToolDecision::Nudge { text })) = made.decision else {
        panic!("{:?}", made.decision);
    };
    assert!(
        text.starts_with("`run` (cargo test) was called 2 times"),
        "{text}"
    );
}

#[test]
fn what_a_sub_agent_reads_for_the_first_time_is_new_to_it() {
    let reads = |who: &str| {
        let reads: Vec<String> = (0..40).map(|at| format!("{who}call file{at}=1")).collect();
        reads.join(" | ")
    };
    check(
        balanced(),
        &format!("prompt | {} | {}", reads(""), reads("@s ")),
        "allow x80",
    );
}

#[test]
fn what_a_sub_agent_changes_others_may_find_changed() {
    // A test that is red in the same way while a sub-agent edits file after file.
    let rounds: Vec<String> = (0..12)
        .map(|at| format!("@w call write{at}=1 | call test=1"))
        .collect();
    check(
        balanced(),
        &format!("prompt | {}", rounds.join(" | ")),
        "allow x5 | nudge | allow x3 | nudge | allow x7 | nudge | allow x6",
    );
}

#[test]
fn what_may_do_something_each_time_is_spoken_of_and_not_denied() {
    check(
        balanced(),
        "prompt | 25x call do-click=1",
        "allow x2 | nudge | allow x22",
    );
}

#[test]
fn a_change_that_nobody_reported_ends_the_repetition() {
    check(
        balanced(),
        "prompt | call test=1 | call write | call test=1 | call write | call test=1 | call write | call test=1 | call write | call test=1",
        "allow x9",
    );
}

#[test]
fn detectors_that_older_seals_do_not_have_climb_their_own_ladders() {
    // Under the ladder of two criticals `same_failure` would end the task at its second denial.
    let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
        policy.loops.detectors = vec!["generic_repeat".into(), "same_failure".into()];
    }));
    tell(&mut world, "prompt");
    let answers: Vec<String> = (0..12)
        .map(|number| {
            fails(
                &mut world,
                "edit",
                &format!("{{\"path\":\"{number}\"}}"),
                7,
                number,
            )
        })
        .collect();
    assert_eq!(answers[4..8], ["nudge", "allow", "deny", "allow"]);
    assert!(world.state.task.as_ref().unwrap().ended.is_none());
}

#[test]
fn one_success_does_not_disarm_a_detector() {
    let mut world = CoreWorld::new(balanced());
    tell(&mut world, "prompt");
    let fail = |world: &mut CoreWorld, number: u64| {
        fails(
            world,
            "edit",
            &format!("{{\"path\":\"{number}\"}}"),
            number,
            number,
        )
    };
    // Each failure is another one; the breaker speaks after thirty.
    let before: Vec<String> = (0..31).map(|number| fail(&mut world, number)).collect();
    assert_eq!(before[30], "nudge");
    tell(&mut world, "call read=1");
    let after: Vec<String> = (100..140).map(|number| fail(&mut world, number)).collect();
    assert!(after.iter().any(|answer| answer == "halt"), "{after:?}");
}

#[test]
fn two_ladders_take_one_denied_call_back_once_and_say_one_word_at_a_time() {
    // Twenty identical calls in flight: both detectors deny the next. It is the first critical, and the
    // calls before it are still there for the second.
    let policy = with(policy("tests", ""), |policy| {
        policy.loops.detectors = vec!["generic_repeat".into(), "in_flight".into()];
    });
    check(
        policy,
        "prompt | 10x call told | call told | call told | 8x call told | call told | call told | ending",
        "allow x10 | nudge x2 | allow x8 | deny | halt | loop_detected/generic_repeat",
    );
}
