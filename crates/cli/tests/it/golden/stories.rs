//! What agents did and what became of it, one small story for each thing that a log can hold.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::logs::Told;
use crate::agent::{Agent, Answer, read};
use crate::mcp_client::Client;
use crate::terminal::Terminal;
use crate::world::{Said, World, feed, gone, read_line, signal, start};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");

/// Fails with a finding until `fixed` is there.
pub(super) const CHECK: &str = "[[verifier]]\nname = \"tests\"\ntimeout = \"60s\"\nrun = \"test -f fixed || { echo 'src/a.py:3: it is broken'; exit 1; }\"\n";

/// A repo with this config, which names no folder.
pub(super) fn world(config: &str) -> World {
    let world = World::new();
    world.config(config);
    world.commit();
    world
}

pub(super) fn hooks_of_claude_code() -> Told {
    let world = world(CHECK);
    let agent = Agent::named(&world, "claude-code", "hooks");
    let tell = |event: &str, more: Value| agent.tell(&agent.message(event, more));
    tell("SessionStart", json!({ "source": "startup" }));
    agent.prompt("mend it");
    agent.shell("cat src/a.py", "broken");
    tell("PostToolBatch", json!({ "tool_calls": [] }));
    world.write("work", "1");
    agent.stop().sent_back();
    world.write("work", "2");
    agent.stop_saying("It works for me.").sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop_saying("Mended."), Answer::Nothing);
    // Without a change nothing runs; work after the end opens the task anew.
    agent.prompt("how did you mend it?");
    assert_eq!(agent.stop_saying("Like this."), Answer::Nothing);
    world.write("more", "");
    assert_eq!(agent.stop_saying("And more."), Answer::Nothing);
    tell("SessionStart", json!({ "source": "compact" }));
    agent.prompt("again");
    tell("StopFailure", json!({ "error": "rate_limit" }));
    agent.prompt("and again");
    tell("StopFailure", json!({ "error": "max_output_tokens" }));
    tell("SessionStart", json!({ "source": "clear" }));
    agent.prompt("the last");
    tell("SessionEnd", json!({ "reason": "logout" }));
    Told::of(&world, "hooks")
}

pub(super) fn hooks_of_codex() -> Told {
    let world = world(CHECK);
    let agent = Agent::named(&world, "codex", "hooks");
    agent.prompt("mend it");
    agent.shell("npm install left-pad", "added 1 package");
    world.write("work", "1");
    agent.stop().sent_back();
    agent.shell("cd src && ls | wc -l", "1");
    agent.stop().sent_back();
    agent.stop().notice();
    // Given up is given up; a better ending takes its place.
    world.write("fixed", "");
    agent.stop();
    Told::of(&world, "hooks")
}

/// Answers as the call has it.
const LAYERS: &str = r#"
[[middleware]]
name = "calls"
on = ["before_tool"]
run = '''case "$(cat)" in
*frozen*) echo '{"answer": "deny", "reason": "nothing is pushed today"}' ;;
*prod.example*) echo '{"answer": "rewrite", "args": {"command": "ssh test.example"}, "reason": "not on prod"}' ;;
*slowly*) echo '{"answer": "nudge", "reason": "there is a faster way"}' ;;
*payroll*) echo '{"answer": "ask", "reason": "a person decides"}' ;;
*offline*) echo '{"answer": "cannot_tell", "reason": "its service is down"}' ;;
*) echo '{"answer": "pass"}' ;;
esac'''

[[middleware]]
name = "silent"
on = ["before_tool"]
run = "true"
stance = "allow"
order = 1

[[middleware]]
name = "notes"
on = ["session_start", "round_end", "before_stop", "session_end"]
run = '''test -e notes && echo '{"answer": "pass"}' || { grep -q before_stop && echo '{"answer": "deny", "reason": "the notes are missing"}'; true; }'''
"#;

