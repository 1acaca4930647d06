//! What calls for a judge, and what rules it out before any model is asked.

use checkrein_scripted::reviewer::last_message_text;
use serde_json::json;

use super::{content, generic, judged, strict};
use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

#[test]
fn nobody_is_asked_unless_configured() {
    let model = strict();
    let world = World::with_check("true");
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 0);
    // The same with one configured.
    let world = judged("");
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert!(matches!(agent.stop_saying("Done."), Answer::SentBack(_)));
    assert_eq!(model.received_request_bodies().len(), 1);
}

#[test]
fn exactly_the_default_keywords_trigger_the_judge() {
    let (world, model) = (judged(""), content());
    let agent = Agent::beside(&world, "codex", &model);
    let says = |answer: &str| {
        agent.prompt("Write a parser.");
        world.write("parser", answer);
        assert_eq!(agent.stop_saying(answer), Answer::Nothing, "{answer}");
        model.received_request_bodies().len()
    };
    let words = [
        "It is done.",
        "Completed",
        "I have FINISHED it.",
        "The parser is ready.",
        "Here you go: parser",
    ];
    for (before, answer) in words.into_iter().enumerate() {
        assert_eq!(says(answer), before + 1, "{answer}");
    }
    for answer in [
        "The parser is there.",
        "I abandoned it.",
        "It was already so.",
    ] {
        assert_eq!(says(answer), words.len(), "{answer}");
    }
}

#[test]
fn configured_keywords_replace_the_default_ones() {
    let (world, model) = (judged("keywords = [\"shipped it\"]\n"), content());
    let agent = Agent::beside(&world, "claude-code", &model);
    for (answer, asked) in [("Done.", 0), ("I shipped it.", 1)] {
        agent.prompt("Write a parser.");
        world.write("parser", answer);
        assert_eq!(agent.stop_saying(answer), Answer::Nothing);
        assert_eq!(model.received_request_bodies().len(), asked, "{answer}");
    }
}

#[test]
fn a_judge_with_trigger_always_needs_no_keyword() {
    for (trigger, asked) in [("keywords", 0), ("always", 2)] {
        let world = judged(&format!("trigger = \"{trigger}\"\n"));
        let model = content();
        let agent = Agent::beside(&world, "claude-code", &model);
        for answer in ["The parser is there.", "What should it read?"] {
            agent.prompt("Write a parser.");
            world.write("parser", answer);
            assert_eq!(agent.stop_saying(answer), Answer::Nothing);
        }
        assert_eq!(model.received_request_bodies().len(), asked, "{trigger}");
    }
}

