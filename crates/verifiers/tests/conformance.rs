//! What every kind of verifier owes: it comes back with the right verdict, whatever happens
//! to it, in time, within its bounds. Walks `VERIFIER_KINDS`; a new kind adds its samples.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![cfg(unix)]

mod world;

use std::time::{Duration, Instant};

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, MAX_FINDINGS, Verdict};
use checkrein_verifiers::judge::JudgeInput;
use checkrein_verifiers::{VERIFIER_KINDS, VerifierReport, find_verifier_kind};
use world::{VerifierFixture, scripted_model};

/// Definitions of one kind.
struct DefinitionSamples {
    pass: &'static str,
    fail: &'static str,
    /// Cannot tell, and no edit of the tree changes that.
    hopeless: &'static str,
    hangs: &'static str,
    /// Prints without end, or nonsense, or both; then ends well.
    absurd: &'static [&'static str],
    /// Cannot be run, which must be told before it is.
    malformed: &'static [&'static str],
}

/// A judge by this model.
macro_rules! judge {
    ($model:literal) => {
        concat!(
            r#"{"model": ""#,
            $model,
            r#"", "trigger": "always", "keywords": [], "heartbeat": false, "surfaces": ["main"], "min_score": 700}"#
        )
    };
}

/// Each of its definitions asks the next one three times: 3^30 questions.
const UNFOLDS: &str = include_str!("unfolds.json");

fn samples(kind: &str) -> DefinitionSamples {
    match kind {
        "command" => DefinitionSamples {
            pass: r#"{"run": "true"}"#,
            fail: r#"{"run": "false"}"#,
            hopeless: r#"{"run": "no-such-program-2"}"#,
            hangs: r#"{"run": "sleep 3620"}"#,
            absurd: &[
                r#"{"run": "head -c 3000000 /dev/urandom"}"#,
                r#"{"run": "head -c 50000000 /dev/zero"}"#,
                r#"{"run": "printf '\\033[31\\xff\\xfe\\n\\r\\r:::1:1::\\nFile \"\", line 9\\nerror: \\n--> :1:1'"}"#,
                r#"{"run": "i=0; while [ $i -lt 20000 ]; do echo \"test t$i ... FAILED\"; i=$((i+1)); done"}"#,
            ],
            malformed: &[
                "",
                "{}",
                "[]",
                "true",
                r#"{"run": ""}"#,
                r#"{"run": "true", "x": 1}"#,
            ],
        },
        "schema" => DefinitionSamples {
            pass: r#"{"schema": "s.json", "text": "{\"type\": \"object\"}", "target": "message"}"#,
            fail: r#"{"schema": "s.json", "text": "{\"required\": [\"a\"]}", "target": "message"}"#,
            hopeless: r#"{"schema": "s.json", "text": null, "target": "message"}"#,
            hangs: UNFOLDS,
            absurd: &[
                r#"{"schema": "s.json", "text": "false", "target": "message"}"#,
                r##"{"schema": "s.json", "text": "{\"not\": {\"$ref\": \"#\"}}", "target": "message"}"##,
                r#"{"schema": "s.json", "text": "{\"additionalProperties\": {\"pattern\": \"^(a+)+$\"}}", "target": "message"}"#,
                r#"{"schema": "s.json", "text": "{\"additionalProperties\": {\"pattern\": \"^((?=a)a+)+$\"}}", "target": "message"}"#,
                r#"{"schema": "s.json", "text": "{\"type\": \"object\"}", "target": "out/not-there.json"}"#,
            ],
            malformed: &[
                "",
                "{}",
                "[]",
                r#"{"schema": "", "text": "false", "target": "message"}"#,
                r#"{"schema": "s.json", "text": "false", "target": ""}"#,
                r#"{"schema": "s.json", "text": "false", "target": "../x.json"}"#,
                r#"{"schema": "s.json", "text": "false", "target": "message", "x": 1}"#,
                r#"{"schema": "s.json", "text": "{", "target": "message"}"#,
                r#"{"schema": "s.json", "text": "{}", "target": "message"}"#,
                r##"{"schema": "s.json", "text": "{\"$ref\": \"#\"}", "target": "message"}"##,
                r#"{"schema": "s.json", "text": "{\"type\": 1}", "target": "message"}"#,
                r#"{"schema": "s.json", "text": "{\"$ref\": \"http://localhost/x\"}", "target": "message"}"#,
            ],
        },
        "judge" => DefinitionSamples {
            pass: judge!("ollama/pass"),
            fail: judge!("ollama/fail"),
            // Nobody has a key for it here.
            hopeless: judge!("xai/grok-4"),
            hangs: judge!("ollama/hang"),
            absurd: &[
                judge!("ollama/prose"),
                judge!("ollama/bytes"),
                judge!("ollama/huge"),
                judge!("ollama/both"),
                judge!("ollama/gone"),
            ],
            malformed: &[
                "",
                "{}",
                "[]",
                "true",
                judge!("grok-4"),
                judge!("nobody/x"),
                r#"{"trigger": "sometimes", "keywords": [], "heartbeat": false, "surfaces": [], "min_score": 700}"#,
            ],
        },
        other => panic!("add samples of the kind '{other}'"),
    }
}

