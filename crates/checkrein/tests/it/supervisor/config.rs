//! Each setting of the document: what is asked, and what follows.

use checkrein::supervisor::{ToolCallVerdictBasis, UnjudgedReason, VerifierNetwork};
use checkrein::{ToolCallVerdict, UnitFraction, VerifierConfig};

use super::{network, nth, standard, verdict};
use crate::scripted::{Scripted, allow, now, score, veto};

#[test]
fn veto_enabled_false_asks_nothing() {
    let model = Scripted::says(&veto("0.9", "no"));
    let config = VerifierConfig {
        veto_enabled: false,
        ..VerifierConfig::default()
    };
    let off = network(&model, config);
    let decision = now(off.check_tool_call("slack_send", &nth(0), &[]));
    assert_eq!(
        decision.basis,
        ToolCallVerdictBasis::Unjudged(UnjudgedReason::Disabled)
    );
    assert!(decision.allows_tool_call());
    assert_eq!(model.times(), 0);
    assert_eq!(verdict(&standard(&model), &nth(0)), ToolCallVerdict::Veto);
    assert_eq!(model.times(), 1);
}

#[test]
fn a_veto_below_min_confidence_allows() {
    let model = Scripted::one_by_one([veto("0.599", "no"), veto("0.6", "no"), veto("0.8", "no")]);
    let default = standard(&model);
    let unsure = now(default.check_tool_call("slack_send", &nth(0), &[]));
    assert_eq!(unsure.verdict, ToolCallVerdict::Allow);
    assert_eq!(
        unsure.basis,
        ToolCallVerdictBasis::TooUnsure(ToolCallVerdict::Veto)
    );
    assert_eq!(verdict(&default, &nth(1)), ToolCallVerdict::Veto);
    let strict = VerifierConfig {
        veto_min_confidence: UnitFraction::share_from_thousandths(900),
        ..VerifierConfig::default()
    };
    assert_eq!(
        verdict(&network(&model, strict), &nth(2)),
        ToolCallVerdict::Allow
    );
    assert_eq!(default.veto_and_progress_stats().pretool_too_unsure, 1);
}

#[test]
fn progress_enabled_false_asks_nothing() {
    let model = Scripted::says(&score("0.1", None));
    let config = VerifierConfig {
        progress_enabled: false,
        ..VerifierConfig::default()
    };
    let off = network(&model, config);
    for _ in 0..5 {
        let check = now(off.evaluate_step("read", &[]));
        assert_eq!(check.unjudged, Some(UnjudgedReason::Disabled));
        assert_eq!(off.maybe_nudge(&check), None);
    }
    assert_eq!(model.times(), 0);
}

#[test]
fn scores_below_the_threshold_lengthen_the_streak() {
    let model =
        Scripted::one_by_one([score("0.399", None), score("0.4", None), score("0.5", None)]);
    let default = standard(&model);
    now(default.evaluate_step("read", &[]));
    assert_eq!(default.progress().low_score_streak(), 1);
    now(default.evaluate_step("read", &[]));
    assert_eq!(
        default.progress().low_score_streak(),
        0,
        "0.4 is not below 0.4"
    );
    let strict = VerifierConfig {
        progress_threshold: UnitFraction::share_from_thousandths(501),
        ..VerifierConfig::default()
    };
    let strict = network(&model, strict);
    now(strict.evaluate_step("read", &[]));
    assert_eq!(strict.progress().low_score_streak(), 1);
}

#[test]
fn a_nudge_follows_each_full_window() {
    let model = Scripted::says(&score("0.1", None));
    for (window, expected) in [(None, 3), (Some(1), 1), (Some(5), 5)] {
        let default = VerifierConfig::default();
        let config = VerifierConfig {
            progress_window: window.unwrap_or(default.progress_window),
            ..default
        };
        let network = network(&model, config);
        let nudged: Vec<bool> = (0..2 * expected)
            .map(|_| {
                let check = now(network.evaluate_step("read", &[]));
                network.maybe_nudge(&check).is_some()
            })
            .collect();
        let wanted: Vec<bool> = (1..=2 * expected)
            .map(|step| step % expected == 0)
            .collect();
        assert_eq!(nudged, wanted, "window {expected}");
    }
}

