//! `mcp-proxy` between a client that writes JSON-RPC by hand and a real server on stdio.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use checkrein_core::input::Input;
use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::request_number_in_prompt;
use serde_json::json;

use crate::approvals::{approve, deny, waiting};
use crate::mcp_client::{Client, text};
use crate::world::{World, ending, feed, gone};

const RULES: &str = r#"
prefix_rule(pattern = ["mcp", "files", "delete"], decision = "forbidden", justification = "nothing is deleted here")
prefix_rule(pattern = ["mcp", "files", "publish"], decision = "prompt", justification = "it leaves this machine")
prefix_rule(pattern = ["git", "push"], decision = "forbidden", justification = "a person pushes")
"#;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");

/// A client of the server, through the proxy.
fn proxied(world: &World) -> Client {
    named(world, &[])
}

fn named(world: &World, options: &[&str]) -> Client {
    Client::greeted(world, &through(options, &["python3", SERVER]), "files")
}

fn through<'a>(options: &[&'a str], server: &[&'a str]) -> Vec<&'a str> {
    [&["mcp-proxy"], options, &["--"], server].concat()
}

/// What the server was told, line by line.
fn log(world: &World) -> Vec<String> {
    world.lines_outside("server")
}

/// `None` where there is no Python: the server is written in it.
fn world() -> Option<World> {
    let world = World::new();
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return None;
    }
    world.write("rules/own.rules", RULES);
    world.config("[policy]\nrules = [\"rules/*.rules\"]\nprotect = [\"sums/**\"]\n");
    world.commit();
    Some(world)
}

#[test]
fn a_forbidden_tool_is_refused_and_the_server_never_hears_of_it() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    assert_eq!(client.ran("echo", json!({ "text": "hello" })), "hello");
    let said = client.refused("delete", json!({ "name": "x" }));
    assert!(said.contains("nothing is deleted here"), "{said}");
    assert_eq!(client.ran("release", json!({})), "released");
    let (code, stderr) = client.bye();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(log(&world), ["call echo", "call release", "end"]);
    let task = world.task();
    assert_eq!(task["agent"], "mcp");
    assert_eq!(task["tool_calls"], 3, "{task}");
    assert_eq!(ending(&task["transition"]), "abandoned/session_ended");
    world.replays(task["session"].as_str().unwrap());
    gone(&world);
}

#[test]
fn the_same_call_over_and_over_is_nudged_then_denied_then_halted() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let mut story: Vec<(&str, String)> = Vec::new();
    for _ in 0..40 {
        let result = client.call("echo", json!({ "text": "again" }));
        let said = text(&result);
        let kind = match (result["isError"].as_bool().unwrap(), said.as_str()) {
            (false, "again") => "ran",
            (false, _) => "nudged",
            (true, said) if said.contains("this task is over and no further tool") => "halted",
            (true, _) => "denied",
        };
        if story.last().is_none_or(|(before, _)| *before != kind) {
            story.push((kind, said));
        }
    }
    let kinds: Vec<&str> = story.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(
        kinds,
        ["ran", "nudged", "ran", "denied", "halted", "denied"],
        "{story:?}"
    );
    let (_, nudge) = &story[1];
    assert!(
        nudge.starts_with("again\n"),
        "advice stands behind: {nudge}"
    );
    // After the halt one fixed line, for any tool.
    let (_, fixed) = story.last().unwrap();
    assert_eq!(client.refused("release", json!({})), *fixed);
    assert_eq!(fixed.lines().count(), 1, "{fixed}");
    assert!(log(&world).iter().all(|line| line == "call echo"));
    let (code, stderr) = client.bye();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(world.ending(), "loop_detected/generic_repeat");
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_what_is_wrong() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let said = client.refused("echo", json!({ "text": 3 }));
    assert!(said.contains("do not fit the schema of 'echo'"), "{said}");
    assert!(said.contains("text"), "{said}");
    let said = client.refused("echo", json!({ "text": "x", "txet": "y" }));
    assert!(said.contains("txet"), "{said}");
    let said = client.refused("ehco", json!({ "text": "x" }));
    assert!(said.contains("did you mean 'echo'?"), "{said}");
    assert_eq!(client.ran("echo", json!({ "text": "x" })), "x");
    client.bye();
    assert_eq!(log(&world), ["call echo", "end"]);
    // They count, and detectors see how they end.
    assert_eq!(world.task()["tool_calls"], 4);
    let failed = world.inputs(world.task()["session"].as_str().unwrap());
    let failed = failed
        .iter()
        .filter(|input| matches!(input, Input::ToolReturned(returned) if returned.error));
    assert_eq!(failed.count(), 3);
}

