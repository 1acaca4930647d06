//! Tool requests: halted, caps, detectors, exec policy, in this order.

use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::{Input, TokenUsage, ToolOutcomeFacts, ToolReturned};
use checkrein_core::policy::{Policy, SessionCaps};

use crate::story::{check, tell};
use crate::world::{CoreWorld, policy, scope, with};

fn caps(change: impl Fn(&mut checkrein_core::policy::TaskCaps)) -> Policy {
    with(policy("tests", ""), |policy| change(&mut policy.caps))
}

#[test]
fn rule_decisions_are_answered() {
    check(
        policy("", ""),
        "prompt | call a=1 | call ?push | call !rm | call a=2",
        "allow | ask | deny | allow",
    );
}

#[test]
fn grace_then_halt() {
    let calls = caps(|caps| caps.tool_calls = Some(3));
    check(
        calls.clone(),
        "prompt | call a=1 | call b=1 | call c=1 | call d=1 | call e=1 | call f=1 | ending",
        "allow x3 | grace | halt | halted | hard_cap/tool_calls",
    );
    // Denied ones count.
    check(
        calls.clone(),
        "prompt | call !a | call !a | call !a | call b=1",
        "deny x3 | grace",
    );
    // A stop after the grace call is the last one.
    check(
        calls,
        "prompt | edit | tests fail 1 | call a=1 | call b=1 | call c=1 | call d=1 | stop",
        "allow x3 | grace | tests hard_cap/tool_calls",
    );
    check(
        caps(|caps| caps.max_iterations = Some(2)),
        "prompt | call a=1 | round | call b=1 | round | call c=1 | call d=1 | ending",
        "allow x2 | grace | halt | hard_cap/iterations",
    );
    // Who shows no rounds is not capped by them: its stops are no rounds.
    check(
        caps(|caps| caps.max_iterations = Some(1)),
        "prompt | edit | tests fail 1 | stop | call a=1 | ending",
        "tests continue tests:1+0-0 | allow | open",
    );
    check(
        caps(|caps| caps.token_budget = Some(100)),
        "prompt | call a=1 tokens=60 | call b=1 tokens=39 | call c=1 tokens=1 | call d=1 | ending",
        "allow x2 | grace | halt | hard_cap/tokens",
    );
    // What an answer cost counts where it is known, and only there.
    check(
        caps(|caps| caps.cost = Some(100)),
        "prompt | call a=1 tokens=9 cost=60 | call b=1 tokens=9 | call c=1 tokens=9 cost=40 | call d=1 | ending",
        "allow x2 | grace | halt | hard_cap/cost",
    );
    check(
        caps(|caps| caps.cost = Some(100)),
        "prompt | call a=1 tokens=900000 | call b=1",
        "allow x2",
    );
    check(
        caps(|caps| caps.wall_clock_ms = Some(10_000)),
        "prompt | wait 9 | call a=1 | wait 1 | call b=1 | call c=1 | ending",
        "allow | grace | halt | hard_cap/wall_clock",
    );
}

#[test]
fn wall_clock_is_agent_time() {
    let ten = || caps(|caps| caps.wall_clock_ms = Some(10_000));
    // Between an accepted stop and further work nobody is at work.
    check(
        ten(),
        "prompt | edit | wait 9 | stop | wait 3600 | call a=1 | wait 1 | call b=1",
        "tests look task_complete | allow | grace",
    );
    // A continued stop goes on counting from the answer.
    check(
        ten(),
        "prompt | edit | tests fail 1 | wait 6 | stop | wait 4 | call a=1",
        "tests continue tests:1+0-0 | grace",
    );
    // A clock that goes backwards stands still.
    check(
        ten(),
        "prompt | wait 9 | call a=1 | back 500 | call b=1 | wait 500 | call c=1 | wait 1 | call d=1",
        "allow x3 | grace",
    );
    // While nobody had the conversation, nobody was at work; before and after that somebody was.
    check(
        ten(),
        "prompt | wait 6 | call a=1 | wait 3600 | resume | call b=1 | wait 3 | call c=1 | wait 1 | call d=1",
        "allow x3 | grace",
    );
    // Under `run` time passes without news.
    check(
        ten(),
        "prompt | wait 9 | tick | wait 1 | tick | tick | call a=1",
        "halt hard_cap/wall_clock | halted",
    );
}

