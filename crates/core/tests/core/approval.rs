//! Approvals: the table of `docs/approvals.md`, cell by cell, and what comes of a person's
//! answer, of none, and of none in time.

use checkrein_core::approval::{ApprovalHandling, approval_handling_of_request};
use checkrein_core::decision::{Decision, ToolDecision};
use checkrein_core::explain::DecisionFactor;
use checkrein_core::ids::{ScopeId, UnixMillis};
use checkrein_core::input::{ApprovalStatusFact, Input, PersonAnswer, PersonAnswered, ToolKind};
use checkrein_core::policy::{ApprovalMode, Stance};

use crate::story::{check, tell};
use crate::world::{CoreWorld, RuleDecision, policy, stance, with};

const MODES: [ApprovalMode; 4] = [
    ApprovalMode::OnRequest,
    ApprovalMode::Never,
    ApprovalMode::Always,
    ApprovalMode::Both,
];

fn fact(answer: Option<bool>) -> Option<ApprovalStatusFact> {
    Some(ApprovalStatusFact {
        id: "ap-1".to_owned(),
        until: UnixMillis(1_000_000 + 60_000),
        answer: answer.map(|approved| PersonAnswer {
            approved,
            by: "ada: a person".to_owned(),
            reason: Some("because".to_owned()),
        }),
    })
}

fn world(mode: ApprovalMode, can_ask: bool) -> CoreWorld {
    let mut world = CoreWorld::new(with(policy("", "-"), |policy| policy.approval = mode));
    world.can_ask = can_ask;
    tell(&mut world, "prompt | edit");
    world
}

