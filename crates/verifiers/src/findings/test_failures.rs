//! Collects failing tests by the ids that runners give them, with place and message where the
//! output has them elsewhere (cargo prints them before, pytest above its summary).

use std::collections::BTreeMap;

use super::collector::{CheckFindingCollector, OutputFindingDraft};
use super::paths::FindingPathResolver;
use crate::patterns::{LazyRegex, LiteralPrefilter, capture_group_text};

static CARGO: LazyRegex = LazyRegex::new(" FAILED", r"^test (.+?) \.\.\. FAILED$");
/// libtest's heading, of its closing list or of the captured outputs.
static FAILURES: LazyRegex = LazyRegex::new("failures:", r"^failures:$");
static LISTED: LazyRegex = LazyRegex::new("    ", r"^    (\S.*)$");
static PANIC: LazyRegex = LazyRegex::new(
    " panicked at ",
    r"^thread '(.+?)'(?: \(\d+\))? panicked at (.+?):(\d+):\d+:$",
);
static NEXTEST: LazyRegex = LazyRegex::new(
    " [",
    r"^\s*(?:TRY \d+ )?(?:FAIL|TIMEOUT|TMT|ABORT|SIG\w+|LEAK-FAIL)\s+\[[^\]]*\]\s+(?:\([^)]*\)\s+)?(\S+)\s+(\S+)$",
);
static PYTEST: LazyRegex = LazyRegex::new(
    ".py",
    r"^(?:FAILED|ERROR) (\S+?\.py(?:::.+?)?)(?: - (.*))?$",
);
static PYTEST_HEADING: LazyRegex = LazyRegex::new(
    "___ ",
    r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(.+?) _{3,}$",
);
static PYTEST_PLACE: LazyRegex = LazyRegex::new(".py:", r"^(\S+\.py):(\d+): (.*)$");
static PYTEST_ERROR: LazyRegex = LazyRegex::new("E ", r"^E\s{2,}(.+)$");
static UNITTEST: LazyRegex = LazyRegex::new(" (", r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)(?: .*)?$");
static GO: LazyRegex = LazyRegex::new("--- FAIL: ", r"^\s*--- FAIL: (\S+)");
static GO_PLACE: LazyRegex = LazyRegex::new(".go:", r"^\s+(\S+\.go):(\d+): (.+)$");
static TAP: LazyRegex = LazyRegex::new("not ok ", r"^(\s*)not ok \d+(?: -)?(?: (.+))?$");
/// node and tap name a test before its subtests.
static SUBTEST: LazyRegex = LazyRegex::new("# Subtest: ", r"^(\s*)# Subtest: (.+)$");
static TAP_PLACE: LazyRegex = LazyRegex::new("location: ", r"^\s*location: '(.+):(\d+):\d+'$");
static TAP_ERROR: LazyRegex = LazyRegex::new("error: ", r"^\s*error: (?:'(.*)'|\|-)$");
/// Only its subtests failed, and they have been named already.
static TAP_PARENT: LazyRegex =
    LazyRegex::new("subtestsFailed", r"^\s*failureType: 'subtestsFailed'$");
/// node's list of failures in its output for people (the `spec` reporter).
static SPEC_PLACE: LazyRegex = LazyRegex::new("test at ", r"^test at (.+):(\d+):\d+$");
static SPEC: LazyRegex = LazyRegex::new("\u{2716} ", r"^\x{2716} (.+?)(?: \([\d.]+ms\))?$");
static TAP_EXCUSED: LazyRegex = LazyRegex::new("#", r"# (?:TODO|SKIP|todo|skip)");
static JEST: LazyRegex = LazyRegex::new("\u{25cf} ", r"^\s*\x{25CF} (.+ \x{203A} .+)$");
static JEST_PLACE: LazyRegex = LazyRegex::new(":", r"\(?([^\s()]+):(\d+):\d+\)?$");
static VITEST: LazyRegex = LazyRegex::new(" > ", r"^\s*FAIL\s+(?:\|[^|]+\| )?(\S+) > (.+)$");
/// `FAIL src/a.test.ts`, jest's heading of a file.
static FAIL_FILE: LazyRegex = LazyRegex::new("FAIL ", r"^\s*FAIL\s+(\S+)(?: \([\d.]+ m?s\))?$");

