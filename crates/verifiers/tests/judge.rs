//! Judges that ask a real HTTP server, whose model is written down.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod world;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_scripted::reviewer::last_message_text;
use checkrein_verifiers::VerifierReport;
use checkrein_verifiers::judge::{JudgeInput, RequestAndAnswer};
use serde_json::{Value, json};
use world::{VerifierFixture, scripted_model};

fn definition(model: &str) -> Value {
    json!({
        "model": format!("ollama/{model}"), "trigger": "always", "keywords": [],
        "heartbeat": false, "surfaces": ["main"], "min_score": 700,
    })
}

fn case() -> JudgeInput {
    JudgeInput {
        request: "Add a test for the parser.".to_owned(),
        answer: "Done. I added one.".to_owned(),
        agent: "claude-code".to_owned(),
        ..JudgeInput::default()
    }
}

fn asked(definition: &Value, case: JudgeInput) -> (VerifierReport, Vec<Value>) {
    let model = scripted_model();
    let mut world = VerifierFixture::new();
    world.env = [("OLLAMA_HOST".into(), model.base_url().into())].into();
    world.case = Some(case);
    let report = world.verify("judge", &definition.to_string());
    (report, model.received_request_bodies())
}

#[test]
fn verdicts() {
    for (model, verdict, cause, requests) in [
        ("pass", Verdict::Pass, None, 1),
        ("fail", Verdict::Fail, None, 1),
        // Its word is yes and its score is not.
        ("low", Verdict::Fail, None, 1),
        // Near the line it is asked once more, the other way round.
        ("near", Verdict::Pass, None, 2),
        (
            "wavers",
            Verdict::Inconclusive,
            Some(InconclusiveCause::InconsistentJudge),
            2,
        ),
        (
            "plain",
            Verdict::Inconclusive,
            Some(InconclusiveCause::Unreadable),
            1,
        ),
        (
            "prose",
            Verdict::Inconclusive,
            Some(InconclusiveCause::Unreadable),
            1,
        ),
        (
            "both",
            Verdict::Inconclusive,
            Some(InconclusiveCause::Unreadable),
            1,
        ),
        (
            "bytes",
            Verdict::Inconclusive,
            Some(InconclusiveCause::Unreadable),
            1,
        ),
        (
            "huge",
            Verdict::Inconclusive,
            Some(InconclusiveCause::Unreadable),
            1,
        ),
    ] {
        let (report, asked) = asked(&definition(model), case());
        assert_eq!(
            (report.verdict, report.cause),
            (verdict, cause),
            "{model}: {report:?}"
        );
        assert_eq!(asked.len(), requests, "{model}");
        let testimony = report.testimony.unwrap();
        assert_eq!(testimony.asked as usize, requests, "{model}");
        assert_eq!(testimony.output, Some(60 * requests as u64), "{model}");
        assert_eq!(testimony.input, Some(900 * requests as u64), "{model}");
    }
}

#[test]
fn what_is_wrong_is_told_by_its_category() {
    let (report, _) = asked(&definition("fail"), case());
    let said: Vec<(&str, &str)> = report
        .findings
        .iter()
        .map(|finding| (finding.id.as_str(), finding.message.as_str()))
        .collect();
    assert_eq!(
        said,
        [("incomplete", "add the tests"), ("incomplete", "say why")]
    );
    assert_eq!(report.testimony.unwrap().score, Some(100));
}

#[test]
fn what_it_is_shown_and_in_which_order() {
    let turn = |n: usize| RequestAndAnswer {
        request: format!("request {n}"),
        answer: format!("answer {n}"),
    };
    let mut judge = definition("near");
    judge["rules"] = json!([
        {"name": "AGENTS.md", "text": "Tests first."},
        {"name": "HEARTBEAT.md", "text": "Look at the queue."},
    ]);
    judge["rubric"] = json!("Look at names.");
    let case = JudgeInput {
        history: (1..=2).map(turn).collect(),
        calls: vec!["Bash cargo test -> ok".to_owned()],
        changes: "Edit src/a.rs".to_owned(),
        evidence: vec!["tests passes".to_owned()],
        about: vec!["agent: claude-code".to_owned()],
        feedback: vec!["incomplete: where is it".to_owned()],
        ..case()
    };
    let (_, asked) = asked(&judge, case.clone());
    let system = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("Look at names."));
    assert!(asked[0].get("tools").is_none(), "a judge calls nothing");
    let shown = last_message_text(&asked[0]);
    let order = [
        "Add a test for the parser.",
        "Tests first.",
        "request 1",
        "answer 2",
        "agent: claude-code",
        "tests passes",
        "Bash cargo test",
        "Edit src/a.rs",
        "incomplete: where is it",
        "Done. I added one.",
    ];
    let places: Vec<usize> = order.iter().map(|text| shown.find(text).unwrap()).collect();
    assert!(places.is_sorted(), "{shown}");
    assert!(
        !shown.contains("Look at the queue."),
        "that is for heartbeats"
    );
    let second = last_message_text(&asked[1]);
    assert!(second.find("Done. I added one.") < second.find("Add a test for the parser."));
    // Each request has a number of its own.
    assert_ne!(shown.lines().next(), second.lines().next());

    let heartbeat = JudgeInput {
        heartbeat: true,
        ..case
    };
    let (_, asked) = self::asked(&judge, heartbeat);
    assert!(last_message_text(&asked[0]).contains("Look at the queue."));
}

