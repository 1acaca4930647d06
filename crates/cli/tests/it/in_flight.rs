//! Calls that are made again and again before any of them has come back.

use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::mcp_client::{Client, text};
use crate::world::{World, feed};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");

/// `None` where there is no Python: the server is written in it.
fn world(config: &str) -> Option<World> {
    let world = World::new();
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return None;
    }
    world.config(config);
    world.commit();
    Some(world)
}

/// Sends all these calls before an answer is read; then has the server answer all that wait.
/// How many calls the server got, and the refusals.
fn pipelined(world: &World, calls: &[(&str, Value)]) -> (usize, Vec<String>) {
    let mut client = Client::greeted(world, &["mcp-proxy", "--", "python3", SERVER], "files");
    for (tool, args) in calls {
        client.begin("tools/call", json!({ "name": tool, "arguments": args }));
    }
    // The proxy judges calls in order: once this is answered or refused, all before it are judged.
    let last = client.begin("tools/call", json!({ "name": "release", "arguments": {} }));
    let mut refused = Vec::new();
    loop {
        let answer = client.hear();
        let result = &answer["result"];
        if answer["id"] == last {
            break;
        }
        if result["isError"] == true {
            refused.push(text(result));
        }
    }
    client.bye();
    let got = world.lines_outside("server");
    let got = got
        .iter()
        .filter(|line| line.starts_with("call ") && *line != "call release");
    (got.count(), refused)
}

#[test]
fn of_200_identical_pipelined_calls_the_server_gets_20() {
    let Some(world) = world("") else { return };
    let calls = vec![("wait", json!({})); 200];
    let (got, refused) = pipelined(&world, &calls);
    assert_eq!(got, 20);
    assert_eq!(refused.len(), 180);
    assert!(
        refused[0].contains("20 calls like this one are running"),
        "{}",
        refused[0]
    );
    assert_eq!(world.ending(), "loop_detected/generic_repeat");
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn identical_pipelined_calls_that_come_back_meanwhile_are_ended_too() {
    let Some(world) = world("") else { return };
    let calls = vec![("echo", json!({ "text": "x" })); 200];
    let (got, _) = pipelined(&world, &calls);
    assert!((20..=30).contains(&got), "{got}");
    assert_eq!(world.ending(), "loop_detected/generic_repeat");
}

#[test]
fn other_calls_between_them_do_not_hide_identical_ones() {
    let Some(world) = world("") else { return };
    let calls: Vec<(&str, Value)> = (0..200).map(|n| ("wait", json!({ "n": n % 5 }))).collect();
    let (got, refused) = pipelined(&world, &calls);
    assert_eq!(got, 100, "twenty of each");
    assert!(
        refused[0].contains("20 calls exactly like this one"),
        "{}",
        refused[0]
    );
}

#[test]
fn the_limit_of_the_proxy_holds_without_detectors() {
    let Some(world) = world("[loops]\npreset = \"off\"\n") else {
        return;
    };
    let calls = vec![("wait", json!({})); 60];
    let (got, refused) = pipelined(&world, &calls);
    assert_eq!((got, refused.len()), (20, 40));
}

#[test]
fn different_calls_in_parallel_and_19_identical_ones_are_left_alone() {
    let Some(world) = world("") else { return };
    let calls: Vec<(&str, Value)> = (0..25).map(|n| ("wait", json!({ "n": n }))).collect();
    assert_eq!(pipelined(&world, &calls), (25, Vec::new()));
    let Some(world) = self::world("") else { return };
    let calls = vec![("wait", json!({})); 19];
    assert_eq!(pipelined(&world, &calls), (19, Vec::new()));
}

/// Requests of an agent, of which none comes back.
fn requests(agent: &Agent<'_>, calls: u32, command: impl Fn(u32) -> String) -> Vec<Answer> {
    agent.prompt("do it");
    (0..calls)
        .map(|nth| agent.tell(&agent.call(&agent.next_id(), &command(nth))))
        .collect()
}

fn is_refused(answer: &Answer) -> bool {
    matches!(answer, Answer::Denied(_) | Answer::Halted(_))
}

#[test]
fn of_60_identical_requests_of_claude_code_20_run() {
    let world = World::new();
    let agent = Agent::new(&world, "claude-code");
    let answers = requests(&agent, 60, |_| "sleep 1".to_owned());
    assert_eq!(answers.iter().position(is_refused), Some(20), "{answers:?}");
    assert!(answers[20].denied().contains("20 calls like this one"));
    assert!(matches!(answers[21], Answer::Halted(_)), "{answers:?}");
    assert!(answers[22..].iter().all(is_refused));
    assert_eq!(world.ending(), "loop_detected/generic_repeat");
    world.replays(&agent.session);
}

#[test]
fn requests_that_differ_and_19_identical_ones_of_claude_code_run() {
    let world = World::new();
    let agent = Agent::new(&world, "claude-code");
    let answers = requests(&agent, 25, |nth| format!("cat f{nth}"));
    assert!(
        answers.iter().all(|answer| *answer == Answer::Nothing),
        "{answers:?}"
    );
    let other = Agent::named(&world, "claude-code", "other");
    let answers = requests(&other, 19, |_| "sleep 1".to_owned());
    assert!(!answers.iter().any(is_refused), "{answers:?}");
}

#[test]
fn codex_does_not_tell_of_every_call_so_silence_proves_nothing() {
    let world = World::new();
    let agent = Agent::new(&world, "codex");
    let answers = requests(&agent, 25, |_| "sleep 1".to_owned());
    assert!(!answers.iter().any(is_refused), "{answers:?}");
}
