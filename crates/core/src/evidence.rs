//! Evidence: the result of a verifier run. A verifier always returns evidence. Its own crash, hang
//! or unreadable output is an inconclusive verdict with a cause (law 5).

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, EightByteDigest};
use crate::ids::VerifierName;

/// What a verifier says about its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The outside world bears the claim out.
    Pass,
    /// It does not.
    Fail,
    /// The verifier could not tell; [`InconclusiveCause`] says why.
    Inconclusive,
}

impl Verdict {
    /// Its word in digests. It never changes: recorded digests are made of it.
    pub fn verdict_name_in_digests(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Fail => "Fail",
            Self::Inconclusive => "Inconclusive",
        }
    }
}

/// Why a verdict is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InconclusiveCause {
    /// It ran longer than its own `timeout`.
    Timeout,
    /// It died by a signal, or we could not collect its end.
    Crash,
    /// The program it needs is not there. Never retried: it can never succeed.
    MissingProgram,
    /// Nothing ran, or its exit code was masked.
    VacuousPass,
    /// The tree kept changing while it was checked.
    TreeMoving,
    /// Cut off so that the agent still gets an answer in time. Not an attempt.
    ReplyDeadline,
    /// Another process holds the claim and did not finish before our own deadline.
    ClaimedElsewhere,
    /// The tree could not be read.
    TreeUnreadable,
    /// Checkrein itself failed while running it.
    Internal,
    /// A file that it judges by is not there. Never retried: it can never succeed.
    MissingFile,
    /// The person has not answered yet. No stance applies as long as they still can.
    Unanswered,
    /// The person did not answer in time.
    Expired,
    /// A judge was not asked: there was nothing to judge, or the answer could not be taken back.
    NotAsked,
    /// The model that was to be asked did not answer.
    ModelUnavailable,
    /// The model's answer cannot be read as a verdict.
    Unreadable,
    /// Asked twice in another order, a judge said yes and no.
    #[serde(rename = "wavering")]
    InconsistentJudge,
    /// It ended with status 0, but its command hides the status of what it runs.
    Masked,
    /// It removes files while it runs and restores them, so what it saw is not the tree.
    CheckRestores,
}

impl InconclusiveCause {
    /// Returns whether the run was not finished: it was cut off, or another process runs it.
    pub fn is_cut_off_or_claimed_elsewhere(self) -> bool {
        matches!(self, Self::ReplyDeadline | Self::ClaimedElsewhere)
    }

    /// Its word in digests. It never changes: recorded digests are made of it.
    fn inconclusive_cause_digest_tag(self) -> &'static str {
        match self {
            Self::Timeout => "Timeout",
            Self::Crash => "Crash",
            Self::MissingProgram => "MissingProgram",
            Self::VacuousPass => "VacuousPass",
            Self::TreeMoving => "TreeMoving",
            Self::ReplyDeadline => "ReplyDeadline",
            Self::ClaimedElsewhere => "ClaimedElsewhere",
            Self::TreeUnreadable => "TreeUnreadable",
            Self::Internal => "Internal",
            Self::MissingFile => "MissingFile",
            Self::Unanswered => "Unanswered",
            Self::Expired => "Expired",
            Self::NotAsked => "NotAsked",
            Self::ModelUnavailable => "ModelUnavailable",
            Self::Unreadable => "Unreadable",
            Self::InconsistentJudge => "Wavering",
            Self::Masked => "Masked",
            Self::CheckRestores => "CheckRestores",
        }
    }
}

/// Returns the text of a verdict and its cause for digests.
pub fn digest_tag_of_verdict_and_cause(
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
) -> String {
    // The `Some(..)` and `None` are part of recorded digests and must stay as they are.
    match cause {
        Some(cause) => format!(
            "{} Some({})",
            verdict.verdict_name_in_digests(),
            cause.inconclusive_cause_digest_tag()
        ),
        None => format!("{} None", verdict.verdict_name_in_digests()),
    }
}

/// Whether a later try could give another result without a change outside the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckRetryability {
    /// Worth another attempt of the agent.
    Yes,
    /// Can never succeed: missing program, schema file gone.
    No,
}

/// Who produced evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOrManualOrigin {
    /// A hook, `run` or a worker under the sealed policy: can satisfy `accept`.
    Gate,
    /// `checkrein check` by hand: only informs.
    Manual,
}

/// Whether a finding was there before the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingStatusAgainstBaseline {
    /// Not known from before the task.
    New,
    /// There before the task began.
    PreExisting,
    /// It comes and goes on the same tree.
    Flaky,
    /// Was there at the last attempt and is gone.
    Fixed,
}

