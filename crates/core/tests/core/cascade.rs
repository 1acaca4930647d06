//! Stops: hard, soft, lazy; what is run, what is said, how it ends.

use checkrein_core::digest::Digest;
use checkrein_core::event::{EVENT_VERSION, Event};
use checkrein_core::evidence::GateOrManualOrigin;
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::ScopeId;
use checkrein_core::input::{EvidenceArrived, Input, TreeReadingArrived};
use checkrein_core::policy::{
    Stance, SubagentStopVerification, VerdictSubjectKind, VerifyOnChangeOrAlways,
};

use crate::story::{check, describe, tell};
use crate::world::{CoreWorld, ScriptedVerdict, policy, stance, with};

#[test]
fn fixed_on_the_second_try() {
    check(
        policy("tests lint", ""),
        "prompt | edit | tests fail 1 2 | stop | edit | tests fail 2 3 | stop
         | edit | tests pass | stop | ending",
        "tests lint continue tests:2+0-0 | tests lint continue tests:1+1-1
         | tests lint look task_complete | task_complete",
    );
}

#[test]
fn never_fixed() {
    let tests = || policy("tests", "");
    // Two continuations, tree changed or not.
    check(
        tests(),
        "prompt | edit | tests fail 1 | stop | stop | stop",
        "tests continue tests:1+0-0 | repeat tests:0+1-0 | gave_up/same_failures",
    );
    check(
        tests(),
        "prompt | tests fail 1 | edit | stop | edit | stop | edit | stop",
        "tests continue tests:1+0-0 | tests continue tests:0+1-0 | tests gave_up/same_failures",
    );
    // Not necessarily in a row; a strict subset is a new set.
    check(
        tests(),
        "prompt | tests fail 1 2 | edit | stop | tests fail 1 | edit | stop
         | tests fail 1 2 | edit | stop | tests fail 1 | edit | stop | tests fail 1 2 | edit | stop",
        "tests continue tests:2+0-0 | tests continue tests:0+1-1 | tests continue tests:0+2-0
         | tests continue tests:0+1-1 | tests gave_up/same_failures",
    );
    // Without findings: verdict, cause and exit code.
    check(
        tests(),
        "prompt | tests fail | edit | stop | tests crash | edit | stop | tests timeout | edit | stop
         | tests crash | edit | stop | edit | stop",
        "tests continue tests:0+0-0 | tests continue tests:crash?0+0-0
         | tests continue tests:timeout?0+0-0 | tests continue tests:crash?0+0-0
         | tests gave_up/same_failures",
    );
    // Only required verifiers make a set.
    check(
        policy("tests lint", "tests"),
        "prompt | tests fail 1 | lint fail 7 | edit | stop | lint fail 8 | edit | stop
         | lint fail 9 | edit | stop",
        "tests continue tests:1+0-0 | tests continue tests:0+1-0 | tests gave_up/same_failures",
    );
}

#[test]
fn fails_differently_every_time() {
    let story = |cap: &str, stops: usize| {
        let rounds: Vec<String> = (0..stops)
            .map(|at| format!("edit | tests fail {} | stop {cap}", at + 1))
            .collect();
        format!("prompt | {}", rounds.join(" | "))
    };
    // The agent's own cap is stayed under by one, but one continuation is always given.
    for (cap, continues) in [
        ("", 7),
        ("cap=0", 7),
        ("cap=20", 7),
        ("cap=8", 7),
        ("cap=5", 4),
        ("cap=2", 1),
        ("cap=1", 1),
    ] {
        let mut expected = vec!["tests continue tests:1+0-0".to_owned()];
        expected.extend((1..continues).map(|_| "tests continue tests:1+0-1".to_owned()));
        let expected = match continues {
            1 => expected[0].clone(),
            2 => expected.join(" | "),
            _ => format!("{} | {} x{}", expected[0], expected[1], continues - 1),
        };
        check(
            policy("tests", ""),
            &story(cap, continues + 1),
            &format!("{expected} | tests gave_up/continues"),
        );
    }
}

