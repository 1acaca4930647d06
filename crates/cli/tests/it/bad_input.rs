//! What nobody hopes for: unreadable messages, wrong arguments, broken config, checks that
//! misbehave, a store that cannot be written. Every time: a clear line on stderr, an answer
//! in the agent's protocol, and what was recorded stays.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH, read};
use crate::world::{Said, World, feed, gone, read_line, start};

/// Feeds raw bytes to an agent's hook; the answer is read as that of `event`.
fn raw(agent: &Agent<'_>, event: &str, bytes: &[u8]) -> (Answer, Said) {
    let said = feed(&mut agent.hook(), bytes);
    (read(agent.name, event, &said), said)
}

/// `text` on stderr, which is where a person looks.
#[track_caller]
fn complains(said: &Said, text: &str) {
    assert!(
        said.stderr.contains("checkrein") && said.stderr.contains(text),
        "does not say {text:?}: {said:?}"
    );
    assert!(!said.stderr.contains("panicked"), "{said:?}");
}

#[test]
fn unreadable_messages_are_answered_by_stance() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        let check = |event: &str, bytes: &[u8], text: &str, denied: bool| {
            let (answer, said) = raw(&agent, event, bytes);
            complains(&said, text);
            match denied {
                true => assert!(answer.denied().contains("could not judge"), "{answer:?}"),
                false => assert!(answer.notice().contains("could not judge"), "{answer:?}"),
            }
        };
        check("Stop", b"", "empty input", false);
        check("Stop", b"nonsense", "not JSON", false);
        check("Stop", b"[1,2]", "not a JSON object", false);
        check("Stop", b"{\"session_id\":\"s\"}", "no event name", false);
        check(
            "Stop",
            b"{\"hook_event_name\":\"Stop\",\"session_id\":",
            "ends in the middle",
            false,
        );
        check(
            "Stop",
            b"{\"hook_event_name\":\"Stop\"}",
            "\"session_id\"",
            false,
        );
        check(
            "PreToolUse",
            b"{\"hook_event_name\":\"PreToolUse\",\"session_id\":",
            "ends in the middle",
            true,
        );
        check(
            "PreToolUse",
            b"{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"s\"}",
            "\"tool_name\"",
            true,
        );
        check(
            "PreToolUse",
            b"{\"hook_event_name\":\"PreToolUse\",\"session_id\":7}",
            "\"session_id\"",
            true,
        );
        check("Stop", &[0xff, 0xfe, 0x00], "not JSON", false);
        check("Stop", &[b'['; 100_000], "not JSON", false);
    }
}

#[test]
fn the_generic_protocol_always_answers_with_one_line() {
    let world = World::with_check("true");
    let check = |bytes: &[u8], decision: Value| {
        let said = feed(&mut world.checkrein(&["hook", "generic"]), bytes);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.stdout.lines().count(), 1, "{said:?}");
        assert_eq!(said.json()["decision"], decision, "{said:?}");
        complains(&said, "generic");
    };
    check(b"", Value::Null);
    check(b"nonsense", Value::Null);
    check(b"{\"type\":\"tool_call\",\"session\":", json!("deny"));
    check(b"{\"type\":\"tool_call\",\"session\":\"s\"}", json!("deny"));
    check(b"{\"type\":\"stop\"}", json!("accept"));
}

#[test]
fn fifty_megabytes_are_answered_and_not_judged() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        let padding = "x".repeat(50 << 20);
        let (answer, said) = raw(&agent, "Stop", padding.as_bytes());
        complains(&said, "larger than");
        answer.notice();

        // Size must not be a way around the gate.
        let call = format!(
            "{{\"hook_event_name\":\"PreToolUse\",\"session_id\":\"s\",\"tool_name\":\"Bash\",\"tool_input\":{{\"command\":\"# {padding}\"}}}}"
        );
        let (answer, said) = raw(&agent, "PreToolUse", call.as_bytes());
        complains(&said, "larger than");
        answer.denied();
    }
}

/// After its own timeout an agent goes on as if nobody had objected.
#[cfg(unix)]
#[test]
fn a_message_without_an_end_is_answered_before_the_deadline() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        let mut hook = agent.hook();
        hook.args(["--deadline", "1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = hook.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let call = agent.call("t1", "true").to_string();
        stdin.write_all(call.as_bytes()).unwrap();
        // `wait_with_output` closes what is left in it, so stdin is held here.
        let said = Said::of(&child.wait_with_output().unwrap());
        drop(stdin);
        complains(&said, "did not come in time");
        read(agent.name, "PreToolUse", &said).denied();
    }
}

