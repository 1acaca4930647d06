//! What must hold before a stop is accepted: all required checks, a choice of them, a document and a judge.

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{self, last_message_text};

use crate::agent::{Agent, Answer, BOTH};
use crate::world::World;

fn command(name: &str, run: &str) -> String {
    format!("[[verifier]]\nname = \"{name}\"\ntimeout = \"60s\"\nrun = '''{run}'''\n")
}

/// Each waits for the other: one after the other, none would end. Neither spares the other by failing.
#[test]
fn all_required_checks_run_at_once_and_all_that_fail_are_named() {
    for name in BOTH {
        let world = World::new();
        let (one, two) = (world.pipe("one"), world.pipe("two"));
        let (one, two) = (one.display(), two.display());
        world.config(&format!(
            "{}{}",
            command("lint", &format!("echo > '{one}'; read x < '{two}'; exit 3")),
            command(
                "tests",
                &format!("read x < '{one}'; echo > '{two}'; exit 4")
            ),
        ));
        world.commit();
        let agent = Agent::new(&world, name);
        agent.prompt("mend it");
        world.write("work", "1");
        let answer = agent.stop();
        let text = answer.sent_back();
        for failed in ["lint: failed, exit code 3", "tests: failed, exit code 4"] {
            assert!(text.contains(failed), "{text}");
        }
    }
}

#[test]
fn two_of_three_checks_and_one_of_two_are_enough() {
    let world = World::new();
    let checks: String = ["build", "lint", "types", "a", "b", "c"]
        .iter()
        .map(|name| command(name, &format!("test -f {name}")))
        .collect();
    world.config(&format!(
        "accept = \"build and (lint or types) and 2 of (a, b, c)\"\n{checks}"
    ));
    world.commit();
    let ends = |there: &[&str]| {
        let session = there.join("-");
        let agent = Agent::named(&world, "claude-code", &session);
        agent.prompt("mend it");
        world.write("work", &session);
        there.iter().for_each(|name| world.write(name, ""));
        let answer = agent.stop();
        let ending = world.ending();
        for name in there {
            std::fs::remove_file(world.root().join(name)).unwrap();
        }
        match answer {
            Answer::SentBack(_) => ending,
            answer => {
                assert_eq!(answer, Answer::Nothing);
                ending
            }
        }
    };
    assert_eq!(ends(&["build", "lint", "a", "b"]), "task_complete");
    assert_eq!(ends(&["build", "types", "b", "c"]), "task_complete");
    assert_eq!(ends(&["build", "lint", "a"]), "open");
    assert_eq!(ends(&["build", "a", "b", "c"]), "open");
    assert_eq!(ends(&["lint", "types", "a", "b", "c"]), "open");
}

/// The check fails, and a model's word is enough for `accept`: it is let go, and not called complete.
#[test]
fn what_a_model_alone_could_accept_is_not_complete() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        Ok(reviewer::render_judge_verdict_reply(
            body, "pass", 0.95, "none", "",
        ))
    });
    let model = model.unwrap();
    for (accept, check) in [("tests or reviewer", "exit 1"), ("reviewer", "true")] {
        let world = World::new();
        world.config(&format!(
            "accept = \"{accept}\"\n{}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n",
            command("tests", check)
        ));
        world.commit();
        let agent = Agent::beside(&world, "claude-code", &model);
        agent.prompt("mend it");
        world.write("work", "1");
        agent.stop().notice();
        let ending = world.ending();
        assert!(ending.starts_with("unverified/"), "{accept}: {ending}");
    }
    assert_eq!(
        model.received_request_bodies().len(),
        2,
        "its word was heard"
    );
}

/// Structure first, without a model; then how good it is, by a score.
#[test]
fn a_schema_and_then_a_score_gate_a_report() {
    let world = World::new();
    world.config(
        "accept = \"report and reviewer\"\n\
         [[verifier]]\nname = \"report\"\nkind = \"schema\"\nschema = \"report.schema.json\"\ntarget = \"report.json\"\n\
         [[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\nmin_score = 0.7\n",
    );
    world.write(
        "report.schema.json",
        r#"{ "type": "object", "required": ["findings"] }"#,
    );
    world.commit();
    // It says "pass" each time: a score below the line fails all the same.
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let score = if last_message_text(body).contains("second draft") {
            0.71
        } else {
            0.69
        };
        Ok(reviewer::render_judge_verdict_reply(
            body, "pass", score, "none", "",
        ))
    })
    .unwrap();
    for name in BOTH {
        let before = model.received_request_bodies().len();
        let agent = Agent::beside(&world, name, &model);
        agent.prompt("Write the report.");
        world.write("report.json", "{}");
        let answer = agent.stop_saying("Here is the first draft.");
        assert!(
            answer.sent_back().contains("'findings' is missing"),
            "{answer:?}"
        );
        assert_eq!(
            model.received_request_bodies().len(),
            before,
            "no model is asked about it"
        );

        world.write("report.json", "{ \"findings\": [] }");
        let answer = agent.stop_saying("Here is the first draft, with findings.");
        assert!(
            answer.sent_back().contains("reviewer: failed"),
            "{answer:?}"
        );
        assert!(model.received_request_bodies().len() > before);
        assert_eq!(world.ending(), "open");

        assert_eq!(
            agent.stop_saying("Here is the second draft."),
            Answer::Nothing
        );
        assert_eq!(world.ending(), "task_complete");
        world.replays(&agent.session);
    }
}
