//! Random policies and random lives of an agent.

use checkrein_core::detectors;
use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::evidence::{GateOrManualOrigin, InconclusiveCause};
use checkrein_core::ids::{DetectorName, EventSeq, ScopeId, VerifierName};
use checkrein_core::input::{
    EvidenceArrived, Input, RoundEnded, RuleDecision, SessionEnded, StancePoint, StanceUsed,
    TokenUsage, TreeReadingArrived,
};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareStage};
use checkrein_core::policy::{
    DetectorThresholds, LoopEscalationMode, PinnedLoopRules, Policy, Stance,
    SubagentStopVerification, VerdictSubjectKind, VerifyOnChangeOrAlways,
};
use proptest::prelude::*;

use crate::world::{self, CoreWorld, ScriptedVerdict, scope};

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum RandomAction {
    Prompt,
    Edit(u64),
    Unreadable,
    Say(usize, ScriptedVerdict),
    Call {
        scope: usize,
        name: usize,
        outcome: Option<u64>,
        rule: Option<RuleDecision>,
        tokens: Option<u64>,
    },
    Round(usize),
    /// A stop, of which so many effects are answered; the rest stays open.
    Stop {
        scope: usize,
        answers: usize,
        cap: Option<u32>,
        tokens: Option<u64>,
        truncated: bool,
    },
    /// A stop on a tree that moves at the next readings.
    MovingStop(u64, u64),
    /// The open effect at this place (modulo their number) is answered.
    Answer(usize),
    /// The effect at this place (modulo their number) of a stop that was replaced is answered.
    Late(usize),
    /// Evidence that was made by hand, or that nobody asked for.
    Stray(usize, ScriptedVerdict, bool),
    /// A stop whose checks are all run by hand, and pass; what it asked for stays open.
    ByHand,
    /// A reading that a stop asked for that is no longer pending.
    OldReading(u64),
    /// Checkrein itself could not judge.
    Stance(usize, Stance),
    /// What a layer of middleware says of the next call and the next stop.
    Layer(MiddlewareAnswer),
    End,
    Wait(u64),
    Back(u64),
}

const SCOPES: [&str; 3] = ["", "s", "t"];
const CALLS: [&str; 4] = ["read", "write", "poll", "test"];
const VERIFIERS: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) fn policy() -> impl Strategy<Value = Policy> {
    let shape = prop_oneof![
        Just(("", "")),
        Just(("a", "")),
        Just(("a", "-")),
        Just(("a b~", "")),
        Just(("a b c", "a and (b or c)")),
        Just(("a b~ c d", "2 of (a, b, c)")),
        Just(("a b c d~", "")),
        Just(("a b@", "")),
        Just(("a b@ c", "a and (b or c)")),
        Just(("a b?", "")),
        Just(("a b?", "a and b")),
        Just(("a b? c? d?", "a and 2 of (b, c, d)")),
        Just(("a b? c d?", "a and (b or c)")),
        Just(("a?", "")),
        Just(("a?", "a")),
        Just(("a!", "")),
        Just(("a b!", "")),
        Just(("a! b~ c?", "a and (b or c)")),
    ];
    let stance = prop_oneof![
        4 => Just(Stance::Block),
        2 => Just(Stance::Allow),
        1 => Just(Stance::Ask),
    ];
    (
        shape,
        prop::collection::vec(stance, 4),
        (1u32..5, 1u32..9, 5u64..40, 0u8..16),
        any::<[bool; 3]>(),
    )
        .prop_map(
            |((names, accept), stances, caps, [writers, always, message])| {
                world::with(world::policy(names, accept), |policy| {
                    for (spec, stance) in policy.verifiers.iter_mut().zip(&stances) {
                        spec.stance = *stance;
                        if let Some(terms) = &mut spec.judge {
                            terms.shadow = caps.3 & 8 == 8;
                            terms.max_attempts = caps.0;
                        }
                    }
                    let second = policy.verifiers.get_mut(1);
                    if message && let Some(spec) = second.filter(|spec| spec.judge.is_none()) {
                        spec.subject = VerdictSubjectKind::Message;
                    }
                    policy.caps.attempts = caps.0;
                    policy.caps.continues = caps.1;
                    policy.caps.tool_calls = Some(caps.2);
                    if caps.3 & 1 == 1 {
                        policy.loops.detectors = vec![
                            "generic_repeat".into(),
                            "known_poll_no_progress".into(),
                            "ping_pong".into(),
                            "global_circuit_breaker".into(),
                        ];
                    }
                    if caps.3 & 5 == 5 {
                        // Short thresholds, so that short stories climb all rungs.
                        policy.loops.detectors = detectors::ALL
                            .iter()
                            .map(|detector| DetectorName::new(detector.detector_name()))
                            .collect();
                        policy.loops.ladder = LoopEscalationMode::PerPattern;
                        policy.loops.thresholds = vec![DetectorThresholds {
                            detector: "generic_repeat".into(),
                            warning: Some(1),
                            critical: Some(2),
                        }];
                    }
                    if caps.3 & 7 == 7 {
                        policy.loops.pinned = Some(PinnedLoopRules::OpenClaw);
                    }
                    if caps.3 & 2 == 2 {
                        policy.subagents.max_iterations = Some(2);
                    }
                    if writers {
                        policy.subagents.verify = SubagentStopVerification::Writers;
                    }
                    if always {
                        policy.verify_on = VerifyOnChangeOrAlways::Always;
                    }
                    policy.single_task = caps.3 == 15;
                })
            },
        )
}