#[test]
fn a_halted_task() {
    let calls = || caps(|caps| caps.tool_calls = Some(2));
    let halt = "call a=1 | call b=1 | call c=1 | call d=1";
    let said = "allow x2 | grace | halt";
    for (before, more, first, expected) in [
        // Runs nothing.
        ("edit", "stop | stop", "", "hard_cap/tool_calls x2"),
        // A pass that is still fresh saves the reason, and only that.
        (
            "edit | stop",
            "stop | ending",
            "tests look task_complete | ",
            "task_complete/tool_calls x2",
        ),
        // What moved since has no pass, whatever an earlier stop was called.
        (
            "edit | stop",
            "stop | edit | stop | ending",
            "tests look task_complete | ",
            "task_complete/tool_calls | hard_cap/tool_calls x2",
        ),
        // Rules and loops have nothing to add.
        ("edit", "call !rm | call ?push", "", "halted x2"),
        (
            "edit",
            "30x call z=1 | ending",
            "",
            "halted x30 | hard_cap/tool_calls",
        ),
        // The next prompt opens the next task.
        ("edit", "prompt | call a=1", "", "allow"),
    ] {
        check(
            calls(),
            &format!("prompt | {before} | {halt} | {more}"),
            &format!("{first}{said} | {expected}"),
        );
    }
}

#[test]
fn a_subagent_s_cap_denies_in_its_scope_only() {
    let two = || {
        with(policy("tests", ""), |p| {
            p.subagents.max_iterations = Some(2)
        })
    };
    check(
        two(),
        "prompt | @s call a=1 | @s round | @s call b=1 | @s round | @s call c=1 | @s call d=1
         | @s call !e | call f=1 | @t call g=1 | ending",
        "allow x2 | grace | halted x2 | allow x2 | open",
    );
    // Its calls and rounds count for the task too.
    check(
        caps(|caps| caps.max_iterations = Some(2)),
        "prompt | @s round | @t round | call a=1",
        "grace",
    );
    // A halted sub-agent is let go, whatever it wrote.
    check(
        with(two(), |policy| {
            policy.subagents.verify = checkrein_core::policy::SubagentStopVerification::Writers;
        }),
        "prompt | edit | tests fail 1 | @s call write=1 | @s round | @s round | @s call b=1
         | @s call c=1 | @s stop",
        "allow | grace | halted | accept",
    );
}

#[test]
fn session_caps_outlive_the_prompt() {
    let three = with(policy("tests", ""), |policy| {
        policy.session_caps = SessionCaps {
            tool_calls: Some(3),
            ..SessionCaps::default()
        };
    });
    check(
        three,
        "prompt | call a=1 | call b=1 | prompt | call c=1 | call d=1 | call e=1 | prompt | call f=1",
        "allow x3 | grace | halt | grace",
    );
    let continues = with(policy("tests", ""), |policy| {
        policy.session_caps.continues = Some(1);
    });
    check(
        continues,
        "prompt | edit | tests fail 1 | stop | prompt | edit | stop",
        "tests continue tests:1+0-0 | tests gave_up/continues",
    );
}