#[test]
fn nothing_required() {
    check(
        policy("", ""),
        "prompt | edit | stop",
        "unverified/no_checks",
    );
    check(policy("", ""), "stop", "unverified/no_checks");
    check(
        policy("tests", "-"),
        "prompt | edit | tests fail 1 | stop",
        "unverified/advisory_only",
    );
    // Nobody has configured nothing.
    let mut world = CoreWorld::new(policy("tests", "-"));
    tell(&mut world, "prompt | edit | stop");
    assert_eq!(world.decisions().last().unwrap().why, []);
}

#[test]
fn advisory_verifiers_are_not_asked_at_a_stop() {
    for lint in ["fail 1", "timeout", "missing_program", "reply_deadline"] {
        check(
            policy("lint tests", "tests"),
            &format!(
                "prompt | edit | lint {lint} | tests fail 1 | 3x stop | edit | tests pass | stop"
            ),
            "tests continue tests:1+0-0 | repeat tests:0+1-0 | gave_up/same_failures
             | tests look task_complete",
        );
    }
}

#[test]
fn stances() {
    let story = "prompt | edit | tests timeout | stop";
    check(
        policy("tests", ""),
        story,
        "tests continue tests:timeout?0+0-0",
    );
    check(
        stance(policy("tests", ""), Stance::Allow),
        story,
        "tests look unverified/passed_over",
    );
    check(
        stance(policy("tests", ""), Stance::Ask),
        story,
        "tests look awaiting_human/stance",
    );
    // A stance that made no difference was not used.
    check(
        stance(policy("a b", "a or b"), Stance::Allow),
        "prompt | edit | b timeout | stop",
        "a b look task_complete",
    );
    check(
        stance(policy("a b", ""), Stance::Allow),
        "prompt | edit | b timeout | stop",
        "a b look unverified/passed_over",
    );
    // A fail is a verdict: no stance is asked.
    check(
        stance(policy("a b", ""), Stance::Allow),
        "prompt | edit | a fail 1 | b timeout | stop",
        "a b continue a:1+0-0",
    );
    // Passed over once, tried no second time on the same subject.
    check(
        stance(policy("tests", ""), Stance::Allow),
        "prompt | edit | tests timeout | stop | stop",
        "tests look unverified/passed_over | look unverified/passed_over",
    );
}

#[test]
fn what_can_never_succeed() {
    check(
        policy("a b c", ""),
        "prompt | edit | b missing_program | c missing_program | stop | stop",
        "a b c verifier_failed_unrecoverable/b | verifier_failed_unrecoverable/b",
    );
    // It is not in the way of what can be accepted without it.
    check(
        policy("a b", "a or b"),
        "prompt | edit | a missing_program | b fail 1 | stop | edit | b pass | stop",
        "a b continue a:missing_program?0+0-0 b:1+0-0 | a b look task_complete",
    );
    // Seen only where the cascade comes to it.
    check(
        stance(policy("a", ""), Stance::Allow),
        "prompt | edit | a missing_program | stop",
        "a look unverified/passed_over",
    );
}

#[test]
fn no_change() {
    let tests = || policy("tests", "");
    check(
        tests(),
        "prompt | call rg=1 | stop",
        "allow | unverified/no_change",
    );
    // Only at the first stop, only after a prompt that we saw.
    check(
        tests(),
        "prompt | stop | stop",
        "unverified/no_change | tests look task_complete",
    );
    check(
        tests(),
        "call rg=1 | stop",
        "allow | tests look task_complete",
    );
    check(
        with(tests(), |policy| {
            policy.verify_on = VerifyOnChangeOrAlways::Always
        }),
        "prompt | stop",
        "tests look task_complete",
    );
    check(
        with(tests(), |policy| policy.single_task = true),
        "prompt | stop",
        "tests look task_complete",
    );
    check(
        with(tests(), |policy| {
            policy.verifiers[0].subject = VerdictSubjectKind::Message;
        }),
        "prompt | stop",
        "tests look task_complete",
    );
    // A start that is not known cannot be equal.
    check(
        tests(),
        "unreadable | prompt | tree 1 | stop",
        "tests look task_complete",
    );
    // Nor need it be where every call of the task is known to only read.
    for (calls, expected) in [
        ("call rg=1", "allow | unverified/no_change"),
        ("call counted=1", "allow | tests look task_complete"),
        ("call write=1", "allow | tests look task_complete"),
        ("call reaching=1", "allow | tests look task_complete"),
        ("call rg=1 | act", "allow | tests look task_complete"),
        (
            "call rg=1 | unreadable",
            "allow | continue tests:tree_unreadable?0+0-0",
        ),
    ] {
        check(
            tests(),
            &format!("act | unreadable | prompt | tree 1 | {calls} | stop"),
            expected,
        );
    }
    // A refusal or an unanswered question is not a question answered.
    check(
        tests(),
        "prompt | call !rm | stop",
        "deny | permission_denied",
    );
    check(
        tests(),
        "prompt | call ?push | stop",
        "ask | awaiting_human",
    );
}

