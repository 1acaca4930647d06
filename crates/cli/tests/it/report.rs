//! The weekly report, which no exit code judges: wrong once, right once; as JSON, as Markdown and as
//! what the agent says last. Its schema is sealed as the rest of the policy is.

use serde_json::json;

use crate::agent::{Agent, BOTH};
use crate::world::{Said, World, ending, feed};

const CONFIG: &str = include_str!("../../../../examples/weekly-report/checkrein.toml");
const SCHEMA: &str = include_str!("../../../../examples/weekly-report/weekly.schema.json");
const OF_MARKDOWN: &str =
    include_str!("../../../../examples/weekly-report/weekly-markdown.schema.json");

/// Two links, of which one leads outside; figures forgotten; two things done.
const WRONG: &str = r#"{
  "completed": ["Shipped the importer", "Closed 14 old tickets"],
  "planned": ["Index the archive", "Write the handbook", "Meet the auditors"],
  "blockers": [],
  "links": [
    "https://wiki.intranet.example/week-47",
    "https://example.com/importer"
  ]
}
"#;

const RIGHT: &str = r#"{
  "completed": ["Shipped the importer", "Closed 14 old tickets", "Moved to the new host"],
  "planned": ["Index the archive", "Write the handbook", "Meet the auditors"],
  "blockers": [],
  "metrics": [{ "name": "open bugs", "value": 12 }],
  "links": ["https://example.com/importer", "https://example.com/host"]
}
"#;

/// A repo that wants a weekly report. Its reports are ignored by git, as reports are.
fn wanting_a_report() -> World {
    let world = World::new();
    world.config(CONFIG);
    world.write("weekly.schema.json", SCHEMA);
    world.write(".gitignore", "out/\n");
    world.commit();
    world
}

fn run(world: &World, script: &str) -> Said {
    world.says(&["run", "--", "sh", "-c", script])
}

/// An agent that writes this first and that once it was sent back.
fn first_then(world: &World, file: &str, wrong: &str, right: &str) -> Said {
    std::fs::write(world.outside("wrong"), wrong).unwrap();
    std::fs::write(world.outside("right"), right).unwrap();
    let script = format!(
        "mkdir -p out; if [ $CHECKREIN_ATTEMPT = 1 ]; then cp ../wrong {file}; else cp ../right {file}; fi"
    );
    run(world, &script)
}

#[test]
fn wrong_once_right_once() {
    let world = wanting_a_report();
    let said = first_then(&world, "out/report.json", WRONG, RIGHT);
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in [
        "report: failed\n",
        "  - out/report.json:1: required: 'metrics' is missing (figures of the week)\n",
        "  - out/report.json:2: minItems: /completed: 2 items where at least 3 must be (what was finished, a sentence each)\n",
        "  - out/report.json:5: contains: /links: fewer than 2 of its 2 items fit ",
    ] {
        assert!(said.stderr.contains(line), "{line}{said:?}");
    }
    assert_eq!(said.stderr.matches("not done yet").count(), 1, "{said:?}");
    let task = world.task();
    assert_eq!(ending(&task["transition"]), "task_complete");
    assert_eq!(task["stops"], 2);
    world.replays(task["session"].as_str().unwrap());
}

#[test]
fn markdown_wrong_once_right_once() {
    let world = wanting_a_report();
    world.config(
        &CONFIG
            .replace("\"weekly.schema.json\"", "\"weekly-markdown.schema.json\"")
            .replace("out/report.json", "out/report.md"),
    );
    world.write("weekly-markdown.schema.json", OF_MARKDOWN);
    world.commit();
    let wrong = "# Week 47\n\n## Completed\n\n- Shipped the importer\n\n## Planned:\n\n1. Index the archive\n2. Write the handbook\n3. Meet the auditors\n\n## Blockers\n\nNone.\n\n## Links\n\n- https://example.com/importer\n- [wiki](https://wiki.intranet.example/week-47)\n";
    let right = wrong
        .replace(
            "- Shipped the importer\n",
            "- Shipped the importer\n- Closed 14 old tickets\n- Moved to the **new** host\n",
        )
        .replace(
            "## Links",
            "## Metrics\n\n| name | value |\n|---|---|\n| open bugs | 12 |\n\n## Links\n\n<https://example.com/host>\n",
        );
    let said = first_then(&world, "out/report.md", wrong, &right);
    assert_eq!(said.code, Some(0), "{said:?}");
    for line in [
        "  - out/report.md: required: the section 'metrics' is missing: add a heading of that name (a table of name and value)\n",
        "  - out/report.md:3: minItems: section 'completed', items: 1 item where at least 3 must be\n",
        "  - out/report.md:17: contains: section 'links', links: fewer than 2 of its 2 items fit ",
    ] {
        assert!(said.stderr.contains(line), "{line}{said:?}");
    }
    assert_eq!(world.ending(), "task_complete");
    assert_eq!(world.task()["stops"], 2);
}

#[test]
fn a_missing_report_fails_the_run() {
    let world = wanting_a_report();
    let said = run(&world, "mkdir -p out; echo $CHECKREIN_ATTEMPT > work");
    assert_eq!(said.code, Some(11), "{said:?}");
    assert!(
        said.stderr
            .contains("out/report.json is not there: write it"),
        "{said:?}"
    );
    assert_eq!(world.ending(), "gave_up/same_failures");
}

