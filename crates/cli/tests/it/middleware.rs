//! Layers of middleware at the front doors: behind hooks, before an MCP server, in `show`.

use std::path::Path;

use checkrein_scripted::coder::{
    PROVIDER_ENTRIES, ScriptedCoderConversation, nth_or_last_scripted_turn,
};
use checkrein_scripted::reviewer::request_number_in_prompt;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn, ScriptedReviewer};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::coder;
use crate::mcp_client::{Client, text};
use crate::world::{World, feed};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");
const FREEZE: &str = include_str!("../../../../examples/middleware/freeze.sh");
const CUT: &str = include_str!("../../../../examples/middleware/cut_secrets.py");
const CONFIG: &str = include_str!("../../../../examples/middleware/checkrein.toml");

/// The repo of the page: both examples in it, and a check that counts its runs.
fn world(more: &str) -> World {
    let world = World::new();
    world.write("freeze.sh", FREEZE);
    world.write("cut_secrets.py", CUT);
    world.config(&format!("{CONFIG}{}{more}", world.counted("tests", "true")));
    world.commit();
    world
}

/// The same with the example that hooks can obey.
fn hooked(more: &str) -> World {
    let world = world("");
    let freeze = layer("freeze", "\"before_tool\"", "sh freeze.sh", "");
    let tests = world.counted("tests", "true");
    world.config(&format!("{freeze}{tests}{more}"));
    world.commit();
    world
}

fn has_python(world: &World) -> bool {
    feed(world.hermetic("python3").args(["-c", "pass"]), b"").code == Some(0)
}

fn layer(name: &str, on: &str, run: &str, more: &str) -> String {
    format!("[[middleware]]\nname = \"{name}\"\non = [{on}]\nrun = '''{run}'''\n{more}\n")
}

/// What the newest task's layers said, from `show --json`.
fn layers(world: &World) -> Vec<Value> {
    let document = world.says(&["show", "--json"]).json();
    document["layers"].as_array().unwrap().clone()
}

fn says(world: &World) -> Vec<String> {
    let of = |one: &Value| {
        let text = |key: &str| one[key].as_str().unwrap().to_owned();
        assert!(one["ms"].is_u64() && one["seq"].is_u64(), "{one}");
        format!("{} {} {}", text("layer"), text("stage"), text("says"))
    };
    layers(world).iter().map(of).collect()
}

#[test]
fn a_call_that_a_plug_in_in_shell_refuses_does_not_run() {
    for name in BOTH {
        let world = hooked("");
        let agent = Agent::new(&world, name);
        agent.prompt("Release it.");
        assert_eq!(agent.shell("git push", "pushed"), Answer::Nothing);
        world.write("FREEZE", "until Monday\n");
        let answer = agent.shell("git push origin main", "");
        assert!(
            answer.denied().contains(
                "checkrein: 'freeze' refuses this call: nothing is pushed while FREEZE is there"
            ),
            "{answer:?}"
        );
        assert_eq!(agent.shell("git log -1", "one"), Answer::Nothing);
        agent.stop();
        assert_eq!(
            says(&world),
            [
                "freeze before_tool pass",
                "freeze before_tool deny",
                "freeze before_tool pass"
            ],
            "{name}"
        );
        let why = world.says(&["show", "--why"]).stdout;
        let lines: Vec<&str> = why.lines().collect();
        let at = lines
            .iter()
            .position(|line| *line == "middleware:")
            .unwrap();
        assert_eq!(lines[at + 1], "  Bash git push", "{why}");
        assert!(
            lines[at + 2].starts_with("    before_tool     'freeze' passes ("),
            "{why}"
        );
        assert!(
            lines[at + 4].contains("'freeze' refuses: nothing is pushed while FREEZE is there"),
            "{why}"
        );
        assert_eq!(world.ending(), "task_complete", "{name}");
        world.replays(&agent.session);
    }
}

