//! What follows from a judge's word: sent back, let go, how the task ends.

use checkrein_core::digest::Digest;
use checkrein_core::event::Event;
use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{self, last_message_text};
use serde_json::{Value, json};

use super::{content, generic, judged, strict};
use crate::agent::{Agent, Answer, BOTH};
use crate::world::feed;

#[test]
fn an_incomplete_answer_is_sent_back_once() {
    for name in BOTH {
        let (world, model) = (judged(""), strict());
        let agent = Agent::beside(&world, name, &model);
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        let answer = agent.stop_saying("Done: the parser is there.");
        let text = answer.sent_back();
        assert!(text.contains("reviewer: failed"), "{text}");
        assert!(text.contains("incomplete: Where are the tests?"), "{text}");
        assert!(text.contains("incomplete: Say what you ran."), "{text}");
        assert!(text.contains("answer 1 of 3"), "{text}");
        let answer = agent.stop_saying("Done: the parser is there, with tests.");
        assert_eq!(answer, Answer::Nothing, "{name}");
        assert_eq!(world.ending(), "task_complete");
        assert_eq!(world.runs("tests"), 1, "the tree was the same");
        let asked = model.received_request_bodies();
        assert_eq!(asked.len(), 2, "{name}");
        let shown = last_message_text(&asked[1]);
        assert!(shown.contains("Write a parser."), "{shown}");
        assert!(shown.contains("tests passes"), "{shown}");
        assert!(
            shown.contains("incomplete: Where are the tests?"),
            "{shown}"
        );
        assert_eq!(world.tasks().len(), 1, "the same conversation");
        world.replays(&agent.session);
    }
}

#[test]
fn max_attempts_bounds_how_often_a_judge_sends_back() {
    let (world, model) = (judged("max_attempts = 2\n"), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert!(matches!(agent.stop_saying("Done."), Answer::SentBack(_)));
    assert_eq!(agent.stop_saying("Done, really."), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert!(
        world.why().contains("judges have seen 2 answers"),
        "{}",
        world.why()
    );
    assert_eq!(model.received_request_bodies().len(), 2);
    // The next request is another question.
    agent.prompt("And a printer.");
    world.write("printer", "1");
    assert!(matches!(agent.stop_saying("Done."), Answer::SentBack(_)));
}

#[test]
fn a_required_judge_is_asked_without_keywords() {
    let world = judged("");
    let text = std::fs::read_to_string(world.root().join("checkrein.toml")).unwrap();
    world.config(&text.replace("accept = \"tests\"", "accept = \"tests and reviewer\""));
    world.commit();
    let model = strict();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    for answer in ["One.", "Two."] {
        assert!(
            matches!(agent.stop_saying(answer), Answer::SentBack(_)),
            "{answer}"
        );
    }
    let ending = agent.stop_saying("Three.");
    assert!(
        ending.notice().contains("gave_up (same_failures)"),
        "{ending:?}"
    );
    // Without its model nothing is complete.
    let mut alone = Agent::named(&world, "claude-code", "alone");
    alone.env = vec![("OLLAMA_HOST", "http://127.0.0.1:9".to_owned())];
    alone.prompt("Write a printer.");
    world.write("printer", "1");
    assert!(
        alone
            .stop_saying("Four.")
            .notice()
            .contains("unverified (passed_over)")
    );
}

#[test]
fn a_shadow_judge_never_sends_back() {
    let (world, model) = (judged("mode = \"shadow\"\n"), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    let why = world.why();
    assert!(why.contains("it would have sent the agent back"), "{why}");
    assert_eq!(model.received_request_bodies().len(), 1);
}

/// Hooks for the person and for the project: one question.
#[test]
fn two_installed_entries_ask_once() {
    let (world, model) = (judged(""), strict());
    let entry = |source: &str| {
        let mut agent = Agent::source(&world, "claude-code", source);
        agent.env = vec![("OLLAMA_HOST", model.base_url())];
        agent
    };
    let (user, project) = (entry("user"), entry("project"));
    user.prompt("Write a parser.");
    project.prompt("Write a parser.");
    world.write("parser", "1");
    let answers = std::thread::scope(|scope| {
        let hooks = ["user", "project"].map(|source| {
            let (world, base) = (&world, model.base_url());
            scope.spawn(move || {
                let mut agent = Agent::source(world, "claude-code", source);
                agent.env = vec![("OLLAMA_HOST", base)];
                agent.tell(&agent.stop_message(false, "Done."))
            })
        });
        hooks.map(|hook| hook.join().unwrap())
    });
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Answer::SentBack(_))),
        "{answers:?}"
    );
    assert_eq!(model.received_request_bodies().len(), 1);
}

/// What it has against another answer is told, also if it is of the same kind.
#[test]
fn feedback_quotes_each_new_objection() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let wrong = ["Where are the tests?", "Now the README is missing."];
        let wrong = wrong.get(before).copied().unwrap_or("more");
        Ok(reviewer::render_judge_verdict_reply(
            body,
            "fail",
            0.2,
            "incomplete",
            wrong,
        ))
    })
    .unwrap();
    let world = judged("");
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    agent.stop_saying("Done.");
    let second = agent.stop_saying("Done, with tests.");
    assert!(
        second.sent_back().contains("Now the README is missing."),
        "{second:?}"
    );
}