pub(crate) fn saying() -> impl Strategy<Value = ScriptedVerdict> {
    let verdict = prop_oneof![
        4 => Just(ScriptedVerdict::pass()),
        4 => prop::collection::btree_set(0u64..4, 0..4)
            .prop_map(|ids| ScriptedVerdict::fail(&ids.into_iter().collect::<Vec<_>>())),
        3 => prop_oneof![
            3 => Just(InconclusiveCause::Timeout),
            2 => Just(InconclusiveCause::Crash),
            1 => Just(InconclusiveCause::MissingProgram),
            1 => Just(InconclusiveCause::ReplyDeadline),
            1 => Just(InconclusiveCause::ClaimedElsewhere),
            1 => Just(InconclusiveCause::Unanswered),
            1 => Just(InconclusiveCause::Expired),
            1 => Just(InconclusiveCause::ModelUnavailable),
        ].prop_map(ScriptedVerdict::because),
    ];
    let tree = || prop_oneof![9 => Just(None), 1 => (0u64..40).prop_map(Some)];
    (verdict, tree(), tree()).prop_map(|(verdict, on, after)| ScriptedVerdict {
        on,
        after,
        ..verdict
    })
}

pub(crate) fn sayings() -> impl Strategy<Value = Vec<ScriptedVerdict>> {
    prop::collection::vec(saying(), VERIFIERS.len())
}

fn rule() -> impl Strategy<Value = Option<RuleDecision>> {
    prop_oneof![
        12 => Just(None),
        1 => Just(Some(RuleDecision::Prompt)),
        1 => Just(Some(RuleDecision::Forbidden)),
    ]
}

fn act() -> impl Strategy<Value = RandomAction> {
    let small = || prop::option::of(0u64..3);
    prop_oneof![
        2 => Just(RandomAction::Prompt),
        4 => (0u64..40).prop_map(RandomAction::Edit),
        4 => (0..4usize, saying()).prop_map(|(at, saying)| RandomAction::Say(at, saying)),
        8 => (0..3usize, 0..4usize, small(), rule(), prop::option::of(0u64..400)).prop_map(
            |(scope, name, outcome, rule, tokens)| RandomAction::Call { scope, name, outcome, rule, tokens }
        ),
        2 => (0..3usize).prop_map(RandomAction::Round),
        12 => (
            prop_oneof![5 => Just(0usize), 1 => 1..3usize],
            prop_oneof![4 => Just(9usize), 1 => 0..3usize],
            prop::option::of(0u32..10),
            prop::option::of(0u64..900),
            prop::bool::weighted(0.05),
        ).prop_map(|(scope, answers, cap, tokens, truncated)| {
            RandomAction::Stop { scope, answers, cap, tokens, truncated }
        }),
        2 => (0u64..40, 0u64..40).prop_map(|(one, two)| RandomAction::MovingStop(one, two)),
        4 => (0..4usize).prop_map(RandomAction::Answer),
        2 => (0..4usize).prop_map(RandomAction::Late),
        2 => (0..4usize, saying(), any::<bool>())
            .prop_map(|(at, saying, manual)| RandomAction::Stray(at, saying, manual)),
        2 => Just(RandomAction::ByHand),
        1 => (0u64..40).prop_map(RandomAction::OldReading),
        1 => Just(RandomAction::Unreadable),
        1 => (0..3usize, any_stance()).prop_map(|(scope, stance)| RandomAction::Stance(scope, stance)),
        2 => layer_says().prop_map(RandomAction::Layer),
        1 => Just(RandomAction::End),
        1 => (0u64..100_000).prop_map(RandomAction::Wait),
        1 => (0u64..100).prop_map(RandomAction::Back),
    ]
}