/// The patterns that [`TestFailureReader::collect_test_named_as_failing`] tries.
static NAMING: [&LazyRegex; 14] = [
    &PANIC,
    &FAILURES,
    &CARGO,
    &PYTEST,
    &PYTEST_HEADING,
    &UNITTEST,
    &GO,
    &TAP,
    &SUBTEST,
    &SPEC_PLACE,
    &JEST,
    &VITEST,
    &NEXTEST,
    &FAIL_FILE,
];

/// Blanks by which TAP indents the subtests of a test.
const TAP_INDENT: usize = 4;

/// Tests, and places of tests, that are remembered until names and places are joined.
const DETAILS: usize = 1_000;

#[derive(Debug, Clone, Default)]
struct TestFailureDetail {
    file: Option<String>,
    line: Option<u32>,
    message: String,
}

/// What the next lines tell about.
#[derive(Debug, Default)]
enum TestOutputState {
    #[default]
    Nothing,
    /// The line after a panic's place is its message.
    Panic(String),
    /// Under pytest's heading of a test.
    Pytest(String),
    /// Under go's or jest's name of a test.
    Place(String),
    /// In the block under a TAP line; whether the next line is the message.
    Tap(String, bool),
    /// Under the place of a test in node's list of failures.
    SpecPlace(Option<String>, Option<u32>),
    /// In libtest's closing list, the only place where `--quiet` names the tests.
    Failures,
}

#[derive(Debug, Default)]
pub(crate) struct TestFailureReader {
    named: Vec<(OutputFindingDraft, String)>,
    details: BTreeMap<String, TestFailureDetail>,
    within: TestOutputState,
    file: Option<String>,
    /// Names of the enclosing TAP tests, outermost first.
    subtests: Vec<String>,
    /// The unittest that the next traceback belongs to.
    owner: Option<String>,
}

impl TestFailureReader {
    /// Reads a line and returns whether it was about a test that has a name.
    pub(crate) fn collect_failing_test_line(
        &mut self,
        line: &str,
        paths: &mut FindingPathResolver,
        into: &mut CheckFindingCollector,
    ) -> bool {
        // Details first: a message may look like the name of another test. It returns false for a
        // line that begins something new, which the second then reads.
        self.parse_test_detail_line(line, paths, into)
            || self.collect_test_named_as_failing(line, paths, into)
    }

