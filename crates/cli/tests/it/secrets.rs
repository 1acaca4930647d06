//! What is secret is not kept: neither in the store, nor in the logs of checks, nor in any
//! other file of ours. What decides is as it would be without.

use std::path::Path;

use checkrein_core::event::Event;
use checkrein_core::input::Input;
use checkrein_scripted::coder::PROVIDER_ENTRIES;
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn};
use checkrein_store::{SqliteStore, Store as _};
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::approvals::{ids, unattended};
use crate::coder;
use crate::terminal::Terminal;
use crate::world::World;

/// A command or a text a line, with a secret of each kind that rules and programs know between « ».
const KINDS: &str = include_str!("../../../redaction/tests/commands_with_secrets.txt");

/// All bytes below a folder, by file.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            found.push((path.display().to_string(), bytes));
        }
    }
}

/// Checks that no file of ours holds this, and that some file says so of each kind.
fn nowhere(world: &World, secrets: &[&str], marks: &[&str]) {
    let mut found = Vec::new();
    files(&world.state(), &mut found);
    files(&world.root().join(".checkrein"), &mut found);
    assert!(found.iter().any(|(name, _)| name.ends_with("store.db")));
    assert!(found.iter().any(|(name, _)| name.ends_with(".log")));
    let holds = |bytes: &[u8], text: &str| {
        let text = text.as_bytes();
        bytes.windows(text.len()).any(|window| window == text)
    };
    for secret in secrets {
        for (name, bytes) in &found {
            assert!(!holds(bytes, secret), "{secret} is in {name}");
        }
    }
    for mark in marks {
        let mark = format!("[redacted:{mark}]");
        assert!(found.iter().any(|(_, bytes)| holds(bytes, &mark)), "{mark}");
    }
}

#[test]
fn a_planted_secret_is_in_no_file_of_ours() {
    for name in BOTH {
        // What a person writes into the config is kept as it is: it is what runs.
        let world = World::with_check("sh check.sh");
        world.write(
            "check.sh",
            "test -f fixed && exit 0
             echo \"src/a.py:3: refused $DEPLOY_SECRET\"
             echo 'error: no access with token=tok0123456789abc'
             printf -- '-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----\\n'
             exit 1
",
        );
        let mut agent = Agent::new(&world, name);
        agent.env = vec![("DEPLOY_SECRET", "hush \"now\" baby".to_owned())];
        agent.prompt("the key is sk-ant-api03-PLANTED-0001, the password: planted-0002!");
        agent.shell(
            "curl -u bot:planted-0003 https://me:planted-0004@example.com -H 'Authorization: Bearer planted-0005'",
            "",
        );
        agent.shell("mysql --password planted-0006 -e 'hush \"now\" baby'", "");
        agent.shell(
            "echo s\"k-ant-api03-PLANTED-0007\"; echo ghp_\"planted00080123456789\"",
            "",
        );
        world.write("work", "1");
        let answer = agent.stop_saying("I used hush \"now\" baby and AKIAPLANTED000000009.");
        let text = answer.sent_back();
        assert!(text.contains("[redacted:"), "the agent's copy, too: {text}");
        world.write("fixed", "");
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");
        world.replays(&agent.session);
        nowhere(
            &world,
            &[
                "sk-ant-api03-PLANTED",
                "planted-000",
                "planted0007",
                "AKIAPLANTED",
                "baby",
                "MIIEvQIBADANBg",
                "tok0123456789abc",
            ],
            &[
                "DEPLOY_SECRET",
                "anthropic-key",
                "password",
                "url-password",
                "private-key",
                "token",
            ],
        );
    }
}

/// All lines of [`KINDS`], and what is secret in them.
fn kinds() -> (String, Vec<String>) {
    let lines: Vec<&str> = KINDS
        .lines()
        .filter(|line| !line.starts_with("# "))
        .collect();
    let text = lines.join("\n");
    let secrets = text.split(['«', '»']).skip(1).step_by(2);
    // What is shorter can be part of an ordinary word.
    let secrets = secrets
        .filter(|secret| secret.len() > 5)
        .map(str::to_owned)
        .collect();
    (text.replace(['«', '»'], ""), secrets)
}

#[test]
fn a_secret_of_each_kind_is_in_no_file_of_ours_whichever_way_it_came() {
    let (text, secrets) = kinds();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    for name in BOTH {
        let world = World::new();
        world.write("all.txt", &text);
        let deny = json!({ "answer": "deny", "reason": text }).to_string();
        world.write("deny.json", &deny);
        world.write(
            "leak.sh",
            "case $(cat) in *'git tag'*) cat deny.json;; *) echo '{\"answer\": \"pass\"}';; esac\n",
        );
        world.write("own.rules", "prefix_rule(pattern = [\"git\", \"push\"], decision = \"prompt\", justification = \"it leaves this machine\")\n");
        world.config(&format!(
            "[policy]\nrules = [\"own.rules\"]\n\n\
             [[middleware]]\nname = \"leak\"\non = [\"before_tool\"]\nrun = \"sh leak.sh\"\n\n{}",
            world.counted("tests", "cat all.txt; test -e fixed")
        ));
        world.commit();
        let agent = unattended(&world, name);
        agent.prompt(&text);
        world.write("work", "1");
        agent.stop_saying(&text).sent_back();
        agent.shell(&text, &text);
        let written = json!({
            "tool_name": "Write", "tool_use_id": "w",
            "tool_input": { "file_path": "notes.md", "content": text },
        });
        agent.tell(&agent.message("PreToolUse", written));
        let other = json!({
            "tool_name": "mcp__db__query", "tool_use_id": "q", "tool_input": { "script": text, "argv": ["mysql", "-phunter2"] },
        });
        agent.tell(&agent.message("PreToolUse", other));
        agent.shell("git tag v1", "").denied();
        agent
            .shell(
                &format!("git push https://me:hunter2@example.com/x.git\n{text}"),
                "",
            )
            .denied();
        for id in ids(&world, "asked") {
            let reason = "no: sshpass -p hunter2 is not how";
            Terminal::new(&world).says(&["deny", &id, "--reason", reason]);
        }
        agent.stop_saying(&text);
        world.replays(&agent.session);
        world.says(&["show", "--json"]);
        nowhere(
            &world,
            &secrets,
            &["password", "token", "provider-token", "url-password"],
        );
    }
}