#[test]
fn no_change_on_a_tree_known_to_fail_says_so() {
    let known = |story: &str| {
        let mut world = CoreWorld::new(policy("tests", ""));
        tell(&mut world, story);
        let made = world.decisions().last().unwrap();
        made.why.contains(&DecisionFactor::KnownFailing)
    };
    assert!(known("prompt | edit | tests fail 1 | stop | prompt | stop"));
    // Also if the last attempt was not answered `continue`.
    assert!(known(
        "prompt | edit | tests fail 1 | stop | edit | stop | edit | stop | prompt | stop"
    ));
    assert!(!known(
        "prompt | edit | tests fail 1 | stop | edit | tests pass | stop | prompt | stop"
    ));
    assert!(!known("prompt | edit | stop | prompt | stop"));
    assert!(!known(
        "prompt | edit | tests timeout | stop | prompt | stop"
    ));
}

#[test]
fn an_edit_voids_a_pass() {
    check(
        policy("tests docs~", ""),
        "prompt | edit | stop | stop | edit | stop | tree 11 | stop",
        "tests docs look task_complete | look task_complete | tests look task_complete
         | tests docs look task_complete",
    );
    check(
        policy("tests", ""),
        "prompt | edit | stop | edit | tests fail 1 | stop",
        "tests look task_complete | tests continue tests:1+0-0",
    );
}

#[test]
fn after_giving_up_nothing_is_continued_but_the_reason_may_improve() {
    let gave_up = "prompt | edit | tests fail 1 | stop | stop | stop";
    let said = "tests continue tests:1+0-0 | repeat tests:0+1-0 | gave_up/same_failures";
    for (more, expected) in [
        (
            "call a=1 | edit | tests fail 2 | stop",
            "allow | tests gave_up/same_failures",
        ),
        ("edit | tests pass | stop", "tests look task_complete"),
        // Not even once it has ended well.
        (
            "edit | tests pass | stop | edit | tests fail 3 | stop",
            "tests look task_complete | tests gave_up/same_failures",
        ),
        // Nothing but a stop changes the reason.
        ("call a=1 | prompt | stop", "allow | unverified/no_change"),
        ("call a=1 | end | ending", "allow | gave_up/same_failures"),
        (
            "call a=1 | failed overloaded | ending",
            "allow | gave_up/same_failures",
        ),
    ] {
        check(
            policy("tests", ""),
            &format!("{gave_up} | {more}"),
            &format!("{said} | {expected}"),
        );
    }
}

#[test]
fn a_check_that_was_cut_is_no_attempt() {
    let mut expected: Vec<String> = vec!["tests continue tests:reply_deadline?0+0-0 x7".to_owned()];
    expected.push("tests unverified/still_running".to_owned());
    // It settles only the stop it was cut for, so it is run again.
    check(
        policy("tests", ""),
        "prompt | edit | tests reply_deadline | 8x stop",
        &expected.join(" | "),
    );
    // Nor where another passes.
    check(
        policy("a b", ""),
        "prompt | edit | a reply_deadline | 8x stop",
        "a b continue a:reply_deadline?0+0-0 | a continue a:reply_deadline?0+0-0 x6
         | a unverified/still_running",
    );
    check(
        policy("tests", ""),
        "prompt | edit | tests claimed_elsewhere | stop | tests pass | stop",
        "tests continue tests:claimed_elsewhere?0+0-0 | tests look task_complete",
    );
}

