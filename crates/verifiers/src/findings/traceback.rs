//! Reads Python's tracebacks: the innermost frame that lies in the tree, and the last line.

use super::collector::OutputFindingDraft;
use super::paths::FindingPathResolver;
use crate::patterns::{LazyRegex, capture_group_text};

static FRAME: LazyRegex = LazyRegex::new("File \"", r#"^\s*(?:\|\s*)?File "([^"]+)", line (\d+)"#);
static LAST: LazyRegex = LazyRegex::new(
    "",
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Timeout|Failure))(?:: (.*))?$",
);

#[derive(Debug, Default)]
pub(crate) struct TracebackReader {
    open: bool,
    place: Option<(String, u32)>,
}

impl TracebackReader {
    /// Returns whether the line belongs to a traceback, and the traceback if this is its last line.
    pub(crate) fn parse_traceback_line(
        &mut self,
        line: &str,
        paths: &mut FindingPathResolver,
    ) -> (bool, Option<OutputFindingDraft>) {
        if line.starts_with("Traceback (most recent call last)") {
            self.open = true;
            self.place = None;
            return (true, None);
        }
        if let Some(captures) = FRAME.regex_captures(line) {
            // A SyntaxError shows its frame without the word Traceback.
            self.open = true;
            if let Some(file) = paths.tree_file_named_by_text(capture_group_text(&captures, 1)) {
                // Python prints the most recent call last, so each later frame of the tree replaces
                // the one before.
                self.place = capture_group_text(&captures, 2)
                    .parse()
                    .ok()
                    .map(|number| (file, number));
            }
            return (true, None);
        }
        if !self.open {
            return (false, None);
        }
        if let Some(captures) = LAST.regex_captures(line) {
            self.open = false;
            let (file, number) = self.place.take().unzip();
            let draft = OutputFindingDraft {
                test: None,
                file,
                line: number,
                rule: Some(capture_group_text(&captures, 1).to_owned()),
                message: capture_group_text(&captures, 2).to_owned(),
            };
            return (true, Some(draft));
        }
        // Source lines of frames are indented; any other line ends the traceback without a finding.
        self.open = line.is_empty() || line.starts_with([' ', '\t']);
        (self.open, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        FRAME.replace_all_regex_matches("", "");
        LAST.replace_all_regex_matches("", "");
    }
}
