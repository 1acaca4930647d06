//! A second model beside the agent: what it is asked, and what the agent hears of it.

use checkrein_scripted::reviewer::{self, last_message_text, request_number_in_prompt};
use checkrein_scripted::{ScriptedCoderServer, ScriptedCoderTurn, ScriptedReviewer};
use serde_json::{Value, json};

use crate::agent::{Agent, Answer, BOTH};
use crate::coder;
use crate::world::World;

fn watched(config: &str) -> World {
    let world = World::new();
    world.config(config);
    world.commit();
    world
}

const VETO: &str = "[veto]\nenabled = true\nmodel = \"ollama/v\"\n";

fn says(body: &Value, verdict: &str, confidence: f64, args: Option<&str>) -> String {
    json!({
        "ref": request_number_in_prompt(body), "verdict": verdict, "confidence": confidence,
        "reason": "the goal says draft only", "new_args": args,
    })
    .to_string()
}

/// Vetoes what sends, mends what names the wrong host, and allows the rest.
fn strict() -> ScriptedReviewer {
    ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let call = last_message_text(body)
            .rsplit("\ntool: ")
            .next()
            .unwrap_or_default();
        Ok(if call.contains("git push") {
            says(body, "veto", 0.92, None)
        } else if call.contains("prod.example") {
            says(
                body,
                "rewrite",
                0.9,
                Some("{\"command\": \"ssh test.example uptime\"}"),
            )
        } else if call.contains("rm -rf ~/x") {
            says(body, "veto", 0.3, None)
        } else {
            says(body, "allow", 0.95, None)
        })
    })
    .unwrap()
}

#[test]
fn a_call_is_vetoed_and_another_rewritten() {
    for name in BOTH {
        let (world, model) = (watched(VETO), strict());
        let agent = Agent::beside(&world, name, &model);
        agent.prompt("Draft the release, publish nothing.");
        let answer = agent.shell("git push origin main", "");
        let text = answer.denied();
        assert!(
            text.starts_with("[verifier-veto] Bash: the goal says draft only (confidence 0.92)"),
            "{text}"
        );
        let answer = agent.shell("ssh prod.example uptime", "");
        let text = answer.denied();
        assert!(text.contains("ssh test.example uptime"), "{text}");
        assert_eq!(
            agent.shell("ssh test.example uptime", "up"),
            Answer::Nothing
        );
        // It is not sure enough.
        assert_eq!(agent.shell("rm -rf ~/x", ""), Answer::Nothing, "{name}");
        assert_eq!(model.received_request_bodies().len(), 4);
        let shown = last_message_text(&model.received_request_bodies()[3]).to_owned();
        assert!(shown.contains("Draft the release"), "{shown}");
        assert!(
            shown.contains("called Bash"),
            "it is shown what came before: {shown}"
        );
        world.replays(&agent.session);
    }
}

#[test]
fn ordinary_work_is_not_asked_about() {
    let (world, model) = (watched(VETO), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Look around.");
    for command in [
        "ls -la",
        "cat README",
        "cargo test",
        "git status",
        "mkdir -p a/b && touch a/b/c",
    ] {
        assert_eq!(agent.shell(command, ""), Answer::Nothing, "{command}");
    }
    assert_eq!(model.received_request_bodies().len(), 0);
    let all = watched(&format!("{VETO}scope = \"all\"\n"));
    let agent = Agent::beside(&all, "claude-code", &model);
    agent.prompt("Look around.");
    assert_eq!(agent.shell("ls -la", ""), Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 1);
}

#[test]
fn veto_answers_are_cached_and_capped() {
    let (world, model) = (watched(&format!("{VETO}max_calls = 2\n")), strict());
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Draft the release.");
    for _ in 0..3 {
        assert!(matches!(
            agent.shell("git push origin main", ""),
            Answer::Denied(_)
        ));
    }
    assert_eq!(
        model.received_request_bodies().len(),
        1,
        "the same call of the same task"
    );
    assert!(matches!(
        agent.shell("git push origin next", ""),
        Answer::Denied(_)
    ));
    // As many as may be were asked about, and the log says so.
    assert_eq!(agent.shell("git push origin third", ""), Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 2);
    let log = format!("{:?}", world.log(&agent.session));
    assert!(log.contains("LimitReached"), "{log}");
    // Another task begins anew.
    agent.prompt("And again.");
    assert!(matches!(
        agent.shell("git push origin fourth", ""),
        Answer::Denied(_)
    ));
}

#[test]
fn a_dead_model_stops_nothing() {
    let dead = ScriptedReviewer::start_scripted_reviewer_server(|_, _| Err(401)).unwrap();
    let prose = ScriptedReviewer::start_scripted_reviewer_server(|_, _| {
        Ok("I would not do that.".to_owned())
    })
    .unwrap();
    let other = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        Ok(says(body, "veto", 0.9, None).replace("veto\"", "not blocked\""))
    })
    .unwrap();
    for model in [dead, prose, other] {
        let world = watched(VETO);
        let agent = Agent::beside(&world, "claude-code", &model);
        agent.prompt("Draft the release.");
        assert_eq!(agent.shell("git push origin main", ""), Answer::Nothing);
        let log = format!("{:?}", world.log(&agent.session));
        assert!(log.contains("NoAnswer"), "{log}");
    }
}

