//! Stories in which a second model is asked: about an answer, a call, a step; and one in which a
//! model is the agent.

use checkrein_scripted::coder::{
    PROVIDER_ENTRIES, ScriptedCoderConversation, nth_or_last_scripted_turn,
};
use checkrein_scripted::reviewer::{self, last_message_text, request_number_in_prompt};
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn, ScriptedReviewer};
use serde_json::{Value, json};

use super::logs::Told;
use super::stories::{CHECK, world};
use crate::agent::{Agent, Answer};
use crate::coder::{FIX, repo, run, says};
use crate::world::{World, feed};

const JUDGE: &str = "[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n";

fn fails(body: &Value) -> String {
    reviewer::render_judge_verdict_reply(body, "fail", 0.2, "incomplete", "Where are the tests?")
}

fn passes(body: &Value) -> String {
    reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", "")
}

/// Required, content with an answer that names tests; its model is gone at the end.
pub(super) fn judged() -> Told {
    let world = world(&format!("accept = \"tests and reviewer\"\n{CHECK}{JUDGE}"));
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let answer = last_message_text(body)
            .rsplit(" answer>")
            .next()
            .unwrap_or_default();
        match before {
            2 => Ok("It looks fine to me.".to_owned()),
            3.. => Err(500),
            _ if answer.contains("with tests") => Ok(passes(body)),
            _ => Ok(fails(body)),
        }
    });
    let model = model.unwrap();
    let mut agent = Agent::beside(&world, "claude-code", &model);
    agent.session = "judged".to_owned();
    agent.prompt("write a parser");
    world.write("fixed", "");
    world.write("parser", "1");
    agent.stop_saying("Done.").sent_back();
    assert_eq!(agent.stop_saying("Done, with tests."), Answer::Nothing);
    agent.prompt("and a printer");
    world.write("printer", "1");
    agent.stop_saying("Done.").notice();
    Told::of(&world, "judged")
}

/// Called by a word, not required; yes and no to the same answer.
pub(super) fn wavering() -> Told {
    let world = world(&format!("accept = \"tests\"\n{CHECK}{JUDGE}"));
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let (verdict, score) = if before % 2 == 0 {
            ("pass", 0.71)
        } else {
            ("fail", 0.69)
        };
        Ok(reviewer::render_judge_verdict_reply(
            body, verdict, score, "none", "Perhaps.",
        ))
    });
    let model = model.unwrap();
    let mut agent = Agent::beside(&world, "codex", &model);
    agent.session = "wavering".to_owned();
    agent.prompt("write a parser");
    world.write("fixed", "");
    agent.stop_saying("The parser is there.");
    world.write("parser", "1");
    agent.stop_saying("Done.");
    Told::of(&world, "wavering")
}

/// It is asked, and nothing follows.
pub(super) fn in_shadow() -> Told {
    let world = world(&format!(
        "accept = \"tests\"\n{CHECK}{JUDGE}mode = \"shadow\"\n"
    ));
    let model =
        ScriptedReviewer::start_scripted_reviewer_server(|body, _| Ok(fails(body))).unwrap();
    let mut agent = Agent::beside(&world, "claude-code", &model);
    agent.session = "shadow".to_owned();
    agent.prompt("write a parser");
    world.write("fixed", "");
    assert_eq!(agent.stop_saying("Done."), Answer::Nothing);
    Told::of(&world, "shadow")
}

/// `HEARTBEAT.md`, and what rules a judge out.
pub(super) fn standing_tasks() -> Told {
    let world = world(&format!(
        "accept = \"tests\"\n{CHECK}{JUDGE}heartbeat = true\n"
    ));
    world.write("HEARTBEAT.md", "- [ ] look at the queue\n");
    world.write("fixed", "");
    world.commit();
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        Ok(if before == 0 {
            fails(body)
        } else {
            passes(body)
        })
    });
    let model = model.unwrap();
    let tell = |line: Value| {
        let mut line = line;
        line["session"] = json!("beats");
        let mut hook = world.checkrein(&["hook", "generic"]);
        hook.env("OLLAMA_HOST", model.base_url());
        feed(&mut hook, line.to_string().as_bytes()).json()
    };
    tell(json!({ "type": "user", "text": "beat" }));
    let beat = |known: &str| {
        tell(json!({ "type": "stop", "text": "HEARTBEAT_OK", "heartbeat": true, known: true }))
    };
    beat("heartbeat");
    world.write("HEARTBEAT.md", "- [x] look at the queue\n");
    beat("heartbeat");
    for known in ["pending_tool_calls", "delivered", "streamed"] {
        beat(known);
    }
    Told::of(&world, "beats")
}

