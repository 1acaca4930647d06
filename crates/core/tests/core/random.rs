//! Random policies and random lives of an agent.

use checkrein_core::digest::Digest;
use checkrein_core::effect::Effect;
use checkrein_core::evidence::{Cause, Origin};
use checkrein_core::ids::{ScopeId, Seq, VerifierName};
use checkrein_core::input::{
    EvidenceArrived, Input, RuleDecision, Scoped, SessionEnded, StanceAt, StanceUsed, TokenUse,
    TreeRead,
};
use checkrein_core::layers::{LayerSays, Stage};
use checkrein_core::policy::{Policy, Stance, SubagentVerify, SubjectKind, VerifyOn};
use proptest::prelude::*;

use crate::world::{self, Saying, World, scope};

/// Something that happens.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Prompt,
    Edit(u64),
    Unreadable,
    Say(usize, Saying),
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
    Stray(usize, Saying, bool),
    /// A stop whose checks are all run by hand, and pass; what it asked for stays open.
    ByHand,
    /// A reading that a stop asked for that is no longer pending.
    OldReading(u64),
    /// Checkrein itself could not judge.
    Stance(usize, Stance),
    /// What a layer of middleware says of the next call and the next stop.
    Layer(LayerSays),
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
                        spec.subject = SubjectKind::Message;
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
                    if caps.3 & 2 == 2 {
                        policy.subagents.max_iterations = Some(2);
                    }
                    if writers {
                        policy.subagents.verify = SubagentVerify::Writers;
                    }
                    if always {
                        policy.verify_on = VerifyOn::Always;
                    }
                    policy.single_task = caps.3 == 15;
                })
            },
        )
}

pub(crate) fn saying() -> impl Strategy<Value = Saying> {
    let verdict = prop_oneof![
        4 => Just(Saying::pass()),
        4 => prop::collection::btree_set(0u64..4, 0..4)
            .prop_map(|ids| Saying::fail(&ids.into_iter().collect::<Vec<_>>())),
        3 => prop_oneof![
            3 => Just(Cause::Timeout),
            2 => Just(Cause::Crash),
            1 => Just(Cause::MissingProgram),
            1 => Just(Cause::ReplyDeadline),
            1 => Just(Cause::ClaimedElsewhere),
            1 => Just(Cause::Unanswered),
            1 => Just(Cause::Expired),
            1 => Just(Cause::ModelUnavailable),
        ].prop_map(Saying::because),
    ];
    let tree = || prop_oneof![9 => Just(None), 1 => (0u64..40).prop_map(Some)];
    (verdict, tree(), tree()).prop_map(|(verdict, on, after)| Saying {
        on,
        after,
        ..verdict
    })
}

pub(crate) fn sayings() -> impl Strategy<Value = Vec<Saying>> {
    prop::collection::vec(saying(), VERIFIERS.len())
}

fn rule() -> impl Strategy<Value = Option<RuleDecision>> {
    prop_oneof![
        12 => Just(None),
        1 => Just(Some(RuleDecision::Prompt)),
        1 => Just(Some(RuleDecision::Forbidden)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    let small = || prop::option::of(0u64..3);
    prop_oneof![
        2 => Just(Act::Prompt),
        4 => (0u64..40).prop_map(Act::Edit),
        4 => (0..4usize, saying()).prop_map(|(at, saying)| Act::Say(at, saying)),
        8 => (0..3usize, 0..4usize, small(), rule(), prop::option::of(0u64..400)).prop_map(
            |(scope, name, outcome, rule, tokens)| Act::Call { scope, name, outcome, rule, tokens }
        ),
        2 => (0..3usize).prop_map(Act::Round),
        12 => (
            prop_oneof![5 => Just(0usize), 1 => 1..3usize],
            prop_oneof![4 => Just(9usize), 1 => 0..3usize],
            prop::option::of(0u32..10),
            prop::option::of(0u64..900),
            prop::bool::weighted(0.05),
        ).prop_map(|(scope, answers, cap, tokens, truncated)| {
            Act::Stop { scope, answers, cap, tokens, truncated }
        }),
        2 => (0u64..40, 0u64..40).prop_map(|(one, two)| Act::MovingStop(one, two)),
        4 => (0..4usize).prop_map(Act::Answer),
        2 => (0..4usize).prop_map(Act::Late),
        2 => (0..4usize, saying(), any::<bool>())
            .prop_map(|(at, saying, manual)| Act::Stray(at, saying, manual)),
        2 => Just(Act::ByHand),
        1 => (0u64..40).prop_map(Act::OldReading),
        1 => Just(Act::Unreadable),
        1 => (0..3usize, any_stance()).prop_map(|(scope, stance)| Act::Stance(scope, stance)),
        2 => layer_says().prop_map(Act::Layer),
        1 => Just(Act::End),
        1 => (0u64..100_000).prop_map(Act::Wait),
        1 => (0u64..100).prop_map(Act::Back),
    ]
}

fn layer_says() -> impl Strategy<Value = LayerSays> {
    prop::sample::select(vec![
        LayerSays::Pass,
        LayerSays::PassedOver,
        LayerSays::Nudge,
        LayerSays::Rewrite,
        LayerSays::Ask,
        LayerSays::Deny,
        LayerSays::Blocked,
    ])
}

fn any_stance() -> impl Strategy<Value = Stance> {
    prop::sample::select(vec![Stance::Block, Stance::Allow, Stance::Ask])
}

pub(crate) fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..most)
}

