//! Python's tracebacks: the innermost frame that lies in the tree, and the last line.

use super::gather::Draft;
use super::paths::Paths;
use crate::patterns::{Pattern, group};

static FRAME: Pattern = Pattern::new("File \"", r#"^\s*(?:\|\s*)?File "([^"]+)", line (\d+)"#);
static LAST: Pattern = Pattern::new(
    "",
    r"^([A-Za-z_][\w.]*(?:Error|Exception|Warning|Exit|Interrupt|Timeout|Failure))(?:: (.*))?$",
);

#[derive(Debug, Default)]
pub(crate) struct Traceback {
    open: bool,
    place: Option<(String, u32)>,
}

impl Traceback {
    /// Whether the line belongs to a traceback, and the traceback if this is its last line.
    pub(crate) fn line(&mut self, line: &str, paths: &mut Paths) -> (bool, Option<Draft>) {
        if line.starts_with("Traceback (most recent call last)") {
            self.open = true;
            self.place = None;
            return (true, None);
        }
        if let Some(captures) = FRAME.captures(line) {
            // A SyntaxError shows its frame without the word Traceback.
            self.open = true;
            if let Some(file) = paths.inside(group(&captures, 1)) {
                self.place = group(&captures, 2)
                    .parse()
                    .ok()
                    .map(|number| (file, number));
            }
            return (true, None);
        }
        if !self.open {
            return (false, None);
        }
        if let Some(captures) = LAST.captures(line) {
            self.open = false;
            let (file, number) = self.place.take().unzip();
            let draft = Draft {
                test: None,
                file,
                line: number,
                rule: Some(group(&captures, 1).to_owned()),
                message: group(&captures, 2).to_owned(),
            };
            return (true, Some(draft));
        }
        // Source lines of frames are indented; anything else ends the traceback unread.
        self.open = line.is_empty() || line.starts_with([' ', '\t']);
        (self.open, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        FRAME.replace_all("", "");
        LAST.replace_all("", "");
    }
}
