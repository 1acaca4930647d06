//! The preset `openclaw` beside the real detector. `verdicts.jsonl.gz` holds recorded calls; where
//! `detectToolCallLoop` of openclaw 2026.9.6 had a verdict before a call, the call's line has it as
//! `openclaw`.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::agent::{Agent, Answer};
use crate::world::World;

const VERDICTS: &[u8] = include_bytes!("../fixtures/openclaw/verdicts.jsonl.gz");

#[test]
fn each_verdict_is_that_of_the_real_detector() {
    let mut text = String::new();
    GzDecoder::new(VERDICTS).read_to_string(&mut text).unwrap();
    // Trace, index of the call: level, detector, count.
    let mut wanted: BTreeMap<(String, u64), Value> = BTreeMap::new();
    let (mut trace, mut index, mut calls) = (String::new(), 0, 0);
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        match line["type"].as_str().unwrap() {
            "session" => (trace, index) = (line["id"].as_str().unwrap().to_owned(), 0),
            "tool_call" => {
                if !line["openclaw"].is_null() {
                    wanted.insert((trace.clone(), index), line["openclaw"].clone());
                }
                (index, calls) = (index + 1, calls + 1);
            }
            _ => {}
        }
    }
    assert!(
        calls > 3_000 && wanted.len() > 1_000,
        "{calls} {}",
        wanted.len()
    );

    let world = World::without_git();
    world.write("verdicts.jsonl", &text);
    let said = world.says(&["replay", "verdicts.jsonl", "--json", "--preset", "openclaw"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut found: BTreeMap<(String, u64), Value> = BTreeMap::new();
    // Findings come before the summary that names their trace.
    let mut of_trace = Vec::new();
    for line in said.stdout.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["kind"] == "summary" {
            let trace = line["id"].as_str().unwrap();
            for (index, verdict) in of_trace.drain(..) {
                found.insert((trace.to_owned(), index), verdict);
            }
        } else {
            let verdict = json!([line["level"], line["detector"], line["count"]]);
            of_trace.push((line["index"].as_u64().unwrap(), verdict));
        }
    }
    assert_eq!(found, wanted);
}

/// The answers that an agent gets, one a line: `INDEX DETECTOR COUNT ACTION`.
fn actions(calls: &[String]) -> Vec<String> {
    let world = World::without_git();
    world.write("trace.jsonl", &(calls.join("\n") + "\n"));
    let said = world.says(&["replay", "trace.jsonl", "--json", "--preset", "openclaw"]);
    let told = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    told.filter(|line| line["kind"] == "finding" && line["action"] != "observe")
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap().to_owned();
            format!(
                "{} {} {} {}",
                line["index"],
                text("detector"),
                line["count"],
                text("action")
            )
        })
        .collect()
}

fn read(result: &str) -> String {
    json!({"type": "tool_call", "tool": "read", "args": {"path": "a"}, "result": result})
        .to_string()
}

/// It is armed by a compaction, looks at the next three outcomes and at nothing before.
#[test]
fn the_guard_after_a_compaction_ends_a_loop_that_goes_on() {
    let compaction = || json!({"type": "compaction"}).to_string();
    let same = || read("same");
    assert_eq!(
        actions(&[same(), compaction(), same(), same(), same()]),
        ["4 compaction_loop_persisted 3 halt"]
    );
    // One of the three differs: the guard is spent.
    let other = || read("other");
    let none: [&str; 0] = [];
    assert_eq!(
        actions(&[compaction(), same(), other(), same(), same(), same()]),
        none
    );
    assert_eq!(
        actions(&[
            same(),
            same(),
            compaction(),
            other(),
            same(),
            same(),
            same()
        ]),
        none
    );
    // Without a compaction it is not armed.
    assert_eq!(actions(&[same(), same(), same(), same()]), none);
}

#[test]
fn a_warning_is_said_once_in_ten_and_the_second_critical_ends_the_task() {
    let calls: Vec<String> = (0..25).map(|_| read("same")).collect();
    assert_eq!(
        actions(&calls),
        [
            "10 generic_repeat 10 nudge",
            "20 generic_repeat 20 deny",
            "21 generic_repeat 21 halt"
        ]
    );
}

#[test]
fn it_takes_no_setting_of_our_detectors() {
    let world = World::new();
    world.config("[loops]\npreset = \"openclaw\"\nwarning = 3\n");
    let said = world.says(&["check"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("loops.warning") && said.stderr.contains("openclaw"),
        "{said:?}"
    );
}

/// A refusal is an outcome: an agent that asks again and again for what a rule forbids is stuck.
#[test]
fn a_call_that_a_rule_refuses_each_time_ends_the_task() {
    let world = World::new();
    world.write(
        "deploy.rules",
        "prefix_rule(pattern = [\"sh\", \"deploy.sh\"], decision = \"forbidden\")\n",
    );
    world.config("[policy]\nrules = [\"deploy.rules\"]\n\n[loops]\npreset = \"openclaw\"\n");
    world.commit();
    let agent = Agent::new(&world, "claude-code");
    agent.prompt("deploy it");
    let answers: Vec<_> = (0..22).map(|_| agent.shell("sh deploy.sh", "")).collect();
    let (asked, last) = answers.split_at(21);
    assert!(
        asked
            .iter()
            .all(|answer| matches!(answer, Answer::Denied(_))),
        "{asked:?}"
    );
    assert!(matches!(last, [Answer::Halted(_)]), "{last:?}");
}