/// One word for a decision about a shell command, as an agent gets it.
fn answer(mode: ApprovalMode, rule: RuleDecision, can_ask: bool) -> &'static str {
    let mut world = world(mode, can_ask);
    world.approval = fact(None);
    let made = world.tool(&ScopeId::main_scope(), "run x", None, Some(rule), None);
    match made.decision {
        Some(Decision::Tool(ToolDecision::Allow)) => "allow",
        Some(Decision::Tool(ToolDecision::Ask { until: None, .. })) => "ask",
        Some(Decision::Tool(ToolDecision::Ask { until: Some(_), .. })) => "park",
        Some(Decision::Tool(ToolDecision::Deny { reason })) => {
            match reason.contains("the policy asks nobody") {
                true => "refuse",
                false => "deny",
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_table_cell_by_cell() {
    let rules = [
        RuleDecision::Allow,
        RuleDecision::Prompt,
        RuleDecision::Forbidden,
    ];
    let table = MODES.map(|mode| {
        rules.map(|rule| [answer(mode, rule, true), answer(mode, rule, false)].join(" "))
    });
    assert_eq!(
        table,
        [
            // on-request:   allow         prompt           forbidden
            ["allow allow", "ask park", "deny deny"],
            // never:
            ["allow allow", "refuse refuse", "deny deny"],
            // always:
            ["ask park", "ask park", "deny deny"],
            // never here, always there:
            ["ask park", "refuse refuse", "deny deny"],
        ]
    );
}

#[test]
fn the_stricter_of_two_modes_is_no_weaker_than_either() {
    let [on_request, never, always, both] = MODES;
    for mode in MODES {
        assert_eq!(mode.stricter_of_two(mode), mode);
        assert_eq!(mode.stricter_of_two(on_request), mode);
        assert_eq!(on_request.stricter_of_two(mode), mode);
        assert_eq!(mode.stricter_of_two(both), both);
    }
    assert_eq!(never.stricter_of_two(always), both);
    assert_eq!(always.stricter_of_two(never), both);
}

#[test]
fn always_is_about_what_acts() {
    let way = |name: &str, rule: Option<RuleDecision>| {
        let mut world = world(ApprovalMode::Always, false);
        world.tool(&ScopeId::main_scope(), name, None, rule, None);
        let Some((stamped, _)) = world.steps.last() else {
            panic!("no step");
        };
        let Input::ToolRequested(request) = &stamped.input else {
            panic!("{stamped:?}");
        };
        (
            request.kind,
            approval_handling_of_request(ApprovalMode::Always, request, &[]),
        )
    };
    assert_eq!(
        way("run x", None),
        (ToolKind::Shell, ApprovalHandling::Park)
    );
    assert_eq!(
        way("write x", None),
        (ToolKind::Write, ApprovalHandling::Park)
    );
    assert_eq!(
        way("poll x", None),
        (ToolKind::Poll, ApprovalHandling::NotRequired)
    );
    assert_eq!(
        way("read x", None),
        (ToolKind::Other, ApprovalHandling::NotRequired)
    );
    assert_eq!(way("do x", None), (ToolKind::Other, ApprovalHandling::Park));
    assert_eq!(
        way("read x", Some(RuleDecision::Prompt)),
        (ToolKind::Other, ApprovalHandling::Park)
    );
}

#[test]
fn law_11_an_approval_is_for_what_would_be_asked_and_for_nothing_else() {
    for mode in MODES {
        for can_ask in [true, false] {
            let mut world = world(mode, can_ask);
            world.approval = fact(Some(true));
            let rule = Some(RuleDecision::Forbidden);
            let made = world.tool(&ScopeId::main_scope(), "run x", None, rule, None);
            let decision = made.decision.unwrap();
            assert!(
                matches!(decision, Decision::Tool(ToolDecision::Deny { .. })),
                "{mode:?} {can_ask}: {decision:?}"
            );
        }
    }
    // Nor does it lift what a detector says.
    let mut world = world(ApprovalMode::OnRequest, false);
    world.approval = fact(Some(true));
    let main = ScopeId::main_scope();
    let rule = Some(RuleDecision::Prompt);
    let mut words = Vec::new();
    for _ in 0..21 {
        let made = world.tool(&main, "run x", Some(1), rule, None);
        words.push(crate::story::describe(&[], &made.decision.unwrap()));
    }
    assert_eq!(words.first().map(String::as_str), Some("allow"));
    assert_eq!(words.last().map(String::as_str), Some("deny"));
}

#[test]
fn what_lets_it_run_is_told() {
    let mut world = world(ApprovalMode::OnRequest, false);
    world.approval = fact(Some(true));
    world.tool(
        &ScopeId::main_scope(),
        "run x",
        None,
        Some(RuleDecision::Prompt),
        None,
    );
    let why = &world.decisions().last().unwrap().why;
    let approved = DecisionFactor::Approved {
        approval: "ap-1".to_owned(),
        by: "ada: a person".to_owned(),
        reason: Some("because".to_owned()),
    };
    assert!(why.contains(&approved), "{why:?}");
}

#[test]
fn denial_expiry_absence_and_a_policy_that_asks_nobody_end_differently() {
    let ending = |mode: ApprovalMode, answer: Option<bool>, wait: u64| {
        let mut world = world(mode, false);
        world.approval = fact(answer);
        let rule = Some(RuleDecision::Prompt);
        world.tool(&ScopeId::main_scope(), "run x", None, rule, None);
        world.now += wait;
        tell(&mut world, "stop")
    };
    let on_request = ApprovalMode::OnRequest;
    assert_eq!(ending(on_request, None, 1_000), "awaiting_human/parked");
    assert_eq!(ending(on_request, None, 60_000), "awaiting_human/expired");
    assert_eq!(ending(on_request, Some(true), 0), "unverified/no_checks");
    // Whether a refusal matters is asked only where the work cannot be accepted.
    let failing = |mode: ApprovalMode, answer: Option<bool>| {
        let mut world = CoreWorld::new(with(policy("tests", ""), |policy| policy.approval = mode));
        world.approval = fact(answer);
        tell(&mut world, "prompt | edit | tests fail 1");
        let rule = Some(RuleDecision::Prompt);
        world.tool(&ScopeId::main_scope(), "run x", None, rule, None);
        tell(&mut world, "stop")
    };
    assert_eq!(
        failing(on_request, Some(false)),
        "tests permission_denied/denied"
    );
    assert_eq!(
        failing(ApprovalMode::Never, None),
        "tests permission_denied/nobody_asked"
    );
}

#[test]
fn a_person_is_asked_last_and_about_exactly_this_tree() {
    check(
        policy("tests review@", ""),
        "tests fail 1 | review unanswered | prompt | edit | stop
         | tests pass | edit | stop
         | review pass | stop | edit | stop",
        "tests continue tests:1+0-0
         | tests review look awaiting_human/review
         | review look task_complete | tests review look task_complete",
    );
}

#[test]
fn a_person_who_says_no_and_one_who_says_nothing() {
    check(
        policy("tests review@", ""),
        "review fail 1 | prompt | edit | stop",
        "tests review permission_denied/review",
    );
    // Not answered in time: the stance, and no attempt is wasted on what the agent cannot mend.
    let expired = "review expired | prompt | edit | stop";
    for (of, ending) in [
        (
            Stance::Block,
            "tests review verifier_failed_unrecoverable/review",
        ),
        (Stance::Allow, "tests review look unverified/passed_over"),
        (Stance::Ask, "tests review look awaiting_human/stance"),
    ] {
        check(stance(policy("tests review@", ""), of), expired, ending);
    }
    // While they can answer, no stance stands in.
    check(
        stance(policy("tests review@", ""), Stance::Allow),
        "review unanswered | prompt | edit | stop",
        "tests review look awaiting_human/review",
    );
}

#[test]
fn what_comes_of_the_person_replaces_the_waiting() {
    check(
        policy("tests review@", ""),
        "review unanswered | prompt | edit | stop | review fail 1 | stop | review pass | stop",
        "tests review look awaiting_human/review | review permission_denied/review
         | review look task_complete",
    );
    check(
        policy("tests review@", ""),
        "review unanswered | prompt | edit | stop | review expired | stop | tests fail 1 | edit | stop",
        "tests review look awaiting_human/review
         | review verifier_failed_unrecoverable/review
         | tests verifier_failed_unrecoverable/review",
    );
}

#[test]
fn nobody_is_asked_whose_answer_cannot_matter() {
    check(
        policy("tests review@", "tests or review"),
        "prompt | edit | stop | tests fail 1 | review unanswered | edit | stop | review pass | stop",
        "tests look task_complete | tests review look awaiting_human/review
         | review look task_complete",
    );
    // A no leaves another way to be accepted.
    check(
        policy("tests review@", "tests or review"),
        "tests fail 1 | review fail 2 | prompt | edit | stop",
        "tests review continue tests:1+0-0 review:1+0-0",
    );
    check(
        policy("review@", ""),
        "review pass | prompt | edit | stop",
        "review look task_complete",
    );
}

#[test]
fn an_answer_ends_the_waiting_also_where_nobody_asks_again() {
    let ending = |approved: bool, approval: &str| {
        let mut world = CoreWorld::new(policy("tests", ""));
        world.approval = fact(None);
        tell(&mut world, "prompt | edit | tests fail 1");
        let rule = Some(RuleDecision::Prompt);
        world.tool(&ScopeId::main_scope(), "run x", None, rule, None);
        world.news(Input::PersonAnswered(PersonAnswered {
            approval: approval.to_owned(),
            what: "run x".to_owned(),
            ends: None,
            until: UnixMillis(2_000_000),
            answer: PersonAnswer {
                approved,
                by: "ada: a person".to_owned(),
                reason: None,
            },
        }));
        let ending = tell(&mut world, "stop");
        crate::laws::replays(&world);
        ending
    };
    assert_eq!(ending(false, "ap-1"), "tests permission_denied/denied");
    assert_eq!(ending(true, "ap-1"), "tests continue tests:1+0-0");
    assert_eq!(ending(false, "ap-2"), "tests awaiting_human/parked");
}

fn said(approved: bool, approval: &str, ends: &str) -> Input {
    Input::PersonAnswered(PersonAnswered {
        approval: approval.to_owned(),
        what: "run x".to_owned(),
        ends: Some(ends.to_owned()),
        until: UnixMillis(2_000_000),
        answer: PersonAnswer {
            approved,
            by: "ada: a person".to_owned(),
            reason: None,
        },
    })
}

#[test]
fn a_stop_after_the_answer_is_judged_as_any_other() {
    let ending = |news: Input| {
        let mut world = CoreWorld::new(policy("tests", ""));
        world.approval = fact(None);
        tell(&mut world, "prompt | edit");
        let rule = Some(RuleDecision::Prompt);
        world.tool(&ScopeId::main_scope(), "run x", None, rule, None);
        let parked = tell(&mut world, "stop");
        assert_eq!(parked, "tests look awaiting_human/parked");
        world.news(news);
        let ending = tell(&mut world, "tests fail 1 | edit | stop");
        crate::laws::replays(&world);
        ending
    };
    let yes = |approval: &str| said(true, approval, "parked");
    assert_eq!(ending(yes("ap-1")), "tests continue tests:1+0-0");
    assert_eq!(ending(yes("ap-2")), "tests awaiting_human/parked");
    let no = said(false, "ap-1", "parked");
    assert_eq!(ending(no), "tests permission_denied/denied");

    let reviewed = |verifier: &str| {
        let mut world = CoreWorld::new(policy("tests review@", ""));
        let waits = tell(&mut world, "review unanswered | prompt | edit | stop");
        assert_eq!(waits, "tests review look awaiting_human/review");
        world.news(said(true, "ap-1", verifier));
        tell(&mut world, "tests fail 1 | edit | stop")
    };
    assert_eq!(reviewed("review"), "tests continue tests:1+0-0");
    assert_eq!(reviewed("another"), "tests awaiting_human/review");
}

#[test]
fn what_a_person_said_yes_to_is_accepted_at_the_next_prompt() {
    check(
        policy("tests review@", ""),
        "review unanswered | prompt | edit | stop | review pass | prompt | stop",
        "tests review look awaiting_human/review | tests review look task_complete",
    );
    // Where nobody has to look, a question runs nothing.
    check(
        policy("tests review@", "tests"),
        "prompt | edit | stop | prompt | stop",
        "tests look task_complete | unverified/no_change",
    );
}