#[test]
fn nobody_is_asked_without_need() {
    let (world, model) = (judged(""), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    // No keyword.
    assert_eq!(agent.stop_saying("The parser is there."), Answer::Nothing);
    // Nothing to judge.
    agent.prompt("Go on.");
    world.write("parser", "2");
    assert_eq!(agent.stop_saying(" "), Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 0);
    assert!(
        world.why().contains("the answer is empty"),
        "{}",
        world.why()
    );
}

#[test]
fn after_a_failed_check_nobody_asks_a_model() {
    let (world, model) = (judged(""), strict());
    world.config("[[verifier]]\nname = \"tests\"\nrun = \"false\"\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n");
    world.commit();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    let answer = agent.stop_saying("Done.");
    assert!(answer.sent_back().contains("tests: failed"));
    assert_eq!(model.received_request_bodies().len(), 0);
}

/// Each alone, whatever the answer says and whoever would read everything.
#[test]
fn what_cannot_be_judged_or_taken_back_is_not_put_to_a_model() {
    let (world, model) = (judged("trigger = \"always\"\n"), strict());
    for (known, text, said) in [
        ("pending_tool_calls", "Done.", "tool calls were pending"),
        (
            "delivered",
            "Done.",
            "a messaging tool had delivered the answer",
        ),
        ("streamed", "Done.", "the answer had been streamed"),
        ("nothing", " \n", "the answer is empty"),
        ("heartbeat", "Done.", "it leaves heartbeats alone"),
    ] {
        let heard = generic(&world, &model, known, text, &[known]);
        assert_eq!(heard["decision"], "accept", "{known} {heard}");
        assert!(world.why().contains(said), "{known}: {}", world.why());
        assert_eq!(model.received_request_bodies().len(), 0, "{known}");
    }
    let heard = generic(&world, &model, "plain", "Done.", &[]);
    assert_eq!(heard["decision"], "continue", "{heard}");
    assert_eq!(model.received_request_bodies().len(), 1);
}

#[test]
fn a_heartbeat_is_judged_only_where_enabled_and_undelivered() {
    let (world, model) = (judged("heartbeat = true\n"), strict());
    world.write("HEARTBEAT.md", "- [ ] look at the queue");
    world.commit();
    let beats = |known: &[&str]| generic(&world, &model, "g", "HEARTBEAT_OK", known);
    let said = beats(&["heartbeat"]);
    assert_eq!(said["decision"], "continue", "{said}");
    let shown = model.received_request_bodies().remove(0).to_string();
    assert!(shown.contains("look at the queue"), "{shown}");
    for seen in ["pending_tool_calls", "delivered", "streamed"] {
        let said = beats(&["heartbeat", seen]);
        assert_eq!(said["decision"], "accept", "{seen} {said}");
    }
    assert_eq!(model.received_request_bodies().len(), 1);
    // Without that key heartbeats are left alone, whatever they say.
    let (world, model) = (judged("trigger = \"always\"\n"), strict());
    let said = generic(&world, &model, "g", "HEARTBEAT_OK", &["heartbeat"]);
    assert_eq!(said["decision"], "accept", "{said}");
    assert_eq!(model.received_request_bodies().len(), 0);
}

#[test]
fn a_sub_agents_answer_is_read_where_it_is_a_surface() {
    for (surfaces, asked) in [
        ("", 1),
        ("surfaces = [\"subagent\"]\n", 1),
        ("surfaces = [\"main\"]\n", 0),
    ] {
        let (world, model) = (judged(surfaces), strict());
        let agent = Agent::beside(&world, "claude-code", &model);
        agent.prompt("Have a parser written.");
        let mut call = agent.call("sub-1", "echo 1 > parser");
        call["agent_id"] = json!("a1");
        call["agent_type"] = json!("general-purpose");
        agent.tell(&call);
        let stop = json!({ "agent_id": "a1", "agent_type": "general-purpose", "stop_hook_active": false, "last_assistant_message": "Done." });
        let heard = agent.tell(&agent.message("SubagentStop", stop));
        assert_eq!(model.received_request_bodies().len(), asked, "{surfaces}");
        match asked {
            0 => assert_eq!(heard, Answer::Nothing, "{surfaces}"),
            _ => assert!(
                heard
                    .sent_back()
                    .contains("incomplete: Where are the tests?"),
                "{heard:?}"
            ),
        }
        // The main answer.
        world.write("parser", "1");
        agent.stop_saying("Done, all of it.");
        let main = usize::from(!surfaces.contains("subagent"));
        assert_eq!(
            model.received_request_bodies().len(),
            asked + main,
            "{surfaces}"
        );
    }
}

/// Its end is known already, and no verdict could change it.
#[test]
fn an_answer_that_was_cut_is_not_put_to_a_model() {
    let (world, model) = (judged("trigger = \"always\"\n"), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    let failed = json!({ "error": "max_output_tokens", "last_assistant_message": "Done: the par" });
    agent.tell(&agent.message("StopFailure", failed));
    assert!(
        world.ending().starts_with("truncated"),
        "{}",
        world.ending()
    );
    assert_eq!(model.received_request_bodies().len(), 0);
}

/// A command says nothing at its end but its status, in which no word calls.
#[test]
fn a_command_is_read_only_by_one_that_reads_everything() {
    for (more, asked) in [("", 0), ("trigger = \"always\"\n", 1)] {
        let (world, model) = (judged(more), content());
        let mut run = world.checkrein(&["run", "--", "sh", "-c", "echo 1 > parser; echo Done."]);
        let ran = run.env("OLLAMA_HOST", model.base_url()).output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{ran:?}");
        assert_eq!(world.ending(), "task_complete");
        let all = model.received_request_bodies();
        assert_eq!(all.len(), asked, "{more}");
        assert!(
            all.iter()
                .all(|body| last_message_text(body).contains("exit status 0"))
        );
    }
}

/// Who judges where the config names nobody.
#[test]
fn another_family_than_the_agents_is_asked() {
    let config = std::fs::read_to_string(judged("").root().join("checkrein.toml")).unwrap();
    for (name, variables, expected) in [
        (
            "claude-code",
            ["OPENAI_BASE_URL", "OPENAI_API_KEY"],
            "gpt-4.1",
        ),
        (
            "codex",
            ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"],
            "claude-sonnet-4-5",
        ),
    ] {
        let (world, model) = (World::new(), content());
        world.config(&config.replace("model = \"ollama/j\"\n", ""));
        let mut agent = Agent::new(&world, name);
        agent.env = variables
            .map(|variable| (variable, model.base_url()))
            .to_vec();
        agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        // That this model speaks another format changes nothing.
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing, "{name}");
        let asked = model.received_request_bodies();
        assert!(!asked.is_empty(), "{name}: {}", world.why());
        assert!(asked.iter().all(|body| body["model"] == expected), "{name}");
    }
}

#[test]
fn the_model_of_the_config_is_asked() {
    for name in BOTH {
        let (world, model) = (judged(""), content());
        let agent = Agent::beside(&world, name, &model);
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
        assert_eq!(model.received_request_bodies()[0]["model"], "j", "{name}");
    }
}