#[test]
fn a_call_that_a_plug_in_would_make_with_other_arguments_is_made_by_the_agent() {
    let run = r#"if grep -q prod.example; then echo '{"answer": "rewrite", "args": {"command": "ssh test.example"}, "reason": "not on prod"}'; else echo '{"answer": "pass"}'; fi"#;
    for name in BOTH {
        let world = hooked(&layer("hosts", "\"before_tool\"", run, ""));
        let agent = Agent::new(&world, name);
        agent.prompt("How long is it up?");
        let answer = agent.shell("ssh prod.example", "");
        let text = answer.denied();
        for part in ["'hosts'", "not on prod", "ssh test.example"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(agent.shell("ssh test.example", "up"), Answer::Nothing);
        world.replays(&agent.session);
    }
}

#[test]
fn a_plug_in_in_python_rewrites_what_an_mcp_server_said() {
    let world = world("");
    if !has_python(&world) {
        return;
    }
    let command = ["mcp-proxy", "--", "python3", SERVER];
    let mut client = Client::greeted(&world, &command, "files");
    let said = client.ran("echo", json!({ "text": "user = ada, password = hunter2" }));
    assert_eq!(said, "user = ada, password = [cut]");
    assert_eq!(client.ran("echo", json!({ "text": "hello" })), "hello");
    let said = client.ran("big", json!({ "bytes": 30_000 }));
    assert!(
        said.len() < 21_000 && said.contains("characters cut"),
        "{}",
        said.len()
    );
    client.bye();
    assert_eq!(
        says(&world),
        [
            "freeze before_tool pass",
            "cut-secrets after_tool rewrite",
            "freeze before_tool pass",
            "cut-secrets after_tool pass",
            "freeze before_tool pass",
            "cut-secrets after_tool rewrite",
        ]
    );
    let why = world.says(&["show", "--why"]).stdout;
    assert!(why.contains("  mcp__files__echo came back"), "{why}");
    assert!(
        why.contains("after_tool      'cut-secrets' rewrote it ("),
        "{why}"
    );
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn a_secret_is_cut_wherever_a_result_has_it() {
    let world = world("");
    if !has_python(&world) {
        return;
    }
    let command = ["mcp-proxy", "--", "python3", SERVER];
    let mut client = Client::greeted(&world, &command, "files");
    let secret = "password = hunter2";
    let hello = json!({ "type": "text", "text": "hello" });
    let file = json!({ "type": "resource", "resource": { "uri": "file:///a", "text": secret } });
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": secret });
    for (result, expected) in [
        (
            json!({ "content": [hello], "structuredContent": { "password": "hunter2" } }),
            "hello\n{\"password\":\"[cut]\"}",
        ),
        (
            json!({ "content": [hello, file] }),
            "hello\npassword = [cut]",
        ),
        (json!({ "content": [hello, link] }), "hello"),
        (
            json!({ "content": [hello], "_meta": { "x": secret }, "y": secret }),
            "hello",
        ),
    ] {
        let said = client.call("answer", result);
        assert_eq!(text(&said), expected, "{said}");
        assert!(!said.to_string().contains("hunter2"), "{said}");
    }
    client.bye();
}

#[test]
fn an_answer_that_nobody_waits_for_goes_past_no_plug_in() {
    let world = world("");
    if !has_python(&world) {
        return;
    }
    let command = ["mcp-proxy", "--", "python3", SERVER];
    let mut client = Client::greeted(&world, &command, "files");
    // The second may be judged still when the server answers it: it has not heard of it.
    let calls = [(); 2].map(|()| client.begin("tools/call", json!({ "name": "unasked" })));
    for call in calls {
        let answer = client.hear();
        assert_eq!(answer["id"], call, "{answer}");
        assert_eq!(text(&answer["result"]), "asked");
    }
    // A client that takes a call back may get its answer all the same.
    let taken_back = client.begin("tools/call", json!({ "name": "wait" }));
    assert_eq!(client.hear()["params"]["data"], "waits");
    let cancel = json!({ "requestId": taken_back });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel }));
    assert_eq!(client.hear()["params"]["data"], "cancelled");
    assert_eq!(client.ran("release", json!({})), "released");
    assert_eq!(client.ran("echo", json!({ "text": "last" })), "last");
    let (code, stderr) = client.bye();
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr.matches("nobody waits for").count(), 1, "{stderr}");
}

#[test]
fn what_a_plug_in_could_not_look_at_no_client_gets() {
    let broken = layer(
        "broken",
        "\"after_tool\"",
        "echo oops >&2; exit 3",
        "order = 1",
    );
    let world = world(&broken);
    if !has_python(&world) {
        return;
    }
    let command = ["mcp-proxy", "--", "python3", SERVER];
    let mut client = Client::greeted(&world, &command, "files");
    let result = client.call("echo", json!({ "text": "hunter2" }));
    assert_eq!(
        text(&result),
        "checkrein: 'broken' could not judge this result (it ended with exit status 3: oops), and nothing goes past it unjudged"
    );
    assert!(!result.to_string().contains("hunter2"), "{result}");
    // An error of the protocol is looked at, too, and its words take the place of all of it.
    let fail = json!({ "name": "publish", "arguments": { "fail": "hunter2" } });
    let answer = client.ask("tools/call", fail);
    assert_eq!(answer["error"]["code"], -32007, "{answer}");
    assert!(
        answer.to_string().contains("'broken' could not judge"),
        "{answer}"
    );
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
    client.bye();
}

