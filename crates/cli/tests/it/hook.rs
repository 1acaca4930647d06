//! Conversations of Claude Code and Codex, as their hooks tell them: what is denied, what
//! is sent back, what is let through, and what each costs.

use checkrein_core::input::Input;
use serde_json::json;

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

/// A world for each agent.
fn each(check: &str, test: impl Fn(&World, Agent<'_>)) {
    for name in BOTH {
        let world = World::with_check(check);
        test(&world, Agent::new(&world, name));
    }
}

#[test]
fn a_rule_denies_a_command_however_it_is_wrapped() {
    for name in BOTH {
        let world = World::new();
        world.write(
            "rules/own.rules",
            "prefix_rule(pattern=[\"git\", \"push\"], decision=\"forbidden\", justification=\"a person pushes\")\n",
        );
        world.config("[policy]\nrules = [\"rules/*.rules\"]\n");
        let agent = Agent::new(&world, name);
        agent.prompt("publish it");
        for command in [
            "git push origin",
            "cd sub && git push",
            "echo $(git push)",
            "env A=1 git push",
            "sh -c 'git push -f'",
        ] {
            let answer = agent.shell(command, "");
            assert!(
                answer.denied().contains("a person pushes"),
                "{command}: {answer:?}"
            );
        }
        assert_eq!(agent.shell("git status", "clean"), Answer::Nothing);
        assert_eq!(agent.shell("echo 'git push'", "git push"), Answer::Nothing);
        assert_eq!(world.task()["tool_calls"], 7, "denied ones count");
    }
}

#[test]
fn a_stop_is_refused_then_accepted() {
    each(
        "test -f fixed || { echo 'src/a.py:3: it is broken'; exit 1; }",
        |world, agent| {
            agent.prompt("mend it");
            world.write("work", "1");
            let answer = agent.stop();
            let text = answer.sent_back();
            assert!(text.contains("tests: failed, exit code 1"), "{text}");
            assert!(text.contains("src/a.py:3: it is broken"), "{text}");
            assert!(text.contains("reproduce: "), "{text}");
            assert_eq!(world.ending(), "open");

            world.write("fixed", "");
            assert_eq!(agent.stop(), Answer::Nothing, "well done needs no words");
            assert_eq!(world.ending(), "task_complete");
            assert_eq!(world.runs("tests"), 2);
            world.replays(&agent.session);
        },
    );
}

#[test]
fn the_second_ask_runs_nothing_and_says_less() {
    each("echo 'src/a.py:3: it is broken'; exit 1", |world, agent| {
        agent.prompt("mend it");
        world.write("work", "1");
        let first = agent.stop();
        let second = agent.stop();
        assert_eq!(world.runs("tests"), 1);
        let (first, second) = (first.sent_back(), second.sent_back());
        assert!(second.len() * 2 < first.len(), "{first}\n{second}");
        assert_eq!(second.trim_end().lines().count(), 1, "{second}");
        assert!(
            !second.contains("it is broken"),
            "findings are sent once: {second}"
        );
        assert!(
            second.contains("tests") && second.contains("1 left"),
            "{second}"
        );
    });
}

/// What mends a check may lie in a folder that the tree's digest leaves out.
#[test]
fn installing_something_has_the_failed_check_asked_again_on_the_same_tree() {
    each("test -f node_modules/dep", |world, agent| {
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop().sent_back();
        agent.shell("cat work", "1");
        agent.stop().sent_back();
        assert_eq!(world.runs("tests"), 1, "looking around mends nothing");

        world.write("node_modules/dep", "");
        agent.shell("cd . && npm install --silent", "");
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");
        assert_eq!(world.runs("tests"), 2);
        world.replays(&agent.session);
    });
}

#[test]
fn editing_one_file_voids_a_pass() {
    each("! grep -q bad work", |world, agent| {
        agent.prompt("mend it");
        world.write("work", "good");
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.ending(), "task_complete");

        agent.shell("sed -i s/good/bad/ work", "");
        world.write("work", "bad");
        agent.stop().sent_back();
        assert_eq!(world.runs("tests"), 2);
        assert_eq!(
            world.ending(),
            "open",
            "work after an accepted stop reopens the task"
        );

        // The old tree again: its verdict is known.
        world.write("work", "good");
        assert_eq!(agent.stop(), Answer::Nothing);
        assert_eq!(world.runs("tests"), 2);
        assert_eq!(world.ending(), "task_complete");
        assert_eq!(world.tasks().len(), 1);
        world.replays(&agent.session);
    });
}

