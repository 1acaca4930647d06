//! `checkrein judge calibrate`: labelled answers, with what a judge said of them or with a model on
//! loopback that is asked.

use std::fmt::Write as _;
use std::sync::Mutex;

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{self, last_message_text, request_number_in_prompt};
use serde_json::{Value, json};

use crate::world::{Said, World, signal, start};

/// `request 7` is answered by `answer 7`.
fn line(at: usize, label: &str, more: &Value) -> String {
    let mut line = json!({
        "id": format!("{at}"), "request": format!("request {at}"),
        "answer": format!("answer {at}"), "label": label,
    });
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    format!("{line}\n")
}

fn calibrate(world: &World, model: Option<&ScriptedReviewer>, args: &[&str]) -> Said {
    let mut command = world.checkrein(&["judge", "calibrate"]);
    command.args(args).stdin(std::process::Stdio::null());
    if let Some(model) = model {
        command.env("OLLAMA_HOST", model.base_url());
    }
    Said::of(&command.output().unwrap())
}

/// The number in "answer 7", which is asked about.
fn about(body: &Value) -> usize {
    let shown = last_message_text(body).rsplit("\nanswer ").next().unwrap();
    let digits: String = shown.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn recorded_replies_are_measured_without_a_model() {
    let world = World::without_git();
    let mut text = String::new();
    for at in 0..120 {
        let label = if at < 60 { "pass" } else { "fail" };
        let more = match at {
            0..50 => json!({"reply": {"verdict": "pass"}}),
            50..55 => json!({"reply": {"verdict": "fail"}}),
            55..58 => json!({"reply": {"text": "Looks good to me.", "ref": 12_345_678}}),
            58..60 => json!({"reply": {"verdict": "pass"}}),
            60..100 => json!({"category": "incomplete", "reply": {
                "ref": 12_345_678,
                "text": "{\"ref\": 12345678, \"verdict\": \"fail\", \"category\": \"incomplete\", \"feedback\": \"x\"}",
            }}),
            100..110 => {
                json!({"category": "incomplete", "reply": {"verdict": "fail", "category": "goal_missed"}})
            }
            _ => json!({"category": "refusal", "reply": {"verdict": "pass"}}),
        };
        text += &line(at, label, &more);
    }
    world.write("labels.jsonl", &text);
    let said = calibrate(&world, None, &["labels.jsonl", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found = said.json();
    assert_eq!(found["schema"], "checkrein/judge-calibrate/1");
    assert_eq!(
        (&found["kind"], &found["enough"]),
        (&json!("verdicts"), &json!(true))
    );
    let measured = &found["measured"];
    assert_eq!(measured["labels"], json!({"pass": 60, "fail": 60}));
    let none = json!({"unreadable": 3, "unanswered": 0, "wavering": 0});
    assert_eq!(
        measured["said"]["pass"],
        json!({"pass": 52, "fail": 5, "none": none})
    );
    assert_eq!(measured["said"]["fail"]["fail"], 50);
    assert_eq!(measured["agreement"]["count"], 102);
    assert_eq!(
        measured["agreement"]["of"], 120,
        "who says nothing does not agree"
    );
    assert_eq!(measured["precision"]["of"], 55);
    assert_eq!(measured["recall"]["of"], 60);
    assert_eq!(
        measured["categories"],
        json!({"incomplete": {"incomplete": 40, "goal_missed": 10}, "refusal": {"pass": 10}})
    );
    // By hand, from the table 52 5 / 10 50.
    let (n, rows, columns) = (117.0, [57.0, 60.0], [62.0, 55.0]);
    let chance = (rows[0] * columns[0] + rows[1] * columns[1]) / (n * n);
    let kappa = (102.0 / n - chance) / (1.0 - chance);
    assert!((measured["kappa"]["value"].as_f64().unwrap() - kappa).abs() < 1e-9);

    let said = calibrate(&world, None, &["labels.jsonl"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for shown in [
        "120 labels: 60 pass, 60 fail",
        "85.0 %  (102 of 120; ",
        "3 unreadable; none of them agrees",
        "incomplete 40, goal_missed 10",
        "enough evidence",
    ] {
        assert!(said.stdout.contains(shown), "{shown}: {}", said.stdout);
    }
    assert!(!said.stdout.contains('\u{1b}'), "plain in a pipe");
}

#[test]
fn exit_status_and_lacks_follow_the_number_of_agreements() {
    let world = World::without_git();
    // Labels, replies that agree, replies that do not.
    for (right, wrong, code, lacks) in [
        (95, 5, 0, json!([])),
        (94, 5, 3, json!(["labels"])),
        (75, 35, 1, json!(["agreement"])),
        (50, 50, 1, json!(["agreement", "chance"])),
        (3, 3, 3, json!(["labels", "agreement", "chance"])),
    ] {
        let mut text = String::new();
        for at in 0..right + wrong {
            let (label, other) = if at % 2 == 0 {
                ("pass", "fail")
            } else {
                ("fail", "pass")
            };
            let verdict = if at < right { label } else { other };
            text += &line(at, label, &json!({"reply": {"verdict": verdict}}));
        }
        world.write("labels.jsonl", &text);
        let said = calibrate(&world, None, &["labels.jsonl", "--json"]);
        assert_eq!(said.code, Some(code), "{right} {wrong}: {said:?}");
        let found = said.json();
        let what = found["lacks"].as_array().unwrap().iter();
        assert_eq!(
            json!(what.map(|lack| &lack["what"]).collect::<Vec<_>>()),
            lacks
        );
        let said = calibrate(&world, None, &["labels.jsonl"]);
        assert_eq!(
            said.stdout.contains("stays in shadow"),
            code != 0,
            "{said:?}"
        );
    }
}

#[test]
fn a_bad_line_is_named() {
    let world = World::without_git();
    world.write(
        "labels.jsonl",
        &(line(0, "pass", &json!({})) + "{\"request\": 3}\n"),
    );
    let said = calibrate(&world, None, &["labels.jsonl"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr
            .contains("labels.jsonl: line 2: 'label' is missing"),
        "{said:?}"
    );
    let said = calibrate(&world, None, &["nothing.jsonl"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    // Nothing is said of it, and nobody is there to ask.
    world.write("labels.jsonl", &line(0, "pass", &json!({"lable": 1})));
    let said = calibrate(&world, None, &["labels.jsonl"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("1 reply is not in it"), "{said:?}");
    let said = calibrate(&world, None, &["labels.jsonl", "--judge", "nobody"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("no judge is named 'nobody'"),
        "{said:?}"
    );
}

#[test]
fn the_judge_of_the_config_is_asked_as_at_a_stop() {
    let world = World::new();
    world.write("AGENTS.md", "Tests first.\n");
    world.write("rubric.md", "Look at names.\n");
    world.config("[[verifier]]\nname = \"reviewer\"\nkind = \"judge\"\nmodel = \"ollama/j\"\nrubric = \"rubric.md\"\nmin_score = 0.5\n");
    world.commit();
    // 0 passes, 1 fails, 2 wavers near the line, 3 says nothing that can be read.
    let seen = Mutex::new(0);
    let model =
        ScriptedReviewer::start_scripted_reviewer_server(move |body, _| match about(body) {
            1 => Ok(reviewer::render_judge_verdict_reply(
                body,
                "fail",
                0.1,
                "incomplete",
                "tests",
            )),
            2 => {
                let mut seen = seen.lock().unwrap();
                *seen += 1;
                let verdict = if *seen == 1 { "pass" } else { "fail" };
                Ok(reviewer::render_judge_verdict_reply(
                    body,
                    verdict,
                    0.55,
                    "incomplete",
                    "tests",
                ))
            }
            3 => Ok("Nice.".to_owned()),
            _ => Ok(reviewer::render_judge_verdict_reply(
                body, "pass", 0.9, "none", "",
            )),
        })
        .unwrap();
    let mut text = line(0, "pass", &json!({"evidence": "tests passes"}));
    text += &line(1, "fail", &json!({"category": "incomplete"}));
    text += &line(2, "pass", &json!({"rules": "Names are short."}));
    text += &line(3, "pass", &json!({}));
    world.write("labels.jsonl", &text);
    let said = calibrate(&world, Some(&model), &["labels.jsonl", "--json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let found = said.json();
    let none = json!({"unreadable": 1, "unanswered": 0, "wavering": 1});
    let measured = &found["measured"];
    assert_eq!(
        measured["said"]["pass"],
        json!({"pass": 1, "fail": 0, "none": none})
    );
    assert_eq!(
        measured["categories"],
        json!({"incomplete": {"incomplete": 1}})
    );
    // One of four is asked about twice; what is asked is counted.
    let asked = model.received_request_bodies();
    assert_eq!(asked.len(), 5);
    let (input, output) = reviewer::REVIEW_TOKENS;
    let expected = json!([{
        "model": "ollama/j", "questions": 5, "cost_microdollars": null,
        "input_tokens": 5 * input, "output_tokens": 5 * output,
    }]);
    assert_eq!(found["asked"]["models"], expected);
    let of = |at: usize| asked.iter().find(|body| about(body) == at).unwrap().clone();
    let system = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system(&of(0)).contains("Look at names."));
    assert!(
        last_message_text(&of(0)).contains("Tests first."),
        "the rules of the project"
    );
    assert!(last_message_text(&of(0)).contains("tests passes"));
    assert!(
        !last_message_text(&of(2)).contains("Tests first."),
        "rules of its own"
    );
    assert!(last_message_text(&of(2)).contains("Names are short."));
}

/// Says of two answers which is better, and what it was shown.
fn choose(body: &Value, better: &str) -> String {
    json!({"ref": request_number_in_prompt(body), "why": "x", "better": better}).to_string()
}

fn pairs(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let label = if at % 2 == 0 { "a" } else { "b" };
        let (good, bad) = (format!("good {at}"), format!("bad {at}"));
        let (a, b) = if label == "a" {
            (good, bad)
        } else {
            (bad, good)
        };
        let pair = json!({"request": format!("request {at}"), "answer_a": a, "answer_b": b, "label": label});
        writeln!(text, "{pair}").unwrap();
    }
    text
}

#[test]
fn a_judge_that_always_picks_the_first_answer_is_detected() {
    let world = World::without_git();
    world.write("pairs.jsonl", &pairs(20));
    let args = ["pairs.jsonl", "--model", "ollama/j", "--json"];
    let model =
        ScriptedReviewer::start_scripted_reviewer_server(|body, _| Ok(choose(body, "first")))
            .unwrap();
    let said = calibrate(&world, Some(&model), &args);
    assert_eq!(said.code, Some(3), "{said:?}");
    let measured = &said.json()["measured"];
    assert_eq!(measured["accuracy"], 0.5);
    assert_eq!(measured["same_in_both"]["share"], 0.0);
    assert_eq!(measured["right_in_both"]["count"], 0);
    assert_eq!(measured["ab"]["chose_first"]["share"], 1.0);
    assert_eq!(model.received_request_bodies().len(), 40);
    // Who reads them is right wherever they stand.
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        let shown = last_message_text(body);
        let first = shown.find("\ngood ").unwrap() < shown.find("\nbad ").unwrap();
        Ok(choose(body, if first { "first" } else { "second" }))
    })
    .unwrap();
    let said = calibrate(&world, Some(&model), &args);
    let measured = &said.json()["measured"];
    assert_eq!(measured["right_in_both"]["share"], 1.0, "{said:?}");
    assert_eq!(measured["kappa_of_orders"]["value"], 1.0);
    // It answers a forged number, which is no answer to this question.
    let model = ScriptedReviewer::start_scripted_reviewer_server(|_, _| {
        Ok(json!({"ref": 1, "better": "first"}).to_string())
    })
    .unwrap();
    let said = calibrate(&world, Some(&model), &args);
    assert_eq!(said.json()["measured"]["none_in_both"], 20, "{said:?}");
}

#[test]
fn recorded_answers_are_not_asked_again() {
    let world = World::without_git();
    let text: String = (0..12).map(|at| line(at, "pass", &json!({}))).collect();
    world.write("labels.jsonl", &text);
    let args = [
        "labels.jsonl",
        "--model",
        "ollama/j",
        "--record",
        "said.jsonl",
        "--json",
    ];
    // The provider refuses some.
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        match (before, about(body)) {
            (1.., 9..) => Err(400),
            _ => Ok(reviewer::render_judge_verdict_reply(
                body, "pass", 1.0, "none", "",
            )),
        }
    })
    .unwrap();
    let said = calibrate(&world, Some(&model), &args);
    let unanswered = said.json()["asked"]["unanswered"].as_u64().unwrap();
    assert_eq!(unanswered, 3, "{said:?}");
    assert_eq!(
        said.json()["measured"]["said"]["pass"]["none"]["unanswered"],
        3
    );
    // A run that was killed leaves half a line.
    let record = world.root().join("said.jsonl");
    let mut kept = std::fs::read_to_string(&record).unwrap();
    assert_eq!(kept.lines().count(), 9);
    kept += "{\"question\": \"";
    std::fs::write(&record, kept).unwrap();
    let model = ScriptedReviewer::start_scripted_reviewer_server(|body, _| {
        Ok(reviewer::render_judge_verdict_reply(
            body, "pass", 1.0, "none", "",
        ))
    })
    .unwrap();
    let said = calibrate(&world, Some(&model), &args);
    assert_eq!(model.received_request_bodies().len(), 3, "{said:?}");
    assert_eq!(said.json()["asked"]["from_record"], 9);
    assert!(
        said.json()["warnings"][0]
            .as_str()
            .unwrap()
            .contains("1 line cannot be read")
    );
    assert_eq!(said.json()["measured"]["agreement"]["count"], 12);
    // One that is refused for what it is takes nothing from the others.
    world.write("labels.jsonl", &(line(12, "pass", &json!({})) + &text));
    let picky = ScriptedReviewer::start_scripted_reviewer_server(|_, _| Err(400)).unwrap();
    let said = calibrate(&world, Some(&picky), &args);
    assert_eq!(said.json()["asked"]["unanswered"], 1, "{said:?}");
    world.write("labels.jsonl", &text);
    // Now it is all there, and nobody needs to be.
    let said = calibrate(&world, None, &args);
    assert_eq!(said.json()["asked"]["from_record"], 12, "{said:?}");
    assert_eq!(said.json()["asked"]["models"], json!([]));
    // Another model is another question.
    let other = [
        "labels.jsonl",
        "--model",
        "ollama/k",
        "--record",
        "said.jsonl",
    ];
    assert_eq!(calibrate(&world, Some(&model), &other).code, Some(3));
    assert_eq!(model.received_request_bodies().len(), 15);
}

#[test]
fn ctrl_c_loses_nothing_that_was_answered() {
    let world = World::without_git();
    let text: String = (0..9).map(|at| line(at, "pass", &json!({}))).collect();
    world.write("labels.jsonl", &text);
    let (waits, waiting) = std::sync::mpsc::channel();
    let model = ScriptedReviewer::start_scripted_reviewer_server(move |body, _| {
        if about(body) != 0 {
            waits.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
        Ok(reviewer::render_judge_verdict_reply(
            body, "pass", 1.0, "none", "",
        ))
    })
    .unwrap();
    let mut command = world.checkrein(&["judge", "calibrate", "labels.jsonl"]);
    command.args(["--model", "ollama/j", "--record", "said.jsonl"]);
    command.env("OLLAMA_HOST", model.base_url());
    let child = start(&mut command, b"");
    // Four are under way, so the first is answered and its answer kept.
    for _ in 0..4 {
        waiting.recv().unwrap();
    }
    signal(&child, rustix::process::Signal::INT);
    let said = Said::of(&child.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130), "{said:?}");
    assert!(
        said.stderr.contains("what was answered is in said.jsonl"),
        "{said:?}"
    );
    let kept = std::fs::read_to_string(world.root().join("said.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1, "{kept}");
}

#[test]
fn asking_stops_when_the_first_question_fails() {
    let world = World::without_git();
    let text: String = (0..40).map(|at| line(at, "pass", &json!({}))).collect();
    world.write("labels.jsonl", &text);
    let model = ScriptedReviewer::start_scripted_reviewer_server(|_, _| Err(404)).unwrap();
    let said = calibrate(
        &world,
        Some(&model),
        &["labels.jsonl", "--model", "ollama/none"],
    );
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.stderr.contains("so it is written"), "{said:?}");
    assert!(
        model.received_request_bodies().len() <= 4,
        "those that were under way"
    );
    assert_eq!(said.stdout, "");
    for (name, shown) in [
        ("openai/gpt-5", "no key for openai"),
        ("gpt-5", "no model 'gpt-5'"),
    ] {
        let said = calibrate(&world, None, &["labels.jsonl", "--model", name]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(shown), "{said:?}");
    }
}

#[test]
fn files_of_llmbar_are_read_as_they_are() {
    let world = World::without_git();
    let one = |at: usize, forth: Value, back: Value| {
        json!({
            "input": format!("request {at}"), "output_1": "x", "output_2": "y", "label": 1 + at % 2,
            "results": [["a note", "stop"], {
                "swap = False": {"completion": ["...", "stop"], "winner": forth},
                "swap = True": {"completion": ["...", "stop"], "winner": back},
            }],
        })
    };
    let recorded = json!([
        one(0, json!("1"), json!("1")),
        one(1, json!("2"), json!("1")),
        one(2, json!("2"), json!("2")),
        one(3, Value::Null, Value::Null),
    ]);
    world.write("result.json", &recorded.to_string());
    let said = calibrate(&world, None, &["result.json", "--json"]);
    assert_eq!(said.code, Some(3), "{said:?}");
    let measured = &said.json()["measured"];
    assert_eq!(measured["labels"], 4);
    assert_eq!(measured["accuracy"], 0.375);
    assert_eq!(measured["right_in_both"]["count"], 1);
    assert_eq!(measured["same_in_both"]["count"], 2);
    assert_eq!(measured["none_in_both"], 1);
}
