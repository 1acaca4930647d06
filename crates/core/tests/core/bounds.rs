//! A stop is answered after a bounded number of requests, whatever comes back for it, in whatever
//! order, and whatever happens to the tree meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::effect::Effect;
use checkrein_core::event::Event;
use checkrein_core::ids::{EventSeq, ScopeId, VerifierName};
use checkrein_core::input::NewestCheckRun;
use checkrein_core::policy::Policy;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use crate::random;
use crate::world::{CoreWorld, ScriptedVerdict, policy, scope, with};

/// Readings of the tree that one stop may ask for, and one more for each verifier of which a newer run
/// is told of; the contract allows 2 x verifiers + 4.
const MOST_LOOKS: usize = 3;
/// Runs of one verifier that one stop may ask for; the contract allows 4 + `retries`.
const MOST_RUNS: usize = 4;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What happens while stops are judged.
#[derive(Debug, Clone)]
enum InterleavedAction {
    /// The open effect at this place (modulo their number) is answered.
    Answer(usize),
    /// The tree is another, or one that it was before.
    Edit(u64),
    /// A verifier says something else from now on.
    Say(usize, ScriptedVerdict),
    /// A tool call may have changed what checks find.
    Act,
    /// It takes so many seconds.
    Wait(u64),
    /// A sub-agent wants to stop as well.
    Subagent,
    /// A person seals the policy anew.
    Renew,
    /// Another session's run of a check is the newest from now on.
    Run(usize, u64),
    /// Whose runs are the newest is not told any more, as in older logs.
    NoRuns,
}

fn saying() -> impl Strategy<Value = ScriptedVerdict> {
    let tree = || prop_oneof![2 => Just(None), 1 => (0u64..3).prop_map(Some)];
    (random::saying(), tree(), tree()).prop_map(|(saying, on, after)| ScriptedVerdict {
        on,
        after,
        ..saying
    })
}

fn meanwhile() -> impl Strategy<Value = InterleavedAction> {
    prop_oneof![
        12 => (0..6usize).prop_map(InterleavedAction::Answer),
        6 => (0u64..3).prop_map(InterleavedAction::Edit),
        4 => (0..4usize, saying()).prop_map(|(at, saying)| InterleavedAction::Say(at, saying)),
        1 => Just(InterleavedAction::Act),
        1 => (0u64..1_000).prop_map(InterleavedAction::Wait),
        1 => Just(InterleavedAction::Subagent),
        1 => Just(InterleavedAction::Renew),
        4 => (0..4usize, 0u64..4).prop_map(|(at, run)| InterleavedAction::Run(at, run)),
        1 => Just(InterleavedAction::NoRuns),
    ]
}

fn judged_policy() -> impl Strategy<Value = Policy> {
    let shape = prop::sample::select(vec![
        ("a b@ c?", "a and b"),
        ("a b@ c?", "(a or b) and c"),
        ("a b~ c@ d?", "(a or b) and c"),
        ("a b~ c@ d?", "2 of (a, b, c, d)"),
        ("a b? c? d@", "a and (b or c or d)"),
    ]);
    let judged = (shape, random::policy()).prop_map(|((names, accept), random)| {
        with(policy(names, accept), |policy| {
            for (spec, other) in policy.verifiers.iter_mut().zip(&random.verifiers) {
                spec.stance = other.stance;
            }
            policy.subagents = random.subagents;
            policy.verify_on = random.verify_on;
        })
    });
    prop_oneof![judged, random::policy()]
}

/// What each stop asked for until it was answered or replaced.
#[derive(Debug, Default)]
struct RequestTally {
    looks: usize,
    runs: BTreeMap<VerifierName, usize>,
    /// Sealings while it was judged: after each all is asked for anew.
    renewals: usize,
}

fn asked(log: &[Event]) -> BTreeMap<EventSeq, RequestTally> {
    let mut all: BTreeMap<EventSeq, RequestTally> = BTreeMap::new();
    for event in log {
        match event {
            Event::Requested { stop, effects, .. } => {
                let of = all.entry(*stop).or_default();
                for effect in effects {
                    match effect {
                        Effect::ReadTree { .. } => of.looks += 1,
                        Effect::RunVerifier { verifier, .. } => {
                            *of.runs.entry(verifier.clone()).or_default() += 1;
                        }
                    }
                }
            }
            Event::PolicyRenewed { .. } => {
                all.values_mut().for_each(|asked| asked.renewals += 1);
            }
            _ => {}
        }
    }
    all
}