#[test]
fn what_a_rule_refuses_is_not_asked_about() {
    let world = watched(&format!("{VETO}[policy]\nrules = [\"own.rules\"]\n"));
    world.write(
        "own.rules",
        "prefix_rule(['git', 'push'], 'forbidden', justification='a person pushes')\n",
    );
    world.commit();
    let model = strict();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Publish.");
    let answer = agent.shell("git push origin main", "");
    assert!(answer.denied().contains("a person pushes"));
    assert_eq!(model.received_request_bodies().len(), 0);
}

#[test]
fn veto_and_progress_are_off_by_default() {
    let model = strict();
    for (config, asked) in [
        ("", 0),
        (
            "[veto]\nmodel = \"ollama/v\"\n[progress]\nmodel = \"ollama/p\"\n",
            0,
        ),
        (
            "[veto]\nenabled = false\nmodel = \"ollama/v\"\n[progress]\nenabled = false\nmodel = \"ollama/p\"\n",
            0,
        ),
        (VETO, 1),
    ] {
        let world = watched(config);
        let agent = Agent::beside(&world, "claude-code", &model);
        agent.prompt("Draft the release.");
        let vetoed = matches!(agent.shell("git push origin main", ""), Answer::Denied(_));
        assert_eq!(vetoed, asked > 0, "{config}");
        agent.shell("ls", "");
        assert_eq!(model.received_request_bodies().len(), asked, "{config}");
    }
    assert_eq!(model.received_request_bodies()[0]["model"], "v");
}

/// Vetoes come with 0.92 and, for a removal, with 0.3.
#[test]
fn a_veto_counts_from_its_confidence_threshold() {
    for (least, push, removal) in [
        ("", true, false),
        ("min_confidence = 0.2\n", true, true),
        ("min_confidence = 0.92\n", true, false),
        ("min_confidence = 0.95\n", false, false),
    ] {
        let (world, model) = (watched(&format!("{VETO}{least}")), strict());
        let agent = Agent::beside(&world, "codex", &model);
        agent.prompt("Draft the release.");
        let denied = |command| matches!(agent.shell(command, ""), Answer::Denied(_));
        assert_eq!(denied("git push origin main"), push, "{least}");
        assert_eq!(denied("rm -rf ~/x"), removal, "{least}");
        assert_eq!(model.received_request_bodies().len(), 2);
    }
}