/// A fail is not asked again on the same tree, unless something was installed meanwhile; a
/// pass stays one. `install` is a call that changes what lies outside the tree.
#[test]
fn what_was_installed_since_may_have_mended_it() {
    check(
        policy("tests lint", ""),
        "prompt | edit | tests fail 1 | lint pass | stop | call look=1 | stop
         | call install=1 | tests pass | stop",
        "tests lint continue tests:1+0-0 | allow | repeat tests:0+1-0 | allow | tests look task_complete",
    );
}

#[test]
fn refused_asked_truncated() {
    let tests = || policy("tests", "");
    check(
        tests(),
        "prompt | edit | tests fail 1 | call !rm | stop",
        "deny | tests permission_denied",
    );
    // Accepted all the same if everything is there.
    check(
        tests(),
        "prompt | edit | call !rm | stop",
        "deny | tests look task_complete",
    );
    // Something allowed came in between.
    check(
        tests(),
        "prompt | edit | tests fail 1 | call !rm | call a=1 | stop",
        "deny | allow | tests continue tests:1+0-0",
    );
    check(
        tests(),
        "prompt | edit | call ?push | stop",
        "ask | tests look awaiting_human",
    );
    check(
        tests(),
        "prompt | edit | call ?push | call a=1 | stop",
        "ask | allow | tests look task_complete",
    );
    // The person said yes: the very call came back. Another one coming back is no answer.
    check(
        tests(),
        "prompt | edit | call ?push | returns ?push | stop",
        "ask | tests look task_complete",
    );
    check(
        tests(),
        "prompt | edit | call slow | call ?push | returns slow | stop",
        "allow | ask | tests look awaiting_human",
    );
    check(
        tests(),
        "prompt | edit | tests fail 1 | stop truncated",
        "tests truncated",
    );
    check(
        tests(),
        "prompt | edit | stop truncated",
        "tests look task_complete",
    );
}

#[test]
fn subagents() {
    let never = || policy("tests", "");
    let writers = || {
        with(policy("tests", ""), |p| {
            p.subagents.verify = SubagentStopVerification::Writers
        })
    };
    check(
        never(),
        "prompt | edit | tests fail 1 | @s call write=1 | @s stop | stop",
        "allow | accept | tests continue tests:1+0-0",
    );
    check(
        writers(),
        "prompt | edit | tests fail 1 | @s call read=1 | @s stop | @t call write=1 | @t stop
         | tests pass | edit | @t stop | stop",
        "allow | accept | allow | tests continue tests:1+0-0 | tests look accept
         | tests look task_complete",
    );
    // Nobody is asked in the middle of a task.
    check(
        with(policy("tests p@", ""), |p| {
            p.subagents.verify = SubagentStopVerification::Writers
        }),
        "prompt | edit | @t call write=1 | @t stop | stop",
        "allow | tests look accept | tests p look task_complete",
    );
    // What a sub-agent was told, the main conversation was not: no attempt, nothing told,
    // and to the sub-agent itself nothing is cut short. Each of its stops asks for itself,
    // and sub-agents have half of the continuations.
    check(
        writers(),
        "prompt | edit | tests fail 1 | @t call write=1 | @t stop | @t stop | @t stop | @t stop | stop
         | stop | stop",
        "allow | tests continue tests:1+0-0 x3 | tests accept | tests continue tests:1+0-0 | repeat tests:0+1-0
         | gave_up/same_failures",
    );
    // Nor does it know what the main conversation was told.
    check(
        writers(),
        "prompt | edit | tests fail 1 2 | stop | @t call write=1 | edit | tests fail 1 | @t stop
         | edit | tests fail 2 | stop",
        "tests continue tests:2+0-0 | allow | tests continue tests:1+0-0
         | tests continue tests:0+1-1",
    );
    check(
        writers(),
        "prompt | edit | tests fail 1 2 | stop | @t call write=1 | edit | tests fail 2 | @t stop
         | edit | tests fail 2 3 | stop",
        "tests continue tests:2+0-0 | allow | tests continue tests:1+0-0
         | tests continue tests:1+1-1",
    );
    // But it is a continuation, and those come to an end.
    check(
        writers(),
        "prompt | edit | tests fail 1 | @t call write=1 | 8x @t stop | stop",
        "allow | tests continue tests:1+0-0 x3 | tests accept x5 | tests continue tests:1+0-0",
    );
    // What it costs to send a sub-agent back counts when returns diminish.
    check(
        writers(),
        "prompt | edit | tests fail 1 | stop tokens=5000 | @t call write=1 | @t stop
         | edit | tests fail 2 | stop tokens=499 | edit | tests fail 3 | stop tokens=499",
        "tests continue tests:1+0-0 | allow | tests continue tests:1+0-0
         | tests continue tests:1+0-1 | tests diminishing_returns/diminishing",
    );
    // Once the task has been given up nobody is sent back.
    check(
        writers(),
        "prompt | edit | tests fail 1 | stop | stop | stop | @t call write=1 | @t stop",
        "tests continue tests:1+0-0 | repeat tests:0+1-0 | gave_up/same_failures | allow | tests accept",
    );
}