#[test]
fn a_question_runs_nothing() {
    each("exit 1", |world, agent| {
        agent.prompt("how does it work?");
        for n in 0..10 {
            let command = [
                format!("rg word{n}"),
                format!("ls dir{n}"),
                format!("cat file{n}"),
            ][n % 3]
                .clone();
            assert_eq!(
                agent.shell(&command, &format!("result {n}")),
                Answer::Nothing
            );
        }
        assert_eq!(agent.stop_saying("It works like this."), Answer::Nothing);
        assert_eq!(world.ending(), "unverified/no_change");
        assert_eq!(world.runs("tests"), 0);
        world.why();
    });
}

#[test]
fn a_question_about_a_tree_known_to_fail_says_so() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    agent.stop().sent_back();
    agent.prompt("leave it; what is it about?");
    assert!(agent.stop().notice().contains("unverified (no_change)"));
    assert!(
        world
            .why()
            .contains("the newest verdict on this tree is a fail"),
        "{}",
        world.why()
    );
    let tasks = world.tasks();
    assert_eq!(tasks[1]["transition"]["detail"], "superseded");
    assert_eq!(world.runs("tests"), 1);
}

#[test]
fn without_a_check_every_stop_is_let_through_and_said_to_be_unverified() {
    for name in BOTH {
        let world = World::new();
        let agent = Agent::new(&world, name);
        agent.prompt("do it");
        world.write("work", "1");
        assert!(agent.stop().notice().contains("unverified (no_checks)"));
        assert_eq!(world.ending(), "unverified/no_checks");
    }
}

#[test]
fn who_never_fixes_it_gives_up_and_is_not_continued_again() {
    each("exit 1", |world, agent| {
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop().sent_back();
        agent.stop().sent_back();
        let last = agent.stop();
        assert!(
            last.notice().contains("gave_up (same_failures)"),
            "{last:?}"
        );
        assert!(last.notice().contains("--why"), "{last:?}");
        assert_eq!(world.ending(), "gave_up/same_failures");

        for n in 0..5 {
            agent.shell(&format!("echo {n}"), "");
            world.write("work", &format!("again {n}"));
            agent.stop().notice();
            assert_eq!(
                world.ending(),
                "gave_up/same_failures",
                "work goes on, the reason stays"
            );
        }
        // The next prompt starts with fresh counters.
        agent.prompt("once more");
        world.write("work", "2");
        agent.stop().sent_back();
        world.replays(&agent.session);
    });
}

#[test]
fn after_giving_up_a_fix_improves_the_reason() {
    each("test -f fixed", |world, agent| {
        agent.prompt("mend it");
        world.write("work", "1");
        while let Answer::SentBack(_) = agent.stop() {}
        assert_eq!(world.ending(), "gave_up/same_failures");
        world.write("fixed", "");
        agent.stop();
        assert_eq!(world.ending(), "task_complete");
    });
}

