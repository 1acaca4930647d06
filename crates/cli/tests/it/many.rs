//! Many processes at once: on one session, on one stop, on one tree.

use std::io::Write as _;
use std::process::Child;

use checkrein_core::ids::SessionId;
use checkrein_core::input::Input;
use checkrein_store::{SqliteStore, Store as _};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer, read};
use crate::world::{Said, World, start};

fn all(children: Vec<Child>) -> Vec<Said> {
    children
        .into_iter()
        .map(|child| Said::of(&child.wait_with_output().unwrap()))
        .collect()
}

#[test]
fn sixteen_hooks_at_once_lose_nothing() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "claude-code");
    // The session itself is new to all of them.
    let messages = (0..16).map(|n| {
        agent
            .call(&format!("call-{n}"), &format!("echo {n}"))
            .to_string()
    });
    let hooks = messages
        .map(|message| start(&mut agent.hook(), message.as_bytes()))
        .collect();
    for said in all(hooks) {
        assert_eq!(read(agent.name, "PreToolUse", &said), Answer::Nothing);
    }
    let mut seen: Vec<String> = world
        .inputs(&agent.session)
        .into_iter()
        .filter_map(|input| match input {
            Input::ToolRequested(request) => request.call_id,
            _ => None,
        })
        .collect();
    seen.sort();
    let mut sent: Vec<String> = (0..16).map(|n| format!("call-{n}")).collect();
    sent.sort();
    assert_eq!(seen, sent);
    assert_eq!(world.task()["tool_calls"], 16);
    world.replays(&agent.session);
}

/// A check that waits for a word of the test, so that it runs while others come.
fn held(world: &World) -> (std::path::PathBuf, std::path::PathBuf) {
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let check = format!(
        "echo ready > '{}'; read go < '{}'; exit 1",
        ready.display(),
        go.display()
    );
    world.config(&world.counted("tests", &check));
    world.commit();
    (ready, go)
}

#[test]
fn both_stop_hooks_at_once_run_the_check_once() {
    for name in crate::agent::BOTH {
        let world = World::new();
        let (ready, go) = held(&world);
        let entries = [
            Agent::source(&world, name, "user"),
            Agent::source(&world, name, "project"),
        ];
        for entry in &entries {
            entry.prompt("mend it");
        }
        world.write("work", "1");
        let hooks: Vec<Child> = entries
            .iter()
            .map(|entry| {
                start(
                    &mut entry.hook(),
                    entry.stop_message(false, "Done.").to_string().as_bytes(),
                )
            })
            .collect();
        assert_eq!(crate::world::read_line(&ready), "ready\n");
        std::fs::write(&go, "go\n").unwrap();
        let answers: Vec<Answer> = all(hooks)
            .iter()
            .map(|said| read(name, "Stop", said))
            .collect();
        let findings = answers
            .iter()
            .filter(|answer| answer.sent_back().contains("tests: failed"));
        assert_eq!(
            findings.count(),
            1,
            "both send it back, one says why: {answers:?}"
        );
        assert_eq!(world.runs("tests"), 1);
        assert_eq!(
            (
                world.task()["stops"].as_u64(),
                world.task()["continues"].as_u64()
            ),
            (Some(1), Some(1))
        );
        world.replays(&entries[0].session);
    }
}

#[test]
fn two_entries_tell_a_whole_conversation_at_once() {
    for name in crate::agent::BOTH {
        let world = World::with_check("exit 1");
        let entries = [
            Agent::source(&world, name, "user"),
            Agent::source(&world, name, "project"),
        ];
        let both = |message: &serde_json::Value| {
            let hooks = entries
                .iter()
                .map(|entry| start(&mut entry.hook(), message.to_string().as_bytes()));
            let answers: Vec<Answer> = all(hooks.collect())
                .iter()
                .map(|said| read(name, message["hook_event_name"].as_str().unwrap(), said))
                .collect();
            let kind = std::mem::discriminant::<Answer>;
            assert_eq!(kind(&answers[0]), kind(&answers[1]), "{answers:?}");
            answers.into_iter().next().unwrap()
        };
        let one = &entries[0];
        for task in 1..=2_u64 {
            both(&one.message(
                "UserPromptSubmit",
                serde_json::json!({ "prompt": "mend it" }),
            ));
            for n in 0..3 {
                let (id, command) = (format!("call-{task}-{n}"), format!("echo {n}"));
                assert_eq!(both(&one.call(&id, &command)), Answer::Nothing);
                both(&one.result(&id, &command, "said"));
            }
            world.write("work", &task.to_string());
            both(&one.stop_message(false, "Done.")).sent_back();
            both(&one.stop_message(true, "Done.")).sent_back();
            assert!(
                both(&one.stop_message(true, "Done."))
                    .notice()
                    .contains("gave_up")
            );
            // The second time before the task is given up.
            assert_eq!(world.runs("tests") as u64, 2 * task);
            let row = world.task();
            let counted = ["task", "stops", "continues", "tool_calls"]
                .map(|field| row[field].as_u64().unwrap());
            assert_eq!(counted, [task, 3, 2, 3], "{name}");
        }
        world.replays(&one.session);
    }
}

