//! Each setting of the document: what is asked, and what follows.

use checkrein::supervisor::{Basis, Unjudged, VerifierNetwork};
use checkrein::{UnitFraction, VerifierConfig, VerifierVerdict};

use super::{network, nth, standard, verdict};
use crate::scripted::{Scripted, allow, now, score, veto};

#[test]
fn s004_config_veto_enabled() {
    let model = Scripted::says(&veto("0.9", "no"));
    let config = VerifierConfig {
        veto_enabled: false,
        ..VerifierConfig::default()
    };
    let off = network(&model, config);
    let decision = now(off.check_tool("slack_send", &nth(0), &[]));
    assert_eq!(decision.basis, Basis::Unjudged(Unjudged::Disabled));
    assert!(decision.runs());
    assert_eq!(model.times(), 0);
    assert_eq!(verdict(&standard(&model), &nth(0)), VerifierVerdict::Veto);
    assert_eq!(model.times(), 1);
}

#[test]
fn s004_config_veto_min_confidence() {
    let model = Scripted::one_by_one([veto("0.599", "no"), veto("0.6", "no"), veto("0.8", "no")]);
    let default = standard(&model);
    let unsure = now(default.check_tool("slack_send", &nth(0), &[]));
    assert_eq!(unsure.verdict, VerifierVerdict::Allow);
    assert_eq!(unsure.basis, Basis::TooUnsure(VerifierVerdict::Veto));
    assert_eq!(verdict(&default, &nth(1)), VerifierVerdict::Veto);
    let strict = VerifierConfig {
        veto_min_confidence: UnitFraction::share_from_thousandths(900),
        ..VerifierConfig::default()
    };
    assert_eq!(
        verdict(&network(&model, strict), &nth(2)),
        VerifierVerdict::Allow
    );
    assert_eq!(default.stats().pretool_too_unsure, 1);
}

#[test]
fn s004_config_progress_enabled() {
    let model = Scripted::says(&score("0.1", None));
    let config = VerifierConfig {
        progress_enabled: false,
        ..VerifierConfig::default()
    };
    let off = network(&model, config);
    for _ in 0..5 {
        let check = now(off.evaluate_step("read", &[]));
        assert_eq!(check.unjudged, Some(Unjudged::Disabled));
        assert_eq!(off.maybe_nudge(&check), None);
    }
    assert_eq!(model.times(), 0);
}

#[test]
fn s004_config_progress_threshold() {
    let model =
        Scripted::one_by_one([score("0.399", None), score("0.4", None), score("0.5", None)]);
    let default = standard(&model);
    now(default.evaluate_step("read", &[]));
    assert_eq!(default.progress().streak_below(), 1);
    now(default.evaluate_step("read", &[]));
    assert_eq!(default.progress().streak_below(), 0, "0.4 is not below 0.4");
    let strict = VerifierConfig {
        progress_threshold: UnitFraction::share_from_thousandths(501),
        ..VerifierConfig::default()
    };
    let strict = network(&model, strict);
    now(strict.evaluate_step("read", &[]));
    assert_eq!(strict.progress().streak_below(), 1);
}

#[test]
fn s004_config_progress_window() {
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
fn s004_config_max_pretool_calls_per_run() {
    let model = Scripted::says(&allow());
    let default = standard(&model);
    for number in 0..60 {
        let decision = now(default.check_tool("slack_send", &nth(number), &[]));
        if number < 50 {
            assert_eq!(decision.verdict, VerifierVerdict::Allow);
        } else {
            assert_eq!(
                decision.basis,
                Basis::Unjudged(Unjudged::CapSpent { cap: 50 })
            );
            assert!(decision.reason.contains("cap of 50"), "{}", decision.reason);
        }
    }
    assert_eq!(model.times(), 50);
    let stats = default.stats();
    assert_eq!((stats.pretool_calls, stats.pretool_allow), (60, 50));
    assert_eq!((stats.pretool_unjudged, stats.pretool_cap_spent), (10, 10));
}

#[test]
fn s004_config_max_progress_calls_per_run() {
    let model = Scripted::says(&score("0.9", None));
    let default = standard(&model);
    let capped = (0..35)
        .filter(|_| {
            let check = now(default.evaluate_step("read", &[]));
            check.unjudged == Some(Unjudged::CapSpent { cap: 30 }) && check.score.is_none()
        })
        .count();
    assert_eq!((capped, model.times()), (5, 30));
    assert_eq!(default.stats().progress_unjudged, 5);
}

// What a lower and a higher setting does, on the same answers.

#[test]
fn s004_setting_veto_min_confidence() {
    for (least, vetoes) in [(300, 3), (600, 2), (900, 1)] {
        let model = Scripted::one_by_one([veto("0.4", "a"), veto("0.7", "b"), veto("0.95", "c")]);
        let config = VerifierConfig {
            veto_min_confidence: UnitFraction::share_from_thousandths(least),
            ..VerifierConfig::default()
        };
        let network = network(&model, config);
        let refused =
            (0..3).filter(|number| verdict(&network, &nth(*number)) == VerifierVerdict::Veto);
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
fn s004_setting_progress_threshold() {
    for (threshold, expected) in [(300, 0), (400, 3)] {
        let config = VerifierConfig {
            progress_threshold: UnitFraction::share_from_thousandths(threshold),
            ..VerifierConfig::default()
        };
        assert_eq!(nudges(config), expected, "{threshold}");
    }
}

#[test]
fn s004_setting_progress_window() {
    for (window, expected) in [(1, 9), (3, 3), (5, 1)] {
        let config = VerifierConfig {
            progress_window: window,
            ..VerifierConfig::default()
        };
        assert_eq!(nudges(config), expected, "{window}");
    }
}

#[test]
fn s004_setting_max_pretool_calls_per_run() {
    for (cap, asked) in [(5, 5), (50, 50), (80, 60)] {
        let model = Scripted::says(&veto("0.9", "no"));
        let config = VerifierConfig {
            max_pretool_calls_per_run: cap,
            ..VerifierConfig::default()
        };
        let network = network(&model, config);
        let refused =
            (0..60).filter(|number| verdict(&network, &nth(*number)) == VerifierVerdict::Veto);
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