#[test]
fn commands_and_writes_of_tools_are_judged_as_such() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    for args in [
        json!({ "command": "cd sub && git push" }),
        json!({ "cmd": ["git", "push"] }),
    ] {
        let said = client.refused("run", args);
        assert!(said.contains("a person pushes"), "{said}");
    }
    assert_eq!(client.ran("run", json!({ "command": "true" })), "done");
    let said = client.refused("write_file", json!({ "path": "sums/1", "content": "" }));
    assert!(said.contains("sums"), "{said}");
    let there = format!("file://{}", world.root().join("sums/2").display());
    client.refused("write_file", json!({ "uri": there }));
    assert_eq!(
        client.ran("write_file", json!({ "path": "other", "content": "" })),
        "done"
    );
    client.bye();
    assert_eq!(log(&world), ["call run", "call write_file", "end"]);
}

#[test]
fn what_a_person_has_to_approve_waits_for_them() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let said = client.refused("publish", json!({ "page": 1 }));
    let id = waiting(&world);
    assert!(said.contains("it leaves this machine"), "{said}");
    assert!(said.contains(&format!("checkrein approve {id}")), "{said}");
    let shown = approve(&world, &id);
    assert!(shown.stdout.contains("mcp__files__publish"), "{shown:?}");
    // Exactly this call, once.
    client.refused("publish", json!({ "page": 2 }));
    assert_eq!(client.ran("publish", json!({ "page": 1 })), "done");
    client.refused("publish", json!({ "page": 1 }));
    assert_eq!(log(&world), ["call publish"]);
    client.bye();
}

#[test]
fn what_a_person_denied_is_refused_with_their_reason() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    client.refused("publish", json!({}));
    deny(&world, &waiting(&world));
    let said = client.refused("publish", json!({}));
    assert!(said.contains("use a branch"), "{said}");
    client.bye();
}

#[test]
fn everything_else_passes_as_it_is() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let id = client.begin("tools/list", json!({}));
    let listed = client.hear_line();
    let mut bare = world.hermetic("python3");
    bare.arg(SERVER).env("MCP_LOG", world.outside("bare"));
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
    let said = feed(&mut bare, format!("{request}\n").as_bytes());
    // To the byte: order, annotations, and what nobody here knows of.
    assert_eq!(said.stdout.trim_end(), listed);
    assert!(listed.contains("x-unknown"), "{listed}");
    // An error of the server's, and a request of its own with the client's answer.
    let answer = client.ask("resources/list", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    client.begin("ask/back", json!({}));
    let asked = client.hear();
    assert_eq!(asked["method"], "roots/list", "{asked}");
    client.hear();
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "roots": [] } }));
    client.ran("release", json!({}));
    assert_eq!(log(&world), ["answer {\"roots\": []}", "call release"]);
    client.bye();
}

#[test]
fn a_call_is_cancelled_and_two_are_open_at_once() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let first = client.begin("tools/call", json!({ "name": "wait" }));
    assert_eq!(client.hear()["params"]["data"], "waits");
    // An id that is open cannot be used again.
    client.send(&json!({ "jsonrpc": "2.0", "id": first, "method": "tools/call", "params": { "name": "release" } }));
    assert!(
        client.hear()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("this id is in use")
    );
    let second = client.begin(
        "tools/call",
        json!({ "name": "wait", "arguments": { "n": 2 } }),
    );
    assert_eq!(client.hear()["params"]["data"], "waits");
    let cancel = json!({ "requestId": first, "reason": "changed my mind" });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }));
    assert_eq!(client.hear()["params"]["data"], "cancelled");
    let third = client.begin("tools/call", json!({ "name": "release" }));
    let mut answered: Vec<u64> = (0..3)
        .map(|_| client.hear()["id"].as_u64().unwrap())
        .collect();
    answered.sort_unstable();
    // This server answers what was cancelled all the same.
    assert_eq!(answered, [first, second, third]);
    assert_eq!(log(&world)[2], format!("cancelled {first}"));
    client.bye();
    let inputs = world.inputs(world.task()["session"].as_str().unwrap());
    let failed: Vec<bool> = inputs
        .iter()
        .filter_map(|input| match input {
            Input::ToolReturned(returned) => Some(returned.error),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [true, false, false], "the cancelled one failed");
}

#[test]
fn ten_megabytes_come_through() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let bytes = 10_000_000;
    assert_eq!(client.ran("big", json!({ "bytes": bytes })).len(), bytes);
    assert_eq!(client.ran("echo", json!({ "text": "x" })), "x");
    client.bye();
}

