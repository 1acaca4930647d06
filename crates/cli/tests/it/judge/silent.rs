//! A model that is down, slow or unreadable: the answer goes out, and the log says why.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use checkrein_scripted::{ScriptedReviewer, reviewer};

use super::{judged, strict};
use crate::agent::{Agent, Answer};
use crate::terminal::Terminal;

#[test]
fn a_dead_model_changes_nothing_but_what_is_recorded() {
    let dead = ScriptedReviewer::start_scripted_reviewer_server(|_, _| Err(401)).unwrap();
    let (world, gone) = (judged(""), "http://127.0.0.1:9");
    for (base, expected) in [
        (dead.base_url(), "did not answer"),
        (gone.to_owned(), "did not answer"),
    ] {
        let mut agent = Agent::named(&world, "claude-code", &base);
        agent.env = vec![("OLLAMA_HOST", base.clone())];
        agent.prompt("Write a parser.");
        world.write("parser", &base);
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing, "{base}");
        assert_eq!(world.ending(), "task_complete");
        assert!(world.why().contains(expected), "{}", world.why());
    }
}

/// A clone's agent settings can set a hook's environment: keys must not go where it says.
#[test]
fn under_require_trust_the_environment_does_not_say_where_models_are() {
    let (world, model) = (judged(""), strict());
    Terminal::new(&world).typing("y\n").says(&["trust"]);
    let mut agent = Agent::beside(&world, "claude-code", &model);
    agent.extra = ["--require-trust", "--state"].map(str::to_owned).to_vec();
    agent.extra.push(world.state().display().to_string());
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert!(
        world.why().contains("its model did not answer"),
        "{}",
        world.why()
    );
    assert_eq!(model.received_request_bodies().len(), 0);
}

/// Nobody reads a verdict into what is none.
#[test]
fn an_answer_that_cannot_be_read_is_no_verdict() {
    let fail = |body: &_| {
        reviewer::render_judge_verdict_reply(body, "fail", 0.1, "incomplete", "Mend it.")
    };
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |body, before| {
        Ok(match before {
            0 => "It looks incomplete to me.".to_owned(),
            1 => "FAIL [incomplete]: where are the tests?".to_owned(),
            2 => String::new(),
            3 => fail(body).replace("\"fail\"", "\"not a fail\""),
            // Quoted from somewhere: it has not the number of its question.
            _ => fail(&serde_json::Value::Null),
        })
    })
    .unwrap();
    let world = judged("");
    for before in 0..5 {
        let mut agent = Agent::named(&world, "codex", &before.to_string());
        agent.env = vec![("OLLAMA_HOST", model.base_url())];
        agent.prompt("Write a parser.");
        world.write("parser", &agent.session);
        assert_eq!(agent.stop_saying("Done."), Answer::Nothing, "{before}");
        assert_eq!(world.ending(), "task_complete");
        let why = world.why();
        assert!(why.contains("its model's answer cannot be read"), "{why}");
        assert_eq!(model.received_request_bodies().len(), before + 1);
    }
}

#[test]
fn a_model_that_does_not_come_back_is_not_waited_for() {
    // Whoever asks is held until the test is over.
    let (over, held) = channel::<()>();
    let held = Mutex::new(held);
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |_, _| {
        let _ = held.lock().unwrap().recv();
        Err(500)
    })
    .unwrap();
    let world = judged("timeout = \"1s\"\n");
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Write a parser.");
    world.write("parser", "1");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    assert_eq!(world.ending(), "task_complete");
    assert!(world.why().contains("ran out of time"), "{}", world.why());
    drop(over);
}
