//! Decoded events per second on one core: folding a log, stepping its inputs, and both with
//! JSON decoding before. `cargo bench -p checkrein-runtime --bench replay`; beside DESIGN's
//! targets by `cargo xtask bench replay`.

#![expect(clippy::print_stdout, reason = "a measurement is there to be printed")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use checkrein_core::digest::Digest;
use checkrein_core::event::{self, Event};
use checkrein_core::ids::{ScopeId, SourceName, UnixMillis};
use checkrein_core::input::{
    CommandWithRuleDecision, Input, PromptSubmitted, RoundEnded, RuleDecision, StampedInput,
    TokenUsage, ToolKind, ToolOutcomeFacts, ToolRequestFacts, ToolRequested, ToolReturned,
};
use checkrein_core::state::SessionState;
use checkrein_core::step::apply_input_and_decide;
use checkrein_runtime::config::{self, ConfigError, TaskDriverKind};

/// Prompts, each with `CALLS` calls: some 100,000 events.
const TASKS: usize = 250;
const CALLS: usize = 100;
const ROUNDS: usize = 5;

fn main() -> Result<(), ConfigError> {
    let policy = config::compile_repo_and_personal_config(None, None, TaskDriverKind::Hook)?.policy;
    let sealed = Event::PolicySealed {
        policy: Digest::hash_bytes(&policy.to_policy_blob()),
        v: event::EVENT_VERSION,
        guarded: None,
        equipped: Vec::new(),
    };
    let inputs = inputs();
    let mut log = vec![sealed.clone()];
    let mut state = SessionState::default();
    state.apply_event(&sealed);
    for input in &inputs {
        log.extend(apply_input_and_decide(&policy, &mut state, input.clone()).events);
    }
    let encoded: Vec<Vec<u8>> = log.iter().map(event::encode_event).collect();

    report(
        "decoded events folded",
        log.len(),
        || (),
        |()| {
            let mut state = SessionState::default();
            log.iter().for_each(|event| state.apply_event(event));
            state
        },
    );
    report(
        "decoded events decided again",
        log.len(),
        || inputs.clone(),
        |inputs| {
            let mut state = SessionState::default();
            state.apply_event(&sealed);
            for input in inputs {
                black_box(apply_input_and_decide(&policy, &mut state, input));
            }
            state
        },
    );
    report(
        "events decoded from JSON and folded",
        log.len(),
        || (),
        |()| {
            let mut state = SessionState::default();
            for bytes in &encoded {
                if let Ok(event) = event::decode_event(bytes) {
                    state.apply_event(&event);
                }
            }
            state
        },
    );
    Ok(())
}

/// The best of several rounds: a shared machine only ever adds.
fn report<T>(what: &str, events: usize, prepare: impl Fn() -> T, work: impl Fn(T) -> SessionState) {
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
fn inputs() -> Vec<StampedInput> {
    let mut inputs = Vec::new();
    let mut add = |input| {
        let at = UnixMillis(inputs.len() as u64);
        inputs.push(StampedInput::new_without_facts(
            at,
            SourceName::new("bench"),
            input,
        ));
    };
    let tokens = |n: usize| {
        Some(TokenUsage {
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
            let command = |words: &[&str]| CommandWithRuleDecision {
                argv: words.iter().map(|word| (*word).to_owned()).collect(),
                rule: Some(RuleDecision::Allow),
            };
            let call = Digest::hash_bytes(args.as_bytes()).to_eight_byte_digest();
            add(Input::ToolRequested(ToolRequested {
                scope: ScopeId::main_scope(),
                call_id: Some(format!("toolu_{n}")),
                tool: "Bash".to_owned(),
                kind: ToolKind::Shell,
                args,
                call,
                facts: ToolRequestFacts {
                    commands: vec![
                        command(&["rg", "-n", "name", "src"]),
                        command(&["head", "-n", "20"]),
                    ],
                    rule: Some(RuleDecision::Allow),
                    ..ToolRequestFacts::default()
                },
                can_ask: false,
                may_act: false,
                reports_outcome: false,
                openclaw: None,
                waits: false,
                tokens: tokens(n),
            }));
            add(Input::ToolReturned(ToolReturned {
                excerpt: None,
                scope: ScopeId::main_scope(),
                call_id: Some(format!("toolu_{n}")),
                call,
                outcome: Digest::hash_bytes(&n.to_le_bytes()).to_eight_byte_digest(),
                error: false,
                wrote: false,
                facts: ToolOutcomeFacts::default(),
                tokens: None,
            }));
            add(Input::RoundEnded(RoundEnded {
                scope: ScopeId::main_scope(),
                tokens: None,
            }));
        }
    }
    inputs
}