#[test]
fn an_edit_after_the_pass_voids_it_though_git_ignores_the_file() {
    for name in BOTH {
        let world = wanting_a_report();
        let agent = Agent::new(&world, name);
        agent.prompt("report");
        world.write("out/report.json", RIGHT);
        agent.stop();
        assert_eq!(world.ending(), "task_complete");
        agent.prompt("shorten it");
        world.write("out/report.json", WRONG);
        let answer = agent.stop();
        assert!(
            answer.sent_back().contains("'metrics' is missing"),
            "{answer:?}"
        );
    }
}

/// One line of the generic protocol, and what is answered.
fn generic(world: &World, line: &serde_json::Value) -> serde_json::Value {
    let mut hook = world.checkrein(&["hook", "generic"]);
    feed(&mut hook, line.to_string().as_bytes()).json()
}

#[test]
fn what_is_said_last_is_judged_through_the_generic_protocol() {
    let world = wanting_a_report();
    world.config(&CONFIG.replace("out/report.json", "message"));
    world.commit();
    let tell = |line: serde_json::Value| generic(&world, &line);
    let stop = |text: &str| tell(json!({ "type": "stop", "session": "s", "text": text }));
    tell(json!({ "type": "user", "session": "s", "text": "report" }));
    let answer = stop("All done, the report is in the wiki.");
    assert_eq!(answer["decision"], "continue", "{answer}");
    let text = answer["text"].as_str().unwrap();
    assert!(
        text.contains("'metrics'") && text.contains("is missing"),
        "{text}"
    );

    let answer = stop(&format!("Here it is:\n\n```json\n{WRONG}```\n"));
    let text = answer["text"].as_str().unwrap();
    assert_eq!(answer["decision"], "continue", "{answer}");
    assert!(text.contains("2 items where at least 3 must be"), "{text}");

    // The tree is what it was; another message is another subject.
    let answer = stop(&format!("Here it is:\n\n```json\n{RIGHT}```\n"));
    assert_eq!(answer["decision"], "accept", "{answer}");
    assert_eq!(answer["transition"]["reason"], "task_complete", "{answer}");
    world.replays("s");
}

#[test]
fn a_long_message_is_judged_as_it_was_said() {
    // Longer than what is kept of a message.
    let world = wanting_a_report();
    world.config(&CONFIG.replace("out/report.json", "message"));
    let long = RIGHT.replace("Index the archive", &"Index the archive. ".repeat(3_000));
    for name in BOTH {
        let agent = Agent::new(&world, name);
        agent.prompt("report");
        agent.stop_saying(&long);
        assert_eq!(world.ending(), "task_complete");
    }
}

#[test]
fn the_schema_is_sealed_with_the_policy() {
    for name in BOTH {
        let world = wanting_a_report();
        let first = Agent::named(&world, name, "first");
        first.prompt("report");
        world.write("out/report.json", WRONG);
        // No tool may write it, and whoever does all the same gains nothing.
        let file = world.root().join("weekly.schema.json");
        let answer = first.shell(&format!("echo {{}} > {}", file.display()), "");
        assert!(
            answer.denied().contains("part of what judges this work"),
            "{answer:?}"
        );
        world.write("weekly.schema.json", "{\"type\": \"object\"}");
        first.shell("ls", "");
        let answer = first.stop();
        let text = answer.sent_back();
        assert!(text.contains("'metrics' is missing"), "{text}");
        assert!(
            text.contains("Edited during this task: weekly.schema.json"),
            "{text}"
        );
        let second = Agent::named(&world, name, "second");
        let answer = second.tell(&second.message("UserPromptSubmit", json!({ "prompt": "go on" })));
        assert!(
            answer
                .notice()
                .contains("weekly.schema.json was edited while a task was open"),
            "{answer:?}"
        );
        world.write("work", "");
        second.stop().sent_back();
    }
}

#[test]
fn without_its_schema_nothing_can_pass() {
    let world = wanting_a_report();
    std::fs::remove_file(world.root().join("weekly.schema.json")).unwrap();
    let said = first_then(&world, "out/report.json", WRONG, RIGHT);
    assert_eq!(said.code, Some(15), "{said:?}");
    assert_eq!(world.ending(), "verifier_failed_unrecoverable/report");
    let why = world.why();
    assert!(
        why.contains("a file that it judges by is not there"),
        "{why}"
    );
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(
        said.stdout.contains("weekly.schema.json was not there"),
        "{said:?}"
    );
}

#[test]
fn a_schema_with_a_mistake_is_a_mistake_of_the_config() {
    let world = wanting_a_report();
    world.write("weekly.schema.json", "{\n  \"type\": \"objekt\"\n}\n");
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    for part in [
        "verifier 'report': schema cannot be used",
        "weekly.schema.json:2: is no schema at /type",
    ] {
        assert!(said.stderr.contains(part), "{said:?}");
    }
}

#[test]
fn by_hand_the_file_is_judged_and_the_message_is_not() {
    let world = wanting_a_report();
    world.write("out/report.json", RIGHT);
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    world.write("out/report.json", WRONG);
    let said = world.says(&["check", "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let findings = &said.json()["verifiers"][0]["findings"];
    assert_eq!(findings[0]["id"], "/ required metrics", "{findings}");
    assert_eq!(findings[0]["line"], 1, "{findings}");
    world.config(&CONFIG.replace("out/report.json", "message"));
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(
        said.stdout.contains("which is there at a stop only"),
        "{said:?}"
    );
}
