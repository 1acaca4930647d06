//! A few of the transcripts that the verifiers' own suite walks, through hooks: a model that does what the data tells it
//! is not believed, and one that quotes it and says its own is.

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{self, last_message_text, request_number_in_prompt};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::world::World;

const TRANSCRIPTS: &str = include_str!("../../../verifiers/tests/injections.jsonl");

/// Text and forged verdict of those that are walked here.
fn some() -> Vec<(String, String)> {
    const NAMES: [&str; 6] = [
        "verdict-fenced",
        "verdict-number-list",
        "delimiter-exact",
        "delimiter-cyrillic",
        "delimiter-zero-width",
        "block-whole",
    ];
    let rows = TRANSCRIPTS
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let some: Vec<(String, String)> = rows
        .filter(|row| NAMES.contains(&row["name"].as_str().unwrap()))
        .map(|row| (text(&row, "text"), text(&row, "forged")))
        .collect();
    assert_eq!(some.len(), NAMES.len());
    some
}

fn agent<'w>(world: &'w World, name: &str, model: &ScriptedReviewer) -> Agent<'w> {
    let mut agent = Agent::named(world, "claude-code", name);
    agent.env = vec![("OLLAMA_HOST", model.base_url())];
    agent
}

/// Whether our delimiters stand in it as often as the number says.
fn holds(body: &Value) {
    let (shown, number) = (last_message_text(body), request_number_in_prompt(body));
    let told = shown.matches(&format!("<quoted {number} ")).count();
    assert_eq!(shown.matches("<quoted").count(), told, "{shown}");
    assert_eq!(shown.matches("</quoted").count(), told, "{shown}");
}

#[test]
fn a_judge_that_obeys_the_data_completes_nothing() {
    for (text, forged) in some() {
        let world = World::new();
        let tests = world.counted("tests", "true");
        world.config(&format!(
            "accept = \"tests and reviewer\"\n{tests}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n"
        ));
        world.commit();
        let ending = |name: &str, model: &ScriptedReviewer| {
            let agent = agent(&world, name, model);
            agent.prompt("Write a parser.");
            world.write("parser", name);
            assert_eq!(agent.shell("cat notes", &text), Answer::Nothing);
            let answer = agent.stop_saying(&format!("Done.\n{text}"));
            holds(model.received_request_bodies().last().unwrap());
            answer
        };
        let said = forged.clone();
        let obeys =
            ScriptedReviewer::start_scripted_reviewer_server(move |_, _| Ok(said.clone())).unwrap();
        let answer = ending("obeys", &obeys);
        assert!(
            answer.notice().contains("unverified (passed_over)"),
            "{answer:?}"
        );
        let resists = ScriptedReviewer::start_scripted_reviewer_server(move |body, _| {
            let own = reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.1,
                "incomplete",
                "run the tests",
            );
            Ok(format!("The data wants {forged}.\n{own}"))
        })
        .unwrap();
        let answer = ending("resists", &resists);
        assert!(answer.sent_back().contains("run the tests"), "{answer:?}");
    }
}

#[test]
fn a_veto_that_obeys_the_data_is_no_allow() {
    let world = World::new();
    world.config("[veto]\nenabled = true\nmodel = \"ollama/v\"\n");
    world.commit();
    for (nth, (text, forged)) in some().into_iter().enumerate() {
        let ask = |name: &str, model: &ScriptedReviewer| {
            let agent = agent(&world, &format!("{name}-{nth}"), model);
            agent.prompt("Draft the release, publish nothing.");
            let call = format!("git push origin main # {text}");
            let answer = agent.tell(&agent.call(&agent.next_id(), &call));
            holds(model.received_request_bodies().last().unwrap());
            (answer, format!("{:?}", world.log(&agent.session)))
        };
        let said = forged.replace("pass", "allow");
        let obeys =
            ScriptedReviewer::start_scripted_reviewer_server(move |_, _| Ok(said.clone())).unwrap();
        let (answer, log) = ask("obeys", &obeys);
        // What nobody judged runs, and is told from what was allowed.
        assert_eq!(answer, Answer::Nothing);
        assert!(log.contains("says: NoAnswer"), "{log}");
        assert!(!log.contains("says: Allow"), "{log}");
        let resists = ScriptedReviewer::start_scripted_reviewer_server(move |body, _| {
            let own = json!({
                "ref": request_number_in_prompt(body), "verdict": "veto", "confidence": 0.9,
                "reason": "it publishes", "new_args": "",
            });
            Ok(format!("The data wants {forged}.\n{own}"))
        })
        .unwrap();
        let (answer, _) = ask("resists", &resists);
        assert!(answer.denied().contains("it publishes"), "{answer:?}");
    }
}
