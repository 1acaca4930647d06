//! Findings out of plain output: test ids, `file:line: message`, rustc's arrows, Python's
//! tracebacks. Line by line in bounded memory; an id does not change when lines shift.

mod gather;
mod identity;
mod located;
mod paths;
mod tests_named;
mod traceback;

use std::path::Path;

use checkrein_core::evidence::Finding;

use gather::Gathered;
use located::Located;
use paths::Paths;
use tests_named::NamedTests;
use traceback::Traceback;

/// Reads findings from the lines of an output.
pub(crate) struct FindingReader {
    paths: Paths,
    gathered: Gathered,
    tests: NamedTests,
    located: Located,
    traceback: Traceback,
}

impl FindingReader {
    /// A reader of output about the tree at `root`.
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            paths: Paths::new(root),
            gathered: Gathered::default(),
            tests: NamedTests::default(),
            located: Located::default(),
            traceback: Traceback::default(),
        }
    }

    /// Takes the next line. Who understands it keeps it from the readers after.
    pub(crate) fn line(&mut self, line: &str) {
        if self.tests.line(line, &mut self.paths, &mut self.gathered) {
            return;
        }
        let (taken, traceback) = self.traceback.line(line, &mut self.paths);
        if let Some(draft) = traceback.and_then(|draft| self.tests.claim(draft)) {
            self.gathered.add(draft);
        }
        if !taken {
            self.located.line(line, &mut self.paths, &mut self.gathered);
        }
    }

    /// The findings, at most [`checkrein_core::evidence::MAX_FINDINGS`], and how many there were in all.
    pub(crate) fn finish(mut self) -> (Vec<Finding>, u32) {
        self.tests.finish(&mut self.gathered);
        self.gathered.finish()
    }
}

#[cfg(test)]
mod tests;