#[test]
fn detectors() {
    let tests = || policy("tests", "");
    // One word per multiple of ten; critical denies; the second critical ends it.
    check(
        tests(),
        "prompt | 10x call a=1 | 1x call a=1 | 9x call a=1 | call a=1 | call a=1 | call a=1 | ending",
        "allow x10 | nudge | allow x9 | deny | halt | halted | loop_detected/generic_repeat",
    );
    // Other outcomes: words only, at ten, twenty and thirty.
    check(
        tests(),
        "prompt | 5x call a=1 | 5x call a=2 | call a=3 | 9x call a=4 | call a=5 | 9x call a=6 | call a=7 | call a=8",
        "allow x10 | nudge | allow x9 | nudge | allow x9 | nudge | allow",
    );
    // A denial by a detector is not in the window: the same critical stands.
    check(
        tests(),
        "prompt | 20x call a=1 | call a=1 | call b=1 | call a=1 | ending",
        "allow x10 | nudge | allow x9 | deny | allow | halt | loop_detected/generic_repeat",
    );
    // A denial by policy is, with the denial as outcome.
    check(
        tests(),
        "prompt | 20x call !rm | call !rm | call !rm | ending",
        "deny x21 | halt | loop_detected/generic_repeat",
    );
    // A call without an outcome never makes a critical.
    check(
        tests(),
        "prompt | 40x call a",
        "allow x10 | nudge | allow x9 | nudge | allow x9 | nudge | allow x9",
    );
    // Thirty calls in a row that brought nothing new; one that did breaks the row.
    let breaker = || {
        with(policy("tests", ""), |policy| {
            policy.loops.detectors = vec!["global_circuit_breaker".into()];
        })
    };
    check(
        breaker(),
        "prompt | 3x call a=1 | 28x call a=1 | call d=9 | call e=9 | call d=9 | ending",
        "allow x31 | deny | halt | halted | loop_detected/global_circuit_breaker",
    );
    check(
        breaker(),
        "prompt | 20x call a=1 | call a=2 | 29x call a=1 | call write=1 | 29x call a=1",
        "allow x80",
    );
}

#[test]
fn the_window_survives_a_continuation_and_is_each_scope_s_own() {
    check(
        policy("tests", ""),
        "prompt | edit | tests fail 1 | 9x call a=1 | stop | call a=1 | call a=1",
        "allow x9 | tests continue tests:1+0-0 | allow | nudge",
    );
    check(
        policy("tests", ""),
        "prompt | 9x call a=1 | 9x @s call a=1 | @s call a=1 | call b=1 | call a=1 | call a=1",
        "allow x21 | nudge",
    );
    // A new prompt begins a new one.
    check(
        policy("tests", ""),
        "prompt | 10x call a=1 | prompt | 10x call a=1 | call a=1",
        "allow x20 | nudge",
    );
}

#[test]
fn a_result_belongs_to_the_task_of_its_request() {
    // Had the late result counted as seen, the first of the new task would be nothing new,
    // and the breaker would fire one call earlier.
    let twelve = "10x call b=1 | 10x call c=1 | 8x call d=1";
    check(
        with(policy("tests", ""), |policy| {
            policy.loops.detectors = vec!["global_circuit_breaker".into()];
        }),
        &format!(
            "prompt | call a | prompt | returns a | call b=1 | call c=1 | call d=1 | call a=1 | {twelve} | 2x call d=1 | call z=2"
        ),
        "allow x35 | deny",
    );
}

/// Calls `name`; its result comes alone, known by the call's id only.
fn call_then_result(world: &mut CoreWorld, at: &ScopeId, name: &str, outcome: u64) -> String {
    let made = world.tool(at, name, None, None, None);
    let is_call =
        |event: &&checkrein_core::event::Event| event.log_event_kind() == "tool_requested";
    let calls = world.log.iter().filter(is_call).count();
    world.tool_result(at, Some(format!("call-{calls}")), "", outcome);
    crate::story::describe(&[], &made.decision.unwrap())
}

