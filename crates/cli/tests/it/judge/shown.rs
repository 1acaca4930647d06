//! What a judge is shown of a session.

use checkrein_scripted::reviewer::last_message_text;
use serde_json::json;

use super::{content, judged, strict};
use crate::agent::{Agent, Answer};

#[test]
fn the_prompt_has_rubric_and_rules_but_no_secrets() {
    let (world, model) = (judged("rubric = \"rubric.md\"\n"), strict());
    world.write("rubric.md", "Mind the names.");
    world.write("AGENTS.md", "No unwrap in libraries.");
    world.commit();
    let mut agent = Agent::beside(&world, "claude-code", &model);
    agent.env.push((
        "GITHUB_TOKEN",
        "ghp_0123456789abcdefghijklmnopqrstuvwxyz".to_owned(),
    ));
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    agent.shell("echo ghp_0123456789abcdefghijklmnopqrstuvwxyz", "");
    agent.stop_saying("Done with ghp_0123456789abcdefghijklmnopqrstuvwxyz");
    let asked = model.received_request_bodies();
    let whole = asked[0].to_string();
    assert!(whole.contains("No unwrap in libraries."), "{whole}");
    assert!(whole.contains("Mind the names."), "{whole}");
    assert!(!whole.contains("ghp_0123456789"), "{whole}");
}

/// What matters most stands at both ends.
#[test]
fn the_prompt_shows_the_session_in_order() {
    let (world, model) = (judged(""), strict());
    world.write("AGENTS.md", "No unwrap in libraries.");
    world.write("SOUL.md", "Be kind.");
    world.commit();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    for nth in 1..=7 {
        agent.prompt(&format!("Question {nth}?"));
        agent.stop_saying(&format!("Reply {nth}."));
        // Rules are those of the session's start.
        world.write("AGENTS.md", "Unwrap as you like.");
    }
    agent.prompt("Write a parser.");
    agent.shell("echo 1 > parser", "");
    world.write("parser", "1");
    agent.stop_saying("Done: first.");
    agent.stop_saying("Done: second.");
    let asked = model.received_request_bodies();
    let shown = last_message_text(asked.last().unwrap());
    let parts = [
        "Write a parser.",
        "No unwrap in libraries.",
        "Be kind.",
        "Question 3?",
        "Reply 7.",
        "agent: claude-code",
        "worked for ",
        "tests passes",
        "echo 1 > parser",
        "incomplete: Where are the tests?",
        "Done: second.",
    ];
    let at = |part: &str| {
        shown
            .find(part)
            .unwrap_or_else(|| panic!("{part}: {shown}"))
    };
    let places: Vec<usize> = parts.into_iter().map(at).collect();
    assert!(places.is_sorted(), "{shown}");
    for gone in ["Question 2?", "Unwrap as you like."] {
        assert!(!shown.contains(gone), "{gone}: {shown}");
    }
}

/// Three things are thought about before the verdict, whatever the config says besides.
#[test]
fn the_config_cannot_replace_the_judges_instructions() {
    let system = |more: &str| {
        let (world, model) = (judged(more), content());
        world.write("rubric.md", "Mind the names.");
        world.commit();
        let agent = Agent::beside(&world, "claude-code", &model);
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        agent.stop_saying("Done.");
        let body = model.received_request_bodies().remove(0);
        let text = body["messages"][0]["content"].as_str().unwrap().to_owned();
        (text, body)
    };
    let (plain, body) = system("");
    let wanted = &body["response_format"]["json_schema"]["schema"]["required"];
    let order = json!([
        "ref",
        "goal",
        "completeness",
        "rules",
        "score",
        "verdict",
        "category",
        "feedback"
    ]);
    assert_eq!(wanted, &order, "thoughts before the verdict");
    for thought in ["1. goal", "2. completeness", "3. rules"] {
        assert!(plain.contains(thought), "{plain}");
    }
    let (with_rubric, _) = system("rubric = \"rubric.md\"\n");
    assert!(with_rubric.starts_with(&plain), "{with_rubric}");
    let said = judged("prompt = \"Always pass.\"\n").says(&["check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("unknown key 'verifier.prompt'"),
        "{said:?}"
    );
}

/// A question of its own: without tools, and the agent's conversation does not know of it.
#[test]
fn nothing_is_written_into_the_transcript() {
    let (world, model) = (judged(""), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    let transcript = world.outside("transcript.jsonl");
    let line = json!({
        "type": "assistant", "sessionId": agent.session, "uuid": "1",
        "message": { "id": "m", "role": "assistant", "content": [], "usage": { "input_tokens": 1, "output_tokens": 2 } },
    });
    std::fs::write(&transcript, format!("{line}\n")).unwrap();
    let mut stop = agent.stop_message(false, "Done.");
    stop["transcript_path"] = json!(transcript);
    assert!(matches!(agent.tell(&stop), Answer::SentBack(_)));
    let after = std::fs::read_to_string(&transcript).unwrap();
    assert_eq!(after, format!("{line}\n"));
    let body = model.received_request_bodies().remove(0);
    assert!(body.get("tools").is_none(), "{body}");
    let roles = body["messages"].as_array().unwrap().iter();
    let roles: Vec<&str> = roles.filter_map(|said| said["role"].as_str()).collect();
    assert_eq!(roles, ["system", "user"]);
}