#[test]
fn a_newer_stop_replaces_a_pending_one() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("tests", ""));
    world.prompt();
    world.tree = Some(2);
    let old = world.ask_stop(&main);
    let stale = world.answer(0);
    let Some(look) = stale.effects.first().cloned() else {
        panic!("{stale:?}")
    };
    world.tree = Some(3);
    let newer = world.ask_stop(&main);
    assert_eq!(newer.decision, None);
    // The reading the old stop asked for is older than the newer stop's checks.
    let checkrein_core::effect::Effect::ReadTree { scope, stop } = look else {
        panic!("{look:?}")
    };
    let tree = Ok(world.tree_fact(3));
    let late = world.news(Input::TreeRead(TreeReadingArrived {
        scope,
        stop,
        tree,
        no_attempt: true,
    }));
    assert_eq!((late.effects, late.decision), (Vec::new(), None));
    let looked = world.answer(0);
    assert_eq!(looked.decision, None, "the final look is still to come");
    let decided = world.answer(0);
    assert_eq!(describe(&[], &decided.decision.unwrap()), "task_complete");
    let made = world.decisions().last().unwrap();
    assert_eq!(
        made.answers,
        checkrein_core::ids::EventSeq(newer_seq(&world))
    );
    assert_eq!(old.decision, None);
    assert_eq!(world.decisions().count(), 1, "one answer for both");
}

/// What an older stop asked about another tree is no answer to a newer one, in whichever order
/// the two come back; about the same tree it is.
#[test]
fn what_an_older_stop_asked_for_is_no_answer_about_another_tree() {
    let main = ScopeId::main_scope();
    for (tree, late_first, expected) in [
        (3, true, "task_complete"),
        (3, false, "task_complete"),
        (2, true, "continue tests:1+0-0"),
    ] {
        let mut world = CoreWorld::new(policy("tests", ""));
        world.prompt();
        world.tree = Some(2);
        world.ask_stop(&main);
        world.tree = Some(tree);
        world.ask_stop(&main);
        world
            .sayings
            .insert("tests".into(), ScriptedVerdict::fail(&[1]));
        let mut last = None;
        if late_first {
            let late = world.answer_late(0);
            assert_eq!(late.effects, []);
            last = late.decision;
        }
        while last.is_none() {
            world
                .sayings
                .insert("tests".into(), ScriptedVerdict::pass());
            last = world.answer(0).decision;
        }
        assert_eq!(describe(&[], &last.unwrap()), expected);
        if !late_first {
            let late = world.answer_late(0).decision.unwrap();
            assert_eq!(describe(&[], &late), "noted");
        }
    }
}

fn newer_seq(world: &CoreWorld) -> u64 {
    let is_stop = |event: &checkrein_core::event::Event| event.log_event_kind() == "stop_requested";
    world.log.iter().rposition(is_stop).unwrap() as u64 + 1
}