pub(super) fn middleware() -> Told {
    let world = world(&format!("{CHECK}{LAYERS}"));
    let agent = Agent::named(&world, "claude-code", "layers");
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    agent.prompt("release it");
    for command in [
        "ls",
        "echo frozen",
        "ssh prod.example",
        "ls slowly",
        "cat offline",
    ] {
        agent.shell(command, "");
    }
    // A question of the agent's own, which a person answers there.
    let asked = agent.call("asked", "cat payroll").to_string();
    let said = feed(&mut agent.hook(), asked.as_bytes());
    assert!(said.stdout.contains("\"ask\""), "{said:?}");
    agent.tell(&agent.result("asked", "cat payroll", ""));
    agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] })));
    world.write("work", "1");
    world.write("fixed", "");
    agent.stop().sent_back();
    world.write("notes", "");
    agent.stop();
    agent.tell(&agent.message("SessionEnd", json!({ "reason": "logout" })));
    Told::of(&world, "layers")
}

pub(super) fn patches() -> Told {
    let world = world("");
    world.write("src/a.txt", "one\ntwo\nthree\n");
    world.commit();
    let agent = Agent::named(&world, "codex", "patches");
    agent.prompt("change it");
    let right =
        "*** Begin Patch\n*** Update File: src/a.txt\n@@\n one\n-two\n+TWO\n*** End Patch\n";
    let outside = "*** Begin Patch\n*** Add File: ../out.txt\n+x\n*** End Patch\n";
    for patch in [right, &right.replace("-two", "-tow"), outside] {
        let call = json!({
            "tool_name": "apply_patch", "tool_input": { "command": patch }, "tool_use_id": agent.next_id(),
        });
        agent.tell(&agent.message("PreToolUse", call));
    }
    agent.shell(
        &format!("apply_patch <<'EOF'\n{}EOF", right.replace("-two", "-tow")),
        "",
    );
    world.write("src/a.txt", "one\nTWO\nthree\n");
    agent.stop();
    Told::of(&world, "patches")
}

/// A sub-agent that wrote is sent back; the hook of its next stop dies while the check runs, and
/// the main conversation stops meanwhile.
pub(super) fn sub_agents() -> Told {
    let config = "[subagents]\nverify = \"writers\"\n\n[[verifier]]\nname = \"tests\"\ntimeout = \"60s\"\nrun = \"sh check.sh\"\n";
    let world = world(config);
    world.write(
        "check.sh",
        "[ ! -p ../go ] || { echo ready > ../ready; read go < ../go; }\ntest -f fixed\n",
    );
    world.commit();
    let agent = Agent::named(&world, "claude-code", "subs");
    agent.prompt("mend it");
    let below = |event: &str, more: Value| {
        let mut message = agent.message(event, more);
        message["agent_id"] = json!("below");
        message["agent_type"] = json!("general-purpose");
        message
    };
    let write = json!({ "tool_name": "Write", "tool_use_id": "sub", "tool_input": { "file_path": world.root().join("work"), "content": "x" } });
    agent.tell(&below("PreToolUse", write.clone()));
    world.write("work", "x");
    let mut written = write;
    written["tool_response"] = json!({ "filePath": "work", "success": true });
    agent.tell(&below("PostToolUse", written));
    let stop = |text: &str| {
        below(
            "SubagentStop",
            json!({ "stop_hook_active": false, "last_assistant_message": text }),
        )
    };
    agent.tell(&stop("Written.")).sent_back();
    world.write("work", "y");
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let killed = start(
        &mut agent.hook(),
        stop("Written again.").to_string().as_bytes(),
    );
    read_line(&ready);
    signal(&killed, Signal::KILL);
    let said = Said::of(&killed.wait_with_output().unwrap());
    assert_eq!(
        said.code,
        None,
        "{:?}",
        read("claude-code", "SubagentStop", &said)
    );
    gone(&world);
    std::fs::remove_file(go).unwrap();
    std::fs::remove_file(ready).unwrap();
    world.write("fixed", "");
    agent.stop();
    Told::of(&world, "subs")
}

pub(super) fn config_edited() -> Told {
    let world = world(CHECK);
    let agent = Agent::named(&world, "claude-code", "edited");
    agent.prompt("mend it");
    world.write("work", "1");
    world.config(&CHECK.replace("test -f fixed", "true"));
    agent.stop().sent_back();
    let sealed = Terminal::new(&world).typing("y\n").says(&["seal"]);
    assert_eq!(sealed.code, Some(0), "{sealed:?}");
    agent.stop();
    agent.prompt("once more");
    world.write("work", "2");
    world.write(".gitignore", "work\n");
    agent.stop();
    Told::of(&world, "edited")
}