fn check(kind: &str, definition: &str, timeout_ms: u64) -> VerifierReport {
    let mut world = VerifierFixture::new();
    world.timeout_ms = timeout_ms;
    // For those that judge the final message.
    world.message = Some(format!("{{\"x\": \"{}b\"}}", "a".repeat(40)));
    let model = scripted_model();
    world.env = [("OLLAMA_HOST".into(), model.base_url().into())].into();
    if kind == "command" {
        world.env.extend(std::env::vars_os());
    }
    world.case = Some(JudgeInput {
        request: "Say x.".to_owned(),
        answer: "Done: x.".to_owned(),
        ..JudgeInput::default()
    });
    let started = Instant::now();
    let report = world.verify(kind, definition);
    let context = format!("{kind} {definition}: {report:?}");
    assert!(
        started.elapsed() < Duration::from_millis(timeout_ms + 20_000),
        "{context}"
    );
    assert!(report.excerpt.len() <= 16 * 1024, "{context}");
    assert!(report.findings.len() <= MAX_FINDINGS, "{context}");
    assert!(
        report.findings_total as usize >= report.findings.len(),
        "{context}"
    );
    assert_eq!(
        report.cause.is_some(),
        report.verdict == Verdict::Inconclusive,
        "{context}"
    );
    report
}

#[test]
fn every_kind() {
    for verifier in VERIFIER_KINDS {
        let kind = verifier.verifier_kind_name();
        assert_eq!(
            find_verifier_kind(kind).map(|found| found.verifier_kind_name()),
            Some(kind)
        );
        let samples = samples(kind);
        let DefinitionSamples {
            pass,
            fail,
            hopeless,
            hangs,
            absurd,
            malformed,
        } = samples;

        for definition in [pass, fail, hopeless, hangs].iter().chain(absurd) {
            verifier.validate_verifier_definition(definition).unwrap();
        }
        assert_eq!(check(kind, pass, 60_000).verdict, Verdict::Pass);
        assert_eq!(check(kind, fail, 60_000).verdict, Verdict::Fail);

        let report = check(kind, hopeless, 60_000);
        assert_eq!(
            (report.verdict, report.retryable),
            (Verdict::Inconclusive, CheckRetryability::No)
        );

        let report = check(kind, hangs, 100);
        assert_eq!(
            (report.verdict, report.cause),
            (Verdict::Inconclusive, Some(InconclusiveCause::Timeout))
        );

        for definition in absurd {
            let report = check(kind, definition, 60_000);
            assert_ne!(
                report.cause,
                Some(InconclusiveCause::Internal),
                "{definition}"
            );
        }
        for definition in malformed {
            assert!(
                verifier.validate_verifier_definition(definition).is_err(),
                "{definition}"
            );
            let report = check(kind, definition, 60_000);
            assert_eq!(
                (report.verdict, report.cause),
                (Verdict::Inconclusive, Some(InconclusiveCause::Internal))
            );
        }
    }
    assert!(find_verifier_kind("no-such-kind").is_none());
}

#[test]
fn kinds_are_told_apart() {
    let mut kinds: Vec<_> = VERIFIER_KINDS
        .iter()
        .map(|verifier| verifier.verifier_kind_name())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds.len(), VERIFIER_KINDS.len());
}