#[test]
fn ten_checks_at_once_start_each_command_once() {
    let world = World::new();
    let (ready, go) = (world.pipe("ready"), world.pipe("go"));
    let slow = format!(
        "echo ready > '{}'; read go < '{}'",
        ready.display(),
        go.display()
    );
    world.config(&format!(
        "{}{}",
        world.counted("slow", &slow),
        world.counted("quick", "exit 1")
    ));
    world.commit();
    let checks = (0..10)
        .map(|_| start(&mut world.checkrein(&["check", "--json"]), b""))
        .collect();
    assert_eq!(crate::world::read_line(&ready), "ready\n");
    std::fs::write(&go, "go\n").unwrap();
    let mut ran = 0;
    for said in all(checks) {
        assert_eq!(said.code, Some(1), "{said:?}");
        let document = said.json();
        assert_eq!(document["verdict"], "fail");
        let verdicts: Vec<(&str, &str)> = document["verifiers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|verifier| {
                (
                    verifier["name"].as_str().unwrap(),
                    verifier["verdict"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(verdicts, [("slow", "pass"), ("quick", "fail")]);
        ran += document["verifiers"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|verifier| verifier["cached"] == false)
            .count();
    }
    assert_eq!((world.runs("slow"), world.runs("quick")), (1, 1));
    assert_eq!(ran, 2, "only who ran it says that it was not cached");
}

/// A writer that is stopped in the middle holds up whoever writes, and nobody who only looks.
#[test]
fn who_only_looks_waits_for_no_writer() {
    let world = World::with_check("test -f fixed");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    let store = SqliteStore::open_store_in_folder(&world.store_folder()).unwrap();
    let session = SessionId::from(agent.session.as_str());
    let held = store.transact_on_session(&session, &mut |_| {
        for command in [
            &["sessions"][..],
            &["show", "--why"],
            &["replay", &agent.session],
            &["watch", "--line"],
            &["approvals"],
        ] {
            let said = world.says(command);
            assert_eq!(said.code, Some(0), "{command:?}: {said:?}");
        }
        Ok(None)
    });
    held.unwrap();
}

/// A row of a transcript that says what an answer used.
fn used(message: &str, output: u64) -> String {
    let usage = json!({ "output_tokens": output, "input_tokens": 1 });
    let row = json!({ "type": "assistant", "message": { "id": message, "usage": usage } });
    format!("{row}\n")
}

#[test]
fn each_token_of_thirty_sub_agents_in_turns_counts_once() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "claude-code");
    let transcript = world.outside("s.jsonl");
    let folder = world.outside("s/subagents");
    std::fs::create_dir_all(&folder).unwrap();
    let of = |at: usize| folder.join(format!("agent-a{at}.jsonl"));
    std::fs::write(&transcript, used("m", 10)).unwrap();
    let tell = |event: &str, more: Value| {
        let mut message = agent.message(event, more);
        message["transcript_path"] = transcript.to_str().into();
        assert_eq!(agent.tell(&message), Answer::Nothing, "{message}");
    };
    tell("SessionStart", json!({ "source": "startup" }));
    tell("UserPromptSubmit", json!({ "prompt": "go" }));
    for round in 0..3 {
        for at in 0..30 {
            let mut file = std::fs::File::options();
            let mut file = file.create(true).append(true).open(of(at)).unwrap();
            // The third time there is nothing new.
            if round < 2 {
                let row = used(&format!("m{round}-{at}"), 6000);
                file.write_all(row.as_bytes()).unwrap();
            }
            tell(
                "PreToolUse",
                json!({
                    "agent_id": format!("a{at}"),
                    "agent_type": "general",
                    "tool_name": "Bash",
                    "tool_input": { "command": format!("echo {round} {at}") },
                    "tool_use_id": format!("call-{round}-{at}"),
                }),
            );
        }
    }
    assert_eq!(world.task()["output_tokens"], 10 + 2 * 30 * 6000);
    world.replays(&agent.session);
}

/// The state keeps 64 sub-agents; the store knows the others.
#[test]
fn a_halted_sub_agent_stays_halted_however_many_come_after() {
    let world = World::with_check("true");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("go");
    let call = |of: &str, id: &str, command: &str| {
        let mut message = agent.call(id, command);
        message["agent_id"] = of.into();
        message["agent_type"] = "general".into();
        agent.tell(&message)
    };
    let halted = |answer: &Answer| {
        matches!(answer, Answer::Denied(_)) && answer.denied().contains("work of this sub-agent")
    };
    let first = (0..30).find(|n| halted(&call("first", &format!("first-{n}"), "ls")));
    assert!(first.is_some());
    for at in 0..70 {
        let of = format!("a{at}");
        assert_eq!(call(&of, &of, "ls"), Answer::Nothing);
    }
    let again = call("first", "again", "cat a");
    assert!(halted(&again), "{again:?}");
    world.replays(&agent.session);
    agent.prompt("another task");
    assert_eq!(call("first", "new", "cat a"), Answer::Nothing);
}

#[test]
fn sessions_of_one_repo_do_not_touch_each_other() {
    let world = World::with_check("exit 1");
    let names = ["a", "b", "c"];
    let agents = names.map(|name| Agent::named(&world, "codex", name));
    for agent in &agents {
        agent.prompt("mend it");
    }
    world.write("work", "1");
    for agent in &agents {
        agent.stop().sent_back();
        agent.stop().sent_back();
    }
    assert_eq!(
        world.runs("tests"),
        1,
        "the tree is the same, so is its verdict"
    );
    for agent in &agents {
        assert!(
            agent.stop().notice().contains("gave_up"),
            "each has its own attempts"
        );
        world.replays(&agent.session);
    }
}