#[test]
fn what_a_server_prints_beside_messages_is_kept_from_the_client() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    assert_eq!(client.ran("stray", json!({})), "after");
    let (code, stderr) = client.bye();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("DEBUG: not"), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "{stderr}");
}

/// The server ends, or is ended, during a call of this tool.
fn lost(world: &World, tool: &str, why: &str) {
    let mut client = proxied(world);
    let waiting = client.begin("resources/list", json!({}));
    assert_eq!(client.hear()["id"], waiting);
    let said = client.refused(tool, json!({}));
    assert!(said.contains(why), "{said}");
    let (code, stderr) = client.over();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(why), "{stderr}");
    assert_eq!(world.ending(), "abandoned/session_ended");
    gone(world);
}

#[test]
fn a_server_that_dies_is_told_of() {
    let Some(world) = world() else { return };
    lost(
        &world,
        "die",
        "the server 'python3' ended with exit status 3",
    );
}

#[test]
fn a_server_that_floods_its_stdout_is_ended() {
    let Some(world) = world() else { return };
    lost(
        &world,
        "flood",
        "floods its stdout with what is no MCP message",
    );
}

#[test]
fn a_server_whose_message_never_ends_is_ended() {
    let Some(world) = world() else { return };
    lost(&world, "endless", "it is longer than 32 MiB");
}

#[test]
fn a_server_that_never_answers_is_ended() {
    let Some(world) = world() else { return };
    let mute = ["python3", SERVER, "mute"];
    let mut client = Client::raw(&world, &through(&["--start", "1s"], &mute));
    let answer = client.ask("initialize", json!({}));
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("has not answered within 1.0 s"), "{said}");
    assert!(said.contains("--start"), "{said}");
    assert_eq!(client.over().0, Some(1));
    gone(&world);
}

