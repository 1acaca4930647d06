//! Each half without the other.

use checkrein::{
    PreToolVerifier, ProgressVerifier, Tool, ToolOutcome, VerifierConfig, wrap_tool_with_verifier,
};
use serde_json::json;

use crate::scripted::{Scripted, Sender, now, score, veto, with};

#[test]
fn the_veto_works_without_a_network() {
    let model = Scripted::says(&veto("0.9", "that is not a tmp file"));
    let verifier = PreToolVerifier::new(model.clone(), VerifierConfig::default()).unwrap();
    let safe = wrap_tool_with_verifier(Sender::named("rm"), &verifier, "cleanup tmp files");
    let output = now(safe.run(with(&json!({"text": "/etc"}))));
    assert_eq!(output.outcome, ToolOutcome::Vetoed);
    assert_eq!(model.shown()["goal"], "cleanup tmp files");
    assert_eq!(model.shown()["takes"], "channel?, query?, text?");
    assert_eq!(verifier.stats().pretool_veto, 1);
    // Its schema is asked before the model.
    let output = now(safe.run(with(&json!({"path": 7}))));
    assert!(
        output.text.contains("do not fit the schema of 'rm'"),
        "{}",
        output.text
    );
    assert_eq!(model.times(), 1);
}

#[test]
fn progress_works_without_a_network() {
    let model = Scripted::says(&score("0.1", Some("ask for help")));
    let progress = ProgressVerifier::new(model.clone(), VerifierConfig::default()).unwrap();
    let mut nudges = 0;
    for step in 0..7 {
        let summary = format!("step {step}");
        let check = now(progress.evaluate("Refactor the auth module", &summary, &[]));
        nudges += usize::from(progress.maybe_nudge(&check).is_some());
    }
    assert_eq!((nudges, model.times()), (2, 7));
    assert_eq!(model.shown()["goal"], "Refactor the auth module");
    progress.reset();
    assert_eq!(
        (progress.low_score_streak(), progress.stats().progress_calls),
        (0, 0)
    );
}