/// One structured problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable across line shifts: a test id, a rule with its subject, or the message without numbers.
    pub id: String,
    /// Path relative to the root, `/`-separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Rule or test id as the tool names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What the tool says, one line, bounded.
    pub message: String,
    /// New, pre-existing, flaky or fixed.
    pub state: FindingStatusAgainstBaseline,
}

impl Finding {
    /// Identity in failure sets: id and file, without line, column and message.
    pub fn failure_key(&self) -> EightByteDigest {
        let file = self.file.as_deref().unwrap_or("");
        Digest::hash_parts([self.id.as_bytes(), file.as_bytes()]).to_eight_byte_digest()
    }
}

/// Tests of one run, by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// They ran and passed, or failed as they were expected to.
    pub passed: u64,
    /// They ran and did not pass.
    pub failed: u64,
    /// They were left out.
    pub skipped: u64,
}

impl TestCounts {
    /// How many ran.
    pub fn executed_test_count(self) -> u64 {
        self.passed.saturating_add(self.failed)
    }

    /// Returns the sums of two runs.
    #[must_use]
    pub fn add_test_counts(self, other: Self) -> Self {
        Self {
            passed: self.passed.saturating_add(other.passed),
            failed: self.failed.saturating_add(other.failed),
            skipped: self.skipped.saturating_add(other.skipped),
        }
    }
}

/// Milliseconds from the start of a run after which its result is no longer used, unless the
/// verifier declares its `inputs`.
pub const MAX_RUN_AGE_MS: u64 = 15 * 60 * 1000;

/// Returns whether a result is too old to be used. A run that takes longer than [`MAX_RUN_AGE_MS`]
/// is still used by those who wait for its end or ask within a minute of it.
pub fn is_evidence_too_old(age_ms: u64, duration_ms: u64) -> bool {
    // A check that runs longer than the limit would otherwise be too old before it ends, and be
    // rerun for ever.
    age_ms >= MAX_RUN_AGE_MS.max(duration_ms.saturating_add(MIN_AGE_AFTER_END_MS))
}

const MIN_AGE_AFTER_END_MS: u64 = 60 * 1000;

/// At most this many findings are named per verifier; the rest are counted.
pub const MAX_FINDINGS: usize = 50;

/// The full result of a verifier run. Kept as a blob under its content key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Which verifier.
    pub verifier: VerifierName,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<InconclusiveCause>,
    /// At most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many there were in all.
    pub findings_total: u32,
    /// Digest of its subject before it ran.
    pub subject: Digest,
    /// Digest of its subject after it ran; differs if the tree moved meanwhile.
    pub subject_after: Digest,
    /// Digest of the whole tree before it ran.
    pub tree: Digest,
    /// Digest of the whole tree after it ran.
    pub tree_after: Digest,
    /// Some of the paths that changed while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<String>,
    /// The check wrote into its own inputs, but came to rest (finding `check_writes`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check_writes: bool,
    /// It ran with no other check running, because files that it depends on were written during its
    /// previous run. Not set in older evidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The command that reproduces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Exit status of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Whether trying again can help.
    pub retryable: CheckRetryability,
    /// Who produced it.
    pub origin: GateOrManualOrigin,
    /// Tests by outcome, where its output tells them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
    /// A note beside the output: which program is missing, what hides an exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Head and tail of its output, bounded.
    pub excerpt: String,
    /// Where the full output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Size of the full output in bytes.
    pub output_bytes: u64,
    /// How often it was run for this verdict.
    pub tries: u32,
    /// Names of variables that were stripped from its environment and that its output mentions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stripped: Vec<String>,
    /// Versions of the tools that its command names, as they call themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Of a judge: who was asked, and what that took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "testimony")]
    pub judge_usage: Option<JudgeUsage>,
}

/// A model that was asked, and what that took. `None` where the provider does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeUsage {
    /// `provider/model`.
    pub model: String,
    /// How often it was asked.
    pub asked: u32,
    /// Its score, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<u32>,
    /// Tokens that it read.
    pub input: Option<u64>,
    /// Tokens that it wrote, thinking included.
    pub output: Option<u64>,
    /// What that cost, in millionths of a dollar.
    pub cost: Option<u64>,
}

