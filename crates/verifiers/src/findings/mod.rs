//! Findings out of plain output: test ids, `file:line: message`, rustc's arrows, Python's
//! tracebacks. Line by line in bounded memory; an id does not change when lines shift.

mod collector;
mod diagnostics;
mod identity;
mod paths;
mod test_failures;
mod traceback;

use std::path::Path;

use checkrein_core::evidence::Finding;

use collector::FindingCollector;
use diagnostics::DiagnosticReader;
use paths::FindingPathResolver;
use test_failures::TestFailureReader;
use traceback::TracebackReader;

/// Reads findings from the lines of an output.
pub(crate) struct FindingReader {
    paths: FindingPathResolver,
    gathered: FindingCollector,
    tests: TestFailureReader,
    located: DiagnosticReader,
    traceback: TracebackReader,
}

impl FindingReader {
    /// A reader of output about the tree at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            paths: FindingPathResolver::new(root),
            gathered: FindingCollector::default(),
            tests: TestFailureReader::default(),
            located: DiagnosticReader::default(),
            traceback: TracebackReader::default(),
        }
    }

    /// Takes the next line. Who understands it keeps it from the readers after.
    pub(crate) fn parse_finding_line(&mut self, line: &str) {
        if self
            .tests
            .collect_failing_test_line(line, &mut self.paths, &mut self.gathered)
        {
            return;
        }
        let (taken, traceback) = self.traceback.parse_traceback_line(line, &mut self.paths);
        if let Some(draft) = traceback.and_then(|draft| self.tests.attach_traceback(draft)) {
            self.gathered.add_finding_draft(draft);
        }
        if !taken {
            self.located
                .collect_diagnostic_line(line, &mut self.paths, &mut self.gathered);
        }
    }

    /// The findings, at most [`checkrein_core::evidence::MAX_FINDINGS`], and how many there were in all.
    pub(crate) fn into_findings_and_total(mut self) -> (Vec<Finding>, u32) {
        self.tests.join_test_names_and_messages(&mut self.gathered);
        self.gathered.finish_gathered_findings()
    }
}

#[cfg(test)]
mod tests;
