//! What runs of checks the runtime knows of, beside those that the session has seen.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::digest::{Digest, EightByteDigest};
use checkrein_core::effect::Effect;
use checkrein_core::evidence::{InconclusiveCause, MAX_RUN_AGE_MS, Verdict};
use checkrein_core::ids::ScopeId;
use checkrein_core::input::NewestCheckRun;
use checkrein_core::policy::{Policy, VerdictSubjectKind};
use checkrein_core::step::StateMachineStep;

use crate::world::{CoreWorld, ScriptedVerdict, policy};

/// A task in which something was changed. The runtime tells which runs are the newest.
fn changed(policy: Policy) -> CoreWorld {
    let mut world = CoreWorld::new(policy);
    world.runs = Some(Box::default());
    world.prompt();
    world.tree = Some(2);
    world
}

fn say(world: &mut CoreWorld, verifier: &str, saying: ScriptedVerdict) {
    world.sayings.insert(verifier.into(), saying);
}

/// What a main stop asks for; a check that is to run whatever is known is marked.
fn stop(world: &mut CoreWorld) -> String {
    let (effects, decision) = world.stop(&ScopeId::main_scope());
    let asked = effects.iter().map(|effect| match effect {
        Effect::RunVerifier {
            verifier,
            force_run: again,
            ..
        } => format!("{verifier}{}", if *again { "!" } else { "" }),
        Effect::ReadTree { .. } => "look".to_owned(),
    });
    let mut words: Vec<String> = asked.collect();
    words.push(match (decision, world.ending()) {
        (Decision::Stop(_), Some(ending)) => ending,
        (Decision::Stop(_), None) => "continue".to_owned(),
        (other, _) => format!("{other:?}"),
    });
    words.join(" ")
}

#[test]
fn what_fails_runs_once_more_before_the_task_is_given_up() {
    // Somebody mended what no digest names.
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    assert_eq!(stop(&mut world), "continue");
    say(&mut world, "tests", ScriptedVerdict::pass());
    assert_eq!(stop(&mut world), "tests! look task_complete");
    // Nobody did.
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    assert_eq!(stop(&mut world), "continue");
    assert_eq!(stop(&mut world), "tests! gave_up/same_failures");
    // The task is spent: nothing more is tried.
    assert_eq!(stop(&mut world), "gave_up/same_failures");
}

/// The run that was the one more found something else, which was mended since.
#[test]
fn what_ran_once_more_runs_again_when_the_task_would_be_given_up_for_what_it_found() {
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    assert_eq!(stop(&mut world), "continue");
    say(&mut world, "tests", ScriptedVerdict::fail(&[2]));
    assert_eq!(stop(&mut world), "tests! continue");
    assert_eq!(stop(&mut world), "continue");
    say(&mut world, "tests", ScriptedVerdict::pass());
    assert_eq!(stop(&mut world), "tests! look task_complete");
}

#[test]
fn the_limit_of_the_session_is_one_for_which_a_task_is_given_up() {
    let mut policy = policy("tests", "");
    policy.session_caps.continues = Some(1);
    let mut world = changed(policy);
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    say(&mut world, "tests", ScriptedVerdict::pass());
    assert_eq!(stop(&mut world), "tests! look task_complete");
}

#[test]
fn what_failed_at_this_very_stop_does_not_run_once_more() {
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    world.tree = Some(3);
    assert_eq!(stop(&mut world), "tests continue");
    world.tree = Some(4);
    assert_eq!(stop(&mut world), "tests gave_up/same_failures");
}

/// Nobody mends a message.
#[test]
fn what_judges_no_files_does_not_run_once_more() {
    let mut policy = policy("tests", "");
    policy.verifiers[0].subject = VerdictSubjectKind::Message;
    let mut world = changed(policy);
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    assert_eq!(stop(&mut world), "continue");
    assert_eq!(stop(&mut world), "gave_up/same_failures");
}