fn play(world: &mut CoreWorld, act: &InterleavedAction) {
    match act.clone() {
        InterleavedAction::Answer(at) if !world.open.is_empty() => {
            world.answer(at % world.open.len());
        }
        InterleavedAction::Answer(_) => {}
        InterleavedAction::Edit(tree) => world.tree = Some(tree),
        InterleavedAction::Say(at, saying) => {
            world.sayings.insert(NAMES[at].into(), saying);
        }
        InterleavedAction::Act => {
            world.acts.any += 1;
            world.acts.declared += world.acts.any % 2;
        }
        InterleavedAction::Wait(seconds) => world.now += seconds * 1_000,
        InterleavedAction::Subagent => {
            world.tool(&scope("s"), "write", Some(0), None, None);
            world.ask_stop(&scope("s"));
        }
        InterleavedAction::Run(at, run) => {
            let run = NewestCheckRun {
                verifier: NAMES[at].into(),
                run: (run > 0).then_some(EightByteDigest(run)),
            };
            let others = world.runs.take().into_iter().flatten();
            let others = others.filter(|other| other.verifier != run.verifier);
            world.runs = Some(others.chain([run.clone()]).collect());
        }
        InterleavedAction::NoRuns => world.runs = None,
        InterleavedAction::Renew => world.record(Event::PolicyRenewed {
            policy: Digest::hash_bytes(&world.policy.to_policy_blob()),
            guarded: None,
            by: "a person".to_owned(),
        }),
    }
}

/// A main stop with all that happens meanwhile, until nothing is open any more.
fn judge(policy: Policy, before: &[random::RandomAction], life: &[InterleavedAction]) -> CoreWorld {
    let mut world = CoreWorld::new(policy);
    before.iter().for_each(|act| random::play(&mut world, act));
    world.layers.clear();
    world.readings.clear();
    world.tree = Some(0);
    world.ask_stop(&ScopeId::main_scope());
    life.iter().for_each(|act| play(&mut world, act));
    // Nothing holds still after that either.
    for at in 0..1_000 {
        if world.open.is_empty() {
            break;
        }
        world.tree = Some(at % 3);
        play(&mut world, &InterleavedAction::Run(at as usize % 4, at % 5));
        world.answer(at as usize % world.open.len());
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stop_is_answered_after_a_bounded_number_of_requests(
        policy in judged_policy(),
        before in random::acts(12),
        life in prop::collection::vec(meanwhile(), 1..40),
    ) {
        let most_looks = MOST_LOOKS + policy.verifiers.len();
        let world = judge(policy, &before, &life);
        prop_assert!(world.open.is_empty(), "it asks without end");
        prop_assert!(world.state.pending_stop(&ScopeId::main_scope()).is_none(), "it is never answered");
        for (stop, asked) in asked(&world.log) {
            let times = asked.renewals + 1;
            prop_assert!(asked.looks <= most_looks * times, "{stop}: {asked:?}");
            let most = asked.runs.values().max().copied().unwrap_or(0);
            prop_assert!(most <= MOST_RUNS * times, "{stop}: {asked:?}");
        }
    }
}

/// The property above is about stops that ask as often as they may.
#[test]
fn every_number_of_requests_is_reached() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut looks, mut runs) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..600 {
        let policy = judged_policy().new_tree(&mut runner).unwrap().current();
        let life = prop::collection::vec(meanwhile(), 1..40);
        let life = life.new_tree(&mut runner).unwrap().current();
        let world = judge(policy, &[], &life);
        for (_, asked) in asked(&world.log) {
            if asked.renewals == 0 {
                looks.insert(asked.looks);
                runs.extend(asked.runs.into_values());
            }
        }
    }
    assert!(looks.is_superset(&(0..=MOST_LOOKS).collect()), "{looks:?}");
    // The last one is of a check that was found by somebody else at first, as nothing is here.
    assert!(runs.is_superset(&(1..MOST_RUNS).collect()), "{runs:?}");
}