/// The first example of the seed: it looks for a channel, sends to the wrong one and then to the right one.
#[test]
fn a_message_to_the_wrong_channel_is_vetoed_and_the_right_one_allowed() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        // Later questions show earlier calls as well.
        let (verdict, confidence) = match last_message_text(body) {
            shown if shown.contains("#qa") => ("allow", 0.91),
            shown if shown.contains("#engineering") => ("veto", 0.92),
            _ => ("allow", 0.95),
        };
        Ok(says(body, verdict, confidence, None).replace(
            "the goal says draft only",
            "wrong channel; the person said QA",
        ))
    })
    .unwrap();
    let world = watched(&format!("{VETO}scope = \"all\"\n"));
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Send a friendly reminder to the QA team about Friday's release.");
    let calls = |tool: &str, arguments: Value| {
        let call = json!({ "tool_name": format!("mcp__slack__{tool}"), "tool_input": arguments, "tool_use_id": agent.next_id() });
        agent.tell(&agent.message("PreToolUse", call))
    };
    let heard = calls("slack_search", json!({ "query": "QA channel" }));
    assert_eq!(heard, Answer::Nothing);
    let heard = calls(
        "slack_send",
        json!({ "channel": "#engineering", "text": "..." }),
    );
    let told = "wrong channel; the person said QA (confidence 0.92)";
    assert!(heard.denied().starts_with("[verifier-veto]"), "{heard:?}");
    assert!(heard.denied().contains(told), "{heard:?}");
    let heard = calls("slack_send", json!({ "channel": "#qa", "text": "..." }));
    assert_eq!(heard, Answer::Nothing);
    assert_eq!(model.received_request_bodies().len(), 3);
}

/// After which calls of seven a word comes, and how often the model was asked, if it rates
/// steps so.
fn told(more: &str, scores: &'static [f64]) -> (Vec<usize>, usize) {
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |body, before| {
        let score = scores.get(before).copied().unwrap_or(0.9);
        let said =
            json!({ "ref": request_number_in_prompt(body), "score": score, "summary": "", "suggested_action": null });
        Ok(said.to_string())
    })
    .unwrap();
    let world = watched(&format!(
        "[progress]\nenabled = true\nmodel = \"ollama/p\"\n{more}"
    ));
    let agent = Agent::beside(&world, "codex", &model);
    agent.prompt("Find the bug.");
    let advised = |at: &usize| {
        let heard = agent.shell(&format!("cat file{at}"), "");
        matches!(heard, Answer::Advice(_))
    };
    let advised = (0..7).filter(advised).collect();
    let asked = model.received_request_bodies();
    assert!(asked.iter().all(|body| body["model"] == "p"));
    (advised, asked.len())
}

#[test]
fn the_threshold_decides_which_steps_are_low() {
    const SCORES: &[f64] = &[0.39, 0.39, 0.4, 0.39, 0.39, 0.39];
    assert_eq!(told("", SCORES), (vec![6], 6));
    assert_eq!(told("threshold = 0.3\n", SCORES), (vec![], 6));
    assert_eq!(told("threshold = 0.5\n", SCORES), (vec![3, 6], 6));
}

#[test]
fn the_window_decides_how_many_low_steps_nudge() {
    const LOW: &[f64] = &[0.1; 6];
    assert_eq!(told("", LOW), (vec![3, 6], 6));
    assert_eq!(told("window = 1\n", LOW), (vec![1, 2, 3, 4, 5, 6], 6));
    assert_eq!(told("window = 5\n", LOW), (vec![5], 6));
}

#[test]
fn steps_beyond_the_cap_are_not_rated() {
    const LOW: &[f64] = &[0.1; 6];
    assert_eq!(told("max_calls = 4\n", LOW), (vec![3], 4));
    assert_eq!(told("max_calls = 2\n", LOW), (vec![], 2));
}

/// One of them watches the work, the other reads what comes of it.
#[test]
fn a_veto_model_and_a_judge_work_in_one_task() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let shown = last_message_text(body);
        Ok(if body["model"] == "v" {
            says(body, "veto", 0.9, None)
        } else if shown.contains("with tests") {
            reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", "")
        } else {
            reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.2,
                "incomplete",
                "Where are the tests?",
            )
        })
    })
    .unwrap();
    let world = watched(&format!(
        "{VETO}[[verifier]]\nname = \"j\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n"
    ));
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Draft the release.");
    let heard = agent.shell("git push origin main", "");
    assert!(heard.denied().starts_with("[verifier-veto]"), "{heard:?}");
    world.write("release", "1");
    let heard = agent.stop_saying("Done.");
    assert!(
        heard.sent_back().contains("incomplete: Where are"),
        "{heard:?}"
    );
    agent.stop_saying("Done, with tests.");
    assert!(
        world.ending().starts_with("unverified"),
        "no check is there"
    );
    let asked = model.received_request_bodies();
    let models: Vec<&Value> = asked.iter().map(|body| &body["model"]).collect();
    assert_eq!(models, ["v", "j", "j"]);
}

