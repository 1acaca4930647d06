//! Defines the input and the output of a verifier run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use checkrein_core::evidence::{
    CheckRetryability, Finding, InconclusiveCause, JudgeUsage, TestCounts, Verdict,
};
use checkrein_core::exit_status::ExitStatusAnalysis;
use checkrein_core::policy::VerifierSpec;

use crate::judge::JudgeInput;

/// One run of one verifier.
#[derive(Clone, Copy)]
pub struct VerifierJob<'a> {
    /// The verifier, as the sealed policy defines it.
    pub spec: &'a VerifierSpec,
    /// The tree; a command runs here.
    pub root: &'a Path,
    /// The final message, whole, where a stop is judged.
    pub message: Option<&'a str>,
    /// What a judge is shown, if this is a judge.
    pub case: Option<&'a JudgeInput>,
    /// When the agent must have its answer: a run that is still going then is aborted.
    pub deadline: Option<Instant>,
    /// Where the full output goes, in a file named after the verifier and a nonce.
    pub log_dir: &'a Path,
    /// Set when the check is cancelled: the verifier kills what it started and returns.
    pub cancelled: &'a AtomicBool,
    /// The environment to filter; see [`crate::withheld`].
    pub env: &'a BTreeMap<OsString, OsString>,
    /// The environment in which keys and addresses of models are looked up.
    pub model_env: &'a BTreeMap<OsString, OsString>,
    /// The file in the state folder that caches the versions of tools.
    pub tool_versions_file: &'a Path,
    /// The analysis of exit statuses inside the command; `None` if none was made.
    pub exit_statuses: Option<&'a ExitStatusAnalysis>,
    /// The file that is locked for this run. A process that is started for it keeps the file open
    /// as long as its tree lives.
    pub lock: Option<&'a File>,
    /// Redacts output before it is kept or parsed; returns `None` if there are no secrets.
    pub redact: RedactBytesFn<'a>,
}

/// See [`VerifierJob::redact`].
pub type RedactBytesFn<'a> = &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync);

/// The result of a run. The runtime adds subjects and origin and makes evidence of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierReport {
    /// What it says.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    pub cause: Option<InconclusiveCause>,
    /// At most [`checkrein_core::evidence::MAX_FINDINGS`], in the order of the output; the same
    /// ones in whatever order parallel tests reported them.
    pub findings: Vec<Finding>,
    /// How many there were in all.
    pub findings_total: u32,
    /// The command that reproduces it, in the tree's root.
    pub command: Option<String>,
    /// Its exit status; `None` if a signal ended it or it never started.
    pub exit_code: Option<i32>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Whether a change inside the tree could change the result.
    pub retryable: CheckRetryability,
    /// Tests by outcome, where the output tells them.
    pub counts: Option<TestCounts>,
    /// What a reader must know besides the output.
    pub note: Option<String>,
    /// Head and tail of the output and a line for anything odd, at most 16 KiB.
    pub excerpt: String,
    /// The path of the full output: relative to the root and `/`-separated if it is inside it.
    pub log: Option<String>,
    /// Size of the output in bytes; the log may hold less.
    pub output_bytes: u64,
    /// Withheld variables that were set and that the output names, sorted.
    pub stripped: Vec<String>,
    /// Versions of the tools that its command names.
    pub tools: Vec<String>,
    /// For a judge: which model was asked, and what it used.
    pub testimony: Option<JudgeUsage>,
}

impl VerifierReport {
    /// Creates the report on a run that came to no verdict before there was any output.
    pub fn inconclusive_report(
        cause: InconclusiveCause,
        retryable: CheckRetryability,
        why: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Inconclusive,
            cause: Some(cause),
            findings: Vec::new(),
            findings_total: 0,
            command: None,
            exit_code: None,
            duration_ms: 0,
            retryable,
            counts: None,
            note: None,
            excerpt: why.into(),
            log: None,
            output_bytes: 0,
            stripped: Vec::new(),
            tools: Vec::new(),
            testimony: None,
        }
    }
}