#[test]
fn events_that_we_know_nothing_of_are_none_of_our_business() {
    for name in BOTH {
        let world = World::with_check("true");
        let agent = Agent::new(&world, name);
        let said = feed(
            &mut agent.hook(),
            agent
                .message("TotallyNew", json!({ "x": 1 }))
                .to_string()
                .as_bytes(),
        );
        assert_eq!(
            (said.code, said.stdout.as_str(), said.stderr.as_str()),
            (Some(0), "", "")
        );
        assert_eq!(world.tasks(), Vec::<Value>::new());
    }
}

#[test]
fn wrong_arguments_of_a_hook_are_answered_in_its_protocol() {
    for name in BOTH {
        let check = |extra: &[&str], text: &str| {
            let world = World::with_check("exit 1");
            let mut agent = Agent::new(&world, name);
            agent.extra = extra.iter().map(|word| (*word).to_owned()).collect();
            let call = agent.call("call-1", "ls > list").to_string();
            let (answer, said) = raw(&agent, "PreToolUse", call.as_bytes());
            complains(&said, text);
            assert!(answer.denied().contains(text), "{answer:?}");
            let (answer, said) = raw(
                &agent,
                "Stop",
                agent.stop_message(false, "Done.").to_string().as_bytes(),
            );
            complains(&said, text);
            answer.notice();
            let (answer, _) = raw(
                &agent,
                "UserPromptSubmit",
                agent
                    .message("UserPromptSubmit", json!({ "prompt": "x" }))
                    .to_string()
                    .as_bytes(),
            );
            assert_eq!(answer, Answer::Nothing);
        };
        check(
            &["--deadlin", "60"],
            "'--deadlin' is not an argument of hook",
        );
        check(&["--deadline", "0"], "whole seconds above 0");
        check(&["--deadline", "soon"], "whole seconds above 0");
        check(&["--deadline"], "--deadline needs a value");
        check(&["--profile", "ci"], "'ci' is asked for and not there");
        check(&["surplus"], "'surplus'");
    }
}

#[test]
fn an_agent_that_we_do_not_know() {
    let world = World::new();
    for args in [&["hook", "clade-code"][..], &["hook"]] {
        let said = world.says(args);
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (Some(1), ""),
            "never 2, which means no: {said:?}"
        );
        complains(&said, "known: ");
        assert!(
            said.stderr.contains("claude-code") && said.stderr.contains("codex"),
            "{said:?}"
        );
    }
}

#[test]
fn the_stances_of_the_config_decide() {
    for name in BOTH {
        let world = World::new();
        world.config("[stance]\ntool = \"allow\"\nstop = \"block\"\n");
        let mut agent = Agent::new(&world, name);
        agent.extra = vec!["--nonsense".to_owned()];
        let (answer, _) = raw(
            &agent,
            "PreToolUse",
            agent.call("1", "ls").to_string().as_bytes(),
        );
        answer.notice();
        let (answer, _) = raw(
            &agent,
            "Stop",
            agent.stop_message(false, "Done.").to_string().as_bytes(),
        );
        assert!(answer.sent_back().contains("could not judge"), "{answer:?}");
        // What cannot be counted is not continued.
        let (answer, _) = raw(
            &agent,
            "Stop",
            agent.stop_message(true, "Done.").to_string().as_bytes(),
        );
        answer.notice();
    }
}

#[test]
fn an_edited_stance_does_not_let_through_what_cannot_be_read() {
    for name in BOTH {
        let world = World::with_check("false");
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.config("[stance]\ntool = \"allow\"\n");
        let huge = format!("true #{}", "x".repeat(9 << 20));
        for message in [
            agent.call("1", &huge).to_string().into_bytes(),
            b"{\"hook_event_name\":\"PreToolUse\",\"session_id\":".to_vec(),
        ] {
            let (answer, _) = raw(&agent, "PreToolUse", &message);
            assert!(answer.denied().contains("could not judge"), "{answer:?}");
        }
    }
}

#[test]
fn an_unknown_key_is_an_error_with_its_line_and_seals_nothing() {
    let world = World::new();
    world.config(
        "[caps]\ntool_call = 3\nattempts = 1\n[[verifier]]\nname = \"tests\"\nrun = \"false\"\n",
    );
    let near = "checkrein.toml:2:1: unknown key 'caps.tool_call'; did you mean 'caps.tool_calls'?";
    for args in [&["check"][..], &["run", "--", "sh", "-c", "echo > work"]] {
        let said = world.says(args);
        complains(&said, near);
        assert_eq!(said.code, Some(2), "{said:?}");
    }
    assert!(!world.root().join("work").exists(), "nothing was run");
    for name in BOTH {
        let agent = Agent::new(&world, name);
        let edit = agent.call("1", "echo > work");
        let (answer, said) = raw(&agent, "PreToolUse", edit.to_string().as_bytes());
        complains(&said, near);
        assert!(answer.denied().contains(near), "{answer:?}");
    }
}