/// Sends an agent back for ever new reasons; how often until it is let go.
fn blocks(world: &World, agent: &Agent<'_>) -> u32 {
    agent.prompt("mend it");
    for n in 0..50 {
        world.write("work", &(n + 1).to_string());
        match agent.stop() {
            Answer::SentBack(_) => {}
            Answer::Notice(line) => {
                assert!(line.contains("gave_up (continues)"), "{line}");
                return n;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("it never ends");
}

#[test]
fn an_agent_that_never_fixes_it_ends_before_the_agents_own_cap() {
    let ever_new = "exit $(cat work)";
    let check = |name: &'static str, cap: Option<&str>, expected: u32| {
        let world = World::with_check(ever_new);
        let mut agent = Agent::new(&world, name);
        agent
            .env
            .extend(cap.map(|cap| ("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", cap.to_owned())));
        assert_eq!(blocks(&world, &agent), expected, "{name} {cap:?}");
        assert_eq!(world.ending(), "gave_up/continues");
    };
    check("claude-code", None, 7);
    check("claude-code", Some("4"), 3);
    check("claude-code", Some("0"), 7);
    check("codex", None, 7);
}

#[test]
fn grace_is_exactly_one_more_call() {
    each("exit 1", |world, agent| {
        world.config("[caps]\ntool_calls = 3\n[[verifier]]\nname = \"tests\"\nrun = \"false\"\n");
        agent.prompt("mend it");
        for n in 0..3 {
            assert_eq!(agent.shell(&format!("echo {n}"), ""), Answer::Nothing);
        }
        world.write("work", "1");
        let grace = agent.shell("echo one more", "");
        assert!(
            grace.denied().contains("say what is done and what is not"),
            "{grace:?}"
        );
        assert_eq!(world.ending(), "open");

        match (agent.name, agent.shell("echo another", "")) {
            ("claude-code", Answer::Halted(_)) => {}
            ("codex", Answer::Denied(reason)) => assert!(reason.contains("Stop now"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(world.ending(), "hard_cap/tool_calls");
        let (one, two) = (agent.shell("echo a", ""), agent.shell("echo b", ""));
        assert_eq!(one.denied(), two.denied(), "one fixed line");

        agent
            .stop_saying("The parser is done, the printer is not.")
            .notice();
        assert_eq!(world.ending(), "hard_cap/tool_calls");
        let story = world.says(&["show"]);
        assert!(
            story
                .stdout
                .contains("last words: The parser is done, the printer is not."),
            "{story:?}"
        );
        world.replays(&agent.session);
    });
}

#[test]
fn who_stops_at_grace_ends_by_the_cap() {
    each("exit 1", |world, agent| {
        world.config("[caps]\ntool_calls = 1\n[[verifier]]\nname = \"tests\"\nrun = \"false\"\n");
        agent.prompt("mend it");
        agent.shell("echo", "");
        world.write("work", "1");
        agent.shell("echo more", "").denied();
        agent.stop_saying("Half of it.").notice();
        assert_eq!(world.ending(), "hard_cap/tool_calls");
    });
}

#[test]
fn one_call_again_and_again_is_halted() {
    each("true", |world, agent| {
        agent.prompt("look");
        for n in 0..20 {
            let answer = agent.shell("cat same", "same");
            assert_eq!(
                matches!(answer, Answer::Advice(_)),
                n == 10,
                "{n}: {answer:?}"
            );
        }
        agent.shell("cat same", "same").denied();
        let halt = agent.shell("cat same", "same");
        assert!(
            matches!(
                (agent.name, &halt),
                ("claude-code", Answer::Halted(_)) | ("codex", Answer::Denied(_))
            ),
            "{halt:?}"
        );
        assert_eq!(world.ending(), "loop_detected/generic_repeat");
        world.replays(&agent.session);
    });
}

#[test]
fn user_and_project_hooks_count_every_event_once() {
    each("exit 1", |world, one| {
        let name = one.name;
        let entries = [
            Agent::source(world, name, "user"),
            Agent::source(world, name, "project"),
        ];
        let [user, project] = &entries;
        for entry in &entries {
            entry.prompt("mend it");
        }
        for entry in &entries {
            entry.shell("echo 1", "1");
        }
        world.write("work", "1");
        // The second delivery gets the first one's decision; the findings are sent once.
        let first = user.stop();
        assert!(first.sent_back().contains("tests: failed"), "{first:?}");
        let beside = project.stop();
        assert!(!beside.sent_back().contains("tests: failed"), "{beside:?}");
        assert_eq!(world.runs("tests"), 1);
        // Byte-identical and yet another stop: it comes from an entry that has had its first.
        let second = project.stop();
        assert!(second.sent_back().contains("1 left"), "{second:?}");
        user.stop().sent_back();
        assert!(user.stop().notice().contains("gave_up"));
        assert!(project.stop().notice().contains("gave_up"));

        let task = world.task();
        assert_eq!(
            (&task["stops"], &task["tool_calls"], &task["continues"]),
            (&json!(3), &json!(1), &json!(2))
        );
        assert_eq!(world.tasks().len(), 1, "one prompt, one task");
        let prompts = world
            .inputs(&user.session)
            .into_iter()
            .filter(|input| matches!(input, Input::PromptSubmitted(_)));
        assert_eq!(prompts.count(), 1);
        world.replays(&user.session);
    });
}

#[test]
fn a_whole_conversation_through_the_generic_protocol() {
    let world = World::with_check("test -f fixed");
    let say = |line: serde_json::Value| {
        let said = crate::world::feed(
            &mut world.checkrein(&["hook", "generic"]),
            line.to_string().as_bytes(),
        );
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(said.stdout.lines().count(), 1, "always one line: {said:?}");
        said.json()
    };
    assert_eq!(
        say(json!({ "type": "session", "session": "g", "id": "g", "agent": "mine" }))["decision"],
        json!(null)
    );
    say(json!({ "type": "user", "session": "g", "text": "mend it" }));
    let call = say(
        json!({ "type": "tool_call", "session": "g", "id": "1", "tool": "bash", "args": { "command": "ls" } }),
    );
    assert_eq!(call["decision"], "allow");
    say(
        json!({ "type": "tool_result", "session": "g", "id": "1", "result": "README", "error": false }),
    );
    world.write("work", "1");
    let refused = say(json!({ "type": "stop", "session": "g", "text": "Done." }));
    assert_eq!(refused["decision"], "continue");
    assert!(
        refused["text"].as_str().unwrap().contains("tests: failed"),
        "{refused}"
    );
    world.write("fixed", "");
    let accepted = say(json!({ "type": "stop", "session": "g", "text": "Done." }));
    assert_eq!(
        (&accepted["decision"], &accepted["transition"]["reason"]),
        (&json!("accept"), &json!("task_complete"))
    );
    assert_eq!(world.task()["agent"], "mine");
    world.replays("g");
}

#[test]
fn endings_that_the_agent_tells() {
    let check = |event: &str, more: serde_json::Value, ending: &str, native: &str| {
        let world = World::with_check("exit 1");
        let agent = Agent::new(&world, "claude-code");
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop().sent_back();
        assert_eq!(agent.tell(&agent.message(event, more)), Answer::Nothing);
        assert_eq!(world.ending(), ending);
        assert_eq!(world.task()["transition"]["native_reason"], native);
        world.why();
        world.replays(&agent.session);
    };
    check(
        "StopFailure",
        json!({ "error": "rate_limit" }),
        "error/agent",
        "rate_limit",
    );
    check(
        "StopFailure",
        json!({ "error": "max_output_tokens" }),
        "truncated",
        "max_output_tokens",
    );
    check(
        "SessionEnd",
        json!({ "reason": "logout" }),
        "abandoned/session_ended",
        "logout",
    );
}

#[test]
fn a_subagents_stop_runs_nothing_and_its_calls_count() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("mend it");
    world.write("work", "1");
    let mut call = agent.call("sub-1", "ls");
    call["agent_id"] = json!("a1");
    call["agent_type"] = json!("general-purpose");
    assert_eq!(agent.tell(&call), Answer::Nothing);
    let stop = json!({ "agent_id": "a1", "agent_type": "general-purpose", "stop_hook_active": false, "last_assistant_message": "Done." });
    let mut message = agent.message("SubagentStop", stop);
    assert_eq!(agent.tell(&message), Answer::Nothing);
    // The summariser of `/compact` has no type.
    message["agent_type"] = json!("");
    assert_eq!(agent.tell(&message), Answer::Nothing);
    assert_eq!(world.runs("tests"), 0);
    assert_eq!(world.task()["tool_calls"], 1);
    agent.stop().sent_back();
    world.replays(&agent.session);
}

#[test]
fn a_story_of_each_task_alone() {
    let world = World::with_check("exit 1");
    let agent = Agent::new(&world, "codex");
    agent.prompt("the first wish");
    agent.shell("ls", "");
    agent.prompt("the second wish");
    let story = |task: &str| {
        world
            .says(&["show", &format!("codex-session/{task}")])
            .stdout
    };
    let (first, second) = (story("1"), story("2"));
    assert!(
        first.contains("the first wish") && !first.contains("the second wish"),
        "{first}"
    );
    assert!(first.contains("abandoned (superseded)"), "{first}");
    assert!(
        second.contains("the second wish") && !second.contains("the first wish"),
        "{second}"
    );
}

#[test]
fn folders_below_and_linked_worktrees_share_a_store() {
    let world = World::with_check("test -f fixed");
    world.write("deep/down/file", "");
    let agent = Agent::new(&world, "codex");
    agent.prompt("mend it");
    world.write("work", "1");
    let mut stop = agent.stop_message(false, "Done.");
    stop["cwd"] = json!(world.root().join("deep/down"));
    agent.tell(&stop).sent_back();
    assert_eq!(world.task()["stops"], 1, "the same session, the same task");

    // A worktree of its own is a tree of its own, remembered in the same place.
    let linked = world.outside("linked");
    world.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    std::fs::write(linked.join("fixed"), "").unwrap();
    let other = Agent::named(&world, "codex", "other");
    let mut stop = other.stop_message(false, "Done.");
    stop["cwd"] = json!(linked);
    assert_eq!(other.tell(&stop), Answer::Nothing);
    assert_eq!(world.tasks().len(), 2, "one list for the repo");
    world.store_folder();
}

#[test]
fn where_the_store_lies_and_who_may_look() {
    use std::os::unix::fs::PermissionsExt as _;
    let check = |prepare: &dyn Fn(&mut std::process::Command, &World), expected: &str| {
        let world = World::with_check("true");
        let agent = Agent::new(&world, "codex");
        let mut hook = agent.hook();
        hook.env_remove("CHECKREIN_STATE");
        prepare(&mut hook, &world);
        let said = crate::world::feed(&mut hook, agent.call("1", "ls").to_string().as_bytes());
        assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "{said:?}");
        let folder = world.outside(expected);
        let entries = std::fs::read_dir(&folder).unwrap().flatten();
        let mut repos = 0;
        for entry in entries {
            // Beside the repo's folder lies what finds a session by its id.
            repos += usize::from(entry.file_name() != "sessions");
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{expected}");
        }
        assert_eq!(repos, 1, "{expected}");
        let own = world.root().join(".checkrein");
        assert!(
            !own.join("store.db").exists(),
            "nothing that counts lies in the repo"
        );
    };
    check(&|_, _| {}, "home/state/checkrein");
    check(
        &|hook, _| {
            hook.env_remove("XDG_STATE_HOME");
        },
        "home/.local/state/checkrein",
    );
    check(
        &|hook, world| {
            hook.env("CHECKREIN_STATE", world.outside("named"));
        },
        "named",
    );
    check(
        &|hook, world| {
            hook.env("CHECKREIN_STATE", world.outside("named"));
            hook.arg("--state").arg(world.outside("typed"));
        },
        "typed",
    );
}
