//! Where a task begins and ends when no stop decides it.

use crate::story::{check, tell};
use crate::world::{CoreWorld, policy, with};

#[test]
fn prompts_and_work_open_tasks() {
    // The first request or stop that finds no task opens one; it counts.
    check(
        policy("tests", ""),
        "call a=1 | stop",
        "allow | tests look task_complete",
    );
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "call a=1 tokens=60");
    let task = world.state.task.unwrap();
    assert_eq!(task.totals.tool_calls, 1);
    assert_eq!((task.totals.output_tokens, task.metered), (Some(60), true));
}

#[test]
fn abandoned() {
    let tests = || policy("tests", "");
    for (story, expected) in [
        ("prompt | end | ending", "abandoned/session_ended"),
        ("prompt | clear | ending", "abandoned/session_ended"),
        ("prompt | resume | ending", "open"),
        ("prompt | wait 86400 | round | ending", "open"),
        (
            "prompt | wait 86401 | round | ending",
            "abandoned/day_passed",
        ),
        ("prompt | failed overloaded | ending", "error/agent"),
        ("prompt | failed max_tokens | ending", "truncated"),
        // A sub-agent's failure is not the task's.
        ("prompt | @s failed overloaded | ending", "open"),
        // Nothing is open, nothing ends.
        ("end | ending", "open"),
        (
            "prompt | edit | stop | end | ending",
            "tests look task_complete | task_complete",
        ),
    ] {
        check(tests(), story, expected);
    }
}

#[test]
fn a_prompt_supersedes() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(
        &mut world,
        "prompt | call a=1 | prompt | edit | stop | prompt",
    );
    let ended: Vec<String> = world
        .log
        .iter()
        .filter_map(|event| match event {
            checkrein_core::event::Event::TaskEnded { task, transition } => {
                Some(format!("{task} {}", crate::story::transition(transition)))
            }
            _ => None,
        })
        .collect();
    assert_eq!(ended, ["1 abandoned/superseded", "2 task_complete"]);
}

#[test]
fn an_accepted_task_is_reopened_with_its_counters() {
    check(
        with(policy("tests", ""), |policy| policy.caps.continues = 2),
        "prompt | edit | tests fail 1 | stop | edit | tests pass | stop | call a=1 | edit
         | tests fail 2 | stop | edit | tests fail 3 | stop",
        "tests continue tests:1+0-0 | tests look task_complete | allow
         | tests continue tests:1+0-0 | tests gave_up/continues",
    );
}

#[test]
fn idle_nights_are_nobody_s_work() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(
        &mut world,
        "prompt | wait 100 | call a=1 | wait 90000 | prompt | wait 5 | edit | stop",
    );
    assert_eq!(world.state.totals.busy_ms, 5_000);
}

#[test]
fn what_the_agents_program_ended_with_stays_with_the_task() {
    let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
        policy.single_task = true
    }));
    tell(&mut world, "prompt | process crashed");
    let ended = world.state.task.and_then(|task| task.ended).unwrap();
    assert_eq!(ended.native_reason.as_deref(), Some("crashed"));
}

#[test]
fn run_has_exactly_one_task() {
    let run = || with(policy("tests", ""), |policy| policy.single_task = true);
    for (story, expected) in [
        // Our own feedback comes back as a prompt: still the one task.
        ("prompt | prompt | edit | stop", "tests look task_complete"),
        ("prompt | wait 90000 | round | ending", "open"),
        ("prompt | end | ending", "open"),
        (
            "prompt | process | ending",
            "halt error/agent | error/agent",
        ),
        (
            "prompt | interrupt | ending",
            "halt user_interrupt | user_interrupt",
        ),
        // It failed before it came to work.
        ("process | ending", "halt error/agent | error/agent"),
        ("interrupt | ending", "halt user_interrupt | user_interrupt"),
        // The agent's API failed: `run` sees how the process ends, and may take it up again.
        ("prompt | failed overloaded | ending", "open"),
        ("prompt | failed max_tokens | ending", "truncated"),
        // Its program ended for good: judged all the same, and then nobody is sent back.
        (
            "prompt | edit | tests fail 1 | stop over=budget | ending",
            "tests hard_cap/cost | hard_cap/cost",
        ),
        (
            "prompt | edit | stop over=budget | ending",
            "tests look task_complete | task_complete",
        ),
        // A prompt after the end is the next task, with counters of its own.
        (
            "prompt | edit | tests fail 1 | 3x stop | prompt | stop | ending",
            "tests continue tests:1+0-0 | repeat tests:0+1-0 | gave_up/same_failures | tests continue tests:1+0-0 | open",
        ),
        // After its end nothing is ended again.
        (
            "prompt | edit | stop | process | ending",
            "tests look task_complete | task_complete",
        ),
    ] {
        check(run(), story, expected);
    }
}

#[test]
fn a_sub_agent_that_fails_ends_for_itself() {
    let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
        policy.subagents.verify = checkrein_core::policy::SubagentStopVerification::Writers;
    }));
    let s = crate::world::scope("s");
    tell(&mut world, "prompt | edit | @s call write=1");
    world.ask_stop(&s);
    assert!(world.state.pending_stop(&s).is_some());
    tell(&mut world, "@s failed overloaded");
    assert!(world.state.pending_stop(&s).is_none());
    // What it had asked for comes back to nobody.
    assert_eq!(
        world.answer(0).decision,
        Some(checkrein_core::decision::Decision::Noted)
    );
    assert_eq!(tell(&mut world, "stop"), "tests look task_complete");
}

#[test]
fn a_conversation_taken_up_again_is_not_charged_for_its_history() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "resume tokens=0");
    let main = checkrein_core::ids::ScopeId::main_scope();
    assert_eq!(world.state.transcript_cursor(&main), "c");
    assert_eq!(world.state.totals.output_tokens, Some(0));
}