#[test]
fn a_broken_config_seals_nothing() {
    for (text, complaint) in [
        ("[caps\ntool_calls = 3\n", "checkrein.toml"),
        (
            "[caps]\ntool_calls = 0\n",
            "caps.tool_calls must be 1 or more",
        ),
        (
            "[caps]\ntool_calls = -1\n",
            "caps.tool_calls must be 1 or more",
        ),
        (
            "[caps]\nwall_clock = \"0s\"\n",
            "caps.wall_clock must be more than no time",
        ),
        ("accept = \"tests\"\n", "tests"),
        (
            "[policy]\nrules = [\"none/*.rules\"]\n",
            "nothing matches 'none/*.rules'",
        ),
    ] {
        for name in BOTH {
            let world = World::new();
            world.config(text);
            let agent = Agent::new(&world, name);
            let (answer, said) = raw(
                &agent,
                "PreToolUse",
                agent.call("1", "ls > list").to_string().as_bytes(),
            );
            complains(&said, complaint);
            assert!(answer.denied().contains(complaint), "{answer:?}");
            let (answer, said) = raw(
                &agent,
                "PreToolUse",
                agent.call("2", "ls").to_string().as_bytes(),
            );
            complains(&said, complaint);
            assert_eq!(answer, Answer::Nothing, "reading goes on");
            let (answer, _) = raw(
                &agent,
                "Stop",
                agent.stop_message(false, "Done.").to_string().as_bytes(),
            );
            answer.notice();
            assert_eq!(world.tasks(), Vec::<Value>::new());
            let said = world.says(&["run", "--", "true"]);
            assert_eq!(said.code, Some(2), "{said:?}");
            complains(&said, complaint);

            // Mended, the same session goes on.
            world.config("[[verifier]]\nname = \"tests\"\nrun = \"true\"\n");
            assert_eq!(agent.stop(), Answer::Nothing);
            assert_eq!(world.ending(), "task_complete");
        }
    }
}

#[test]
fn a_config_broken_later_changes_nothing() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.config("[caps\n");
    agent.shell("ls", "");
    assert!(
        agent.stop().sent_back().contains("tests"),
        "the sealed policy holds"
    );
}

/// 300 MB and not more only for the sake of the test's time: what is kept is bounded, what
/// is dropped is cheap.
#[test]
fn a_check_that_floods_us() {
    let world = World::with_check("yes $(printf %01000d 7) | head -c 300000000; exit 1");
    let agent = Agent::new(&world, "codex");
    agent.prompt("mend it");
    world.write("work", "1");
    let answer = agent.stop();
    assert!(
        answer.sent_back().len() < 10_000,
        "{}",
        answer.sent_back().len()
    );
    assert!(answer.sent_back().contains("full output: "), "{answer:?}");
    let logs = std::fs::read_dir(world.root().join(".checkrein/logs"))
        .unwrap()
        .flatten();
    let kept: u64 = logs.map(|log| log.metadata().unwrap().len()).sum();
    assert!((1 << 20..50 << 20).contains(&kept), "{kept} bytes kept");
}

#[test]
fn a_check_that_forks_and_hangs() {
    for name in BOTH {
        let world = World::new();
        world.config(
            "[[verifier]]\nname = \"tests\"\ntimeout = \"300ms\"\nrun = '''sleep 620 & (sleep 621 &) ; trap '' TERM; sleep 622'''\n",
        );
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.write("work", "1");
        let answer = agent.stop();
        assert!(answer.sent_back().contains("ran out of time"), "{answer:?}");
        assert_eq!(world.alive(), [""; 0]);
    }
}

#[test]
fn a_check_longer_than_the_deadline_is_cut_and_the_mend_is_named() {
    let world = World::with_check("sleep 623");
    let mut agent = Agent::new(&world, "claude-code");
    agent.extra = vec!["--deadline".to_owned(), "4".to_owned()];
    // Under a run nothing outlives its hook.
    agent.env = vec![("CHECKREIN_RUN", "1".to_owned())];
    agent.prompt("mend it");
    world.write("work", "1");
    let asked = Instant::now();
    let answer = agent.stop();
    assert!(
        asked.elapsed() < Duration::from_secs(4),
        "too late: {:?}",
        asked.elapsed()
    );
    assert!(answer.sent_back().contains("--deadline"), "{answer:?}");
    assert_eq!(world.alive(), [""; 0]);
}

/// A file where the state folder should be: nobody can write there, whoever runs the test.
fn without_a_store(config: &str) -> World {
    let world = World::new();
    world.config(config);
    std::fs::write(world.state(), "in the way").unwrap();
    world
}

