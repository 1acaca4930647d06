//! The state stays small: 16 KiB with everything in it that can be.

use checkrein_core::detectors;
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::event::LadderRung;
use checkrein_core::ids::{DetectorName, ScopeId};
use checkrein_core::input::{ConfigEdited, Input, SessionStartKind, SessionStarted, TokenUsage};
use checkrein_core::policy::{LoopEscalationMode, PinnedLoopRules, SubagentStopVerification};
use checkrein_core::state::{LoopPatternEscalation, VerifierVerdictInTask};

use crate::world::{CoreWorld, ScriptedVerdict, policy, scope, with};

const LIMIT: usize = 16 * 1024;
/// While checks of eight sub-agents' stops come back at once it can be more; a state of this size
/// is not cached (`crates/runtime/src/log_reader.rs`).
const MEANWHILE: usize = 24 * 1024;

fn size(world: &CoreWorld) -> usize {
    postcard::to_stdvec(&world.state).unwrap().len()
}

/// All detectors, the main conversation and eight sub-agents with full windows, five
/// verifiers with fifty findings each and fifty others before, and every stop pending.
#[test]
fn a_full_state_fits_the_cache() {
    let mut world = CoreWorld::new(with(
        policy("tests lint types format~ audit", ""),
        |policy| {
            policy.subagents.verify = SubagentStopVerification::Writers;
            policy.caps.attempts = 1_000;
            policy.caps.continues = 1_000;
            policy.caps.max_iterations = None;
            policy.loops.detectors = detectors::ALL
                .iter()
                .map(|detector| DetectorName::new(detector.detector_name()))
                .collect();
            policy.loops.ladder = LoopEscalationMode::PerPattern;
        },
    ));
    world.news(Input::SessionStarted(SessionStarted {
        agent: "claude-code".into(),
        how: SessionStartKind::Startup,
        parent: None,
        tokens: None,
    }));
    world.prompt();
    let main = ScopeId::main_scope();
    let subagents: Vec<ScopeId> = (0..8)
        .map(|at| scope(&format!("a1b2c3d4e5f6a7b8{at}")))
        .collect();
    let mut outcome = u64::MAX;
    let mut found = 1u64 << 63;
    for round in 0..40 {
        world.tree = Some(round);
        for at in std::iter::once(&main).chain(&subagents) {
            for name in ["write", "read", "poll"] {
                outcome -= 1;
                world.tool(at, name, Some(outcome), None, None);
            }
        }
        for spec in world.policy.verifiers.clone() {
            let findings: Vec<u64> = (0..50).map(|at| found + at).collect();
            found += 50;
            world
                .sayings
                .insert(spec.name, ScriptedVerdict::fail(&findings));
        }
        world.stop(&main);
    }
    world.news(Input::ConfigEdited(ConfigEdited {
        paths: (0..20)
            .map(|at| format!("{at}/{}", "long/".repeat(60)))
            .collect(),
        guarded: Digest::hash_bytes(b"now"),
    }));
    world.tree = Some(77);
    for at in std::iter::once(&main).chain(&subagents) {
        world.ask_stop(at);
    }
    // A full ladder in every scope, as repetitions of seven patterns leave it.
    for scope in &mut world.state.task.as_mut().unwrap().scopes {
        let pattern = |at| LoopPatternEscalation {
            key: [at; 4],
            rung: LadderRung::Denied,
            told_count: 2,
        };
        scope.ladder = (0..7).map(pattern).collect();
    }
    let task = world.state.task.as_ref().unwrap();
    assert_eq!(task.scopes.len(), 9);
    assert!(task.scopes.iter().all(|scope| scope.window.len() == 31));
    assert!(task.scopes.iter().all(|scope| scope.pending.is_some()));
    let pending = world.state.pending_stop(&main).unwrap();
    assert_eq!(pending.verdicts.len(), 5);
    let full = |held: &VerifierVerdictInTask| held.fact.findings.len() == 50;
    assert!(pending.verdicts.iter().all(full));
    assert!(size(&world) <= LIMIT, "{} bytes", size(&world));

    // All but the last check of each sub-agent's stop comes back.
    let last = world.policy.verifiers.last().unwrap().name.clone();
    let comes = |effect: &Effect| match effect {
        Effect::RunVerifier {
            scope, verifier, ..
        } => !scope.is_main_scope() && *verifier != last,
        Effect::ReadTree { .. } => false,
    };
    while let Some(at) = world.open.iter().position(comes) {
        assert_eq!(world.answer(at).decision, None);
    }
    for at in &subagents {
        let verdicts = &world.state.pending_stop(at).unwrap().verdicts;
        let held: Vec<usize> = verdicts
            .iter()
            .map(|held| held.fact.findings.len())
            .collect();
        assert_eq!(held, [10; 4], "fifty shared by five");
    }
    assert!(size(&world) <= MEANWHILE, "{} bytes", size(&world));
    // Decided, they leave nothing behind.
    for at in &subagents {
        world.stop(at);
    }
    assert!(size(&world) <= LIMIT, "{} bytes", size(&world));
}

/// OpenClaw's rules have a memory of their own, and the windows beside it are shorter.
#[test]
fn a_state_under_openclaws_rules_fits_the_cache() {
    let full = |pinned| {
        let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
            policy.caps.tool_calls = None;
            policy.caps.token_budget = None;
            policy.caps.max_iterations = None;
            policy.loops.pinned = pinned;
            policy.loops.detectors.clear();
        }));
        world.prompt();
        let subagents = (0..8).map(|at| scope(&format!("a1b2c3d4e5f6a7b8{at}")));
        let scopes: Vec<ScopeId> = std::iter::once(ScopeId::main_scope())
            .chain(subagents)
            .collect();
        for at in 0..40u64 {
            for scope in &scopes {
                let name = format!("write {at}");
                world.tool(scope, &name, Some(u64::MAX - at), None, None);
            }
        }
        size(&world)
    };
    let (with_openclaw, without) = (full(Some(PinnedLoopRules::OpenClaw)), full(None));
    assert!(
        with_openclaw <= without,
        "{with_openclaw} of {without} bytes"
    );
}

/// However long it runs.
#[test]
fn many_subagents_do_not_add_up() {
    let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
        policy.caps.tool_calls = None;
        policy.caps.token_budget = None;
        policy.caps.max_iterations = None;
    }));
    world.prompt();
    for at in 0..2_000u64 {
        let agent = scope(&format!("a1b2c3d4e5f6a7b8{at}"));
        let tokens = TokenUsage {
            output: 100,
            input: 0,
            cost: None,
            cursor: format!("{}:msg_01{at}", 1u64 << 30),
        };
        for name in ["write", "read"] {
            let name = format!("{name} {at}");
            world.tool(&agent, &name, Some(at), None, Some(tokens.clone()));
        }
        if at % 2 == 0 {
            world.stop(&agent);
        }
    }
    assert_eq!(world.state.task.as_ref().unwrap().scopes.len(), 64);
    assert_eq!(world.state.cursors.len(), 24);
    assert!(size(&world) <= LIMIT, "{} bytes", size(&world));
}