/// Where the config says nothing of it: three answers are read, two are sent back.
#[test]
fn by_default_the_third_answer_is_accepted() {
    for (more, sent_back) in [("", 2), ("max_attempts = 1\n", 0)] {
        let (world, model) = (judged(more), strict());
        let agent = Agent::beside(&world, "codex", &model);
        agent.prompt("Write a parser.");
        world.write("parser", "1");
        for nth in 1..=sent_back {
            let answer = agent.stop_saying(&format!("Done, {nth}."));
            let of = format!("answer {nth} of 3");
            assert!(answer.sent_back().contains(&of), "{answer:?}");
        }
        assert_eq!(agent.stop_saying("Done, last."), Answer::Nothing, "{more}");
        assert_eq!(model.received_request_bodies().len(), sent_back + 1);
        assert_eq!(world.ending(), "task_complete");
    }
}

const CATEGORIES: [&str; 5] = [
    "goal_missed",
    "incomplete",
    "rule_violation",
    "tone_mismatch",
    "refusal",
];

/// The agent is told what is wrong, and so is whoever looks later.
#[test]
fn the_judges_objection_is_fed_back_and_recorded() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let category = CATEGORIES.get(before).copied().unwrap_or("none");
        Ok(reviewer::render_judge_verdict_reply(
            body, "fail", 0.1, category, "Mend it.",
        ))
    })
    .unwrap();
    let world = judged("");
    for category in CATEGORIES {
        let mut agent = Agent::named(&world, "claude-code", category);
        agent.env = vec![("OLLAMA_HOST", model.base_url())];
        agent.prompt("Write a parser.");
        world.write("parser", category);
        let answer = agent.stop_saying("Done.");
        let told = format!("- {category}: Mend it.");
        assert!(answer.sent_back().contains(&told), "{answer:?}");
        let kept = world.says(&["show", category]).stdout;
        assert!(kept.contains(&format!("{category}: Mend it.")), "{kept}");
    }
    assert_eq!(model.received_request_bodies().len(), CATEGORIES.len());
}

/// An OK although a standing task is open, and then the task.
#[test]
fn a_lazy_heartbeat_is_sent_back() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let shown = last_message_text(body);
        let open = shown.contains("- [ ] look for new competitions");
        let answer = shown.rsplit(" answer>").next().unwrap_or_default();
        Ok(match open && !answer.contains("entered") {
            true => reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.0,
                "goal_missed",
                "Look for competitions.",
            ),
            false => reviewer::render_judge_verdict_reply(body, "pass", 1.0, "none", ""),
        })
    })
    .unwrap();
    let world = judged("heartbeat = true\n");
    world.write("HEARTBEAT.md", "- [ ] look for new competitions");
    world.commit();
    let said = generic(&world, &model, "beat", "HEARTBEAT_OK", &["heartbeat"]);
    assert_eq!(said["decision"], "continue", "{said}");
    let text = said["text"].as_str().unwrap();
    assert!(
        text.contains("goal_missed: Look for competitions."),
        "{text}"
    );
    let said = generic(&world, &model, "beat", "I entered one.", &["heartbeat"]);
    assert_eq!(said["decision"], "accept", "{said}");
    assert_eq!(model.received_request_bodies().len(), 2);
}

/// What the list of standing tasks says at the stop counts, beside what it said before; rules stay
/// as they were sealed.
#[test]
fn standing_tasks_are_read_at_the_stop_and_rules_are_not() {
    let (world, model) = (judged("heartbeat = true\n"), content());
    world.write("HEARTBEAT.md", "- [ ] look at the queue\n");
    world.write("AGENTS.md", "Tests first.\n");
    world.commit();
    let told = |line: Value| {
        let mut hook = world.checkrein(&["hook", "generic"]);
        hook.env("OLLAMA_HOST", model.base_url());
        let said = feed(&mut hook, line.to_string().as_bytes());
        assert_eq!(said.code, Some(0), "{said:?}");
    };
    let prompted = |session: &str| {
        told(json!({ "type": "user", "session": session, "text": "heartbeat" }));
    };
    prompted("beat");
    let ticked = "- [x] look at the queue\n- [ ] water the plants\n";
    world.write("HEARTBEAT.md", ticked);
    world.write("AGENTS.md", "No tests.\n");
    generic(&world, &model, "beat", "HEARTBEAT_OK", &["heartbeat"]);
    let shown = last_message_text(&model.received_request_bodies().remove(0)).to_owned();
    for part in [
        "- [x] look at the queue",
        "- [ ] water the plants",
        "a tick is the agent's own word",
        "as it was when the task began:\n- [ ] look at the queue",
        "Tests first.",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("No tests."), "{shown}");
    let digests: Vec<Digest> = world
        .log("beat")
        .into_iter()
        .filter_map(|event| match event {
            Event::Input(stamped) => stamped.task_list.map(|list| list.digest),
            _ => None,
        })
        .collect();
    let digest = |text: &str| Digest::hash_bytes(text.as_bytes());
    assert_eq!(
        digests,
        [digest("- [ ] look at the queue\n"), digest(ticked)]
    );
    world.replays("beat");

    // Whatever the agent puts in its place, the stop is answered and the list as it was is shown.
    prompted("gone");
    std::fs::remove_file(world.root().join("HEARTBEAT.md")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(world.root().join("HEARTBEAT.md"))
        .status()
        .unwrap();
    assert!(made.success());
    generic(&world, &model, "gone", "HEARTBEAT_OK", &["heartbeat"]);
    let shown = last_message_text(&model.received_request_bodies().remove(1)).to_owned();
    for part in ["none that can be read", "- [ ] water the plants"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}
