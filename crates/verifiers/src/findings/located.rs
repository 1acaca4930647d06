//! `path:line[:col]: message` and its relatives: compilers, linters, type checkers.

use super::gather::{Draft, Gathered};
use super::paths::Paths;
use crate::patterns::{Pattern, group};

static RUSTC: Pattern = Pattern::new("error", r"^error(?:\[(\w+)\])?: (.+)$");
static ARROW: Pattern = Pattern::new("--> ", r"^\s*--> (.+?):(\d+):\d+$");
/// `src/a.ts(3,5): error TS2304: Cannot find name 'x'.`
static PARENTHESES: Pattern = Pattern::new(
    "): ",
    r"^\s*([^\s()][^()]*)\((\d+)(?:,\d+)?\)\s?: (?:fatal )?(error|warning)(?: (\w+))?: (.+)$",
);
static PLAIN: Pattern = Pattern::new(
    ":",
    r"^\s*(?:vet: )?((?:[A-Za-z]:)?[^\s:()]+):(\d+)(?::\d+)?(?::| -) ?(.+)$",
);
static SEVERITY: Pattern = Pattern::new(
    "",
    r"^(?:\[?(fatal error|error|E|warning|warn|W|note|info|help|remark|style)\]?)(?:[:\s]|\[([\w:/.-]+)\]:?)\s*(?:(TS\d+): )?(.*)$",
);
/// flake8, ruff, pylint: the code comes first.
static LEADING_CODE: Pattern = Pattern::new("", r"^([A-Z]{1,6}\d{2,5}):? (?:\[\*\] )?(.+)$");
/// mypy, clang-tidy: the code comes last.
static TRAILING_CODE: Pattern = Pattern::new("]", r"^(.+?)\s+\[([\w./-]+)\]$");
/// eslint: a path on its own line, then `3:5  error  message  rule`.
static ESLINT: Pattern = Pattern::new(
    "  error  ",
    r"^\s+(\d+):\d+\s+error\s+(.+?)(?:\s{2,}(\S+))?$",
);

/// How many lines after `error[...]: ...` its arrow may come.
const ARROW_WITHIN: u8 = 4;

#[derive(Debug, Default)]
pub(crate) struct Located {
    /// rustc's message that still waits for its arrow.
    rustc: Option<(Draft, u8)>,
    /// eslint's file, after a line that is nothing but a path.
    file: Option<String>,
}

impl Located {
    pub(crate) fn line(&mut self, line: &str, paths: &mut Paths, into: &mut Gathered) {
        if let Some(captures) = RUSTC.captures(line) {
            let rule = Some(group(&captures, 1).to_owned()).filter(|rule| !rule.is_empty());
            let message = group(&captures, 2).to_owned();
            self.rustc = Some((
                Draft {
                    rule,
                    message,
                    ..Draft::default()
                },
                ARROW_WITHIN,
            ));
            return;
        }
        if let Some((mut draft, left)) = self.rustc.take() {
            if let Some(captures) = ARROW.captures(line) {
                draft.file = paths.inside(group(&captures, 1));
                draft.line = group(&captures, 2).parse().ok();
                into.add(draft);
                return;
            }
            self.rustc = left.checked_sub(1).map(|left| (draft, left));
        }
        if let Some(captures) = ESLINT.captures(line) {
            if let Some(file) = &self.file {
                into.add(Draft {
                    file: Some(file.clone()),
                    line: group(&captures, 1).parse().ok(),
                    rule: Some(group(&captures, 3).to_owned()).filter(|rule| !rule.is_empty()),
                    message: group(&captures, 2).to_owned(),
                    test: None,
                });
            }
            return;
        }
        if let Some(draft) = parenthesised(line, paths).or_else(|| plain(line, paths)) {
            into.add(draft);
        } else if line.contains(['/', '.', '\\']) && !line.contains([' ', ':']) {
            self.file = paths.inside(line);
        }
    }
}

fn parenthesised(line: &str, paths: &mut Paths) -> Option<Draft> {
    let captures = PARENTHESES.captures(line)?;
    if group(&captures, 3) == "warning" {
        return None;
    }
    Some(Draft {
        test: None,
        file: Some(paths.inside(group(&captures, 1))?),
        line: group(&captures, 2).parse().ok(),
        rule: Some(group(&captures, 4).to_owned()).filter(|rule| !rule.is_empty()),
        message: group(&captures, 5).to_owned(),
    })
}

fn plain(line: &str, paths: &mut Paths) -> Option<Draft> {
    let captures = PLAIN.captures(line)?;
    let mut message = group(&captures, 3).trim();
    let mut rule = None;
    let mut is_error = false;
    if let Some(severity) = SEVERITY.captures(message) {
        match group(&severity, 1) {
            "fatal error" | "error" | "E" => is_error = true,
            // Not what made the check fail.
            _ => return None,
        }
        let code = Some(group(&severity, 2)).filter(|code| !code.is_empty());
        rule = code.or(Some(group(&severity, 3)).filter(|code| !code.is_empty()));
        message = severity.get(4).map_or("", |rest| rest.as_str());
    }
    let leading = LEADING_CODE.captures(message);
    let trailing = TRAILING_CODE.captures(message);
    if let Some(leading) = &leading {
        rule = leading.get(1).map(|code| code.as_str());
        message = leading.get(2).map_or(message, |rest| rest.as_str());
    } else if let (true, Some(trailing)) = (is_error, &trailing) {
        rule = trailing.get(2).map(|code| code.as_str());
        message = trailing.get(1).map_or(message, |rest| rest.as_str());
    }
    let file = paths.inside(group(&captures, 1));
    // `12:30:01: started` looks alike. Only a file of the tree, or the word error, is believed.
    if message.is_empty() || (file.is_none() && !is_error) {
        return None;
    }
    Some(Draft {
        test: None,
        file,
        line: group(&captures, 2).parse().ok(),
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
            pattern.replace_all("", "");
        }
    }
}