fn layer_says() -> impl Strategy<Value = MiddlewareAnswer> {
    prop::sample::select(vec![
        MiddlewareAnswer::Pass,
        MiddlewareAnswer::PassedOver,
        MiddlewareAnswer::Nudge,
        MiddlewareAnswer::Rewrite,
        MiddlewareAnswer::Ask,
        MiddlewareAnswer::Deny,
        MiddlewareAnswer::BlockedByStance,
    ])
}

fn any_stance() -> impl Strategy<Value = Stance> {
    prop::sample::select(vec![Stance::Block, Stance::Allow, Stance::Ask])
}

pub(crate) fn acts(most: usize) -> impl Strategy<Value = Vec<RandomAction>> {
    prop::collection::vec(act(), 1..most)
}

/// Only calls and stops, each with its price; a prompt now and then.
pub(crate) fn endless(count: usize) -> impl Strategy<Value = Vec<RandomAction>> {
    let act = prop_oneof![
        1 => Just(vec![RandomAction::Prompt]),
        20 => (0..3usize, 0..4usize, 0u64..50, rule()).prop_map(|(scope, name, outcome, rule)| {
            vec![
                RandomAction::Call { scope, name, outcome: Some(outcome), rule, tokens: Some(10) },
                RandomAction::Round(scope),
            ]
        }),
        20 => (0u64..40, 0..4usize, saying(), 0..9usize).prop_map(|(tree, at, saying, answers)| {
            vec![
                RandomAction::Edit(tree),
                RandomAction::Say(at, saying),
                RandomAction::Stop { scope: 0, answers: answers + 3, cap: None, tokens: None, truncated: false },
            ]
        }),
    ];
    prop::collection::vec(act, count..=count).prop_map(|acts| acts.concat())
}

