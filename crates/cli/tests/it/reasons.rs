//! What is said of the reasons is true: how often the agent may still try, what was found, whose work
//! is over, and which agent it was.

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer;
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

/// The text promises no more stops than there are.
#[test]
fn the_smaller_bound_is_said() {
    for (caps, block_cap, expected) in [
        (
            "",
            None,
            vec!["the same failures end the task after 2 more"],
        ),
        (
            "continues = 1",
            None,
            vec!["any failure ends the task after 1 more"],
        ),
        (
            "attempts = 9\ncontinues = 3",
            None,
            vec![
                "any failure ends the task after 3 more",
                "any failure ends the task after 2 more",
                "any failure ends the task after 1 more",
            ],
        ),
        (
            "attempts = 9",
            Some("3"),
            vec![
                "any failure ends the task after 2 more",
                "any failure ends the task after 1 more",
            ],
        ),
    ] {
        let world = World::new();
        let check = world.counted("tests", "cat work; exit 1");
        world.config(&format!("[caps]\n{caps}\n{check}"));
        world.commit();
        let mut agent = Agent::new(&world, "claude-code");
        agent
            .env
            .extend(block_cap.map(|cap: &str| ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", cap.to_owned())));
        agent.prompt("mend it");
        for (n, line) in expected.iter().enumerate() {
            // Another failure each time, so that it is told in full.
            world.write("work", &format!("src/a.rs:{n}: error: number {n}\n"));
            let answer = agent.stop();
            assert!(answer.sent_back().contains(line), "{caps}: {answer:?}");
        }
        if expected.len() > 1 || caps == "continues = 1" {
            world.write("work", "src/a.rs:9: error: the last one\n");
            assert!(agent.stop().notice().contains("gave_up (continues)"));
        }
    }
}

/// A session has fewer continuations than its tasks together.
#[test]
fn the_bound_of_the_session_is_said_where_it_is_smaller() {
    for name in BOTH {
        for (caps, expected) in [
            (
                "attempts = 9\ncontinues = 9",
                "any failure ends the task after 1 more",
            ),
            ("", "any failure ends the task after 1 more"),
            ("attempts = 1", ""),
        ] {
            let world = World::new();
            let check = world.counted("tests", "cat work; exit 1");
            world.config(&format!(
                "[caps]\n{caps}\n[session_caps]\ncontinues = 2\n{check}"
            ));
            world.commit();
            let agent = Agent::new(&world, name);
            agent.prompt("mend it");
            world.write("work", "src/a.rs:1: error: number 1\n");
            let answer = agent.stop();
            if expected.is_empty() {
                assert!(
                    answer.notice().contains("gave_up (same_failures)"),
                    "{answer:?}"
                );
                continue;
            }
            assert!(
                answer.sent_back().contains("after 2 more"),
                "{caps}: {answer:?}"
            );
            // Nothing of it comes back with a new task.
            agent.prompt("and that");
            world.write("work", "src/a.rs:2: error: number 2\n");
            let answer = agent.stop();
            assert!(answer.sent_back().contains(expected), "{caps}: {answer:?}");
            world.write("work", "src/a.rs:3: error: number 3\n");
            assert!(agent.stop().notice().contains("gave_up (continues)"));
            world.replays(&agent.session);
        }
    }
}

/// The one line about the same failures counts by the smaller bound, too.
#[test]
fn the_second_ask_counts_by_the_smaller_bound() {
    let world = World::new();
    let check = world.counted("tests", "exit 1");
    world.config(&format!("[caps]\nattempts = 5\ncontinues = 2\n{check}"));
    world.commit();
    let agent = Agent::new(&world, "codex");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    let answer = agent.stop();
    assert!(
        answer.sent_back().contains("asked 2 times, 1 left"),
        "{answer:?}"
    );
    assert!(agent.stop().notice().contains("gave_up (continues)"));
}

#[test]
fn one_attempt_is_not_again_and_again() {
    let world = World::with_check("exit 1");
    let said = world.says(&["run", "--attempts", "1", "--", "sh", "-c", "echo > work"]);
    assert_eq!(said.code, Some(11), "{said:?}");
    assert!(
        said.stderr.contains("one attempt is all that is allowed"),
        "{said:?}"
    );
    assert!(!said.stderr.contains("again"), "{said:?}");
}

/// A judge that is all that `accept` names is not advisory.
#[test]
fn a_judge_alone_is_not_called_advisory() {
    let world = World::new();
    world.config("accept = \"reviewer\"\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n");
    world.commit();
    let content = |body: &_| reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", "");
    let model =
        ScriptedReviewer::start_scripted_reviewer_server(move |body, _| Ok(content(body))).unwrap();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("mend it");
    world.write("work", "1");
    let line = agent.stop();
    let line = line.notice();
    assert!(line.contains("unverified (advisory_only)"), "{line}");
    assert!(line.contains("satisfied by judges alone"), "{line}");
    assert!(!line.contains("all verifiers are advisory"), "{line}");
}

/// A sub-agent that goes in circles is told that its own work is over; the task is not.
#[test]
fn a_sub_agent_is_told_of_its_own_scope() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    let mut said = String::new();
    for n in 0..60 {
        let id = format!("sub-{n}");
        let mut call = agent.call(&id, "ls");
        call["agent_id"] = json!("a1");
        let answer = agent.tell(&call);
        if let Answer::Denied(reason) = &answer {
            said.clone_from(reason);
            if said.contains("has ended") {
                break;
            }
            continue;
        }
        let mut result = agent.result(&id, "ls", "same");
        result["agent_id"] = json!("a1");
        agent.tell(&result);
    }
    assert!(said.contains("ended the work of this sub-agent"), "{said}");
    assert!(!said.contains("ended this task"), "{said}");
    assert_eq!(agent.shell("cat README", "a project"), Answer::Nothing);
    world.replays(&agent.session);
}

/// A hook that was installed in mid-session has seen no beginning: its argument names the agent.
#[test]
fn the_agent_is_named_by_the_hook_where_no_session_start_was_seen() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop();
        assert_eq!(world.task()["agent"], name);
        assert!(world.says(&["sessions"]).stdout.contains(name));
        assert!(
            world
                .says(&["show"])
                .stdout
                .contains(&format!(" · {name} · "))
        );
        world.replays(&agent.session);
    }
}