#[test]
fn calls_over_the_cap_are_unjudged() {
    let model = Scripted::says(&allow());
    let default = standard(&model);
    for number in 0..60 {
        let decision = now(default.check_tool_call("slack_send", &nth(number), &[]));
        if number < 50 {
            assert_eq!(decision.verdict, ToolCallVerdict::Allow);
        } else {
            assert_eq!(
                decision.basis,
                ToolCallVerdictBasis::Unjudged(UnjudgedReason::CapSpent { cap: 50 })
            );
            assert!(decision.reason.contains("cap of 50"), "{}", decision.reason);
        }
    }
    assert_eq!(model.times(), 50);
    let stats = default.veto_and_progress_stats();
    assert_eq!((stats.pretool_calls, stats.pretool_allow), (60, 50));
    assert_eq!((stats.pretool_unjudged, stats.pretool_cap_spent), (10, 10));
}

#[test]
fn steps_over_the_cap_are_unjudged() {
    let model = Scripted::says(&score("0.9", None));
    let default = standard(&model);
    let capped = (0..35)
        .filter(|_| {
            let check = now(default.evaluate_step("read", &[]));
            check.unjudged == Some(UnjudgedReason::CapSpent { cap: 30 }) && check.score.is_none()
        })
        .count();
    assert_eq!((capped, model.times()), (5, 30));
    assert_eq!(default.veto_and_progress_stats().progress_unjudged, 5);
}

// What a lower and a higher setting does, on the same answers.

#[test]
fn a_lower_min_confidence_vetoes_more() {
    for (least, vetoes) in [(300, 3), (600, 2), (900, 1)] {
        let model = Scripted::one_by_one([veto("0.4", "a"), veto("0.7", "b"), veto("0.95", "c")]);
        let config = VerifierConfig {
            veto_min_confidence: UnitFraction::share_from_thousandths(least),
            ..VerifierConfig::default()
        };
        let network = network(&model, config);
        let refused =
            (0..3).filter(|number| verdict(&network, &nth(*number)) == ToolCallVerdict::Veto);
        assert_eq!(refused.count(), vetoes, "{least}");
        assert_eq!(model.times(), 3);
    }
}

/// How many nudges nine slow steps get.
fn nudges(config: VerifierConfig) -> usize {
    let model = Scripted::says(&score("0.35", None));
    let network = network(&model, config);
    let nudged = (0..9).filter(|_| {
        let check = now(network.evaluate_step("read", &[]));
        network.maybe_nudge(&check).is_some()
    });
    let nudged = nudged.count();
    assert_eq!(model.times(), 9);
    nudged
}

#[test]
fn a_higher_threshold_nudges_more() {
    for (threshold, expected) in [(300, 0), (400, 3)] {
        let config = VerifierConfig {
            progress_threshold: UnitFraction::share_from_thousandths(threshold),
            ..VerifierConfig::default()
        };
        assert_eq!(nudges(config), expected, "{threshold}");
    }
}

#[test]
fn a_shorter_window_nudges_more() {
    for (window, expected) in [(1, 9), (3, 3), (5, 1)] {
        let config = VerifierConfig {
            progress_window: window,
            ..VerifierConfig::default()
        };
        assert_eq!(nudges(config), expected, "{window}");
    }
}

#[test]
fn a_higher_cap_asks_more() {
    for (cap, asked) in [(5, 5), (50, 50), (80, 60)] {
        let model = Scripted::says(&veto("0.9", "no"));
        let config = VerifierConfig {
            max_pretool_calls_per_run: cap,
            ..VerifierConfig::default()
        };
        let network = network(&model, config);
        let refused =
            (0..60).filter(|number| verdict(&network, &nth(*number)) == ToolCallVerdict::Veto);
        assert_eq!(refused.count(), asked, "what is not asked about runs");
        assert_eq!(model.times(), asked, "{cap}");
    }
}

#[test]
fn a_setting_with_which_nothing_would_happen_is_an_error() {
    let default = VerifierConfig::default();
    for (config, said) in [
        (
            VerifierConfig {
                max_pretool_calls_per_run: 0,
                ..default
            },
            "'veto_enabled: false'",
        ),
        (
            VerifierConfig {
                max_progress_calls_per_run: 0,
                ..default
            },
            "'progress_enabled: false'",
        ),
        (
            VerifierConfig {
                progress_window: 0,
                ..default
            },
            "'progress_window' is 0",
        ),
        (
            VerifierConfig {
                progress_threshold: UnitFraction::ZERO,
                ..default
            },
            "no score is below it",
        ),
    ] {
        let error = VerifierNetwork::new(Scripted::says(""), config, "")
            .err()
            .unwrap();
        assert!(error.to_string().contains(said), "{error}");
    }
}