/// Only calls and stops, each with its price; a prompt now and then.
pub(crate) fn endless(count: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        1 => Just(vec![Act::Prompt]),
        20 => (0..3usize, 0..4usize, 0u64..50, rule()).prop_map(|(scope, name, outcome, rule)| {
            vec![
                Act::Call { scope, name, outcome: Some(outcome), rule, tokens: Some(10) },
                Act::Round(scope),
            ]
        }),
        20 => (0u64..40, 0..4usize, saying(), 0..9usize).prop_map(|(tree, at, saying, answers)| {
            vec![
                Act::Edit(tree),
                Act::Say(at, saying),
                Act::Stop { scope: 0, answers: answers + 3, cap: None, tokens: None, truncated: false },
            ]
        }),
    ];
    prop::collection::vec(act, count..=count).prop_map(|acts| acts.concat())
}

/// Lets it happen.
pub(crate) fn play(world: &mut World, act: &Act) {
    match act.clone() {
        Act::Prompt => {
            world.prompt();
            world.open.clear();
        }
        Act::Edit(tree) => world.tree = Some(tree),
        Act::Unreadable => world.tree = None,
        Act::Say(at, saying) => {
            world
                .sayings
                .insert(VerifierName::from(VERIFIERS[at]), saying);
        }
        Act::Call {
            scope: at,
            name,
            outcome,
            rule,
            tokens,
        } => {
            let tokens = tokens.map(reading);
            world.tool(&scope(SCOPES[at]), CALLS[name], outcome, rule, tokens);
        }
        Act::Round(at) => {
            world.news(Input::RoundEnded(Scoped {
                scope: scope(SCOPES[at]),
                tokens: None,
            }));
        }
        Act::Stop {
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
        Act::MovingStop(one, two) => {
            world.readings = [world.tree.unwrap_or(0), one, two].into();
            world.ask_stop(&ScopeId::main());
            while !world.open.is_empty() {
                world.answer(0);
            }
            world.readings.clear();
        }
        Act::Answer(at) => {
            if !world.open.is_empty() {
                world.answer(at % world.open.len());
            }
        }
        Act::Late(at) => {
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
        Act::Stray(at, saying, manual) => stray(world, VERIFIERS[at], saying, manual),
        Act::ByHand => {
            for effect in world.ask_stop(&ScopeId::main()).effects {
                let Effect::RunVerifier {
                    scope,
                    verifier,
                    subject,
                    ..
                } = effect
                else {
                    continue;
                };
                let said = world.sayings.insert(verifier.clone(), Saying::pass());
                let mut evidence = world.evidence(&verifier, subject);
                evidence.origin = Origin::Manual;
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
        Act::OldReading(tree) => {
            let tree = Ok(world.tree_fact(tree));
            world.news(Input::TreeRead(TreeRead {
                no_attempt: true,
                scope: ScopeId::main(),
                stop: Seq(1),
                tree,
            }));
        }
        Act::Stance(at, stance) => {
            let scope = scope(SCOPES[at]);
            if stance != Stance::Block {
                world
                    .open
                    .retain(|effect| *world::scope_of(effect) != scope);
            }
            world.news(Input::StanceUsed(StanceUsed {
                scope,
                at: StanceAt::Stop,
                stance,
                why: "store locked".to_owned(),
            }));
        }
        Act::Layer(says) => {
            world.layers = vec![world::layer("guard", Stage::BeforeStop, says)];
        }
        Act::End => {
            world.news(Input::SessionEnded(SessionEnded {
                native_reason: "exit".to_owned(),
            }));
        }
        Act::Wait(seconds) => world.now += seconds * 1_000,
        Act::Back(seconds) => world.now = world.now.saturating_sub(seconds * 1_000),
    }
}

fn reading(output: u64) -> TokenUse {
    TokenUse {
        output,
        input: 0,
        cost: None,
        cursor: "cursor".to_owned(),
    }
}

fn stray(world: &mut World, verifier: &str, saying: Saying, manual: bool) {
    let verifier = VerifierName::from(verifier);
    if world.policy.verifier(&verifier).is_none() {
        return;
    }
    let subject = world.tree.map_or(Digest::of(b""), |tree| {
        world
            .tree_fact(tree)
            .about(world.policy.verifier(&verifier).unwrap())
    });
    let said = world.sayings.insert(verifier.clone(), saying);
    let mut evidence = world.evidence(&verifier, subject);
    match said {
        Some(said) => world.sayings.insert(verifier.clone(), said),
        None => world.sayings.remove(&verifier),
    };
    if manual {
        evidence.origin = Origin::Manual;
    }
    world.news(Input::EvidenceArrived(EvidenceArrived {
        held_up: None,
        began: None,
        scope: ScopeId::main(),
        asked: None,
        tokens: 0,
        cost: 0,
        evidence,
    }));
    // Had somebody waited for it, that effect is answered.
    if !manual {
        world.open.retain(|effect| {
            !matches!(effect, Effect::RunVerifier { scope, verifier: asked, .. }
                if scope.is_main() && *asked == verifier)
        });
    }
}
