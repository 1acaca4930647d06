//! Reads what the output of one run says: counts, findings, and whether it is complete. It is the
//! only place that interprets what a check prints.

mod missing_messages;
mod runner_lines;
mod summaries;

use std::path::Path;

use checkrein_core::evidence::{Finding, TestCounts};
use checkrein_core::exit_status::TestRunner;

use crate::findings::FindingReader;
use missing_messages::reports_missing_dependency;
use summaries::TestRunnerSummaries;

/// What a run's output says.
#[derive(Debug)]
pub(crate) struct ParsedCheckOutput {
    /// Tests by outcome, over all runners; `None` if no runner was recognised.
    pub(crate) counts: Option<TestCounts>,
    /// At most [`checkrein_core::evidence::MAX_FINDINGS`].
    pub(crate) findings: Vec<Finding>,
    /// How many there were in all.
    pub(crate) findings_total: u32,
    /// Whether the output was read to its end and the counts of each runner add up.
    pub(crate) complete: bool,
    /// The first line that says that a program, a module, a script or a manifest is not there.
    pub(crate) missing: Option<String>,
    summaries: TestRunnerSummaries,
}

impl ParsedCheckOutput {
    /// Returns whether a runner was recognised and none ran anything.
    pub(crate) fn runner_ran_no_tests(&self) -> bool {
        self.summaries.has_run_no_tests()
    }

    /// Returns whether a runner said explicitly that it had nothing to run, and none ran anything.
    pub(crate) fn reports_nothing_to_run(&self) -> bool {
        self.summaries.reports_nothing_to_run()
    }

    /// Returns whether a runner says that it failed; see
    /// [`TestRunnerSummaries::runner_reports_failure`].
    pub(crate) fn runner_reports_failure(&self, run: &str) -> bool {
        self.summaries.runner_reports_failure(run)
    }

    /// Returns whether this runner says that at least one test ran. `None` stands for any runner.
    pub(crate) fn output_shows_tests_ran(&self, runner: Option<TestRunner>) -> bool {
        self.summaries.runner_ran_any_test(runner)
    }

    /// Returns whether the output alone shows that this runner ran at least one test, finished this
    /// many times and never failed. `None` stands for any runner.
    pub(crate) fn output_shows_tests_passed(&self, runner: Option<TestRunner>, times: u32) -> bool {
        // All that could hide a failure rules it out: a part that was left out, counts that do not
        // add up, a program that is missing.
        self.complete
            && self.missing.is_none()
            && self.summaries.runner_reports_passed_tests(runner, times)
    }
}

/// Reads the lines of an output.
pub(crate) struct CheckOutputParser {
    summaries: TestRunnerSummaries,
    findings: FindingReader,
    missing: Option<String>,
}

impl CheckOutputParser {
    /// Creates a parser of output about the tree at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            summaries: TestRunnerSummaries::default(),
            findings: FindingReader::new(root),
            missing: None,
        }
    }

    /// Takes the next line.
    pub(crate) fn read_check_output_line(&mut self, line: &str) {
        self.summaries.tally_test_summary_line(line);
        self.findings.scan_line_for_findings(line);
        // The first such line names the cause; later ones are often its consequences.
        if self.missing.is_none() && reports_missing_dependency(line) {
            self.missing = Some(line.trim().to_owned());
        }
    }

    /// Returns the report. `whole` says that no line was left out.
    pub(crate) fn finish_parsed_check_output(self, whole: bool) -> ParsedCheckOutput {
        let (findings, findings_total) = self.findings.into_findings_and_total();
        ParsedCheckOutput {
            counts: self.summaries.total_test_counts(),
            findings,
            findings_total,
            complete: whole && self.summaries.has_consistent_test_counts(),
            missing: self.missing,
            summaries: self.summaries,
        }
    }
}