#[test]
fn a_server_that_cannot_be_started_is_named() {
    let world = World::new();
    for (options, what, code) in [
        (&["--", "no-such-server"][..], "'no-such-server'", 1),
        (&["--start", "soon", "--", "true"], "not 'soon'", 2),
        (&[], "<CMD>", 2),
    ] {
        let said = world.says(&[&["mcp-proxy"], options].concat());
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(said.stderr.contains(what), "{said:?}");
        assert_eq!(said.stdout, "");
    }
    world.config("[caps]\ntool_calls = 0\n");
    let said = world.says(&["mcp-proxy", "--", "true"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("tool_calls"), "{said:?}");
}

#[test]
fn no_message_goes_round_the_gate() {
    let Some(world) = world() else { return };
    let mut client = proxied(&world);
    let delete = r#""params":{"name":"delete","arguments":{}}"#;
    for line in [
        format!(r#"[{{"jsonrpc":"2.0","id":90,"method":"tools/call",{delete}}}]"#),
        format!(r#"{{"jsonrpc":"2.0","id":91,"method":"ping","method":"tools/call",{delete}}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"tools/call",{delete}}}"#),
        format!(r#"{{"id":92,"method":"tools/call",{delete}}}"#),
        r#"{"jsonrpc":"2.0","id":93,"method":"tools/call","params":{"name":"echo","Name":"delete"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":94,"method":"tools/call","params":{"arguments":{}}}"#.to_owned(),
        "tools/call".to_owned(),
    ] {
        client.write(&line);
        let answer = client.hear();
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
    }
    // Written otherwise, it is the same call.
    client.write(
        r#"{"jsonrpc":"2.0","id":95,"method":"tools\/call","params":{"name":"del\u0065te"}}"#,
    );
    assert_eq!(client.hear()["result"]["isError"], true);
    // What some read as the method does not reach the server.
    client.write(&format!(
        r#"{{"jsonrpc":"2.0","id":96,"method":"ping","Method":"tools/call",{delete}}}"#
    ));
    assert_eq!(client.hear()["error"]["code"], -32601);
    client.bye();
    assert_eq!(log(&world), ["end"]);
}

#[test]
fn a_person_can_name_the_server() {
    let Some(world) = world() else { return };
    let mut client = named(&world, &["--name", "shop"]);
    assert_eq!(client.ran("delete", json!({})), "done");
    client.bye();
    world.write(
        "rules/own.rules",
        "prefix_rule([\"mcp\", \"shop\"], \"forbidden\")\n",
    );
    let mut client = named(&world, &["--name", "shop"]);
    let said = client.refused("echo", json!({ "text": "x" }));
    assert!(said.contains("policy forbids `mcp shop`"), "{said}");
    client.bye();
}

#[test]
fn the_server_ends_with_its_proxy() {
    let Some(world) = world() else { return };
    for signal in [
        rustix::process::Signal::TERM,
        rustix::process::Signal::INT,
        rustix::process::Signal::KILL,
    ] {
        let mut client = proxied(&world);
        client.ran("release", json!({}));
        crate::world::signal(&client.process, signal);
        let (code, stderr) = client.over();
        let told = signal != rustix::process::Signal::KILL;
        assert_eq!(code, told.then_some(130), "{stderr}");
        let expected = match told {
            true => "abandoned/session_ended",
            false => "open",
        };
        assert_eq!(world.ending(), expected, "{stderr}");
        gone(&world);
    }
}

#[test]
fn the_same_rules_hold_for_agents_with_hooks() {
    let world = World::new();
    world.write("rules/own.rules", RULES);
    world.config("[policy]\nrules = [\"rules/*.rules\"]\n");
    let mut hook = world.checkrein(&["hook", "claude-code"]);
    let call = |tool: &str| {
        json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": world.root(),
                "tool_use_id": tool, "tool_name": tool, "tool_input": { "name": "x" } })
        .to_string()
    };
    let said = feed(&mut hook, call("mcp__files__delete").as_bytes());
    assert!(said.stdout.contains("nothing is deleted here"), "{said:?}");
    let mut hook = world.checkrein(&["hook", "claude-code"]);
    let said = feed(&mut hook, call("mcp__files__read").as_bytes());
    assert_eq!(said.stdout, "", "{said:?}");
    let said = world.says(&["policy", "check", "--", "mcp", "files", "delete"]);
    assert_eq!(said.code, Some(4), "{said:?}");
}

#[test]
fn a_second_model_vetoes_a_call_and_nothing_else_waits_for_it() {
    let Some(world) = world() else { return };
    world.config("[veto]\nenabled = true\nmodel = \"ollama/v\"\n");
    world.commit();
    let (asked, was_asked) = channel();
    let (release, released) = channel::<()>();
    let (asked, released) = (Mutex::new(asked), Mutex::new(released));
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |body, before| {
        asked.lock().unwrap().send(()).unwrap();
        let verdict = match before {
            0 => "veto",
            _ => "allow",
        };
        released.lock().unwrap().recv().unwrap();
        Ok(
            json!({ "ref": request_number_in_prompt(body), "verdict": verdict, "confidence": 0.9,
                   "reason": "nobody asked for it", "new_args": null })
            .to_string(),
        )
    })
    .unwrap();
    let mut command = world.checkrein(&through(&[], &["python3", SERVER]));
    command.env("OLLAMA_HOST", model.base_url());
    let mut client = Client::of(&world, command).greets("files");
    let vetoed = client.begin("tools/call", json!({ "name": "publish" }));
    was_asked.recv().unwrap();
    // Meanwhile everything else passes.
    let listed = client.ask("resources/list", json!({}));
    assert_eq!(listed["error"]["code"], -32601, "{listed}");
    release.send(()).unwrap();
    let answer = client.hear();
    assert_eq!(answer["id"], vetoed, "{answer}");
    let said = text(&answer["result"]);
    assert!(
        said.starts_with("[verifier-veto] mcp__files__publish: nobody asked for it"),
        "{said}"
    );
    // What the client takes back while it is judged never reaches the server.
    let id = client.begin("tools/call", json!({ "name": "delete" }));
    was_asked.recv().unwrap();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    client.ask("resources/list", json!({}));
    release.send(()).unwrap();
    let last = client.begin("tools/call", json!({ "name": "release" }));
    was_asked.recv().unwrap();
    release.send(()).unwrap();
    assert_eq!(client.hear()["id"], last);
    assert_eq!(log(&world), ["call release"]);
    client.bye();
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn a_protocol_without_a_handshake_passes_as_well() {
    let world = World::new();
    world.write(
        "rules/own.rules",
        "prefix_rule([\"mcp\", \"checkrein\", \"verify\"], \"forbidden\")\n",
    );
    world.config("[policy]\nrules = [\"rules/*.rules\"]\n");
    let ours = [env!("CARGO_BIN_EXE_checkrein"), "mcp"];
    let mut client = Client::raw(&world, &through(&[], &ours));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut call = |tool: &str| {
        let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
        let answer = client.ask("tools/call", params);
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        text(&answer["result"])
    };
    assert_eq!(call("approvals"), "Nothing waits for a person here.");
    // By the name that the server says in its answers.
    assert_eq!(call("verify"), "policy forbids `mcp checkrein verify`");
    client.bye();
}
