//! Numbers that agents, providers and clocks report may be any: sums stop at the largest.

use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, VerifierName};
use checkrein_core::input::{
    EvidenceArrived, Input, ModelProgressRating, ModelToolCallOpinionFact, ModelToolCallVerdict,
    RoundEnded, TokenUsage, ToolKind, ToolRequestFacts, ToolRequested,
};
use proptest::prelude::*;

use crate::laws::replays;
use crate::world::{CoreWorld, policy, with};

/// Small ones, and those at the end.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..10_u64,
        Just(u64::MAX),
        any::<u64>(),
        (0..10_u64).prop_map(|less| u64::MAX - less)
    ]
}

fn used(output: u64, cost: u64) -> Option<TokenUsage> {
    Some(TokenUsage {
        output,
        input: u64::MAX,
        cost: Some(cost),
        cursor: "c".to_owned(),
    })
}

/// A call about which a second model was asked, and a third whether it gets anywhere.
fn request(tokens: Option<TokenUsage>, asked: u64) -> Input {
    let veto = ModelToolCallOpinionFact {
        says: ModelToolCallVerdict::Allow,
        reason: String::new(),
        confidence: None,
        arguments: None,
        asked: true,
        tokens: asked,
    };
    let progress = ModelProgressRating {
        score: Some(900),
        low: false,
        reason: String::new(),
        suggestion: None,
        asked: true,
        tokens: asked,
    };
    Input::ToolRequested(ToolRequested {
        scope: ScopeId::main_scope(),
        call_id: None,
        tool: "read".to_owned(),
        kind: ToolKind::Other,
        args: "{}".to_owned(),
        call: Digest::hash_bytes(&asked.to_le_bytes()).to_eight_byte_digest(),
        facts: ToolRequestFacts {
            veto: Some(Box::new(veto)),
            progress: Some(Box::new(progress)),
            ..ToolRequestFacts::default()
        },
        can_ask: false,
        may_act: false,
        waits: false,
        reports_outcome: false,
        openclaw: None,
        tokens,
    })
}

proptest! {
    #[test]
    fn sums_of_what_is_reported_stop_at_the_largest(
        reports in proptest::collection::vec((number(), number(), number(), number()), 1..6)
    ) {
        let mut world = CoreWorld::new(with(policy("tests", ""), |policy| {
            policy.caps.token_budget = None;
            policy.caps.wall_clock_ms = None;
        }));
        world.prompt();
        let mut largest = (0, 0);
        for (at, output, asked, cost) in reports {
            world.now = at;
            world.news(request(used(output, cost), asked));
            world.news(Input::RoundEnded(RoundEnded {
                scope: ScopeId::main_scope(),
                tokens: used(output, cost),
            }));
            let mut evidence = world.evidence(&VerifierName::from("tests"), Digest::hash_bytes(b"any"));
            evidence.duration_ms = at;
            world.news(Input::EvidenceArrived(EvidenceArrived {
                scope: ScopeId::main_scope(),
                held_up: None,
                began: None,
                asked: None,
                tokens: asked,
                cost,
                evidence,
            }));
            world.stop.tokens = used(output, cost);
            world.stop(&ScopeId::main_scope());
            let totals = &world.state.totals;
            let sums = (totals.spent_tokens().unwrap(), totals.spent_cost().unwrap());
            prop_assert!(sums.0 >= largest.0.max(output).max(asked) && sums.1 >= largest.1.max(cost));
            largest = sums;
        }
        replays(&world);
    }
}
