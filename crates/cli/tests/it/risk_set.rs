//! A hundred calls of one task, each labelled: what a sensible second model would veto, and ordinary work. With
//! `scope = "risky"` every veto is kept for at most a fifth of the tokens. `cargo xtask tokens` prints it.

use checkrein_scripted::ScriptedReviewer;
use checkrein_scripted::reviewer::{last_message_text, request_number_in_prompt};
use serde::Deserialize;
use serde_json::{Value, json};
use tiktoken_rs::o200k_base_singleton;

use crate::agent::{Agent, Answer};
use crate::world::World;

/// One call a line; `veto` says why it must not run. `ROOT` stands for the project's folder, in which `assets`
/// is a link out of it.
const SET: &str = include_str!("../fixtures/risk-set.jsonl");
const GOAL: &str = "Make src/dates.py read German dates as well, with a test and a line in the changelog. Publish nothing.";

#[derive(Deserialize)]
struct Call {
    tool: String,
    input: Value,
    veto: Option<String>,
}

/// What came of the set.
#[derive(Default)]
struct Told {
    /// Places of the calls that were vetoed.
    vetoed: Vec<usize>,
    questions: usize,
    tokens: usize,
}

fn set(world: &World) -> Vec<Call> {
    let root = world.root().canonicalize().unwrap();
    let set = SET.replace("ROOT", root.to_str().unwrap());
    let calls: Vec<Call> = set
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(calls.len(), 100);
    calls
}

/// Vetoes what is labelled so, and allows the rest.
fn labelled(calls: &[Call]) -> ScriptedReviewer {
    let labels: Vec<(Value, Option<String>)> = calls
        .iter()
        .map(|call| (call.input.clone(), call.veto.clone()))
        .collect();
    ScriptedReviewer::start_scripted_reviewer_server(move |body, _| {
        let (_, arguments) = last_message_text(body)
            .rsplit_once("\narguments: ")
            .ok_or(400_u16)?;
        let arguments = arguments.lines().next().unwrap_or_default();
        let arguments: Value = serde_json::from_str(arguments).map_err(|_| 400_u16)?;
        let label = labels.iter().find(|(input, _)| *input == arguments);
        let (_, veto) = label.ok_or(404_u16)?;
        Ok(json!({
            "ref": request_number_in_prompt(body),
            "verdict": if veto.is_some() { "veto" } else { "allow" },
            "confidence": 0.95,
            "reason": veto.as_deref().unwrap_or_default(),
            "new_args": "",
        })
        .to_string())
    })
    .unwrap()
}

fn told(scope: &str) -> (Told, Vec<Call>) {
    let world = World::new();
    world.config(&format!(
        "[veto]\nenabled = true\nmodel = \"ollama/v\"\nscope = \"{scope}\"\nmax_calls = 100\n"
    ));
    world.commit();
    std::os::unix::fs::symlink("/etc", world.root().join("assets")).unwrap();
    let calls = set(&world);
    let model = labelled(&calls);
    let mut agent = Agent::new(&world, "claude-code");
    agent.env = vec![("OLLAMA_HOST", model.base_url())];
    agent.prompt(GOAL);
    let mut told = Told::default();
    for (nth, call) in calls.iter().enumerate() {
        let request = json!({
            "tool_name": call.tool, "tool_input": call.input, "tool_use_id": agent.next_id(),
        });
        let answer = agent.tell(&agent.message("PreToolUse", request));
        match answer {
            Answer::Nothing => {}
            Answer::Denied(text) if text.starts_with("[verifier-veto]") => told.vetoed.push(nth),
            other => panic!("{}: {other:?}", call.input),
        }
    }
    for exchange in model.recorded_exchanges() {
        let body = std::str::from_utf8(&exchange.bytes).unwrap();
        let tokens = |text| o200k_base_singleton().encode_ordinary(text).len();
        told.questions += 1;
        told.tokens += tokens(body) + tokens(&exchange.reply_text);
    }
    (told, calls)
}

#[test]
fn risky_calls_only_keeps_every_veto_for_a_fifth_of_the_tokens() {
    let (all, calls) = told("all");
    let labelled: Vec<usize> = (0..calls.len())
        .filter(|nth| calls.get(*nth).is_some_and(|call| call.veto.is_some()))
        .collect();
    let (risky, _) = told("risky");
    println!("100 calls, of which {} are to be vetoed:", labelled.len());
    println!(
        "  {:<16}{:>10}{:>10}{:>10}",
        "", "questions", "vetoes", "tokens"
    );
    for (name, told) in [("scope = all", &all), ("scope = risky", &risky)] {
        println!(
            "  {name:<16}{:>10}{:>10}{:>10}",
            told.questions,
            told.vetoed.len(),
            told.tokens
        );
    }
    let share = risky.tokens as f64 / all.tokens as f64;
    println!("  {:<16}{:>30.3}\n", "share", share);
    assert_eq!(all.vetoed, labelled);
    assert_eq!(all.questions, 100);
    assert_eq!(risky.vetoed, labelled);
    assert!(5 * risky.tokens <= all.tokens, "{share}");
}
