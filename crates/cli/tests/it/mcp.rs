//! `mcp`: what an agent may ask, over JSON-RPC written by hand.

use serde_json::{Value, json};

use crate::agent::Agent;
use crate::approvals::{PUSH, RULES, unattended, waiting};
use crate::mcp_client::{Client, text};
use crate::world::{World, ending, gone};

fn asking(world: &World) -> Client {
    Client::greeted(world, &["mcp"], "checkrein")
}

/// Words and document of an answer.
fn answer(client: &mut Client, tool: &str, args: Value) -> (String, Value) {
    let result = client.call(tool, args);
    assert_ne!(result["isError"], true, "{result}");
    (text(&result), result["structuredContent"].clone())
}

#[test]
fn it_offers_three_tools_and_none_that_decides() {
    let world = World::new();
    let mut client = asking(&world);
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let told: Vec<(&str, bool)> = tools
        .iter()
        .map(|tool| {
            let read_only = &tool["annotations"]["readOnlyHint"];
            (tool["name"].as_str().unwrap(), read_only.as_bool().unwrap())
        })
        .collect();
    assert_eq!(
        told,
        [("verify", false), ("evidence", true), ("approvals", true)]
    );
    for tool in ["approve", "seal", "off"] {
        let answer = client.ask("tools/call", json!({ "name": tool, "arguments": {} }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(client.bye(), (Some(0), String::new()));
}

#[test]
fn the_checks_are_run_and_what_they_find_is_said() {
    let world =
        World::with_check("test -e done || { echo 'src/a.rs:3:1: error: not yet'; exit 1; }");
    let mut client = asking(&world);
    let (said, document) = answer(&mut client, "verify", json!({}));
    assert!(said.ends_with("not accepted"), "{said}");
    assert!(said.contains("not yet"), "{said}");
    assert_eq!(document["schema"], "checkrein/check/1");
    assert_eq!(document["verdict"], "fail");
    assert_eq!(
        document["verifiers"][0]["findings"][0]["line"], 3,
        "{document}"
    );
    // The same tree, the same answer, and nothing is run for it.
    answer(&mut client, "verify", json!({ "verifiers": ["tests"] }));
    assert_eq!(world.runs("tests"), 1);
    world.write("done", "");
    let (said, document) = answer(&mut client, "verify", json!({}));
    assert_eq!(
        (said.as_str(), &document["verdict"]),
        ("accepted", &json!("pass"))
    );
    for (args, what) in [
        (
            json!({ "verifiers": ["lint"] }),
            "no verifier is named 'lint'",
        ),
        (json!({ "verifier": "tests" }), "unknown field `verifier`"),
    ] {
        let said = client.refused("verify", args);
        assert!(said.contains(what), "{said}");
    }
    client.bye();
}

#[test]
fn the_verify_tool_gives_a_stop_no_evidence() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("work");
    world.write("work", "1");
    let mut client = asking(&world);
    answer(&mut client, "verify", json!({}));
    let runs = world.runs("tests");
    agent.stop();
    assert_eq!(
        world.runs("tests"),
        runs + 1,
        "a stop asks for evidence of its own"
    );
    assert_eq!(ending(&world.task()["transition"]), "task_complete");
    let (said, document) = answer(&mut client, "evidence", json!({}));
    assert!(said.starts_with("task_complete"), "{said}");
    assert_eq!(
        document["transition"]["reason"], "task_complete",
        "{document}"
    );
    assert_eq!(document["verifiers"][0]["verdict"], "pass", "{document}");
    let said = client.refused("evidence", json!({ "task": "nobody" }));
    assert!(said.contains("no task is known as 'nobody'"), "{said}");
    client.bye();
}

#[test]
fn what_waits_for_a_person_is_listed() {
    let world = World::new();
    world.write("rules/own.rules", RULES);
    world.config("[policy]\nrules = [\"rules/*.rules\"]\n");
    world.commit();
    let mut client = asking(&world);
    let (said, _) = answer(&mut client, "approvals", json!({}));
    assert_eq!(said, "Nothing waits for a person here.");
    let agent = unattended(&world, "codex");
    agent.prompt("ship it");
    agent.shell(PUSH, "pushed");
    let (said, document) = answer(&mut client, "approvals", json!({}));
    let id = waiting(&world);
    assert!(
        said.starts_with(&format!("{id}: ")) && said.contains(PUSH),
        "{said}"
    );
    assert_eq!(document["approvals"][0]["id"], id.as_str());
    client.bye();
}

#[test]
fn a_check_that_is_not_waited_for_is_killed() {
    let world = World::new();
    let begun = world.pipe("begun");
    let run = format!("echo begun > '{}'; sleep 600", begun.display());
    world.config(&format!(
        "[[verifier]]\nname = \"slow\"\nrun = '''{run}'''\n"
    ));
    // The client hangs up.
    let mut client = asking(&world);
    client.begin("tools/call", json!({ "name": "verify", "arguments": {} }));
    crate::world::read_line(&begun);
    assert_eq!(client.bye().0, Some(0));
    gone(&world);
    // It takes its question back, and asks another one.
    let mut client = asking(&world);
    let id = client.begin("tools/call", json!({ "name": "verify", "arguments": {} }));
    crate::world::read_line(&begun);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    let (said, _) = answer(&mut client, "approvals", json!({}));
    assert_eq!(said, "Nothing waits for a person here.");
    client.bye();
    gone(&world);
}