#[test]
fn the_conversation_of_a_model_is_kept_without_its_secrets() {
    let (text, secrets) = kinds();
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let (name, ..) = PROVIDER_ENTRIES[0];
    let world = coder::repo(true);
    world.write("all.txt", &text);
    world.commit();
    let said = text.clone();
    let model = ScriptedCoderServer::start_coder_model_server(move |heard| match heard.turns {
        0 => ScriptedCoderTurn::scripted_shell_call_turn(&format!(
            ": <<'END'\n{said}\nEND\ncat all.txt"
        )),
        1 => ScriptedCoderTurn::scripted_text_turn(&said),
        2 => ScriptedCoderTurn::patch_turn(coder::FIX),
        _ => ScriptedCoderTurn::scripted_text_turn("Mended."),
    });
    let model = model.unwrap();
    let goal = format!("{}\n{text}", coder::GOAL);
    let told = coder::says(&mut coder::run(
        &world,
        &model,
        name,
        &["--model", name, "--json", &goal],
    ));
    assert_eq!(told.code, Some(0), "{told:?}");
    let last = model.requests_to_scripted_coder().pop().unwrap();
    assert!(
        last.full_text.contains("hunter2"),
        "the run itself still has its words"
    );
    nowhere(&world, &secrets, &["password", "token", "provider-token"]);
}

/// The same calls are the same calls, whatever was hidden in them.
#[test]
fn what_is_hidden_still_decides() {
    let world = World::new();
    world.write(
        "own.rules",
        "prefix_rule(pattern=[\"login\", \"--password\", \"hunter22\"], decision=\"forbidden\")\n",
    );
    world.config("[policy]\nrules = [\"own.rules\"]\n");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("log in");
    agent.shell("login --password hunter22", "").denied();
    assert_eq!(
        agent.shell("login --password hunter23", ""),
        Answer::Nothing
    );
    let calls: Vec<_> = world
        .inputs(&agent.session)
        .into_iter()
        .filter_map(|input| match input {
            Input::ToolRequested(request) => Some(request),
            _ => None,
        })
        .collect();
    assert_eq!(calls[0].args, calls[1].args);
    assert_ne!(calls[0].call, calls[1].call, "digests were taken before");
    assert_eq!(
        calls[0].facts.commands[0].argv,
        ["login", "--password", "[redacted:password]"]
    );
    world.replays(&agent.session);
}

#[test]
fn no_event_is_longer_than_64_kib() {
    const HUGE: usize = 5 << 20;
    for name in BOTH {
        let world = World::with_check("exit 1");
        let agent = Agent::new(&world, name);
        agent.prompt(&"\u{1}\"é".repeat(HUGE / 16));
        let long = format!("echo begin{}end", "x".repeat(HUGE));
        agent.shell(&long, &"r".repeat(100_000));
        agent.shell(
            &"echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; ".repeat(HUGE / 50),
            "",
        );
        let write = json!({
            "tool_name": "Write", "tool_use_id": "i".repeat(100_000),
            "tool_input": { "file_path": "a", "content": "\u{2}".repeat(HUGE / 32) },
        });
        agent.tell(&agent.message("PreToolUse", write));
        let odd =
            json!({ "tool_name": "T".repeat(100_000), "tool_use_id": "odd", "tool_input": {} });
        agent.tell(&agent.message("PreToolUse", odd));
        world.write("work", "1");
        agent.stop_saying(&"m\n".repeat(HUGE / 16)).sent_back();

        let store = SqliteStore::open_store_read_only(&world.store_folder()).unwrap();
        let rows = store
            .events_after(
                &checkrein_core::ids::SessionId::from(agent.session.as_str()),
                checkrein_core::ids::EventSeq(0),
            )
            .unwrap();
        for row in rows {
            assert!(
                row.payload.len() <= 64 * 1024,
                "{}: {}",
                row.kind,
                row.payload.len()
            );
        }
        let events = world.log(&agent.session);
        let kept = events.iter().find_map(|event| match event {
            Event::Input(stamped) => match &stamped.input {
                Input::ToolRequested(request) => Some(request.args.clone()),
                _ => None,
            },
            _ => None,
        });
        let kept = kept.unwrap();
        assert!(
            kept.contains("echo beginxxx") && kept.ends_with("xxxend\"}"),
            "both ends"
        );
        assert!(kept.contains("cut by checkrein"));
        world.replays(&agent.session);
    }
}