/// The part of evidence that the core keeps: no text, only what decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceSummary {
    /// Which verifier.
    pub verifier: VerifierName,
    /// Content key of the blob.
    pub key: Digest,
    /// Its verdict.
    pub verdict: Verdict,
    /// Why it is inconclusive.
    pub cause: Option<InconclusiveCause>,
    /// Digest of its subject before it ran.
    pub subject: Digest,
    /// Digest of its subject after it ran.
    pub subject_after: Digest,
    /// Exit status.
    pub exit_code: Option<i32>,
    /// Whether trying again can help.
    pub retryable: CheckRetryability,
    /// Who produced it.
    pub origin: GateOrManualOrigin,
    /// Keys of the findings that count (neither pre-existing nor flaky), sorted, at most [`MAX_FINDINGS`].
    pub findings: Vec<EightByteDigest>,
    /// How many findings there were in all.
    pub findings_total: u32,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// Taken from an earlier run on the same subject.
    pub cached: bool,
}

impl EvidenceSummary {
    /// Returns the deciding part of `evidence`, which is stored under `key`.
    pub fn deciding_part_of_evidence(evidence: &Evidence, key: Digest, cached: bool) -> Self {
        let mut findings: Vec<EightByteDigest> = evidence
            .findings
            .iter()
            // Pre-existing and flaky findings do not count against the agent, so they are not part
            // of the failure set.
            .filter(|finding| matches!(finding.state, FindingStatusAgainstBaseline::New))
            .take(MAX_FINDINGS)
            .map(Finding::failure_key)
            .collect();
        findings.sort_unstable();
        findings.dedup();
        Self {
            verifier: evidence.verifier.clone(),
            key,
            verdict: evidence.verdict,
            cause: evidence.cause,
            subject: evidence.subject,
            subject_after: evidence.subject_after,
            exit_code: evidence.exit_code,
            retryable: evidence.retryable,
            origin: evidence.origin,
            findings,
            findings_total: evidence.findings_total,
            duration_ms: evidence.duration_ms,
            cached,
        }
    }
}

impl Evidence {
    /// Returns what kept the check from a verdict about the work: the identity of the paths that
    /// moved while it ran, or of no paths if it was cut off or runs elsewhere.
    pub fn paths_changed_during_run_digest(&self) -> Option<EightByteDigest> {
        let moved =
            self.subject != self.subject_after || self.cause == Some(InconclusiveCause::TreeMoving);
        let mut paths: Vec<&str> = match self.cause {
            // Moved paths come first: a run that was cut while files moved is held up by the moving
            // files.
            _ if moved => self.moved.iter().map(String::as_str).collect(),
            Some(cause) if cause.is_cut_off_or_claimed_elsewhere() => Vec::new(),
            _ => return None,
        };
        paths.sort_unstable();
        Some(Digest::hash_parts(paths.into_iter().map(str::as_bytes)).to_eight_byte_digest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it was when `Debug` wrote it: recorded digests are made of these bytes.
    #[test]
    fn words_in_digests_are_as_they_ever_were() {
        let causes = [
            InconclusiveCause::Timeout,
            InconclusiveCause::Crash,
            InconclusiveCause::MissingProgram,
            InconclusiveCause::VacuousPass,
            InconclusiveCause::TreeMoving,
            InconclusiveCause::ReplyDeadline,
            InconclusiveCause::ClaimedElsewhere,
            InconclusiveCause::TreeUnreadable,
            InconclusiveCause::Internal,
            InconclusiveCause::MissingFile,
            InconclusiveCause::Unanswered,
            InconclusiveCause::Expired,
            InconclusiveCause::NotAsked,
            InconclusiveCause::ModelUnavailable,
            InconclusiveCause::Unreadable,
            InconclusiveCause::InconsistentJudge,
            InconclusiveCause::Masked,
            InconclusiveCause::CheckRestores,
        ];
        let all: Vec<String> = causes
            .iter()
            .map(|cause| digest_tag_of_verdict_and_cause(Verdict::Inconclusive, Some(*cause)))
            .collect();
        let words = "Timeout Crash MissingProgram VacuousPass TreeMoving ReplyDeadline ClaimedElsewhere TreeUnreadable Internal MissingFile Unanswered Expired NotAsked ModelUnavailable Unreadable Wavering Masked CheckRestores";
        let expected: Vec<String> = words
            .split(' ')
            .map(|word| format!("Inconclusive Some({word})"))
            .collect();
        assert_eq!(all, expected);
        assert_eq!(
            digest_tag_of_verdict_and_cause(Verdict::Pass, None),
            "Pass None"
        );
        assert_eq!(
            digest_tag_of_verdict_and_cause(Verdict::Fail, None),
            "Fail None"
        );
    }
}