    /// Reads a line that names a failing test, or that begins to tell about one.
    fn collect_test_named_as_failing(
        &mut self,
        line: &str,
        paths: &mut FindingPathResolver,
        into: &mut CheckFindingCollector,
    ) -> bool {
        static PREFILTER: LiteralPrefilter = LiteralPrefilter::new();
        if !PREFILTER.line_may_match_patterns(line, || NAMING.to_vec()) {
            return false;
        }
        if let Some(captures) = PANIC.regex_captures(line) {
            // The thread of a test has the test's name; cargo names the failure only later.
            let name = capture_group_text(&captures, 1).to_owned();
            let file = paths.tree_file_named_by_text(capture_group_text(&captures, 2));
            let number = capture_group_text(&captures, 3).parse().ok();
            self.update_failed_test_detail(&name, |detail| {
                detail.file = file;
                detail.line = number;
            });
            self.within = TestOutputState::Panic(name);
        } else if FAILURES.regex_matches_in_line(line) {
            self.within = TestOutputState::Failures;
        } else if let Some(captures) = CARGO.regex_captures(line) {
            self.add_test_failure_finding(
                capture_group_text(&captures, 1),
                None,
                "",
                capture_group_text(&captures, 1),
                into,
            );
        } else if let Some(captures) = PYTEST.regex_captures(line) {
            let id = capture_group_text(&captures, 1);
            // The summary says `file::Class::test`, the heading above the details `Class.test`.
            let (path, name) = id.split_once("::").unwrap_or((id, id));
            let file = paths.tree_file_named_by_text(path);
            self.add_test_failure_finding(
                id,
                file,
                capture_group_text(&captures, 2),
                &name.replace("::", "."),
                into,
            );
            self.within = TestOutputState::Nothing;
        } else if let Some(captures) = PYTEST_HEADING.regex_captures(line) {
            self.within = TestOutputState::Pytest(capture_group_text(&captures, 1).to_owned());
        } else if let Some(captures) = UNITTEST.regex_captures(line) {
            let (name, class) = (
                capture_group_text(&captures, 1),
                capture_group_text(&captures, 2),
            );
            // Since Python 3.11 the parentheses hold the whole name, before that only the class.
            let id = if class.ends_with(&format!(".{name}")) {
                class.to_owned()
            } else {
                format!("{class}.{name}")
            };
            self.add_test_failure_finding(&id, None, "", &id, into);
            self.owner = Some(id);
        } else if let Some(captures) = GO.regex_captures(line) {
            let name = capture_group_text(&captures, 1);
            self.add_test_failure_finding(name, None, "", name, into);
            self.within = TestOutputState::Place(name.to_owned());
        } else if let Some(captures) = SUBTEST.regex_captures(line) {
            // The indentation tells how deep the test is nested; what was deeper has ended.
            self.subtests
                .truncate(capture_group_text(&captures, 1).len() / TAP_INDENT);
            self.subtests
                .push(capture_group_text(&captures, 2).to_owned());
        } else if let Some(captures) = TAP.regex_captures(line) {
            let name = capture_group_text(&captures, 2);
            // TAP: a `not ok` with TODO or SKIP is no failure.
            if !TAP_EXCUSED.regex_matches_in_line(name) {
                self.subtests
                    .truncate(capture_group_text(&captures, 1).len() / TAP_INDENT);
                let outer = self.subtests.iter().map(String::as_str);
                let path: Vec<&str> = outer.chain([name]).collect();
                let path = path.join(" > ");
                self.add_test_failure_finding(&path, None, "", &path, into);
                self.within = TestOutputState::Tap(path, false);
            }
        } else if let Some(captures) = SPEC_PLACE.regex_captures(line) {
            let file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
            self.within =
                TestOutputState::SpecPlace(file, capture_group_text(&captures, 2).parse().ok());
        } else if let Some(captures) = JEST.regex_captures(line) {
            let name = capture_group_text(&captures, 1).trim();
            self.add_test_failure_finding(name, self.file.clone(), "", name, into);
            self.within = TestOutputState::Place(name.to_owned());
        } else if let Some(captures) = VITEST.regex_captures(line) {
            let (path, name) = (
                capture_group_text(&captures, 1),
                capture_group_text(&captures, 2),
            );
            self.add_test_failure_finding(
                name,
                paths.tree_file_named_by_text(path),
                "",
                name,
                into,
            );
            self.within = TestOutputState::Place(name.to_owned());
        } else if let Some(captures) = NEXTEST.regex_captures(line) {
            self.add_test_failure_finding(
                capture_group_text(&captures, 2),
                None,
                "",
                capture_group_text(&captures, 2),
                into,
            );
        } else if let Some(captures) = FAIL_FILE.regex_captures(line) {
            self.file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
        } else {
            return false;
        }
        true
    }

