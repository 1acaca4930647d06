//! Decoded events per second on one core: folding a log, stepping its inputs, and both with
//! JSON decoding before. `cargo bench -p checkrein-runtime --bench replay`; beside DESIGN's
//! targets by `cargo xtask bench replay`.

#![expect(clippy::print_stdout, reason = "a measurement is there to be printed")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;
use checkrein_core::event::{self, Event};
use checkrein_core::ids::{Millis, ScopeId, SourceName};
use checkrein_core::input::{
    CommandFact, Input, PromptSubmitted, RuleDecision, Scoped, Stamped, TokenUse, ToolFacts,
    ToolKind, ToolRequested, ToolReturned,
};
use checkrein_core::state::State;
use checkrein_core::step::step;
use checkrein_runtime::config::{self, ConfigError, Driver};

/// Prompts, each with `CALLS` calls: some 100,000 events.
const TASKS: usize = 250;
const CALLS: usize = 100;
const ROUNDS: usize = 5;

fn main() -> Result<(), ConfigError> {
    let policy = config::compile(None, None, Driver::Hook)?.policy;
    let sealed = Event::PolicySealed {
        policy: Digest::of(&policy.to_blob()),
        v: event::EVENT_VERSION,
        guarded: None,
        equipped: Vec::new(),
    };
    let inputs = inputs();
    let mut log = vec![sealed.clone()];
    let mut state = State::default();
    state.apply(&sealed);
    for input in &inputs {
        log.extend(step(&policy, &mut state, input.clone()).events);
    }
    let encoded: Vec<Vec<u8>> = log.iter().map(event::encode).collect();

    report(
        "decoded events folded",
        log.len(),
        || (),
        |()| {
            let mut state = State::default();
            log.iter().for_each(|event| state.apply(event));
            state
        },
    );
    report(
        "decoded events decided again",
        log.len(),
        || inputs.clone(),
        |inputs| {
            let mut state = State::default();
            state.apply(&sealed);
            for input in inputs {
                black_box(step(&policy, &mut state, input));
            }
            state
        },
    );
    report(
        "events decoded from JSON and folded",
        log.len(),
        || (),
        |()| {
            let mut state = State::default();
            for bytes in &encoded {
                if let Ok(event) = event::decode(bytes) {
                    state.apply(&event);
                }
            }
            state
        },
    );
    Ok(())
}

/// The best of several rounds: a shared machine only ever adds.
fn report<T>(what: &str, events: usize, prepare: impl Fn() -> T, work: impl Fn(T) -> State) {
    let best = (0..ROUNDS)
        .map(|_| {
            let prepared = prepare();
            let began = Instant::now();
            black_box(work(prepared));
            began.elapsed()
        })
        .min()
        .unwrap_or(Duration::MAX);
    println!("{what}: {:.0} events/s", events as f64 / best.as_secs_f64());
}

/// What an agent does when it looks for something: a prompt, calls, results, rounds.
fn inputs() -> Vec<Stamped> {
    let mut inputs = Vec::new();
    let mut add = |input| {
        let at = Millis(inputs.len() as u64);
        inputs.push(Stamped {
            at,
            source: SourceName::new("bench"),
            input,
            layers: Box::default(),
            task_list: None,
            halted: false,
            runs: None,
            turned_back: false,
            in_call: false,
        });
    };
    let tokens = |n: usize| {
        Some(TokenUse {
            output: 40,
            input: 1000,
            cost: None,
            cursor: format!("{n}:msg_{n}"),
        })
    };
    for task in 0..TASKS {
        add(Input::PromptSubmitted(PromptSubmitted {
            text: format!("find name {task}"),
            tree: None,
            tokens: None,
            tells_calls: true,
            acts: None,
        }));
        for n in task * CALLS..(task + 1) * CALLS {
            let args = format!("{{\"command\":\"rg -n name_{n} src | head -n 20\"}}");
            let command = |words: &[&str]| CommandFact {
                argv: words.iter().map(|word| (*word).to_owned()).collect(),
                rule: Some(RuleDecision::Allow),
            };
            let call = Digest::of(args.as_bytes()).short();
            add(Input::ToolRequested(ToolRequested {
                scope: ScopeId::main(),
                call_id: Some(format!("toolu_{n}")),
                tool: "Bash".to_owned(),
                kind: ToolKind::Shell,
                args,
                call,
                facts: ToolFacts {
                    commands: vec![
                        command(&["rg", "-n", "name", "src"]),
                        command(&["head", "-n", "20"]),
                    ],
                    rule: Some(RuleDecision::Allow),
                    ..ToolFacts::default()
                },
                can_ask: false,
                may_act: false,
                reports_outcome: false,
                tokens: tokens(n),
            }));
            add(Input::ToolReturned(ToolReturned {
                scope: ScopeId::main(),
                call_id: Some(format!("toolu_{n}")),
                call,
                outcome: Digest::of(&n.to_le_bytes()).short(),
                error: false,
                wrote: false,
                tokens: None,
            }));
            add(Input::RoundEnded(Scoped {
                scope: ScopeId::main(),
                tokens: None,
            }));
        }
    }
    inputs
}