#[test]
fn late_and_manual_evidence_decide_nothing() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("a b", ""));
    world
        .sayings
        .insert("a".into(), ScriptedVerdict::fail(&[1]));
    world.prompt();
    world.tree = Some(2);
    world.ask_stop(&main);
    let spec = world.policy.verifier_spec(&"a".into()).unwrap();
    let subject = world.tree_fact(2).verdict_subject_digest(spec);
    let mut fact = world.evidence(&"a".into(), subject);
    // By hand: the stop goes on waiting.
    fact.origin = GateOrManualOrigin::Manual;
    fact.verdict = checkrein_core::evidence::Verdict::Pass;
    let arrived = |fact: &checkrein_core::evidence::EvidenceSummary| {
        Input::EvidenceArrived(EvidenceArrived {
            held_up: None,
            began: None,
            scope: ScopeId::main_scope(),
            asked: None,
            tokens: 0,
            cost: 0,
            evidence: fact.clone(),
        })
    };
    assert_eq!(world.news(arrived(&fact)).decision, None);
    world.answer(0);
    // Twice for one stop: the first counts.
    fact.origin = GateOrManualOrigin::Gate;
    assert_eq!(world.news(arrived(&fact)).decision, None);
    let decided = world.answer(0).decision.unwrap();
    assert_eq!(describe(&[], &decided), "continue a:1+0-0");
    // After the answer: noted.
    let late = world.news(arrived(&fact));
    assert_eq!(describe(&late.effects, &late.decision.unwrap()), "noted");
    let again = world.ask_stop(&main);
    assert_eq!(
        describe(&again.effects, &again.decision.unwrap()),
        "repeat a:0+1-0"
    );
}

#[test]
fn checkrein_s_own_stance() {
    let tests = || policy("tests", "");
    for (story, expected) in [
        // Where nothing was seen of the stop itself.
        (
            "prompt | edit | stance stop allow | ending",
            "unverified/passed_over x2",
        ),
        (
            "prompt | edit | stance stop ask | ending",
            "awaiting_human/stance x2",
        ),
        ("stance stop allow | ending", "unverified/passed_over x2"),
        // Refused, or a call: the task goes on.
        ("prompt | stance stop block | ending", "open"),
        ("prompt | stance tool allow | ending", "open"),
        ("prompt | stance tool ask | ending", "open"),
        ("stance stop block | ending", "open"),
        // What ended better before was about another stop.
        (
            "prompt | edit | stop | stance stop allow | ending",
            "tests look task_complete | unverified/passed_over x2",
        ),
        // What ended worse keeps its reason.
        (
            "prompt | edit | tests missing_program | stop | stance stop allow | ending",
            "tests verifier_failed_unrecoverable/tests
             | verifier_failed_unrecoverable/tests x2",
        ),
        // A sub-agent's ends no task.
        ("prompt | @s stance stop allow | ending", "accept | open"),
        ("prompt | @s stance stop ask | ending", "accept | open"),
    ] {
        check(tests(), story, expected);
    }
    check(
        with(tests(), |policy| policy.caps.tool_calls = Some(1)),
        "prompt | call a=1 | call a=1 | call a=1 | stance stop allow | ending",
        "allow | grace | halt | hard_cap/tool_calls x2",
    );
}

#[test]
fn a_stance_gives_up_the_pending_stop() {
    let main = ScopeId::main_scope();
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(&mut world, "prompt | edit");
    world.ask_stop(&main);
    assert_eq!(
        tell(&mut world, "stance stop allow"),
        "unverified/passed_over"
    );
    assert!(world.state.pending_stop(&main).is_none());
    let made = world.decisions().last().unwrap();
    let used = DecisionFactor::StanceUsed {
        stance: Stance::Allow,
        why: "store locked".to_owned(),
    };
    assert_eq!(made.why, [used]);
    let late = world.answer(0);
    assert_eq!(describe(&[], &late.decision.unwrap()), "noted");
    assert_eq!(world.ending().as_deref(), Some("unverified/passed_over"));
}