/// The last good policy goes on, with the mistake in it.
pub(super) fn config_broken() -> Told {
    let world = world(CHECK);
    world.write("fixed", "");
    let first = Agent::named(&world, "claude-code", "good");
    first.prompt("mend it");
    world.write("work", "1");
    assert_eq!(first.stop(), Answer::Nothing);
    world.config("[caps]\ntool_calls = \"many\"\n");
    let agent = Agent::named(&world, "codex", "broken");
    agent
        .tell(&agent.message("UserPromptSubmit", json!({ "prompt": "more" })))
        .notice();
    agent.shell("ls", "work");
    world.write("work", "2");
    agent.stop().notice();
    Told::of(&world, "broken")
}

pub(super) fn loops_and_caps() -> Told {
    let config = "[caps]\ntool_calls = 24\ntoken_budget = 100_000\ncost_usd = 9.5\nmax_iterations = 50\nwall_clock = \"1h\"\n\n[session_caps]\ncontinues = 9\n\n";
    let world = world(&format!("{config}{CHECK}"));
    let tell = |line: Value| {
        let mut line = line;
        line["session"] = json!("loops");
        feed(
            &mut world.checkrein(&["hook", "generic"]),
            line.to_string().as_bytes(),
        )
        .json()
    };
    tell(json!({ "type": "session", "agent": "mine", "goal": "mend it" }));
    tell(json!({ "type": "user", "text": "mend it" }));
    tell(
        json!({ "type": "assistant", "text": "I look.", "tokens": 50, "usage": { "input_tokens": 900, "output_tokens": 50 } }),
    );
    // A word at ten, denied at twenty, ended at the next. Then the cap, its one word of grace, and
    // the end.
    for n in 0..22 {
        tell(
            json!({ "type": "tool_call", "id": format!("call-{n}"), "tool": "read", "args": { "path": "a" } }),
        );
        tell(
            json!({ "type": "tool_result", "id": format!("call-{n}"), "result": "same", "error": n == 3 }),
        );
    }
    world.write("work", "1");
    tell(json!({ "type": "stop", "text": "Done." }));
    tell(json!({ "type": "user", "text": "once more" }));
    for n in 0..27 {
        tell(
            json!({ "type": "tool_call", "tool": "read", "args": { "path": format!("file-{n}") }, "result": "" }),
        );
    }
    tell(json!({ "type": "stop", "text": "Done." }));
    Told::of(&world, "loops")
}