fn veto(body: &Value, verdict: &str, confidence: f64, args: Option<&str>) -> String {
    let said = json!({
        "ref": request_number_in_prompt(body), "verdict": verdict, "confidence": confidence,
        "reason": "the goal says draft only", "new_args": args,
    });
    said.to_string()
}

pub(super) fn vetoed() -> Told {
    let config = "[veto]\nenabled = true\nmodel = \"ollama/v\"\nscope = \"all\"\nmax_calls = 5\n";
    let world = world(config);
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        Ok(match before {
            0 => veto(body, "veto", 0.92, None),
            1 => veto(
                body,
                "rewrite",
                0.9,
                Some("{\"command\": \"ssh test.example\"}"),
            ),
            2 => veto(body, "veto", 0.3, None),
            3 => "I would not do that.".to_owned(),
            _ => veto(body, "allow", 0.95, None),
        })
    });
    let model = model.unwrap();
    let mut agent = Agent::beside(&world, "claude-code", &model);
    agent.session = "vetoed".to_owned();
    agent.prompt("draft the release");
    for command in [
        "git push origin main",
        "git push origin main",
        "ssh prod.example",
        "ls one",
        "ls two",
        "ls three",
        "ls four",
    ] {
        agent.shell(command, "");
    }
    world.write("work", "1");
    agent.stop();
    Told::of(&world, "vetoed")
}

pub(super) fn progress() -> Told {
    let world =
        world("[progress]\nenabled = true\nmodel = \"ollama/p\"\nwindow = 2\nmax_calls = 5\n");
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let rated = |score: f64, suggestion: Option<&str>| {
            json!({ "ref": request_number_in_prompt(body), "score": score, "summary": "it reads", "suggested_action": suggestion }).to_string()
        };
        Ok(match before {
            0 | 1 => rated(0.1, Some("run the tests")),
            2 => "Well.".to_owned(),
            _ => rated(0.9, None),
        })
    });
    let model = model.unwrap();
    let mut agent = Agent::beside(&world, "codex", &model);
    agent.session = "rated".to_owned();
    agent.prompt("find the bug");
    for n in 0..7 {
        agent.shell(&format!("cat file{n}"), "");
    }
    agent.stop();
    Told::of(&world, "rated")
}

/// A goal with criteria and a budget, and a model that is sent back once.
pub(super) fn autopilot() -> Told {
    let world: World = repo(false);
    let (name, ..) = PROVIDER_ENTRIES[0];
    world.write(
        "GOAL.toml",
        &format!(
            "goal = \"The answer is right, and the notes say so.\"\nmodel = \"{name}\"\n\n\
             [budget]\ndollars = 5\nseconds = 600\ntokens = 100_000\niterations = 40\ntool_calls = 30\n\n\
             [[criterion]]\nname = \"noted\"\nrun = \"grep -q right notes && grep -qx 42 answer\"\n"
        ),
    );
    world.commit();
    let coder =
        ScriptedCoderServer::start_coder_model_server(|heard: &ScriptedCoderConversation| {
            let turns = [
                ScriptedCoderTurn::scripted_text_turn("The goal is reached."),
                ScriptedCoderTurn::scripted_shell_call_turn("sh deploy.sh"),
                ScriptedCoderTurn::patch_turn(FIX),
                ScriptedCoderTurn::scripted_shell_call_turn("echo right > notes"),
                ScriptedCoderTurn::scripted_text_turn("Reached."),
            ];
            nth_or_last_scripted_turn(&turns, heard.turns)
        });
    let coder = coder.unwrap();
    let said = says(&mut run(
        &world,
        &coder,
        name,
        &["--autopilot", "GOAL.toml", "--json"],
    ));
    assert_eq!(said.code, Some(0), "{said:?}");
    Told::of(&world, said.json()["session"].as_str().unwrap())
}