#[test]
fn over_the_budget_history_goes_first_then_rules_then_the_answers_end() {
    let count = |shown: &str| shown.chars().count();
    let turn = |n: usize| RequestAndAnswer {
        request: format!("old {n}"),
        answer: "h".repeat(9_000),
    };
    let mut judge = definition("pass");
    let shown = |judge: &Value, case: JudgeInput| {
        let (_, asked) = asked(judge, case);
        last_message_text(&asked[0]).to_owned()
    };
    let history = JudgeInput {
        history: (1..=5).map(turn).collect(),
        ..case()
    };
    let text = shown(&judge, history.clone());
    assert!(count(&text) < 32_000);
    assert!(!text.contains("old 1") && !text.contains("old 2") && text.contains("old 5"));

    // Characters, however many bytes they have.
    let kept = |text: &str, letter: &str| text.matches(letter).count();
    let rules = json!([{"name": "AGENTS.md", "text": format!("R{}E", "ж".repeat(31_000))}]);
    judge["rules"] = rules;
    let text = shown(&judge, history);
    assert!(!text.contains("old 5"), "history before rules");
    assert!(text.contains("AGENTS.md:\nRж") && text.contains("bytes cut]"));
    assert!((7_900..=8_000).contains(&kept(&text, "ж")));
    assert!(count(&text) < 32_000);

    let answer = JudgeInput {
        answer: format!("A{}Z", "щ".repeat(30_000)),
        ..case()
    };
    let text = shown(&judge, answer);
    assert!(text.contains("Aщ") && !text.contains("щZ"));
    assert!((11_900..=12_000).contains(&kept(&text, "щ")));
    assert!(count(&text) < 32_000);

    // What was asked is never cut, nor what was found beside it.
    let request = JudgeInput {
        request: format!("Q{}Q", "q".repeat(50_000)),
        about: vec!["agent: claude-code".to_owned()],
        evidence: vec!["tests passes".to_owned()],
        ..case()
    };
    let (_, asked) = asked(&judge, request);
    let text = last_message_text(&asked[0]);
    assert!(text.contains(&format!("Q{}Q", "q".repeat(50_000))));
    assert!(text.contains("agent: claude-code") && text.contains("tests passes"));
    let system = asked[0]["messages"][0]["content"].as_str().unwrap();
    assert!(system.starts_with("You review the last answer"));
}

#[test]
fn it_is_waited_for_no_longer_than_the_answer_may_take() {
    let model = scripted_model();
    let mut world = VerifierFixture::new();
    world.env = [("OLLAMA_HOST".into(), model.base_url().into())].into();
    world.case = Some(case());
    world.deadline = Some(Instant::now() + Duration::from_millis(200));
    let report = world.verify("judge", &definition("hang").to_string());
    assert_eq!(report.cause, Some(InconclusiveCause::ReplyDeadline));
    world.deadline = None;
    world.cancelled = true.into();
    let report = world.verify("judge", &definition("hang").to_string());
    assert_eq!(report.verdict, Verdict::Inconclusive);
}

#[test]
fn without_an_answer_nobody_is_asked() {
    let world = VerifierFixture::new();
    let report = world.verify("judge", &definition("pass").to_string());
    assert_eq!(report.cause, Some(InconclusiveCause::NotAsked));
}

#[test]
fn another_family_judges_unless_the_config_names_one() {
    use checkrein_verifiers::judge::{JudgeDefinition, choose_judge_model};
    let unnamed: JudgeDefinition = serde_json::from_value({
        let mut judge = definition("x");
        judge.as_object_mut().unwrap().remove("model");
        judge
    })
    .unwrap();
    for (agent, family) in [
        ("claude-code", "openai/"),
        ("codex", "anthropic/"),
        ("mine", "anthropic/"),
    ] {
        let (model, same) = choose_judge_model(&unnamed, agent);
        assert!(model.starts_with(family) && !same, "{agent} {model}");
    }
    let mut own = definition("x");
    own["model"] = json!("openrouter/anthropic/claude-opus-4");
    let own: JudgeDefinition = serde_json::from_value(own).unwrap();
    assert!(choose_judge_model(&own, "claude-code").1);
    assert!(!choose_judge_model(&own, "codex").1);
}