#[test]
fn a_sub_agent_s_stop_keeps_the_main_clock_running() {
    let mut world = CoreWorld::new(with(policy("tests", ""), |p| {
        p.subagents.verify = SubagentStopVerification::Writers;
    }));
    tell(
        &mut world,
        "prompt | edit | tests fail 1 | @t call write=1 | wait 5 | @t stop | wait 2 | stop",
    );
    assert_eq!(world.state.totals.busy_ms, 7_000);
}

#[test]
fn what_the_text_cannot_name_is_told_later() {
    let failing = |name: char| {
        let ids = (0..50).map(|id| format!(" {}", 100 * u32::from(name) + id));
        format!("{name} fail{} |", ids.collect::<String>())
    };
    let all: String = ('a'..='f').map(failing).collect();
    check(
        with(policy("a b c d e f", ""), |policy| policy.caps.attempts = 4),
        &format!("prompt | {all} edit | stop | stop | edit | stop"),
        "a b c d e f continue a:50+0-0 b:50+0-0 c:50+0-0 d:50+0-0 e:50+0-0 f:0+0-0
         | repeat a:0+50-0 b:0+50-0 c:0+50-0 d:0+50-0 e:0+50-0 f:0+0-0
         | a b c d e f continue a:0+50-0 b:0+50-0 c:0+50-0 d:0+50-0 e:0+50-0 f:50+0-0",
    );
}

/// Who declares inputs is asked about a tree of which only the rest changed: it did change.
#[test]
fn a_change_that_no_check_depends_on_is_a_change() {
    check(
        policy("tests~", ""),
        "tree 1 | prompt | stop | prompt | tree 2 | stop",
        "unverified/no_change | tests look task_complete",
    );
}

#[test]
fn what_still_runs_in_the_background_is_told() {
    let told = |story: &str, background| {
        let mut world = CoreWorld::new(policy("tests", ""));
        world.stop.background = background;
        tell(&mut world, story);
        let why = world.decisions().last().unwrap().why.clone();
        why.into_iter()
            .find(|because| matches!(because, DecisionFactor::Background { .. }))
    };
    for story in [
        "prompt | stop",
        "prompt | edit | stop",
        "prompt | edit | tests fail 1 | stop",
    ] {
        assert_eq!(told(story, 0), None, "{story}");
        let count = Some(DecisionFactor::Background { count: 2 });
        assert_eq!(told(story, 2), count, "{story}");
    }
}

/// A program that was there when the policy was sealed may be the agent's own doing: it is told
/// once.
#[test]
fn a_program_that_is_gone_since_is_told_once() {
    let story = "prompt | edit | tests missing_program | stop | stop";
    let told = |equipped: &[&str], story: &str| {
        let mut world = CoreWorld::new(policy("tests lint", ""));
        world.record(Event::PolicySealed {
            policy: Digest::hash_bytes(&world.policy.to_policy_blob()),
            v: EVENT_VERSION,
            guarded: None,
            equipped: equipped.iter().map(|name| (*name).into()).collect(),
        });
        tell(&mut world, story)
    };
    assert_eq!(
        told(&["tests"], story),
        "tests lint continue tests:missing_program?0+0-0 \
         | tests verifier_failed_unrecoverable/tests"
    );
    for equipped in [&[][..], &["lint"]] {
        assert_eq!(
            told(equipped, story),
            "tests lint verifier_failed_unrecoverable/tests | verifier_failed_unrecoverable/tests"
        );
    }
    // Its program is there, and it cannot succeed all the same.
    assert_eq!(
        told(&["tests"], "prompt | edit | tests expired | stop"),
        "tests lint verifier_failed_unrecoverable/tests"
    );
}

/// What cannot succeed after the task had ended otherwise than well changes nothing of its end.
#[test]
fn a_task_that_has_ended_says_so_whatever_comes_after() {
    let mut world = CoreWorld::new(policy("tests", ""));
    tell(
        &mut world,
        "prompt | edit | tests fail 1 | stop | stop | stop | edit | tests missing_program | stop",
    );
    let made = world.decisions().last().unwrap();
    assert!(
        made.why.contains(&DecisionFactor::AlreadyEnded),
        "{:?}",
        made.why
    );
    assert_eq!(world.ending().as_deref(), Some("gave_up/same_failures"));
}
