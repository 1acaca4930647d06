//! Extracts findings from plain output: test ids, `file:line: message`, rustc's arrows, Python's
//! tracebacks. Works line by line in bounded memory. Ids do not change when lines shift.

mod collector;
mod diagnostics;
mod identity;
mod paths;
mod test_failures;
mod traceback;

use std::path::Path;

use checkrein_core::evidence::Finding;

use collector::CheckFindingCollector;
use diagnostics::CompilerDiagnosticReader;
use paths::FindingPathResolver;
use test_failures::TestFailureReader;
use traceback::TracebackReader;

/// Reads findings from the lines of an output.
pub(crate) struct FindingReader {
    paths: FindingPathResolver,
    gathered: CheckFindingCollector,
    tests: TestFailureReader,
    located: CompilerDiagnosticReader,
    traceback: TracebackReader,
}

impl FindingReader {
    /// Creates a reader of output about the tree at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            paths: FindingPathResolver::new(root),
            gathered: CheckFindingCollector::default(),
            tests: TestFailureReader::default(),
            located: CompilerDiagnosticReader::default(),
            traceback: TracebackReader::default(),
        }
    }

    /// Reads the next line. The first parser that understands it keeps it from the others.
    pub(crate) fn scan_line_for_findings(&mut self, line: &str) {
        // Tests come first: the lines below a test's name would match the looser patterns too.
        if self
            .tests
            .collect_failing_test_line(line, &mut self.paths, &mut self.gathered)
        {
            return;
        }
        let (taken, traceback) = self.traceback.parse_traceback_line(line, &mut self.paths);
        // A traceback below a test's name belongs to that test and is no finding of its own.
        if let Some(draft) = traceback.and_then(|draft| self.tests.attach_traceback(draft)) {
            self.gathered.add_output_finding_draft(draft);
        }
        if !taken {
            self.located
                .collect_diagnostic_line(line, &mut self.paths, &mut self.gathered);
        }
    }

    /// Returns the findings, at most [`checkrein_core::evidence::MAX_FINDINGS`], and how many there
    /// were in all.
    pub(crate) fn into_findings_and_total(mut self) -> (Vec<Finding>, u32) {
        self.tests
            .drain_named_failures_into_findings(&mut self.gathered);
        self.gathered.finish_gathered_findings()
    }
}

#[cfg(test)]
mod tests;