    /// Reads a line that tells more about the test named above it.
    fn parse_test_detail_line(
        &mut self,
        line: &str,
        paths: &mut FindingPathResolver,
        into: &mut CheckFindingCollector,
    ) -> bool {
        // Each arm that wants further lines puts its state back; otherwise the block has ended.
        match std::mem::take(&mut self.within) {
            TestOutputState::Nothing => false,
            TestOutputState::Failures => {
                let Some(captures) = LISTED.regex_captures(line) else {
                    return false;
                };
                let name = capture_group_text(&captures, 1);
                self.add_test_failure_finding(name, None, "", name, into);
                self.within = TestOutputState::Failures;
                true
            }
            TestOutputState::Tap(name, says) => {
                let text = line.trim();
                // The YAML block of TAP is indented and ends with `...`.
                if !line.starts_with(' ') || text == "..." {
                    return false;
                }
                if says {
                    self.update_failed_test_detail(&name, |detail| {
                        detail.message = text.to_owned()
                    });
                } else if let Some(captures) = TAP_PLACE.regex_captures(line) {
                    let file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
                    let number = capture_group_text(&captures, 2)
                        .parse()
                        .ok()
                        .filter(|_| file.is_some());
                    self.update_failed_test_detail(&name, |detail| {
                        detail.file = file;
                        detail.line = number;
                    });
                } else if let Some(captures) = TAP_ERROR.regex_captures(line) {
                    let message = capture_group_text(&captures, 1).to_owned();
                    let follows = text.ends_with("|-");
                    self.update_failed_test_detail(&name, |detail| detail.message = message);
                    self.within = TestOutputState::Tap(name, follows);
                    return true;
                } else if TAP_PARENT.regex_matches_in_line(line) {
                    let own = |(_, named): &(OutputFindingDraft, String)| *named == name;
                    // Only the last one: the block follows the line that named the test.
                    if self.named.last().is_some_and(own) {
                        self.named.pop();
                    }
                } else if TAP.regex_matches_in_line(line) || SUBTEST.regex_matches_in_line(line) {
                    return false;
                }
                self.within = TestOutputState::Tap(name, false);
                true
            }
            TestOutputState::SpecPlace(file, number) => {
                let Some(captures) = SPEC.regex_captures(line) else {
                    return false;
                };
                let name = capture_group_text(&captures, 1).to_owned();
                self.add_test_failure_finding(&name, file.clone(), "", &name, into);
                self.update_failed_test_detail(&name, |detail| {
                    detail.file = file;
                    detail.line = number;
                });
                // As after a panic, the next line is the message.
                self.within = TestOutputState::Panic(name);
                true
            }
            TestOutputState::Panic(name) => {
                self.update_failed_test_detail(&name, |detail| {
                    detail.message = line.trim().to_owned()
                });
                true
            }
            TestOutputState::Pytest(name) => {
                if line.starts_with("====") || PYTEST_HEADING.regex_matches_in_line(line) {
                    return false;
                }
                if let Some(captures) = PYTEST_PLACE.regex_captures(line) {
                    let file = paths.tree_file_named_by_text(capture_group_text(&captures, 1));
                    let number = capture_group_text(&captures, 2).parse().ok();
                    self.update_failed_test_detail(&name, |detail| {
                        // Frames in libraries are passed over; the last place in the tree stays.
                        if file.is_some() {
                            detail.file = file;
                            detail.line = number;
                        }
                    });
                } else if let Some(captures) = PYTEST_ERROR.regex_captures(line) {
                    let message = capture_group_text(&captures, 1).to_owned();
                    self.update_failed_test_detail(&name, |detail| {
                        // The first `E` line is the message; the later ones are the comparison's
                        // details.
                        if detail.message.is_empty() {
                            detail.message = message;
                        }
                    });
                }
                self.within = TestOutputState::Pytest(name);
                true
            }
            TestOutputState::Place(name) => {
                // Indented and blank lines still belong to the test.
                if !line.is_empty() && !line.starts_with([' ', '\t'])
                    || GO.regex_matches_in_line(line)
                    || JEST.regex_matches_in_line(line)
                    || VITEST.regex_matches_in_line(line)
                {
                    return false;
                }
                let go = GO_PLACE.regex_captures(line);
                let place = go
                    .as_ref()
                    .map(|found| (capture_group_text(found, 1), capture_group_text(found, 2)));
                let jest = JEST_PLACE.regex_captures(line);
                let place = place.or_else(|| {
                    jest.as_ref()
                        .map(|found| (capture_group_text(found, 1), capture_group_text(found, 2)))
                });
                let file = place.and_then(|(path, _)| paths.tree_file_named_by_text(path));
                let number = place.and_then(|(_, number)| number.parse().ok());
                let said = go
                    .as_ref()
                    .map_or(line.trim(), |found| capture_group_text(found, 3));
                self.update_failed_test_detail(&name, |detail| {
                    // The first place counts; in a stack it is the innermost. Go prints bare file
                    // names, which need not exist at the root.
                    if detail.line.is_none() && (file.is_some() || go.is_some()) {
                        detail.file = file;
                        detail.line = number;
                    }
                    if detail.message.is_empty() {
                        detail.message = said.to_owned();
                    }
                });
                self.within = TestOutputState::Place(name);
                true
            }
        }
    }

