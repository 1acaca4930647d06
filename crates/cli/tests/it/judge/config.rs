//! What a config says of a judge, and what it cannot mean.

use serde_json::Value;

use super::{content, judged};
use crate::agent::{Agent, Answer};
use crate::world::World;

#[test]
fn invalid_judge_settings_are_config_errors() {
    for (more, expected) in [
        ("model = \"gpt\"\n", "model"),
        ("min_score = 7\n", "must be from 0 to 1"),
        ("keywords = []\n", "nothing ever calls for it"),
        ("keywords = [\"...\"]\n", "without a letter or digit"),
        ("surfaces = []\n", "are none"),
        ("rubric = \"no.md\"\n", "which is not there"),
        ("max_attempts = 0\n", "must be 1 or more"),
        ("run = \"true\"\n", "says nothing to a judge"),
        ("trigger = \"sometimes\"\n", "sometimes"),
    ] {
        let world = World::new();
        let model = match more.starts_with("model") {
            true => "",
            false => "model = \"ollama/j\"\n",
        };
        world.config(&format!(
            "[[verifier]]\nname = \"j\"\nkind = \"judge\"\n{model}{more}"
        ));
        let said = world.says(&["check"]);
        assert_eq!(said.code, Some(2), "{more}: {said:?}");
        assert!(said.stderr.contains(expected), "{more}: {said:?}");
    }
    let world = World::new();
    world.config(
        "accept = \"j\"\n[[verifier]]\nname = \"j\"\nkind = \"judge\"\nmode = \"shadow\"\n",
    );
    assert!(world.says(&["check"]).stderr.contains("shadow"));
    world.config("[[verifier]]\nname = \"t\"\nrun = \"true\"\nmodel = \"x/y\"\n");
    assert!(
        world
            .says(&["check"])
            .stderr
            .contains("is for kind = \"judge\"")
    );
}

#[test]
fn accept_cannot_name_a_judge_of_sub_agents_only() {
    let world = World::new();
    world.config("accept = \"j\"\n[[verifier]]\nname = \"j\"\nkind = \"judge\"\nmodel = \"ollama/j\"\nsurfaces = [\"subagent\"]\n");
    let said = world.says(&["check"]);
    assert!(
        said.stderr.contains("does not read the main conversation"),
        "{said:?}"
    );
}

/// What the agent is told to wait for its hook holds the time that its judge may take.
#[test]
fn the_stop_timeout_includes_the_judges_time() {
    let waits = |more: &str| {
        let world = judged(more);
        let text = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
        world.config(&text.replace("accept = \"tests\"", "accept = \"tests and reviewer\""));
        let said = world.says(&["init", "--agent", "claude-code"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let text = world.root().join(".claude/settings.local.json");
        let settings: Value = serde_json::from_slice(&std::fs::read(text).unwrap()).unwrap();
        let handler = &settings["hooks"]["Stop"][0]["hooks"][0];
        handler["timeout"].as_u64().unwrap()
    };
    let without = waits("timeout = \"1s\"\n") - 1;
    assert_eq!(waits(""), without + 30);
    assert_eq!(waits("timeout = \"50s\"\n"), without + 50);
}

/// There is no table for each agent; there are as many judges as one likes.
#[test]
fn each_judge_has_its_own_settings() {
    let world = judged(
        "keywords = [\"one\"]\n[[verifier]]\nname = \"other\"\nkind = \"judge\"\nmodel = \"ollama/other\"\nkeywords = [\"two\"]\n",
    );
    let model = content();
    let agent = Agent::beside(&world, "claude-code", &model);
    for answer in ["It is one.", "It is two."] {
        agent.prompt("Write a parser.");
        world.write("parser", answer);
        assert_eq!(agent.stop_saying(answer), Answer::Nothing);
    }
    let asked = model.received_request_bodies();
    let models: Vec<&Value> = asked.iter().map(|body| &body["model"]).collect();
    assert_eq!(models, ["j", "other"]);
    let said = judged("[agents.defaults.verifier]\nenabled = true\n").says(&["check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("unknown table [agents]"), "{said:?}");
}
