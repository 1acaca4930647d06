//! The laws whose home is the core, as properties over random worlds. `law_N_…` is the
//! name by which `xtask laws` finds them.

use std::collections::{BTreeMap, BTreeSet};

use checkrein_core::accept::TruthValue;
use checkrein_core::decision::{Decision, StopDecision, ToolDecision};
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::effect::Effect;
use checkrein_core::event::{Event, TaskOrigin};
use checkrein_core::evidence::{EvidenceSummary, GateOrManualOrigin, InconclusiveCause, Verdict};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{ScopeId, VerifierName};
use checkrein_core::input::{Input, TreeDigests};
use checkrein_core::middleware::{MiddlewareAnswer, MiddlewareAnswerFact};
use checkrein_core::policy::{VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_core::state::SessionState;
use checkrein_core::step::{StateMachineStep, apply_input_and_decide};
use checkrein_core::transition::Reason;
use proptest::prelude::*;

use crate::random::{self, RandomAction};
use crate::world::{CoreWorld, ScriptedVerdict, policy, scope};

/// Law 1, judged from the log alone: each `task_complete` has gate evidence of this task
/// for exactly the subjects last read, which makes `accept` true and was necessary; and
/// the tree was read after the last of it that came for this stop.
pub(crate) fn audit(world: &CoreWorld) {
    let policy = &world.policy;
    let mut evidence: BTreeMap<VerifierName, Vec<EvidenceSummary>> = BTreeMap::new();
    let mut tree: Option<TreeDigests> = None;
    let mut message = Digest::hash_bytes(b"");
    let mut came_since_read = false;
    let (mut prompted, mut prompt) = (EightByteDigest(0), EightByteDigest(0));
    let mut claimed = 0_u64;
    for (before, event) in world.log.iter().enumerate() {
        match event {
            Event::TaskOpened { by, .. } => {
                evidence.clear();
                prompt = match by {
                    TaskOrigin::Prompt => prompted,
                    TaskOrigin::Work => EightByteDigest(0),
                };
            }
            Event::Input(stamped) => match &stamped.input {
                Input::PromptSubmitted(said) => {
                    prompted = Digest::hash_bytes(said.text.as_bytes()).to_eight_byte_digest();
                }
                Input::StopRequested(stop) if stop.scope.is_main_scope() => {
                    tree = stop.tree.clone().ok();
                    message = stop.message_digest;
                    claimed = before as u64 + 1;
                    came_since_read = false;
                }
                Input::TreeRead(read) if read.scope.is_main_scope() => {
                    tree = read.tree.clone().ok();
                    came_since_read = false;
                }
                Input::EvidenceArrived(arrived)
                    if arrived.evidence.origin == GateOrManualOrigin::Gate =>
                {
                    let fact = arrived.evidence.clone();
                    came_since_read |= arrived.scope.is_main_scope();
                    evidence
                        .entry(fact.verifier.clone())
                        .or_default()
                        .push(fact);
                }
                _ => {}
            },
            Event::TaskEnded { transition, .. } if transition.reason == Reason::TaskComplete => {
                let passed = |name: &VerifierName| {
                    let spec = policy.verifier_spec(name).unwrap();
                    let about = match spec.subject {
                        VerdictSubjectKind::Message => Some(message),
                        VerdictSubjectKind::Tree => {
                            tree.as_ref().map(|tree| tree.verdict_subject_digest(spec))
                        }
                        VerdictSubjectKind::Answer => {
                            let tree = tree.as_ref().map(|tree| tree.verifier_subject_digest(name));
                            let tree = tree.unwrap_or(Digest::hash_bytes(b""));
                            let parts = [&message.as_bytes()[..], &tree.as_bytes()[..]];
                            let prompt = prompt.0.to_le_bytes();
                            Some(Digest::hash_parts([parts[0], parts[1], &prompt, &[0; 8]]))
                        }
                        VerdictSubjectKind::Stop => {
                            let tree = tree.as_ref().map(|tree| tree.tree);
                            let tree = tree.unwrap_or(Digest::hash_bytes(b""));
                            let parts = [&message.as_bytes()[..], &tree.as_bytes()[..]];
                            let claimed = claimed.to_le_bytes();
                            Some(Digest::hash_parts([parts[0], parts[1], &claimed]))
                        }
                    };
                    let stands = evidence.get(name).is_some_and(|facts| {
                        facts.iter().any(|fact| {
                            fact.verdict == Verdict::Pass
                                && Some(fact.subject) == about
                                && fact.subject_after == fact.subject
                        })
                    });
                    if stands {
                        TruthValue::True
                    } else {
                        TruthValue::False
                    }
                };
                assert_eq!(
                    policy.accept.evaluate(&passed),
                    TruthValue::True,
                    "no evidence"
                );
                let is_judge = |name: &VerifierName| {
                    let spec = policy.verifier_spec(name);
                    spec.is_some_and(|spec| spec.tier == VerifierTier::Judge)
                };
                let without = policy.accept.evaluate(&|name| match is_judge(name) {
                    true => TruthValue::True,
                    false => TruthValue::False,
                });
                assert_eq!(
                    without,
                    TruthValue::False,
                    "hard evidence was not necessary"
                );
                assert!(!came_since_read, "the tree was not read once more");
            }
            _ => {}
        }
    }
}

/// Law 3: stepping the log's inputs again gives the same events, effects and decisions.
pub(crate) fn replays(world: &CoreWorld) {
    replays_through(world, usize::MAX);
}

/// The same, with the state written out and read back before step `at`.
fn replays_through(world: &CoreWorld, at: usize) {
    let mut state = SessionState::default();
    state.apply_event(&world.log[0]);
    let mut log = vec![world.log[0].clone()];
    for (place, (stamped, recorded)) in world.steps.iter().enumerate() {
        if place == at {
            let bytes = postcard::to_stdvec(&state).unwrap();
            state = postcard::from_bytes(&bytes).unwrap();
        }
        // What a person did beside the inputs is taken as it is recorded.
        while let Some(renewed @ Event::PolicyRenewed { .. }) = world.log.get(log.len()) {
            state.apply_event(renewed);
            log.push(renewed.clone());
        }
        let again = apply_input_and_decide(&world.policy, &mut state, stamped.clone());
        assert_eq!(&again, recorded, "step {place}");
        log.extend(again.events);
    }
    assert_eq!(log, world.log);
    assert_eq!(state, world.state);
    let mut folded = SessionState::default();
    world.log.iter().for_each(|event| folded.apply_event(event));
    assert_eq!(folded, world.state, "the state is the fold of the log");
}

/// Random worlds come here only now and then: a check that judged another tree is followed by a
/// look, and what a person says after that by one more.
#[test]
fn law_1_the_last_look_comes_after_the_last_word() {
    let mut world = CoreWorld::new(policy("a b@ c", "a and (b or c)"));
    let astray = ScriptedVerdict {
        on: Some(7),
        ..ScriptedVerdict::pass()
    };
    world.sayings.insert("c".into(), astray);
    world.prompt();
    world.tree = Some(2);
    world.ask_stop(&ScopeId::main_scope());
    while !world.open.is_empty() {
        world.answer(0);
    }
    assert_eq!(world.ending().as_deref(), Some("task_complete"));
    audit(&world);
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn law_1_no_accept_without_evidence(policy in random::policy(), acts in random::acts(60)) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        audit(&world);
    }

    #[test]
    fn law_3_replay(policy in random::policy(), acts in random::acts(60), at in 0usize..80) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        replays_through(&world, at);
    }

    #[test]
    fn law_4_order_free(
        policy in random::policy(),
        acts in random::acts(40),
        sayings in random::sayings(),
        tree in 0u64..40,
        subagents in 0usize..3,
        order in prop::collection::vec(0usize..12, 1..12),
    ) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        world.layers.clear();
        for (name, saying) in ["a", "b", "c", "d"].into_iter().zip(sayings) {
            world.sayings.insert(name.into(), saying);
        }
        world.tree = Some(tree);
        for name in ["s", "t"].into_iter().take(subagents) {
            world.tool(&scope(name), "write", Some(0), None, None);
            world.ask_stop(&scope(name));
        }
        world.ask_stop(&ScopeId::main_scope());
        let mut other = world.clone();
        while !world.open.is_empty() {
            world.answer(0);
        }
        for at in order.iter().cycle().take(1_000) {
            match other.open.len() {
                0 => break,
                open => other.answer(at % open),
            };
        }
        prop_assert!(other.open.is_empty(), "it asks without end");
        let answers = |world: &CoreWorld| {
            // Which of two stops is answered first is the order itself.
            let mut made: Vec<_> = world.decisions().cloned().collect();
            made.sort_by_key(|made| made.answers);
            made
        };
        prop_assert_eq!(answers(&world), answers(&other));
        prop_assert_eq!(world.state, other.state);
    }

    #[test]
    fn law_6_stances_are_explicit(policy in random::policy(), acts in random::acts(60)) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        for made in world.decisions() {
            let used: BTreeSet<&VerifierName> = made.why.iter().filter_map(|why| match why {
                DecisionFactor::Verdict { verifier, required: true, by_stance: true, .. } => Some(verifier),
                _ => None,
            }).collect();
            let sends: BTreeSet<&VerifierName> = made.why.iter().filter_map(|why| match why {
                DecisionFactor::Verdict { verifier, by_stance: true, .. } => Some(verifier),
                _ => None,
            }).collect();
            match &made.decision {
                Decision::Stop(StopDecision::Accept { transition: Some(ended) }) => {
                    if !used.is_empty() {
                        prop_assert_ne!(ended.reason, Reason::TaskComplete);
                    }
                    let own = made.why.iter().any(|why| matches!(why, DecisionFactor::StanceUsed { .. }));
                    if own {
                        prop_assert_ne!(ended.reason, Reason::TaskComplete);
                    }
                    let layer = made.why.contains(&DecisionFactor::LayerPassedOver);
                    if layer {
                        prop_assert_ne!(ended.reason, Reason::TaskComplete);
                    }
                    if ended.detail.as_deref() == Some("passed_over") {
                        prop_assert!(own || layer || !used.is_empty(), "{:?}", made.why);
                    }
                }
                Decision::Stop(StopDecision::Continue { feedback }) => {
                    for check in &feedback.checks {
                        prop_assert!(
                            check.verdict != Verdict::Inconclusive || sends.contains(&check.verifier)
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Law 6 for middleware: once something was let pass because nobody could say, that task does
    /// not end as complete. And law 11: whatever is refused without a layer is refused with it.
    #[test]
    fn law_6_and_11_middleware_only_tightens(
        policy in random::policy(),
        acts in random::acts(60),
    ) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        let (mut passed_over, mut newest) = (false, false);
        for event in &world.log {
            match event {
                Event::Input(stamped) => {
                    let says = |fact: &MiddlewareAnswerFact| fact.says == MiddlewareAnswer::PassedOver;
                    newest = stamped.layers.iter().any(says);
                    passed_over |= newest;
                }
                Event::TaskEnded { transition, .. } => {
                    prop_assert!(!passed_over || transition.reason != Reason::TaskComplete);
                }
                Event::DecisionMade(made) if passed_over => {
                    if let Decision::Stop(StopDecision::Accept { transition: Some(ended) }) = &made.decision {
                        prop_assert_ne!(ended.reason, Reason::TaskComplete);
                    }
                }
                Event::TaskOpened { .. } => {
                    // What opened it may be the very call that was passed over.
                    passed_over = newest;
                }
                _ => {}
            }
        }
        let mut state = SessionState::default();
        state.apply_event(&world.log[0]);
        for (stamped, recorded) in &world.steps {
            let mut without = stamped.clone();
            without.layers = Box::default();
            let bare = apply_input_and_decide(&world.policy, &mut state.clone(), without);
            let made = apply_input_and_decide(&world.policy, &mut state, stamped.clone());
            prop_assert_eq!(&made, recorded);
            if let (Some(Decision::Tool(bare)), Some(Decision::Tool(made))) = (bare.decision, made.decision) {
                prop_assert!(made >= bare || made == bare, "{:?} {:?}", bare, made);
            }
        }
    }

    #[test]
    fn law_7_the_second_ask_changes_nothing(
        policy in random::policy(),
        acts in random::acts(40),
        sayings in random::sayings(),
        tree in 0u64..40,
    ) {
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        world.layers.clear();
        for (name, saying) in ["a", "b", "c", "d"].into_iter().zip(sayings) {
            world.sayings.insert(name.into(), saying);
        }
        world.readings.clear();
        world.tree = Some(tree);
        let (_, first) = world.stop(&ScopeId::main_scope());
        if let Decision::Stop(StopDecision::Continue { feedback }) = first {
            let said = feedback.checks.iter();
            let cut = world.decisions().last().unwrap().why.iter().any(|why| matches!(
                why,
                // Cut by us or held by others: run again. Moved: its subject is not the stop's.
                DecisionFactor::Verdict {
                    cause: Some(InconclusiveCause::ReplyDeadline | InconclusiveCause::ClaimedElsewhere | InconclusiveCause::TreeMoving),
                    ..
                }
            ));
            let verdicts: Vec<_> = said.map(|check| (check.verifier.clone(), check.verdict)).collect();
            let (asked, second) = world.stop(&ScopeId::main_scope());
            if !cut {
                // A person is not a check: what they said is looked up, not asked again. A host's
                // function is asked at every stop: its subject is no other one's.
                let is_check = |effect: &Effect| match effect {
                    Effect::RunVerifier { verifier, .. } => {
                        let spec = world.policy.verifier_spec(verifier);
                        spec.is_none_or(|spec| {
                            spec.tier != VerifierTier::Person && spec.subject != VerdictSubjectKind::Stop
                        })
                    }
                    Effect::ReadTree { .. } => true,
                };
                // What judges alone have against an answer weighs nothing when they have had their
                // say: then it is looked at once more, and accepted.
                let testimony = feedback.judges as usize == feedback.checks.len();
                let accepted = testimony && matches!(
                    second,
                    Decision::Stop(StopDecision::Accept { transition: Some(_) })
                );
                let looks = |effect: &Effect| accepted && matches!(effect, Effect::ReadTree { .. });
                let run: Vec<_> = asked.into_iter().filter(is_check).filter(|of| !looks(of)).collect();
                prop_assert_eq!(run, Vec::<Effect>::new());
                match second {
                    Decision::Stop(StopDecision::Continue { feedback }) => {
                        let host = |spec: &VerifierSpec| spec.subject == VerdictSubjectKind::Stop;
                        prop_assert!(feedback.repeat || world.policy.verifiers.iter().any(host));
                        let checks = feedback.checks.iter();
                        prop_assert!(checks.clone().all(|check| check.new.is_empty()));
                        let again: Vec<_> = checks
                            .map(|check| (check.verifier.clone(), check.verdict))
                            .collect();
                        prop_assert_eq!(verdicts, again);
                    }
                    Decision::Stop(StopDecision::Accept { transition: Some(ended) }) => {
                        prop_assert!(accepted || !ended.reason.allows_continue_after_reopen(), "{ended:?}");
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
        prop_assert_eq!(sent_twice(&world), None);
    }

    #[test]
    fn law_8_sessions_share_nothing(
        policy in random::policy(),
        one in random::acts(40),
        two in random::acts(40),
    ) {
        let alone = |acts: &[RandomAction]| {
            let mut world = CoreWorld::new(policy.clone());
            acts.iter().for_each(|act| random::play(&mut world, act));
            (world.steps, world.state)
        };
        let expected = [alone(&one), alone(&two)];
        let mut worlds = [CoreWorld::new(policy.clone()), CoreWorld::new(policy.clone())];
        for at in 0..one.len().max(two.len()) {
            for (world, acts) in worlds.iter_mut().zip([&one, &two]) {
                if let Some(act) = acts.get(at) {
                    random::play(world, act);
                }
            }
        }
        let together = worlds.map(|world| (world.steps, world.state));
        prop_assert_eq!(together, expected);
    }
}

proptest! {
    #![proptest_config(cases(128))]

    /// Each agent here goes on for ever: after every answer, whatever it was, it asks for
    /// more. Exactly one cap is finite besides `continues`.
    #[test]
    fn law_2_it_ends(
        policy in random::policy(),
        cap in 0usize..4,
        limit in 1u64..12,
        session in prop::option::of(1u64..20),
        acts in random::endless(600),
    ) {
        let mut policy = policy;
        let caps = &mut policy.caps;
        caps.tool_calls = (cap == 0).then_some(limit);
        caps.max_iterations = (cap == 1).then_some(limit);
        caps.token_budget = (cap == 2).then_some(limit * 10);
        caps.wall_clock_ms = (cap == 3).then_some(limit * 1_000);
        policy.session_caps.tool_calls = session;
        policy.session_caps.continues = session.map(|limit| limit as u32);
        let continues = u64::from(policy.caps.continues);
        let mut world = CoreWorld::new(policy);
        for act in &acts {
            // Each call costs ten tokens, a second and a round, so each cap counts calls.
            world.now += 1_000;
            random::play(&mut world, act);
        }
        let (mut continued, mut allowed) = (0u64, 0u64);
        let (mut all_continued, mut all_allowed) = (0u64, 0u64);
        for event in &world.log {
            match event {
                Event::TaskOpened { .. } => (continued, allowed) = (0, 0),
                Event::DecisionMade(made) => match &made.decision {
                    Decision::Stop(StopDecision::Continue { .. }) => {
                        continued += 1;
                        all_continued += 1;
                    }
                    Decision::Tool(
                        ToolDecision::Allow
                        | ToolDecision::Nudge { .. }
                        | ToolDecision::Rewrite { .. }
                        | ToolDecision::Ask { .. },
                    ) => {
                        allowed += 1;
                        all_allowed += 1;
                    }
                    _ => {}
                },
                _ => {}
            }
            prop_assert!(continued <= continues, "{continued} continuations");
            prop_assert!(allowed <= limit + 1, "{allowed} calls allowed of {limit}");
            if let Some(session) = session {
                prop_assert!(all_continued <= session, "{all_continued} continuations");
                prop_assert!(all_allowed <= session, "{all_allowed} calls allowed");
            }
        }
    }
}

/// A finding that was sent as new twice to the main conversation in one task. What a judge has
/// against another answer is another finding, and only what it had against the newest one is
/// remembered.
fn sent_twice(world: &CoreWorld) -> Option<(VerifierName, EightByteDigest)> {
    let mut sent: BTreeMap<VerifierName, BTreeSet<EightByteDigest>> = BTreeMap::new();
    let mut judged: BTreeMap<VerifierName, Digest> = BTreeMap::new();
    for event in &world.log {
        match event {
            Event::TaskOpened { .. } => sent.clear(),
            Event::DecisionMade(made) if made.scope.is_main_scope() => {
                let Decision::Stop(StopDecision::Continue { feedback }) = &made.decision else {
                    continue;
                };
                for check in &feedback.checks {
                    let spec = world.policy.verifier_spec(&check.verifier);
                    let is_judge = spec.is_some_and(|spec| spec.tier == VerifierTier::Judge);
                    let told = sent.entry(check.verifier.clone()).or_default();
                    if is_judge
                        && judged.insert(check.verifier.clone(), check.key) != Some(check.key)
                    {
                        told.clear();
                    }
                    for finding in &check.new {
                        if !told.insert(*finding) {
                            return Some((check.verifier.clone(), *finding));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// The properties above are about logs in which something happens.
#[test]
fn random_worlds_reach_every_answer() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for _ in 0..600 {
        let policy = random::policy().new_tree(&mut runner).unwrap().current();
        let acts = random::acts(60).new_tree(&mut runner).unwrap().current();
        let mut world = CoreWorld::new(policy);
        acts.iter().for_each(|act| random::play(&mut world, act));
        for (_, StateMachineStep { decision, .. }) in &world.steps {
            let word = decision
                .as_ref()
                .map(|decision| crate::story::describe(&[], decision));
            let first = word.as_deref().unwrap_or("waits").split([' ', '/']).next();
            seen.insert(first.unwrap_or_default().to_owned());
        }
    }
    for word in [
        "accept",
        "allow",
        "ask",
        "awaiting_human",
        "continue",
        "deny",
        "grace",
        "gave_up",
        "halt",
        "halted",
        "hard_cap",
        "noted",
        "permission_denied",
        "repeat",
        "task_complete",
        "unverified",
        "verifier_failed_unrecoverable",
        "waits",
    ] {
        assert!(seen.contains(word), "{word} is never answered: {seen:?}");
    }
}