    /// Attaches a traceback to the test named before it, and gives it back if there is none.
    pub(crate) fn attach_traceback(
        &mut self,
        traceback: OutputFindingDraft,
    ) -> Option<OutputFindingDraft> {
        let Some(name) = self.owner.take() else {
            return Some(traceback);
        };
        self.update_failed_test_detail(&name, |detail| {
            detail.file = traceback.file;
            detail.line = traceback.line;
            let rule = traceback.rule.unwrap_or_default();
            detail.message = format!("{rule}: {}", traceback.message);
        });
        None
    }

    fn update_failed_test_detail(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut TestFailureDetail),
    ) {
        if let Some(detail) = self.details.get_mut(name) {
            change(detail);
        } else if self.details.len() < DETAILS {
            let mut detail = TestFailureDetail::default();
            change(&mut detail);
            self.details.insert(name.to_owned(), detail);
        }
    }

    fn add_test_failure_finding(
        &mut self,
        id: &str,
        file: Option<String>,
        message: &str,
        detail: &str,
        into: &mut CheckFindingCollector,
    ) {
        let draft = OutputFindingDraft {
            test: Some(id.to_owned()),
            file,
            message: message.to_owned(),
            ..OutputFindingDraft::default()
        };
        // Past the bound a failure is passed on without its details, so that it is still counted.
        if self.named.len() < DETAILS {
            self.named.push((draft, detail.to_owned()));
        } else {
            into.add_output_finding_draft(draft);
        }
    }

    /// Joins the names with their places and messages. Only at the end, since some runners print
    /// the name first and others last.
    pub(crate) fn drain_named_failures_into_findings(&mut self, into: &mut CheckFindingCollector) {
        for (mut draft, name) in self.named.drain(..) {
            if let Some(detail) = self.details.get(&name) {
                // A test's own file is part of its identity; the place of the failure may be in a
                // file that it calls.
                match &draft.file {
                    Some(file) if detail.file.as_ref() == Some(file) => draft.line = detail.line,
                    Some(_) => {}
                    None => {
                        draft.file = detail.file.clone();
                        draft.line = detail.line;
                    }
                }
                if draft.message.is_empty() {
                    draft.message = detail.message.clone();
                }
            }
            if draft.message.is_empty() {
                draft.message = "failed".to_owned();
            }
            into.add_output_finding_draft(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [
            &CARGO,
            &FAILURES,
            &LISTED,
            &PANIC,
            &NEXTEST,
            &PYTEST,
            &PYTEST_HEADING,
            &PYTEST_PLACE,
            &PYTEST_ERROR,
            &UNITTEST,
            &GO,
            &GO_PLACE,
            &TAP,
            &TAP_EXCUSED,
            &SUBTEST,
            &TAP_PLACE,
            &TAP_ERROR,
            &TAP_PARENT,
            &SPEC_PLACE,
            &SPEC,
            &JEST,
            &JEST_PLACE,
            &VITEST,
            &FAIL_FILE,
        ] {
            pattern.replace_all_regex_matches("", "");
        }
    }
}