#[test]
fn without_a_writable_store_every_hook_is_answered_by_stance() {
    for name in BOTH {
        let world = without_a_store("[[verifier]]\nname = \"tests\"\nrun = \"false\"\n");
        let agent = Agent::new(&world, name);
        let (answer, said) = raw(
            &agent,
            "PreToolUse",
            agent.call("1", "ls").to_string().as_bytes(),
        );
        complains(&said, "store");
        answer.denied();
        let (answer, said) = raw(
            &agent,
            "Stop",
            agent.stop_message(false, "Done.").to_string().as_bytes(),
        );
        complains(&said, "store");
        answer.notice();
        agent.prompt("silent events are answered by silence");
        for args in [
            &["run", "--", "true"][..],
            &["check"],
            &["sessions"],
            &["show"],
        ] {
            let said = world.says(args);
            assert!(matches!(said.code, Some(1 | 2)), "{args:?}: {said:?}");
            complains(&said, &world.state().display().to_string());
        }
    }
}

#[test]
fn without_a_writable_store_an_always_stopping_agent_ends() {
    for name in BOTH {
        let world = without_a_store(
            "[stance]\nstop = \"block\"\n[[verifier]]\nname = \"tests\"\nrun = \"false\"\n",
        );
        let agent = Agent::new(&world, name);
        agent.stop().sent_back();
        agent.stop().notice();
        // It does not say whether this is the first: then it is not.
        let message = agent.message("Stop", json!({ "last_assistant_message": "Done." }));
        agent.tell(&message).notice();
    }
}

/// Holds the write lock of a world's store until dropped.
fn lock(world: &World) -> rusqlite::Connection {
    let held = rusqlite::Connection::open(world.store_folder().join("store.db")).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    held
}

#[test]
fn a_locked_store() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "codex");
    agent.prompt("mend it");
    agent.shell("ls", "");
    world.write("work", "1");
    let before = world.log(&agent.session);

    let held = lock(&world);
    let (answer, said) = raw(
        &agent,
        "PreToolUse",
        agent.call("again", "ls").to_string().as_bytes(),
    );
    complains(&said, "busy");
    answer.denied();
    let (answer, said) = raw(
        &agent,
        "Stop",
        agent.stop_message(false, "Done.").to_string().as_bytes(),
    );
    complains(&said, "busy");
    answer.notice();
    assert_eq!(
        world.log(&agent.session),
        before,
        "readers are not in the way"
    );
    drop(held);

    agent.stop().sent_back();
    let after = world.log(&agent.session);
    assert_eq!(after[..before.len()], before);
    world.replays(&agent.session);
}

#[test]
fn a_locked_store_is_not_waited_for_longer_than_the_agent_waits() {
    let world = World::with_check("exit 1");
    let mut agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    let _held = lock(&world);
    agent.extra = vec!["--deadline".to_owned(), "4".to_owned()];
    for message in [agent.call("1", "ls"), agent.stop_message(false, "Done.")] {
        let asked = Instant::now();
        let (_, said) = raw(
            &agent,
            message["hook_event_name"].as_str().unwrap(),
            message.to_string().as_bytes(),
        );
        complains(&said, "busy");
        assert!(
            asked.elapsed() < Duration::from_secs(4),
            "too late: {:?}",
            asked.elapsed()
        );
    }
}

#[test]
fn a_store_that_is_locked_during_a_run_ends_the_run_and_its_agent() {
    let world = World::with_check("true");
    let ready = world.pipe("ready");
    let script = format!("sleep 630 & echo ready > '{}'; sleep 631", ready.display());
    let run = start(
        &mut world.checkrein(&["run", "--", "sh", "-c", &script]),
        b"",
    );
    assert_eq!(read_line(&ready), "ready\n");
    let session = world.task()["session"].as_str().unwrap().to_owned();
    let (held, before) = (lock(&world), world.log(&session));
    let said = Said::of(&run.wait_with_output().unwrap());
    assert_eq!(said.code, Some(1), "{said:?}");
    complains(&said, "busy");
    gone(&world);
    drop(held);
    assert_eq!(world.log(&session), before);
    world.replays(&session);
}

/// A limit on the size of files acts as a full disk does, once its signal is ignored.
#[test]
fn a_full_disk() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "codex");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    let before = world.log(&agent.session);
    let full = |message: &Value| {
        let mut hook = world.hermetic("sh");
        hook.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$BIN\" hook codex"]);
        let said = feed(&mut hook, message.to_string().as_bytes());
        (
            read("codex", message["hook_event_name"].as_str().unwrap(), &said),
            said,
        )
    };
    let (answer, said) = full(&agent.call("1", "ls"));
    complains(&said, "store");
    answer.denied();
    let (answer, said) = full(&agent.stop_message(true, "Done."));
    complains(&said, "store");
    answer.notice();
    assert_eq!(
        world.log(&agent.session),
        before,
        "nothing lost, nothing half written"
    );
    // Room again.
    agent.stop().sent_back();
    world.replays(&agent.session);
}
