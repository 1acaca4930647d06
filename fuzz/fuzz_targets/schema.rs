//! A schema and a document, as JSON or as Markdown, with a line `%%%` between them: refused when
//! the config is read, or judged within bounds; what is said of it is short, and the second
//! judgement is the first one.
#![no_main]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use checkrein_core::evidence::{InconclusiveCause, MAX_FINDINGS, Verdict};
use checkrein_core::policy::{Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_verifiers::{VerifierJob, VerifierReport, find_verifier_kind};
use libfuzzer_sys::fuzz_target;

fn judge(definition: &str, message: &str) -> VerifierReport {
    let spec = VerifierSpec {
        name: "report".into(),
        kind: "schema".to_owned(),
        tier: VerifierTier::Hard,
        subject: VerdictSubjectKind::Message,
        definition: definition.to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        timeout_ms: 60_000,
        retries: 0,
        advisory: false,
        stance: Stance::Block,
        judge: None,
    };
    let logs = std::env::temp_dir().join("checkrein-fuzz-logs");
    let job = VerifierJob {
        spec: &spec,
        root: Path::new("/nowhere"),
        message: Some(message),
        case: None,
        deadline: None,
        log_dir: &logs,
        cancelled: &AtomicBool::new(false),
        env: &BTreeMap::new(),
        model_env: &BTreeMap::new(),
        tool_versions_file: Path::new("/nowhere/tools.json"),
        exit_statuses: None,
        lock: None,
        redact: &|_| None,
    };
    let report = find_verifier_kind("schema")
        .expect("this build has it")
        .run_verifier_job(&job);
    if let Some(log) = &report.log {
        std::fs::remove_file(log).expect("a log that was kept is there");
    }
    report
}

fuzz_target!(|text: &str| {
    let Some((schema, document)) = text.split_once("\n%%%\n") else {
        return;
    };
    let definition = serde_json::json!({ "schema": "s.json", "text": schema, "target": "message" });
    let definition = definition.to_string();
    let usable = find_verifier_kind("schema")
        .expect("this build has it")
        .validate_verifier_definition(&definition)
        .is_ok();
    let report = judge(&definition, document);
    assert_eq!(
        usable,
        report.cause != Some(InconclusiveCause::Internal),
        "{report:?}"
    );
    assert_ne!(report.cause, Some(InconclusiveCause::Crash), "{report:?}");
    assert_eq!(report.findings.is_empty(), report.verdict != Verdict::Fail);
    assert!(report.findings.len() <= MAX_FINDINGS);
    assert!(report.findings_total as usize >= report.findings.len());
    assert!(report.excerpt.len() <= 16 * 1024);
    let lines = document.lines().count().max(1) as u32 + 1;
    for finding in &report.findings {
        assert!(finding.message.chars().count() <= 512, "{finding:?}");
        assert!(!finding.message.contains(['\n', '\r']), "{finding:?}");
        assert!(
            finding.line.is_none_or(|line| (1..=lines).contains(&line)),
            "{finding:?}"
        );
    }
    let again = judge(&definition, document);
    assert_eq!(
        (report.verdict, &report.findings),
        (again.verdict, &again.findings)
    );
});