#[test]
fn a_row_of_low_scores_nudges_once() {
    let config = "[progress]\nenabled = true\nmodel = \"ollama/p\"\n";
    // The example of the seed: 0.7, 0.3, 0.2, 0.2, and a nudge; then 0.6.
    let scores = [0.7, 0.3, 0.2, 0.2, 0.6, 0.1];
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |body, before| {
        let score = scores.get(before).copied().unwrap_or(0.9);
        Ok(json!({
            "ref": request_number_in_prompt(body), "score": score, "summary": "reads the same file again",
            "suggested_action": "try grep instead of read_file",
        })
        .to_string())
    })
    .unwrap();
    let world = watched(config);
    let agent = Agent::beside(&world, "codex", &model);
    agent.prompt("Find the bug.");
    let mut heard = Vec::new();
    for n in 0..7 {
        heard.push(agent.shell(&format!("cat file{n}"), ""));
    }
    let advice: Vec<usize> = heard
        .iter()
        .enumerate()
        .filter(|(_, answer)| matches!(answer, Answer::Advice(_)))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(advice, [4], "{heard:?}");
    let Answer::Advice(text) = &heard[4] else {
        panic!("{heard:?}");
    };
    assert!(
        text.starts_with("[progress-check] the last 3 steps brought little"),
        "{text}"
    );
    assert!(text.contains("try grep instead of read_file"), "{text}");
    assert_eq!(
        model.received_request_bodies().len(),
        6,
        "before each call but the first"
    );
    assert!(last_message_text(&model.received_request_bodies()[0]).contains("cat file0"));
    world.replays(&agent.session);
}

/// `run --model`: an agent of our own with nobody beside it but these.
#[test]
fn the_second_models_apply_to_run_with_a_model() {
    const NAME: &str = "anthropic/claude-sonnet-4-5";
    let cheap = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let shown = last_message_text(body);
        Ok(match body["model"].as_str() {
            Some("v") if shown.contains("git push") => says(body, "veto", 0.92, None),
            Some("v") => says(body, "allow", 0.95, None),
            Some("p") => json!({
                "ref": request_number_in_prompt(body), "score": 0.1, "summary": "reads on",
                "suggested_action": "write the parser",
            })
            .to_string(),
            _ if shown.contains("with tests") => {
                reviewer::render_judge_verdict_reply(body, "pass", 0.95, "none", "")
            }
            _ => reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.2,
                "incomplete",
                "Where are the tests?",
            ),
        })
    })
    .unwrap();
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::scripted_shell_call_turn("git push origin main"),
        ScriptedCoderTurn::scripted_shell_call_turn("cat README"),
        ScriptedCoderTurn::scripted_shell_call_turn("ls"),
        ScriptedCoderTurn::scripted_shell_call_turn("echo 1 > parser"),
        ScriptedCoderTurn::scripted_text_turn("Done."),
        ScriptedCoderTurn::scripted_text_turn("Done, with tests."),
    ])
    .unwrap();
    let world = watched(&format!(
        "{VETO}[progress]\nenabled = true\nmodel = \"ollama/p\"\nwindow = 2\n\
        [[verifier]]\nname = \"there\"\nrun = \"test -f parser\"\n\
        [[verifier]]\nname = \"j\"\nkind = \"judge\"\nmodel = \"ollama/j\"\n"
    ));
    let mut run = coder::run(&world, &coder, NAME, &["--model", NAME, "Write a parser."]);
    let said = coder::says(run.env("OLLAMA_HOST", cheap.base_url()));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(world.ending(), "task_complete");
    let heard = &coder.requests_to_scripted_coder().pop().unwrap().full_text;
    for told in [
        "[verifier-veto] shell: the goal says draft only (confidence 0.92)",
        "[progress-check] the last 2 steps brought little",
        "incomplete: Where are the tests?",
    ] {
        assert!(heard.contains(told), "{told}: {heard}");
    }
    let asked = cheap.received_request_bodies();
    let of = |model: &str| asked.iter().filter(|body| body["model"] == model).count();
    assert_eq!((of("v"), of("p"), of("j")), (1, 3, 2));
}