#[test]
fn a_result_is_known_by_its_call_s_id() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    let mut answers = Vec::new();
    for _ in 0..21 {
        answers.push(call_then_result(&mut world, &main, "read", 1));
    }
    assert_eq!(answers[19..], ["allow", "deny"]);
    // Another call's id is not this call's, though both called the same.
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    for _ in 0..40 {
        world.tool(&main, "read", None, None, None);
        let made = world.tool_result(&main, Some("other".to_owned()), "read", 1);
        assert!(made.events.len() == 1);
    }
    let window = &world.state.conversation_scope_by_id(&main).unwrap().window;
    assert!(window.iter().all(|call| call.outcome.is_none()));
    // One pair, whoever says what was called.
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | call read=1");
    call_then_result(&mut world, &main, "read", 1);
    let window = &world.state.conversation_scope_by_id(&main).unwrap().window;
    let progress: Vec<bool> = window.iter().map(|call| call.progress).collect();
    assert_eq!(progress, [true, false]);
}

#[test]
fn a_result_that_comes_alone_may_be_a_write() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    for _ in 0..2 {
        call_then_result(&mut world, &main, "write", 1);
    }
    world.tool(&main, "write", None, None, None);
    world.news(Input::ToolReturned(ToolReturned {
        excerpt: None,
        scope: main.clone(),
        call_id: Some("call-3".to_owned()),
        call: checkrein_core::digest::EightByteDigest(0),
        outcome: checkrein_core::digest::EightByteDigest(1),
        error: true,
        wrote: false,
        facts: ToolOutcomeFacts::default(),
        tokens: None,
    }));
    let scope = world.state.conversation_scope_by_id(&main).unwrap();
    let progress: Vec<bool> = scope.window.iter().map(|call| call.progress).collect();
    assert_eq!(progress, [true, true, false], "what failed wrote nothing");
    assert!(scope.wrote);
}

#[test]
fn a_sub_agent_that_goes_in_circles_is_halted_for_itself() {
    check(
        policy("tests", ""),
        "prompt | 20x @s call a=1 | 2x @s call a=1 | @s call b=1 | call b=1 | @t call b=1
         | 20x @t call a=1 | @t call a=1 | ending | @s stop | @s call c=1
         | 20x call a=1 | call a=1 | call a=1 | ending",
        "allow x10 | nudge | allow x9 | deny x2 | halted | allow x22 | deny | open
         | accept | halted | allow x20 | deny | halt | loop_detected/generic_repeat",
    );
}

#[test]
fn many_sub_agents_keep_their_counters() {
    let two = with(policy("tests", ""), |policy| {
        policy.subagents.max_iterations = Some(2);
    });
    let each = |words: &str| {
        let lines: Vec<String> = (0..40).map(|at| format!("@s{at} {words}")).collect();
        lines.join(" | ")
    };
    check(
        two,
        &format!(
            "prompt | {} | {} | {} | {} | {} | {}",
            each("call a=1"),
            each("round"),
            each("round"),
            each("call b=1"),
            each("stop"),
            each("call b=1"),
        ),
        "allow x40 | grace x40 | accept x40 | halted x40",
    );
}

/// The state keeps 64 of them. What it has forgotten is told to it, and holds for stops as well.
#[test]
fn a_halted_sub_agent_stays_halted_after_many_others() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt");
    let lines: Vec<String> = (0..100).map(|at| format!("@s{at} call a=1")).collect();
    tell(&mut world, "20x @s call a=1 | 2x @s call a=1 | @s call b=1");
    tell(&mut world, &lines.join(" | "));
    let is_known = |world: &CoreWorld| world.state.conversation_scope_by_id(&scope("s")).is_some();
    assert!(!is_known(&world));
    let says = |told: bool, line: &str| {
        let mut world = world.clone();
        world.halted = told;
        tell(&mut world, line)
    };
    // A log that was written before it could be told is decided as it was.
    assert_eq!(says(false, "@s call c=1 | @s call d=1"), "allow x2");
    assert_eq!(says(true, "@s call c=1 | @s call d=1"), "halted x2");
    assert_eq!(says(true, "@s stop | @s call c=1"), "accept | halted");
    assert_eq!(says(true, "@s round | @s call c=1"), "halted");
    // A task of its own begins with nobody halted.
    assert_eq!(
        says(true, "@s call c=1 | prompt | @s call c=1"),
        "halted | allow"
    );
}

