//! What the output of one run says: counts, findings, and whether it is all there. The
//! one place that reads what a check prints.

mod missing;
mod runner_lines;
mod summaries;

use std::path::Path;

use checkrein_core::evidence::{Finding, TestCounts};
use checkrein_core::exit_status::TestRunner;

use crate::findings::FindingReader;
use missing::missing_in;
use summaries::RunnerSummaries;

/// What a run's output says.
#[derive(Debug)]
pub(crate) struct RunReport {
    /// Tests by outcome, over all runners; `None` if no runner was recognised.
    pub(crate) counts: Option<TestCounts>,
    /// At most [`checkrein_core::evidence::MAX_FINDINGS`].
    pub(crate) findings: Vec<Finding>,
    /// How many there were in all.
    pub(crate) findings_total: u32,
    /// The output was read to its end, and what each runner says adds up.
    pub(crate) complete: bool,
    /// The first line that says that a program, a module, a script or a manifest is not there.
    pub(crate) missing: Option<String>,
    summaries: RunnerSummaries,
}

impl RunReport {
    /// A runner was heard, and none of them ran a thing.
    pub(crate) fn nothing_ran(&self) -> bool {
        self.summaries.nothing_ran()
    }

    /// A runner said in so many words that it had nothing to run, and none ran a thing.
    pub(crate) fn said_nothing_ran(&self) -> bool {
        self.summaries.said_nothing_ran()
    }

    /// A runner says that it failed; see [`RunnerSummaries::failed`].
    pub(crate) fn failed(&self, run: &str) -> bool {
        self.summaries.failed(run)
    }

    /// Whether this runner says that at least one test ran. `None`: whichever runner was heard.
    pub(crate) fn ran(&self, runner: Option<TestRunner>) -> bool {
        self.summaries.ran(runner)
    }

    /// Whether the output alone shows that this runner ran at least one test, came to its end
    /// so many times and never failed. `None`: whichever runner was heard.
    pub(crate) fn shows_success(&self, runner: Option<TestRunner>, times: u32) -> bool {
        self.complete && self.missing.is_none() && self.summaries.shows_success(runner, times)
    }
}

/// Reads the lines of an output.
pub(crate) struct RunReportReader {
    summaries: RunnerSummaries,
    findings: FindingReader,
    missing: Option<String>,
}

impl RunReportReader {
    /// A reader of output about the tree at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            summaries: RunnerSummaries::default(),
            findings: FindingReader::new(root),
            missing: None,
        }
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &str) {
        self.summaries.line(line);
        self.findings.line(line);
        if self.missing.is_none() && missing_in(line) {
            self.missing = Some(line.trim().to_owned());
        }
    }

    /// What the lines came to. `whole`: none was left out.
    pub(crate) fn finish(self, whole: bool) -> RunReport {
        let (findings, findings_total) = self.findings.finish();
        RunReport {
            counts: self.summaries.counts(),
            findings,
            findings_total,
            complete: whole && self.summaries.reconcile(),
            missing: self.missing,
            summaries: self.summaries,
        }
    }
}