/// A flight that nobody watches but the second model.
#[test]
fn a_veto_applies_to_an_autopilot_run() {
    const NAME: &str = "anthropic/claude-sonnet-4-5";
    let (world, cheap) = (watched(VETO), strict());
    let goal = format!(
        "goal = \"A parser is there.\"\nmodel = \"{NAME}\"\n[budget]\ndollars = 5\n\
        [[criterion]]\nname = \"there\"\nrun = \"test -f parser\"\n"
    );
    world.write("GOAL.toml", &goal);
    world.commit();
    let coder = ScriptedCoderServer::start_with_scripted_turns(vec![
        ScriptedCoderTurn::scripted_shell_call_turn("git push origin main"),
        ScriptedCoderTurn::scripted_tool_call_turn("delete_all_files", json!({})),
        ScriptedCoderTurn::scripted_shell_call_turn("echo 1 > parser"),
        ScriptedCoderTurn::scripted_text_turn("Reached."),
    ])
    .unwrap();
    let mut flight = coder::run(&world, &coder, NAME, &["--autopilot", "GOAL.toml"]);
    let said = coder::says(flight.env("OLLAMA_HOST", cheap.base_url()));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(world.ending(), "task_complete");
    let heard = &coder.requests_to_scripted_coder().pop().unwrap().full_text;
    for told in [
        "[verifier-veto] shell:",
        "there is no tool 'delete_all_files'",
    ] {
        assert!(heard.contains(told), "{told}: {heard}");
    }
    // About what could do harm, and once.
    assert_eq!(cheap.received_request_bodies().len(), 2);
}

#[test]
fn progress_is_judged_by_what_the_steps_produced() {
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let said = json!({ "ref": request_number_in_prompt(body), "score": 0.9, "summary": "", "suggested_action": null });
        Ok(said.to_string())
    })
    .unwrap();
    let world = watched("[progress]\nenabled = true\nmodel = \"ollama/v\"\n");
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Make the tests pass.");
    let key = format!("AKIA{}", "QWERTYUIOPASDFGH");
    let output = format!("running 3 tests, key {key} {} 2 failed", "x ".repeat(2_000));
    for command in ["cargo test", "cargo test --quiet", "cargo test -v"] {
        agent.shell(command, &output);
        agent.tell(&agent.message("PostToolBatch", json!({ "tool_calls": [] })));
    }
    agent.shell("ls", "");
    let asked = model.received_request_bodies();
    let shown = last_message_text(asked.last().unwrap());
    for wanted in [
        "done",
        "with the same outcome as the call before",
        "running 3 tests",
        "2 failed",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(!shown.contains(&key), "{shown}");
    let log = format!("{:?}", world.log(&agent.session));
    assert!(!log.contains(&key), "nor is it kept");
    world.replays(&agent.session);
}

#[test]
fn the_veto_sees_how_earlier_calls_ended() {
    let (world, model) = (
        watched(&format!(
            "{VETO}scope = \"all\"\n[policy]\nrules = [\"r.rules\"]\n"
        )),
        strict(),
    );
    world.write(
        "r.rules",
        "prefix_rule(pattern = [\"rm\", \"-rf\"], decision = \"forbidden\")\n",
    );
    world.commit();
    let agent = Agent::beside(&world, "claude-code", &model);
    agent.prompt("Draft the release, publish nothing.");
    let last = || {
        let asked = model.received_request_bodies();
        last_message_text(asked.last().unwrap()).to_owned()
    };
    agent.shell("ls -la", "README");
    assert!(matches!(
        agent.shell("git push origin main", ""),
        Answer::Denied(_)
    ));
    assert!(last().contains("(done) called Bash"), "{}", last());
    assert!(matches!(agent.shell("rm -rf work", ""), Answer::Denied(_)));
    agent.shell("cat README", "text");
    let shown = last();
    assert!(shown.contains("(vetoed) called Bash"), "{shown}");
    assert!(shown.contains("(denied) called Bash"), "{shown}");
    world.replays(&agent.session);
}