#[test]
fn nine_windows_are_kept_the_main_one_always() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | call a=1");
    for at in (0..20).chain([11]).chain(20..25) {
        tell(&mut world, &format!("@s{at} call a=1"));
    }
    let task = world.state.task.as_ref().unwrap();
    let with_calls = task.scopes.iter().filter(|scope| !scope.window.is_empty());
    let names: Vec<&str> = with_calls.map(|scope| scope.id.as_str()).collect();
    let expected = ["", "s18", "s19", "s11", "s20", "s21", "s22", "s23", "s24"];
    assert_eq!(names.len(), expected.len());
    assert!(
        names.iter().all(|name| expected.contains(name)),
        "{names:?}"
    );
}

#[test]
fn cursors_are_kept_by_use() {
    let mut world = CoreWorld::new(policy("tests", ""));
    let reading = |cursor: u64| {
        Some(TokenUsage {
            output: 1,
            input: 0,
            cost: None,
            cursor: cursor.to_string(),
        })
    };
    tell(&mut world, "prompt");
    world.tool(&ScopeId::main_scope(), "a", None, None, reading(7));
    for round in 0..3 {
        for at in 0..23 {
            let id = scope(&format!("s{at}"));
            let known = world.state.transcript_cursor(&id).to_owned();
            let expected = if round == 0 {
                String::new()
            } else {
                (round - 1).to_string()
            };
            assert_eq!(known, expected, "s{at}");
            world.tool(&id, "a", None, None, reading(round));
        }
    }
    // The least recently used goes first, the main one never.
    world.tool(&scope("s0"), "a", None, None, reading(3));
    world.tool(&scope("new"), "a", None, None, reading(3));
    assert_eq!(world.state.transcript_cursor(&scope("s0")), "3");
    assert_eq!(world.state.transcript_cursor(&scope("s1")), "");
    assert_eq!(world.state.transcript_cursor(&ScopeId::main_scope()), "7");
}

/// The answers to so many requests of one tool, none of which comes back.
fn answers_in_flight(
    world: &mut CoreWorld,
    name: impl Fn(u32) -> String,
    calls: u32,
) -> Vec<ToolDecision> {
    (0..calls)
        .map(|nth| {
            let made = world.tool(&ScopeId::main_scope(), &name(nth), None, None, None);
            match made.decision {
                Some(Decision::Tool(decision)) => decision,
                other => panic!("{other:?}"),
            }
        })
        .collect()
}

#[test]
fn twenty_identical_calls_in_flight_are_critical() {
    let denied = |answer: &ToolDecision| {
        matches!(
            answer,
            ToolDecision::Deny { .. } | ToolDecision::Halt { .. }
        )
    };
    let first_denied = |name: &'static str| {
        let mut world = CoreWorld::new(policy("", ""));
        world.prompt();
        let answers = answers_in_flight(&mut world, |_| name.to_owned(), 60);
        crate::laws::replays(&world);
        answers.iter().position(denied)
    };
    assert_eq!(first_denied("told"), Some(20));
    // It is not known that this agent tells what comes back.
    assert_eq!(first_denied("silent"), None);
    let mut world = CoreWorld::new(policy("", ""));
    world.prompt();
    let answers = answers_in_flight(&mut world, |nth| format!("told {nth}"), 60);
    assert!(answers.iter().all(|answer| *answer == ToolDecision::Allow));
    let mut world = CoreWorld::new(policy("", ""));
    world.prompt();
    let answers = answers_in_flight(&mut world, |_| "told".to_owned(), 22);
    assert!(matches!(&answers[20], ToolDecision::Deny { reason } if reason.contains("20 calls")));
    assert!(matches!(answers[21], ToolDecision::Halt { .. }));
}