#[test]
fn a_stop_that_a_plug_in_refuses_is_sent_back_before_the_checks() {
    let world = hooked(&layer(
        "notes",
        "\"before_stop\"",
        r#"test -e NOTES && echo '{"answer": "pass"}' || echo '{"answer": "deny", "reason": "NOTES is missing"}'"#,
        "",
    ));
    for name in BOTH {
        let agent = Agent::named(&world, name, &format!("session-{name}"));
        agent.prompt("Do it.");
        world.write("work", name);
        let answer = agent.stop();
        assert!(
            answer.sent_back().contains("notes: NOTES is missing"),
            "{answer:?}"
        );
        let ran = world.runs("tests");
        world.write("NOTES", name);
        agent.stop();
        assert_eq!(world.runs("tests"), ran + 1);
        assert_eq!(world.ending(), "task_complete");
        let asked = ["notes before_stop deny", "notes before_stop pass"];
        assert_eq!(says(&world), asked, "{name}");
        world.replays(&agent.session);
        std::fs::remove_file(world.root().join("NOTES")).unwrap();
    }
}

#[test]
fn a_failing_layer_blocks_or_leaves_the_ending_unverified() {
    let silent = |stance: &str| layer("silent", "\"before_tool\"", "true", stance);
    let world = hooked(&silent("stance = \"allow\""));
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("Do it.");
    assert_eq!(agent.shell("ls", "README"), Answer::Nothing);
    world.write("work", "done");
    agent.stop();
    assert_eq!(world.ending(), "unverified/passed_over");
    let why = world.says(&["show", "--why"]).stdout;
    assert!(
        why.contains("'silent' could not judge it, and its stance allowed that: it said nothing"),
        "{why}"
    );

    let world = hooked(&silent(""));
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("Do it.");
    let answer = agent.shell("ls", "README");
    assert!(
        answer
            .denied()
            .contains("'silent' could not judge this call"),
        "{answer:?}"
    );
}

#[test]
fn session_and_round_stages_reach_middleware() {
    let world = World::new();
    let seen = world.outside("seen");
    let run = format!("cat >> '{}'", seen.display());
    let on = "\"session_start\", \"round_end\", \"session_end\"";
    world.config(&layer("log", on, &run, "stance = \"allow\""));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    agent.prompt("Do it.");
    agent.shell("ls", "README");
    agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] })));
    agent.tell(&agent.message("SessionEnd", json!({ "reason": "exit" })));
    let lines = world.lines_outside("seen");
    let seen: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let stages: Vec<&str> = seen
        .iter()
        .map(|one| one["stage"].as_str().unwrap())
        .collect();
    assert_eq!(stages, ["session_start", "round_end", "session_end"]);
    for one in &seen {
        assert_eq!(one["schema"], "checkrein/middleware/1");
        assert_eq!(one["layer"], "log");
        assert_eq!(one["session"], agent.session.as_str());
        assert_eq!(one["agent"], "claude-code");
        assert_eq!(
            Path::new(one["root"].as_str().unwrap()),
            world.root().canonicalize().unwrap()
        );
    }
    assert_eq!(seen[0]["how"], "startup");
    assert_eq!(seen[1]["round"], 1);
    assert_eq!(seen[2]["why"], "exit");
}

#[test]
fn session_end_layers_do_not_delay_the_exit() {
    let world = World::new();
    if !has_python(&world) {
        return;
    }
    let more = "timeout = \"10m\"\nstance = \"allow\"";
    let slow = layer("slow", "\"session_end\"", "sleep 600; true", more);
    let quick = layer("quick", "\"session_end\"", "true", "");
    world.config(&format!("{quick}{slow}"));
    world.commit();
    let command = ["mcp-proxy", "--", "python3", SERVER];
    let mut client = Client::greeted(&world, &command, "files");
    client.ran("release", json!({}));
    crate::world::signal(&client.process, rustix::process::Signal::TERM);
    let (code, stderr) = client.over();
    assert_eq!(code, Some(130), "{stderr}");
    let layers = layers(&world);
    let says: Vec<&str> = layers
        .iter()
        .map(|one| one["says"].as_str().unwrap())
        .collect();
    assert_eq!(says, ["pass", "passed_over"], "{layers:?}");
    // Not for want of time.
    let why = layers[1]["reason"].as_str().unwrap();
    assert!(why.contains("it was given up"), "{why}");
}

