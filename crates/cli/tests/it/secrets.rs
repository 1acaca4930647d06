//! What is secret is not kept: neither in the store, nor in the logs of checks, nor in any
//! other file of ours. What decides is as it would be without.

use std::path::Path;

use checkrein_core::event::Event;
use checkrein_core::input::Input;
use checkrein_store::{SqliteStore, Store as _};
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

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

        let store = SqliteStore::open_read_only(&world.store_folder()).unwrap();
        let rows = store
            .events(
                &checkrein_core::ids::SessionId::from(agent.session.as_str()),
                checkrein_core::ids::Seq(0),
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
