//! Reads `path:line[:col]: message` and its relatives: compilers, linters, type checkers.

use super::collector::{CheckFindingCollector, OutputFindingDraft};
use super::paths::FindingPathResolver;
use crate::patterns::{LazyRegex, capture_group_text};

static RUSTC: LazyRegex = LazyRegex::new("error", r"^error(?:\[(\w+)\])?: (.+)$");
static ARROW: LazyRegex = LazyRegex::new("--> ", r"^\s*--> (.+?):(\d+):\d+$");
/// `src/a.ts(3,5): error TS2304: Cannot find name 'x'.`
static PARENTHESES: LazyRegex = LazyRegex::new(
    "): ",
    r"^\s*([^\s()][^()]*)\((\d+)(?:,\d+)?\)\s?: (?:fatal )?(error|warning)(?: (\w+))?: (.+)$",
);
static PLAIN: LazyRegex = LazyRegex::new(
    ":",
    r"^\s*(?:vet: )?((?:[A-Za-z]:)?[^\s:()]+):(\d+)(?::\d+)?(?::| -) ?(.+)$",
);
static SEVERITY: LazyRegex = LazyRegex::new(
    "",
    r"^(?:\[?(fatal error|error|E|warning|warn|W|note|info|help|remark|style)\]?)(?:[:\s]|\[([\w:/.-]+)\]:?)\s*(?:(TS\d+): )?(.*)$",
);
/// flake8, ruff, pylint: the code comes first.
static LEADING_CODE: LazyRegex = LazyRegex::new("", r"^([A-Z]{1,6}\d{2,5}):? (?:\[\*\] )?(.+)$");
/// mypy, clang-tidy: the code comes last.
static TRAILING_CODE: LazyRegex = LazyRegex::new("]", r"^(.+?)\s+\[([\w./-]+)\]$");
/// eslint: a path on its own line, then `3:5  error  message  rule`.
static ESLINT: LazyRegex = LazyRegex::new(
    "  error  ",
    r"^\s+(\d+):\d+\s+error\s+(.+?)(?:\s{2,}(\S+))?$",
);

/// Number of lines after `error[...]: ...` within which its arrow may come.
const ARROW_WITHIN: u8 = 4;

#[derive(Debug, Default)]
pub(crate) struct CompilerDiagnosticReader {
    /// A message of rustc that waits for its arrow, and the lines left for it.
    rustc: Option<(OutputFindingDraft, u8)>,
    /// The file of eslint's findings: the last line that was nothing but a path.
    file: Option<String>,
}

impl CompilerDiagnosticReader {
    pub(crate) fn collect_diagnostic_line(
        &mut self,
        line: &str,
        paths: &mut FindingPathResolver,
        into: &mut CheckFindingCollector,
    ) {
        // rustc tells the place on a line of its own below the message, so the draft waits for it.
        // One without a place, such as "aborting due to 1 previous error", is dropped.
        if let Some(captures) = RUSTC.regex_captures(line) {
            let rule =
                Some(capture_group_text(&captures, 1).to_owned()).filter(|rule| !rule.is_empty());
            let message = capture_group_text(&captures, 2).to_owned();
            self.rustc = Some((
                OutputFindingDraft {
                    rule,
                    message,
                    ..OutputFindingDraft::default()
                },
                ARROW_WITHIN,
            ));
            return;
        }
        if let Some((mut draft, left)) = self.rustc.take() {
            if let Some(captures) = ARROW.regex_captures(line) {
                draft.file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
                draft.line = capture_group_text(&captures, 2).parse().ok();
                into.add_output_finding_draft(draft);
                return;
            }
            self.rustc = left.checked_sub(1).map(|left| (draft, left));
        }
        if let Some(captures) = ESLINT.regex_captures(line) {
            if let Some(file) = &self.file {
                into.add_output_finding_draft(OutputFindingDraft {
                    file: Some(file.clone()),
                    line: capture_group_text(&captures, 1).parse().ok(),
                    rule: Some(capture_group_text(&captures, 3).to_owned())
                        .filter(|rule| !rule.is_empty()),
                    message: capture_group_text(&captures, 2).to_owned(),
                    test: None,
                });
            }
            return;
        }
        if let Some(draft) =
            parse_paren_diagnostic(line, paths).or_else(|| parse_colon_diagnostic(line, paths))
        {
            into.add_output_finding_draft(draft);
        // A lone path that does not exist clears the file, so that eslint's lines are not filed
        // under an older one.
        } else if line.contains(['/', '.', '\\']) && !line.contains([' ', ':']) {
            self.file = paths.tree_file_named_by_text(line);
        }
    }
}

fn parse_paren_diagnostic(
    line: &str,
    paths: &mut FindingPathResolver,
) -> Option<OutputFindingDraft> {
    let captures = PARENTHESES.regex_captures(line)?;
    // A warning did not make the check fail.
    if capture_group_text(&captures, 3) == "warning" {
        return None;
    }
    Some(OutputFindingDraft {
        test: None,
        file: Some(paths.tree_file_named_by_text(capture_group_text(&captures, 1))?),
        line: capture_group_text(&captures, 2).parse().ok(),
        rule: Some(capture_group_text(&captures, 4).to_owned()).filter(|rule| !rule.is_empty()),
        message: capture_group_text(&captures, 5).to_owned(),
    })
}

fn parse_colon_diagnostic(
    line: &str,
    paths: &mut FindingPathResolver,
) -> Option<OutputFindingDraft> {
    let captures = PLAIN.regex_captures(line)?;
    let mut message = capture_group_text(&captures, 3).trim();
    let mut rule = None;
    let mut is_error = false;
    if let Some(severity) = SEVERITY.regex_captures(message) {
        match capture_group_text(&severity, 1) {
            "fatal error" | "error" | "E" => is_error = true,
            // Warnings and notes did not make the check fail.
            _ => return None,
        }
        let code = Some(capture_group_text(&severity, 2)).filter(|code| !code.is_empty());
        rule = code.or(Some(capture_group_text(&severity, 3)).filter(|code| !code.is_empty()));
        message = severity.get(4).map_or("", |rest| rest.as_str());
    }
    // A trailing `[code]` is believed only after the word error: plain messages may end in brackets
    // too.
    let leading = LEADING_CODE.regex_captures(message);
    let trailing = TRAILING_CODE.regex_captures(message);
    if let Some(leading) = &leading {
        rule = leading.get(1).map(|code| code.as_str());
        message = leading.get(2).map_or(message, |rest| rest.as_str());
    } else if let (true, Some(trailing)) = (is_error, &trailing) {
        rule = trailing.get(2).map(|code| code.as_str());
        message = trailing.get(1).map_or(message, |rest| rest.as_str());
    }
    let file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
    // `12:30:01: started` has the same shape. Only a file of the tree, or the word error, is
    // believed.
    if message.is_empty() || (file.is_none() && !is_error) {
        return None;
    }
    Some(OutputFindingDraft {
        test: None,
        file,
        line: capture_group_text(&captures, 2).parse().ok(),
        rule: rule.map(str::to_owned),
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &RUSTC,
            &ARROW,
            &PARENTHESES,
            &PLAIN,
            &SEVERITY,
            &LEADING_CODE,
            &TRAILING_CODE,
            &ESLINT,
        ] {
            pattern.replace_all_regex_matches("", "");
        }
    }
}