#[test]
fn a_stage_that_hooks_never_reach_is_warned_about_once() {
    let world = world("");
    let agent = Agent::new(&world, "claude-code");
    let start = agent.message("SessionStart", json!({ "source": "startup" }));
    let said = feed(&mut agent.hook(), start.to_string().as_bytes());
    let warning = "middleware 'cut-secrets' is never asked at after_tool behind an agent's hooks";
    assert!(said.stderr.contains(warning), "{said:?}");
    let said = feed(
        &mut agent.hook(),
        agent.call("1", "ls").to_string().as_bytes(),
    );
    assert!(!said.stderr.contains("never asked"), "{said:?}");
}

#[test]
fn what_middleware_runs_is_no_agents_to_edit() {
    let world = hooked("");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("Do it.");
    let file = world.root().join("freeze.sh");
    let answer = agent.shell(&format!("echo true > '{}'", file.display()), "");
    assert!(answer.denied().contains("freeze.sh"), "{answer:?}");
    // By a way that nobody sees it is found all the same.
    world.write("freeze.sh", "echo '{\"answer\": \"pass\"}'\n");
    agent.stop();
    let why = world.why();
    assert!(why.contains("freeze.sh"), "{why}");
    let show = world.says(&["show"]).stdout;
    assert!(show.contains("edited: freeze.sh"), "{show}");
}

#[test]
fn mistakes_in_middleware_are_said() {
    let wrong = |text: &str, said: &str| {
        let world = World::new();
        world.config(text);
        let answer = world.says(&["check"]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains(said), "{said}: {}", answer.stderr);
    };
    wrong(
        &layer("a b", "\"before_tool\"", "x", ""),
        "must be letters, digits",
    );
    wrong(
        &layer("a", "", "x", ""),
        "it would never be asked; known: session_start, before_tool",
    );
    wrong(
        &layer("a", "\"before_tools\"", "x", ""),
        "not \"before_tools\"; did you mean \"before_tool\"?",
    );
    wrong(
        &layer("a", "\"before_tool\"", " ", ""),
        "run is missing; write the command",
    );
    wrong(
        &layer("a", "\"before_tool\"", "x", "timeout = \"1h\""),
        "must be 10m or less",
    );
    wrong(
        &layer("a", "\"before_tool\"", "x", "stance = \"ask\""),
        "stance must be \"block\" or \"allow\", not \"ask\"",
    );
    let twice = layer("a", "\"before_tool\"", "x", "");
    wrong(&format!("{twice}{twice}"), "'a' is used twice");
    wrong(
        "[middleware]\nname = \"a\"\n",
        "middleware is written with two brackets: [[middleware]]",
    );
}

#[test]
fn run_with_a_model_obeys_all_of_it() {
    let keeps = r#"echo '{"answer": "rewrite", "text": "(seen)"}'"#;
    let world = world(&layer("short", "\"persist_result\"", keeps, ""));
    if !has_python(&world) {
        return;
    }
    world.write("notes", "user = ada, password = hunter2\n");
    let script = |heard: &ScriptedCoderConversation| {
        let turns = [
            ScriptedCoderTurn::scripted_shell_call_turn("touch FREEZE"),
            ScriptedCoderTurn::scripted_shell_call_turn("git push"),
            ScriptedCoderTurn::scripted_shell_call_turn("cat notes"),
            ScriptedCoderTurn::scripted_shell_call_turn("echo 42 > answer"),
            ScriptedCoderTurn::scripted_text_turn("Done."),
        ];
        nth_or_last_scripted_turn(&turns, heard.turns)
    };
    let coder = ScriptedCoderServer::start_coder_model_server(script).unwrap();
    let (name, ..) = PROVIDER_ENTRIES[0];
    let args = ["--model", name, "--json", "do it"];
    let said = coder::says(&mut coder::run(&world, &coder, name, &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    let heard = coder.requests_to_scripted_coder();
    let told = |nth: usize, what: &str| heard[nth].full_text.contains(what);
    assert!(told(2, "nothing is pushed while FREEZE is there"));
    assert!(
        told(3, "password = [cut]") && !told(3, "hunter2"),
        "{}",
        heard[3].full_text
    );
    // It has seen it once; from then on the conversation has what is kept of it.
    assert!(
        told(4, "(seen)") && !told(4, "[cut]"),
        "{}",
        heard[4].full_text
    );
    let said: Vec<String> = says(&world);
    assert!(
        said.contains(&"short persist_result rewrite".to_owned()),
        "{said:?}"
    );
    assert!(
        said.contains(&"freeze before_tool deny".to_owned()),
        "{said:?}"
    );
    world.replays(world.task()["session"].as_str().unwrap());
}

#[test]
fn a_second_model_is_not_asked_about_what_a_layer_refuses() {
    let veto = "[veto]\nenabled = true\nmodel = \"ollama/v\"\nscope = \"all\"\n";
    let world = hooked(veto);
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        Ok(json!({
            "ref": request_number_in_prompt(body), "verdict": "allow", "confidence": 0.95, "reason": "", "new_args": null,
        })
        .to_string())
    })
    .unwrap();
    let mut agent = Agent::new(&world, "claude-code");
    agent.env = vec![("OLLAMA_HOST", model.base_url())];
    agent.prompt("Release it.");
    world.write("FREEZE", "");
    let answer = agent.shell("git push", "");
    assert!(answer.denied().contains("'freeze' refuses"), "{answer:?}");
    assert_eq!(model.received_request_bodies().len(), 0);
    assert_eq!(agent.shell("git log", "one"), Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 1);
}