/// Lets it happen.
pub(crate) fn play(world: &mut CoreWorld, act: &RandomAction) {
    match act.clone() {
        RandomAction::Prompt => {
            world.prompt();
            world.open.clear();
        }
        RandomAction::Edit(tree) => world.tree = Some(tree),
        RandomAction::Unreadable => world.tree = None,
        RandomAction::Say(at, saying) => {
            world
                .sayings
                .insert(VerifierName::from(VERIFIERS[at]), saying);
        }
        RandomAction::Call {
            scope: at,
            name,
            outcome,
            rule,
            tokens,
        } => {
            let tokens = tokens.map(reading);
            world.tool(&scope(SCOPES[at]), CALLS[name], outcome, rule, tokens);
        }
        RandomAction::Round(at) => {
            world.news(Input::RoundEnded(RoundEnded {
                scope: scope(SCOPES[at]),
                tokens: None,
            }));
        }
        RandomAction::Stop {
            scope: at,
            answers,
            cap,
            tokens,
            truncated,
        } => {
            world.stop.block_cap = cap;
            world.stop.tokens = tokens.map(reading);
            world.stop.truncated = truncated;
            world.ask_stop(&scope(SCOPES[at]));
            for _ in 0..answers {
                if world.open.is_empty() {
                    break;
                }
                world.answer(0);
            }
        }
        RandomAction::MovingStop(one, two) => {
            world.readings = [world.tree.unwrap_or(0), one, two].into();
            world.ask_stop(&ScopeId::main_scope());
            while !world.open.is_empty() {
                world.answer(0);
            }
            world.readings.clear();
        }
        RandomAction::Answer(at) => {
            if !world.open.is_empty() {
                world.answer(at % world.open.len());
            }
        }
        RandomAction::Late(at) => {
            if !world.late.is_empty() {
                let asked_now = world.open.clone();
                let late = world.late[at % world.late.len()].clone();
                world.answer_late(at % world.late.len());
                // One answer is good for both where both ask about the same.
                if asked_now.contains(&late) {
                    world.open.retain(|effect| *effect != late);
                }
            }
        }
        RandomAction::Stray(at, saying, manual) => stray(world, VERIFIERS[at], saying, manual),
        RandomAction::ByHand => {
            for effect in world.ask_stop(&ScopeId::main_scope()).effects {
                let Effect::RunVerifier {
                    scope,
                    verifier,
                    subject,
                    ..
                } = effect
                else {
                    continue;
                };
                let said = world
                    .sayings
                    .insert(verifier.clone(), ScriptedVerdict::pass());
                let mut evidence = world.evidence(&verifier, subject);
                evidence.origin = GateOrManualOrigin::Manual;
                match said {
                    Some(said) => world.sayings.insert(verifier, said),
                    None => world.sayings.remove(&verifier),
                };
                world.news(Input::EvidenceArrived(EvidenceArrived {
                    held_up: None,
                    began: None,
                    scope,
                    asked: None,
                    tokens: 0,
                    cost: 0,
                    evidence,
                }));
            }
            let is_look = |effect: &Effect| matches!(effect, Effect::ReadTree { .. });
            while let Some(at) = world.open.iter().position(is_look) {
                world.answer(at);
            }
        }
        RandomAction::OldReading(tree) => {
            let tree = Ok(world.tree_fact(tree));
            world.news(Input::TreeRead(TreeReadingArrived {
                no_attempt: true,
                scope: ScopeId::main_scope(),
                stop: EventSeq(1),
                tree,
            }));
        }
        RandomAction::Stance(at, stance) => {
            let scope = scope(SCOPES[at]);
            if stance != Stance::Block {
                world
                    .open
                    .retain(|effect| *world::scope_of(effect) != scope);
            }
            world.news(Input::StanceUsed(StanceUsed {
                scope,
                at: StancePoint::Stop,
                stance,
                why: "store locked".to_owned(),
            }));
        }
        RandomAction::Layer(says) => {
            world.layers = vec![world::layer("guard", MiddlewareStage::BeforeStop, says)];
        }
        RandomAction::End => {
            world.news(Input::SessionEnded(SessionEnded {
                native_reason: "exit".to_owned(),
            }));
        }
        RandomAction::Wait(seconds) => world.now += seconds * 1_000,
        RandomAction::Back(seconds) => world.now = world.now.saturating_sub(seconds * 1_000),
    }
}

fn reading(output: u64) -> TokenUsage {
    TokenUsage {
        output,
        input: 0,
        cost: None,
        cursor: "cursor".to_owned(),
    }
}

fn stray(world: &mut CoreWorld, verifier: &str, saying: ScriptedVerdict, manual: bool) {
    let verifier = VerifierName::from(verifier);
    if world.policy.verifier_spec(&verifier).is_none() {
        return;
    }
    let subject = world.tree.map_or(Digest::hash_bytes(b""), |tree| {
        world
            .tree_fact(tree)
            .verdict_subject_digest(world.policy.verifier_spec(&verifier).unwrap())
    });
    let said = world.sayings.insert(verifier.clone(), saying);
    let mut evidence = world.evidence(&verifier, subject);
    match said {
        Some(said) => world.sayings.insert(verifier.clone(), said),
        None => world.sayings.remove(&verifier),
    };
    if manual {
        evidence.origin = GateOrManualOrigin::Manual;
    }
    world.news(Input::EvidenceArrived(EvidenceArrived {
        held_up: None,
        began: None,
        scope: ScopeId::main_scope(),
        asked: None,
        tokens: 0,
        cost: 0,
        evidence,
    }));
    // Had somebody waited for it, that effect is answered.
    if !manual {
        world.open.retain(|effect| {
            !matches!(effect, Effect::RunVerifier { scope, verifier: asked, .. }
                if scope.is_main_scope() && *asked == verifier)
        });
    }
}
