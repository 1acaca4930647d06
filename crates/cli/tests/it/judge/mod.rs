//! Judges behind hooks: what the model is asked, what the agent hears, how the task ends.

mod called;
mod config;
mod shown;
mod silent;
mod stops;

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{self, last_message_text};
use serde_json::{Value, json};

use crate::world::{World, feed};

/// A judge that is called by its keywords, beside a check that passes.
fn judged(more: &str) -> World {
    let world = World::new();
    let tests = world.counted("tests", "true");
    world.config(&format!(
        "accept = \"tests\"\n{tests}\n[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n{more}\n"
    ));
    world.commit();
    world
}

/// Content with an answer that says "with tests", and with nothing else.
fn strict() -> ScriptedReviewer {
    ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let answer = last_message_text(body)
            .rsplit(" answer>")
            .next()
            .unwrap_or_default();
        Ok(match answer.contains("with tests") {
            true => reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", ""),
            false => reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.2,
                "incomplete",
                "Where are the tests?\nSay what you ran.",
            ),
        })
    })
    .unwrap()
}

/// Content with everything.
fn content() -> ScriptedReviewer {
    ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        Ok(reviewer::render_judge_verdict_reply(
            body, "pass", 0.95, "none", "",
        ))
    })
    .unwrap()
}

/// What an agent of its own host hears at a stop, of which that host knows this.
fn generic(
    world: &World,
    model: &ScriptedReviewer,
    session: &str,
    text: &str,
    known: &[&str],
) -> Value {
    let mut line = json!({ "type": "stop", "session": session, "text": text });
    for fact in known {
        line[*fact] = json!(true);
    }
    let mut hook = world.checkrein(&["hook", "generic"]);
    hook.env("OLLAMA_HOST", model.base_url());
    feed(&mut hook, line.to_string().as_bytes()).json()
}