#[test]
fn only_what_fails_runs_once_more() {
    let mut world = changed(policy("tests lint", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests lint continue");
    assert_eq!(stop(&mut world), "continue");
    assert_eq!(stop(&mut world), "tests! gave_up/same_failures");
}

#[test]
fn where_the_last_run_is_cut_the_task_is_not_given_up() {
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    assert_eq!(stop(&mut world), "continue");
    let before = world.now;
    world.now += 1_000;
    say(
        &mut world,
        "tests",
        ScriptedVerdict::because(InconclusiveCause::ReplyDeadline),
    );
    assert_eq!(stop(&mut world), "tests! continue");
    let began = world.now;
    // It still runs.
    assert_eq!(stop(&mut world), "tests! continue");
    // Another session's run comes in between. It had begun before somebody could mend anything.
    let (verifier, run) = (
        "tests".into(),
        Some(Digest::hash_bytes(b"another process").to_eight_byte_digest()),
    );
    world.runs = Some(vec![NewestCheckRun { verifier, run }].into());
    world.other_run = Some(before);
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    let mut earlier = world.clone();
    assert_eq!(stop(&mut earlier), "tests tests! gave_up/same_failures");
    // Its owner has found it out since: what runs longer than its hook ends, too.
    world.other_run = Some(began);
    assert_eq!(stop(&mut world), "tests gave_up/same_failures");
}

/// What it found would be too old at its end already.
#[test]
fn a_long_run_is_believed_by_whoever_waits_for_its_end() {
    let ended = |stopped_after: u64| {
        let mut world = changed(policy("tests", ""));
        world.other_run = Some(world.now);
        world.duration_ms = 2 * MAX_RUN_AGE_MS;
        world.now += stopped_after;
        stop(&mut world)
    };
    assert_eq!(ended(MAX_RUN_AGE_MS + 1), "tests look task_complete");
    assert_eq!(
        ended(2 * MAX_RUN_AGE_MS + 59_000),
        "tests look task_complete"
    );
    assert_ne!(
        ended(2 * MAX_RUN_AGE_MS + 60_000),
        "tests look task_complete"
    );
}

#[test]
fn a_newer_run_takes_the_place_of_what_was_held() {
    let mut world = changed(policy("tests", ""));
    assert_eq!(stop(&mut world), "tests look task_complete");
    let newer = |run| {
        let verifier = "tests".into();
        Some(vec![NewestCheckRun { verifier, run }].into())
    };
    // A run that was kept elsewhere meanwhile, of which this session has not heard.
    world.runs = newer(Some(EightByteDigest(7)));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    // Where none is known, what is held stands.
    world.runs = newer(None);
    assert_eq!(stop(&mut world), "continue");
}

#[test]
fn a_run_that_came_before_the_last_look_is_asked_for() {
    let mut world = changed(policy("tests", ""));
    let main = ScopeId::main_scope();
    let runs = |made: &StateMachineStep| matches!(made.effects[..], [Effect::RunVerifier { .. }]);
    let looks = |made: &StateMachineStep| matches!(made.effects[..], [Effect::ReadTree { .. }]);
    let newer = |run| {
        let verifier = "tests".into();
        Some(vec![NewestCheckRun { verifier, run }].into())
    };
    assert!(runs(&world.ask_stop(&main)));
    assert!(looks(&world.answer(0)));
    // Another session's run failed meanwhile, on the same tree.
    world.runs = newer(Some(EightByteDigest(7)));
    assert!(runs(&world.answer(0)));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    world.other_run = Some(world.now);
    let made = world.answer(0);
    let Some(Decision::Stop(StopDecision::Continue { feedback, .. })) = made.decision else {
        panic!("{made:?}");
    };
    assert_eq!(feedback.checks[0].verdict, Verdict::Fail);
    // Others find something out again and again: that is no reason to ask for ever.
    let mut world = changed(policy("tests", ""));
    let mut made = world.ask_stop(&main);
    let mut asked = 0;
    while made.decision.is_none() {
        asked += usize::from(runs(&made));
        world.runs = newer(Some(EightByteDigest(100 + asked as u64)));
        made = world.answer(0);
    }
    assert_eq!(asked, 2);
}

/// What was found at an earlier stop did not come back for this one.
#[test]
fn where_the_tree_moved_it_is_read_and_the_old_one_is_not_asked_about_again() {
    let mut world = changed(policy("tests", ""));
    say(&mut world, "tests", ScriptedVerdict::fail(&[1]));
    assert_eq!(stop(&mut world), "tests continue");
    world.now += MAX_RUN_AGE_MS;
    let on_another = ScriptedVerdict {
        on: Some(3),
        ..ScriptedVerdict::pass()
    };
    say(&mut world, "tests", on_another);
    world.tree = Some(2);
    let made = world.ask_stop(&ScopeId::main_scope());
    assert!(matches!(made.effects[..], [Effect::RunVerifier { .. }]));
    world.tree = Some(3);
    let made = world.answer(0);
    assert!(
        matches!(made.effects[..], [Effect::ReadTree { .. }]),
        "{made:?}"
    );
}

#[test]
fn a_look_that_there_was_no_time_for_is_no_attempt() {
    let mut world = changed(policy("tests", ""));
    world.tree = None;
    world.cut = true;
    for _ in 0..7 {
        assert_eq!(stop(&mut world), "continue");
    }
    assert_eq!(stop(&mut world), "unverified/still_running");
    world.cut = false;
    let mut world = changed(policy("tests", ""));
    world.tree = None;
    assert_eq!(stop(&mut world), "continue");
    assert_eq!(stop(&mut world), "continue");
    assert_eq!(stop(&mut world), "gave_up/same_failures");
}