pub(super) fn two_entries() -> Told {
    let world = world(CHECK);
    let entry = |source| {
        let mut agent = Agent::source(&world, "claude-code", source);
        agent.session = "entries".to_owned();
        agent
    };
    let (user, project) = (entry("user"), entry("project"));
    let both = |act: &dyn Fn(&Agent<'_>)| [&user, &project].into_iter().for_each(act);
    both(&|agent| agent.prompt("mend it"));
    both(&|agent| {
        agent.tell(&agent.call("call", "ls"));
    });
    world.write("work", "1");
    both(&|agent| {
        agent.stop().sent_back();
    });
    world.write("fixed", "");
    both(&|agent| assert_eq!(agent.stop(), Answer::Nothing));
    Told::of(&world, "entries")
}

/// By a stance of our own instead of a verdict.
pub(super) fn switched_off() -> Told {
    let world = world(CHECK);
    let agent = Agent::named(&world, "claude-code", "off");
    agent.prompt("mend it");
    world.write("work", "1");
    let off = ["off", "--for", "1h", "--reason", "the build server is down"];
    Terminal::new(&world).says(&off);
    agent.shell("ls", "work");
    agent.stop().notice();
    Terminal::new(&world).says(&["on"]);
    agent.stop().sent_back();
    Told::of(&world, "off")
}

pub(super) fn wrapped_command() -> Told {
    let world = world(CHECK);
    let said = world.says(&[
        "run",
        "--",
        "sh",
        "-c",
        "echo $CHECKREIN_ATTEMPT > work; [ $CHECKREIN_ATTEMPT = 1 ]",
    ]);
    assert_eq!(said.code, Some(1), "{said:?}");
    Told::of(&world, world.task()["session"].as_str().unwrap())
}

pub(super) fn schema_verifier() -> Told {
    let config = "accept = \"report\"\n[[verifier]]\nname = \"report\"\nkind = \"schema\"\nschema = \"s.json\"\ntarget = \"report.json\"\n";
    let world = world(config);
    world.write(
        "s.json",
        r#"{ "type": "object", "required": ["findings"] }"#,
    );
    world.commit();
    let agent = Agent::named(&world, "codex", "schema");
    agent.prompt("write the report");
    world.write("report.json", "{}");
    agent.stop().sent_back();
    world.write("report.json", "{ \"findings\": [] }");
    assert_eq!(agent.stop(), Answer::Nothing);
    Told::of(&world, "schema")
}

/// The command goes on past the time that it has.
pub(super) fn out_of_time() -> Told {
    let world = world(&format!("[caps]\nwall_clock = \"300ms\"\n\n{CHECK}"));
    let said = world.says(&["run", "--", "sh", "-c", "echo 1 > work; sleep 613"]);
    assert_eq!(said.code, Some(12), "{said:?}");
    Told::of(&world, world.task()["session"].as_str().unwrap())
}

pub(super) fn interrupted() -> Told {
    let world = world(CHECK);
    let ready = world.pipe("ready");
    let script = "echo 1 > work; echo ready > ../ready; sleep 614";
    let mut run = world.checkrein(&["run", "--", "sh", "-c", script]);
    let run = start(&mut run, b"");
    read_line(&ready);
    signal(&run, Signal::INT);
    let said = Said::of(&run.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    gone(&world);
    Told::of(&world, world.task()["session"].as_str().unwrap())
}

/// What an agent's transcripts tell, read from where the last reading ended.
pub(super) fn token_use() -> Told {
    let world = world(&format!("[caps]\ntoken_budget = 100_000\n\n{CHECK}"));
    let agent = Agent::named(&world, "claude-code", "tokens");
    let transcript = world.outside("transcript.jsonl");
    let mut text = String::new();
    let mut answers = |id: &str, output: u64| {
        let usage =
            json!({ "input_tokens": 100, "output_tokens": output, "cache_read_input_tokens": 7 });
        let row = json!({ "type": "assistant", "message": { "id": id, "usage": usage } });
        text += &format!("{row}\n");
        std::fs::write(&transcript, &text).unwrap();
    };
    let tell = |mut message: Value| {
        message["transcript_path"] = json!(transcript);
        agent.tell(&message)
    };
    answers("before", 5);
    tell(agent.message("SessionStart", json!({ "source": "resume" })));
    tell(agent.message("UserPromptSubmit", json!({ "prompt": "mend it" })));
    answers("first", 40);
    tell(agent.call("call", "ls"));
    tell(agent.result("call", "ls", "work"));
    answers("first", 60);
    answers("second", 70);
    world.write("work", "1");
    tell(agent.stop_message(false, "Done.")).sent_back();
    answers("third", 80);
    world.write("fixed", "");
    assert_eq!(tell(agent.stop_message(true, "Done.")), Answer::Nothing);
    Told::of(&world, "tokens")
}

/// A plug-in that cuts what a server says.
const CUTS: &str = r#"
[[middleware]]
name = "cut"
on = ["after_tool"]
run = '''grep -q hunter && echo '{"answer": "rewrite", "text": "[cut]"}' || echo '{"answer": "pass"}' '''
"#;

/// A client and a server that know nothing of it; `None` where there is no Python for the server.
pub(super) fn mcp_proxy() -> Option<Told> {
    let world = world(&format!("[policy]\nrules = [\"own.rules\"]\n{CUTS}"));
    if feed(world.hermetic("python3").args(["-c", "pass"]), b"").code != Some(0) {
        return None;
    }
    let rule = "prefix_rule(['mcp', 'files', 'delete'], 'forbidden', justification = 'nothing is deleted here')\n";
    world.write("own.rules", rule);
    world.commit();
    let mut client = Client::greeted(&world, &["mcp-proxy", "--", "python3", SERVER], "files");
    client.ran("echo", json!({ "text": "hunter2" }));
    client.refused("delete", json!({ "name": "x" }));
    client.ran("release", json!({}));
    client.bye();
    Some(Told::of(&world, world.task()["session"].as_str().unwrap()))
}
