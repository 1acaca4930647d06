//! A tree in a temporary folder, and jobs in it.
#![allow(dead_code, reason = "each test binary uses its part of it")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use checkrein_core::evidence::{CheckRetryability, InconclusiveCause, Verdict};
use checkrein_core::policy::{Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_scripted::{ScriptedReviewer, reviewer};
use checkrein_verifiers::judge::JudgeInput;
use checkrein_verifiers::{VerifierJob, VerifierReport, find_verifier_kind};

pub(crate) struct VerifierFixture {
    folder: tempfile::TempDir,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) timeout_ms: u64,
    pub(crate) deadline: Option<Instant>,
    pub(crate) cancelled: AtomicBool,
    pub(crate) message: Option<String>,
    pub(crate) case: Option<JudgeInput>,
}

impl VerifierFixture {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        Self {
            folder,
            env: std::env::vars_os().collect(),
            timeout_ms: 60_000,
            deadline: None,
            cancelled: AtomicBool::new(false),
            message: None,
            case: None,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    pub(crate) fn outside(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs `text` as a command verifier.
    pub(crate) fn run(&self, text: &str) -> VerifierReport {
        self.verify("command", &serde_json::json!({ "run": text }).to_string())
    }

    pub(crate) fn verify(&self, kind: &str, definition: &str) -> VerifierReport {
        let spec = VerifierSpec {
            name: "tests".into(),
            kind: kind.to_owned(),
            tier: VerifierTier::Hard,
            subject: VerdictSubjectKind::Tree,
            definition: definition.to_owned(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            timeout_ms: self.timeout_ms,
            retries: 0,
            advisory: false,
            stance: Stance::Block,
            judge: None,
        };
        let job = VerifierJob {
            spec: &spec,
            root: &self.root(),
            message: self.message.as_deref(),
            case: self.case.as_ref(),
            deadline: self.deadline,
            log_dir: &self.path(".checkrein/logs"),
            cancelled: &self.cancelled,
            env: &self.env,
            model_env: &self.env,
            tool_versions_file: &self.outside().join("tools.json"),
            exit_statuses: None,
            lock: None,
            redact: &|_| None,
        };
        find_verifier_kind(kind).unwrap().run_verifier_job(&job)
    }
}

/// What decides in a report.
pub(crate) fn verdict(
    report: &VerifierReport,
) -> (
    Verdict,
    Option<InconclusiveCause>,
    Option<i32>,
    CheckRetryability,
) {
    (
        report.verdict,
        report.cause,
        report.exit_code,
        report.retryable,
    )
}

/// A model on loopback that answers as its own name says.
pub(crate) fn scripted_model() -> ScriptedReviewer {
    ScriptedReviewer::start_scripted_reviewer_server(|body, before| {
        let said = |verdict: &str, score: f64| {
            reviewer::render_judge_verdict_reply(
                body,
                verdict,
                score,
                "incomplete",
                "- add the tests\n- say why",
            )
        };
        Ok(
            match body.get("model").and_then(serde_json::Value::as_str) {
                Some("pass") => said("pass", 1.0),
                Some("fail") => said("fail", 0.1),
                Some("low") => said("pass", 0.3),
                Some("near") => said("pass", 0.75),
                Some("wavers") => said(if before == 0 { "pass" } else { "fail" }, 0.7),
                Some("plain") => "FAIL [goal_missed]: that is another file".to_owned(),
                Some("prose") => "It looks good to me.".to_owned(),
                Some("both") => said("pass", 1.0) + &said("fail", 0.1),
                Some("bytes") => "\u{0}\u{1b}[2J{{{{".repeat(2_000),
                Some("huge") => "a".repeat(200_000),
                Some("hang") => {
                    std::thread::sleep(std::time::Duration::from_secs(3_600));
                    String::new()
                }
                _ => return Err(404),
            },
        )
    })
    .unwrap()
}