#[test]
fn a_layer_ends_the_loop_by_its_own_name() {
    for name in BOTH {
        let world = World::new();
        let run = r#"grep -q 'third try' && echo '{"answer": "halt", "reason": "three tries are enough"}' || echo '{"answer": "pass"}'"#;
        world.config(&layer("tries", "\"before_tool\"", run, ""));
        world.commit();
        let agent = Agent::new(&world, name);
        agent.prompt("Try.");
        assert_eq!(agent.shell("echo first try", "no"), Answer::Nothing);
        let answer = agent.shell("echo third try", "no");
        let said = match &answer {
            Answer::Halted(said) | Answer::Denied(said) => said,
            other => panic!("{other:?}"),
        };
        assert!(
            said.contains("'tries' ends the work: three tries are enough"),
            "{said}"
        );
        assert_eq!(world.ending(), "loop_detected/tries", "{name}");
        let document = world.says(&["show", "--json"]).json();
        assert_eq!(document["transition"]["detail"], "tries", "{document}");
        world.replays(&agent.session);
    }
}

/// A detector that knows the rounds: a word at the second, the end at the third.
const ROUNDS: &str = r#"
[[detector]]
name = "rounds"
run = '''sh -c 'case $(cat) in *\"round\":3,*) echo "{\"answer\": \"halt\", \"reason\": \"round three\"}";; *\"round\":2,*) echo "{\"answer\": \"nudge\", \"reason\": \"look at the error first\"}";; esac''''
"#;

#[test]
fn a_detector_of_ones_own_has_words_and_ends_the_loop() {
    let world = World::new();
    world.config(ROUNDS);
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("Go on and on.");
    let round = || {
        agent.shell("make", "error");
        agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] })))
    };
    assert_eq!(round(), Answer::Nothing);
    let advice = round();
    assert!(
        matches!(&advice, Answer::Advice(text) if text.contains("'rounds' on this round: look at the error first")),
        "{advice:?}"
    );
    let over = round();
    assert!(
        matches!(&over, Answer::Halted(text) if text.contains("'rounds' ends the work: round three")),
        "{over:?}"
    );
    assert_eq!(world.ending(), "loop_detected/rounds");
    assert!(matches!(agent.shell("make", "error"), Answer::Denied(_)));
    assert_eq!(
        says(&world),
        [
            "rounds round_end pass",
            "rounds round_end nudge",
            "rounds round_end halt"
        ]
    );
    world.replays(&agent.session);
}

#[test]
fn a_detector_that_fails_changes_nothing() {
    let world = World::new();
    let tests = world.counted("tests", "true");
    world.config(&format!("[[detector]]\nname = \"slow\"\nrun = \"sleep 30\"\n[[detector]]\nname = \"dead\"\nrun = \"false\"\n{tests}"));
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("Do it.");
    agent.shell("touch a", "");
    let began = std::time::Instant::now();
    assert_eq!(
        agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] }))),
        Answer::Nothing
    );
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    world.write("a", "1");
    agent.stop();
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(
        says(&world),
        ["slow round_end passed_over", "dead round_end passed_over"]
    );
}
