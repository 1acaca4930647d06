//! `checkrein tune`: recorded runs under presets, and the figures of them.

use serde_json::{Value, json};

use crate::world::World;

fn read(path: &str, result: &str) -> String {
    json!({ "type": "tool_call", "tool": "read", "args": { "path": path }, "result": result })
        .to_string()
}

#[test]
fn recorded_runs_are_compared_under_presets() {
    let world = World::without_git();
    let run = |task: &str, same: usize, success: bool| {
        let mut all =
            vec![json!({ "type": "session", "id": format!("set/up/{task}") }).to_string()];
        all.extend((0..same).map(|_| read("a", "same")));
        all.extend((0..4).map(|nth| read(&format!("b{nth}"), &nth.to_string())));
        all.push(json!({ "type": "end", "success": success }).to_string());
        all.join("\n")
    };
    let runs = [
        run("1", 8, false),
        run("2", 8, true),
        run("3", 1, true),
        run("4", 1, false),
    ];
    world.write("runs.jsonl", &(runs.join("\n") + "\n"));
    let said = world.says(&[
        "tune",
        "runs.jsonl",
        "--json",
        "--preset",
        "balanced",
        "--preset",
        "off",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let found: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let figures = |at: usize, key: &str| found[at][key].clone();
    assert_eq!(
        (figures(0, "runs"), figures(0, "halted")),
        (json!(4), json!(2))
    );
    assert_eq!(figures(0, "halted_later_successful"), json!(1));
    // Halted at the fifth of twelve calls: eight are saved.
    assert_eq!(
        (
            figures(0, "calls_saved"),
            figures(0, "calls_of_failed_runs")
        ),
        (json!(8), json!(17))
    );
    assert_eq!(figures(0, "odds_ratio"), json!(1.0));
    assert_eq!(
        (figures(1, "halted"), figures(1, "words")),
        (json!(0), json!(0))
    );
    let said = world.says(&["tune", "runs.jsonl"]);
    assert!(said.stdout.contains("balanced"), "{said:?}");
    // Each task is in one half.
    let halves: Vec<u64> = ["a", "b"]
        .iter()
        .map(|half| {
            let said = world.says(&[
                "tune",
                "runs.jsonl",
                "--json",
                "--preset",
                "off",
                "--half",
                half,
            ]);
            let found: Value = serde_json::from_str(said.stdout.lines().next().unwrap_or("{}"))
                .unwrap_or_default();
            found["runs"].as_u64().unwrap_or(0)
        })
        .collect();
    assert_eq!(halves.iter().sum::<u64>(), 4, "{halves:?}");
    world.write("none.jsonl", "{}\n");
    let said = world.says(&["tune", "none.jsonl"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("no recorded run"), "{said:?}");
}

#[test]
fn packed_traces_are_read_as_they_are() {
    let world = World::without_git();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let runs = root.join("data/openhands.jsonl.gz");
    let said = world.says(&[
        "replay",
        runs.to_str().unwrap(),
        "--json",
        "--preset",
        "balanced",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summaries = said
        .stdout
        .lines()
        .filter(|line| line.contains("\"summary\""))
        .count();
    assert_eq!(summaries, 3, "{said:?}");
    // What only calls itself packed is said to be none.
    world.write("text.jsonl.gz", "{}\n");
    let said = world.says(&["replay", "text.jsonl.gz"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("text.jsonl.gz"), "{said:?}");
}

/// A task that is sent back five times, each time for so many tokens.
fn task(id: &str, tokens: &[u64], success: bool) -> String {
    let mut lines = vec![
        json!({ "type": "session", "id": id, "agent": "mine" }).to_string(),
        json!({ "type": "user", "text": "do it" }).to_string(),
    ];
    for spent in tokens {
        lines.push(json!({ "type": "assistant", "text": "", "tokens": spent }).to_string());
        lines.push(json!({ "type": "stop", "text": "done" }).to_string());
    }
    lines.push(json!({ "type": "end", "success": success }).to_string());
    lines.join("\n") + "\n"
}

#[test]
fn token_budgets_are_tried_on_recorded_tasks() {
    let world = World::without_git();
    // Fails after many steps of 100 tokens; one of 600 tokens a step succeeds at its end.
    let runs = task("1", &[900, 100, 100, 100, 100, 100, 100, 100], false)
        + &task("2", &[600, 600, 600, 600, 600, 600], true)
        + &task("3", &[50], true);
    world.write("runs.jsonl", &runs);
    let said = world.says(&["tune", "runs.jsonl", "--token-budget", "1000000", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rules: Vec<Value> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rules.len(), 2 * 3 * 4 * 3);
    let rule = |little: u64, rounds: u64, by_mean: bool| {
        let is_it = |rule: &&Value| {
            rule["threshold"] == 0.9
                && rule["diminishing_tokens"] == little
                && rule["diminishing_rounds"] == rounds
                && rule["by_mean"] == by_mean
        };
        let rule = rules.iter().find(is_it).unwrap();
        (
            rule["ended"].as_u64().unwrap(),
            rule["later_successful"].as_u64().unwrap(),
            rule["tokens_saved"].as_u64().unwrap(),
        )
    };
    // The default ends the first at its fourth stop, 400 tokens early.
    assert_eq!(rule(500, 3, false), (1, 0, 400));
    assert_eq!(rule(500, 1, false), (1, 0, 500));
    assert_eq!(rule(500, 5, false), (1, 0, 200));
    // With 700 the one that succeeds is lost.
    assert_eq!(rule(700, 3, false), (2, 1, 400 + 1_200));
    // The mean of the first three is above 300.
    assert_eq!(rule(300, 1, true), (1, 0, 400));

    let text = world
        .says(&["tune", "runs.jsonl", "--token-budget", "1000000"])
        .stdout;
    assert!(
        text.contains("3 tasks, 2 of them with more than one stop"),
        "{text}"
    );
    assert!(text.contains("-diminishing_rounds = 3\n+diminishing_rounds = 1  # alone: 1 ended where 3 ends 1, 0 of 1 successful later (now 0 of 1), 500 tokens saved (now 400)"), "{text}");
    assert!(!text.contains("+diminishing_tokens"), "{text}");

    // Where no ending is known, saving most is no reason.
    let unlabelled: String = runs
        .lines()
        .filter(|line| !line.contains("\"end\""))
        .map(|line| format!("{line}\n"))
        .collect();
    world.write("unlabelled.jsonl", &unlabelled);
    let text = world
        .says(&["tune", "unlabelled.jsonl", "--token-budget", "1000000"])
        .stdout;
    assert!(
        text.contains("no values are proposed") && !text.contains("[token_budget]"),
        "{text}"
    );

    // A small budget: 0.85 of 1,200 is reached one stop before 0.95 is.
    let small = world
        .says(&["tune", "runs.jsonl", "--token-budget", "1200", "--json"])
        .stdout;
    assert!(
        small
            .lines()
            .all(|line| serde_json::from_str::<Value>(line).unwrap()["ended"] == 2),
        "{small}"
    );
}

/// The guard after a compaction is a rule of the preset `openclaw`, not of the file that is read.
#[test]
fn a_compaction_ends_no_run_under_presets_without_its_guard() {
    let world = World::without_git();
    let call =
        json!({ "type": "tool_call", "tool": "read", "args": {}, "result": "same" }).to_string();
    let lines = [
        json!({ "type": "session", "id": "swe-1-a", "agent": "mine", "goal": "g" }).to_string(),
        json!({ "type": "user", "text": "go" }).to_string(),
        call.clone(),
        json!({ "type": "compaction" }).to_string(),
        call.clone(),
        call.clone(),
        call,
        json!({ "type": "end", "success": false }).to_string(),
    ];
    world.write("runs.jsonl", &(lines.join("\n") + "\n"));
    let said = world.says(&["tune", "runs.jsonl", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let halted: Vec<(String, u64)> = said
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["halted"].is_u64() && line["preset"].is_string())
        .map(|line| {
            let preset = line["preset"].as_str().unwrap().to_owned();
            (preset, line["halted"].as_u64().unwrap())
        })
        .collect();
    assert!(halted.len() > 2, "{said:?}");
    for (preset, halted) in halted {
        assert_eq!(halted, u64::from(preset == "openclaw"), "{preset}");
    }
}
