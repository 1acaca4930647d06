//! What a person sees: the table, a task's story, a task as it goes on, one line for a status
//! line, and the line that every ending shows in the agent.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::{Said, World, feed, signal};

/// Two agents, three tasks: one verified, one given up, one open.
fn busy() -> World {
    let world = World::with_check("test -f fixed || { echo 'src/a.py:3: it is broken'; exit 1; }");
    let agent = begun(&world, "claude-code");
    agent.prompt("mend the\nbuild");
    agent.shell("ls", "work");
    world.write("work", "1");
    agent.stop().sent_back();
    world.write("fixed", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    std::fs::remove_file(world.root().join("fixed")).unwrap();
    let other = begun(&world, "codex");
    other.prompt("mend it, too");
    world.write("work", "2");
    other.stop().sent_back();
    other.stop().sent_back();
    other.stop().notice();
    agent.prompt("and now this");
    agent.shell("cat work", "2");
    world
}

fn begun<'w>(world: &'w World, name: &'static str) -> Agent<'w> {
    let agent = Agent::new(world, name);
    agent.tell(&agent.message("SessionStart", json!({ "source": "startup" })));
    agent
}

#[test]
fn the_table_says_who_what_and_how_it_ended() {
    let world = busy();
    let said = world.says(&["sessions"]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{said:?}");
    for (line, parts) in lines.iter().zip([
        &[
            "WHEN", "TASK", "AGENT", "LV", "ENDING", "TOOK", "STOPS", "CALLS", "TOKENS", "WHAT",
        ][..],
        &["claude-code/2", "L1", "… open", "and now this"],
        &[
            "codex-sessio/1",
            "codex",
            "✗ gave_up (same_failures)",
            "mend it, too",
        ],
        &["claude-code-/1", "✓ task_complete", "mend the build"],
    ]) {
        for part in parts.iter().filter(|part| **part != "claude-code/2") {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
    assert_eq!(said.stderr, "", "a pipe is told no legend");

    let verified: Vec<_> = world
        .tasks()
        .iter()
        .map(|task| {
            (
                task["verified"].clone(),
                task["text"].clone(),
                task["log_broken_at"].clone(),
            )
        })
        .collect();
    assert_eq!(
        verified,
        [
            (json!(null), json!("and now this"), json!(null)),
            (json!(false), json!("mend it, too"), json!(null)),
            (json!(true), json!("mend the\nbuild"), json!(null)),
        ]
    );
}

#[test]
fn filters_leave_what_fits() {
    let world = busy();
    let count = |args: &[&str]| {
        let mut words = vec!["sessions", "--json"];
        words.extend(args);
        let said = world.says(&words);
        assert_eq!(said.code, Some(0), "{said:?}");
        said.stdout.lines().count()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["--agent", "codex"]), 1);
    assert_eq!(count(&["--agent", "nobody"]), 0);
    assert_eq!(count(&["--reason", "task_complete"]), 1);
    assert_eq!(count(&["--reason", "open"]), 1);
    assert_eq!(count(&["--agent", "codex", "--reason", "open"]), 0);
    assert_eq!(count(&["--since", "1h"]), 3);
    // What ended before now is out; what is open is not.
    assert_eq!(count(&["--since", "0s"]), 1);
    for wrong in [&["--reason", "done"], &["--since", "yesterday"]] {
        let said = world.says(&[&["sessions"][..], wrong].concat());
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(wrong[1]), "{said:?}");
    }
    let none = world.says(&["sessions", "--agent", "nobody"]);
    assert!(none.stderr.contains("No task fits"), "{none:?}");
}

#[test]
fn a_damaged_log_is_said_to_be_one() {
    let world = busy();
    let store = Connection::open(world.store_folder().join("store.db")).unwrap();
    let changed = store
        .execute(
            "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'codex', 'codec') AS BLOB)
             WHERE kind = 'stop_requested' AND id >> 40 = (SELECT id FROM session WHERE name = 'codex-session')",
            [],
        )
        .unwrap();
    drop(store);
    assert!(changed > 0);
    let store = Connection::open(world.store_folder().join("store.db")).unwrap();
    store
        .execute(
            "UPDATE event SET kind = 'other' WHERE id = (SELECT max(id) FROM event
               WHERE id >> 40 = (SELECT id FROM session WHERE name = 'codex-session'))",
            [],
        )
        .unwrap();
    drop(store);
    let said = world.says(&["sessions"]);
    assert_eq!(
        said.stdout.matches("damaged at event").count(),
        1,
        "{said:?}"
    );
    let said = world.says(&["show", "codex"]);
    assert!(said.stderr.contains("damaged at event"), "{said:?}");
    let said = world.says(&["show", "claude-code-session/1"]);
    assert!(!said.stderr.contains("damaged"), "{said:?}");
    let broken = world
        .tasks()
        .iter()
        .filter(|task| !task["log_broken_at"].is_null())
        .count();
    assert_eq!(broken, 1);
}

#[test]
fn a_story_says_what_failed_and_where() {
    let world = busy();
    let said = world.says(&["show", "claude-code-session/1"]);
    for part in [
        "person: mend the build",
        "Bash ls",
        "agent wants to stop: Done.",
        "tests fails, exit code 1",
        "src/a.py:3: it is broken",
        "sent back: tests not satisfied",
        "tests passes",
        "task_complete: Done",
        "after: 2 stops, sent back 1 time, 1 tool call",
    ] {
        assert!(said.stdout.contains(part), "{part}:\n{}", said.stdout);
    }
}

#[test]
fn a_story_names_the_test_that_failed() {
    let world = World::with_check("printf 'TAP version 13\nnot ok 1 - adds up\n1..1\n'; exit 1");
    let agent = begun(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    let said = world.says(&["show"]);
    assert!(said.stdout.contains("adds up: failed"), "{}", said.stdout);
}

#[test]
fn watch_tells_each_event_until_it_is_told_to_go() {
    let world = World::with_check("test -f fixed");
    let mut watching = world
        .checkrein(&["watch"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut waits = BufReader::new(watching.stderr.take().unwrap());
    let mut line = String::new();
    waits.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for one"), "{line}");
    let mut told = BufReader::new(watching.stdout.take().unwrap());
    let mut hears = |expected: &[&str]| {
        for part in expected {
            let mut line = String::new();
            told.read_line(&mut line).unwrap();
            assert!(line.contains(part), "{part}: {line}");
        }
    };

    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    hears(&["task claude-code-", "person: mend it"]);
    agent.shell("ls", "");
    hears(&["Bash ls"]);
    world.write("work", "1");
    agent.stop().sent_back();
    hears(&[
        "agent wants to stop",
        "checking: tests",
        "tests fails",
        "sent back: tests",
    ]);
    world.write("fixed", "");
    assert_eq!(agent.stop(), Answer::Nothing);
    hears(&[
        "agent wants to stop",
        "checking: tests",
        "tests passes",
        "task_complete",
    ]);
    agent.prompt("and this");
    hears(&["task claude-code-", "person: and this"]);
    // Another session's task, opened later, is followed as well.
    let other = Agent::new(&world, "codex");
    other.prompt("something else");
    hears(&["task codex-", "person: something else"]);

    signal(&watching, Signal::INT);
    assert_eq!(watching.wait().unwrap().code(), Some(0));
}

#[test]
fn watch_with_an_id_begins_at_its_newest_task_and_ends_with_its_reader() {
    let world = busy();
    let mut watching = world
        .checkrein(&["watch", "claude"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(watching.stdout.take().unwrap());
    for part in [
        "task claude-code-/2",
        "person: and now this",
        "Bash cat work",
    ] {
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert!(line.contains(part), "{part}: {line}");
    }
    drop(told);
    Agent::new(&world, "claude-code").shell("ls -la", "");
    assert_eq!(watching.wait().unwrap().code(), Some(0));
    let said = world.says(&["watch", "nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[test]
fn one_line_for_a_status_line() {
    let world = World::with_check("test -f fixed");
    let line = |stdin: &str| {
        let mut command = world.checkrein(&["watch", "--line"]);
        if stdin.contains("cwd") {
            // Where the session works is what Claude Code says.
            command.current_dir(world.outside("home"));
        }
        let said = feed(&mut command, stdin.as_bytes());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        assert_eq!(said.stdout.lines().count(), 1, "{said:?}");
        said.stdout.trim_end().to_owned()
    };
    assert_eq!(line("{}"), "checkrein: no task yet");
    assert!(!world.state().exists(), "looking leaves nothing behind");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    agent.shell("ls", "");
    let of = |session: &str| json!({ "session_id": session, "cwd": world.root() }).to_string();
    assert_eq!(line(&of(&agent.session)), "checkrein: open · 1 call");
    world.write("work", "1");
    agent.stop().sent_back();
    assert_eq!(
        line(&of(&agent.session)),
        "checkrein: open · 1 call · tests fails · sent back 1"
    );
    assert_eq!(line(&of("another")), "checkrein: no task yet");
    world.write("fixed", "");
    agent.stop();
    let done = "checkrein: task_complete · 1 call · tests passes · sent back 1";
    assert_eq!(line("garbage"), done);
    let said: Said = world.says(&["watch", "--line", "claude"]);
    assert_eq!(said.stdout.trim_end(), done);
}

/// What passes besides hides no failure.
#[test]
fn the_status_line_shows_the_worst_of_the_newest_stop() {
    for (one, other, told) in [
        ("true", "exit 1", "b fails"),
        ("exit 1", "true", "a fails"),
        ("true", "kill -9 $$", "b cannot tell"),
        ("true", "true", "2 checks pass"),
    ] {
        let world = World::new();
        world.config(&format!(
            "[[verifier]]\nname = \"a\"\nrun = \"{one}\"\n[[verifier]]\nname = \"b\"\nrun = \"{other}\"\n"
        ));
        world.says(&["run", "--", "sh", "-c", "echo > work"]);
        let said = world.says(&["watch", "--line"]);
        assert!(said.stdout.contains(&format!(" · {told}")), "{said:?}");
    }
}

/// Every ending that is not `task_complete`, but for a plain question's, says so in one line, with
/// the way to its reasons.
#[test]
fn every_other_ending_is_said_in_the_agent() {
    const CALLS: &str = "[caps]\ntool_calls = 2\n";
    for name in BOTH {
        let check = |config: &str, check: Option<&str>, expected: &str| {
            let world = World::new();
            let verifier = check
                .map(|check| world.counted("tests", check))
                .unwrap_or_default();
            world.config(&format!("{config}\n{verifier}"));
            world.commit();
            let agent = begun(&world, name);
            agent.prompt("do it");
            if expected.starts_with("hard_cap") {
                for n in 0..4 {
                    agent.shell(&format!("ls {n}"), "x");
                }
                world.write("work", "1");
            } else if expected.starts_with("loop_detected") {
                for _ in 0..40 {
                    if matches!(agent.shell("ls", "same"), Answer::Halted(_)) {
                        break;
                    }
                }
                world.write("work", "1");
            } else {
                world.write("work", "1");
            }
            let mut last = agent.stop();
            for _ in 0..8 {
                if !matches!(last, Answer::SentBack(_)) {
                    break;
                }
                last = agent.stop();
            }
            let line = match &last {
                Answer::Notice(line) | Answer::Halted(line) => line.clone(),
                other => panic!("{name} {expected}: {other:?}"),
            };
            assert_eq!(line.trim_end().lines().count(), 1, "{line}");
            for part in [expected, "checkrein show ", " --why"] {
                assert!(line.contains(part), "{name}: {part} is not in {line}");
            }
        };
        check("", None, "unverified (no_checks)");
        check("", Some("exit 1"), "gave_up (same_failures)");
        check(
            "[caps]\ncontinues = 1\n",
            Some("exit 1"),
            "gave_up (continues)",
        );
        check(CALLS, Some("exit 1"), "hard_cap (tool_calls)");
        check(
            "",
            Some("no-such-program-here"),
            "verifier_failed_unrecoverable",
        );
        check(
            "[loops]\npreset = \"seed\"\n",
            Some("exit 1"),
            "loop_detected",
        );
    }
}

/// What moves a cursor, turns the direction of text, or is not seen: written by agents, prompts
/// and repos.
const HOSTILE: &str = "a\u{1b}[2Jb\u{1b}]0;title\u{7}c\u{9b}2Kd\re\u{8}f\u{202e}g\u{61c}h\u{ad}i\u{2028}j\u{3164}k\u{fe0f}l\u{e0041}m\u{200d}n\u{1b}[32mo";

const NONE: [char; 0] = [];

/// What of a terminal's output is neither text nor a style of ours.
#[cfg(unix)]
fn strange(said: &str) -> Vec<char> {
    // Live lines are ours too: drawn again in their place.
    let mut plain = said.replace("\r\n", "\n").replace("\r\u{1b}[2K", "");
    for code in ["0", "1", "2", "31", "32", "33"] {
        plain = plain.replace(&format!("\u{1b}[{code}m"), "");
    }
    let hidden = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || HOSTILE.chars().any(|other| other == *c && !c.is_ascii())
    };
    plain.chars().filter(hidden).collect()
}

#[cfg(unix)]
#[test]
fn untrusted_text_cannot_control_the_terminal() {
    use crate::terminal::Terminal;
    let world = World::with_check("cat hostile.txt; exit 1");
    world.write("hostile.txt", &format!("src/a.py:3: {HOSTILE}\n"));
    let mut agent = begun(&world, "claude-code");
    agent.session = format!("s{HOSTILE}");
    agent.prompt(&format!("{HOSTILE}\ndenied: nothing"));
    agent.shell(&format!("echo {HOSTILE}"), HOSTILE);
    world.write("work", "1");
    agent.stop_saying(HOSTILE).sent_back();
    agent.stop_saying(HOSTILE).sent_back();
    agent.stop_saying(HOSTILE).notice();
    world.write(
        "x.rules",
        &format!(
            "prefix_rule(pattern = [\"rm\"], decision = \"forbidden\", justification = \"{}\")\n",
            HOSTILE.replace(['\u{1b}', '\u{7}', '\r', '\u{8}', '\u{2028}', '\u{9b}'], "")
        ),
    );
    world.write(
        "x.patch",
        &format!(
            "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch\n",
            HOSTILE.replace('\r', "")
        ),
    );
    let script = format!("rm '{HOSTILE}'");
    for command in [
        &["show"][..],
        &["show", "--why"],
        &["show", "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["watch", "--line"],
        &["check"],
        &["check", "--json"],
        &["policy", "check", "--rules", "x.rules", "--script", &script],
        &[
            "policy", "check", "--json", "--rules", "x.rules", "--script", &script,
        ],
        &["patch", "check", "x.patch"],
        &["patch", "check", "--json", "x.patch"],
        &["show", HOSTILE],
    ] {
        let said = Terminal::new(&world).says(command);
        assert_eq!(strange(&said.stdout), NONE, "{command:?} {}", said.stdout);
        assert!(!said.stdout.contains("\u{1b}[32mo"), "{command:?} {said:?}");
        assert!(!said.stdout.trim().is_empty(), "{command:?}");
        // In a pipe somebody reads it later, in a terminal.
        let said = world.says(command);
        let both = format!("{}{}", said.stdout, said.stderr);
        assert_eq!(strange(&both), NONE, "{command:?} {both}");
    }
    let said = Terminal::new(&world).with("TERM", "xterm").says(&["show"]);
    assert!(said.stdout.contains("a\\u{1b}[2Jb"), "{}", said.stdout);
    assert!(
        said.stdout.contains("\u{1b}[31m"),
        "our own styles: {}",
        said.stdout
    );
    assert!(
        !said.stdout.lines().any(|line| line.starts_with("denied:")),
        "{}",
        said.stdout
    );
    let document = world.says(&["show", "--json"]).json();
    let text = document["session"].as_str().unwrap();
    assert_eq!(text, agent.session, "JSON means the same");
}

#[cfg(unix)]
#[test]
fn what_an_agent_prints_does_nothing_to_a_terminal_either() {
    use crate::terminal::{Terminal, executable};
    let world = World::with_check("cat hostile.txt; exit 1");
    world.write("hostile.txt", &format!("src/a.py:3: {HOSTILE}\n"));
    let lines = [
        json!({ "type": "system", "subtype": "init", "session_id": "SESSION", "tools": [] }),
        json!({ "type": "assistant", "session_id": "SESSION", "message": { "id": "m", "role": "assistant",
            "content": [{ "type": "tool_use", "id": "t", "name": HOSTILE, "input": {} },
                { "type": "text", "text": HOSTILE }] } }),
        json!({ "type": "result", "subtype": "success", "is_error": false, "session_id": "SESSION",
            "result": HOSTILE, "num_turns": 1 }),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    std::fs::write(world.outside("said"), lines.join("\n") + "\n").unwrap();
    let bin = world.outside("bin");
    std::fs::create_dir(&bin).unwrap();
    let agent = bin.join("claude");
    let script = format!(
        "#!/bin/sh\nfor word; do [ \"$before\" = --session-id ] && id=$word; before=$word; done\nsed \"s/SESSION/$id/\" '{}'\ncat hostile.txt >&2\nexit 3\n",
        world.outside("said").display()
    );
    std::fs::write(&agent, script).unwrap();
    executable(&agent);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let words = ["run", "--agent", "claude-code", "mend it"];
    let said = Terminal::new(&world).with("PATH", &path).says(&words);
    assert!(said.stdout.contains("a\\u{1b}[2Jb"), "{said:?}");
    // Live lines are drawn in the place of those before: our own moves.
    let mut shown = said.stdout.clone();
    for moved in ["[2K", "[1A", "[2A", "[3A", "[1B"] {
        shown = shown.replace(&format!("\u{1b}{moved}"), "");
    }
    let left: Vec<char> = strange(&shown).into_iter().filter(|c| *c != '\r').collect();
    assert_eq!(left, NONE, "{}", said.stdout);
    let output = world.checkrein(&words).env("PATH", &path).output().unwrap();
    let said = Said::of(&output);
    assert!(
        said.stderr.contains("e\\u{8}f") || said.stderr.contains("f\\u{202e}g"),
        "{said:?}"
    );
    assert_eq!(strange(&said.stderr), NONE);
}
